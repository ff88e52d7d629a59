"""Beta process cut off at K atoms: which of them a row uses, when each has a probability of its own.

``pi_k ~ Beta(a / K, b (K - 1) / K)`` and ``z_ik ~ Bernoulli(pi_k)``. Given n rows of which m_k use atom k,
``pi_k ~ Beta(a / K + m_k, b (K - 1) / K + n - m_k)``, and with the probabilities integrated out the next row uses it
with probability ``(a / K + m_k) / (a / K + b (K - 1) / K + n)``. As K grows, the rows become those of the Indian buffet
with the same two parameters.

``a / K`` is small: a probability that is drawn as such often rounds to zero, and its atom could never be used again.
Draws are therefore logarithms of pi and of 1 - pi.

References
----------
Paisley and Carin (2009), Nonparametric factor analysis with beta process priors, ICML.
Thibaux and Jordan (2007), Hierarchical beta processes and the Indian buffet process, AISTATS.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaln, digamma

from pluri.processes.indian_buffet import Binary, IndianBuffetProcess, as_binary
from pluri.processes.stick_draws import log_beta_draws
from pluri.validation import RandomState, as_generator, check_count, check_positive

Array = NDArray[np.float64]


class LogProbabilities(NamedTuple):
    """Logarithms of probabilities and of one minus them."""

    on: Array
    off: Array

    @property
    def log_odds(self) -> Array:
        """``log pi - log(1 - pi)``."""
        return self.on - self.off


@dataclass(frozen=True, eq=False)
class AtomProbabilities:
    """Independent Beta(first, second) distributions of the probabilities of atoms.

    Attributes
    ----------
    first, second : arrays of one shape
    """

    first: Any
    second: Any

    @property
    def mean(self) -> Array:
        """Mean of each probability."""
        return np.asarray(self.first / (self.first + self.second))

    @property
    def variance(self) -> Array:
        """Variance of each probability."""
        return np.asarray(self.mean * (1.0 - self.mean) / (self.first + self.second + 1.0))

    @property
    def expected_logs(self) -> LogProbabilities:
        """Means of the logarithms."""
        total = digamma(self.first + self.second)
        return LogProbabilities(digamma(self.first) - total, digamma(self.second) - total)

    def sample(self, random_state: RandomState = None) -> LogProbabilities:
        """Draw the logarithms, which are finite however small the parameters."""
        return LogProbabilities(*log_beta_draws(as_generator(random_state), self.first, self.second))


@dataclass(frozen=True)
class BetaProcess:
    """Beta process with a finite number of atoms, and the binary matrices that it gives.

    Parameters
    ----------
    a, b : float
        A row uses ``a K / (a + b (K - 1))`` of K atoms on average, about a / b if K is large. The larger both, the more
        alike are the probabilities from one draw to another.
    truncation : int
        Number of atoms K.

    See Also
    --------
    IndianBuffetProcess : the limit of infinitely many atoms.
    pluri.priors.BetaProcess : the same two numbers, as a prior that models take.

    Examples
    --------
    >>> from pluri.processes import BetaProcess
    >>> process = BetaProcess(2.0, 1.0, truncation=100)
    >>> round(process.mean_row_sum, 3), round(process.expected_n_features(5), 3)
    (1.98, 4.464)
    >>> Z = process.sample(5, random_state=0)
    >>> Z.shape, bool(process.log_marginal(Z) < 0)
    ((5, 100), True)
    >>> bool(process.posterior(Z.sum(axis=0), 5).mean.max() < 1)
    True
    """

    a: float
    b: float
    truncation: int

    def __post_init__(self) -> None:
        check_positive(self.a, "a")
        check_positive(self.b, "b")
        check_count(self.truncation, "truncation")

    @property
    def shapes(self) -> tuple[float, float]:
        """Parameters ``a / K`` and ``b (K - 1) / K`` of the beta distribution of each probability.

        A single atom, for which the second would be zero, has those of one of two.
        """
        K = max(self.truncation, 2)
        return self.a / K, self.b * (K - 1) / K

    @property
    def prior(self) -> AtomProbabilities:
        """Distribution of the probabilities of the K atoms."""
        return self.posterior(np.zeros(self.truncation), 0)

    def posterior(self, counts: ArrayLike, n_rows: Any) -> AtomProbabilities:
        """Distribution of the probabilities after `n_rows` rows of which `counts` use each atom.

        Parameters
        ----------
        counts : array-like of shape (..., K)
        n_rows : int, or array that broadcasts with `counts`
        """
        m, n = np.asarray(counts, dtype=np.float64), np.asarray(n_rows, dtype=np.float64)
        if m.shape[-1:] != (self.truncation,) or not ((m >= 0) & (m <= n)).all():
            raise ValueError(
                f"counts must be between 0 and n_rows for each of {self.truncation} atoms on the last axis, "
                f"got shape {m.shape} with values from {m.min(initial=0):g} to {m.max(initial=0):g}"
            )
        first, second = self.shapes
        return AtomProbabilities(first + m, second + (n - m))

    def sample_probabilities(self, random_state: RandomState = None) -> LogProbabilities:
        """Draw the probabilities of the atoms, as logarithms: two arrays of shape (K,)."""
        return self.prior.sample(random_state)

    def sample(self, n_samples: int, random_state: RandomState = None) -> Binary:
        """Draw a binary matrix of `n_samples` rows and K columns."""
        rng = as_generator(random_state)
        check_count(n_samples, "n_samples")
        return draw_used(rng, self.sample_probabilities(rng), n_samples)

    def log_marginal(self, Z: ArrayLike) -> float:
        """Log probability of a binary matrix of K columns, probabilities integrated out."""
        matrix = as_binary(Z)
        return float(self.log_evidence(matrix.sum(axis=0, dtype=np.int64), len(matrix)).sum())

    def log_evidence(self, counts: ArrayLike, n_rows: Any) -> Array:
        """Log probability of each column (not of its sum alone): ``log B(first, second)``, after minus before."""
        after = self.posterior(counts, n_rows)
        return np.asarray(betaln(after.first, after.second) - betaln(*self.shapes))

    @property
    def mean_row_sum(self) -> float:
        """Mean number of ones in a row, which is Binomial(K, a / (a + b (K - 1))) for K of at least 2."""
        return self.truncation * self._share

    @property
    def variance_row_sum(self) -> float:
        """Variance of the number of ones in a row."""
        return self.truncation * self._share * (1.0 - self._share)

    def expected_n_features(self, n_rows: int) -> float:
        """Mean number of atoms that at least one of `n_rows` rows uses."""
        return self.truncation * self._used(n_rows)

    def variance_n_features(self, n_rows: int) -> float:
        """Variance of the number of atoms that at least one of `n_rows` rows uses."""
        used = self._used(n_rows)
        return self.truncation * used * (1.0 - used)

    @property
    def limit(self) -> IndianBuffetProcess:
        """The process with infinitely many atoms."""
        return IndianBuffetProcess(self.a, self.b)

    @property
    def _share(self) -> float:
        first, second = self.shapes
        return first / (first + second)

    def _used(self, n_rows: int) -> float:
        first, second = self.shapes
        log_never = betaln(first, second + check_count(n_rows, "n_rows", 0)) - betaln(first, second)
        return float(-np.expm1(log_never))


def draw_used(rng: np.random.Generator, probabilities: LogProbabilities, n_rows: int) -> Binary:
    """Draw rows of zeros and ones given logarithms of shape (K,), or (n_rows, K) if each row has its own."""
    log_uniforms = np.log1p(-rng.random((n_rows, probabilities.on.shape[-1])))
    return (log_uniforms < probabilities.on).astype(np.int8)
