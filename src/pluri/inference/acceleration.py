"""Faster EM: guess where the iteration is going from where it has been.

EM is a fixed-point map ``x -> G(x)`` that converges linearly, slowly when much information is missing. Both methods
look at a few pairs (point, image) and propose a further point; the loop evaluates the objective there with the E-step
that it needs anyway, and falls back to the plain image when the objective would fall. So the ascent is kept and a bad
guess costs one E-step.

References
----------
Varadhan and Roland (2008), Simple and globally convergent methods for accelerating the convergence of any EM
algorithm, Scandinavian Journal of Statistics 35. Walker and Ni (2011), Anderson acceleration for fixed-point
iterations, SIAM Journal on Numerical Analysis 49.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


class Accelerator(Protocol):
    """Proposes points; the memory it works from is a plain record that a checkpoint can hold."""

    def start(self) -> Any:
        """Memory at the beginning of a run."""
        ...

    def propose(self, memory: Any, point: Vector, image: Vector) -> tuple[Any, Vector | None]:
        """Learn from one EM step ``point -> image``; return the new memory and a point to try, if any."""
        ...

    def judge(self, memory: Any, accepted: bool) -> Any:
        """Learn whether the last proposal was accepted."""
        ...


@dataclass(frozen=True)
class SquaremMemory:
    """The cycle in progress.

    Parameters
    ----------
    origin : ndarray or None
        First point of the cycle, once its image is being evaluated.
    step : float
        Length of the last proposal.
    longest : float
        Longest step allowed now; a step of 1 is plain EM.
    """

    origin: Vector | None = None
    step: float = 1.0
    longest: float = 4.0


class Squarem:
    """SQUAREM, scheme S3: ``x' = x0 + 2 a r + a^2 v``, ``r = x1 - x0``, ``v = x2 - 2 x1 + x0``, ``a = |r| / |v|``.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference import Squarem
    >>> squarem, image = Squarem(), lambda x: 0.5 * x
    >>> x0 = np.array([8.0])
    >>> memory, guess = squarem.propose(squarem.start(), x0, image(x0))
    >>> guess is None
    True
    >>> memory, guess = squarem.propose(memory, image(x0), image(image(x0)))
    >>> guess  # a linear map in one dimension is solved at once
    array([0.])
    """

    growth = 4.0

    def start(self) -> SquaremMemory:
        """Memory at the beginning of a run."""
        return SquaremMemory()

    def propose(self, memory: SquaremMemory, point: Vector, image: Vector) -> tuple[SquaremMemory, Vector | None]:
        """Open a cycle, or close it with a proposal."""
        if memory.origin is None:
            return replace(memory, origin=point), None
        first = _difference(point, memory.origin)
        curvature = _difference(image, point) - first
        length, bend = float(np.linalg.norm(first)), float(np.linalg.norm(curvature))
        wanted = length / bend if bend > 0.0 else memory.longest
        step = min(wanted, memory.longest)
        memory = replace(memory, origin=None, step=step)
        if not step > 1.0:
            # Plain EM, taken for granted: it lengthens the next step if the cap was what held this one.
            return self.judge(memory, True), None
        # x0 + 2 a r + a^2 v written from x2 = x0 + 2 r + v, so that coordinates left out keep the image's value.
        return memory, image + 2.0 * (step - 1.0) * first + (step**2 - 1.0) * curvature

    def judge(self, memory: SquaremMemory, accepted: bool) -> SquaremMemory:
        """Lengthen the cap after a success at the cap, shorten it after a failure."""
        if accepted and memory.step >= memory.longest:
            return replace(memory, longest=self.growth * memory.longest)
        if not accepted:
            return replace(memory, longest=max(1.0, memory.longest / self.growth))
        return memory


@dataclass(frozen=True)
class AndersonMemory:
    """The last few EM steps.

    Parameters
    ----------
    points, images : ndarray of shape (n_kept, n_dimensions) or None
        Oldest first.
    """

    points: NDArray[np.float64] | None = None
    images: NDArray[np.float64] | None = None


class Anderson:
    """Anderson acceleration: ``x' = G_k - dG w`` with ``w = argmin |F_k - dF w|``, ``F = G(x) - x``.

    A proposal that points against the last EM step is mirrored.

    Parameters
    ----------
    depth : int, default=5
        Number of differences used.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference import Anderson
    >>> anderson, image = Anderson(), lambda x: 0.5 * x
    >>> x0 = np.array([8.0])
    >>> memory, guess = anderson.propose(anderson.start(), x0, image(x0))
    >>> memory, guess = anderson.propose(memory, image(x0), image(image(x0)))
    >>> guess
    array([0.])
    """

    def __init__(self, depth: int = 5) -> None:
        self.depth = depth

    def start(self) -> AndersonMemory:
        """Memory at the beginning of a run."""
        return AndersonMemory()

    def propose(self, memory: AndersonMemory, point: Vector, image: Vector) -> tuple[AndersonMemory, Vector | None]:
        """Remember the step; propose once there are two."""
        if memory.points is None or memory.images is None:
            return AndersonMemory(point[None], image[None]), None
        points = np.concatenate([memory.points, point[None]])[-self.depth - 1 :]
        images = np.concatenate([memory.images, image[None]])[-self.depth - 1 :]
        residuals = _difference(images, points)
        # rcond cuts the directions in which the last steps were parallel up to rounding.
        weights = np.linalg.lstsq(np.diff(residuals, axis=0).T, residuals[-1], rcond=1e-8)[0]
        move = -_difference(images[1:], images[:-1]).T @ weights
        # Where EM leaves a saddle its steps grow, and the least squares point back to the saddle: go the other way.
        return AndersonMemory(points, images), image + np.copysign(1.0, move @ residuals[-1]) * move

    def judge(self, memory: AndersonMemory, accepted: bool) -> AndersonMemory:
        """Forget everything after a failure: the old steps describe another neighbourhood."""
        return memory if accepted else AndersonMemory()


ACCELERATORS: dict[str, type[Squarem] | type[Anderson]] = {"squarem": Squarem, "anderson": Anderson}


def _difference(left: Vector, right: Vector) -> Vector:
    """``left - right``, 0 where either is not finite."""
    with np.errstate(invalid="ignore"):
        difference = left - right
    return np.where(np.isfinite(difference), difference, 0.0)
