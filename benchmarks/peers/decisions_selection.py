"""Submodular selection beside submodlib-py and apricot: facility location, and sensors by mutual information.

Facility location chooses 100 of 3,000 rows from the same dense matrix of similarities, lazily in all three; a ratio is
printed only if the values agree to six digits. Seconds are of the CPU, on one thread, without the similarities, which
are given; apricot and ours compile first on a small problem. What is not installed is skipped. For the placement of 20
sensors among 2,000 there is no peer: its seconds stand alone.

    OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 python benchmarks/peers/decisions_selection.py
    python benchmarks/peers/decisions_selection.py --quick      # 1,000 rows and 500 places
"""

from __future__ import annotations

import sys
import time

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from pluri.decisions import GreedySelector, SensorPlacement


def rows(number: int) -> np.ndarray:
    """Rows around 30 centres."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(30, 10))[rng.integers(30, size=number)] * 2.0 + rng.normal(size=(number, 10))


def value(similarity: np.ndarray, chosen: np.ndarray) -> float:
    return float(similarity[chosen].max(axis=0).sum())


def ours(similarity: np.ndarray, size: int) -> np.ndarray:
    return GreedySelector(size, kernel="precomputed").fit(similarity).selected_


def submodlib(similarity: np.ndarray, size: int) -> np.ndarray:
    from submodlib import FacilityLocationFunction

    function = FacilityLocationFunction(
        n=len(similarity), mode="dense", sijs=similarity.astype(np.float32), separate_rep=False
    )
    found = function.maximize(budget=size, optimizer="LazyGreedy", show_progress=False, verbose=False)
    return np.array([item for item, _ in found])


def apricot(similarity: np.ndarray, size: int) -> np.ndarray:
    from apricot import FacilityLocationSelection

    model = FacilityLocationSelection(size, metric="precomputed", optimizer="lazy")
    return np.asarray(model.fit(similarity).ranking)


def main() -> None:
    quick = "--quick" in sys.argv
    number, size = (1000, 50) if quick else (3000, 100)
    similarity, small = rbf_kernel(rows(number), gamma=0.05), rbf_kernel(rows(50), gamma=0.05)
    print(f"facility location, {number} -> {size}")
    print(f"{'':<14} {'value':>14} {'CPU s':>9} {'theirs / ours':>14}")
    reference = None
    for name, run in (("pluri", ours), ("submodlib-py", submodlib), ("apricot", apricot)):
        try:
            run(small, 3)
        except Exception as error:  # not installed, or broken by the versions around it
            print(f"{name:<14} skipped: {type(error).__name__}: {str(error)[:90]}")
            continue
        begun = time.process_time()
        chosen = run(similarity, size)
        seconds = time.process_time() - begun
        reached = value(similarity, chosen)
        if reference is None:
            reference = (reached, seconds)
            print(f"{name:<14} {reached:14.6f} {seconds:9.3f}")
        else:
            agrees = abs(reached - reference[0]) <= 1e-6 * reference[0]
            ratio = f"{seconds / reference[1]:.1f}x" if agrees else "DIFFERS"
            print(f"{name:<14} {reached:14.6f} {seconds:9.3f} {ratio:>14}")
    places = np.random.default_rng(1).uniform(size=(500 if quick else 2000, 2))
    SensorPlacement(3).fit(places[:50])
    begun = time.process_time()
    model = SensorPlacement(20).fit(places)
    seconds = time.process_time() - begun
    print(f"20 sensors among {len(places)} by mutual information: {seconds:.2f} s CPU, at least ", end="")
    print(f"{100 * model.certificate_:.1f} % of the optimum")


if __name__ == "__main__":
    main()
