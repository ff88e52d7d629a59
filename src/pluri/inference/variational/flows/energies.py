"""Four densities in the plane that a Gaussian cannot fit: the usual test of flows, with gradients.

Each is ``exp(-U(z))``, up to its normaliser; with ``w1 = sin(pi z1 / 2)``, ``w2 = 3 exp(-((z1 - 1) / 0.6)^2 / 2)``,
``w3 = 3 sigmoid((z1 - 1) / 0.3)``::

    two_moons  U = ((|z| - 2) / 0.4)^2 / 2 - log(exp(-((z1 - 2) / 0.6)^2 / 2) + exp(-((z1 + 2) / 0.6)^2 / 2))
    wave       U = ((z2 - w1) / 0.4)^2 / 2
    bump       U = -log(exp(-((z2 - w1) / 0.35)^2 / 2) + exp(-((z2 - w1 + w2) / 0.35)^2 / 2))
    fork       U = -log(exp(-((z2 - w1) / 0.4)^2 / 2) + exp(-((z2 - w1 + w3) / 0.35)^2 / 2))

The last three go on for ever along z1 and cannot be normalised: a soft box ``(max(|z1| - 4, 0) / 0.4)^2 / 2`` is added
to them.

References
----------
Rezende and Mohamed (2015), Variational inference with normalizing flows, ICML, table 1.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pluri.inference.variational.flows.layer import Array, sigmoid

Density = Callable[[Array], tuple[Array, Array]]


def two_moons(z: Array) -> tuple[Array, Array]:
    """Two half-moons that face each other; log densities and gradients at the rows of z.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference.variational.flows.energies import two_moons
    >>> two_moons(np.array([[2.0, 0.0]]))[0]
    array([0.])
    """
    radius = np.sqrt(np.einsum("nd,nd->n", z, z))
    right, left = (z[:, 0] - 2.0) / 0.6, (z[:, 0] + 2.0) / 0.6
    both, share = _soft_maximum(-0.5 * right**2, -0.5 * left**2)
    gradient = (-(radius - 2.0) / 0.16 / np.maximum(radius, 1e-300))[:, None] * z
    gradient[:, 0] -= (share * right + (1.0 - share) * left) / 0.6
    return -0.5 * ((radius - 2.0) / 0.4) ** 2 + both, gradient


def wave(z: Array) -> tuple[Array, Array]:
    """A sine wave; log densities and gradients at the rows of z."""
    gap, slope = _wave_gap(z)
    return _in_a_box(z, -0.5 * (gap / 0.4) ** 2, gap / 0.16 * slope, -gap / 0.16)


def bump(z: Array) -> tuple[Array, Array]:
    """A sine wave and a copy that leaves it for a while; log densities and gradients at the rows of z."""
    shift = 3.0 * np.exp(-0.5 * ((z[:, 0] - 1.0) / 0.6) ** 2)
    return _two_waves(z, 0.35, shift, -shift * (z[:, 0] - 1.0) / 0.36)


def fork(z: Array) -> tuple[Array, Array]:
    """A sine wave that splits in two; log densities and gradients at the rows of z."""
    level = sigmoid((z[:, 0] - 1.0) / 0.3)
    return _two_waves(z, 0.4, 3.0 * level, 10.0 * level * (1.0 - level))


ENERGIES: dict[str, Density] = {"two_moons": two_moons, "wave": wave, "bump": bump, "fork": fork}


def log_normalizer(density: Density, half_width: float = 9.0, n_points: int = 1201) -> float:
    """Logarithm of the integral of a density over a square, by the trapezoidal rule.

    Examples
    --------
    >>> from pluri.inference.variational.flows.energies import log_normalizer, two_moons
    >>> log_normalizer(two_moons)
    1.87750
    """
    line = np.linspace(-half_width, half_width, n_points)
    grid = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    return float(np.log(np.exp(density(grid)[0]).sum() * (line[1] - line[0]) ** 2))


def _soft_maximum(first: Array, second: Array) -> tuple[Array, Array]:
    """log(exp(first) + exp(second)), and the share of the first."""
    both = np.logaddexp(first, second)
    return both, np.exp(first - both)


def _wave_gap(z: Array) -> tuple[Array, Array]:
    """z2 - sin(pi z1 / 2), and the slope of the sine."""
    return z[:, 1] - np.sin(0.5 * np.pi * z[:, 0]), 0.5 * np.pi * np.cos(0.5 * np.pi * z[:, 0])


def _two_waves(z: Array, width: float, shift: Array, shift_slope: Array) -> tuple[Array, Array]:
    gap, slope = _wave_gap(z)
    first, second = gap / width, (gap + shift) / 0.35
    both, share = _soft_maximum(-0.5 * first**2, -0.5 * second**2)
    pull_first, pull_second = share * first / width, (1.0 - share) * second / 0.35
    along = (pull_first + pull_second) * slope - pull_second * shift_slope
    return _in_a_box(z, both, along, -(pull_first + pull_second))


def _in_a_box(z: Array, values: Array, along: Array, across: Array) -> tuple[Array, Array]:
    outside = np.maximum(np.abs(z[:, 0]) - 4.0, 0.0) / 0.4
    gradient = np.column_stack([along - np.sign(z[:, 0]) * outside / 0.4, across])
    return values - 0.5 * outside**2, gradient
