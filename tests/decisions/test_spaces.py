"""Search spaces: values to codes and back, designs, neighbours, and what is refused."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare, loguniform, randint, uniform

from pluri.decisions import Categorical, Distributed, Integer, Real
from pluri.decisions.bayesian_optimization.space import Space

SPACE = Space.of(
    {
        "x": Real(-3, 5),
        "rate": Real(1e-6, 1e2, log=True),
        "n": Integer(3, 17),
        "width": Integer(1, 1000, log=True),
        "kind": Categorical(["a", 1, 1.0, True, None]),
        "u": uniform(2.0, 4.0),
        "k": randint(2, 9),
    }
)


@settings(max_examples=40)
@given(st.lists(st.floats(0, 1), min_size=7, max_size=7))
def test_points_come_back_from_their_codes(shares):
    row = SPACE.spread(np.array([shares]))[0]
    params = SPACE.params(row)
    again = SPACE.row(params)
    np.testing.assert_allclose(again, row, atol=1e-9)
    assert SPACE.params(again).keys() == params.keys()
    for name, value in SPACE.params(again).items():
        assert type(value) is type(params[name])
        assert value == params[name] or math.isclose(value, params[name], rel_tol=1e-9, abs_tol=1e-9)
    np.testing.assert_allclose(SPACE.snap(row[None])[0], row, atol=1e-9)


def test_codes_are_places_between_the_bounds():
    np.testing.assert_allclose(Real(-3, 5).code(1.0), 0.5)
    np.testing.assert_allclose(Real(1e-6, 1e2, log=True).code(1e-2), 0.5)
    np.testing.assert_allclose(Integer(1, 100, log=True).code(10), 0.5)
    assert Real(0.1, 0.3).value(1.0) == 0.3  # not 0.30000000000000004
    np.testing.assert_allclose(Distributed(loguniform(1e-4, 1)).code(1e-2), 0.5)
    assert Distributed(randint(2, 9)).value(0.001) == 2


def test_drawn_points_are_even():
    rows = SPACE.sample(np.random.default_rng(0), 15_000)
    for column, n_levels in ((2, 15), (4, 5), (6, 7)):
        levels, counts = np.unique(rows[:, column].round(9), return_counts=True)
        assert len(levels) == n_levels
        assert chisquare(counts).pvalue > 1e-6
    values = [SPACE.params(row) for row in rows[:50]]
    assert all(1 <= one["width"] <= 1000 and 1e-6 <= one["rate"] <= 1e2 and 3 <= one["n"] <= 17 for one in values)


def test_a_design_uses_each_part_of_each_dimension_once():
    rows = Space.of({"a": Real(0, 1), "b": Real(0, 1)}).design(np.random.default_rng(0), 9)
    for column in rows.T:
        assert sorted(np.floor(9 * column).astype(int)) == list(range(9))


def test_neighbours_differ_in_one_dimension_by_one_step():
    row = SPACE.row({"x": 0, "rate": 1.0, "n": 3, "width": 7, "kind": "a", "u": 3.0, "k": 5})
    found = [SPACE.params(one) for one in SPACE.neighbours(row)]
    here = SPACE.params(row)
    changes = [{name: one[name] for name in one if repr(one[name]) != repr(here[name])} for one in found]
    assert all(len(change) == 1 for change in changes)
    assert sorted(change["n"] for change in changes if "n" in change) == [4]
    assert sorted(change["width"] for change in changes if "width" in change) == [6, 8]
    assert sorted(change["k"] for change in changes if "k" in change) == [4, 6]
    assert sum("kind" in change for change in changes) == 4


def test_choices_are_all_at_a_distance_of_one():
    space = Space.of({"kind": Categorical(["a", "b", "c"]), "fixed": Real(2, 2), "x": Real(0, 1)})
    features = space.features(np.array([[0, 0, 0.5], [1, 0, 0.5], [2, 0, 0.5]]))
    distances = ((features[:, None] - features) ** 2).sum(axis=2)
    np.testing.assert_allclose(distances, 1 - np.eye(3))
    assert space.feature_dimension.tolist() == [0, 0, 0, 1]
    assert space.varying.tolist() == [True, False, True]


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Real(1, 0), "low must be at most high, got low=1 and high=0"),
        (lambda: Real(0, 1, log=True), "low must be positive if log, got 0"),
        (lambda: Real(0, math.inf), "high must be a finite number, got inf"),
        (lambda: Real("0", 1), "low must be a finite number, got '0'"),
        (lambda: Real(0, 1, log=1), "log must be True or False, got 1"),
        (lambda: Integer(0, 1.5), "high must be an integer, got 1.5"),
        (lambda: Integer(5, 4), "low must be at most high"),
        (lambda: Integer(0, 4, log=True), "low must be positive if log"),
        (lambda: Categorical([]), r"choices must be a list of at least one value, got \[\]"),
        (lambda: Categorical("abc"), "choices must be a list of at least one value, got 'abc'"),
        (lambda: Categorical(["a", "a"]), "choices must differ, got 'a' twice"),
        (lambda: Distributed(3), "distribution must have methods ppf and cdf, got 3"),
        (lambda: Space.of({}), r"space must be a dict of at least one name and its dimension, got \{\}"),
        (lambda: Space.of([Real(0, 1)]), "space must be a dict"),
        (lambda: Space.of({1: Real(0, 1)}), "space must have strings as names, got 1"),
        (lambda: Space.of({"x": (0, 1)}), r"space\['x'\] must be Real, Integer, Categorical, .*, got \(0, 1\)"),
        (
            lambda: Space.of({"x": (0.0, 1.0)}),
            r"Real\(0.0, 1.0\) is all numbers between, \[0.0, 1.0\] these two",
        ),
        (lambda: SPACE.row([1, 2]), "a point must be a dict with the names x, rate"),
        (lambda: SPACE.row({"x": 1}), "a point must have the names x, rate, .*, got x"),
        (lambda: Space.of({"x": Real(0, 1)}).row({"x": 2}), "x is outside the space: it must be .*, got 2"),
        (lambda: Space.of({"x": Real(0, 1)}).row({"x": math.nan}), "x is outside the space: .*, got nan"),
        (lambda: Space.of({"x": Integer(0, 1)}).row({"x": 0.5}), "x is outside the space: .*, got 0.5"),
        (lambda: Space.of({"x": ["a", "b"]}).row({"x": "c"}), "x is outside the space: it must be one of 'a', 'b'"),
    ],
)
def test_spaces_and_points_that_mean_nothing_are_refused(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()
