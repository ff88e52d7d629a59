"""Latent Dirichlet allocation as an estimator: engines, priors, guides, streams, odd corpora and wrong input."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from pluri import io, on_interrupt
from pluri.datasets import make_bars, make_topic_documents
from pluri.engine import SparseSource
from pluri.metrics import match_topics, topic_overlap
from pluri.priors import Gamma
from pluri.topics import LatentDirichletAllocation

#: Fits end early here, to be quick; that this is told is tested beside the chains.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*the bound still rises:sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:the chains have not settled:sklearn.exceptions.ConvergenceWarning"),
]
ENGINES = ("vb", "svi", "gibbs", "em")
#: Enough for small corpora.
QUICK = {"max_iter": 40, "n_warmup": 40, "n_draws": 5, "thin": 2, "batch_size": 20, "random_state": 0}


@pytest.fixture(scope="module")
def corpus():
    return make_topic_documents(
        n_documents=150, n_words_per_document=60, n_words=40, n_topics=3, doc_topic_prior=0.2, topic_word_prior=0.1,
        random_state=np.random.default_rng(1),
    )  # fmt: skip


def model(how, n_topics=3, **changes):
    return LatentDirichletAllocation(n_topics, inference=how, **(QUICK | changes))


@pytest.mark.parametrize("how", ENGINES)
def test_every_engine_finds_the_topics(how, corpus):
    fitted = model(how, doc_topic_prior=0.2, topic_word_prior=0.1, init="random" if how == "gibbs" else "documents")
    fitted.fit(corpus.counts)
    assert match_topics(corpus.topic_word, fitted.topic_word_).mean > 0.9
    for rows in (fitted.topic_word_, fitted.transform(corpus.counts)):
        np.testing.assert_allclose(rows.sum(axis=1), 1)
    np.testing.assert_allclose(fitted.topic_weight_.sum(), 1)
    gamma = fitted.transform(corpus.counts, normalize=False)
    np.testing.assert_allclose(gamma.sum(axis=1), 60 + 3 * 0.2, rtol=1e-6)


def test_the_score_leaves_out_what_belongs_to_the_topics(corpus):
    fitted = LatentDirichletAllocation(3, random_state=0).fit(corpus.counts)
    one, all_of_them = fitted.perplexity(corpus.counts[:1]), fitted.perplexity(corpus.counts)
    assert 5 < one < 40  # scikit-learn's is above 1e10: one document pays for the divergence of all topics
    assert 5 < all_of_them < 40
    assert fitted.perplexity(corpus.counts, sub_sampling=True) == all_of_them
    halves = fitted.score(corpus.counts[:50]) + fitted.score(corpus.counts[50:])
    assert fitted.score(corpus.counts) == pytest.approx(halves)


@pytest.mark.parametrize("how", ENGINES)
def test_the_same_state_gives_the_same_topics_and_another_does_not(how, corpus):
    first, again, other = (model(how, random_state=state).fit(corpus.counts) for state in (3, 3, 4))
    np.testing.assert_array_equal(first.components_, again.components_)
    assert np.abs(first.components_ - other.components_).max() > 1e-6


@pytest.mark.parametrize("how", ENGINES)
def test_shares_of_a_document_do_not_depend_on_the_others(how, corpus):
    fitted = model(how).fit(corpus.counts)
    together = fitted.transform(corpus.counts[:7])
    np.testing.assert_allclose(together, np.vstack([fitted.transform(corpus.counts[[row]]) for row in range(7)]))


@pytest.mark.parametrize("how", ["vb", "gibbs"])
def test_an_uneven_prior_is_learned(how):
    prior = np.array([0.05, 0.3, 1.2])
    made = make_topic_documents(
        n_documents=600, n_words_per_document=80, n_words=60, n_topics=3, doc_topic_prior=prior, topic_word_prior=0.05,
        random_state=np.random.default_rng(0),  # always this corpus: that of a small prior is hardly known from another
    )  # fmt: skip
    eta = "learn" if how == "gibbs" else 0.05
    fitted = model(how, doc_topic_prior="learn", topic_word_prior=eta, max_iter=60, n_warmup=400)
    fitted.fit(made.counts)
    pairs = match_topics(made.topic_word, fitted.topic_word_).pairs
    learned = np.empty(3)
    learned[pairs[:, 0]] = fitted.doc_topic_prior_[pairs[:, 1]]
    np.testing.assert_allclose(learned, prior, rtol=0.4)
    if how == "gibbs":
        assert fitted.topic_word_prior_ == pytest.approx(0.05, rel=0.4)


@pytest.mark.parametrize("how", ENGINES)
def test_guided_topics_keep_their_words(how, corpus):
    truth = corpus.topic_word
    words = np.array([f"w{column}" for column in range(40)])
    own = [np.argsort(-(truth[k] - np.delete(truth, k, axis=0).max(axis=0)))[:3] for k in range(3)]
    guide = {k: words[own[(k + 1) % 3]] for k in range(3)}  # in another order than any fit would choose by itself
    fitted = model(how, seed_words=guide, seed_strength=200.0, vocabulary=words).fit(corpus.counts)
    for k in range(3):
        similarity = [float(np.sqrt(fitted.topic_word_[k] * truth[j]).sum()) for j in range(3)]
        assert np.argmax(similarity) == (k + 1) % 3


@pytest.mark.parametrize("how", ["vb", "em"])
def test_diversity_pushes_topics_apart(how):
    made = make_topic_documents(
        n_documents=60, n_words_per_document=30, n_words=30, n_topics=3, doc_topic_prior=1.0, topic_word_prior=1.0,
        random_state=0,
    )  # fmt: skip
    plain = model(how, 4).fit(made.counts)
    diverse = model(how, 4, diversity=0.7).fit(made.counts)
    assert topic_overlap(diverse.topic_word_).mean < topic_overlap(plain.topic_word_).mean - 0.02


@pytest.mark.parametrize("how", ["vb", "em"])
def test_a_document_of_weight_two_counts_as_two(how, corpus):
    counts = corpus.counts[:30]
    weight = np.where(np.arange(30) < 10, 2.0, 1.0)
    doubled = sparse.vstack([counts, counts[:10]], format="csr")
    start = {"init": "random", "max_iter": 15, "mean_change_tol": 1e-8, "max_doc_update_iter": 5000}
    by_weight = model(how, **start).fit(counts, sample_weight=weight)
    by_hand = model(how, **start).fit(doubled)
    np.testing.assert_allclose(by_weight.topic_word_, by_hand.topic_word_, atol=1e-4)


@pytest.mark.parametrize("how", ["vb", "svi", "em"])
def test_a_source_of_batches_is_as_good_as_a_matrix(how, corpus):
    fitted = model(how, init="documents").fit(SparseSource(corpus.counts, batch_size=40))
    assert match_topics(corpus.topic_word, fitted.topic_word_).mean > 0.9
    np.testing.assert_allclose(fitted.topic_weight_.sum(), 1)
    with pytest.raises(ValueError, match="needs documents in memory"):
        model("gibbs").fit(SparseSource(corpus.counts))


@pytest.mark.parametrize("how", ["vb", "svi", "gibbs"])
def test_batches_one_after_another_teach_the_topics(how, corpus):
    matches = []
    for start in range(5):  # one start in ten ends with a topic missed
        fitted = model(
            how, total_samples=150, doc_topic_prior=0.2, topic_word_prior=0.1, learning_offset=1.0, random_state=start
        )
        for _ in range(1 if how == "gibbs" else 15):
            for begin in range(0, 150, 50):
                fitted.partial_fit(corpus.counts[begin : begin + 50])
        matches.append(match_topics(corpus.topic_word, fitted.topic_word_).mean)
    assert np.max(matches) > 0.85
    assert not hasattr(model("em"), "partial_fit")


def test_gibbs_batches_add_up_to_the_tokens(corpus):
    fitted = model("gibbs", topic_word_prior=0.1)
    fitted.partial_fit(corpus.counts[:50]).partial_fit(corpus.counts[50:])
    assert (fitted.components_ - 0.1).sum() == pytest.approx(corpus.counts.sum())
    np.testing.assert_allclose(
        (fitted.components_ - 0.1).sum(axis=0), np.asarray(corpus.counts.sum(axis=0)).ravel(), atol=1e-6
    )


def test_partial_fit_goes_on_from_a_fit(corpus):
    for how in ("vb", "gibbs"):
        fitted = model(how, total_samples=150).fit(corpus.counts)
        before = fitted.components_.copy()
        fitted.partial_fit(corpus.counts[:20])
        assert np.abs(fitted.components_ - before).max() > 0
        assert match_topics(before / before.sum(axis=1, keepdims=True), fitted.topic_word_).mean > 0.9


@pytest.mark.parametrize("how", ENGINES)
def test_fitted_models_are_saved_whole(how, corpus, tmp_path):
    fitted = model(how, vocabulary=[f"w{column}" for column in range(40)]).fit(corpus.counts)
    fitted.keep_examples(corpus.counts, [str(row) for row in range(150)])
    io.save(fitted, tmp_path / "model.skops")
    again = io.load(tmp_path / "model.skops")
    np.testing.assert_array_equal(again.transform(corpus.counts), fitted.transform(corpus.counts))
    assert again.top_words(3) == fitted.top_words(3)
    assert again.topic_graph(3) == fitted.topic_graph(3)


def test_a_pipeline_reads_texts():
    texts = ["ice goal ice", "goal ice puck", "vote law vote", "law vote court"] * 10
    pipeline = make_pipeline(CountVectorizer(), LatentDirichletAllocation(2, inference="gibbs", random_state=0))
    shares = pipeline.fit_transform(texts)
    assert (shares[0] - shares[2]).max() > 0.5
    words = pipeline[0].get_feature_names_out()
    assert {frozenset(topic) for topic in pipeline[1].top_words(3, feature_names=words)} == {
        frozenset({"ice", "goal", "puck"}), frozenset({"vote", "law", "court"}),
    }  # fmt: skip


# Odd corpora ---------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.*have no words")
@pytest.mark.parametrize("how", ENGINES)
@pytest.mark.parametrize(
    "counts",
    [
        np.array([[3, 0, 1]]),  # one document
        np.array([[3], [2]]),  # one word
        np.array([[1, 0], [0, 1]]),  # more topics than words
        np.array([[2, 0, 1], [0, 0, 0], [1, 0, 2]]),  # an empty document, a word that never occurs
    ],
    ids=["one document", "one word", "more topics than words", "empty"],
)
def test_odd_corpora_have_topics(how, counts):
    fitted = model(how, 5, max_iter=5, n_warmup=3).fit(counts)
    assert np.isfinite(fitted.topic_word_).all()
    shares = fitted.transform(counts)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    empty = fitted.transform(np.zeros((1, counts.shape[1])))
    np.testing.assert_allclose(empty, 0.2)
    assert np.isfinite(fitted.score(counts))


@pytest.mark.parametrize("how", ENGINES)
def test_empty_topics_under_tiny_priors_leave_finite_scores(how):
    counts = np.array([[5, 0, 0], [4, 1, 0], [6, 0, 0]])
    fitted = model(how, 4, doc_topic_prior=1e-8, topic_word_prior=1e-8).fit(counts)
    assert np.isfinite(fitted.bound_)
    assert np.isfinite(fitted.transform(counts)).all()


def test_fractions_are_welcome_where_they_mean_something(corpus):
    half = corpus.counts * 0.5
    for how in ("vb", "svi", "em"):
        assert np.isfinite(model(how, max_iter=3).fit(half).components_).all()
    with pytest.raises(ValueError, match="whole counts of words"):
        model("gibbs").fit(half)


def test_weights_that_are_no_counts_are_noticed():
    rng = np.random.default_rng(0)
    weights = rng.random((30, 300)) * (rng.random((30, 300)) < 0.02)
    with pytest.warns(UserWarning, match="tf-idf"):
        LatentDirichletAllocation(3, max_iter=2).fit(weights)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"n_components": 0}, "n_components"),
        ({"inference": "mcmc"}, "inference must be one of"),
        ({"learning_method": "batches"}, "learning_method"),
        ({"init": "first"}, "init must be one of"),
        ({"doc_topic_prior": -1.0}, "doc_topic_prior"),
        ({"doc_topic_prior": [0.1, 0.2]}, "doc_topic_prior"),
        ({"topic_word_prior": np.ones(7)}, "topic_word_prior"),
        ({"diversity": 1.0, "inference": "gibbs"}, "diversity needs inference"),
        ({"doc_topic_prior": "learn", "inference": "em"}, "doc_topic_prior='learn' needs inference 'vb' or"),
        ({"doc_topic_prior": "guess"}, "doc_topic_prior must be 'learn' or a prior"),
        ({"doc_topic_prior": Gamma(2.0, 1.0)}, "doc_topic_prior=Gamma.* needs inference 'gibbs', got 'vb'"),
        ({"doc_topic_prior": Gamma(0.5, 1.0), "inference": "gibbs"}, "of shape 1 or more"),
        ({"topic_word_prior": "learn"}, "topic_word_prior='learn' needs inference 'gibbs', got 'vb'"),
        ({"topic_word_prior": "learn", "inference": "gibbs", "seed_words": [[0]]}, "if there are seed_words"),
        ({"seed_words": [["word"]]}, "words of the columns are not known"),
        ({"vocabulary": ["a"]}, "one word for each of 40 columns"),
        ({"learning_decay": 1.5}, "learning_decay"),
        ({"max_iter": 0}, "max_iter"),
    ],
)
def test_wrong_settings_are_named(changes, sentence, corpus):
    with pytest.raises(ValueError, match=sentence):
        LatentDirichletAllocation(**({"n_components": 3} | changes)).fit(corpus.counts)


def test_chains_leave_a_trace_and_the_best_of_them_the_topics(corpus, tmp_path):
    prior = Gamma(2.0, 4.0)
    settings = {"doc_topic_prior": prior, "topic_word_prior": "learn", "n_warmup": 20, "n_draws": 8, "thin": 2}
    fitted = clone(model("gibbs", n_chains=3, **settings)).fit(corpus.counts)
    trace = fitted.trace_
    assert (trace.n_chains, trace.n_draws, trace["doc_topic_prior"].shape) == (3, 8, (3, 8, 3))
    assert np.ptp(trace["topic_word_prior"]) > 0
    log_joint = trace.stats["log_density"]
    np.testing.assert_array_equal(fitted.log_joint_, log_joint[log_joint.mean(axis=1).argmax()])
    assert fitted.to_arviz().posterior["doc_topic_prior"].shape == (3, 8, 3)
    io.save(fitted, tmp_path / "model.skops")
    back = io.load(tmp_path / "model.skops")
    assert back.doc_topic_prior == prior
    np.testing.assert_array_equal(back.trace_["doc_topic_prior"], trace["doc_topic_prior"])
    fitted.partial_fit(corpus.counts[:5])
    assert not hasattr(fitted, "trace_")
    with pytest.raises(AttributeError, match="has no draws"):
        model("vb").fit(corpus.counts).to_arviz()


def test_a_strong_prior_of_alpha_is_heeded(corpus):
    near = [
        model("gibbs", doc_topic_prior=learned, n_warmup=30).fit(corpus.counts).doc_topic_prior_
        for learned in ("learn", Gamma(1e6, 1e6))
    ]
    assert np.abs(near[0] - 1.0).max() > 0.1
    np.testing.assert_allclose(near[1], 1.0, rtol=0.05)


def test_a_fit_that_fails_loses_nothing(corpus):
    fitted = model("vb").fit(corpus.counts)
    before = fitted.components_
    with pytest.raises(ValueError, match="Negative"):
        fitted.fit(-corpus.counts)
    assert fitted.components_ is before
    with pytest.raises(NotFittedError):
        LatentDirichletAllocation().transform(corpus.counts)


@pytest.mark.parametrize("when", [3, 45])
def test_an_interrupted_fit_keeps_its_topics(when, corpus, monkeypatch):
    from pluri.topics.lda.sampling.gibbs import CollapsedGibbs

    sweep = CollapsedGibbs._sweep
    done = []

    def interrupted(self, rng, state):
        done.append(1)
        if len(done) == when:
            raise KeyboardInterrupt
        return sweep(self, rng, state)

    monkeypatch.setattr(CollapsedGibbs, "_sweep", interrupted)
    with on_interrupt("keep"), pytest.warns(UserWarning, match="interrupted"):
        fitted = model("gibbs").fit(corpus.counts)
    np.testing.assert_allclose(fitted.topic_word_.sum(axis=1), 1)
    assert fitted.n_iter_ == when - 1


def test_bars_are_found_by_sampling():
    bars = make_bars(n_documents=300, random_state=0)
    found = 0
    for start in range(25):  # a chain ends with fewer in about one of two corpora: all of 25 with probability 3e-8
        fitted = LatentDirichletAllocation(
            10, inference="gibbs", doc_topic_prior=0.1, topic_word_prior=0.01, random_state=start
        ).fit(bars.counts)
        found = match_topics(bars.topic_word, fitted.topic_word_).n_above(0.95)
        if found == 10:
            break
    assert found == 10


def expected_failures(estimator):
    """Weights are equal to repeated documents in law, but not number by number, where chance takes part."""
    if estimator.inference not in ("gibbs", "svi"):
        return {}
    reason = "documents are visited one by one, or in minibatches"
    return {f"check_sample_weight_equivalence_on_{kind}_data": reason for kind in ("dense", "sparse")}


@pytest.mark.filterwarnings("ignore:.*have no words")
@parametrize_with_checks(
    [
        LatentDirichletAllocation(3, max_iter=5),
        LatentDirichletAllocation(3, inference="svi", max_iter=2, batch_size=10),
        LatentDirichletAllocation(3, inference="gibbs", n_warmup=3, n_draws=2, thin=1),
        LatentDirichletAllocation(3, inference="em", max_iter=5),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


@pytest.mark.parametrize("inference", ["gibbs", "vb", "svi", "em"])
def test_topics_that_a_fit_starts_from_keep_their_places(inference):
    """Four subjects in an order of ours: every way of learning keeps it, which from a random start has 1 of 24."""
    rng = np.random.default_rng(0)
    subjects = np.kron(np.eye(4), np.full(6, 1 / 6))
    X = rng.multinomial(30, 0.9 * subjects[rng.integers(0, 4, 200)] + 0.1 / 24)
    for order in ([2, 0, 3, 1], [3, 2, 1, 0]):
        model = LatentDirichletAllocation(4, inference=inference, init=subjects[order], random_state=0).fit(X)
        assert (model.topic_word_ @ subjects.T).argmax(axis=1).tolist() == order
    with pytest.raises(ValueError, match=r"init must be 'random', 'documents' or an array of shape \(3, 24\), got"):
        LatentDirichletAllocation(3, inference=inference, init=subjects).fit(X)
    with pytest.raises(ValueError, match="init must hold numbers that are not negative"):
        LatentDirichletAllocation(4, inference=inference, init=-subjects).fit(X)
