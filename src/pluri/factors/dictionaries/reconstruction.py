"""Rows given a dictionary: their codes, what they are without noise and how sure that is, and how likely they are.

Codes come from a short chain for each row. All rows use the same random numbers, so that what comes out for a row does
not depend on the others. A code is the mean over the sweeps of what it was expected to be just before each draw, which
varies less than the draws.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from pluri.factors.dictionaries._bound_kernels import bound_rows
from pluri.factors.dictionaries._code_kernels import CodePrior, CodeState
from pluri.factors.dictionaries.conditionals import draw_codes
from pluri.factors.dictionaries.records import Array, Floats, Rows
from pluri.inference import mcmc
from pluri.inference.mcmc.kernel import CountAfterWarmup
from pluri.validation import plain_array

#: Sweeps before those that count.
N_SETTLE = 10


class KnownDictionary(NamedTuple):
    """What rows are seen with.

    `components` is (n_components, n_features), `log_odds` (n_components,), and the precisions are numbers. `covariance`
    is how uncertain the components are in each feature, (n_components, n_components); None if they are known.
    """

    components: Array
    log_odds: Array
    noise_precision: float
    weight_precision: float
    covariance: Array | None = None


@dataclass(frozen=True, eq=False)
class CodeChain:
    """State of the chains of all rows: weights, zero where an atom is not used, and sums over the draws.

    Sums are of the expected codes, of the rows without noise and of their squares, and of the variances ``w' C w`` that
    rows with codes w have because the components are uncertain, (n_samples, 1).
    """

    position: Floats
    codes: Any = 0.0
    values: Any = 0.0
    squares: Any = 0.0
    unsure: Any = 0.0
    log_density: float = 0.0


@dataclass(frozen=True, eq=False)
class CodeGibbs:
    """Gibbs sampler of codes given a dictionary: a kernel for `pluri.inference.mcmc.sample`. Positions are weights.

    Parameters
    ----------
    rows : Rows
    known : KnownDictionary
    shared : bool, default=True
        Whether all rows use the same random numbers.
    with_squares : bool, default=False
        Whether rows without noise and their squares are summed up too.
    counting : bool, default=True
        Whether draws are summed up; a driver switches it on after the warm-up.
    """

    rows: Rows
    known: KnownDictionary
    shared: bool = True
    with_squares: bool = False
    counting: bool = True

    def adaptation(self, n_warmup: int) -> CountAfterWarmup:
        """Nothing is tuned, but draws count only after the warm-up."""
        return CountAfterWarmup()

    def init(self, rng: np.random.Generator, position: Floats) -> CodeChain:
        """State at a position."""
        return CodeChain(position)

    def step(self, rng: np.random.Generator, state: CodeChain) -> tuple[CodeChain, dict[str, float]]:
        """One sweep."""
        rows, known, n = self.rows, self.known, len(self.rows.values)
        weights, used = state.position.copy(), (state.position != 0).view(np.int8)
        expected = np.zeros(weights.shape if self.counting else (0, weights.shape[1]))
        prior = CodePrior(
            known.log_odds[None], np.zeros(n, dtype=np.intp), np.full(n, float(known.noise_precision)),
            float(known.weight_precision), True,
        )  # fmt: skip
        codes = CodeState(weights, used, expected)
        draw_codes(rng, rows.values, known.components, prior, codes, observed=rows.observed, shared=self.shared)
        told = {"atoms_per_row": float(used.sum() / n)}
        if not self.counting:
            return CodeChain(weights), told
        sums = [state.codes + expected]
        if self.with_squares:
            drawn = weights @ known.components
            sums += [state.values + drawn, state.squares + drawn**2]
            if known.covariance is not None:
                sums.append(state.unsure + np.einsum("ik,ik->i", weights @ known.covariance, weights)[:, None])
        return CodeChain(weights, *sums), told


def count_atoms(weights: Floats) -> dict[str, Array]:
    """What is kept of a draw."""
    return {"atoms_per_row": np.asarray(np.count_nonzero(weights) / len(weights))}


def infer_codes(
    rng: np.random.Generator, rows: Rows, known: KnownDictionary, n_draws: int, *, with_std: bool = False
) -> tuple[Array, Array | None]:
    """Codes of rows given a dictionary, and standard deviations of the rows without noise (None if not wanted)."""
    kernel = CodeGibbs(rows, known._replace(components=plain_array(known.components)), with_squares=with_std)
    trace = mcmc.sample(
        kernel, [np.zeros((len(rows.values), len(known.components)))], record=count_atoms, n_draws=n_draws,
        n_warmup=N_SETTLE, n_chains=1, random_state=rng, warn=False,
    )  # fmt: skip
    end = trace.ends[0].state
    variance = np.maximum(end.squares - end.values**2 / n_draws, 0.0) / max(n_draws - 1, 1) + end.unsure / n_draws
    return end.codes / n_draws, np.sqrt(variance) if with_std else None


def log_density_bounds(rows: Rows, known: KnownDictionary) -> Array:
    """Lower bounds of the log densities of rows, (n_samples,): the mean-field bound of each."""
    there = np.ones_like(rows.values) if rows.observed is None else rows.observed.astype(np.float64)
    bounds, work = np.empty(len(rows.values)), np.empty((len(known.components), 3))
    bound_rows(
        rows.values.astype(np.float64), plain_array(known.components), there, plain_array(known.log_odds),
        float(known.noise_precision), float(known.weight_precision), work, bounds,
    )  # fmt: skip
    return bounds
