"""Pictures of searches show the numbers that they were given."""

import matplotlib
import numpy as np
import pytest

matplotlib.use("agg")
import matplotlib.pyplot as plt
from scipy.stats import loguniform
from sklearn.linear_model import Ridge
from sklearn.model_selection import RandomizedSearchCV

from pluri.decisions import BayesianOptimizer, BayesSearchCV, Categorical, Integer, Real
from pluri.optimize import SimulatedAnnealing
from pluri.plotting import AcquisitionDisplay, AnnealingDisplay, BestSoFarDisplay, LiveBestSoFar, SearchSurfaceDisplay


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def optimizer():
    made = BayesianOptimizer({"rate": Real(1e-3, 1.0, log=True), "kind": Categorical(["a", "b"])}, random_state=0)
    rates, kinds = [1e-3, 1e-2, 0.1, 1.0], "abab"
    made.tell([{"rate": r, "kind": k} for r, k in zip(rates, kinds)], [4.0, 1.0, 2.0, np.nan])
    return made


def test_the_model_along_a_parameter_is_drawn_at_the_best_point(optimizer):
    display = AcquisitionDisplay.from_optimizer(optimizer, n_points=21, title="rates")
    assert display.name == "rate"
    assert display.axes_[0].get_xscale() == "log"
    mean, std = optimizer.predict([{"rate": display.x[10], "kind": "b"}])
    np.testing.assert_allclose(display.mean[10], mean[0])
    np.testing.assert_allclose(display.std[10], std[0])
    assert display.next_x == display.x[np.argmax(display.acquisition)]
    np.testing.assert_allclose(display.axes_[0].get_lines()[0].get_ydata(), display.mean)
    assert len(display.observed) == 3  # the failure has no value
    _, axes = plt.subplots(2, 1)
    assert display.plot(axes=axes).axes_[0] is axes[0]


def test_two_parameters_are_drawn_with_the_others_at_the_best_point():
    space = {"rate": Real(1e-3, 1.0, log=True), "depth": Integer(1, 6), "kind": Categorical(["a", "b"])}
    search = BayesianOptimizer(space, random_state=0, maximize=True)
    search.optimize(lambda p: -((np.log10(p["rate"]) + 2) ** 2) - (p["depth"] - 4) ** 2 - (p["kind"] == "a"), 8)
    display = SearchSurfaceDisplay.from_optimizer(search, n_points=11)
    assert display.names == ("rate", "depth")
    assert [display.axes_[0].get_xscale(), display.axes_[0].get_yscale()] == ["log", "linear"]
    np.testing.assert_array_equal(display.y, np.arange(1, 7))
    point = {**search.best_params_, "rate": display.x[3], "depth": 5}
    np.testing.assert_allclose(display.mean[4, 3], search.predict([point])[0][0])
    np.testing.assert_allclose(display.acquisition[4, 3], search.acquisition_values([point])[0])
    np.testing.assert_allclose(display.axes_[0].collections[0].get_array().reshape(6, 11), display.mean)
    assert display.observed.shape == (8, 2)
    assert (
        display.acquisition.max() == display.acquisition[display.y == display.next_[1], display.x == display.next_[0]]
    )
    turned = SearchSurfaceDisplay.from_optimizer(search, ["depth", "rate"], n_points=11)
    np.testing.assert_allclose(turned.mean, display.mean.T)


@pytest.mark.parametrize("kind", [BayesSearchCV, RandomizedSearchCV])
def test_scores_of_a_cross_validated_search_are_drawn(kind):
    X = np.random.default_rng(0).normal(size=(40, 3))
    space = {"alpha": loguniform(1e-3, 1e3), "tol": loguniform(1e-6, 1e-1)}
    scoring, target = ["r2", "neg_mean_absolute_error"], X @ [1.0, 2.0, 0.0]
    search = kind(Ridge(), space, n_iter=6, cv=3, scoring=scoring, refit="r2", random_state=0).fit(X, target)
    display = SearchSurfaceDisplay.from_optimizer(BayesianOptimizer.from_search(search), n_points=5)
    assert display.best == (search.best_params_["alpha"], search.best_params_["tol"])
    assert display.log == (True, True)
    np.testing.assert_array_equal(display.observed[:, 0], [one["alpha"] for one in search.cv_results_["params"]])
    scores = search.cv_results_["mean_test_r2"]
    assert scores.min() - 3 * np.ptp(scores) < display.mean.min() <= display.mean.max() < 1 + 3 * np.ptp(scores)
    with pytest.raises(ValueError, match="score must be one of neg_mean_absolute_error, r2, got 'auc'"):
        BayesianOptimizer.from_search(search, score="auc")
    other = BayesianOptimizer.from_search(search, score="neg_mean_absolute_error")
    assert other.best_score_ == search.cv_results_["mean_test_neg_mean_absolute_error"].max()


def test_the_best_so_far_is_a_running_minimum_or_maximum():
    values = {"one": [3.0, np.nan, 1.0, 2.0], "random": np.arange(8.0).reshape(2, 4)}
    low = BestSoFarDisplay(values).plot()
    np.testing.assert_array_equal(low.best_["one"], [[3, 3, 1, 1]])
    np.testing.assert_array_equal(low.ax_.get_lines()[1].get_ydata(), [2.0, 2.0, 2.0, 2.0])  # the median of 0 and 4
    high = BestSoFarDisplay(values, maximize=True, optimum=10.0).plot()
    np.testing.assert_array_equal(high.ax_.get_lines()[0].get_ydata(), [7.0, 7.0, 7.0, 7.0])
    assert high.ax_.get_yscale() == "log"


def test_the_live_picture_follows_the_search(optimizer):
    seen = []
    live = LiveBestSoFar()

    def callback(now):
        live(now)
        seen.append(len(live.best_line_.get_xdata()))

    search = BayesianOptimizer({"x": Real(-1, 1)}, random_state=0, maximize=True)
    search.optimize(lambda params: -(params["x"] ** 2), 6, callback=callback)
    assert seen == [1, 2, 3, 4, 5, 6]
    values = [one.value for one in search.history_]
    np.testing.assert_array_equal(live.best_line_.get_ydata(), np.maximum.accumulate(values))
    np.testing.assert_array_equal(live.points_.get_ydata(), values)
    live(optimizer)
    assert live.failures_.get_xdata().tolist() == [4]


def test_energy_and_temperature_are_those_of_the_trace():
    result = SimulatedAnnealing(max_iter=50, schedule="linear", random_state=0).minimize(lambda x: float(x @ x), [2.0])
    display = AnnealingDisplay.from_result(result)
    np.testing.assert_array_equal(display.ax_.get_lines()[0].get_ydata(), result.trace["energy"])
    np.testing.assert_array_equal(display.ax_.get_lines()[1].get_ydata(), result.trace["best"])
    np.testing.assert_array_equal(display.temperature_ax_.get_lines()[0].get_ydata(), result.trace["temperature"])


@pytest.mark.parametrize(
    ("draw", "sentence"),
    [
        (lambda one: AcquisitionDisplay([0, 1], [0], [1], [1]), "must be equally long"),
        (
            lambda one: AcquisitionDisplay.from_optimizer(one, "kind"),
            "name must be a parameter that is a number",
        ),
        (lambda one: AcquisitionDisplay.from_optimizer(one, n_points=1), "n_points must be"),
        (lambda one: AcquisitionDisplay([0], [0], [1], [1]).plot(axes=plt.subplots()[1]), "axes must be a pair"),
        (lambda one: SearchSurfaceDisplay([0, 1], [0], [[1]], [[1]]), r"must have shape \(1, 2\)"),
        (lambda one: SearchSurfaceDisplay([1, 0], [0], [[1, 1]], [[1, 1]]), "x must be rising values"),
        (
            lambda one: SearchSurfaceDisplay.from_optimizer(one),
            "names must be two parameters that are numbers, of",
        ),
        (lambda one: SearchSurfaceDisplay.from_optimizer(one, "rate"), "names must be two parameters"),
        (lambda one: BayesianOptimizer.from_search(Ridge()), "search must be a fitted search"),
        (lambda one: BayesianOptimizer.from_search(Ridge(), maximize=True), "maximize must not be given"),
        (lambda one: BestSoFarDisplay({}), "values must be a dict of at least one search"),
        (lambda one: BestSoFarDisplay({"a": []}), r"values\['a'\] must have one or two axes"),
        (lambda one: BestSoFarDisplay({"a": [1.0]}, optimum=2.0), "optimum must be at least as good as every value"),
        (lambda one: BestSoFarDisplay.from_optimizer(BayesianOptimizer({"x": Real(0, 1)})), "must have evaluations"),
        (lambda one: AnnealingDisplay([1.0], [1.0, 2.0], [1.0]), "must be equally long"),
        (lambda one: AnnealingDisplay.from_result(object()), "result must have a trace"),
    ],
)
def test_what_cannot_be_drawn_is_refused(optimizer, draw, sentence):
    with pytest.raises(ValueError, match=sentence):
        draw(optimizer)
