"""Records that the EM loop hands out: one after each iteration, one at the end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic

from pluri.inference.history import History
from pluri.inference.learnable import Params
from pluri.inference.run import Reason


@dataclass(frozen=True)
class IterationState(Generic[Params]):
    """What ``on_iteration`` sees after each iteration.

    Parameters
    ----------
    params : Params
        Parameters after this iteration's M-step.
    restart, n_init : int
        Index of the run, from 0, and number of runs.
    iteration, max_iter : int
        Number of E-steps this run has done, and at most does.
    objective, log_likelihood : float
        At the parameters that the E-step saw.
    gain : float
        Increase of the objective since the last iteration; NaN at the first.
    seconds : float
        Duration of the iteration.
    accepted : bool
        False when an accelerated step was refused.
    reason : {"converged", "max_iter", "descent"} or None
        Why the run ends here, None if it goes on.
    """

    params: Params
    restart: int
    n_init: int
    iteration: int
    max_iter: int
    objective: float
    log_likelihood: float
    gain: float
    seconds: float
    accepted: bool
    reason: Reason | None


def sweep_state(
    *, chain: int, n_chains: int, sweep: int, n_sweeps: int, log_joint: float, log_likelihood: float, gain: float,
    seconds: float,
) -> IterationState[None]:  # fmt: skip
    """A step of one of several chains as an iteration: what watches a fit sees it so; `sweep` counts from 1."""
    return IterationState(
        params=None,
        restart=chain,
        n_init=n_chains,
        iteration=sweep,
        max_iter=n_sweeps,
        objective=log_joint,
        log_likelihood=log_likelihood,
        gain=gain,
        seconds=seconds,
        accepted=True,
        reason="max_iter" if sweep == n_sweeps else None,
    )


@dataclass(frozen=True)
class EMResult(Generic[Params]):
    """What a fit gives back.

    Parameters
    ----------
    params : Params
        Parameters after the last M-step of the best run (the best ones seen, if its objective fell).
    objective : float
        Last objective of that run, which restarts are ranked by; the last M-step came after it.
    restart : int
        Index of that run.
    n_iter : int
        Number of its iterations (E-steps).
    reason : {"converged", "max_iter", "descent", "stopped", "interrupted"}
        Why it ended: the gain was below ``tol``, no iterations were left, the objective fell, ``on_iteration`` said
        so, or Ctrl-C.
    history : History
        All iterations of all runs.
    interrupted : bool
        Whether Ctrl-C cut the fit short, in this run or another.
    """

    params: Params
    objective: float
    restart: int
    n_iter: int
    reason: Reason
    history: History
    interrupted: bool = False

    @property
    def converged(self) -> bool:
        """Whether the best run ended because the gain was below ``tol``."""
        return self.reason == "converged"
