"""Words that a document has several times: the bound is that of single tokens, and no worse topics are found."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import gammaln, logsumexp, psi

from pluri.inference.variational import coordinate_ascent
from pluri.topics.documents import tokens_of
from pluri.topics.supervised.distinct_words import distinct_words_of
from pluri.topics.supervised.variational import ClassesVariational, RatingsVariational

PRIOR, ETA, VARIANCE = np.array([0.4, 0.7, 0.5]), 0.1, 10.0


def corpus():
    """Short documents of few words, so that most words come several times; one has no words, one is not spoken of."""
    rng = np.random.default_rng(0)
    X = rng.poisson(rng.gamma(0.5, 4.0, size=(12, 6)))
    X[4] = 0
    return sparse.csr_matrix(X), rng.normal(size=12)


def models():
    X, y = corpus()
    rated = np.where(np.arange(12) == 7, np.nan, y)
    rated[4] = np.nan
    label = np.where(np.isnan(rated), -1, np.digitize(y, [-0.5, 0.5]))
    return X, {
        "ratings": (RatingsVariational(3, PRIOR, ETA, VARIANCE), rated),
        "classes": (ClassesVariational(3, PRIOR, ETA, VARIANCE, 3), label),
    }


def logs(parameters):
    return psi(parameters) - psi(parameters.sum(axis=1, keepdims=True))


def divergence(prior, parameters):
    """From Dirichlet laws with these parameters to that of the prior."""
    prior = np.broadcast_to(prior, parameters.shape)
    value = (gammaln(parameters.sum(axis=1)) - gammaln(prior.sum(axis=1))).sum()
    value += (gammaln(prior) - gammaln(parameters)).sum()
    return value + ((parameters - prior) * logs(parameters)).sum()


def said_of(kind, phi, coefficients, precision, said):
    """Bound on E[log p(what is said of a document)], with `phi` of its tokens."""
    n = len(phi)
    if kind == "ratings":
        mean = phi.mean(axis=0)
        moment = (n**2 * np.outer(mean, mean) - phi.T @ phi + np.diag(phi.sum(axis=0))) / n**2
        squares = said**2 - 2 * said * mean @ coefficients + coefficients @ moment @ coefficients
        return 0.5 * np.log(precision / (2 * np.pi)) - 0.5 * precision * squares
    return coefficients[said] @ phi.mean(axis=0) - logsumexp(np.log(phi @ np.exp(coefficients.T / n)).sum(axis=0))


def bound_of_tokens(kind, model, q, phi, tokens, response):
    """The bound, token by token; `phi` has a row for each."""
    value = -divergence(PRIOR, q.gamma) - divergence(ETA, q.topics)
    log_theta, log_topic = logs(q.gamma), logs(q.topics)
    for i, (word, row) in enumerate(zip(tokens.words, tokens.documents)):
        value += phi[i] @ (log_theta[row] + log_topic[:, word] - np.log(phi[i]))
    value -= 0.5 * (q.coefficients**2).sum() / VARIANCE + 0.5 * q.coefficients.size * np.log(2 * np.pi * VARIANCE)
    if kind == "ratings":
        shape, rate = model.noise_prior.shape, model.noise_prior.rate
        value += shape * np.log(rate * q.precision) - gammaln(shape) - rate * q.precision
    for row in range(tokens.n_documents):
        mine = slice(tokens.offsets[row], tokens.offsets[row + 1])
        if (np.isfinite(response[row]) if kind == "ratings" else response[row] >= 0) and mine.stop > mine.start:
            value += said_of(kind, phi[mine], q.coefficients, q.precision, response[row])
    return value


@pytest.mark.parametrize("kind", ["ratings", "classes"])
def test_the_bound_is_that_of_the_tokens_one_by_one(kind):
    X, both = models()
    model, response = both[kind]
    words, tokens = distinct_words_of(X), tokens_of(X)
    assert words.counts.max() > 5
    rng = np.random.default_rng(1)
    q = model.initialize((words, response), rng)
    for _ in range(3):
        phi = np.repeat(q.phi, words.counts.astype(int), axis=0)
        expected = bound_of_tokens(kind, model, q, phi, tokens, response)
        assert model.elbo(q, (words, response)) == pytest.approx(expected, rel=1e-12)
        q = model.update(q, (words, response))


@pytest.mark.parametrize("kind", ["ratings", "classes"])
def test_the_bound_never_falls_where_topics_matter_much(kind):
    # Coefficients far from where they would be, noise small and documents short: steps must be shortened.
    X, both = models()
    model, response = both[kind]
    words = distinct_words_of(X)
    rng = np.random.default_rng(2)
    q = model.initialize((words, response), rng)
    log_topic = np.ascontiguousarray(logs(q.topics).T)
    for scale in (1.0, 10.0, 40.0):
        q = replace(q, coefficients=scale * rng.normal(size=q.coefficients.shape), precision=50.0, phi=q.phi.copy())
        before = model.elbo(q, (words, response))
        for _ in range(20):
            model._pass(q, words, response, logs(q.gamma), log_topic)
            after = model.elbo(q, (words, response))
            assert after >= before - 1e-9 * abs(before)
            before = after


def test_a_repeated_word_of_a_rated_document_is_put_where_the_bound_is_highest():
    # One document of one word: its phi against a grid, and a finer one around the best point of that.
    model = RatingsVariational(2, np.array([0.5, 0.8]), ETA, VARIANCE)
    X, response = sparse.csr_matrix([[7, 0]]), np.array([0.8])
    words = distinct_words_of(X)
    q = model.initialize((words, response), np.random.default_rng(0))
    q = replace(q, coefficients=np.array([-3.0, 4.0]), precision=20.0)

    def value(first):
        return model.elbo(replace(q, phi=np.array([[first, 1 - first]])), (words, response))

    best = max(np.linspace(1e-4, 1 - 1e-4, 101), key=value)
    best = max(np.linspace(max(best - 0.01, 1e-4), min(best + 0.01, 1 - 1e-4), 41), key=value)
    model._pass(q, words, response, logs(q.gamma), np.ascontiguousarray(logs(q.topics).T))
    assert q.phi[0, 0] == pytest.approx(best, abs=1e-3)
    assert value(q.phi[0, 0]) >= value(best)


@pytest.mark.parametrize("kind", ["ratings", "classes"])
def test_tokens_on_their_own_find_no_higher_bound(kind):
    # From where words with one phi each have come to rest, every token is moved by itself, numerically.
    X, both = models()
    model, response = both[kind]
    words, tokens = distinct_words_of(X), tokens_of(X)
    q = coordinate_ascent(
        model, (words, response), rng=np.random.default_rng(3), max_iter=3000, tol=1e-13
    ).params  # fmt: skip
    phi = np.repeat(q.phi, words.counts.astype(int), axis=0)
    here = bound_of_tokens(kind, model, q, phi, tokens, response)
    row = int(np.argmax(words.lengths))
    mine = slice(tokens.offsets[row], tokens.offsets[row + 1])
    rng = np.random.default_rng(4)

    def loss(flat):
        logits = flat.reshape(-1, 3)
        moved = phi.copy()
        moved[mine] = np.exp(logits - logsumexp(logits, axis=1, keepdims=True))
        with np.errstate(divide="ignore"):
            return -bound_of_tokens(kind, model, q, np.maximum(moved, 1e-300), tokens, response)

    start = np.log(phi[mine]).ravel()
    found = minimize(loss, start + 0.1 * rng.normal(size=start.size), method="L-BFGS-B", options={"maxiter": 30})
    assert -found.fun <= here + 1e-4
