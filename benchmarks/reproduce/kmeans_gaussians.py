"""p-QR, p-Kmeans, k-means and refined p-QR on Gaussian clusters: 50 repetitions beside a prototype's figures.

Centres are uniform on a sphere in 20 dimensions, noise is of unit variance; k-means and p-Kmeans have one random start,
the same rows for both. Accuracy in per cent under the best matching; coordinates are not centred, as in the prototype.

    python benchmarks/reproduce/kmeans_gaussians.py
"""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.cluster import KMeans

from pluri.embedding import SpectralKMeans
from pluri.metrics import one_to_one_accuracy

#: Radius of the sphere, clusters, rows of each: the prototype's means for the four methods.
CASES = {
    (3.0, 5, 50): (70.1, 89.5, 84.8, 91.7),
    (4.0, 5, 50): (89.4, 92.6, 90.1, 98.1),
    (6.0, 10, 30): (89.6, 88.5, 84.0, 99.4),
}
METHODS = ("p-QR", "p-Kmeans", "k-means", "p-QR + Lloyd")


def one_run(radius: float, k: int, size: int, rng: np.random.Generator) -> list[float]:
    centers = rng.normal(size=(k, 20))
    centers *= radius / np.linalg.norm(centers, axis=1, keepdims=True)
    y = np.repeat(np.arange(k), size)
    X = centers[y] + rng.normal(size=(len(y), 20))
    plain = SpectralKMeans(k, assign="pqr", center=False, refine=False).fit(X)
    start = rng.choice(len(X), k, replace=False)
    found = [
        plain.labels_,
        KMeans(k, init=plain.embedding_[start], n_init=1).fit(plain.embedding_).labels_,
        KMeans(k, init=X[start], n_init=1).fit(X).labels_,
        SpectralKMeans(k, assign="pqr", center=False).fit(X).labels_,
    ]
    return [100 * one_to_one_accuracy(y, labels) for labels in found]


def main() -> None:
    warnings.simplefilter("ignore")
    for (radius, k, size), before in CASES.items():
        accuracy = np.array([one_run(radius, k, size, np.random.default_rng(run)) for run in range(50)])
        print(f"radius {radius:g}, {k} clusters of {size}:")
        for method, mean, sd, old in zip(METHODS, accuracy.mean(axis=0), accuracy.std(axis=0, ddof=1), before):
            print(f"    {method:14} {mean:5.1f} +- {sd:4.1f}   (prototype {old:.1f})", flush=True)


if __name__ == "__main__":
    main()
