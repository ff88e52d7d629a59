"""Gaussian mixtures on the manifold against EM: separation grid, magic telescope, natural image patches.

Every method starts from the same k-means++ seeding and stops when a step changes the average log-likelihood by less
than 1e-6, or after 1500 steps. "Passes" are passes over the data that compute responsibilities and moments: one E- and
M-step of EM is one, a gradient is one; those of the EM steps inside L-BFGS are counted. All runs are shown.

    python benchmarks/reproduce/riemannian_mixtures.py             # a few minutes
    python benchmarks/reproduce/riemannian_mixtures.py --quick     # under one minute
    python benchmarks/reproduce/riemannian_mixtures.py --seeds 20 --parts grid

The files of the second and third part are looked for in PLURI_DATA.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
from sklearn.cluster import kmeans_plusplus

from pluri.datasets import data_home
from pluri.datasets.separated_gaussians import make_separated_gaussians
from pluri.mixtures import GaussianMixture
from pluri.mixtures.riemannian.gaussian import fit_riemannian

warnings.simplefilter("ignore")

TOL, MAX_ITER = 1e-6, 1500
METHODS = {
    "L-BFGS": {},
    "L-BFGS, 2 branches": {"branches": 2},
    "L-BFGS of the paper": {"lead": 0, "preconditioned": False},
    "CG": {"method": "cg"},
    "CG of the paper": {"method": "cg", "lead": 0, "preconditioned": False},
    "CG, original": {"method": "cg", "parametrization": "original"},
    "CG, Cholesky": {"method": "cg", "parametrization": "cholesky"},
}


def start(X, n_components, seed):
    """Seeding and assignment: fractions, means and scatters of the cells."""
    centres, _ = kmeans_plusplus(X, n_components, random_state=seed)
    labels = np.argmin((centres**2).sum(axis=1) - 2.0 * X @ centres.T, axis=1)
    pooled = np.cov(X.T, bias=True)
    weights = np.bincount(labels, minlength=n_components) / len(X)
    means = np.array([X[labels == j].mean(axis=0) for j in range(n_components)])
    covariances = np.array([
        np.cov(X[labels == j].T, bias=True) if (labels == j).sum() > 10 * X.shape[1] else pooled
        for j in range(n_components)
    ])  # fmt: skip
    return weights, means, covariances


def em(X, begin, tol=TOL, max_iter=MAX_ITER):
    """EM by the same library; returns the average log-likelihood after each pass, and the time of each."""
    weights, means, covariances = begin
    model = GaussianMixture(
        len(weights),
        weights_init=weights,
        means_init=means,
        precisions_init=np.linalg.inv(covariances),
        reg_covar=0.0,
        tol=tol,
        max_iter=max_iter + 1,
    ).fit(X)
    return model.history_.objective / len(X), np.cumsum(model.history_.seconds)


def grid(seeds, n_samples, methods):
    """Tables 2 and 3 of the paper: 20 features, separation, eccentricity, number of components."""
    print(f"\nSeparation grid: {n_samples} samples, 20 features, {seeds} data sets a case")
    print("gap = average log-likelihood minus EM's, in 1e-4 (beyond +-1: another optimum from the same start)")
    print(f"{'e':>3s} {'c':>4s} {'K':>2s} {'data':>4s} {'EM passes':>9s} {'EM':>10s} {'s':>6s}", end="")
    for name in methods:
        print(f" | {name:>18s}: passes (trials)    gap     s", end="")
    print()
    ratios, gaps = {}, {name: [] for name in methods}
    for e in (1, 10):
        for c in (0.2, 1.0, 5.0):
            for K in (2, 5):
                for seed in range(seeds):
                    data = make_separated_gaussians(n_samples, 20, K, separation=c, eccentricity=e, random_state=seed)
                    begin = start(data.X, K, seed)
                    values, seconds = em(data.X, begin)
                    print(f"{e:3d} {c:4.1f} {K:2d} {seed:4d} {len(values):9d} {values[-1]:10.5f}", end="")
                    print(f" {seconds[-1]:6.2f}", end="")
                    for name in methods:
                        begun = time.perf_counter()
                        fit = fit_riemannian(data.X, None, *begin, tol=TOL, max_iter=MAX_ITER, **METHODS[name])
                        taken = time.perf_counter() - begun
                        gap = 1e4 * (fit.lower_bound - values[-1])
                        count = f"{fit.n_evaluations} ({fit.n_trials})"
                        print(f" | {'':>18s}  {count:>15s} {gap:+6.1f} {taken:5.1f}", end="")
                        ratios.setdefault((name, e, c, K), []).append(fit.n_evaluations / len(values))
                        gaps[name].append(gap)
                    print(flush=True)
    for name in methods:
        summarize(name, ratios, np.array(gaps[name]))


def summarize(name, ratios, gaps):
    print(f"\n{name}: median ratio of its passes to EM's")
    for e in (1, 10):
        cells = [f"c={c:g}, K={K}: {np.median(ratios[name, e, c, K]):.2f}" for c in (0.2, 1.0, 5.0) for K in (2, 5)]
        print(f"  e = {e:2d}   " + "   ".join(cells))
    pooled = np.concatenate([ratios[name, 1, c, K] for c in (0.2, 1.0) for K in (2, 5)])
    print(f"  e = 1, c = 0.2 and 1 together: {np.median(pooled):.2f} (wanted: at most 0.6)")
    same, higher, lower, bad = np.abs(gaps) <= 1, gaps > 1, gaps < -1, gaps < -10
    print(f"  {len(gaps)} runs: {same.sum()} end within 1e-4 of EM, {higher.sum()} higher, {lower.sum()} lower", end="")
    print(f" (other optima from the same start); lower by more than 1e-3: {bad.sum()} (wanted: 0)")
    print(f"  worst {gaps.min() * 1e-4:+.4f}, best {gaps.max() * 1e-4:+.4f}, mean {gaps.mean() * 1e-4:+.5f}")


def table(title, X, K, seed, methods, marks):
    """Figure 3 of the paper: gap to the best after so many passes."""
    begin = start(X, K, seed)
    runs = {"EM": em(X, begin)}
    ends = {}
    for name in methods:
        fit = fit_riemannian(X, None, *begin, tol=TOL, max_iter=MAX_ITER, **METHODS[name])
        best = np.minimum.accumulate(fit.history["objective"])
        runs[name] = -best, fit.history["seconds"], fit.history["evaluations"]
        ends[name] = fit.n_evaluations, fit.n_trials, fit.lower_bound, fit.history["seconds"][-1]
    ends["EM"] = len(runs["EM"][0]), 0, runs["EM"][0][-1], runs["EM"][1][-1]
    best = max(end[2] for end in ends.values())
    print(f"\n{title}: {len(X)} samples, {X.shape[1]} features, K = {K}; gap to the best after so many passes")
    print(f"{'':<20s}" + "".join(f"{mark:>9d}" for mark in marks) + "   passes (trials)        end      s")
    for name, run in runs.items():
        passes = np.arange(1, len(run[0]) + 1) if name == "EM" else run[2]
        cells = ""
        for mark in marks:
            done = passes <= mark
            cells += f"{best - run[0][done][-1]:9.1e}" if done.any() else f"{'-':>9s}"
        n_passes, n_trials, end, seconds = ends[name]
        print(f"{name:<20s}{cells}   {n_passes:6d} ({n_trials:4d}) {end:12.5f} {seconds:6.1f}", flush=True)


def load(name):
    """Open a file of the data folder, or say that it is not there."""
    path = data_home() / name
    if not path.is_file():
        print(f"\nskipped: {path} is not there; set PLURI_DATA to the folder that has it")
        return None
    return np.load(path)


def magic(methods):
    archive = load("magic_telescope.npz")
    if archive is None:
        return
    X = np.asarray(archive["X"], dtype=np.float64)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    table("Magic telescope", X, 5, 0, methods, (5, 10, 20, 30, 50, 75, 100, 150, 200, 300))


def patches(n_samples):
    """Square patches of 6 x 6 pixels without their mean: 35 coordinates of the two-dimensional cosine transform."""
    images = []
    for name in ("test_images_gray.npz", "bsds68_gray_first24.npz"):
        archive = load(name)
        if archive is None:
            return None
        images += [np.asarray(archive[key], dtype=np.float64) / 255.0 for key in archive.files]
    rng = np.random.default_rng(0)
    angles = np.pi * (np.arange(6)[None, :] + 0.5) * np.arange(6)[:, None] / 6
    cosines = np.cos(angles) * np.sqrt(np.where(np.arange(6) == 0, 1, 2) / 6)[:, None]
    basis = np.kron(cosines, cosines)[1:]
    rows = []
    for image in images:
        count = -(-n_samples // len(images))
        top = rng.integers(0, image.shape[0] - 5, size=count)
        left = rng.integers(0, image.shape[1] - 5, size=count)
        windows = np.lib.stride_tricks.sliding_window_view(image, (6, 6))[top, left]
        rows.append(windows.reshape(count, 36) @ basis.T)
    X = np.concatenate(rows)[:n_samples]
    # Clipped skies are exactly flat: without noise their component would collapse.
    return X + rng.standard_normal(X.shape) * (0.5 / 255.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--seeds", type=int, help="data sets for each case of the grid (3; 1 if quick)")
    parser.add_argument("--samples", type=int, help="size of a data set of the grid (40000; 5000 if quick)")
    parser.add_argument("--methods", nargs="*", choices=METHODS, help="methods of the grid beside EM")
    parser.add_argument("--parts", nargs="*", default=["grid", "magic", "patches"])
    options = parser.parse_args()
    quick = options.quick
    begun = time.perf_counter()
    if "grid" in options.parts:
        methods = options.methods or (["L-BFGS"])
        grid(options.seeds or (1 if quick else 3), options.samples or (5000 if quick else 40_000), methods)
    if "magic" in options.parts:
        magic(["L-BFGS"] if quick else ["L-BFGS", "L-BFGS of the paper", "CG", "CG of the paper"])
    if "patches" in options.parts and (X := patches(8_000 if quick else 20_000)) is not None:
        marks = (5, 10, 20, 30, 50, 75, 100, 150, 200, 250)
        few = ["L-BFGS", "CG"]
        table("Natural image patches", X, 3 if quick else 8, 0, few, marks)
        if not quick:
            slow = ["L-BFGS", "CG", "CG of the paper", "CG, original", "CG, Cholesky"]
            table("Natural image patches", X[::2], 5, 0, slow, marks)
    print(f"\n({time.perf_counter() - begun:.0f} s)")


if __name__ == "__main__":
    main()
