"""Points with weights: expectations, the normalising constant, and how far either can be trusted.

``w_s = f(x_s) / q(x_s)`` for draws ``x_s ~ q``. Then ``mean w`` is an unbiased estimate of ``Z_f / Z_q``, and
``sum W_s a(x_s)`` with ``W = w / sum w`` a consistent one of ``E_f[a]``, of variance ``sum W_s^2 (a_s - a)^2``. All is
computed from logarithms.

References
----------
.. [1] Geweke, J. (1989). Bayesian inference in econometric models using Monte Carlo integration. Econometrica 57.
.. [2] Kong, A., Liu, J. S. and Wong, W. H. (1994). Sequential imputations and Bayesian missing data problems. JASA 89.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from pluri.inference.ais.log_densities import SHARE
from pluri.inference.ais.pareto_tail import smooth_log_weights
from pluri.validation import RandomState, as_generator, check_count, check_value

if TYPE_CHECKING:
    from pluri.inference.mcmc.trace import Trace

Array = NDArray[np.float64]
PARETO_LIMIT = 0.7
FEWEST_EFFECTIVE = 50


class Estimate(NamedTuple):
    """An estimated expectation with its standard error and confidence interval, numbers or arrays (k,)."""

    value: Any
    standard_error: Any
    low: Any
    high: Any


@dataclass(frozen=True)
class WeightedSamples:
    """Points and the logarithms of their weights.

    Parameters
    ----------
    x : array (n, ...)
        Points, one a row.
    log_weights : array (n,)
        Logarithms of unnormalised weights; -inf is weight zero, but not all may be.
    interrupted : bool, default=False
        Whether Ctrl-C ended the run early.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference.ais.weighted_samples import WeightedSamples
    >>> samples = WeightedSamples(np.array([[0.0], [1.0]]), np.log([1.0, 3.0]))
    >>> samples.weights.tolist(), round(samples.ess, 3), round(samples.log_z, 4)
    ([0.25, 0.75], 1.6, 0.6931)
    >>> samples.expect().value.tolist()
    [0.75]
    """

    x: NDArray[Any]
    log_weights: Array
    interrupted: bool = False

    #: Share of the points that must be effective; below it a warning is given.
    _least_share = 0.05
    _advice = "draw more, or from a proposal nearer to the target"

    def __post_init__(self) -> None:
        log_weights = np.asarray(self.log_weights, dtype=np.float64)
        x = np.asarray(self.x)
        if log_weights.ndim != 1 or x.ndim < 1 or not len(x) == len(log_weights) > 0:
            raise ValueError(f"x and log_weights must be as long, got shapes {x.shape} and {log_weights.shape}")
        if np.isnan(log_weights).any() or (log_weights == np.inf).any():
            raise ValueError("log_weights must be below infinity and not NaN")
        if (log_weights == -np.inf).all():
            raise ValueError(f"all {len(x)} log_weights are -inf: every weight is zero, and nothing can be estimated")
        object.__setattr__(self, "x", x)
        object.__setattr__(self, "log_weights", log_weights)

    def __len__(self) -> int:
        return len(self.log_weights)

    @property
    def weights(self) -> Array:
        """Weights (n,) that add up to one."""
        weights: Array = np.exp(self.log_weights - self.log_weights.max())
        return weights / weights.sum()

    @property
    def log_mean_weight(self) -> float:
        """``log mean w``."""
        largest = float(self.log_weights.max())
        return largest + math.log(float(np.exp(self.log_weights - largest).mean()))

    @property
    def log_z(self) -> float:
        """Logarithm of the estimated ratio of normalising constants, target to proposal.

        The estimate itself is unbiased; its logarithm is too small on average (Jensen).
        """
        return self.log_mean_weight

    @property
    def log_z_se(self) -> float:
        """Standard error of `log_z` (and, relative, of its exponential): ``sqrt((mean w^2 / (mean w)^2 - 1) / n)``.

        It is estimated from the weights as well: too small when the largest weights have not been seen.
        """
        n = len(self)
        return math.sqrt(max(n / self.ess - 1.0, 0.0) / n)

    @property
    def lower_bound(self) -> float:
        """``mean log w``: on average below the logarithm of the true ratio; -inf if any weight is zero."""
        return float(self.log_weights.mean())

    @property
    def ess(self) -> float:
        """Effective sample size ``(sum w)^2 / sum w^2``: how unequal the weights are, of n at most."""
        return float(1.0 / np.square(self.weights).sum())

    @property
    def pareto_k(self) -> float:
        """Shape of the tail of the weights; above 0.7 the estimates and their errors are unreliable."""
        return smooth_log_weights(self.log_weights)[1]

    def smoothed(self: _Samples) -> _Samples:
        """The same points with Pareto-smoothed weights: a little bias for less variance."""
        return replace(self, log_weights=smooth_log_weights(self.log_weights)[0])

    def expect(
        self, function: Callable[[Any], Any] | None = None, ci: float = 0.99, *, vectorized: bool = True
    ) -> Estimate:
        """Expectation of a function under the target.

        Parameters
        ----------
        function : callable, optional
            Points (n, ...) to numbers (n,) or (n, k); one point at a time with ``vectorized=False``. The points
            themselves by default.
        ci : float, default=0.99
            Coverage of the interval, as far as the central limit theorem holds.

        Returns
        -------
        Estimate
            ``value``, ``standard_error``, ``low``, ``high``.
        """
        check_value(ci, "ci", SHARE)
        if function is None:
            values = np.asarray(self.x, dtype=np.float64)
        elif vectorized:
            values = np.asarray(function(self.x), dtype=np.float64)
        else:
            values = np.asarray([function(point) for point in self.x], dtype=np.float64)
        if values.ndim < 1 or len(values) != len(self):
            raise ValueError(f"function must give a value for each of {len(self)} points, got shape {values.shape}")
        used = self.log_weights > -np.inf  # elsewhere the function may be anything
        weights, values = self.weights[used], values[used]
        value = np.tensordot(weights, values, axes=1)
        error = np.sqrt(np.tensordot(np.square(weights), np.square(values - value), axes=1))
        reach = NormalDist().inv_cdf(0.5 + 0.5 * ci) * error
        numbers = value, error, value - reach, value + reach
        return Estimate(*(float(number) if np.ndim(number) == 0 else number for number in numbers))

    def resample(
        self, n: int | None = None, random_state: RandomState = None, method: str = "systematic"
    ) -> NDArray[Any]:
        """`n` points (as many as there are by default) drawn in proportion to their weights, all worth the same."""
        from pluri.inference.smc.resampling import resample

        n = len(self) if n is None else check_count(n, "n")
        points: NDArray[Any] = self.x[resample(self.weights, method, as_generator(random_state), n)]
        return points

    def to_trace(self, n: int | None = None, random_state: RandomState = None) -> Trace:
        """Resampled points as a trace of one chain, in random order."""
        from pluri.inference.mcmc.trace import Trace

        rng = as_generator(random_state)
        return Trace({"x": rng.permutation(self.resample(n, rng))[None]}, interrupted=self.interrupted)

    def lorenz(self) -> tuple[Array, Array]:
        """Lorenz curve: share of the points, from the lightest, and the share of the weight that they have."""
        shares = np.concatenate([[0.0], np.cumsum(np.sort(self.weights))])
        return np.linspace(0.0, 1.0, len(shares)), shares

    def diagnose(self) -> list[str]:
        """What a careful reader should know before using the estimates, a sentence each; empty if all is well."""
        problems = []
        n, ess, largest, shape = len(self), self.ess, float(self.weights.max()), self.pareto_k
        if ess < max(self._least_share * n, min(FEWEST_EFFECTIVE, n / 2)):
            problems.append(
                f"Only {ess:.1f} of {n} points are effective ({ess / n:.1%}): estimates are noisy and their errors too "
                f"small; {self._advice}."
            )
        if n > 1 and largest > 0.5:
            problems.append(f"One point has {largest:.0%} of all weight: the estimate hangs on it; {self._advice}.")
        if shape > PARETO_LIMIT:
            problems.append(
                f"The weights have a heavy tail (Pareto k = {shape:.2f}, above {PARETO_LIMIT}): larger ones are still "
                f"to come, and the errors given here are not to be trusted; {self._advice}."
            )
        return problems

    def summary(self) -> str:
        """A few lines to read."""
        lines = [
            f"{len(self)} weighted points of shape {self.x.shape[1:]}" + (" (interrupted)" if self.interrupted else ""),
            f"log Z          {self.log_z:.4f} +- {self.log_z_se:.4f}",
            f"effective      {self.ess:.1f} ({self.ess / len(self):.1%})",
            f"largest weight {self.weights.max():.4f}",
            f"Pareto k       {self.pareto_k:.2f}",
        ]
        return "\n".join(lines + self.diagnose())

    def __repr__(self) -> str:
        note = " (interrupted)" if self.interrupted else ""
        return f"<{type(self).__name__}: {len(self)} points, {self.ess:.1f} effective, log Z {self.log_z:.4f}>{note}"


_Samples = TypeVar("_Samples", bound=WeightedSamples)


def warn_of_weights(samples: WeightedSamples, stacklevel: int = 3) -> None:
    """Give each problem as a ConvergenceWarning."""
    problems = samples.diagnose()
    if problems:
        from sklearn.exceptions import ConvergenceWarning

        for problem in problems:
            warnings.warn(problem, ConvergenceWarning, stacklevel=stacklevel)
