"""Pictures of spectral k-means: inertia and bound over the number of clusters, and the sorted Gram matrix."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from pluri.embedding import SpectralKMeans
from pluri.plotting import GramBlocksDisplay, KMeansBoundDisplay


def blobs(n=60):
    rng = np.random.default_rng(0)
    return 5 * np.eye(6)[np.arange(n) % 3] + rng.normal(size=(n, 6))


def test_the_gap_lies_between_the_inertia_and_the_bound():
    X = blobs()
    models = [SpectralKMeans(k, random_state=0).fit(X) for k in (4, 2, 3)]
    display = KMeansBoundDisplay.from_estimators(models, title="three")
    assert_array_equal(display.n_clusters, [2, 3, 4])
    found, bound = display.ax_.lines
    assert_allclose(found.get_ydata(), [models[1].inertia_, models[2].inertia_, models[0].inertia_])
    assert_allclose(bound.get_ydata(), [models[1].lower_bound_, models[2].lower_bound_, models[0].lower_bound_])
    corners = display.gap_.get_paths()[0].vertices
    assert_allclose([corners[:, 1].min(), corners[:, 1].max()], [models[0].lower_bound_, models[1].inertia_])
    assert display.ax_.get_title() == "three"


def test_rows_of_a_cluster_are_side_by_side_and_framed():
    X = blobs()
    model = SpectralKMeans(3, random_state=0).fit(X)
    display = GramBlocksDisplay.from_estimator(model, X)
    assert_array_equal(np.sort(display.order_), np.arange(60))
    assert_allclose(display.image_.get_array(), (X @ X.T)[np.ix_(display.order_, display.order_)])
    assert (np.diff(model.labels_[display.order_]) != 0).sum() == 2
    assert [patch.get_width() for patch in display.ax_.patches] == [20, 20, 20]
    assert len(GramBlocksDisplay.from_estimator(model, X, max_rows=10).order_) == 10
    last = GramBlocksDisplay(np.eye(4), [-1, 1, 0, 1]).order_
    assert_array_equal(last, [1, 3, 2, 0])


def test_blocks_of_classes_are_named():
    display = GramBlocksDisplay(np.eye(5), ["b", "a", "b", "a", "b"]).plot(show_labels=True)
    assert_array_equal(display.order_, [0, 2, 4, 1, 3])
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == ["b", "a"]
    assert_allclose(display.ax_.get_yticks(), [1.0, 3.5])


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: KMeansBoundDisplay([1, 2], [3.0], [1.0]), "must be equally long"),
        (lambda: KMeansBoundDisplay([1], [1.0], [2.0]), "lower_bound must not exceed inertia"),
        (lambda: KMeansBoundDisplay.from_estimators([SpectralKMeans()]), "models must be fitted"),
        (lambda: GramBlocksDisplay(np.ones((2, 3)), [0, 1]), r"gram must be square, got shape \(2, 3\)"),
        (lambda: GramBlocksDisplay(np.eye(2), [0]), "labels must have one entry for each of the 2 rows"),
        (lambda: GramBlocksDisplay.from_estimator(object(), [[1.0]]), "model must have a method similarity"),
    ],
)
def test_mistakes_get_a_sentence(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()
