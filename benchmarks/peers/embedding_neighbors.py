"""pluri's neighbour embedding against scikit-learn's exact t-SNE and openTSNE.

    PLURI_DATA=folder python benchmarks/peers/embedding_neighbors.py                # all parts, some minutes
    PLURI_DATA=folder python benchmarks/peers/embedding_neighbors.py gradient       # single parts, by name
    PLURI_DATA=folder python benchmarks/peers/embedding_neighbors.py sparse_3000    # the same with 3000 of the rows

Parts: gradient (cost and gradient of 3000 points, two threads, beside scikit-learn's exact t-SNE, whose work per pair
is similar: other models, so that no values can agree; ours are held against NumPy first), sparse (19,020 events of
the MAGIC telescope: time and neighbours kept beside openTSNE's), memory (50,000 rows, each kernel in a process of its
own).
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from scipy.spatial.distance import cdist, squareform

N_POINTS, N_MANY, PERPLEXITY = 3000, 50_000, 30.0


def part_gradient() -> None:
    from sklearn.manifold._t_sne import _kl_divergence

    from pluri.embedding.neighbors.dense import DenseCost
    from pluri.embedding.neighbors.distributions import from_dissimilarities, squared_distances
    from pluri.embedding.neighbors.threads import Threads

    rng = np.random.default_rng(0)
    X, points = rng.normal(size=(N_POINTS, 10)), 5.0 * rng.normal(size=(N_POINTS, 2))
    neighbors = from_dissimilarities(squared_distances(X, X), PERPLEXITY)
    with Threads(2) as threads:
        cost = DenseCost(neighbors, threads)
        d = cdist(points, points, "sqeuclidean")
        np.fill_diagonal(d, np.inf)
        Q = np.exp(d.min(axis=1, keepdims=True) - d)
        M = neighbors.P - Q / Q.sum(axis=1, keepdims=True)
        M = M + M.T
        error = np.abs(cost(points).gradient - 2 * (M.sum(axis=1)[:, None] * points - M @ points)).max()
        if error > 1e-9:
            raise SystemExit(f"gradient: differs from NumPy's by {error:.2g}, no ratio")
        joint = neighbors.P + neighbors.P.T
        np.fill_diagonal(joint, 0.0)
        joint = squareform(joint / joint.sum(), checks=False)
        flat = points.ravel().copy()
        walls: list[list[float]] = [[], []]
        cpus: list[list[float]] = [[], []]
        for _ in range(7):
            for place, run in enumerate((lambda: cost(points), lambda: _kl_divergence(flat, joint, 1.0, N_POINTS, 2))):
                wall, cpu = time.perf_counter(), time.process_time()
                run()
                walls[place].append(time.perf_counter() - wall)
                cpus[place].append(time.process_time() - cpu)
    for what, times in (("wall, two threads", walls), ("CPU", cpus)):
        ours, theirs = min(times[0]), min(times[1])
        print(f"gradient, {N_POINTS} points, {what:<18s} pluri {1e3 * ours:7.1f} ms   "
              f"scikit-learn {1e3 * theirs:7.1f} ms   ratio {theirs / ours:5.1f}", flush=True)  # fmt: skip


def part_sparse(n_rows: int | None = None) -> None:
    from openTSNE import TSNE

    from pluri.datasets import data_home
    from pluri.embedding import SNE
    from pluri.metrics import neighborhood_preservation

    with np.load(data_home() / "magic_telescope.npz", allow_pickle=False) as file:
        X = file["X"].astype(float)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    X = X[np.random.default_rng(0).permutation(len(X))[:n_rows]]

    def mapped(rows: np.ndarray) -> SNE:
        return SNE(perplexity=PERPLEXITY, kernel="student_t", method="neighbors", n_jobs=2, random_state=0).fit(rows)

    SNE(random_state=0, method="neighbors").fit(X[:200])  # compiles
    mapped(X[:600])
    runs = {
        "pluri SNE": lambda: SNE(perplexity=PERPLEXITY, n_jobs=2, random_state=0).fit(X).embedding_,
        'pluri SNE(kernel="student_t")': lambda: mapped(X).embedding_,
        "openTSNE": lambda: np.asarray(TSNE(perplexity=PERPLEXITY, n_jobs=2, random_state=0).fit(X)),
    }
    for name, run in runs.items():
        wall, cpu = time.perf_counter(), time.process_time()
        points = run()
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        kept = [neighborhood_preservation(X, points, count) for count in (10, 100)]
        print(f"sparse, {len(X)} rows: {name:<30s} {wall:7.1f} s, {cpu:7.1f} CPU s; kept of 10 and 100 nearest: "
              f"{kept[0]:.3f}, {kept[1]:.3f}", flush=True)  # fmt: skip


def part_memory() -> None:
    for kernel in ("gaussian", "student_t"):
        subprocess.run([sys.executable, __file__, f"memory_alone_{kernel}"], check=True)


def memory_alone(kernel: str) -> None:
    from pluri.embedding import SNE

    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_MANY, 20)) + 4.0 * rng.normal(size=(30, 20))[rng.integers(30, size=N_MANY)]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    wall, cpu = time.perf_counter(), time.process_time()
    model = SNE(kernel=kernel, n_jobs=2, random_state=0).fit(X)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"memory, {N_MANY} rows, {kernel}: {peak:.0f} MB at most ({before:.0f} before the fit), {wall:.1f} s, "
          f"{cpu:.1f} CPU s, {model.n_iter_} iterations, "
          f"{model.kl_divergence_ / N_MANY:.3f} nats per object", flush=True)  # fmt: skip


if __name__ == "__main__":
    for name in sys.argv[1:] or ("gradient", "sparse", "memory"):
        if name.startswith("sparse_"):
            part_sparse(int(name.removeprefix("sparse_")))
        elif name.startswith("memory_alone_"):
            memory_alone(name.removeprefix("memory_alone_"))
        else:
            globals()[f"part_{name}"]()
