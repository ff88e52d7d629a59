r"""Log evidence of words given their topics: the topics are integrated out, ``phi_k ~ Dirichlet(eta)``.

``p(w | z) = prod_k [Gamma(V eta) / Gamma(V eta + n_k) prod_w Gamma(eta + n_wk) / Gamma(eta)]``, whose second product
needs no more than how often each count occurs.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from pluri.priors.hyperpriors import Gamma
from pluri.topics.hdp.split_merge import WordIndex

Array = NDArray[np.float64]
Histogram = tuple[NDArray[np.int64], NDArray[np.int64]]


def count_histogram(index: WordIndex, labels: NDArray[np.int32], n_topics: int) -> Histogram:
    """Counts of a word in a topic that occur, zero left out, and how often; labels are from 0 to `n_topics` - 1."""
    from pluri.topics.hdp._gibbs_kernels import histogram_of

    times = np.zeros(int(np.diff(index.ends, prepend=0).max(initial=0)) + 1, dtype=np.int64)
    histogram_of(index.order, index.ends, labels, np.zeros(n_topics, dtype=np.int64), times)
    values = np.flatnonzero(times)
    return values, times[values]


def log_evidence(histogram: Histogram, sizes: NDArray[np.int64], n_words: int, eta: float) -> float:
    """Log p(w | z) from the counts of words in topics, as a histogram, and the sizes of the topics."""
    values, times = histogram
    words = float(times @ (gammaln(eta + values) - gammaln(eta)))
    return words + float((gammaln(n_words * eta) - gammaln(n_words * eta + sizes)).sum())


def draw_word_prior(
    rng: np.random.Generator, histogram: Histogram, sizes: NDArray[np.int64], n_words: int, eta: float,
    prior: Gamma,
) -> float:  # fmt: skip
    """Draw eta given the counts of words, by a step of slice sampling on the scale of its logarithm."""
    from pluri.inference.mcmc.slice_sampling import Slice

    def log_density(x: Array) -> float:
        value = math.exp(x[0])
        return log_evidence(histogram, sizes, n_words, value) + prior.log_density(value) + x[0]

    kernel = Slice(log_density, width=0.5)
    state, _ = kernel.step(rng, kernel.init(rng, np.array([math.log(eta)])))
    return math.exp(float(state.position[0]))
