"""Bounds of scripts: none can run for ever, or fill the memory, by mistake."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """What a script may do at most.

    Attributes
    ----------
    statements : int
        Lines that run, and turns of loops, in one script or one line at the prompt.
    calls : int
        Functions that call each other.
    elements : int
        Elements that are created.
    steps : int or None
        Time steps; None for as many as the script asks for.
    """

    statements: int = 10_000_000
    calls: int = 40
    elements: int = 1_000_000
    steps: int | None = None
