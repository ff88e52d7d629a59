"""A chain and what was observed of it: exact inference, sequence by sequence, on the plain functions of the chain."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pluri.components.chain import forward_backward as inference
from pluri.components.chain import paths as state_paths
from pluri.components.chain.forward_backward import Chain, LogEmission

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


class ObservedChain(NamedTuple):
    """A chain, the log densities of the observations, and where sequences begin and end."""

    chain: Chain
    densities: LogEmission
    offsets: Integers

    def score(self, in_log_space: bool) -> Array:
        """Log-likelihood of each sequence."""
        return inference.score(self.chain, self.densities, self.offsets, in_log_space=in_log_space)

    def smooth(self, in_log_space: bool) -> tuple[Array, Array]:
        """Log-likelihood of each sequence, and posteriors of the states (n_samples, k)."""
        chain, densities, offsets = self
        posteriors = np.empty((int(offsets[-1]), chain.n_states))
        scores = np.empty(len(offsets) - 1)
        for first, last in inference.runs(offsets):
            begin, end = int(offsets[first]), int(offsets[last])

            def shifted(left: int, right: int, begin: int = begin) -> Array:
                return densities(begin + left, begin + right)

            def keep(left: int, right: int, posterior: Array, begin: int = begin) -> None:
                posteriors[begin + left : begin + right] = posterior[:, : chain.n_states]

            if last == first + 1 and end - begin > inference.BLOCK and not in_log_space:
                result = inference.smooth_long(chain, shifted, end - begin, 1.0, keep)
            else:
                ones = np.ones(last - first)
                result = inference.smooth(
                    chain, shifted, offsets[first : last + 1] - begin, ones, in_log_space=in_log_space
                )
                keep(0, end - begin, result.posterior)
            scores[first:last] = result.scores
        return scores, posteriors

    def viterbi(self) -> tuple[Array, Integers]:
        """Log probability of the best path of each sequence, and the paths end to end."""
        return state_paths.viterbi(self.chain, self.densities, self.offsets)

    def best_paths(self, n_paths: int) -> tuple[Array, Integers]:
        """The most probable paths of the one sequence."""
        return state_paths.best_paths(self.chain, self.densities(0, int(self.offsets[-1])), n_paths)

    def sample_paths(self, n_paths: int, rng: np.random.Generator) -> Integers:
        """Paths from their posterior: (n_paths, n_samples)."""
        return state_paths.sample_posterior_paths(self.chain, self.densities, self.offsets, n_paths, rng)

    def filter(self) -> tuple[Array, Array]:
        """Log P(state_t | observations up to t), and the log-likelihood of each sequence."""
        return state_paths.filter_states(self.chain, self.densities, self.offsets)

    def predicted(self) -> tuple[Array, Array]:
        """P(state_t | observations before t), and the log-likelihood of each sequence."""
        log_filtered, scores = self.filter()
        k = self.chain.n_states
        predicted = np.empty_like(log_filtered)
        predicted[1:] = np.exp(log_filtered[:-1]) @ self.chain.transition[:k, :k]
        predicted[self.offsets[:-1][np.diff(self.offsets) > 0]] = self.chain.start[:k]
        return predicted, scores
