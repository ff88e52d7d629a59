r"""Greedy search for the set of highest probability: one item after the other, each the one that adds most volume.

:math:`\log\det L_Y` is submodular, and its maximum is hard to find. An item i
multiplies the determinant by :math:`d_i = L_{ii} - \|c_i\|^2`, where :math:`V c_i = L_{Yi}` with the Cholesky factor V
of :math:`L_Y`; each pick appends one entry to every :math:`c_i` [1]_. Of a kernel :math:`F F^\top` that entry is
``F @ q``, with q the direction of the picked features that no earlier pick has, so nothing is kept for each item but
:math:`d_i`. The lazy search [2]_ takes old :math:`d_i` as bounds [3]_.

References
----------
.. [1] L. Chen, G. Zhang and E. Zhou, "Fast greedy MAP inference for determinantal point process to improve
   recommendation diversity", NeurIPS 2018.
.. [2] M. Minoux, "Accelerated greedy algorithms for maximizing submodular set functions", 1978.
.. [3] A. Hemmi, T. Oki, S. Sakaue, K. Fujii and S. Iwata, "Lazy and fast greedy MAP inference for determinantal point
   process", NeurIPS 2022.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pluri.processes.dpp.kernel_forms import Array, FeatureKernel, IntArray, KernelForm, as_kernel_form, as_subset
from pluri.processes.dpp.search.greedy_residuals import (
    FeatureResiduals,
    LazyFeatureResiduals,
    LazyRowResiduals,
    Residuals,
    RowResiduals,
    WindowResiduals,
)

#: What is left of an item below this share of its own L_ii is rounding.
NOTHING_LEFT = 1e-12
#: Gains that differ by less than this share are equal; the first of the items is taken.
TIE = 1e-10
#: Items that a lazy search brings up to date at a time, at first: as fast as one.
LAZY_BATCH = 32


@dataclass(frozen=True, eq=False)
class MapResult:
    """A set found by a search for the most probable one.

    Attributes
    ----------
    items : (n,) int64
        The items, in the order in which they were chosen.
    gains : (n,)
        By what each choice multiplied the determinant; after a local search, each move.
    log_det : float
        Log determinant of the kernel over the items (and over those given before).
    """

    items: IntArray
    gains: Array
    log_det: float


def greedy_map(
    kernel: Any,
    size: int | None = None,
    *,
    lazy: bool = False,
    window: int | None = None,
    quality_weight: float = 1.0,
    given: ArrayLike = (),
    exclude: ArrayLike = (),
) -> MapResult:
    """Choose items one by one, each time the one that raises the determinant most.

    Parameters
    ----------
    kernel : KernelForm or array-like of shape (n_items, n_items)
        The kernel L. Features (:class:`FeatureKernel`) are never multiplied out.
    size : int, optional
        Number of items to choose. Without it, choosing ends when no item makes the set more probable.
    lazy : bool, default=False
        Look only at items whose last known gain is still among the highest. The result is the same; it pays when rows
        of the kernel are expensive.
    window : int, optional
        Only the last `window` choices repel, for long lists that nobody sees at once.
    quality_weight : float, default=1
        Power of the quality: 0 looks at diversity alone, 2 counts ``log L_ii`` twice.
    given : subset, default=()
        Items that are there already: others are chosen to differ from them.
    exclude : subset, default=()
        Items that must not be chosen.

    Returns
    -------
    MapResult
        Of equally good items the one with the lowest number comes first.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.processes.dpp import greedy_map
    >>> L = np.array([[2.0, 1.9, 0.0], [1.9, 2.1, 0.0], [0.0, 0.0, 1.5]])
    >>> greedy_map(L, size=2).items
    array([1, 2])
    """
    form = as_kernel_form(kernel)
    diagonal = np.array(form.diagonal(), dtype=np.float64)
    if not np.isfinite(diagonal).all() or (diagonal < 0).any():
        raise ValueError("kernel must have a finite, non-negative diagonal")
    before, banned = as_subset(given, form.n_items, "given"), as_subset(exclude, form.n_items, "exclude")
    if before.size and banned.size and np.isin(before, banned).any():
        raise ValueError(f"given and exclude must have no item in common, got {np.intersect1d(before, banned)}")
    n_free = form.n_items - len(before) - len(banned)
    _check_number("size", size, 0, n_free, f"the number of items to choose from ({n_free})")
    _check_number("window", window, 1, None, "")
    if not np.isfinite(quality_weight):
        raise ValueError(f"quality_weight must be a finite number, got {quality_weight!r}")
    weight = None
    if quality_weight != 1.0:
        weight = np.where(diagonal > 0, diagonal, 1.0) ** (quality_weight - 1.0)
    if lazy and window is None:
        # Nothing but the last items seen would be saved with a window.
        return _lazily(form, diagonal, size, weight, before, banned)
    residuals = _residuals(form, window)
    left, squares = diagonal.copy(), np.empty(form.n_items)
    least = NOTHING_LEFT * diagonal
    least[banned] = np.inf
    items: list[int] = []
    gains: list[float] = []
    log_det = 0.0
    for pick in _picks(before, size, form.n_items):
        if pick is None:
            scores = np.where(left > least, left if weight is None else left * weight, -np.inf)
            highest = float(scores.max())
            if _is_enough(highest, size, len(items)):
                break
            pick = int(np.argmax(scores >= highest * (1.0 - TIE)))
            items.append(pick)
            gains.append(float(scores[pick]))
        elif not left[pick] > least[pick]:
            raise ValueError("given must have a positive determinant, got items that depend on each other")
        least[pick] = np.inf
        log_det += float(np.log(left[pick]))
        if size is not None and len(items) == size:
            break
        left -= residuals.after(pick, float(left[pick]), squares)
    chosen = np.array(items, dtype=np.int64)
    if window is not None:
        log_det = _log_det(form, np.concatenate([before, chosen]))
    return MapResult(chosen, np.array(gains), log_det)


def _residuals(form: KernelForm, window: int | None) -> Residuals:
    if window is not None:
        return WindowResiduals(form, window)
    return FeatureResiduals(form) if isinstance(form, FeatureKernel) else RowResiduals(form)


def _check_number(name: str, value: Any, least: int, most: int | None, what: str) -> None:
    if value is None:
        return
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")
    if most is not None and value > most:
        raise ValueError(f"{name} must be at most {what}, got {value!r}")


def _picks(before: IntArray, size: int | None, n_items: int) -> Any:
    """The items given, then None for each one to be chosen."""
    yield from (int(item) for item in before)
    yield from [None] * (n_items if size is None else size)


def _is_enough(highest: float, size: int | None, n_chosen: int) -> bool:
    """Whether to stop: nothing is left, or no item makes the set more probable."""
    if size is None:
        return highest <= 1.0
    if highest == -np.inf:
        raise ValueError(
            f"size must be at most the number of items that do not depend on each other ({n_chosen}), got {size}"
        )
    return False


def _log_det(form: KernelForm, items: IntArray) -> float:
    if not len(items):
        return 0.0
    sign, value = np.linalg.slogdet(form.block(items, items))
    return float(value) if sign > 0 else float("-inf")


def _lazily(
    form: KernelForm, diagonal: Array, size: int | None, weight: Array | None, before: IntArray, banned: IntArray
) -> MapResult:
    """As the eager search, with gains of earlier steps as bounds: what is left of an item never grows."""
    residuals = LazyFeatureResiduals(form) if isinstance(form, FeatureKernel) else LazyRowResiduals(form)
    left, known = diagonal.copy(), np.zeros(form.n_items, dtype=np.int64)
    least = NOTHING_LEFT * diagonal
    least[banned] = np.inf
    items: list[int] = []
    gains: list[float] = []
    log_det = 0.0
    for n_picks, pick in enumerate(_picks(before, size, form.n_items)):
        batch = LAZY_BATCH
        if pick is not None:
            left[pick] = residuals.left_of(np.array([pick]), left, known)[0]
            if not left[pick] > least[pick]:
                raise ValueError("given must have a positive determinant, got items that depend on each other")
        while pick is None:
            scores = np.where(left > least, left if weight is None else left * weight, -np.inf)
            highest = float(scores.max())
            if _is_enough(highest, size, len(items)):
                return MapResult(np.array(items, dtype=np.int64), np.array(gains), log_det)
            best = np.flatnonzero(scores >= highest * (1.0 - TIE))
            stale = best[known[best] < n_picks]
            if not len(stale):
                pick = int(best[0])
                items.append(pick)
                gains.append(float(scores[pick]))
                break
            scores[known == n_picks] = -np.inf
            few = np.argpartition(-scores, min(batch, form.n_items) - 1)[:batch]
            stale = np.union1d(stale, few[scores[few] > -np.inf])
            left[stale] = residuals.left_of(stale, left, known)
            known[stale] = n_picks
            batch *= 2
        least[pick] = np.inf
        log_det += float(np.log(left[pick]))
        residuals.take(pick, float(left[pick]))
    return MapResult(np.array(items, dtype=np.int64), np.array(gains), log_det)
