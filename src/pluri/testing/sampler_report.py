"""Everything that can be checked about a sampler, in one table, with one false-alarm rate.

A sampler that leaves its target invariant may still never move, and one that moves may move wrongly; so there are
checks of the gradient, of habits (does it repeat itself with the same random numbers, does it leave its input alone,
does every quantity move), of invariance (Geweke's test, exact starts, enumeration, calibration) and of convergence from
elsewhere. Those with p-values share the false-alarm rate equally, and look again where they are in doubt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pluri.testing.comparison import SamplerError, aligned
from pluri.testing.problem import SamplerProblem
from pluri.testing.sampler_checks import CHECKS, NOTICED, RANDOM_CHECKS, CheckLine, Setting, applicable
from pluri.validation import RandomState, as_generator
from pluri.validation.interruption import Interrupted, held, holding, interruptible


@dataclass(frozen=True)
class SamplerReport:
    """The checks of a sampler; printing it gives the table.

    Attributes
    ----------
    name : str
    lines : tuple of CheckLine
    alpha : float
        Bound on the probability that a correct sampler fails.
    interrupted : bool
        Whether Ctrl-C cut the checks short: those not made are missing.
    """

    name: str
    lines: tuple[CheckLine, ...]
    alpha: float
    interrupted: bool = False

    @property
    def passed(self) -> bool:
        """Whether all checks passed."""
        return all(line.passed for line in self.lines)

    def __getitem__(self, check: str) -> CheckLine:
        for line in self.lines:
            if line.check == check:
                return line
        raise KeyError(f"there is no check {check!r}; there are {', '.join(line.check for line in self.lines)}")

    def summary(self) -> str:
        """The table."""

        def number(value: float, form: str) -> str:
            return format(value, form) if np.isfinite(value) else ("" if np.isnan(value) else str(value))

        rows = [
            (line.check, line.detail, number(line.statistic, ".4g"), number(line.p_value, ".3g"),
             number(line.threshold, ".2g"), str(line.n_replications or ""), "pass" if line.passed else "FAIL")
            for line in self.lines
        ]  # fmt: skip
        verdict = "passed" if self.passed else "FAILED"
        head = f"{self.name}: {verdict} (a correct sampler fails with probability below {self.alpha:g})"
        table = aligned(("check", "worst", "statistic", "p-value", "limit", "runs", ""), rows, 2)
        return "\n".join([head, table, *([self._sensitivity()] if np.isfinite(self.power) else [])])

    @property
    def power(self) -> float:
        """Probability that a normal quantity whose variance ends 10 % too large would be noticed; NaN if none was."""
        return max((line.power for line in self.lines if np.isfinite(line.power)), default=float("nan"))

    def _sensitivity(self) -> str:
        noticeable = min(line.noticeable for line in self.lines if np.isfinite(line.power))
        return (
            f"Would notice a variance that ends {NOTICED:.0%} too large with probability {self.power:.2g}, one "
            f"{noticeable:.0%} too large with 0.9 (more n_replications: smaller mistakes)."
        )

    def raise_if_failed(self) -> None:
        """Raise a `SamplerError` with the table if a check failed."""
        if not self.passed:
            raise SamplerError(self.summary())

    def __str__(self) -> str:
        return self.summary()


@interruptible
def check_sampler(
    problem: SamplerProblem,
    *,
    alpha: float = 1e-3,
    n_replications: int = 1000,
    n_simulations: int = 200,
    max_stages: int = 3,
    checks: Sequence[str] | None = None,
    random_state: RandomState = None,
) -> SamplerReport:
    """Run all checks that apply to a sampler.

    Parameters
    ----------
    problem : SamplerProblem
    alpha : float, default=1e-3
        False-alarm rate of the whole report.
    n_replications : int, default=1000
        Runs of the first stage of each check, as in `geweke_test`; doubtful ones go on with 4 and 16 times as many.
    n_simulations : int, default=200
        Data sets of the first stage of calibration.
    max_stages : int, default=3
    checks : sequence of str, optional
        Only these: "gradient", "repeats itself", "input untouched", "moves", "geweke", "invariance", "enumeration",
        "convergence", "calibration".
    random_state : int, Generator or None

    Returns
    -------
    SamplerReport
        ``print(report)`` shows the table; ``report.raise_if_failed()`` is the last line of a test.

    Examples
    --------
    A random walk whose proposal ``theta -> theta * exp(s)`` forgets its Hastings correction:

    >>> import numpy as np
    >>> from pluri.testing import SamplerProblem, check_sampler
    >>> def prior(rng):
    ...     return rng.exponential()
    >>> def data(rng, theta):
    ...     return rng.poisson(theta, size=2)
    >>> def log_posterior(theta, y):
    ...     return -theta + (y * np.log(theta) - theta).sum()
    >>> def careless(rng, theta, y):
    ...     new = theta * np.exp(0.5 * rng.normal())
    ...     return new if np.log(rng.random()) < log_posterior(new, y) - log_posterior(theta, y) else theta
    >>> def careful(rng, theta, y):
    ...     new = theta * np.exp(0.5 * rng.normal())
    ...     ratio = log_posterior(new, y) - log_posterior(theta, y) + np.log(new / theta)
    ...     return new if np.log(rng.random()) < ratio else theta
    >>> check_sampler(SamplerProblem("careful", prior, data, careful), random_state=0).passed
    True
    >>> check_sampler(SamplerProblem("careless", prior, data, careless), random_state=0)["geweke"].passed
    False
    """
    rng = as_generator(random_state)
    every = applicable(problem)
    if checks is not None:
        unknown = set(checks) - set(every)
        if unknown:
            raise ValueError(f"checks must be among those that apply ({', '.join(every)}), got {sorted(unknown)[0]!r}")
        every = {name: check for name, check in every.items() if name in checks}
    n_random = sum(name in RANDOM_CHECKS for name in every)
    setting = Setting(problem, alpha / max(n_random, 1), n_replications, n_simulations, max_stages)
    lines: list[CheckLine] = []
    # Each check has a stream of its own, so that leaving one out changes no other.
    streams = dict(zip(CHECKS, rng.spawn(len(CHECKS))))
    message = lambda: f"interrupted after {len(lines)} of {len(every)} checks, which are kept"  # noqa: E731
    with holding(message, having=lines) as block:
        for name, check in every.items():
            lines.append(check(name, setting, streams[name]))
            if held():
                raise Interrupted
    return SamplerReport(problem.name, tuple(lines), alpha, block.interrupted)
