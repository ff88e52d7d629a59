"""What a process draws its atoms from: any distribution of `scipy.stats`, or a function of a generator and a number."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def draw_from_base(base: Any, rng: np.random.Generator, n: int) -> NDArray[Any]:
    """Draw n atoms: (n,) or (n, n_features)."""
    if hasattr(base, "rvs"):
        atoms = np.asarray(base.rvs(size=n, random_state=rng)) if n else np.empty(0)
    elif callable(base):
        atoms = np.asarray(base(rng, n))
    else:
        raise ValueError(f"base must have rvs(size, random_state) or be callable as base(rng, n), got {base!r}")
    if n == 1 and (atoms.ndim == 0 or len(atoms) != 1):  # scipy drops the axis of a single draw
        atoms = atoms[None]
    if atoms.ndim == 0 or len(atoms) != n:
        raise ValueError(f"base must give {n} atoms on the first axis, got shape {atoms.shape}")
    return atoms


def base_log_density(base: Any, atoms: NDArray[Any]) -> Array:
    """Log density or log probability of atoms under the base."""
    for name in ("logpdf", "logpmf"):
        if hasattr(base, name):
            try:
                return np.asarray(getattr(base, name)(atoms), dtype=np.float64)
            except AttributeError:  # a frozen discrete distribution of scipy has a logpdf that cannot be called
                continue
    raise ValueError(f"base must have logpdf or logpmf for a log density, got {base!r}")


def base_cdf(base: Any, values: Array) -> Array:
    """Distribution function of the base."""
    if not hasattr(base, "cdf"):
        raise ValueError(f"base must have cdf, got {base!r}")
    return np.asarray(base.cdf(values), dtype=np.float64)
