"""Displays of the clusters of a dictionary: what is drawn is what was given."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest

from pluri.plotting import LeftOrderedDisplay, SegmentationDisplay, UsageDisplay, state_colors
from pluri.processes import left_ordered_form


class Fitted:
    """What a display asks of a dictionary."""

    cluster_labels_ = np.array([2, 2, 0, 2])
    components_ = np.array([[2.0, 0.0], [0.0, 1.0]])

    def transform(self, X):
        return np.asarray(X, dtype=float)


PLACES = np.array([[0, 0], [0, 8], [8, 0], [8, 8]])


def test_tiles_have_the_colours_of_their_clusters_over_the_pixels_of_their_patches():
    display = SegmentationDisplay.from_estimator(Fitted(), PLACES, np.zeros((16, 16)), opacity=0.5)
    assert display.clusters.tolist() == [2, 0]
    np.testing.assert_allclose(display.shares, [0.75, 0.25])
    np.testing.assert_array_equal(display.grid, [[0, 0], [1, 0]])
    below, tiles = display.ax_.get_images()
    assert tiles.get_extent() == [-0.5, 15.5, 15.5, -0.5] == below.get_extent()
    painted = np.asarray(tiles.get_array())
    assert painted.shape == (2, 2, 4)
    np.testing.assert_allclose(painted[1, 0, :3], plt.matplotlib.colors.to_rgb(state_colors(2)[1]))
    np.testing.assert_allclose(painted[..., 3], 0.5)
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["2: 75%", "0: 25%"]


def test_places_without_a_patch_stay_empty_and_places_off_a_grid_are_dots():
    display = SegmentationDisplay([1, 1, 5], PLACES[:3]).plot()
    assert display.grid[1, 1] == -1
    assert np.asarray(display.ax_.get_images()[0].get_array())[1, 1, 3] == 0
    dots = SegmentationDisplay([1, 1, 5, 5], PLACES + np.random.default_rng(0).random((4, 2))).plot()
    assert dots.grid is None
    assert len(dots.ax_.collections[0].get_offsets()) == 4


def test_cells_are_shares_of_the_power_of_the_rows_of_a_cluster():
    X = np.array([[1.0, 0.0], [0.0, 2.0], [0.0, 3.0], [1.0, 2.0]])
    display = UsageDisplay.from_estimator(Fitted(), X)
    assert display.clusters == ["2", "0"]
    # Cluster 2 has squared codes 1, 0, 1 of an atom of squared length 4, and 0, 4, 4 of one of length 1.
    np.testing.assert_allclose(display.usage, [[0.5, 0.5], [0.0, 1.0]])
    np.testing.assert_allclose(display.image_.get_array(), display.usage[:, display.atoms_])


def test_atoms_are_sorted_by_the_cluster_that_uses_them_most_and_the_rest_left_out():
    display = UsageDisplay([[0.1, 0.2, 0.0, 0.9], [0.5, 0.1, 0.0, 0.0]]).plot(n_atoms=2)
    assert display.atoms_.tolist() == [3, 0]
    assert [tick.get_text() for tick in display.ax_.get_xticklabels()] == ["3", "0"]


def test_columns_are_in_left_ordered_form():
    used = (np.random.default_rng(0).random((12, 9)) < 0.3).astype(int)
    used[:, 4] = 0
    display = LeftOrderedDisplay(used).plot()
    np.testing.assert_array_equal(display.image_.get_array(), left_ordered_form(used))
    np.testing.assert_array_equal(used[:, display.atoms_], left_ordered_form(used))
    assert LeftOrderedDisplay(np.zeros((3, 2))).plot().atoms_.size == 0


def test_atoms_that_add_less_than_the_noise_count_as_not_used():
    class Noisy(Fitted):
        noise_variance_ = 0.25

    display = LeftOrderedDisplay.from_estimator(Noisy(), [[0.2, 0.0], [0.0, 0.6], [0.26, -0.6]])
    np.testing.assert_array_equal(display.used, [[0, 0], [0, 1], [1, 1]])
    assert display.atoms_.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LeftOrderedDisplay([[0.5]]), "used must hold zeros and ones"),
        (lambda: LeftOrderedDisplay.from_estimator(Fitted(), [[1.0, 0.0]]), "with noise_variance_"),
        (lambda: SegmentationDisplay([0.5], [[0, 0]]), "labels must be whole numbers"),
        (lambda: SegmentationDisplay([0, 1], [[0, 0]]), r"locations must be finite and of shape \(2, 2\)"),
        (lambda: SegmentationDisplay([0], [[0, 0]], np.zeros(3)), "image must have shape"),
        (lambda: SegmentationDisplay([0], [[0, 0]]).plot(opacity=2), "opacity must lie between 0 and 1"),
        (lambda: SegmentationDisplay.from_estimator(object(), [[0, 0]]), "model must be fitted and have"),
        (lambda: UsageDisplay([1.0]), "usage must be at least 0"),
        (lambda: UsageDisplay([[1.0]], ["a", "b"]), "clusters must have one name"),
        (lambda: UsageDisplay([[1.0]]).plot(n_atoms=0), "n_atoms must be at least 1"),
        (lambda: UsageDisplay.from_estimator(Fitted(), np.zeros((3, 2))), "X must have the 4 rows"),
    ],
)
def test_wrong_input_gets_one_sentence(make, message):
    with pytest.raises(ValueError, match=message):
        make()
