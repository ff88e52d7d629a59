"""What is known of an expensive function: evaluations, failures, and points under way; as plain data too."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.decisions.bayesian_optimization.dimensions import Categorical, Integer, Real
from pluri.decisions.bayesian_optimization.space import Space
from pluri.validation.interrupt_pauses import whole_pieces

Array = NDArray[np.float64]

#: A number may be told this far from where it was asked for, as a share of its range: people round.
ROUNDED = 0.01


@dataclass(frozen=True)
class Evaluation:
    """One evaluation.

    Attributes
    ----------
    params : dict
    value : float
        NaN if it failed.
    constraints : tuple of float
        Each is kept if it is at most 0; NaN if unknown.
    kind : {"initial", "model", "told"}
        Whether the point came from the initial design, from the model, or from the user.
    seconds : float
        How long it took; NaN if that is not known.
    """

    params: dict[str, Any]
    value: float
    constraints: tuple[float, ...] = ()
    kind: str = "told"
    seconds: float = math.nan

    @property
    def failed(self) -> bool:
        """Whether there is no value."""
        return math.isnan(self.value)

    @property
    def feasible(self) -> bool:
        """Whether it has a value and keeps all constraints."""
        return not self.failed and all(one <= 0.0 for one in self.constraints)


@dataclass
class History:
    """Evaluations in the order they came, their rows of codes, and points under way with their kinds.

    `sign` is -1 if the largest value is the best.
    """

    space: Space
    sign: float = 1.0
    evaluations: list[Evaluation] = field(default_factory=list)
    rows: list[Array] = field(default_factory=list)
    pending: list[tuple[Array, str]] = field(default_factory=list)

    def add(
        self, params: Mapping[str, Any], row: Array, value: float, constraints: tuple[float, ...], seconds: float
    ) -> None:
        """Note an evaluation; if the point was under way, it no longer is."""
        place = self.place_under_way(row)
        as_given = {
            name: int(params[name]) if isinstance(one, Integer) else _plain(params[name])
            for name, one in zip(self.space.names, self.space.dimensions)
        }
        with whole_pieces():
            kind = "told" if place is None else self.pending.pop(place)[1]
            self.rows.append(row)
            self.evaluations.append(Evaluation(as_given, value, constraints, kind, seconds))

    def place_under_way(self, row: Array) -> int | None:
        """Which of the points under way a row is, or is after rounding; None if it is none of them."""
        if not self.pending:
            return None
        gaps = np.abs(np.array([other for other, _ in self.pending]) - row)
        # Integers and choices are the same or not; the nearest point is the one that is meant.
        near = (gaps <= np.where(self.space.continuous, ROUNDED, 1e-9)).all(axis=1)
        return int(np.where(near, gaps.max(axis=1), np.inf).argmin()) if near.any() else None

    def taken(self) -> Array:
        """Rows of what is known or under way (n, n_dimensions)."""
        return np.array(self.rows + [row for row, _ in self.pending]).reshape(-1, self.space.n_dimensions)

    def objective(self) -> tuple[Array, Array]:
        """Rows and values to be minimised; failures have the worst value seen. Empty if nothing has succeeded."""
        values = self.sign * np.array([one.value for one in self.evaluations])
        known = ~np.isnan(values)
        if not known.any():
            return np.empty((0, self.space.n_dimensions)), np.empty(0)
        return np.array(self.rows), np.where(known, values, values[known].max(initial=-np.inf))

    def constraint(self, number: int) -> tuple[Array, Array]:
        """Rows and values of a constraint where it is known."""
        values = np.array([one.constraints[number] for one in self.evaluations])
        known = ~np.isnan(values)
        return np.array(self.rows)[known], values[known]

    def best(self) -> int | None:
        """Number of the best evaluation that keeps the constraints; None if there is none."""
        values = [self.sign * one.value if one.feasible else math.inf for one in self.evaluations]
        if not values or not math.isfinite(min(values)):
            return None
        return int(np.argmin(values))


def space_data(space: Space) -> dict[str, Any]:
    """A space as dicts, lists, strings and numbers."""
    data: dict[str, Any] = {}
    for name, one in zip(space.names, space.dimensions):
        if isinstance(one, Real | Integer):
            whole = isinstance(one, Integer)
            low, high = (int(v) if whole else float(v) for v in (one.low, one.high))
            data[name] = {"kind": "integer" if whole else "real", "low": low, "high": high, "log": bool(one.log)}
        elif isinstance(one, Categorical) and all(isinstance(c, str | int | float | type(None)) for c in one.choices):
            data[name] = {"kind": "categorical", "choices": list(one.choices)}
        else:
            raise ValueError(
                f"space[{name!r}] must be Real, Integer, or Categorical with strings, numbers, True, False or None to "
                f"be written as plain data, got {one!r}"
            )
    return data


def space_from_data(data: Any) -> Space:
    """The space that `space_data` wrote."""
    if not isinstance(data, dict):
        raise ValueError(f"space must be a dict in the data, got {data!r}")
    dimensions: dict[str, Any] = {}
    for name, one in data.items():
        kind = one.get("kind") if isinstance(one, dict) else None
        if kind == "categorical" and isinstance(one.get("choices"), list):
            dimensions[name] = Categorical(one["choices"])
        elif kind in ("real", "integer") and {"low", "high", "log"} <= set(one):
            maker: Any = Real if kind == "real" else Integer
            dimensions[name] = maker(one["low"], one["high"], one["log"])
        else:
            raise ValueError(f"space[{name!r}] in the data must have a kind, and bounds or choices, got {one!r}")
    return Space.of(dimensions)


def evaluation_data(one: Evaluation) -> dict[str, Any]:
    """An evaluation as plain data; None stands for NaN."""
    return {
        "params": dict(one.params),
        "value": _number(one.value),
        "constraints": [_number(value) for value in one.constraints],
        "kind": one.kind,
        "seconds": _number(one.seconds),
    }


def from_number(value: Any) -> float:
    """A number from plain data."""
    return math.nan if value is None else float(value)


def _number(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def checked_value(value: Any) -> float:
    """A value as a number; NaN for what is not finite, an error for what is no number."""
    if value is not None and not isinstance(value, str | bytes | bool) and np.size(value) == 1:
        try:
            number = float(np.asarray(value).reshape(()))
        except (TypeError, ValueError):
            pass
        else:
            return number if math.isfinite(number) else math.nan
    raise ValueError(f"the value of an evaluation must be a number, NaN if it failed, got {value!r}")


def checked_constraints(values: Any, count: int, failed: bool) -> tuple[float, ...]:
    """Values of constraints; NaN for those of an evaluation that failed without them."""
    if values is None and (failed or not count):
        return (math.nan,) * count
    try:
        numbers = tuple(checked_value(one) for one in (np.atleast_1d(values) if values is not None else ()))
    except ValueError as error:
        raise ValueError(f"constraints must be numbers, got {values!r}") from error
    if len(numbers) != count:
        raise ValueError(f"constraints must be {count} numbers (n_constraints), got {values!r}")
    return numbers


def told_evaluations(
    params: Any, value: Any, constraints: Any, space: Space, n_constraints: int
) -> list[tuple[Mapping[str, Any], Array, float, tuple[float, ...]]]:
    """Point, row, value and constraints of each evaluation that is told, one or several; all are checked first."""
    if isinstance(params, Mapping):
        params, value, constraints = [params], [value], [constraints]
    points = list(params)
    try:
        values = list(value)
        limits = [None] * len(points) if constraints is None else list(constraints)
    except TypeError:
        raise ValueError(f"value must hold a number for each of {len(points)} points, got {value!r}") from None
    if len(values) != len(points):
        raise ValueError(f"value must hold a number for each of {len(points)} points, got {len(values)}")
    if len(limits) != len(points):
        raise ValueError(f"constraints must hold values for each of {len(points)} points, got {len(limits)}")
    rows = [space.row(point) for point in points]
    numbers = [checked_value(one) for one in values]
    checked = [checked_constraints(some, n_constraints, math.isnan(one)) for some, one in zip(limits, numbers)]
    return list(zip(points, rows, numbers, checked))
