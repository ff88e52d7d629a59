r"""Compiled loops of the penalised M-step: the two for which NumPy would need many small calls.

The rest of an iteration is a handful of NumPy and LAPACK calls in :mod:`pluri.priors.logit_ascent`, because the time
to compile grows faster than the length of a function: the first fit would wait several seconds for the whole ascent.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pluri.engine.compiled import compiled

Floats = NDArray[np.float64]


@compiled()
def logit_gradient(
    A: Floats, S: Floats, U: Floats, P: Floats, E: Floats, C: Floats, room: Floats, size: Floats, slope: float,
    G: Floats, D: Floats,
) -> None:  # fmt: skip
    r"""Gradient of F with respect to the logits into ``G``, an estimate of its curvature entry by entry into ``D``.

    With :math:`A = \epsilon + S`, where :math:`S` is the softmax times the room :math:`r_i = 1 - \sum_j \epsilon_{ij}`
    above the floor, and :math:`M_{ij} = A_{ij} \, \partial F / \partial A_{ij} = E_{ij} + s (U P - U^2)_{ij}`,

    .. math:: G_{ij} = \frac{S_{ij}}{A_{ij}} M_{ij} - \frac{S_{ij}}{r_i} \sum_l \frac{S_{il}}{A_{il}} M_{il}, \quad
       D_{ij} = C_{ij} + s \, |U P|_{ij} + A_{ij} n_i.
    """
    n_rows, n_columns = A.shape
    for i in range(n_rows):
        total = 0.0
        for j in range(n_columns):
            a = A[i, j]
            u = U[i, j]
            gain = slope * u * P[i, j]
            D[i, j] = C[i, j] + abs(gain) + a * size[i]
            g = (E[i, j] + gain - slope * u * u) * S[i, j] / (a + 1e-300)  # 0 outside the support, not 0 / 0
            G[i, j] = g
            total += g
        total /= room[i]
        for j in range(n_columns):
            G[i, j] -= S[i, j] * total


@compiled(reorder=True)
def ascent_direction(
    steps: Floats, changes: Floats, inverse: Floats, factor: Floats, newest: int, count: int, gradient: Floats,
    curvature: Floats, direction: Floats,
) -> None:  # fmt: skip
    """Write H g into ``direction``, where H is the L-BFGS estimate of the inverse Hessian: the two-loop recursion.

    ``steps`` and ``changes`` (n_pairs, size) are rings with the newest of ``count`` pairs at ``newest``, ``inverse``
    holds one over their inner products, ``factor`` (n_pairs,) is scratch. Without pairs H is 1 / ``curvature``; with
    pairs that is scaled so that it agrees with the newest one.
    """
    n_pairs, size = steps.shape
    curved = 0.0
    for i in range(size):
        direction[i] = gradient[i]
        curved += changes[newest, i] * changes[newest, i] / curvature[i]
    gain = 1.0
    if count > 0:
        gain = 1.0 / (inverse[newest] * curved)
        if gain > 10.0:
            gain = 10.0
        if gain < 0.01:
            gain = 0.01
    for back in range(count):
        b = (newest - back) % n_pairs
        along = 0.0
        for i in range(size):
            along += steps[b, i] * direction[i]
        along *= inverse[b]
        factor[b] = along
        for i in range(size):
            direction[i] -= along * changes[b, i]
    for i in range(size):
        direction[i] *= gain / curvature[i]
    for back in range(count - 1, -1, -1):
        b = (newest - back) % n_pairs
        along = 0.0
        for i in range(size):
            along += changes[b, i] * direction[i]
        along = factor[b] - along * inverse[b]
        for i in range(size):
            direction[i] += along * steps[b, i]
