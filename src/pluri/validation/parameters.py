"""What a parameter may be, said once: as a record that checks a value and words the refusal.

Every refusal is one sentence: the name of the parameter, what is allowed, what came. A name has one meaning in the
whole library, so what the shared names may be stands here too (`SHARED`); an estimator adds its own in a table,
``_parameters``, and calls :func:`check_parameters` at the beginning of ``fit``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np


class Allowed(Protocol):
    """What a parameter may be; its text completes the sentence "x must be ..."."""

    def holds(self, value: Any) -> bool:
        """Whether the value is allowed."""


class _Joinable:
    """Alternatives by the operator ``|``, as in ``Whole(1) | Only(None)``."""

    def __or__(self, other: Allowed) -> Either:
        return Either(self, other)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Either(_Joinable):
    """One of two kinds of values."""

    first: Allowed
    second: Allowed

    def holds(self, value: Any) -> bool:
        """Whether one of the two allows the value."""
        return self.first.holds(value) or self.second.holds(value)

    def __str__(self) -> str:
        return f"{self.first} or {self.second}"


@dataclass(frozen=True)
class Whole(_Joinable):
    """A whole number; True and False are none.

    Examples
    --------
    >>> from pluri.validation import Whole
    >>> str(Whole(1)), Whole(1).holds(3), Whole(1).holds(True), Whole(1).holds(2.0)
    ('an integer of at least 1', True, False, False)
    """

    least: int | None = None
    most: int | None = None

    def holds(self, value: Any) -> bool:
        """Whether the value is a whole number within the bounds."""
        if not isinstance(value, int | np.integer) or isinstance(value, bool):
            return False
        return bool((self.least is None or value >= self.least) and (self.most is None or value <= self.most))

    def __str__(self) -> str:
        if self.least is None and self.most is None:
            return "an integer"
        if self.most is None:
            return f"an integer of at least {self.least}"
        return f"an integer of at most {self.most}" if self.least is None else f"from {self.least} to {self.most}"


@dataclass(frozen=True)
class Number(_Joinable):
    """A finite number, between bounds that belong to it (`least`, `most`) or not (`above`, `below`).

    It may be infinite if `finite` is False.

    Examples
    --------
    >>> from pluri.validation import Number
    >>> str(Number(above=0)), str(Number(least=0)), str(Number(above=0, below=1))
    ('a positive number', 'a number of at least 0', 'a number above 0 and below 1')
    >>> anything = Number(finite=False)
    >>> str(anything), anything.holds(float("-inf")), anything.holds(float("nan"))
    ('a number', True, False)
    """

    least: float = -math.inf
    most: float = math.inf
    above: float = -math.inf
    below: float = math.inf
    finite: bool = True

    def holds(self, value: Any) -> bool:
        """Whether the value is a number within the bounds."""
        if isinstance(value, str | bytes | bool | np.bool_) or value is None or np.ndim(value) != 0:
            return False
        try:
            number = float(value)
        except (TypeError, ValueError):
            return False
        if math.isinf(number) and not self.finite:
            return self.least <= number <= self.most and self.above <= number <= self.below
        return math.isfinite(number) and self.least <= number <= self.most and self.above < number < self.below

    def __str__(self) -> str:
        if self == Number(above=0):
            return "a positive number"
        bounds = [("of at least", self.least), ("above", self.above), ("at most", self.most), ("below", self.below)]
        said = " and ".join(f"{word} {bound:g}" for word, bound in bounds if math.isfinite(bound))
        return f"a number {said}" if said else "a finite number" if self.finite else "a number"


@dataclass(frozen=True)
class Only(_Joinable):
    """One of some values; a string is not taken for a number it looks like, nor True for 1.

    Examples
    --------
    >>> from pluri.validation import Only
    >>> str(Only("em", "gibbs", None)), Only(1).holds(True)
    ("one of 'em', 'gibbs', None", False)
    """

    values: tuple[Any, ...]

    def __init__(self, *values: Any) -> None:
        object.__setattr__(self, "values", values)

    def holds(self, value: Any) -> bool:
        """Whether the value is one of them."""
        # A list, not a generator that `any` leaves unfinished: Ctrl-C in its closing would be ignored.
        return any([type(value) is type(one) and value == one for one in self.values])  # noqa: C419

    def __str__(self) -> str:
        return repr(self.values[0]) if len(self.values) == 1 else f"one of {', '.join(map(repr, self.values))}"


@dataclass(frozen=True)
class Flag(_Joinable):
    """True or False."""

    def holds(self, value: Any) -> bool:
        """Whether the value is a truth value."""
        return isinstance(value, bool | np.bool_)

    def __str__(self) -> str:
        return "True or False"


@dataclass(frozen=True)
class Made(_Joinable):
    """An object of a class, or of one of several, in words of ours."""

    kind: type | tuple[type, ...]
    words: str

    def holds(self, value: Any) -> bool:
        """Whether the value is such an object."""
        return isinstance(value, self.kind)

    def __str__(self) -> str:
        return self.words


#: What the names that all families share may be.
SHARED: Mapping[str, Allowed] = {
    "n_draws": Whole(1),
    "n_warmup": Whole(0),
    "n_chains": Whole(1),
    "thin": Whole(1),
    "n_predictive": Whole(1),
    "n_init": Whole(1),
    "max_iter": Whole(1),
    "tol": Number(least=0),
}


def check_value(value: Any, name: str, allowed: Allowed) -> None:
    """Refuse a value in one sentence.

    Examples
    --------
    >>> from pluri.validation import Only, Whole, check_value
    >>> check_value(0, "n_draws", Whole(1) | Only("auto"))
    Traceback (most recent call last):
    ValueError: n_draws must be an integer of at least 1 or 'auto', got 0
    """
    if not allowed.holds(value):
        raise ValueError(f"{name} must be {allowed}, got {value!r}")


def check_parameters(owner: Any, *names: str, **own: Allowed) -> None:
    """Check parameters of an estimator: those of its table ``_parameters``, `own`, and the shared names.

    Parameters
    ----------
    owner : object
        With the parameters as attributes.
    *names : str
        The shared names to check; all that the owner has by default.
    **own : what further parameters may be
        It goes before the table of the owner and the shared one.

    Examples
    --------
    >>> from pluri.validation import Number, check_parameters
    >>> class Model:
    ...     _parameters = {"alpha": Number(above=0)}
    ...     def __init__(self, alpha, n_init=1):
    ...         self.alpha, self.n_init = alpha, n_init
    >>> check_parameters(Model(1.0))
    >>> check_parameters(Model(-1.0))
    Traceback (most recent call last):
    ValueError: alpha must be a positive number, got -1.0
    >>> check_parameters(Model(1.0, n_init=0))
    Traceback (most recent call last):
    ValueError: n_init must be an integer of at least 1, got 0
    """
    shared = {name: SHARED[name] for name in names or SHARED if hasattr(owner, name)}
    for name, allowed in {**shared, **getattr(owner, "_parameters", {}), **own}.items():
        check_value(getattr(owner, name), name, allowed)


def check_count(value: Any, name: str, least: int = 1) -> int:
    """Check a whole number of at least `least`."""
    check_value(value, name, Whole(least))
    return int(value)


def check_positive(value: Any, name: str) -> float:
    """Check a positive finite number."""
    check_value(value, name, Number(above=0))
    return float(value)
