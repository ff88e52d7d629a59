"""Concept graphs of text with labels, and updating a graph.

Published (Chambers, Smyth and Steyvers 2010): a graph of categories is learned from 518 labelled articles about machine
learning, which are not distributed, then frozen and updated with 400 abstracts, whose new concepts appear as new nodes.
Here: thirteen newsgroups whose dotted names form a graph of four levels: all or half of the posts labelled, and where
do new posts end; and a graph fitted to eleven of the groups that is updated with posts of the other two. Held-out
likelihoods beside hLDA and hPAM are in ``topic_hierarchies.py``.

Needs ``newsgroups20_bydate.jsonl.gz`` in PLURI_DATA.

    python benchmarks/reproduce/concept_graph_text.py
"""

from __future__ import annotations

import time

import numpy as np
from published import Report, run_if_data
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB

from pluri.datasets import load_newsgroups
from pluri.topics import ConceptGraph

GROUPS = {
    "news": ["comp", "rec", "sci", "talk"],
    "comp": ["comp.graphics", "comp.windows.x", "comp.sys"],
    "comp.sys": ["comp.sys.ibm.pc.hardware", "comp.sys.mac.hardware"],
    "rec": ["rec.autos", "rec.motorcycles", "rec.sport"],
    "rec.sport": ["rec.sport.baseball", "rec.sport.hockey"],
    "sci": ["sci.crypt", "sci.med", "sci.space"],
    "talk": ["talk.politics.guns", "talk.politics.mideast"],
}
LATER = ("sci.med", "rec.sport.hockey")


def posts(n_each: int, subset: str) -> tuple[list[str], np.ndarray]:
    news = load_newsgroups(subset=subset)
    leaves = {leaf for children in GROUPS.values() for leaf in children if leaf.count(".") and leaf not in GROUPS}
    rng = np.random.default_rng(0)
    rows = np.concatenate(
        [rng.choice(np.flatnonzero(news.labels == leaf), n_each, replace=False) for leaf in sorted(leaves)]
    )
    return [news.titles[i] + "\n" + news.texts[i] for i in rows], news.labels[rows]


def newsgroups() -> None:
    report = Report("Newsgroups whose names form a graph (nothing published)")
    texts, labels = posts(100, "train")
    new_texts, new_labels = posts(40, "test")
    words = CountVectorizer(stop_words="english", min_df=5, max_df=0.3, max_features=4000, token_pattern=r"[a-z]{3,}")
    X, new = words.fit_transform(texts), words.transform(new_texts)
    report.note(f"{X.shape[0]} posts to learn from, {new.shape[0]} new ones, {X.shape[1]} words, {int(X.sum())} tokens")
    rng = np.random.default_rng(0)
    for share in (1.0, 0.5):
        y = np.where(rng.random(len(labels)) < share, labels, "")
        model = ConceptGraph(4, graph=GROUPS, max_nodes_per_level=12, n_warmup=50, n_draws=20, random_state=0)
        started = time.perf_counter()
        model.fit(X, y)
        seconds = time.perf_counter() - started
        names = np.array([name or "new" for name in model.node_labels_])
        ends, known = names[model.labels_], y != ""
        report.row(
            f"{share:.0%} labelled: labelled posts that end at their label", 1.0, float((ends == y)[known].mean())
        )
        if share < 1:
            report.row(f"{share:.0%} labelled: others that do", None, float((ends == labels)[~known].mean()))
        found = float((model.predict_labels(new) == new_labels).mean())
        report.row(f"{share:.0%} labelled: new posts with their group", None, found)
        ends = float((names[model.predict(new)] == new_labels).mean())
        report.row(f"{share:.0%} labelled: new posts that end there, found nodes allowed", None, ends)
        bayes = MultinomialNB(alpha=0.1).fit(X[known], labels[known])
        report.row(f"{share:.0%} labelled: new posts, naive Bayes", None, float(bayes.score(new, new_labels)))
        report.note(f"    {model.n_topics_} nodes, {model.n_iter_} sweeps in {seconds:.0f} s")
    model.name_words(words.get_feature_names_out())
    print(model.summary(8))

    later = np.isin(labels, LATER)
    kept = {node: [child for child in children if child not in LATER] for node, children in GROUPS.items()}
    model = ConceptGraph(4, graph=kept, max_nodes_per_level=12, n_warmup=50, n_draws=20, random_state=0)
    model.fit(X[~later], labels[~later])
    before = model.n_topics_
    started = time.perf_counter()
    model.partial_fit(X[later])
    report.note(
        f"\nupdated with {later.sum()} posts of {', '.join(LATER)}: {before} nodes before, {model.n_topics_} after "
        f"({time.perf_counter() - started:.0f} s)"
    )
    model.name_words(words.get_feature_names_out())
    top, ends = model.top_words(8), model.labels_[(~later).sum() :]
    for node in np.argsort(-np.bincount(ends, minlength=model.n_topics_))[:8]:
        here = labels[later][ends == node]
        if len(here):
            who = ", ".join(f"{group} {(here == group).sum()}" for group in LATER)
            name = f"{model.node_labels_[node] or 'new node'} (depth {model.node_depth_[node]})"
            print(f"{name}: {who}: {', '.join(top[node])}")
    report.close()


if __name__ == "__main__":
    run_if_data(newsgroups)
