"""Collapsed Gibbs sampling for latent Dirichlet allocation against tomotopy: same documents, topics and priors.

Both start from topics that know nothing of the words, priors stay fixed, and runs take turns: some sweeps of ours, some
of theirs, and so on. Tokens per second are those of the fastest turn of each (first turn left out: it compiles). The
perplexity is that of the second halves of held-out documents given the first (fold-in by the same code for both),
after 10, 30 and 100 sweeps.

    python benchmarks/peers/topics_gibbs.py               # all parts, some minutes
    python benchmarks/peers/topics_gibbs.py small cold    # single parts, by name

Parts: small (50 topics), many (1,000 topics), zipf (50 and 1,000 topics, a vocabulary like that of text), news (20
Newsgroups, if PLURI_DATA names a folder with newsgroups20_bydate.jsonl.gz), cold (seconds of the first sweep ever),
new (fold-in of new documents).
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

ALPHA, ETA = 0.1, 0.01
CHECKS = (10, 30, 100)


def drawn(n_documents: int, theta_prior: np.ndarray, phi: np.ndarray, lengths: np.ndarray, seed: int) -> Any:
    """Counts of documents that follow the model."""
    rng = np.random.default_rng(seed)
    theta = rng.dirichlet(theta_prior, size=n_documents)
    rows = []
    for proportions, length in zip(theta, lengths):
        shares = rng.multinomial(length, proportions)
        used = np.flatnonzero(shares)
        words = [rng.choice(phi.shape[1], size=n, p=phi[k]) for k, n in zip(used, shares[used])]
        rows.append(np.bincount(np.concatenate(words), minlength=phi.shape[1]))
        rows[-1] = sparse.csr_matrix(rows[-1])
    return sparse.vstack(rows, format="csr").astype(np.float64)


def synthetic() -> tuple[Any, Any]:
    """10,000 documents of 100 words, 5,000 words, 50 topics; and 1,000 held out."""
    phi = np.random.default_rng(0).dirichlet(np.full(5000, 0.05), size=50)
    X = drawn(11_000, np.full(50, ALPHA), phi, np.full(11_000, 100), 1)
    return X[:10_000], X[10_000:]


def zipfian() -> tuple[Any, Any]:
    """Words whose frequencies fall as in text, lengths that vary, 100 topics of unequal size."""
    rng = np.random.default_rng(0)
    frequency = 1.0 / (np.arange(20_000) + 10.0)
    phi = np.array([rng.dirichlet(np.maximum(300.0 * frequency / frequency.sum(), 1e-3)) for _ in range(100)])
    lengths = np.maximum(rng.lognormal(4.4, 0.7, size=11_000).astype(int), 5)
    X = drawn(11_000, 8.0 * frequency[:100] / frequency[:100].sum(), phi, lengths, 1)
    return X[:10_000], X[10_000:]


def news() -> tuple[Any, Any]:
    """20 Newsgroups by date, words of at least ten documents, stop words left out."""
    from sklearn.feature_extraction.text import CountVectorizer

    path = Path(os.environ["PLURI_DATA"]) / "newsgroups20_bydate.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf8") as file:
        rows = [json.loads(line) for line in file]
    texts = [[row["text"] for row in rows if row["split"] == split] for split in ("train", "test")]
    counter = CountVectorizer(min_df=10, stop_words="english", token_pattern=r"[a-z]{3,}")
    X = counter.fit_transform(texts[0]).astype(np.float64)
    return X, counter.transform(texts[1]).astype(np.float64)[:2000]


def kept(X: Any, held_out: Any) -> tuple[Any, Any]:
    """Only words that occur, and documents that have some: tomotopy leaves others out."""
    used = np.flatnonzero(np.asarray(X.sum(axis=0)).ravel())
    X, held_out = X[:, used], held_out[:, used]
    return X[np.diff(X.indptr) > 0], held_out[np.diff(held_out.indptr) > 3]


def words_of(X: Any, row: int) -> np.ndarray:
    entries = slice(X.indptr[row], X.indptr[row + 1])
    return np.repeat(X.indices[entries], X.data[entries].astype(int))


class Ours:
    """pluri."""

    def __init__(self, X: Any, n_topics: int, n_threads: int, seed: int = 0) -> None:
        from pluri.topics.documents import tokens_of
        from pluri.topics.lda.sampling.gibbs import CollapsedGibbs

        self.rng = np.random.default_rng(seed)
        self.kernel = CollapsedGibbs(tokens_of(X), n_topics, ALPHA, ETA, n_threads=n_threads)
        self.state = self.kernel.init(self.rng, self.kernel.start(self.rng))

    def run(self, n_sweeps: int) -> None:
        for _ in range(n_sweeps):
            self.kernel.step(self.rng, self.state)

    def topic_word(self) -> np.ndarray:
        return self.state.topic_word()


class Theirs:
    """tomotopy, with the parallel scheme that is named."""

    def __init__(self, X: Any, n_topics: int, n_threads: int, scheme: str = "NONE", seed: int = 1) -> None:
        import tomotopy

        self.model = tomotopy.LDAModel(k=n_topics, alpha=ALPHA, eta=ETA, seed=seed)
        self.model.optim_interval, self.model.burn_in = 0, 0
        rng = np.random.default_rng(0)
        for row in range(X.shape[0]):
            self.model.add_doc([str(word) for word in rng.permutation(words_of(X, row))])
        self.options = {"workers": n_threads, "parallel": getattr(tomotopy.ParallelScheme, scheme)}
        self.run(0)
        self.order = np.argsort([int(word) for word in self.model.used_vocabs])

    def run(self, n_sweeps: int) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # results with several workers are not reproducible
            self.model.train(n_sweeps, **self.options)

    def topic_word(self) -> np.ndarray:
        phi = np.array([self.model.get_topic_word_dist(k) for k in range(self.model.k)], dtype=np.float64)[
            :, self.order
        ]
        return phi / phi.sum(axis=1, keepdims=True)


def completion(phi: np.ndarray, observed: Any, scored: Any) -> float:
    """Perplexity of the scored halves."""
    from pluri.topics.lda.sampling.fold_in import fold_in

    theta = fold_in(phi, np.full(len(phi), ALPHA), observed, np.random.default_rng(0), n_sweeps=30, n_samples=20)
    value = 0.0
    for first in range(0, len(theta), 500):
        rows = scored[first : first + 500].tocoo()
        value += rows.data @ np.log((theta[first : first + 500] @ phi)[rows.row, rows.col])
    return float(np.exp(-value / scored.sum()))


def against_each_other(name: str, data: tuple[Any, Any], n_topics: int, checks: tuple[int, ...] = CHECKS) -> None:
    from pluri.topics.held_out import split_documents

    X, held_out = kept(*data)
    observed, scored = split_documents(held_out, np.random.default_rng(0))
    n_tokens = X.sum()
    runs: dict[str, Any] = {
        "ours, one thread": Ours(X, n_topics, 1),
        "theirs, one thread": Theirs(X, n_topics, 1),
        "ours, two threads": Ours(X, n_topics, 2),
        "theirs, two, copy-merge": Theirs(X, n_topics, 2, "COPY_MERGE"),
        "theirs, two, partition": Theirs(X, n_topics, 2, "PARTITION"),
    }
    Ours(X, n_topics, 1).run(1)  # compiles
    seconds: dict[str, list[float]] = {key: [] for key in runs}
    processor: dict[str, list[float]] = {key: [] for key in runs}
    perplexity: dict[str, list[float]] = {key: [] for key in runs}
    done, turn = 0, 5
    while done < checks[-1]:
        for key, run in runs.items():
            begin, begin_processor = time.perf_counter(), time.process_time()
            run.run(turn)
            seconds[key].append((time.perf_counter() - begin) / turn)
            processor[key].append((time.process_time() - begin_processor) / turn)
        done += turn
        if done in checks:
            for key, run in runs.items():
                perplexity[key].append(completion(run.topic_word(), observed, scored))
    print(f"{name}: {X.shape[0]} documents, {X.shape[1]} words, {int(n_tokens)} tokens, {n_topics} topics")
    print(
        f"  {'':26s}{'Mtokens/s':>10s}{'median':>8s}{'per cpu s':>10s}   perplexity after {', '.join(map(str, checks))}"
    )
    for key in runs:
        print(
            f"  {key:26s}{n_tokens / min(seconds[key]) / 1e6:10.1f}{n_tokens / np.median(seconds[key]) / 1e6:8.1f}"
            f"{n_tokens / np.median(processor[key]) / 1e6:10.1f}   {', '.join(f'{p:.1f}' for p in perplexity[key])}"
        )
    best, median = min, np.median
    for label, key, peers in (
        ("one thread", "ours, one thread", ["theirs, one thread"]),
        ("two threads", "ours, two threads", ["theirs, two, copy-merge", "theirs, two, partition"]),
    ):
        ratios = [min(how(seconds[peer]) for peer in peers) / how(seconds[key]) for how in (best, median)]
        ratio = min(np.median(processor[peer]) for peer in peers) / np.median(processor[key])
        print(
            f"  ratio, {label}: {ratios[0]:.2f} (fastest turns), {ratios[1]:.2f} (median), {ratio:.2f} (processor time)"
        )
    sys.stdout.flush()


def cold() -> None:
    """Seconds of the first sweep of a program when nothing is compiled yet, and when it is."""
    program = (
        "import time, numpy as np; from scipy import sparse\n"
        "from pluri.topics.documents import tokens_of; from pluri.topics.lda.sampling.gibbs import CollapsedGibbs\n"
        "X = sparse.csr_matrix(np.ones((20, 30))); kernel = CollapsedGibbs(tokens_of(X), {topics})\n"
        "b = time.perf_counter()\n"
        "rng = np.random.default_rng(0); state = kernel.init(rng, kernel.start(rng)); kernel.step(rng, state)\n"
        "print(time.perf_counter() - b)"
    )
    with tempfile.TemporaryDirectory() as folder:
        for topics in (50, 1000):
            command = [sys.executable, "-c", program.format(topics=topics)]
            times = []
            for _ in range(2):
                environment = os.environ | {"NUMBA_CACHE_DIR": folder}
                done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
                times.append(float(done.stdout))
            first, second = times
            print(f"cold: first sweep with {topics} topics {first:.1f} s, in the next program {second:.2f} s")


def new_documents() -> None:
    """Fold-in, against tomotopy's infer with as many sweeps."""
    import tomotopy

    from pluri.topics.lda.sampling.fold_in import fold_in

    X, held_out = kept(*synthetic())
    for n_topics in (50, 1000):
        theirs = Theirs(X, n_topics, 1)
        theirs.run(20)
        phi, prior = theirs.topic_word(), np.full(n_topics, ALPHA)
        documents = [
            theirs.model.make_doc([str(word) for word in words_of(held_out, row)]) for row in range(held_out.shape[0])
        ]
        fold_in(phi, prior, held_out[:10], np.random.default_rng(0))
        begin = time.perf_counter()
        fold_in(phi, prior, held_out, np.random.default_rng(0), n_sweeps=90, n_samples=10)
        ours = time.perf_counter() - begin
        begin = time.perf_counter()
        theirs.model.infer(documents, iterations=100, workers=1, parallel=tomotopy.ParallelScheme.NONE)
        ratio = (time.perf_counter() - begin) / ours
        print(f"new: {len(documents)} documents, {n_topics} topics, 100 sweeps: ratio {ratio:.1f} ({ours:.2f} s)")


def realistic() -> None:
    data = zipfian()
    against_each_other("zipf", data, 50)
    against_each_other("zipf", data, 1000, (10, 30))


def real() -> None:
    if "PLURI_DATA" not in os.environ:
        print("news: left out, PLURI_DATA is not set")
        return
    data = news()
    against_each_other("news", data, 50)
    against_each_other("news", data, 1000, (10, 30))


def seeds() -> None:
    """Perplexity after 100 sweeps over random states, as one of them says little."""
    from pluri.topics.held_out import split_documents

    X, held_out = kept(*synthetic())
    observed, scored = split_documents(held_out, np.random.default_rng(0))
    makers: dict[str, Callable[[int], Any]] = {
        "ours, one thread": lambda seed: Ours(X, 50, 1, seed),
        "ours, two threads": lambda seed: Ours(X, 50, 2, seed),
        "theirs, one thread": lambda seed: Theirs(X, 50, 1, seed=seed),
        "theirs, two, copy-merge": lambda seed: Theirs(X, 50, 2, "COPY_MERGE", seed),
        "theirs, two, partition": lambda seed: Theirs(X, 50, 2, "PARTITION", seed),
    }
    print("seeds: perplexity after 100 sweeps, 50 topics, random states 1 to 4")
    for name, make in makers.items():
        found = []
        for seed in range(1, 5):
            run = make(seed)
            run.run(100)
            found.append(completion(run.topic_word(), observed, scored))
        spread = np.std(found, ddof=1) / np.sqrt(len(found))
        print(f"  {name:24s} {np.mean(found):8.1f} +- {spread:5.1f}   {np.round(found, 1)}")


PARTS: dict[str, Callable[[], None]] = {
    "small": lambda: against_each_other("small", synthetic(), 50),
    "many": lambda: against_each_other("many", synthetic(), 1000, (10, 30)),
    "seeds": seeds,
    "zipf": realistic,
    "news": real,
    "cold": cold,
    "new": new_documents,
}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
