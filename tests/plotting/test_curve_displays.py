"""Histograms, sweeps and convergence: bars and lines are the numbers given."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex

from pluri.plotting import PALETTE, ConvergenceDisplay, DiversitySweepDisplay, StateHistogramDisplay


def heights(bars):
    return [bar.get_height() for bar in bars]


def test_bars_are_counts_of_states_aligned_to_the_truth():
    truth = np.repeat([0, 1, 2], [5, 3, 2])
    display = StateHistogramDisplay.from_predictions(truth, {"HMM": (truth + 1) % 3, "flat": np.zeros(10, dtype=int)})
    assert heights(display.bars_["truth"]) == [5, 3, 2]
    assert heights(display.bars_["HMM"]) == [5, 3, 2]
    assert heights(display.bars_["flat"]) == [10, 0, 0]
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["truth", "HMM", "flat"]
    colors = {to_hex(bars[0].get_facecolor()) for bars in display.bars_.values()}
    assert len(colors) == 3


def test_without_alignment_states_keep_their_numbers():
    truth = np.repeat([0, 1, 2], [5, 3, 2])
    display = StateHistogramDisplay.from_predictions(truth, (truth + 1) % 3, align=False, state_names=["a", "b", "c"])
    assert heights(display.bars_["predicted"]) == [2, 5, 3]
    assert [label.get_text() for label in display.ax_.get_xticklabels()] == ["a", "b", "c"]


def test_sorted_bars_fall_and_lose_their_names():
    display = StateHistogramDisplay.from_predictions([0, 1, 1, 2, 2, 2], [2, 0, 0, 0, 0, 0], sort=True, n_states=4)
    assert heights(display.bars_["truth"]) == [3, 2, 1, 0]
    assert heights(display.bars_["predicted"]) == [5, 1, 0, 0]
    assert [label.get_text() for label in display.ax_.get_xticklabels()] == ["1", "2", "3", "4"]
    assert "rank" in display.ax_.get_xlabel()


def test_shares_sum_to_one_and_the_axis_says_so():
    display = StateHistogramDisplay.from_predictions(None, [0, 0, 1, 3], normalize=True)
    assert heights(display.bars_["predicted"]) == [0.5, 0.25, 0, 0.25]
    assert display.ax_.get_ylabel() == "share of tokens"
    assert display.ax_.get_legend() is None


def test_bars_of_one_state_do_not_overlap():
    display = StateHistogramDisplay({"a": [1, 2], "b": [2, 1], "c": [3]}).plot()
    edges = sorted((bar.get_x(), bar.get_x() + bar.get_width()) for bars in display.bars_.values() for bar in bars)
    assert all(left[1] <= right[0] + 1e-12 for left, right in itertools.pairwise(edges))


def test_the_sweep_shows_means_and_deviations_of_repeats_in_increasing_alpha():
    repeats = np.random.default_rng(0).random((3, 8))
    display = DiversitySweepDisplay.from_results([10, 0, 1], {"k-means": repeats}, log_det=[-2, -9, -5])
    line, _, (bars,) = display.lines_["k-means"].lines
    np.testing.assert_array_equal(line.get_xdata(), [0, 1, 10])
    np.testing.assert_allclose(line.get_ydata(), repeats.mean(axis=1)[[1, 2, 0]])
    segments = np.array(bars.get_segments())
    np.testing.assert_allclose(np.diff(segments[:, :, 1])[:, 0], 2 * repeats.std(axis=1, ddof=1)[[1, 2, 0]])
    np.testing.assert_array_equal(display.log_det_ax_.lines[0].get_ydata(), [-9, -5, -2])
    assert display.log_det_ax_.get_ylabel() == "log det"


def test_the_alpha_axis_includes_zero_and_has_a_tick_at_each_strength():
    display = DiversitySweepDisplay.from_results([0, 1, 10, 100], [0.1, 0.2, 0.3, 0.2], [0.01] * 4, ylabel="score")
    assert display.ax_.get_xscale() == "symlog"
    assert display.ax_.get_xlim()[0] < 0
    display.figure_.canvas.draw()
    assert [label.get_text() for label in display.ax_.get_xticklabels()] == ["0", "1", "10", "100"]
    assert display.ax_.get_ylabel() == "score"
    assert display.log_det_ax_ is None
    assert display.ax_.get_legend() is None
    pixels = display.ax_.transData.transform([(alpha, 0) for alpha in (0, 1, 10, 100)])[:, 0]
    assert np.diff(pixels).min() > 20


def test_a_sweep_without_positive_strengths_stays_linear():
    assert DiversitySweepDisplay.from_results([0], [0.5]).ax_.get_xscale() == "linear"


def model_with_history():
    return SimpleNamespace(
        history_=SimpleNamespace(
            restart=np.array([0, 0, 0, 1, 1, 2, 2, 2]),
            iteration=np.array([1, 2, 3, 1, 2, 1, 2, 3]),
            objective=np.array([-9, -5, -4.5, -8, -3, -7, -6, -5.0]),
            log_likelihood=np.array([-8, -4, -3.5, -7, -2, -6, -5, -4.0]),
        )
    )


def test_each_restart_is_a_line_and_the_best_stands_out():
    display = ConvergenceDisplay.from_estimator(model_with_history())
    assert display.best == 1
    np.testing.assert_array_equal(display.lines_[0].get_ydata(), [-9, -5, -4.5])
    np.testing.assert_array_equal(display.lines_[1].get_xdata(), [1, 2])
    assert display.lines_[1].get_color() == PALETTE[0]
    assert display.lines_[1].get_linewidth() > display.lines_[0].get_linewidth()
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert sorted(labels) == ["best (restart 1)", "other restarts"]
    assert display.ax_.get_ylabel() == "objective"


def test_other_columns_and_the_gap_can_be_drawn():
    display = ConvergenceDisplay.from_estimator(model_with_history(), column="log_likelihood", gap=True)
    assert display.ax_.get_yscale() == "log"
    np.testing.assert_allclose(display.lines_[0].get_ydata(), [6, 2, 1.5])
    assert np.isnan(display.lines_[1].get_ydata()[-1])
    assert display.ax_.get_ylabel() == "best log-likelihood minus log-likelihood"


def test_the_history_of_the_em_loop_is_understood():
    from pluri.inference import History, HistoryRow

    rows = [HistoryRow(0, 1, -9.0, -9.0, 0.1), HistoryRow(0, 2, -7.5, -7.5, 0.1), HistoryRow(1, 1, -8.0, -8.0, 0.1)]
    display = ConvergenceDisplay.from_estimator(SimpleNamespace(history_=History(rows)))
    np.testing.assert_array_equal(display.lines_[0].get_ydata(), [-9, -7.5])
    assert display.best == 0


def test_given_axes_are_used():
    figure, axes = plt.subplots(1, 3)
    displays = [
        StateHistogramDisplay.from_predictions(None, [0, 1], ax=axes[0], title="bars"),
        DiversitySweepDisplay.from_results([0, 1], [1, 2], log_det=[1, 2], ax=axes[1], title="sweep"),
        ConvergenceDisplay.from_estimator(model_with_history(), ax=axes[2], title="fit", legend=False),
    ]
    for display, ax, title in zip(displays, axes, ("bars", "sweep", "fit")):
        assert display.figure_ is figure
        assert display.ax_ is ax
        assert ax.get_title() == title
    assert plt.get_fignums() == [figure.number]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: StateHistogramDisplay({}), "at least one labelling"),
        (lambda: StateHistogramDisplay({"a": [[1]]}), r"counts\['a'\] must have one axis"),
        (lambda: StateHistogramDisplay.from_predictions([0], {"truth": [0]}), "must not name a model 'truth'"),
        (lambda: DiversitySweepDisplay([-1], [0]), "alphas must be finite and not negative"),
        (lambda: DiversitySweepDisplay([], []), "alphas must have one axis"),
        (lambda: DiversitySweepDisplay([1, 2], [0]), "one row for each of the 2 alphas"),
        (lambda: DiversitySweepDisplay([1], [0], [1, 2]), r"errors must have shape \(1,\)"),
        (lambda: DiversitySweepDisplay([1], [[0, 1]], [1]), "errors must be None when scores hold repeats"),
        (lambda: DiversitySweepDisplay([1], {"a": [0]}, {"b": [0]}), "curves that errors name"),
        (lambda: ConvergenceDisplay({}), "at least one restart"),
        (lambda: ConvergenceDisplay({0: []}), r"curves\[0\] must have"),
        (lambda: ConvergenceDisplay.from_estimator(object()), "model must be fitted and have history_"),
        (lambda: ConvergenceDisplay.from_estimator(model_with_history(), column="x"), "column must be a column"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
    assert plt.get_fignums() == []
