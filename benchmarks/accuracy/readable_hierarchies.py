"""Can the trees and graphs of topics be read? Sizes of hierarchies at default settings on five corpora.

Readable is a hierarchy in which no topic has more than 12 children and no branch less than 1 % of the words. Printed
for HierarchicalLDA, ConceptGraph and TreeTopicModel at their defaults, and for TopicTree of flat topics: topics and
edges, the most children, the smallest branch; then the same after `TopicGraph.readable()`, which pages, figures and
the command show at first, and how many of the words are then counted with a topic above their own. Last comes what a
size costs: the log likelihood per word of one half of the words of new documents, a quarter as many, given the other
half.

Needs the files of `load_psychological_review`, `load_newsgroups`, `load_nips_papers`, `load_ap_news` and `load_reuters`
in PLURI_DATA; what is not there is left out.

    python benchmarks/accuracy/readable_hierarchies.py                    # 1000 documents of each
    python benchmarks/accuracy/readable_hierarchies.py --larger           # with settings for larger hierarchies
    python benchmarks/accuracy/readable_hierarchies.py --documents 300 --sweeps 60 --corpora psychology
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from pluri.datasets import (
    count_words,
    load_ap_news,
    load_newsgroups,
    load_nips_papers,
    load_psychological_review,
    load_reuters,
)
from pluri.topics import (
    ConceptGraph,
    HierarchicalLDA,
    LatentDirichletAllocation,
    TopicGraph,
    TopicTree,
    TreeTopicModel,
)
from pluri.topics.held_out import split_documents

CORPORA: dict[str, Callable[[], Any]] = {
    "psychology": load_psychological_review,
    "news": load_ap_news,
    "posts": lambda: count_words(load_newsgroups(), min_documents=5, max_share=0.5),
    "stories": lambda: count_words(load_reuters(), min_documents=5, max_share=0.5),
    "papers": load_nips_papers,
}
MODELS: dict[str, Callable[..., Any]] = {
    "HierarchicalLDA": HierarchicalLDA,
    "ConceptGraph": ConceptGraph,
    "TreeTopicModel": TreeTopicModel,
}
#: Settings that make larger hierarchies, tried with --larger: the defaults up to version 0.5.
LARGER: dict[str, dict[str, Any]] = {
    "HierarchicalLDA": {"topic_word_prior": 0.1},
    "ConceptGraph": {"max_nodes_per_level": 25},
    "TreeTopicModel": {"max_nodes": (20, 40, 80)},
}


def documents(name: str, n_documents: int) -> tuple[Any, Any]:
    """Some documents of a corpus, and a quarter as many new ones, with words of at least five of the former."""
    X = CORPORA[name]().X
    rows = np.random.default_rng(0).permutation(X.shape[0])[: n_documents + n_documents // 4]
    X, new = X[rows[:n_documents]], X[rows[n_documents:]]
    frequent = np.asarray((X > 0).sum(axis=0)).ravel()
    words = (frequent >= 5) & (frequent <= 0.5 * X.shape[0])
    X, new = X[:, words], new[:, words]
    return X[np.asarray(X.sum(axis=1)).ravel() > 0], new[np.asarray(new.sum(axis=1)).ravel() > 1]


def branches(graph: TopicGraph) -> dict[int, float]:
    """Share of the words of each topic with all that hang on it by their strongest edges."""
    share = {node.index: node.weight for node in graph.nodes}
    for node in sorted(graph.nodes, key=lambda one: -one.depth):
        for parent in graph.parents(node.index)[:1]:
            share[parent] += share[node.index]
    return share


def sizes(graph: TopicGraph) -> str:
    most = max(len(graph.children(node.index)) for node in graph.nodes)
    return f"{len(graph.nodes):>5} {len(graph.edges):>5} {most:>8} {min(branches(graph).values()):>9.2%}"


def per_word(model: Any, new: Any) -> float:
    observed, scored = split_documents(new, 0)
    return float(model.held_out(scored, observed=observed, random_state=0).per_word)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=1000)
    parser.add_argument("--sweeps", type=int, default=None, help="instead of the defaults")
    parser.add_argument("--corpora", nargs="*", default=list(CORPORA), choices=CORPORA)
    parser.add_argument("--larger", action="store_true", help="settings that make larger hierarchies")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    head = f"{'nodes':>5} {'edges':>5} {'children':>8} {'smallest':>9}"
    print(f"{'':>10} {'':>16} {head}  | {head} {'moved':>6} {'per word':>8}  (right: readable)")
    for name in given.corpora:
        try:
            X, new = documents(name, given.documents)
        except FileNotFoundError as missing:
            print(f"{name} is left out: {missing}")
            continue
        length = {} if given.sweeps is None else {"n_warmup": given.sweeps, "n_draws": max(1, given.sweeps // 5)}
        for title, make in MODELS.items():
            began = time.process_time()
            model = make(random_state=0, **length, **(LARGER[title] if given.larger else {})).fit(X)
            seconds = time.process_time() - began
            graph = model.topic_graph().without_empty()
            small = graph.readable()
            own = {node.index: node.weight for node in graph.nodes}
            moved = sum(node.weight - own[node.index] for node in small.nodes)
            print(
                f"{name:>10} {title:>16} {sizes(graph)}  | {sizes(small)} {moved:>6.1%} {per_word(model, new):>8.3f}  "
                f"({seconds:.0f} CPU s)",
                flush=True,
            )
        flat = LatentDirichletAllocation(50, inference="gibbs", doc_topic_prior="learn", random_state=0, **length)
        tree = TopicTree.of(flat.fit(X)).graph
        print(
            f"{name:>10} {'50 flat topics':>16} {'':>30}  | {sizes(tree)} {'':>6} {per_word(flat, new):>8.3f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
