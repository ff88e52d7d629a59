"""Displays of maps: what is drawn where, held against what it was made of."""

from __future__ import annotations

from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex
from sklearn.decomposition import PCA
from sklearn.manifold import Isomap

from pluri.plotting import CutDisplay, DimensionDisplay, EmbeddingDisplay, ImagesDisplay, state_colors
from pluri.plotting.embedding.places import with_room


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_boxes_with_room_are_those_that_a_look_at_all_pairs_finds(rng):
    places = rng.normal(size=(400, 2))
    order = rng.permutation(400)
    kept = []
    for point in order:
        if all((np.abs(places[point] - places[other]) >= [0.3, 0.2]).any() for other in kept):
            kept.append(point)
    assert with_room(places, 0.3, 0.2, order) == kept
    assert 20 < len(kept) < 380


def test_pictures_of_a_map_are_centred_on_their_points_and_do_not_overlap(rng):
    coordinates = rng.normal(size=(300, 2))
    images = rng.uniform(size=(300, 6, 12))
    display = EmbeddingDisplay(coordinates, images=images).plot(image_size=0.1, random_state=1)
    drawn = display.ax_.images
    assert len(drawn) == len(display.shown_) > 20
    boxes = np.array([picture.get_extent() for picture in drawn])
    np.testing.assert_allclose((boxes[:, [0, 2]] + boxes[:, [1, 3]]) / 2, coordinates[display.shown_])
    side = 0.1 * np.ptp(coordinates, axis=0).max()
    np.testing.assert_allclose(np.diff(boxes)[:, [0, 2]], [[side, side / 2]] * len(boxes))
    for point, picture in zip(display.shown_, drawn):
        np.testing.assert_array_equal(picture.get_array(), images[point])
    for one in range(len(boxes)):
        a, others = boxes[one], np.delete(boxes, one, axis=0)
        apart = (a[0] >= others[:, 1]) | (others[:, 0] >= a[1]) | (a[2] >= others[:, 3]) | (others[:, 2] >= a[3])
        assert apart.all()
    (left, right), (low, high) = display.ax_.get_xlim(), display.ax_.get_ylim()
    assert (boxes >= [left, left, low, low]).all()
    assert (boxes <= [right, right, high, high]).all()


def test_points_have_the_colours_of_their_classes_and_their_pictures_frames(rng):
    coordinates, classes = rng.normal(size=(60, 2)), np.repeat(["x", "y", "z"], 20)
    display = EmbeddingDisplay(coordinates, classes, images=np.zeros((60, 4, 4))).plot()
    dots = max(display.ax_.collections, key=lambda one: len(one.get_offsets()))
    color = dict(zip(["x", "y", "z"], state_colors(3)))
    expected = {tuple(place): color[name].lower() for place, name in zip(coordinates.tolist(), classes)}
    for place, face in zip(dots.get_offsets().tolist(), dots.get_facecolors()):
        assert to_hex(face) == expected[tuple(place)]
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["x", "y", "z"]
    frames = [to_hex(frame.get_edgecolor()) for frame in display.ax_.patches]
    assert frames == [color[classes[point]].lower() for point in display.shown_]


def test_numbers_have_a_scale_and_few_whole_ones_a_legend(rng):
    coordinates = rng.normal(size=(50, 2))
    values = rng.normal(size=50)
    scaled = EmbeddingDisplay(coordinates, values).plot()
    dots = scaled.ax_.collections[0]
    order = {tuple(place): value for place, value in zip(coordinates.tolist(), values)}
    np.testing.assert_allclose(dots.get_array(), [order[tuple(place)] for place in dots.get_offsets().tolist()])
    assert scaled.ax_.get_legend() is None
    assert EmbeddingDisplay(coordinates, np.arange(50) % 4).plot().ax_.get_legend() is not None
    assert EmbeddingDisplay(coordinates, np.arange(50)).plot().ax_.get_legend() is None
    many = EmbeddingDisplay(coordinates, [f"class {number}" for number in range(50)]).plot().ax_.get_legend()
    assert len(many.get_texts()) == 20
    assert many.get_title().get_text() == "30 more, and"


def test_maps_of_fitted_models_of_one_coordinate_and_of_one_point_are_drawn(rng):
    isomap = Isomap(n_neighbors=6).fit(rng.normal(size=(30, 3)))
    display = EmbeddingDisplay.from_estimator(isomap, np.arange(30) % 2)
    np.testing.assert_allclose(display.coordinates, isomap.embedding_)
    line = EmbeddingDisplay(rng.normal(size=(9, 1))).plot()
    np.testing.assert_array_equal(line.coordinates[:, 1], 0)
    assert EmbeddingDisplay([[3.0, 3.0]], images=np.zeros((1, 2, 2, 3))).plot().shown_ == [0]


def test_lines_join_the_main_image_with_the_others_of_an_object():
    images = np.array([[[0, 0], [1, 0], [9, 9]], [[5, 5], [5, 5], [5, 5]], [[2, 2], [2, 3], [2, 6]]], dtype=float)
    shares = np.array([[0.3, 0.69, 0.01], [0.4, 0.3, 0.3], [0.2, 0.3, 0.5]])
    display = ImagesDisplay(images, shares, names=["a", "b", "c"]).plot()
    lines = sorted(line.get_xydata().tolist() for line in display.ax_.lines if len(line.get_xydata()) == 2)
    assert lines == sorted([[[1, 0], [0, 0]], [[2, 6], [2, 2]], [[2, 6], [2, 3]]])  # one image has too little
    np.testing.assert_allclose(display.separation_, [1, 0, 4])
    assert display.named_ == [2, 0]
    assert [text.get_text() for text in display.ax_.texts] == ["c", "c", "c", "a", "a"]
    dots = display.ax_.collections[0]
    np.testing.assert_allclose(dots.get_sizes(), 30 * shares[shares >= 0.05])
    fewer = ImagesDisplay.from_estimator(SimpleNamespace(images_=images, proportions_=shares), n_names=0)
    assert not fewer.ax_.texts


def test_a_cut_is_what_the_model_makes_of_a_straight_way(rng):
    X = rng.normal(size=(40, 12))
    pca = PCA(3).fit(X)
    model = SimpleNamespace(embedding_=pca.transform(X), inverse_transform=pca.inverse_transform)
    display = CutDisplay.from_estimator(model, 4, 7, n_steps=5, picture_shape=(3, 4))
    begin, end = model.embedding_[[4, 7]]
    for step, picture in enumerate(display.ax_.images):
        row = pca.inverse_transform([begin + step / 4 * (end - begin)])
        np.testing.assert_allclose(picture.get_array(), row.reshape(3, 4), atol=1e-12)
    assert [label.get_text() for label in display.ax_.get_xticklabels()] == ["0", "0.25", "0.5", "0.75", "1"]
    lines = CutDisplay.from_estimator(pca, begin, end).ax_.lines
    assert len(lines) == 9
    np.testing.assert_allclose(lines[8].get_ydata(), pca.inverse_transform([end])[0])


def test_coloured_pictures_of_a_cut_are_scaled_together(rng):
    rows = rng.normal(size=(4, 12))
    display = CutDisplay(rows, picture_shape=(2, 2, 3)).plot(title="Cut")
    shown = np.array([picture.get_array() for picture in display.ax_.images])
    np.testing.assert_allclose(shown.reshape(4, 12), (rows - rows.min()) / np.ptp(rows))


def test_dimensions_are_drawn_with_their_intervals_and_do_not_hide_each_other():
    noise = [0.0, 0.001, 0.01, 0.1]
    models = {
        name: [SimpleNamespace(dimension_=d + shift, dimension_interval_=(d - 0.5, d + 0.5)) for d in (2, 2, 3, 5)]
        for name, shift in (("one", 0.0), ("two", 0.1))
    }
    display = DimensionDisplay.from_estimators(noise, models, truth=2)
    one, two = display.lines_.values()
    np.testing.assert_allclose(two.get_ydata(), [2.1, 2.1, 3.1, 5.1])
    assert (two.get_xdata() > one.get_xdata()).all()
    assert [label.get_text() for label in display.ax_.get_xticklabels()] == ["0", "0.001", "0.01", "0.1"]
    np.testing.assert_allclose(np.diff(one.get_xdata()), 1)  # decades, and no noise one step before
    ends = np.array(display.ax_.collections[0].get_segments())
    np.testing.assert_allclose(ends[:, :, 1], [[1.5, 2.5], [1.5, 2.5], [2.5, 3.5], [4.5, 5.5]])
    assert display.ax_.lines[0].get_ydata()[0] == 2
    plain = DimensionDisplay([0.1, 0.2], {"a": [1, 2]}).plot()
    np.testing.assert_allclose(plain.lines_["a"].get_xdata(), [0.1, 0.2])


def test_given_axes_are_used_and_no_other_figure_is_made(rng):
    figure, axes = plt.subplots(2, 2)
    displays = [
        EmbeddingDisplay(rng.normal(size=(30, 2)), images=np.zeros((30, 4, 4))).plot(ax=axes[0, 0]),
        ImagesDisplay(rng.normal(size=(10, 2, 2))).plot(ax=axes[0, 1]),
        CutDisplay(rng.normal(size=(5, 6)), picture_shape=(2, 3)).plot(ax=axes[1, 0]),
        DimensionDisplay([0, 1], {"a": [1, 2]}).plot(ax=axes[1, 1]),
    ]
    for display, ax in zip(displays, axes.flat):
        assert display.ax_ is ax
        assert display.figure_ is figure
    assert plt.get_fignums() == [figure.number]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: EmbeddingDisplay(np.zeros((0, 2))), "at least one point, got none"),
        (lambda: EmbeddingDisplay([[np.nan, 0]]), "coordinates must be finite"),
        (lambda: EmbeddingDisplay(np.zeros((3, 2)), [1, 2]), "y must have one value for each of 3 points"),
        (lambda: EmbeddingDisplay(np.zeros((3, 2)), images=np.zeros((2, 4, 4))), r"images must have shape \(3, height"),
        (lambda: EmbeddingDisplay(np.zeros((3, 2))).plot(image_size=0), "image_size must be above 0"),
        (lambda: EmbeddingDisplay.from_estimator(PCA()), "model must be fitted and have embedding_, got PCA"),
        (
            lambda: ImagesDisplay(np.zeros((3, 2))),
            r"images must have shape \(n_objects, n_images, n_axes\), got \(3, 2\)",
        ),
        (lambda: ImagesDisplay(np.zeros((3, 2, 1))), "in two dimensions"),
        (lambda: ImagesDisplay(np.zeros((3, 2, 2)), names=["a"]), "names must have one name for each of 3 objects"),
        (lambda: ImagesDisplay(np.zeros((3, 2, 2)), np.ones((3, 3))), "proportions must be non-negative"),
        (lambda: ImagesDisplay(np.zeros((3, 2, 2))).plot(n_names=-1), "n_names must be at least 0"),
        (lambda: CutDisplay(np.zeros(4)), r"rows must be finite and of shape \(n_steps, n_features\)"),
        (lambda: CutDisplay(np.zeros((2, 4)), picture_shape=(3, 2)), "of 4 values, got"),
        (lambda: CutDisplay.from_estimator(Isomap(), 0, 1), "model must have inverse_transform, got Isomap"),
        (lambda: CutDisplay.from_estimator(PCA(), 0, 1), "begin must be coordinates for PCA, which has no embedding_"),
        (lambda: CutDisplay.from_estimator(PCA(), [0.0], [1.0, 2.0]), "as many coordinates, got 1 and 2"),
        (lambda: CutDisplay.from_estimator(PCA(), [0.0], [1.0], n_steps=1), "n_steps"),
        (lambda: DimensionDisplay([1, 0], {"a": [1, 2]}), "noise must be levels that are not negative and increase"),
        (lambda: DimensionDisplay([0, 1], {}), "at least one method"),
        (lambda: DimensionDisplay([0, 1], {"a": [1]}), "one for each of 2 levels"),
        (lambda: DimensionDisplay([0], {"a": [1]}, {"b": [[1, 2]]}), r"intervals\['b'\] must be two ends"),
        (lambda: DimensionDisplay.from_estimators([0], {"a": [PCA()]}), r"models\['a'\] must be fitted"),
    ],
)
def test_what_cannot_be_drawn_is_said(make, message):
    with pytest.raises(ValueError, match=message):
        make()
