"""Standard deviations of restored pixels that hold: how large the errors are is seen, not believed.

A restored pixel is an average of what patches say of it, and the variances that they state come from a model that is
only nearly right (`pluri.factors.dictionaries.images.restoration`). They tell which pixels are less sure than others;
by how much all of them are wrong, the picture itself tells.

*Missing pixels.* Some pixels that are there are hidden, and patches that have one of them are restored once more. The
standard deviations of missing pixels are multiplied by one number, such that intervals of 90 % cover 90 % of the hidden
pixels (split conformal prediction). That is right where missing pixels are like those that are hidden: scattered. In
the middle of a hole, far from any pixel that is there, errors are larger than of hidden pixels, which have neighbours.

*Noisy pixels.* How much the patches of a pixel differ, b^2, grows with their errors, whatever the model thinks of them;
what is left to know is how much of their errors they have in common, which does not cancel. Some of the restored
picture gets new noise and is restored again (a parametric bootstrap): now the errors are known, and the number c by
which stated standard deviations s have to be multiplied to cover 90 % of them. ``c^2 sum s^2 / sum b^2`` there, times
b^2 of the picture, is how large its variances have to be on average; the root of the mean squared error would not do,
as a few large errors at edges would widen the intervals of all pixels. Stein's unbiased estimate of them would
need the noise level better than it can be inferred: it is a small difference of large numbers.

References
----------
Lei, G'Sell, Rinaldo, Tibshirani and Wasserman (2018), Distribution-free predictive inference for regression, Journal of
the American Statistical Association.
Efron and Tibshirani (1993), An introduction to the bootstrap.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from pluri.factors.dictionaries.images.learning import PatchModel
from pluri.factors.dictionaries.images.patches import PatchGrid
from pluri.factors.dictionaries.images.restoration import (
    BLOCK,
    Restored,
    filled_pixels,
    opinions,
    restore,
)

Array = NDArray[np.float64]
#: Pixels that are hidden, the share of those that are there that is hidden at most, and the fewest that say anything.
N_HIDDEN, MOST_HIDDEN, FEWEST = 500, 0.1, 20
#: The share of the hidden pixels that intervals are to cover, and how many standard deviations that is.
COVERED, WIDTH = 0.9, 1.6448536269514722
#: The smallest and largest number that standard deviations are multiplied by; the first alone for missing pixels.
LEAST, MOST = 0.5, 2.0
#: Windows of a picture that are restored again, and how many pixels high and wide they are.
N_WINDOWS, WINDOW = 4, 80


def hidden_pixels(rng: np.random.Generator, missing: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which pixels to hide, (height, width, c): drawn from those of which everything is there.

    Of a hidden pixel those channels are hidden that some missing pixel lacks.
    """
    lacking = missing.reshape(-1, missing.shape[2])
    there, patterns = np.flatnonzero(~lacking.any(axis=1)), lacking[lacking.any(axis=1)]
    hidden = np.zeros(lacking.shape, dtype=bool)
    n = min(N_HIDDEN, int(MOST_HIDDEN * len(there)))
    if n and len(patterns):
        hidden[rng.permutation(there)[:n]] = patterns[rng.integers(len(patterns), size=n)]
    return hidden.reshape(missing.shape)


def predict_hidden(
    rng: np.random.Generator, pixels: Array, hidden: NDArray[np.bool_], grid: PatchGrid, model: PatchModel,
    n_sweeps: int,
) -> tuple[Array, Array]:  # fmt: skip
    """Values and variances of hidden pixels, from the others; only patches that have one of them are restored."""
    filled, missing = filled_pixels(np.where(hidden, np.nan, pixels))
    place = np.arange(pixels.size).reshape(pixels.shape)
    chosen = np.flatnonzero(grid.extract(hidden).any(axis=1))
    sums = np.zeros((3, pixels.size))
    for first in range(0, len(chosen), BLOCK):
        which = chosen[first : first + BLOCK]
        estimate, variance, weights = opinions(rng, filled, missing, grid, which, model, n_sweeps)
        places = grid.extract(place, which).ravel()
        for total, each in zip(sums, (weights, weights * estimate, weights * variance)):
            total += np.bincount(places, each.ravel(), pixels.size)
    weight, value, variance = sums[:, hidden.ravel()]
    return value / weight, variance / weight


def factor_that_covers(errors: Array, variances: Array, noise: float = 0.0) -> float:
    """What to multiply standard deviations by for intervals of 90 % to cover so many of the errors.

    `noise` is a variance: if it is not zero, errors have that noise on top of what the variances are of. Of n errors
    the k-th smallest is reached, k = 0.9 (n + 1): one error more is covered with at least that probability. With too
    few errors to tell, 1; less than `LEAST` is not believed, but put down to a noise that is taken for too large.
    """
    n = len(errors)
    if n < FEWEST:
        return 1.0
    rank = min(math.ceil(COVERED * (n + 1)), n)
    needed = ((errors / WIDTH) ** 2 - noise) / np.maximum(variances, 1e-300)
    return math.sqrt(max(float(np.partition(needed, rank - 1)[rank - 1]), LEAST**2))


def calibrated_missing(
    rng: np.random.Generator, pixels: Array, restored: Restored, grid: PatchGrid, model: PatchModel, n_sweeps: int,
    noise: float,
) -> Restored:  # fmt: skip
    """A restored picture whose standard deviations of missing pixels hold; `noise`: variance that they do not have."""
    missing = np.isnan(pixels)
    hidden = hidden_pixels(rng, missing)
    if hidden.sum() < FEWEST:
        return restored
    values, variances = predict_hidden(rng, pixels, hidden, grid, model, n_sweeps)
    factor = factor_that_covers(values - pixels[hidden], variances, noise)
    return restored._replace(std=np.where(missing, factor * restored.std, restored.std))


def calibrated_noisy(
    rng: np.random.Generator, pixels: Array, restored: Restored, grid: PatchGrid, model: PatchModel, n_sweeps: int,
    noise: float,
) -> Restored:  # fmt: skip
    """A restored picture whose standard deviations of pixels that are there hold; `noise`: variance of the noise."""
    missing = np.isnan(pixels)
    simulated = restored.values + math.sqrt(noise) * rng.standard_normal(pixels.shape)
    simulated[missing] = np.nan
    errors, believed, differences = [], [], 0.0
    for window in windows(rng, pixels.shape, grid.size):
        there = ~missing[window]
        if there.any():
            part = simulated[window]
            again = restore(rng, part, PatchGrid.of(part.shape, grid.size), model, n_sweeps)
            errors.append((again.values - restored.values[window])[there])
            believed.append(again.std[there] ** 2)
            differences += float((again.disagreement[there] ** 2).sum())
    stated = float((restored.std[~missing] ** 2).mean())
    if not min(differences, stated) > 0:
        return restored
    variances = np.concatenate(believed)
    covering = factor_that_covers(np.concatenate(errors), variances) ** 2 * float(variances.sum())
    found = covering / differences * float((restored.disagreement[~missing] ** 2).mean())
    factor = min(max(math.sqrt(found / stated), LEAST), MOST)
    return restored._replace(std=np.where(missing, restored.std, factor * restored.std))


def windows(rng: np.random.Generator, shape: tuple[int, ...], size: int) -> list[tuple[slice, slice]]:
    """Some windows of a picture, of several patches each; all of it if it has not many more pixels than they."""
    side = max(WINDOW, 4 * size)
    if shape[0] * shape[1] <= 1.5 * N_WINDOWS * side**2:
        return [(slice(None), slice(None))]
    found = []
    for _ in range(N_WINDOWS):
        starts = [int(rng.integers(max(extent - side, 0) + 1)) for extent in shape[:2]]
        found.append((slice(starts[0], starts[0] + side), slice(starts[1], starts[1] + side)))
    return found
