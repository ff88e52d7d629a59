"""Posterior of the number of features and of who has which, by collapsed Gibbs sampling.

``Z ~ IBP(alpha)``, ``X = Z A + noise`` with A integrated out. Given the other rows, an entry of row n whose feature has
m other owners is on with odds ``m / (N - m)`` times the ratio of the densities of x_n; the number of features that only
row n has is Poisson(alpha / N) a priori and drawn from its exact conditional distribution. Rows are updated in
O(K^2 + K D) by rank-one changes (`pluri.factors._ibp_kernels`). Then ``alpha ~ Gamma(a + K, b + H_N)``, and the
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
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.factors.ibp_likelihood import collapsed_log_likelihood, feature_posterior, with_bias
from pluri.processes.concentration import GammaPrior, check_gamma_prior
from pluri.processes.indian_buffet import IndianBuffetProcess, as_binary, harmonic
from pluri.validation import check_positive

Array = NDArray[np.float64]
Binary = NDArray[np.int8]
Position = Mapping[str, NDArray[Any]]

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

    Positions are dicts: ``Z`` (n_samples, n_features) of zeros and ones, ``alpha``, ``noise_variance`` and
    ``feature_variance``.

    Parameters
    ----------
    data : array-like of shape (n_samples, n_dims)
    alpha, noise_variance, feature_variance : float, default=1.0
        Where sampling begins for those that are learned.
    learn : tuple of str, default=("alpha", "noise_variance", "feature_variance")
        Which of the three are drawn.
    alpha_prior : (float, float), default=(1.0, 1.0)
        Shape and rate of the gamma prior of alpha.
    noise_prior, feature_prior : (float, float), default=(1.0, 1.0)
        Shapes and rates of the gamma priors of one over each variance.
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
    >>> kernel = IndianBuffetGibbs(X, noise_variance=0.1, feature_variance=4.0, learn=())
    >>> trace = mcmc.sample(kernel, kernel.sample_prior, record=kernel.record, n_draws=100, n_warmup=200,
    ...                     n_chains=1, random_state=0, warn=False)
    >>> trace["n_features"].shape
    (1, 100)
    """

    data: Any
    alpha: float = 1.0
    noise_variance: float = 1.0
    feature_variance: float = 1.0
    learn: tuple[str, ...] = ("alpha", "noise_variance", "feature_variance")
    alpha_prior: GammaPrior = (1.0, 1.0)
    noise_prior: GammaPrior = (1.0, 1.0)
    feature_prior: GammaPrior = (1.0, 1.0)
    bias_variance: float | None = None

    def __post_init__(self) -> None:
        for name in ("alpha", "noise_variance", "feature_variance"):
            check_positive(getattr(self, name), name)
        for name in ("alpha_prior", "noise_prior", "feature_prior"):
            check_gamma_prior(getattr(self, name), name)
        unknown = set(self.learn) - {"alpha", "noise_variance", "feature_variance"}
        if unknown:
            raise ValueError(f"learn must name alpha, noise_variance or feature_variance, got {sorted(unknown)}")
        if self.bias_variance is not None and not self.bias_variance > 0:
            raise ValueError(f"bias_variance must be None or positive, got {self.bias_variance!r}")
        X = np.ascontiguousarray(self.data, dtype=np.float64)
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
        kept = {name: position[name] for name in ("alpha", "noise_variance", "feature_variance")}
        return {**kept, "n_features": np.asarray(position["Z"].shape[1]), "n_ones": np.asarray(position["Z"].sum())}

    def log_joint(self, position: Position) -> float:
        """Log density of data and Z (its left-ordered form), given alpha and the variances."""
        Z = position["Z"]
        noise, feature = float(position["noise_variance"]), float(position["feature_variance"])
        prior = IndianBuffetProcess(float(position["alpha"])).logpmf(Z)
        return prior + collapsed_log_likelihood(self.data, Z, noise, feature, self.bias_variance)

    def sample_prior(self, rng: np.random.Generator) -> Position:
        """Draw a position from the prior."""
        values = {name: getattr(self, name) for name in ("alpha", "noise_variance", "feature_variance")}
        if "alpha" in self.learn:
            values["alpha"] = rng.gamma(self.alpha_prior[0]) / self.alpha_prior[1]
        for name, (shape, rate) in (("noise_variance", self.noise_prior), ("feature_variance", self.feature_prior)):
            if name in self.learn:
                values[name] = rate / rng.gamma(shape)
        Z = IndianBuffetProcess(values["alpha"]).sample(len(self.data), rng)
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
        """Every row once, then alpha and the variances."""
        X = np.ascontiguousarray(data, dtype=np.float64)
        alpha, noise, feature = (float(position[name]) for name in ("alpha", "noise_variance", "feature_variance"))
        Z = self._sweep_rows(rng, X, position["Z"], alpha, noise, feature)
        if "alpha" in self.learn:
            shape, rate = self.alpha_prior
            alpha = rng.gamma(shape + Z.shape[1]) / (rate + harmonic(len(Z)))
        noise, feature = self._draw_variances(rng, X, Z, noise, feature)
        values = {"alpha": alpha, "noise_variance": noise, "feature_variance": feature}
        return {"Z": Z} | {name: np.asarray(value) for name, value in values.items()}

    def _sweep_rows(
        self, rng: np.random.Generator, X: Array, Z: Binary, alpha: float, noise: float, feature: float
    ) -> Binary:
        from pluri.factors._ibp_kernels import LEAVE_OUT, NOTHING, sweep_rows

        if noise < SMALLEST_NOISE * feature:
            raise ValueError(
                f"noise_variance must be at least {SMALLEST_NOISE:g} of feature_variance for the arithmetic to be "
                f"exact enough, got {noise:.3g} and {feature:.3g}"
            )
        n, first = len(X), 0 if self.bias_variance is None else 1
        columns = with_bias(Z, self.bias_variance)
        k, row, pending = columns.shape[1], 0, NOTHING
        work = _Room(columns, X, k + SPARE)
        uniforms = rng.random((n, work.capacity + 1))
        while row < n:
            if pending < 0:
                kept = np.arange(n) != row if pending == LEAVE_OUT else np.ones(n, dtype=bool)
                posterior = feature_posterior(X[kept], work.Z[kept, first:k], noise, feature, self.bias_variance)
                work.fill(posterior.spread, posterior.mean, work.Z[kept])
            row, k, pending = sweep_rows(
                X, work.Z, work.owners, work.P, work.W, k, first, row, min(n, row + REFRESH), pending, noise, feature,
                alpha / n, uniforms, work.z, work.g, work.r,
            )  # fmt: skip
            if pending >= 0 or k + SPARE // 2 > work.capacity:
                work = work.grown(X, k + max(pending, 0) + SPARE)
                uniforms = rng.random((n, work.capacity + 1))
        return work.Z[:, first:k].copy()

    def _draw_variances(
        self, rng: np.random.Generator, X: Array, Z: Binary, noise: float, feature: float
    ) -> tuple[float, float]:
        if not {"noise_variance", "feature_variance"} & set(self.learn):
            return noise, feature
        posterior = feature_posterior(X, Z, noise, feature, self.bias_variance)
        A = posterior.mean
        if len(A):
            A = A + math.sqrt(noise) * np.linalg.cholesky(posterior.spread) @ rng.standard_normal(A.shape)
        features = A if self.bias_variance is None else A[1:]
        if "noise_variance" in self.learn:
            shape, rate = self.noise_prior
            misfit = float(((X - with_bias(Z, self.bias_variance) @ A) ** 2).sum())
            noise = (rate + misfit / 2) / rng.gamma(shape + X.size / 2)
        if "feature_variance" in self.learn:
            shape, rate = self.feature_prior
            feature = (rate + float((features**2).sum()) / 2) / rng.gamma(shape + features.size / 2)
        return noise, feature


class _Room:
    """Arrays with some room for features to come."""

    def __init__(self, columns: Binary, X: Array, capacity: int) -> None:
        n, k = columns.shape
        self.capacity = capacity
        self.Z = np.zeros((n, capacity), dtype=np.int8)
        self.Z[:, :k] = columns
        self.owners = self.Z.sum(axis=0, dtype=np.float64)
        self.P = np.zeros((capacity, capacity))
        self.W = np.zeros((capacity, X.shape[1]))
        self.z, self.g, self.r = np.zeros(capacity), np.zeros(capacity), np.zeros(X.shape[1])

    def fill(self, P: Array, W: Array, Z: Binary) -> None:
        k = len(P)
        self.P[:k, :k] = P
        self.W[:k] = W
        self.owners[:] = Z.sum(axis=0, dtype=np.float64)

    def grown(self, X: Array, capacity: int) -> _Room:
        """The same with more room; a row may be out of the counts just now, so they are copied, not counted."""
        more = _Room(self.Z, X, max(capacity, self.capacity))
        more.owners[: self.capacity] = self.owners
        more.P[: self.capacity, : self.capacity] = self.P
        more.W[: self.capacity] = self.W
        return more
