"""Principal component analysis of zeros and ones: natural parameters of low rank instead of means.

``p(x_nd = 1) = sigma(u_n . v_d + m_d)``, fitted by alternating least squares on a bound that touches the likelihood
(`pluri.factors.logistic_pca_fit`), so that the penalised likelihood never falls. A row of which only some entries are
known is completed by the u that explains those.

References
----------
.. [1] Schein, A., Saul, L. and Ungar, L. (2003). A generalized linear model for principal component analysis of binary
   data. AISTATS.
.. [2] Hu, D., van der Maaten, L., Cho, Y., Saul, L. and Lerner, S. (2010). Latent variable models for predicting file
   dependencies in large-scale software development. NIPS 23.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_array, check_is_fitted
from threadpoolctl import threadpool_limits

from pluri.factors.binary_completion import BinaryCompletionMixin, BinaryRows, check_binary
from pluri.factors.logistic_pca_fit import BLOCK, Loadings, alternate, balanced, fold_in, fold_in_listed, start
from pluri.optimize.fixed_point import iterate
from pluri.progress import Step, open_progress
from pluri.validation import (
    Allowed,
    Number,
    Only,
    RandomState,
    Stored,
    Whole,
    as_generator,
    check_parameters,
    restored_on_failure,
)
from pluri.validation.estimator import Estimator
from pluri.validation.interruption import Interrupted, holding

Array = NDArray[np.float64]


#: Scores of a component that the fit has emptied have no variance.
SMALLEST_VARIANCE = 1e-8


class LogisticPCA(BinaryCompletionMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    """Logistic principal component analysis.

    Parameters
    ----------
    n_components : int, default=2
    alpha : float, default=1.0
        r in the objective, log-likelihood - (r/4) (sum of squares of scores and loadings). Positive: a column that is
        separable would otherwise have infinite loadings. A small one overfits.
    fold_in_alpha : float, optional
        l in the objective of a row of which some entries are known, log-likelihood of those - (l/2) (sum of squares
        of its scores); positive, since ones alone would be explained best by infinite scores. By default that of each
        component is one over the mean square of its scores in the fit: new rows are then taken to be like those, and
        probabilities are not surer than the known entries warrant.
    fit_intercept : bool, default=True
        Whether columns have intercepts. Without them, scores of zero mean a probability of one half in every column,
        so that completed rows are good for ranking columns, but no probabilities.
    max_iter : int, default=200
    tol : float, default=1e-3
        The fit ends when a sweep raises the objective by less than this share of what it was after the first.
    binarize : float or None, default=0.0
        Values above this are ones; None if X already holds zeros and ones.
    random_state : int, Generator, RandomState or None, default=None
        For starting values where X has fewer dimensions than there are components.
    verbose : int, default=0
        1 prints the objective of each sweep.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        Loadings: orthogonal, longest first.
    intercept_ : array of shape (n_features,)
    score_precision_ : array of shape (n_components,)
        One over the mean squares of the scores of the rows of the fit.
    objective_ : float
        Penalised log-likelihood.
    objective_trace_ : list of float
        The same by sweep; it never falls.
    converged_ : bool
    n_iter_ : int
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.factors.logistic_pca import LogisticPCA
    >>> X = np.repeat([[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]], 20, axis=0)
    >>> model = LogisticPCA(1).fit(X)
    >>> bool((model.predict_missing([0]).round() == X[0]).all())
    True
    """

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        "n_components": Whole(1),
        "alpha": Number(above=0),
        "fold_in_alpha": Number(above=0) | Only(None),
    }
    _fitted_layout: ClassVar[Mapping[str, Stored]] = {
        "components_": Stored("n_directions", "n_features_in_"),
        "intercept_": Stored("n_features_in_"),
        "score_precision_": Stored("n_directions", least=0),
    }
    _input_tags: ClassVar[Mapping[str, bool]] = {"sparse": True, "allow_nan": True}

    def __init__(
        self,
        n_components: int = 2,
        *,
        alpha: float = 1.0,
        fold_in_alpha: float | None = None,
        fit_intercept: bool = True,
        max_iter: int = 200,
        tol: float = 1e-3,
        binarize: float | None = 0.0,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.alpha = alpha
        self.fold_in_alpha = fold_in_alpha
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.binarize = binarize
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find loadings, intercepts and, on the way, scores of the rows.

        After Ctrl-C the model is that of the sweeps so far.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Values above `binarize` are ones; NaN is a missing entry, left out of the likelihood.
        y : ignored

        Returns
        -------
        self : object
        """
        check_parameters(self)
        # On blocks that fit the cache, threads of the linear algebra mostly wait for each other.
        with restored_on_failure(self), threadpool_limits(limits=1, user_api="blas"):
            self._alternate(check_binary(self, X, binarize=self.binarize, reset=True))
        return self

    def _alternate(self, rows: BinaryRows) -> None:
        scores, loadings = start(
            rows, int(self.n_components), bool(self.fit_intercept), as_generator(self.random_state)
        )
        trace: list[float] = []
        last = scores, loadings, loadings  # and the loadings before

        def sweep(state: tuple[Array, Loadings, Loadings]) -> tuple[tuple[Array, Loadings, Loadings], float]:
            nonlocal last
            scores, loadings, _ = state
            found = alternate(rows, scores, loadings, float(self.alpha), bool(self.fit_intercept))
            last = found[0], found[1], loadings
            trace.append(found[2])
            gain = trace[-1] - trace[-2] if len(trace) > 1 else np.inf
            short = gain - self.tol * abs(trace[0])
            report(Step(len(trace), int(self.max_iter), trace[-1], gain, "converged" if short <= 0 else None))
            return last, short

        converged = False
        with (
            open_progress(int(self.verbose)) as report,
            holding(lambda: f"fit interrupted after {len(trace)} sweeps; they are kept") as block,
        ):
            converged = iterate(sweep, last, max_iter=int(self.max_iter)).converged
        if not trace:
            raise Interrupted
        scores, _, before = last
        # The objective is that of the loadings with which the last scores were found.
        scores, loadings = balanced(scores, before)
        self.score_precision_ = 1.0 / np.maximum((scores**2).mean(axis=0), SMALLEST_VARIANCE)
        self.components_, self.intercept_ = loadings.components, loadings.intercept
        self.objective_trace_ = [float(value) for value in trace]
        self.objective_, self.n_iter_, self.converged_ = self.objective_trace_[-1], len(trace), converged
        if not (converged or block.interrupted):
            warnings.warn(
                f"the objective still rises after max_iter={self.max_iter} sweeps; raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _loadings(self) -> Loadings:
        check_is_fitted(self)
        return Loadings(self.components_, self.intercept_)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def _folded(self, X: Any) -> tuple[Array, Array]:
        loadings = self._loadings()
        rows = check_binary(self, X, binarize=self.binarize, reset=False)
        with threadpool_limits(limits=1, user_api="blas"):
            # A fourth of the sum of squares there is half of half the penalty here.
            return fold_in(rows, loadings, 0.5 * float(self.alpha))

    def transform(self, X: Any) -> Array:
        """Scores (n_samples, n_components) of rows, under the penalty of the fit; missing entries are left out."""
        return self._folded(X)[0]

    def inverse_transform(self, U: Any) -> Array:
        """Probabilities of a one (n_samples, n_features) that scores stand for."""
        loadings = self._loadings()
        scores = check_array(U, dtype=np.float64)
        if scores.shape[1] != len(self.components_):
            raise ValueError(f"U must have {len(self.components_)} columns, one per component, got {scores.shape[1]}")
        return np.asarray(expit(loadings.natural(scores)))

    def score_samples(self, X: Any) -> Array:
        """Log-likelihood of each row at its own scores (not a density: the scores are not integrated out)."""
        return self._folded(X)[1]

    def score(self, X: Any, y: Any = None) -> float:
        """Mean of :meth:`score_samples`."""
        return float(self.score_samples(X).mean())

    def _complete(self, ones: Any, zeros: Any) -> Array:
        loadings = self._loadings()
        penalty = self.score_precision_ if self.fold_in_alpha is None else float(self.fold_in_alpha)
        n, width = ones.shape
        known = int((np.diff(ones.indptr) + np.diff(zeros.indptr)).max(initial=0))
        answer = np.empty((n, width))
        step = max(1, BLOCK // (max(known, 1) * len(self.components_)))
        for first in range(0, n, step):
            part = slice(first, first + step)
            scores = fold_in_listed(ones[part], zeros[part], loadings, penalty)
            answer[part] = expit(loadings.natural(scores))
        return answer

    def summary(self, n_columns: int = 4) -> str:
        """The components and their heaviest columns, on one page of plain text."""
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", np.arange(self.n_features_in_))
        state = "converged" if self.converged_ else "not converged"
        lines = [
            f"{type(self).__name__}: {len(self.components_)} components, {self.n_features_in_} columns",
            f"{state} after {self.n_iter_} sweeps; penalised log-likelihood {self.objective_:.3f}",
            "",
            "component  length    heaviest columns",
        ]
        for number, row in enumerate(self.components_):
            order = np.argsort(-np.abs(row), kind="stable")[:n_columns]
            columns = ", ".join(f"{names[i]} {row[i]:+.2f}" for i in order)
            lines.append(f"{number:<9d}  {np.linalg.norm(row):<8.3f}  {columns}")
        return "\n".join(lines)
