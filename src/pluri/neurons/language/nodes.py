"""What a script consists of after it was parsed: frozen records, each with its place.

Left-associative operators are chains, not nested pairs: a sum of ten thousand terms is one record, so that neither
parsing nor evaluating it goes deep.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from pluri.neurons.language.places import Place


@dataclass(frozen=True, slots=True)
class Constant:
    """A number or a quoted text."""

    value: float | str
    place: Place


@dataclass(frozen=True, slots=True)
class Name:
    """The value of a variable."""

    name: str
    place: Place


@dataclass(frozen=True, slots=True)
class Chain:
    """Operands joined by operators of one precedence, from left to right; of ``or`` and ``and`` no more than needed."""

    first: Expression
    rest: tuple[tuple[str, Expression], ...]
    place: Place


@dataclass(frozen=True, slots=True)
class Unary:
    """``-x`` or ``not x``."""

    operator: str
    operand: Expression
    place: Place


@dataclass(frozen=True, slots=True)
class Call:
    """A function of the language and its arguments."""

    name: str
    arguments: tuple[Expression, ...]
    place: Place


@dataclass(frozen=True, slots=True)
class Word:
    """An argument of a command: text with expressions between, such as ``/net/cell[{i}]/soma``.

    A word of one expression has the value of that; a bare word that reads as a number is that number.
    """

    pieces: tuple[str | Expression, ...]
    place: Place
    quoted: bool = False

    @property
    def literal(self) -> str | None:
        """The text, if it is known before the script runs."""
        return "".join(map(str, self.pieces)) if all(isinstance(piece, str) for piece in self.pieces) else None


Expression: TypeAlias = Constant | Name | Chain | Unary | Call | Word


@dataclass(frozen=True, slots=True)
class Command:
    """A command with its arguments; the word ``to`` between two of them is left out."""

    name: str
    arguments: tuple[Word, ...]
    options: tuple[tuple[str, Word, Place], ...]
    place: Place


@dataclass(frozen=True, slots=True)
class Assignment:
    """``name = expression``."""

    name: str
    value: Expression
    place: Place


@dataclass(frozen=True, slots=True)
class If:
    """``if`` ... ``else`` ... ``end``."""

    condition: Expression
    then: tuple[Statement, ...]
    otherwise: tuple[Statement, ...]
    place: Place


@dataclass(frozen=True, slots=True)
class For:
    """``for name = start to stop step by`` ... ``end``."""

    name: str
    start: Expression
    stop: Expression
    by: Expression | None
    body: tuple[Statement, ...]
    place: Place


@dataclass(frozen=True, slots=True)
class While:
    """``while`` ... ``end``."""

    condition: Expression
    body: tuple[Statement, ...]
    place: Place


@dataclass(frozen=True, slots=True)
class Included:
    """The statements of another file."""

    body: tuple[Statement, ...]
    place: Place


Statement: TypeAlias = Command | Assignment | If | For | While | Included


@dataclass(frozen=True, slots=True)
class Function:
    """A subprogram: its name, its parameters, its lines."""

    name: str
    parameters: tuple[str, ...]
    body: tuple[Statement, ...]
    place: Place


@dataclass(slots=True)
class Program:
    """A parsed script, with the functions of all its files."""

    body: tuple[Statement, ...] = ()
    functions: dict[str, Function] = field(default_factory=dict)
