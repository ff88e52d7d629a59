"""Mistakes that people make in samplers are caught, and the same samplers without them pass.

A correct sampler fails with probability at most 1e-6. That a mistake is caught is no matter of
luck either: the p-values are far below the limits.
"""

import copy

import numpy as np
import pytest
from scipy.special import gammaln

from pluri import on_interrupt
from pluri.testing import (
    SamplerError,
    SamplerProblem,
    canonical_labels,
    check_sampler,
    enumerate_posterior,
    set_partitions,
)

# A rate with a gamma prior and Poisson data ---------------------------------------------------------------------------


def draw_rate(rng):
    return rng.gamma(2.0)


def draw_counts(rng, rate):
    return rng.poisson(rate, size=3)


def log_posterior(rate, y):
    return np.log(rate) - rate + float((y * np.log(rate) - rate).sum()) if rate > 0 else -np.inf


def multiplying(rng, rate, y, *, hastings=True, power=1.0):
    """Metropolis-Hastings with an asymmetric proposal."""
    new = rate * np.exp(0.6 * rng.standard_normal())
    ratio = log_posterior(new, y) - log_posterior(rate, y)
    if hastings:
        ratio += np.log(new / rate)
    return new if np.log(rng.random()) < power * ratio else rate


def on_the_log_scale(rng, log_rate, y, *, jacobian=True):
    """A random walk on the logarithm of the rate: its density has a factor rate that is easily forgotten."""

    def value(x):
        return log_posterior(np.exp(x), y) + (x if jacobian else 0.0)

    new = log_rate + 0.6 * rng.standard_normal()
    return new if np.log(rng.random()) < value(new) - value(log_rate) else log_rate


def rate_problem(**mistakes):
    def move(rng, rate, y):
        return multiplying(rng, rate, y, **mistakes)

    return SamplerProblem(
        "rate", draw_rate, draw_counts, move, kernel=lambda rng, rate: move(rng, rate, np.array([2, 0, 3])),
        exact_draws=lambda rng: rng.gamma(7.0, 1 / 4.0), reversible=True, n_steps=5,
    )  # fmt: skip


def log_rate_problem(**mistakes):
    return SamplerProblem(
        "log rate", lambda rng: np.log(draw_rate(rng)), lambda rng, x: draw_counts(rng, np.exp(x)),
        lambda rng, x, y: on_the_log_scale(rng, x, y, **mistakes),
        kernel=lambda rng, x: on_the_log_scale(rng, x, np.array([2, 0, 3]), **mistakes),
        exact_draws=lambda rng: np.log(rng.gamma(7.0, 1 / 4.0)), reversible=True, n_steps=5,
    )  # fmt: skip


# A mixture with its parameters integrated out -------------------------------------------------------------------------

ALPHA, WEIGHT, N_ROWS, N_BITS = 1.0, 0.5, 4, 3


def log_marginal(ones, total):
    """Log probability of bits of one cluster under Beta(1/2, 1/2)."""
    return float(
        (gammaln(ones + WEIGHT) + gammaln(total - ones + WEIGHT) - gammaln(total + 2 * WEIGHT)).sum()
        - N_BITS * (2 * gammaln(WEIGHT) - gammaln(2 * WEIGHT))
    )


def log_joint(labels, bits):
    """Chinese restaurant prior times the marginal likelihood of each cluster."""
    value = gammaln(ALPHA) - gammaln(ALPHA + len(labels))
    for k in np.unique(labels):
        own = bits[labels == k]
        value += np.log(ALPHA) + gammaln(len(own)) + log_marginal(own.sum(axis=0), len(own))
    return float(value)


def draw_partition(rng):
    labels = [0]
    while len(labels) < N_ROWS:
        sizes = np.append(np.bincount(labels), ALPHA)
        labels.append(int(rng.choice(len(sizes), p=sizes / sizes.sum())))
    return np.array(labels)


def draw_bits(rng, labels):
    p = rng.beta(WEIGHT, WEIGHT, size=(labels.max() + 1, N_BITS))
    return (rng.random((N_ROWS, N_BITS)) < p[labels]).astype(int)


def collapsed_sweep(rng, labels, bits, *, stale=None):
    """One sweep of collapsed Gibbs.

    `stale` says which counts are old: "own" ones still hold the row that is being moved, those of the "sweep" are what
    they were before its first row moved.
    """
    labels = np.array(labels)
    counted = labels.copy()
    for i in range(N_ROWS):
        own = counted[i]
        if stale != "sweep":
            counted = labels.copy()
        if stale != "own":
            counted[i] = -1
        names = np.unique(counted[counted >= 0]).tolist()
        weights, choices = [], [*names, max([*names, own]) + 1]
        for k in choices:
            members = counted == k
            ones, total = bits[members].sum(axis=0), members.sum()
            gain = log_marginal(ones + bits[i], total + 1) - log_marginal(ones, total)
            weights.append(np.log(total or ALPHA) + gain)
        weights = np.exp(np.array(weights) - max(weights))
        labels[i] = choices[int(rng.choice(len(weights), p=weights / weights.sum()))]
        counted[i] = own
    return canonical_labels(labels)


def partition_statistics(labels, bits):
    sizes = np.bincount(labels)
    spread = sum(bits[labels == k].var(axis=0).sum() * size for k, size in enumerate(sizes) if size)
    return {
        "clusters": (sizes > 0).sum(),
        "squares": (sizes**2).sum(),
        "pair": labels[0] == labels[1],
        "spread": spread,
    }


def mixture_problem(**mistakes):
    observed = np.array([[0, 0, 1], [0, 0, 1], [1, 1, 0], [1, 0, 0]])
    return SamplerProblem(
        "mixture", draw_partition, draw_bits, lambda rng, labels, y: collapsed_sweep(rng, labels, y, **mistakes),
        statistics=partition_statistics, log_likelihood=log_joint, n_steps=3, observed=observed,
        canonical=canonical_labels,
        posterior=enumerate_posterior(
            lambda labels: log_joint(labels, observed), configurations=set_partitions(N_ROWS)
        ),
    )  # fmt: skip


PROBLEMS = {"rate": rate_problem, "log rate": log_rate_problem, "mixture": mixture_problem}
#: What is wrong, in which sampler, and the checks that must see it. Counts that still hold the row itself make a chain
#: lazy more than wrong: that one shows in enumeration only.
BUGS = {
    "no Hastings correction": ("rate", {"hastings": False}, {"geweke", "invariance"}),
    "square root of the acceptance ratio": ("rate", {"power": 0.5}, {"geweke", "invariance"}),
    "no Jacobian": ("log rate", {"jacobian": False}, {"geweke", "invariance"}),
    "counts not taken down": ("mixture", {"stale": "own"}, {"enumeration"}),
    "counts of the last sweep": ("mixture", {"stale": "sweep"}, {"geweke", "enumeration"}),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_correct_samplers_pass(name):
    report = check_sampler(PROBLEMS[name](), n_replications=300, alpha=1e-6, max_stages=5, random_state=1)
    report.raise_if_failed()
    assert "passed" in str(report)


@pytest.mark.parametrize("bug", BUGS)
def test_the_bug_is_caught(bug):
    name, mistake, caught_by = BUGS[bug]
    checks = caught_by if name == "mixture" else None  # these take longer
    # The smallest error of all needs most; over six seeds p-values are then below 1e-6.
    n_replications = 3000 if bug == "counts not taken down" else 5000 if name != "mixture" else 400
    report = check_sampler(PROBLEMS[name](**mistake), n_replications=n_replications, checks=checks, random_state=1)
    assert {line.check for line in report.lines if not line.passed} >= caught_by, str(report)
    with pytest.raises(SamplerError, match="FAIL"):
        report.raise_if_failed()


def test_a_sampler_that_never_moves_is_caught():
    problem = SamplerProblem("statue", draw_rate, draw_counts, lambda rng, rate, y: rate, n_convergence=20)
    report = check_sampler(problem, n_replications=200, alpha=1e-6, random_state=0)
    assert report["geweke"].passed  # it leaves everything invariant
    assert not report["moves"].passed
    assert not report["convergence"].passed


def test_a_sampler_that_moves_one_coordinate_only_is_caught():
    def half(rng, x):
        return np.array([x[0], rng.normal()])

    problem = SamplerProblem("half", kernel=half, exact_draws=lambda rng: rng.normal(size=2), n_steps=1)
    line = check_sampler(problem, checks=["moves"], random_state=0)["moves"]
    assert not line.passed
    assert line.detail == "theta[0] never changes"


def test_bad_habits_are_caught():
    hidden = np.random.default_rng(0)

    def changes_its_input(rng, x):
        x += rng.normal(size=2)
        return x

    target = {"exact_draws": lambda rng: rng.normal(size=2), "n_steps": 1}
    checks = ("repeats itself", "input untouched")
    own_stream = SamplerProblem("own stream", kernel=lambda rng, x: hidden.normal(size=2), **target)
    assert not check_sampler(own_stream, checks=checks, random_state=0)["repeats itself"].passed
    mutating = SamplerProblem("mutating", kernel=changes_its_input, **target)
    assert not check_sampler(mutating, checks=checks, random_state=0)["input untouched"].passed


def test_a_wrong_gradient_is_named():
    problem = SamplerProblem(
        "gradient", kernel=lambda rng, x: rng.normal(size=2), exact_draws=lambda rng: rng.normal(size=2),
        value_and_grad=lambda x: (-0.5 * x @ x, -np.array([1.0, 1.01]) * x), positions=[np.ones(2)],
    )  # fmt: skip
    line = check_sampler(problem, checks=["gradient"])["gradient"]
    assert not line.passed
    assert line.detail.startswith("x[1]")


def test_calibration_catches_a_narrow_posterior():
    def posterior(width):
        return lambda rng, y, n: rng.normal(y / 2, width * np.sqrt(0.5), size=n)

    def problem(width):
        return SamplerProblem(
            "normal", lambda rng: rng.normal(), lambda rng, t: rng.normal(t), sampler=posterior(width)
        )

    assert check_sampler(problem(1.0), alpha=1e-6, random_state=0).passed
    assert not check_sampler(problem(0.7), random_state=0)["calibration"].passed


def test_the_false_alarm_rate_is_what_it_says():
    """Exact samplers at alpha 0.2: of 100, more than 40 fail with probability below 2e-6 (binomial)."""
    problem = SamplerProblem(
        "exact", draw_rate, draw_counts, lambda rng, rate, y: rng.gamma(2.0 + y.sum(), 0.25), n_steps=1,
    )  # fmt: skip
    rng = np.random.default_rng(5)
    failures = sum(
        not check_sampler(problem, alpha=0.2, n_replications=100, checks=["geweke"], random_state=rng).passed
        for _ in range(100)
    )
    assert failures <= 40


def test_a_report_does_not_depend_on_which_other_checks_run():
    # The level of one of several checks is lower, so that about one in twenty is repeated in one report only: all four
    # are once in 10^5 runs. Streams that depended on each other would never agree.
    equal = 0
    for seed in range(4):
        one = check_sampler(rate_problem(), n_replications=100, checks=["invariance"], random_state=seed)["invariance"]
        both = check_sampler(rate_problem(), n_replications=100, random_state=seed)["invariance"]
        equal += (one.statistic, one.p_value) == (both.statistic, both.p_value)
    assert equal


def test_ctrl_c_keeps_the_lines_made_so_far():
    calls = []

    def interrupted(rng, rate, y):
        calls.append(0)
        if len(calls) > 300:
            raise KeyboardInterrupt
        return rng.gamma(2.0 + y.sum(), 0.25)

    problem = SamplerProblem("slow", draw_rate, draw_counts, interrupted, n_steps=10)
    with on_interrupt("keep"), pytest.warns(UserWarning, match="interrupted after 3 of 4 checks"):
        report = check_sampler(problem, random_state=0)
    assert report.interrupted
    assert [line.check for line in report.lines] == ["repeats itself", "input untouched", "moves"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "one of transition, kernel and sampler"),
        ({"prior": draw_rate, "transition": multiplying}, "prior and data must be given together"),
        ({"transition": multiplying}, "transition needs prior and data"),
        ({"kernel": multiplying, "value_and_grad": lambda x: (0, x)}, "value_and_grad needs positions"),
        ({"transition": multiplying, "prior": draw_rate, "data": draw_counts, "exact_draws": draw_rate}, "a kernel"),
    ],
)
def test_incomplete_problems_are_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        SamplerProblem("incomplete", **fields)


def test_unknown_checks_are_refused():
    with pytest.raises(ValueError, match="must be among those that apply"):
        check_sampler(rate_problem(), checks=["magic"])


def test_problems_can_be_copied():
    assert copy.deepcopy(rate_problem()).name == "rate"
