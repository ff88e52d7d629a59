"""Random binary matrices with as many columns as they need: the Indian buffet.

Customer 1 takes Poisson(alpha) dishes; customer i takes each dish that was tasted by m others with probability
``m / i``, then Poisson(alpha / i) new ones. Two probabilities must be told apart. That of the very matrix, columns in
the order of the buffet, depends on the order of the rows:
``alpha^K exp(-alpha H_N) / prod_i K_i! prod_k (N - m_k)! (m_k - 1)! / N!`` with K_i the number of new dishes of
customer i. That of its left-ordered form (all matrices that differ by the order of columns) does not: the same with
``prod_h K_h!``, K_h being the number of equal columns of each kind.

With a second parameter b, one of m tasters before is followed with probability ``m / (b + i - 1)`` and the new dishes
are Poisson(alpha / (b + i - 1)): rows hold alpha / b ones on average, and share the fewer dishes the larger b.
``(N - m_k)! (m_k - 1)! / N!`` becomes the beta function ``B(m_k, N - m_k + b)``.

References
----------
Griffiths and Ghahramani (2011), The Indian buffet process: an introduction and review, JMLR 12.
Teh, Gorur and Ghahramani (2007), Stick-breaking construction for the Indian buffet process, AISTATS.
Thibaux and Jordan (2007), Hierarchical beta processes and the Indian buffet process, AISTATS.
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


def harmonic(n: int, b: float = 1.0) -> float:
    """Sum of 1 / (b + i - 1), i = 1, ..., n."""
    return float(np.sum(1.0 / (b + np.arange(n))))


@dataclass(frozen=True)
class IndianBuffetProcess:
    """Indian buffet process.

    Parameters
    ----------
    alpha : float
        Mean number of ones in a row, times `b`.
    b : float, default=1.0
        The larger, the fewer dishes do rows share.

    See Also
    --------
    BetaProcess : the same with a finite number of columns.

    Examples
    --------
    >>> from pluri.processes import IndianBuffetProcess
    >>> buffet = IndianBuffetProcess(2.0)
    >>> Z = buffet.sample(5, random_state=0)
    >>> len(Z), buffet.expected_n_features(5)
    (5, 4.5666667)
    >>> round(IndianBuffetProcess(8.0, b=4.0).expected_n_features(5), 4)  # two ones in a row, too
    7.0762
    """

    alpha: float
    b: float = 1.0

    def __post_init__(self) -> None:
        check_positive(self.alpha, "alpha")
        check_positive(self.b, "b")

    def expected_n_features(self, n_rows: int) -> float:
        """Mean, and also variance, of the number of columns: it is Poisson."""
        return self.alpha * harmonic(check_count(n_rows, "n_rows"), self.b)

    def sample(self, n_samples: int, random_state: RandomState = None) -> Binary:
        """Draw a matrix of `n_samples` rows, columns in the order of the buffet."""
        check_count(n_samples, "n_samples")
        rng = as_generator(random_state)
        new = rng.poisson(self.alpha / (self.b + np.arange(n_samples)))
        ends = np.cumsum(new)
        Z = np.zeros((n_samples, int(ends[-1])), dtype=np.int8)
        tasted = np.zeros(Z.shape[1])
        for i in range(n_samples):
            old = ends[i - 1] if i else 0
            Z[i, :old] = rng.random(old) * (i + self.b) < tasted[:old]
            Z[i, old : ends[i]] = 1
            tasted += Z[i]
        return Z

    def sample_sticks(
        self, n_samples: int, *, tail_mass: float = 1e-6, random_state: RandomState = None
    ) -> tuple[Binary, Array]:
        """Draw a matrix by sticks: column k has ones with probability ``mu_k = prod_{l<=k} v_l``, v_l ~ Beta(alpha, 1).

        Sticks are drawn until the ones expected in all the columns left out, ``n_samples alpha mu_k``, fall below
        `tail_mass`. With `b` other than 1, a stick stays with probability ``(1 - mu)^b``, and Poisson(alpha / b)
        columns with probabilities Beta(1, b) join them, since
        ``alpha mu^-1 (1 - mu)^(b-1) = alpha mu^-1 (1 - mu)^b + alpha (1 - mu)^(b-1)``.

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
        if self.b != 1.0:
            stay = np.log1p(-rng.random(len(logs))) < self.b * np.log1p(-probabilities)
            extra = rng.beta(1.0, self.b, size=rng.poisson(self.alpha / self.b))
            probabilities = np.sort(np.concatenate([probabilities[stay], extra]))[::-1]
        return (rng.random((n_samples, len(probabilities))) < probabilities).astype(np.int8), probabilities

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
        log_columns = gammaln(n - counts + self.b) + gammaln(counts) - gammaln(n + self.b)
        log_weight = len(counts) * math.log(self.alpha) - self.alpha * harmonic(n, self.b)
        return float(log_weight - gammaln(kinds + 1.0).sum() + log_columns.sum())
