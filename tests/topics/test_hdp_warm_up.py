"""Warm-up of the HDP sampler, chains that disagree, and the start of the variational ascent."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from pluri.engine.compiled import compiled
from pluri.inference import mcmc
from pluri.topics.documents import tokens_of
from pluri.topics.hdp import HDPTopicModel, TopicGibbs
from pluri.topics.hdp._dissolve_kernels import empty, take_out
from pluri.topics.hdp.chain_start import topics_of_chain
from pluri.topics.hdp.gibbs_fit import GibbsFit
from pluri.topics.hdp.slots import SlotRoom, Slots, SlotState
from pluri.topics.hdp.starts import chain_inits


def themes(n_documents=150, seed=0):
    """Three topics of twenty words of their own, and documents that have mostly one."""
    rng = np.random.default_rng(seed)
    laws = np.zeros((3, 60))
    for k in range(3):
        laws[k, 20 * k : 20 * (k + 1)] = rng.dirichlet(np.ones(20))
    return np.array([rng.multinomial(60, rng.dirichlet([0.2] * 3) @ laws) for _ in range(n_documents)]), laws


def random_slots(seed=0, n_topics=4):
    """Slots of random documents with random topics."""
    rng = np.random.default_rng(seed)
    tokens = tokens_of(sparse.csr_matrix(rng.integers(0, 4, size=(6, 7))))
    labels = rng.integers(n_topics, size=tokens.n_tokens).astype(np.int32)
    return Slots(tokens, labels, rng.dirichlet(np.ones(n_topics + 1)), 1.3, 0.8, 0.4)


def check_counts(slots):
    """Counts and sizes are those of the labels."""
    counts, kept = np.zeros_like(slots.counts), slots.labels >= 0
    np.add.at(counts, (slots.tokens.words[kept], slots.labels[kept]), 1)
    np.testing.assert_array_equal(counts, slots.counts)
    np.testing.assert_array_equal(counts.sum(axis=0), slots.sizes)


@compiled(cache=False)
def emptied(gone, members, tokens, hyper, state, high, room):
    return empty(gone, members, tokens, hyper, state, high, room)


@compiled(cache=False)
def taken_out(members, tokens, hyper, state, high, room):
    return take_out(members, tokens, hyper, state, high, room)


@pytest.mark.parametrize("which", ["a whole topic", "a topic, token by token", "tokens of several topics"])
def test_words_taken_out_are_predicted_as_one_by_one(which):
    """Against the sum over topics of a token's probability given those that remain, in plain arrays."""
    slots = random_slots()
    tokens, labels, weights = slots.tokens, slots.labels.astype(int), slots.weights
    members = np.arange(0, len(labels), 3) if which.startswith("tokens") else np.flatnonzero(labels == 2)
    n_words, total = slots.tokens.n_words, 0.0
    alive = np.flatnonzero(slots.sizes)
    for t in members:
        labels[t] = -1
        d, w = tokens.documents[t], tokens.words[t]
        rest = labels >= 0
        score = [
            (((labels == k) & (tokens.documents == d)).sum() + 1.3 * weights[k])
            * (((labels == k) & (tokens.words == w)).sum() + 0.4)
            / ((labels[rest] == k).sum() + 0.4 * n_words)
            for k in alive
        ]
        total += np.log(np.sum(score))
    state = SlotState(slots.labels, slots.counts, slots.sizes, weights, slots.rest)
    given = members, tokens.arrays, slots.hyper, state, slots.capacity, SlotRoom.of(slots.capacity)
    whole = which == "a whole topic"
    found = emptied(2, *given) if whole else taken_out(*given)
    assert found == pytest.approx(total, rel=1e-10)
    np.testing.assert_array_equal(slots.labels, labels)
    check_counts(slots)


@pytest.mark.parametrize("seed", range(5))
def test_trials_leave_all_counts_right(seed):
    slots, rng = random_slots(seed), np.random.default_rng(seed)
    n_before = (slots.sizes > 0).sum()
    n_gone = slots.dissolve_topics(rng, 0.5)
    check_counts(slots)
    assert (slots.sizes > 0).sum() == n_before - n_gone
    labels, weights = slots.close()
    assert weights.sum() == pytest.approx(1.0)
    assert set(labels) == set(range(n_before - n_gone))


def test_refused_trial_changes_nothing():
    """Two topics without a word or a document in common: each is needed."""
    X = np.kron(np.eye(2, dtype=int), np.full((20, 3), 5))
    tokens = tokens_of(sparse.csr_matrix(X))
    labels = (tokens.words >= 3).astype(np.int32)
    slots = Slots(tokens, labels, np.array([0.4, 0.4, 0.2]), 1.0, 1.0, 0.1)
    assert slots.dissolve_topics(np.random.default_rng(0), 1.0) == 0
    np.testing.assert_array_equal(slots.labels, labels)
    check_counts(slots)


def test_blend_of_two_topics_is_dissolved():
    """A third topic that mixes the words of two others goes, where sweeps keep it."""
    rng = np.random.default_rng(0)
    X = np.array([rng.multinomial(40, np.repeat(shares, 4) / 4) for shares in rng.dirichlet([0.3] * 2, size=60)])
    tokens = tokens_of(sparse.csr_matrix(X))
    labels = np.where(tokens.documents % 5 == 0, 2, tokens.words >= 4).astype(np.int32)
    slots = Slots(tokens, labels, np.array([0.35, 0.35, 0.2, 0.1]), 1.0, 1.0, 0.1)
    # A trial is accepted by chance, from two in three data sets at the first time.
    assert next((n for n in (slots.dissolve_topics(rng, 1.0) for _ in range(30)) if n), 0) == 1
    labels, _ = slots.close()
    assert np.mean((labels == labels[0]) == ((tokens.words >= 4) == (tokens.words[0] >= 4))) > 0.9


def test_warm_up_ends_with_the_kernel_that_was_given():
    kernel = TopicGibbs(tokens_of(sparse.csr_matrix([[3, 1], [0, 2]])), table_share=0.6)
    for n_warmup in (0, 1, 2, 7, 40):
        warm_up = kernel.adaptation(n_warmup)
        now, shares = warm_up.start(None, kernel, None), []
        for _ in range(n_warmup):
            shares.append((now.dissolved_share, now.table_share))
            now = warm_up.update(None, now, None, {})
        now = warm_up.finish(now)
        assert (now.dissolved_share, now.table_share) == (0.0, 0.6)
        if n_warmup == 40:
            assert shares[0][0] > 0
            assert shares[0][1] == 0
            assert shares[-1] == (0.0, 0.6)


@pytest.mark.parametrize("seed", range(3))
def test_no_theme_is_listed_twice_after_a_few_sweeps(seed):
    """Three themes, 150 documents, forty sweeps of two chains, one of them from the words of fifty documents."""
    X, laws = themes(seed=seed)
    model = HDPTopicModel(topic_word_prior=0.1, n_warmup=30, n_draws=10, n_chains=2, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X)
    assert model.n_large_topics_ == 3
    large = model.topic_word_[model.topic_weight_ > 0.01]
    distance = 0.5 * np.abs(laws[:, None] - large[None]).sum(axis=2)
    assert len(large) == 3
    assert sorted(distance.argmin(axis=1)) == [0, 1, 2]
    assert distance.min(axis=1).max() < 0.1


def test_chains_of_both_starts_agree_on_themes():
    """Without a warning in seven fits of eight; each start by itself tells the same interval."""
    for seed in range(6):  # all of them warn in 4e-6
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = HDPTopicModel(topic_word_prior=0.1, n_chains=2, n_warmup=100, random_state=seed).fit(themes()[0])
        assert model.n_large_topics_interval_ == (3, 3)
        if not caught:
            break
    assert not caught
    assert set(model.r_hat_) == {"n_topics", "n_large_topics", "log_density"}
    assert not model.r_hat_["n_large_topics"] > 1.1  # NaN if it never moved
    assert model.converged_
    draws = model.trace_["n_topics"]
    assert model.n_topics_interval_ == tuple(np.quantile(draws, (0.025, 0.975), method="inverted_cdf"))
    assert chain_inits("auto", 3) == ["sequential", "documents", "sequential"]
    assert chain_inits("random", 2) == ["random", "random"]


def test_disagreement_is_told_with_what_to_do():
    rng = np.random.default_rng(0)
    draws = {
        "n_topics": np.repeat([[30.0], [90.0]], 20, axis=1),
        "n_large_topics": rng.integers(9, 12, size=(2, 20)).astype(float),
    }
    log_joint = -1e4 + rng.normal(size=(2, 20)) + [[0.0], [8.0]]  # 8 in 10,000 is a trifle
    trace = mcmc.Trace(draws, {"log_density": log_joint})
    fit = GibbsFit(trace, ["sequential", "documents"], None, None, None, 0.0)
    assert trace.verdict("log_density").r_hat > 1.5
    assert (fit.verdict().settled, fit.verdict().name) == (False, "n_topics")
    assert "30 to 30 from init='sequential'; 90 to 90 from init='documents'" in fit.seen()
    assert "n_large_topics_interval_ is one on which they agree" in fit.seen()
    close = {**draws, "n_topics": np.repeat([[3.2], [3.9]], 20, axis=1)}
    assert replace(fit, trace=replace(trace, draws=close)).verdict()
    apart = replace(trace, stats={"log_density": 5 * log_joint * [[1.0], [1.01]]}, draws=close)
    assert replace(fit, trace=apart).verdict().name == "log_density"


def test_hurried_chains_are_warned_of():
    with pytest.warns(ConvergenceWarning, match="the chains have not settled"):
        HDPTopicModel(n_warmup=0, n_draws=12, n_chains=2, random_state=0).fit(themes()[0])


@pytest.mark.filterwarnings("ignore:all 6 topics are in use")
def test_start_of_the_ascent_has_all_tokens_and_lifts_the_bound():
    """The same settings from documents end lower; weights that are not whole are rounded without bias.

    Of six starts five end no lower than a thousandth below; fewer than four of twelve would be a false alarm of 1e-5.
    """
    X = themes(60)[0]
    found = topics_of_chain(np.random.default_rng(0), sparse.csr_matrix(X), 5)
    assert found.shape == (5, 60)
    assert found.sum() == pytest.approx(X.sum(), rel=0.02)
    halves = topics_of_chain(np.random.default_rng(0), sparse.csr_matrix(X * 0.5), 5)
    assert halves.sum() == pytest.approx(0.5 * X.sum(), rel=0.05)
    assert topics_of_chain(np.random.default_rng(0), sparse.csr_matrix(np.full((1, 3), 1e-9)), 5) is None
    settings, n_above = {"max_topics": 6, "max_doc_topics": 4, "topic_word_prior": 0.1}, 0
    for seed in range(12):
        X = themes(60, seed)[0]
        ours, theirs = (
            HDPTopicModel("vb", init=init, random_state=seed, **settings).fit(X).bound_
            for init in ("auto", "documents")
        )
        n_above += ours >= theirs - 1e-3 * abs(theirs)
    assert n_above >= 4
