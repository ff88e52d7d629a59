"""Coordinates of held-out rows: spectral regression, which has forgotten the training rows, against Isomap's own
`transform`, which needs them.

Isomap of all rows is the truth. Models learn from 75 % or 50 % of the rows; the turn, reflection and shift that
carry the training rows' coordinates onto the truth (Procrustes, on training rows only) are applied to the held-out
ones, and the error is their mean squared distance from the truth as a share of the variance of the truth. The
published figure has bars and no numbers; its claim is that errors are comparable, so that the target is a ratio of one.
`ceiling` is the error of the training rows' own Isomap coordinates: two Isomaps of different rows do not agree better.

    PLURI_DATA=folder python benchmarks/reproduce/spectral_regression_held_out.py [--quick]
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from time import process_time

import numpy as np
from published import run_if_data
from scipy.linalg import orthogonal_procrustes
from sklearn.manifold import Isomap

from pluri.datasets import load_coil20, load_frey_faces, load_mnist_test
from pluri.embedding import SpectralRegression


def carried(source: np.ndarray, target: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Rows moved by the turn, reflection and shift that carry source onto target best."""
    turn, _ = orthogonal_procrustes(source - source.mean(axis=0), target - target.mean(axis=0))
    return (rows - source.mean(axis=0)) @ turn + target.mean(axis=0)


def errors(X: np.ndarray, held_out: float, n_coordinates: int, n_neighbors: int, seed: int) -> tuple[float, ...]:
    """Errors of spectral regression, of Isomap and of the training rows; dimension and CPU seconds of the fit."""
    rng = np.random.default_rng(seed)
    test = np.zeros(len(X), dtype=bool)
    test[rng.choice(len(X), int(held_out * len(X)), replace=False)] = True
    truth = Isomap(n_neighbors=n_neighbors, n_components=n_coordinates, eigen_solver="dense").fit_transform(X)
    peer = Isomap(n_neighbors=n_neighbors, n_components=n_coordinates, eigen_solver="dense").fit(X[~test])
    begun = process_time()
    model = SpectralRegression(n_coordinates, n_neighbors=n_neighbors, random_state=seed).fit(X[~test])
    seconds = process_time() - begun
    variance = truth.var(axis=0).sum()

    def error(rows: np.ndarray, where: np.ndarray) -> float:
        moved = carried(peer.embedding_, truth[~test], rows)
        return float(((moved - truth[where]) ** 2).sum(axis=1).mean() / variance)

    return (
        error(model.transform(X[test]), test), error(peer.transform(X[test]), test), error(peer.embedding_, ~test),
        model.effective_rank_, seconds,
    )  # fmt: skip


def sets(quick: bool) -> Iterator[tuple[str, list[np.ndarray], int, int]]:
    """Name, tables, number of coordinates and of neighbours."""
    digits = load_mnist_test()
    tables = [digits.X[digits.y == digit][:400].astype(float) for digit in (range(10) if not quick else (1, 4))]
    yield "MNIST digits, 400 each, one by one", tables, 10, 12
    objects = load_coil20()
    turning = [objects.X[objects.y == number].astype(float) for number in range(20 if not quick else 4)]
    yield "COIL-20 objects, 72 views each", turning, 2, 5
    faces = load_frey_faces()
    yield "Frey faces", [faces.X.astype(float)], 10, 12


def main() -> None:
    quick = "--quick" in sys.argv
    print(f"{'':<36s} held out  regression     Isomap    ceiling    ratio (95 %)       rank  CPU s a fit")
    for name, tables, n_coordinates, n_neighbors in sets(quick):
        n_splits = 2 if quick else 5 if len(tables) == 1 else 2
        for held_out in (0.25, 0.5):
            found = np.array([
                errors(X, held_out, n_coordinates, n_neighbors, seed) for X in tables for seed in range(n_splits)
            ])  # fmt: skip
            ours, peer, ceiling, rank, seconds = found.mean(axis=0)
            logs = np.log(found[:, 0] / found[:, 1])
            half = 1.96 * logs.std(ddof=1) / np.sqrt(len(logs))
            low, high = np.exp(logs.mean() - half), np.exp(logs.mean() + half)
            print(
                f"{name:<36s} {held_out:>7.0%}  {ours:>10.4f} {peer:>10.4f} {ceiling:>10.4f}    "
                f"{np.exp(logs.mean()):.2f} ({low:.2f}-{high:.2f})  {rank:>6.1f}  {seconds:>11.1f}",
                flush=True,
            )  # fmt: skip


if __name__ == "__main__":
    run_if_data(main)
