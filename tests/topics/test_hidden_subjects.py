"""Subjects beside the topics of a model: what EM makes of a few documents, against sums written out."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from pluri.topics import LatentDirichletAllocation, topic_trends
from pluri.topics.over_time.subjects import PRIOR_TOKENS, Entries, Subjects, parts_of, without_own

N_WORDS = 60


def corpus(rng, n_documents, n_new, length=25):
    """Documents of two topics, and some about a subject of six other words; shares as a model would tell them."""
    topics = np.kron(np.eye(2), np.full(30, 1 / 30)) * 0.9 + 0.1 / N_WORDS
    shares = rng.dirichlet([0.3, 0.3], n_documents)
    probabilities = shares @ topics
    subject = np.zeros(N_WORDS)
    subject[[2, 12, 22, 32, 42, 52]] = 1 / 6
    new = np.sort(rng.choice(n_documents, n_new, replace=False))
    probabilities[new] = 0.3 * probabilities[new] + 0.7 * subject
    X = rng.multinomial(length, probabilities / probabilities.sum(axis=1, keepdims=True))
    return sparse.csr_matrix(X), shares, topics, subject, new


def surprise(X, shares, topics):
    counts = X.toarray()
    return -(counts * np.log(shares @ topics)).sum(axis=1)


def test_a_subject_of_a_document_is_that_of_the_others():
    rng = np.random.default_rng(0)
    X, shares, topics, _, _ = corpus(rng, 7, 2)
    entries, usual = Entries.of(X, shares, topics), rng.dirichlet(np.ones(N_WORDS))
    tokens = rng.random((len(entries.rows), 3)) * entries.counts[:, None]
    found = without_own(entries, tokens, usual)
    for place, (row, word) in enumerate(zip(entries.rows, entries.words)):
        others = entries.rows != row
        same = others & (entries.words == word)
        psi = (tokens[same].sum(axis=0) + PRIOR_TOKENS * usual[word]) / (tokens[others].sum(axis=0) + PRIOR_TOKENS)
        np.testing.assert_allclose(found[place], psi / (shares[row] @ topics[:, word]))


def test_steps_of_a_known_subject_never_lower_the_penalised_likelihood():
    """EM of the part of one subject: the log likelihood and what speaks against it, written out."""
    rng = np.random.default_rng(1)
    X, shares, topics, subject, _ = corpus(rng, 40, 10)
    entries = Entries.of(X, shares, topics)
    ratio = (0.99 * subject + 0.01 / N_WORDS)[entries.words, None] / entries.base[:, None]
    part, before = np.full((40, 1), 0.3), -np.inf
    for _ in range(15):
        found = parts_of(entries, ratio, part)
        here = part[entries.rows]
        gain = [
            (entries.counts * np.log(1 - here + here * ratio)[:, 0])[entries.rows == row].sum() for row in range(40)
        ]
        np.testing.assert_allclose(found.gain[:, 0], gain)
        now = found.gain.sum() + 2.0 * np.log1p(-part).sum()  # two tokens in each document speak for no subject
        assert now >= before - 1e-9
        part, before = found.part, now


def test_a_few_documents_about_one_thing_are_found_and_strange_ones_that_share_nothing_are_not():
    found = together = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X, shares, topics, subject, new = corpus(rng, 400, 6)
        search = Subjects(topics).find(X, shares, surprise(X, shares, topics))
        parts = search.columns(X, shares)
        about = [set(np.flatnonzero(part > 0)) for part in parts.T]
        best = max(range(len(about)), key=lambda place: len(about[place] & set(new)))
        named = set(search.words(best, 6)) == set(np.flatnonzero(subject)) if best < len(search.word) else False
        hits = len(about[best] & set(new))
        found += named and hits >= 5 and 3 * hits >= len(about[best])
        strange = X.toarray()
        strange[new] = np.kron(np.eye(6, dtype=int), np.full(10, 2))  # as strange, each with words of its own
        counts = sparse.csr_matrix(strange)
        others = Subjects(topics).find(counts, shares, surprise(counts, shares, topics)).columns(counts, shares)
        together += max((part > 0)[new].sum() for part in others.T) > 3
    assert found >= 9
    assert together <= 1


def new_subject_is_named(seed):
    """Whether a subject of fifteen among the three hundred documents of the last weeks is named by its words."""
    rng = np.random.default_rng([5, seed])
    topics, weeks = rng.dirichlet(np.full(300, 0.05), 6), np.repeat(np.arange(20), 100)
    shares = np.column_stack([rng.dirichlet(np.full(5, 0.1), len(weeks)), np.zeros(len(weeks))])
    late = np.flatnonzero(weeks >= 17)[::20]
    shares[late] = 0.2 * shares[late] + 0.8 * np.eye(6)[5]
    X = rng.multinomial(30, shares @ topics)
    model = LatentDirichletAllocation(5, inference="gibbs", n_warmup=60, random_state=0).fit(X[weeks < 17])
    dates = np.datetime64("2024-01-01") + 7 * weeks
    trends = topic_trends(model, X, dates, feature_names=[f"w{column}" for column in range(300)])
    likeliest = {f"w{column}" for column in np.argsort(-topics[5])[:12]}
    return trends.misfit is not None and len(likeliest & set(trends.misfit.words)) >= 5


def test_a_new_subject_is_named_by_its_words():
    """The model has not seen it; three of five years are far below what is usual."""
    assert sum(map(new_subject_is_named, range(5))) >= 3
