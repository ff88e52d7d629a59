"""Concept graphs of text: labels, held-out likelihood beside hLDA and hPAM, and updating a graph.

Published (Chambers, Smyth and Steyvers 2010) on 518 articles about machine learning, which are not distributed: log
likelihood per word of held-out articles by the empirical and the left-to-right estimator, -7.10 and -7.13 for concept
graphs, -7.06 to -7.10 and -6.81 to -6.90 for hLDA, -7.33 to -7.38 and -6.11 to -6.71 for hPAM. What is to be seen: by
empirical likelihood concept graphs equal hLDA and beat hPAM; by left-to-right they are last, which is blamed on the
geometric levels. Here: 400 abstracts of Psychological Review, a fifth held out, 3 levels, 25 nodes per level.

Then thirteen newsgroups whose dotted names form a graph of four levels: all or half of the posts labelled, and where do
new posts end; and a graph fitted to eleven of the groups that is updated with posts of the other two.

Needs ``psychreview_abstracts.npz`` and ``newsgroups20_bydate.jsonl.gz`` in PLURI_DATA.

    python benchmarks/reproduce/concept_graph_text.py
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from published import Report, run_if_data
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB

from pluri.datasets import load_newsgroups
from pluri.datasets.topic_corpora import load_psychological_review
from pluri.topics import ConceptGraph, HierarchicalLDA, HierarchicalPachinko

#: Published empirical and left-to-right log likelihoods per word.
PUBLISHED = {"graph": (-7.10, -7.13), "hLDA": (-7.07, -6.83), "hPAM": (-7.36, -6.11)}
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


def likelihoods() -> None:
    report = Report("Per-word log likelihood of held-out abstracts (published: articles about machine learning)")
    corpus = load_psychological_review()
    rng = np.random.default_rng(0)
    X = corpus.counts[np.sort(rng.choice(corpus.counts.shape[0], 400, replace=False))]
    X = X[:, np.asarray((X > 0).sum(axis=0)).ravel() >= 3].tocsr()
    held = np.arange(400) % 5 == 0
    train, test = X[~held], X[held]
    report.note(
        f"{train.shape[0]} + {test.shape[0]} abstracts, {X.shape[1]} words, {int(train.sum())} tokens to learn from"
    )
    sweeps = {"n_warmup": 300, "n_draws": 50, "random_state": 0}
    graph = {"n_levels": 3, "max_nodes_per_level": 25} | sweeps
    models: dict[str, tuple[str, Any]] = {
        "graph, words' prior 0.1": ("graph", ConceptGraph(topic_word_prior=0.1, **graph)),
        "graph, words' prior learned": ("graph", ConceptGraph(**graph)),
        "graph, 0.1, Dirichlet levels": (
            "graph", ConceptGraph(topic_word_prior=0.1, level_prior="dirichlet", **graph),
        ),
        "hLDA, 0.1": ("hLDA", HierarchicalLDA(3, topic_word_prior=0.1, **sweeps)),
        "hPAM, 0.1": ("hPAM", HierarchicalPachinko(25, 25, topic_word_prior=0.1, **sweeps)),
        "hPAM, 0.01": ("hPAM", HierarchicalPachinko(25, 25, topic_word_prior=0.01, **sweeps)),
    }  # fmt: skip
    for name, (family, model) in models.items():
        started = time.perf_counter()
        model.fit(train)
        fitted = time.perf_counter()
        empirical = model.held_out(test, "empirical", random_state=0).per_word
        left_to_right = model.held_out(test, "left_to_right", random_state=0).per_word
        report.row(f"{name}: empirical", PUBLISHED[family][0], empirical)
        report.row(f"{name}: left to right", PUBLISHED[family][1], left_to_right)
        report.note(
            f"    {len(model.topic_word_)} nodes; 350 sweeps in {fitted - started:.0f} s, "
            f"evaluation {time.perf_counter() - fitted:.0f} s"
        )
    report.close()


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
        report.row(f"{share:.0%} labelled: new posts", None, float((names[model.predict(new)] == new_labels).mean()))
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


def main() -> None:
    likelihoods()
    newsgroups()


if __name__ == "__main__":
    run_if_data(main)
