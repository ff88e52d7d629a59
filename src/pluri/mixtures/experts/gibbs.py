"""Gibbs sampler of a mixture of linear regressions whose weights depend on the input.

``y | x ~ sum_k w_k(x) N(g_k + d_k' x, 1 / tau_k)`` with probit sticks (`pluri.processes.stick_draws`). A row of
expert k was refused by the sticks before k and taken by that of k; with a normal variable behind each such decision,
negative or positive, every conditional is of a known family. One sweep:

1. neighbouring sticks may change places (Metropolis), normal variables integrated out;
2. ``u_ik ~ N(D_i s_k, 1)``, positive if ``z_i = k``, negative if ``z_i > k``; sticks ``s_k`` by regression of u;
3. coefficients ``c_k`` by regression of y, then ``tau_k ~ Gamma(a + n_k / 2, b + sum (y - D c_k)^2 / 2)``;
4. labels, ``p(z_i = k) ~ w_k(x_i) N(y_i | D_i c_k, 1 / tau_k)``.

References
----------
.. [1] Rodriguez, A. and Dunson, D. B. (2011). Nonparametric Bayesian models through probit stick-breaking processes.
   Bayesian Analysis 6, 145-178.
.. [2] Albert, J. H. and Chib, S. (1993). Bayesian analysis of binary and polychotomous response data. JASA 88, 669-679.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from pluri.mixtures.experts import _kernels
from pluri.priors import Gamma
from pluri.processes._stick_kernels import LOG_ROOT, exchange_neighbours
from pluri.processes.stick_draws import draw_truncated, probit_stick_weights
from pluri.validation import plain_array

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
Position = Mapping[str, NDArray[Any]]


def with_intercept(X: Array) -> Array:
    """The rows with a one in front: (n_samples, n_features + 1)."""
    return np.column_stack([np.ones(len(X)), X])


@dataclass(frozen=True, eq=False)
class ExpertsPrior:
    """Prior of all experts: independent normals of mean 0, and gamma precisions.

    Attributes
    ----------
    stick_scale, coefficient_scale : (n_features + 1,)
        Standard deviations of the coefficients of sticks and of regressions, intercept first; 0 fixes one at 0.
    noise : Gamma
        Prior of the precisions.
    """

    stick_scale: Array
    coefficient_scale: Array
    noise: Gamma = Gamma(1.0, 1.0)

    def sample(self, rng: np.random.Generator, n_experts: int) -> dict[str, Array]:
        """Draw sticks (K - 1, p), coefficients (K, p) and precisions (K,)."""
        p = len(self.stick_scale)
        return {
            "sticks": self.stick_scale * rng.standard_normal((n_experts - 1, p)),
            "coefficients": self.coefficient_scale * rng.standard_normal((n_experts, p)),
            "precisions": rng.standard_gamma(self.noise.shape, n_experts) / self.noise.rate,
        }

    def log_density(self, position: Position) -> float:
        """Log density of the coefficients that are free, and of the precisions."""
        total = 0.0
        for name, scale in (("sticks", self.stick_scale), ("coefficients", self.coefficient_scale)):
            free = scale > 0
            values = position[name][:, free] / scale[free]
            total -= 0.5 * float((values**2).sum())
            total -= len(values) * float((np.log(scale[free]) + 0.5 * np.log(2 * np.pi)).sum())
        a, b, tau = self.noise.shape, self.noise.rate, position["precisions"]
        return total + float(((a - 1) * np.log(tau) - b * tau).sum() + len(tau) * (a * np.log(b) - gammaln(a)))


@dataclass(frozen=True, eq=False)
class ExpertsState:
    """Where the sampler is, and the log density of parameters and data there, labels summed out."""

    position: Position
    log_density: float


@dataclass(frozen=True, eq=False)
class ExpertsGibbs:
    """Gibbs sampler on the parameters and labels of a mixture of experts.

    Positions are dicts: ``sticks`` (K - 1, n_features + 1), ``coefficients`` (K, n_features + 1), ``precisions`` (K,),
    ``labels`` (n_samples,).

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    n_experts : int
        K, at which the infinite number of experts is cut off.
    prior : ExpertsPrior
    anchors : array of ints, optional
        Rows whose labels `record` keeps; all by default.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference import mcmc
    >>> from pluri.mixtures.experts import ExpertsGibbs, ExpertsPrior
    >>> from pluri.priors import Gamma
    >>> X = np.linspace(-1, 1, 40)[:, None]
    >>> y = np.where(X[:, 0] < 0, -3.0, 3.0) + 0.1 * np.random.default_rng(0).normal(size=40)
    >>> kernel = ExpertsGibbs(X, y, 5, ExpertsPrior(np.full(2, 5.0), np.full(2, 10.0), Gamma(1.0, 0.1)))
    >>> trace = mcmc.sample(kernel, kernel.start, record=kernel.record, n_draws=200, n_warmup=100, n_chains=1,
    ...                     random_state=0, warn=False)
    >>> trace["coefficients"].shape
    (1, 200, 5, 2)
    """

    X: Any
    y: Any
    n_experts: int
    prior: ExpertsPrior
    anchors: Any = None

    def __post_init__(self) -> None:
        X, y = np.asarray(self.X, dtype=np.float64), np.asarray(self.y, dtype=np.float64)
        if X.ndim != 2 or y.shape != X.shape[:1] or not len(X):
            raise ValueError(f"X must have a row, and y a number, for each sample, got shapes {X.shape} and {y.shape}")
        if self.prior.stick_scale.shape != (X.shape[1] + 1,):
            raise ValueError(f"prior must be of {X.shape[1] + 1} coefficients, got {self.prior.stick_scale.shape}")
        object.__setattr__(self, "X", X)
        object.__setattr__(self, "y", y)
        object.__setattr__(self, "anchors", np.arange(len(y)) if self.anchors is None else np.asarray(self.anchors))
        object.__setattr__(self, "_design", plain_array(with_intercept(X)))

    @property
    def design(self) -> Array:
        """Rows of X with a one in front."""
        design: Array = self._design  # type: ignore[attr-defined]
        return design

    def adaptation(self, n_warmup: int) -> None:
        """Nothing is tuned."""
        return None

    def init(self, rng: np.random.Generator, position: Position) -> ExpertsState:
        """State at a position."""
        if np.shape(position["labels"]) != self.y.shape or len(position["precisions"]) != self.n_experts:
            raise ValueError(f"the position must have {len(self.y)} labels and {self.n_experts} precisions")
        return ExpertsState(position, self.log_likelihood(position, self.y) + self.prior.log_density(position))

    def step(self, rng: np.random.Generator, state: ExpertsState) -> tuple[ExpertsState, dict[str, float]]:
        """One sweep."""
        position, value = self._sweep(rng, state.position, self.y)
        occupied = float(np.count_nonzero(np.bincount(position["labels"])))
        info = {"log_likelihood": value, "n_occupied": occupied}
        return ExpertsState(position, value + self.prior.log_density(position)), info

    def sweep(self, rng: np.random.Generator, position: Position, y: ArrayLike) -> Position:
        """One sweep with the data given: what tests of correctness call."""
        return self._sweep(rng, position, np.asarray(y, dtype=np.float64))[0]

    def record(self, position: Position) -> dict[str, Any]:
        """Parameters, and the labels of the anchors."""
        kept = {name: position[name] for name in ("sticks", "coefficients", "precisions")}
        return {**kept, "anchor_labels": np.asarray(position["labels"])[self.anchors]}

    def sample_prior(self, rng: np.random.Generator) -> Position:
        """Draw parameters, and labels given them."""
        parameters = self.prior.sample(rng, self.n_experts)
        totals = np.cumsum(probit_stick_weights(self.design @ parameters["sticks"].T), axis=1)
        labels = (rng.random((len(totals), 1)) * totals[:, -1:] >= totals).sum(axis=1)
        return {**parameters, "labels": np.minimum(labels, self.n_experts - 1).astype(np.int64)}

    def sample_data(self, rng: np.random.Generator, position: Position) -> Array:
        """Draw y given parameters and labels."""
        labels = np.asarray(position["labels"])
        means = np.einsum("np,np->n", self.design, position["coefficients"][labels])
        return np.asarray(means + rng.standard_normal(len(means)) / np.sqrt(position["precisions"][labels]))

    def log_likelihood(self, position: Position, y: ArrayLike) -> float:
        """Log density of y, labels summed out."""
        values = np.asarray(y, dtype=np.float64)
        return self._draw_labels(np.zeros(len(values)), position, values)[1]

    def start(self, rng: np.random.Generator) -> Position:
        """Position to begin with: experts on patches around random rows, which sweeps then merge.

        An expert of its own is hard to invent where another explains the rows well enough; a superfluous one goes away
        by itself.
        """
        n, k = len(self.y), self.n_experts
        rows = np.column_stack([self.X, self.y])
        centres = rows[rng.choice(n, size=min(k, n), replace=False)]
        labels = np.empty(n, dtype=np.int64)
        for begin in range(0, n, 4096):
            part = rows[begin : begin + 4096, None]
            labels[begin : begin + 4096] = ((part - centres) ** 2).sum(axis=2).argmin(axis=1)
        parameters = self.prior.sample(rng, k)
        variance = float(self.y.var()) or 1.0
        begin_with = {"sticks": np.zeros_like(parameters["sticks"]), "precisions": np.full(k, 1.0 / variance)}
        return self._draw_parameters(rng, {**parameters, **begin_with, "labels": labels}, self.y)

    def _sweep(self, rng: np.random.Generator, position: Position, y: Array) -> tuple[Position, float]:
        moved = self._draw_parameters(rng, self._exchange(rng, position), y)
        labels, value = self._draw_labels(rng.random(len(y)), moved, y)
        return {**moved, "labels": labels}, value

    def _exchange(self, rng: np.random.Generator, position: Position) -> Position:
        k = self.n_experts
        if k < 3:
            return position
        labels, order = np.array(position["labels"]), np.arange(k)
        exchange_neighbours(
            self.design @ position["sticks"].T, labels, np.bincount(labels, minlength=k), 1.0 - rng.random(k), order
        )
        return {
            "sticks": position["sticks"][order[:-1]],
            "coefficients": position["coefficients"][order],
            "precisions": position["precisions"][order],
            "labels": labels,
        }

    def _draw_parameters(self, rng: np.random.Generator, position: Position, y: Array) -> dict[str, NDArray[Any]]:
        labels, (n, p), k = np.asarray(position["labels"]), self.design.shape, self.n_experts
        # The sticks that a row met: those before its expert, and that of its expert unless it is the last.
        met = np.minimum(labels + 1, k - 1)
        rows = np.repeat(np.arange(n), met)
        owners = np.arange(len(rows)) - np.repeat(np.cumsum(met) - met, met)
        predictors = np.einsum("tp,tp->t", self.design[rows], position["sticks"][owners])
        latent = draw_truncated(rng, predictors, owners == labels[rows])
        products, shifts = np.empty((k, p, p)), np.empty((k, p))
        sticks, coefficients = np.empty((k - 1, p)), np.empty((k, p))
        _kernels.draw_coefficients(
            self.design, latent, rows, owners, self.prior.stick_scale, np.ones(k), rng.standard_normal((k, p)),
            products, shifts, sticks,
        )  # fmt: skip
        _kernels.draw_coefficients(
            self.design, y, np.arange(n), labels, self.prior.coefficient_scale, position["precisions"],
            rng.standard_normal((k, p)), products, shifts, coefficients,
        )  # fmt: skip
        squares = (y - np.einsum("np,np->n", self.design, coefficients[labels])) ** 2
        counts = np.bincount(labels, minlength=k)
        rate = self.prior.noise.rate + 0.5 * np.bincount(labels, squares, minlength=k)
        # A precision that underflows would be one that no later sweep could leave.
        precisions = np.maximum(rng.standard_gamma(self.prior.noise.shape + 0.5 * counts) / rate, 1e-300)
        return {"sticks": sticks, "coefficients": coefficients, "precisions": precisions, "labels": labels}

    def _draw_labels(self, uniforms: Array, position: Position, y: Array) -> tuple[Integers, float]:
        precisions = position["precisions"]
        log_norms = 0.5 * np.log(precisions) - LOG_ROOT
        ceilings = np.maximum.accumulate(log_norms[::-1])[::-1].copy()
        labels = np.empty(len(y), dtype=np.int64)
        value = _kernels.assign_labels(
            self.design @ position["sticks"].T, self.design @ position["coefficients"].T, y, log_norms, precisions,
            ceilings, uniforms, labels, np.empty(self.n_experts),
        )  # fmt: skip
        return labels, float(value)
