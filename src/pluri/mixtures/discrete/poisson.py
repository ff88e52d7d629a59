"""Poisson mixture: p(x) = sum_z pi_z prod_i Poisson(x_i | rate_zi), for rows of counts, dense or sparse."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from pluri.components.poisson import PoissonFamily, PoissonParameters
from pluri.components.sparse_rows import canonical_rows
from pluri.engine import Source
from pluri.mixtures.discrete.mixture import DiscreteMixture
from pluri.mixtures.imputing import ImputesRows
from pluri.mixtures.mixture import Prior
from pluri.priors import Gamma
from pluri.priors.kernels import ProbabilityProductKernel
from pluri.validation import Allowed, Made, Only, Stored
from pluri.validation.inputs import check_counts

Array = NDArray[np.float64]


class PoissonMixture(ImputesRows, DiscreteMixture):
    """Mixture of products of Poisson distributions, for counts.

    Parameters
    ----------
    n_components : int, default=1
        Number of components.
    rates_prior : `pluri.priors.Gamma` prior or None, default=None
        Prior of the rates, of a shape of at least 1.
    smoothing : float, default=1e-3
        Each component is given so many rows more, that look like the average of all rows.
    weight_prior, tol, max_iter, n_init, init_params, weights_init
        See `BernoulliMixture`.
    rates_init : array of shape (n_components, n_features), optional
        Starting values.
    diversity : float or `pluri.priors.DeterminantalPrior`, optional
        Weight of the determinantal prior that keeps the components apart. A number uses the Bhattacharyya kernel of
        Poisson distributions; a prior of your own sees the rates as rows.
    split_merge, acceleration, warm_start, random_state, verbose, checkpoint, engine, n_jobs
        See `BernoulliMixture`.

    Attributes
    ----------
    weights_ : array of shape (n_components,)
    rates_ : array of shape (n_components, n_features)
        Expected counts.
    converged_, n_iter_, lower_bound_, lower_bounds_, objective_, history_, occupancy_, n_features_in_
        See `BernoulliMixture`.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.mixtures import PoissonMixture
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.poisson([2, 9], (100, 2)), rng.poisson([20, 3], (100, 2))])
    >>> model = PoissonMixture(n_components=2, random_state=0).fit(X)
    >>> sorted(model.rates_.round().tolist())
    [[2.0, 9.0], [20.0, 3.0]]
    """

    _fitted_layout: ClassVar[Mapping[str, Stored]] = {
        "rates_": Stored("n_components", "n_features_in_", least=0),
        "_average": Stored("n_features_in_"),
    }

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        **DiscreteMixture._parameters,
        "rates_prior": Made(Gamma, "a prior (Gamma)") | Only(None),
    }
    _input_tags: ClassVar[Mapping[str, bool]] = {"positive_only": True}

    def __init__(
        self,
        n_components: int = 1,
        *,
        rates_prior: Gamma | None = None,
        smoothing: float = 1e-3,
        weight_prior: Prior = 1.0,
        tol: float = 1e-4,
        max_iter: int = 100,
        n_init: int = 1,
        init_params: str = "kmeans",
        weights_init: ArrayLike | None = None,
        rates_init: ArrayLike | None = None,
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
        self.rates_prior = rates_prior
        self.smoothing = smoothing
        self.weight_prior = weight_prior
        self.tol = tol
        self.max_iter = max_iter
        self.n_init = n_init
        self.init_params = init_params
        self.weights_init = weights_init
        self.rates_init = rates_init
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
        if self.rates_prior is not None and self.rates_prior.shape < 1:
            raise ValueError(f"rates_prior must have a shape of at least 1, got {self.rates_prior!r}")

    def _check_rows(self, X: Any, *, fitting: bool) -> Any:
        return count_rows(self._validated(X, fitting))

    def _family(self, source: Source | None) -> PoissonFamily:
        n_features = int(self.n_features_in_)
        shape, rate = (1.0, 0.0) if self.rates_prior is None else (self.rates_prior.shape, self.rates_prior.rate)
        events, exposure = np.full(n_features, shape - 1.0), rate
        pseudo_row = self._pseudo_row(source, PoissonFamily().prepare)
        if pseudo_row is not None:
            events, exposure = events + pseudo_row, exposure + float(self.smoothing)
        rates = None if source is None else self._checked_init("rates_init", n_features)
        repulsion = self._repulsion(ProbabilityProductKernel("poisson"))
        return PoissonFamily(events, exposure, True, rates, self.init_params, repulsion)

    def _component_parameters(self, family: Any) -> PoissonParameters:
        return PoissonParameters(self._fitted_rows("rates_"))

    def _store_components(self, parameters: PoissonParameters) -> None:
        self.rates_ = parameters.rates


def count_rows(X: Any) -> Any:
    """Counts as float64 (NaN where missing), dense or CSR; refuse negative ones."""
    if sparse.issparse(X):
        rows = canonical_rows(X)
        check_counts(rows.data)
        return rows
    return check_counts(np.ascontiguousarray(X, dtype=np.float64))
