"""Dimensions of shapes whose dimension is known, and of other libraries' estimates."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.spatial.distance import pdist, squareform
from scipy.stats import binom, t
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.estimator_checks import parametrize_with_checks

import pluri
from pluri.embedding import IntrinsicDimension, nsr_dimension
from pluri.embedding.dimension.methods import METHODS, Method, by_regression
from pluri.embedding.dimension.records import Estimate
from pluri.embedding.dimension.spanning_tree import spanning_tree_length
from pluri.validation import as_generator


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([IntrinsicDimension(n_neighbors=8)])
def test_the_contract_of_scikit_learn(estimator, check):
    check(estimator)


def sphere(n, dimension, rng):
    rows = rng.normal(size=(n, dimension + 1))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def flat(n, dimension, rng):
    return rng.normal(size=(n, dimension)) @ rng.normal(size=(dimension, 12))


def test_maximum_likelihood_is_that_of_scikit_dimension():
    skdim = pytest.importorskip("skdim")
    X = flat(200, 3, np.random.default_rng(0))
    for averaging, comb in (("mean", "mean"), ("harmonic", "mle")):
        model = IntrinsicDimension(averaging=averaging, min_neighbors=10, n_neighbors=10, n_resamples=0).fit(X)
        other = skdim.id.MLE().fit(X, n_neighbors=10, comb=comb)
        assert_allclose(model.dimension_, other.dimension_)
        assert_allclose(model.local_dimension_, other.dimension_pw_)


def test_maximum_likelihood_averages_over_numbers_of_neighbours():
    X = flat(80, 2, np.random.default_rng(1))
    distance = np.sort(squareform(pdist(X)), axis=1)[:, 1:]
    each = [1 / np.log(distance[:, [k - 1]] / distance[:, : k - 1]).mean(axis=1) for k in range(4, 8)]
    model = IntrinsicDimension(averaging="mean", min_neighbors=4, n_neighbors=7, n_resamples=0).fit(X)
    assert_allclose(model.local_dimension_, np.mean(each, axis=0))
    assert_allclose(model.dimension_, np.mean(each))
    harmonic = IntrinsicDimension(min_neighbors=4, n_neighbors=7, n_resamples=0).fit(X)
    assert_allclose(harmonic.dimension_, np.mean([1 / np.mean(1 / one) for one in each]))


def test_the_correlation_dimension_is_that_of_scikit_dimension():
    skdim = pytest.importorskip("skdim")
    X = flat(200, 3, np.random.default_rng(2))
    distance = NearestNeighbors(n_neighbors=20).fit(X).kneighbors()[0]
    radii = (np.median(distance[:, 9]), np.median(distance[:, 19]))
    model = IntrinsicDimension("correlation", radii=radii, n_resamples=0).fit(X)
    assert_allclose(model.dimension_, skdim.id.CorrInt(k1=10, k2=20).fit(X).dimension_)
    shares = [(pdist(X) < radius).mean() for radius in radii]
    assert_allclose(model.dimension_, np.diff(np.log(shares))[0] / np.log(radii[1] / radii[0]))


def test_eigenvalues_are_counted_in_all_and_around_each_row():
    X = flat(150, 3, np.random.default_rng(3))
    model = IntrinsicDimension("eigenvalue", random_state=0).fit(X)
    assert model.dimension_ == 3
    assert_allclose(model.dimension_interval_, 3.0)
    assert model.local_dimension_.max() <= 3
    roll = np.random.default_rng(4).uniform(size=(400, 2))
    angle = 1.5 * np.pi * (1 + 2 * roll[:, 0])
    curved = np.column_stack([angle * np.cos(angle), 21 * roll[:, 1], angle * np.sin(angle)])
    bent = IntrinsicDimension("eigenvalue", random_state=0).fit(curved)
    assert bent.dimension_ == 3  # it sees the space around the sheet
    assert np.median(bent.local_dimension_) == 2


def test_spanning_trees_have_the_length_that_scipy_finds():
    distance = squareform(pdist(np.random.default_rng(5).normal(size=(40, 3))))
    assert_allclose(spanning_tree_length(distance), minimum_spanning_tree(distance).sum())


SHAPES = {
    "sphere 2": (lambda rng: sphere(400, 2, rng), 2),
    "flat 3": (lambda rng: rng.uniform(size=(400, 3)), 3),
    "sphere 5": (lambda rng: sphere(400, 5, rng), 5),
}


@pytest.mark.parametrize("method", ["mle", "correlation", "gmst"])
@pytest.mark.parametrize("shape", SHAPES)
def test_known_dimensions_are_found_within_a_fifth(method, shape):
    """Over seeds, estimates of each of these vary by at most 5 % (standard deviation), and are biased by at most 8 %.

    A fifth of the truth is then more than two standard deviations beyond the bias of one fit, and more than four
    beyond that of the mean of five, which is tested: false alarms are below 1 in 10,000.
    """
    make, truth = SHAPES[shape]
    found = [
        IntrinsicDimension(method, n_resamples=0, random_state=seed).fit(make(np.random.default_rng(seed))).dimension_
        for seed in range(5)
    ]
    assert abs(np.mean(found) - truth) < 0.2 * truth


@pytest.mark.parametrize("method", ["mle", "correlation"])
def test_intervals_hold_what_other_samples_give(method):
    """A 95 % interval about one of 30 estimates holds their mean at least as often as it says; bias is not covered.

    If each did so with probability 0.93 (half-samples of 20 are a little noisy), fewer than 21 of 30 would do so once
    in 10,000 runs.
    """
    assert binom.cdf(20, 30, 0.93) < 1e-4
    fits = [
        IntrinsicDimension(method, random_state=seed).fit(sphere(200, 2, np.random.default_rng(seed)))
        for seed in range(30)
    ]
    mean = np.mean([fit.dimension_ for fit in fits])
    inside = sum(fit.dimension_interval_[0] <= mean <= fit.dimension_interval_[1] for fit in fits)
    assert inside >= 21


def test_an_interval_is_narrower_with_more_rows_and_a_lower_level():
    X = sphere(800, 2, np.random.default_rng(6))
    few, many = (IntrinsicDimension(random_state=0, n_resamples=40).fit(X[:n]) for n in (80, 800))
    # Widths go as 1 / sqrt(n), a ratio of 3.2; each is known to 11 % (40 resamples), five times less than this margin.
    assert np.ptp(many.dimension_interval_) < 0.6 * np.ptp(few.dimension_interval_)
    lower = IntrinsicDimension(random_state=0, level=0.5, n_resamples=40).fit(X[:80])
    assert np.ptp(lower.dimension_interval_) < np.ptp(few.dimension_interval_)
    assert few.summary().startswith("IntrinsicDimension: ")


def sheet(n, rng):
    u, v = rng.uniform(size=(2, n))
    return np.column_stack([u, v, np.sin(3 * u), np.cos(2 * v), u * v]) + 0.005 * rng.normal(size=(n, 5))


def test_the_regression_counts_directions():
    """Directions of a noisy curved sheet: 2.13 with a standard deviation of 0.1 over 12 seeds; bounds at five."""
    X = sheet(400, np.random.default_rng(0))
    model = IntrinsicDimension("nsr", n_resamples=0, random_state=0).fit(X)
    direct = nsr_dimension(X, estimate="effective_rank", n_neighbors=12, random_state=as_generator(0))
    assert model.dimension_ == direct.dimension
    assert 1.6 < model.dimension_ < 2.65
    assert direct.interval[0] <= model.dimension_ <= direct.interval[1]
    assert model.local_dimension_.shape == (400,)


def test_the_interval_of_the_regression_is_of_other_rows_and_not_of_one_chain(monkeypatch):
    seen = []

    def estimate(X, settings, rng):
        seen.append((len(X), by_regression(X, settings, rng)))
        return seen[-1][1]

    monkeypatch.setitem(METHODS, "nsr", METHODS["nsr"]._replace(estimate=estimate))
    X = sheet(150, np.random.default_rng(0))
    model = IntrinsicDimension("nsr", n_resamples=2, n_neighbors=8, random_state=0).fit(X)
    assert [rows for rows, _ in seen] == [150, 120, 120]
    # With 120 of 150 rows the variance is a quarter of what it is from sample to sample.
    width = t.ppf(0.975, 1) * 2.0 * np.std([found.dimension for _, found in seen[1:]], ddof=1)
    assert_allclose(model.dimension_interval_, [max(model.dimension_ - width, 0.0), model.dimension_ + width])


@pytest.mark.parametrize("share", [0.5, 0.8])
def test_few_resamples_hold_the_truth_as_often_as_student_says(monkeypatch, share):
    """Of a mean: 95 % of 400 intervals from six resamples hold the truth; fewer than 359 would once in 10,000 runs."""
    assert binom.cdf(358, 400, 0.95) < 1e-4
    mean = Method(lambda X, settings, rng: Estimate(float(X.mean()), None), False, most_resamples=6, share=share)
    monkeypatch.setitem(METHODS, "eigenvalue", mean)
    inside = 0
    for seed in range(400):
        X = 5.0 + np.random.default_rng(seed).normal(size=(60, 1))
        low, high = IntrinsicDimension("eigenvalue", random_state=seed).fit(X).dimension_interval_
        inside += low <= 5.0 <= high
    assert inside >= 359


@pytest.mark.parametrize("method", ["mle", "correlation", "gmst"])
def test_copies_of_rows_are_counted_once_and_told(method):
    X = flat(60, 2, np.random.default_rng(7))
    which = np.random.default_rng(8).permutation(120) % 60
    once = which[np.sort(np.unique(which, return_index=True)[1])]  # in the order of their first occurrence
    expected = IntrinsicDimension(method, n_resamples=0, random_state=0).fit(X[once])
    with pytest.warns(UserWarning, match="60 of 120 rows occur before"):
        found = IntrinsicDimension(method, n_resamples=0, random_state=0).fit(X[which])
    assert_allclose(found.dimension_, expected.dimension_)
    if method == "gmst":
        assert found.local_dimension_ is None
    else:
        assert_allclose(found.local_dimension_, expected.local_dimension_[np.argsort(once)[which]])


def test_too_few_rows_for_an_interval_are_told():
    with pytest.warns(UserWarning, match="n_samples=20 distinct rows are too few for an interval"):
        model = IntrinsicDimension().fit(flat(20, 2, np.random.default_rng(9)))
    assert np.isnan(model.dimension_interval_).all()
    assert np.isfinite(model.dimension_)


def test_a_dimension_comes_back_from_its_file(tmp_path):
    model = IntrinsicDimension(random_state=0).fit(flat(60, 2, np.random.default_rng(10)))
    pluri.save(model, tmp_path / "dimension.skops")
    assert pluri.load(tmp_path / "dimension.skops").summary() == model.summary()


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"method": "pca"}, "method must be one of 'mle', 'eigenvalue', 'correlation', 'gmst', 'nsr', got 'pca'"),
        ({"n_neighbors": 30}, r"n_neighbors must be below the number of distinct rows \(n_samples=30"),
        ({"n_neighbors": 4}, r"min_neighbors must be at most n_neighbors \(4\), got 6"),
        ({"averaging": "median"}, "averaging must be one of 'mean', 'harmonic', got 'median'"),
        ({"threshold": 1.0}, "threshold must be"),
        ({"radii": 1.0}, "radii must be two numbers or None, got 1.0"),
        ({"method": "correlation", "radii": (2.0, 1.0)}, "radii must be two numbers, 0 < small < large"),
        ({"method": "correlation", "radii": (1e-9, 1.0)}, "radii must leave some pairs"),
        ({"n_resamples": -1}, "n_resamples must be"),
        ({"level": 1.0}, "level must be"),
    ],
    ids=str,
)
def test_mistakes_get_a_sentence(settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        IntrinsicDimension(**settings).fit(np.random.default_rng(11).normal(size=(30, 3)))


def test_rows_in_two_parts_have_no_tree_along_the_data():
    X = np.concatenate([flat(30, 2, np.random.default_rng(12)), 1e5 + flat(30, 2, np.random.default_rng(13))])
    with pytest.raises(ValueError, match=r"n_neighbors must be large enough to connect all rows, got 12, .* 2 parts"):
        IntrinsicDimension("gmst").fit(X)
