"""Exact inference on a chain: smoothing and scoring on plain arrays; see `pluri.components.chain.paths` for the rest.

A chain is its start distribution and transition matrix; observations enter only through their log densities
``log_emission`` (n_samples, padded width). The recursions are scaled (Rabiner 1989) after dividing each row by its
largest entry, and done again in log space for the rare sequence that still underflows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pluri.components.chain import _kernels as kernels
from pluri.components.chain._log_space import filter_in_log_space, smooth_in_log_space
from pluri.engine.aligned import apart, padded_width, zeros_apart

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


class Chain(NamedTuple):
    """Start (K,) and transition (K, K) probabilities, padded with impossible states for the compiled functions.

    `has_gaps` is whether some transition is (all but) forbidden: only then can a rounded-off state matter later.
    """

    start: Array
    transition: Array
    transposed: Array
    n_states: int
    has_gaps: bool

    @classmethod
    def from_probabilities(cls, start: Array, transition: Array) -> Chain:
        """Pad ``start`` (k,) and ``transition`` (k, k); they need not be normalised."""
        k = len(start)
        width = padded_width(k)
        padded_start = np.zeros(width)
        padded_start[:k] = start
        padded = np.zeros((width, width))
        padded[:k, :k] = transition
        has_gaps = bool((padded[:k, :k] < FORBIDDEN).any())
        return cls(padded_start, padded, np.ascontiguousarray(padded.T), k, has_gaps)

    @property
    def width(self) -> int:
        """Padded number of states."""
        return len(self.start)

    def logarithms(self) -> tuple[Array, Array]:
        """Log start and log transition probabilities, padded with -inf."""
        with np.errstate(divide="ignore"):
            return np.log(self.start), np.log(self.transition)


class Steps(NamedTuple):
    """Consecutive steps for the compiled functions.

    Attributes
    ----------
    likelihood : (n_samples, K): densities, divided by the largest of each step
    maxima : (n_samples,): logarithms of these largest ones
    inverse_scale : (n_samples,): what the forward pass multiplies each step by, written by it
    offsets : (n_sequences + 1,): where each sequence begins and ends
    """

    likelihood: Array
    maxima: Array
    inverse_scale: Array
    offsets: Integers

    @classmethod
    def of(cls, log_emission: Array, offsets: Integers) -> Steps:
        """Steps of log densities, which are overwritten."""
        maxima = apart(len(log_emission))
        kernels.exponentiate(log_emission, maxima)
        return cls(log_emission, maxima, apart(len(log_emission)), offsets)


class Sums(NamedTuple):
    """What a compiled smoother adds to and writes: starts (K,), pairs (K, K) and scores (n_sequences,)."""

    starts: Array
    pairs: Array
    scores: Array


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
    scores = apart(len(offsets) - 1)
    scores.fill(np.nan)
    sums = Sums(zeros_apart(width), zeros_apart((width, width)), scores)
    posterior = apart((n_samples, width))
    if not in_log_space:
        steps = Steps.of(log_emission(0, n_samples), offsets)
        kernels.smooth_sequences(steps, weight, chain, posterior, apart((3, width)), sums)
    starts, pairs = sums.starts[:k], sums.pairs[:k, :k] * chain.transition[:k, :k]
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


class _Block(NamedTuple):
    """The forward pass through some consecutive steps of one sequence."""

    steps: Steps
    alpha: Array

    @classmethod
    def after(cls, before: Array, chain: Chain, log_emission: Array, alpha: Array, *, first: bool) -> _Block | None:
        """The pass from the filtered distribution `before` (the start if `first`) into `alpha`; None on underflow."""
        length = len(log_emission)
        steps = Steps.of(log_emission, np.array([0, length]))
        good = kernels.forward(steps, 0, length, before, chain.transition, first, alpha, apart(chain.width))
        return cls(steps, alpha) if good else None

    def log_likelihood(self) -> float:
        """Log-likelihood of these steps, given those before."""
        return float(kernels.log_scale(self.steps, 0, len(self.alpha)))


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
    before = zeros_apart((len(edges), width))
    before[0] = chain.start

    def forward(b: int) -> _Block | None:
        rows = log_emission(edges[b], edges[b + 1])
        return _Block.after(before[b], chain, rows, apart(rows.shape), first=b == 0)

    score, kept = 0.0, []
    for b in range(len(edges) - 1):
        block = forward(b)
        if block is None:
            return _smooth_whole(chain, log_emission, n_samples, weight, consume)
        score += block.log_likelihood()
        before[b + 1] = block.alpha[-1]
        if n_samples <= LONG:
            kept.append(block)
    if chain.has_gaps and not _keeps_footing(chain, lambda b: kept[b] if kept else forward(b), len(edges) - 1):
        return _smooth_whole(chain, log_emission, n_samples, weight, consume)
    beta, pairs, nothing = apart((1, width)), zeros_apart((width, width)), zeros_apart((1, width))
    beta.fill(1.0)
    starts = np.zeros(k)
    for b in reversed(range(len(edges) - 1)):
        block = kept.pop() if kept else forward(b)
        assert block is not None
        previous = before[b : b + 1] if b else nothing
        kernels.backward(block.steps, 0, len(block.alpha), weight, chain.transposed, block.alpha, beta, previous, pairs)
        consume(edges[b], edges[b + 1], block.alpha)
        starts = block.alpha[0, :k]
    return Smoothed(np.empty((0, width)), starts, pairs[:k, :k] * chain.transition[:k, :k], np.array([score]))


def _keeps_footing(chain: Chain, block_of: Callable[[int], _Block | None], n_blocks: int) -> bool:
    """Look for backward variables that are too large, from the last block to the first."""
    beta, work = apart((1, chain.width)), apart((1, chain.width))
    beta.fill(1.0)
    for b in reversed(range(n_blocks)):
        block = block_of(b)
        assert block is not None
        if not kernels.keeps_footing(block.steps, 0, len(block.alpha), chain.transposed, beta, work):
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
    scores = apart(len(offsets) - 1)
    scores.fill(np.nan)
    if not in_log_space:
        steps = Steps.of(log_emission(begin, end), offsets - begin)
        kernels.score_sequences(steps, chain, apart((4, chain.width)), scores)
    for n in np.flatnonzero(np.isnan(scores)):
        rows = log_emission(int(offsets[n]), int(offsets[n + 1]))
        scores[n] = filter_one(chain, rows, np.empty((len(rows), chain.n_states))) if len(rows) else 0.0
    return scores


def _score_long(chain: Chain, log_emission: LogEmission, begin: int, end: int) -> float:
    before, total = chain.start, 0.0
    alpha = apart((BLOCK, chain.width))  # one for all blocks: the first touch of fresh memory is slow
    for left in range(begin, end, BLOCK):
        rows = log_emission(left, min(left + BLOCK, end))
        block = _Block.after(before, chain, rows, alpha[: len(rows)], first=left == begin)
        if block is None:
            rows = log_emission(begin, end)
            return filter_one(chain, rows, np.empty((len(rows), chain.n_states)))
        total += block.log_likelihood()
        before = block.alpha[-1].copy()
    return total


def filter_one(chain: Chain, log_emission: Array, log_filtered: Array) -> float:
    """Write log P(state_t | observations up to t) of one sequence (n_samples, k); return its log-likelihood."""
    log_start, log_transition = chain.logarithms()
    k = chain.n_states
    rows = np.ascontiguousarray(log_emission[:, :k])
    return float(filter_in_log_space(rows, log_start[:k], log_transition[:k, :k], log_filtered))
