r"""A determinantal point process in space that is known in closed form: Gaussian kernel, Gaussian base measure.

With the kernel :math:`\alpha e^{-\epsilon^2 (x - y)^2}` and the base density :math:`(a / \sqrt\pi) e^{-a^2 x^2}` the
eigenvalues of the integral operator fall geometrically and its eigenfunctions are Hermite functions,

.. math:: \lambda_n = \alpha \sqrt{\frac{a^2}{S}} \left(\frac{\epsilon^2}{S}\right)^{n-1}, \quad
   S = a^2 + \delta^2 + \epsilon^2, \quad \delta^2 = \tfrac{a^2}{2} (b^2 - 1), \quad
   b = \left(1 + (2 \epsilon / a)^2\right)^{1/4}

and in several dimensions products of them. The distribution function of a squared Hermite function is closed too,
:math:`\int_{-\infty}^t \psi_n^2 = \tfrac12 \mathrm{erfc}(-t) - \sum_{m \le n} \psi_m \psi_{m-1} / \sqrt{2m}`, so that
draws are exact to rounding.

References
----------
.. [1] R. H. Affandi, E. B. Fox and B. Taskar, "Approximate inference in continuous determinantal processes", NeurIPS
   2013.
.. [2] G. E. Fasshauer and M. J. McCourt, "Stable evaluation of Gaussian radial basis function interpolants", SIAM
   Journal on Scientific Computing 34, 2012.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from pluri.processes.dpp.continuous.point_process import PointProcess, as_points, scale_odds
from pluri.processes.dpp.kernel_forms import Array, IntArray
from pluri.processes.dpp.sizes import number_of_draws
from pluri.processes.dpp.structured.directions import check_size, take_directions
from pluri.validation import RandomState, as_generator

#: Eigenfunctions are left out when all of them together are taken with a probability below this.
LEFT_OUT = 1e-9
#: More eigenfunctions than this are refused.
MOST_FUNCTIONS = 20_000
#: Pivots below this are rounding of zero.
NO_VOLUME = 1e-14
#: Proposals for one point of a set of one; the mean for the last of k is k.
PATIENCE = 500


def gaussian_eigenvalues(a: float, epsilon: float, n: int) -> Array:
    """The largest ``n`` eigenvalues of ``exp(-epsilon^2 (x - y)^2)`` under the density ``a / sqrt(pi) exp(-a^2 x^2)``.

    Examples
    --------
    >>> from pluri.processes.dpp.continuous.gaussian import gaussian_eigenvalues
    >>> gaussian_eigenvalues(1.0, 1.3, 4).round(6)
    array([0.528307, 0.249199, 0.117545, 0.055445])
    """
    log_first, log_ratio, _ = _constants(np.array([a], dtype=np.float64), np.array([epsilon], dtype=np.float64))
    return np.asarray(np.exp(log_first + log_ratio * np.arange(n)))


def _constants(a: Array, epsilon: Array) -> tuple[Array, Array, Array]:
    """Logarithms of the first eigenvalue and of the ratio of two, and the factor a b of the coordinates."""
    b = (1.0 + (2.0 * epsilon / a) ** 2) ** 0.25
    total = a**2 + 0.5 * a**2 * (b**2 - 1.0) + epsilon**2
    return np.log(a) - 0.5 * np.log(total), 2.0 * np.log(epsilon) - np.log(total), a * b


class GaussianContinuousDPP(PointProcess):
    """Points in space that repel each other: Gaussian kernel over a Gaussian base measure, everything exact.

    The kernel is ``amplitude * exp(-|x - y|^2 / (2 length_scale^2))``, the base measure the normal distribution with
    the given mean and standard deviations.

    Parameters
    ----------
    length_scale : float or array_like (n_dimensions,), default=1.0
        How far points see each other, in each dimension.
    scale : float or array_like (n_dimensions,), default=1.0
        Standard deviations of the base measure.
    amplitude : float, default=1.0
        Of the kernel; the expected number of points is below it.
    mean : float or array_like (n_dimensions,), default=0.0
        Of the base measure.
    n_dimensions : int, optional
        Where none of the others says so; 1 by default.

    Attributes
    ----------
    log_odds : ndarray (rank,)
        Logarithms of the eigenvalues, largest first. Those left out sum to less than 1e-9.
    orders : ndarray (rank, n_dimensions)
        Orders of their Hermite functions.

    Examples
    --------
    >>> from pluri.processes.dpp.continuous.gaussian import GaussianContinuousDPP
    >>> process = GaussianContinuousDPP(0.3, n_dimensions=2).with_expected_size(20)
    >>> points = process.sample(random_state=0)
    >>> points.shape[1], round(process.expected_size, 6)
    (2, 20.0)
    """

    orders: IntArray

    def __init__(
        self,
        length_scale: ArrayLike = 1.0,
        scale: ArrayLike = 1.0,
        *,
        amplitude: float = 1.0,
        mean: ArrayLike = 0.0,
        n_dimensions: int | None = None,
    ) -> None:
        arrays = [np.asarray(values, dtype=np.float64) for values in (length_scale, scale, mean)]
        sizes = {values.size for values in arrays if values.ndim} | ({n_dimensions} if n_dimensions else set())
        if any(values.ndim > 1 for values in arrays) or len(sizes) > 1 or 0 in sizes:
            raise ValueError(
                "length_scale, scale and mean must be numbers or vectors of n_dimensions, got shapes "
                f"{[values.shape for values in arrays]} and n_dimensions {n_dimensions!r}"
            )
        dim = sizes.pop() if sizes else 1
        self.length_scale, self.scale, self.mean = (np.array(np.broadcast_to(values, dim)) for values in arrays)
        for name, values in (("length_scale", self.length_scale), ("scale", self.scale)):
            if not ((values > 0) & np.isfinite(values)).all():
                raise ValueError(f"{name} must be positive and finite, got {values.tolist()}")
        if not np.isfinite(self.mean).all():
            raise ValueError(f"mean must be finite, got {self.mean.tolist()}")
        if not (np.isfinite(amplitude) and amplitude > 0):
            raise ValueError(f"amplitude must be positive and finite, got {amplitude!r}")
        self.amplitude = float(amplitude)
        self._a = np.sqrt(0.5) / self.scale
        log_first, log_ratio, self._stretch = _constants(self._a, np.sqrt(0.5) / self.length_scale)
        self.orders, log_values = _leading_products(log_first, log_ratio, LEFT_OUT / max(self.amplitude, LEFT_OUT))
        self.log_odds = log_values + np.log(self.amplitude)

    @property
    def n_dimensions(self) -> int:
        """Number of coordinates."""
        return int(self.mean.size)

    def with_expected_size(self, expected_size: float) -> GaussianContinuousDPP:
        """The process with the amplitude that gives this many points on average."""
        amplitude = self.amplitude
        # A larger amplitude brings in eigenfunctions that were left out: twice is enough.
        for _ in range(2):
            made = GaussianContinuousDPP(self.length_scale, self.scale, amplitude=amplitude, mean=self.mean)
            amplitude *= scale_odds(made.log_odds, expected_size)
        return GaussianContinuousDPP(self.length_scale, self.scale, amplitude=amplitude, mean=self.mean)

    def kernel(self, X: ArrayLike, Y: ArrayLike) -> Array:
        """``L(x, y)`` of all pairs."""
        one, other = (as_points(points, self.n_dimensions) / self.length_scale for points in (X, Y))
        return np.asarray(self.amplitude * np.exp(-0.5 * ((one[:, None] - other[None]) ** 2).sum(axis=-1)))

    def eigenfunctions(self, X: ArrayLike) -> Array:
        """Values (n_points, rank) of the functions that are orthonormal under the base measure."""
        return self._functions(as_points(X, self.n_dimensions), over_base=True)

    def base_density(self, X: ArrayLike) -> Array:
        """Density of the base measure."""
        points = (as_points(X, self.n_dimensions) - self.mean) / self.scale
        return np.asarray(np.exp(-0.5 * (points**2).sum(axis=1)) / np.prod(np.sqrt(2.0 * np.pi) * self.scale))

    def sample(
        self, n_samples: int | None = None, size: int | None = None, random_state: RandomState = None
    ) -> Array | list[Array]:
        """Draw sets of points exactly.

        Parameters
        ----------
        n_samples : int, optional
            Number of sets; None gives one by itself.
        size : int, optional
            Number of points of each; None leaves it random.
        random_state : int, Generator or None

        Returns
        -------
        ndarray (n_points, n_dimensions), or a list of them
        """
        from pluri.processes.dpp.continuous._kernels import draw_hermite_points

        count, rng = number_of_draws(n_samples), as_generator(random_state)
        taken, counts = take_directions(self.log_odds, count, check_size(size, self.rank), rng)
        points, found = np.empty((taken.size, self.n_dimensions)), counts.copy()
        if taken.size:
            draw_hermite_points(rng, self.orders, taken, counts, PATIENCE, points, found)
            if (found < counts).any():
                raise RuntimeError(
                    "the eigenfunctions taken are not independent to working precision; draw fewer points"
                )
        points = points / self._stretch + self.mean
        draws = np.split(points, np.cumsum(counts)[:-1]) if count else []
        return draws[0] if n_samples is None else draws

    def _log_determinant(self, points: Array) -> float:
        return log_determinant(self.kernel(points, points))

    def _marginal(self, X: Array, Y: Array) -> Array:
        left = self._functions(X, over_base=True)
        right = left if X is Y else self._functions(Y, over_base=True)
        return np.asarray((left * self._chances) @ right.T)

    def _marginal_diagonal(self, X: Array) -> Array:
        return np.asarray(self._functions(X, over_base=True) ** 2 @ self._chances)

    def intensity(self, X: ArrayLike) -> Array:
        """Expected number of points for each unit of volume."""
        # The base density cancels in the squares: nothing is divided by what vanishes far out.
        return np.asarray(self._functions(as_points(X, self.n_dimensions), over_base=False) ** 2 @ self._chances)

    def _functions(self, points: Array, over_base: bool) -> Array:
        from pluri.processes.dpp.continuous._kernels import fill_eigenfunctions

        centred = points - self.mean
        log_factors = np.broadcast_to(0.5 * np.log(self._stretch), centred.shape)
        if over_base:
            log_factors = log_factors + 0.5 * (self._a * centred) ** 2 - 0.5 * np.log(self._a / np.sqrt(np.pi))
        values = np.empty((len(points), self.rank))
        fill_eigenfunctions(centred * self._stretch, np.ascontiguousarray(log_factors), self.orders, values)
        return values

    @cached_property
    def _chances(self) -> Array:
        return np.asarray(np.exp(-np.logaddexp(0.0, -self.log_odds)))

    def __repr__(self) -> str:
        return f"GaussianContinuousDPP(n_dimensions={self.n_dimensions}, rank={self.rank})"


def log_determinant(matrix: Array) -> float:
    """``log det`` of a positive semi-definite matrix; minus infinity without volume to working precision."""
    own = np.diagonal(matrix)
    if not len(matrix):
        return 0.0
    if not (own > 0).all():
        return -np.inf
    root = np.sqrt(own)
    try:
        pivots = np.diagonal(np.linalg.cholesky(matrix / root / root[:, None]))
    except np.linalg.LinAlgError:
        return -np.inf
    if pivots.min() ** 2 < NO_VOLUME * len(matrix):
        return -np.inf
    return float(2.0 * np.log(pivots).sum() + np.log(own).sum())


def _leading_products(log_first: Array, log_ratio: Array, left_out: float) -> tuple[IntArray, Array]:
    """Orders and logarithms of the largest products of geometric eigenvalues; the rest sums to less than ``left_out``.

    Each dimension's eigenvalues sum to one, and so do all products.
    """
    top = float(log_first.sum())
    reach = 2.0 - float(log_ratio.max())
    while True:
        orders, values = np.zeros((1, 0), dtype=np.int64), np.full(1, top)
        for ratio in log_ratio:
            longest = int(np.floor(reach / -ratio)) + 1
            together = values[:, None] + ratio * np.arange(longest)
            rows, columns = np.nonzero(together >= top - reach)
            orders = np.column_stack([orders[rows], columns]).astype(np.int64)
            values = together[rows, columns]
            if len(values) > MOST_FUNCTIONS:
                raise ValueError(
                    f"the kernel has more than {MOST_FUNCTIONS} eigenfunctions that matter: use a larger length_scale, "
                    "fewer dimensions, a smaller amplitude, or ContinuousDPP(method='gibbs')"
                )
        if 1.0 - float(np.exp(values).sum()) < max(left_out, 1e-13):
            break
        reach *= 1.25
    order = np.argsort(-values, kind="stable")
    return np.ascontiguousarray(orders[order]), values[order]
