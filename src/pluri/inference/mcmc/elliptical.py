"""Elliptical slice sampling: for a Gaussian prior and any likelihood, with nothing to tune.

Through the position f and a draw v of the prior runs an ellipse ``m + (f - m) cos t + (v - m) sin t`` of points with
the same prior distribution. A level is drawn under the likelihood, then angles from a bracket that shrinks towards zero
until a point of the ellipse lies above it.

References
----------
.. [1] Murray, I., Adams, R. P. and MacKay, D. J. C. (2010). Elliptical slice sampling. AISTATS.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pluri.inference.mcmc.accept_reject.metropolis_hastings import LogDensity, as_vector, initial_point
from pluri.inference.mcmc.accept_reject.step_search import square_root
from pluri.inference.mcmc.kernel import Info
from pluri.inference.mcmc.slice_intervals import MOST_SHRINKS, Slicing, stuck

Array = NDArray[np.float64]


class EllipticalState(NamedTuple):
    """Where a chain is, and the same place in coordinates in which the prior is standard normal.

    ``log_density = log_likelihood - white . white / 2``, the log density of the posterior up to a constant.
    """

    position: Array
    log_density: float
    log_likelihood: float
    white: Array


@dataclass(frozen=True)
class EllipticalSlice:
    """Elliptical slice sampling of ``N(f | mean, covariance) exp(log_likelihood(f))``.

    Parameters
    ----------
    log_likelihood : callable
        Position (n,) to the log likelihood.
    covariance : array-like of shape (n, n) or (n,), optional
        Covariance of the prior, or its variances if the coordinates are independent.
    cholesky : array-like of shape (n, n), optional
        Its lower Cholesky factor, instead of `covariance`.
    mean : float or array-like of shape (n,), default=0.0
        Mean of the prior.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference import mcmc
    >>> from pluri.inference.mcmc.elliptical import EllipticalSlice
    >>> kernel = EllipticalSlice(lambda f: -0.5 * float((f - 2) @ (f - 2)), covariance=np.eye(2))
    >>> trace = mcmc.sample(kernel, np.zeros(2), n_draws=1500, n_warmup=50, random_state=0)
    >>> bool(np.abs(trace.flat("x").mean(axis=0) - 1).max() < 0.1)  # half-way between prior and data
    True
    """

    log_likelihood: LogDensity
    covariance: Any = None
    cholesky: Any = None
    mean: Any = 0.0

    def __post_init__(self) -> None:
        if (self.covariance is None) == (self.cholesky is None):
            raise ValueError("give either covariance or cholesky, that of the prior, and not both")
        if self.covariance is not None:
            root = square_root(np.asarray(self.covariance, dtype=np.float64), "covariance")
        else:
            root = np.asarray(self.cholesky, dtype=np.float64)
            square = root.ndim == 2 and root.shape[0] == root.shape[1] and np.isfinite(root).all()
            if not square or np.triu(root, 1).any() or not (np.diagonal(root) != 0).all():
                raise ValueError(
                    "cholesky must be a square lower triangular matrix without zeros on the diagonal, got shape "
                    f"{root.shape}"
                )
        mean = np.asarray(self.mean, dtype=np.float64)
        if mean.ndim > 1 or (mean.ndim == 1 and len(mean) != len(root)) or not np.isfinite(mean).all():
            raise ValueError(f"mean must be finite, one number or {len(root)} of them, got shape {mean.shape}")
        object.__setattr__(self, "_root", root)
        object.__setattr__(self, "_mean", mean)

    def init(self, rng: np.random.Generator, position: Any) -> EllipticalState:
        """State at a position."""
        root: Array = self._root  # type: ignore[attr-defined]
        vector = as_vector(position)
        if len(vector) != len(root):
            raise ValueError(f"the position must have as many entries as the prior ({len(root)}), got {len(vector)}")
        vector, log_likelihood = initial_point(self.log_likelihood, vector, "log_likelihood")
        centred = vector - self._mean  # type: ignore[attr-defined]
        white = centred / root if root.ndim == 1 else np.linalg.solve(root, centred)
        return EllipticalState(vector, log_likelihood - 0.5 * float(white.dot(white)), log_likelihood, white)

    def step(self, rng: np.random.Generator, state: EllipticalState) -> tuple[EllipticalState, Info]:
        """A point of a random ellipse through the position."""
        root: Array = self._root  # type: ignore[attr-defined]
        mean: Array = self._mean  # type: ignore[attr-defined]
        slicing = Slicing(self.log_likelihood)
        other = rng.standard_normal(len(state.position))
        along, across = state.position - mean, root * other if root.ndim == 1 else root.dot(other)
        level = state.log_likelihood - rng.standard_exponential()
        angle = 2.0 * math.pi * rng.random()
        low, high = angle - 2.0 * math.pi, angle
        for _ in range(MOST_SHRINKS):
            cosine, sine = math.cos(angle), math.sin(angle)
            position = mean + (along * cosine + across * sine)
            value = slicing.value(position)
            if value > level:
                break
            if angle < 0:
                low = angle
            else:
                high = angle
            angle = low + (high - low) * rng.random()
        else:
            raise stuck(state.position)
        white = state.white * cosine + other * sine
        new = EllipticalState(position, value - 0.5 * float(white.dot(white)), value, white)
        return new, {
            "acceptance": 1.0,
            "n_evaluations": slicing.n_evaluations,
            "undefined": float(slicing.n_undefined),
        }

    def adaptation(self, n_warmup: int) -> None:
        """Nothing to learn."""
        return
