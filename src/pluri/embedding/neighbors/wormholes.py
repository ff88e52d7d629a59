"""Two images of each object as a way to a better map of one: probability moves between them, not through the map.

Images that are far apart let an object move by shifting proportions. When the map with two images has settled,
entropy of the proportions is given a price that rises, until each object has one image left; that map is then settled
once more.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pluri.embedding.neighbors.dense import CostFunction
from pluri.embedding.neighbors.image_problem import ImageProblem
from pluri.embedding.neighbors.optimizers import Descended, Settings, run_lbfgs
from pluri.embedding.neighbors.threads import Threads
from pluri.inference import HistoryRow

Array = NDArray[np.float64]

#: Price of a nat of entropy of an object's proportions, stage by stage.
PRICES = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)


def through_wormholes(
    cost: CostFunction,
    threads: Threads,
    start: Array,
    max_iter: int,
    tol: float,
    rng: np.random.Generator,
    verbose: int,
) -> Descended:
    """Minimise the cost of one image from start (n, L) by way of two, which have two thirds of the iterations."""
    n_images = 2
    problem = ImageProblem(cost.neighbors, threads, n_images, start.shape[1], learns_proportions=True)
    array = problem.start(start, rng)
    rows: list[HistoryRow] = []
    share = max(1, 2 * max_iter // (3 * len(PRICES)))
    interrupted = False
    rates = np.empty((0, 1))
    for price in PRICES:
        part = replace(problem, entropy_price=price)
        found = run_lbfgs(part, array, Settings(share, tol, rates, verbose=verbose))
        array = found.points
        rows += found.rows
        if found.interrupted:
            interrupted = True
            break
    images, logits = problem.split(array)
    points = images[np.arange(len(images)), logits.argmax(axis=1)]
    if interrupted:
        return Descended(points, cost(points).value, _numbered(rows), interrupted=True)

    def single(array: Array) -> tuple[float, Array]:
        value, gradient, _ = cost(array)
        return value, gradient

    found = run_lbfgs(single, points, Settings(max(1, max_iter - len(rows)), tol, rates, verbose=verbose))
    return replace(found, rows=_numbered(rows + found.rows))


def _numbered(rows: list[HistoryRow]) -> list[HistoryRow]:
    return [row._replace(iteration=number + 1) for number, row in enumerate(rows)]
