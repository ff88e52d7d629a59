"""Gibbs sampler of a dictionary: codes row by row, all atoms at once, then precisions and the prior of the usage.

    x_i = sum_k z_ik s_ik d_k + noise,   d_k ~ N(0, I / P),   s_ik ~ N(0, 1 / g_s),   noise ~ N(0, I / g_e)

Given the dictionary, rows are independent: z and s of a row are drawn atom after atom, s integrated out of the draw of
z (`collapsed`) or not. Given the codes, the features of the dictionary are independent, and all atoms are drawn at once
(`pluri.factors.dictionaries.conditionals`). Then g_e given the residuals, g_s given the weights in use (collapsed) or
all, and the state of the prior of the usage. Missing values are left out of all sums. The three pure functions that a
test of correctness needs are `sample_prior`, `sample_data` and `sweep`.

References
----------
Zhou, Chen, Paisley, Ren, Sapiro and Carin (2009), Non-parametric Bayesian dictionary learning for sparse image
representations, NIPS.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from pluri.factors.dictionaries._code_kernels import CodePrior, CodeState
from pluri.factors.dictionaries.conditionals import (
    component_posterior,
    draw_codes,
    draw_components,
    squared_residuals,
)
from pluri.factors.dictionaries.records import Array, DictionaryState, Floats, Rows
from pluri.factors.dictionaries.usage.protocol import UsagePrior
from pluri.inference.mcmc.kernel import CountAfterWarmup
from pluri.priors.hyperpriors import Gamma

LOG_2_PI = math.log(2 * math.pi)
FLAT = Gamma(1e-6, 1e-6)
#: Between these precisions are kept: a draw of a flat prior, where no atom is in use, could not be computed with.
PRECISIONS = (1e-6, 1e15)


@dataclass(frozen=True, eq=False)
class Totals:
    """Sums over draws: rows without noise and their squares, usage and power of the atoms, variances."""

    n_draws: int
    values: Any
    squares: Any
    usage: Any
    power: Any
    noise_variance: Any
    weight_variance: Any

    @classmethod
    def none(cls) -> Totals:
        """Sums over nothing."""
        return cls(0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)

    @classmethod
    def over(cls, parts: Sequence[Totals]) -> Totals:
        """Sums over the draws of several chains; those of atoms mean nothing then, as their order differs."""
        return cls(*(sum(getattr(part, each.name) for part in parts) for each in fields(cls)))

    def plus(self, state: DictionaryState, reconstruction: Floats) -> Totals:
        """With one more draw."""
        lengths = np.einsum("kp,kp->k", state.components, state.components)
        power = np.einsum("ik,ik,ik->k", state.weights, state.weights, state.used) * lengths
        return Totals(
            self.n_draws + 1,
            self.values + reconstruction,
            self.squares + reconstruction**2,
            self.usage + state.used.mean(axis=0),
            self.power + power,
            self.noise_variance + 1 / state.noise_precision,
            self.weight_variance + 1 / state.weight_precision,
        )


@dataclass(frozen=True, eq=False)
class DictionaryChain:
    """State of a chain: where it is, the best place that it has seen, and sums over its draws."""

    position: DictionaryState
    log_density: float
    best: DictionaryState
    best_log_density: float
    totals: Totals


@dataclass(frozen=True, eq=False)
class DictionaryGibbs:
    """Gibbs sampler of a dictionary: a kernel for `pluri.inference.mcmc.sample`. Positions are `DictionaryState`.

    Parameters
    ----------
    rows : Rows
    usage : UsagePrior
    n_components : int
    collapsed : bool, default=True
        Whether weights are integrated out when it is drawn which atoms are used.
    noise_prior, weight_prior : Gamma, default=Gamma(1e-6, 1e-6)
        Of the precisions of noise and weights.
    counting : bool, default=True
        Whether draws are summed up; a driver switches it on after the warm-up.
    """

    rows: Rows
    usage: UsagePrior
    n_components: int
    collapsed: bool = True
    noise_prior: Gamma = FLAT
    weight_prior: Gamma = FLAT
    counting: bool = True

    def adaptation(self, n_warmup: int) -> CountAfterWarmup:
        """Nothing is tuned, but draws count only after the warm-up."""
        return CountAfterWarmup()

    def init(self, rng: np.random.Generator, position: DictionaryState) -> DictionaryChain:
        """State at a position."""
        left = squared_residuals(self.rows, _codes(position) @ position.components)
        value = self.log_joint(position, left)
        return DictionaryChain(position, value, position, value, Totals.none())

    def step(self, rng: np.random.Generator, state: DictionaryChain) -> tuple[DictionaryChain, dict[str, float]]:
        """One sweep."""
        position, reconstruction, left = self._sweep(rng, state.position, self.rows)
        value = self.log_joint(position, left)
        # Nothing from before the rows have found their clusters.
        is_best = value > state.best_log_density or getattr(state.position.usage, "settling", 0) > 0
        best = (position, value) if is_best else (state.best, state.best_log_density)
        totals = state.totals.plus(position, reconstruction) if self.counting else state.totals
        return DictionaryChain(position, value, *best, totals), {"n_used": float(position.used.any(axis=0).sum())}

    def record(self, position: DictionaryState) -> dict[str, Any]:
        """What to keep of a position: nothing that depends on the order of the atoms."""
        return {
            "noise_variance": np.asarray(np.mean(1 / position.noise_precision)),
            "weight_variance": np.asarray(1 / position.weight_precision),
            "atoms_per_row": np.asarray(position.used.sum() / len(position.used)),
            "n_used": np.asarray(position.used.any(axis=0).sum()),
        }

    def sample_prior(self, rng: np.random.Generator) -> DictionaryState:
        """Draw a position from the prior."""
        n, P = self.rows.values.shape
        dtype, K = self.rows.values.dtype, self.n_components
        usage, used = self.usage.sample(n, rng)
        precision = self.weight_prior.sample(rng)
        weights = rng.standard_normal((n, K)) / math.sqrt(precision)
        if self.collapsed:
            weights *= used
        atoms = rng.standard_normal((K, P)) / math.sqrt(P)
        noise = np.array([self.noise_prior.sample(rng) for _ in range(self.rows.n_noise_groups)])
        return DictionaryState(atoms.astype(dtype), weights.astype(dtype), used, noise, precision, usage)

    def sample_data(self, rng: np.random.Generator, position: DictionaryState) -> Floats:
        """Draw rows given a position; the same values are missing as in the data."""
        clean = _codes(position) @ position.components
        spread = 1 / np.sqrt(position.noise_precision[self.rows.noise_group])
        values = clean + spread[:, None] * rng.standard_normal(clean.shape)
        return np.asarray(values if self.rows.observed is None else values * self.rows.observed, dtype=clean.dtype)

    def sweep(self, rng: np.random.Generator, position: DictionaryState, data: Any) -> DictionaryState:
        """All variables once."""
        return self._sweep(rng, position, replace(self.rows, values=data))[0]

    def _sweep(
        self, rng: np.random.Generator, position: DictionaryState, rows: Rows
    ) -> tuple[DictionaryState, Floats, Array]:
        """All variables once: the position, the rows without noise, and squared residuals."""
        noise = position.noise_precision[rows.noise_group]
        log_odds, group = self.usage.log_odds(position.usage)
        weights, used = position.weights.copy(), position.used.copy()
        prior = CodePrior(log_odds, group, noise, float(position.weight_precision), bool(self.collapsed))
        draw_codes(
            rng, rows.values, position.components, prior, CodeState(weights, used, weights[:0]), observed=rows.observed
        )
        products = weights if self.collapsed else weights * used
        atoms = draw_components(rng, *component_posterior(rows, products, noise)).astype(weights.dtype)
        reconstruction = products @ atoms
        left = squared_residuals(rows, reconstruction)
        precision = _draw_precision(
            rng, self.weight_prior, used.sum() if self.collapsed else used.size, float((weights**2).sum())
        )
        n_observed = np.bincount(rows.noise_group, rows.n_observed, rows.n_noise_groups)
        squares = np.bincount(rows.noise_group, left, rows.n_noise_groups)
        state = DictionaryState(
            atoms, weights, used, _draw_precision(rng, self.noise_prior, n_observed, squares), float(precision),
            self.usage.resample(position.usage, used, rng),
        )  # fmt: skip
        return state, reconstruction, left

    def log_joint(self, position: DictionaryState, left: Array) -> float:
        """Log density of data and position, given the squared residuals of the rows; unused weights integrated out."""
        rows, P = self.rows, self.rows.values.shape[1]
        noise, precision = position.noise_precision, float(position.weight_precision)
        each = noise[rows.noise_group]
        total = 0.5 * float((rows.n_observed * (np.log(each) - LOG_2_PI) - each * left).sum())
        atoms = position.components.astype(np.float64)
        total += 0.5 * (atoms.size * (math.log(P) - LOG_2_PI) - P * float((atoms**2).sum()))
        n_weights = position.used.sum() if self.collapsed else position.used.size
        squares = float((position.weights.astype(np.float64) ** 2).sum())
        total += 0.5 * (n_weights * (math.log(precision) - LOG_2_PI) - precision * squares)
        total += self.weight_prior.log_density(precision) + sum(map(self.noise_prior.log_density, noise.tolist()))
        return float(total + self.usage.log_joint(position.usage, position.used))


def _codes(position: DictionaryState) -> Floats:
    return np.asarray(position.weights * position.used)


def _draw_precision(rng: np.random.Generator, prior: Gamma, count: Any, squares: Any) -> Any:
    """Precision of `count` normal numbers whose squares add up to `squares`; one of no numbers may round to zero."""
    drawn = rng.gamma(prior.shape + 0.5 * np.asarray(count)) / (prior.rate + 0.5 * np.asarray(squares))
    return np.clip(drawn, *PRECISIONS)
