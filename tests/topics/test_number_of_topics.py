"""How many topics: what is found again, by closed forms; the search, on made-up curves; the whole, on documents."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse

from pluri import io
from pluri.datasets import make_topic_documents
from pluri.plotting import TopicNumberDisplay
from pluri.topics import HDPTopicModel, LatentDirichletAllocation, TopicSearchCV, choose_n_topics
from pluri.topics.number.candidates import Judged, distinctive, n_found_again, redundant_share
from pluri.topics.number.recommendation import CLOSE, ladder, recommended, sweep, telling

SHORT = LatentDirichletAllocation(inference="gibbs", n_warmup=15, n_draws=2, thin=2)


class Topics:
    """A model made by hand."""

    def __init__(self, topic_word, weight=None):
        self.topic_word_ = np.asarray(topic_word, dtype=float)
        n_topics = len(self.topic_word_)
        self.topic_weight_ = np.full(n_topics, 1 / n_topics) if weight is None else np.asarray(weight)


def blocks(n_topics, n_each=5):
    return np.kron(np.eye(n_topics), np.full(n_each, 1 / n_each))


def test_topics_in_another_order_are_found_again_and_others_are_not():
    topics = blocks(6)
    assert n_found_again(Topics(topics), Topics(topics[::-1]), 0.8) == 6
    # Two of them put together, and one cut in two, are three that are not the same.
    other = np.vstack([(topics[0] + topics[1]) / 2, topics[2:], np.eye(30)[:1]])
    assert n_found_again(Topics(topics), Topics(other), 0.8) == 4


def test_words_that_all_topics_have_make_none_of_them_alike():
    common = np.append(np.full(9, 1 / 9), np.zeros(30))
    first, second = (
        np.hstack([np.zeros((6, 9)), blocks(6)[order]]) for order in ([0, 1, 2, 3, 4, 5], [5, 0, 1, 2, 3, 4])
    )
    mixed = [0.7 * common + 0.3 * one for one in (first, second)]
    assert n_found_again(Topics(mixed[0]), Topics(mixed[1]), 0.8) == 6
    assert redundant_share(Topics(mixed[0]), 0.8) == 0.0
    assert_allclose(distinctive(mixed[0], np.full(6, 1 / 6))[:, :9], 0.0, atol=1e-12)


def test_a_topic_that_is_there_twice_is_redundant():
    twice = np.vstack([blocks(4), blocks(4)[:1]])
    assert redundant_share(Topics(twice), 0.8) == 2 / 5
    assert n_found_again(Topics(twice), Topics(twice), 0.8) == 4
    assert redundant_share(Topics(blocks(1)), 0.8) == 0.0


def judged(number, found, scores):
    return Judged(number, np.asarray(scores, dtype=float), 10, found, 0.1, 0.0, 0.1, 0.2)


def test_gains_are_paired_by_document_and_divided_by_the_topics_more():
    before, after = judged(4, 4, [-5.0, -6.0, -9.0]), judged(6, 5, [-4.0, -6.0, -7.0])
    gain, error = after.gain_over(before)
    assert_allclose([gain, error], [0.5, np.std([0.5, 0.0, 1.0]) / np.sqrt(3)])
    assert after.surplus == 4.0
    assert_allclose(after.per_word, -1.7)


def test_the_topics_found_again_are_recommended_or_the_nearest_listed_number():
    # Likelihood rises as far as was tried: the most found again, minus those that are not.
    candidates = [judged(10, 8, [-3.0]), judged(14, 13, [-2.0]), judged(20, 15, [-1.0])]
    assert telling(candidates).n_components == 14
    assert recommended(candidates) == 13
    assert recommended(candidates, [10, 14, 20]) == 14
    assert recommended([judged(3, 0, [0.0])]) == 1
    # It falls after 16: what is found again there, if that is more than half.
    peak = [*candidates[:2], judged(16, 13.6, [-0.5]), candidates[2]]
    assert (telling(peak).n_components, recommended(peak)) == (16, 14)
    peak[2] = judged(16, 8, [-0.5])
    assert telling(peak).n_components == 14


@settings(max_examples=60)
@given(st.integers(2, 150), st.integers(0, 2**32 - 1))
def test_the_search_finds_the_number_of_a_clean_corpus_and_tries_few(truth, seed):
    """All topics that are there are found again where there is room for them; likelihood rises until then."""
    tried = []

    def curve(number):
        tried.append(number)
        level = -abs(np.log(number / truth)) * (1.0 if number < truth else 0.2)
        noise = np.random.default_rng([seed, number]).normal(0, 0.01, 50)
        return judged(number, truth if number >= truth else number / 2, level + noise)

    found = sweep(curve, 200)
    assert len(tried) == len(set(tried)) <= 20
    assert recommended(found) == truth
    numbers = [one.n_components for one in found]
    place = numbers.index(telling(found).n_components)
    for low, high in zip(numbers[max(place - 1, 0) : place + 1], numbers[place : place + 2]):
        assert high - low <= 1 or high / low <= CLOSE + 1e-9 or low == high


@given(st.integers(1, 1000))
def test_first_numbers_are_doubled_and_end_at_the_largest(largest):
    numbers = ladder(largest)
    assert numbers[-1] == max(largest, 1)
    assert numbers == sorted(set(numbers))
    assert all(high <= 2 * low for low, high in itertools.pairwise(numbers))


def test_the_number_of_topics_of_drawn_documents_is_recommended():
    """Six topics, within 20 % in two of three draws.

    All of 30 such draws were within 20 %, so that less than one in ten fails (at 95 % confidence), and two of three in
    less than 3 % of the runs.
    """
    found = []
    for seed in range(3):
        data = make_topic_documents(
            n_documents=300, n_words_per_document=60, n_words=150, n_topics=6, doc_topic_prior=0.1,
            topic_word_prior=0.03, random_state=seed,
        )  # fmt: skip
        search = choose_n_topics(data.counts, max_components=20, random_state=seed)
        assert f"{search.n_components_} topics are recommended" in search.summary()
        found.append(search.n_components_)
    assert sum(5 <= number <= 7 for number in found) >= 2, found


@pytest.fixture(scope="module")
def small():
    counts = make_topic_documents(
        n_documents=60, n_words_per_document=30, n_words=40, n_topics=3, doc_topic_prior=0.1, topic_word_prior=0.05,
        random_state=0,
    ).counts  # fmt: skip
    return counts, TopicSearchCV(SHORT, n_components=[2, 3, 5], random_state=0).fit(counts)


def test_what_is_told_fits_together(small):
    counts, search = small
    table = search.cv_results_
    assert table["param_n_components"].tolist() == [2, 3, 5]
    assert_allclose(table["surplus"], 2 * table["found_again"] - table["param_n_components"])
    assert_allclose(table["found_again_share"] * table["param_n_components"], table["found_again"])
    assert search.best_params_ == {"n_components": search.n_components_}
    assert search.best_estimator_.topic_word_.shape == (search.n_components_, 40)
    assert_allclose(search.transform(counts), search.best_estimator_.transform(counts))
    assert search.score(counts) == search.best_estimator_.score(counts)
    assert len(search.get_feature_names_out()) == search.n_components_
    assert len(search.summary().splitlines()) == 3 + 3


def test_numbers_are_judged_alike_whatever_is_tried_beside_them(small):
    counts, search = small
    alone = choose_n_topics(counts, SHORT, n_components=3, random_state=0, n_jobs=2)
    for name, values in alone.cv_results_.items():
        if name not in ("params", "gain_per_topic", "gain_error"):
            assert_allclose(values[0], search.cv_results_[name][1], err_msg=name)
    with pytest.raises(AttributeError, match="only with refit=True"):
        alone.transform(counts)


def test_documents_without_words_change_nothing_and_many_are_drawn_from(small):
    counts, search = small
    padded = sparse.vstack([counts, sparse.csr_matrix((4, 40))]).tocsr()
    with pytest.warns(UserWarning, match="have no words"):
        found = choose_n_topics(padded, SHORT, n_components=[2, 3, 5], random_state=0)
    assert_allclose(found.cv_results_["mean_test_score"], search.cv_results_["mean_test_score"])
    few = choose_n_topics(counts, SHORT, n_components=[2], max_documents=20, random_state=0)
    assert "on 20 documents" in few.reasons_[0]


def test_files_keep_the_search_and_refuse_changed_ones(small, tmp_path):
    counts, search = small
    io.save(search, tmp_path / "search.skops")
    loaded = io.load(tmp_path / "search.skops")
    assert loaded.summary() == search.summary()
    assert_allclose(loaded.transform(counts), search.transform(counts))
    for change, told in [
        (lambda one: one.cv_results_.update(coherence=np.zeros(1)), "cv_results_"),
        (lambda one: setattr(one, "best_index_", 9), "best_index_"),
        (lambda one: setattr(one, "n_components_", 0), "n_components_"),
        (lambda one: setattr(one, "n_components_", 17), "best_estimator_ must have 17 topics"),
    ]:
        changed = io.load(tmp_path / "search.skops")
        change(changed)
        with pytest.raises(ValueError, match=told):
            changed._check_fitted_state()


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"n_components": "many"}, "n_components must be whole numbers or 'auto', got 'many'"),
        ({"n_components": [2, 0]}, "n_components must be whole numbers of at least 1"),
        ({"n_components": []}, "n_components must be whole numbers of at least 1"),
        ({"cv": 1, "n_components": [2]}, "cv must be at least 2 and at most the number of documents with words"),
        ({"likeness": 2.0}, "likeness must"),
        ({"max_documents": 1}, "max_documents must"),
    ],
)
def test_wrong_settings_are_one_sentence(small, wrong, told):
    with pytest.raises(ValueError, match=told):
        TopicSearchCV(SHORT, **wrong).fit(small[0])


def test_other_models_and_texts_are_refused(small):
    with pytest.raises(TypeError, match="estimator must be a LatentDirichletAllocation or None, got HDPTopicModel"):
        TopicSearchCV(HDPTopicModel()).fit(small[0])
    with pytest.raises(ValueError, match="X must be counts of words, got texts"):
        TopicSearchCV().fit(["a text", "another"])


def test_the_curves_are_drawn(small):
    display = TopicNumberDisplay.from_estimator(small[1], title="How many?")
    again = display.axes_[0].lines[1]
    assert_allclose(again.get_ydata(), small[1].cv_results_["found_again"])
    with pytest.raises(ValueError, match="search must be a fitted TopicSearchCV"):
        TopicNumberDisplay.from_estimator(TopicSearchCV())
    with pytest.raises(ValueError, match="table must have param_n_components"):
        TopicNumberDisplay({}, 3)


def test_the_final_model_has_the_topics_that_were_found_again(small):
    """It begins with them: each stays, at its place, on any way of its chain."""
    _, search = small
    found, final = search.first_topics_, search.best_estimator_.topic_word_
    assert found.shape == final.shape
    likeness = (found / np.linalg.norm(found, axis=1)[:, None]) @ (final / np.linalg.norm(final, axis=1)[:, None]).T
    assert likeness.argmax(axis=1).tolist() == list(range(search.n_components_))
    assert likeness.diagonal().min() > 0.7
    assert search.best_estimator_.init == "random"
