"""Bernoulli mixture: p(x) = sum_z pi_z prod_i theta_zi^x_i (1 - theta_zi)^(1 - x_i), for binary rows, dense or sparse.

With `smoothing` kappa and the column means m the M-step is theta_zi = (sum_n r_nz x_ni + kappa m_i) / (N_z + kappa),
the maximum under a beta prior with mean m. Pure maximum likelihood gives exact zeros, under which a row that is only
partly known may be impossible for every component.

References
----------
.. [1] Carreira-Perpinan and Renals (2000). Practical identifiability of finite mixtures of multivariate Bernoulli
   distributions. Neural Computation 12, 141-152.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from pluri.components.bernoulli import MARGIN, BernoulliFamily, BernoulliParameters
from pluri.components.sparse_rows import canonical_rows
from pluri.engine import Batch, Source
from pluri.factors.binary_completion import check_columns
from pluri.mixtures.discrete.mixture import DiscreteMixture
from pluri.mixtures.discrete.prepared_source import PreparedSource
from pluri.mixtures.learning import BLOCK
from pluri.mixtures.mixture import Prior
from pluri.priors import Beta
from pluri.priors.kernels import ProbabilityProductKernel
from pluri.validation import Allowed, Made, Number, Only, Stored, is_source
from pluri.validation.inputs import warn_of_one_side

Array = NDArray[np.float64]


class BernoulliMixture(DiscreteMixture):
    """Mixture of products of Bernoulli distributions, for binary data: baskets, tags, symptoms, changed files.

    Parameters
    ----------
    n_components : int, default=1
        Number of components.
    probabilities_prior : float or `pluri.priors.Beta` prior, default=1.0
        Prior of the probability of a one, with parameters of at least 1; a number stands for both, and 1 is no prior.
    smoothing : float, default=1e-3
        Each component is given so many rows more, that look like the average of all rows.
    weight_prior : float, array or prior object, default=1.0
        Dirichlet concentration of the weights; 1 is no prior, below 1 empties components.
    binarize : float or None, default=0.0
        Values above this are ones (as in scikit-learn's `BernoulliNB`); None if X already holds zeros and ones.
    tol : float, default=1e-4
        EM stops when the objective gains less than this for each unit of weight (row).
    max_iter : int, default=100
        Largest number of iterations of a run; 0 keeps the starting values.
    n_init : int, default=1
        Number of runs from different starting values; the best one is kept.
    init_params : {"kmeans", "k-means++", "random", "random_from_data"}, default="kmeans"
        How rows are divided at the start: by k-means, by the nearest of rows that k-means++ or chance picks, or in
        random shares.
    weights_init, probabilities_init : arrays of shape (n_components,) and (n_components, n_features), optional
        Starting values.
    diversity : float or `pluri.priors.DeterminantalPrior`, optional
        Weight of the determinantal prior that keeps the components apart. A number uses the Bhattacharyya kernel of
        Bernoulli distributions; a prior of your own sees the probabilities as rows.
    split_merge : int, default=0
        After EM, try up to so many moves that join two components and divide a third; repeated while one helps.
    acceleration : {"squarem", "anderson"} or None, default=None
        Extrapolate the EM steps; the objective still never falls.
    warm_start : bool, default=False
        Go on from the parameters of the last `fit`.
    random_state : int, numpy Generator, RandomState or None, default=None
        Of the starting values and of `sample`.
    verbose : int, default=0
        1 shows a progress bar.
    checkpoint : path or None, default=None
        File in which to keep the state of the fit; a fit that finds it goes on from there.
    engine : {"serial", "threads", "dask"}, `distributed.Client` or None, default=None
        Where the E-step runs.
    n_jobs : int or None, default=None
        Number of threads; -1 is all cores.

    Attributes
    ----------
    weights_ : array of shape (n_components,)
    probabilities_ : array of shape (n_components, n_features)
        Probability of a one, at least 1e-10 away from 0 and 1.
    converged_ : bool
    n_iter_ : int
    lower_bound_ : float
        Objective (log-likelihood plus log prior) for each unit of weight.
    lower_bounds_ : list of float
        The same after each iteration of the best run.
    objective_ : float
    history_ : `pluri.inference.History`
    occupancy_ : array of shape (n_components,)
        Expected number of rows of each component.
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.mixtures import BernoulliMixture
    >>> X = np.array([[1, 1, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [0, 0, 1, 1], [0, 0, 1, 1], [0, 1, 1, 1]])
    >>> model = BernoulliMixture(n_components=2, random_state=0).fit(X)
    >>> labels = model.predict(X)
    >>> bool((labels[:3] == labels[0]).all() and (labels[3:] == labels[5]).all())
    True

    What else comes with the first column?

    >>> model.predict_missing([0]).round(2)
    array([1.  , 1.  , 0.33, 0.  ])
    """

    _fitted_layout: ClassVar[Mapping[str, Stored]] = {
        "probabilities_": Stored("n_components", "n_features_in_", least=0),
        "_average": Stored("n_features_in_"),
    }

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        **DiscreteMixture._parameters,
        "probabilities_prior": Number(least=1) | Made(Beta, "a prior (Beta)"),
        "binarize": Number() | Only(None),
    }

    def __init__(
        self,
        n_components: int = 1,
        *,
        probabilities_prior: float | Beta = 1.0,
        smoothing: float = 1e-3,
        weight_prior: Prior = 1.0,
        binarize: float | None = 0.0,
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
        self.probabilities_prior = probabilities_prior
        self.smoothing = smoothing
        self.weight_prior = weight_prior
        self.binarize = binarize
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

    def _check_settings(self) -> None:
        super()._check_settings()
        prior = self.probabilities_prior
        if isinstance(prior, Beta) and min(prior.a, prior.b) < 1:
            raise ValueError(f"probabilities_prior must have a and b of at least 1, got {prior!r}")

    # Rows are made binary once, at the door: the family reads zeros and ones.

    def _check_rows(self, X: Any, *, fitting: bool) -> Any:
        return binary_rows(self._validated(X, fitting), self.binarize)

    def _source(self, X: Any, sample_weight: ArrayLike | None) -> Source:
        rows = None if is_source(X) else self._validated(X, True)
        if rows is not None and not sparse.issparse(rows):
            warn_of_one_side(rows, self.binarize)
        return super()._source(X, sample_weight)

    def _check_batch(self, batch: Batch) -> None:
        super()._check_batch(batch)
        if not sparse.issparse(batch.X):
            warn_of_one_side(batch.X, self.binarize, "the first batch of X")

    def _checked_source(self, source: Source) -> Source:
        return PreparedSource(super()._checked_source(source), partial(binary_rows, binarize=self.binarize))

    def _family(self, source: Source | None) -> BernoulliFamily:
        n_features = int(self.n_features_in_)
        prior = self.probabilities_prior
        a, b = (prior.a, prior.b) if isinstance(prior, Beta) else (float(prior), float(prior))
        ones, zeros = np.full(n_features, a - 1.0), np.full(n_features, b - 1.0)
        family = BernoulliFamily(binarize=None, init_params=self.init_params)
        pseudo_row = self._pseudo_row(source, family.prepare)
        if pseudo_row is not None:
            ones, zeros = ones + pseudo_row, zeros + (self.smoothing - pseudo_row)
        repulsion = self._repulsion(ProbabilityProductKernel("bernoulli"))
        self._check_room(repulsion, n_features * np.log(2.0))
        probs = None if source is None else self._checked_init("probabilities_init", n_features, 1.0)
        if probs is not None:
            probs = np.clip(probs, MARGIN, 1.0 - MARGIN)
        return BernoulliFamily(ones, None, True, probs, zeros, self.init_params, repulsion)

    def _component_parameters(self, family: Any) -> BernoulliParameters:
        return BernoulliParameters(np.clip(self._fitted_rows("probabilities_"), MARGIN, 1.0 - MARGIN))

    def _store_components(self, parameters: BernoulliParameters) -> None:
        self.probabilities_ = parameters.probs

    # Completion -------------------------------------------------------------------------------------------------

    def predict_missing(self, present: ArrayLike, absent: ArrayLike | None = None) -> Array:
        """Probability of a one in every column, given some that are known.

        Parameters
        ----------
        present : sequence of int or str
            Columns known to be one: their numbers, or their names if the model was fitted to a data frame; may be
            empty.
        absent : sequence of int or str, optional
            Columns known to be zero. All others are unobserved.

        Returns
        -------
        probabilities : array of shape (n_features,)
            ``P(x_i = 1 | what is known)``; 1 for present and 0 for absent columns.
        """
        parameters: BernoulliParameters = self._model()[1].components
        row = np.full(int(self.n_features_in_), np.nan)
        names = getattr(self, "feature_names_in_", None)
        ones, zeros = (
            check_columns(_listed(columns), name, len(row), names)
            for name, columns in (("present", present), ("absent", absent))
        )
        both = np.intersect1d(ones, zeros)
        if both.size:
            raise ValueError(f"absent must not name columns that are present, got {both.tolist()} in both")
        row[ones], row[zeros] = 1.0, 0.0
        logs = np.log(self.weights_, out=np.full(self.n_components, -np.inf), where=self.weights_ > 0)
        logs += np.log(parameters.probs[:, ones]).sum(axis=1) + parameters.log_zero[:, zeros].sum(axis=1)
        share = np.exp(logs - logs.max())
        known = ~np.isnan(row)
        return np.where(known, row, share / share.sum() @ parameters.probs)

    def predict_missing_rows(self, X: Any) -> Array:
        """Probability of a one in every cell, given the cells that are known.

        Parameters
        ----------
        X : array of shape (n_samples, n_features) or sparse matrix
            NaN marks what is unobserved; in a sparse matrix every cell that is not a one.

        Returns
        -------
        probabilities : array of shape (n_samples, n_features)
            Known cells keep their zeros and ones.
        """
        problem, params = self._model()
        rows = self._check_rows(X, fitting=False)
        filled = np.empty(rows.shape)
        with np.errstate(divide="ignore"):
            log_weights = np.log(params.weights)
        for begin in range(0, len(filled), BLOCK):
            block = slice(begin, begin + BLOCK)
            part = rows[block]
            if sparse.issparse(part):
                logs = np.asarray(part @ np.log(params.components.probs).T)
            else:
                padded = np.empty((len(part), -(-self.n_components // 4) * 4))
                problem.family.log_prob(params.components, part, padded)
                logs = padded[:, : self.n_components]
            logs = logs + log_weights
            share = np.exp(logs - logs.max(axis=1, keepdims=True))
            filled[block] = share / share.sum(axis=1, keepdims=True) @ params.components.probs
            if sparse.issparse(part):
                filled[block][np.repeat(np.arange(part.shape[0]), np.diff(part.indptr)), part.indices] = 1.0
            else:
                filled[block] = np.where(np.isnan(part), filled[block], part)
        return filled


def binary_rows(X: Any, binarize: float | None) -> Any:
    """Zeros and ones as float64 (NaN where missing), dense or CSR; refuse other values if `binarize` is None."""
    if sparse.issparse(X):
        if binarize is not None and binarize < 0:
            raise ValueError(
                f"binarize must not be negative when X is sparse (every zero would be a one), got {binarize!r}"
            )
        rows = canonical_rows(X)
        if binarize is None:
            _refuse_others(rows.data)
        return BernoulliFamily(binarize=binarize).prepare(rows)
    if binarize is None:
        _refuse_others(X[~np.isnan(X)])
    return BernoulliFamily(binarize=binarize).prepare(X)


def _refuse_others(values: NDArray[Any]) -> None:
    wrong = (values != 0) & (values != 1)
    if wrong.any():
        raise ValueError(f"X must hold only zeros and ones (and NaN) when binarize is None, got {values[wrong][0]}")


def _listed(columns: Any) -> Any:
    """A list of columns, of which there may be one only."""
    if columns is None or isinstance(columns, np.ndarray):
        return columns
    return list(columns) if isinstance(columns, Iterable) and not isinstance(columns, str) else [columns]
