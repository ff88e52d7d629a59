"""pluri against hmmlearn: same data, same start, same number of sweeps, in one process.

A ratio is printed only after the fitted parameters (or the decoded paths) agree. hmmlearn has two implementations;
the faster one on the case is the one compared with. BLAS is held to one thread for both.

    python benchmarks/peers/hmm.py                # all cases (about five minutes)
    python benchmarks/peers/hmm.py long ragged    # some

The treebank case reads the real corpus from PLURI_DATA (or NLTK) if it is there, and a synthetic corpus of the same
size otherwise.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from hmmlearn import hmm as peer

from pluri.datasets import load_treebank_sample, make_zipf_tagging
from pluri.sequences import CategoricalHMM, GaussianHMM

N_REPEATS = 5
N_SWEEPS = 5
AGREEMENT = 1e-6


def best_times(*runs: Callable[[], object]) -> list[float]:
    """Shortest of several repeats of each, taken in turn: what the machine can do when nobody disturbs it."""
    times: list[list[float]] = [[] for _ in runs]
    for _ in range(N_REPEATS):
        for run, record in zip(runs, times):
            begin = time.perf_counter()
            run()
            record.append(time.perf_counter() - begin)
    return [min(record) for record in times]


def largest_difference(ours: object, theirs: object, names: tuple[str, ...]) -> float:
    return max(float(np.abs(getattr(ours, name) - getattr(theirs, name)).max()) for name in names)


def compare(
    title: str,
    make_ours: Callable[[], object],
    make_theirs: Callable[[str], object],
    X: np.ndarray,
    lengths: np.ndarray | None,
    names: tuple[str, ...],
) -> None:
    """Fit both from the same start, check, time; then decode with both, check, time."""
    ours = make_ours().fit(X, lengths=lengths)
    for implementation in ("scaling", "log"):
        difference = largest_difference(ours, make_theirs(implementation).fit(X, lengths), names)
        if not difference < AGREEMENT:
            raise SystemExit(f"{title}: parameters differ by {difference:.1e}, no ratio")
    seconds, scaling, log = best_times(
        lambda: make_ours().fit(X, lengths=lengths),
        lambda: make_theirs("scaling").fit(X, lengths),
        lambda: make_theirs("log").fit(X, lengths),
    )
    fastest, implementation = min((scaling, "scaling"), (log, "log"))
    print(
        f"{title:<58s} fit    {1e3 * seconds / N_SWEEPS:8.1f} ms/sweep  hmmlearn ({implementation}) "
        f"{1e3 * fastest / N_SWEEPS:8.1f}  ratio {fastest / seconds:5.1f}  (parameters within {difference:.0e})"
    )
    theirs = make_theirs(implementation).fit(X, lengths)
    (score, path), (peer_score, peer_path) = ours.decode(X, lengths), theirs.decode(X, lengths)
    if not np.isclose(score, peer_score, rtol=1e-9) or (path != peer_path).mean() > 1e-4:
        raise SystemExit(f"{title}: decoded paths differ, no ratio")
    seconds, peer_seconds = best_times(lambda: ours.decode(X, lengths), lambda: theirs.decode(X, lengths))
    print(
        f"{title:<58s} decode {1e3 * seconds:8.1f} ms        hmmlearn           {1e3 * peer_seconds:8.1f}  "
        f"ratio {peer_seconds / seconds:5.1f}"
    )


def gaussian_start(model: object, k: int, n_features: int) -> object:
    rng = np.random.default_rng(1)
    model.startprob_ = np.full(k, 1 / k)
    model.transmat_ = rng.dirichlet(np.full(k, 3.0), size=k)
    model.means_ = 2 * rng.normal(size=(k, n_features)) + 2
    model.covars_ = np.array([2 * np.eye(n_features)] * k)
    return model


def gaussian_case(title: str, X: np.ndarray, lengths: np.ndarray | None, n_jobs: int) -> None:
    k, n_features = 10, X.shape[1]
    settings = {
        "covariance_type": "full",
        "n_iter": N_SWEEPS,
        "tol": -np.inf,
        "init_params": "",
        # A matrix: hmmlearn adds a scalar to every entry of the scatter matrices, off the diagonal too.
        "covars_prior": 1e-2 * np.eye(n_features),
    }
    compare(
        title,
        lambda: gaussian_start(GaussianHMM(k, n_jobs=n_jobs, **settings), k, n_features),
        lambda implementation: gaussian_start(
            peer.GaussianHMM(k, implementation=implementation, **settings), k, n_features
        ),
        X,
        lengths,
        ("startprob_", "transmat_", "means_", "covars_"),
    )


def blobs(n_samples: int, n_features: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.normal(size=(n_samples, n_features)) + rng.integers(0, 5, size=(n_samples, 1))


def long_sequence() -> None:
    gaussian_case("Gaussian full, 10 states, 100,000 x 4, 1 thread", blobs(100_000, 4), None, 1)


def ragged_sequences() -> None:
    lengths = np.random.default_rng(2).integers(20, 181, size=1000)
    gaussian_case(
        "Gaussian full, 10 states, 1,000 sequences of ~100 x 4, 2 threads", blobs(int(lengths.sum()), 4), lengths, 2
    )


def treebank() -> None:
    try:
        corpus, name = load_treebank_sample(), "treebank"
        words = np.unique(corpus.X, return_inverse=True)[1].reshape(-1, 1)
        lengths = corpus.lengths
    except (FileNotFoundError, ValueError, LookupError):
        corpus, name = make_zipf_tagging(3828, mean_length=24.6, n_words=10_946, random_state=0), "synthetic corpus"
        words, lengths = corpus.X, corpus.lengths
    k, n_words = 15, int(words.max()) + 1

    def start(model: object) -> object:
        rng = np.random.default_rng(1)
        model.startprob_ = rng.dirichlet(np.ones(k))
        model.transmat_ = rng.dirichlet(np.ones(k), size=k)
        model.emissionprob_ = rng.dirichlet(np.ones(n_words), size=k)
        return model

    settings = {"n_iter": N_SWEEPS, "tol": -np.inf, "init_params": ""}
    compare(
        f"categorical, 15 states, {name} of {len(words):,} tokens, 1 thread",
        lambda: start(CategoricalHMM(k, **settings)),
        lambda implementation: start(peer.CategoricalHMM(k, implementation=implementation, **settings)),
        words,
        lengths,
        ("startprob_", "transmat_", "emissionprob_"),
    )


MEMORY_PROGRAM = """
import resource, sys
import numpy as np
from pluri.sequences import GaussianHMM
n, path = int(sys.argv[1]), sys.argv[2]
if path == "memory":
    X = np.random.default_rng(0).normal(size=(n, 1))
else:
    X = np.load(path, mmap_mode="r")
GaussianHMM(10, n_iter=1, tol=0, random_state=0).fit(X[:1000])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
GaussianHMM(10, n_iter=2, tol=0, random_state=0).fit(X)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6)
"""


def memory() -> None:
    """Peak memory of a whole program that fits one sequence, in memory and memory-mapped."""

    def peak(n: int, path: str) -> float:
        command = [sys.executable, "-c", MEMORY_PROGRAM, str(n), path]
        return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    print(f"one sequence of 10,000,000 steps, 10 states, in memory: peak {peak(10_000_000, 'memory'):.2f} GB")
    with tempfile.TemporaryDirectory() as folder:
        for n in (1_000_000, 10_000_000):
            path = os.path.join(folder, "X.npy")
            np.save(path, np.random.default_rng(0).normal(size=(n, 1)))
            print(f"{n:,} steps streamed from a file: peak {peak(n, path):.2f} GB (pages of the file included)")


FIRST_PROGRAM = """
import time
begin = time.perf_counter()
import pluri
imported = time.perf_counter() - begin
import numpy as np
from pluri.sequences import GaussianHMM
X = np.random.default_rng(0).normal(size=(300, 2))
times = []
for diversity in (None, None, 1.0, 1.0):
    begin = time.perf_counter()
    GaussianHMM(3, random_state=0, tol=1e-1, diversity=diversity).fit(X)
    times.append(time.perf_counter() - begin)
print(imported, *times)
"""


def first_call() -> None:
    """Import, and first and second fit of a small problem, with an empty and with a filled cache of compiled code."""
    with tempfile.TemporaryDirectory() as cache:
        for state in ("empty", "filled"):
            environment = os.environ | {"NUMBA_CACHE_DIR": cache}
            command = [sys.executable, "-W", "ignore", "-c", FIRST_PROGRAM]
            output = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
            imported, first, second, diverse, again = map(float, output.split())
            print(
                f"cache {state:<7s} import pluri {imported:.2f} s, first fit {first:.2f} s, second {second:.3f} s, "
                f"first with diversity {diverse:.2f} s, second {again:.3f} s"
            )


CASES = {
    "first": first_call,
    "long": long_sequence,
    "ragged": ragged_sequences,
    "treebank": treebank,
    "memory": memory,
}


def main() -> None:
    warnings.simplefilter("ignore")
    logging.getLogger("hmmlearn").setLevel(logging.ERROR)
    for name in sys.argv[1:] or CASES:
        CASES[name]()


if __name__ == "__main__":
    main()
