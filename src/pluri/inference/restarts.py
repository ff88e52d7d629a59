"""State of a whole fit, over all its runs: which one is in progress, which was the best, and both on disk."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic

import numpy as np

from pluri.inference import checkpoint as storage
from pluri.inference.acceleration import Accelerator
from pluri.inference.history import History, HistoryRow
from pluri.inference.learnable import Params
from pluri.inference.run import Reason, RunState, begin, outcome


@dataclass(frozen=True)
class Candidate(Generic[Params]):
    """Outcome of a finished run."""

    params: Params
    objective: float
    restart: int
    n_iter: int
    reason: Reason


@dataclass
class Fit(Generic[Params]):
    """Everything that changes while fitting, in one place where an interruption finds it in order."""

    streams: list[np.random.Generator]
    restart: int = 0
    state: RunState[Params] | None = None  # of the run in progress
    best: Candidate[Params] | None = None  # among the runs before it
    shapes: str = ""
    history: History = field(default_factory=History)
    over: bool = False

    def close(self, reason: Reason | None) -> None:
        """Rank the run in progress, if it has done an iteration."""
        if self.state is not None and self.state.iteration and reason:
            params, objective = outcome(self.state)
            if self.best is None or objective > self.best.objective:
                self.best = Candidate(params, objective, self.restart, self.state.iteration, reason)
        self.state = None


def save(path: str | os.PathLike[str], header: dict[str, Any], fit: Fit[Params]) -> None:
    """Write the fit to a checkpoint; ``header`` tells later calls whether it is theirs."""
    header = header | {
        "shapes": fit.shapes,
        "restart": fit.restart,
        "streams": storage.streams_to_json(fit.streams),
    }
    history = {name: np.array(column) for name, column in fit.history.to_dict().items()}
    storage.write(path, header, {"state": fit.state, "best": fit.best, "history": history})


def resume(
    path: str | os.PathLike[str],
    header: dict[str, Any],
    like: Callable[[], Params],
    accelerator: Accelerator | None,
) -> Fit[Params]:
    """Read the fit back; ``ValueError`` if the file is damaged or another fit's.

    ``like`` makes parameters of the right make; it may be costly, so the header is checked first.
    """
    stored, leaves = storage.read(path)

    def compare(name: str, expected: Any) -> None:
        if stored.get(name) != expected:
            raise ValueError(
                f"checkpoint {os.fspath(path)!r} belongs to another fit: its {name} is {stored.get(name)!r}, "
                f"this one has {expected!r}; give another path or remove the file"
            )

    for name, expected in header.items():
        compare(name, expected)
    params = like()
    compare("shapes", storage.shapes(params))
    pattern = {
        "state": begin(params, accelerator),
        "best": Candidate(params, 0.0, 0, 0, "converged"),
        "history": dict.fromkeys(HistoryRow._fields),
    }
    tree = storage.unflatten(leaves, pattern)
    history = History(zip(*(tree["history"][name].tolist() for name in HistoryRow._fields)))
    streams = storage.streams_from_json(stored["streams"])
    return Fit(streams, stored["restart"], tree["state"], tree["best"], stored["shapes"], history)
