"""Equal points in samples of what should be continuous: values that were rounded, labels, or rows drawn twice.

Estimates by nearest neighbours take logarithms of distances, and equal points have none. Values rounded to multiples of
a width w keep a density on the scale of w: spread evenly over ``(-w / 2, w / 2)`` around where they were put, they have
an entropy of ``H(label) + log w``, which comes close to that of the values before they were rounded.
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: What may be done about equal points.
TIES = ("dither", "error", "keep")
#: A warning is given if fewer points than this share of them are distinct.
MANY_TIES = 0.75
#: Widths of rounding are looked for down to this share of the range of a column.
FINEST = 1e-6


def treat_ties(points: Array, name: str, ties: str, rng: np.random.Generator) -> Array:
    """Points (n, d) whose equal rows were treated as `ties` says.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.metrics.ties import treat_ties
    >>> rounded = np.random.default_rng(0).normal(size=(500, 1)).round(2)
    >>> spread = treat_ties(rounded, "X", "dither", np.random.default_rng(0))
    >>> len(np.unique(rounded)) < 350, len(np.unique(spread)), bool(np.abs(spread - rounded).max() <= 0.005)
    (True, 500, True)
    """
    n_distinct = len(np.unique(points, axis=0))
    if n_distinct == len(points):
        return points
    if ties == "error":
        raise ValueError(
            f"{name} must hold distinct points with ties='error', got {n_distinct} among {len(points)}; ties='dither' "
            "spreads rounded values evenly, and labels have methods of their own"
        )
    # A stream of its own: data that were drawn with the same seed would go with the noise otherwise.
    rng = rng.spawn(1)[0]
    if ties == "dither":
        widths = np.array([rounding(column) for column in points.T])
        points = points + widths * (rng.random(points.shape) - 0.5)
    return _parted(points, rng)


def warn_of_ties(points: Array, name: str, ties: str, instead: str = "method='plug_in'") -> None:
    """Say so if many points are equal, and what was done about it; `instead` is what labels are better given to."""
    if ties == "error" or len(np.unique(points, axis=0)) >= MANY_TIES * len(points):
        return
    widths = {f"{rounding(column):.4g}" for column in points.T} - {"0"} if ties == "dither" else set()
    if widths:
        told = f"they are multiples of {', '.join(sorted(widths))}, and were spread evenly over that width: "
    else:
        told = "nearest neighbours measure a density, which equal points do not have: "
    warnings.warn(  # the same text for the same argument, so that a bootstrap warns once
        f"less than {MANY_TIES:.0%} of the points of {name} are distinct; {told}for labels use {instead}, in a "
        "bootstrap with_replacement=False",
        UserWarning,
        stacklevel=3,
    )


def rounding(column: Array) -> float:
    """Width w such that all differences of a column with equal values are multiples of it; 0 if there is none.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.metrics.ties import rounding
    >>> round(rounding(np.array([0.2, 0.2, 0.4, 1.1])), 9), rounding(np.array([0.0, 0.0, 1.0, np.pi]))
    (0.1, 0.0)
    """
    values = np.unique(column)
    if not 1 < len(values) < len(column):
        return 0.0
    extent = float(values[-1] - values[0])
    # What is left of a gap after division is rounding of the numbers themselves below this.
    noise = 1e-9 * max(float(np.abs(values).max()), extent)
    gaps = np.diff(values)
    gaps = gaps[gaps > noise]
    width = float(gaps.min())
    while width > max(FINEST * extent, 10 * noise):  # Euclid's algorithm, on all gaps at once
        left = np.abs(gaps - width * np.round(gaps / width))
        left = left[left > max(1e-4 * width, noise)]
        if not len(left):
            return width
        width = float(left.min())
    return 0.0


def _parted(points: Array, rng: np.random.Generator) -> Array:
    """Part equal points by noise of a ten-billionth of each column's size: neighbours at distance zero have no log."""
    if len(np.unique(points, axis=0)) == len(points):
        return points
    size = np.abs(points).mean(axis=0)
    return np.asarray(points + 1e-10 * np.where(size > 0, size, 1.0) * rng.standard_normal(points.shape))
