"""Checks of the settings that Gaussian-process regression and classification share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

LEAST = {
    "n_restarts": 0,
    "n_draws": 1,
    "n_warmup": 0,
    "n_chains": 1,
    "n_prediction_draws": 1,
    "max_exact_n": 1,
    "max_iter": 1,
}


def check_settings(model: Any, hypers: Sequence[str]) -> None:
    """Refuse numbers and names that make no sense, in one sentence each."""
    for name, least in LEAST.items():
        value = getattr(model, name, least)
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
            raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")
    check_choice("hyper", model.hyper, hypers)
    if model.kernel is not None and not all(hasattr(model.kernel, name) for name in ("theta", "diag", "bounds")):
        raise ValueError(f"kernel must be a kernel of sklearn.gaussian_process.kernels or None, got {model.kernel!r}")


def check_choice(name: str, value: Any, allowed: Sequence[str]) -> None:
    """Refuse a name that is not among those allowed."""
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}")
