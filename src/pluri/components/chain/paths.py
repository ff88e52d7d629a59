"""State paths of a chain: filtering, the best path or paths, and paths drawn from their posterior, on plain arrays.

Log densities come in as in `pluri.components.chain.forward_backward`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pluri.components.chain import _path_kernels as kernels
from pluri.components.chain.forward_backward import Chain, LogEmission, filter_one, runs

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


def filter_states(chain: Chain, log_emission: LogEmission, offsets: Integers) -> tuple[Array, Array]:
    """Log P(state_t | observations up to t): (n_samples, k), and the log-likelihood of each sequence."""
    k, n_samples = chain.n_states, int(offsets[-1])
    filtered = np.empty((n_samples, k))
    scores = np.zeros(len(offsets) - 1)
    for n, (begin, end) in enumerate(zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)):
        if end > begin:
            scores[n] = filter_one(chain, log_emission(begin, end), filtered[begin:end])
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
    k = chain.n_states
    log_start, log_transition = chain.logarithms()
    matrices = np.ascontiguousarray(log_transition[None, :k, :k])
    return best_paths_of(log_start[:k], matrices, np.ascontiguousarray(log_emission[:, :k]), n_paths)


def best_paths_of(log_start: Array, log_transition: Array, log_emission: Array, n_paths: int) -> tuple[Array, Integers]:
    """The same from logarithms: (k,), transitions (1, k, k) or one matrix a step, and densities (n_samples, k)."""
    n_samples, k = log_emission.shape
    if n_samples == 0:
        return np.zeros(1), np.empty((1, 0), dtype=np.int64)
    paths, scores = np.empty((n_paths, n_samples), dtype=np.int64), np.empty(n_paths)
    shape = (n_samples, k, n_paths)
    found = kernels.best_paths(
        log_emission,
        log_start,
        log_transition,
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
