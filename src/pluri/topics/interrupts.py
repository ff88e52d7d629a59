"""Ctrl-C during the fit of a topic model: how far the chains came."""

from __future__ import annotations

from pluri.inference import mcmc


def n_sweeps(trace: mcmc.Trace) -> int:
    """Sweeps of each chain, by the count of its state: Ctrl-C during the warm-up leaves fewer than were asked for."""
    return min(int(end.state.n_sweeps) for end in trace.ends)
