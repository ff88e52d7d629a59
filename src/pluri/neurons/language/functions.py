"""The functions of expressions: a closed table, from which alone a script can call."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from pluri.neurons.language.lexer import as_number

if TYPE_CHECKING:
    from numpy.random import Generator

    from pluri.neurons.simulation import Simulation

MANY = 100


class Surroundings(NamedTuple):
    """What functions may look at: the simulation, and random numbers."""

    simulation: Simulation
    rng: Generator


class FunctionForm(NamedTuple):
    """How a function is called, and what it does."""

    usage: str
    least: int
    most: int
    apply: Callable[..., float | str]
    takes_words: bool = False  # paths and fields, as they stand in commands
    looks_around: bool = False  # its first argument is the `Surroundings`


def get_field(around: Surroundings, path: str, field: str) -> float | str:
    """The value of a field, if it is a number or a text."""
    return plain_value(around.simulation.get(path, field), f"field {field} of {path}")


def plain_value(value: Any, what: str) -> float | str:
    """A number or a text; a text that reads as a number is that number, anything else is refused."""
    if isinstance(value, str):
        number = as_number(value)
        return value if number is None else number
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{what} must be a number or a text to be used here, got {type(value).__name__}") from None


def _rand(around: Surroundings, low: float = 0.0, high: float = 1.0) -> float:
    return low + (high - low) * float(around.rng.random())


def _round(value: float) -> float:
    return float(math.floor(value + 0.5))


#: Numbers are of double precision everywhere; what is true is 1 and what is not is 0.
FUNCTIONS = {
    "abs": FunctionForm("abs(x)", 1, 1, abs),
    "sqrt": FunctionForm("sqrt(x)", 1, 1, math.sqrt),
    "exp": FunctionForm("exp(x)", 1, 1, math.exp),
    "log": FunctionForm("log(x)", 1, 1, math.log),
    "sin": FunctionForm("sin(x)", 1, 1, math.sin),
    "cos": FunctionForm("cos(x)", 1, 1, math.cos),
    "tanh": FunctionForm("tanh(x)", 1, 1, math.tanh),
    "floor": FunctionForm("floor(x)", 1, 1, lambda value: float(math.floor(value))),
    "round": FunctionForm("round(x)", 1, 1, _round),
    "min": FunctionForm("min(x, y, ...)", 1, MANY, min),
    "max": FunctionForm("max(x, y, ...)", 1, MANY, max),
    "pi": FunctionForm("pi()", 0, 0, lambda: math.pi),
    "rand": FunctionForm("rand() or rand(low, high)", 0, 2, _rand, looks_around=True),
    "time": FunctionForm("time()", 0, 0, lambda around: float(around.simulation.time), looks_around=True),
    "getfield": FunctionForm("getfield(path, field)", 2, 2, get_field, takes_words=True, looks_around=True),
    "exists": FunctionForm(
        "exists(path)", 1, 1, lambda around, path: float(_count(around, path) > 0), takes_words=True, looks_around=True
    ),
    "count": FunctionForm(
        "count(pattern)", 1, 1, lambda around, path: float(_count(around, path)), takes_words=True, looks_around=True
    ),
}
#: Names that have a value without having been given one.
CONSTANTS = {"pi": math.pi, "true": 1.0, "false": 0.0}


def _count(around: Surroundings, pattern: str) -> int:
    try:
        return len(around.simulation.find(pattern))
    except ValueError:  # nothing is there
        return 0
