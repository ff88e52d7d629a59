"""Pictures of mixtures: what is drawn is what was given."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from pluri.plotting import (
    CoClusteringDisplay,
    ComponentCountDisplay,
    EllipsesDisplay,
    LoadingsDisplay,
    ResponsibilityDisplay,
)


def covariance_of(ellipse):
    """The matrix whose ellipse of one standard deviation this is."""
    angle = np.radians(ellipse.angle)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return turn @ np.diag([(ellipse.width / 2) ** 2, (ellipse.height / 2) ** 2]) @ turn.T


def spd(rng, k, d):
    factors = rng.normal(size=(k, d, d))
    return factors @ factors.transpose(0, 2, 1) + np.eye(d)


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
@pytest.mark.parametrize("k", [2, 3])
def test_an_ellipse_is_that_of_the_covariance_in_the_chosen_features(kind, k):
    rng = np.random.default_rng(0)
    d, features = 3, (2, 0)
    full = spd(rng, k, d)
    given = {"full": full, "tied": full[0], "diag": rng.uniform(1, 3, (k, d)), "spherical": rng.uniform(1, 3, k)}[kind]
    matrices = {
        "full": full,
        "tied": np.tile(full[0], (k, 1, 1)),
        "diag": np.stack([np.diag(row) for row in np.broadcast_to(np.reshape(given, (k, -1))[:, :d], (k, d))])
        if kind == "diag"
        else full,
        "spherical": np.reshape(given, (-1, 1, 1)) * np.eye(d) if kind == "spherical" else full,
    }[kind]
    model = SimpleNamespace(
        weights_=np.full(k, 1 / k), means_=rng.normal(size=(k, d)), covariances_=given, covariance_type=kind
    )
    display = EllipsesDisplay.from_estimator(model, features=features, n_std=(1.0,))
    for ellipse, mean, matrix in zip(display.ellipses_, model.means_, matrices):
        np.testing.assert_allclose(ellipse.center, mean[list(features)])
        np.testing.assert_allclose(covariance_of(ellipse), matrix[np.ix_(features, features)], atol=1e-9)
    assert display.ax_.get_xlabel() == "feature 2"


def test_light_components_can_be_left_out_and_points_take_the_colour_of_theirs():
    X = np.array([[0.0, 0.0], [5.0, 5.0]])
    model = SimpleNamespace(
        weights_=np.array([0.99, 0.01]), means_=X, covariances_=np.ones(2), predict=lambda rows: np.array([0, 1])
    )
    display = EllipsesDisplay.from_estimator(model, X, least_weight=0.05)
    assert len(display.ellipses_) == 2
    colors = display.ax_.collections[0].get_facecolors()
    assert not np.array_equal(colors[0], colors[1])


def test_rows_are_sorted_by_component_and_certainty():
    probabilities = np.array([[0.3, 0.7], [0.6, 0.4], [0.05, 0.95], [1.0, 0.0]])
    display = ResponsibilityDisplay(probabilities).plot()
    assert display.order_.tolist() == [3, 1, 2, 0]
    np.testing.assert_array_equal(display.image_.get_array(), probabilities[display.order_])
    assert display.ax_.get_title() == "50% of the rows uncertain"


def test_the_co_clustering_matrix_is_framed_by_the_clusters():
    labels = np.array([1, 0, 1, 0, 1])
    matrix = np.where(labels[:, None] == labels, 0.9, 0.1)
    np.fill_diagonal(matrix, 1.0)
    display = CoClusteringDisplay.from_estimator(SimpleNamespace(similarity_matrix_=matrix, labels_=labels))
    assert labels[display.order_].tolist() == [1, 1, 1, 0, 0]
    assert [patch.get_width() for patch in display.ax_.patches] == [3.0, 2.0]
    without = CoClusteringDisplay(matrix).plot()
    assert len(set(labels[without.order_][:2])) == 1
    assert not without.ax_.patches


def test_bars_are_the_shares_of_the_draws_and_the_prior_is_drawn_beside():
    display = ComponentCountDisplay([2, 2, 4], prior=[0.1, 0.2, 0.3, 0.4]).plot()
    assert [bar.get_height() for bar in display.bars_] == pytest.approx([2 / 3, 0.0, 1 / 3])
    np.testing.assert_allclose(display.ax_.lines[0].get_ydata(), [0.1, 0.2, 0.3, 0.4])


def test_squares_have_the_area_and_colour_of_the_loading():
    display = LoadingsDisplay.from_estimator(SimpleNamespace(components_=np.array([[2.0, -0.5]]))).plot()
    big, small = display.axes_[0].patches
    assert big.get_width() ** 2 / small.get_width() ** 2 == pytest.approx(4.0)
    assert big.get_facecolor()[0] == 1.0
    assert small.get_facecolor()[0] == 0.0


def test_loadings_of_pictures_are_drawn_as_pictures():
    loadings = np.arange(24.0).reshape(2, 6, 2)
    display = LoadingsDisplay.from_estimator(SimpleNamespace(loadings_=loadings), image_shape=(2, 3))
    assert display.axes_.shape == (2, 2)
    np.testing.assert_array_equal(display.axes_[1, 0].images[0].get_array(), loadings[1, :, 0].reshape(2, 3))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: EllipsesDisplay([1.0], [[0, 0]], np.ones((3, 3, 3))), "covariances must have one of the shapes"),
        (lambda: EllipsesDisplay([1.0], [[0, 0]], [1.0], features=(0, 5)), "features must be two columns"),
        (lambda: EllipsesDisplay([1.0, 0.0], [[0, 0]], [1.0]), "weights must have one entry"),
        (lambda: EllipsesDisplay.from_estimator(object()), "must be fitted and have weights_"),
        (lambda: ResponsibilityDisplay([[0.5, 0.1]]), "rows that sum to one"),
        (lambda: CoClusteringDisplay([[1.0, 0.2]]), "square and symmetric"),
        (lambda: CoClusteringDisplay([[2.0]]), "probabilities"),
        (lambda: ComponentCountDisplay([]), "whole numbers"),
        (lambda: LoadingsDisplay([1.0]), "loadings must be finite"),
        (lambda: LoadingsDisplay([[1.0, 2.0]], image_shape=(2, 2)), "image_shape must have 2 pixels"),
    ],
)
def test_wrong_input_gets_a_sentence(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_columns_may_be_named_when_the_model_knows_their_names():
    model = SimpleNamespace(
        weights_=np.ones(1),
        means_=np.zeros((1, 3)),
        covariances_=np.ones(1),
        feature_names_in_=np.array(["a", "b", "c"]),
    )
    display = EllipsesDisplay.from_estimator(model, features=("c", "a"))
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("c", "a")
    with pytest.raises(ValueError, match="features must be columns of the fitted table"):
        EllipsesDisplay.from_estimator(model, features=("c", "z"))


def test_models_that_compute_the_matrix_on_demand_are_drawn_too():
    model = SimpleNamespace(similarity_matrix=lambda: np.eye(3), labels_=[0, 1, 2])
    assert CoClusteringDisplay.from_estimator(model).image_.get_array().shape == (3, 3)
