"""Categories and codes: what goes in comes out, and what does not belong is refused by name."""

import numpy as np
import pytest

from pluri.components.categories import Categories, given_categories, joined_categories, learn_categories


def test_values_come_back_from_their_places():
    rng = np.random.default_rng(0)
    X = np.stack([rng.choice(["low", "high", "none"], 50).astype(object), rng.integers(-3, 4, 50)], axis=1)
    categories = Categories(learn_categories(X))
    rows = categories.encode(X).toarray()
    assert (rows.sum(axis=1) == 2).all()
    first = categories.sizes[0]
    assert (categories.decode(0, rows[:, :first].argmax(axis=1)) == X[:, 0].astype(str)).all()
    assert (categories.decode(1, rows[:, first:].argmax(axis=1)) == X[:, 1].astype(int)).all()


def test_the_order_of_given_categories_is_kept():
    categories = Categories(given_categories([["no", "yes", "maybe"], [10, 3]], 2))
    rows = categories.encode(np.array([["maybe", 10], ["no", 3]], dtype=object)).toarray()
    assert rows.tolist() == [[0, 0, 1, 1, 0], [1, 0, 0, 0, 1]]


@pytest.mark.parametrize("value", [None, np.nan, np.float32("nan")])
def test_a_missing_value_has_no_one(value):
    X = np.array([["a", 1], [value, 2], ["b", value]], dtype=object)
    assert Categories(learn_categories(X)).encode(X).sum(axis=1).tolist() == [2.0, 1.0, 1.0]


def test_an_unseen_value_is_a_mistake_or_missing():
    known = (np.array([1, 2]),)
    with pytest.raises(ValueError, match="known categories in column 0, got 7"):
        Categories(known).encode(np.array([[7]]))
    assert Categories(known, "missing").encode(np.array([[7], [2]])).toarray().tolist() == [[0, 0], [0, 1]]


def test_batches_are_joined():
    first, second = learn_categories(np.array([[1, 5]])), learn_categories(np.array([[3, np.nan]]))
    assert [values.tolist() for values in joined_categories(first, second)] == [[1, 3], [5]]
    with pytest.raises(ValueError, match="not both"):
        joined_categories(first, learn_categories(np.array([["a", "b"]])))


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (np.array([[0.5]]), "whole numbers or strings in column 0, got 0.5"),
        (np.array([[np.inf]]), "infinity"),
        (np.array([["a"], [1]], dtype=object), "not both"),
        (np.array([[("a",)], [None]], dtype=object), "column 0"),
        (np.array([[2**60]], dtype=np.uint64), "up to 2"),
    ],
)
def test_what_is_no_category_is_refused(X, words):
    if X.shape == (2, 1, 1):  # NumPy looked inside the tuple
        X = np.array([[None], [None]], dtype=object)
        X[0, 0] = ("a",)
    with pytest.raises(ValueError, match=words):
        learn_categories(X)
