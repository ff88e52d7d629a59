"""What is known of a sampler: the more of it is said, the more can be checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pluri.testing.enumeration import DiscretePosterior
from pluri.testing.quantities import Statistics


@dataclass(frozen=True)
class SamplerProblem:
    """A sampler and what is known of its target. Fields that are not known stay None.

    Either the sampler belongs to a model (`prior`, `data`, `transition`), or it has one target that can be drawn from
    exactly (`kernel`, `exact_draws`), or both.

    Parameters
    ----------
    name : str
    prior : callable, optional
        ``prior(rng) -> theta``.
    data : callable, optional
        ``data(rng, theta) -> y``.
    transition : callable, optional
        ``transition(rng, theta, y) -> theta``, which leaves p(theta | y) invariant; see `kernel_transition`.
    kernel : Kernel or callable, optional
        A kernel with all its settings given, or ``(rng, position) -> position``, with one target.
    exact_draws : callable, optional
        ``exact_draws(rng) -> position``: one exact draw from the kernel's target.
    posterior : DiscretePosterior, optional
        The exact posterior given `observed`, or the kernel's target, by enumeration.
    observed : object, optional
        The data of `posterior`.
    canonical : callable, optional
        Position to the form in which `posterior` counts it, such as `canonical_labels`.
    sampler : callable, optional
        ``sampler(rng, y, n_draws) -> draws``: the whole sampler, with its warm-up, for calibration.
    value_and_grad : callable, optional
        The function whose gradient the sampler uses.
    positions : sequence, optional
        Where the gradient is checked.
    statistics : callable, optional
        ``statistics(theta, y) -> dict``: what is compared; y is None for a kernel with one target.
    log_likelihood : callable, optional
        ``log_likelihood(theta, y) -> float``.
    reversible : bool, default=False
        The kernel is reversible, so that more can be tested.
    n_steps : int, default=10
        Steps of each replication.
    initial : object or callable, optional
        A start far from the target, or ``initial(rng)``. With `n_convergence` it is checked that the kernel comes to
        its target from there; a transition starts from another draw of the prior.
    n_convergence : int, optional
        Steps after which the sampler has surely forgotten its start. That check alone has no exact false-alarm rate.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference import mcmc
    >>> from pluri.testing import SamplerProblem, check_sampler
    >>> def normal(x):
    ...     return -0.5 * x @ x, -x
    >>> problem = SamplerProblem("HMC", kernel=mcmc.HMC(normal, step_size=0.5, n_leapfrog=4), reversible=True,
    ...                          exact_draws=lambda rng: rng.normal(size=2), value_and_grad=normal,
    ...                          positions=[np.ones(2)], n_steps=3, initial=np.full(2, 5.0), n_convergence=20)
    >>> report = check_sampler(problem, n_replications=300, random_state=0)
    >>> report.passed, [line.check for line in report.lines]
    (True, ['gradient', 'repeats itself', 'input untouched', 'moves', 'invariance', 'convergence'])
    """

    name: str
    prior: Callable[[np.random.Generator], Any] | None = None
    data: Callable[[np.random.Generator, Any], Any] | None = None
    transition: Callable[[np.random.Generator, Any, Any], Any] | None = None
    kernel: Any = None
    exact_draws: Callable[[np.random.Generator], Any] | None = None
    posterior: DiscretePosterior | None = None
    observed: Any = None
    canonical: Callable[[Any], Any] | None = None
    sampler: Callable[[np.random.Generator, Any, int], Any] | None = None
    value_and_grad: Callable[[Any], tuple[Any, Any]] | None = None
    positions: Sequence[Any] = ()
    statistics: Statistics | None = None
    log_likelihood: Callable[[Any, Any], float] | None = None
    reversible: bool = False
    n_steps: int = 10
    initial: Any = None
    n_convergence: int | None = None

    def __post_init__(self) -> None:
        if (self.prior is None) != (self.data is None):
            raise ValueError("prior and data must be given together")
        if self.transition is not None and self.prior is None:
            raise ValueError("transition needs prior and data")
        if self.transition is None and self.kernel is None and self.sampler is None:
            raise ValueError("one of transition, kernel and sampler must be given: there is nothing to check")
        if self.sampler is not None and self.prior is None:
            raise ValueError("sampler needs prior and data")
        if self.exact_draws is not None and self.kernel is None:
            raise ValueError("exact_draws needs a kernel")
        if self.value_and_grad is not None and len(self.positions) == 0:
            raise ValueError("value_and_grad needs positions at which to check it")
