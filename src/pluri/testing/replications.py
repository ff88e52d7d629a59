"""Independent replications of an experiment, and what Ctrl-C leaves of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

import numpy as np

from pluri.testing.agreement import compare_exchangeable, compare_paired, compare_samples
from pluri.testing.comparison import Comparison, overall_p_value
from pluri.testing.false_alarms import Decision, decide
from pluri.testing.quantities import stack
from pluri.validation.interruption import holding

Row = TypeVar("Row")
#: Fewer replications than this are not worth a p-value.
LEAST_REPLICATIONS = 20
#: Comparisons, and whether Ctrl-C came.
Evidence = tuple[tuple[Comparison, ...], bool]
Experiment = Callable[[np.random.Generator], dict[str, float]]
#: Quantities at the start, which is an exact draw (or None), and at the end of a run.
Run = Callable[[np.random.Generator], tuple[dict[str, float] | None, dict[str, float]]]


def replicate(
    experiment: Callable[[np.random.Generator], Row], n: int, rng: np.random.Generator
) -> tuple[list[Row], bool]:
    """Do an experiment `n` times; also tells whether Ctrl-C ended it early.

    What was made before Ctrl-C is kept if it is enough for a test; otherwise KeyboardInterrupt goes on.
    """
    rows: list[Row] = []
    message = lambda: f"interrupted after {len(rows)} of {n} replications; these are tested"  # noqa: E731
    with holding(message, having=lambda: len(rows) >= LEAST_REPLICATIONS) as block:
        for _ in range(n):
            rows.append(experiment(rng))
    return rows, block.interrupted


def compare_in_stages(
    tested: Run, exact: Experiment, n: int, rng: np.random.Generator, *, ratio: float = 1.0, reversible: bool = False,
    alpha: float, max_stages: int,
) -> tuple[Decision, Evidence]:  # fmt: skip
    """Decide whether runs end in draws like exact ones, of which there are `ratio` for each run."""

    def run(n: int) -> tuple[float, Evidence]:
        rows, stopped = replicate(tested, n, rng)
        others, stopped_too = replicate(exact, max(round(ratio * n), LEAST_REPLICATIONS), rng)
        comparisons = compare_runs(rows, others, reversible)
        return overall_p_value(comparisons), (comparisons, stopped or stopped_too)

    return decide(run, n, alpha=alpha, max_stages=max_stages, finished=lambda evidence: evidence[1])


def compare_runs(
    rows: Sequence[tuple[Mapping[str, float] | None, Mapping[str, float]]],
    others: Sequence[Mapping[str, float]],
    reversible: bool = False,
) -> tuple[Comparison, ...]:
    """Ends of runs against exact draws, and against their own starts if these are known."""
    ends, exact = stack([end for _, end in rows]), stack(others)
    comparisons = compare_samples(ends, exact)
    starts = [start for start, _ in rows if start is not None]
    if starts:
        comparisons += compare_exchangeable(stack(starts), ends) if reversible else ()
        comparisons += compare_paired(stack(starts), ends, exact)
    return comparisons


def kernel_transition(kernel_given_data: Callable[[Any], Any], n_steps: int = 1) -> Callable[..., Any]:
    """Transition ``(rng, theta, y) -> theta`` of a `pluri.inference.mcmc` kernel whose target depends on the data.

    Parameters
    ----------
    kernel_given_data : callable
        ``kernel_given_data(y) -> Kernel``, with all settings given: nothing is adapted.
    n_steps : int, default=1
        Steps of the kernel in one transition.

    Returns
    -------
    callable

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference import mcmc
    >>> from pluri.testing import kernel_transition
    >>> def posterior(y):  # theta ~ N(0, 1), y ~ N(theta, 1)
    ...     return mcmc.HMC(lambda x: (-0.5 * x @ x - 0.5 * (y - x) @ (y - x), y - 2 * x), step_size=0.3)
    >>> transition = kernel_transition(posterior)
    >>> transition(np.random.default_rng(0), np.zeros(1), np.ones(1)).shape
    (1,)
    """

    def transition(rng: np.random.Generator, theta: Any, y: Any) -> Any:
        return advance_kernel(without_checks(kernel_given_data(y)), rng, theta, n_steps)

    return transition


def advance_kernel(kernel: Any, rng: np.random.Generator, position: Any, n_steps: int) -> Any:
    """Position after some steps of a kernel."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        state = kernel.init(rng, position)
        for _ in range(n_steps):
            state, _ = kernel.step(rng, state)
    return state.position


def as_run(kernel: Any) -> Callable[[np.random.Generator, Any, int], Any]:
    """Some steps of a kernel, or of a function ``(rng, position) -> position``, from a position."""
    if hasattr(kernel, "step") and hasattr(kernel, "init"):
        bare = without_checks(kernel)
        return lambda rng, position, n_steps: advance_kernel(bare, rng, position, n_steps)
    if not callable(kernel):
        raise ValueError(f"kernel must have init and step, or be a function, got {type(kernel).__name__}")

    def run(rng: np.random.Generator, position: Any, n_steps: int) -> Any:
        for _ in range(n_steps):
            position = kernel(rng, position)
        return position

    return run


def without_checks(kernel: Any) -> Any:
    """The kernel without the checks of its target that it makes at each start: there are thousands of starts here."""
    if not is_dataclass(kernel) or isinstance(kernel, type):
        return kernel
    on = [field.name for field in fields(kernel) if field.name.startswith("check_") and field.init]
    return replace(kernel, **dict.fromkeys(on, False)) if on else kernel
