"""What random walks learn in their warm-up: a step size by Robbins and Monro, a covariance from the draws.

``log s += gain_t (acceptance - target)`` moves a step size until its acceptance is the wanted one. A target without a
scale would let it grow for ever: a run of certain acceptances lengthens the step fast, and a step of astronomical
length that is still accepted is an error.

References
----------
.. [1] Robbins, H. and Monro, S. (1951). A stochastic approximation method. Annals of Mathematical Statistics 22.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.inference.mcmc.adaptation import RunningVariance

Array = NDArray[np.float64]

#: A step this long that is still accepted belongs to a target without a scale.
ENDLESS = 1e100
#: Proposals accepted for certain, one after another, before the step is lengthened fast.
PATIENCE = 25


def best_acceptance(dim: int) -> float:
    """Acceptance that is best for a normal target: 0.44 for ``dim = 1``, 0.234 in the limit.

    Examples
    --------
    >>> from pluri.inference.mcmc.accept_reject.step_search import best_acceptance
    >>> best_acceptance(1), round(best_acceptance(1000), 3)
    (0.44, 0.234)
    """
    return 0.234 + 0.206 / dim


class StepSearch:
    """Robbins-Monro search for the step size with a wanted acceptance; the average of its path is what is kept."""

    def __init__(self, step_size: float, target: float):
        self.target = target
        self._certain = 0
        self._seen = 0
        self.restart(step_size)

    def restart(self, step_size: float) -> None:
        """Begin anew at a step size."""
        self._count = 0
        self._log_step = self._log_averaged = math.log(step_size)

    def update(self, acceptance: float) -> float:
        """See one acceptance; give the next step size."""
        self._count += 1
        self._seen += 1
        self._certain = self._certain + 1 if acceptance == 1.0 else 0
        self._log_step += 2.0 * (self._count + 1) ** -0.6 * (acceptance - self.target)
        if self._certain > PATIENCE:
            # Half of all moves on any slope go down: such a run means a plateau, wide or endless.
            self._log_step += math.log(4.0)
            if self._log_step > math.log(ENDLESS):
                raise ValueError(
                    "the log density is constant as far as steps of 1e100 reach: every proposal is accepted, and the "
                    "target cannot be normalised. Does it depend on the position?"
                )
        self._log_averaged += self._count**-0.75 * (self._log_step - self._log_averaged)
        return math.exp(self._log_step)

    def finish(self) -> float:
        """Step size to keep."""
        if self._seen >= 50 and self._certain == self._seen:
            raise ValueError(
                f"every proposal of the warm-up was accepted for certain, however long the step: the log density "
                f"looks constant after {self._seen} steps. Does it depend on the position?"
            )
        return math.exp(self._log_averaged)


def checked_step(step_size: float | None) -> None:
    """Refuse a step size that is not positive."""
    if step_size is not None and not (step_size > 0 and math.isfinite(step_size)):
        raise ValueError(f"step_size must be positive, got {step_size!r}")


def with_setting(kernel: Any, name: str, value: Any) -> Any:
    """The kernel with one setting changed and all that was prepared kept: cheap, as it happens at every step."""
    other = object.__new__(type(kernel))
    other.__dict__.update(kernel.__dict__)
    object.__setattr__(other, name, value)
    return other


def square_root(covariance: Array, name: str) -> Array:
    """Cholesky factor of a covariance matrix, or standard deviations of a vector of variances."""
    if covariance.ndim == 1 and ((covariance > 0) & np.isfinite(covariance)).all():
        return np.sqrt(covariance)
    if covariance.ndim == 2 and covariance.shape[0] == covariance.shape[1] and np.isfinite(covariance).all():
        scale = float(np.abs(covariance).max())
        if np.allclose(covariance, covariance.T, rtol=1e-8, atol=1e-12 * scale):
            try:
                return np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)
            except np.linalg.LinAlgError:
                pass
    raise ValueError(
        f"{name} must be a symmetric positive definite matrix or a vector of positive variances, got shape "
        f"{covariance.shape}{' of zeros' if not covariance.any() else ''}"
    )


def shrunk_covariance(seen: RunningVariance) -> Array | None:
    """Covariance of the draws, shrunk to its diagonal while they are few; None if a coordinate has not moved."""
    dim = len(seen.mean)
    covariance = seen.covariance
    variances = np.diagonal(covariance)
    if seen.count < 2 or not (np.isfinite(covariance).all() and (variances > 0).all()):
        return None
    share = seen.count / (seen.count + dim + 5.0)
    return share * covariance + ((1.0 - share) + 1e-6) * np.diag(variances)
