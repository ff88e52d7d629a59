"""Bridge sampling: the evidence from the draws of Markov chains.

A normal g is fitted to one half of the draws. With the other half, n1 of an effective size e, and n2 draws of g, the
evidence is the fixed point of [1]_

    Z = mean_g [p / (s1 p + s2 Z g)] / mean_post [g / (s1 p + s2 Z g)],    s1 = e / (e + n2),  s2 = n2 / (e + n2)

for the density p, prior times likelihood. Its relative variance is [2]_ the sum of those of the two means, where that
over the chains counts effective draws. Neither p/g nor g/p need have a variance: that is why it does better than
importance sampling from g. Warping (Warp-III, [3]_) makes p symmetric by averaging it with its mirror image in the
mean, so that a skewed p and g are nearer, at twice the evaluations.

References
----------
.. [1] Meng, X.-L. and Wong, W. H. (1996). Simulating ratios of normalizing constants via a simple identity. Statistica
   Sinica 6.
.. [2] Fruehwirth-Schnatter, S. (2004). Estimating marginal likelihoods for mixture and Markov switching models using
   bridge sampling techniques. Econometrics Journal 7.
.. [3] Meng, X.-L. and Schilling, S. (2002). Warp bridge sampling. J. Comput. Graph. Stat. 11.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pluri.inference.ais.log_densities import evaluate_rows
from pluri.inference.ais.transitions import covariance_root
from pluri.inference.mcmc.diagnostics import ess_mean
from pluri.inference.mcmc.trace import Trace
from pluri.inference.mcmc.transforms.space import Space
from pluri.validation import Number, RandomState, as_generator, check_count, check_value

__all__ = ["BridgeEvidence", "bridge_sampling"]

Array = NDArray[np.float64]
FEWEST_EFFECTIVE = 100.0


@dataclass(frozen=True)
class BridgeEvidence:
    """The evidence by bridge sampling.

    Attributes
    ----------
    log_z : float
        Logarithm of the integral of the density.
    log_z_se : float
        Its standard error, with the effective size of the chains. The chains must have visited all of the posterior.
    ess : float
        Effective number of draws of the chains' half, for the mean over them.
    n_iter : int
        Iterations to the fixed point.
    converged : bool
    n_evaluations : int
        Of the log density.
    """

    log_z: float
    log_z_se: float
    ess: float
    n_iter: int
    converged: bool
    n_evaluations: int

    def diagnose(self) -> list[str]:
        """What a careful reader should know before using the evidence, a sentence each; empty if all is well."""
        problems = []
        if not self.converged:
            problems.append(f"The iteration did not come to rest in {self.n_iter} steps: raise max_iter.")
        if not self.ess >= FEWEST_EFFECTIVE:
            problems.append(
                f"The draws are worth {self.ess:.0f} independent ones in the bridge: the standard error is itself "
                "uncertain; use more draws, or warp=True for a skewed posterior."
            )
        if not self.log_z_se < 0.5:
            problems.append(
                f"The standard error is {self.log_z_se:.2f}: the normal proposal and the posterior hardly overlap; use "
                "more draws, other coordinates, or warp=True."
            )
        return problems

    def __repr__(self) -> str:
        return f"<BridgeEvidence: log Z {self.log_z:.4f} +- {self.log_z_se:.4f}>"


class _Proposal(NamedTuple):
    """A normal with this mean and lower triangular root of the covariance."""

    mean: Array
    root: Array

    def log_density(self, points: Array) -> Array:
        y = np.linalg.solve(self.root, (points - self.mean).T)
        values: Array = -0.5 * np.square(y).sum(axis=0) - self._log_constant()
        return values

    def _log_constant(self) -> float:
        return 0.5 * len(self.mean) * math.log(2 * math.pi) + float(np.log(np.diagonal(self.root)).sum())


def bridge_sampling(
    trace: Trace,
    log_density: Callable[[Any], Any],
    *,
    space: Space | None = None,
    warp: bool = False,
    n_proposal: int | None = None,
    vectorized: bool = False,
    max_iter: int = 1000,
    tol: float = 1e-10,
    random_state: RandomState = None,
    warn: bool = True,
) -> BridgeEvidence:
    """Evidence of a model from the draws of chains of its posterior.

    Parameters
    ----------
    trace : Trace
        Of a variable "x" of vectors, or of the variables of `space`.
    log_density : callable
        Log of the prior times the likelihood with *all* constants, at a vector (d,), or with `space` at a dict of the
        variables, as :meth:`pluri.inference.mcmc.Space.density` takes it.
    space : Space, optional
        Constrained variables; the bridge is built between their free vectors.
    warp : bool, default=False
        Make the posterior symmetric (Warp-III), for skewed ones; doubles the evaluations.
    n_proposal : int, optional
        Draws of the normal; by default as many as there are draws in half of the trace.
    vectorized : bool, default=False
        True if `log_density` takes all points (n, d) at a time; not with `space`.
    max_iter, tol : int, float
        Iterations at most, and the change of log Z at which they end.
    random_state : int, Generator, RandomState or None
    warn : bool, default=True
        Give a ConvergenceWarning for each problem that ``diagnose()`` finds.

    Returns
    -------
    BridgeEvidence
        ``log_z``, ``log_z_se``, ``diagnose()``.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference import mcmc
    >>> from pluri.inference.comparison import bridge_sampling
    >>> def log_density(x):  # a standard normal prior, and 1 was measured with sd 1/2
    ...     return -0.5 * x @ x - 2.0 * (1.0 - x[0]) ** 2 - np.log(np.pi)
    >>> kernel = mcmc.NUTS(lambda x: (log_density(x), -x + 4.0 * (1.0 - x)))
    >>> trace = mcmc.sample(kernel, np.zeros(1), n_draws=500, n_warmup=300, random_state=0)
    >>> found = bridge_sampling(trace, log_density, random_state=0)
    >>> exact = -0.5 / 1.25 - 0.5 * np.log(2 * np.pi * 1.25)
    >>> bool(abs(found.log_z - exact) < 4 * found.log_z_se < 0.1)
    True
    """
    check_count(max_iter, "max_iter")
    check_value(tol, "tol", Number(above=0))
    if space is not None:
        if vectorized:
            raise ValueError("vectorized must be False with a space, whose densities take one vector at a time")
        log_density = space.density(log_density)
    rng = as_generator(random_state)
    points = free_vectors(trace, space)
    n_chains, n_draws, dim = points.shape
    if n_draws < 4 or n_chains * n_draws < 4 * (dim + 1):
        raise ValueError(
            f"trace must hold at least 4 draws of each chain and {4 * (dim + 1)} in all, got {n_chains} x {n_draws}"
        )
    fitted, used = points[:, : n_draws // 2].reshape(-1, dim), points[:, n_draws // 2 :]
    proposal = _Proposal(fitted.mean(axis=0), covariance_root(fitted, np.full(len(fitted), 1.0 / len(fitted))))
    n_proposal = used.shape[0] * used.shape[1] if n_proposal is None else check_count(n_proposal, "n_proposal", 2)
    drawn = proposal.mean + rng.standard_normal((n_proposal, dim)) @ proposal.root.T

    def log_ratio(x: Array) -> Array:
        logs = evaluate_rows(log_density, x, "log_density", vectorized)
        if warp:
            mirrored = evaluate_rows(log_density, 2.0 * proposal.mean - x, "log_density", vectorized)
            logs = np.logaddexp(logs, mirrored) - math.log(2.0)
        if np.isnan(logs).any() or (logs == np.inf).any():
            raise ValueError("log_density must be a number below infinity, got NaN or inf")
        return logs - proposal.log_density(x)

    of_chains = log_ratio(used.reshape(-1, dim)).reshape(used.shape[:2])
    if not np.isfinite(of_chains).all():
        raise ValueError("log_density must be finite at the draws of trace: they are not draws of it")
    found = _bridge(of_chains, log_ratio(drawn), max_iter, tol, (1 + warp) * (of_chains.size + n_proposal))
    problems = found.diagnose()
    if warn and problems:
        from sklearn.exceptions import ConvergenceWarning

        for problem in problems:
            warnings.warn(problem, ConvergenceWarning, stacklevel=2)
    return found


def free_vectors(trace: Trace, space: Space | None) -> Array:
    """Draws (n_chains, n_draws, d) without constraints."""
    if space is None or (list(trace) == ["x"] and "x" not in space.variables):
        if list(trace) != ["x"]:
            raise ValueError(f"trace must hold one variable 'x', or give its space; it holds {', '.join(trace)}")
        points = np.asarray(trace["x"], dtype=np.float64)
        if points.ndim == 2:
            points = points[:, :, None]
        if points.ndim != 3:
            raise ValueError(f"trace must hold vectors, got draws of shape {points.shape[2:]}")
        return points
    missing = [name for name in space if name not in trace.draws]
    if missing:
        raise ValueError(f"trace must hold the variables of space; {missing[0]!r} is missing")
    return np.array(
        [
            [space.unconstrain({name: trace[name][chain, draw] for name in space}) for draw in range(trace.n_draws)]
            for chain in range(trace.n_chains)
        ]
    )


def _bridge(of_chains: Array, of_proposal: Array, max_iter: int, tol: float, n_evaluations: int) -> BridgeEvidence:
    """The fixed point for log ratios p/g at the draws of the chains (n_chains, n) and of the proposal (n2,)."""
    # Effective size at a first guess of Z; the weights s only steer efficiency, and stay.
    centre = float(np.median(of_chains))
    effective = _effective(_parts(of_chains, of_proposal, centre, 0.5, 0.5)[1])
    s1 = effective / (effective + len(of_proposal))
    s2 = 1.0 - s1
    log_z, n_iter, converged = centre, 0, False
    while not converged and n_iter < max_iter:
        n_iter += 1
        top, bottom = _parts(of_chains, of_proposal, log_z, s1, s2)
        # Both parts are for p over Z, so that their ratio is the correction of Z.
        change = math.log(top.mean()) - math.log(bottom.mean()) if top.any() else -math.inf
        log_z += change
        converged = abs(change) < tol
        if not math.isfinite(log_z):
            raise ValueError("log_density is -inf at all draws of the normal proposal: there is no bridge to build")
    top, bottom = _parts(of_chains, of_proposal, log_z, s1, s2)
    effective = _effective(bottom)
    variance = top.var(ddof=1) / top.mean() ** 2 / top.size + bottom.var(ddof=1) / bottom.mean() ** 2 / effective
    return BridgeEvidence(log_z, math.sqrt(variance), effective, n_iter, converged, n_evaluations)


def _parts(of_chains: Array, of_proposal: Array, log_z: float, s1: float, s2: float) -> tuple[Array, Array]:
    """``p / (s1 p + s2 g)`` at the proposal's draws and ``g / (s1 p + s2 g)`` at those of the chains, p over Z."""
    with np.errstate(over="ignore"):
        return 1.0 / (s1 + s2 * np.exp(log_z - of_proposal)), 1.0 / (s1 * np.exp(of_chains - log_z) + s2)


def _effective(values: Array) -> float:
    """Effective draws for the mean, no more than there are; all if they do not vary."""
    found = ess_mean(values)
    return min(found, float(values.size)) if math.isfinite(found) and found > 0 else float(values.size)
