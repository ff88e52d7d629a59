"""Scripts to programs: whole files are parsed, with all that they include, before the first line runs.

What can be known to be wrong is said here: commands, numbers of arguments, options, classes of elements and functions
that do not exist.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from pathlib import Path
from typing import NoReturn

from pluri.neurons.language.commands import COMMANDS
from pluri.neurons.language.expressions import RESERVED, parse_expression, parse_word
from pluri.neurons.language.functions import CONSTANTS, FUNCTIONS
from pluri.neurons.language.lexer import NAME, OPTION, Cursor
from pluri.neurons.language.nodes import (
    Assignment,
    Command,
    For,
    Function,
    If,
    Included,
    Program,
    Statement,
    While,
    Word,
)
from pluri.neurons.language.old_words import advice_for
from pluri.neurons.language.places import Place, ScriptError, UnclosedBlock, nearest, shown
from pluri.neurons.language.sources import read_source

DEEPEST_BLOCK, DEEPEST_INCLUDE, MOST_FILES = 20, 20, 200
BLOCKS = ("if", "for", "while", "function", "else", "end")
ASSIGNMENT = re.compile(r"[ \t]*([A-Za-z_][A-Za-z0-9_]*)[ \t]*=(?!=)")


class Parser:
    """Parses a script and what it includes.

    Parameters
    ----------
    functions : names of functions that are defined already
    """

    def __init__(self, functions: Container[str] = ()) -> None:
        self.known = functions
        self.program = Program()
        self.calls: list[tuple[str, Place]] = []
        self.files: list[Path] = []  # those that are being read, outermost first
        self.n_files = 0

    def parse(self, text: str, name: str, folder: Path) -> Program:
        """A whole script; `folder` is where its includes are looked for."""
        self.program.body = tuple(_File(self, text, name, folder).statements())
        for called, place in self.calls:
            if called not in self.program.functions and called not in self.known:
                known = [*self.program.functions, *(self.known if isinstance(self.known, dict) else ())]
                raise ScriptError(f"unknown function {shown(called)}", place, called, nearest(called, known))
        return self.program

    def define(self, function: Function) -> None:
        """Keep a function; the same file may be included twice."""
        before = self.program.functions.get(function.name)
        if before is not None and before.place != function.place:
            raise ScriptError(
                f"function {function.name} is defined already at {before.place}", function.place, function.name
            )
        self.program.functions[function.name] = function

    def include(self, word: Word, folder: Path) -> Included:
        """The statements of another file."""
        literal = word.literal
        if literal is None:
            raise ScriptError("include must name a file, without expressions", word.place)
        path = folder / literal
        if "\0" in literal or len(literal) > 1000:
            raise ScriptError(f"include must name a file, got {shown(literal)}", word.place, literal)
        if not path.exists() and not path.suffix:
            path = path.with_name(path.name + ".g") if path.name else path
        resolved = path.resolve()
        self.n_files += 1
        if resolved in self.files:
            raise ScriptError(f"{path.name} includes itself", word.place, literal)
        if len(self.files) >= DEEPEST_INCLUDE or self.n_files > MOST_FILES:
            raise ScriptError(f"at most {DEEPEST_INCLUDE} files inside each other and {MOST_FILES} in all", word.place)
        text = read_source(path, word.place)
        self.files.append(resolved)
        body = tuple(_File(self, text, path.name, path.parent).statements())
        self.files.pop()
        return Included(body, word.place)


class _File:
    """The lines of one file, taken one after the other."""

    def __init__(self, parser: Parser, text: str, name: str, folder: Path) -> None:
        self.parser, self.name, self.folder = parser, name, folder
        self.lines = text.removeprefix("\ufeff").split("\n")
        self.number, self.depth = 0, 0

    def cursors(self) -> Iterator[Cursor]:
        """Lines that say something."""
        while self.number < len(self.lines):
            self.number += 1
            cursor = Cursor(self.lines[self.number - 1], self.name, self.number)
            if not cursor.at_end():
                yield cursor

    def statements(self) -> list[Statement]:
        """All lines of the file."""
        found: list[Statement] = []
        for cursor in self.cursors():
            word = _first_word(cursor)
            if word in ("else", "end"):
                raise ScriptError(f"{word} must have an if, for, while or function before it", cursor.place(), word)
            if word == "function":
                self._function(cursor)
            else:
                found.append(self.statement(cursor, word))
        return found

    def statement(self, cursor: Cursor, word: str) -> Statement:
        """One statement, with its block if it has one."""
        if ASSIGNMENT.match(cursor.text, 0, cursor.end):
            return self._assignment(cursor)
        if word == "if":
            return self._if(cursor)
        if word == "for":
            return self._for(cursor)
        if word == "while":
            place = cursor.place()
            cursor.position += len(word)
            condition = parse_expression(cursor)
            _expect_end(cursor, "while")
            return While(condition, self._block("while", place)[0], place)
        if word == "function":
            raise ScriptError("a function must stand outside of other blocks", cursor.place(), word)
        return self._command(cursor)

    def _block(self, kind: str, place: Place) -> tuple[tuple[Statement, ...], str]:
        """Lines up to `end`, or to `else` of an `if`; and which of the two it was."""
        self.depth += 1
        if self.depth > DEEPEST_BLOCK:
            raise ScriptError(f"blocks must be at most {DEEPEST_BLOCK} deep", place)
        found: list[Statement] = []
        for cursor in self.cursors():
            word = _first_word(cursor)
            if word == "end" or (word == "else" and kind == "if"):
                cursor.position += len(word)
                if not cursor.at_end():
                    hint = ": write the inner if on the next line, with an end of its own" if word == "else" else ""
                    raise ScriptError(f"{word} must stand alone{hint}", cursor.place(), cursor.rest_of_word())
                self.depth -= 1
                return tuple(found), word
            if word == "else":
                raise ScriptError("else must belong to an if", cursor.place(), word)
            found.append(self.statement(cursor, word))
        raise UnclosedBlock(f"{kind} must be closed by end, got the end of the file", place, kind)

    def _if(self, cursor: Cursor) -> If:
        place = cursor.place()
        cursor.position += 2
        condition = parse_expression(cursor)
        _expect_end(cursor, "if")
        then, how = self._block("if", place)
        otherwise = self._block("else", place)[0] if how == "else" else ()
        return If(condition, then, otherwise, place)

    def _for(self, cursor: Cursor) -> For:
        place = cursor.place()
        cursor.position += 3
        cursor.skip()
        name = self._new_name(cursor, "for NAME = START to STOP [step BY]")
        cursor.skip()
        if cursor.peek() != "=":
            raise ScriptError("for NAME = START to STOP [step BY] must be written so", cursor.place())
        cursor.position += 1
        start = parse_expression(cursor)
        _expect_word(cursor, "to")
        stop, by = parse_expression(cursor), None
        if not cursor.at_end():
            _expect_word(cursor, "step")
            by = parse_expression(cursor)
        _expect_end(cursor, "for")
        return For(name, start, stop, by, self._block("for", place)[0], place)

    def _function(self, cursor: Cursor) -> None:
        place = cursor.place()
        cursor.position += len("function")
        cursor.skip()
        form = "function NAME PARAMETERS, with blanks between,"
        name, parameters = self._new_name(cursor, form), []
        while not cursor.at_end():
            parameters.append(self._new_name(cursor, form))
        if len(set(parameters)) < len(parameters):
            raise ScriptError(f"parameters of {name} must have different names", place, name)
        body = self._block("function", place)[0]
        self.parser.define(Function(name, tuple(parameters), body, place))

    def _new_name(self, cursor: Cursor, form: str) -> str:
        cursor.skip()
        place, word = cursor.place(), cursor.rest_of_word()
        name = cursor.match(NAME)
        if name is None or (not cursor.at_end() and cursor.text[cursor.position] in "(,;"):
            raise ScriptError(f"{form} must be written so, got {shown(word)}", place, word)
        _refuse_reserved(name, place)
        return name

    def _assignment(self, cursor: Cursor) -> Assignment:
        cursor.skip()
        place = cursor.place()
        name = cursor.match(NAME) or ""
        _refuse_reserved(name, place)
        cursor.skip()
        cursor.position += 1
        value = parse_expression(cursor)
        _expect_end(cursor, f"{name} =")
        return Assignment(name, value, place)

    def _command(self, cursor: Cursor) -> Statement:
        cursor.skip()
        place, name = cursor.place(), cursor.rest_of_word()
        form = COMMANDS.get(name)
        if form is None:
            _refuse_command(name, place, self.parser)
        cursor.position += len(name)
        arguments: list[Word] = []
        options: list[tuple[str, Word, Place]] = []
        while not cursor.at_end():
            option_place, option = cursor.place(), cursor.match(OPTION)
            if option is None:
                arguments.append(parse_word(cursor))
                continue
            if cursor.at_end():
                raise ScriptError(f"option {option} must have a value", option_place, option)
            options.append((option[1:], parse_word(cursor), option_place))
        command = Command(name, tuple(arguments), tuple(options), place)
        checked = form.checked(command)
        if name == "include":
            return self.parser.include(checked.arguments[0], self.folder)
        if name == "call" and checked.arguments[0].literal is not None:
            self.parser.calls.append((checked.arguments[0].literal, checked.arguments[0].place))
        return checked


def _first_word(cursor: Cursor) -> str:
    found = NAME.match(cursor.text, cursor.position, cursor.end)
    return found[0] if found else ""


def _refuse_reserved(name: str, place: Place) -> None:
    if name in RESERVED or name in FUNCTIONS or name in CONSTANTS:
        raise ScriptError(f"{name} is a word of the language, and cannot be a name", place, name)


def _refuse_command(name: str, place: Place, parser: Parser) -> NoReturn:
    advice = advice_for(name)
    if advice is not None:
        raise ScriptError(
            f"{shown(name)} is of GENESIS 2, whose scripts are written otherwise: {advice}; nothing was run",
            place,
            name,
        )
    functions = parser.program.functions
    if name in functions or name in parser.known:
        raise ScriptError(f"{shown(name)} is a function: write call {name}", place, name)
    raise ScriptError(f"unknown command {shown(name)}", place, name, nearest(name, [*COMMANDS, *BLOCKS]))


def _expect_word(cursor: Cursor, word: str) -> None:
    cursor.skip()
    if _first_word(cursor) != word:
        got = shown(cursor.rest_of_word()) if not cursor.at_end() else "the end of the line"
        raise ScriptError(f"{word!r} must come here, got {got}", cursor.place(), cursor.rest_of_word(), "")
    cursor.position += len(word)


def _expect_end(cursor: Cursor, what: str) -> None:
    if not cursor.at_end():
        word = cursor.rest_of_word()
        raise ScriptError(f"nothing must come after the expression of {what}, got {shown(word)}", cursor.place(), word)


def parse_text(
    text: str, name: str = "<text>", *, folder: Path | None = None, functions: Container[str] = ()
) -> Program:
    r"""Parse a script.

    Examples
    --------
    >>> from pluri.neurons.language.parser import parse_text
    >>> program = parse_text("x = 2^3 // eight\necho {x}")
    >>> [type(one).__name__ for one in program.body]
    ['Assignment', 'Command']
    """
    return Parser(functions).parse(text, name, folder or Path())
