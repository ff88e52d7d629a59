"""Further documents after a fit: what was learned stays learned."""

from __future__ import annotations

import numpy as np
import pytest

from pluri.datasets import make_topic_documents
from pluri.engine import SparseSource
from pluri.topics import HDPTopicModel, LatentDirichletAllocation

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def corpora(seed):
    """Documents to fit, further ones, and others to judge by, all of one law."""
    made = make_topic_documents(
        n_documents=420, n_words_per_document=60, n_words=300, n_topics=5, doc_topic_prior=0.2, topic_word_prior=0.1,
        random_state=seed,
    )  # fmt: skip
    return made.counts[:300], made.counts[300:320], made.counts[320:]


@pytest.mark.parametrize("how", ["vb", "svi"])
@pytest.mark.parametrize("doc_topic_prior", [None, "learn"])
def test_a_few_more_documents_do_not_bury_what_a_fit_has_learned(how, doc_topic_prior):
    # Over 15 seeds the ratio of perplexities is between 0.999 and 1.000; a minibatch that stands for 1e6 documents
    # gives 1.16 to 1.26.
    first, further, others = corpora(0)
    model = LatentDirichletAllocation(
        5, inference=how, doc_topic_prior=doc_topic_prior, batch_size=20, max_iter=20, random_state=0
    ).fit(first)
    before = model.perplexity(others)
    model.partial_fit(further)
    assert model.perplexity(others) < 1.1 * before
    assert (model.n_documents_seen_, model.total_samples_) == (320, 320)


def test_a_fit_knows_how_many_documents_it_has_seen():
    first, further, _ = corpora(0)
    weight = np.full(300, 2.0)
    for how in ("vb", "svi", "em", "gibbs"):
        model = LatentDirichletAllocation(3, inference=how, max_iter=2, n_warmup=1, n_draws=1, random_state=0)
        assert model.fit(first).n_documents_seen_ == 300
        assert model.fit(first, sample_weight=weight).n_documents_seen_ == 600
        if how != "gibbs":
            assert model.fit(SparseSource(first, sample_weight=weight, batch_size=50)).n_documents_seen_ == 600
        if how != "em":
            assert model.fit(first).partial_fit(further).n_documents_seen_ == 320


def test_a_stream_from_its_beginning_is_of_a_million_documents_as_in_scikit_learn():
    first = corpora(0)[0]
    asked, given = (
        LatentDirichletAllocation(3, inference="svi", total_samples=total, random_state=0).partial_fit(first)
        for total in (None, 1e6)
    )
    np.testing.assert_array_equal(asked.components_, given.components_)
    assert (asked.n_documents_seen_, asked.total_samples_) == (300, 1e6)


@pytest.mark.parametrize("doc_topic_prior", [None, "learn"])
def test_further_documents_of_weight_two_count_as_two(doc_topic_prior):
    first, further, _ = corpora(0)
    settings = {"inference": "svi", "doc_topic_prior": doc_topic_prior, "random_state": 0, "mean_change_tol": 1e-10}
    one, two = (LatentDirichletAllocation(3, **settings).fit(first) for _ in range(2))
    one.partial_fit(further, sample_weight=np.full(20, 2.0))
    two.partial_fit(further[np.repeat(np.arange(20), 2)])
    np.testing.assert_allclose(one.components_, two.components_, rtol=1e-6)
    np.testing.assert_allclose(one.doc_topic_prior_, two.doc_topic_prior_, rtol=1e-6)
    assert one.n_documents_seen_ == two.n_documents_seen_ == 340


@pytest.mark.parametrize("as_source", [False, True])
def test_learned_shares_of_topics_do_not_depend_on_the_unit_of_weights(as_source):
    # Weights of two on all documents are the same documents twice: alpha is that of the documents themselves.
    first = corpora(0)[0]
    settings = {"inference": "svi", "doc_topic_prior": "learn", "batch_size": 50, "random_state": 0, "max_iter": 5}
    weight = np.full(300, 2.0)
    model = LatentDirichletAllocation(3, **settings)
    if as_source:
        weighted = model.fit(SparseSource(first, sample_weight=weight, batch_size=50)).doc_topic_prior_
        plain = model.fit(SparseSource(first, batch_size=50)).doc_topic_prior_
    else:
        weighted = model.fit(first, sample_weight=weight).doc_topic_prior_
        plain = model.fit(first).doc_topic_prior_
    assert np.sort(weighted) == pytest.approx(np.sort(plain), rel=0.5)


def test_a_number_of_documents_that_is_none_is_refused():
    with pytest.raises(ValueError, match="total_samples must be"):
        LatentDirichletAllocation(2, total_samples=0).fit(np.ones((3, 4)))


@pytest.mark.parametrize("how", ["vb", "svi"])
def test_a_hierarchical_dirichlet_process_goes_on_from_either_variational_fit(how):
    # Over 8 seeds the ratio of perplexities is between 0.95 and 1.06 with documents halved anew each time, as here they
    # are not.
    first, further, others = corpora(0)
    model = HDPTopicModel(how, max_topics=15, max_iter=10, topic_word_prior=0.1, random_state=0).fit(first)
    before = model.perplexity(others)
    model.set_params(inference="svi").partial_fit(further)
    assert model.n_documents_seen_ == 320
    assert model.perplexity(others, random_state=0) < 1.1 * before


def test_a_hierarchical_dirichlet_process_does_not_begin_anew_unasked():
    first, further, _ = corpora(0)
    model = HDPTopicModel("gibbs", max_topics=10, n_warmup=1, n_draws=4, random_state=0).fit(first)
    topics = model.topic_word_
    with pytest.raises(ValueError, match="partial_fit must begin, or go on from"):
        model.set_params(inference="svi").partial_fit(further)
    assert model.topic_word_ is topics
    model = HDPTopicModel("svi", max_topics=10, max_iter=1, random_state=0).fit(first)
    with pytest.raises(ValueError, match="max_topics must be 10, as it was, to go on learning, got 12"):
        model.set_params(max_topics=12).partial_fit(further)
