"""Exact inference on a chain: smoothing, filtering, scoring, decoding and path sampling on plain arrays.

A chain is its start distribution and transition matrix; observations enter only through their log densities
``log_emission`` (n_samples, padded width). The recursions are scaled (Rabiner 1989) after dividing each row by its
largest entry, and done again in log space for the rare sequence that still underflows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pluri.components.padding import padded_width
from pluri.sequences import _kernels as kernels
from pluri.sequences._log_space import filter_in_log_space, smooth_in_log_space

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
#: Log densities of rows begin:end, freshly computed: (end - begin, padded width).
LogEmission = Callable[[int, int], Array]

#: A sequence is smoothed in blocks of so many steps, which fit in the processor's cache.
BLOCK = 1 << 13
#: In a longer sequence the blocks are computed twice instead of being kept.
LONG = 1 << 18
#: A transition less probable than this counts as forbidden when looking for lost probability.
FORBIDDEN = 1e-100


@dataclass(frozen=True)
class Chain:
    """Start and transition probabilities, padded with impossible states for the compiled functions."""

    start: Array
    transition: Array
    transposed: Array
    n_states: int

    @classmethod
    def from_probabilities(cls, start: Array, transition: Array) -> Chain:
        """Pad ``start`` (k,) and ``transition`` (k, k); they need not be normalised."""
        k = len(start)
        width = padded_width(k)
        padded_start = np.zeros(width)
        padded_start[:k] = start
        padded = np.zeros((width, width))
        padded[:k, :k] = transition
        return cls(padded_start, padded, np.ascontiguousarray(padded.T), k)

    @property
    def has_gaps(self) -> bool:
        """Whether some transition is (all but) forbidden: only then can a rounded-off state matter later."""
        k = self.n_states
        return bool((self.transition[:k, :k] < FORBIDDEN).any())

    @property
    def width(self) -> int:
        """Padded number of states."""
        return len(self.start)

    def logarithms(self) -> tuple[Array, Array]:
        """Log start and log transition probabilities, padded with -inf."""
        with np.errstate(divide="ignore"):
            return np.log(self.start), np.log(self.transition)


@dataclass(frozen=True)
class Smoothed:
    """What the E-step needs of a batch of sequences.

    Attributes
    ----------
    posterior : (n_samples, width): weight * P(state_t = i | sequence); empty after `smooth_long`
    starts : (k,): sum over sequences of weight * P(state_1 = i | sequence)
    pairs : (k, k): sum over steps of weight * P(state_{t-1} = i, state_t = j | sequence)
    scores : (n_sequences,): log-likelihood of each sequence, -inf if the chain cannot produce it
    """

    posterior: Array
    starts: Array
    pairs: Array
    scores: Array


def smooth(
    chain: Chain, log_emission: LogEmission, offsets: Integers, weight: Array, *, in_log_space: bool = False
) -> Smoothed:
    """Forward-backward over sequences that lie end to end in rows ``offsets[0]:offsets[-1]``."""
    n_samples, k, width = int(offsets[-1]), chain.n_states, chain.width
    n_sequences = len(offsets) - 1
    starts, pairs = np.zeros(width), np.zeros((width, width))
    scores = np.full(n_sequences, np.nan)
    posterior = np.empty((n_samples, width))
    if not in_log_space:
        likelihood = log_emission(0, n_samples)
        maxima, inverse_scale = np.empty(n_samples), np.empty(n_samples)
        kernels.exponentiate(likelihood, maxima)
        kernels.smooth_sequences(
            likelihood,
            maxima,
            offsets,
            weight,
            chain.start[None],
            chain.transition,
            chain.transposed,
            chain.has_gaps,
            posterior,
            inverse_scale,
            np.empty((3, width)),
            starts,
            pairs,
            scores,
        )
    starts, pairs = starts[:k], pairs[:k, :k] * chain.transition[:k, :k]
    for n in np.flatnonzero(np.isnan(scores)):
        begin, end = int(offsets[n]), int(offsets[n + 1])
        scores[n] = 0.0
        if begin == end:
            continue
        posterior[begin:end] = 0.0
        one_pairs = np.zeros((k, k))
        one_posterior = posterior[begin:end, :k]
        scores[n] = _smooth_one_in_log_space(chain, log_emission(begin, end), one_posterior, one_pairs)
        one_posterior *= weight[n]
        pairs = pairs + weight[n] * one_pairs
        starts = starts + one_posterior[0]
    return Smoothed(posterior, starts, pairs, scores)


def _smooth_one_in_log_space(chain: Chain, log_emission: Array, posterior: Array, pairs: Array) -> float:
    log_start, log_transition = chain.logarithms()
    k = chain.n_states
    return float(
        smooth_in_log_space(
            np.ascontiguousarray(log_emission[:, :k]), log_start[:k], log_transition[:k, :k], posterior, pairs
        )
    )


@dataclass(frozen=True)
class _Block:
    """The forward pass through some consecutive steps."""

    likelihood: Array
    alpha: Array
    inverse_scale: Array


def smooth_long(
    chain: Chain, log_emission: LogEmission, n_samples: int, weight: float, consume: Callable[[int, int, Array], None]
) -> Smoothed:
    """Smooth one sequence block by block; beyond `LONG` steps, in memory that hardly grows with its length.

    The forward pass keeps the filtered distribution before each block. The backward pass goes through the blocks
    from the last to the first (in a long sequence it computes the forward pass inside the block again) and hands each
    block's posterior to `consume(begin, end, posterior)`.
    """
    k, width = chain.n_states, chain.width
    edges = [*range(0, n_samples, BLOCK), n_samples]
    before = np.zeros((len(edges), width))
    before[0] = chain.start
    maxima, work = np.empty(min(BLOCK, n_samples)), np.empty(width)

    def forward(b: int) -> _Block | None:
        likelihood = log_emission(edges[b], edges[b + 1])
        length = len(likelihood)
        block = _Block(likelihood, np.empty_like(likelihood), np.empty(length))
        kernels.exponentiate(likelihood, maxima[:length])
        good = kernels.forward(
            likelihood,
            0,
            length,
            before[b : b + 1],
            chain.transition,
            b == 0,
            block.alpha,
            block.inverse_scale,
            work,
        )
        return block if good else None

    score, kept = 0.0, []
    for b in range(len(edges) - 1):
        block = forward(b)
        if block is None:
            return _smooth_whole(chain, log_emission, n_samples, weight, consume)
        score += float(kernels.log_scale(block.inverse_scale, maxima, 0, len(block.alpha)))
        before[b + 1] = block.alpha[-1]
        if n_samples <= LONG:
            kept.append(block)
    if chain.has_gaps and not _keeps_footing(chain, lambda b: kept[b] if kept else forward(b), len(edges) - 1):
        return _smooth_whole(chain, log_emission, n_samples, weight, consume)
    beta, pairs, nothing = np.ones((1, width)), np.zeros((width, width)), np.zeros((1, width))
    starts = np.zeros(k)
    for b in reversed(range(len(edges) - 1)):
        block = kept.pop() if kept else forward(b)
        assert block is not None
        kernels.backward(
            block.likelihood,
            0,
            len(block.alpha),
            weight,
            chain.transposed,
            block.alpha,
            block.inverse_scale,
            beta,
            before[b : b + 1] if b else nothing,
            pairs,
        )
        consume(edges[b], edges[b + 1], block.alpha)
        starts = block.alpha[0, :k]
    return Smoothed(np.empty((0, width)), starts, pairs[:k, :k] * chain.transition[:k, :k], np.array([score]))


def _keeps_footing(chain: Chain, block_of: Callable[[int], _Block | None], n_blocks: int) -> bool:
    """Look for backward variables that are too large, from the last block to the first."""
    beta, work = np.ones((1, chain.width)), np.empty((1, chain.width))
    for b in reversed(range(n_blocks)):
        block = block_of(b)
        assert block is not None
        if not kernels.keeps_footing(
            block.likelihood, 0, len(block.alpha), chain.transposed, block.inverse_scale, beta, work
        ):
            return False
    return True


def _smooth_whole(
    chain: Chain, log_emission: LogEmission, n_samples: int, weight: float, consume: Callable[[int, int, Array], None]
) -> Smoothed:
    offsets = np.array([0, n_samples], dtype=np.int64)
    result = smooth(chain, log_emission, offsets, np.array([weight]), in_log_space=True)
    for begin in range(0, n_samples, BLOCK):
        end = min(begin + BLOCK, n_samples)
        consume(begin, end, result.posterior[begin:end])
    return result


def score(chain: Chain, log_emission: LogEmission, offsets: Integers, *, in_log_space: bool = False) -> Array:
    """Log-likelihood of each sequence by the forward pass alone: (n_sequences,)."""
    scores = np.empty(len(offsets) - 1)
    for first, last in runs(offsets):
        begin, end = int(offsets[first]), int(offsets[last])
        if last == first + 1 and end - begin > BLOCK and not in_log_space and not chain.has_gaps:
            scores[first] = _score_long(chain, log_emission, begin, end)
        else:
            scores[first:last] = _score_run(chain, log_emission, offsets[first : last + 1], in_log_space)
    return scores


def runs(offsets: Integers) -> list[tuple[int, int]]:
    """Consecutive sequences of at most `BLOCK` samples together (or one that is longer): (first, last + 1) pairs."""
    found, first, n_sequences = [], 0, len(offsets) - 1
    while first < n_sequences:
        last = int(np.searchsorted(offsets, offsets[first] + BLOCK, side="right")) - 1
        last = min(max(last, first + 1), n_sequences)
        found.append((first, last))
        first = last
    return found


def _score_run(chain: Chain, log_emission: LogEmission, offsets: Integers, in_log_space: bool) -> Array:
    begin, end = int(offsets[0]), int(offsets[-1])
    scores = np.full(len(offsets) - 1, np.nan)
    if not in_log_space:
        likelihood = log_emission(begin, end)
        maxima, inverse_scale = np.empty(end - begin), np.empty(end - begin)
        kernels.exponentiate(likelihood, maxima)
        kernels.score_sequences(
            likelihood,
            maxima,
            offsets - begin,
            chain.start[None],
            chain.transition,
            chain.transposed,
            chain.has_gaps,
            np.empty((4, chain.width)),
            inverse_scale,
            scores,
        )
    for n in np.flatnonzero(np.isnan(scores)):
        rows = log_emission(int(offsets[n]), int(offsets[n + 1]))
        scores[n] = _filter_one_in_log_space(chain, rows, np.empty((len(rows), chain.n_states))) if len(rows) else 0.0
    return scores


def _score_long(chain: Chain, log_emission: LogEmission, begin: int, end: int) -> float:
    alpha, inverse_scale, maxima = np.empty((BLOCK, chain.width)), np.empty(BLOCK), np.empty(BLOCK)
    before, work, total = chain.start[None], np.empty(chain.width), 0.0
    for left in range(begin, end, BLOCK):
        likelihood = log_emission(left, min(left + BLOCK, end))
        length = len(likelihood)
        kernels.exponentiate(likelihood, maxima[:length])
        first = left == begin
        if not kernels.forward(likelihood, 0, length, before, chain.transition, first, alpha, inverse_scale, work):
            rows = log_emission(begin, end)
            return _filter_one_in_log_space(chain, rows, np.empty((len(rows), chain.n_states)))
        total += float(kernels.log_scale(inverse_scale, maxima, 0, length))
        before = alpha[length - 1 : length].copy()
    return total


def _filter_one_in_log_space(chain: Chain, log_emission: Array, log_filtered: Array) -> float:
    log_start, log_transition = chain.logarithms()
    k = chain.n_states
    rows = np.ascontiguousarray(log_emission[:, :k])
    return float(filter_in_log_space(rows, log_start[:k], log_transition[:k, :k], log_filtered))


def filter_states(chain: Chain, log_emission: LogEmission, offsets: Integers) -> tuple[Array, Array]:
    """Log P(state_t | observations up to t): (n_samples, k), and the log-likelihood of each sequence."""
    k, n_samples = chain.n_states, int(offsets[-1])
    filtered = np.empty((n_samples, k))
    scores = np.zeros(len(offsets) - 1)
    for n, (begin, end) in enumerate(zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)):
        if end > begin:
            scores[n] = _filter_one_in_log_space(chain, log_emission(begin, end), filtered[begin:end])
    return filtered, scores


def viterbi(chain: Chain, log_emission: LogEmission, offsets: Integers) -> tuple[Array, Integers]:
    """Log probability of the best path of each sequence, and the paths end to end; lowest index wins a tie."""
    log_start, log_transition = chain.logarithms()
    path = np.empty(int(offsets[-1]), dtype=np.int64)
    scores = np.empty(len(offsets) - 1)
    for first, last in runs(offsets):
        begin, end = int(offsets[first]), int(offsets[last])
        rows = log_emission(begin, end)
        kernels.viterbi_sequences(
            rows,
            offsets[first : last + 1] - begin,
            log_start,
            log_transition,
            np.ascontiguousarray(log_transition.T),
            np.empty(chain.width),
            path[begin:end],
            scores[first:last],
        )
    return scores, path


def best_paths(chain: Chain, log_emission: Array, n_paths: int) -> tuple[Array, Integers]:
    """The `n_paths` most probable paths of one sequence, best first: scores (n,), paths (n, n_samples)."""
    k, n_samples = chain.n_states, len(log_emission)
    if n_samples == 0:
        return np.zeros(1), np.empty((1, 0), dtype=np.int64)
    log_start, log_transition = chain.logarithms()
    paths, scores = np.empty((n_paths, n_samples), dtype=np.int64), np.empty(n_paths)
    shape = (n_samples, k, n_paths)
    found = kernels.best_paths(
        np.ascontiguousarray(log_emission[:, :k]),
        log_start[:k],
        np.ascontiguousarray(log_transition[:k, :k]),
        n_paths,
        np.empty(shape),
        np.zeros(shape, dtype=np.int64),
        np.zeros(shape, dtype=np.int64),
        paths,
        scores,
    )
    return scores[:found], paths[:found]


def sample_posterior_paths(
    chain: Chain, log_emission: LogEmission, offsets: Integers, n_paths: int, rng: np.random.Generator
) -> Integers:
    """Paths from P(states | observations) by forward filtering, backward sampling: (n_paths, n_samples)."""
    filtered, scores = filter_states(chain, log_emission, offsets)
    if np.isneginf(scores).any():
        raise ValueError(f"sequence {int(np.argmin(scores))} has probability zero under the model: no path to sample")
    paths = np.empty((n_paths, int(offsets[-1])), dtype=np.int64)
    k = chain.n_states
    log_transition = np.ascontiguousarray(chain.logarithms()[1][:k, :k])
    kernels.sample_paths(filtered, offsets, log_transition, rng.random(paths.shape), np.empty(k), paths)
    return paths
