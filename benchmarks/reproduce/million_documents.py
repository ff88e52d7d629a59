"""A million short documents through the whole command: count, fit, page; time and memory.

``python benchmarks/reproduce/million_documents.py`` writes a million generated documents of 15 words with dates into a
gzip file, runs ``pluri topics --stream --date`` on it in a process of its own, and prints processor time, wall time,
peak memory and the size of the page. ``--documents 50000`` is the quick form; two sizes side by side show that memory
does not grow with the number of documents.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

N_TOPICS, N_WORDS, LENGTH, WEEKS = 50, 20_000, 15, 104
FIRST = np.datetime64("2023-01-02")


def write_documents(path: Path, n_documents: int, seed: int = 0) -> None:
    """Documents of one or two topics each, in the order of their dates."""
    rng = np.random.default_rng(seed)
    words = np.array(["".join(rng.choice(list("abcdefghijklmnopqrstuvwxyz"), 7)) for _ in range(N_WORDS)])
    topics = [np.cumsum(rng.dirichlet(np.full(N_WORDS, 0.02))) for _ in range(N_TOPICS)]
    with gzip.open(path, "wt", compresslevel=1, encoding="utf-8") as file:
        for begin in range(0, n_documents, 10_000):
            n_batch = min(10_000, n_documents - begin)
            about = rng.integers(N_TOPICS, size=(n_batch, 2))
            second = rng.random((n_batch, LENGTH)) < 0.3
            luck = rng.random((n_batch, LENGTH))
            columns = np.empty((n_batch, LENGTH), dtype=np.int64)
            for topic, cumulated in enumerate(topics):
                here = np.where(second, about[:, 1:], about[:, :1]) == topic
                columns[here] = np.minimum(np.searchsorted(cumulated, luck[here]), N_WORDS - 1)
            days = FIRST + (7 * WEEKS * (begin + np.arange(n_batch)) // max(n_documents, 1))
            for row, day in zip(columns, days):
                file.write(json.dumps({"text": " ".join(words[row]), "day": str(day)}) + "\n")


def run(n_documents: int, keep: Path | None) -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = keep or Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        corpus, page, model = place / "documents.jsonl.gz", place / "page.html", place / "model.skops"
        write_documents(corpus, n_documents)
        command = [sys.executable, "-m", "pluri", "topics", str(corpus), "--stream", "-k", str(N_TOPICS),
                   "--date", "day", "-o", str(model), "-r", str(page), "--force", "--quiet", "--json"]  # fmt: skip
        began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True, env=os.environ)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        told = json.loads(done.stdout)
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        wall = time.perf_counter() - began
        print(
            f"{n_documents:>9,} documents ({corpus.stat().st_size / 1e6:.0f} MB zipped), {told['tokens']:,} tokens: "
            f"{seconds:.0f} s of processor time ({told['seconds']:.0f} s of fit), {wall:.0f} s in "
            f"all, {after.ru_maxrss / 1024:.0f} MB at most, page {page.stat().st_size / 1e6:.1f} MB",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", type=int, nargs="+", default=[1_000_000])
    parser.add_argument("--quick", action="store_true", help="fifty thousand documents")
    parser.add_argument("--keep", type=Path, help="folder that keeps documents, model and page")
    arguments = parser.parse_args()
    for n_documents in [50_000] if arguments.quick else arguments.documents:
        run(n_documents, arguments.keep)


if __name__ == "__main__":
    main()
