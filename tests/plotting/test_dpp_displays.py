"""Displays of random subsets: what is drawn is what the process says."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy.spatial import cKDTree

from pluri.plotting.subsets.inclusion import InclusionDisplay
from pluri.plotting.subsets.kernel_spectrum import KernelSpectrumDisplay
from pluri.plotting.subsets.subset_pair import SubsetDisplay
from pluri.plotting.subsets.timeline import TimelineDisplay
from pluri.processes.dpp import DPP, KDPP


@pytest.fixture
def plane():
    return np.random.default_rng(0).random((80, 2))


@pytest.fixture
def process(plane):
    return DPP.from_kernel(plane, "rbf", length_scale=0.2, expected_size=10)


def test_the_subset_is_a_draw_and_the_independent_one_is_as_large(plane, process):
    display = SubsetDisplay.from_process(process, plane, random_state=np.random.default_rng(3))
    expected = process.sample(random_state=np.random.default_rng(3))
    np.testing.assert_array_equal(display.subset, expected)
    assert len(set(display.independent)) == len(expected)
    for panel, items, spacing in zip(display.axes_, (display.subset, display.independent), display.spacing_):
        np.testing.assert_allclose(panel.collections[1].get_offsets(), plane[items])
        nearest = cKDTree(plane[items]).query(plane[items], k=2)[0][:, 1]
        assert spacing == pytest.approx(nearest.mean())
        assert panel.get_xlabel().startswith(f"{len(items)} of 80 items")


def test_a_subset_may_stand_alone_be_a_mask_or_be_empty(plane):
    mask = np.zeros(80, dtype=bool)
    mask[[3, 9]] = True
    display = SubsetDisplay(plane, mask).plot()
    assert len(display.axes_) == 1
    assert display.subset.tolist() == [3, 9]
    assert np.isnan(SubsetDisplay(plane, []).plot().spacing_[0])


def test_eigenvalues_and_sizes_are_those_of_the_process(process):
    subsets = process.sample(200, random_state=0)
    display = KernelSpectrumDisplay.from_process(process, subsets=subsets)
    left, right = display.axes_
    shown = left.collections[0].get_offsets()
    eigenvalues = np.sort(np.linalg.eigvalsh(process.L))[::-1]
    np.testing.assert_allclose(shown[:, 1], eigenvalues[: len(shown)], rtol=1e-8)
    np.testing.assert_allclose(left.collections[0].get_array(), shown[:, 1] / (1 + shown[:, 1]))
    np.testing.assert_allclose([bar.get_height() for bar in right.patches], process.size_pmf())
    assert display.expected_size_ == pytest.approx(10)
    assert display.size_deviation_ == pytest.approx(np.sqrt(process.size_variance))
    points = right.containers[1].lines[0]
    counts = np.bincount([len(subset) for subset in subsets])
    np.testing.assert_allclose(points.get_ydata(), counts[counts > 0] / 200)


def test_certain_directions_and_fixed_sizes_can_be_drawn():
    certain = KernelSpectrumDisplay.from_process(DPP(K=np.diag([1.0, 0.5, 0.25])))
    np.testing.assert_allclose(certain.axes_[0].collections[0].get_offsets()[:, 1], [1, 1 / 3])
    assert len(certain.axes_[0].collections[1].get_offsets()) == 1
    assert certain.expected_size_ == pytest.approx(1.75)
    fixed = KernelSpectrumDisplay.from_process(KDPP(np.diag([3.0, 2.0, 1.0]), size=2))
    assert len(fixed.axes_) == 1 or fixed.expected_size_ == pytest.approx(2)


def test_bars_are_the_diagonal_of_the_marginal_kernel(process):
    display = InclusionDisplay.from_process(process.restrict(range(20)), sort=True)
    heights = [bar.get_height() for bar in display.axes_[0].patches]
    np.testing.assert_allclose(heights[:20], np.sort(np.diag(process.K)[:20])[::-1], atol=1e-12)


def test_frequencies_are_counted_and_have_binomial_errors():
    process = DPP(np.diag([1.0, 3.0, 0.25]))
    display = InclusionDisplay.from_process(process, n_draws=50, random_state=np.random.default_rng(1))
    drawn = process.sample(50, random_state=np.random.default_rng(1))
    np.testing.assert_allclose(
        display.frequencies, [np.mean([item in subset for subset in drawn]) for item in range(3)]
    )
    points, _, (bars,) = display.axes_[0].containers[1].lines
    np.testing.assert_allclose(points.get_ydata(), display.frequencies)
    lengths = np.diff(np.array(bars.get_segments())[:, :, 1])[:, 0]
    np.testing.assert_allclose(lengths, 2 * np.sqrt([0.25 / 50, 0.1875 / 50, 0.16 / 50]))


def test_over_the_plane_the_colour_is_the_probability(plane, process):
    display = InclusionDisplay.from_process(process, plane, n_draws=20, random_state=0)
    dots = display.axes_[0].collections[0]
    order = np.argsort(process.inclusion_probabilities(), kind="stable")
    np.testing.assert_allclose(dots.get_offsets(), plane[order])
    np.testing.assert_allclose(dots.get_array(), process.inclusion_probabilities()[order])
    assert display.axes_[1].get_ylabel() == "frequency"
    assert len(InclusionDisplay.from_process(process, plane).axes_) == 1


def test_fixed_and_excluded_items_have_their_own_markers_and_no_part_in_the_colours(plane, process):
    given = process.condition(include=[3, 17], exclude=[5, 6, 7])
    display = InclusionDisplay.from_process(given, plane, n_draws=10, random_state=0)
    marks = {dots.get_label(): dots for dots in display.axes_[0].collections}
    np.testing.assert_allclose(marks["fixed"].get_offsets(), plane[[3, 17]])
    np.testing.assert_allclose(marks["excluded"].get_offsets(), plane[[5, 6, 7]])
    coloured = next(dots for dots in display.axes_[0].collections if dots.get_array() is not None)
    free = given.inclusion_probabilities()[given.free_items]
    np.testing.assert_allclose(np.sort(coloured.get_array()), np.sort(free))
    assert coloured.get_clim()[1] == pytest.approx(free.max())
    assert free.max() < 0.5  # so that a certain item would have used up the scale
    assert display.axes_[1].get_xlim()[1] < 0.9
    bars = InclusionDisplay.from_process(given)
    assert bars.axes_[0].patches[3].get_hatch()
    with pytest.raises(ValueError, match="fixed must hold items from 0 to 1"):
        InclusionDisplay([0.5, 0.5], fixed=[2])


def test_independent_draws_respect_the_condition(plane, process):
    given = process.condition(include=[3, 17], exclude=range(20, 60))
    display = SubsetDisplay.from_process(given, plane, random_state=0)
    for items, panel in zip((display.subset, display.independent), display.axes_):
        assert {3, 17} <= set(items)
        assert not set(items) & set(range(20, 60))
        marks = {dots.get_label(): dots for dots in panel.collections}
        np.testing.assert_allclose(marks["fixed"].get_offsets(), plane[[3, 17]])
        np.testing.assert_allclose(marks["excluded"].get_offsets(), plane[20:60])
    assert len(display.independent) == len(display.subset)


def test_at_a_fixed_size_directions_are_used_as_enumeration_says():
    values = np.array([3.0, 2.0, 0.5, 0.1])
    display = KernelSpectrumDisplay.from_process(KDPP(np.diag(values), size=2))
    products = {pair: values[list(pair)].prod() for pair in itertools.combinations(range(4), 2)}
    expected = [sum(v for pair, v in products.items() if i in pair) / sum(products.values()) for i in range(4)]
    np.testing.assert_allclose(display.use_, expected)
    np.testing.assert_allclose(display.axes_[0].collections[0].get_array(), expected)
    assert not display.axes_[0].lines  # the scale of the kernel means nothing
    rest = KernelSpectrumDisplay.from_process(KDPP(np.diag(values), size=2).condition(include=[0]))
    assert rest.use_.sum() == pytest.approx(1.0)
    assert KernelSpectrumDisplay(np.logspace(200, -200, 50), size=10).use_.sum() == pytest.approx(10.0)
    assert KernelSpectrumDisplay.from_process(DPP(np.diag(values))).axes_[0].lines


def test_names_in_a_history_are_a_list_or_a_mapping_and_steps_must_agree():
    stamps = [SimpleNamespace(ess=1.0) for _ in range(5)]
    chosen = [["a"], ["b"], ["a", "b"], ["a"], ["b"]]
    display = TimelineDisplay.from_history(stamps, chosen, item_names=["first", "second"])
    assert display.item_names == ["first", "second"]
    with pytest.raises(ValueError, match="chosen must have an entry for each of the 5 steps of history, got 2"):
        TimelineDisplay.from_history(stamps, chosen[-2:])
    with pytest.raises(ValueError, match="must not both be given"):
        TimelineDisplay.from_history(stamps, chosen, item_names=["x", "y"], names={"a": "x", "b": "y"})


def test_the_raster_has_a_cell_for_each_chosen_item_and_the_trace_its_marks():
    display = TimelineDisplay([[5, 2], [2], [9, 5]], ess=[9.0, 4.0, 8.0], resampled=[1]).plot(n_particles=10)
    assert display.item_ids == [5, 2, 9]
    cells = display.axes_[0].collections[0].get_array().reshape(3, 3)
    np.testing.assert_array_equal(cells, np.array([[1, 1, 0], [0, 1, 0], [1, 0, 1]]).T)
    trace, marks = display.axes_[1].lines[:2]
    np.testing.assert_array_equal(trace.get_ydata(), [9, 4, 8])
    np.testing.assert_array_equal(marks.get_xdata(), [1])
    assert [label.get_text() for label in display.axes_[0].get_yticklabels()] == ["5", "2", "9"]


def test_a_history_is_drawn_with_its_own_subsets_or_given_ones():
    stamps = [SimpleNamespace(ess=float(n), resampled=n == 3) for n in (5, 4, 3)]
    records = [SimpleNamespace(stamp=stamp, best=("x", number)) for number, stamp in enumerate(stamps)]
    process = SimpleNamespace(history_=records)
    display = TimelineDisplay.from_history(process, names={"x": "always", 0: "a", 1: "b", 2: "c"})
    assert display.item_names == ["always", "a", "b", "c"]
    assert display.raster[:, 0].all()
    np.testing.assert_array_equal(display.resampled, [False, False, True])
    shares = np.array([[0.1, 0.9], [0.2, 0.8], [0.3, 0.7]])
    given = TimelineDisplay.from_history(stamps, shares, times=np.array([0, 2, 3]))
    np.testing.assert_array_equal(given.axes_[0].collections[0].get_array().reshape(2, 3), shares.T)
    with pytest.raises(ValueError, match="chosen must be given"):
        TimelineDisplay.from_history(stamps)


def test_a_run_that_was_never_resampled_leaves_the_layout_whole():
    # Warnings are errors: matplotlib warns when it has to give up the layout.
    figure, axes = plt.subplots(2, 1, figsize=(6, 8), layout="constrained")
    for ax in axes:
        TimelineDisplay(np.eye(30, dtype=bool), ess=np.ones(30), item_names=["a long name"] * 30).plot(ax=ax)
    figure.canvas.draw()
    assert all(label.get_window_extent().x0 >= 0 for label in axes[0].get_yticklabels())


def test_dates_are_days_on_the_axis_and_marks_stand_at_theirs():
    days = np.arange("2001-08-01", "2001-08-11", dtype="datetime64[D]")
    display = TimelineDisplay(np.eye(10, dtype=bool), times=days).plot(marks=["2001-08-04"])
    first, last = display.axes_[0].get_xlim()
    assert last - first == pytest.approx(10)
    assert display.axes_[0].lines[-1].get_xdata()[0] == pytest.approx(first + 3.5)
    assert display.axes_[0].get_xlabel() == ""


def test_given_axes_are_divided_and_no_other_figure_is_made(plane, process):
    figure, axes = plt.subplots(2, 2)
    displays = [
        SubsetDisplay.from_process(process, plane, random_state=0, ax=axes[0, 0]),
        KernelSpectrumDisplay.from_process(process, ax=axes[0, 1]),
        InclusionDisplay.from_process(process, plane, n_draws=5, random_state=0, ax=axes[1, 0]),
        TimelineDisplay(np.eye(3), ess=[1, 2, 3]).plot(ax=axes[1, 1]),
    ]
    for display, ax in zip(displays, axes.flat):
        assert display.figure_ is figure
        assert display.axes_[0] is ax
        assert len(display.axes_) == 2
    free = figure.add_axes((0.1, 0.1, 0.2, 0.2))
    assert SubsetDisplay(plane, [1, 2], [3, 4]).plot(ax=free).axes_[0] is free
    assert plt.get_fignums() == [figure.number]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SubsetDisplay(np.zeros((3, 3)), [0]), r"X must have shape \(n_items, 2\), got \(3, 3\)"),
        (lambda: SubsetDisplay(np.zeros((3, 2)), [3]), "subset must hold items from 0 to 2"),
        (lambda: SubsetDisplay(np.zeros((3, 2)), [0.5]), "subset must be a list of items or a mask"),
        (lambda: KernelSpectrumDisplay([-1.0]), "odds must be non-negative"),
        (lambda: KernelSpectrumDisplay([1.0], [0.5, 0.4]), "sum to 1"),
        (lambda: KernelSpectrumDisplay([1.0], sizes=[1]), "come with size_pmf"),
        (lambda: InclusionDisplay([1.5]), "probabilities must be between 0 and 1"),
        (lambda: InclusionDisplay([0.5], frequencies=[0.1, 0.2]), "one for each item"),
        (lambda: InclusionDisplay([0.5], np.zeros((2, 2))), r"X must have shape \(1, 2\)"),
        (lambda: InclusionDisplay([0.5], frequencies=[0.5], n_draws=0), "n_draws must be at least 1"),
        (lambda: TimelineDisplay([[], []]), "at least one step with an item"),
        (lambda: TimelineDisplay(np.full((2, 2), 2.0)), "chosen must be between 0 and 1"),
        (lambda: TimelineDisplay(np.eye(2), ess=[1.0]), "ess must have an entry for each of the 2 steps"),
        (lambda: TimelineDisplay(np.eye(2), resampled=[2]), "resampled must hold steps from 0 to 1"),
        (lambda: TimelineDisplay(np.eye(2), item_names=["a"]), "a name for each of the 2 items"),
        (lambda: TimelineDisplay.from_history([]), "history must hold at least one step"),
    ],
)
def test_what_cannot_be_drawn_is_said(make, message):
    with pytest.raises(ValueError, match=message):
        make()
