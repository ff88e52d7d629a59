"""Exact inference on a chain whose transitions depend on inputs: multinomial-logistic rows, one matrix for each step.

    P_t(i, j) = A_ij exp(w_ij . u_t) / sum_l A_il exp(w_il . u_t),

so that A is the transition matrix where all inputs are zero, and a zero of A is a zero of every P_t. Everything is done
in log space; an array of n_samples x k x k is made only for `best_paths`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pluri.components.chain import _driven_kernels as kernels
from pluri.components.chain.forward_backward import LogEmission, runs
from pluri.components.chain.paths import best_paths_of

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


class DrivenChain(NamedTuple):
    """log_start (k,), log_transition (k, k): log A, and coef (k, k, n_inputs): w."""

    log_start: Array
    log_transition: Array
    coef: Array

    @classmethod
    def from_probabilities(cls, start: Array, transition: Array, coef: Array) -> DrivenChain:
        """The chain of probabilities, among which may be zeros."""
        with np.errstate(divide="ignore"):
            return cls(np.log(start), np.log(transition), np.ascontiguousarray(coef))

    @property
    def n_states(self) -> int:
        """Number of states."""
        return len(self.log_start)

    def log_matrices(self, inputs: Array) -> Array:
        """Log P_t for inputs (n, n_inputs): (n, k, k)."""
        logits = self.log_transition + np.einsum("ijd,td->tij", self.coef, inputs)
        return np.asarray(logits - np.logaddexp.reduce(logits, axis=2, keepdims=True))


class DrivenSums(NamedTuple):
    """What a compiled smoother adds to.

    Attributes
    ----------
    starts : (k,): how often each state comes first
    pairs : (k, k): how often each pair follows
    gradient : (k, k, 1 + n_inputs): of the expected log-likelihood in log A_ij and w_ij, at the current parameters
    curvature : (k, k, k, products of (1, u)): minus its second derivative in each row, lower triangles
    """

    starts: Array
    pairs: Array
    gradient: Array
    curvature: Array

    @classmethod
    def zeros(cls, k: int, n_inputs: int) -> DrivenSums:
        """Nothing yet."""
        width = n_inputs + 1
        products = width * (width + 1) // 2
        return cls(np.zeros(k), np.zeros((k, k)), np.zeros((k, k, width)), np.zeros((k, k, k, products)))


@dataclass(frozen=True)
class DrivenSmoothed:
    """Weighted posteriors (n_samples, width), sums over all steps, and the log-likelihood of each sequence."""

    posterior: Array
    sums: DrivenSums
    scores: Array


def smooth(chain: DrivenChain, log_emission: Array, inputs: Array, offsets: Integers, weight: Array) -> DrivenSmoothed:
    """Forward-backward with what the M-step needs; `log_emission` (n_samples, width) may be padded."""
    k = chain.n_states
    rows = np.ascontiguousarray(log_emission[:, :k])
    filtered, scores = np.empty_like(rows), np.empty(len(offsets) - 1)
    kernels.filter_driven(rows, inputs, offsets, chain, np.empty_like(rows), filtered, scores)
    sums = DrivenSums.zeros(k, inputs.shape[1])
    posterior = np.zeros_like(log_emission)
    kernels.smooth_driven(rows, inputs, offsets, weight, chain, filtered, scores, posterior, sums)
    return DrivenSmoothed(posterior, sums, scores)


class ObservedDrivenChain(NamedTuple):
    """A driven chain, its inputs, the log densities of the observations, and where sequences begin and end."""

    chain: DrivenChain
    inputs: Array
    densities: LogEmission
    offsets: Integers

    def score(self, in_log_space: bool) -> Array:
        """Log-likelihood of each sequence."""
        return self._filter()[2]

    def smooth(self, in_log_space: bool) -> tuple[Array, Array]:
        """Log-likelihood of each sequence, and posteriors of the states (n_samples, k)."""
        _, filtered, scores = self._filter()
        posterior = np.empty_like(filtered)
        for first, last, rows, inputs, offsets in self._runs():
            here = slice(int(self.offsets[first]), int(self.offsets[last]))
            ones = np.ones(last - first)
            kernels.smooth_driven(
                rows, inputs, offsets, ones, self.chain, filtered[here], scores[first:last], posterior[here], None
            )
        return scores, posterior

    def viterbi(self) -> tuple[Array, Integers]:
        """Log probability of the best path of each sequence, and the paths end to end."""
        scores, path = np.empty(len(self.offsets) - 1), np.empty(int(self.offsets[-1]), dtype=np.int64)
        for first, last, rows, inputs, offsets in self._runs():
            here = slice(int(self.offsets[first]), int(self.offsets[last]))
            kernels.viterbi_driven(rows, inputs, offsets, self.chain, path[here], scores[first:last])
        return scores, path

    def best_paths(self, n_paths: int) -> tuple[Array, Integers]:
        """The most probable paths of the one sequence; one matrix is kept for each step."""
        matrices = self.chain.log_matrices(self.inputs)
        rows = np.ascontiguousarray(self.densities(0, len(self.inputs))[:, : self.chain.n_states])
        return best_paths_of(self.chain.log_start, matrices, rows, n_paths)

    def sample_paths(self, n_paths: int, rng: np.random.Generator) -> Integers:
        """Paths from their posterior: (n_paths, n_samples)."""
        _, filtered, scores = self._filter()
        if np.isneginf(scores).any():
            n = int(np.argmin(scores))
            raise ValueError(f"sequence {n} has probability zero under the model: no path to sample")
        paths = np.empty((n_paths, len(filtered)), dtype=np.int64)
        kernels.sample_driven(filtered, self.inputs, self.offsets, self.chain, rng.random(paths.shape), paths)
        return paths

    def filter(self) -> tuple[Array, Array]:
        """Log P(state_t | observations up to t), and the log-likelihood of each sequence."""
        return self._filter()[1:]

    def predicted(self) -> tuple[Array, Array]:
        """P(state_t | observations before t), and the log-likelihood of each sequence."""
        log_predicted, _, scores = self._filter()
        return np.exp(log_predicted), scores

    def _filter(self) -> tuple[Array, Array, Array]:
        shape = (int(self.offsets[-1]), self.chain.n_states)
        predicted, filtered, scores = np.empty(shape), np.empty(shape), np.empty(len(self.offsets) - 1)
        for first, last, rows, inputs, offsets in self._runs():
            here = slice(int(self.offsets[first]), int(self.offsets[last]))
            kernels.filter_driven(
                rows, inputs, offsets, self.chain, predicted[here], filtered[here], scores[first:last]
            )
        return predicted, filtered, scores

    def _runs(self) -> Iterator[tuple[int, int, Array, Array, Integers]]:
        """Consecutive sequences: numbers of the first and the last, log densities, inputs and offsets."""
        for first, last in runs(self.offsets):
            begin, end = int(self.offsets[first]), int(self.offsets[last])
            rows = np.ascontiguousarray(self.densities(begin, end)[:, : self.chain.n_states])
            yield first, last, rows, self.inputs[begin:end], self.offsets[first : last + 1] - begin
