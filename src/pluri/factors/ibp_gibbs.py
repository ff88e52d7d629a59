"""Posterior of the number of features and of who has which, by collapsed Gibbs sampling.

``Z ~ IBP(c)``, ``X = Z A + noise`` with A integrated out. Given the other rows, an entry of row n whose feature has
m other owners is on with odds ``m / (N - m)`` times the ratio of the densities of x_n; the number of features that only
row n has is Poisson(c / N) a priori and drawn from its exact conditional distribution. Rows are updated in
O(K^2 + K D) by rank-one changes (`pluri.factors._ibp_kernels`). Then ``c ~ Gamma(a + K, b + H_N)``, and the
variances given a draw of A, which is thrown away again. The three pure functions that a test of correctness needs are
`sample_prior`, `sample_data` and `sweep`.

References
----------
Griffiths and Ghahramani (2011), The Indian buffet process: an introduction and review, JMLR 12.
Doshi-Velez and Ghahramani (2009), Accelerated sampling for the Indian buffet process, ICML.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.factors.ibp_likelihood import collapsed_log_likelihood, feature_posterior, with_bias
from pluri.priors.hyperpriors import Gamma, Hyperparameter, as_hyperparameter
from pluri.processes.concentration import CONCENTRATION_PRIOR
from pluri.processes.indian_buffet import IndianBuffetProcess, as_binary, harmonic
from pluri.validation import Allowed, Made, Number, Only, check_parameters, plain_array

Array = NDArray[np.float64]
Binary = NDArray[np.int8]
Position = Mapping[str, NDArray[Any]]

PRECISION_PRIOR = Gamma(1.0, 1.0)
VALUES = ("concentration", "noise_variance", "feature_variance")
#: Rows between two computations of the inverse from scratch: what rounding does to it stays far below noise.
REFRESH = 1024
#: Share of the variance of a feature that the noise must have.
SMALLEST_NOISE = 1e-9
#: Room for new features before arrays must grow.
SPARE = 16


@dataclass(frozen=True, eq=False)
class BuffetState:
    """Where the sampler is, and the best that it has seen: the position of highest log joint density."""

    position: Position
    log_density: float
    best: Position
    best_log_density: float


@dataclass(frozen=True, eq=False)
class IndianBuffetGibbs:
    """Collapsed Gibbs sampler of the linear-Gaussian model: a kernel for `pluri.inference.mcmc.sample`.

    Positions are dicts: ``Z`` (n_samples, n_features) of zeros and ones, ``concentration``,
    ``noise_variance`` and ``feature_variance``.

    Parameters
    ----------
    data : array-like of shape (n_samples, n_dims)
    concentration : float, Gamma or "learn", default="learn"
        Expected number of features of a row: fixed, or learned under a prior, ``Gamma(1, 1)`` for "learn".
    noise_variance, feature_variance : float, default=1.0
        Used where there is no prior.
    noise_prior, feature_prior : Gamma or None, default=Gamma(1.0, 1.0)
        Priors of one over each variance, under which it is learned; None: it is fixed.
    bias_variance : float, optional
        Prior variance of a row that is added to all samples; infinite is a flat prior, None is no such row.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.factors import IndianBuffetGibbs
    >>> from pluri.inference import mcmc
    >>> rng = np.random.default_rng(0)
    >>> Z = rng.integers(0, 2, size=(60, 2))
    >>> X = Z @ np.array([[3.0, 0, 3, 0], [0, 3, 0, 3]]) + 0.3 * rng.normal(size=(60, 4))
    >>> kernel = IndianBuffetGibbs(X, 1.0, 0.1, 4.0, noise_prior=None, feature_prior=None)
    >>> trace = mcmc.sample(kernel, kernel.sample_prior, record=kernel.record, n_draws=100, n_warmup=200,
    ...                     n_chains=1, random_state=0, warn=False)
    >>> trace["n_features"].shape
    (1, 100)
    """

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        "noise_variance": Number(above=0),
        "feature_variance": Number(above=0),
        "noise_prior": Made(Gamma, "a prior, Gamma(shape, rate)") | Only(None),
        "feature_prior": Made(Gamma, "a prior, Gamma(shape, rate)") | Only(None),
    }

    data: Any
    concentration: float | Gamma | Literal["learn"] = "learn"
    noise_variance: float = 1.0
    feature_variance: float = 1.0
    noise_prior: Gamma | None = PRECISION_PRIOR
    feature_prior: Gamma | None = PRECISION_PRIOR
    bias_variance: float | None = None
    _concentration: Hyperparameter = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check_parameters(self)
        object.__setattr__(
            self, "_concentration", as_hyperparameter(self.concentration, "concentration", CONCENTRATION_PRIOR)
        )
        if self.bias_variance is not None and not self.bias_variance > 0:
            raise ValueError(f"bias_variance must be None or positive, got {self.bias_variance!r}")
        X = plain_array(self.data)
        if X.ndim != 2 or not X.size or not np.isfinite(X).all():
            raise ValueError(f"data must be a finite matrix with rows and columns, got shape {X.shape}")
        if self.bias_variance == math.inf and len(X) < 2:
            raise ValueError("data must have at least two rows for a flat prior on the bias, got one")
        object.__setattr__(self, "data", X)

    def adaptation(self, n_warmup: int) -> None:
        """Nothing is tuned."""
        return None

    def init(self, rng: np.random.Generator, position: Position) -> BuffetState:
        """State at a position."""
        Z = as_binary(position["Z"], "position['Z']")
        if len(Z) != len(self.data):
            raise ValueError(f"position['Z'] must have {len(self.data)} rows, as the data, got {len(Z)}")
        kept = {**position, "Z": Z[:, Z.any(axis=0)]}
        log_density = self.log_joint(kept)
        return BuffetState(kept, log_density, kept, log_density)

    def step(self, rng: np.random.Generator, state: BuffetState) -> tuple[BuffetState, dict[str, float]]:
        """One sweep."""
        position = self.sweep(rng, state.position, self.data)
        value = self.log_joint(position)
        best = (position, value) if value > state.best_log_density else (state.best, state.best_log_density)
        return BuffetState(position, value, *best), {"n_features": float(position["Z"].shape[1])}

    def record(self, position: Position) -> dict[str, Any]:
        """What to keep of a position, of the same shape whatever the number of features."""
        kept = {name: position[name] for name in VALUES}
        return {**kept, "n_features": np.asarray(position["Z"].shape[1]), "n_ones": np.asarray(position["Z"].sum())}

    def log_joint(self, position: Position) -> float:
        """Log density of data and Z (its left-ordered form), given concentration and variances."""
        Z = position["Z"]
        noise, feature = float(position["noise_variance"]), float(position["feature_variance"])
        prior = IndianBuffetProcess(float(position["concentration"])).logpmf(Z)
        return prior + collapsed_log_likelihood(self.data, Z, noise, feature, self.bias_variance)

    def sample_prior(self, rng: np.random.Generator) -> Position:
        """Draw a position from the prior."""
        own = self._concentration
        values = {
            "concentration": rng.gamma(own.prior.shape) / own.prior.rate if own.learned else own.value,
            "noise_variance": self.noise_variance,
            "feature_variance": self.feature_variance,
        }
        for name, prior in (("noise_variance", self.noise_prior), ("feature_variance", self.feature_prior)):
            if prior is not None:
                values[name] = prior.rate / rng.gamma(prior.shape)
        Z = IndianBuffetProcess(values["concentration"]).sample(len(self.data), rng)
        return {"Z": Z} | {name: np.asarray(value) for name, value in values.items()}

    def sample_data(self, rng: np.random.Generator, position: Position) -> Array:
        """Draw data given a position."""
        Z, n_dims = position["Z"], self.data.shape[1]
        A = rng.normal(0.0, math.sqrt(position["feature_variance"]), size=(Z.shape[1], n_dims))
        X = Z @ A + rng.normal(0.0, math.sqrt(position["noise_variance"]), size=(len(Z), n_dims))
        if self.bias_variance is not None:
            if not math.isfinite(self.bias_variance):
                raise ValueError("bias_variance must be finite to draw data: a flat prior has no draws")
            X += rng.normal(0.0, math.sqrt(self.bias_variance), size=n_dims)
        return X

    def sweep(self, rng: np.random.Generator, position: Position, data: ArrayLike) -> Position:
        """Every row once, then concentration and variances."""
        X = plain_array(data)
        concentration, noise, feature = (float(position[name]) for name in VALUES)
        Z = self._sweep_rows(rng, X, position["Z"], concentration, noise, feature)
        prior = self._concentration.prior
        if prior is not None:
            concentration = rng.gamma(prior.shape + Z.shape[1]) / (prior.rate + harmonic(len(Z)))
        values = (concentration, *self._draw_variances(rng, X, Z, noise, feature))
        return {"Z": Z} | {name: np.asarray(value) for name, value in zip(VALUES, values)}

    def _sweep_rows(
        self, rng: np.random.Generator, X: Array, Z: Binary, concentration: float, noise: float, feature: float
    ) -> Binary:
        from pluri.factors._ibp_kernels import LEAVE_OUT, NOTHING, Buffet, sweep_rows

        if noise < SMALLEST_NOISE * feature:
            raise ValueError(
                f"noise_variance must be at least {SMALLEST_NOISE:g} of feature_variance for the arithmetic to be "
                f"exact enough, got {noise:.3g} and {feature:.3g}"
            )
        n, first = len(X), 0 if self.bias_variance is None else 1
        columns = with_bias(Z, self.bias_variance)
        k, row, pending = columns.shape[1], 0, NOTHING
        work = Buffet.of(columns, X.shape[1], k + SPARE)
        uniforms = rng.random((n, len(work.owners) + 1))
        while row < n:
            if pending < 0:
                kept = np.arange(n) != row if pending == LEAVE_OUT else np.ones(n, dtype=bool)
                posterior = feature_posterior(X[kept], work.Z[kept, first:k], noise, feature, self.bias_variance)
                work.fill(posterior.spread, posterior.mean, work.Z[kept])
            place = k, first, row, min(n, row + REFRESH), pending
            row, k, pending = sweep_rows(X, *place, noise, feature, concentration / n, uniforms, work)
            if pending >= 0 or k + SPARE // 2 > len(work.owners):
                work = work.grown(k + max(pending, 0) + SPARE)
                uniforms = rng.random((n, len(work.owners) + 1))
        drawn: Binary = work.Z[:, first:k].copy()
        return drawn

    def _draw_variances(
        self, rng: np.random.Generator, X: Array, Z: Binary, noise: float, feature: float
    ) -> tuple[float, float]:
        if self.noise_prior is None and self.feature_prior is None:
            return noise, feature
        posterior = feature_posterior(X, Z, noise, feature, self.bias_variance)
        A = posterior.mean
        if len(A):
            A = A + math.sqrt(noise) * np.linalg.cholesky(posterior.spread) @ rng.standard_normal(A.shape)
        features = A if self.bias_variance is None else A[1:]
        if self.noise_prior is not None:
            misfit = float(((X - with_bias(Z, self.bias_variance) @ A) ** 2).sum())
            noise = (self.noise_prior.rate + misfit / 2) / rng.gamma(self.noise_prior.shape + X.size / 2)
        if self.feature_prior is not None:
            prior, squares = self.feature_prior, float((features**2).sum())
            feature = (prior.rate + squares / 2) / rng.gamma(prior.shape + features.size / 2)
        return noise, feature
