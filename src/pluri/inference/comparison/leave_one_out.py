"""Leave-one-out cross-validation from the draws of one fit, by Pareto-smoothed importance sampling.

With ``l_si = log p(y_i | theta_s)``, weights ``1 / p(y_i | theta_s)`` turn draws of the posterior into draws of that
without observation i; their largest are smoothed [1]_, and

    elpd_i = log sum_s w_si exp(l_si) / sum_s w_si

estimates the log density of y_i given all others. The shape k of the weights' tail, one for each observation, says
whether it can be trusted.

References
----------
.. [1] Vehtari, A., Gelman, A. and Gabry, J. (2017). Practical Bayesian model evaluation using leave-one-out
   cross-validation and WAIC. Statistics and Computing 27.
.. [2] Vehtari, A., Simpson, D., Gelman, A., Yao, Y. and Gabry, J. (2024). Pareto smoothed importance sampling. JMLR 25.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from pluri.inference.ais.pareto_tail import smooth_log_weights
from pluri.inference.mcmc.diagnostics import ess_mean
from pluri.inference.mcmc.trace import Trace

__all__ = ["LeaveOneOut", "loo"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class LeaveOneOut:
    """Expected log predictive density by leave-one-out cross-validation.

    Attributes
    ----------
    elpd : float
        Sum of `pointwise`; of two models the one with the larger predicts better.
    se : float
        Its standard error, from the spread over observations.
    p_loo : float
        Effective number of parameters: log density in the sample less `elpd`.
    pointwise : array (n_observations,)
        Log density of each observation given the others.
    pareto_k : array (n_observations,)
        Shape of the tail of each observation's weights.
    n_draws : int
        Draws of all chains.
    """

    elpd: float
    se: float
    p_loo: float
    pointwise: Array
    pareto_k: Array
    n_draws: int

    @property
    def pareto_limit(self) -> float:
        """Shape above which an observation's estimate is not to be trusted: 0.7, less for few draws."""
        return min(1.0 - 1.0 / math.log10(self.n_draws), 0.7)

    def diagnose(self) -> list[str]:
        """What a careful reader should know before using the estimate, a sentence each; empty if all is well."""
        bad = np.flatnonzero(~(self.pareto_k <= self.pareto_limit))
        if not len(bad):
            return []
        worst = int(bad[np.argmax(np.nan_to_num(self.pareto_k[bad], nan=np.inf))])
        return [
            f"At {len(bad)} of {len(self.pareto_k)} observations the weights have a heavy tail (Pareto k up to "
            f"{self.pareto_k[worst]:.2f}, above {self.pareto_limit:.2f}, at observation {worst}): the posterior "
            "without one is too far from that with all; fit without it, or use a model with heavier tails."
        ]

    def __sub__(self, other: LeaveOneOut) -> tuple[float, float]:
        """Difference of two models of the same observations, and its standard error."""
        if len(self.pointwise) != len(other.pointwise):
            raise ValueError(
                f"both must be of the same observations, got {len(self.pointwise)} and {len(other.pointwise)}"
            )
        differences = self.pointwise - other.pointwise
        return float(differences.sum()), float(math.sqrt(len(differences) * differences.var()))

    def __repr__(self) -> str:
        return f"<LeaveOneOut: elpd {self.elpd:.2f} +- {self.se:.2f}, p_loo {self.p_loo:.2f}>"


def loo(
    log_likelihood: ArrayLike | Callable[[dict[str, Any]], Any],
    trace: Trace | None = None,
    *,
    efficiency: float | None = None,
    warn: bool = True,
) -> LeaveOneOut:
    """Leave-one-out cross-validation from the draws of one fit.

    Parameters
    ----------
    log_likelihood : array (n_chains, n_draws, n_observations) or callable
        Log density of each observation at each draw; or a function of a dict of the variables of `trace`, one draw of
        each, that gives (n_observations,).
    trace : Trace, optional
        Needed for a function.
    efficiency : float, optional
        Effective draws by draws, which sets the length of the tail that is smoothed; estimated from the likelihood of
        each observation by default.
    warn : bool, default=True
        Give a ConvergenceWarning for each problem that ``diagnose()`` finds.

    Returns
    -------
    LeaveOneOut
        ``elpd``, ``se``, ``p_loo``, ``pareto_k``, ``pointwise``. Two of them subtracted give a difference and its
        standard error.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference.comparison import loo
    >>> rng = np.random.default_rng(0)
    >>> y = rng.normal(size=50)
    >>> means = rng.normal(y.mean(), 1 / np.sqrt(50), size=(4, 1000))  # the posterior of a normal mean
    >>> found = loo(-0.5 * (y - means[:, :, None]) ** 2 - 0.5 * np.log(2 * np.pi))
    >>> found.diagnose(), bool(0.5 < found.p_loo < 1.5)
    ([], True)
    """
    values = _pointwise(log_likelihood, trace)
    if efficiency is not None and not 0 < efficiency < math.inf:
        raise ValueError(f"efficiency must be a positive number, got {efficiency!r}")
    n_chains, n_draws, n_observations = values.shape
    flat = values.reshape(-1, n_observations)
    pointwise, shapes = np.empty(n_observations), np.empty(n_observations)
    for i, column in enumerate(flat.T):
        share = _efficiency(values[:, :, i]) if efficiency is None else float(efficiency)
        weights, shapes[i] = smooth_log_weights(-column, share)
        pointwise[i] = logsumexp(weights + column) - logsumexp(weights)
    inside = logsumexp(flat, axis=0) - math.log(len(flat))
    found = LeaveOneOut(
        elpd=float(pointwise.sum()),
        se=float(math.sqrt(n_observations * pointwise.var())),
        p_loo=float((inside - pointwise).sum()),
        pointwise=pointwise,
        pareto_k=shapes,
        n_draws=n_chains * n_draws,
    )
    problems = found.diagnose()
    if warn and problems:
        from sklearn.exceptions import ConvergenceWarning

        warnings.warn(problems[0], ConvergenceWarning, stacklevel=2)
    return found


def _pointwise(log_likelihood: Any, trace: Trace | None) -> Array:
    if callable(log_likelihood):
        if trace is None:
            raise ValueError("a function log_likelihood needs the trace whose draws it takes")
        log_likelihood = [
            [log_likelihood({name: trace[name][chain, draw] for name in trace}) for draw in range(trace.n_draws)]
            for chain in range(trace.n_chains)
        ]
    values = np.asarray(log_likelihood, dtype=np.float64)
    if values.ndim != 3 or not values.size or values.shape[0] * values.shape[1] < 25:
        raise ValueError(
            "log_likelihood must be of shape (n_chains, n_draws, n_observations) with 25 draws at least, got shape "
            f"{values.shape}"
        )
    if not np.isfinite(values).all():
        raise ValueError("log_likelihood must be finite at every draw and observation")
    return values


def _efficiency(values: Array) -> float:
    """Effective draws by draws for the likelihood (n_chains, n_draws) of one observation."""
    found = ess_mean(np.exp(values - values.max())) / values.size
    return min(max(found, 0.01), 1.0) if math.isfinite(found) else 1.0
