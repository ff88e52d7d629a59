"""Settings in which a mixture once went wrong: streams after fits, weights far from one, components without rows."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal
from sklearn.exceptions import ConvergenceWarning

from pluri.components import gaussian as components
from pluri.components.gaussian import GaussianParameters
from pluri.components.starting_shares import divide_rows
from pluri.engine import ArraySource
from pluri.factors.factor_analyzer_family import center_and_floor
from pluri.mixtures import (
    BernoulliMixture,
    CategoricalMixture,
    DeadComponentWarning,
    DynamicMeans,
    FactorAnalyzerMixture,
    GaussianMixture,
    MultinomialMixture,
    NaiveBayes,
    NonparametricFactorAnalyzerMixture,
    PoissonMixture,
)
from pluri.mixtures.learning import ADVICE, refuse_impossible

rng = np.random.default_rng(7)
X = np.concatenate([rng.normal(size=(80, 3)), rng.normal(size=(80, 3)) @ np.diag([1.0, 0.2, 2.0]) + [2.0, 1.0, 0.0]])
COUNTS = rng.poisson(np.where(np.arange(160)[:, None] < 80, [1.0, 4.0, 2.0], [6.0, 1.0, 3.0])).astype(float)
CODES = np.minimum(COUNTS, 3)
STREAMS = [
    (GaussianMixture, {}, X),
    (GaussianMixture, {"covariance_type": "tied"}, X),
    (GaussianMixture, {"covariance_type": "diag"}, X),
    (GaussianMixture, {"covariance_type": "spherical"}, X),
    (BernoulliMixture, {}, COUNTS),
    (PoissonMixture, {}, COUNTS),
    (MultinomialMixture, {}, COUNTS),
    (CategoricalMixture, {}, CODES),
    (FactorAnalyzerMixture, {}, X),
]


@pytest.mark.parametrize("kind", ["own", "tied"])
def test_densities_and_moments_with_missing_values_equal_those_of_the_normal_laws(kind: str) -> None:
    draws = np.random.default_rng(0)
    k, D, n = 3, 5, 60
    group = np.arange(k) if kind == "own" else np.zeros(k, dtype=np.int64)
    roots = draws.normal(size=(group.max() + 1, D, D))
    covariances = roots @ roots.transpose(0, 2, 1) + 0.1 * np.eye(D)
    means = draws.normal(size=(k, D)) + 1e4
    rows = draws.normal(size=(n, D)) + 1e4
    rows[draws.random(rows.shape) < 0.4] = np.nan
    rows[0], rows[1] = np.nan, 1e4
    weights = np.zeros((n, 4))
    weights[:, :k] = draws.random((n, k))
    parameters = GaussianParameters(means, covariances, "full", group)
    out = np.empty((n, 4))
    components.log_prob(parameters, rows, out)
    stats = components.accumulate(parameters, rows, weights)
    first, second = np.zeros((k, D)), np.zeros((k, D, D))
    for t in range(n):
        seen = ~np.isnan(rows[t])
        for j in range(k):
            S, deviation, spread = covariances[group[j]], np.zeros(D), covariances[group[j]]
            if seen.any():
                law = multivariate_normal(means[j][seen], S[np.ix_(seen, seen)])
                assert out[t, j] == pytest.approx(law.logpdf(rows[t][seen]), rel=1e-9, abs=1e-9)
                deviation[seen] = rows[t][seen] - means[j][seen]
                gain = np.linalg.solve(S[np.ix_(seen, seen)], S[seen])
                spread = S - S[:, seen] @ gain
                deviation = np.where(seen, deviation, deviation[seen] @ gain)
            else:
                assert out[t, j] == 0.0
            first[j] += weights[t, j] * deviation
            second[j] += weights[t, j] * (np.outer(deviation, deviation) + spread)
    np.testing.assert_allclose(stats.count, weights[:, :k].sum(axis=0))
    np.testing.assert_allclose(stats.first, first, atol=1e-7)
    np.testing.assert_allclose(stats.second, np.tril(second), atol=1e-7)


@pytest.mark.parametrize("covariance_type", ["full", "tied", "diag", "spherical"])
def test_components_without_rows_do_not_let_the_objective_fall_under_diversity(covariance_type: str) -> None:
    draws = np.random.default_rng(0)
    rows = np.concatenate(
        [draws.normal(size=(60, 3)), draws.normal(size=(60, 3)) + 3, 0.3 * draws.normal(size=(60, 3)) - 2]
    )
    rows[draws.random(rows.shape) < 0.2] = np.nan
    rows[3] = np.nan
    settings = {"covariance_type": covariance_type, "diversity": 200.0, "tol": 1e-6, "max_iter": 60, "random_state": 1}
    with warnings.catch_warnings():
        for ignored in (ConvergenceWarning, DeadComponentWarning):  # but not AscentWarning, which is an error
            warnings.simplefilter("ignore", ignored)
        model = GaussianMixture(6, acceleration="anderson", **settings).fit(rows)
        objective = model.objective_
        assert model.set_params(warm_start=True, acceleration=None).fit(rows).objective_ >= objective - 1e-6


def test_the_cheap_test_of_the_variance_floor_gives_the_same_as_eigenvalues() -> None:
    draws = np.random.default_rng(0)
    roots = draws.normal(size=(20, 4, 4))
    for scale in (1e-3, 1.0, 30.0):
        matrices = scale * roots @ roots.transpose(0, 2, 1)
        floor = np.array([0.1, 0.2, 0.3, 0.4])
        units = np.sqrt(floor[:, None] * floor)
        values, vectors = np.linalg.eigh(matrices / units)
        wanted = (vectors * np.maximum(values, 1.0)[:, None]) @ vectors.transpose(0, 2, 1) * units
        np.testing.assert_allclose(components.raise_eigenvalues(matrices, floor), wanted, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize(("cls", "settings", "rows"), STREAMS)
def test_a_small_batch_after_a_fit_changes_little(cls: type, settings: dict[str, object], rows: np.ndarray) -> None:
    model = cls(2, random_state=0, **settings).fit(rows)
    before = model.score(rows)
    after = model.partial_fit(rows[:3]).score(rows)
    assert before - 0.15 < after < before + 0.05
    for begin in range(0, len(rows), 40):
        model.partial_fit(rows[begin : begin + 40])
    assert model.score(rows) == pytest.approx(before, abs=0.15)


@pytest.mark.parametrize(("cls", "settings", "rows"), STREAMS)
def test_what_a_stream_expects_after_a_fit_gives_the_fitted_parameters_back(
    cls: type, settings: dict[str, object], rows: np.ndarray
) -> None:
    model = cls(
        2, random_state=0, **settings, **({} if cls in (GaussianMixture, FactorAnalyzerMixture) else {"smoothing": 0.0})
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(rows)
    problem, params = model._model()
    stats = problem.family.expected(params.components, np.array([30.0, 70.0]))
    again = problem.family.maximize(stats, params.components)
    for name, value in vars(again).items():
        if isinstance(value, np.ndarray):
            np.testing.assert_allclose(value, getattr(params.components, name), rtol=1e-6, atol=1e-9)


def test_a_stream_of_incomplete_rows_goes_on_from_a_fit_on_complete_ones() -> None:
    holes = X.copy()
    holes[::7, 0] = np.nan
    model = FactorAnalyzerMixture(2, 1, random_state=0).fit(X)
    assert model.partial_fit(holes).score(X) == pytest.approx(
        FactorAnalyzerMixture(2, 1, random_state=0).fit(X).score(X), abs=0.05
    )


def test_a_fit_without_iterations_ends_a_stream() -> None:
    for cls in (GaussianMixture, FactorAnalyzerMixture):
        model = cls(2, random_state=0).partial_fit(X[:80]).set_params(max_iter=0).fit(X)
        assert not hasattr(model, "_stream")
        model.partial_fit(X)


@pytest.mark.parametrize("cls", [GaussianMixture, BernoulliMixture, FactorAnalyzerMixture])
@pytest.mark.parametrize("k", [1, 3])
def test_another_number_of_components_needs_another_fit(cls: type, k: int) -> None:
    model = cls(2, random_state=0).fit(X).set_params(n_components=k, warm_start=True)
    for method in ("predict", "predict_proba", "score_samples", "fit", "partial_fit"):
        with pytest.raises(ValueError, match="n_components must be that of the last fit"):
            getattr(model, method)(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        assert model.set_params(warm_start=False).fit(X).predict_proba(X).shape == (160, k)


@pytest.mark.parametrize("covariance_type", ["full", "tied", "diag", "spherical"])
@pytest.mark.parametrize("scale", [1e-13, 1e13])
def test_the_unit_of_the_weights_does_not_matter_without_priors(covariance_type: str, scale: float) -> None:
    settings = {"covariance_type": covariance_type, "random_state": 0, "tol": 1e-5, "max_iter": 500}
    plain = GaussianMixture(3, **settings).fit(X)
    weighted = GaussianMixture(3, **settings).fit(X, sample_weight=np.full(len(X), scale))
    np.testing.assert_allclose(weighted.means_, plain.means_, atol=1e-6)
    np.testing.assert_allclose(weighted.lower_bound_, plain.lower_bound_, rtol=1e-9)


def test_the_unit_of_the_weights_does_not_matter_to_factor_analysers() -> None:
    plain = FactorAnalyzerMixture(2, 1, random_state=0).fit(X)
    weighted = FactorAnalyzerMixture(2, 1, random_state=0).fit(X, sample_weight=np.full(len(X), 1e-13))
    np.testing.assert_allclose(weighted.score_samples(X), plain.score_samples(X), atol=1e-6)


def test_weights_that_would_overflow_are_refused() -> None:
    with pytest.raises(ValueError, match="sample_weight must not exceed"):
        GaussianMixture(2).fit(X, sample_weight=np.full(len(X), 1e300))


def test_the_default_location_of_the_prior_is_the_weighted_mean_of_what_is_observed() -> None:
    holes = X.copy()
    holes[::5, 1] = np.nan
    weight = np.arange(len(X)) % 4
    settings = {
        "mean_precision_prior": 20.0,
        "means_init": X[[0, 100]],
        "precisions_init": np.tile(np.eye(3), (2, 1, 1)),
    }
    weighted = GaussianMixture(2, **settings).fit(holes, sample_weight=weight)
    repeated = GaussianMixture(2, **settings).fit(np.repeat(holes, weight, axis=0))
    np.testing.assert_allclose(weighted.mean_prior_, np.nanmean(np.repeat(holes, weight, axis=0), axis=0))
    np.testing.assert_allclose(weighted.means_, repeated.means_, atol=1e-8)


def test_the_other_solvers_leave_nothing_behind() -> None:
    model = GaussianMixture(2, inference="riemannian", random_state=0).fit(X)
    assert model.n_evaluations_ > 0
    assert not hasattr(model.set_params(inference="em").fit(X), "n_evaluations_")


def test_equal_rows_have_no_spread_whatever_rounding_says() -> None:
    row = np.array([[0.1, 3.3, -7.7]])
    _, floor = center_and_floor(ArraySource(np.repeat(row, 10, axis=0)), 1e-6)
    np.testing.assert_allclose(floor, 1e-6)


def test_labels_and_predictions_agree_far_from_the_origin() -> None:
    model = DynamicMeans(4.0, random_state=0).fit(X)
    far = DynamicMeans(4.0, random_state=0).fit(X + 1e8)
    np.testing.assert_array_equal(far.predict(X + 1e8), model.predict(X))


def test_named_columns_give_no_warning_within_a_fit() -> None:
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = NonparametricFactorAnalyzerMixture(3, 2, random_state=0).fit(frame)
    np.testing.assert_array_equal(model.labels_, model.predict(frame))


def test_an_undefined_density_is_an_error_even_after_an_impossible_row() -> None:
    refuse_impossible(-np.inf, 0, fitting=False)
    model = PoissonMixture(1, random_state=0).fit(COUNTS)
    model.rates_ = np.array([[np.nan, 1.0, 1.0]])
    with pytest.raises(FloatingPointError, match="row 0"):
        model.score_samples(COUNTS)


def test_factor_analysers_are_drawn_with_the_ellipses_of_their_covariances() -> None:
    import matplotlib

    matplotlib.use("agg")
    from pluri.plotting import EllipsesDisplay

    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = FactorAnalyzerMixture(2, 1, random_state=0).fit(frame)
    display = EllipsesDisplay.from_estimator(model, frame, n_std=(1.0,), feature_names=frame.columns)
    widths = [ellipse.width**2 / 4 for ellipse in display.ellipses_]
    np.testing.assert_allclose(widths, np.linalg.eigvalsh(model.covariances()[:, :2, :2])[:, -1])
    matplotlib.pyplot.close("all")


@pytest.mark.parametrize("how", ["k-means++", "random_from_data"])
def test_rows_far_from_the_origin_are_divided_like_rows_about_it(how: str) -> None:
    near = np.round(X, 3)
    divided = [
        divide_rows(near + shift, np.ones(len(X)), 3, how, np.random.default_rng(0)) for shift in (0.0, float(2**30))
    ]
    np.testing.assert_array_equal(divided[0], divided[1])


@pytest.mark.parametrize("scale", [1e200, 1e300])
@pytest.mark.parametrize("cls", [FactorAnalyzerMixture, GaussianMixture])
@pytest.mark.filterwarnings("error")
def test_values_whose_squares_overflow_are_refused_in_a_sentence(cls: type, scale: float) -> None:
    model = cls(2, random_state=0)
    with pytest.raises(ValueError, match=r"X must hold values below 1e\+140 in size, got"):
        model.fit(X * scale)
    assert not hasattr(model, "weights_")
    with pytest.raises(ValueError, match=r"X must hold values below 1e\+140 in size, got"):
        model.fit(X).predict(X * scale)


@pytest.mark.parametrize("cls", [FactorAnalyzerMixture, GaussianMixture, BernoulliMixture, PoissonMixture])
def test_advice_against_degenerate_densities_names_arguments_that_exist(cls: type) -> None:
    rows = X if cls in (FactorAnalyzerMixture, GaussianMixture) else COUNTS
    model = cls(2, random_state=0).fit(rows)
    advice = getattr(model._model()[0].family, "advice", ADVICE)
    named = [word.strip(",.") for word in advice.split() if "_" in word]
    assert set(named) <= set(model.get_params())
    with pytest.raises(FloatingPointError, match=advice):
        refuse_impossible(np.nan, 0, fitting=True, advice=advice)
    assert "prior" not in advice or any("prior" in name and name != "weight_prior" for name in model.get_params())


@pytest.mark.parametrize("inference", ["map", "ml", "bayes"])
@pytest.mark.filterwarnings("error")
def test_naive_bayes_refuses_numbers_whose_squares_overflow(inference: str) -> None:
    y = np.arange(160) >= 80
    model = NaiveBayes("gaussian", inference=inference)
    for scale in (1e200, 1e300):
        with pytest.raises(ValueError, match=r"X must hold values below 1e\+140 in size, got"):
            model.fit(X * scale, y)
        assert not hasattr(model, "classes_")
    model.fit(X, y)
    with pytest.raises(ValueError, match=r"X must hold values below 1e\+140 in size, got"):
        model.predict_proba(X * 1e300)
    assert np.isfinite(NaiveBayes("gaussian", inference=inference).fit(X * 1e120, y).predict_proba(X * 1e120)).all()


def test_naive_bayes_refuses_codes_that_are_no_codes() -> None:
    with pytest.raises(ValueError, match=r"codes of at most 10000000 in categorical columns, got 1e\+300"):
        NaiveBayes("categorical").fit([[0.0], [1e300]], [0, 1])


@pytest.mark.parametrize("covariance_type", ["full", "tied", "diag", "spherical"])
def test_columns_of_other_units_need_no_floor(covariance_type: str) -> None:
    from sklearn.mixture import GaussianMixture as Peer

    scales = np.array([1e-6, 1.0, 1e6])
    settings = {"covariance_type": covariance_type, "reg_covar": 0, "tol": 1e-9, "max_iter": 1000, "random_state": 0}
    ours, peer = (cls(2, **settings).fit(X * scales) for cls in (GaussianMixture, Peer))
    # From the same k-means start both climb the same hill: a likelihood lower than the peer's would be another one.
    assert ours.score(X * scales) > peer.score(X * scales) - 1e-3
    if covariance_type == "full":  # a maximum does not depend on the units
        start = {"means_init": ours.means_ / scales, "weights_init": ours.weights_}
        start["precisions_init"] = ours.precisions_ * scales[:, None] * scales
        plain = GaussianMixture(2, **settings, **start).fit(X)
        np.testing.assert_allclose(plain.score(X), ours.score(X * scales) + np.log(scales).sum(), atol=1e-6)


def test_equal_columns_still_need_a_floor() -> None:
    twice = np.concatenate([X, X[:, :1]], axis=1) * [1e-6, 1.0, 1e6, 1.0]
    with pytest.raises(ValueError, match="increase reg_covar"):
        GaussianMixture(2, reg_covar=0, random_state=0).fit(twice)
