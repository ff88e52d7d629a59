"""Rare classes: known answers of Tomek links, probabilities under another prior, decisions by costs."""

import numpy as np
import pandas
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import check_estimator

import pluri
from pluri.decisions import CostSensitiveClassifier, IteratedTomekLinks, correct_prior_shift, tomek_links
from pluri.mixtures import NaiveBayes

LABELS = np.repeat([0, 1], [500, 50])


def published_rows():
    """500 rows of N(0, 1.5^2) and 50 of N(2, 0.5^2), from RandomState(0)."""
    rng = np.random.RandomState(0)
    return np.r_[1.5 * rng.randn(500, 2), 0.5 * rng.randn(50, 2) + [2, 2]]


def links_by_enumeration(X, y):
    """Pairs of different classes with no row nearer to either."""
    distance = ((X[:, None] - X) ** 2).sum(axis=2)
    np.fill_diagonal(distance, np.inf)
    least = distance.min(axis=1)
    pairs = [(i, j) for i in range(len(X)) for j in range(i + 1, len(X)) if y[i] != y[j]]
    return [(i, j) for i, j in pairs if distance[i, j] <= min(least[i], least[j])]


def test_known_answers():
    X = published_rows()
    assert len(tomek_links(X, LABELS)) == 9
    sampler = IteratedTomekLinks()
    kept, labels = sampler.fit_resample(X, LABELS)
    assert np.bincount(labels).tolist() == [489, 50]
    assert (sampler.n_rounds_, sampler.n_links_) == (2, 9)
    assert_array_equal(kept, X[sampler.sample_indices_])
    assert len(tomek_links(kept, labels)) == 0
    assert np.bincount(IteratedTomekLinks(max_rounds=1).fit_resample(X, LABELS)[1]).tolist() == [491, 50]


def test_links_are_those_of_enumeration():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(80, 3)), rng.integers(3, size=80)
    assert [tuple(pair) for pair in tomek_links(X, y)] == links_by_enumeration(X, y)
    assert_array_equal(tomek_links(sparse.csr_matrix(X), y), tomek_links(X, y))


def test_rows_that_are_equally_near_are_links_too():
    for seed in range(30):
        rng = np.random.default_rng(seed)
        X, y = rng.integers(5, size=(30, 2)).astype(float), rng.integers(2, size=30)  # whole numbers: many ties, copies
        assert sorted(tuple(pair) for pair in tomek_links(X, y)) == links_by_enumeration(X, y)
        kept, labels = IteratedTomekLinks().fit_resample(X, np.where(rng.random(30) < 0.2, 1, 0))
        # Links are left only between classes of the same size, or if every row of the larger class has one.
        links, counts = links_by_enumeration(kept, labels), np.bincount(labels, minlength=2)
        linked = {row for pair in links for row in pair if labels[row] == counts.argmax()}
        assert not links or counts[0] == counts[1] or len(linked) == counts.max()
    everything_the_same = np.zeros((40, 1))
    assert len(tomek_links(everything_the_same, np.arange(40) % 2)) == 400
    assert len(tomek_links(pandas.DataFrame(everything_the_same), np.arange(40) % 2)) == 400


def test_both_rows_of_a_link_may_go_but_no_class_dies():
    X, y = np.array([[0.0], [0.1], [5.0], [6.0]]), np.array([0, 1, 0, 0])
    kept, labels = IteratedTomekLinks("both").fit_resample(X, y)
    assert 1 in labels
    assert len(links_by_enumeration(kept, labels)) <= 1


def test_frames_come_out_as_frames():
    X = pandas.DataFrame(published_rows(), columns=["a", "b"])
    kept, labels = IteratedTomekLinks().fit_resample(X, pandas.Series(LABELS))
    assert isinstance(kept, pandas.DataFrame)
    assert list(kept.index) == list(labels.index)


def test_pipelines_of_imbalanced_learn_resample_in_fit_alone():
    imblearn = pytest.importorskip("imblearn.pipeline")
    pipeline = imblearn.make_pipeline(IteratedTomekLinks(), NaiveBayes("gaussian")).fit(published_rows(), LABELS)
    kept, labels = IteratedTomekLinks().fit_resample(published_rows(), LABELS)
    alone = NaiveBayes("gaussian").fit(kept, labels)
    assert_allclose(pipeline.predict_proba(published_rows()), alone.predict_proba(published_rows()))


def test_another_prior_is_bayes_rule():
    # Two normal classes: the classifier for one prior, carried to another, is the classifier for the other.
    x = np.linspace(-3, 4, 30)
    density = np.stack([np.exp(-0.5 * x**2), np.exp(-0.5 * (x - 1) ** 2)], axis=1)

    def posterior(prior):
        joint = density * prior
        return joint / joint.sum(axis=1, keepdims=True)

    found = correct_prior_shift(posterior([0.5, 0.5]), [0.5, 0.5], [0.98, 0.02])
    assert_allclose(found, posterior([0.98, 0.02]))
    assert_allclose(correct_prior_shift(posterior([0.5, 0.5])[:, 1], 0.5, 0.02), found[:, 1])
    assert_allclose(correct_prior_shift(found, [0.98, 0.02], [0.98, 0.02]), found)


def test_the_threshold_is_that_of_the_costs():
    X = np.random.default_rng(0).normal(size=(200, 2))
    y = (X[:, 0] + np.random.default_rng(1).normal(size=200) > 0).astype(int)
    model = CostSensitiveClassifier(LogisticRegression(), [[0.0, 1.0], [4.0, 0.0]]).fit(X, y)
    assert_array_equal(model.predict(X), (model.predict_proba(X)[:, 1] > 1.0 / 5.0).astype(int))
    plain = CostSensitiveClassifier().fit(X, y)
    assert_array_equal(plain.predict(X), NaiveBayes("gaussian").fit(X, y).predict(X))


def test_expected_costs_are_sums_over_classes():
    X, y = np.arange(12.0)[:, None], np.repeat(["a", "b", "c"], 4)
    costs = np.array([[0.0, 2.0, 5.0], [1.0, 0.0, 1.0], [9.0, 3.0, 0.0]])
    model = CostSensitiveClassifier(NaiveBayes("gaussian"), costs).fit(X, y)
    shares = model.predict_proba(X)
    expected = [[sum(p[k] * costs[k, j] for k in range(3)) for j in range(3)] for p in shares]
    assert_allclose(model.expected_costs(X), expected)
    assert_array_equal(model.predict(X), model.classes_[np.argmin(expected, axis=1)])


def test_weights_searches_and_files(tmp_path):
    X, y = published_rows(), LABELS
    weights = 1 + np.arange(550) % 3
    weighted = CostSensitiveClassifier(NaiveBayes("gaussian", inference="ml")).fit(X, y, sample_weight=weights)
    written = CostSensitiveClassifier(NaiveBayes("gaussian", inference="ml")).fit(
        np.repeat(X, weights, axis=0), np.repeat(y, weights)
    )
    assert_allclose(weighted.predict_proba(X), written.predict_proba(X), rtol=1e-6)
    pipeline = make_pipeline(StandardScaler(), CostSensitiveClassifier())
    grid = {"costsensitiveclassifier__cost_matrix": [None, [[0, 1], [10, 0]]]}
    search = GridSearchCV(pipeline, grid, scoring="recall", cv=3).fit(X, y)
    assert search.best_params_["costsensitiveclassifier__cost_matrix"] is not None
    pluri.save(weighted, tmp_path / "model.skops")
    assert_array_equal(pluri.load(tmp_path / "model.skops").predict(X), weighted.predict(X))
    assert clone(weighted).get_params()["estimator__inference"] == "ml"


def test_scikit_learn_finds_no_fault():
    check_estimator(CostSensitiveClassifier(), on_skip=None)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: IteratedTomekLinks("minority").fit_resample([[0.0], [1.0]], [0, 1]), "removed must be one of"),
        (lambda: IteratedTomekLinks(max_rounds=0).fit_resample([[0.0], [1.0]], [0, 1]), "max_rounds must be"),
        (lambda: IteratedTomekLinks().fit_resample([[0.0], [1.0]], [1, 1]), "y must have at least two classes"),
        (lambda: IteratedTomekLinks().fit_resample([[np.nan], [1.0]], [0, 1]), "NaN"),
        (lambda: correct_prior_shift([[0.5, 0.6]], [0.5, 0.5], [0.5, 0.5]), "probabilities must be non-negative"),
        (lambda: correct_prior_shift([[0.5, 0.5]], [1.0, 0.0], [0.5, 0.5]), "trained_prior must be positive"),
        (lambda: correct_prior_shift([[0.5, 0.5]], [0.5, 0.5], [0.5, 0.6]), "met_prior must be 2 probabilities"),
        (lambda: correct_prior_shift([[1.0, 0.0]], [0.5, 0.5], [0.0, 1.0]), "met_prior must allow a class"),
        (lambda: CostSensitiveClassifier(None, [[0, 1]]).fit([[0.0], [1.0]], [0, 1]), "cost_matrix must be finite"),
        (lambda: CostSensitiveClassifier(LinearSVC()).fit([[0.0], [1.0]], [0, 1]), "must have predict_proba"),
    ],
)
def test_mistakes_get_a_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()


def test_costs_of_texts_are_weighed_too():
    texts, labels = ["cheap pills", "cheap cheap", "dear friend", "my friend"], ["spam", "spam", "mail", "mail"]
    model = make_pipeline(CountVectorizer(), LogisticRegression())
    costs = [[0.0, 9.0], [1.0, 0.0]]  # to lose a mail is worse
    for given in (texts, np.array(texts), pandas.Series(texts)):
        careful = CostSensitiveClassifier(model, costs).fit(given, labels)
        expected = model.fit(texts, labels).predict_proba(texts) @ np.array(costs)
        assert_allclose(careful.expected_costs(given), expected)
        assert_array_equal(careful.predict(given), model.classes_[expected.argmin(axis=1)])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        CostSensitiveClassifier(model).fit(texts, labels[:3])
    with pytest.raises(ValueError, match="2D"):
        CostSensitiveClassifier().fit([1.0, 2.0], [0, 1])
