r"""Points of a projection process in any space that can be drawn from: one at a time, by rejection.

For features :math:`\phi` with second moment C under the base measure, and eigenpairs :math:`(\lambda_n, c_n)` of C, the
functions :math:`f_n = c_n^\top \phi / \sqrt{\lambda_n}` are orthonormal. Given the eigenvectors J, points come one
after the other with density in proportion to what of :math:`f_J(x)` lies outside the points drawn so far, and
:math:`|f_J(x)|^2 \le |\phi(x)|^2 / \min_J \lambda_n` bounds it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from pluri.processes.dpp.kernel_forms import Array, IntArray

#: Proposals for one point before giving up.
MOST_PROPOSALS = 20_000_000
#: Proposals that are looked at together.
SMALLEST_BLOCK, LARGEST_BLOCK = 16, 16384
#: Mean number of proposals for each point from which a better bound is looked for.
WORTH_TIGHTENING = 50.0


class BoundError(ValueError):
    """A point was met where the features are longer than their bound."""


def draw_projection_points(
    rng: np.random.Generator,
    draw_base: Callable[[np.random.Generator, int], Array],
    functions: Callable[[Array], Array],
    size: int,
    bound: float,
    mass: float,
) -> Array:
    """Points (size, n_dimensions) of the projection on orthonormal functions, points (n, .) to values (n, size).

    ``bound`` is at least the largest sum of their squares; a point where it is exceeded is a BoundError.
    """
    points: list[Array] = []
    basis = np.empty((0, size))
    for drawn in range(size):
        # The mean of what is left, over the base measure, is size - drawn.
        wanted = bound * mass / (size - drawn)
        block = int(np.clip(wanted, SMALLEST_BLOCK, LARGEST_BLOCK))
        proposed = 0
        while True:
            candidates = draw_base(rng, block)
            rows = functions(candidates)
            full = np.einsum("ns,ns->n", rows, rows)
            if full.max() > bound * (1 + 1e-6):
                raise BoundError(
                    "quality_bound must be at least the largest quality in the domain, got a point where it is "
                    f"{np.sqrt(full.max() / bound):.4g} times as large"
                )
            left = full - np.einsum("nb,nb->n", *(2 * (rows @ basis.T,)))
            accepted = np.flatnonzero(rng.random(block) * bound < left)
            proposed += block
            if accepted.size:
                break
            if proposed > MOST_PROPOSALS:
                raise RuntimeError(
                    f"no point was accepted in {proposed} proposals (about {wanted:.3g} are needed): draw fewer "
                    "points, or use method='gibbs'"
                )
        chosen = int(accepted[0])
        points.append(candidates[chosen])
        direction = rows[chosen]
        for _ in range(2):  # what the first pass leaves by rounding, the second removes
            direction = direction - basis.T @ (basis @ direction)
        basis = np.vstack([basis, direction / np.linalg.norm(direction)])
    return np.array(points) if points else draw_base(rng, 0)


def draw_sets(
    rng: np.random.Generator,
    taken: IntArray,
    counts: IntArray,
    draw_base: Callable[[np.random.Generator, int], Array],
    functions: Callable[[Array, IntArray], Array],
    values: Array,
    length: float,
    mass: float,
    tighter: Callable[[IntArray], float] | None = None,
) -> list[Array]:
    """A set of points for each draw.

    ``functions`` gives the orthonormal functions of some eigenvectors at points, ``values`` are all eigenvalues of C,
    ``length`` bounds ``|phi(x)|^2``. ``tighter`` may give a smaller bound
    for the eigenvectors taken; a set in which it is exceeded is drawn afresh with the safe one.
    """
    draws = []
    for chosen in np.split(taken, np.cumsum(counts)[:-1]) if counts.size else []:
        taken_functions = partial(_of_chosen, functions, chosen)
        bound = length / float(values[chosen].min()) if chosen.size else 1.0
        first = bound
        if tighter is not None and chosen.size and bound * mass > WORTH_TIGHTENING * chosen.size:
            first = min(bound, tighter(chosen))
        try:
            draws.append(draw_projection_points(rng, draw_base, taken_functions, chosen.size, first, mass))
        except BoundError:
            if first == bound:
                raise
            draws.append(draw_projection_points(rng, draw_base, taken_functions, chosen.size, bound, mass))
    return draws


def _of_chosen(functions: Callable[[Array, IntArray], Array], chosen: IntArray, points: Array) -> Array:
    return functions(points, chosen)
