"""Fitted arrays that are checked before anything is asked of them: a file may have been changed by hand.

Compiled loops go where indices lead them, without a look. What a topic model has learned is therefore checked once,
when it is loaded: shapes that belong together, indices within their arrays, numbers that are finite. Each model does so
in its method ``_check_fitted_state``, with the functions of this file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: How far sums of probabilities may be from one.
ROUNDING = 1e-6


def numbers(
    name: str,
    value: Any,
    shape: Sequence[int | None],
    *,
    least: float = -np.inf,
    most: float = np.inf,
    above: float = -np.inf,
) -> NDArray[Any]:
    """An array of finite numbers of a shape (None stands for any length) and within limits.

    Parameters
    ----------
    name : str
        What the sentence calls it.
    value : object
    shape : sequence of int or None
    least, most, above : float
        Numbers must be at least and at most these, and above the last.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.topics.checked_state import numbers
    >>> numbers("weight_", np.array([0.5, np.nan]), (2,), least=0)
    Traceback (most recent call last):
    ...
    ValueError: weight_ must be finite numbers of at least 0, got nan
    """
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "biuf":
        raise ValueError(f"{name} must be an array of numbers, got {_kind(value)}")
    if value.ndim != len(shape) or any(want not in (None, have) for want, have in zip(shape, value.shape)):
        wanted = ", ".join("any" if length is None else str(length) for length in shape)
        raise ValueError(f"{name} must have shape ({wanted}), got {value.shape}")
    # False of NaN.
    good = (value >= least) & (value <= most) & (value > above) & np.isfinite(value)
    if not good.all():
        limits = [f"at least {least:g}"] if least > -np.inf else []
        limits += [f"above {above:g}"] if above > -np.inf else []
        limits += [f"at most {most:g}"] if most < np.inf else []
        allowed = f" of {' and '.join(limits)}" if limits else ""
        raise ValueError(f"{name} must be finite numbers{allowed}, got {value[~good].flat[0]}")
    return value


def indices(name: str, value: Any, shape: Sequence[int | None], size: int, *, least: int = 0) -> NDArray[Any]:
    """Whole numbers from `least` to ``size - 1``: places of an array.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.topics.checked_state import indices
    >>> indices("parent_", np.array([-1, 0, 7]), (3,), 3, least=-1)
    Traceback (most recent call last):
    ...
    ValueError: parent_ must be finite numbers of at least -1 and at most 2, got 7
    """
    if isinstance(value, np.ndarray) and value.dtype.kind not in "iu":
        raise ValueError(f"{name} must be whole numbers, got dtype {value.dtype}")
    return numbers(name, value, shape, least=least, most=size - 1)


def number(name: str, value: Any, *, least: float = -np.inf, above: float = -np.inf) -> float:
    """A finite number within limits."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        raise ValueError(f"{name} must be a number, got {_kind(value)}")
    if not (np.isfinite(value) and value >= least and value > above):
        limit = f"at least {least:g}" if least > above else f"above {above:g}"
        raise ValueError(f"{name} must be finite and {limit}, got {value!r}")
    return float(value)


def whole_number(name: str, value: Any, least: int = 0) -> int:
    """A whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")
    return int(value)


def distributions(name: str, value: Any, shape: Sequence[int | None]) -> NDArray[Any]:
    """Rows of probabilities that sum to one."""
    rows = numbers(name, value, shape, least=0)
    if (np.abs(rows.sum(axis=-1) - 1.0) > ROUNDING).any():
        raise ValueError(f"{name} must have rows that sum to 1, got {rows.sum(axis=-1).flat[0]:g} or others")
    return rows


def one_for_each(name: str, value: Any, kind: type, length: int | None = None) -> Any:
    """A list (or tuple) of things of a kind."""
    if not isinstance(value, list | tuple) or not all(isinstance(item, kind) for item in value):
        raise ValueError(f"{name} must be a list of {kind.__name__}, got {_kind(value)}")
    if length is not None and len(value) != length:
        raise ValueError(f"{name} must have {length} entries, got {len(value)}")
    return value


def _kind(value: Any) -> str:
    return f"dtype {value.dtype}" if isinstance(value, np.ndarray) else type(value).__name__
