"""Gibbs sampler of rows that were measured: codes given the dictionary, and the dictionary too if it is not known.

    y_i = S_i x_i + noise,   x_i = sum_k z_ik s_ik d_k,   s_ik ~ N(0, 1 / g_s),   noise ~ N(0, I / g_e)

Atoms of a row are drawn one after another with all its weights integrated out, then the weights at once; so rows can
leave a wrong choice of atoms, which with few measurements they hardly could with the other weights given. The three
pure functions that a test of correctness needs are `sample_prior`, `sample_data` and `sweep`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pluri.factors.dictionaries.conditionals import blocks
from pluri.factors.dictionaries.gibbs import FLAT, LOG_2_PI
from pluri.factors.dictionaries.records import Array, DictionaryState
from pluri.factors.dictionaries.sensing._measured_kernels import (
    MeasuredRows,
    Room,
    RowCodes,
    RowDraws,
    RowPrior,
    draw_measured_codes,
)
from pluri.factors.dictionaries.sensing.blind_dictionary import draw_dictionary, gram_matrices
from pluri.factors.dictionaries.sensing.likely_classes import likely_classes
from pluri.factors.dictionaries.sensing.measurements import Measurements
from pluri.factors.dictionaries.start import principal_axes
from pluri.factors.dictionaries.usage.code_classes import CodeClasses
from pluri.factors.dictionaries.usage.known_classes import KnownClasses
from pluri.factors.dictionaries.usage.protocol import UsagePrior
from pluri.factors.spike_slab_regression import draw_gamma
from pluri.inference.mcmc.kernel import CountAfterWarmup
from pluri.priors.hyperpriors import Gamma

#: Numbers in the measured atoms of all rows that are kept; more, and they are made anew in each sweep.
MOST_KEPT = 2**27
#: Atoms of a row that may be exchanged for others in a sweep.
N_EXCHANGES = 4
#: Sweeps in which the noise falls from all of the measurements to this share of them, before a chain begins.
COOLING, LEAST_NOISE = 30, 1e-4
#: Precisions, for rows whose values are of size 1.
PRECISION_RANGE = 1e-6, 1e8


@dataclass(frozen=True, eq=False)
class RecoveryTotals:
    """Sums over draws: expected rows, drawn rows, their squares, codes, usage, and variances of noise and weights.

    If the dictionary is known, rows and codes are those expected given the atoms in use: their mean varies less.
    """

    n_draws: int = 0
    values: Any = 0.0
    drawn: Any = 0.0
    squares: Any = 0.0
    codes: Any = 0.0
    used: Any = 0.0
    noise_variance: float = 0.0
    weight_variance: float = 0.0

    def plus(self, position: DictionaryState, X: Array, codes: Array, expected: Array) -> RecoveryTotals:
        """With one more draw: of rows X, with expected codes and rows."""
        return RecoveryTotals(
            self.n_draws + 1, self.values + expected, self.drawn + X, self.squares + X**2, self.codes + codes,
            self.used + position.used, self.noise_variance + 1 / float(position.noise_precision[0]),
            self.weight_variance + 1 / position.weight_precision,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class RecoveryChain:
    """State of a chain: where it is, the best place that it has seen, and sums over its draws."""

    position: DictionaryState
    log_density: float
    best: DictionaryState
    best_log_density: float
    totals: RecoveryTotals


@dataclass(frozen=True, eq=False)
class RecoveryGibbs:
    """Gibbs sampler of measured rows: a kernel for `pluri.inference.mcmc.sample`. Positions are `DictionaryState`.

    Parameters
    ----------
    data : Measurements
    usage : UsagePrior
    dictionary : array of shape (n_components, n_features) or int
        The atoms, or how many are to be learned.
    noise_prior, weight_prior : Gamma, default=Gamma(1e-6, 1e-6)
        Of the precisions of noise and weights.
    counting : bool, default=True
        Whether draws are summed up; a driver switches it on after the warm-up.
    """

    data: Measurements
    usage: UsagePrior
    dictionary: Any
    noise_prior: Gamma = FLAT
    weight_prior: Gamma = FLAT
    counting: bool = True
    #: What does not change from sweep to sweep: measured atoms of all rows, and S_i'S_i.
    kept: dict[str, Array | None] = field(default_factory=dict, repr=False)

    @property
    def blind(self) -> bool:
        """Whether the dictionary is learned."""
        return isinstance(self.dictionary, int)

    @property
    def classes(self) -> CodeClasses | None:
        """What is known beforehand of the codes of classes of rows, if anything."""
        return self.usage.classes if isinstance(self.usage, KnownClasses) else None

    @property
    def n_components(self) -> int:
        """Number of atoms."""
        return int(self.dictionary) if self.blind else len(self.dictionary)

    def adaptation(self, n_warmup: int) -> CountAfterWarmup:
        """Nothing is tuned, but draws count only after the warm-up."""
        return CountAfterWarmup()

    def init(self, rng: np.random.Generator, position: DictionaryState) -> RecoveryChain:
        """State at a position."""
        value = self.log_joint(position, self.data.values)
        return RecoveryChain(position, value, position, value, RecoveryTotals())

    def step(self, rng: np.random.Generator, state: RecoveryChain) -> tuple[RecoveryChain, dict[str, float]]:
        """One sweep."""
        position, expected = self._sweep(rng, state.position, self.data.values)
        value = self.log_joint(position, self.data.values)
        totals = state.totals
        # None of the warm-up, in which rows have yet to find their clusters: with fewer atoms in use a density is that
        # of fewer weights, and may be higher without being better.
        is_best = totals.n_draws == 0 or value > state.best_log_density
        best = (position, value) if is_best else (state.best, state.best_log_density)
        if self.counting:
            X = self.data.whole(position.weights @ position.components)
            whole = X if self.blind else self.data.whole(expected @ position.components)
            totals = totals.plus(position, X, expected, whole)
        return RecoveryChain(position, value, *best, totals), {"atoms_per_row": float(position.used.sum(axis=1).mean())}

    def record(self, position: DictionaryState) -> dict[str, Any]:
        """What to keep of a position: nothing that depends on the order of the atoms."""
        return {
            "noise_variance": np.asarray(1 / position.noise_precision[0]),
            "weight_variance": np.asarray(1 / position.weight_precision),
            "atoms_per_row": np.asarray(position.used.sum() / len(position.used)),
        }

    def start(self, rng: np.random.Generator) -> DictionaryState:
        """Where a chain begins: atoms in use after the noise has fallen slowly; if blind, principal directions.

        If classes of codes are known: rows in likely classes, with the noise that the classes were learned with.
        """
        if isinstance(self.usage, KnownClasses):
            labels, noise, precision = likely_classes(rng, self.data, self.dictionary, self.usage.classes)
            codes = np.zeros((len(labels), self.n_components))
            return DictionaryState(
                self.dictionary, codes, codes.astype(np.int8), np.array([noise]), precision,
                self.usage.begin(labels, rng),
            )  # fmt: skip
        (n, _), K, P = self.data.values.shape, self.n_components, self.data.projections.shape[-1]
        if self.blind:
            atoms = rng.standard_normal((K, P)) / math.sqrt(P)
            axes = principal_axes(self.data.back_projected())[:K]
            atoms[: len(axes)] = axes
        else:
            atoms = self.dictionary
        used = np.zeros((n, K), dtype=np.int8)
        power = max(float((self.data.values**2).mean()), 1e-10)
        # Rows are of size 1: ten atoms in use would have weights of this variance.
        spread = P / (10 * max(float((atoms**2).sum(axis=1).mean()), 1e-10))
        position = DictionaryState(
            atoms, np.zeros((n, K)), used, np.array([1 / power]), 1 / spread, self.usage.start(used, rng)
        )
        # Rows that chose their atoms while the noise was large choose better: it falls step by step, until it is as
        # large as what the atoms leave.
        for step in range(1, COOLING + 1):
            position = self.sweep(rng, position, self.data.values)
            noise = power * LEAST_NOISE ** (step / COOLING)
            if 1 / float(position.noise_precision[0]) > noise:
                break
            position = replace(position, noise_precision=np.array([1 / noise]))
        return position

    def sample_prior(self, rng: np.random.Generator) -> DictionaryState:
        """Draw a position from the prior."""
        n, K, P = len(self.data.values), self.n_components, self.data.projections.shape[-1]
        usage, used = self.usage.sample(n, rng)
        precision, noise = self.weight_prior.sample(rng), self.noise_prior.sample(rng)
        atoms = rng.standard_normal((K, P)) / math.sqrt(P) if self.blind else self.dictionary
        weights = used * rng.standard_normal((n, K)) * np.sqrt(self.relative_variances(usage) / precision)
        return DictionaryState(atoms, weights, used, np.array([noise]), precision, usage)

    def sample_data(self, rng: np.random.Generator, position: DictionaryState) -> Array:
        """Draw measurements given a position."""
        clean = self.data.seen(position.weights @ position.components)
        return np.asarray(clean + rng.standard_normal(clean.shape) / math.sqrt(float(position.noise_precision[0])))

    def sweep(self, rng: np.random.Generator, position: DictionaryState, data: Array) -> DictionaryState:
        """All variables once."""
        return self._sweep(rng, position, data)[0]

    def _sweep(self, rng: np.random.Generator, position: DictionaryState, data: Array) -> tuple[DictionaryState, Array]:
        """All variables once, and the expected weights given the atoms in use."""
        used, weights, expected = self.draw_codes(rng, position, data)
        atoms, noise = position.components, float(position.noise_precision[0])
        if self.blind:
            measurements = replace(self.data, values=data)
            atoms = draw_dictionary(rng, measurements, weights, atoms, noise, self._once("grams"))
        squares = float(((data - self.data.seen(weights @ atoms)) ** 2).sum())
        sizes = float((weights**2 / self.relative_variances(position.usage)).sum())
        precision = draw_gamma(rng, self.weight_prior, 0.5 * used.sum(), 0.5 * sizes)
        fresh = draw_gamma(rng, self.noise_prior, 0.5 * data.size, 0.5 * squares)
        if isinstance(self.usage, KnownClasses):  # of which class a row is, the sizes of its weights tell too
            usage = self.usage.resample(position.usage, used, rng, weights * math.sqrt(precision))
        else:
            usage = self.usage.resample(position.usage, used, rng)
        # If nothing is used a flat prior alone is left of the precision, whose draws round to zero.
        within = (np.clip(value, *PRECISION_RANGE) for value in (fresh, precision))
        state = DictionaryState(atoms, weights, used, np.array([next(within)]), float(next(within)), usage)
        return state, expected

    def draw_codes(self, rng: np.random.Generator, position: DictionaryState, data: Array) -> RowCodes:
        """Weights and z of all rows given the rest."""
        log_odds, group = self.usage.log_odds(position.usage)
        weights = np.empty_like(position.weights)
        codes = RowCodes(position.used.copy(), weights, np.empty_like(weights))
        (n, size), K = data.shape, weights.shape[1]
        variances = 1 / float(position.noise_precision[0]), self.weight_variances(position, log_odds.shape)
        room = Room(np.empty((size, size)), np.empty(K), np.empty(K), np.empty(size), np.empty(K))
        stack = None if self.blind else self._once("stack")
        for rows in blocks(n, K):
            if stack is None or self.data.shared:
                atoms = self.data.measured(position.components, rows)
            else:
                atoms = stack[rows]
            measured = MeasuredRows(data[rows], atoms[None] if self.data.shared else atoms)
            uniforms, exchanges = (
                rng.random((len(measured.values), K)),
                rng.random((len(measured.values), N_EXCHANGES, 2)),
            )
            normals = rng.standard_normal(uniforms.shape), rng.standard_normal(measured.values.shape)
            prior = RowPrior(log_odds, group[rows], *variances)
            of_rows = RowCodes(*(part[rows] for part in codes))
            draw_measured_codes(measured, prior, RowDraws(uniforms, exchanges, *normals), of_rows, room)
        return codes

    def weight_variances(self, position: DictionaryState, shape: tuple[int, ...]) -> Array:
        """Variances of the weights of each group of rows: (n_groups, n_components)."""
        if self.classes is None:
            return np.full(shape, 1 / float(position.weight_precision))
        return self.classes.variances / float(position.weight_precision)

    def relative_variances(self, usage: Any) -> Array:
        """Variances of the weights of each row times their precision, (n_samples, n_components); or 1 for all."""
        return np.ones((1, 1)) if self.classes is None else self.classes.variances[usage.labels]

    def _once(self, name: str) -> Array | None:
        """What is the same in every sweep, made when it is first asked for; None if it would be too large."""
        if name not in self.kept:
            if name == "grams":
                self.kept[name] = gram_matrices(self.data)
            else:
                small = self.data.values.size * self.n_components <= MOST_KEPT
                self.kept[name] = self.data.measured(self.dictionary) if small else None
        return self.kept[name]

    def log_joint(self, position: DictionaryState, data: Array) -> float:
        """Log density of measurements and position; weights of atoms that are not used are integrated out."""
        noise, precision = float(position.noise_precision[0]), float(position.weight_precision)
        squares = float(((data - self.data.seen(position.weights @ position.components)) ** 2).sum())
        total = 0.5 * (data.size * (math.log(noise) - LOG_2_PI) - noise * squares)
        if self.blind:
            P = position.components.shape[1]
            total += 0.5 * position.components.size * (math.log(P) - LOG_2_PI)
            total -= 0.5 * P * float((position.components**2).sum())
        total += 0.5 * float(position.used.sum()) * (math.log(precision) - LOG_2_PI)
        relative = self.relative_variances(position.usage)
        total -= 0.5 * float((position.used * np.log(relative)).sum())
        total -= 0.5 * precision * float((position.weights**2 / relative).sum())
        total += self.noise_prior.log_density(noise) + self.weight_prior.log_density(precision)
        return float(total + self.usage.log_joint(position.usage, position.used))
