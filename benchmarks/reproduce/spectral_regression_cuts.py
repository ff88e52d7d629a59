"""Straight cuts through the space of faces: rows made along a line between the coordinates of two frames.

Four ways of going from one frame of the Frey faces to another: spectral regression along a straight line of
coordinates; the nearest training frame to each point of the line; the same number of principal components; and linear
interpolation of the pixels. A good path is smooth (steps of equal size), sharp (as much contrast between neighbouring
pixels as real frames have) and near real faces. The figure shows the path that is longest in coordinates; it is saved
where PLURI_FIGURES says. The published comparison is a picture without numbers.

    PLURI_DATA=folder python benchmarks/reproduce/spectral_regression_cuts.py [--quick]
"""

from __future__ import annotations

import sys

import numpy as np
from published import figure_path, run_if_data
from sklearn.decomposition import PCA
from sklearn.neighbors import NearestNeighbors

from pluri.datasets import load_frey_faces
from pluri.embedding import SpectralRegression

#: One long chain with clusters of fifty rows: what the figures were measured with.
ONE_CHAIN = {"n_chains": 1, "n_warmup": 200, "n_draws": 100, "n_predictive": 10, "rows_per_cluster": 50}
N_STEPS, N_COORDINATES = 12, 12
WAYS = ("spectral regression", "nearest neighbour", "principal components", "pixels")


def paths(model: SpectralRegression, X: np.ndarray, pca: PCA, ends: tuple[int, int]) -> dict[str, np.ndarray]:
    """Rows along a cut, by each way: (N_STEPS, n_pixels)."""
    share = np.linspace(0, 1, N_STEPS)[:, None]

    def line(values: np.ndarray) -> np.ndarray:
        return (1 - share) * values[ends[0]] + share * values[ends[1]]

    cut = line(model.embedding_)
    nearest = NearestNeighbors(n_neighbors=1).fit(model.embedding_).kneighbors(cut)[1][:, 0]
    return {
        "spectral regression": model.inverse_transform(cut), "nearest neighbour": X[nearest],
        "principal components": pca.inverse_transform(line(pca.transform(X))), "pixels": line(X),
    }  # fmt: skip


def sharpness(rows: np.ndarray, shape: tuple[int, int]) -> float:
    """Mean square of differences between pixels beside each other."""
    images = rows.reshape(-1, *shape)
    return float((np.diff(images, axis=1) ** 2).mean() + (np.diff(images, axis=2) ** 2).mean())


def draw(found: dict[str, np.ndarray], shape: tuple[int, int]) -> str:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(len(found), 1, figsize=(9, 1.5 * len(found)))
    for axis, (name, rows) in zip(axes, found.items()):
        axis.imshow(np.hstack(rows.reshape(-1, *shape)), cmap="gray", vmin=0, vmax=255)
        axis.set_title(name, fontsize=9, loc="left")
        axis.set_axis_off()
    figure.tight_layout()
    path = figure_path("spectral_regression_cuts.png")
    figure.savefig(path, dpi=120)
    return str(path)


def main() -> None:
    quick = "--quick" in sys.argv
    faces = load_frey_faces()
    X = faces.X.astype(float)[:: 4 if quick else 1]
    model = SpectralRegression(N_COORDINATES, 20, random_state=0, **ONE_CHAIN).fit(X)
    pca = PCA(N_COORDINATES).fit(X)
    rng = np.random.default_rng(0)
    pairs = [tuple(rng.choice(len(X), 2, replace=False)) for _ in range(20)]
    neighbors = NearestNeighbors(n_neighbors=1).fit(X)
    real = sharpness(X, faces.image_shape)
    table = {name: [] for name in WAYS}
    for pair in pairs:
        for name, rows in paths(model, X, pca, pair).items():
            steps = np.linalg.norm(np.diff(rows, axis=0), axis=1)
            inside = rows[1:-1]
            distance = np.sqrt((neighbors.kneighbors(inside)[0] ** 2 / X.shape[1]).mean())
            table[name].append((steps.max() / steps.mean(), sharpness(inside, faces.image_shape) / real, distance))
    print(f"{len(X)} frames, {N_COORDINATES} coordinates, {model.n_active_clusters_} clusters")
    print(f"dimension {model.dimension_:.1f} of at most {N_COORDINATES} (published: 12 of 30)", end=", ")
    print(f"effective rank {model.effective_rank_:.1f}")
    print(f"{'20 cuts':<24s} largest step / mean   sharpness / real frames   distance to nearest frame (grey values)")
    for name, values in table.items():
        step, sharp, distance = np.mean(values, axis=0)
        print(f"{name:<24s} {step:>19.2f}   {sharp:>23.2f}   {distance:>25.1f}")
    longest = max(pairs, key=lambda pair: np.linalg.norm(model.embedding_[pair[0]] - model.embedding_[pair[1]]))
    print("figure:", draw(paths(model, X, pca, longest), faces.image_shape))


if __name__ == "__main__":
    run_if_data(main)
