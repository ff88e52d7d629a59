"""Tables of shapes and ranges: what is held against them passes or is named."""

from types import SimpleNamespace

import numpy as np
import pytest

from pluri.validation import Stored, check_compressed, check_layout

LAYOUT = {
    "weights_": Stored("k", simplex=True),
    "means_": Stored("k", "n_features_in_"),
    "labels_": Stored("n", whole=True, least=0, below="k"),
    "starts_": Stored("n+1", whole=True),
    "tables_[]": Stored("k", None),
    "log_": Stored(2, finite=False),
}


def model(**changes):
    fields = {
        "n_features_in_": 3,
        "weights_": np.array([0.25, 0.75]),
        "means_": np.zeros((2, 3)),
        "labels_": np.array([0, 1, 1, 0]),
        "starts_": np.arange(5),
        "tables_": [np.zeros((2, 1)), np.zeros((2, 7))],
        "log_": np.array([-np.inf, 0.0]),
    }
    return SimpleNamespace(**(fields | changes))


def test_a_sound_model_passes_and_the_lengths_are_told():
    assert check_layout(model(), LAYOUT) == {"k": 2, "n": 4}
    assert check_layout(model(weights_=[0.25, 0.75]), LAYOUT)["k"] == 2  # set by hand
    assert check_layout(SimpleNamespace(), LAYOUT) == {}
    assert check_layout(model(means_=None), LAYOUT) == {"k": 2, "n": 4}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"weights_": np.array([0.5, 0.4])}, "weights_ must sum to 1, got 0.9"),
        ({"weights_": np.array([1.5, -0.5])}, "weights_ must hold probabilities, got -0.5"),
        ({"weights_": np.array([np.nan, 1.0])}, "weights_ must be finite, got nan"),
        ({"means_": np.zeros((2, 4))}, r"means_ must have shape \(k, n_features_in_\) with n_features_in_ = 3, got"),
        ({"means_": np.zeros((1, 3))}, r"means_ must have shape \(k, n_features_in_\) with k = 2, got \(1, 3\)"),
        ({"means_": np.zeros(2)}, r"means_ must have 2 axes, got shape \(2,\)"),
        ({"means_": np.array([["a"]])}, "means_ must hold numbers, got <U1"),
        ({"means_": np.zeros((2, 3), dtype=complex)}, "means_ must hold numbers, got complex128"),
        ({"means_": np.zeros((2, 3), dtype=">f8")}, "means_ must hold numbers, got >f8"),
        ({"labels_": np.array([0, 1, 2, 0])}, r"labels_ must be less than k \(2\), got 2"),
        ({"labels_": np.array([0, -1, 1, 0])}, "labels_ must be at least 0, got -1"),
        ({"labels_": np.array([0.0, 1.0, 1.0, 0.0])}, "labels_ must hold integers, got float64"),
        ({"starts_": np.arange(4)}, r"starts_ must have shape \(n\+1\) with n\+1 = 5, got \(4,\)"),
        ({"tables_": [np.zeros((2, 1)), np.zeros((3, 1))]}, r"tables_\[1\] must have shape \(k, None\) with k = 2"),
        ({"tables_": 3}, "tables_ must be a list of arrays, got int"),
        ({"log_": np.zeros(3)}, r"log_ must have shape \(2\) with 2 = 2, got \(3,\)"),
    ],
)
def test_what_does_not_fit_is_named(changes, message):
    with pytest.raises(ValueError, match=message):
        check_layout(model(**changes), LAYOUT)


def test_a_bound_that_nothing_tells_is_no_bound_to_trust():
    with pytest.raises(ValueError, match="k must be known, got nothing that tells it"):
        check_layout(SimpleNamespace(labels_=np.array([0])), LAYOUT)


def test_places_of_a_sparse_matrix_lie_inside_it():
    check_compressed("x", np.array([0, 0]), np.array([], dtype=int), 1, 0)
    for starts, places in (([0, 2], [0, 1]), ([0, 2, 1, 3], [0, 1, 1]), ([1, 2, 2, 3], [0, 1, 1]), ([0, 1, 1, 2], [0])):
        with pytest.raises(ValueError, match="the indptr of x must rise from 0 to"):
            check_compressed("x", starts, places, 3, 2)
    with pytest.raises(ValueError, match="the indices of x must be integers in one row"):
        check_compressed("x", [0, 1], [0.5], 1, 2)
