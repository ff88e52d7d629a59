"""Hierarchical Pachinko allocation against enumeration, closed forms, and joint distribution tests."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy import sparse
from scipy.special import digamma, gammaln, logsumexp
from sklearn.utils.estimator_checks import check_estimator

import pluri.io
from pluri import on_interrupt
from pluri.inference import mcmc
from pluri.testing import SamplerProblem, check_sampler, enumerate_posterior
from pluri.topics.dirichlet_counts import CountTable
from pluri.topics.documents import tokens_of
from pluri.topics.hierarchical import HierarchicalPachinko
from pluri.topics.hierarchical.pachinko import PachinkoTopics
from pluri.topics.hierarchical.pachinko_gibbs import PachinkoGibbs, Uses

ROOT, SUB, ETA = np.array([0.4, 0.9, 0.6]), np.array([[0.5, 0.3, 0.8], [0.7, 1.1, 0.2]]), 0.4
X = sparse.csr_matrix(np.array([[2, 0, 1], [0, 2, 0]], dtype=float))
STATES = [(0, 0), (1, 0), (2, 0), (1, 1), (1, 2), (2, 1), (2, 2)]


def kernel_of(counts=X, **settings):
    return PachinkoGibbs(tokens_of(counts), ROOT, SUB, ETA, **settings)


def log_states(states, root=ROOT, sub=SUB):
    """Log probability of the states of one document, token after token."""
    upper, lower, total = root.copy(), sub.copy(), 0.0
    for s, t in states:
        total += np.log(upper[s] / upper.sum())
        upper[s] += 1
        if s > 0:
            total += np.log(lower[s - 1, t] / lower[s - 1].sum())
            lower[s - 1, t] += 1
    return total


def node_of(s, t, n_super=2):
    return n_super + t if t > 0 else s


def plain_log_joint(supers, subs, tokens):
    total = 0.0
    for begin, end in zip(tokens.offsets[:-1], tokens.offsets[1:]):
        total += log_states(zip(supers[begin:end], subs[begin:end]))
    topics = np.full((5, tokens.n_words), ETA)
    for word, s, t in zip(tokens.words, supers, subs):
        node = node_of(s, t)
        total += np.log(topics[node, word] / topics[node].sum())
        topics[node, word] += 1
    return total


def enumeration_problem():
    """States of five tokens against all 7^5 of them."""
    kernel = kernel_of()
    tokens = kernel.tokens
    every = [tuple(np.array(list(states)).T) for states in product(STATES, repeat=tokens.n_tokens)]
    posterior = enumerate_posterior(lambda pair: plain_log_joint(*pair, tokens), configurations=every)

    def move(rng, pair):
        moved = kernel.sweep(rng, {"supers": np.asarray(pair[0]), "subs": np.asarray(pair[1])}, tokens.words)
        return np.array(moved["supers"]), np.array(moved["subs"])

    return SamplerProblem(
        "hierarchical Pachinko against enumeration", kernel=move, posterior=posterior, n_steps=3,
        statistics=lambda pair, _: {
            "first": np.equal(pair[0], 1), "second": np.equal(pair[0], 2), "below": np.asarray(pair[1]) > 0,
            "same": float(pair[0][0] == pair[0][1]), "sub": np.mean(pair[1]),
        },
    )  # fmt: skip


def joint_problem():
    """States and words drawn in two ways."""
    kernel = kernel_of(sparse.csr_matrix(np.array([[5, 0, 0, 3], [4, 2, 0, 0], [0, 0, 2, 1]], dtype=float)))
    document = kernel.tokens.documents
    neighbours = document[:, None] == document

    def statistics(position, words):
        supers, subs = position["supers"], position["subs"]
        siblings = neighbours & (supers[:, None] == supers) & (supers > 0)
        return {
            "root": (supers == 0).sum(), "exit": ((supers > 0) & (subs == 0)).sum(), "first": (supers == 1).sum(),
            "sub": (subs == 1).sum(), "words": np.bincount(words, minlength=4)[:2],
            "siblings": siblings.sum(), "twins": (siblings & (subs[:, None] == subs)).sum(),
            "pairs": ((supers[:-1] == supers[1:]) & (words[:-1] == words[1:])).sum(),
            "same": ((subs[:, None] == subs) & (words[:, None] == words)).sum(),
        }  # fmt: skip

    return SamplerProblem(
        "hierarchical Pachinko, joint distribution",
        prior=kernel.sample_prior,
        data=kernel.sample_data,
        transition=kernel.sweep,
        statistics=statistics,
        log_likelihood=kernel.log_joint,
        n_steps=5,
    )


def test_joint_test_finds_a_sampler_with_another_prior(monkeypatch):
    original = PachinkoGibbs._pass

    def wrong(self, rng, state):
        original(replace(self, sub_prior=3.0 * self.sub_prior), rng, state)

    monkeypatch.setattr(PachinkoGibbs, "_pass", wrong)
    assert not check_sampler(joint_problem(), alpha=1e-3, n_replications=1500, random_state=0).passed


def test_log_joint_of_the_chain_equals_plain_urns():
    counts = sparse.csr_matrix(np.random.default_rng(0).poisson(1.0, size=(8, 6)).astype(float))
    kernel, rng = kernel_of(counts), np.random.default_rng(1)
    state = kernel.init(rng, kernel.start())
    for _ in range(5):
        state, _ = kernel.step(rng, state)
        expected = plain_log_joint(state.supers, state.subs, kernel.tokens)
        assert state.log_density == pytest.approx(expected, abs=1e-9)
        assert state.log_density == pytest.approx(kernel.log_joint(state.position), abs=1e-9)
        nodes = np.where(state.subs > 0, 2 + state.subs, state.supers)
        np.testing.assert_array_equal(state.sizes, np.bincount(nodes, minlength=5))
        fresh = np.zeros_like(state.counts)
        np.add.at(fresh, (kernel.tokens.words, nodes), 1)
        np.testing.assert_array_equal(state.counts, fresh)
    assert state.best_log_density >= state.log_density


def test_ways_of_documents_are_counted():
    kernel = kernel_of(sparse.csr_matrix(np.array([[90.0, 5.0, 1.0], [0, 0, 0], [2, 0, 1]])))
    supers, subs = np.ones(99, dtype=np.int32), np.full(99, 2, dtype=np.int32)
    supers[96:], subs[96:] = [0, 2, 2], [0, 1, 1]
    uses = Uses.of(kernel.tokens, supers, subs, 2, 2)
    assert sorted(zip(uses.lower.columns, uses.lower.counts)) == [(2, 96), (4, 2)]
    assert sorted(zip(uses.upper.columns, uses.upper.counts)) == [(0, 1), (1, 96), (2, 2)]
    expected = log_states([(1, 2)] * 96) + log_states([(0, 0), (2, 1), (2, 1)])
    assert uses.log_marginal(ROOT, SUB) == pytest.approx(expected, abs=1e-9)


def test_a_long_document_needs_no_more_memory_than_its_tokens():
    """Tables have an entry for each count that occurs, however large it is."""
    kernel = kernel_of(sparse.csr_matrix(np.array([[2e5, 1e5, 3.0]])))
    rng = np.random.default_rng(0)
    supers = rng.integers(1, 26, size=kernel.tokens.n_tokens).astype(np.int32)
    subs = rng.integers(0, 26, size=kernel.tokens.n_tokens).astype(np.int32)
    uses = Uses.of(kernel.tokens, supers, subs, 25, 25)
    assert uses.lower.counts.size == 25 * 26
    assert uses.lower.counts.sum() == uses.upper.counts.sum() == kernel.tokens.n_tokens


def dirichlet_log_likelihood(counts, prior):
    whole = gammaln(prior.sum()) - gammaln(prior.sum() + counts.sum(axis=1))
    return float((whole + (gammaln(counts + prior) - gammaln(prior)).sum(axis=1)).sum())


def test_learned_priors_are_the_maximum():
    """Each step does not lower the likelihood; at rest its gradient, with the pseudo-count, is zero."""
    rng = np.random.default_rng(0)
    counts = np.array([rng.multinomial(30, rng.dirichlet([0.5, 2.0, 1.0])) for _ in range(200)])
    table = CountTable.of(counts.nonzero()[1], counts[counts > 0], counts.sum(axis=1), 3)
    unused = CountTable.of(*np.zeros((3, 0), dtype=int), 4, groups=np.zeros(0, dtype=int), n_groups=2)
    uses = Uses(table, unused)
    prior, value = np.full(3, 1.0), -np.inf
    for _ in range(20):
        prior = uses.learn("root_prior", prior, 5)
        np.testing.assert_array_equal(uses.learn("sub_prior", np.full((2, 2), 0.3), 5), 0.3)
        new = dirichlet_log_likelihood(counts, prior)
        assert new > value - 1e-6
        value = new
    prior = uses.learn("root_prior", prior, 500)
    length = counts.sum(axis=1)
    gradient = (digamma(counts + prior) - digamma(prior)).sum(axis=0) + (
        digamma(prior.sum()) - digamma(prior.sum() + length)
    ).sum()
    np.testing.assert_allclose(prior * gradient + 1e-3, 0.0, atol=1e-5)
    np.testing.assert_allclose(prior, [0.5, 2.0, 1.0], rtol=0.25)


def test_warm_up_learns_the_priors_and_draws_keep_them():
    """Documents that use one super-topic each: the prior of the ways becomes small."""
    counts = sparse.csr_matrix(np.repeat([[0, 9, 9, 0, 0], [0, 0, 0, 9, 9]], 15, axis=0).astype(float))
    kernel = PachinkoGibbs(tokens_of(counts), np.full(3, 1.0), np.full((2, 3), 1.0), 0.1, ("root_prior", "sub_prior"))
    trace = mcmc.sample(
        kernel, kernel.start(), record=kernel.record, n_draws=30, n_warmup=100, n_chains=1, random_state=0, warn=False
    )  # fmt: skip
    end = trace.ends[0]
    assert end.settings["root_prior"].sum() < 2.0
    assert end.state.best_log_density == pytest.approx(trace.stats["log_density"].max())
    np.testing.assert_array_equal(end.state.best["root_prior"], end.settings["root_prior"])


# New documents -------------------------------------------------------------------------------------------------------

TOPICS = PachinkoTopics(np.random.default_rng(3).dirichlet(np.full(3, 0.6), size=5), ROOT, SUB)


def exact_document(words):
    """Log p(words), and the posterior mean of the shares, over all states."""
    values, shares = [], []
    for states in product(STATES, repeat=len(words)):
        emitted = sum(np.log(TOPICS.topic_word[node_of(s, t), w]) for (s, t), w in zip(states, words))
        values.append(log_states(states) + emitted)
        upper, lower = ROOT.copy(), SUB.copy()
        for s, t in states:
            upper[s] += 1
            if s > 0:
                lower[s - 1, t] += 1
        ways = upper[1:, None] * lower / lower.sum(axis=1, keepdims=True)
        shares.append(np.concatenate([[upper[0]], ways[:, 0], ways[:, 1:].sum(axis=0)]) / upper.sum())
    total = logsumexp(values)
    return total, np.exp(np.array(values) - total) @ np.array(shares)


def counts_of(words):
    return sparse.csr_matrix(np.bincount(words, minlength=3)[None].astype(float))


@pytest.mark.parametrize("words", [[0], [1, 1], [2, 0, 2], [0, 1, 2, 2]])
def test_left_to_right_equals_enumeration(words):
    """Four particles have no bias: the mean of 10,000 estimates; five standard errors, false-alarm rate below 1e-6."""
    rng = np.random.default_rng(1)
    many = sparse.vstack([counts_of(words)] * 10_000).tocsr()
    estimates = np.exp(TOPICS.left_to_right(many, rng, n_particles=4).log_likelihood)
    exact = exact_document(words)[0]
    assert abs(estimates.mean() - np.exp(exact)) < 5 * estimates.std() / 100 + 1e-12
    closer = TOPICS.left_to_right(counts_of(words), rng, n_particles=4000)
    assert closer.log_likelihood[0] == pytest.approx(exact, abs=0.02)


@pytest.mark.parametrize("words", [[1], [2, 0, 2], [0, 1, 2, 2]])
def test_empirical_likelihood_equals_enumeration(words):
    """100,000 documents; the error is below 0.02 nats with probability above 1 - 1e-4."""
    from pluri.topics.held_out import empirical_likelihood

    drawn, shares = TOPICS.draw(np.random.default_rng(2), 100_000)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    score = empirical_likelihood(drawn, counts_of(words))
    assert score.log_likelihood[0] == pytest.approx(exact_document(words)[0], abs=0.02)


@pytest.mark.parametrize("words", [[], [1], [2, 0, 2], [0, 1, 2, 2]])
def test_shares_of_a_document_equal_enumeration(words):
    """20,000 sweeps: errors of 0.02 are more than five standard errors."""
    shares = TOPICS.place(counts_of(np.array(words, dtype=int)), 7, n_warmup=50, n_draws=20_000)
    np.testing.assert_allclose(shares[0], exact_document(words)[1], atol=0.02)


def test_documents_do_not_depend_on_one_another():
    many = sparse.vstack([counts_of([0, 1]), counts_of([2, 2, 1]), counts_of([0, 1])]).tocsr()
    shares = TOPICS.place(many, 0)
    np.testing.assert_array_equal(shares[0], shares[2])
    np.testing.assert_array_equal(shares[1], TOPICS.place(counts_of([2, 2, 1]), 0)[0])


# The estimator -------------------------------------------------------------------------------------------------------

GROUPS = np.repeat([[6, 9, 0, 0, 0], [6, 0, 9, 0, 0], [6, 0, 0, 5, 4]], 10, axis=0)


def quick(n_super=2, n_sub=3, **settings):
    given = {"n_warmup": 60, "n_draws": 20, "random_state": 0} | settings
    return HierarchicalPachinko(n_super, n_sub, **given)


def test_topics_of_groups_are_found():
    model = quick(3, 3, n_chains=3, n_warmup=200).fit(GROUPS)
    np.testing.assert_allclose(model.topic_word_.sum(axis=1), 1.0)
    assert model.topic_weight_.sum() == pytest.approx(1.0)
    assert model.components_.sum() == pytest.approx(GROUPS.sum() + 7 * 5 * 0.1)
    shares = model.transform(GROUPS)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    foretold = shares @ model.topic_word_
    assert (foretold[:10, 1] > 0.5).all()
    assert (foretold[10:20, 2] > 0.5).all()
    graph = model.topic_graph()
    assert {node.depth for node in graph.nodes} == {0, 1, 2}
    for parent in range(4):
        out = [edge.weight for edge in graph.edges if edge.parent == parent]
        assert sum(out) <= 1 + 1e-9
    assert sum(edge.weight for edge in graph.edges if edge.parent == 0) == pytest.approx(1.0)
    assert "super" in model.summary()
    counted = model.way_counts_.sum() + GROUPS.sum() * model.topic_weight_[0]
    assert counted == pytest.approx(GROUPS.sum())


def test_a_huge_prior_makes_topics_uniform():
    model = quick(topic_word_prior=1e9).fit(GROUPS)
    for method in ("completion", "left_to_right", "empirical"):
        assert model.held_out(GROUPS, method).per_word == pytest.approx(-np.log(5), abs=1e-4)


def test_scores_prefer_the_words_that_belong_together():
    model = quick(3, 3, n_warmup=200).fit(GROUPS)
    strange = np.tile([0, 4, 4, 3, 2], (5, 1))
    for method in ("completion", "left_to_right", "empirical"):
        assert model.held_out(GROUPS[::10], method).per_word > model.held_out(strange, method).per_word + 0.2


@pytest.mark.parametrize(
    "settings", [{"super_prior": 0.1, "sub_prior": 0.1}, {"n_chains": 2, "n_jobs": 2, "thin": 2}, {"n_sub": 1}]
)
def test_settings_run_and_repeat_themselves(settings):
    first, second = quick(**settings).fit(GROUPS), quick(**settings).fit(sparse.coo_matrix(GROUPS))
    np.testing.assert_array_equal(first.topic_word_, second.topic_word_)
    np.testing.assert_array_equal(first.log_joint_, second.log_joint_)
    assert first.best_log_joint_ >= first.log_joint_[first.best_chain_].max() - 1e-9
    np.testing.assert_array_equal(first.transform(GROUPS), second.transform(GROUPS))


def test_made_up_documents_have_the_given_length():
    model = quick().fit(GROUPS)
    made, shares = model.sample(50, 15, random_state=3)
    assert (np.asarray(made.sum(axis=1)).ravel() == 15).all()
    assert shares.shape == (50, 6)
    again, _ = model.sample(50, 15, random_state=3)
    assert (made != again).nnz == 0


def test_model_survives_a_file(tmp_path):
    model = quick().fit(GROUPS)
    pluri.io.save(model, tmp_path / "model.skops")
    loaded = pluri.io.load(tmp_path / "model.skops")
    np.testing.assert_array_equal(loaded.transform(GROUPS), model.transform(GROUPS))


@pytest.mark.parametrize("data", [
    np.array([[3, 1, 0]]), np.array([[0, 0, 1], [0, 0, 0]]), np.array([[5]]), np.eye(2),
])  # fmt: skip
@pytest.mark.filterwarnings("ignore:.*no words")
def test_odd_corpora(data):
    model = quick(4, 6).fit(data)
    np.testing.assert_allclose(model.transform(data).sum(axis=1), 1.0)
    assert (model.sub_prior_ > 0).all()
    for method in ("completion", "left_to_right", "empirical"):
        assert np.isfinite(model.held_out(data, method).log_likelihood).all()


@pytest.mark.parametrize("settings", [
    {"n_super": 0}, {"n_sub": 1.5}, {"super_prior": -1.0}, {"sub_prior": 0}, {"sub_prior": "lern"},
    {"topic_word_prior": "x"}, {"n_draws": 0},
])  # fmt: skip
def test_errors_name_the_argument(settings):
    with pytest.raises(ValueError, match=next(iter(settings))):
        quick(**settings).fit(GROUPS)


def test_errors_of_scoring():
    model = quick().fit(GROUPS)
    with pytest.raises(ValueError, match="method"):
        model.held_out(GROUPS, "guess")
    with pytest.raises(ValueError, match="n_samples"):
        model.held_out(GROUPS, "empirical", n_samples=0)


def test_ctrl_c_keeps_the_sweeps_so_far(monkeypatch):
    step, calls = PachinkoGibbs.step, []

    def stops(self, rng, state):
        calls.append(1)
        if len(calls) == 70:
            raise KeyboardInterrupt
        return step(self, rng, state)

    monkeypatch.setattr(PachinkoGibbs, "step", stops)
    with on_interrupt("keep"), pytest.warns(UserWarning, match="interrupted"):
        model = quick().fit(GROUPS)
    assert model.log_joint_.shape[1] < 20
    assert model.transform(GROUPS).shape == (30, 6)


@pytest.mark.filterwarnings("ignore:.*no words")
def test_scikit_learn_accepts_it():
    check_estimator(quick(n_warmup=5, n_draws=5), on_skip=None)


def test_a_prior_that_is_a_number_stays_while_the_other_is_learned():
    model = quick(super_prior=0.3).fit(GROUPS)
    np.testing.assert_array_equal(model.super_prior_, 0.3)
    assert np.ptp(model.sub_prior_) > 0
