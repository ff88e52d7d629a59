"""What an optimiser needs to know about a manifold.

Besides the textbook maps (:meth:`exp`, :meth:`log`, :meth:`transport`, ...) a manifold offers *frames*: a frame is a
point together with an orthonormal basis of its tangent space, in which a tangent vector is a flat array of numbers
whose inner product is the plain dot product. :meth:`move` carries the frame along a geodesic by parallel transport, so
a transported vector keeps its numbers. Quasi-Newton and conjugate-gradient methods then read as they do in flat space:
nothing has to be transported [1]_.

References
----------
.. [1] R. Godaz, B. Ghojogh, R. Hosseini, R. Monsefi, F. Karray and M. Crowley, "Vector transport free Riemannian LBFGS
   for optimization on symmetric positive definite matrix manifolds", ACML 2021.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@runtime_checkable
class Manifold(Protocol):
    """A manifold: points, tangent vectors and frames are whatever it says they are, coordinates are flat arrays."""

    @property
    def dimension(self) -> int:
        """Number of degrees of freedom."""
        ...

    def check(self, point: Any) -> Any:
        """Return the point as this manifold keeps it, or refuse it in one sentence."""
        ...

    def inner(self, point: Any, first: Any, second: Any) -> float:
        """Inner product of two tangent vectors."""
        ...

    def norm(self, point: Any, tangent: Any) -> float:
        """Length of a tangent vector."""
        ...

    def distance(self, first: Any, second: Any) -> float:
        """Length of the geodesic between two points."""
        ...

    def exp(self, point: Any, tangent: Any) -> Any:
        """Where the geodesic that leaves the point along the tangent vector is at time one."""
        ...

    def log(self, first: Any, second: Any) -> Any:
        """Tangent vector at the first point whose geodesic reaches the second at time one."""
        ...

    def geodesic(self, first: Any, second: Any, time: float) -> Any:
        """Point of the geodesic between two points, the first at time 0 and the second at time 1."""
        ...

    def transport(self, first: Any, second: Any, tangent: Any) -> Any:
        """Parallel transport of a tangent vector along the geodesic between two points."""
        ...

    def gradient(self, point: Any, partials: Any) -> Any:
        """Riemannian gradient from the array of partial derivatives."""
        ...

    def random_point(self, rng: np.random.Generator) -> Any:
        """Draw a point; no particular distribution, for tests and starts."""
        ...

    def random_tangent(self, point: Any, rng: np.random.Generator) -> Any:
        """Draw a tangent vector whose coordinates in any frame are standard normal."""
        ...

    def frame(self, point: Any) -> Any:
        """Return a frame at a point."""
        ...

    def point(self, frame: Any) -> Any:
        """Return the point of a frame."""
        ...

    def coordinates(self, frame: Any, tangent: Any) -> Array:
        """Coordinates of a tangent vector: flat, with the dot product as inner product."""
        ...

    def tangent(self, frame: Any, coordinates: Array) -> Any:
        """Tangent vector with these coordinates."""
        ...

    def slopes(self, frame: Any, partials: Any) -> Array:
        """Coordinates of the Riemannian gradient, from the partial derivatives."""
        ...

    def move(self, frame: Any, coordinates: Array) -> Any:
        """Carry a frame along the geodesic with these coordinates for one unit of time."""
        ...
