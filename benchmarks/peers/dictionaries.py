"""pluri's dictionary beside scikit-learn's and spams: time to the same reconstruction error of patches of pictures.

5,000 patches of 8 x 8 of scikit-learn's two sample pictures, each without its mean, in units of their standard
deviation, and 128 atoms. spams makes one pass (a penalty of 0.15 times the length of an average patch), and its
relative reconstruction error is what the others have to reach: pluri's chain and variational Bayes with as many sweeps
as that takes, scikit-learn's `MiniBatchDictionaryLearning` in as many passes. CPU seconds of one thread; compiled code
is ready.

    python benchmarks/peers/dictionaries.py            # all parts, about two minutes
    python benchmarks/peers/dictionaries.py sweep      # seconds of one sweep of the Gibbs sampler
    python benchmarks/peers/dictionaries.py error      # time to the same error

spams is optional (``pip install spams-bin``); without it the error to reach is that of scikit-learn after one pass.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("NUMBA_NUM_THREADS", "1")

import numpy as np

N_PATCHES, SIDE, N_ATOMS = 5000, 8, 128
#: Weight of the absolute values of the codes, in spams and in scikit-learn, for patches whose mean square is 1.
PENALTY = 0.15 * SIDE


def patches(n: int = N_PATCHES, seed: int = 0) -> np.ndarray:
    """Patches of the sample pictures, without their means, in units of their standard deviation."""
    from sklearn.datasets import load_sample_images

    rng = np.random.default_rng(seed)
    pictures = [picture.mean(axis=2) for picture in load_sample_images().images]
    found = []
    for _ in range(n):
        picture = pictures[rng.integers(len(pictures))]
        row, column = (rng.integers(length - SIDE) for length in picture.shape)
        found.append(picture[row : row + SIDE, column : column + SIDE].ravel())
    X = np.array(found)
    X -= X.mean(axis=1, keepdims=True)
    return X / X.std()


def seconds(run: Callable[[], Any]) -> tuple[float, Any]:
    begin = time.process_time()
    result = run()
    return time.process_time() - begin, result


def error(X: np.ndarray, rows: np.ndarray) -> float:
    return float(np.linalg.norm(X - rows) / np.linalg.norm(X))


def sweep() -> None:
    """Seconds of a sweep of the collapsed Gibbs sampler, in single and double precision, with missing values or not."""
    from pluri.factors.dictionaries.gibbs import DictionaryGibbs
    from pluri.factors.dictionaries.records import Rows
    from pluri.factors.dictionaries.start import start_dictionary
    from pluri.factors.dictionaries.usage import BetaProcessUsage

    for share in (0.0, 0.5):
        for dtype in (np.float64, np.float32):
            rng = np.random.default_rng(0)
            X = patches() + 0.3 * rng.standard_normal((N_PATCHES, SIDE**2))
            X[rng.random(X.shape) < share] = np.nan
            rows, usage = Rows.of(X, dtype), BetaProcessUsage(N_PATCHES, N_ATOMS)
            kernel = DictionaryGibbs(rows, usage, N_ATOMS)
            state = kernel.init(rng, start_dictionary(rng, rows, usage, N_ATOMS))
            times = []
            for _ in range(30):
                spent, (state, _info) = seconds(lambda state=state, kernel=kernel, rng=rng: kernel.step(rng, state))
                times.append(spent)
            per_row = state.position.used.sum() / N_PATCHES
            print(
                f"sweep   {np.dtype(dtype).name}, {share:.0%} missing: {np.median(times[10:]):.3f} s, "
                f"{per_row:.1f} atoms per row",
                flush=True,
            )


def by_spams(X: np.ndarray) -> tuple[float, float] | None:
    try:
        import spams
    except ImportError:
        return None
    columns = np.asfortranarray(X.T)
    settings = {"lambda1": PENALTY, "numThreads": 1}

    def run() -> Any:
        D = spams.trainDL(
            columns, K=N_ATOMS, iter=N_PATCHES // 512 + 1, batchsize=512, mode=2, verbose=False, **settings
        )
        return D @ spams.lasso(columns, D=D, mode=2, **settings).toarray()

    run()
    spent, rows = seconds(run)
    return spent, error(X, rows.T)


def by_scikit_learn(X: np.ndarray, n_steps: int) -> tuple[float, float]:
    from sklearn.decomposition import MiniBatchDictionaryLearning

    learner = MiniBatchDictionaryLearning(
        N_ATOMS, alpha=PENALTY, batch_size=512, max_iter=n_steps, transform_algorithm="lasso_lars",
        transform_alpha=PENALTY, random_state=0, tol=0.0, max_no_improvement=None,
    )  # fmt: skip
    spent, rows = seconds(lambda: learner.fit_transform(X) @ learner.components_)
    return spent, error(X, rows)


def by_pluri(X: np.ndarray, goal: float, inference: str) -> tuple[float, float, int]:
    """Seconds of the whole fit with the fewest sweeps, of some numbers, that reach the goal."""
    from pluri.factors import BetaProcessDictionary

    for n in (5, 10, 15, 20, 30, 40, 60, 80, 120):
        model = BetaProcessDictionary(
            N_ATOMS, inference=inference, n_warmup=n, n_draws=5, max_iter=n, tol=0.0, dtype="float32", random_state=0
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X) if n == 5 else None  # compiles
            spent, _ = seconds(lambda model=model: model.fit(X))
        reached = error(X, model.reconstruction_)
        if reached <= goal:
            break
    return spent, reached, n


def to_the_same_error() -> None:
    X = patches()
    peer = by_spams(X)
    if peer is None:
        print("spams is not installed: pip install spams-bin")
        peer = by_scikit_learn(X, 1)
    else:
        print(f"spams, one pass                   {peer[0]:8.2f} s   error {peer[1]:.4f}", flush=True)
    goal = peer[1]
    theirs = None
    for n_steps in (1, 2, 4):
        theirs = by_scikit_learn(X, n_steps)
        print(f"scikit-learn, {n_steps} passes            {theirs[0]:8.2f} s   error {theirs[1]:.4f}", flush=True)
        if theirs[1] <= goal:
            break
    for inference in ("gibbs", "vb"):
        spent, reached, n = by_pluri(X, goal, inference)
        kept = "" if reached <= goal else "  NOT REACHED"
        print(f"pluri, {inference}, {n} sweeps{'':>14s}{spent:8.2f} s   error {reached:.4f}{kept}", flush=True)
        ratios = spent / peer[0], theirs[0] / spent
        print(f"    {ratios[0]:.1f} times the time of spams; scikit-learn takes {ratios[1]:.1f} times ours")


PARTS: dict[str, Callable[[], None]] = {"sweep": sweep, "error": to_the_same_error}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
