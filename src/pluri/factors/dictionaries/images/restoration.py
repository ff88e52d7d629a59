"""A picture from its patches: each is restored by itself, and where they overlap the sure ones count more.

Patch i says of pixel p that it is x_ip, give or take s_ip. The restored pixel is the average with weights 1 / s_i^2,
s_i^2 the mean of s_ip^2 over the patch. For weights w_i that add up to 1, and the true pixel x,

    (sum_i w_i x_ip - x)^2 = sum_i w_i (x_ip - x)^2 - sum_i w_i (x_ip - average)^2

so that the expected squared error is ``sum_i w_i s_ip^2`` less how much the patches differ. The first part alone is
what `restore` gives as variance: it is the error of patches that all err alike, an upper bound. But the s_ip come from
a model that is only nearly right, and are too small. `pluri.factors.dictionaries.images.calibration` finds out how
large the errors are.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from pluri.factors.dictionaries.images._patch_kernels import PatchPrior, PatchSums, add_sweeps
from pluri.factors.dictionaries.images.learning import PatchModel
from pluri.factors.dictionaries.images.patches import PatchGrid
from pluri.progress import Step, open_progress

Array = NDArray[np.float64]
#: Sweeps over a patch before the first that counts.
N_SETTLE = 4
#: Patches restored at a time.
BLOCK = 4096


class Restored(NamedTuple):
    """A picture, (height, width, c): its pixels, their standard deviation, and how much the patches differ on them.

    The last is a standard deviation over patches.
    """

    values: Array
    std: Array
    disagreement: Array


def fill_smoothly(pixels: Array) -> Array:
    """Missing pixels as averages of their neighbours, from as near as there are any."""
    there = ~np.isnan(pixels)
    filled, left = np.where(there, pixels, 0.0), ~there
    sigma = 0.7
    while left.any():
        axes = (sigma, sigma, 0)
        weight = gaussian_filter(there.astype(np.float64), axes, mode="constant")
        total = gaussian_filter(np.where(there, pixels, 0.0), axes, mode="constant")
        reached = left & (weight > 0.05)
        filled[reached] = total[reached] / weight[reached]
        left &= ~reached
        if sigma > max(pixels.shape):
            filled[left] = np.nanmean(pixels)
            break
        sigma *= 1.5
    return filled


def patch_means(patches: NDArray[Any], n_channels: int) -> NDArray[Any]:
    """Mean of each patch and channel, as often as it has pixels: an array of the shape of the patches."""
    shaped = patches.reshape(len(patches), -1, n_channels)
    return np.broadcast_to(shaped.mean(axis=1, keepdims=True), shaped.shape).reshape(patches.shape)


def code_patches(
    rng: np.random.Generator,
    patches: NDArray[Any],
    observed: NDArray[np.bool_] | None,
    model: PatchModel,
    n_sweeps: int,
) -> tuple[Array, Array]:
    """Mean and variance of patches without noise, given the dictionary.

    Parameters
    ----------
    rng : Generator
    patches : array of shape (n, P)
        Less their means.
    observed : array of bool of shape (n, P), or None
        Which pixels are there; None for all.
    model : PatchModel
    n_sweeps : int
        Sweeps that are averaged over.
    """
    (n, P), dtype = patches.shape, np.float32
    atoms = np.ascontiguousarray(model.components, dtype=dtype)
    left = np.ascontiguousarray(patches / model.scale, dtype=dtype)
    if observed is None:
        mask, gram, length = np.empty((0, P), dtype=dtype), atoms @ atoms.T, (atoms**2).sum(axis=1)[None]
        left = left @ atoms.T
    else:
        mask, gram = np.ascontiguousarray(observed, dtype=dtype), np.empty((0, 0), dtype=dtype)
        left, length = left * mask, mask @ (atoms**2).T
    v = 1 / (model.weight_precision + model.noise_precision * length)
    offset = model.log_odds + 0.5 * np.log(model.weight_precision * v)
    prior = PatchPrior(atoms, offset.astype(dtype), v.astype(dtype), length, dtype(model.noise_precision))
    K = len(atoms)
    sums = PatchSums(*(np.zeros(shape, dtype=dtype) for shape in ((n, K), (n + 1, P), (n + 1, P))))
    add_sweeps(rng, left, mask, gram, prior, np.zeros((n, K), dtype=dtype), (N_SETTLE, n_sweeps), sums)
    mean, drawn = sums.codes @ atoms / n_sweeps, sums.pixels[:n] / n_sweeps
    variance = np.maximum(sums.squares[:n] / n_sweeps - drawn**2, 0) * (n_sweeps / max(n_sweeps - 1, 1))
    # In single precision, pictures in units like 1e-17 or 1e30 would become zeros or infinite.
    return mean.astype(np.float64) * model.scale, variance.astype(np.float64) * model.scale**2


def filled_pixels(pixels: Array) -> tuple[Array, NDArray[np.bool_] | None]:
    """A picture whose missing pixels are filled smoothly, and which they are; None if there are none."""
    missing = np.isnan(pixels)
    return (fill_smoothly(pixels), missing) if missing.any() else (pixels, None)


def opinions(
    rng: np.random.Generator, filled: Array, missing: NDArray[np.bool_] | None, grid: PatchGrid, which: Any,
    model: PatchModel, n_sweeps: int,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """What some patches say of their pixels, the variance of that, and how much it counts: (n, P) each."""
    c = filled.shape[2]
    patches = grid.extract(filled, which)
    means = patch_means(patches, c)
    observed = None if missing is None else ~grid.extract(missing, which)
    mean, variance = code_patches(rng, patches - means, observed, model, n_sweeps)
    noise = noise_variance(model, patches.shape[1], c)
    variance = variance + _variance_of_means(mean, observed, noise, c)
    # In units of the picture, or rather of what varies in it.
    sureness = model.scale**2 / np.maximum(variance.mean(axis=1, keepdims=True), 1e-30 * model.scale**2)
    weights = np.broadcast_to(sureness, mean.shape)
    return mean + means, variance, weights


def restore(
    rng: np.random.Generator, pixels: Array, grid: PatchGrid, model: PatchModel, n_sweeps: int, verbose: int = 0
) -> Restored:
    """Restore a picture (height, width, c), in which NaN marks what is missing."""
    filled, missing = filled_pixels(pixels)
    noise = noise_variance(model, grid.size**2 * pixels.shape[2], pixels.shape[2])
    base = filled.mean()  # squares of what is far from zero would leave nothing of how it varies
    total, weight, spread, squares = (np.zeros(pixels.shape) for _ in range(4))
    per_row = len(grid.columns)
    step = max(1, BLOCK // per_row)
    with open_progress(verbose) as report:
        for number, first in enumerate(range(0, len(grid.rows), step)):
            rows = slice(first, min(first + step, len(grid.rows)))
            which = slice(rows.start * per_row, rows.stop * per_row)
            estimate, variance, weights = opinions(rng, filled, missing, grid, which, model, n_sweeps)
            estimate = estimate - base
            for sums, each in ((total, estimate), (spread, variance), (squares, estimate**2)):
                grid.add(sums, weights * each, rows)
            grid.add(weight, weights, rows)
            report(Step(number + 1, -(-len(grid.rows) // step), noise**0.5))
    average = total / weight
    between = np.maximum(squares / weight - average**2, 0)
    return Restored(base + average, np.sqrt(spread / weight), np.sqrt(between))


def noise_variance(model: PatchModel, n_pixels: int, n_channels: int) -> float:
    """Of the noise, in units of the picture: patches less their means have a little less of it."""
    return model.scale**2 / model.noise_precision * n_pixels / max(n_pixels - n_channels, 1)


def _variance_of_means(mean: Array, observed: NDArray[np.bool_] | None, noise: float, c: int) -> Any:
    """Of the mean of a patch and channel, which was taken away: noise, and pixels that are not there."""
    n_pixels = mean.shape[1] // c
    if observed is None:
        return noise / n_pixels
    there = observed.reshape(len(mean), -1, c).sum(axis=1, keepdims=True)
    signal = (mean**2).reshape(len(mean), -1, c).mean(axis=1, keepdims=True)
    uncertain = (noise + signal * (1 - there / n_pixels)) / np.maximum(there, 1)
    return np.broadcast_to(uncertain, (len(mean), n_pixels, c)).reshape(mean.shape)
