"""When a run of passes over the documents ends: its objective has settled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pluri.inference.run import IterationState

#: Share of the bound by which a pass may raise it at the end of a fit; more is told: about half a percent of the
#: perplexity. Text at the tenth pass of variational Bayes gains three times as much, at the twentieth less.
RISING = 5e-4


def last_gain(trace: Sequence[float]) -> float:
    """Share of the objective by which the last pass has raised it; zero if there is nothing to compare with."""
    return (trace[-1] - trace[-2]) / max(1.0, abs(trace[-1])) if len(trace) > 1 else 0.0


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
