"""Density estimation by flows: scikit-learn's contract, known densities, and awkward data."""

import sys

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from pluri import on_interrupt
from pluri.processes.flow_density import FlowDensity

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

QUICK = {"max_iter": 10, "n_layers": 2, "hidden": 4, "n_bins": 3}


@parametrize_with_checks(
    [
        FlowDensity(max_iter=3, n_layers=2, hidden=4),
        FlowDensity("coupling", **QUICK),
        FlowDensity("mixed", max_iter=10),
    ]
)
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


def banana(n_samples, random_state):
    """Rows with their exact log density."""
    rng = np.random.default_rng(random_state)
    noise = rng.normal(size=(n_samples, 2))
    X = np.column_stack([3.0 * noise[:, 0], noise[:, 0] ** 2 + 0.3 * noise[:, 1]])
    return X, -0.5 * (noise**2).sum(axis=1) - np.log(2 * np.pi) - np.log(0.9)


@pytest.fixture(scope="module")
def fitted():
    return FlowDensity(n_layers=2, hidden=16, max_iter=150, random_state=0).fit(banana(1500, 0)[0])


def test_density_comes_close_to_the_true_one(fitted):
    # Over ten seeds the loss is .045 +- .021 and the median error .108 +- .025: bounds of six standard deviations. A
    # normal distribution loses 0.66.
    X, log_density = banana(4000, 1)
    assert 0 < log_density.mean() - fitted.score(X) < 0.17
    assert np.median(np.abs(fitted.score_samples(X) - log_density)) < 0.26


def test_density_integrates_to_one(fitted):
    x, y = np.linspace(-18, 18, 401), np.linspace(-4, 18, 401)
    grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    assert np.exp(fitted.score_samples(grid)).sum() * (x[1] - x[0]) * (y[1] - y[0]) == pytest.approx(1.0, abs=2e-3)


def test_transform_goes_to_normal_noise_and_back(fitted):
    X, _ = banana(3000, 2)
    Z = fitted.transform(X)
    np.testing.assert_allclose(fitted.inverse_transform(Z), X, atol=1e-8)
    np.testing.assert_allclose(Z.mean(axis=0), 0.0, atol=0.15)
    np.testing.assert_allclose(np.cov(Z.T), np.eye(2), atol=0.2)


def test_samples_look_like_the_data(fitted):
    X, _ = banana(20_000, 3)
    draws = fitted.sample(20_000, random_state=0)
    np.testing.assert_allclose(draws.mean(axis=0), X.mean(axis=0), atol=0.3)
    np.testing.assert_allclose(draws.std(axis=0), X.std(axis=0), rtol=0.12)
    np.testing.assert_array_equal(fitted.sample(3, random_state=1), fitted.sample(3, random_state=1))


def test_density_changes_with_the_units_of_the_data():
    X, _ = banana(300, 0)
    model = FlowDensity(random_state=0, **QUICK)
    plain = model.fit(X).score_samples(X)
    other = X * [1000.0, 0.01] + [5.0, -7.0]
    np.testing.assert_allclose(model.fit(other).score_samples(other), plain - np.log(10.0), atol=1e-6)


def test_a_column_of_two_peaks():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(-3, 0.5, 600), rng.normal(2, 1.0, 600)])[:, None]
    model = FlowDensity(n_layers=2, max_iter=200, random_state=0).fit(X)
    left, right = np.exp(-0.5 * ((X + 3) / 0.5) ** 2) / 0.5, np.exp(-0.5 * (X - 2) ** 2)
    truth = np.log(0.5 * (left + right) / np.sqrt(2 * np.pi)).mean()
    assert model.score(X) == pytest.approx(truth, abs=0.06)


def test_weights_are_counts():
    X, _ = banana(40, 0)
    counts = np.random.default_rng(0).integers(0, 4, size=40)
    settings = QUICK | {"random_state": 0}
    weighted = FlowDensity(**settings).fit(X, sample_weight=counts)
    repeated = FlowDensity(validation_fraction=0, **settings).fit(np.repeat(X, counts, axis=0))
    np.testing.assert_allclose(weighted.score_samples(X), repeated.score_samples(X), atol=1e-6)


def test_early_stopping_keeps_the_best_state():
    X, _ = banana(200, 0)
    model = FlowDensity(n_iter_no_change=5, learning_rate=0.02, random_state=0).fit(X)
    assert model.converged_
    assert model.n_iter_ == len(model.loss_) == len(model.validation_loss_) == len(model.elbo_) < 500
    assert np.argmin(model.validation_loss_) < model.n_iter_ - 1


def test_small_and_large_data_fit():
    for X in (np.array([[0.0], [1.0]]), 1e200 * banana(60, 0)[0], 1e-200 * banana(60, 0)[0]):
        model = FlowDensity(random_state=0, **QUICK).fit(X)
        assert np.isfinite(model.score_samples(X)).all()
    model = FlowDensity(random_state=0, **QUICK).fit(banana(60, 0)[0])
    with pytest.warns(UserWarning, match="far outside the range of training"):
        far = model.score_samples([[1e6, -1e6]])
    assert np.isfinite(far).all()


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.array([[1.0, np.nan], [0.0, 1.0]]), "NaN"),
        (np.array([[1.0, np.inf], [0.0, 1.0]]), "infinity"),
        (np.array([[1.0, 2.0], [0.0, 2.0]]), "X must vary in every column, got 2 in all samples of column 1"),
        (np.ones((1, 2)), "minimum of 2 is required"),
        (np.ones((0, 2)), "0 sample"),
    ],
)
def test_bad_data_are_refused(X, message):
    with pytest.raises(ValueError, match=message):
        FlowDensity().fit(X)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"flow": "round"}, "flow must be one of"),
        ({"flow": "planar", "backend": "jax"}, "with backend='jax', got 'planar'"),
        ({"flow": "autoregressive", "backend": "numpy"}, "with backend='numpy', got 'autoregressive'"),
        ({"backend": "torch"}, "backend must be"),
        ({"n_layers": 0}, "n_layers must be an integer of at least 1, got 0"),
        ({"hidden": (8, 0)}, "hidden must be an integer of at least 1, got 0"),
        ({"validation_fraction": 1.0}, "validation_fraction must be a number of at least 0 and below 1, got 1.0"),
        ({"learning_rate": 0}, "learning_rate must be a positive number, got 0"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        FlowDensity(**settings).fit(banana(10, 0)[0])


def test_bad_queries_are_refused(fitted):
    with pytest.raises(NotFittedError):
        FlowDensity().sample()
    with pytest.raises(ValueError, match="n_samples must be an integer of at least 1, got 0"):
        fitted.sample(0)
    with pytest.raises(ValueError, match=r"X must have shape \(n_samples, 2\), got \(1, 3\)"):
        fitted.inverse_transform(np.ones((1, 3)))
    with pytest.raises(ValueError, match="sample_weight must be positive for at least 2 samples, got 1"):
        FlowDensity().fit(np.eye(2), sample_weight=[1.0, 0.0])


def test_too_few_passes_are_warned_about():
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        FlowDensity(max_iter=2, n_layers=1).fit(banana(20, 0)[0])


def test_interruption_keeps_the_best_so_far(monkeypatch):
    from pluri.inference.variational import adam

    calls, step = [], adam.adam_step

    def interrupted(*args):
        calls.append(1)
        if len(calls) == 8:
            raise KeyboardInterrupt
        return step(*args)

    monkeypatch.setattr(adam, "adam_step", interrupted)
    X, _ = banana(60, 0)
    with on_interrupt("keep"), pytest.warns(UserWarning, match="interrupted"):
        model = FlowDensity(random_state=0).fit(X)
    assert model.n_iter_ == 7
    assert np.isfinite(model.score(X))


@pytest.mark.slow
@pytest.mark.parametrize("flow", ["spline", "coupling", "autoregressive"])
def test_flows_of_flowjax(flow):
    pytest.importorskip("flowjax")
    X, _ = banana(250, 0)
    model = FlowDensity(flow, 2, hidden=8, n_bins=4, backend="jax", max_iter=40, random_state=0).fit(X)
    assert model.loss_[-1] < model.loss_[0] - 0.1
    np.testing.assert_allclose(model.inverse_transform(model.transform(X)), X, atol=1e-2)
    # The change of variables, written out: the log density is that of the noise, which is what rows are drawn from, and
    # the numerical Jacobian. Single precision and the kinks of a spline spoil the differences at some points.
    step = 2e-3
    rows = [(model.transform(X + step * move) - model.transform(X - step * move)) / (2 * step) for move in np.eye(2)]
    noise = model.transform(X)
    determinants = np.linalg.slogdet(np.stack(rows, axis=1))[1]
    expected = -0.5 * (noise**2).sum(axis=1) - np.log(2 * np.pi) + determinants
    assert np.median(np.abs(model.score_samples(X) - expected)) < 0.005


def test_a_missing_extra_is_a_sentence(monkeypatch):
    from pluri.inference.variational.flows import jax_density

    jax_density._compile.cache_clear()
    monkeypatch.setitem(sys.modules, "flowjax", None)
    with pytest.raises(ImportError, match=r"needs flowjax, which is not installed: pip install \"pluri\[jax\]\""):
        FlowDensity("autoregressive").fit(banana(20, 0)[0])
