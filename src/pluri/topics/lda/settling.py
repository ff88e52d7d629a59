"""When a run of passes over the documents ends: its objective has settled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.inference.result import IterationState

#: Share of the bound by which a pass may raise it at the end of a fit; more is told: about half a percent of the
#: perplexity. Text at the tenth pass of variational Bayes gains three times as much, at the twentieth less.
RISING = 5e-4
#: A rise of the log density between the halves of the draws is told if it is more than this share of it, and more than
#: so many standard errors; draws that come from the posterior may be correlated, hence so many. Of 120 stretches of 10
#: draws of 20 chains at rest none was told, and each of 20 chains that had not arrived.
NEGLIGIBLE, STANDARD_ERRORS = 1e-3, 5.0
#: Fewer draws tell nothing.
FEWEST_DRAWS = 6


def last_gain(trace: Sequence[float]) -> float:
    """Share of the objective by which the last pass has raised it; zero if there is nothing to compare with."""
    return (trace[-1] - trace[-2]) / max(1.0, abs(trace[-1])) if len(trace) > 1 else 0.0


def chain_rises(log_density: NDArray[np.float64]) -> bool:
    """Whether the log density of a chain was higher in the second half of its draws, by more than chance."""
    half = len(log_density) // 2
    if len(log_density) < FEWEST_DRAWS:
        return False
    last = float(log_density[-half:].mean())
    rise = last - float(log_density[:half].mean())
    # Differences of neighbours tell the noise of a draw whether the chain rises or not.
    noise = float(np.sqrt((np.diff(log_density) ** 2).mean() / 2 * (2 / half)))
    return rise > STANDARD_ERRORS * noise and rise > NEGLIGIBLE * abs(last)


def has_settled(gain: float, bound: float, tol: float) -> bool:
    """Whether a pass has hardly raised the bound."""
    return gain <= tol * max(1.0, abs(bound))


@dataclass(eq=False)
class Settling:
    """A callback of passes that ends a run when the objective has settled, and remembers that it did.

    Parameters
    ----------
    tol : float
        Share of the objective by which a pass may still raise it; negative: it never settles.
    on_iteration : callable, optional
        A callback of the user's, which sees ``reason="converged"`` at the end.
    also : callable, optional
        What must hold of the parameters besides.
    """

    tol: float
    on_iteration: Callable[[IterationState[Any]], bool | None] | None = None
    also: Callable[[Any], bool] | None = None
    settled: set[int] = field(default_factory=set)

    def __call__(self, state: IterationState[Any]) -> bool:
        """Whether to end the run."""
        done = has_settled(state.gain, state.objective, self.tol) and (self.also is None or self.also(state.params))
        if done:
            self.settled.add(state.restart)
        seen = replace(state, reason="converged") if done else state
        return (self.on_iteration is not None and bool(self.on_iteration(seen))) or done

    def reason(self, result: Any) -> str:
        """Why the run that won has ended."""
        return "converged" if result.restart in self.settled else str(result.reason)
