"""pluri's mixtures against the best peers: same data, same starting values, same number of iterations.

A ratio is printed only after both packages' parameters agree. Times are the best of several repeats taken in turn.

    python benchmarks/peers/mixtures.py                  # all parts, about five minutes
    python benchmarks/peers/mixtures.py gaussian gibbs   # single parts, by name

Parts: gaussian (scikit-learn, one thread and two), missing (what it costs), variational (scikit-learn's
BayesianGaussianMixture), bernoulli (sparse EM), gibbs (collapsed, Bernoulli), process (Dirichlet process, collapsed).
pymanopt's conjugate gradients are in manifold, if it is installed.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits


def seconds(run: Callable[..., object], *arguments: object) -> float:
    begin = time.perf_counter()
    run(*arguments)
    return time.perf_counter() - begin


def per_iteration(make: Callable[..., Any], X: Any, n_iterations: int = 10, n_repeats: int = 3) -> float:
    """Shortest time of one iteration: a long fit minus a short one, so that starting values do not count."""
    times = [
        seconds(make(max_iter=n_iterations + 2).fit, X) - seconds(make(max_iter=2).fit, X) for _ in range(n_repeats)
    ]
    return min(times) / n_iterations


def blobs(n: int, d: int, k: int, spread: float = 2.0) -> np.ndarray:
    rng = np.random.default_rng(0)
    return spread * rng.normal(size=(k, d))[rng.integers(k, size=n)] + rng.normal(size=(n, d))


def gaussian_start(X: np.ndarray, k: int) -> dict[str, object]:
    d = X.shape[1]
    rows = np.random.default_rng(1).choice(len(X), k, replace=False)
    return {
        "weights_init": np.full(k, 1.0 / k),
        "means_init": X[rows],
        "precisions_init": np.tile(np.eye(d), (k, 1, 1)),
        "tol": 0.0,
        "reg_covar": 0.0,
    }


def gaussian() -> None:
    from sklearn.mixture import GaussianMixture as Theirs

    from pluri.mixtures import GaussianMixture as Ours

    for n, d, k in ((100_000, 10, 20), (100_000, 30, 10), (20_000, 2, 5)):
        X = blobs(n, d, k)
        start = gaussian_start(X, k)
        a, b = Theirs(k, max_iter=12, **start).fit(X), Ours(k, max_iter=12, **start).fit(X)
        gap = max(
            float(abs(getattr(a, name) - getattr(b, name)).max()) for name in ("means_", "covariances_", "weights_")
        )
        assert gap < 1e-6, gap
        times = {}
        for threads in (1, 2):
            with threadpool_limits(threads):
                times["theirs", threads] = per_iteration(partial(Theirs, k, **start), X)
                times["ours", threads] = per_iteration(partial(Ours, k, n_jobs=threads, **start), X)
        one, two = times["ours", 1], times["ours", 2]
        slow, fast = times["theirs", 1], times["theirs", 2]
        print(
            f"gaussian {n} x {d}, {k} components, an EM iteration: pluri {1e3 * one:.1f} ms (two threads "
            f"{1e3 * two:.1f}), scikit-learn {1e3 * slow:.1f} ms (two BLAS threads {1e3 * fast:.1f}); ratios: one "
            f"thread {slow / one:.1f}, our two against its one {slow / two:.1f}, against its two {fast / two:.1f}; "
            f"parameters differ by {gap:.0e}",
            flush=True,
        )


def missing() -> None:
    from pluri.mixtures import GaussianMixture

    X = blobs(100_000, 10, 20)
    start = gaussian_start(X, 20)
    holes = X.copy()
    holes[np.random.default_rng(2).random(X.shape) < 0.01] = np.nan
    times = [per_iteration(partial(GaussianMixture, 20, **start), data, 4, 2) for data in (X, holes)]
    print(
        f"missing 100000 x 10, 1 % of the values: an iteration {1e3 * times[1]:.0f} ms, without {1e3 * times[0]:.0f} ms"
    )


def variational() -> None:
    from sklearn.mixture import BayesianGaussianMixture

    from pluri.mixtures import DirichletProcessMixture

    X = blobs(20_000, 4, 8, spread=4.0)
    theirs = seconds(BayesianGaussianMixture(n_components=20, max_iter=100, tol=1e-4, random_state=0).fit, X)
    make = partial(DirichletProcessMixture, inference="vb", max_components=20, max_iter=100, random_state=0)
    make().fit(X)
    ours = seconds(make().fit, X)
    print(
        f"variational 20000 x 4, 20 components: pluri {ours:.2f} s, scikit-learn {theirs:.2f} s, "
        f"ratio {theirs / ours:.1f}",
        flush=True,
    )


def sparse_rows(n: int, d: int, density: float) -> sparse.csr_matrix:
    rng = np.random.default_rng(0)
    X = sparse.random(n, d, density, format="csr", rng=rng)
    X.data[:] = 1.0
    return X


def bernoulli() -> None:
    from pluri.mixtures import BernoulliMixture

    X = sparse_rows(100_000, 2_000, 0.01)
    make = partial(BernoulliMixture, 50, tol=0.0, init_params="random", random_state=0)
    make(max_iter=1).fit(X)
    for threads in (1, 2):
        one = per_iteration(partial(make, n_jobs=threads), X, 5, 2)
        print(
            f"bernoulli 100000 x 2000, 1 % ones, 50 components: an EM pass {one:.2f} s on {threads} thread(s)",
            flush=True,
        )


def gibbs() -> None:
    from pluri.mixtures import BayesianBernoulliMixture

    X = sparse_rows(20_000, 2_000, 0.01)
    for k in (20, 50, 200):
        make = partial(BayesianBernoulliMixture, k, n_chains=1, n_warmup=0, random_state=0)
        make(n_draws=1).fit(X)
        took = seconds(make(n_draws=12).fit, X) - seconds(make(n_draws=2).fit, X)
        print(f"gibbs Bernoulli, {k} components: {10 * X.nnz / took / 1e6:.2f} million nonzeros a second", flush=True)


def process() -> None:
    from pluri.mixtures import DirichletProcessMixture

    X = blobs(10_000, 4, 12, spread=4.0)
    make = partial(
        DirichletProcessMixture, inference="gibbs", n_warmup=0, thin=1, n_chains=1, init_clusters=12, random_state=0
    )
    make(n_draws=1).fit(X)
    took = seconds(make(n_draws=12).fit, X) - seconds(make(n_draws=2).fit, X)
    print(f"process 10000 x 4: a collapsed Gibbs sweep (with split-merge) {took / 10:.3f} s", flush=True)


def manifold() -> None:
    """Riemannian L-BFGS on the reformulated likelihood against pymanopt's conjugate gradients on the same."""
    try:
        import pymanopt  # noqa: F401
    except ImportError:
        print("manifold: pymanopt is not installed")
        return
    from manifold_peer import compare

    compare()


PARTS = {part.__name__: part for part in (gaussian, missing, variational, bernoulli, gibbs, process, manifold)}

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for name in sys.argv[1:] or PARTS:
        PARTS[name]()
