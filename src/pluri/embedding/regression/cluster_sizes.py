"""How many rows a cluster of a regression on coordinates should have: that with which held-out coordinates are best.

Large clusters are planes where the surface bends, small ones learn the noise of their rows. Coordinates of all training
rows are known, so that some rows can be held out of the regression: short chains learn from the others, and the error
of the coordinates that they predict is what a user would see.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pluri.embedding.regression.gibbs import SpectralRegressionGibbs
from pluri.embedding.regression.prediction import embedded, mixture_of
from pluri.embedding.regression.records import Position
from pluri.embedding.regression.starts import number_begun, room, starting_position
from pluri.factors.low_rank_gaussian import Patterns
from pluri.inference import mcmc

Array = NDArray[np.float64]

#: Average sizes of clusters that are compared, the largest first.
SIZES = (100.0, 50.0, 25.0, 12.0, 6.0)
#: Parts of the rows, each of which is held out once.
N_FOLDS = 4
#: Sweeps of the short chains, draws after them, and draws that predictions average over.
N_WARMUP, N_DRAWS, N_KEPT = 12, 6, 2
#: Smaller clusters are not tried once the errors of two sizes are larger than the least so far by this factor.
WORSE = 1.1
#: Fewer rows are not divided.
LEAST_ROWS = 2 * N_FOLDS


def held_out_size(kernel: SpectralRegressionGibbs, rng: np.random.Generator) -> float:
    """The size of clusters with the least error of held-out coordinates, beginning with large ones."""
    n = len(kernel.rows)
    candidates: dict[int, float] = {}
    for size in SIZES:
        candidates.setdefault(number_begun(kernel.n_components, n, size), size)
    sizes = list(candidates.values())
    if len(sizes) == 1 or n < LEAST_ROWS:
        return sizes[0]
    folds = rng.permutation(n) % N_FOLDS
    errors: list[float] = []
    for size in sizes:
        errors.append(sum(held_out_error(kernel, folds == fold, size, rng) for fold in range(N_FOLDS)))
        if min(errors[-2:]) > WORSE * min(errors):
            break
    return sizes[int(np.argmin(errors))]


def held_out_error(
    kernel: SpectralRegressionGibbs, held_out: NDArray[np.bool_], size: float, rng: np.random.Generator
) -> float:
    """Sum of the squared errors of held-out coordinates, predicted by a short chain that learns from the other rows."""
    x, rows = kernel.coordinates[~held_out], kernel.rows[~held_out]
    smaller = replace(
        kernel, coordinates=x, rows=rows, n_components=room(kernel.n_components, len(x), size),
        keep_every=N_DRAWS // N_KEPT,
    )  # fmt: skip

    def start(stream: np.random.Generator) -> Position:
        return starting_position(stream, smaller.model, x, rows, size, scattered=False)

    trace = mcmc.sample(
        smaller, start, record=lambda position: {"mean_precision": position["mean_precision"]}, n_draws=N_DRAWS,
        n_warmup=N_WARMUP, n_chains=1, random_state=rng, warn=False,
    )  # fmt: skip
    if trace.interrupted:
        raise KeyboardInterrupt
    found = embedded(mixture_of(trace.ends[0].state.kept), Patterns.of(kernel.rows[held_out]))
    return float(((found - kernel.coordinates[held_out]) ** 2).sum())
