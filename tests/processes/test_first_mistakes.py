"""Small data on a busy machine, images with other levels, words for numbers."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from threadpoolctl import threadpool_info

from pluri.processes import GaussianProcessClassifier, GaussianProcessRegressor, IsingDenoiser, StickBreaking
from pluri.processes.gp_inference.learning import FEW_ROWS, one_thread_if_small


def blas_threads():
    return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}


def test_few_rows_are_factored_on_one_thread_and_many_as_before():
    before = blas_threads()
    with one_thread_if_small(FEW_ROWS + 1):
        assert blas_threads() == before
    with one_thread_if_small(FEW_ROWS):
        assert blas_threads() <= {1}
    assert blas_threads() == before


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("hyper", ["ml2", "nuts"])
def test_learning_from_few_rows_uses_one_thread(hyper, monkeypatch):
    from pluri.processes import gaussian_process_regression as module

    seen = []

    def spied(real):
        def function(*arguments, **settings):
            seen.append(blas_threads())
            return real(*arguments, **settings)

        return function

    for name in ("learn_theta", "sample_posterior"):
        monkeypatch.setattr(module, name, spied(getattr(module, name)))
    X = np.linspace(0, 3, 8)[:, None]
    model = GaussianProcessRegressor(hyper_inference=hyper, n_draws=20, n_warmup=50, n_chains=2, random_state=0)
    model.fit(X, np.sin(X[:, 0]) + 0.1 * np.cos(9 * X[:, 0]))
    assert len(seen) == 1
    assert seen[0] <= {1}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_sampled_classifier_does_not_print_an_evidence_that_it_has_not():
    X = np.linspace(-2, 2, 12)[:, None]
    settings = {"hyper_inference": "fixed", "n_draws": 400, "n_warmup": 50, "n_chains": 2, "random_state": 0}
    model = GaussianProcessClassifier(inference="polya_gamma_gibbs", **settings).fit(X, X[:, 0] > 0)
    assert "nan" not in model.summary()
    assert "log evidence" in GaussianProcessClassifier(hyper_inference="fixed").fit(X, X[:, 0] > 0).summary()


@pytest.mark.filterwarnings("ignore::pluri.inference.variational.ApproximationWarning")  # true of the wrong levels
@pytest.mark.parametrize("top", [1, 255])
def test_an_image_from_zero_on_is_not_taken_for_one_around_zero(top):
    image = np.zeros((8, 8), dtype=np.uint8)
    image[2:6, 2:6] = top
    with pytest.warns(UserWarning, match=rf"levels=\(0, {top}\)"):
        IsingDenoiser(sigma=0.5).fit(image)
    denoised = IsingDenoiser(sigma=top / 4, levels=(0, top)).fit_transform(image)
    np.testing.assert_array_equal(denoised, image)


def test_a_word_is_no_concentration():
    with pytest.raises(ValueError, match="alpha must be a positive number, got 'a'"):
        StickBreaking("a")


def houses(n):
    """Prices in euros of houses described in square metres, rooms and kilometres."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(30, 200, n), rng.integers(1, 7, n), rng.exponential(5, n)])
    return X, X @ [2000.0, 10000.0, -8000.0] + rng.normal(0, 15000, n)


@pytest.mark.parametrize("unit", [1.0, 1e-6])
def test_the_default_process_learns_whatever_the_units(unit):
    X, y = houses(150)
    model = GaussianProcessRegressor(random_state=0).fit(X[:100], y[:100] * unit)
    mean, std = model.predict(X[100:], return_std=True, include_noise=True)
    assert np.mean((mean - y[100:] * unit) ** 2) < 0.1 * np.var(y[100:] * unit)
    assert np.mean(np.abs(mean - y[100:] * unit) < 1.645 * std) > 0.7  # of 50: fewer than once in 10,000 if right


def test_inputs_in_small_or_large_units_are_learned_from():
    t = np.linspace(0, 10, 60)[:, None]
    y = np.sin(t[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=60)
    for unit in (1e-7, 1.0, 1e9):
        model = GaussianProcessRegressor().fit(t * unit, y)
        assert np.abs(model.predict(t * unit) - np.sin(t[:, 0])).max() < 0.2


def test_a_fit_that_misses_every_y_by_the_same_says_so():
    X, y = houses(60)
    with pytest.warns(ConvergenceWarning, match="normalize_y=True"):
        missed = GaussianProcessRegressor(ConstantKernel() * RBF([50.0, 3.0, 5.0]), random_state=0).fit(X, y)
    assert missed.score(X, y) < 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = GaussianProcessRegressor(ConstantKernel() * RBF([50.0, 3.0, 5.0]), normalize_y=True).fit(X, y)
    assert found.score(X, y) > 0.9


def test_noise_around_zero_is_not_an_offset():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    for scale in (1e-6, 1.0, 1e6):
        GaussianProcessRegressor().fit(X, scale * rng.normal(size=40))  # warnings are errors here


def test_classes_are_learned_whatever_the_units():
    rng = np.random.default_rng(0)
    z = np.repeat([0, 1, 2], 30)
    X = rng.normal(size=(90, 3)) + 4.0 * np.eye(3)[z]
    for unit in (1e-7, 1.0, 1e7):
        assert GaussianProcessClassifier().fit(X * unit, z).score(X * unit, z) > 0.9
