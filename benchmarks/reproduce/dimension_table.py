"""Dimensions of six noisy shapes by every method: the table behind the figures of a published comparison.

Six shapes of known dimension, 1,000 rows each, with noise on all coordinates: ball, cube and Gaussians in 100
dimensions, Swiss roll and torus in 3. Printed: mean and standard deviation over realisations of the noise, for each
method of IntrinsicDimension, and the signal-to-noise ratio beside the published one, which fixes the scales. The
published figures are curves without numbers; their claim is of a method by spectral regression, shown if it is there.

    python benchmarks/reproduce/dimension_table.py            # five realisations, about five minutes of CPU
    python benchmarks/reproduce/dimension_table.py --quick    # one
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable

import numpy as np

from pluri.embedding import IntrinsicDimension
from pluri.embedding.dimension.methods import METHODS

N = 1000


def ball(rng: np.random.Generator) -> np.ndarray:
    rows = rng.normal(size=(N, 6))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True) * rng.uniform(size=(N, 1)) ** (1 / 6)


def swiss_roll(rng: np.random.Generator) -> np.ndarray:
    t, height = 1.5 * np.pi * (1 + 2 * rng.uniform(size=N)), 21 * rng.uniform(size=N)
    return np.column_stack([t * np.cos(t), height, t * np.sin(t)]) / 18


def torus(rng: np.random.Generator) -> np.ndarray:
    around = rng.uniform(0, 2 * np.pi, size=20 * N)
    kept = rng.uniform(0, 0.75, size=20 * N) < 0.5 + 0.25 * np.cos(around)  # uniform by area
    around = around[kept][:N]
    along = rng.uniform(0, 2 * np.pi, size=N)
    ring = 0.5 + 0.25 * np.cos(around)
    return np.column_stack([ring * np.cos(along), ring * np.sin(along), 0.25 * np.sin(around)])


#: Shape, its dimension, columns, and published signal-to-noise ratios at noise 0.01, 0.05 and 0.1.
SHAPES: dict[str, tuple[Callable[[np.random.Generator], np.ndarray], int, int, tuple[int, int, int]]] = {
    "6-D ball": (ball, 6, 100, (19, 5, -1)),
    "4-D cube": (lambda rng: rng.uniform(size=(N, 4)), 4, 100, (21, 7, 1)),
    "8-D Gaussian": (lambda rng: rng.normal(size=(N, 8)), 8, 100, (29, 15, 9)),
    "10-D Gaussian": (lambda rng: rng.normal(size=(N, 10)), 10, 100, (30, 16, 10)),
    "torus": (torus, 2, 3, (31, 17, 11)),
    "Swiss roll": (swiss_roll, 2, 3, (34, 20, 14)),
}


def main(quick: bool) -> None:
    warnings.simplefilter("ignore")
    seeds = range(1 if quick else 5)
    print(f"{'':30}" + "".join(f"{method:>16}" for method in METHODS))
    for name, (make, truth, columns, published) in SHAPES.items():
        for noise, ratio in zip((0.0, 0.01, 0.05, 0.1), (None, *published)):
            cells = {method: [] for method in METHODS}
            ratios = []
            for seed in seeds:
                rng = np.random.default_rng(seed)
                rows = make(rng)
                ratios.append(10 * np.log10((rows**2).sum(axis=1).mean() / (columns * max(noise, 1e-9) ** 2)))
                X = np.zeros((N, columns))
                X[:, : rows.shape[1]] = rows
                X += noise * rng.normal(size=X.shape)
                for method, found in cells.items():
                    try:
                        model = IntrinsicDimension(method, n_resamples=0, random_state=seed).fit(X)
                        found.append(model.dimension_)
                    except ValueError:  # trees that grow as fast as the number of rows
                        found.append(np.nan)
            told = "" if ratio is None else f"{np.mean(ratios):.0f} dB ({ratio})"
            label = f"{name} ({truth}), {noise:g} {told}"
            shown = "".join(f"{np.mean(found):9.2f} +- {np.std(found):4.2f}" for found in cells.values())
            print(f"{label:30}{shown}", flush=True)


if __name__ == "__main__":
    main("--quick" in sys.argv)
