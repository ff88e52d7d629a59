"""Collapsed Gibbs sampling for LDA against enumeration, closed forms and draws from the joint distribution."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy import sparse
from scipy.special import digamma, gammaln, logsumexp

from pluri.datasets import make_bars
from pluri.inference import mcmc
from pluri.priors import Gamma
from pluri.testing import SamplerProblem, enumerate_posterior
from pluri.topics.dirichlet_counts import CountTable, fixed_point
from pluri.topics.documents import Tokens, tokens_of
from pluri.topics.lda.sampling import gibbs, partitioned_sweeps
from pluri.topics.lda.sampling.fold_in import fold_in
from pluri.topics.lda.sampling.gibbs import CollapsedGibbs
from pluri.topics.lda.sampling.partitioned_sweeps import partition
from pluri.topics.lda.sampling.priors_learning import PriorLearning, slice_priors
from pluri.topics.lda.sampling.topic_assignments import GibbsState, check_counts
from pluri.topics.lda.variational.doc_topic_prior import best_doc_topic_prior

#: Documents (0, 0, 1) and (2, 2, 1); tokens in the order of the columns.
TINY = tokens_of(sparse.csr_matrix([[2, 1, 0], [0, 1, 2]]))
#: The same in the order in which the exact figures name tokens.
AS_WRITTEN = Tokens(np.array([0, 0, 1, 2, 2, 1], dtype=np.int32), TINY.documents, TINY.offsets, 3)
WAYS = {
    "dense": {"method": "dense"},
    "sparse": {"method": "sparse"},
    "dense, two threads": {"method": "dense", "n_threads": 2},
    "sparse, two threads": {"method": "sparse", "n_threads": 2},
}


def log_joint(topics, tokens, alpha, eta):
    """As the formula stands, with dense counts; alpha (K,), eta (K, V)."""
    k, v = eta.shape
    words, documents = np.zeros((k, v)), np.zeros((tokens.n_documents, k))
    np.add.at(words, (topics, tokens.words), 1)
    np.add.at(documents, (tokens.documents, topics), 1)
    value = 0.0
    for counts, prior in ((words, eta), (documents, np.broadcast_to(alpha, documents.shape))):
        value += (gammaln(counts + prior) - gammaln(prior)).sum()
        value += (gammaln(prior.sum(axis=1)) - gammaln((counts + prior).sum(axis=1))).sum()
    return float(value)


def every_joint(tokens, alpha, eta):
    z = np.array(list(product(range(len(alpha)), repeat=tokens.n_tokens)))
    return z, np.array([log_joint(row, tokens, alpha, eta) for row in z])


def state_of(topics, tokens, alpha, eta):
    return GibbsState(tokens, np.asarray(topics, dtype=np.int32), np.asarray(alpha), np.asarray(eta))


def corpus(seed=0, n_documents=200, n_words=60, n_topics=5, length=30):
    rng = np.random.default_rng(seed)
    phi = rng.dirichlet(np.full(n_words, 0.1), size=n_topics)
    theta = rng.dirichlet(np.full(n_topics, 0.3), size=n_documents)
    return sparse.csr_matrix([rng.multinomial(length, p) for p in theta @ phi])


# Exact figures -------------------------------------------------------------------------------------------------------


def test_log_joints_of_the_tiny_corpus_are_the_known_ones():
    alpha = np.full(2, 0.5)
    for topics, value in (([0] * 6, -10.8444943), ([0, 0, 0, 1, 1, 1], -9.4369977)):
        assert state_of(topics, AS_WRITTEN, alpha, 0.5).log_density == pytest.approx(value, abs=1e-7)
    z, _ = every_joint(AS_WRITTEN, alpha, np.full((2, 3), 0.5))
    total = logsumexp([state_of(row, AS_WRITTEN, alpha, 0.5).log_density for row in z])
    assert total == pytest.approx(-7.5795091, abs=5e-8)


@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
def test_log_joint_equals_the_formula_for_every_kind_of_prior(shape):
    rng = np.random.default_rng(0)
    alpha, eta = rng.gamma(1.0, size=2), np.asarray(rng.gamma(1.0, size=shape))
    z, values = every_joint(TINY, alpha, np.broadcast_to(eta, (2, 3)))
    ours = [state_of(row, TINY, alpha, eta).log_density for row in z]
    np.testing.assert_allclose(ours, values, rtol=1e-12)


@pytest.mark.parametrize("way", WAYS)
def test_co_assignments_are_the_exact_ones(way):
    """15,000 sweeps; standard errors below 0.008 (autocorrelation included), tolerance six of them."""
    kernel = CollapsedGibbs(TINY, 2, 0.5, 0.5, **WAYS[way])
    rng = np.random.default_rng(1)
    state = kernel.init(rng, kernel.start(rng))
    draws = np.empty((5_000 if "threads" in way else 15_000, 6), dtype=np.int32)
    for row in draws:
        kernel.step(rng, state)
        row[:] = state.topics
    # Tokens in the order of the columns: words 0 0 1 | 1 2 2.
    exact = {(0, 1): 0.8736, (0, 2): 0.6960, (0, 4): 0.2669, (2, 3): 0.5480}
    # Two threads see totals of six tokens late, where a total of thousands would hardly differ.
    slack = 0.04 if "threads" in way else 0.0
    for (i, j), value in exact.items():
        assert abs((draws[:, i] == draws[:, j]).mean() - value) < 0.048 + slack


def enumeration_problem(method, shape=(), n_topics=2):
    """Topics of the tiny corpus against all of them, with priors of unequal parameters."""
    rng = np.random.default_rng(3)
    alpha, eta = rng.gamma(2.0, size=n_topics), np.asarray(rng.gamma(1.0, size=shape))
    kernel = CollapsedGibbs(TINY, n_topics, alpha, eta, method=method)
    wide = np.broadcast_to(eta, (n_topics, 3))
    posterior = enumerate_posterior(lambda z: log_joint(z, TINY, alpha, wide), [range(n_topics)] * 6)

    def move(rng, topics):
        return kernel.sweep(rng, {"topics": topics}, TINY.words)["topics"].astype(np.int64)

    return SamplerProblem(f"LDA, {method}, {shape}", kernel=move, posterior=posterior, n_steps=2)


def joint_problem(method, learned=False, n_topics=3):
    """Words, topics and, if they are learned, priors drawn in two ways (Geweke)."""
    tokens = Tokens(
        np.zeros(9, dtype=np.int32), np.repeat(np.arange(3, dtype=np.int32), 3), np.arange(0, 10, 3, dtype=np.int64), 4
    )
    learning = PriorLearning("sample", Gamma(2.0, 2.0), Gamma(2.0, 2.0))
    options = {"learning": learning} if learned else {}
    kernel = CollapsedGibbs(tokens, n_topics, [0.5, 1.0, 2.0][:n_topics], 0.7, method=method, **options)

    def statistics(position, words):
        topics = position["topics"]
        sizes = np.bincount(topics, minlength=n_topics)
        found = {
            "sizes": sizes,
            "squares": (sizes**2).sum(),
            "pair": float(topics[0] == topics[1]),
            "across": float(topics[0] == topics[5]),
            "same words": sum(float(words[i] == words[j]) for i in range(9) for j in range(i)),
            "agree": sum(float(words[i] == words[j] and topics[i] == topics[j]) for i in range(9) for j in range(i)),
        }
        if learned:
            found["log alpha"] = np.log(position["doc_topic_prior"])
            found["log eta"] = np.log(position["topic_word_prior"])
        return found

    def fit(position, words):
        alpha, eta = position["doc_topic_prior"], np.full((n_topics, 4), float(position["topic_word_prior"]))
        return log_joint(position["topics"], replace(tokens, words=words), alpha, eta)

    return SamplerProblem(
        f"LDA, {method}", prior=kernel.sample_prior, data=kernel.sample_words, transition=kernel.sweep,
        statistics=statistics, log_likelihood=fit, n_steps=3,
    )  # fmt: skip


def test_one_topic_is_the_closed_form():
    X = corpus(n_documents=5)
    kernel = CollapsedGibbs(tokens_of(X), 1, 0.3, 0.2)
    rng = np.random.default_rng(0)
    state = kernel.init(rng, kernel.start(rng))
    kernel.step(rng, state)
    totals = np.asarray(X.sum(axis=0)).ravel()
    words = (gammaln(totals + 0.2) - gammaln(0.2)).sum() + gammaln(60 * 0.2) - gammaln(totals.sum() + 60 * 0.2)
    assert state.log_density == pytest.approx(words)
    np.testing.assert_allclose(state.topic_word()[0], (totals + 0.2) / (totals.sum() + 12.0))
    np.testing.assert_array_equal(state.doc_topic(), np.ones((5, 1)))


# Bookkeeping ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_topics", [1, 5, 16, 50, 300, 1100])
@pytest.mark.parametrize("way", WAYS)
def test_counts_and_log_joint_stay_those_of_the_tokens(way, n_topics):
    tokens = tokens_of(corpus(n_documents=40))
    kernel = CollapsedGibbs(tokens, n_topics, 0.1, 0.01, **WAYS[way])
    rng = np.random.default_rng(0)
    state = kernel.init(rng, kernel.start(rng))
    for _ in range(4):
        kernel.step(rng, state)
        check_counts(state)
        assert 0 <= state.topics.min() <= state.topics.max() < n_topics
    anew = log_joint(state.topics, tokens, state.doc_topic_prior, np.full((n_topics, tokens.n_words), 0.01))
    assert state.log_density == pytest.approx(anew, rel=1e-10)
    np.testing.assert_array_equal(
        state.document_counts().toarray().sum(axis=0), np.bincount(state.topics, minlength=n_topics)
    )


@pytest.mark.parametrize("way", WAYS)
def test_the_same_seed_gives_the_same_topics_in_threads_or_one_after_another(way, monkeypatch):
    tokens = tokens_of(corpus())
    kernel = CollapsedGibbs(tokens, 20, 0.1, 0.01, **WAYS[way])
    ends = []
    for few in (0, 0, 10**9):
        monkeypatch.setattr(gibbs, "FEW_TOKENS", few)
        rng = np.random.default_rng(5)
        state = kernel.init(rng, kernel.start(rng))
        for _ in range(5):
            kernel.step(rng, state)
        ends.append(state.topics)
    assert (ends[0] == ends[1]).all()
    assert (ends[0] == ends[2]).all()


@pytest.mark.parametrize("n_parts", [1, 2, 3, 7])
def test_a_partition_has_every_token_once_and_no_word_twice_at_a_time(n_parts):
    tokens = tokens_of(corpus(n_documents=5))
    cut = partition(tokens, n_parts)
    seen = np.zeros(tokens.n_tokens, dtype=int)
    for step in range(n_parts):
        owners = {}
        for part in range(n_parts):
            own = (part + step) % n_parts
            for d in range(cut.documents[part], cut.documents[part + 1]):
                block = slice(cut.bounds[own, d], cut.bounds[own + 1, d])
                seen[block] += 1
                for word in tokens.words[block]:
                    assert owners.setdefault(word, part) == part
    assert (seen == 1).all()


@pytest.mark.parametrize("way", ["sparse", "dense, two threads", "sparse, two threads"])
def test_all_ways_have_the_same_stationary_log_joint(way):
    """Mean log joint of 4 chains of 300 sweeps each; chain means differ by 3 at least; the limit is eight errors."""
    tokens = tokens_of(corpus(n_documents=60))

    def means(**options):
        kernel = CollapsedGibbs(tokens, 8, 0.3, 0.1, **options)
        found = []
        for seed in range(4):
            rng = np.random.default_rng(seed)
            state = kernel.init(rng, kernel.start(rng))
            values = []
            for sweep in range(400):
                kernel.step(rng, state)
                if sweep >= 100 and sweep % 5 == 0:
                    values.append(state.log_density)
            found.append(np.mean(values))
        return np.array(found)

    one, other = means(method="dense"), means(**WAYS[way])
    error = np.sqrt((one.var(ddof=1) + other.var(ddof=1)) / 4)
    assert abs(one.mean() - other.mean()) < 8 * max(error, 3.0)


def test_sampler_runs_in_the_driver_and_goes_on():
    tokens = tokens_of(corpus())
    kernel = CollapsedGibbs(tokens, 5, average_every=2)
    options = {"record": kernel.record, "n_chains": 2, "n_warmup": 10, "random_state": 0, "warn": False}
    whole = mcmc.sample(kernel, kernel.start, n_draws=10, **options)
    half = mcmc.sample(kernel, kernel.start, n_draws=5, **options)
    both = mcmc.resume(half, 5, warn=False)
    np.testing.assert_array_equal(whole.stats["log_density"], both.stats["log_density"])
    end = whole.ends[1].state
    assert end.n_averaged == 5
    np.testing.assert_allclose(end.means["topic_word"].sum(axis=1), 1.0)
    again = kernel.init(np.random.default_rng(0), whole.ends[1].position)
    assert again.log_density == end.log_density


def test_more_documents_are_seated_and_the_old_ones_stay():
    X = corpus()
    kernel = CollapsedGibbs(tokens_of(X[:150]), 20, method="sparse")
    rng = np.random.default_rng(0)
    state = kernel.init(rng, kernel.start(rng))
    for _ in range(20):
        kernel.step(rng, state)
    longer, extended = kernel.extended(rng, state, tokens_of(X[150:]))
    n = kernel.tokens.n_tokens
    np.testing.assert_array_equal(extended.topics[:n], state.topics)
    assert extended.topics.min() >= 0
    check_counts(extended)
    longer.step(rng, extended)
    check_counts(extended)
    np.testing.assert_array_equal(extended.tokens.words, tokens_of(X).words)
    with pytest.raises(ValueError, match="60 words"):
        kernel.extended(rng, state, TINY)


@pytest.mark.parametrize("method", ["dense", "sparse"])
def test_a_sweep_does_not_depend_on_what_the_room_of_its_state_was_used_for(method):
    tokens = tokens_of(corpus())
    kernel = CollapsedGibbs(tokens, 20, method=method)
    rng = np.random.default_rng(0)
    seated = kernel.init(rng, {"topics": np.full(tokens.n_tokens, -1)})
    fresh = kernel.init(rng, seated.position)
    for state in (seated, fresh):
        kernel.step(np.random.default_rng(1), state)
    np.testing.assert_array_equal(seated.topics, fresh.topics)


# Recovery ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["dense", "sparse", "dense, two threads"])
def test_ten_bars_are_found(way):
    data = make_bars(size=5, n_documents=300, random_state=np.random.default_rng(0))
    kernel = CollapsedGibbs(tokens_of(data.counts), 10, 0.1, 0.01, **WAYS[way])
    missed = []
    for seed in range(24):  # half of all chains end with two bars in one topic: all 24 do so once in 10 million
        rng = np.random.default_rng(seed)
        state = kernel.init(rng, kernel.start(rng))
        for _ in range(100):
            kernel.step(rng, state)
        distance = np.abs(data.topic_word[:, None] - state.topic_word()[None]).sum(axis=2)
        if len(set(distance.argmin(axis=1))) == 10:
            break
        missed.append(state.log_density)
    assert distance.min(axis=1).max() < 0.15
    assert not missed or np.median(missed) < state.log_density  # which the chains themselves could tell


def test_words_favoured_by_the_prior_pull_a_topic():
    data = make_bars(size=4, n_documents=200, random_state=1)
    eta = np.full((8, 16), 0.01)
    eta[3, [0, 1, 2, 3]] = 50.0  # the first row of the picture
    kernel = CollapsedGibbs(tokens_of(data.counts), 8, 0.1, eta)
    rng = np.random.default_rng(0)
    state = kernel.init(rng, kernel.start(rng))
    for _ in range(60):
        kernel.step(rng, state)
    assert state.topic_word()[3, :4].sum() > 0.9
    assert kernel.method == "auto"


def test_learning_finds_an_asymmetric_prior():
    """Topics share few words, so that the prior is nearly as well known as if topics were seen."""
    rng = np.random.default_rng(0)
    alpha = np.array([2.0, 0.8, 0.4, 0.2, 0.1])
    phi = np.repeat(np.eye(5), 20, axis=1) * rng.dirichlet(np.full(20, 5.0), size=5).reshape(-1)
    phi = 0.99 * phi / phi.sum(axis=1, keepdims=True) + 0.01 / 100
    shares = np.array([rng.multinomial(60, p) for p in rng.dirichlet(alpha, size=1000)])
    X = sparse.csr_matrix(sum(np.array([rng.multinomial(n, phi[k]) for n in shares[:, k]]) for k in range(5)))
    seen = fixed_point(np.ones(5), table_of(shares), max_iter=1000, tol=1e-6)
    np.testing.assert_allclose(seen, alpha, rtol=0.15)
    tokens = tokens_of(X)
    for by in ("optimize", "sample"):
        kernel = CollapsedGibbs(tokens, 5, 0.5, 0.1, learning=PriorLearning(by, every=5))
        state = kernel.init(rng, {"topics": tokens.words // 20})
        for _ in range(50):
            kernel.step(rng, state)
        np.testing.assert_allclose(state.doc_topic_prior, seen, rtol=0.2)
        check_counts(state)


def dirichlet_rows(alpha, n=3000, length=40, seed=0):
    rng = np.random.default_rng(seed)
    return np.array([rng.multinomial(length, p) for p in rng.dirichlet(alpha, size=n)])


def table_of(rows, **options):
    return CountTable.of(rows.nonzero()[1], rows[rows > 0], rows.sum(axis=1), rows.shape[1], **options)


@pytest.mark.parametrize(("shape", "rate"), [(1.0, 0.0), (3.0, 10.0)])
def test_fixed_point_is_a_maximum_and_never_falls(shape, rate):
    rows = dirichlet_rows([0.3, 1.0, 2.5], n=300)
    table = table_of(rows)

    def objective(prior):
        return table.log_likelihood(prior) + ((shape - 1) * np.log(prior) - rate * prior).sum()

    prior, values = np.ones(3), []
    for _ in range(30):
        values.append(objective(prior))
        prior = fixed_point(prior, table, shape=shape, rate=rate, max_iter=1)
    assert (np.diff(values) >= -1e-9).all()
    best = fixed_point(np.ones(3), table, shape=shape, rate=rate, max_iter=5000, tol=1e-10)
    for k in range(3):
        step = 1e-4 * np.eye(3)[k]
        slope = (objective(best + step) - objective(best - step)) / 2e-4
        assert abs(slope) < 1e-3


def test_table_gives_the_dirichlet_multinomial():
    rows, prior = dirichlet_rows([0.3, 1.0, 2.5], n=50), np.array([0.5, 0.7, 1.1])
    direct = (gammaln(rows + prior) - gammaln(prior)).sum() + (gammaln(2.3) - gammaln(rows.sum(axis=1) + 2.3)).sum()
    assert table_of(rows).log_likelihood(prior) == pytest.approx(direct)
    same = np.full(3, 0.4)
    assert table_of(rows, tied=True).log_likelihood(same) == pytest.approx(table_of(rows).log_likelihood(same))
    symmetric = [fixed_point(same, table_of(rows, tied=tied), symmetric=True) for tied in (False, True)]
    np.testing.assert_allclose(*symmetric)


def test_newton_steps_reach_the_likeliest_prior():
    theta = np.random.default_rng(0).dirichlet([0.2, 1.0, 4.0], size=20_000)
    mean_log = np.log(theta).mean(axis=0)
    prior = best_doc_topic_prior(mean_log, np.full(3, 30.0))
    np.testing.assert_allclose(prior, [0.2, 1.0, 4.0], rtol=0.05)
    np.testing.assert_allclose(digamma(prior) - digamma(prior.sum()), mean_log, atol=1e-6)


def test_priors_of_groups_are_learned_as_each_alone():
    rng = np.random.default_rng(0)
    rows = [dirichlet_rows([0.5, 2.0], n=50), dirichlet_rows([3.0, 0.2], n=70), np.zeros((4, 2), dtype=int)]
    below = np.concatenate([2 * group + counts.nonzero()[1] for group, counts in enumerate(rows)])
    together = CountTable.of(
        below, np.concatenate([counts[counts > 0] for counts in rows]), np.concatenate(rows).sum(axis=1), 6,
        groups=np.repeat([0, 1, 2], [50, 70, 4]), n_groups=3,
    )  # fmt: skip
    start = rng.random(6) + 0.5
    alone = [fixed_point(start[2 * g : 2 * g + 2], table_of(rows[g]), max_iter=20, tol=0.0) for g in (0, 1)]
    learned = fixed_point(start, together, max_iter=20, tol=0.0)
    np.testing.assert_allclose(learned, np.concatenate([*alone, start[4:]]))
    each = sum(table_of(rows[g]).log_likelihood(alone[g]) for g in (0, 1))
    np.testing.assert_allclose(together.log_likelihood(learned), each)


def test_slices_have_the_posterior_of_a_symmetric_prior():
    """Posterior mean of log a on a grid against 3,000 slices; tolerance six standard errors (0.011 each)."""
    table = table_of(dirichlet_rows([0.5, 0.5], n=20, length=10))
    grid = np.linspace(-5, 4, 2000)
    log_density = [
        table.log_likelihood(np.full(2, np.exp(x))) + 2.0 * x - 2.0 * np.exp(x) for x in grid
    ]  # fmt: skip
    weights = np.exp(log_density - np.max(log_density))
    rng, prior, draws = np.random.default_rng(0), np.ones(2), []
    for _ in range(3000):
        prior = slice_priors(rng, prior, table, symmetric=True, gamma_prior=Gamma(2.0, 2.0))
        draws.append(np.log(prior[0]))
    assert abs(np.mean(draws) - weights @ grid / weights.sum()) < 0.066


# New documents -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_topics", [2, 3])
def test_fold_in_has_the_exact_expected_proportions(n_topics):
    """Against all topics of four tokens; 20,000 sweeps, tolerance 0.015 (more than six standard errors)."""
    rng = np.random.default_rng(0)
    phi, alpha = rng.dirichlet(np.ones(3), size=n_topics), rng.gamma(1.0, size=n_topics)
    words = np.array([0, 0, 1, 2])
    expected, total = np.zeros(n_topics), 0.0
    for z in product(range(n_topics), repeat=4):
        counts = np.bincount(z, minlength=n_topics)
        weight = np.exp((gammaln(counts + alpha) - gammaln(alpha)).sum()) * phi[list(z), words].prod()
        expected += weight * (counts + alpha) / (4 + alpha.sum())
        total += weight
    X = sparse.csr_matrix([[2.0, 1.0, 1.0]])
    theta = fold_in(phi, alpha, X, rng, n_sweeps=10, n_samples=20_000)
    np.testing.assert_allclose(theta[0], expected / total, atol=0.015)


@pytest.mark.parametrize("n_topics", [3, 40, 1100])
def test_fold_in_does_not_depend_on_threads(n_topics):
    X = corpus(n_documents=30)
    phi = np.random.default_rng(0).dirichlet(np.full(60, 0.1), size=n_topics)
    found = [
        fold_in(phi, np.full(n_topics, 0.1), X, np.random.default_rng(1), n_sweeps=5, n_samples=5, n_threads=threads)
        for threads in (1, 2, 3)
    ]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
    np.testing.assert_allclose(found[0].sum(axis=1), 1.0)


def test_empty_documents_get_the_prior_mean_and_impossible_words_do_no_harm():
    phi = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    X = sparse.csr_matrix([[0, 0, 0], [0, 0, 4], [3, 0, 0]])
    theta = fold_in(phi, np.array([1.0, 3.0]), X, np.random.default_rng(0))
    np.testing.assert_allclose(theta[0], [0.25, 0.75])
    np.testing.assert_allclose(theta.sum(axis=1), 1.0)
    np.testing.assert_allclose(theta[2], [4 / 7, 3 / 7])


# Abuse ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"n_components": 0}, "n_components must be an integer of at least 1, got 0"),
        ({"n_components": 2.5}, "n_components"),
        ({"doc_topic_prior": 0.0}, "doc_topic_prior must lie between"),
        ({"doc_topic_prior": np.nan}, "doc_topic_prior must lie between"),
        ({"doc_topic_prior": [0.1, 0.2, 0.3]}, r"doc_topic_prior must be a number or have shape \(2,\)"),
        ({"topic_word_prior": [-1.0, 1.0, 1.0]}, "topic_word_prior must lie between"),
        ({"topic_word_prior": np.ones((3, 3))}, "topic_word_prior must be a number or have shape"),
        ({"method": "fast"}, "method must be one of"),
        ({"method": "sparse", "topic_word_prior": np.ones((2, 3))}, "use 'dense'"),
        ({"n_threads": 0}, "n_threads"),
        ({"learning": PriorLearning("sample"), "topic_word_prior": np.ones(3)}, "topic_word_prior must be a number"),
    ],
)
def test_wrong_settings_are_named(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        CollapsedGibbs(TINY, **({"n_components": 2} | options))


def test_a_wrong_way_of_learning_priors_is_named():
    with pytest.raises(ValueError, match="by must be one of 'optimize', 'sample', got 'yes'"):
        PriorLearning("yes")


def test_wrong_positions_are_named():
    kernel, rng = CollapsedGibbs(TINY, 2), np.random.default_rng(0)
    with pytest.raises(ValueError, match="shape"):
        kernel.init(rng, {"topics": np.zeros(3, dtype=int)})
    with pytest.raises(ValueError, match="between -1 and 1"):
        kernel.init(rng, {"topics": np.full(6, 2)})
    with pytest.raises(ValueError, match="column for each of the 2 words"):
        fold_in(np.ones((2, 3)), np.ones(2), sparse.csr_matrix([[1, 1]]), rng)


@pytest.mark.parametrize("way", WAYS)
def test_empty_documents_and_an_empty_corpus_are_no_trouble(way):
    for X in ([[0, 0, 0], [1, 0, 2], [0, 0, 0]], [[0, 0, 0]]):
        kernel = CollapsedGibbs(tokens_of(sparse.csr_matrix(X, dtype=float)), 3, **WAYS[way])
        rng = np.random.default_rng(0)
        state = kernel.init(rng, kernel.start(rng))
        kernel.step(rng, state)
        check_counts(state)
        np.testing.assert_allclose(state.doc_topic()[0], 1 / 3)
        assert np.isfinite(state.log_density)


def test_ctrl_c_between_blocks_keeps_counts_consistent(monkeypatch):
    tokens = tokens_of(corpus())
    kernel = CollapsedGibbs(tokens, 5, n_threads=2)
    rng = np.random.default_rng(0)
    state = kernel.init(rng, kernel.start(rng))
    wait, calls = partitioned_sweeps.wait, []

    def interrupted(futures):
        calls.append(1)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return wait(futures)

    monkeypatch.setattr(gibbs, "FEW_TOKENS", 0)
    monkeypatch.setattr(partitioned_sweeps, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        kernel.step(rng, state)
    check_counts(state)
    assert state.log_density == pytest.approx(
        log_joint(state.topics, tokens, state.doc_topic_prior, np.full((5, 60), 0.01))
    )
