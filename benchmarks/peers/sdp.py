"""Semidefinite programmes beside CVXPY with SCS and with Clarabel: MAXCUT relaxations of random graphs.

A ratio is printed only where the optima agree: the peer's value must lie between our bounds, up to the peer's own
tolerance. The others are solvers of another kind, and far more accurate: the time that a gap of one per cent takes here
stands beside the time that they take at their default tolerance.

    python benchmarks/peers/sdp.py              # 20 to 100 vertices
    python benchmarks/peers/sdp.py --quick      # 20 and 50
"""

from __future__ import annotations

import sys
import time
import warnings

import cvxpy
import numpy as np

from pluri.optimize.sdp import maxcut_sdp


def random_graph(n: int, seed: int) -> np.ndarray:
    """About five edges at each vertex."""
    rng = np.random.default_rng(seed)
    C = np.triu(rng.random((n, n)) < 5 / n, 1).astype(np.float64)
    return C + C.T


def peer(C: np.ndarray, name: str) -> tuple[float, float]:
    """Value and seconds, without the time CVXPY takes to write the problem down."""
    n = len(C)
    x = cvxpy.Variable(n)
    problem = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum(x)), [cvxpy.diag(x) - (np.diag(C.sum(axis=1)) - C) / 4 >> 0])
    begun = time.perf_counter()
    problem.solve(solver=name)
    return float(problem.value), float(problem.solver_stats.solve_time or time.perf_counter() - begun)


def main() -> None:
    warnings.simplefilter("ignore")
    maxcut_sdp(random_graph(10, 0))  # compiled before the clock runs
    print(f"{'vertices':>8} {'ours: bounds':>22} {'gap %':>6} {'s':>7}   peers: value, s, ours / peer")
    for n in (20, 50) if "--quick" in sys.argv else (20, 50, 100):
        C = random_graph(n, n)
        begun = time.perf_counter()
        relaxed = maxcut_sdp(C)
        seconds = time.perf_counter() - begun
        cells = []
        for name in ("SCS", "CLARABEL"):
            if name not in cvxpy.installed_solvers():
                continue
            value, theirs = peer(C, name)
            agrees = relaxed.value - 1e-3 * value <= value <= relaxed.bound + 1e-3 * value
            cells.append(f"{name} {value:.4f}, {theirs:.3f}, {f'{seconds / theirs:.1f}x' if agrees else 'DISAGREES'}")
        bounds = f"{relaxed.value:.3f} .. {relaxed.bound:.3f}"
        print(f"{n:>8} {bounds:>22} {100 * relaxed.result.gap:6.2f} {seconds:7.2f}   {'; '.join(cells)}", flush=True)


if __name__ == "__main__":
    main()
