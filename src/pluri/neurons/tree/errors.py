"""What goes wrong in a simulation is said in one sentence, with the nearest known word."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class SimulationError(ValueError):
    """A network that cannot be built or run as asked; the message names the element.

    Examples
    --------
    >>> from pluri.neurons import Simulation, SimulationError
    >>> try:
    ...     Simulation().create("activ_compartment", "/soma")
    ... except SimulationError as error:
    ...     print(error)
    activ_compartment is no class of elements; did you mean active_compartment?
    """


class SimulationWarning(UserWarning):
    """A network that runs, but hardly as it was meant."""


def nearest(word: str, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown word: the nearest known one, or nothing.

    Examples
    --------
    >>> from pluri.neurons.tree.errors import nearest
    >>> nearest("lenght", ["length", "diameter"]), nearest("x", ["length"])
    ('; did you mean length?', '')
    """
    # One wrong letter of two or three is half a word to difflib.
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6 if len(word) > 3 else 0.5)
    return f"; did you mean {close[0]}?" if close else ""
