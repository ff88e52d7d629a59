"""A kernel that starts from exact draws of its target must end in exact draws, after any number of steps.

The ends of independent runs are independent, so that two-sample tests against further exact draws, and paired tests
against their own starts, have known false-alarm rates. If the kernel is *reversible*, start x and end x' may also be
exchanged: ``f(x') - f(x)`` is symmetric around zero for every f, and signed-rank tests of the differences are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pluri.testing.comparison import Outcome, overall_p_value
from pluri.testing.false_alarms import Decision, Stage
from pluri.testing.quantities import named_scalars
from pluri.testing.replications import LEAST_REPLICATIONS, as_run, compare_in_stages, compare_runs, replicate
from pluri.validation import RandomState, as_generator, check_count
from pluri.validation.interruption import interruptible

#: One position to numbers by name.
Quantities = Callable[[Any], Mapping[str, Any]]


@dataclass(frozen=True, repr=False)
class InvarianceResult(Outcome):
    """What was found; `stages` tells the rounds of testing, the comparisons are those of the last."""

    stages: tuple[Stage, ...] = ()


@interruptible
def invariance_test(
    kernel: Any,
    exact_draws: Any,
    n_steps: int = 10,
    *,
    n_replications: int = 1000,
    quantities: Quantities | None = None,
    reversible: bool = False,
    alpha: float = 1e-3,
    max_stages: int = 3,
    random_state: RandomState = None,
) -> InvarianceResult:
    """Start a kernel from exact draws, step, and test that the ends are still exact.

    Parameters
    ----------
    kernel : Kernel or callable
        A kernel of `pluri.inference.mcmc` with all its settings given, or a function ``(rng, position) -> position``.
    exact_draws : callable or array-like
        ``exact_draws(rng) -> position``; or independent exact draws, of which one half is moved and compared with the
        other half (then there is one stage only).
    n_steps : int, default=10
    n_replications : int, default=1000
        Runs of the first stage, if `exact_draws` is a function.
    quantities : callable, optional
        ``quantities(position) -> dict`` of numbers or arrays; all coordinates by default.
    reversible : bool, default=False
        The kernel is known to be reversible: more can be tested. (HMC, NUTS, Metropolis-Hastings, slice sampling of one
        coordinate are; a Gibbs sweep in fixed order, or a cycle of kernels, is not.)
    alpha : float, default=1e-3
        False-alarm rate of the whole.
    max_stages : int, default=3
        How often a doubtful result is looked at again with four times as many runs; see `decide`.
    random_state : int, Generator or None

    Returns
    -------
    InvarianceResult

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference import mcmc
    >>> from pluri.testing import invariance_test
    >>> kernel = mcmc.HMC(lambda x: (-0.5 * x @ x, -x), step_size=0.5, n_leapfrog=4)
    >>> invariance_test(kernel, lambda rng: rng.normal(size=2), n_steps=2, reversible=True, random_state=0).passed
    True
    >>> def too_narrow(rng, x):  # 0.5 and the root of 0.75 would be right
    ...     return 0.5 * x + 0.7 * rng.normal(size=2)
    >>> invariance_test(too_narrow, lambda rng: rng.normal(size=2), random_state=0).passed
    False
    """
    check_count(n_steps, "n_steps")
    steps = as_run(kernel)
    rng = as_generator(random_state)

    def summarise(position: Any) -> dict[str, float]:
        return dict(named_scalars("x", position if quantities is None else quantities(position)))

    def run(rng: np.random.Generator, start: Any) -> tuple[dict[str, float], dict[str, float]]:
        before = summarise(start)
        return before, summarise(steps(rng, start, n_steps))

    if callable(exact_draws):
        decision, (comparisons, stopped) = compare_in_stages(
            lambda rng: run(rng, exact_draws(rng)), lambda rng: summarise(exact_draws(rng)), n_replications, rng,
            reversible=reversible, alpha=alpha, max_stages=max_stages,
        )  # fmt: skip
    else:
        draws = list(np.asarray(exact_draws))
        half = len(draws) // 2
        if half < LEAST_REPLICATIONS:
            raise ValueError(f"exact_draws must hold at least {2 * LEAST_REPLICATIONS} draws, got {len(draws)}")
        queue = iter(draws[:half])
        pairs, stopped = replicate(lambda rng: run(rng, next(queue)), half, rng)
        comparisons = compare_runs(pairs, [summarise(x) for x in draws[half:]], reversible)
        p_value = overall_p_value(comparisons)
        decision = Decision(p_value > alpha, alpha, (Stage(half, p_value, alpha, alpha),))
    return InvarianceResult(comparisons, decision.passed, alpha, stopped, decision.stages)
