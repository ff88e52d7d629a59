"""Latent Dirichlet allocation at the end of its fit: means over the draws, and a word if it ended too early."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from pluri import on_interrupt
from pluri.datasets import make_topic_documents
from pluri.inference import mcmc
from pluri.topics import LatentDirichletAllocation
from pluri.topics.documents import tokens_of
from pluri.topics.lda.sampling.gibbs import CollapsedGibbs
from pluri.topics.lda.sampling.priors_learning import PriorLearning
from pluri.topics.lda.settling import last_gain
from pluri.topics.topic_model import verdict_of_topics
from pluri.validation import as_generator


def documents(seed=0):
    return make_topic_documents(
        n_documents=150, n_words_per_document=60, n_words=100, n_topics=5, doc_topic_prior=0.2, topic_word_prior=0.1,
        random_state=seed,
    ).counts.astype(float)  # fmt: skip


@pytest.mark.parametrize("learned", [False, True])
def test_sizes_of_topics_are_means_over_the_draws(learned):
    X, sampling = documents(), {"n_warmup": 20, "n_draws": 6, "thin": 5}
    model = LatentDirichletAllocation(
        4, inference="gibbs", doc_topic_prior="learn" if learned else 0.3, random_state=3,
        topic_word_prior="learn" if learned else 0.2,
        **sampling,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X)
    kernel = CollapsedGibbs(
        tokens_of(X), 4, *((0.25, 0.25, "auto", 1, PriorLearning()) if learned else (0.3, 0.2)), average_every=5
    )

    def totals(position):
        own = {name: np.asarray(position[f"{name}_prior"]) for name in ("doc_topic", "topic_word")}
        return own | {"totals": np.bincount(position["topics"], minlength=4)}

    # The same chain, whose draws are looked at one by one.
    trace = mcmc.sample(kernel, kernel.start, record=totals, n_chains=1, random_state=as_generator(3), warn=False,
                        **sampling)  # fmt: skip
    sizes = trace["totals"][0].mean(axis=0)
    np.testing.assert_allclose(model.topic_weight_, sizes / sizes.sum(), rtol=1e-12)
    eta = trace["topic_word"][0].mean()
    np.testing.assert_allclose(model.components_.sum(axis=1), sizes + 100 * eta, rtol=1e-12)
    np.testing.assert_allclose(model.topic_word_prior_, eta, rtol=1e-12)
    np.testing.assert_allclose(model.doc_topic_prior_, trace["doc_topic"][0].mean(axis=0), rtol=1e-12)
    assert np.ptp(trace["totals"][0], axis=0).max() > 0  # the draws differ: a mean is not the last of them


@pytest.mark.parametrize("how", ["vb", "em"])
def test_a_bound_that_still_rises_is_told(how):
    # Five passes from nearly equal topics: the last raises the bound by 0.26 % or more of it, over 20 seeds, five times
    # what is told.
    with pytest.warns(ConvergenceWarning, match="still rises, by .* in the last of 5 passes; raise max_iter"):
        LatentDirichletAllocation(5, inference=how, max_iter=5, random_state=0).fit(documents())


@pytest.mark.parametrize("how", ["vb", "em", "svi"])
def test_a_bound_that_has_settled_is_not_told(how):
    # After 100 passes the last raises it by less than 2e-5 of it, over 20 seeds; with "svi", 1e-4, over 5.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = LatentDirichletAllocation(5, inference=how, max_iter=100, random_state=0)
        model.set_params(evaluate_every=10 if how == "svi" else -1).fit(documents())
    assert last_gain(model.elbo_) < 1e-3


def test_a_chain_that_still_rises_is_told_and_one_at_rest_is_not():
    X, sampling = documents(), {"inference": "gibbs", "n_draws": 10, "random_state": 0}
    with pytest.warns(ConvergenceWarning, match="the chains have not settled: R-hat of log_density"):
        LatentDirichletAllocation(5, n_warmup=5, thin=1, **sampling).fit(X)


def test_draws_at_rest_are_hardly_ever_told():
    # Independent draws are told with a chance of 2 % (1 % by their centre, 1 % by their spread): of 2000, more than 75
    # with a chance below 1e-7.
    def told(log_density):
        return not verdict_of_topics(mcmc.Trace({"x": log_density}, {"log_density": np.atleast_2d(log_density)}))

    rng = np.random.default_rng(0)
    assert sum(told(-1000.0 + 10 * rng.normal(size=10)) for _ in range(2000)) <= 75
    steps = np.arange(10.0)
    assert told(-1000.0 + 10 * steps + rng.normal(size=10))
    assert not told(-1e9 + 10 * steps)  # a trifle
    assert not told(steps[:4])  # too few


def test_ctrl_c_is_told_alone():
    X = documents()

    def interrupt(state):
        if state.iteration == 3:
            raise KeyboardInterrupt
        return False

    with on_interrupt("keep"), pytest.warns(UserWarning, match="interrupted") as told:
        LatentDirichletAllocation(5, max_iter=5, callback=interrupt, random_state=0).fit(X)
    assert not [warning for warning in told if warning.category is ConvergenceWarning]
