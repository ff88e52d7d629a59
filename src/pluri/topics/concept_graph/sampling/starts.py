"""Where chains over concept graphs start: plain topics, arranged in levels.

From the published start, all documents at the root, single documents rarely find the way to a good graph: topics of
several levels stay mixed in one node. Here plain topics (latent Dirichlet allocation, a few Gibbs sweeps) are found
first, and then each gets a depth (`arrangement`). With labels, labelled documents are
sampled first, and the others then join them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pluri.topics.concept_graph.sampling.arrangement import Arrangement, chosen_topics, log_marginal
from pluri.topics.concept_graph.sampling.gibbs import ConceptGraphGibbs
from pluri.topics.concept_graph.sampling.state import Position

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
#: Documents that a plain topic needs at least.
DOCUMENTS_PER_TOPIC = 5
#: Plain topics for each level, sweeps that find them, and the prior of a document's proportions.
TOPICS_PER_LEVEL, FLAT_SWEEPS, DOC_PRIOR = 5, 80, 1.0
SPARSE_SWEEPS, SPARSE_PRIOR = 10, 0.1
#: How often plain topics are sought in corpora of up to so many tokens; the best are taken.
N_FLAT, MANY_TOKENS = 3, 200_000
#: Part of its expected share that the last topic of a path must have.
LAST_SHARE = 0.5
#: Documents by which arrangements are scored; more cost time and tell little.
MOST_ROWS = 2000
#: Sweeps over the labelled documents before the others join them.
LABELLED_SWEEPS = 30


def flat_topics(
    rng: np.random.Generator, kernel: ConceptGraphGibbs, n_topics: int, eta: float
) -> tuple[NDArray[np.int32], Array]:
    """Plain topic of each token, and the words of the topics (n_topics, n_words)."""
    from pluri.topics.concept_graph.sampling._flat_kernels import flat_sweep

    topic = rng.integers(n_topics, size=len(kernel.words)).astype(np.int32)
    word_count = np.zeros((kernel.n_words, n_topics), dtype=np.int32)
    np.add.at(word_count, (kernel.words, topic), 1)
    total = word_count.sum(axis=0).astype(np.int64)
    memory = np.empty(n_topics, dtype=np.int64), np.empty(n_topics)
    # A flat prior finds the topics, a sparse one then says which of them a document really has.
    for doc_prior in [DOC_PRIOR] * FLAT_SWEEPS + [SPARSE_PRIOR] * SPARSE_SWEEPS:
        flat_sweep(rng, kernel.words, kernel.offsets, topic, word_count, total, doc_prior, eta, *memory)
    return topic, word_count.T.astype(np.float64)


def arranged_start(rng: np.random.Generator, kernel: ConceptGraphGibbs) -> Position:
    """Start of a chain at plain topics that are arranged in levels."""
    position = dict(kernel.start(rng))
    if kernel.n_levels < 2 or kernel.n_documents < 2 or len(kernel.words) == 0:
        return position
    eta = max(float(position["topic_word_prior"]), 0.01)
    documents = np.repeat(np.arange(kernel.n_documents), np.diff(kernel.offsets))
    n_topics = min(TOPICS_PER_LEVEL * kernel.n_levels, 2 + kernel.n_documents // DOCUMENTS_PER_TOPIC)
    n_nodes = np.asarray(position["n_nodes"]).copy()
    if kernel.max_nodes is None:
        n_nodes[2:] = np.maximum(n_nodes[2:], n_topics)
    if n_nodes[1:].sum() < n_topics:
        return position
    rows = np.sort(rng.choice(kernel.n_documents, size=min(kernel.n_documents, MOST_ROWS), replace=False))
    raw = np.zeros((kernel.n_documents, n_topics), dtype=np.int64)
    found: list[tuple[float, NDArray[np.int32], Arrangement, Integers]] = []
    for _ in range(N_FLAT if len(kernel.words) <= MANY_TOKENS else 1):
        topic, words = flat_topics(rng, kernel, n_topics, eta)
        raw[:] = 0
        np.add.at(raw, (documents, topic), 1)
        part = Arrangement(raw[rows], words, eta, kernel.n_levels, n_nodes)
        depth = part.search(rng)
        value = part.score(depth) + sum(log_marginal(row, eta) for row in part.words)
        found.append((value, topic, part, depth))
    _, topic, part, depth = max(found, key=lambda item: item[0])
    topic = part.merged[topic].astype(np.int32)
    raw[:] = 0
    np.add.at(raw, (documents, topic), 1)
    counts = Arrangement(raw, part.words, eta, kernel.n_levels, n_nodes).counts
    return _position_of(rng, kernel, position, n_nodes, depth, counts, topic, documents)


def labelled_start(rng: np.random.Generator, kernel: ConceptGraphGibbs, given_edges: Integers) -> Position:
    """Labelled documents after some sweeps of their own; the others join them at the nodes that are there."""
    position = dict(kernel.start(rng, given_edges))
    assert kernel.labels is not None
    known = kernel.labels >= 0
    if not known.any() or known.all():
        return position
    position["path"] = np.where(known[:, None], position["path"], -1)
    state = kernel.init(rng, position, seat=False)
    for _ in range(LABELLED_SWEEPS):
        kernel.visit(rng, state, rng.permutation(np.flatnonzero(known)))
    n_nodes = state.graph.n_nodes.copy()
    state.graph.n_nodes[:] = state.graph.n_used
    kernel.visit(rng, state, rng.permutation(np.flatnonzero(~known)))
    state.graph.n_nodes[:] = n_nodes
    return state.position


def _trim(chosen: Integers, counts: Integers) -> None:
    """End paths where their last topic has far less than the share that geometric levels give it, 1 / S or more."""
    rows, total = np.arange(len(chosen)), counts.sum(axis=1)
    for k in range(chosen.shape[1] - 1, 0, -1):
        last = (chosen[:, k] >= 0) & (chosen[:, k + 1 :] < 0).all(axis=1)
        size = (chosen[:, : k + 1] >= 0).sum(axis=1)
        few = counts[rows, np.maximum(chosen[:, k], 0)] * size < LAST_SHARE * total
        chosen[last & few, k] = -1


def _position_of(
    rng: np.random.Generator, kernel: ConceptGraphGibbs, position: Position, n_nodes: Integers, depth: Integers,
    counts: Integers, topic: NDArray[np.int32], documents: Integers,
) -> Position:  # fmt: skip
    """Put documents on the paths of their topics; words whose topic is not there get a random level."""
    chosen, _ = chosen_topics(counts, depth, kernel.n_levels)
    if kernel.level_prior == "geometric":
        _trim(chosen, counts)
    length = kernel.n_levels - (chosen >= 0)[:, ::-1].argmax(axis=1)
    number = np.empty(len(depth), dtype=np.int64)
    by_depth = np.argsort(np.where(depth > 0, depth, kernel.n_levels + 1), kind="stable")
    number[by_depth] = np.arange(len(depth))
    node_depth = depth[by_depth]
    path = np.where(chosen >= 0, number[np.maximum(chosen, 0)], -1).astype(np.int32)
    if kernel.deeper:
        for row in path:
            row[:] = np.concatenate([row[row >= 0], row[row < 0]])
        length = (path >= 0).sum(axis=1)
    else:
        for k in range(1, kernel.n_levels):
            # A step without a topic of its own takes the node that most paths take.
            gap = (path[:, k] < 0) & (length > k)
            if gap.any():
                there = path[:, k][path[:, k] >= 0]
                usual = np.bincount(there).argmax() if len(there) else -1
                path[gap, k] = usual
                length[gap] = np.where(usual < 0, k, length[gap])
            path[length <= k, k] = -1
    used = np.unique(path[path >= 0])
    renumbered = np.full(len(depth), -1, dtype=np.int32)
    renumbered[used] = np.arange(len(used))
    path = np.where(path >= 0, renumbered[np.maximum(path, 0)], -1).astype(np.int32)
    own = renumbered[number[topic]]
    level = (rng.random(len(topic)) * length[documents]).astype(np.int8)
    for place in range(kernel.n_levels):
        here = path[documents, place] == own
        level[here & (own >= 0)] = (length[documents] - 1 - place)[here & (own >= 0)]
    node_depth = node_depth[used]
    return {
        **position, "node_depth": node_depth.astype(np.int32), "node_protected": node_depth == 1,
        "node_name": np.arange(len(used)), "order": kernel.draw_orders(rng, node_depth, n_nodes), "n_nodes": n_nodes,
        "path": path, "level": level,
    }  # fmt: skip
