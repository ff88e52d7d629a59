"""The checks that a report is made of, each a function from a problem to one line."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pluri.testing.calibration import simulation_based_calibration
from pluri.testing.comparison import Comparison, overall_p_value
from pluri.testing.enumeration import configuration_key
from pluri.testing.false_alarms import Decision, decide
from pluri.testing.geweke import geweke_test
from pluri.testing.gradients import check_gradients
from pluri.testing.invariance import invariance_test
from pluri.testing.power import power_of_variance
from pluri.testing.problem import SamplerProblem
from pluri.testing.quantities import summarising
from pluri.testing.replications import as_run, compare_in_stages, replicate

#: Share by which a variance is wrong in the statements of power.
NOTICED = 0.1
#: Replications in which every quantity must have moved.
N_TRIALS = 20
#: Trials after which a quantity that has not moved is called stuck: a proposal may be refused many times in a row.
MOST_TRIALS = 500


@dataclass(frozen=True)
class CheckLine:
    """One line of a report.

    Attributes
    ----------
    check : str
        What was checked.
    detail : str
        The comparison with the smallest p-value, or what was found.
    statistic, p_value, threshold : float
        NaN where a check has none. The p-value is corrected for the comparisons of this check.
    passed : bool
    n_replications : int
        Replications of all stages.
    power, noticeable : float
        Probability that this check would notice a normal quantity whose variance is 10 % too large at the end of a
        run, and the share by which it must be too large to be noticed with probability 0.9; NaN where no such
        quantities are compared.
    """

    check: str
    detail: str
    statistic: float
    p_value: float
    threshold: float
    passed: bool
    n_replications: int = 0
    power: float = float("nan")
    noticeable: float = float("nan")


@dataclass(frozen=True)
class Setting:
    """A problem, and how much is to be done about it; `alpha` is the share of each random check."""

    problem: SamplerProblem
    alpha: float
    n_replications: int
    n_simulations: int
    max_stages: int


def _line(name: str, comparisons: Sequence[Comparison], decision: Decision, setting: Setting) -> CheckLine:
    worst = min(comparisons, key=lambda c: c.p_value)
    total = sum(stage.n_replications for stage in decision.stages)
    detail = f"{worst.quantity}: {worst.test}"
    line = CheckLine(name, detail, worst.statistic, decision.p_value, decision.threshold, decision.passed, total)
    if not any(one.test == "spread" for one in comparisons):
        return line
    n = setting.n_replications

    def power(error: float) -> float:
        return power_of_variance(
            error, n, n, n_comparisons=len(comparisons), alpha=setting.alpha, max_stages=setting.max_stages
        )

    noticeable = next((error for error in np.geomspace(0.01, 100.0, 400) if power(error) >= 0.9), np.inf)
    return replace(line, power=power(NOTICED), noticeable=float(noticeable))


def _plain(name: str, passed: bool, detail: str, statistic: float = np.nan) -> CheckLine:
    return CheckLine(name, detail, statistic, np.nan, np.nan, passed)


def _start(problem: SamplerProblem, rng: np.random.Generator) -> tuple[Any, Any, Callable[..., Any]]:
    """A position, data, and how to make some steps from there."""
    transition = problem.transition
    if transition is not None and problem.prior is not None and problem.data is not None:
        theta = problem.prior(rng)
        y = problem.data(rng, theta)
        return theta, y, as_run(lambda rng, position: transition(rng, position, y))
    move = as_run(problem.kernel)
    if problem.exact_draws is not None:
        return problem.exact_draws(rng), None, move
    if problem.posterior is not None:
        return problem.posterior.sample(rng), None, move
    return problem.initial(rng) if callable(problem.initial) else problem.initial, None, move


def _same(one: Any, other: Any) -> bool:
    if hasattr(one, "__dataclass_fields__"):
        return all(_same(getattr(one, name), getattr(other, name)) for name in one.__dataclass_fields__)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(_same, one, other))
    one, other = np.asarray(one), np.asarray(other)
    # A missing value that is still missing has not been touched.
    return bool(np.array_equal(one, other, equal_nan=one.dtype.kind == other.dtype.kind == "f"))


def _gradient(name: str, setting: Setting, rng: np.random.Generator) -> CheckLine:
    problem = setting.problem
    assert problem.value_and_grad is not None
    found = [check_gradients(problem.value_and_grad, x, raise_error=False) for x in problem.positions]
    worst = max(found, key=lambda check: float((check.error / check.tolerance).max()))
    return _plain(name, worst.passed, f"{worst.worst}: relative error", float((worst.error).max()))


def _repeats(name: str, setting: Setting, rng: np.random.Generator) -> CheckLine:
    theta, _, move = _start(setting.problem, rng)
    number = int(rng.integers(2**31))
    first, second = (move(np.random.default_rng(number), copy.deepcopy(theta), 1) for _ in range(2))
    same = _same(first, second)
    return _plain(name, same, "same random numbers, same step" if same else "it has a random stream of its own")


def _untouched(name: str, setting: Setting, rng: np.random.Generator) -> CheckLine:
    for _ in range(N_TRIALS):
        theta, y, move = _start(setting.problem, rng)
        before = copy.deepcopy((theta, y))
        move(rng, theta, 1)
        if not _same(before, (theta, y)):
            return _plain(name, False, "a step changes the position or data it was given")
    return _plain(name, True, f"{N_TRIALS} steps")


def _moves(name: str, setting: Setting, rng: np.random.Generator) -> CheckLine:
    problem = setting.problem
    likelihood = problem.log_likelihood if problem.transition is not None else None
    summarise = summarising(problem.statistics, likelihood, with_data=False)
    moved: dict[str, bool] = {}
    varies: dict[str, set[float]] = {}
    stuck: list[str] = []
    for trial in range(1, MOST_TRIALS + 1):
        theta, y, move = _start(problem, rng)
        after = summarise(move(rng, theta, problem.n_steps), y)
        for key, value in summarise(theta, y).items():
            moved[key] = moved.get(key, False) or value != after.get(key)
            varies.setdefault(key, set()).add(value)
        # A quantity that is always the same in exact draws, or is made of the data only, need not move.
        stuck = [key for key, value in moved.items() if not value and len(varies[key]) > 1]
        if trial >= N_TRIALS and not stuck:
            break
    if problem.statistics is not None and len(stuck) < len(moved):
        stuck = []
    return _plain(name, not stuck, f"{stuck[0]} never changes" if stuck else "every quantity changes")


def _geweke(name: str, setting: Setting, rng: np.random.Generator) -> CheckLine:
    problem = setting.problem
    assert problem.prior is not None
    assert problem.data is not None
    assert problem.transition is not None
    n = setting.n_replications
    result = geweke_test(
        problem.prior, problem.data, problem.transition, problem.statistics, n_marginal=n, n_successive=n,
        n_steps=problem.n_steps, log_likelihood=problem.log_likelihood, alpha=setting.alpha,
        max_stages=setting.max_stages, random_state=rng,
    )  # fmt: skip
    return _line(name, result.comparisons, Decision(result.passed, result.alpha, result.stages), setting)


def _invariance(name: str, setting: Setting, rng: np.random.Generator) -> CheckLine:
    problem = setting.problem
    statistics = problem.statistics
    result = invariance_test(
        problem.kernel, problem.exact_draws, problem.n_steps, n_replications=setting.n_replications,
        quantities=None if statistics is None else lambda position: statistics(position, None),
        reversible=problem.reversible, alpha=setting.alpha, max_stages=setting.max_stages, random_state=rng,
    )  # fmt: skip
    return _line(name, result.comparisons, Decision(result.passed, result.alpha, result.stages), setting)


def _enumeration(name: str, setting: Setting, rng: np.random.Generator) -> CheckLine:
    problem = setting.problem
    posterior, transition = problem.posterior, problem.transition
    assert posterior is not None
    move = as_run(problem.kernel if transition is None else lambda rng, x: transition(rng, x, problem.observed))

    def run(rng: np.random.Generator) -> Any:
        position = move(rng, posterior.sample(rng), problem.n_steps)
        return configuration_key(position if problem.canonical is None else problem.canonical(position))

    def stage(n: int) -> tuple[float, tuple[Comparison, ...]]:
        ends, _ = replicate(run, n, rng)
        comparisons = posterior.compare(ends, independent=True).comparisons
        return overall_p_value(comparisons), comparisons

    decision, comparisons = decide(stage, setting.n_replications, alpha=setting.alpha, max_stages=setting.max_stages)
    return _line(name, comparisons, decision, setting)


def _convergence(name: str, setting: Setting, rng: np.random.Generator) -> CheckLine:
    problem = setting.problem
    assert problem.n_convergence is not None
    n_convergence, exact_draws, prior = problem.n_convergence, problem.exact_draws, problem.prior
    # A kernel with one target has no data that a likelihood could be of.
    summarise = summarising(problem.statistics, problem.log_likelihood if exact_draws is None else None)

    def exact(rng: np.random.Generator) -> dict[str, float]:
        if exact_draws is not None:
            return summarise(exact_draws(rng), None)
        theta, y, _ = _start(problem, rng)
        return summarise(theta, y)

    def from_elsewhere(rng: np.random.Generator) -> tuple[None, dict[str, float]]:
        if exact_draws is not None:
            move, y = as_run(problem.kernel), None
            position = problem.initial(rng) if callable(problem.initial) else problem.initial
        else:
            assert prior is not None
            _, y, move = _start(problem, rng)
            position = problem.initial(rng) if callable(problem.initial) else prior(rng)
        return None, summarise(move(rng, position, n_convergence), y)

    decision, (comparisons, _) = compare_in_stages(
        from_elsewhere, exact, setting.n_replications, rng, alpha=setting.alpha, max_stages=setting.max_stages
    )
    return _line(name, comparisons, decision, setting)


def _calibration(name: str, setting: Setting, rng: np.random.Generator) -> CheckLine:
    problem = setting.problem
    prior, data, sampler = problem.prior, problem.data, problem.sampler
    assert prior is not None
    assert data is not None
    assert sampler is not None

    def stage(n: int) -> tuple[float, tuple[Comparison, ...]]:
        result = simulation_based_calibration(
            prior, data, sampler, n_simulations=n, quantities=problem.statistics,
            log_likelihood=problem.log_likelihood, random_state=rng,
        )  # fmt: skip
        return result.p_value, result.comparisons

    decision, comparisons = decide(stage, setting.n_simulations, alpha=setting.alpha, max_stages=setting.max_stages)
    return _line(name, comparisons, decision, setting)


Check = Callable[[str, Setting, np.random.Generator], CheckLine]
CHECKS: dict[str, Check] = {
    "gradient": _gradient,
    "repeats itself": _repeats,
    "input untouched": _untouched,
    "moves": _moves,
    "geweke": _geweke,
    "invariance": _invariance,
    "enumeration": _enumeration,
    "convergence": _convergence,
    "calibration": _calibration,
}
#: Checks that may fail by chance.
RANDOM_CHECKS = {"geweke", "invariance", "enumeration", "convergence", "calibration"}


def applicable(problem: SamplerProblem) -> dict[str, Check]:
    """Checks for which a problem says enough."""
    model = problem.prior is not None and problem.transition is not None
    target = problem.kernel is not None and problem.exact_draws is not None
    steps = model or target or (problem.kernel is not None and problem.posterior is not None)
    applies = {
        "gradient": problem.value_and_grad is not None,
        "repeats itself": steps,
        "input untouched": steps,
        "moves": steps,
        "geweke": model,
        "invariance": target,
        "enumeration": problem.posterior is not None,
        "convergence": problem.n_convergence is not None and (model or (target and problem.initial is not None)),
        "calibration": problem.sampler is not None,
    }
    return {name: check for name, check in CHECKS.items() if applies[name]}
