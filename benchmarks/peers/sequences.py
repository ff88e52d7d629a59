"""Similarities of sequences beside tslearn, aeon and dtaidistance: seconds for the matrix of 200 sequences.

200 sequences of 100 frames of 5 features, all pairs, one thread, CPU seconds of the best of three runs, libraries in
turn. tslearn has the same kernel as ``TimeAlignmentKernel("sum", normalize=True)``, with sigma by a factor of the root
of two smaller: both matrices are compared first. The others compute distances by dynamic time warping, which is another
quantity found by as many steps. The second table has the time of predictions by the number of support vectors.

A library that is not installed is left out.

    python benchmarks/peers/sequences.py            # about a minute of CPU
    python benchmarks/peers/sequences.py --quick    # 60 sequences
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("NUMBA_NUM_THREADS", "1")

import numpy as np

from pluri.sequences import SequenceSVC, TimeAlignmentKernel

LENGTH, N_FEATURES = 100, 5


def walks(n: int, seed: int = 0) -> np.ndarray:
    """Smooth random curves, (n, LENGTH, N_FEATURES)."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, LENGTH, N_FEATURES)).cumsum(axis=1) / np.sqrt(LENGTH)


def peers(X: np.ndarray, sigma: float) -> dict[str, Callable[[], Any]]:
    """What other libraries do with the same sequences, by name."""
    found: dict[str, Callable[[], Any]] = {}
    for name in ("tslearn", "aeon", "dtaidistance"):
        try:
            import_module(name)
        except ImportError:
            print(f"{name} is not installed")
    if "tslearn" in sys.modules:
        metrics = import_module("tslearn.metrics")
        found["tslearn cdist_gak"] = lambda: metrics.cdist_gak(X, sigma=sigma / np.sqrt(2))
        found["tslearn cdist_dtw"] = lambda: metrics.cdist_dtw(X)
    if "aeon" in sys.modules:
        distances = import_module("aeon.distances")
        turned = np.ascontiguousarray(X.transpose(0, 2, 1))
        found["aeon dtw_pairwise_distance"] = lambda: distances.dtw_pairwise_distance(turned)
    if "dtaidistance" in sys.modules:
        dtw = import_module("dtaidistance.dtw_ndim")
        found["dtaidistance dtw_ndim"] = lambda: dtw.distance_matrix_fast(list(X), parallel=False)
    return found


def best_of(runs: dict[str, Callable[[], Any]], n_rounds: int = 3) -> dict[str, float]:
    """CPU seconds of the fastest of some rounds, in each of which all run one after the other."""
    seconds = dict.fromkeys(runs, np.inf)
    for _ in range(n_rounds):
        for name, run in runs.items():
            begun = time.process_time()
            run()
            seconds[name] = min(seconds[name], time.process_time() - begun)
    return seconds


def compare(n: int) -> None:
    X = walks(n)
    sigma = TimeAlignmentKernel("sum", sigma="median").resolve(X).sigma
    ours = {
        "pluri, sum of paths": TimeAlignmentKernel("sum", sigma=sigma, normalize=True),
        "pluri, best path": TimeAlignmentKernel(sigma=1.0),
    }
    others = peers(X, sigma)
    small = X[:5]
    for kernel in ours.values():
        kernel(small)  # compiles
    for name, run in peers(small, sigma).items():
        answer = run()
        if name == "tslearn cdist_gak":
            difference = np.abs(answer - ours["pluri, sum of paths"](small)).max()
            print(f"largest difference from tslearn's kernel: {difference:.1e}")
    seconds = best_of({name: (lambda kernel=kernel: kernel(X)) for name, kernel in ours.items()} | others)
    print(f"\n{n} sequences of {LENGTH} frames, {N_FEATURES} features: {n * (n + 1) // 2} pairs, one thread")
    for name, value in seconds.items():
        ratios = "".join(f", {value / seconds[own]:5.1f} x {own}" for own in ours) if name not in ours else ""
        print(f"  {name:28}: {value:7.3f} s{ratios}")


def predictions(n: int) -> None:
    """Time of predictions by the number of support vectors: the price of errors changes it, twice the data less."""
    new = list(walks(20, seed=2))
    print("\npredictions of 20 sequences")
    for size, C in ((n, 0.03), (n, 1.0), (n, 100.0), (2 * n, 100.0)):
        X, y = walks(size, seed=1), np.arange(size) % 2
        X[y == 1] += 1.0
        kernel = TimeAlignmentKernel("sum", sigma=30.0, normalize=True)
        model = SequenceSVC(kernel, C=C).fit(list(X), y)
        value = best_of({"ours": lambda model=model: model.predict(new)}, 5)["ours"]
        kept = len(model.support_)
        print(f"  {size:4} training sequences, C {C:6.2f}: {kept:4} support vectors, {1000 * value:6.1f} ms")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    size = 60 if "--quick" in sys.argv else 200
    compare(size)
    predictions(size)
