"""Random binary matrices with as many columns as they need: the Indian buffet.

Customer 1 takes Poisson(alpha) dishes; customer i takes each dish that was tasted by m others with probability
``m / i``, then Poisson(alpha / i) new ones. Two probabilities must be told apart. That of the very matrix, columns in
the order of the buffet, depends on the order of the rows:
``alpha^K exp(-alpha H_N) / prod_i K_i! prod_k (N - m_k)! (m_k - 1)! / N!`` with K_i the number of new dishes of
customer i. That of its left-ordered form (all matrices that differ by the order of columns) does not: the same with
``prod_h K_h!``, K_h being the number of equal columns of each kind.

References
----------
Griffiths and Ghahramani (2011), The Indian buffet process: an introduction and review, JMLR 12.
Teh, Gorur and Ghahramani (2007), Stick-breaking construction for the Indian buffet process, AISTATS.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from pluri.validation import RandomState, as_generator, check_count, check_positive

Array = NDArray[np.float64]
Binary = NDArray[np.int8]


def as_binary(Z: ArrayLike, name: str = "Z") -> Binary:
    """Check a binary matrix of at least one row."""
    matrix = np.asarray(Z)
    if matrix.ndim != 2 or not len(matrix):
        raise ValueError(f"{name} must have shape (n_rows, n_columns) with at least one row, got {matrix.shape}")
    if not np.isin(matrix, (0, 1)).all():
        raise ValueError(f"{name} must hold zeros and ones, got other values")
    return matrix.astype(np.int8)


def left_ordered_form(Z: ArrayLike) -> Binary:
    """Sort columns as binary numbers, first row most significant, largest first; empty columns are dropped.

    Examples
    --------
    >>> from pluri.processes import left_ordered_form
    >>> left_ordered_form([[0, 1, 0], [1, 0, 0], [1, 1, 0]])
    array([[1, 0],
           [0, 1],
           [1, 1]], dtype=int8)
    """
    matrix = as_binary(Z)
    matrix = matrix[:, matrix.any(axis=0)]
    # lexsort takes its last key first: rows are given from the bottom up, negated for descending order.
    return matrix[:, np.lexsort(-matrix[::-1])] if matrix.shape[1] else matrix


def harmonic(n: int) -> float:
    """Sum of 1/i, i = 1, ..., n."""
    return float(np.sum(1.0 / np.arange(1, n + 1)))


@dataclass(frozen=True)
class IndianBuffetProcess:
    """Indian buffet process.

    Parameters
    ----------
    alpha : float
        Mean number of ones in a row.

    Examples
    --------
    >>> from pluri.processes import IndianBuffetProcess
    >>> buffet = IndianBuffetProcess(2.0)
    >>> Z = buffet.sample(5, random_state=0)
    >>> len(Z), buffet.expected_n_features(5)
    (5, 4.5666667)
    """

    alpha: float

    def __post_init__(self) -> None:
        check_positive(self.alpha, "alpha")

    def expected_n_features(self, n_rows: int) -> float:
        """Mean, and also variance, of the number of columns: it is Poisson."""
        return self.alpha * harmonic(check_count(n_rows, "n_rows"))

    def sample(self, n_samples: int, random_state: RandomState = None) -> Binary:
        """Draw a matrix of `n_samples` rows, columns in the order of the buffet."""
        check_count(n_samples, "n_samples")
        rng = as_generator(random_state)
        new = rng.poisson(self.alpha / np.arange(1, n_samples + 1))
        ends = np.cumsum(new)
        Z = np.zeros((n_samples, int(ends[-1])), dtype=np.int8)
        tasted = np.zeros(Z.shape[1])
        for i in range(n_samples):
            old = ends[i - 1] if i else 0
            Z[i, :old] = rng.random(old) * (i + 1) < tasted[:old]
            Z[i, old : ends[i]] = 1
            tasted += Z[i]
        return Z

    def sample_sticks(
        self, n_samples: int, *, tail_mass: float = 1e-6, random_state: RandomState = None
    ) -> tuple[Binary, Array]:
        """Draw a matrix by sticks: column k has ones with probability ``mu_k = prod_{l<=k} v_l``, v_l ~ Beta(alpha, 1).

        Sticks are drawn until the ones expected in all the columns left out, ``n_samples alpha mu_k``, fall below
        `tail_mass`.

        Parameters
        ----------
        n_samples : int
        tail_mass : float, default=1e-6
        random_state : int, Generator or None

        Returns
        -------
        Z : array of shape (n_samples, n_columns)
            Columns without ones included.
        probabilities : array of shape (n_columns,)
            Decreasing.
        """
        check_count(n_samples, "n_samples")
        if not (np.ndim(tail_mass) == 0 and tail_mass > 0):
            raise ValueError(f"tail_mass must be a positive number, got {tail_mass!r}")
        rng = as_generator(random_state)
        # Given mu_k, the columns beyond it hold alpha mu_k ones per row on average.
        limit = math.log(tail_mass / (n_samples * self.alpha))
        logs: list[float] = []
        log_mu = 0.0
        while log_mu >= limit:
            log_mu += math.log1p(-rng.random()) / self.alpha
            logs.append(log_mu)
        probabilities = np.exp(logs)
        return (rng.random((n_samples, len(logs))) < probabilities).astype(np.int8), probabilities

    def logpmf(self, Z: ArrayLike, *, ordered: bool = False) -> float:
        """Log probability of a matrix.

        Parameters
        ----------
        Z : array-like of shape (n_rows, n_columns)
        ordered : bool, default=False
            False: of all matrices with the left-ordered form of Z, whose rows are exchangeable. True: of this very
            matrix, columns in the order of the buffet; minus infinity if that order is impossible.

        Returns
        -------
        float
        """
        matrix = as_binary(Z)
        n = len(matrix)
        counts = matrix.sum(axis=0, dtype=np.int64)
        if ordered:
            first = matrix.argmax(axis=0)
            if (counts == 0).any() or (np.diff(first) < 0).any():
                return -math.inf
            kinds = np.bincount(first, minlength=n)
        else:
            matrix = np.ascontiguousarray(matrix[:, counts > 0].T)
            counts = counts[counts > 0]
            histories: dict[bytes, int] = {}
            for column in matrix:
                key = column.tobytes()
                histories[key] = histories.get(key, 0) + 1
            kinds = np.array(list(histories.values()))
        log_columns = gammaln(n - counts + 1) + gammaln(counts) - gammaln(n + 1)
        log_weight = len(counts) * math.log(self.alpha) - self.alpha * harmonic(n)
        return float(log_weight - gammaln(kinds + 1.0).sum() + log_columns.sum())
