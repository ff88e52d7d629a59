"""Runs parsed scripts on a simulation: a walk over records, with bounds on everything that could go on for ever."""

from __future__ import annotations

import math
from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pluri.neurons.language.commands import COMMANDS
from pluri.neurons.language.evaluation import Evaluator, Value
from pluri.neurons.language.functions import Surroundings
from pluri.neurons.language.given import Given
from pluri.neurons.language.limits import Limits
from pluri.neurons.language.nodes import (
    Assignment,
    Command,
    Expression,
    For,
    Function,
    If,
    Included,
    Program,
    Statement,
    While,
    Word,
)
from pluri.neurons.language.parser import parse_text
from pluri.neurons.language.places import Place, ScriptError, nearest, shown
from pluri.neurons.language.sources import read_source
from pluri.neurons.tree.errors import SimulationError

if TYPE_CHECKING:
    from pluri.neurons.simulation import Simulation


#: Time steps of one command: more are a mistake.
MOST_STEPS = 10**12


class Leave(Exception):
    """The script said quit."""


class Interpreter:
    """Runs scripts, line by line or whole; variables and functions stay from one to the next.

    Parameters
    ----------
    simulation : Simulation
        What the commands act on.
    output : callable, default=print
        Takes what ``echo``, ``ls``, ``show`` and ``check`` have to say.
    limits : Limits, optional
        Bounds on loops, calls, elements and time steps.

    Attributes
    ----------
    simulation : Simulation
        Another one after ``restore``.
    variables : dict
        Names and values, numbers or texts.
    functions : dict
        Names and functions.

    Examples
    --------
    >>> from pluri.neurons import Simulation
    >>> from pluri.neurons.language import Interpreter
    >>> interpreter = Interpreter(Simulation())
    >>> interpreter.run_text('''
    ... create group /net
    ... for i = 1 to 3
    ...     create group /net/cell[{i}]
    ... end
    ... echo {count(/net/*)} cells''')
    3 cells
    """

    def __init__(
        self, simulation: Simulation, *, output: Callable[[str], None] = print, limits: Limits | None = None
    ) -> None:
        self.simulation, self.output, self.limits = simulation, output, limits or Limits()
        self.variables: dict[str, Value] = {}
        self.functions: dict[str, Function] = {}
        self._scopes: list[dict[str, Value]] = []
        self._n_statements = self._n_elements = self._n_steps = 0
        self.has_left = False  # whether the last script ended with quit
        self.rng = np.random.default_rng(simulation.seed)
        self._evaluator = Evaluator(Surroundings(simulation, self.rng))

    # Running ----------------------------------------------------------------------------------------------------

    def run_file(self, path: str | Path) -> None:
        """Run a script file; nothing of it runs if a line of it, or of what it includes, cannot be meant."""
        place = Path(path)
        self._run(parse_text(read_source(place), place.name, folder=place.parent, functions=self.functions))

    def run_text(self, text: str, name: str = "<text>", *, folder: Path | None = None) -> None:
        """Run a script that is given as text; includes are looked for in `folder`."""
        self._run(parse_text(text, name, folder=folder, functions=self.functions))

    def run_action(self, text: str, name: str, value: Value | None = None) -> None:
        """Run the command of a widget, with the value of the widget as the variable ``value``."""
        if value is not None:
            self.variables["value"] = value
        self.run_text(text, name)

    def _run(self, program: Program) -> None:
        self.functions.update(program.functions)
        self._n_statements, self.has_left = 0, False
        try:
            self._block(program.body)
        except Leave:
            self.has_left = True
        finally:
            self._scopes.clear()

    def _block(self, body: Sequence[Statement]) -> None:
        for statement in body:
            self._statement(statement)

    def _statement(self, node: Statement) -> None:
        self.count(node.place)
        if isinstance(node, Command):
            self._command(node)
        elif isinstance(node, Assignment):
            self._scope()[node.name] = self._value(node.value)
        elif isinstance(node, If):
            self._block(node.then if self._truth(node.condition, "if") else node.otherwise)
        elif isinstance(node, For):
            self._for(node)
        elif isinstance(node, While):
            while self._truth(node.condition, "while"):
                self.count(node.place)
                self._block(node.body)
        else:
            assert isinstance(node, Included)
            self._block(node.body)

    def _for(self, node: For) -> None:
        start = self._evaluator.number(node.start, self.visible(), "for")
        stop = self._evaluator.number(node.stop, self.visible(), "to")
        by = 1.0 if node.by is None else self._evaluator.number(node.by, self.visible(), "step")
        if by == 0:
            raise ScriptError("step must not be 0", node.place, "step")
        # The last value counts as reached if only rounding parts it from the end: 0 to 1 step 0.1 has eleven turns.
        n_turns = math.floor(min((stop - start) / by * (1 + 1e-12) + 1e-9, 1e15)) + 1
        for turn in range(max(n_turns, 0)):
            self.count(node.place)
            self._scope()[node.name] = start + turn * by
            self._block(node.body)

    def count(self, place: Place) -> None:
        """Count a line or a turn of a loop; too many end the script."""
        self._n_statements += 1
        if self._n_statements > self.limits.statements:
            raise ScriptError(
                f"a script must end after {self.limits.statements} lines and turns of loops, and this one goes on",
                place,
            )

    def _command(self, command: Command) -> None:
        given = Given(self, command)
        try:
            COMMANDS[command.name].run(given)
        except ScriptError:
            raise
        except RecursionError:
            raise ScriptError("functions and blocks are too deep inside each other", command.place) from None
        except (SimulationError, ValueError, TypeError, OverflowError, OSError, MemoryError) as error:
            place, word = self._blamed(command, str(error))
            sentence = " ".join(str(error).split()) or type(error).__name__
            raise ScriptError(sentence, place, word) from error

    def _blamed(self, command: Command, sentence: str) -> tuple[Place, str]:
        """The argument that an error speaks of, or the command."""
        for name, word, place in command.options:
            if f"{name} " in sentence or f" {name}" in sentence:
                return place, f"-{name}"
            if word.literal and repr(word.literal) in sentence:
                return word.place, word.literal
        told = {part.strip("'\",;:()") for part in sentence.split()} - {""}
        texts = [(word.place, text) for word in reversed(command.arguments) if (text := self._tried(word))]
        for place, text in texts:
            if text in told or text.rpartition("/")[2] in told:
                return place, text
        for place, text in texts:  # a missing parent is blamed on the path that needs it
            if any(text.startswith(part) for part in told if part.startswith("/") and part != "/"):
                return place, text
        return command.place, command.name

    def _tried(self, word: Word) -> str:
        try:
            return self.text(word)
        except ScriptError:
            return ""

    # What commands ask for --------------------------------------------------------------------------------------

    def visible(self) -> Mapping[str, Value]:
        """Variables that can be seen: those of the function that runs, then those of the script."""
        return ChainMap(self._scopes[-1], self.variables) if self._scopes else self.variables

    def _scope(self) -> dict[str, Value]:
        return self._scopes[-1] if self._scopes else self.variables

    def _value(self, node: Expression) -> Value:
        return self._evaluator.value(node, self.visible())

    def _truth(self, node: Expression, what: str) -> bool:
        return bool(self._evaluator.number(node, self.visible(), what))

    def word(self, word: Word) -> Value:
        """What a word of a command is."""
        return self._evaluator.word(word, self.visible())

    def text(self, word: Word) -> str:
        """A word as text."""
        return self._evaluator.text(word, self.visible())

    def say(self, text: str) -> None:
        """Hand a text to whoever listens."""
        self.output(text)

    def call(self, name: str, arguments: Sequence[Value], place: Place) -> None:
        """Run a function; its variables are its own, and those of the script can be read."""
        function = self.functions.get(name)
        if function is None:
            raise ScriptError(f"unknown function {shown(name)}", place, name, nearest(name, self.functions))
        if len(arguments) != len(function.parameters):
            usage = " ".join(["call", name, *(one.upper() for one in function.parameters)])
            raise ScriptError(f"{usage} must be written so, got {len(arguments)} arguments", place, name)
        if len(self._scopes) >= self.limits.calls:
            raise ScriptError(f"functions must call each other at most {self.limits.calls} deep", place, name)
        self._scopes.append(dict(zip(function.parameters, arguments)))
        try:
            self._block(function.body)
        finally:
            self._scopes.pop()

    def count_elements(self, n: int) -> None:
        """Refuse a script that fills the memory with elements."""
        self._n_elements += n
        if self._n_elements > self.limits.elements:
            raise SimulationError(f"a script must create at most {self.limits.elements} elements")

    def step(self, n_steps: int) -> None:
        """Go on by so many time steps."""
        self.count_steps(n_steps)
        self.simulation.step(n_steps)

    def run(self, duration: float) -> None:
        """Go on by a time in ms."""
        self.step(self.steps_of(duration))

    def steps_of(self, duration: float) -> int:
        """A time in whole steps, rounded as `Simulation.run` does."""
        if not 0 <= duration < MOST_STEPS * self.simulation.dt:
            raise SimulationError(f"-time must be at least 0 and below {MOST_STEPS:g} steps, got {duration:g}")
        return math.floor(duration / self.simulation.dt + 0.5)

    def count_steps(self, n_steps: int) -> None:
        """Refuse more time steps than are allowed, if any limit is set."""
        self._n_steps += n_steps
        if self.limits.steps is not None and self._n_steps > self.limits.steps:
            raise SimulationError(f"a script must take at most {self.limits.steps} time steps")

    def set_method(self, name: str) -> None:
        """Choose the integrator."""
        self.simulation.method = name

    def seed(self, number: int) -> None:
        """Begin random numbers anew, those of ``rand`` and, from the next reset on, those of elements."""
        self.simulation.seed = type(self.simulation)(random_state=number).seed
        self.rng = np.random.default_rng(self.simulation.seed)
        self._evaluator = Evaluator(Surroundings(self.simulation, self.rng))

    def save(self, path: str) -> None:
        """Write the simulation as it is now."""
        _check_npz(path)
        self.simulation.save(path)

    def restore(self, path: str) -> None:
        """Go on with a simulation that was saved."""
        _check_npz(path)
        self.simulation = type(self.simulation).restore(path)
        self._evaluator = Evaluator(Surroundings(self.simulation, self.rng))

    def leave(self) -> None:
        """End the script."""
        raise Leave


def _check_npz(path: str) -> None:
    if not path.endswith(".npz"):
        raise SimulationError(f"a saved simulation must be a file of type .npz, got {shown(path)}")
