"""Supervised topic models against tomotopy's SLDAModel: the same rated documents, topics and priors, one thread each.

Sweeps are timed in turns: some of ours, some of theirs, and so on; the ratio is that of the fastest turns (the first,
which compiles, is left out), and of processor time. Both update the coefficients after every sweep. The error is that
of ratings of new documents after the same number of sweeps, beside the variance of the ratings; theirs is given with
ratings scaled to variance one, as ours does by itself.

    python benchmarks/peers/topics_supervised.py             # a minute
    python benchmarks/peers/topics_supervised.py --quick
"""

from __future__ import annotations

import sys
import time
import warnings
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from pluri.datasets import make_rated_documents
from pluri.topics import SupervisedLDA
from pluri.topics.documents import tokens_of
from pluri.topics.supervised.gibbs import RatingsGibbs

ALPHA, ETA = 0.3, 0.1
TURN = 5


def words_of(X: Any, row: int) -> list[str]:
    entries = slice(X.indptr[row], X.indptr[row + 1])
    return [str(word) for word in np.repeat(X.indices[entries], X.data[entries])]


class Theirs:
    """SLDAModel of tomotopy, with one linear response."""

    def __init__(self, X: Any, y: np.ndarray, n_topics: int, state: int = 1, alpha: float = ALPHA) -> None:
        import tomotopy

        self.center, self.scale = y.mean(), y.std()
        self.model = tomotopy.SLDAModel(
            k=n_topics, vars="l", alpha=alpha, eta=ETA, nu_sq=[100.0], glm_param=[1.0], seed=state
        )
        # Coefficients after every sweep, as ours; alpha is not learned by it where burn_in is never over.
        self.model.optim_interval = 1
        for row in range(X.shape[0]):
            self.model.add_doc(words_of(X, row), y=[float((y[row] - self.center) / self.scale)])
        self.run(0)

    def run(self, n_sweeps: int) -> None:
        import tomotopy

        self.model.train(n_sweeps, workers=1, parallel=tomotopy.ParallelScheme.NONE)

    def predict(self, X: Any) -> np.ndarray:
        documents = [self.model.make_doc(words_of(X, row)) for row in range(X.shape[0])]
        self.model.infer(documents, iterations=100, workers=1)
        return np.array([self.model.estimate(document)[0] for document in documents]) * self.scale + self.center


class Ours:
    """The sampler behind SupervisedLDA."""

    def __init__(self, X: Any, y: np.ndarray, n_topics: int) -> None:
        self.rng = np.random.default_rng(0)
        self.kernel = RatingsGibbs(tokens_of(X), (y - y.mean()) / y.std(), np.full(n_topics, ALPHA), ETA)
        self.state = self.kernel.init(self.rng, self.kernel.start(self.rng))

    def run(self, n_sweeps: int) -> None:
        for _ in range(n_sweeps):
            self.state, _ = self.kernel.step(self.rng, self.state)


def speed(n_documents: int, n_topics: int, n_turns: int) -> None:
    coef = np.linspace(-2.0, 2.0, n_topics)
    made = make_rated_documents(n_documents, 100, 2000, coef, random_state=0)
    runs: dict[str, Any] = {
        "ours": Ours(made.counts, made.y, n_topics),
        "theirs": Theirs(made.counts, made.y, n_topics),
    }
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    processor: dict[str, list[float]] = {name: [] for name in runs}
    runs["ours"].run(1)
    for _ in range(n_turns):
        for name, run in runs.items():
            begun, begun_processor = time.perf_counter(), time.process_time()
            run.run(TURN)
            seconds[name].append((time.perf_counter() - begun) / TURN)
            processor[name].append((time.process_time() - begun_processor) / TURN)
    n_tokens = made.counts.sum()
    fastest = min(seconds["theirs"]) / min(seconds["ours"])
    work = np.median(processor["theirs"]) / np.median(processor["ours"])
    ours, theirs = (n_tokens / min(seconds[name]) / 1e6 for name in ("ours", "theirs"))
    print(
        f"{n_documents} documents, {n_tokens} tokens, {n_topics} topics: ours {ours:.2f}, theirs {theirs:.2f} million "
        f"tokens a second; ratio {fastest:.2f} (fastest turns), {work:.2f} (processor time)",
        flush=True,
    )


def error(n_sweeps: int) -> None:
    for state in range(3):
        made = make_rated_documents(400, 40, 60, random_state=state)
        X, y, new, asked = made.counts[:300], made.y[:300], made.counts[300:], made.y[300:]
        theirs = Theirs(X, y, 4)
        theirs.run(n_sweeps)
        wrong = np.mean((theirs.predict(new) - asked) ** 2)
        model = SupervisedLDA(
            4, doc_topic_prior=ALPHA, topic_word_prior=ETA, n_warmup=n_sweeps - 50, n_draws=10, thin=5, random_state=0
        ).fit(X, y)
        mine = np.mean((model.predict(new) - asked) ** 2)
        print(
            f"random state {state}: mean squared error ours {mine:.3f}, theirs {wrong:.3f}; noise 0.090, variance of "
            f"ratings {asked.var():.3f}",
            flush=True,
        )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    quick = "--quick" in sys.argv
    with threadpool_limits(1):
        error(100 if quick else 300)
        speed(500, 4, 4 if quick else 20)
        speed(500 if quick else 2000, 20, 3 if quick else 12)
        speed(500 if quick else 2000, 100, 2 if quick else 8)
