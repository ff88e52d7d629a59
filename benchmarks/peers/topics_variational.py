"""pluri's variational LDA against scikit-learn's and gensim's: same documents, same start, same tolerance.

A ratio is printed only after both packages' topics and bounds agree. Times are per pass over the documents.

    python benchmarks/peers/topics_variational.py               # all parts, about six minutes on two cores
    python benchmarks/peers/topics_variational.py batch bars    # single parts, by name

Parts: cold (the first call of a process without a compilation cache), batch (scikit-learn, one thread and two), gensim
(an E-step, if gensim is installed), starts (where documents start, and what the bound makes of it), bars (the 5 x 5
bars), stream (a million documents from disk, in constant memory).
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from threadpoolctl import threadpool_limits

from pluri.engine import resolve_engine
from pluri.inference.variational import RobbinsMonro
from pluri.topics.lda.streaming import CountFiles, write_counts
from pluri.topics.lda.topic_priors import TopicPriors
from pluri.topics.lda.variational.batch import fit_batch
from pluri.topics.lda.variational.document_step import (
    SCIKIT_LEARN_EPSILON,
    DocumentStep,
    approximate_bound,
    document_bounds,
    local_factors,
)
from pluri.topics.lda.variational.factors import Topics
from pluri.topics.lda.variational.online import fit_online

N_TOPICS, N_WORDS, LENGTH = 50, 5000, 100
AS_SCIKIT_LEARN: dict[str, Any] = {"step": DocumentStep(epsilon=SCIKIT_LEARN_EPSILON), "document_start": "random"}


def true_topics() -> np.ndarray:
    return np.random.default_rng(0).dirichlet(np.full(N_WORDS, 0.05), N_TOPICS)


def documents(n_documents: int, seed: int, chunk: int = 20_000) -> Iterator[Any]:
    """LDA documents of 100 words, in batches."""
    rng, edges = np.random.default_rng(seed), np.cumsum(true_topics(), axis=1)
    for begin in range(0, n_documents, chunk):
        n = min(chunk, n_documents - begin)
        shares = rng.dirichlet(np.full(N_TOPICS, 0.1), n)
        per_topic = np.array([rng.multinomial(LENGTH, share) for share in shares])
        rows, words = [], []
        for topic in range(N_TOPICS):
            owners = np.repeat(np.arange(n), per_topic[:, topic])
            rows.append(owners)
            words.append(np.minimum(np.searchsorted(edges[topic], rng.random(owners.size)), N_WORDS - 1))
        places = np.concatenate(rows), np.concatenate(words)
        yield sparse.csr_matrix((np.ones(n * LENGTH), places), shape=(n, N_WORDS))


def peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def cold() -> None:
    code = (
        "import time, numpy as np; from scipy import sparse; t = time.perf_counter();"
        "from pluri.topics.lda.variational.batch import fit_batch;"
        "from pluri.topics.lda.topic_priors import TopicPriors;"
        "u = time.perf_counter();"
        "fit_batch(sparse.csr_matrix(np.eye(20)), TopicPriors.checked(3, 20), max_iter=2, tol=-1, random_state=0);"
        "print(f'{u - t:.2f} s to import, {time.perf_counter() - u:.2f} s for the first fit')"
    )
    with tempfile.TemporaryDirectory() as cache:
        for label in ("without a compilation cache", "with it"):
            run = subprocess.run(
                [sys.executable, "-c", code], env=os.environ | {"NUMBA_CACHE_DIR": cache}, capture_output=True,
                text=True,
                check=True,
            )  # fmt: skip
            print(f"first call {label}: {run.stdout.strip()}")


class Stopwatch:
    """Times of passes: of the processor with one thread, which other programs do not lengthen, else of the wall."""

    def __init__(self, n_jobs: int) -> None:
        self.clock = time.process_time if n_jobs == 1 else time.perf_counter
        self.ticks = [self.clock()]

    def __call__(self, state: object = None) -> None:
        self.ticks.append(self.clock())

    @property
    def per_pass(self) -> float:
        """Mean over the passes but the first."""
        return (self.ticks[-1] - self.ticks[1]) / (len(self.ticks) - 2)


def batch(n_passes: int = 4) -> None:
    from sklearn.decomposition import LatentDirichletAllocation

    class Theirs(LatentDirichletAllocation):
        """Tells when a pass is over; the last reading of the documents, for the bound, is not counted."""

        def _em_step(self, *arguments: Any, **options: Any) -> None:
            super()._em_step(*arguments, **options)
            self.watch_()

    X = next(documents(10_000, seed=1))
    priors, n_tokens = TopicPriors.checked(N_TOPICS, N_WORDS), X.sum()
    print(
        f"batch: {X.shape[0]} documents of {LENGTH} words, {N_WORDS} words, {N_TOPICS} topics, passes 2 to {n_passes}"
    )
    fit_batch(X[:200], priors, max_iter=1, random_state=0)  # compile
    for n_jobs in (1, 2):
        with threadpool_limits(1):
            theirs = Theirs(N_TOPICS, max_iter=n_passes, learning_method="batch", random_state=0, n_jobs=n_jobs)
            theirs.watch_ = Stopwatch(n_jobs)
            theirs.fit(X)
        peer = theirs.watch_.per_pass
        bound = approximate_bound(theirs.components_, X, priors, step=AS_SCIKIT_LEARN["step"])
        for name, options in {"as scikit-learn": AS_SCIKIT_LEARN, "default": {}}.items():
            watch = Stopwatch(n_jobs)
            fit = fit_batch(
                X,
                priors,
                max_iter=n_passes,
                tol=-1,
                random_state=0,
                engine=resolve_engine(n_jobs=n_jobs),
                on_iteration=watch,
                **options,
            )
            ours = watch.per_pass
            reached = approximate_bound(fit.components, X, priors, step=AS_SCIKIT_LEARN["step"])
            if name == "as scikit-learn" and n_jobs == 1:
                apart = np.abs(fit.components / theirs.components_ - 1).max()
                print(f"  lambda: largest relative difference {apart:.1e}")
            # With two processes scikit-learn draws other starts, and our default takes none: other maxima.
            gap = (reached - bound) / abs(bound)
            assert gap > (-1e-6 if n_jobs == 1 else -5e-3), f"bounds differ: {reached} and {bound}"
            print(
                f"  n_jobs={n_jobs} {name:16s} ours {ours:6.3f} s/pass, scikit-learn {peer:6.3f} s/pass: "
                f"{peer / ours:5.1f}x; bound {reached:.0f} against {bound:.0f} ({gap:+.1e}), perplexity "
                f"{np.exp(-reached / n_tokens):.1f} against {theirs.bound_:.1f}"
            )


def gensim() -> None:
    try:
        from gensim.matutils import Sparse2Corpus
        from gensim.models import LdaModel
    except ImportError:
        print("gensim: not installed")
        return
    X = next(documents(2000, seed=1))
    names = {i: str(i) for i in range(N_WORDS)}
    model = LdaModel(
        id2word=names, num_topics=N_TOPICS, iterations=100, gamma_threshold=1e-3, random_state=0, dtype=np.float64
    )
    chunk = list(Sparse2Corpus(X.T))
    priors = TopicPriors.checked(N_TOPICS, N_WORDS)
    lambdas = fit_batch(X, priors, max_iter=3, tol=-1, random_state=0).components
    model.expElogbeta = np.ascontiguousarray(Topics.from_components(lambdas).table[:, :N_TOPICS].T)
    model.expElogbeta *= np.exp(Topics.from_components(lambdas).top)
    begin = time.perf_counter()
    gamma, _ = model.inference(chunk, collect_sstats=True)
    peer = time.perf_counter() - begin
    begin = time.perf_counter()
    found = local_factors(Topics.from_components(lambdas), priors.doc_topic, X)
    ours = time.perf_counter() - begin
    theirs = document_bounds(lambdas, X, priors.doc_topic, gamma=gamma.astype(np.float64)).sum()
    print(
        f"gensim: E-step of {X.shape[0]} documents, one thread: ours {ours:.3f} s, gensim {peer:.3f} s: "
        f"{peer / ours:.1f}x; bound {found.bounds.sum():.0f} against {theirs:.0f}"
    )


def starts() -> None:
    X, priors = next(documents(3000, seed=1)), TopicPriors.checked(N_TOPICS, N_WORDS)
    print("starts: where documents start in each pass, 3000 documents, 30 passes")
    for name in ("previous", "ones", "settling"):
        fit = fit_batch(X, priors, max_iter=30, tol=1e-5, random_state=0, document_start=name)
        seconds = sum(row.seconds for row in fit.history)
        print(f"  {name:9s} bound {fit.bound:.0f}, least gain {np.diff(fit.trace).min():.1f}, {seconds:.1f} s")


def bars() -> None:
    grid = np.eye(5)
    truth = np.array([np.outer(grid[i], np.ones(5)).ravel() for i in range(5)])
    truth = np.vstack([truth, [np.outer(np.ones(5), grid[i]).ravel() for i in range(5)]]) / 5.0
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.full(10, 0.1), 1000)
    X = sparse.csr_matrix(np.array([rng.multinomial(100, share @ truth) for share in shares]).astype(float))
    priors, n_tokens = TopicPriors.checked(10, 25, 0.1, 0.01), 100_000
    ideal = np.exp(
        -(X.toarray() * np.log(shares @ truth, where=X.toarray() > 0, out=np.zeros(X.shape))).sum() / n_tokens
    )
    print(
        f"bars: perplexity of the bound (true model {ideal:.2f}) and mean L1 error of matched topics, three starts each"
    )
    ways: dict[str, Any] = {
        "batch, random": lambda seed: fit_batch(X, priors, max_iter=100, tol=-1, random_state=seed),
        "batch, random, previous": lambda seed: fit_batch(
            X, priors, max_iter=100, tol=-1, random_state=seed, document_start="previous"
        ),
        "batch, documents": lambda seed: fit_batch(
            X, priors, max_iter=100, tol=-1, random_state=seed, start="documents"
        ),
        "online, random": lambda seed: fit_online(X, priors, batch_size=64, max_iter=10, random_state=seed),
        "online, documents": lambda seed: fit_online(
            X, priors, batch_size=64, max_iter=10, random_state=seed, start="documents"
        ),
    }
    for name, fit in ways.items():
        perplexities, errors = [], []
        for seed in range(3):
            components = fit(seed).components
            perplexities.append(np.exp(-approximate_bound(components, X, priors) / n_tokens))
            distance = np.abs((components / components.sum(axis=1, keepdims=True))[:, None] - truth[None]).sum(axis=2)
            errors.append(distance[linear_sum_assignment(distance)].mean())
        shown = ", ".join(f"{value:.2f} ({error:.2f})" for value, error in zip(perplexities, errors))
        print(f"  {name:24s} {shown}")


def stream(n_documents: int = 1_000_000) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for n in (n_documents // 10, n_documents):
            begin = time.perf_counter()
            subprocess.run([sys.executable, __file__, "--write", folder, str(n)], check=True)
            size = sum(os.path.getsize(os.path.join(folder, name)) for name in os.listdir(folder)) / 2**20
            print(f"stream: {n} documents, {size:.0f} MB on disk, written in {time.perf_counter() - begin:.0f} s")
            subprocess.run([sys.executable, __file__, "--fit", folder], check=True)


def write(folder: str, n_documents: int) -> None:
    write_counts(folder, documents(n_documents, seed=2))


def fit_stream(folder: str) -> None:
    from sklearn.decomposition import LatentDirichletAllocation as Theirs

    priors, held_out = TopicPriors.checked(N_TOPICS, N_WORDS), next(documents(2000, seed=3))
    fit_online(held_out[:200], priors, max_iter=1, random_state=0)  # compile
    source, before = CountFiles(folder, batch_size=4096), peak_megabytes()
    begin = time.perf_counter()
    fit = fit_online(source, priors, max_iter=1, random_state=0, n_jobs=2, schedule=RobbinsMonro(0.7, 10.0))
    seconds, after = time.perf_counter() - begin, peak_megabytes()

    def perplexity(components: np.ndarray) -> float:
        return float(np.exp(-document_bounds(components, held_out, priors.doc_topic).sum() / held_out.sum()))

    some = next(iter(CountFiles(folder, batch_size=4096).batches())).load().X
    unigram = np.asarray(some.sum(axis=0)).ravel() + 0.01
    alone = np.exp(-(held_out @ np.log(unigram / unigram.sum())).sum() / held_out.sum())
    print(
        f"  one pass of {source.n_documents} documents in {seconds:.1f} s, two threads "
        f"({source.n_documents / seconds:.0f} per second), {fit.n_steps} steps; peak memory {after:.0f} MB, "
        f"of which {after - before:.0f} MB for the fit"
    )
    print(
        f"  held-out perplexity of the bound {perplexity(fit.components):.1f} (one topic {alone:.1f}, true topics "
        f"{perplexity(1e6 * true_topics() + 1e-3):.1f})"
    )
    begin = time.perf_counter()
    Theirs(N_TOPICS, random_state=0, batch_size=4096, total_samples=source.n_documents, n_jobs=2).partial_fit(some)
    rate = some.shape[0] / (time.perf_counter() - begin)
    print(f"  scikit-learn's partial_fit on {some.shape[0]} documents, n_jobs=2: {rate:.0f} per second")


def main(names: list[str]) -> None:
    if names[:1] == ["--write"]:
        write(names[1], int(names[2]))
        return
    if names[:1] == ["--fit"]:
        fit_stream(names[1])
        return
    parts = {part.__name__: part for part in (cold, batch, gensim, starts, bars, stream)}
    for name in names or list(parts):
        parts[name]()


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(sys.argv[1:])
