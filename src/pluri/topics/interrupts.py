"""Ctrl-C during the fit of a topic model: one warning, by the model, which tells how far the chains came."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from pluri.inference import mcmc


@contextmanager
def unnamed_warnings_ignored() -> Iterator[None]:
    """Leave out the warning of Ctrl-C by the engine inside, which names no model: the model gives its own."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="(fit )?interrupted after", category=UserWarning)
        yield


def n_sweeps(trace: mcmc.Trace) -> int:
    """Sweeps of each chain, by the count of its state: Ctrl-C during the warm-up leaves fewer than were asked for."""
    return min(int(end.state.n_sweeps) for end in trace.ends)
