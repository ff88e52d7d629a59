"""Values of expressions and words: numbers of double precision, and texts. Nothing is handed to Python's ``eval``."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping

from pluri.neurons.language.functions import CONSTANTS, FUNCTIONS, Surroundings
from pluri.neurons.language.lexer import as_number
from pluri.neurons.language.nodes import Call, Chain, Constant, Expression, Name, Unary, Word
from pluri.neurons.language.places import Place, ScriptError, nearest, shown

Value = float | str
#: Characters of a text that a script makes.
LONGEST_TEXT = 100_000
#: Ends of numbers that are shown without a decimal point.
LARGEST_WHOLE = 1e15


def _remainder(dividend: float, divisor: float) -> float:
    return dividend - divisor * math.floor(dividend / divisor)


def _power(base: float, exponent: float) -> float:
    return math.pow(base, exponent)


ARITHMETIC: dict[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "%": _remainder,
    "^": _power,
}
COMPARISONS: dict[str, Callable[[Value, Value], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def as_text(value: Value) -> str:
    """A value as it is written: whole numbers without a decimal point.

    Examples
    --------
    >>> from pluri.neurons.language.evaluation import as_text
    >>> as_text(3.0), as_text(0.1), as_text("soma")
    ('3', '0.1', 'soma')
    """
    if isinstance(value, str):
        return value
    return str(int(value)) if value == math.floor(value) and abs(value) < LARGEST_WHOLE else repr(float(value))


class Evaluator:
    """Values of expressions, given the variables.

    Parameters
    ----------
    around : Surroundings
        What functions may look at.
    """

    def __init__(self, around: Surroundings) -> None:
        self.around = around

    def value(self, node: Expression, variables: Mapping[str, Value]) -> Value:
        """The number or text that an expression is."""
        if isinstance(node, Constant):
            return node.value
        if isinstance(node, Name):
            return self._variable(node, variables)
        if isinstance(node, Word):
            return self.word(node, variables)
        if isinstance(node, Unary):
            operand = self._number(node.operand, variables, node.operator)
            return -operand if node.operator == "-" else float(not operand)
        if isinstance(node, Call):
            return self._call(node, variables)
        return self._chain(node, variables)

    def number(self, node: Expression, variables: Mapping[str, Value], what: str) -> float:
        """The number that an expression is; a text is refused."""
        return self._number(node, variables, what)

    def word(self, word: Word, variables: Mapping[str, Value]) -> Value:
        """What a word is: its one expression, a number, or a text."""
        if len(word.pieces) == 1:
            piece = word.pieces[0]
            if not isinstance(piece, str):
                return self.value(piece, variables)
            number = None if word.quoted else as_number(piece)
            return piece if number is None else number
        return self.text(word, variables)

    def text(self, word: Word, variables: Mapping[str, Value]) -> str:
        """A word as text, as paths and names are."""
        pieces = [piece if isinstance(piece, str) else as_text(self.value(piece, variables)) for piece in word.pieces]
        if sum(map(len, pieces)) > LONGEST_TEXT:
            raise ScriptError(f"a text must have at most {LONGEST_TEXT} characters", word.place)
        return "".join(pieces)

    def _variable(self, node: Name, variables: Mapping[str, Value]) -> Value:
        if node.name in variables:
            return variables[node.name]
        if node.name in CONSTANTS:
            return CONSTANTS[node.name]
        if node.name in FUNCTIONS:
            raise ScriptError(f"{FUNCTIONS[node.name].usage} needs its parentheses", node.place, node.name)
        known = [*variables, *CONSTANTS]
        raise ScriptError(
            f"{shown(node.name)} has no value yet", node.place, node.name, nearest(node.name, known)
        )  # fmt: skip

    def _number(self, node: Expression, variables: Mapping[str, Value], what: str) -> float:
        value = self.value(node, variables)
        if isinstance(value, str):
            raise ScriptError(f"{what} must have a number, got the text {shown(value)}", node.place, value)
        return value

    def _call(self, node: Call, variables: Mapping[str, Value]) -> Value:
        form = FUNCTIONS[node.name]
        arguments: list[Value] = []
        for argument in node.arguments:
            if form.takes_words and isinstance(argument, Word):
                arguments.append(self.text(argument, variables))
            else:
                arguments.append(self._number(argument, variables, form.usage))
        try:
            found = form.apply(*([self.around] if form.looks_around else []), *arguments)
        except (ArithmeticError, ValueError) as error:
            told = ", ".join(map(as_text, arguments))
            why = str(error) if form.takes_words else f"{node.name}({told}) has no value"
            raise ScriptError(" ".join(why.split()), node.place, node.name) from None
        return found if isinstance(found, str) else _finite(found, node.place)

    def _chain(self, node: Chain, variables: Mapping[str, Value]) -> Value:
        if node.rest[0][0] in ("or", "and"):
            return self._logic(node, variables)
        left = self.value(node.first, variables)
        for symbol, operand in node.rest:
            right = self.value(operand, variables)
            if symbol in COMPARISONS:
                left = self._compare(symbol, left, right, node.place)
            elif isinstance(left, str) or isinstance(right, str):
                left = _joined(symbol, left, right, node.place)
            else:
                left = _calculated(symbol, left, right, node.place)
        return left

    def _logic(self, node: Chain, variables: Mapping[str, Value]) -> float:
        wanted = node.rest[0][0] == "or"  # the value that decides, and spares the rest
        for operand in (node.first, *(operand for _, operand in node.rest)):
            if bool(self._number(operand, variables, node.rest[0][0])) == wanted:
                return float(wanted)
        return float(not wanted)

    def _compare(self, symbol: str, left: Value, right: Value, place: Place) -> float:
        if isinstance(left, str) != isinstance(right, str) and symbol not in ("==", "!="):
            raise ScriptError(f"{symbol} must be between two numbers or two texts", place, symbol)
        return float(COMPARISONS[symbol](left, right))


def _joined(symbol: str, left: Value, right: Value, place: Place) -> str:
    if symbol != "+":
        raise ScriptError(f"{symbol} must be between numbers, got a text", place, symbol)
    joined = as_text(left) + as_text(right)
    if len(joined) > LONGEST_TEXT:
        raise ScriptError(f"a text must have at most {LONGEST_TEXT} characters, got {len(joined)}", place)
    return joined


def _calculated(symbol: str, left: float, right: float, place: Place) -> float:
    try:
        found = ARITHMETIC[symbol](left, right)
    except ZeroDivisionError:
        raise ScriptError(f"{as_text(left)} {symbol} 0 has no value", place, symbol) from None
    except (OverflowError, ValueError):
        raise ScriptError(f"{as_text(left)} {symbol} {as_text(right)} has no value", place, symbol) from None
    return _finite(found, place)


def _finite(value: float, place: Place) -> float:
    if not math.isfinite(value):
        raise ScriptError("a number must be finite, got one that is too large", place)
    return float(value)
