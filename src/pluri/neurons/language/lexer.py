"""Words and tokens of one line of a script.

Lines are read in two ways. Arguments of commands are words between blanks (``/net/a/*`` is a path). Expressions are
numbers, names and operators (``a/b*2`` is arithmetic); they stand after ``=``, ``if`` and ``while``, in ``for``, and
between braces inside a word.
"""

from __future__ import annotations

import re
from math import isfinite
from typing import NamedTuple

from pluri.neurons.language.places import Place, ScriptError, shown

#: Characters that a line may have: more are no line but an accident.
LONGEST_LINE = 20_000
NUMBER = re.compile(r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
SIGNED = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
OPTION = re.compile(r"-[A-Za-z_][A-Za-z0-9_]*")
SYMBOL = re.compile(r"<=|>=|==|!=|&&|\|\||[-+*/%^()<>,{}=!]")
BLANKS = " \t\r\f\v"
ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\"}


class Token(NamedTuple):
    """A piece of an expression: kind is number, name, text, symbol or end."""

    kind: str
    text: str
    place: Place


class Cursor:
    """A line and a position in it.

    Parameters
    ----------
    text : str
        The line, with its comment.
    file : str
        Named in errors.
    line : int
        Its number, from 1.

    Examples
    --------
    >>> from pluri.neurons.language.lexer import Cursor
    >>> cursor = Cursor("2.5*x // twice", "a.g", 1)
    >>> [cursor.token().text for _ in range(4)]
    ['2.5', '*', 'x', '']
    """

    def __init__(self, text: str, file: str = "<text>", line: int = 1) -> None:
        self.text, self.file, self.line, self.position = text, file, line, 0
        if len(text) > LONGEST_LINE:
            raise ScriptError(f"a line must have at most {LONGEST_LINE} characters, got {len(text)}", self.place())
        if "\0" in text:
            raise ScriptError("a script must be text, got a byte of zero", self.place(text.index("\0")))
        self.end = _end_of_code(text)

    def place(self, position: int | None = None) -> Place:
        """Where the cursor, or another position, is."""
        return Place(self.file, self.line, (self.position if position is None else position) + 1)

    def skip(self) -> None:
        """Go to the next character that is no blank."""
        while self.position < self.end and self.text[self.position] in BLANKS:
            self.position += 1

    def at_end(self) -> bool:
        """Whether only blanks and a comment are left."""
        self.skip()
        return self.position >= self.end

    def peek(self) -> str:
        """The next character that is no blank, or nothing."""
        return "" if self.at_end() else self.text[self.position]

    def match(self, pattern: re.Pattern[str]) -> str | None:
        """Take what a pattern finds here."""
        found = pattern.match(self.text, self.position, self.end)
        if found is None:
            return None
        self.position = found.end()
        return found[0]

    def rest_of_word(self) -> str:
        """The characters up to the next blank, for errors."""
        stop = self.position
        while stop < self.end and self.text[stop] not in BLANKS:
            stop += 1
        return self.text[self.position : stop]

    def token(self) -> Token:
        """Take the next piece of an expression."""
        if self.at_end():
            return Token("end", "", self.place())
        place = self.place()
        for kind, pattern in (("number", NUMBER), ("name", NAME), ("symbol", SYMBOL)):
            found = self.match(pattern)
            if found is not None:
                return Token(kind, found, place)
        if self.text[self.position] == '"':
            return Token("text", self.quoted(), place)
        word = self.text[self.position]
        raise ScriptError(f"an expression cannot have {shown(word)}", place, word)

    def quoted(self) -> str:
        r"""Take a text between quotes; \" \\ \n and \t are what they are elsewhere."""
        place = self.place()
        self.position += 1
        pieces: list[str] = []
        while self.position < self.end:
            character = self.text[self.position]
            self.position += 1
            if character == '"':
                return "".join(pieces)
            if character == "\\" and self.position < self.end:
                escaped = self.text[self.position]
                if escaped not in ESCAPES:
                    raise ScriptError(
                        f'a text may have \\n, \\t, \\" and \\\\, got {shown(character + escaped)}',
                        self.place(self.position - 1),
                        character + escaped,
                    )
                character = ESCAPES[escaped]
                self.position += 1
            pieces.append(character)
        raise ScriptError('a text that begins with " must end with " on the same line', place, '"')


def _end_of_code(text: str) -> int:
    """Where the comment begins: two slashes outside of quotes."""
    if "//" not in text:
        return len(text)
    quoted, position = False, 0
    while position < len(text):
        character = text[position]
        if character == "\\" and quoted:
            position += 1
        elif character == '"':
            quoted = not quoted
        elif not quoted and text.startswith("//", position):
            return position
        position += 1
    return len(text)


def as_number(text: str) -> float | None:
    """The number that a bare word is, if it is one.

    Examples
    --------
    >>> from pluri.neurons.language.lexer import as_number
    >>> as_number("-2.5e3"), as_number("soma"), as_number("nan")
    (-2500.0, None, None)
    """
    number = float(text) if len(text) <= 400 and SIGNED.fullmatch(text) else None
    return number if number is not None and isfinite(number) else None
