"""The path from a prior to a target: ``log f_b(x) = log f_prior(x) + b gain(x)``, b from 0 to 1.

The gain is ``log f_target - log f_prior``, or the log likelihood if the target is given as prior times likelihood.
Both parts are kept for every point, so that a change of temperature costs no evaluation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pluri.inference.ais import log_densities as checks
from pluri.inference.ais.log_densities import LogDensity, Sampler

Array = NDArray[np.float64]
#: Points (n, d) to gradients (n, d) of a log density.
Gradient = Callable[[Any], Any]


class Cloud(NamedTuple):
    """Points of all runs, with the two parts of their log density.

    Attributes
    ----------
    x : array (n, ...)
    base : array (n,), log density of the prior
    gain : array (n,), log density of the target less that of the prior; -inf where either is zero
    """

    x: NDArray[Any]
    base: Array
    gain: Array

    def take(self, rows: Any) -> Cloud:
        """Some of the points."""
        return Cloud(self.x[rows], self.base[rows], self.gain[rows])

    def log_density(self, beta: float) -> Array:
        """``log f_b`` (n,)."""
        return tempered(self.base, self.gain, beta)


class Evaluation(NamedTuple):
    """The two parts at some points; how many were NaN or +inf; how many had a target but no prior."""

    base: Array
    gain: Array
    undefined: int
    uncovered: int


def tempered(base: Array, gain: Array, beta: float) -> Array:
    """``base + b gain``, which is `base` at b = 0 even where the gain is -inf."""
    return base + beta * gain if beta > 0 else base


@dataclass(frozen=True)
class TemperedPath:
    """Densities at every temperature.

    Parameters
    ----------
    log_prior : callable
        Points (n, ...) to (n,).
    log_end : callable
        The target, or the likelihood if `is_likelihood`.
    is_likelihood : bool
        Whether the target is the prior times `log_end`.
    vectorized : bool
        False if both take one point at a time.
    grad_log_prior, grad_log_end : callable, optional
        Their gradients (n, d), for moves that need them.
    """

    log_prior: LogDensity
    log_end: LogDensity
    is_likelihood: bool = False
    vectorized: bool = True
    grad_log_prior: Gradient | None = None
    grad_log_end: Gradient | None = None

    def __post_init__(self) -> None:
        checks.check_callable(self.log_prior, "log_prior")
        checks.check_callable(self.log_end, self.end_name)

    @property
    def end_name(self) -> str:
        """What the user calls the other end."""
        return "log_likelihood" if self.is_likelihood else "log_target"

    def evaluate(self, x: NDArray[Any]) -> Evaluation:
        """Both parts at points that were proposed: what is undefined there counts as density zero."""
        base = checks.evaluate_rows(self.log_prior, x, "log_prior", self.vectorized)
        gain = np.full(len(x), -np.inf)
        inside = base > -np.inf
        uncovered = 0
        if self.is_likelihood:
            # Outside the prior a likelihood may well be undefined, so it is not asked there.
            if inside.all():
                gain = checks.evaluate_rows(self.log_end, x, self.end_name, self.vectorized)
            elif inside.any():
                gain[inside] = checks.evaluate_rows(self.log_end, x[inside], self.end_name, self.vectorized)
        else:
            end = checks.evaluate_rows(self.log_end, x, self.end_name, self.vectorized)
            np.subtract(end, base, out=gain, where=inside)
            uncovered = int((end[base == -np.inf] > -np.inf).sum())
        # NaN and +inf, in one pass: their sum is not below infinity.
        undefined = ~(base + gain < np.inf)
        if undefined.any():
            base[undefined] = gain[undefined] = -np.inf
        return Evaluation(base, gain, int(undefined.sum()), uncovered)

    def start(self, sample_prior: Sampler, rng: np.random.Generator, n: int, *, vectors: bool) -> Cloud:
        """Draws of the prior, refused if they do not fit the densities; `vectors` if moves need width everywhere."""
        checks.check_callable(sample_prior, "sample_prior")
        x = checks.draw_points(sample_prior, rng, n, "sample_prior")
        if vectors:
            if x.ndim != 2:
                raise ValueError(f"sample_prior must give vectors, shape ({n}, d), got shape {x.shape}")
            x = x.astype(np.float64)
            checks.check_spread(x, "sample_prior")
        base = checks.evaluate_rows(self.log_prior, x, "log_prior", self.vectorized)
        checks.check_at_own_draws(base, x, "log_prior", "sample_prior")
        end = checks.evaluate_rows(self.log_end, x, self.end_name, self.vectorized)
        checks.check_defined(end, x, self.end_name)
        checks.check_somewhere_positive(end, self.end_name, "sample_prior")
        if not self.is_likelihood:
            checks.check_not_flat(self.log_end, end, base, x, self.end_name, self.vectorized)
        if vectors and self.grad_log_end is not None:
            self._check_gradient(x[end > -np.inf][:1])
        return Cloud(x, base, end if self.is_likelihood else end - base)

    def finish(self, draws: Any, *, vectors: bool) -> Cloud:
        """Given draws of the target, refused where either density is zero."""
        x = np.array(draws, dtype=np.float64 if vectors else None)
        if x.dtype.kind not in "iufb" or x.ndim < 2 or not len(x) or (vectors and x.ndim != 2):
            raise ValueError(f"draws must be numbers of shape (n, d), got shape {x.shape}")
        base = checks.evaluate_rows(self.log_prior, x, "log_prior", self.vectorized)
        if (base == -np.inf).any():
            raise ValueError(
                f"log_prior is -inf at {int((base == -np.inf).sum())} of {len(x)} draws of the target: the prior must "
                "be positive wherever the target is"
            )
        end = checks.evaluate_rows(self.log_end, x, self.end_name, self.vectorized)
        for values, name in ((base, "log_prior"), (end, self.end_name)):
            if not np.isfinite(values).all():
                raise ValueError(
                    f"{name} must be finite at the draws of the target, got {values[~np.isfinite(values)][0]}"
                )
        return Cloud(x, base, end if self.is_likelihood else end - base)

    def gradient(self, x: Array, beta: float) -> Array:
        """Gradient (n, d) of ``log f_b``."""
        if self.grad_log_prior is None or self.grad_log_end is None:
            raise ValueError(
                f"transition 'hmc' needs gradients: give grad_log_prior and grad_{self.end_name}, (n, d) to (n, d)"
            )
        prior = self._gradient_rows(self.grad_log_prior, x, "grad_log_prior")
        end = self._gradient_rows(self.grad_log_end, x, f"grad_{self.end_name}")
        return prior + beta * end if self.is_likelihood else (1.0 - beta) * prior + beta * end

    def _gradient_rows(self, function: Gradient, x: Array, name: str) -> Array:
        values = function(x) if self.vectorized else [function(point) for point in x]
        values = np.asarray(values, dtype=np.float64)
        if values.shape != x.shape:
            raise ValueError(f"{name} must give an array of the shape of the points {x.shape}, got {values.shape}")
        return values

    def _check_gradient(self, x: Array) -> None:
        direction = np.random.default_rng(0).standard_normal(x.shape)
        direction /= np.linalg.norm(direction)
        width = 1e-5 * max(1.0, float(np.abs(x).max()))
        for beta in (0.0, 1.0):
            below, here, above = (
                float(tempered(*self.evaluate(x + sign * width * direction)[:2], beta)[0]) for sign in (-1.0, 0.0, 1.0)
            )
            slope, given = (above - below) / (2.0 * width), float((self.gradient(x, beta) * direction).sum())
            noise = 1e-12 * abs(here) / width + 1e-3 * (abs(slope) + abs(given)) + 1e-5
            bend = abs(above + below - 2.0 * here) / width
            if np.isfinite([below, above]).all() and abs(slope - given) > noise + bend:
                which = "log_prior" if beta == 0 else self.end_name
                raise ValueError(
                    f"grad_{which} disagrees with finite differences of {which}: along a random direction it gives "
                    f"{given:.6g} where differences give {slope:.6g}"
                )
