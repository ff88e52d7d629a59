r"""Determinantal point processes in space: points that repel each other, with any kernel.

Density of a set X with respect to the unit-rate Poisson process on the base measure:
:math:`\det(L_X) / \prod_n (1 + \lambda_n)` with :math:`L(x, y) = q(x) k(x, y) q(y)` and the eigenvalues
:math:`\lambda_n` of L as an integral operator. The Gaussian kernel over a normal base measure is exact
(`GaussianContinuousDPP`), and over a box to rounding; other kernels are replaced by one of low rank, which is then
sampled exactly, or a fixed number of points is sampled by Gibbs' method with the kernel itself.

References
----------
.. [1] R. H. Affandi, E. B. Fox and B. Taskar, "Approximate inference in continuous determinantal processes", NeurIPS
   2013.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pluri.inference import mcmc
from pluri.processes.dpp.continuous.bounds import GridBound
from pluri.processes.dpp.continuous.box_functions import BoxFunctions, box_functions
from pluri.processes.dpp.continuous.checks import check_similarity, check_trace, largest_diagonal
from pluri.processes.dpp.continuous.domains import Box, Domain, NormalBase, spread_points
from pluri.processes.dpp.continuous.features import GaussianSimilarity, LowRank, fourier, nystrom
from pluri.processes.dpp.continuous.gaussian import GaussianContinuousDPP, log_determinant
from pluri.processes.dpp.continuous.point_gibbs import PointGibbs, kernel_diagonal
from pluri.processes.dpp.continuous.point_process import PointProcess, as_points, scale_odds
from pluri.processes.dpp.continuous.projection_points import draw_sets
from pluri.processes.dpp.kernel_forms import Array, IntArray
from pluri.processes.dpp.samplers.chain_draws import verdict_of
from pluri.processes.dpp.sizes import number_of_draws
from pluri.processes.dpp.structured.directions import check_size, take_directions
from pluri.validation import Only, RandomState, Whole, as_generator, check_value
from pluri.validation.interruption import interruptible

METHODS = Only("auto", "exact", "nystrom", "fourier", "gibbs")
#: Eigenvalues below this share of the largest are rounding of zero.
NEGLIGIBLE = 1e-11
#: Landmarks are doubled until they keep this share of the trace of the kernel, or of the points of a scaled process.
WELL_KEPT = 0.99
#: A smaller share of either is worth a warning.
MOSTLY_KEPT = 0.95
#: Landmarks to begin with, and at most, unless their number is given.
FEWEST_LANDMARKS, MOST_LANDMARKS = 200, 1600


class ContinuousDPP(mcmc.Sampled, PointProcess):
    """Points in space that repel each other.

    Parameters
    ----------
    domain : Box or NormalBase
        Where the points are, and the base measure.
    kernel : "gaussian" or callable, default="gaussian"
        Similarity ``k(X, Y)`` of all pairs of points; positive semi-definite.
    length_scale : float or array_like (n_dimensions,), default=1.0
        Of the Gaussian kernel.
    quality : float or callable, default=1.0
        ``q(X)``, one non-negative number for each point.
    method : {"auto", "exact", "nystrom", "fourier", "gibbs"}, default="auto"
        "exact" for the Gaussian kernel of constant quality; "nystrom" and "fourier" (Gaussian kernel only) replace the
        kernel by one of low rank; "gibbs" samples a fixed number of points with the kernel itself. "auto" is "exact"
        where possible and no landmarks are asked for, else "nystrom".
    n_features : int, optional
        Landmarks of "nystrom", or twice the number of frequencies of "fourier" (200 by default). Without it as many
        landmarks as keep 99 % of the trace of the kernel are taken, up to 1600. If less than 95 % is kept, of the trace
        or of the points of a process that was scaled by `with_expected_size`, a warning says so: draws would cluster
        around the landmarks. The 3000 largest eigenvalues of "exact" in a `Box` are watched in the same way.
    landmarks : array_like (n_landmarks, n_dimensions), optional
        Of "nystrom"; points spread evenly over the base measure by default.
    quality_bound : float, optional
        At least the largest quality; found from many points, with a margin, if it is not given. A draw that meets a
        larger one says so.
    random_state : int, Generator or None
        For the frequencies of "fourier".

    Attributes
    ----------
    log_odds : ndarray (rank,)
        Logarithms of the eigenvalues, largest first; not with "gibbs".
    method_ : str
        The method in use.
    kept_share_ : float
        Share of the trace of the kernel that the eigenvalues in use hold; 1 unless they are too few. Not with "gibbs".
    trace_ : pluri.inference.mcmc.Trace
        Of the last draws with "gibbs": the sets (``"points"``) and their log densities.

    Examples
    --------
    >>> from pluri.processes.dpp.continuous.process import ContinuousDPP
    >>> from pluri.processes.dpp.continuous.domains import Box
    >>> square = Box([0, 0], [1, 1])
    >>> process = ContinuousDPP(square, length_scale=0.15).with_expected_size(15)
    >>> points = process.sample(random_state=0)
    >>> points.shape[1], bool(((points > 0) & (points < 1)).all()), round(process.expected_size, 6)
    (2, True, 15.0)
    """

    def __init__(
        self,
        domain: Domain,
        kernel: str | Callable[[Array, Array], Any] = "gaussian",
        *,
        length_scale: ArrayLike = 1.0,
        quality: float | Callable[[Array], Any] = 1.0,
        method: str = "auto",
        n_features: int | None = None,
        landmarks: ArrayLike | None = None,
        quality_bound: float | None = None,
        random_state: RandomState = None,
    ) -> None:
        check_value(method, "method", METHODS)
        if not hasattr(domain, "from_uniforms"):
            raise ValueError(f"domain must be a Box or a NormalBase, got {type(domain).__name__}")
        check_value(n_features, "n_features", Whole(1) | Only(None))
        self.domain = domain
        self._similarity = _similarity(kernel, length_scale, domain.n_dimensions)
        self._quality = quality
        check_similarity(self._similarity, domain)
        check_trace(self._similarity, quality, domain)
        self._bound = largest_diagonal(self._similarity, self.quality, domain, quality_bound, callable(quality))
        self._exact: GaussianContinuousDPP | None = None
        self._products: BoxFunctions | None = None
        if isinstance(self._similarity, GaussianSimilarity) and not callable(quality):
            scale = self._similarity.length_scale
            if method in ("auto", "exact") and isinstance(domain, NormalBase):
                amplitude = float(quality) ** 2
                self._exact = GaussianContinuousDPP(scale, domain.scale, mean=domain.mean, amplitude=amplitude)
                self.log_odds = self._exact.log_odds
            unlimited = method == "auto" and n_features is None and landmarks is None
            if (method == "exact" or unlimited) and isinstance(domain, Box):
                self._products = box_functions(self._similarity, domain)
        known = self._exact is not None or self._products is not None
        if method == "exact" and not known:
            raise ValueError(
                "method 'exact' needs the Gaussian kernel, a constant quality and, in a Box, a length_scale that is "
                "not too short; use method='nystrom'"
            )
        self.method_ = ("exact" if known else "nystrom") if method == "auto" else method
        self._growing = self.method_ == "nystrom" and n_features is None and landmarks is None
        self._trace = 0.0
        if self._products is not None:
            self._trace = self.domain.mass * float(self._quality) ** 2  # type: ignore[arg-type]
            self._values, self._factor = self._products.values * float(self._quality) ** 2, 1.0  # type: ignore[arg-type]
            self.log_odds = np.log(self._values)
        elif self.method_ == "nystrom":
            points = None if landmarks is None else as_points(landmarks, self.n_dimensions, "landmarks")
            self._set_landmarks(points, int(n_features or FEWEST_LANDMARKS))
        elif self.method_ == "fourier":
            self._set_frequencies(int(n_features or FEWEST_LANDMARKS), random_state)
        self._warn_of_loss(self.kept_share_ if self.method_ != "gibbs" else 1.0, "the trace of the kernel")

    def _set_landmarks(self, landmarks: Array | None, n_landmarks: int) -> None:
        """Use landmarks; without any, as many as keep the trace, ``n_landmarks`` to begin with."""
        nodes, weights = self.domain.nodes(1.0 if callable(self._quality) else 0.5)
        self._trace = float((weights * self.quality(nodes) ** 2 * kernel_diagonal(self._similarity, nodes)).sum())
        while True:
            points = landmarks
            if points is None:
                points = self.domain.from_uniforms(spread_points(self.n_dimensions, n_landmarks))
            self._low_rank: LowRank = nystrom(self._similarity, points, self.domain, self._quality)
            kept = float(np.trace(self._low_rank.moment)) / self._trace
            if not self._growing or kept >= WELL_KEPT or n_landmarks >= MOST_LANDMARKS:
                break
            n_landmarks = min(2 * n_landmarks, MOST_LANDMARKS)
        self._n_landmarks = len(points)
        self._decompose()

    def _set_frequencies(self, n_features: int, random_state: RandomState) -> None:
        if not isinstance(self._similarity, GaussianSimilarity):
            raise ValueError("method 'fourier' needs the Gaussian kernel; use method='nystrom'")
        shape = (max(1, n_features // 2), self.n_dimensions)
        frequencies = as_generator(random_state).standard_normal(shape) / self._similarity.length_scale
        self._low_rank = fourier(frequencies, self.domain, self._quality)
        self._decompose()
        self._trace = float(np.trace(self._low_rank.moment))  # waves have the length of the kernel everywhere

    def _decompose(self) -> None:
        values, vectors = np.linalg.eigh(0.5 * (self._low_rank.moment + self._low_rank.moment.T))
        keep = np.flatnonzero(values > NEGLIGIBLE * max(float(values[-1]), 0.0))[::-1]
        self._values, self._vectors, self._factor = values[keep], vectors[:, keep], 1.0
        self.log_odds = np.log(self._values)

    @property
    def kept_share_(self) -> float:
        """Share of the trace of the kernel that the eigenvalues in use hold."""
        self._need_spectrum()
        if self._exact is not None:
            return 1.0
        return min(1.0, float(self._values.sum()) / self._trace)

    def _kept_points(self) -> float:
        """At least this share of the expected points is kept: what is lost of the trace is lost of K at most."""
        size = self.expected_size
        return size / (size + (1.0 - self.kept_share_) * self._trace * self._factor)

    def _warn_of_loss(self, kept: float, what: str) -> None:
        """Say so if there are too few functions for the kernel: draws would not have its distribution."""
        if kept >= MOSTLY_KEPT:
            return
        if self._products is not None:
            given, result = f"the {self.rank} largest eigenvalues", "points keep further apart than they should"
            advice = "use a larger length_scale, or method='gibbs'"
        else:
            given, result = f"n_features={self._n_landmarks} landmarks", "points cluster around them"
            advice = "raise n_features, or use a larger length_scale"
        warnings.warn(
            f"{given} keep only {kept:.3g} of {what}, so that {result}: {advice}",
            UserWarning,
            stacklevel=3,
        )

    @property
    def n_dimensions(self) -> int:
        """Number of coordinates."""
        return self.domain.n_dimensions

    def quality(self, X: ArrayLike) -> Array:
        """``q(x)`` of points."""
        points = as_points(X, self.n_dimensions)
        if not callable(self._quality):
            return np.full(len(points), float(self._quality))
        values = np.asarray(self._quality(points), dtype=np.float64).reshape(-1)
        if values.shape != (len(points),) or not (np.isfinite(values).all() and (values >= 0).all()):
            raise ValueError(
                "quality must give one finite, non-negative number for each point, got "
                + (f"shape {values.shape}" if values.shape != (len(points),) else f"{values.min():.3g}")
            )
        return values

    def kernel(self, X: ArrayLike, Y: ArrayLike) -> Array:
        """``L(x, y) = q(x) k(x, y) q(y)`` of all pairs, not its approximation."""
        one, other = as_points(X, self.n_dimensions), as_points(Y, self.n_dimensions)
        values = np.asarray(self._similarity(one, other), dtype=np.float64)
        return np.asarray(values * self.quality(one)[:, None] * self.quality(other))

    def base_density(self, X: ArrayLike) -> Array:
        """Density of the base measure with respect to volume."""
        return self.domain.density(as_points(X, self.n_dimensions))

    def with_expected_size(self, expected_size: float) -> ContinuousDPP:
        """The process with the quality scaled so that this many points are drawn on average."""
        self._need_spectrum()
        made = ContinuousDPP.__new__(ContinuousDPP)
        made.__dict__ |= {name: value for name, value in self.__dict__.items() if name != "_grid"}
        if self._exact is not None:
            made._exact = self._exact.with_expected_size(expected_size)
            factor = made._exact.amplitude / self._exact.amplitude
            made.log_odds = made._exact.log_odds
        else:
            factor = made._scale(expected_size)
        root, given = float(np.sqrt(factor)), self._quality
        made._quality = (lambda X: root * np.asarray(given(X))) if callable(given) else root * float(given)
        made._bound = self._bound * factor
        made._warn_of_loss(made._kept_points() if made._exact is None else 1.0, "the expected points")
        return made

    def _scale(self, expected_size: float) -> float:
        """Scale the eigenvalues, with more landmarks if those that were left out now matter; the factor."""
        before = self._factor
        while True:
            factor = scale_odds(self.log_odds, expected_size)
            self.log_odds = self.log_odds + np.log(factor)
            self._factor *= factor
            if not self._growing or self._kept_points() >= WELL_KEPT or self._n_landmarks >= MOST_LANDMARKS:
                return self._factor / before
            # The quality is still that of the process to be scaled, which may have been scaled itself.
            self._set_landmarks(None, min(2 * self._n_landmarks, MOST_LANDMARKS))
            before = 1.0

    @interruptible
    def sample(
        self,
        n_samples: int | None = None,
        size: int | None = None,
        random_state: RandomState = None,
        *,
        n_warmup: int = 20,
    ) -> Array | list[Array]:
        """Draw sets of points.

        Parameters
        ----------
        n_samples : int, optional
            Number of sets; None gives one by itself.
        size : int, optional
            Number of points of each; None leaves it random, which "gibbs" cannot.
        random_state : int, Generator or None
        n_warmup : int, default=20
            With "gibbs": sweeps before each set, which goes on from the one before it.

        Returns
        -------
        ndarray (n_points, n_dimensions), or a list of them
        """
        count, rng = number_of_draws(n_samples), as_generator(random_state)
        if self._exact is not None:
            return self._exact.sample(n_samples, size, rng)
        if self.method_ == "gibbs":
            draws = self._sweep(count, size, n_warmup, rng)
        else:
            taken, counts = take_directions(self.log_odds, count, check_size(size, self.rank), rng)
            draws = draw_sets(
                rng, taken, counts, self.domain.draw, self._functions, self._values,
                length=self._bound / self._factor, mass=self.domain.mass, tighter=self._tighter_bound,
            )  # fmt: skip
        return draws[0] if n_samples is None else draws

    def gibbs_kernel(self) -> PointGibbs:
        """The sampler of a fixed number of points, for `pluri.inference.mcmc.sample`."""
        return PointGibbs(self.kernel, self.domain, self._bound)

    def _sweep(self, count: int, size: int | None, n_warmup: int, rng: np.random.Generator) -> list[Array]:
        check_value(size, "size with method 'gibbs'", Whole(1))
        check_value(n_warmup, "n_warmup", Whole(1))
        if not count:
            return []
        chain = self.gibbs_kernel()
        trace = mcmc.sample(
            chain, lambda own: chain.draw_start(own, int(size)), n_draws=count, n_warmup=0, n_chains=1,  # type: ignore[arg-type]
            thin=int(n_warmup), random_state=rng, warn=False,
        )  # fmt: skip
        self.trace_ = trace.detached()
        verdict_of(self.trace_, "log_density").warn(f"Give a larger n_warmup than {n_warmup}", stacklevel=4)
        return list(self.trace_.flat("points"))

    def _features(self, points: Array) -> Array:
        """Features with the quality that the eigenvalues were made with."""
        quality = self.quality(points) / np.sqrt(self._factor)
        return np.asarray(self._low_rank.features(points) * quality[:, None])

    @cached_property
    def _grid(self) -> GridBound | None:
        if not isinstance(self.domain, Box):
            return None
        return GridBound.of_box(self.domain, self._functions, keep=self._products is None)

    def _tighter_bound(self, chosen: IntArray) -> float:
        return np.inf if self._grid is None else self._grid.largest(chosen)

    def _functions(self, points: Array, chosen: IntArray | slice = slice(None)) -> Array:
        """Orthonormal eigenfunctions, scaled to the quality."""
        if self._products is not None:
            return self._products(points, chosen)
        return np.asarray(self._features(points) @ (self._vectors[:, chosen] / np.sqrt(self._values[chosen])))

    def _marginal(self, X: Array, Y: Array) -> Array:
        self._need_spectrum()
        if self._exact is not None:
            return self._exact._marginal(X, Y)
        return np.asarray((self._functions(X) / (1.0 + np.exp(-self.log_odds))) @ self._functions(Y).T)

    def _marginal_diagonal(self, X: Array) -> Array:
        self._need_spectrum()
        if self._exact is not None:
            return self._exact._marginal_diagonal(X)
        return np.asarray(self._functions(X) ** 2 @ (1.0 / (1.0 + np.exp(-self.log_odds))))

    def _log_determinant(self, points: Array) -> float:
        """Of the kernel in use: that of low rank where there is one, so that densities integrate to one."""
        if self._exact is not None:
            return self._exact._log_determinant(points)
        rows = self._functions(points) * np.exp(0.5 * self.log_odds)
        return log_determinant(rows @ rows.T) if len(points) <= self.rank else -np.inf

    def _need_spectrum(self) -> None:
        if self.method_ == "gibbs":
            raise ValueError("method 'gibbs' knows no eigenvalues: use 'nystrom', 'fourier' or 'exact'")

    def __getattr__(self, name: str) -> Any:
        if name == "log_odds" and self.__dict__.get("method_") == "gibbs":
            self._need_spectrum()
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __repr__(self) -> str:
        return f"ContinuousDPP(n_dimensions={self.n_dimensions}, method={self.method_!r})"


def _similarity(kernel: Any, length_scale: ArrayLike, n_dimensions: int) -> Callable[[Array, Array], Any]:
    if callable(kernel):
        return kernel
    if kernel != "gaussian":
        raise ValueError(f"kernel must be 'gaussian' or a callable, got {kernel!r}")
    scale = np.asarray(length_scale, dtype=np.float64)
    if scale.shape not in ((), (n_dimensions,)) or not ((scale > 0) & np.isfinite(scale)).all():
        raise ValueError(f"length_scale must be positive, a number or {n_dimensions} of them, got {length_scale!r}")
    return GaussianSimilarity(np.array(np.broadcast_to(scale, n_dimensions)))
