"""pluri's topic hierarchies against tomotopy's: same documents, same priors, same number of sweeps, one thread each.

Both fits are then judged by one estimator, pluri's left-to-right, on documents that neither has seen; for tomotopy's
tree it gets tomotopy's topics, nodes and numbers of documents. tomotopy's Pachinko allocation is a different one (a
level for each document's token instead of exits), so that there only the times are compared.

    PLURI_DATA=... python benchmarks/peers/topics_hierarchical.py              # all parts, about four minutes
    PLURI_DATA=... python benchmarks/peers/topics_hierarchical.py tree         # nested Chinese restaurant process
    PLURI_DATA=... python benchmarks/peers/topics_hierarchical.py pachinko

The data are 1281 abstracts of the Psychological Review (psychreview_abstracts.npz).
"""

from __future__ import annotations

import sys
import time
import warnings
from typing import Any

import numpy as np
from scipy import sparse

N_SWEEPS, ETA, GAMMA, ALPHA = 500, 0.1, 1.0, 1.0


def abstracts() -> tuple[Any, Any]:
    """Training and test documents, one in five for the test."""
    from pluri.datasets.home import find_file

    with np.load(find_file(("psychreview_abstracts.npz",), None, "")) as file:
        X = sparse.csr_matrix((file["data"], file["indices"], file["indptr"]), shape=tuple(file["shape"]))
    X = X.astype(np.float64)
    X.sort_indices()
    test = np.random.default_rng(0).permutation(X.shape[0]) < X.shape[0] // 5
    return X[~test], X[test]


def add_documents(model: Any, X: Any) -> Any:
    """Give documents to tomotopy, words by the number of their column."""
    for row in range(X.shape[0]):
        part = X[row]
        model.add_doc([str(word) for word, n in zip(part.indices, part.data) for _ in range(int(n))])
    return model


def timed_in_turn(ours: Any, theirs: Any, n_sweeps: int, n_rounds: int = 10) -> tuple[float, float]:
    """Median seconds of a sweep of each, in turns: what else the machine does meets both."""
    times: list[tuple[float, float]] = []
    for _ in range(n_rounds):
        begin = time.perf_counter()
        ours(n_sweeps // n_rounds)
        middle = time.perf_counter()
        theirs(n_sweeps // n_rounds)
        times.append((middle - begin, time.perf_counter() - middle))
    median = np.median(times, axis=0) / (n_sweeps // n_rounds)
    return float(median[0]), float(median[1])


def tree() -> None:
    import tomotopy

    from pluri.topics.documents import tokens_of
    from pluri.topics.hierarchical import HierarchicalLDA
    from pluri.topics.hierarchical.fitted_tree import TreeOfTopics
    from pluri.topics.hierarchical.level_sticks import LevelSticks

    train, test = abstracts()
    model = HierarchicalLDA(3, concentration=GAMMA, level_prior=ALPHA, topic_word_prior=ETA, random_state=0)
    kernel = model.fit(train[:30])._kernel(tokens_of(train))
    rng = np.random.default_rng(0)
    begin = time.perf_counter()
    state = kernel.init(rng, kernel.start(rng))
    start = time.perf_counter() - begin
    peer = add_documents(tomotopy.HLDAModel(depth=3, alpha=ALPHA, eta=ETA, gamma=GAMMA, seed=1), train)
    peer.optim_interval = 0
    peer.train(0, workers=1)

    def sweep(n: int) -> None:
        for _ in range(n):
            kernel.step(rng, state)

    ours, theirs = timed_in_turn(sweep, lambda n: peer.train(n, workers=1), N_SWEEPS)
    model._store(tokens_of(train), state.best, {"n_nodes": []})
    live = [k for k in range(peer.k) if peer.is_live_topic(k)]
    live.sort(key=lambda k: (peer.level(k), k))
    place = {k: i for i, k in enumerate(live)}
    columns = np.array([int(word) for word in peer.used_vocabs])
    topics = np.zeros((len(live), train.shape[1]))
    for k in live:
        topics[place[k], columns] = peer.get_topic_word_dist(k)
    # Words that no training document has: tomotopy leaves them out, pluri gives them the prior.
    seen = np.isin(np.arange(train.shape[1]), columns)
    scored = test[:, seen]
    other = TreeOfTopics(
        topics[:, seen], np.array([place.get(peer.parent_topic(k), -1) if peer.level(k) else -1 for k in live]),
        np.array([peer.level(k) for k in live]), np.array([peer.num_docs_of_topic(k) for k in live]), GAMMA,
        np.full(3, ETA), LevelSticks.dirichlet(np.full(3, ALPHA)),
    )  # fmt: skip
    own = model._prepared()
    topics_seen = own.topic_word[:, seen] / own.topic_word[:, seen].sum(axis=1, keepdims=True)
    own = TreeOfTopics(
        topics_seen, own.parent, own.depth, own.n_documents, own.concentration, own.word_prior, own.sticks
    )  # fmt: skip
    print(
        f"nested Chinese restaurant process, {train.shape[0]} documents, {int(train.sum())} tokens, {N_SWEEPS} sweeps"
    )
    print(f"  start {start:.2f} s (pluri)")
    print(f"  pluri     {1e3 * ours:6.1f} ms a sweep, {len(own.parent)} nodes")
    print(f"  tomotopy  {1e3 * theirs:6.1f} ms a sweep, {len(live)} nodes: {theirs / ours:.2f} times the time of pluri")
    ratio = (theirs / len(live)) / (ours / len(own.parent))
    print(f"  time per sweep and node: tomotopy {ratio:.2f} times that of pluri")
    for name, judged in (("pluri", own), ("tomotopy", other)):
        score = judged.left_to_right(scored, np.random.default_rng(1), 20)
        print(f"  {name:9s} left to right, per word of {scored.shape[0]} new documents: {score.per_word:.3f}")


def pachinko() -> None:
    import tomotopy

    from pluri.topics.documents import tokens_of
    from pluri.topics.hierarchical import HierarchicalPachinko

    train, test = abstracts()
    model = HierarchicalPachinko(25, 25, super_prior=0.1, sub_prior=0.1, topic_word_prior=ETA, n_warmup=1, n_draws=1)
    kernel = model.fit(train[:30])._kernel(tokens_of(train))
    rng = np.random.default_rng(0)
    state = kernel.init(rng, kernel.start())
    peer = add_documents(tomotopy.HPAModel(k1=25, k2=25, alpha=0.1, subalpha=0.1, eta=ETA, seed=1), train)
    peer.optim_interval = 0
    peer.train(0, workers=1)

    def sweep(n: int) -> None:
        for _ in range(n):
            kernel.step(rng, state)

    ours, theirs = timed_in_turn(sweep, lambda n: peer.train(n, workers=1), 100)
    print("hierarchical Pachinko, 25 x 25, priors fixed")
    print(f"  pluri     {1e3 * ours:6.1f} ms a sweep")
    print(f"  tomotopy  {1e3 * theirs:6.1f} ms a sweep: {theirs / ours:.2f} times the time of pluri")
    model = HierarchicalPachinko(25, 25, topic_word_prior=ETA, n_warmup=400, n_draws=100, random_state=0).fit(train)
    for method in ("left_to_right", "empirical"):
        print(f"  pluri {method}, per word of new documents: {model.held_out(test, method).per_word:.3f}")


PARTS = {"tree": tree, "pachinko": pachinko}

if __name__ == "__main__":
    warnings.filterwarnings("ignore", message="The training result may differ")
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
