"""How often a correct sampler may be called wrong: many tests at once, and testing again instead of shrugging.

*Many tests.* Holm's correction keeps the chance of any false alarm among m tests below alpha, however they depend on
each other; the smallest corrected value is ``m min_i p_i``.

*Testing again.* A p-value of 0.01 in one of a hundred tests tells nothing, and ten times as many replications tell
all. In stage i = 1 .. k, with fresh randomness each time, a p-value

    at most  b_i = (alpha / k) / g^(i - 1)   fails the sampler,       g = (alpha / k)^(1 / k),
    above    g                               passes it,
    between                                  goes on to the next stage, with more replications.

Stage i is reached with probability at most g^(i - 1) and fails with probability at most b_i, so that each stage adds at
most alpha / k: the whole raises a false alarm with probability at most alpha. This is the scheme of [1]_, with a
slightly narrower middle that makes the bound hold for conservative p-values too.

References
----------
.. [1] Gandy, A. and Scott, J. (2020). Unit testing for MCMC and other Monte Carlo methods. arXiv:2001.06465.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.validation import Number, check_value

Evidence = TypeVar("Evidence")


def holm(p_values: ArrayLike) -> NDArray[np.float64]:
    """P-values corrected for their number, each at least as large as it was.

    Parameters
    ----------
    p_values : array-like of shape (m,)

    Returns
    -------
    ndarray of shape (m,)
        Rejecting those at most alpha keeps the chance of any false rejection below alpha.

    Examples
    --------
    >>> from pluri.testing import holm
    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    values = np.asarray(p_values, dtype=np.float64)
    if values.ndim != 1 or not ((values >= 0) & (values <= 1)).all():
        raise ValueError("p_values must be numbers between 0 and 1 in a vector")
    order = np.argsort(values, kind="stable")
    corrected = np.empty_like(values)
    corrected[order] = np.minimum(np.maximum.accumulate((len(values) - np.arange(len(values))) * values[order]), 1.0)
    return corrected


@dataclass(frozen=True)
class Stage:
    """One round of a sequential test: how much was done, what came out, and what it was held against."""

    n_replications: int
    p_value: float
    fail_at: float
    pass_above: float


@dataclass(frozen=True)
class Decision:
    """What a sequential test decided, and by which stages.

    Attributes
    ----------
    passed : bool
    alpha : float
        Bound on the probability that a correct sampler does not pass.
    stages : tuple of Stage
    """

    passed: bool
    alpha: float
    stages: tuple[Stage, ...]

    @property
    def p_value(self) -> float:
        """P-value of the last stage."""
        return self.stages[-1].p_value

    @property
    def threshold(self) -> float:
        """What the p-value of the last stage had to exceed."""
        return self.stages[-1].fail_at


def decide(
    run: Callable[[int], tuple[float, Evidence]],
    n_replications: int,
    *,
    alpha: float = 1e-3,
    max_stages: int = 3,
    growth: int = 4,
    finished: Callable[[Evidence], bool] | None = None,
) -> tuple[Decision, Evidence]:
    """Run a test in stages until it is clear, with a false-alarm rate of at most `alpha` in all.

    Parameters
    ----------
    run : callable
        ``run(n) -> (p_value, evidence)``: the test on `n` new replications, independent of those before.
    n_replications : int
        Replications of the first stage.
    alpha : float, default=1e-3
    max_stages : int, default=3
        1 is an ordinary test at level alpha.
    growth : int, default=4
        How many times more replications each stage has.
    finished : callable, optional
        ``finished(evidence)`` says that no further stage may follow (Ctrl-C); a doubtful sampler then passes.

    Returns
    -------
    decision : Decision
    evidence : object
        What `run` gave with its last p-value.

    Examples
    --------
    >>> from pluri.testing import decide
    >>> answers = iter([0.02, 0.7])
    >>> decision, _ = decide(lambda n: (next(answers), None), 100, alpha=1e-3)
    >>> decision.passed, [stage.n_replications for stage in decision.stages]
    (True, [100, 400])
    """
    check_value(alpha, "alpha", Number(above=0, below=1))
    for name, value in (("n_replications", n_replications), ("max_stages", max_stages), ("growth", growth)):
        if not isinstance(value, int | np.integer) or value < 1:
            raise ValueError(f"{name} must be a whole number of at least 1, got {value!r}")
    fail_at = alpha / max_stages
    middle = fail_at ** (1.0 / max_stages)
    stages: list[Stage] = []
    while True:
        p_value, evidence = run(n_replications)
        stages.append(Stage(n_replications, float(p_value), fail_at, middle))
        clear = p_value <= fail_at or p_value > middle or len(stages) == max_stages
        if clear or (finished is not None and finished(evidence)):
            return Decision(not p_value <= fail_at, alpha, tuple(stages)), evidence
        fail_at /= middle
        n_replications *= growth
