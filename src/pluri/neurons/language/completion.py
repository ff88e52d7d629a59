"""What a word at the prompt may become: commands, classes, options, fields and paths."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pluri.neurons.language.commands import COMMANDS, element_classes
from pluri.neurons.language.functions import FUNCTIONS
from pluri.neurons.tree.errors import SimulationError

if TYPE_CHECKING:
    from pluri.neurons.language.interpreter import Interpreter

BLOCKS = ("if", "else", "end", "for", "while", "function")


def completions(interpreter: Interpreter, line: str) -> list[str]:
    """All that the last word of a line may become.

    Parameters
    ----------
    interpreter : Interpreter
    line : str
        Up to the cursor.

    Returns
    -------
    list of str
        Whole words, sorted.

    Examples
    --------
    >>> from pluri.neurons import Simulation
    >>> from pluri.neurons.language import Interpreter
    >>> from pluri.neurons.language.completion import completions
    >>> completions(Interpreter(Simulation()), "create act")
    ['active_compartment']
    """
    words = line.split()
    word = "" if not line or line[-1] in " \t" else words[-1]
    before = words if not word else words[:-1]
    brace = word.rfind("{")
    if brace >= 0:
        begin = word[: brace + 1]
        names = [*interpreter.visible(), *(f"{name}(" for name in FUNCTIONS)]
        return sorted(begin + name for name in names if name.startswith(word[brace + 1 :]))
    return sorted({one for one in _candidates(interpreter, before, word) if one.startswith(word)})


def _candidates(interpreter: Interpreter, before: list[str], word: str) -> list[str]:
    if not before:
        return [*COMMANDS, *BLOCKS]
    command = before[0]
    if word.startswith("-"):
        return [f"-{name}" for name in _options(before)]
    if command == "help" and len(before) == 1:
        return list(COMMANDS)
    if command == "create" and len(before) == 1:
        return list(element_classes())
    if command == "call" and len(before) == 1:
        return list(interpreter.functions)
    if command in ("set", "graph", "record") and len(before) == 2:
        found = _found(interpreter, before[1])
        return sorted({name for one in found for name in one.declared()})
    form = COMMANDS.get(command)
    if form is not None and form.joined and len(before) == 2:
        return ["to"]
    return _paths(interpreter, word)


def _options(before: list[str]) -> list[str]:
    form = COMMANDS.get(before[0])
    if form is None:
        return []
    if form.options is not None:
        return list(form.options)
    kind = element_classes().get(before[1]) if len(before) > 1 else None
    return list(kind.declared()) if kind is not None else []


def _found(interpreter: Interpreter, pattern: str) -> list:  # type: ignore[type-arg]
    try:
        return interpreter.simulation.find(pattern)
    except SimulationError:
        return []


def _paths(interpreter: Interpreter, word: str) -> list[str]:
    """Paths that begin with what is there of one."""
    above, slash, _ = word.rpartition("/")
    found = _found(interpreter, above + slash if above or slash else ".")
    return [f"{above}{slash}{name}" for one in found for name in one.children]
