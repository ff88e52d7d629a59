"""Importance sampling: expectations under a target from draws of another distribution.

For draws ``x_s ~ q`` the weights are ``w_s = p(x_s) / q(x_s)``, with p and q known up to constants; then
``Z_p / Z_q ~ mean w`` without bias, and ``E_p[a] ~ sum w_s a(x_s) / sum w_s`` with a bias of order 1/n. The weights are
good when they are nearly *constant*; q must reach wherever p is positive, and have tails at least as heavy.

References
----------
.. [1] Geweke, J. (1989). Bayesian inference in econometric models using Monte Carlo integration. Econometrica 57.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.inference.ais.log_densities import (
    LogDensity,
    Sampler,
    check_at_own_draws,
    check_callable,
    check_defined,
    check_not_flat,
    check_somewhere_positive,
    draw_points,
    evaluate_rows,
)
from pluri.inference.ais.weighted_samples import WeightedSamples, warn_of_weights
from pluri.validation import RandomState, as_generator, check_count
from pluri.validation.interruption import holding, interruptible, kept

__all__ = ["ImportanceSampler", "importance_sample"]


@interruptible
def importance_sample(
    log_target: LogDensity,
    sample_proposal: Sampler,
    log_proposal: LogDensity,
    n: int = 1000,
    *,
    vectorized: bool = True,
    batch_size: int | None = None,
    random_state: RandomState = None,
    warn: bool = True,
) -> WeightedSamples:
    """Draw from a proposal and weight the draws for a target.

    Parameters
    ----------
    log_target, log_proposal : callable
        Points (n, d) to log densities (n,), each up to a constant; -inf is a density of zero.
    sample_proposal : callable
        ``sample_proposal(rng, n)`` draws points (n, d).
    n : int, default=1000
        Draws.
    vectorized : bool, default=True
        False if the log densities take one point (d,) at a time.
    batch_size : int, optional
        Draws made at a time; all by default. Ctrl-C keeps the batches that are complete.
    random_state : int, Generator, RandomState or None
    warn : bool, default=True
        Give a ConvergenceWarning for each problem that ``diagnose()`` finds.

    Returns
    -------
    WeightedSamples
        ``log_z`` is the logarithm of the ratio of the constants, that of the target if the proposal is normalised.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference.ais.importance import importance_sample
    >>> samples = importance_sample(
    ...     lambda x: -0.5 * (x[:, 0] - 1) ** 2,
    ...     lambda rng, n: rng.normal(0, 1.5, (n, 1)),
    ...     lambda x: -0.5 * (x[:, 0] / 1.5) ** 2 - np.log(1.5 * np.sqrt(2 * np.pi)),
    ...     n=2000,
    ...     random_state=0,
    ... )
    >>> mean = samples.expect(lambda x: x[:, 0])
    >>> mean.low < 1 < mean.high, round(float(np.exp(samples.log_z)), 1)  # sqrt(2 pi) = 2.5
    (True, 2.5)
    """
    for value, name in (
        (log_target, "log_target"),
        (sample_proposal, "sample_proposal"),
        (log_proposal, "log_proposal"),
    ):
        check_callable(value, name)
    check_count(n, "n")
    batch = n if batch_size is None else check_count(batch_size, "batch_size")
    rng = as_generator(random_state)
    points: list[NDArray[Any]] = []
    log_weights: list[NDArray[np.float64]] = []
    with holding(having=log_weights) as block, np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for first in range(0, n, batch):
            x = draw_points(sample_proposal, rng, min(batch, n - first), "sample_proposal")
            proposal = evaluate_rows(log_proposal, x, "log_proposal", vectorized)
            check_at_own_draws(proposal, x, "log_proposal", "sample_proposal")
            target = evaluate_rows(log_target, x, "log_target", vectorized)
            check_defined(target, x, "log_target")
            if first == 0:
                check_not_flat(log_target, target, proposal, x, "log_target", vectorized)
            points.append(x)
            log_weights.append(target - proposal)
    weights = np.concatenate(log_weights)
    check_somewhere_positive(weights, "log_target", "sample_proposal")
    samples = WeightedSamples(np.concatenate(points[: len(log_weights)]), weights, block.interrupted)
    if block.interrupted:
        kept(f"interrupted after {len(samples)} of {n} draws; they are kept")
    if warn:
        warn_of_weights(samples)
    return samples


class ImportanceSampler:
    """Importance sampling with a target and a proposal kept at hand.

    Parameters
    ----------
    log_target, sample_proposal, log_proposal, vectorized, batch_size, random_state, warn
        As in :func:`importance_sample`.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference.ais.importance import ImportanceSampler
    >>> sampler = ImportanceSampler(
    ...     lambda x: -0.5 * (x**2).sum(1), lambda rng, n: rng.normal(size=(n, 2)), lambda x: -0.5 * (x**2).sum(1),
    ... )
    >>> sampler.run(500).ess  # the proposal is the target: all weights are equal
    500.0
    """

    def __init__(
        self,
        log_target: LogDensity,
        sample_proposal: Sampler,
        log_proposal: LogDensity,
        *,
        vectorized: bool = True,
        batch_size: int | None = None,
        random_state: RandomState = None,
        warn: bool = True,
    ) -> None:
        self.log_target = log_target
        self.sample_proposal = sample_proposal
        self.log_proposal = log_proposal
        self.vectorized = vectorized
        self.batch_size = batch_size
        self.random_state = random_state
        self.warn = warn

    def run(self, n: int = 1000) -> WeightedSamples:
        """Draw and weight `n` points."""
        return importance_sample(
            self.log_target, self.sample_proposal, self.log_proposal, n, vectorized=self.vectorized,
            batch_size=self.batch_size, random_state=self.random_state, warn=self.warn,
        )  # fmt: skip
