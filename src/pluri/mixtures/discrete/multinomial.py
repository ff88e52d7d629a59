"""Multinomial mixture: p(x) = sum_z pi_z Mult(x | n, b_z), for rows of counts such as documents, dense or sparse."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from pluri.components.multinomial import MultinomialFamily, MultinomialParameters
from pluri.components.weighted_sums import WeightedSums, averages, pooled_sums
from pluri.engine import Source
from pluri.mixtures.discrete.mixture import DiscreteMixture, check_repelling_prior, smoothed_prior
from pluri.mixtures.discrete.poisson import count_rows
from pluri.mixtures.mixture import DIVERSITY, Prior
from pluri.priors import DeterminantalPrior, Diversity, as_diversity, as_row_prior
from pluri.validation import Allowed, Made, Only, Stored, Whole, check_distributions

Array = NDArray[np.float64]


class MultinomialMixture(DiscreteMixture):
    """Mixture of multinomial distributions: how the counts of a row are divided, given how many there are.

    A row with a NaN is missing as a whole: the count of one symbol says nothing without the number of trials.

    Parameters
    ----------
    n_components : int, default=1
        Number of components.
    n_trials : int or None, default=None
        Counts of a row that `sample` draws; that of the rows of `fit` if it was the same in all.
    probabilities_prior : float, array or prior object, default=1.0
        Dirichlet concentration of the probabilities; above 1 smooths, below 1 asks for sparse components.
    smoothing : float, default=1e-3
        Each component is given so many counts more, divided like those of all rows together (and one of each symbol).
    weight_prior, tol, max_iter, n_init, init_params, weights_init
        See `BernoulliMixture`.
    probabilities_init : array of shape (n_components, n_features), optional
        Starting values.
    diversity : float, `pluri.priors.Diversity` or `pluri.priors.DeterminantalPrior`, optional
        Weight of the determinantal prior that keeps the components apart. A number uses the Bhattacharyya kernel; a
        prior of your own sees the probabilities as rows.
    split_merge, acceleration, warm_start, random_state, verbose, checkpoint, engine, n_jobs
        See `BernoulliMixture`.

    Attributes
    ----------
    weights_ : array of shape (n_components,)
    probabilities_ : array of shape (n_components, n_features)
        Each row sums to one.
    n_trials_ : int or None
        The counts of a row, if they were the same in all.
    converged_, n_iter_, lower_bound_, lower_bounds_, objective_, history_, occupancy_, n_features_in_
        See `BernoulliMixture`.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.mixtures import MultinomialMixture
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.multinomial(9, [0.8, 0.1, 0.1], 50), rng.multinomial(9, [0.1, 0.1, 0.8], 50)])
    >>> model = MultinomialMixture(n_components=2, random_state=0).fit(X)
    >>> sorted(model.probabilities_.round(1).tolist())
    [[0.1, 0.1, 0.8], [0.8, 0.1, 0.1]]
    """

    _fitted_layout: ClassVar[Mapping[str, Stored]] = {
        "probabilities_": Stored("n_components", "n_features_in_", simplex=True),
        "_average": Stored("n_features_in_"),
    }

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        **DiscreteMixture._parameters,
        "n_trials": Whole(0) | Only(None),
        "diversity": DIVERSITY | Made(Diversity, "a Diversity"),
    }
    _input_tags: ClassVar[Mapping[str, bool]] = {"positive_only": True}

    def __init__(
        self,
        n_components: int = 1,
        *,
        n_trials: int | None = None,
        probabilities_prior: Prior = 1.0,
        smoothing: float = 1e-3,
        weight_prior: Prior = 1.0,
        tol: float = 1e-4,
        max_iter: int = 100,
        n_init: int = 1,
        init_params: str = "kmeans",
        weights_init: ArrayLike | None = None,
        probabilities_init: ArrayLike | None = None,
        diversity: Any = None,
        split_merge: int = 0,
        acceleration: str | None = None,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
        checkpoint: Any = None,
        engine: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.n_trials = n_trials
        self.probabilities_prior = probabilities_prior
        self.smoothing = smoothing
        self.weight_prior = weight_prior
        self.tol = tol
        self.max_iter = max_iter
        self.n_init = n_init
        self.init_params = init_params
        self.weights_init = weights_init
        self.probabilities_init = probabilities_init
        self.diversity = diversity
        self.split_merge = split_merge
        self.acceleration = acceleration
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint = checkpoint
        self.engine = engine
        self.n_jobs = n_jobs

    def _check_rows(self, X: Any, *, fitting: bool) -> Any:
        rows = count_rows(self._validated(X, fitting))
        if fitting:
            sums = np.asarray(rows.sum(axis=1))
            seen = sums[~np.isnan(sums)]
            if not len(seen):
                raise ValueError(
                    "X must have a row without missing values, got none: a row with a NaN is missing as a whole"
                )
            same = len(seen) > 0 and bool((seen == seen[0]).all()) and float(seen[0]).is_integer()
            self.n_trials_ = int(seen[0]) if same else None
        return rows

    def _family(self, source: Source | None) -> MultinomialFamily:
        shape = (self.n_components, int(self.n_features_in_))
        pseudo_row = self._pseudo_row(source, _complete_rows)
        if source is not None:
            sums = pooled_sums(source, MultinomialFamily().prepare)
            self._mean_trials = float(averages(sums)[0].sum())
        prior = smoothed_prior(as_row_prior("probabilities_prior", self.probabilities_prior, shape), shape, pseudo_row)
        repulsion: Diversity | DeterminantalPrior | None = (
            self._repulsion(None) if isinstance(self.diversity, DeterminantalPrior) else as_diversity(self.diversity)
        )
        if isinstance(repulsion, DeterminantalPrior):
            check_repelling_prior(prior, shape)
        self._check_room(repulsion, float(np.log(shape[1])))
        given = None if source is None else self._checked_init("probabilities_init", shape[1], 1.0)
        if given is not None:
            check_distributions("probabilities_init", given)
        n_trials = self.n_trials if self.n_trials is not None else getattr(self, "n_trials_", None)
        return MultinomialFamily(
            n_trials, prior, True, given, self.init_params, repulsion, getattr(self, "_mean_trials", 1.0)
        )

    def _average_row(self, sums: WeightedSums) -> Array:
        # One count more of each symbol: one that was not seen so far may still come.
        counts = sums.total[0] + 1.0
        return np.asarray(counts / counts.sum())

    def _component_parameters(self, family: Any) -> MultinomialParameters:
        probabilities = self._fitted_rows("probabilities_")
        check_distributions("probabilities_", probabilities)
        return MultinomialParameters(probabilities)

    def _store_components(self, parameters: MultinomialParameters) -> None:
        self.probabilities_ = parameters.probabilities


def _complete_rows(X: Any) -> Any:
    rows = MultinomialFamily().prepare(X)
    return rows if sparse.issparse(rows) else np.where(np.isnan(rows), 0.0, rows)
