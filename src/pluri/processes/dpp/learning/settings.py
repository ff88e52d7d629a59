"""Checks of the settings that the estimators of this folder share."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any


def check_whole(name: str, value: Any, optional: bool = False) -> None:
    """Refuse what is no integer of at least 1 (or None, if that is allowed)."""
    if value is None and optional:
        return
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be an integer of at least 1{' or None' if optional else ''}, got {value!r}")


def check_number(name: str, value: Any, least: float = 0.0, above: bool = False) -> None:
    """Refuse what is no finite number of at least `least` (or above it)."""
    number = float(value) if isinstance(value, Real) else math.nan
    if not math.isfinite(number) or number < least or (above and number == least):
        raise ValueError(f"{name} must be a number {'above' if above else 'of at least'} {least:g}, got {value!r}")
