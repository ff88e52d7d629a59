"""pluri's HDP topic model against tomotopy's and gensim's: the same corpora, one thread, each with its own sampler.

Bars (5 x 5 grid, ten topics, 1,000 documents of 100 words): how many of the ten are found within a total variation of
0.15, how many topics are reported, and at what speed. Newsgroups (if the file is in PLURI_DATA): speed, and the score
of one half of the words of new documents given the other half by the same code for all. gensim's `HdpModel` has no
count of its topics: it returns all of its truncation; those with at least 1 % of the tokens are counted here for it.
Equal: speed on newsgroups with about as many topics in ours as in tomotopy's, which has no moves but those of tokens
and tables; ours is also given without the moves that split, merge and dissolve topics.
Times are those of the processor, so that other programs do not count.

    python benchmarks/peers/topics_hdp.py              # about ten minutes
    python benchmarks/peers/topics_hdp.py bars         # one part: bars, news, equal
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from pluri.datasets import count_words, load_newsgroups, make_bars, train_test
from pluri.topics.documents import tokens_of
from pluri.topics.hdp import HDPTopicModel
from pluri.topics.hdp.slots import Slots
from pluri.topics.held_out import completion, split_documents

#: Tokens in a topic from which on it is called large.
LARGE = 0.01


class Fitted:
    """What is compared: topics, their prior in a document, numbers and seconds."""

    def __init__(self, topic_word: np.ndarray, prior: np.ndarray, counts: str, seconds: float, n_passes: float) -> None:
        self.topic_word, self.prior, self.counts = topic_word, prior, counts
        self.seconds, self.n_passes = seconds, n_passes


def ours(X: Any, n_sweeps: int, inference: str, **settings: Any) -> Fitted:
    chosen = {"n_warmup": n_sweeps // 2, "n_draws": n_sweeps - n_sweeps // 2, "n_chains": 1} | settings
    HDPTopicModel(inference, random_state=0, n_warmup=1, n_draws=1, n_chains=1, max_iter=2).fit(X[:20])  # compiled now
    begin = time.process_time()
    model = HDPTopicModel(inference, random_state=0, **chosen).fit(X)
    seconds = time.process_time() - begin
    counts = f"{model.n_topics_} topics, {model.n_large_topics_} large"
    if hasattr(model, "n_topics_interval_"):
        counts += f"; intervals {model.n_topics_interval_}, {model.n_large_topics_interval_}"
    return Fitted(model.topic_word_, model.doc_topic_prior_, counts, seconds, model.n_iter_)


def tomotopy(X: Any, n_sweeps: int, eta: float) -> Fitted:
    import tomotopy as tp

    tokens = tokens_of(X)
    model = tp.HDPModel(initial_k=2, alpha=0.1, eta=eta, gamma=0.1, seed=1)
    for begin, end in zip(tokens.offsets[:-1], tokens.offsets[1:]):
        if end > begin:
            model.add_doc([str(word) for word in tokens.words[begin:end]])
    started = time.process_time()
    model.train(n_sweeps, workers=1)
    seconds = time.process_time() - started
    live = [k for k in range(model.k) if model.is_live_topic(k)]
    topic_word = np.full((len(live), X.shape[1]), 1e-12)
    columns = [int(word) for word in model.used_vocabs]
    for row, k in enumerate(live):
        topic_word[row, columns] = model.get_topic_word_dist(k)
    sizes = np.array(model.get_count_by_topics(), dtype=float)[live]
    large = int((sizes >= LARGE * sizes.sum()).sum())
    weights = sizes / sizes.sum()
    return Fitted(
        topic_word / topic_word.sum(axis=1, keepdims=True), np.maximum(model.alpha * weights, 1e-6),
        f"{model.live_k} topics, {large} large; no interval", seconds, n_sweeps,
    )  # fmt: skip


def gensim(X: Any, max_time: float, eta: float) -> Fitted:
    from gensim.matutils import Sparse2Corpus
    from gensim.models import HdpModel

    corpus = Sparse2Corpus(X.astype(int), documents_columns=False)
    words = {column: str(column) for column in range(X.shape[1])}
    began = time.process_time()
    model = HdpModel(list(corpus), words, eta=eta, max_time=max_time, random_state=0)
    seconds = time.process_time() - began
    alpha, topic_word = model.hdp_to_lda()
    sizes = np.asarray(model.m_lambda).sum(axis=1)
    large = int((sizes >= LARGE * sizes.sum()).sum())
    passes = model.m_num_docs_processed / X.shape[0]
    return Fitted(
        topic_word, np.asarray(alpha) + 1e-6, f"all {len(topic_word)} of them, {large} large", seconds, passes
    )


def n_found(topic_word: np.ndarray, truth: np.ndarray) -> int:
    distance = 0.5 * np.abs(truth[:, None] - topic_word[None]).sum(axis=2)
    return int((distance[linear_sum_assignment(distance)] < 0.15).sum())


def contestants(X: Any, n_sweeps: int, eta: float, max_time: float, **variational: Any) -> Iterator[tuple[str, Fitted]]:
    yield "pluri, Gibbs", ours(X, n_sweeps, "gibbs", topic_word_prior=eta, **variational)
    yield "tomotopy, Gibbs", tomotopy(X, n_sweeps, eta)
    yield "pluri, variational", ours(X, n_sweeps, "vb", topic_word_prior=eta, **variational)
    yield (
        "pluri, minibatches",
        ours(X, n_sweeps, "svi", topic_word_prior=eta, learning_offset=1.0, learning_decay=0.7, **variational),
    )
    yield "gensim, minibatches", gensim(X, max_time, eta)


def bars() -> None:
    data = make_bars(n_documents=1000, random_state=0)
    n_tokens = data.X.sum()
    for name, fit in contestants(data.X, 200, 0.1, 30.0, max_topics=20):
        print(
            f"bars  {name:<20s} {n_found(fit.topic_word, data.topic_word):2d} of 10 found; {fit.counts}; "
            f"{fit.seconds:.1f} s, {_speed(fit, n_tokens)}", flush=True,
        )  # fmt: skip


def news() -> None:
    if not (os.environ.get("PLURI_DATA")):
        print("news  skipped: PLURI_DATA is not set")
        return
    train, test = train_test(count_words(load_newsgroups(), max_words=4000), None)
    X, new = train.X[::3], test.X[::10]
    observed, scored = split_documents(new, 0)
    n_tokens = X.sum()
    print(f"news  {X.shape[0]} posts, {int(n_tokens)} tokens")
    for name, fit in contestants(X, 200, 0.05, 60.0, max_iter=10):
        score = completion(fit.topic_word, fit.prior, scored, 0, observed=observed).per_word
        print(
            f"news  {name:<20s} {score:.4f} per word; {fit.counts}; {fit.seconds:.1f} s, {_speed(fit, n_tokens)}",
            flush=True,
        )


def equal() -> None:
    """Another prior of the words in ours, under which it has about as many topics after as many sweeps."""
    if not (os.environ.get("PLURI_DATA")):
        print("equal  skipped: PLURI_DATA is not set")
        return
    X = train_test(count_words(load_newsgroups(), max_words=4000), None)[0].X[::3]
    work, n_sweeps = 60 * X.sum() / 1e6, 60
    theirs = tomotopy(X, n_sweeps, 0.05)
    alone, sweep = 0.0, Slots.pass_over_tokens

    def timed(*arguments: Any) -> None:
        nonlocal alone
        begin = time.process_time()
        sweep(*arguments)
        alone += time.process_time() - begin

    fixed = {"topic_word_prior": 0.6, "topic_concentration": 0.1, "doc_concentration": 0.1}
    ours(X[:20], 2, "gibbs", **fixed)
    Slots.pass_over_tokens = timed
    own = ours(X, n_sweeps, "gibbs", **fixed)
    Slots.pass_over_tokens = sweep
    print(f"equal  tomotopy: {theirs.counts}; {work / theirs.seconds:.1f} million tokens/s")
    print(
        f"equal  pluri: {own.counts}; all moves {work / own.seconds:.1f} million tokens/s, "
        f"{theirs.seconds / own.seconds:.2f}x; tokens alone {work / alone:.1f}, {theirs.seconds / alone:.2f}x"
    )


def _speed(fit: Fitted, n_tokens: float) -> str:
    return f"{fit.n_passes * n_tokens / fit.seconds / 1e6:.2f} million tokens/s" if fit.n_passes >= 20 else "-"


PARTS = {"bars": bars, "news": news, "equal": equal}

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
