r"""Probability vectors that differ: a determinantal point process on the simplex, of rank V and exactly known.

With features :math:`\phi(a) = \sqrt a` (so that the kernel is Bhattacharyya's coefficient) over the base measure
Dirichlet(:math:`\eta`) the second moment is

.. math:: C_{ii} = \frac{\eta_i}{\eta_0}, \qquad C_{ij} = \frac{\Gamma(\eta_i + \frac12) \Gamma(\eta_j + \frac12)}
   {\Gamma(\eta_i) \Gamma(\eta_j) \, \eta_0}

and k rows in V columns, :math:`p(a_1, \ldots, a_k) \propto \det \tilde K \prod_i \mathrm{Dir}(a_i; \eta)`, have the
normaliser :math:`k! \, e_k(\lambda)`. For k = V this is the distribution of `pluri.priors.sample_diverse_rows`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from pluri.processes.dpp.continuous.gaussian import log_determinant
from pluri.processes.dpp.continuous.projection_points import draw_sets
from pluri.processes.dpp.kernel_forms import Array, IntArray
from pluri.processes.dpp.sizes import number_of_draws
from pluri.processes.dpp.structured.directions import check_size, log_normalizer, take_directions
from pluri.validation import RandomState, as_generator


class DirichletDPP:
    """A determinantal point process whose points are probability vectors.

    Parameters
    ----------
    concentration : array_like (n_columns,)
        Dirichlet concentrations of the base measure; or one number, with ``n_columns``.
    n_columns : int, optional
        Length of the vectors.
    amplitude : float, default=1.0
        Factor of the kernel; it matters only where the number of rows is left random.

    Attributes
    ----------
    log_odds : ndarray (n_columns,)
        Logarithms of the eigenvalues, largest first.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.processes.dpp.continuous.diverse_simplex import DirichletDPP
    >>> process = DirichletDPP(1.0, 6)
    >>> rows = process.sample(size=3, random_state=0)
    >>> rows.shape, bool(np.allclose(rows.sum(axis=1), 1))
    ((3, 6), True)
    >>> round(DirichletDPP(1.0, 3).expected_determinant(3), 6)
    0.02631
    """

    log_odds: Array

    def __init__(self, concentration: ArrayLike = 1.0, n_columns: int | None = None, *, amplitude: float = 1.0) -> None:
        given = np.asarray(concentration, dtype=np.float64)
        if given.ndim == 0 and n_columns is None:
            raise ValueError("n_columns must be given where concentration is one number")
        width = given.size if n_columns is None else n_columns
        if isinstance(width, bool) or width != int(width) or width < 1 or given.shape not in ((), (width,)):
            raise ValueError(
                f"concentration must be a vector of n_columns, got shape {given.shape} and n_columns {n_columns!r}"
            )
        if not ((given > 0) & (given <= 1e4)).all():
            # Beyond 1e4 the rows are so alike that rounding spoils the smallest eigenvalues.
            raise ValueError(f"concentration must be positive and at most 1e4, got {given.tolist()}")
        if not (np.isfinite(amplitude) and amplitude > 0):
            raise ValueError(f"amplitude must be positive and finite, got {amplitude!r}")
        self.concentration = np.array(np.broadcast_to(given, int(width)))
        self.amplitude = float(amplitude)
        values, vectors = np.linalg.eigh(self.moment)
        self._values, self._vectors = values[::-1].copy(), vectors[:, ::-1].copy()
        self.log_odds = np.log(self._values) + math.log(self.amplitude)

    @property
    def moment(self) -> Array:
        """Second moment of the square roots under the base measure."""
        half = np.exp([math.lgamma(value + 0.5) - math.lgamma(value) for value in self.concentration])
        total = float(self.concentration.sum())
        moment = np.outer(half, half) / total
        np.fill_diagonal(moment, self.concentration / total)
        return moment

    @property
    def n_columns(self) -> int:
        """Length of the vectors."""
        return int(self.concentration.size)

    @property
    def rank(self) -> int:
        """Largest number of rows."""
        return self.n_columns

    @property
    def expected_size(self) -> float:
        """Mean number of rows where it is left random."""
        return float(np.exp(-np.logaddexp(0.0, -self.log_odds)).sum())

    @property
    def log_normalizer(self) -> float:
        """``log prod_n (1 + lambda_n)``."""
        return log_normalizer(self.log_odds, None)

    def expected_determinant(self, size: int) -> float:
        """Mean of ``det`` of the kernel over ``size`` independent rows of the base measure: ``size! e_size``."""
        wanted = check_size(size, self.rank)
        return math.exp(math.lgamma(size + 1) + log_normalizer(self.log_odds, wanted))

    def kernel(self, rows: ArrayLike, others: ArrayLike) -> Array:
        """``amplitude * sum_v sqrt(a_v b_v)`` of all pairs."""
        return np.asarray(self.amplitude * np.sqrt(self._check(rows)) @ np.sqrt(self._check(others)).T)

    def log_prob(self, rows: ArrayLike, size: int | None = None) -> float:
        """Log density of an unordered set of rows with respect to the unit-rate Poisson process on the base measure.

        With ``size`` it is that of the process with a fixed number of rows.
        """
        checked = self._check(rows)
        if size is not None and len(checked) != check_size(size, self.rank):
            return -np.inf
        return log_determinant(self.kernel(checked, checked)) - log_normalizer(self.log_odds, size)

    def sample(
        self, n_samples: int | None = None, size: int | None = None, random_state: RandomState = None
    ) -> Array | list[Array]:
        """Draw sets of rows exactly: an array (n_rows, n_columns), or a list of ``n_samples``.

        ``size`` fixes the number of rows, at most ``n_columns``; the order of the rows says nothing.
        """
        count, rng = number_of_draws(n_samples), as_generator(random_state)
        taken, counts = take_directions(self.log_odds, count, check_size(size, self.rank), rng)
        draws = draw_sets(
            rng, taken, counts, self._draw_base, self._functions, self._values, length=1.0, mass=1.0
        )  # fmt: skip
        return draws[0] if n_samples is None else draws

    def _functions(self, rows: Array, chosen: IntArray) -> Array:
        return np.asarray(np.sqrt(rows) @ (self._vectors[:, chosen] / np.sqrt(self._values[chosen])))

    def _draw_base(self, rng: np.random.Generator, n: int) -> Array:
        return rng.dirichlet(self.concentration, size=n)

    def _check(self, rows: ArrayLike) -> Array:
        values = np.asarray(rows, dtype=np.float64)
        if values.size == 0:
            return np.empty((0, self.n_columns))
        if values.ndim != 2 or values.shape[1] != self.n_columns:
            raise ValueError(f"rows must have {self.n_columns} columns, got shape {values.shape}")
        if not ((values >= 0).all() and np.allclose(values.sum(axis=1), 1.0, atol=1e-8)):
            raise ValueError("rows must be probability vectors: not negative, with a sum of 1")
        return values

    def __repr__(self) -> str:
        return f"DirichletDPP(n_columns={self.n_columns})"
