"""Geweke's joint distribution test: does a transition leave the posterior invariant, for every data set at once?

There are two ways of drawing parameters and data from their joint distribution p(theta) p(y | theta):

    marginal-conditional     theta ~ p(theta), y ~ p(y | theta), independently each time;
    successive-conditional   a chain that alternates theta ~ K(. | theta, y) and y ~ p(y | theta).

The second has the joint distribution as its stationary one if K leaves p(theta | y) invariant, so whatever differs
between them is a mistake in K, or in what K assumes of the model [1]_. Neither needs a posterior that is known.

`mode` says how the two are compared.

- ``"replicated"``: many short chains, each from a new exact draw. All their ends are independent and, if K is right,
  exactly distributed, so that tests against other draws, and against the starts, have known false-alarm rates, and
  doubtful cases are run again [2]_.
- `Ranks`: a chain runs forwards and backwards from an exact draw at a random place in it; the rank of that place
  among the others is uniform, exactly. Needs the reversed transition.
- `LongChains`: the original, long chains and z-scores with the effective number of draws; its p-values are approximate.

References
----------
.. [1] Geweke, J. (2004). Getting it right: joint distribution tests of posterior simulators. JASA 99, 799-804.
.. [2] Gandy, A. and Scott, J. (2020). Unit testing for MCMC and other Monte Carlo methods. arXiv:2001.06465.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from pluri.testing.comparison import Comparison, Outcome, overall_p_value
from pluri.testing.false_alarms import Stage, decide
from pluri.testing.long_chains import compare_with_chains
from pluri.testing.quantities import Statistics, stack, summarising
from pluri.testing.replications import LEAST_REPLICATIONS, Evidence, compare_in_stages, replicate
from pluri.testing.uniformity import rank_chi_square, rank_envelope
from pluri.validation import Made, Only, RandomState, as_generator, check_count, check_value
from pluri.validation.interruption import interruptible

Prior = Callable[[np.random.Generator], Any]
DataModel = Callable[[np.random.Generator, Any], Any]
Transition = Callable[[np.random.Generator, Any, Any], Any]
#: Exact draws from which the middle of each quantity is learned.
N_PILOTS = 50


@dataclass(frozen=True, repr=False)
class GewekeResult(Outcome):
    """What the joint distribution test found.

    Attributes
    ----------
    mode : str
    stages : tuple of Stage
        Rounds of testing; the comparisons are those of the last.
    """

    mode: str = "replicated"
    stages: tuple[Stage, ...] = ()


@dataclass(frozen=True)
class Ranks:
    """Compare the rank of an exact draw within a chain through it.

    Parameters
    ----------
    reverse : callable
        The transition backwards in time; the transition itself if it is reversible. (A Gibbs sweep goes backwards by
        visiting its blocks in the opposite order.)
    """

    reverse: Transition


@dataclass(frozen=True)
class LongChains:
    """Compare long chains, which begin with an exact draw, by z-scores.

    Parameters
    ----------
    n_chains : int, default=4
    thin : int, default=1
        Steps from one draw to the next.
    """

    n_chains: int = 4
    thin: int = 1

    def __post_init__(self) -> None:
        check_count(self.n_chains, "n_chains")
        check_count(self.thin, "thin")


@interruptible
def geweke_test(
    prior: Prior,
    data: DataModel,
    transition: Transition,
    statistics: Statistics | None = None,
    *,
    mode: Literal["replicated"] | Ranks | LongChains = "replicated",
    n_marginal: int = 1000,
    n_successive: int = 1000,
    n_steps: int = 10,
    log_likelihood: Callable[[Any, Any], float] | None = None,
    alpha: float = 1e-3,
    max_stages: int = 3,
    random_state: RandomState = None,
) -> GewekeResult:
    """Compare two ways of drawing parameters and data, one of them through a transition under test.

    Parameters
    ----------
    prior : callable
        ``prior(rng) -> theta``: any object; numbers in arrays, mappings, tuples and dataclasses are found.
    data : callable
        ``data(rng, theta) -> y``.
    transition : callable
        ``transition(rng, theta, y) -> theta``, which should leave p(theta | y) invariant. It must not change its input.
    statistics : callable, optional
        ``statistics(theta, y) -> dict`` of numbers or arrays: what to compare. By default all numbers in `theta` and
        `y`; arrays of more than 12 entries are summarised. Needed where shapes vary or labels have no meaning.
    mode : "replicated", Ranks or LongChains, default="replicated"
    n_marginal : int, default=1000
        Exact draws to compare with; not used by `Ranks`.
    n_successive : int, default=1000
        Replications; for `LongChains`, draws of all chains together.
    n_steps : int, default=10
        Steps of each replication. More give small mistakes time to add up.
    log_likelihood : callable, optional
        ``log_likelihood(theta, y) -> float``: one more statistic, which sees mistakes that others do not.
    alpha : float, default=1e-3
        False-alarm rate of the whole, all statistics and stages taken together.
    max_stages : int, default=3
        A doubtful p-value is looked at again with four times as many replications, this often; see `decide`.
    random_state : int, Generator or None

    Returns
    -------
    GewekeResult
        ``passed``, ``p_value``, ``summary()``, ``raise_if_failed()``.

    Examples
    --------
    The mean of normal data, with an exact draw from the posterior, and with one whose variance is wrong:

    >>> import numpy as np
    >>> from pluri.testing import geweke_test
    >>> def prior(rng):
    ...     return rng.normal()
    >>> def data(rng, theta):
    ...     return rng.normal(theta, 1.0, size=3)
    >>> def right(rng, theta, y):
    ...     return rng.normal(y.sum() / 4, np.sqrt(1 / 4))
    >>> def wrong(rng, theta, y):
    ...     return rng.normal(y.sum() / 4, np.sqrt(1 / 3))
    >>> geweke_test(prior, data, right, random_state=0).passed
    True
    >>> geweke_test(prior, data, wrong, random_state=0).passed
    False
    """
    for name, value, least in (
        ("n_marginal", n_marginal, LEAST_REPLICATIONS), ("n_successive", n_successive, LEAST_REPLICATIONS),
        ("n_steps", n_steps, 1),
    ):  # fmt: skip
        check_count(value, name, least)
    kinds = Made((Ranks, LongChains), "Ranks(reverse) or LongChains()")
    check_value(mode, "mode", Only("replicated") | kinds)
    rng = as_generator(random_state)
    summarise = summarising(statistics, log_likelihood)
    joint = _Joint(prior, data, transition, summarise)
    if isinstance(mode, LongChains):
        comparisons, stopped = _compare_long_chains(joint, mode, n_marginal, n_successive, rng)
        return GewekeResult(comparisons, overall_p_value(comparisons) > alpha, alpha, stopped, "chain")
    if isinstance(mode, Ranks):
        joint = replace(joint, summarise=summarising(statistics, log_likelihood, with_data=False))
        ranked = joint.with_spread(rng)

        def compared(n: int) -> tuple[float, Evidence]:
            rows, stopped = replicate(lambda rng: ranked.rank(rng, mode.reverse, n_steps), n, rng)
            ranks = {name: values.astype(np.int64) for name, values in stack(rows).items()}
            comparisons = rank_comparisons(ranks, n_steps + 1)
            return overall_p_value(comparisons), (comparisons, stopped)

        decision, (comparisons, stopped) = decide(
            compared, n_successive, alpha=alpha, max_stages=max_stages, finished=lambda evidence: evidence[1]
        )
        return GewekeResult(comparisons, decision.passed, alpha, stopped, "ranks", decision.stages)
    decision, (comparisons, stopped) = compare_in_stages(
        lambda rng: joint.short_chain(rng, n_steps), joint.exact, n_successive, rng, ratio=n_marginal / n_successive,
        alpha=alpha, max_stages=max_stages,
    )  # fmt: skip
    return GewekeResult(comparisons, decision.passed, alpha, stopped, "replicated", decision.stages)


@dataclass(frozen=True)
class _Joint:
    """Parameters and data under their joint distribution, and the transition under test."""

    prior: Prior
    data: DataModel
    transition: Transition
    summarise: Callable[[Any, Any], dict[str, float]]

    def draw(self, rng: np.random.Generator) -> tuple[Any, Any]:
        theta = self.prior(rng)
        return theta, self.data(rng, theta)

    def exact(self, rng: np.random.Generator) -> dict[str, float]:
        return self.summarise(*self.draw(rng))

    def short_chain(self, rng: np.random.Generator, n_steps: int) -> tuple[dict[str, float], dict[str, float]]:
        theta, y = self.draw(rng)
        start = self.summarise(theta, y)
        for step in range(n_steps):
            y = self.data(rng, theta) if step else y
            theta = self.transition(rng, theta, y)
        return start, self.summarise(theta, y)

    def long_chain(self, thin: int) -> Callable[[np.random.Generator], dict[str, float]]:
        """Each call makes the next draw of one successive-conditional chain."""
        where: list[Any] = []

        def draw(rng: np.random.Generator) -> dict[str, float]:
            theta = where.pop() if where else self.prior(rng)
            for _ in range(thin):
                y = self.data(rng, theta)
                theta = self.transition(rng, theta, y)
            where.append(theta)
            return self.summarise(theta, y)

        return draw

    def with_spread(self, rng: np.random.Generator) -> _Joint:
        """The same, with the distance of each quantity from its middle.

        Neighbours in a slow chain differ little in location; whether a draw lies further out than they do tells more.
        """
        pilots = [self.exact(rng) for _ in range(N_PILOTS)]
        centres = {name: float(np.median(values)) for name, values in stack(pilots).items()}

        def summarise(theta: Any, y: Any) -> dict[str, float]:
            found = self.summarise(theta, y)
            return found | {f"spread of {name}": abs(value - centres[name]) for name, value in found.items()}

        return replace(self, summarise=summarise)

    def rank(self, rng: np.random.Generator, reverse: Transition, n_steps: int) -> dict[str, float]:
        """Rank of an exact draw within a chain that runs backwards and forwards from it."""
        start, y = self.draw(rng)
        rows = []
        place = int(rng.integers(n_steps + 1))
        for move, n_moves in ((reverse, place), (self.transition, n_steps - place)):
            theta = start
            for _ in range(n_moves):
                theta = move(rng, theta, y)
                rows.append(self.summarise(theta, y))
        others = stack(rows)
        return {name: rank_among(value, others[name], rng) for name, value in self.summarise(start, y).items()}


def _compare_long_chains(
    joint: _Joint, mode: LongChains, n_marginal: int, n_successive: int, rng: np.random.Generator
) -> Evidence:
    draws, stopped = replicate(joint.exact, n_marginal, rng)
    n_each = -(-n_successive // mode.n_chains)
    chains = []
    for _ in range(mode.n_chains):
        rows, stopped_here = replicate(joint.long_chain(mode.thin), n_each, rng)
        chains.append(stack(rows))
        stopped = stopped or stopped_here
        if stopped_here:
            break
    return compare_with_chains(stack(draws), chains), stopped


def rank_comparisons(ranks: dict[str, Any], n_values: int) -> tuple[Comparison, ...]:
    """Both tests of uniformity for the ranks of each quantity."""
    return tuple(
        Comparison(name, test, *function(values, n_values))
        for name, values in ranks.items()
        for test, function in (("envelope", rank_envelope), ("chi-square", rank_chi_square))
    )


def rank_among(value: float, others: Any, rng: np.random.Generator) -> int:
    """How many of the others are smaller; ties are broken at random."""
    return int((others < value).sum()) + int(rng.integers(int((others == value).sum()) + 1))
