"""How long states last: distributions of durations, with conjugate priors where there are some.

A state lasts ``D = 1 + M`` steps. "poisson": ``M ~ Poisson(lambda_k)``, ``lambda_k ~ Gamma(shape, rate)``.
"negative_binomial": ``p(M = m) = Gamma(r + m) / (m! Gamma(r)) (1 - p)^r p^m`` with ``r_k ~ Gamma(shape, rate)`` and
``p_k ~ Beta(a, b)``; given M, the number of tables of ``CRT(M, r)`` makes r a Gamma variable again. A segment that its
sequence cut off lasted at least as long as was seen: the rest of it is drawn.

References
----------
Johnson and Willsky (2013), Bayesian nonparametric hidden semi-Markov models, JMLR 14.
Zhou and Carin (2015), Negative binomial process count and mixture modeling, IEEE PAMI 37.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, gammainc, gammaln, hyp1f1, hyp2f1, xlogy

from pluri.inference import mcmc
from pluri.priors.hyperpriors import Beta, Gamma
from pluri.processes.concentration import draw_table_counts
from pluri.sequences.infinite.transitions import count_transitions

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

#: What can be said of the priors of durations.
DURATIONS: dict[str, tuple[str, ...]] = {"poisson": ("shape", "rate"), "negative_binomial": ("shape", "rate", "a", "b")}
#: Below this a tail is not told by its probability, which loses digits, but by a series.
SMALL_TAIL = 1e-200
#: p of a negative binomial stays so far below one: states that last for millions of steps are not told apart.
LEAST_REST = 1e-6


class Segments(NamedTuple):
    """State and duration of each segment, and which of them the end of a sequence cut off."""

    states: Integers
    durations: Integers
    censored: NDArray[np.bool_]


def segments_of(labels: Integers, offsets: Integers) -> Segments:
    """Segments of sequences that lie end to end: a new one begins where the state changes or a sequence begins."""
    first = np.zeros(len(labels) + 1, dtype=bool)
    first[1:-1] = labels[1:] != labels[:-1]
    first[offsets] = True
    begins = np.flatnonzero(first)
    return Segments(labels[begins[:-1]], np.diff(begins), np.isin(begins[1:], offsets))


@dataclass(frozen=True)
class DurationModel(ABC):
    """A distribution of durations with the priors of its parameters; parameters are (n_states, n) arrays."""

    names: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def draw_prior(self, rng: np.random.Generator, n_states: int) -> Array:
        """Parameters of states from their prior."""

    @abstractmethod
    def log_pmf(self, parameters: Array, more: Any) -> Array:
        """Log probability that a state lasts 1 + `more` steps; shapes are broadcast."""

    @abstractmethod
    def _log_tail(self, parameters: Array, more: Any) -> Array:
        """Log probability that a state lasts 1 + `more` steps or longer."""

    @abstractmethod
    def draw_parameters(self, rng: np.random.Generator, parameters: Array, states: Integers, more: Integers) -> Array:
        """Parameters given the state of each segment and by how many steps it is longer than one."""

    @abstractmethod
    def mean(self, parameters: Array) -> Array:
        """Mean durations: (n_states,)."""

    def tables(self, parameters: Array, longest: int) -> tuple[Array, Array]:
        """Log probabilities of 1, ..., `longest` steps, and of at least so many: (n_states, longest)."""
        log_pmf = self.log_pmf(parameters[:, None], np.arange(longest))
        last = self._log_tail(parameters, np.full(len(parameters), longest - 1))
        backwards = np.column_stack([last, log_pmf[:, :-1][:, ::-1]])
        return log_pmf, np.ascontiguousarray(np.logaddexp.accumulate(backwards, axis=1)[:, ::-1])

    def completed(self, rng: np.random.Generator, parameters: Array, segments: Segments) -> Integers:
        """By how many steps each segment is longer than one, the rest of those that were cut off drawn."""
        more = segments.durations - 1
        for n in np.flatnonzero(segments.censored):
            own = parameters[segments.states[n]][None]
            log_tail = float(self._log_tail(own, more[n : n + 1])[0])
            more[n] += self._excess(own, int(more[n]), log_tail, rng.random())
        return more

    def _excess(self, own: Array, least: int, log_tail: float, uniform: float) -> int:
        """The smallest excess over `least` whose cumulative probability, given that tail, is above `uniform`."""
        begin, size, total = 0, 64, 0.0
        while True:
            chances = np.exp(self.log_pmf(own, least + begin + np.arange(size)) - log_tail)
            running = total + np.cumsum(chances)
            if running[-1] > uniform:
                return begin + int(np.searchsorted(running, uniform, side="right"))
            if running[-1] - total <= 1e-15 and begin > 0:  # rounding: nothing is left
                return begin
            begin, size, total = begin + size, 2 * size, float(running[-1])

    def draw(self, rng: np.random.Generator, parameters: Array, segments: Segments) -> Array:
        """Parameters given segments: one step of a Markov chain from those before."""
        return self.draw_parameters(rng, parameters, segments.states, self.completed(rng, parameters, segments))

    def log_density(self, parameters: Array, segments: Segments) -> float:
        """Log probability of durations given the states of the segments."""
        own, more = parameters[segments.states], segments.durations - 1
        whole = self.log_pmf(own[~segments.censored], more[~segments.censored])
        return float(whole.sum() + self._log_tail(own[segments.censored], more[segments.censored]).sum())


@dataclass(frozen=True)
class PoissonDurations(DurationModel):
    """One and a Poisson number of steps; `prior` is that of its means. Parameters (n_states, 1) are the means."""

    prior: Gamma
    names: ClassVar[tuple[str, ...]] = ("rates",)

    def draw_prior(self, rng: np.random.Generator, n_states: int) -> Array:
        """Means from their prior."""
        return np.maximum(rng.gamma(self.prior.shape, 1 / self.prior.rate, size=(n_states, 1)), 1e-300)

    def log_pmf(self, parameters: Array, more: Any) -> Array:
        """Log probability of 1 + `more` steps."""
        rate = parameters[..., 0]
        return np.asarray(xlogy(more, rate) - rate - gammaln(np.asarray(more) + 1.0))

    def _log_tail(self, parameters: Array, more: Any) -> Array:
        rate, more = parameters[..., 0], np.asarray(more, dtype=np.float64)
        tail = np.where(more > 0, gammainc(np.maximum(more, 1.0), rate), 1.0)
        small = tail < SMALL_TAIL
        out = np.log(np.maximum(tail, SMALL_TAIL))
        out[small] = self.log_pmf(parameters[small], more[small]) + np.log(hyp1f1(1.0, more[small] + 1, rate[small]))
        return out

    def draw_parameters(self, rng: np.random.Generator, parameters: Array, states: Integers, more: Integers) -> Array:
        """Means given durations."""
        n = len(parameters)
        shape = self.prior.shape + np.bincount(states, more, minlength=n)
        drawn = rng.gamma(shape) / (self.prior.rate + np.bincount(states, minlength=n))
        return np.maximum(drawn, 1e-300)[:, None]

    def mean(self, parameters: Array) -> Array:
        """Mean durations."""
        return np.asarray(1.0 + parameters[:, 0])


@dataclass(frozen=True)
class NegativeBinomialDurations(DurationModel):
    """One and a negative binomial number of steps. Parameters (n_states, 2) are r and p."""

    prior: Gamma
    chance: Beta
    names: ClassVar[tuple[str, ...]] = ("shapes", "probabilities")

    def draw_prior(self, rng: np.random.Generator, n_states: int) -> Array:
        """Both from their priors."""
        r = rng.gamma(self.prior.shape, 1 / self.prior.rate, size=n_states)
        return self._pairs(r, rng.beta(self.chance.a, self.chance.b, size=n_states))

    def _pairs(self, r: Array, p: Array) -> Array:
        return np.column_stack([np.maximum(r, 1e-100), np.clip(p, 1e-300, 1 - LEAST_REST)])

    def log_pmf(self, parameters: Array, more: Any) -> Array:
        """Log probability of 1 + `more` steps."""
        r, p = parameters[..., 0], parameters[..., 1]
        # Gamma(r + m) / Gamma(r) = r Gamma(r + m) / Gamma(r + 1): no difference of two large numbers if r is small.
        rising = np.where(np.asarray(more) > 0, np.log(r) + gammaln(r + np.maximum(more, 1)) - gammaln(r + 1), 0.0)
        return np.asarray(rising - gammaln(np.asarray(more) + 1.0) + r * np.log1p(-p) + np.asarray(more) * np.log(p))

    def _log_tail(self, parameters: Array, more: Any) -> Array:
        r, p, more = parameters[..., 0], parameters[..., 1], np.asarray(more, dtype=np.float64)
        tail = np.where(more > 0, betainc(np.maximum(more, 1.0), r, p), 1.0)
        small = tail < SMALL_TAIL
        out = np.log(np.maximum(tail, SMALL_TAIL))
        series = hyp2f1(1.0, r[small] + more[small], more[small] + 1, p[small])
        out[small] = self.log_pmf(parameters[small], more[small]) + np.log(series)
        return out

    def draw_parameters(self, rng: np.random.Generator, parameters: Array, states: Integers, more: Integers) -> Array:
        """Draw r given p and the tables of each segment, then p given r."""
        n, (r, p) = len(parameters), parameters.T
        tables = np.bincount(states, draw_table_counts(rng, more, r[states]), minlength=n)
        number, total = np.bincount(states, minlength=n), np.bincount(states, more, minlength=n)
        r = np.maximum(rng.gamma(self.prior.shape + tables) / (self.prior.rate - number * np.log1p(-p)), 1e-100)
        return self._pairs(r, rng.beta(self.chance.a + total, self.chance.b + number * r))

    def mean(self, parameters: Array) -> Array:
        """Mean durations."""
        r, p = parameters.T
        return np.asarray(1.0 + r * p / (1 - p))


def duration_model(name: str, prior: Mapping[str, Any] | None, offsets: Integers) -> DurationModel:
    """Distribution of durations by name, for sequences of given lengths.

    By default the means of "poisson" are exponential, around the square root of the mean length of the sequences; of
    "negative_binomial" r is Gamma(2, 1) and p uniform.
    """
    given = dict(prior or {})
    unknown = sorted(set(given) - set(DURATIONS[name]))
    if unknown:
        raise ValueError(f"duration_prior of {name!r} may have {', '.join(DURATIONS[name])}, got {unknown[0]!r}")
    if name == "poisson":
        lengths = np.diff(offsets)
        typical = float(np.sqrt(lengths[lengths > 0].mean()))
        return PoissonDurations(Gamma(given.get("shape", 1.0), given.get("rate", 1 / typical)))
    return NegativeBinomialDurations(
        Gamma(given.get("shape", 2.0), given.get("rate", 1.0)), Beta(given.get("a", 1.0), given.get("b", 1.0))
    )


def expected_parameters(
    rng: np.random.Generator, model: DurationModel, labels: Integers, offsets: Integers, n_draws: int = 100
) -> dict[str, Array]:
    """Posterior means of the parameters of each state given the states of all steps, by name, and "means"."""
    segments = segments_of(labels, offsets)

    def draw(rng: np.random.Generator, position: Mapping[str, Any]) -> Array:
        return model.draw(rng, position["parameters"], segments)

    start = {"parameters": model.draw_prior(rng, int(labels.max()) + 1)}
    trace = mcmc.sample(
        mcmc.Gibbs({"parameters": draw}), start, n_draws=n_draws, n_warmup=n_draws, n_chains=1, random_state=rng,
        warn=False,
    )  # fmt: skip
    means = trace["parameters"][0].mean(axis=0)
    return {**dict(zip(model.names, means.T.copy())), "means": model.mean(means)}


def segment_counts(labels: Integers, offsets: Integers, n_states: int) -> Integers:
    """How many segments of each state follow one of each, (n_states + 1, n_states); the last row counts first ones."""
    counts = count_transitions(labels, offsets, n_states)
    counts[:-1][np.diag_indices(n_states)] = 0
    return counts


def expected_segment_rows(counts: Integers, concentration: float, weights: Array) -> Array:
    """Posterior means of the rows on the states that are there, each summing to one: (K + 1, K)."""
    rows = concentration * weights + counts
    rows = np.where(rows.sum(axis=1, keepdims=True) - np.append(rows[:-1].diagonal(), 0.0)[:, None] > 0, rows, 1.0)
    if len(weights) > 1:
        rows[:-1][np.diag_indices(len(weights))] = 0.0
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))
