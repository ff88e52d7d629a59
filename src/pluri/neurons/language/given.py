"""A command that is being run, with its arguments as values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pluri.neurons.language.nodes import Command, Word
from pluri.neurons.language.places import ScriptError, shown

if TYPE_CHECKING:
    from pluri.neurons.language.interpreter import Interpreter
    from pluri.neurons.simulation import Simulation


class Given:
    """A command that is being run: its arguments as values.

    Parameters
    ----------
    interpreter : Interpreter
    command : Command
    """

    def __init__(self, interpreter: Interpreter, command: Command) -> None:
        self.interpreter, self.command = interpreter, command
        self.simulation: Simulation = interpreter.simulation
        self._options = {name: word for name, word, _ in command.options}

    def __len__(self) -> int:
        return len(self.command.arguments)

    def text(self, place: int) -> str:
        """An argument as text."""
        return self.interpreter.text(self.command.arguments[place])

    def value(self, place: int) -> float | str:
        """An argument as it is."""
        return self.interpreter.word(self.command.arguments[place])

    def number(self, place: int) -> float:
        """An argument that must be a number."""
        return self._number(self.command.arguments[place], self.command.name)

    def whole(self, place: int) -> int:
        """An argument that must be a whole number, 0 or more."""
        return self._whole(self.command.arguments[place], self.command.name)

    def has(self, option: str) -> bool:
        """Whether an option was given."""
        return option in self._options

    def option(self, name: str, default: Any = None) -> Any:
        """The value of an option, or a default."""
        return self.interpreter.word(self._options[name]) if name in self._options else default

    def option_text(self, name: str, default: str = "") -> str:
        """The value of an option as text."""
        return self.interpreter.text(self._options[name]) if name in self._options else default

    def option_number(self, name: str, default: float) -> float:
        """The value of an option that must be a number."""
        return self._number(self._options[name], f"-{name}") if name in self._options else default

    def option_whole(self, name: str) -> int:
        """The value of an option that must be a whole number."""
        return self._whole(self._options[name], f"-{name}")

    def options(self) -> dict[str, float | str]:
        """All options."""
        return {name: self.interpreter.word(word) for name, word in self._options.items()}

    def _number(self, word: Word, what: str) -> float:
        value = self.interpreter.word(word)
        if isinstance(value, str):
            known = value in self.interpreter.visible()
            hint = f": write {{{value}}} for the value of the variable" if known else ""
            raise ScriptError(f"{what} must have a number, got {shown(value)}{hint}", word.place, value)
        return value

    def _whole(self, word: Word, what: str) -> int:
        value = self._number(word, what)
        if value != int(value) or value < 0:
            raise ScriptError(f"{what} must have a whole number of at least 0, got {value:g}", word.place)
        return int(value)
