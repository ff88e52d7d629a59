"""Which of some known classes measured rows are likely to be of, before anything is known of their codes.

The codes of a class (`pluri.factors.dictionaries.usage.code_classes`) have a covariance, and so have the measurements
of its rows: with normal distributions of these covariances each row is given a class. The sampler goes on from there.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pluri.factors.dictionaries.records import Array
from pluri.factors.dictionaries.sensing.measurements import Measurements
from pluri.factors.dictionaries.usage.code_classes import CodeClasses
from pluri.processes.stick_draws import choose_rows

#: Rows whose covariances are made at a time, and the least noise, as a share of the power of the rows.
BLOCK, LEAST_NOISE = 256, 1e-6


def likely_classes(
    rng: np.random.Generator, data: Measurements, atoms: Array, classes: CodeClasses
) -> tuple[NDArray[np.intp], float, float]:
    """Classes drawn for the rows, and precisions of noise and weights to begin with.

    The units of the classes are not those of the rows: the power of the rows tells how many times larger they are.
    """
    covariances = classes.covariances(atoms)
    expected = float(classes.shares @ np.trace(covariances, axis1=1, axis2=2)) / atoms.shape[1]
    power = max(float((data.values**2).mean()), 1e-10)
    factor = power / max(expected, 1e-300)
    noise = max(factor * classes.noise_variance, LEAST_NOISE * power)
    scores = np.log(classes.shares) + log_densities(data, factor * covariances, noise)
    return choose_rows(rng, scores).astype(np.intp), 1 / noise, 1 / factor


def log_densities(data: Measurements, covariances: Array, noise: float) -> Array:
    """Log density of the measurements of each row under each covariance, up to a constant: (n_samples, n_classes)."""
    n, size = data.values.shape
    found = np.empty((n, len(covariances)))
    for first in range(0, n, BLOCK):
        rows = slice(first, min(first + BLOCK, n))
        S = data.projections[None] if data.shared else data.projections[rows]
        values = data.values[rows][:, :, None]
        for l, covariance in enumerate(covariances):
            whole = S @ covariance @ S.transpose(0, 2, 1) + noise * np.eye(size)
            root = np.linalg.cholesky(whole)
            squares = np.linalg.solve(np.broadcast_to(root, (len(values), size, size)), values) ** 2
            log_det = np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1)
            found[rows, l] = -0.5 * squares.sum(axis=(1, 2)) - log_det
    return found
