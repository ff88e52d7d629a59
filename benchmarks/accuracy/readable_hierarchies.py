"""Can the trees and graphs of topics be read? Sizes of hierarchies at default settings on five corpora.

Readable is a hierarchy in which no topic has more than 12 children and no branch less than 1 % of the words. Printed
for HierarchicalLDA, ConceptGraph and TreeTopicModel at their defaults, and for TopicTree of flat topics: topics and
edges, the most children, the smallest branch; then the same after `TopicGraph.readable()`, which pages, figures and
the command show at first, and how many of the words are then counted with a topic above their own.

Needs the files of `load_psychological_review`, `load_newsgroups`, `load_nips_papers`, `load_ap_news` and `load_reuters`
in PLURI_DATA; what is not there is left out.

    python benchmarks/accuracy/readable_hierarchies.py                    # 1000 documents of each
    python benchmarks/accuracy/readable_hierarchies.py --smaller          # with settings for smaller hierarchies
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
#: Settings that make smaller hierarchies, tried with --smaller.
SMALLER: dict[str, dict[str, Any]] = {
    "HierarchicalLDA": {"topic_word_prior": 0.5},
    "ConceptGraph": {"max_nodes_per_level": 12},
    "TreeTopicModel": {"max_nodes": (1, 5, 15)},
}


def documents(name: str, n_documents: int) -> Any:
    """Some documents of a corpus, with words of at least five of them."""
    X = CORPORA[name]().X
    rows = np.sort(np.random.default_rng(0).choice(X.shape[0], min(n_documents, X.shape[0]), replace=False))
    X = X[rows]
    frequent = np.asarray((X > 0).sum(axis=0)).ravel()
    X = X[:, (frequent >= 5) & (frequent <= 0.5 * len(rows))]
    return X[np.asarray(X.sum(axis=1)).ravel() > 0]


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=1000)
    parser.add_argument("--sweeps", type=int, default=None, help="instead of the defaults")
    parser.add_argument("--corpora", nargs="*", default=list(CORPORA), choices=CORPORA)
    parser.add_argument("--smaller", action="store_true", help="settings that make smaller hierarchies")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    head = f"{'nodes':>5} {'edges':>5} {'children':>8} {'smallest':>9}"
    print(f"{'':>10} {'':>16} {head}  | {head} {'moved':>6}  (right: readable)")
    for name in given.corpora:
        try:
            X = documents(name, given.documents)
        except FileNotFoundError as missing:
            print(f"{name} is left out: {missing}")
            continue
        length = {} if given.sweeps is None else {"n_warmup": given.sweeps, "n_draws": max(1, given.sweeps // 5)}
        for title, make in MODELS.items():
            began = time.process_time()
            graph = (
                make(random_state=0, **length, **(SMALLER[title] if given.smaller else {}))
                .fit(X)
                .topic_graph()
                .without_empty()
            )
            small = graph.readable()
            own = {node.index: node.weight for node in graph.nodes}
            moved = sum(node.weight - own[node.index] for node in small.nodes)
            seconds = time.process_time() - began
            print(
                f"{name:>10} {title:>16} {sizes(graph)}  | {sizes(small)} {moved:>6.1%}  ({seconds:.0f} CPU s)",
                flush=True,
            )
        flat = LatentDirichletAllocation(50, inference="gibbs", doc_topic_prior="learn", random_state=0, **length).fit(
            X
        )
        print(f"{name:>10} {'50 flat topics':>16} {'':>30}  | {sizes(TopicTree.of(flat).graph)}", flush=True)


if __name__ == "__main__":
    main()
