"""What is wrong with a set of chains, said in words with what to do about it.

One function says whether chains agree (`judge`), with one limit of R-hat for numbers whose posterior is wanted and one
for chains over latent states. R-hat squared is about 1 + 1 / (effective draws of a chain): 1.01 asks for fifty of them,
which is what averages over draws need; 1.1 asks for five, which shows that chains from different starts have met, and
is all that can be had where a sweep over thousands of labels moves the log density by little.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from pluri.inference.mcmc import diagnostics
from pluri.inference.mcmc.step_health import LEAST_DRAWS, about_blocks, about_steps

if TYPE_CHECKING:
    from pluri.inference.mcmc.trace import Trace

#: R-hat up to which chains agree: on numbers whose posterior is wanted, and on latent states.
R_HAT_LIMIT = 1.01
LATENT_R_HAT_LIMIT = 1.1
ESS_PER_CHAIN = 100
#: Numbers looked at, so that a trace of a large latent array does not take longer to check than to make.
MOST_NUMBERS = 2000


@dataclass(frozen=True)
class Verdict:
    """Whether chains have settled, on the number they agree on least.

    Attributes
    ----------
    settled : bool
        Whether R-hat is at most `limit`; True also if there is nothing to judge by (see `r_hat`).
    r_hat : float
        Infinite if chains stand still at different values; NaN if there are fewer than eight draws, or nothing moved.
    name : str
        Of that number.
    limit : float
    n_apart : int
        How many numbers have an R-hat above the limit.
    """

    settled: bool
    r_hat: float
    name: str
    limit: float
    n_apart: int = 0

    def __bool__(self) -> bool:
        return self.settled

    def __str__(self) -> str:
        if self.settled:
            return f"the chains have settled: R-hat is at most {self.r_hat:.2f} ({self.name})"
        return (
            f"the chains have not settled: R-hat of {self.name} is {self.r_hat:.2f}, above {self.limit:.4g}; raise "
            "n_warmup and n_draws, and take what was found for one of several answers until they agree"
        )

    def warn(self, more: str = "", stacklevel: int = 3) -> None:
        """Give a ConvergenceWarning unless the chains have settled.

        Parameters
        ----------
        more : str, optional
            What the model can add in words of its own.
        stacklevel : int, default=3
            As in `warnings.warn`: 3 is the caller of the method that calls this.
        """
        if not self.settled:
            from sklearn.exceptions import ConvergenceWarning

            warnings.warn(f"{self}{more and '. '}{more}", ConvergenceWarning, stacklevel=stacklevel)


def judge(
    draws: Mapping[str, Any], limit: float = R_HAT_LIMIT, negligible: Mapping[str, float] | None = None
) -> Verdict:
    """Whether chains agree on numbers, by the one they agree on least.

    Parameters
    ----------
    draws : dict of arrays of shape (n_chains, n_draws, ...)
        A single chain is compared with itself, half with half.
    limit : float, default=1.01
        Of R-hat; more is allowed where so few independent draws would exceed it by chance.
    negligible : dict of floats, optional
        By name, how far the means of chains, or of their halves, may differ without mattering, however surely they do.

    Returns
    -------
    Verdict

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference.mcmc import judge
    >>> rng = np.random.default_rng(0)
    >>> bool(judge({"mean": rng.normal(size=(4, 1000))}, limit=1.02))
    True
    >>> print(judge({"mean": rng.normal(size=(2, 100)) + [[0], [9]]}, limit=1.1))
    the chains have not settled: R-hat of mean is 2..., above 1.1; raise n_warmup and n_draws, ...
    """
    worst, n_apart = Verdict(True, float("nan"), next(iter(draws), ""), limit), 0
    for name, values in diagnostics.each_number(draws):
        value = _r_hat(values)
        allowed = max(limit, _by_chance(*values.shape))
        matters = value > allowed and _spread(values) > (negligible or {}).get(name.partition("[")[0], 0.0)
        n_apart += matters
        # What chains disagree on comes before what they agree on.
        if (matters, value) > (not worst.settled, worst.r_hat) or np.isnan(worst.r_hat):
            worst = Verdict(not matters, value, name, allowed)
    return replace(worst, n_apart=n_apart)


def _by_chance(n_chains: int, n_draws: int) -> float:
    """R-hat that independent draws of halves of chains exceed with a probability of 1 %."""
    n_parts, length = 2 * n_chains, n_draws // 2
    if length < 2:
        return float("inf")
    ratio = float(special.fdtri(n_parts - 1, n_parts * (length - 1), 0.99))
    return float(np.sqrt((length - 1 + ratio) / length))


def _spread(values: Any) -> float:
    """Largest difference of the means of halves of chains."""
    half = values.shape[1] // 2
    return float(np.ptp([values[:, :half].mean(axis=1), values[:, -half:].mean(axis=1)]))


def _r_hat(values: Any) -> float:
    if values.shape[1] < LEAST_DRAWS or np.ptp(values) == 0:
        return float("nan")
    if len(values) > 1 and (np.ptp(values, axis=1) == 0).all():
        return float("inf")
    return diagnostics.r_hat(values)


def find_problems(trace: Trace) -> list[str]:
    """One sentence for each thing that should make a reader careful."""
    problems = about_steps(trace) + about_blocks(trace)
    if 0 < trace.n_draws < LEAST_DRAWS:
        problems.append(
            f"There are only {trace.n_draws} draws of each chain: at least {LEAST_DRAWS} are needed to tell whether "
            "chains agree, and many more to use them."
        )
    numbers = dict(islice(diagnostics.each_number(trace.draws), MOST_NUMBERS))
    moving, n_still = {}, 0
    for name, values in numbers.items():
        n_infinite = int((~np.isfinite(values)).sum())
        if n_infinite:
            problems.append(f"{name} is not finite at {n_infinite} draws.")
        elif values.size and np.ptp(values) == 0:
            n_still += 1
        elif values.size:
            moving[name] = values
    verdict = judge(moving)
    if trace.n_chains > 1 and not verdict:
        problems.append(
            f"The chains disagree about {_count(verdict.n_apart)}: R-hat of {verdict.name} is {verdict.r_hat:.3f}, "
            f"above {verdict.limit:.3g}. Run longer chains, or look whether the target has several modes."
        )
    worths = {name: min(diagnostics.ess_bulk(values), diagnostics.ess_tail(values)) for name, values in moving.items()}
    few = [(worth, name) for name, worth in worths.items() if worth < ESS_PER_CHAIN * trace.n_chains]
    if few:
        worth, name = min(few)
        problems.append(
            f"Too few effective draws of {_count(len(few))}: {name} has {worth:.0f}, fewer than {ESS_PER_CHAIN} a "
            f"chain ({ESS_PER_CHAIN * trace.n_chains}). Draw more, or reparameterise."
        )
    if n_still and n_still == len(numbers) and trace.n_draws > 1:
        problems.append("Nothing moved: every variable has the same value in all draws.")
    return problems


def _count(number: int) -> str:
    return "1 number" if number == 1 else f"{number} numbers"


def warn_of_problems(trace: Trace) -> None:
    """Give each problem as a ConvergenceWarning."""
    problems = find_problems(trace)
    if problems:
        from sklearn.exceptions import ConvergenceWarning

        for problem in problems:
            warnings.warn(problem, ConvergenceWarning, stacklevel=4)
