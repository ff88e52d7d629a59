"""Conditional determinantal point process: which items of a given ground set are chosen, learned from examples.

Each ground set X (the sentences of a document, the results of a query) has its own kernel
``L_ij(X) = q_i S_ij q_j`` with ``q_i = exp(theta' f_i / 2)``; theta is shared. The log-likelihood is concave in theta,
so there is one answer and it does not depend on a start.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from pluri.inference.ascent import climb
from pluri.processes.dpp.finite import DPP
from pluri.processes.dpp.kernel_forms import as_subset
from pluri.processes.dpp.learning.likelihood import log_determinants
from pluri.processes.dpp.learning.log_linear import (
    Candidates,
    LogLinearObjective,
    log_partition,
    observe,
    read_candidates,
)
from pluri.processes.dpp.learning.observations import subset_weights
from pluri.processes.dpp.search.maximize import most_probable
from pluri.processes.gp_inference.learning import one_thread_if_small
from pluri.validation import Allowed, Number, RandomState, Stored, as_generator, check_parameters
from pluri.validation.estimator import Estimator

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]


class ConditionalDPP(Estimator):
    """Choice of diverse subsets from ground sets with features, with log-linear qualities.

    Parameters
    ----------
    similarity : "precomputed", {"rbf", "cosine", "linear", "exponential_cosine"} or callable, default="precomputed"
        "precomputed": ground sets are pairs (features, similarity matrix). Otherwise the similarity is computed, from
        the second array of a pair or, if a ground set is a single matrix, from the features themselves; a callable
        takes two sets of rows.
    alpha : float, default=1e-3
        Weight of the penalty ``alpha / 2 |theta|^2`` beside the mean log-likelihood.
    fit_intercept : bool, default=True
        Whether to learn a quality that all items share, without penalty; it sets the size of the subsets.
    max_iter : int, default=500
    tol : float, default=1e-10
        The fit ends when an iteration of L-BFGS gains less.
    verbose : int, default=0
        1 shows progress.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
        theta.
    intercept_ : float
    covariance_ : array of shape (n_parameters, n_parameters)
        Inverse of the penalised information: of the coefficients and, last, of the intercept.
    standard_errors_ : array of shape (n_features,)
        Of the coefficients, if weights count observations.
    log_likelihood_ : float
        Mean log-likelihood of the examples.
    n_features_in_, n_iter_ : int
    converged_ : bool
    history_ : `pluri.inference.History`

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.processes.dpp.learning import ConditionalDPP
    >>> features = np.array([[2.0], [1.0], [0.0]])
    >>> similarity = np.array([[1.0, 0.9, 0.0], [0.9, 1.0, 0.0], [0.0, 0.0, 1.0]])
    >>> model = ConditionalDPP().fit((features, similarity), [[0], [0, 2], [0], [1], [0, 2]])
    >>> bool(model.coef_[0] > 0)
    True
    >>> model.predict((features, similarity))
    array([0])
    """

    _parameters: ClassVar[Mapping[str, Allowed]] = {"alpha": Number(least=0)}
    _fitted_layout: ClassVar[Mapping[str, Stored]] = {
        "coef_": Stored("n_features_in_"),
        "standard_errors_": Stored("n_features_in_"),
        "covariance_": Stored("n_all", "n_all"),
    }

    def __init__(
        self,
        similarity: str | Callable[..., Any] = "precomputed",
        *,
        alpha: float = 1e-3,
        fit_intercept: bool = True,
        max_iter: int = 500,
        tol: float = 1e-10,
        verbose: int = 0,
    ) -> None:
        self.similarity = similarity
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the coefficients from examples; Ctrl-C keeps the best so far.

        Parameters
        ----------
        X : list of ground sets, or one tuple (features, similarity) for all examples
            A ground set is a tuple (features, similarity), or a matrix of features if `similarity` is not
            "precomputed". One that occurs several times in the list is worked on once.
        y : list of subsets
            Item numbers, or a mask, of the items chosen from each ground set; may be empty.
        sample_weight : array of shape (n_subsets,), optional
            A weight of 2 is the same as the example twice.

        Returns
        -------
        self : object
        """
        self._check_settings()
        candidates, subsets = self._examples(X, y, None)
        objective = LogLinearObjective(
            observe(candidates, subsets, subset_weights(sample_weight, len(subsets))),
            float(self.alpha),
            bool(self.fit_intercept),
        )
        start = np.zeros(objective.n_features + self.fit_intercept)
        with one_thread_if_small(max(len(one.features) for one in candidates)):
            top = climb(objective.in_units, [start], max_iter=self.max_iter, tol=self.tol, verbose=self.verbose)
            theta = top.point / objective.units
            information = objective.information(theta)
            self.log_likelihood_ = objective.log_likelihood(theta)
        self.coef_, self.intercept_ = objective.split(theta)
        self.covariance_ = np.linalg.pinv(information, hermitian=True)
        self.standard_errors_ = np.sqrt(np.maximum(np.diagonal(self.covariance_)[: objective.n_features], 0.0))
        self.n_features_in_ = objective.n_features
        self.n_iter_ = top.n_iter
        self.converged_ = top.converged
        self.history_ = top.history
        if top.reason in ("max_iter", "stopped"):
            warnings.warn(
                f"the likelihood still rose after {top.n_iter} iterations: raise max_iter ({self.max_iter}) or alpha, "
                "or scale the features",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def _check_settings(self) -> None:
        check_parameters(self)

    def _examples(self, X: Any, y: Any, n_features: int | None) -> tuple[list[Candidates], list[IntArray]]:
        candidates, shared = read_candidates(X, self.similarity, n_features)
        if isinstance(y, str | bytes) or not hasattr(y, "__len__"):
            raise ValueError(f"y must be a list of subsets, got {y!r}")
        if not len(y):
            raise ValueError("y must hold at least one subset, got an empty list")
        if shared:
            candidates = candidates * len(y)
        if len(y) != len(candidates):
            raise ValueError(f"y must have one subset per ground set ({len(candidates)}), got {len(y)}")
        subsets = [
            as_subset(subset, len(one.features), f"y[{index}]")
            for index, (subset, one) in enumerate(zip(y, candidates))
        ]
        return candidates, subsets

    def _each(self, X: Any, function: Callable[[DPP], Any]) -> Any:
        check_is_fitted(self, "coef_")
        candidates, shared = read_candidates(X, self.similarity, self.n_features_in_)
        answers = [function(DPP(one.kernel(self.coef_, self.intercept_))) for one in candidates]
        return answers[0] if shared else answers

    def dpp(self, X: Any) -> DPP | list[DPP]:
        """The process of each ground set (of the one, if X is a single one)."""
        answer: DPP | list[DPP] = self._each(X, lambda process: process)
        return answer

    def predict(self, X: Any, size: int | None = None) -> IntArray | list[IntArray]:
        """Subsets of high probability, found greedily.

        Parameters
        ----------
        X : list of ground sets, or a single one
        size : int, optional
            Number of items wanted; as many as raise the probability by default.

        Returns
        -------
        list of arrays of item numbers, or one array for a single ground set
        """

        def best(process: DPP) -> IntArray:
            # Not by `map`, which warns of an empty set: here nothing may be what the examples have taught to choose.
            return most_probable(process.kernel, None) if size is None else process.map(size)

        answer: IntArray | list[IntArray] = self._each(X, best)
        return answer

    def sample(self, X: Any, n_samples: int | None = None, random_state: RandomState = None) -> Any:
        """Draw a subset from each ground set, or a list of `n_samples`."""
        rng = as_generator(random_state)
        return self._each(X, lambda process: process.sample(n_samples, random_state=rng))

    def log_prob(self, X: Any, y: Any) -> Array:
        """Log-probability of each subset: (n_subsets,); -inf for an impossible one."""
        check_is_fitted(self, "coef_")
        candidates, subsets = self._examples(X, y, self.n_features_in_)
        partitions: dict[int, tuple[Array, float]] = {}
        values = np.empty(len(subsets))
        for index, (one, subset) in enumerate(zip(candidates, subsets)):
            if id(one) not in partitions:
                scores = one.features @ self.coef_ + self.intercept_
                partitions[id(one)] = (scores, log_partition(scores, one.similarity)[0])
            scores, partition = partitions[id(one)]
            block = one.similarity[np.ix_(subset, subset)]
            values[index] = scores[subset].sum() + log_determinants(block[None])[0] - partition
        return values

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Mean log-likelihood of examples; -inf if one is impossible."""
        values = self.log_prob(X, y)
        weight = subset_weights(sample_weight, len(values))
        return float(values[weight > 0] @ weight[weight > 0] / weight.sum())
