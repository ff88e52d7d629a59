"""Expressions of scripts: the same values as Python's, with ^ for **; and what has no value."""

from __future__ import annotations

import contextlib
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pluri.neurons import Simulation
from pluri.neurons.language import Interpreter, ScriptError


def value_of(text, **variables):
    interpreter = Interpreter(Simulation())
    interpreter.variables.update(variables)
    interpreter.run_text(f"result = {text}")
    return interpreter.variables["result"]


ATOMS = st.sampled_from(["0", "1", "2", "3.5", ".25", "1e1", "7"])


def combined(parts):
    binary = st.tuples(parts, st.sampled_from(["+", "-", "*", "/", "%", " and ", " or ", " < ", " >= ", " == "]), parts)
    return st.one_of(
        binary.map("".join),
        parts.map(lambda one: f"({one})"),
        parts.map(lambda one: f"-({one})"),
        parts.map(lambda one: f"(not ({one}))"),
        st.tuples(ATOMS, st.sampled_from(["^2", "^-1", "^0.5"])).map("".join),
    )


@given(st.recursive(ATOMS, combined, max_leaves=12))
def test_values_are_those_of_python(text):
    # Comparisons are not chained here, and logic gives 0 or 1; both are written so for Python.
    python = text.replace("^", "**")
    try:
        expected = eval(python, {})
    except ZeroDivisionError:
        expected = None
    chained = sum(text.count(symbol) for symbol in (" < ", " >= ", " == ")) > 1
    if expected is None or chained:
        with contextlib.suppress(ScriptError):
            value_of(text)
        return
    found = value_of(text)
    if " and " in text or " or " in text:  # Python gives an operand, scripts whether it holds
        found, expected = bool(found), bool(expected)
    assert math.isclose(found, expected, rel_tol=1e-12, abs_tol=1e-12), text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("-2^2", -4),
        ("2^3^2", 512),
        ("2^-1", 0.5),
        ("-3 % 5", 2),
        ("8/4/2", 1),
        ("10-4-3", 3),
        ("2+3*4^2", 50),
        ("not 1 == 2", 1),
        ("1 or 1/0", 1),
        ("0 and 1/0", 0),
        ("1 < 2 and 2 < 3 or 0", 1),
        ("not 0 and 0", 0),
        ('"a" + 1 + "b"', "a1b"),
        ('"a" == "a"', 1),
        ('"a" == 1', 0),
        ("max(1, 5, 3) - min(2, -1)", 6),
        ("floor(-2.5) + round(2.5)", 0),
        ("abs(-3) + sqrt(16) + exp(0) + log(1) + cos(0) + sin(0) + tanh(0)", 9),
        ("cos(pi)", -1),
        ("pi() - pi", 0),
        ("true + false", 1),
        ("1e-3 * 1000", 1),
        ("1" + " + 1" * 4000, 4001),
    ],
)
def test_precedence_and_functions(text, expected):
    assert value_of(text) == expected


@pytest.mark.parametrize(
    ("text", "column", "says"),
    [
        ("1/0", 10, "1 / 0 has no value"),
        ("5 % 0", 10, "no value"),
        ("sqrt(-1)", 10, r"sqrt\(-1\) has no value"),
        ("10^400", 10, "no value"),
        ("1e999", 10, "must be finite"),
        ("1e308 * 10", 10, "too large"),
        ("(-8)^0.5", 10, "no value"),
        ("a + 1", 10, "'a' has no value yet"),
        ('"a" * 2', 10, "must be between numbers"),
        ('-"a"', 11, "must have a number, got the text 'a'"),
        ("1 < 2 < 3", 16, "joined by and"),
        ("1 &" + "& 2", 12, r"did you mean and\?"),
        ("sqt(4)", 10, r"unknown function 'sqt' \(did you mean sqrt\?\)"),
        ("sqrt(1, 2)", 10, "sqrt"),
        ("sqrt 4", 15, "nothing must come after"),
        ("2 +", 13, "must not end here"),
        ("(2", 12, "'\\)' must come here"),
        ("{2}", 10, "must go on with"),
        ("2 $ 3", 12, "cannot have"),
        ("(" * 60 + "1" + ")" * 60, 50, "40 deep"),
        ("-" * 60 + "1", 50, "40 deep"),
        ("2" + "^2" * 60, 90, "40 deep"),
    ],
)
def test_what_has_no_value_is_told_with_its_column(text, column, says):
    with pytest.raises(ScriptError, match=says) as caught:
        value_of(text)
    assert (caught.value.place.line, caught.value.place.column) == (1, column)


def test_a_near_miss_of_a_variable_is_told():
    with pytest.raises(ScriptError, match=r"'lenght' has no value yet \(did you mean length\?\)"):
        value_of("2 * lenght", length=3.0)


def test_texts_cannot_grow_without_end():
    interpreter = Interpreter(Simulation())
    with pytest.raises(ScriptError, match="at most 100000 characters"):
        interpreter.run_text('s = "ab"\nfor i = 1 to 100\n s = s + s\nend')


def test_random_numbers_follow_the_seed():
    def draw(**settings):
        interpreter = Interpreter(Simulation(**settings))
        interpreter.run_text("a = rand()\nb = rand(5, 6)")
        return interpreter.variables["a"], interpreter.variables["b"]

    assert draw(random_state=3) == draw(random_state=3) != draw(random_state=4)
    assert 0 <= draw(random_state=3)[0] < 1
    assert 5 <= draw(random_state=3)[1] < 6
    interpreter = Interpreter(Simulation(random_state=9))
    interpreter.run_text("seed 3\na = rand()\nb = rand(5, 6)")
    assert (interpreter.variables["a"], interpreter.variables["b"]) == draw(random_state=3)


def test_fields_are_read_by_paths_with_expressions():
    sim = Simulation()
    sim.create("group", "/net")
    for number in range(3):
        sim.create("passive_compartment", f"/net/cell[{number}]", length=10.0 * number + 1)
    interpreter = Interpreter(sim)
    interpreter.run_text(
        "i = 1\na = getfield(/net/cell[{i + 1}], length)\nb = count(/net/*)\nc = exists(/net/cell[7])\n"
        'd = exists("/net")\nce /net\ne = getfield(cell[{i}], length) * 2'
    )
    found = interpreter.variables
    assert [found[name] for name in "abcde"] == [21, 3, 0, 1, 22]
    for text, says in (("getfield(/net/cell[9], length)", "cell"), ("getfield(/net/cell[0], lenght)", "length")):
        with pytest.raises(ScriptError, match=says):
            interpreter.run_text(f"x = {text}")
