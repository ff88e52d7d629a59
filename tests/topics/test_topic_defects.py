"""What topic models once got wrong at the edges: refits, batches after fits, large numbers, strings for lists."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer

from pluri import io, on_interrupt
from pluri.engine import SparseSource
from pluri.inference import mcmc
from pluri.metrics import topic_coherence, topic_uniqueness
from pluri.topics import (
    HDPTopicModel,
    LatentDirichletAllocation,
    SupervisedLDA,
    SupervisedLDAClassifier,
    held_out,
)
from pluri.topics.documents import tokens_of, words_of_columns
from pluri.topics.expected_shares import expected_shares
from pluri.topics.held_out.halves import score_words
from pluri.topics.lda.sampling.gibbs import CollapsedGibbs
from pluri.topics.lda.variational.document_step import document_bounds
from pluri.topics.topic_model import TopicModel

X = np.random.default_rng(0).poisson(0.8, size=(40, 12))
TITLES = [str(row) for row in range(40)]
#: Fits end early here, to be quick.
pytestmark = pytest.mark.filterwarnings("ignore:.*the bound still rises:sklearn.exceptions.ConvergenceWarning")
QUICK = {"inference": "gibbs", "n_warmup": 10, "n_draws": 2, "thin": 2, "random_state": 0}


def lda(**changes):
    return LatentDirichletAllocation(**{"n_components": 3, **QUICK, **changes})


# Refits ---------------------------------------------------------------------------------------------------------------


def test_a_refit_forgets_words_and_examples_that_are_not_its_own():
    model = lda().fit(X).name_words([f"w{column}" for column in range(12)]).keep_examples(X, TITLES)
    model.set_params(n_components=4).fit(X[:, :7])
    assert model.top_words(1)[0][0].startswith("word ")
    assert not hasattr(model, "examples_")
    assert len(model.topic_graph().nodes) == 4


def test_words_stay_while_the_columns_do_and_names_of_a_frame_come_first():
    model = lda().fit(X).name_words([f"w{column}" for column in range(12)])
    assert model.fit(X).top_words(1)[0][0].startswith("w")
    frame = pd.DataFrame(X, columns=[f"c{column}" for column in range(12)])
    assert model.fit(frame).top_words(1)[0][0].startswith("c")


def test_a_source_of_documents_leaves_nothing_of_an_earlier_fit():
    frame = pd.DataFrame(X, columns=[f"c{column}" for column in range(12)])
    model = lda(inference="vb").fit(frame)
    model.fit(SparseSource(sparse.csr_matrix(X[:, :7], dtype=float), batch_size=10))
    assert not hasattr(model, "feature_names_in_")
    assert not hasattr(model, "bound_")
    assert model.top_words(1)[0][0].startswith("word ")


def test_a_refit_that_fails_keeps_words_and_examples():
    model = lda().fit(X).name_words([f"w{column}" for column in range(12)]).keep_examples(X, TITLES)
    with pytest.raises(ValueError, match="seed_words"):
        model.set_params(seed_words=[[99]]).fit(X[:, :7])
    assert len(model.vocabulary_) == 12
    assert len(model.examples_) == 3


# Batches after a fit --------------------------------------------------------------------------------------------------


def test_going_on_keeps_the_learned_prior_of_topics():
    model = lda(doc_topic_prior="learn", topic_word_prior="learn").fit(X)
    eta, tokens = model.topic_word_prior_, model.components_.sum() - 3 * 12 * model.topic_word_prior_
    assert eta != 1 / 3
    model.partial_fit(X[:5])
    assert model.topic_word_prior_ == eta
    per_topic = (model.components_ - eta).sum(axis=1)
    np.testing.assert_allclose(per_topic.sum(), tokens + X[:5].sum())
    np.testing.assert_allclose(model.topic_weight_, per_topic / per_topic.sum())


def test_going_on_online_from_a_small_corpus_does_not_upset_the_shares():
    model = lda(inference="svi", doc_topic_prior="learn").fit(X)
    before = np.array(model.doc_topic_prior_)
    model.partial_fit(X)
    np.testing.assert_allclose(model.doc_topic_prior_, before, rtol=0.5)


def test_learning_priors_may_begin_with_a_later_batch(tmp_path):
    model = lda(inference="svi").fit(X).set_params(doc_topic_prior="learn")
    io.save(model, tmp_path / "model.skops")
    again = io.load(tmp_path / "model.skops").partial_fit(X)
    np.testing.assert_array_equal(again.components_, model.partial_fit(X).components_)
    assert np.shape(model.doc_topic_prior_) == (3,)


def test_the_perplexity_of_a_fit_is_gone_after_further_batches():
    model = lda().fit(X)
    assert np.isfinite(model.bound_)
    assert not hasattr(model.partial_fit(X[:5]), "bound_")


def test_going_on_with_another_number_of_topics_is_refused():
    model = lda().fit(X).set_params(n_components=4)
    with pytest.raises(ValueError, match="n_components must be 3"):
        model.partial_fit(X)


def test_ctrl_c_in_a_batch_keeps_what_was_counted(monkeypatch):
    plain, calls = CollapsedGibbs.step, []

    def step(self, rng, state):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return plain(self, rng, state)

    monkeypatch.setattr(CollapsedGibbs, "step", step)
    with on_interrupt("keep"), pytest.warns(UserWarning, match="interrupted after 2 sweeps"):
        model = lda().partial_fit(X)
    np.testing.assert_allclose((model.components_ - 1 / 3).sum(), X.sum())


# Fits -----------------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:the chains have not settled:sklearn.exceptions.ConvergenceWarning")
def test_topics_are_averaged_over_draws_without_a_warm_up():
    one, many = (lda(n_warmup=0, n_draws=n_draws, thin=1).fit(X) for n_draws in (1, 8))
    assert (np.abs(one.components_ - 1 / 3 - np.round(one.components_ - 1 / 3)) < 1e-9).all()  # whole counts
    assert np.abs(many.components_ - 1 / 3 - np.round(many.components_ - 1 / 3)).max() > 0.05


@pytest.mark.parametrize("inference", ["vb", "em"])
def test_the_perplexity_of_a_fit_has_its_weights(inference):
    weight = np.r_[np.zeros(10), np.full(30, 2.0)]
    model = lda(inference=inference).fit(X, sample_weight=weight)
    np.testing.assert_allclose(model.bound_, model.perplexity(X[10:]))


@pytest.mark.parametrize("inference", ["gibbs", "em"])
def test_a_perplexity_that_waits_is_that_of_the_fit(inference, tmp_path, monkeypatch):
    asked, saved, pickled, copied = (lda(inference=inference).fit(X) for _ in range(4))
    assert "bound_" not in vars(asked)
    assert not hasattr(clone(asked), "bound_")
    io.save(saved, tmp_path / "model.skops")
    models = [
        asked,
        saved,
        io.load(tmp_path / "model.skops"),
        pickle.loads(pickle.dumps(pickled)),
        copy.deepcopy(copied),
    ]
    monkeypatch.setattr("pluri.topics.lda.documents.MOST_KEPT", 0)
    at_once = lda(inference=inference).fit(X)
    assert [model.bound_ for model in models] == [vars(at_once)["bound_"]] * 5
    assert not any("_pending" in vars(model) for model in models)  # no documents are kept once it is known


def test_a_perplexity_that_waits_is_that_of_the_model_and_documents_as_they_were():
    counts = sparse.csr_matrix(X, dtype=float)
    expected = lda().fit(counts).bound_
    model = lda().fit(counts)
    counts.data[:] = 1.0
    model.set_params(max_doc_update_iter=1)
    model.topic_word_ = np.full_like(model.topic_word_, 1 / 12)
    assert model.bound_ == expected


def test_bounds_of_many_documents_are_those_of_each(monkeypatch):
    model = lda().fit(X)
    whole = model.score(X)
    monkeypatch.setattr("pluri.topics.lda.documents.DOCUMENTS_AT_ONCE", 7)
    np.testing.assert_allclose(model.score(X), whole)


def test_ctrl_c_while_the_perplexity_is_computed_keeps_the_topics(monkeypatch):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("pluri.topics.lda.documents.document_bounds", interrupted)
    with on_interrupt("keep"), pytest.warns(UserWarning, match="bound_"):
        model = lda(inference="vb").fit(X)
    monkeypatch.setattr("pluri.topics.lda.documents.document_bounds", document_bounds)
    assert not hasattr(model, "bound_")
    assert np.isfinite(model.score(X))


def test_a_source_settles_by_its_perplexity_as_a_matrix_does():
    options = {"inference": "vb", "evaluate_every": 1, "max_iter": 40, "perp_tol": 0.05}
    source = SparseSource(sparse.csr_matrix(X, dtype=float), batch_size=10)
    n_iter = lda(**options).fit(X).n_iter_
    assert 1 < n_iter < 40
    assert lda(**options).fit(source).n_iter_ == n_iter


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"max_doc_update_iter": -1}, "max_doc_update_iter"),
        ({"mean_change_tol": -1.0}, "mean_change_tol"),
        ({"perp_tol": np.nan}, "perp_tol"),
    ],
)
def test_settings_that_matter_at_the_end_are_checked_at_the_beginning(change, sentence, monkeypatch):
    monkeypatch.setattr(CollapsedGibbs, "step", None)
    with pytest.raises(ValueError, match=sentence):
        lda(**change).fit(X)


def test_a_method_where_scikit_learn_has_a_flag_is_refused():
    with pytest.raises(ValueError, match="held_out"):
        lda().fit(X).perplexity(X, "left_to_right")


def test_more_tokens_than_can_be_numbered_are_refused_before_they_are_written_out():
    with pytest.raises(ValueError, match="2147483652"):
        tokens_of(sparse.csr_matrix([[2.0**31 - 1, 2.0], [3.0, 0.0]]))


def test_log_densities_are_not_computed_for_a_display_that_is_off():
    asked = []

    class State:
        position = np.zeros(1)

        @property
        def log_density(self):
            asked.append(1)
            return 0.0

    class Still:
        def init(self, rng, position):
            return State()

        def step(self, rng, state):
            return state, {}

        def adaptation(self, n_warmup):
            return None

    mcmc.sample(Still(), np.zeros(1), n_draws=3, n_warmup=20, n_chains=1, warn=False)
    assert len(asked) == 3


# What is shown --------------------------------------------------------------------------------------------------------


def test_examples_are_kept_of_models_that_give_data_frames():
    plain, framed = lda(), lda().set_output(transform="pandas")
    expected = plain.fit(X).keep_examples(X, TITLES).examples_
    assert framed.fit(X).keep_examples(X, TITLES).examples_ == expected


def test_best_words_are_those_of_a_whole_sort_with_ties_in_order():
    class Given(TopicModel):
        def fit(self, X, y=None):
            return self

        transform = _held_out = fit

    model = Given()
    rng = np.random.default_rng(0)
    model.topic_word_ = rng.integers(4, size=(20, 30)) / 30  # many ties
    for n_words in (1, 5, 30, 40):
        expected = np.argsort(-model.topic_word_, axis=1, kind="stable")[:, :n_words]
        np.testing.assert_array_equal(model._best_columns(n_words), expected)


# Scores ---------------------------------------------------------------------------------------------------------------


def test_exact_probabilities_keep_their_digits_under_a_large_prior():
    topics = np.random.default_rng(1).dirichlet(np.ones(12), size=3)
    score = held_out.exact_likelihood(topics, 1e12, X[:3]).log_likelihood
    np.testing.assert_allclose(score, X[:3] @ np.log(topics.mean(axis=0)), rtol=1e-10)


def test_halves_are_scored_by_the_mixture_of_each_document():
    rng = np.random.default_rng(2)
    shares, topics = rng.dirichlet(np.ones(4), size=40), rng.dirichlet(np.ones(12), size=4)
    score = score_words(shares, topics, sparse.csr_matrix(X, dtype=float))
    np.testing.assert_allclose(score.log_likelihood, (X * np.log(shares @ topics)).sum(axis=1))
    np.testing.assert_array_equal(score.n_tokens, X.sum(axis=1))


def test_shares_do_not_depend_on_threads(monkeypatch):
    monkeypatch.setattr("pluri.topics.held_out.prepared.DRAWS_PER_CALL", 2000.0)  # several blocks
    topics, prior = np.random.default_rng(3).dirichlet(np.ones(12), size=5), np.full(5, 0.2)
    counts = sparse.csr_matrix(X, dtype=float)
    one, two = (expected_shares(topics, prior, counts, n_jobs=n_jobs) for n_jobs in (None, 2))
    np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(one[7:9], expected_shares(topics, prior, counts[7:9]))


# Ratings and classes --------------------------------------------------------------------------------------------------


def test_ratings_of_empty_documents_teach_nothing():
    counts, y = X.copy(), np.random.default_rng(4).normal(size=40)
    counts[:5] = 0
    unknown = y.copy()
    unknown[:5] = np.nan
    y[:5] = [1, -1, 1, -1, 0]
    y[5:] = (y[5:] - y[5:].mean()) / y[5:].std()
    y[:4] *= np.sqrt(5 / 4)  # the same mean and spread with them and without
    unknown[5:] = y[5:]
    for inference in ("gibbs", "vb"):
        fits = []
        for response in (y, unknown):
            model = SupervisedLDA(2, inference=inference, n_warmup=10, n_draws=3, n_init=1, tol=0.1, random_state=0)
            with pytest.warns(UserWarning, match="no words"):
                fits.append(model.fit(counts, response))
        np.testing.assert_allclose(fits[0].coef_, fits[1].coef_, rtol=1e-6)
        np.testing.assert_allclose(fits[0].noise_, fits[1].noise_, rtol=1e-6)


def test_classes_are_told_apart_where_coefficients_are_huge():
    words = np.eye(3, dtype=int)[np.random.default_rng(5).integers(3, size=60)]
    model = SupervisedLDAClassifier(
        3, coef_prior_var=1e8, coefficients="draw", topic_word_prior=0.01, doc_topic_prior=0.1, n_warmup=200,
        n_draws=5, random_state=0,
    ).fit(words, words.argmax(axis=1))  # fmt: skip
    assert np.abs(model.coef_draws_).max() > 800  # whose exponential is no number
    assert model.score(words, words.argmax(axis=1)) == 1.0


# Coherence ------------------------------------------------------------------------------------------------------------


def test_a_string_is_not_taken_for_a_list_of_its_characters():
    with pytest.raises(ValueError, match=r"documents must be lists of tokens, got the string 'a cat"):
        topic_coherence([["cat", "dog"]], ["a cat and a dog", "a dog"])
    with pytest.raises(ValueError, match=r"topics must be lists of words, got the string 'cat'"):
        topic_coherence(["cat", "dog"], [["cat", "dog"]])
    with pytest.raises(ValueError, match=r"topics must be lists of words"):
        topic_uniqueness(["cat", "dog"])


def test_coherence_reads_counts_from_a_data_frame_and_texts_from_a_generator():
    expected = topic_coherence([[0, 1, 2]], X).per_topic
    np.testing.assert_array_equal(topic_coherence([[0, 1, 2]], pd.DataFrame(X)).per_topic, expected)
    texts = [["cat", "dog"], ["cat"], ["dog", "fish"]]
    expected = topic_coherence([["cat", "dog"]], texts).per_topic
    np.testing.assert_array_equal(topic_coherence([["cat", "dog"]], iter(texts)).per_topic, expected)


# What a new user tries ------------------------------------------------------------------------------------------------


def test_words_come_as_a_list_a_dict_of_columns_or_a_vectorizer():
    vectorizer = CountVectorizer().fit(["ice goal", "vote law"])
    words = ["goal", "ice", "law", "vote"]
    for names in (words, np.array(words), vectorizer.vocabulary_, vectorizer):
        assert words_of_columns(names, 4).tolist() == words
        model = lda(vocabulary=names, seed_words=[["vote"]]).fit(X[:, :4])
        assert model.vocabulary_.tolist() == words
    for wrong in (words[:3], {"a": 0, "b": 1}, {"a": 0, "b": 1, "c": 2, "d": 2}, {"a": 0, "b": 1, "c": 2, "d": "3"}):
        with pytest.raises(ValueError, match="vocabulary must have one word for each of 4 columns"):
            lda(vocabulary=wrong).fit(X[:, :4])


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_weights_of_few_words_are_noticed_by_the_length_of_their_rows(norm):
    weights = TfidfTransformer(norm=norm).fit_transform(X)
    with pytest.warns(UserWarning, match="rows of length one, as weights by tf-idf have"):
        lda(inference="vb").fit(weights)


def test_fractions_that_are_no_weights_and_rows_of_one_word_pass():
    lda(inference="vb").fit(X * 0.5)
    lda(inference="vb").fit(np.eye(12))


@pytest.mark.parametrize("inference", ["vb", "em", "gibbs"])
def test_a_page_about_topics_has_the_largest_first(inference):
    model = lda(inference=inference).fit(X)
    first, header, *rows = model.summary(n_topics=2, n_words=3).splitlines()
    assert first.startswith(f"LatentDirichletAllocation: topics 3, words 12, inference {inference}")
    assert header.split() == ["topic", "share", "words"]
    order = np.argsort(-model.topic_weight_, kind="stable")
    assert [int(row.split()[0]) for row in rows[:2]] == order[:2].tolist()
    assert rows[2:] == ["  ... 1 more"]


def test_pages_about_supervised_topics_say_what_each_topic_speaks_for():
    settings = {"n_warmup": 20, "n_draws": 3, "random_state": 0}
    ratings = SupervisedLDA(2, **settings).fit(X, X[:, 0])
    for row in ratings.summary().splitlines()[2:]:
        topic, _, rating = row.split()[:3]
        assert float(rating) == pytest.approx(ratings.coef_[int(topic)], rel=1e-2)
    classes = np.where(X[:, 0] > 0, "ice", "law")
    for row in SupervisedLDAClassifier(2, **settings).fit(X, classes).summary().splitlines()[2:]:
        assert row.split()[2] in ("ice", "law")


def test_ratings_that_are_strings_lead_to_the_classifier():
    with pytest.raises(ValueError, match=r"'good'.*for classes use SupervisedLDAClassifier"):
        SupervisedLDA(2).fit(X, ["good"] * 40)


def test_few_documents_are_not_told_to_have_more_topics():
    few = HDPTopicModel("svi", max_topics=2, max_doc_topics=2, max_iter=1, random_state=0)
    with pytest.warns(ConvergenceWarning) as told:
        few.fit(X)
    said = " ".join(str(warning.message) for warning in told)
    assert "'svi' needs many documents, of which there are 40: use inference='gibbs' or 'vb'" in said
    assert "raise max_topics" not in said
    with pytest.warns(ConvergenceWarning) as told:
        few.set_params(batch_size=4).fit(X)
    assert "all 2 topics are in use; raise max_topics" in [str(warning.message) for warning in told]


def test_control_c_in_a_variational_fit_is_told_once():
    def stop(state):
        raise KeyboardInterrupt

    with on_interrupt("keep"), pytest.warns(UserWarning, match="interrupted") as told:
        lda(inference="vb", callback=stop).fit(X)
    (said,) = [str(warning.message) for warning in told if "interrupted" in str(warning.message)]
    assert said.startswith("LatentDirichletAllocation")


def test_coherence_of_a_model_is_that_of_its_topics():
    model = lda().fit(X)
    np.testing.assert_array_equal(
        topic_coherence(model, X, n_words=4).per_topic, topic_coherence(model.topic_word_, X, n_words=4).per_topic
    )
