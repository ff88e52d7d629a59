"""Where something stands in a script, and errors that say so."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import NamedTuple

from pluri.neurons.tree.errors import SimulationError


class Place(NamedTuple):
    """A file, a line and a column of it, both counted from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}, line {self.line}, column {self.column}"


class ScriptError(SimulationError):
    """A mistake in a script, with its place.

    Parameters
    ----------
    sentence : str
        What is wrong.
    place : Place
    word : str, optional
        The offending word.
    suggestion : str, optional
        The nearest word that is known.

    Examples
    --------
    >>> from pluri.neurons import Simulation
    >>> from pluri.neurons.language import Interpreter, ScriptError
    >>> try:
    ...     Interpreter(Simulation()).run_text("crate group /net", name="net.g")
    ... except ScriptError as error:
    ...     print(error)
    net.g, line 1, column 1: unknown command 'crate' (did you mean create?)
    """

    def __init__(self, sentence: str, place: Place, word: str = "", suggestion: str = "") -> None:
        hint = f" (did you mean {suggestion}?)" if suggestion else ""
        super().__init__(f"{place}: {sentence}{hint}")
        self.sentence, self.place, self.word, self.suggestion = sentence, place, word, suggestion

    def __reduce__(self) -> tuple[type[ScriptError], tuple[str, Place, str, str]]:
        return type(self), (self.sentence, self.place, self.word, self.suggestion)


class UnclosedBlock(ScriptError):
    """More lines are needed: at a prompt they are asked for."""


def shown(word: str, most: int = 60) -> str:
    """A word as an error tells it: quoted, and not longer than a line."""
    return repr(word if len(word) <= most else word[: most - 3] + "...")


def nearest(word: str, known: Iterable[str]) -> str:
    """The known word that is most like this one, or an empty text."""
    names = list(known)
    # Long words are compared by their first letters only: matching costs the product of the lengths.
    found = difflib.get_close_matches(word[:60], names, n=1) or [
        name for name in names if name.lower() == word[:60].lower()
    ]
    return found[0] if found else ""
