"""Passes of the HDP sampler that read only the topics a word has, against those that read all of them."""

import numpy as np
import pytest
from scipy import sparse, stats
from scipy.special import gammaln

from pluri.topics.documents import tokens_of
from pluri.topics.hdp import slots as slots_module
from pluri.topics.hdp.slots import Slots

ALPHA, GAMMA, ETA = 1.3, 0.8, 0.4
NEVER, ALWAYS = 10**9, 0


def slots_of(tokens, labels, rng, eta=ETA):
    """Slots with random sticks, of which topics without tokens have none."""
    sizes = np.bincount(labels)
    return Slots(tokens, labels.astype(np.int32), rng.dirichlet(np.append(sizes + (sizes > 0), 1.0)), ALPHA, GAMMA, eta)


def random_slots(n_topics=20, seed=0, lonely=False):
    """Slots of random documents; if `lonely` the last token is alone in its topic."""
    rng = np.random.default_rng(seed)
    tokens = tokens_of(sparse.csr_matrix(rng.integers(0, 3, size=(5, 9)) + np.eye(5, 9, dtype=int)))
    labels = rng.integers(n_topics, size=tokens.n_tokens)
    if lonely:
        labels[-1] = n_topics
    return slots_of(tokens, labels, rng)


def conditional(slots):
    """Law of the last token's topic given all others, by counting; the last entry is a new topic."""
    tokens, labels, sticks = slots.tokens, slots.labels[:-1], slots.weights.copy()
    d, w, old = tokens.documents[-1], tokens.words[-1], slots.labels[-1]
    rest = float(slots.rest[0])
    if not (labels == old).any():
        rest, sticks[old] = rest + sticks[old], 0.0
    score = []
    for k in range(slots.capacity):
        own = labels == k
        in_document, of_word = (own & (tokens.documents[:-1] == d)).sum(), (own & (tokens.words[:-1] == w)).sum()
        score.append((in_document + ALPHA * sticks[k]) * (of_word + ETA) / (own.sum() + ETA * tokens.n_words))
    score.append(ALPHA * rest / tokens.n_words)
    return np.array(score) / np.sum(score)


def check_counts(slots):
    """Counts and sizes are those of the labels, sticks of dead topics are zero and all of them sum to one."""
    counts = np.zeros_like(slots.counts)
    np.add.at(counts, (slots.tokens.words, slots.labels), 1)
    np.testing.assert_array_equal(counts, slots.counts)
    np.testing.assert_array_equal(counts.sum(axis=0), slots.sizes)
    assert not slots.weights[slots.sizes == 0].any()
    assert slots.weights.sum() + slots.rest[0] == pytest.approx(1.0)


def check_lists(slots):
    """Lists hold the counts that are not zero."""
    begins, lengths, topics, numbers = slots.listed
    listed = np.zeros_like(slots.counts)
    for w, (begin, length) in enumerate(zip(begins, lengths)):
        assert len(set(topics[begin : begin + length])) == length
        listed[w, topics[begin : begin + length]] = numbers[begin : begin + length]
    np.testing.assert_array_equal(listed, slots.counts)
    np.testing.assert_array_equal(lengths, (slots.counts > 0).sum(axis=1))


def check_frequencies(seen, expected):
    """By a chi-squared test, in which places of small probability are joined; false alarms: 1e-7."""
    assert not seen[expected == 0].any()
    order = np.argsort(expected)[(expected == 0).sum() :]
    observed, wanted = seen[order], seen.sum() * expected[order]
    groups = np.unique(np.floor(np.cumsum(wanted) / 30), return_inverse=True)[1]
    assert stats.chisquare(np.bincount(groups, observed), np.bincount(groups, wanted)).pvalue > 1e-7


@pytest.mark.parametrize("few", [NEVER, ALWAYS])
@pytest.mark.parametrize("lonely", [False, True])
def test_tokens_have_their_conditional_law(few, lonely, monkeypatch):
    """The last token drawn many times given the others, all topics read and those of its word; false alarms: 1e-7."""
    monkeypatch.setattr(slots_module, "FEW", few)
    expected = conditional(random_slots(lonely=lonely))
    rng, seen = np.random.default_rng(1), np.zeros(len(expected))
    for _ in range(3000):
        slots = random_slots(lonely=lonely)
        slots.pass_over_tokens(rng, slots.tokens.n_tokens - 1)
        seen[slots.labels[-1] if (slots.labels[:-1] == slots.labels[-1]).any() else -1] += 1
    check_frequencies(seen, expected)


def slots_with_a_table(n, eta, lonely, seed=0):
    """Slots in which all tokens of the last document, of n tokens, have one topic."""
    rng = np.random.default_rng(seed)
    tokens = tokens_of(sparse.csr_matrix([*rng.integers(0, 3, size=(6, 9)), rng.multinomial(n, [1 / 9] * 9)]))
    labels = rng.integers(12, size=tokens.n_tokens)
    labels[-n:] = 12 if lonely else 3
    return slots_of(tokens, labels, rng, eta)


def law_of_the_table(slots, n):
    """By gamma functions."""
    tokens, labels, sticks = slots.tokens, slots.labels[:-n], np.append(slots.weights, slots.rest)
    eta, n_words, own = slots.hyper.eta, tokens.n_words, np.bincount(tokens.words[-n:], minlength=9)
    if not (labels == slots.labels[-1]).any():
        sticks[-1] += sticks[slots.labels[-1]]
        sticks[slots.labels[-1]] = 0.0
    log_score = np.full(len(sticks), -np.inf)
    for k in np.flatnonzero(sticks):
        counts = np.bincount(tokens.words[:-n][labels == k], minlength=n_words)
        whole = counts.sum() + n_words * eta
        log_score[k] = np.log(sticks[k]) + (gammaln(counts + own + eta) - gammaln(counts + eta)).sum()
        log_score[k] += gammaln(whole) - gammaln(whole + n)
    score = np.exp(log_score - log_score.max())
    return score / score.sum()


@pytest.mark.parametrize("few", [NEVER, ALWAYS])
@pytest.mark.parametrize(("n", "eta", "lonely"), [(2, 0.4, False), (2, 0.01, True), (5, 0.1, False), (30, 3.0, True)])
def test_tables_have_their_conditional_law(few, n, eta, lonely, monkeypatch):
    """A table drawn many times given all else, with bounds of scores that decide and that do not; false alarms: 1e-7.

    The concentration of documents is next to nothing, so that the document has one table.
    """
    monkeypatch.setattr(slots_module, "FEW", few)
    expected = law_of_the_table(slots_with_a_table(n, eta, lonely), n)
    rng, seen = np.random.default_rng(2), np.zeros(len(expected))
    for _ in range(2000):
        slots = slots_with_a_table(n, eta, lonely)
        slots.hyper = slots.hyper._replace(alpha=1e-12)
        slots.pass_over_tables(rng, np.array([6]))
        new = slots.labels[-1]
        assert (slots.labels[-n:] == new).all()
        seen[new if (slots.labels[:-n] == new).any() else -1] += 1
    check_frequencies(seen, expected)
    check_counts(slots)


@pytest.mark.parametrize("few", [NEVER, ALWAYS, 32])
def test_counts_and_lists_stay_those_of_the_labels(few, monkeypatch):
    """Topics are born, beyond the room for them, and die; from tokens without topics, and from random ones."""
    monkeypatch.setattr(slots_module, "FEW", few)
    rng = np.random.default_rng(3)
    tokens = tokens_of(sparse.csr_matrix(rng.poisson(0.6, size=(60, 40))))
    starts = np.full(tokens.n_tokens, -1), rng.integers(50, size=tokens.n_tokens)
    for labels in starts:
        sticks = np.ones(1) if labels[0] < 0 else rng.dirichlet(np.ones(labels.max() + 2))
        slots = Slots(tokens, labels.astype(np.int32), sticks, 3.0, 30.0, 0.05)
        first = slots.capacity
        for _ in range(4):
            slots.pass_over_tokens(rng)
            check_counts(slots)
            slots.pass_over_tables(rng, np.arange(60))
            check_counts(slots)
            if few == ALWAYS:
                check_lists(slots)
        assert slots.capacity > first or labels[0] >= 0
        slots.dissolve_topics(rng, 0.2)
        slots.pass_over_tokens(rng)
        check_counts(slots)
        if few == ALWAYS:
            check_lists(slots)


def test_many_topics_and_long_documents_move_as_they_do_densely(monkeypatch):
    """Where topics hardly have words in common nothing moves, and both ways leave the same."""
    rng = np.random.default_rng(4)
    X = np.zeros((120, 400), dtype=int)
    for d in range(120):
        X[d, 10 * (d // 3) : 10 * (d // 3) + 10] = rng.multinomial(400, [0.1] * 10)
    tokens = tokens_of(sparse.csr_matrix(X))
    for few in (NEVER, ALWAYS):
        monkeypatch.setattr(slots_module, "FEW", few)
        slots = slots_of(tokens, tokens.documents // 3, np.random.default_rng(5), 1e-4)
        slots.pass_over_tables(np.random.default_rng(6), np.arange(120))
        assert (slots.labels == tokens.documents // 3).mean() > 0.999
        check_counts(slots)
