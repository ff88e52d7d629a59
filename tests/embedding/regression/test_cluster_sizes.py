"""The number of clusters that sampling begins with: what is held out stays unseen, and curves get more than planes."""

from dataclasses import replace

import numpy as np
import pytest

from pluri.embedding import SpectralRegression
from pluri.embedding.regression import SpectralRegressionGibbs, fitted
from pluri.embedding.regression.cluster_sizes import LEAST_ROWS, SIZES, held_out_error, held_out_size
from pluri.embedding.regression.starts import number_begun, room
from pluri.inference.mcmc import Trace

pytestmark = [
    pytest.mark.filterwarnings("ignore:the chains have not settled"),
    pytest.mark.filterwarnings("ignore:the number of dimensions is unsure"),
]


def circle(n, seed=0):
    """Coordinates on a circle, and rows of three harmonics of the angle: a closed curve that no plane follows."""
    angle = 2 * np.pi * (np.arange(n) + np.random.default_rng(seed).uniform(-0.2, 0.2, n)) / n
    waves = [f(k * angle) for k in (1, 2, 3) for f in (np.cos, np.sin)]
    return np.sqrt(2) * np.stack(waves[:2], axis=1), np.stack(waves, axis=1)


def kernel_of(x, rows, n_components=20):
    return SpectralRegressionGibbs(x, rows, n_components=n_components, scales=np.ones(x.shape[1]))


def test_the_error_is_a_sum_of_squares_of_predictions_that_never_saw_what_is_held_out():
    """Shifts of the held-out coordinates by s and -s: second differences are those of a square, for any prediction."""
    x, rows = circle(60)
    held_out = np.arange(60) % 4 == 1
    kernel = kernel_of(x, rows)
    shift = np.array([0.3, -0.2])

    def error(sign):
        moved = replace(kernel, coordinates=x + sign * held_out[:, None] * shift)
        return held_out_error(moved, held_out, 12.0, np.random.default_rng(3))

    assert error(1) + error(-1) - 2 * error(0) == pytest.approx(2 * 15 * (shift**2).sum(), rel=1e-9)
    changed = rows.copy()
    changed[np.flatnonzero(held_out)[0]] += 1.0
    assert held_out_error(replace(kernel, rows=changed), held_out, 12.0, np.random.default_rng(3)) != error(0)


def test_a_curve_begins_with_more_clusters_than_a_plane():
    """No plane follows three harmonics: its error is that of higher waves taken for noise. Arcs of a few rows do."""
    x, rows = circle(54)
    kernel = kernel_of(x, rows)
    held_out = np.arange(54) % 4 == 0
    one, many = (held_out_error(kernel, held_out, size, np.random.default_rng(0)) for size in (100.0, 6.0))
    assert many < one / 3
    assert held_out_size(kernel, np.random.default_rng(1)) < 50
    model = SpectralRegression(2, spectral=x, n_warmup=5, n_draws=5, random_state=0).fit(rows)
    assert model.rows_per_cluster_ < 50
    assert len(np.unique(model.labels_)) > 1


def test_few_rows_and_a_single_cluster_leave_nothing_to_choose():
    x, rows = circle(LEAST_ROWS - 1)
    assert held_out_size(kernel_of(x, rows), np.random.default_rng(0)) == SIZES[0]
    x, rows = circle(60)
    assert held_out_size(kernel_of(x, rows, n_components=1), np.random.default_rng(0)) == SIZES[0]


def test_sampling_begins_with_as_many_clusters_as_rows_and_limits_allow():
    assert number_begun(40, 200, 50.0) == 4
    assert number_begun(3, 200, 50.0) == 3
    assert number_begun(40, 20, 50.0) == 1
    assert (room(40, 200, 50.0), room(5, 200, 50.0), room(1, 200, 50.0)) == (8, 5, 1)
    x, rows = circle(60)
    model = SpectralRegression(2, spectral=x, rows_per_cluster=30, n_warmup=2, n_draws=2, random_state=0).fit(rows)
    assert model.rows_per_cluster_ == 30
    assert model.trace_["n_clusters"].max() <= 4
    with pytest.raises(ValueError, match="rows_per_cluster must be"):
        SpectralRegression(2, rows_per_cluster=0).fit(rows)


def test_predictions_average_over_draws_of_different_chains():
    """Fewer draws than chains: they are spread over the chains, and are as many as were asked for."""
    x, rows = circle(60)
    settings = {"spectral": x, "rows_per_cluster": 10, "n_warmup": 3, "n_draws": 4, "random_state": 0}
    three = SpectralRegression(2, n_chains=6, n_predictive=3, **settings).fit(rows)
    assert set(three.draw_index_) == {0, 1, 2}
    six = SpectralRegression(2, n_chains=6, n_predictive=6, **settings).fit(rows)
    every_other = np.isin(six.draw_index_, [0, 2, 4])
    np.testing.assert_array_equal(three.centers_, six.centers_[every_other])


class _Model:
    dimension_, effective_rank_, embedding_ = 2.0, 2.0, np.zeros((30, 5))


def test_chains_of_different_partitions_are_judged_by_their_average():
    """Noise of one deviation about levels that are 1000 apart. Differences below 4.5 do not matter, and means of halves
    of 200 averages never differ by so much (a deviation of 0.06); a drift of 100 does so surely."""
    draws = np.random.default_rng(0).normal(size=(3, 400))
    apart = Trace({}, {"log_density": draws + 1000.0 * np.arange(3)[:, None]})
    model = _Model()
    fitted.judge(model, apart, 10, averaged=True)
    assert model.converged_
    with pytest.warns(UserWarning, match="the chains have not settled"):
        fitted.judge(model, apart, 10)
    drifting = Trace({}, {"log_density": draws + np.linspace(0.0, 100.0, 400)})
    with pytest.warns(UserWarning, match="the chains have not settled"):
        fitted.judge(model, drifting, 10, averaged=True)
    assert not model.converged_
