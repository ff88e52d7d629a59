"""What the pixels of a label image look like: the level of each label, and the noise around it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.validation import Number, check_value

Array = NDArray[np.float64]

#: What turns observations (shape) into log p(y | label), (shape, K).
LogLikelihood = Callable[[Array], ArrayLike]


def noise_of(noise_model: Any, levels: Array, sigma: float, flip_prob: float | None) -> LogLikelihood:
    """The noise that the settings of a denoiser name, once they are checked."""
    if callable(noise_model):
        given: LogLikelihood = noise_model
        return given
    if noise_model == "gaussian":
        check_value(sigma, "sigma", Number(above=0))
        return gaussian_noise(levels, float(sigma))
    if noise_model == "flip":
        check_value(flip_prob, "flip_prob", Number(above=0, below=1))
        return flip_noise(levels, float(flip_prob))  # type: ignore[arg-type]
    raise ValueError(f"noise_model must be 'gaussian', 'flip' or a function, got {noise_model!r}")


def checked_levels(levels: ArrayLike | None, n_labels: int) -> Array:
    """What each label looks like: as given, or -1 and 1 for two labels, else 0, 1, 2, ..."""
    if levels is None:
        return np.array([-1.0, 1.0]) if n_labels == 2 else np.arange(float(n_labels))
    values = np.asarray(levels, dtype=np.float64)
    if values.shape != (n_labels,) or not np.isfinite(values).all() or len(np.unique(values)) < len(values):
        raise ValueError(f"levels must be {n_labels} different numbers, got {levels!r}")
    return values


def gaussian_noise(levels: Array, sigma: float) -> LogLikelihood:
    """Each label has a level of its own; y is that level plus normal noise."""

    def log_likelihood(y: Array) -> Array:
        return -0.5 * ((y[..., None] - levels) / sigma) ** 2 - np.log(sigma) - 0.5 * np.log(2.0 * np.pi)

    return log_likelihood


def flip_noise(levels: Array, flip_prob: float) -> LogLikelihood:
    """The label's level, replaced with this probability by one of the others."""

    def log_likelihood(y: Array) -> Array:
        hit = y[..., None] == levels
        if not (hit.any(axis=-1) | np.isnan(y)).all():
            strangers = np.unique(y[~hit.any(axis=-1) & ~np.isnan(y)])
            raise ValueError(f"Y must hold the levels {levels.tolist()} only with noise='flip', got {strangers[0]}")
        kept, replaced = np.log1p(-flip_prob), np.log(flip_prob / (len(levels) - 1))
        return np.asarray(np.where(hit, kept, replaced), dtype=np.float64)

    return log_likelihood


def warn_of_other_levels(Y: ArrayLike) -> None:
    """Say so if an image looks like one from 0 to 1 or 255, while the levels are -1 and 1: all its pixels say 1."""
    values = np.asarray(Y, dtype=np.float64)
    values = values[np.isfinite(values)]
    low, high = (values.min(), values.max()) if values.size else (-1.0, 1.0)
    if 0 <= low < 0.5 < high:
        warnings.warn(
            f"Y lies between {low:.4g} and {high:.4g}, the levels are -1 and 1: give levels=({low:.4g}, {high:.4g})",
            UserWarning,
            stacklevel=3,
        )
