"""Time and memory against the size of the data: on one core, on two, streamed from a file, on a Dask cluster.

Each point is a process of its own, which fits a small part of the data first (so that nothing is compiled while the
clock runs; a cluster of two workers is up by then), then all of it; memory is the largest that the process, or any of
its workers, had. Work is fixed: ten
sweeps of EM for the hidden Markov model and the mixture, five passes for the topics, one choice of twenty for the
subset. The last table is a **model**, not a measurement: what a sweep would take on 10 and 100 workers, from the time
of a row, the price of a batch and the bytes that travel, all three measured here, and a network of one gigabit.

    python benchmarks/scale.py                       # about six minutes on two cores
    python benchmarks/scale.py --quick               # smaller data
    python benchmarks/scale.py --figure scale.png    # draws the curves too
"""

from __future__ import annotations

import argparse
import json
import logging
import subprocess
import sys
import tempfile
import time
import warnings
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

SIZES = {
    "hmm": [10_000, 100_000, 1_000_000, 4_000_000],
    "mixture": [10_000, 100_000, 1_000_000, 4_000_000],
    "topics": [1_000, 10_000, 100_000],
    "subset": [1_000, 10_000, 100_000],
}
QUICK = {name: sizes[:-1] for name, sizes in SIZES.items()}
WAYS = {"one core": {}, "two cores": {"n_jobs": 2}, "streamed": {"n_jobs": 2}, "dask": {"engine": "dask"}}
TITLES = {
    "hmm": "GaussianHMM, 8 states, 4 columns, 10 sweeps",
    "mixture": "GaussianMixture, 8 components, 8 columns, 10 sweeps",
    "topics": "LDA, 50 topics, documents of 100 words, 5 passes",
    "subset": "DPPSelector, 20 of n rows of 32 columns",
}
SWEEPS, PASSES, LENGTH = 10, 5, 1_000
#: Gigabit Ethernet, bytes a second.
NETWORK = 125e6


def write_data(task: str, n: int, folder: Path) -> Path:
    """A file of n rows or documents, written in parts."""
    rng = np.random.default_rng(0)
    if task == "topics":
        from scipy import sparse

        path = folder / f"{task}_{n}.npz"
        topics = rng.dirichlet(np.full(5_000, 0.05), size=50)
        edges = np.cumsum(topics, axis=1)
        rows = np.repeat(np.arange(n), 100)
        about = rng.integers(50, size=(n, 3))[rows, rng.integers(3, size=len(rows))]
        luck = rng.random(len(rows))
        words = np.empty(len(rows), dtype=np.int64)
        for topic in range(50):
            here = about == topic
            words[here] = np.minimum(np.searchsorted(edges[topic], luck[here]), 4_999)
        counts = sparse.coo_matrix((np.ones(len(rows)), (rows, words)), shape=(n, 5_000)).tocsr()
        sparse.save_npz(path, counts, compressed=False)
        return path
    n_columns = {"hmm": 4, "mixture": 8, "subset": 32}[task]
    path = folder / f"{task}_{n}.npy"
    file = np.lib.format.open_memmap(path, "w+", dtype=np.float64, shape=(n, n_columns))
    centers = rng.normal(scale=4.0, size=(8, n_columns))
    for begin in range(0, n, 100_000):
        size = min(100_000, n - begin)
        file[begin : begin + size] = centers[rng.integers(8, size=size)] + rng.normal(size=(size, n_columns))
    del file
    return path


def model_of(task: str, settings: dict[str, Any]) -> Any:
    """The estimator with a fixed amount of work."""
    if task == "hmm":
        from pluri.sequences import GaussianHMM

        return GaussianHMM(8, covariance_type="full", n_iter=SWEEPS, tol=-np.inf, random_state=0, **settings)
    if task == "mixture":
        from pluri.mixtures import GaussianMixture

        return GaussianMixture(8, max_iter=SWEEPS, tol=0.0, init_params="random_from_data", random_state=0, **settings)
    if task == "topics":
        from pluri.topics import LatentDirichletAllocation

        return LatentDirichletAllocation(50, inference="vb", max_iter=PASSES, random_state=0, **settings)
    from pluri.processes.dpp import DPPSelector

    return DPPSelector(20, random_state=0)


def fit(task: str, path: Path, way: str, n_most: int | None = None) -> None:
    """Fit the data of a file, or its first rows."""
    model = model_of(task, WAYS[way])
    if task == "topics":
        from scipy import sparse

        from pluri.topics import CountFiles

        X: Any = CountFiles(path) if way == "streamed" and n_most is None else sparse.load_npz(path)[:n_most]
        model.fit(X)
        return
    rows = np.load(path, mmap_mode="r")[:n_most]
    if task == "subset":
        model.fit(np.array(rows))
        return
    lengths = np.full(len(rows) // LENGTH, LENGTH) if task == "hmm" else None
    if way == "streamed" and n_most is None:
        from pluri.engine import NpySource

        model.fit(NpySource(path, lengths=lengths))
    elif task == "hmm":
        model.fit(np.array(rows), lengths=lengths)
    else:
        model.fit(np.array(rows))


def child(task: str, way: str, path: Path) -> None:
    """Print seconds and memory of one fit as JSON."""
    warnings.simplefilter("ignore")  # a fixed number of sweeps is not meant to be enough
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1), _cluster() if way == "dask" else nullcontext() as cluster:
        fit(task, path, way, n_most=1_000)
        began = time.perf_counter()
        fit(task, path, way)
        seconds = time.perf_counter() - began
        largest = max([_memory(), *(cluster.run(_memory).values() if cluster is not None else ())])
    print(json.dumps({"seconds": seconds, "largest": largest}))


def _cluster() -> Any:
    """Two workers that are up before the clock runs; fits find them by themselves."""
    from distributed import Client

    return Client(n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=logging.CRITICAL)


def _memory() -> float:
    """Largest memory of this process so far, MB; getrusage would count that of the program that started it."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def measure(task: str, way: str, path: Path) -> dict[str, float]:
    """Run one point in a process of its own."""
    command = [sys.executable, __file__, "--child", task, way, str(path)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    told: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return told


def ways_of(task: str) -> list[str]:
    """A subset is chosen on one core, in memory."""
    return ["one core"] if task == "subset" else list(WAYS)


def curves(sizes: dict[str, list[int]], only: list[str]) -> dict[tuple[str, str], list[tuple[int, float, float]]]:
    """Measure and print all curves: (n, seconds, MB) for each task and way."""
    found: dict[tuple[str, str], list[tuple[int, float, float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for task in only:
            print(f"\n{TITLES[task]}\n{'n':>10}  " + "".join(f"{way:>22}" for way in ways_of(task)), flush=True)
            for n in sizes[task]:
                path = write_data(task, n, Path(folder))
                line = f"{n:>10,}  "
                for way in ways_of(task):
                    told = measure(task, way, path)
                    found.setdefault((task, way), []).append((n, told["seconds"], told["largest"]))
                    line += f"{told['seconds']:>11.2f} s {told['largest']:>6.0f} MB"
                print(line, flush=True)
                path.unlink()
    return found


def price_of_a_batch() -> float:
    """Seconds that a cluster takes for each batch of a sweep beside the work: tiny batches, many and few."""
    from distributed import Client

    from pluri.engine import ArraySource, DaskEngine

    seconds = []
    with Client(n_workers=1, threads_per_worker=1, dashboard_address=None, silence_logs=logging.CRITICAL) as client:
        for n_batches in (20, 220):
            source = ArraySource(np.ones((n_batches, 1)), batch_size=1)
            with DaskEngine(client).over(source) as sweep:
                list(sweep(_size))
                began = time.perf_counter()
                for _ in range(5):
                    list(sweep(_size))
                seconds.append((time.perf_counter() - began) / 5)
    return max(seconds[1] - seconds[0], 0.0) / 200


def _size(batch: Any) -> int:
    return int(batch.n_samples)


def cluster_model(found: dict[tuple[str, str], list[tuple[int, float, float]]]) -> None:
    """Print what a sweep over a hundred million rows would take: a model of computation and communication."""
    price = price_of_a_batch()
    print(f"\nA model, not a measurement: a sweep over 100,000,000 rows; a batch costs {price:.4f} s")
    print(
        f"{'':>10}{'a row':>12}{'statistics':>14}{'a batch':>14}"
        + "".join(f"{f'{w} workers':>14}" for w in (1, 10, 100))
    )
    for task, n_states, n_columns in (("hmm", 8, 4), ("mixture", 8, 8)):
        if (task, "one core") not in found:
            continue
        n, seconds, _ = found[task, "one core"][-1]
        row = seconds / SWEEPS / n
        size = 8 * (n_states * (1 + n_columns + n_columns**2) + n_states**2)
        for batch in (100_000, 1_000_000):
            times = [cluster_seconds(row, price, size, workers, batch=batch) for workers in (1, 10, 100)]
            line = f"{task:>10}{row * 1e9:>9.0f} ns{size:>12} B{batch:>14,}"
            print(line + "".join(f"{one:>12.2f} s" for one in times))


def cluster_seconds(row: float, price: float, size: int, workers: int, *, batch: float, n: float = 1e8) -> float:
    """Rows shared among workers, while one scheduler hands out all batches and takes all answers."""
    n_batches = n / batch
    computing = row * batch * np.ceil(n_batches / workers)
    handing_out = n_batches * (price + size / NETWORK) + workers * size / NETWORK
    return float(max(computing, handing_out) + row * batch)


def draw(found: dict[tuple[str, str], list[tuple[int, float, float]]], path: Path) -> None:
    """Seconds above, memory below, a column for each task."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    tasks = list(dict.fromkeys(task for task, _ in found))
    figure, axes = plt.subplots(2, len(tasks), figsize=(3.4 * len(tasks), 5.6), squeeze=False, layout="constrained")
    for column, task in enumerate(tasks):
        for way in ways_of(task):
            n, seconds, memory = zip(*found[task, way])
            axes[0, column].loglog(n, seconds, "o-", label=way, markersize=4)
            axes[1, column].semilogx(n, memory, "o-", label=way, markersize=4)
        axes[0, column].set_title(TITLES[task].replace(", ", "\n", 1), fontsize=9)
        axes[1, column].set_ylim(bottom=0)
        axes[1, column].set_xlabel("rows" if task != "topics" else "documents")
    axes[0, 0].set_ylabel("seconds")
    axes[1, 0].set_ylabel("memory, MB")
    axes[0, 0].legend(fontsize=8)
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tasks", nargs="*", help=f"some of {', '.join(SIZES)}")
    parser.add_argument("--quick", action="store_true", help="without the largest size")
    parser.add_argument("--figure", type=Path, help="where to draw the curves")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        task, way, path = arguments.child
        child(task, way, Path(path))
        return
    found = curves(QUICK if arguments.quick else SIZES, arguments.tasks or list(SIZES))
    cluster_model(found)
    if arguments.figure:
        draw(found, arguments.figure)


if __name__ == "__main__":
    main()
