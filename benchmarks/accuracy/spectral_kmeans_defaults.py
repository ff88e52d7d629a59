"""Which settings of SpectralKMeans should be the defaults: inertia, accuracy and CPU seconds on data of many kinds.

Every setting is refined by Lloyd's algorithm. Printed beside scikit-learn's KMeans, with one start and with ten: by how
many per cent the inertia exceeds the lowest that any of them found (mean over seeds), accuracy under the best matching
to the classes, CPU seconds of a fit, and the certificate. On text see `benchmarks/peers/embedding_kmeans.py`.

COIL-20, oil flow and USPS need ``coil20_32x32.npz``, ``oil_flow.npz`` and ``usps_test.txt.gz`` in PLURI_DATA; without
them they are left out.

    python benchmarks/accuracy/spectral_kmeans_defaults.py            # about two minutes of CPU
    python benchmarks/accuracy/spectral_kmeans_defaults.py --quick    # what scikit-learn brings
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.preprocessing import StandardScaler

from pluri.datasets import data_home
from pluri.embedding import SpectralKMeans
from pluri.metrics import one_to_one_accuracy

SEEDS = range(5)


def tables(quick: bool) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Name, rows and classes."""
    for name, load in (("iris", load_iris), ("wine", load_wine), ("cancer", load_breast_cancer)):
        found = load()
        yield name, StandardScaler().fit_transform(found.data), found.target
    digits = load_digits()
    yield "digits", digits.data, digits.target
    rng = np.random.default_rng(0)
    for n_clusters, n_columns, distance in ((5, 2, 6.0), (10, 20, 5.0), (30, 10, 4.0)):
        centers = rng.normal(size=(n_clusters, n_columns))
        centers *= distance / np.linalg.norm(centers, axis=1, keepdims=True)
        labels = np.repeat(np.arange(n_clusters), 60)
        rows = centers[labels] + rng.normal(size=(len(labels), n_columns))
        yield f"{n_clusters} blobs in {n_columns}-D", rows, labels
    if quick:
        return
    home = data_home()
    if (home / "coil20_32x32.npz").is_file():
        archive = np.load(home / "coil20_32x32.npz")
        yield "COIL-20", archive["X"].reshape(len(archive["X"]), -1) / 255.0, archive["y"]
    if (home / "oil_flow.npz").is_file():
        archive = np.load(home / "oil_flow.npz")
        yield "oil flow", archive["X_train"], archive["y_train"]
    if (home / "usps_test.txt.gz").is_file():
        table = np.loadtxt(home / "usps_test.txt.gz")
        yield "USPS", table[:, 1:], table[:, 0].astype(int)


def settings() -> dict[str, Any]:
    made: dict[str, Any] = {
        "KMeans, 1 start": lambda k, seed: KMeans(k, n_init=1, random_state=seed),
        "KMeans, 10 starts": lambda k, seed: KMeans(k, n_init=10, random_state=seed),
    }
    for center in (True, False):
        for assign in ("pqr", "cluster_qr", "kmeans"):
            name = f"{assign}, {'centred' if center else 'not centred'}"
            made[name] = lambda k, seed, assign=assign, center=center: SpectralKMeans(
                k, assign=assign, center=center, random_state=seed
            )
    return made


def main(quick: bool) -> None:
    warnings.simplefilter("ignore")
    for name, X, y in tables(quick):
        k = len(np.unique(y))
        print(f"\n{name}: {X.shape[0]} x {X.shape[1]}, {k} classes")
        results = {}
        for setting, make in settings().items():
            try:
                fits, begun = [], time.process_time()
                for seed in SEEDS:
                    fits.append(make(k, seed).fit(X))
                results[setting] = fits, (time.process_time() - begun) / len(SEEDS)
            except ValueError as refusal:
                print(f"  {setting:25}: {refusal}")
        lowest = min(fit.inertia_ for fits, _ in results.values() for fit in fits)
        for setting, (fits, seconds) in results.items():
            excess = np.mean([100 * (fit.inertia_ / lowest - 1) for fit in fits])
            accuracy = np.mean([100 * one_to_one_accuracy(y, fit.labels_) for fit in fits])
            gap = f", certificate {100 * fits[0].gap_:.1f} %" if hasattr(fits[0], "gap_") else ""
            print(
                f"  {setting:25}: inertia {excess:6.3f} % above the lowest, accuracy {accuracy:5.1f} %, "
                f"{seconds:.3f} s{gap}",
                flush=True,
            )


if __name__ == "__main__":
    main("--quick" in sys.argv)
