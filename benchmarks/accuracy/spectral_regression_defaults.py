"""What the defaults of spectral regression were chosen by: coordinates of held-out rows, on data of no published table.

As in `reproduce/spectral_regression_held_out.py`: Isomap of all rows is the truth, models learn from 75 % or 50 % of
the rows, and errors are printed as multiples of the error of Isomap's own `transform` (geometric means over data of a
kind). Beside settings of the regression, two ways that keep all training rows: a Gaussian process from rows to
coordinates, and five nearest neighbours. They say how far a ratio of one is from what the rows tell: the truth was
made by Isomap, whose own transform repeats its graph.

    PLURI_DATA=folder python benchmarks/accuracy/spectral_regression_defaults.py [setting ...]
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_digits
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.manifold import Isomap
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import KNeighborsRegressor

from pluri.datasets import data_home, load_cmu_exercises, load_usps
from pluri.embedding import SpectralRegression

sys.path.insert(0, str(Path(__file__).parents[1] / "reproduce"))
from published import run_if_data
from spectral_regression_held_out import carried


class Case(NamedTuple):
    """Rows and coordinates to learn from, the truth about all rows, and which are held out."""

    kind: str
    rows: np.ndarray
    embedding: np.ndarray
    new: np.ndarray
    peer: np.ndarray
    truth: np.ndarray
    held_out: np.ndarray


def turning_object(seed: int, n_views: int = 72, size: int = 32) -> np.ndarray:
    """Pictures of an object of shaded balls that turns once about a vertical axis; near ones hide far ones."""
    rng = np.random.default_rng(seed)
    n = 14
    places, radii = rng.normal(size=(n, 3)) * [0.5, 0.45, 0.5], rng.uniform(0.12, 0.4, size=n)
    shades = rng.uniform(0.3, 1.0, size=n)
    across, down = np.meshgrid(*[np.linspace(-1.3, 1.3, size)] * 2)
    pictures = []
    for angle in np.arange(n_views) * 2 * np.pi / n_views:
        x = places[:, 0] * np.cos(angle) + places[:, 2] * np.sin(angle)
        near = places[:, 2] * np.cos(angle) - places[:, 0] * np.sin(angle)
        picture, nearest = np.zeros((size, size)), np.full((size, size), -9.0)
        for ball in range(n):
            square = radii[ball] ** 2 - (across - x[ball]) ** 2 - (down - places[ball, 1]) ** 2
            depth = np.where(square > 0, near[ball] + np.sqrt(np.maximum(square, 0.0)), -9.0)
            shade = np.sqrt(np.maximum(square, 0.0)) / radii[ball] * shades[ball]
            picture = np.where(depth > nearest, shade, picture)
            nearest = np.maximum(nearest, depth)
        pictures.append(255 * picture.ravel())
    return np.array(pictures)


def tables() -> Iterator[tuple[str, np.ndarray, int, int]]:
    """Kind, rows, number of coordinates and of neighbours."""
    usps, small = load_usps("train"), load_digits()
    for digit in (2, 3, 5, 8):
        yield "USPS", usps.X[usps.y == digit][:400].astype(float), 10, 12
    for digit in (1, 6):
        yield "8 x 8", small.data[small.target == digit], 10, 12
    for number in range(6):
        yield "turning", turning_object(number), 2, 5
    oil = np.load(data_home() / "oil_flow.npz")
    yield "oil flow", oil["X_train"].astype(float), 10, 12
    motions = load_cmu_exercises()
    yield "motion", np.asarray(motions.X, dtype=float)[: motions.lengths[0]][::2], 10, 12


def cases(held_out: float) -> Iterator[Case]:
    for kind, X, n_coordinates, n_neighbors in tables():
        isomap = Isomap(n_neighbors=n_neighbors, n_components=n_coordinates, eigen_solver="dense")
        truth = isomap.fit_transform(X)
        for seed in range(2 if kind == "turning" else 1):
            test = np.zeros(len(X), dtype=bool)
            test[np.random.default_rng(seed).choice(len(X), int(held_out * len(X)), replace=False)] = True
            isomap.fit(X[~test])
            yield Case(kind, X[~test], isomap.embedding_, X[test], isomap.transform(X[test]), truth, test)


def regression(case: Case, **settings: object) -> np.ndarray:
    model = SpectralRegression(case.embedding.shape[1], spectral=case.embedding, random_state=0, **settings)
    return model.fit(case.rows).transform(case.new)


def gaussian_process(case: Case) -> np.ndarray:
    length = float(np.median(pairwise_distances(case.rows)))
    kernel = ConstantKernel() * RBF(length, (length / 30, length * 30)) + WhiteKernel(1e-2, (1e-8, 1.0))
    model = GaussianProcessRegressor(kernel, normalize_y=True, random_state=0).fit(case.rows, case.embedding)
    return np.asarray(model.predict(case.new))


SETTINGS: dict[str, Callable[[Case], np.ndarray]] = {
    "defaults": regression,
    "50 rows a cluster": lambda case: regression(case, rows_per_cluster=50),
    "one chain": lambda case: regression(case, n_chains=1, n_warmup=200, n_draws=100),
    "one chain, 50 rows": lambda case: regression(case, n_chains=1, n_warmup=200, n_draws=100, rows_per_cluster=50),
    "Gaussian process": gaussian_process,
    "5 neighbours": lambda case: (
        KNeighborsRegressor(5, weights="distance").fit(case.rows, case.embedding).predict(case.new)
    ),
}


def error(case: Case, rows: np.ndarray) -> float:
    moved = carried(case.embedding, case.truth[~case.held_out], rows)
    return float(((moved - case.truth[case.held_out]) ** 2).sum())


def main() -> None:
    warnings.simplefilter("ignore")
    for name in sys.argv[1:] or SETTINGS:
        for held_out in (0.25, 0.5):
            began, logs = time.process_time(), {}
            for case in cases(held_out):
                ratio = error(case, SETTINGS[name](case)) / error(case, case.peer)
                logs.setdefault(case.kind, []).append(np.log(ratio))
            told = "  ".join(f"{kind} {np.exp(np.mean(values)):.2f}" for kind, values in logs.items())
            print(f"{name:<20s} {held_out:>4.0%}  {told}  ({time.process_time() - began:.0f} CPU s)", flush=True)


if __name__ == "__main__":
    run_if_data(main)
