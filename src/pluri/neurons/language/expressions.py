"""Parsing of expressions and of the words of commands, by recursive descent with a bound on the depth.

From loosest to tightest: or, and, not, comparison, + -, * / %, unary -, ^ (from the right, and its exponent may have a
sign: ``-2^2`` is -4 and ``2^-1`` is 0.5), call and parentheses.
"""

from __future__ import annotations

from math import isfinite

from pluri.neurons.language.functions import FUNCTIONS
from pluri.neurons.language.lexer import BLANKS, Cursor, Token
from pluri.neurons.language.nodes import Call, Chain, Constant, Expression, Name, Unary, Word
from pluri.neurons.language.places import ScriptError, nearest, shown

#: Parentheses, signs and exponents inside each other.
DEEPEST_EXPRESSION = 40
#: Words that no variable can have.
RESERVED = frozenset({"or", "and", "not", "to", "step", "if", "else", "end", "for", "while", "function"})
COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">="})
#: What other languages write.
FOREIGN = {"&&": "and", "||": "or", "!": "not", "=": "=="}


class ExpressionParser:
    """Parses one expression from a cursor; `next` is the token that comes after it."""

    def __init__(self, cursor: Cursor) -> None:
        self.cursor, self.depth = cursor, 0
        self.next = self._take()

    def _take(self) -> Token:
        self.before = self.cursor.position
        return self.cursor.token()

    def _advance(self) -> Token:
        taken, self.next = self.next, self._take()
        return taken

    def _is(self, *texts: str) -> bool:
        return self.next.kind in ("symbol", "name") and self.next.text in texts

    def _deeper(self) -> None:
        self.depth += 1
        if self.depth > DEEPEST_EXPRESSION:
            raise ScriptError(f"an expression must be at most {DEEPEST_EXPRESSION} deep", self.next.place)

    def finish(self) -> None:
        """Give back the token that was looked at and does not belong to the expression."""
        self.cursor.position = self.before

    def parse(self) -> Expression:
        """The whole expression."""
        self._deeper()
        found = self._chain(self._conjunction, {"or"})
        self.depth -= 1
        if self.next.kind == "symbol" and self.next.text in FOREIGN:
            raise ScriptError(
                f"an expression cannot have {shown(self.next.text)}", self.next.place, self.next.text,
                FOREIGN[self.next.text],
            )  # fmt: skip
        return found

    def _chain(self, operand, operators: set[str] | frozenset[str], *, most: int | None = None) -> Expression:  # type: ignore[no-untyped-def]
        place, first = self.next.place, operand()
        rest: list[tuple[str, Expression]] = []
        while self._is(*operators) and (most is None or len(rest) < most):
            operator = self._advance().text
            rest.append((operator, operand()))
        return Chain(first, tuple(rest), place) if rest else first

    def _conjunction(self) -> Expression:
        return self._chain(self._negation, {"and"})

    def _negation(self) -> Expression:
        if not self._is("not"):
            return self._comparison()
        place = self._advance().place
        self._deeper()
        operand = self._negation()
        self.depth -= 1
        return Unary("not", operand, place)

    def _comparison(self) -> Expression:
        found = self._chain(self._sum, COMPARISONS, most=1)
        if self._is(*COMPARISONS):
            raise ScriptError("comparisons must be joined by and, as in 0 < x and x < 1", self.next.place)
        return found

    def _sum(self) -> Expression:
        return self._chain(self._product, {"+", "-"})

    def _product(self) -> Expression:
        return self._chain(self._sign, {"*", "/", "%"})

    def _sign(self) -> Expression:
        if not self._is("-", "+"):
            return self._power()
        token = self._advance()
        self._deeper()
        operand = self._sign()
        self.depth -= 1
        return Unary("-", operand, token.place) if token.text == "-" else operand

    def _power(self) -> Expression:
        place, base = self.next.place, self._atom()
        if not self._is("^"):
            return base
        self._advance()
        self._deeper()
        exponent = self._sign()
        self.depth -= 1
        return Chain(base, (("^", exponent),), place)

    def _atom(self) -> Expression:
        token = self.next
        if token.kind == "number":
            self._advance()
            if not isfinite(float(token.text)):
                raise ScriptError(f"a number must be finite, got {shown(token.text)}", token.place, token.text)
            return Constant(float(token.text), token.place)
        if token.kind == "text":
            self._advance()
            return Constant(token.text, token.place)
        if token.kind == "symbol" and token.text == "(":
            self._advance()
            found = self.parse()
            self._expect(")")
            return found
        if token.kind == "name" and token.text not in RESERVED:
            # A call is seen before the token after its name is taken: its arguments may be words.
            if self.cursor.peek() == "(":
                return self._call()
            self._advance()
            return Name(token.text, token.place)
        if token.kind == "end":
            raise ScriptError("an expression must not end here", token.place)
        raise ScriptError(
            f"an expression must go on with a number, a name or a parenthesis, got {shown(token.text)}",
            token.place, token.text, FOREIGN.get(token.text, ""),
        )  # fmt: skip

    def _expect(self, symbol: str) -> None:
        if not self._is(symbol):
            got = shown(self.next.text) if self.next.text else "the end of the line"
            raise ScriptError(f"{symbol!r} must come here, got {got}", self.next.place, self.next.text)
        self._advance()

    def _call(self) -> Expression:
        token = self.next
        function = FUNCTIONS.get(token.text)
        if function is None:
            raise ScriptError(
                f"unknown function {shown(token.text)}", token.place, token.text, nearest(token.text, FUNCTIONS)
            )
        self._deeper()
        self.cursor.skip()
        self.cursor.position += 1  # the parenthesis
        arguments: list[Expression] = []
        if function.takes_words:
            self._word_arguments(arguments)
        else:
            self._advance()
            while not self._is(")"):
                arguments.append(self.parse())
                if not self._is(")"):
                    self._expect(",")
        self._expect(")")
        self.depth -= 1
        if not function.least <= len(arguments) <= function.most:
            raise ScriptError(f"{function.usage} must be given so, got {len(arguments)} arguments", token.place)
        return Call(token.text, tuple(arguments), token.place)

    def _word_arguments(self, arguments: list[Expression]) -> None:
        """Paths and fields: words that end before a comma or the parenthesis."""
        cursor = self.cursor
        while cursor.peek() not in (")", ""):
            arguments.append(parse_word(cursor, stops=",)", depth=self.depth))
            if cursor.peek() == ",":
                cursor.position += 1
            elif cursor.peek() != ")":
                break
        self._advance()


def parse_expression(cursor: Cursor, *, depth: int = 0) -> Expression:
    """Take an expression, as long as it goes."""
    parser = ExpressionParser(cursor)
    parser.depth = depth
    found = parser.parse()
    parser.finish()
    return found


def parse_word(cursor: Cursor, *, stops: str = "", depth: int = 0) -> Word:
    """Take one argument of a command: a text in quotes, or a word in which braces hold expressions."""
    cursor.skip()
    place = cursor.place()
    ends = BLANKS + stops
    if cursor.peek() == '"':
        text = cursor.quoted()
        if cursor.position < cursor.end and cursor.text[cursor.position] not in ends:
            raise ScriptError("a blank must come after a text in quotes", cursor.place(), cursor.rest_of_word())
        return Word((text,), place, quoted=True)
    pieces: list[str | Expression] = []
    begin = cursor.position
    while cursor.position < cursor.end and cursor.text[cursor.position] not in ends:
        character = cursor.text[cursor.position]
        if character == "}":
            raise ScriptError("'}' must have a '{' before it", cursor.place(), "}")
        if character == "{":
            if begin < cursor.position:
                pieces.append(cursor.text[begin : cursor.position])
            cursor.position += 1
            pieces.append(_braced(cursor, depth))
            begin = cursor.position
        else:
            cursor.position += 1
    if begin < cursor.position:
        pieces.append(cursor.text[begin : cursor.position])
    if not pieces:
        raise ScriptError("a word must come here", place)
    return Word(tuple(pieces), place)


def _braced(cursor: Cursor, depth: int) -> Expression:
    found = parse_expression(cursor, depth=depth + 1)
    if cursor.peek() != "}":
        got = shown(cursor.rest_of_word()) if cursor.peek() else "the end of the line"
        raise ScriptError(f"'}}' must come here, got {got}", cursor.place(), cursor.rest_of_word())
    cursor.position += 1
    return found
