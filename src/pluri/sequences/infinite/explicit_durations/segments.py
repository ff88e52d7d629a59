"""Exact inference for a hidden semi-Markov model whose parameters are known: segments in place of steps.

See `pluri.sequences.infinite.explicit_durations._segment_kernels` for the messages. Time grows with the square of the
length of a sequence, because a segment may have any length.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pluri.sequences.infinite.explicit_durations._segment_kernels import (
    SegmentLaw,
    choose_best,
    draw_forwards,
    pass_backwards,
    pass_forwards,
)

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


def segment_law(start: Array, rows: Array, tables: tuple[Array, Array]) -> SegmentLaw:
    """Probabilities of first states (K,) and of next ones (K, K), and log probabilities of durations, for the loops.

    The diagonal of `rows` is not looked at.
    """
    with np.errstate(divide="ignore"):
        return SegmentLaw(np.log(start), np.log(rows), *(np.ascontiguousarray(table) for table in tables))


def draw_segments(rng: np.random.Generator, law: SegmentLaw, log_density: Array, offsets: Integers) -> Integers:
    """States of all steps from their posterior; `log_density` is (n_steps, K)."""
    uniforms, states = rng.random((len(log_density), 2)), np.empty(len(log_density), dtype=np.int64)
    for begin, end, own in _sequences(log_density, offsets):
        ends, begins = np.empty((len(own), own.shape[1] + 1)), np.empty(own.shape)
        pass_backwards(law, own, ends, begins)
        draw_forwards(law, own, ends, begins, uniforms[begin:end], states[begin:end])
    return states


def _sequences(log_density: Array, offsets: Integers) -> list[tuple[int, int, Array]]:
    """Begin, end and log densities, states first, of each sequence that is not empty."""
    bounds = pairwise(offsets.tolist())
    return [(begin, end, np.ascontiguousarray(log_density[begin:end].T)) for begin, end in bounds if begin < end]


def draw_continuations(
    rng: np.random.Generator, law: SegmentLaw, log_density: Array, horizon: int, n_paths: int
) -> Integers:
    """States of the steps after a sequence with log densities (n_steps, K), many times: (n_paths, horizon)."""
    n, k = log_density.shape
    own = np.ascontiguousarray(np.vstack([log_density, np.zeros((horizon, k))]).T)
    ends, begins = np.empty((k, n + horizon + 1)), np.empty(own.shape)
    pass_backwards(law, own, ends, begins)
    out, states = np.empty((n_paths, horizon), dtype=np.int64), np.empty(n + horizon, dtype=np.int64)
    for path, uniforms in zip(out, rng.random((n_paths, n + horizon, 2))):
        draw_forwards(law, own, ends, begins, uniforms, states)
        path[:] = states[n:]
    return out


class ObservedSegments(NamedTuple):
    """A semi-Markov chain, log densities (n_steps, K) of sequences that lie end to end, and where these begin.

    The same questions as to `pluri.sequences.observed_chain.ObservedChain`.
    """

    law: SegmentLaw
    log_density: Array
    offsets: Integers

    def score(self, in_log_space: bool = True) -> Array:
        """Log-likelihood of each sequence."""
        return self._messages()[0]

    def _messages(self) -> tuple[Array, list[tuple[int, int, Array, Array, Array]]]:
        scores, messages = np.zeros(len(self.offsets) - 1), []
        filled = np.flatnonzero(np.diff(self.offsets) > 0)
        for n, (begin, end, own) in zip(filled, _sequences(self.log_density, self.offsets)):
            ends, begins = np.empty((len(own), own.shape[1] + 1)), np.empty(own.shape)
            pass_backwards(self.law, own, ends, begins)
            scores[n] = np.logaddexp.reduce(self.law.log_start + begins[:, 0])
            messages.append((begin, end, own, ends, begins))
        return scores, messages

    def smooth(self, in_log_space: bool = True) -> tuple[Array, Array]:
        """Log-likelihood of each sequence, and posteriors of the states (n_steps, K)."""
        scores, messages = self._messages()
        posteriors = np.empty(self.log_density.shape)
        for begin, end, own, ends, begins in messages:
            ended, began, lasts = (np.empty(ends.shape) for _ in range(3))
            pass_forwards(self.law, own, ended, began, lasts)
            score = np.logaddexp.reduce(self.law.log_start + begins[:, 0])
            # Whoever has begun and not ended is there.
            there = np.cumsum(np.exp(began[:, :-1] + begins - score), axis=1)
            there[:, 1:] -= np.cumsum(np.exp(ended[:, 1:-1] + ends[:, 1:-1] - score), axis=1)
            there = np.maximum(there, 0.0)
            posteriors[begin:end] = (there / there.sum(axis=0)).T
        return scores, posteriors

    def viterbi(self) -> tuple[Array, Integers]:
        """Log probability of the best segments of each sequence, and the states of all steps."""
        scores, states = np.zeros(len(self.offsets) - 1), np.empty(len(self.log_density), dtype=np.int64)
        filled = np.flatnonzero(np.diff(self.offsets) > 0)
        for n, (begin, end, own) in zip(filled, _sequences(self.log_density, self.offsets)):
            ends, begins = np.empty((len(own), own.shape[1] + 1)), np.empty(own.shape)
            lasting = np.empty(own.shape, dtype=np.int64)
            scores[n] = choose_best(self.law, own, ends, begins, lasting, states[begin:end])
        return scores, states

    def best_paths(self, n_paths: int) -> tuple[Array, Integers]:
        """Not for semi-Markov chains."""
        raise AttributeError("a model with durations has no list of best paths: see decode and sample_paths")

    def sample_paths(self, n_paths: int, rng: np.random.Generator) -> Integers:
        """Paths from their posterior: (n_paths, n_steps)."""
        draws = [draw_segments(rng, self.law, self.log_density, self.offsets) for _ in range(n_paths)]
        return np.array(draws, dtype=np.int64)

    def filter(self) -> tuple[Array, Array]:
        """Log P(state_t | observations up to t), and the log-likelihood of each sequence."""
        scores, log_filtered = np.zeros(len(self.offsets) - 1), np.empty(self.log_density.shape)
        filled = np.flatnonzero(np.diff(self.offsets) > 0)
        for n, (begin, end, own) in zip(filled, _sequences(self.log_density, self.offsets)):
            ended, began, lasts = (np.empty((len(own), own.shape[1] + 1)) for _ in range(3))
            pass_forwards(self.law, own, ended, began, lasts)
            so_far = np.logaddexp.reduce(lasts[:, 1:], axis=0)
            log_filtered[begin:end], scores[n] = (lasts[:, 1:] - so_far).T, so_far[-1]
        return log_filtered, scores

    def coming(self, horizon: int) -> Array:
        """Probabilities of the states after each sequence, (n_sequences, horizon, K); the law covers these steps."""
        k = self.log_density.shape[1]
        out = np.empty((len(self.offsets) - 1, horizon, k))
        for n, (begin, end) in enumerate(pairwise(self.offsets.tolist())):
            longer = np.vstack([self.log_density[begin:end], np.zeros((horizon, k))])
            _, posteriors = ObservedSegments(self.law, longer, np.array([0, len(longer)])).smooth()
            out[n] = posteriors[end - begin :]
        return out
