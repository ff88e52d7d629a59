"""Does an approximation miss a mode? Ascend the target from far and wide, and look for ends without samples nearby.

The reverse Kullback-Leibler divergence forgives an approximation that covers one of two modes (it costs log 2), and
its own samples cannot tell: they are all in that mode. So other starting points are needed.
"""

from __future__ import annotations

import numpy as np

from pluri.inference.variational.adam import Adam, descend
from pluri.inference.variational.flows.layer import Array
from pluri.inference.variational.flows.target import Target
from pluri.validation.interruption import held


class ModeCollapseWarning(UserWarning):
    """The approximation leaves out a mode of the target."""


def missed_mode(
    target: Target, samples: Array, rng: np.random.Generator, *, n_starts: int = 64, n_steps: int = 200
) -> Array | None:
    """A mode of the target that the samples do not cover, or None.

    An end of an ascent counts as a missed mode if the slope there is zero (an ascent along a curved valley takes
    long), if the density is within a factor exp(5) of the best one found, if it is further from the ends that samples
    ascend to than half of their spread, and if the log density dips by more than 1 in between.

    Parameters
    ----------
    target : Target
    samples : array of shape (n, dim)
        From the approximation.
    rng : numpy.random.Generator
    n_starts, n_steps : int
        Number of points to ascend from, of each kind, and steps.

    Returns
    -------
    array of shape (dim,) or None
    """
    center, spread = samples.mean(axis=0), samples.std(axis=0)
    noise = rng.standard_normal((2, n_starts, target.dim))
    # Around the origin too: a collapsed approximation is narrow.
    elsewhere = np.concatenate([center + 3.0 * spread * noise[0], 3.0 * noise[1]])
    own = samples[rng.choice(len(samples), min(4 * n_starts, len(samples)), replace=False)]
    size = float(np.sqrt((spread**2).sum()))
    try:
        ends, heights, slopes = _ascend(target, np.concatenate([own, elsewhere]), 0.02 * max(size, 1e-3), n_steps)
        if held():  # Ctrl-C came: these are no ends
            return None
        covered, others = ends[: len(own)], ends[len(own) :]
        for index in np.argsort(-heights[len(own) :]):
            if heights[len(own) + index] < heights.max() - 5.0:
                break
            if slopes[len(own) + index] * size > 0.3:
                continue
            distances = np.linalg.norm(covered - others[index], axis=1)
            nearest = int(np.argmin(distances))
            if distances[nearest] > 0.5 * size:
                path = np.linspace(0.0, 1.0, 41)[:, None]
                along = target.values(covered[nearest] + path * (others[index] - covered[nearest]))
                if along.min() < min(along[0], along[-1]) - 1.0:
                    return np.asarray(others[index])
    except ValueError:  # the density is not finite out there: nothing can be said
        return None
    return None


def _ascend(target: Target, points: Array, rate: float, n_steps: int) -> tuple[Array, Array, Array]:
    """Adam ascent of all points at once, with a rate that falls; ends, log densities and lengths of gradients there."""
    adam = Adam(points.ravel(), (0.8, 0.99))

    def step(number: int) -> float:
        heights, gradient = target(adam.parameters.reshape(points.shape))
        adam.move(-gradient.ravel(), 4.0 * rate * (1.0 - number / n_steps))
        return -float(heights.mean())

    descend(step, n_steps, kept="modes that the approximation misses may not have been found")
    points = adam.parameters.reshape(points.shape)
    heights, gradient = target(points)
    return points, heights, np.linalg.norm(gradient, axis=1)
