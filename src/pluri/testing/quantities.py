"""Numbers to look at: what a position, or a pair of parameters and data, is when written as named scalars."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
#: Parameters and data to numbers (or arrays of numbers) by name.
Statistics = Callable[[Any, Any], Mapping[str, Any]]
#: Arrays with more entries than this are summarised.
MOST_ENTRIES = 12


def named_scalars(name: str, value: Any) -> Iterator[tuple[str, float]]:
    """Every number in an array, mapping, tuple or dataclass; long arrays give a few summaries instead."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from named_scalars(str(key), item)
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield from named_scalars(field.name, getattr(value, field.name))
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        for key in value._fields:
            yield from named_scalars(key, getattr(value, key))
    elif isinstance(value, tuple) and any(not np.isscalar(item) for item in value):
        for index, item in enumerate(value):
            yield from named_scalars(f"{name}{index}", item)
    else:
        yield from _of_array(name, value)


def _of_array(name: str, value: Any) -> Iterator[tuple[str, float]]:
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} is not made of numbers ({type(value).__name__}): give `statistics`") from error
    if array.ndim == 0:
        yield name, float(array)
    elif 0 < array.size <= MOST_ENTRIES:
        for index in np.ndindex(array.shape):
            yield f"{name}[{','.join(map(str, index))}]", float(array[index])
    elif array.size:
        yield f"mean({name})", float(array.mean())
        yield f"mean({name}^2)", float((array**2).mean())
        yield f"max({name})", float(array.max())
        yield f"first({name})", float(array.flat[0])
        yield f"last({name})", float(array.flat[-1])


def summarising(
    statistics: Statistics | None = None,
    log_likelihood: Callable[[Any, Any], float] | None = None,
    *,
    with_data: bool = True,
) -> Callable[[Any, Any], dict[str, float]]:
    """Function from (theta, y) to named scalars: the user's statistics, or all numbers in theta and y."""

    def summarise(theta: Any, y: Any) -> dict[str, float]:
        if statistics is not None:
            result = statistics(theta, y)
            found = dict(named_scalars("statistic", result))
        else:
            found = dict(named_scalars("theta", theta))
            if with_data and y is not None:
                found |= {key if key not in found else f"y.{key}": value for key, value in named_scalars("y", y)}
        if log_likelihood is not None:
            found["log_likelihood"] = float(log_likelihood(theta, y))
        return found

    return summarise


def stack(rows: Sequence[Mapping[str, float]]) -> dict[str, Array]:
    """Rows of named scalars as one array for each name; they must have the same names and no NaN."""
    names = list(rows[0])
    for row in rows:
        if list(row) != names:
            odd = sorted(set(row) ^ set(names)) or names
            raise ValueError(
                f"every draw must give the same statistics, but {odd[0]!r} is not in all of them: parameters that "
                "change their shape need `statistics`"
            )
    columns = {name: np.array([row[name] for row in rows]) for name in names}
    if not columns:
        raise ValueError("there is nothing to compare: the statistics are empty")
    for name, column in columns.items():
        if np.isnan(column).any():
            raise ValueError(f"statistic {name!r} must not be NaN, got {int(np.isnan(column).sum())} of {len(rows)}")
    return columns
