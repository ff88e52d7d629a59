"""The variational HDP: exact evidence where there is one, ascent, optimal sticks, and one step that is the batch's."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from scipy import integrate, sparse, stats
from scipy.special import digamma, gammaln

from pluri.engine import Batch
from pluri.inference.variational import coordinate_ascent, natural_step
from pluri.priors import Gamma
from pluri.topics.hdp.batch_ascent import BatchAscent, best_eta
from pluri.topics.hdp.corpus_sticks import Concentration, fit_sticks
from pluri.topics.hdp.merging import merge_topics, merged, similar_pairs
from pluri.topics.hdp.variational import HDPVariational, topic_bound

#: Prior of what is learned.
FLAT = Gamma(1.0, 1.0)


def corpus(n_documents=30, n_words=8, seed=0, mean=1.5):
    rng = np.random.default_rng(seed)
    laws = rng.dirichlet(np.full(n_words, 0.3), size=3)
    X = np.array([rng.multinomial(rng.poisson(mean * n_words), rng.dirichlet([0.5] * 3) @ laws)
                  for _ in range(n_documents)])  # fmt: skip
    return sparse.csr_matrix(X, dtype=float)


def log_unigram(counts, eta):
    """Log evidence of all words under one Dirichlet-multinomial law."""
    counts = np.asarray(counts.sum(axis=0)).ravel()
    n = len(counts)
    return gammaln(n * eta) - gammaln(n * eta + counts.sum()) + (gammaln(eta + counts) - gammaln(eta)).sum()


def direct_bound(model, params, sticks, X, factors):
    """The whole bound, term after term, in plain arrays; the tokens' factors at their optimum."""
    zeta, doc_sticks = factors
    lam, eta = params["topic_word"], model.eta
    log_topic = digamma(lam) - digamma(lam.sum(axis=1, keepdims=True))
    alpha = model.doc_concentration(params)
    total = sticks.bound + alpha.bound
    for row in lam:
        prior, own = stats.dirichlet(np.full(len(row), eta)), stats.dirichlet(row)
        mean_log = digamma(row) - digamma(row.sum())
        total += own.entropy() + gammaln(len(row) * eta) - len(row) * gammaln(eta) + (eta - 1) * mean_log.sum()
        assert prior.alpha.shape == row.shape
    for d in range(X.shape[0]):
        words, counts = X[d].indices, X[d].data
        if not len(words):
            continue
        a, b = doc_sticks[d, :-1].T
        log_in, log_out = digamma(a) - digamma(a + b), digamma(b) - digamma(a + b)
        log_stick = np.append(log_in, 0.0) + np.concatenate([[0.0], np.cumsum(log_out)])
        total += (alpha.log_mean + (alpha.mean - 1) * log_out).sum() + sum(
            stats.beta(*ab).entropy() for ab in zip(a, b)
        )
        logits = log_stick + (zeta[d] @ log_topic[:, words]).T
        total += counts @ np.logaddexp.reduce(logits, axis=1)
        total += (zeta[d] * (sticks.log_weight - np.log(np.maximum(zeta[d], 1e-300)))).sum()
    return total


def test_one_topic_has_the_exact_evidence():
    X = corpus()
    model = HDPVariational(8, 1, 1, alpha=0.7, gamma=1.0, eta=0.3)
    result = coordinate_ascent(BatchAscent(model), X, rng=np.random.default_rng(0), max_iter=5, strict=True)
    assert result.elbo == pytest.approx(log_unigram(X, 0.3), rel=1e-10)
    np.testing.assert_allclose(result.params.params["topic_word"][0], 0.3 + np.asarray(X.sum(axis=0)).ravel())


@pytest.mark.parametrize("learned", [False, True])
def test_bound_is_the_sum_of_its_terms(learned):
    X = corpus()
    model = HDPVariational(8, 5, 3, *(([Gamma(2.0, 0.7)] * 2) if learned else (0.6, 1.4)), 0.2)
    ascent = BatchAscent(model)
    beliefs = ascent.initialize(X, np.random.default_rng(0))
    for _ in range(4):
        beliefs = ascent.update(beliefs, X)
        # The kernel stops a document after an update of its tokens: they are at their optimum, as above.
        expected = direct_bound(model, beliefs.params, beliefs.sticks, X, beliefs.factors)
        assert ascent.elbo(beliefs, X) == pytest.approx(expected, rel=1e-9)
    np.testing.assert_allclose(beliefs.factors[0].sum(axis=2), 1.0, atol=1e-9)
    assert beliefs.stats["topic_word"].sum() == pytest.approx(X.sum())
    assert beliefs.stats["usage"].sum() == pytest.approx(3 * (np.diff(X.indptr) > 0).sum())
    assert beliefs.sticks.weight.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("eta_prior", [None, FLAT])
@pytest.mark.parametrize("init", ["documents", "random"])
def test_bound_never_falls(init, eta_prior):
    X = corpus(60, seed=3)
    model = HDPVariational(8, 6, 4, FLAT, FLAT, 0.2, init=init)
    for seed in range(2):
        result = coordinate_ascent(BatchAscent(model, eta_prior), X, rng=np.random.default_rng(seed), max_iter=40,
                                   tol=-1.0, strict=True)  # fmt: skip
        assert np.diff(result.trace).min() > -1e-7 * abs(result.elbo)
        assert result.elbo > result.trace[0]


def test_one_step_on_all_documents_is_a_batch_iteration():
    X = corpus()
    model = HDPVariational(8, 5, 3, FLAT, FLAT, 0.2)
    start = model.start(X, np.random.default_rng(0))
    ascent = BatchAscent(model)
    batch = ascent.update(ascent.begin(start, X), X).params
    online, elbo = natural_step(model, start, Batch(X), rho=1.0, n_total=X.shape[0])
    for name in batch:
        np.testing.assert_allclose(online[name], batch[name], rtol=1e-10)
    assert elbo == pytest.approx(ascent.elbo(ascent.begin(start, X), X), rel=1e-10)


def test_single_documents_give_the_batch_on_average():
    X = corpus(12)
    model = HDPVariational(8, 4, 3, 0.5, 1.0, 0.2)
    start = model.start(X, np.random.default_rng(0))
    whole, _ = natural_step(model, start, Batch(X), rho=1.0, n_total=12)
    parts = [natural_step(model, start, Batch(X[d : d + 1]), rho=1.0, n_total=12)[0] for d in range(12)]
    for name in ("topic_word", "usage"):
        np.testing.assert_allclose(np.mean([part[name] for part in parts], axis=0), whole[name], rtol=1e-10)


def test_threads_give_the_same_sums():
    X = corpus(40)
    model = HDPVariational(8, 5, 3, FLAT, FLAT, 0.2)
    start = model.start(X, np.random.default_rng(0))
    one = model.documents(X, start, model.sticks(start))
    two = replace(model, n_jobs=3).documents(X, start, model.sticks(start))
    assert one[1] == pytest.approx(two[1], rel=1e-12)
    np.testing.assert_allclose(one[0]["topic_word"], two[0]["topic_word"], rtol=1e-9)


@pytest.mark.parametrize("gamma", [0.3, 1.0, 6.0])
@pytest.mark.parametrize("seed", range(4))
def test_order_of_sticks_is_the_best_of_all_permutations(gamma, seed):
    usage = np.random.default_rng(seed).gamma(0.5, 5.0, size=5)

    def evidence(order):
        s = usage[list(order)]
        tail = s.sum() - np.cumsum(s)
        return sum(gammaln(1 + s[k]) + gammaln(gamma + tail[k]) - gammaln(1 + gamma + s[k] + tail[k]) for k in range(4))

    best = max(evidence(order) for order in permutations(range(5)))
    assert evidence(fit_sticks(usage, gamma).order) == pytest.approx(best, rel=1e-12)


def test_law_of_a_learned_concentration_is_a_maximum_of_the_bound():
    """Any other mean of gamma, with the sticks kept, has a lower bound; and q(gamma) is the optimal gamma law."""
    usage, prior = np.array([9.0, 4.0, 1.0, 0.2, 0.0]), Gamma(1.5, 0.8)
    sticks = fit_sticks(usage, prior)
    s = usage[sticks.order]
    a, b = 1 + s[:-1], sticks.concentration.mean + (s.sum() - np.cumsum(s))[:-1]
    log_out = (digamma(b) - digamma(a + b)).sum()
    shape, rate = prior.shape + 4, prior.rate - log_out
    assert sticks.concentration.mean == pytest.approx(shape / rate, rel=1e-8)
    density = stats.gamma(shape, scale=1 / rate)
    divergence = integrate.quad(
        lambda g: density.pdf(g) * (density.logpdf(g) - stats.gamma(prior.shape, scale=1 / prior.rate).logpdf(g)), 0, 60
    )[0]
    assert -Concentration.gamma(shape, rate, prior).bound == pytest.approx(divergence, abs=1e-6)


def test_topic_bound_is_minus_a_divergence():
    lam, eta = np.array([[2.0, 0.5, 1.5]]), 0.4
    own, prior = stats.dirichlet(lam[0]), stats.dirichlet(np.full(3, eta))
    draws = own.rvs(200_000, random_state=0)
    estimate = np.mean([prior.logpdf(draws.T) - own.logpdf(draws.T)])
    assert topic_bound(lam, eta) == pytest.approx(estimate, abs=0.02)


def test_learned_prior_of_words_has_no_slope():
    lam = np.random.default_rng(0).gamma(0.5, 3.0, size=(4, 9)) + 0.05
    eta, step = best_eta(lam, FLAT, 0.3), 1e-4

    def value(e):
        return topic_bound(lam, e) - e

    assert eta != 0.3
    assert value(eta) >= max(value(eta * (1 + step)), value(eta * (1 - step))) - 1e-6


def test_merging_lifts_the_bound_and_leaves_all_tokens():
    """Three topics of four words of their own: ascent leaves duplicates, of which mergers leave fewer."""
    rng = np.random.default_rng(0)
    laws = np.kron(np.eye(3), np.full(4, 0.25))
    X = sparse.csr_matrix([rng.multinomial(40, rng.dirichlet([0.3] * 3) @ laws) for _ in range(150)], dtype=float)
    model = HDPVariational(12, 10, 4, FLAT, FLAT, 0.1)
    ascent = BatchAscent(model)
    result = coordinate_ascent(ascent, X, rng=np.random.default_rng(1), max_iter=50)
    beliefs = result.params
    pair = next(similar_pairs(beliefs.stats["topic_word"]))
    assert merged(beliefs, *pair).stats["topic_word"].sum() == pytest.approx(X.sum())
    better, elbo, n_merged = merge_topics(ascent, beliefs, result.elbo, X, rng, max_tries=5)
    assert n_merged >= 1
    assert elbo > result.elbo
    before, after = (len({k for p in similar_pairs(b.stats["topic_word"]) for k in p}) for b in (beliefs, better))
    assert after < before
    assert better.stats["topic_word"].sum() == pytest.approx(X.sum())
    assert elbo == pytest.approx(direct_bound(model, better.params, better.sticks, X, better.factors), rel=1e-9)


@pytest.mark.slow
def test_more_room_changes_the_bound_little():
    """Twice the topics: less than 1 % of the bound, after mergers."""
    from pluri.topics.hdp.variational_fit import fit_batch

    X = corpus(80, seed=5, mean=4.0)
    bounds = [
        max(fit_batch(HDPVariational(8, n, 4, FLAT, FLAT, 0.3), X, np.random.default_rng(seed),
                      max_iter=200, tol=1e-6, n_init=2).elbo[-1] for seed in range(2))
        for n in (8, 16)
    ]  # fmt: skip
    assert bounds[1] == pytest.approx(bounds[0], rel=1e-2)
