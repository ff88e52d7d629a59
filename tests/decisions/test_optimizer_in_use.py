"""The optimizer as people use it: values in any units, ends of a logarithmic scale, numbers from tables."""

import numpy as np
import pytest

from pluri.decisions import BayesianOptimizer, Integer, Real


@pytest.mark.parametrize("unit", [1e-200, 1e-20, 1e-13, 1e13, 1e200])
def test_very_small_and_very_large_values_are_searched_like_others(unit):
    def points(factor):
        optimizer = BayesianOptimizer({"x": Real(0, 1)}, random_state=0)
        optimizer.optimize(lambda params: factor * ((params["x"] - 0.2) ** 2 + 0.01), 9)
        return [one.params["x"] for one in optimizer.history_]

    # The first points of the model; later ones magnify the rounding of the values.
    np.testing.assert_allclose(points(unit)[:7], points(1.0)[:7], atol=1e-3)
    assert abs(points(unit)[-1] - 0.2) < 0.05


def test_the_ends_of_a_logarithmic_scale_are_the_bounds_themselves():
    for low, high in ((1e-3, 1e3), (3e-7, 0.7), (7.0, 49.0)):
        rate = Real(low, high, log=True)
        assert (rate.value(0.0), rate.value(1.0)) == (low, high)
        assert (rate.code(low), rate.code(high)) == (0.0, 1.0)


def test_a_whole_number_may_come_as_a_float():
    optimizer = BayesianOptimizer({"depth": Integer(1, 5)})
    optimizer.tell({"depth": 3.0}, 1.0)
    optimizer.tell({"depth": np.float32(4)}, 2.0)
    np.testing.assert_allclose(np.ravel(optimizer._history.rows), [0.5, 0.75])
    assert [type(one.params["depth"]) for one in optimizer.history_] == [int, int]
    with pytest.raises(ValueError, match=r"depth is outside the space.*3\.5"):
        optimizer.tell({"depth": 3.5}, 1.0)


def test_points_that_were_rounded_are_no_longer_under_way():
    space = {"x": Real(0, 10), "rate": Real(1e-4, 1, log=True), "n": Integer(1, 100), "kind": ["a", "b"]}
    optimizer = BayesianOptimizer(space, n_initial_points=3, random_state=0)
    for _ in range(5):
        asked = optimizer.ask()
        rounded = asked | {"x": round(asked["x"], 1), "rate": float(f"{asked['rate']:.2g}")}
        optimizer.tell(rounded, asked["x"])
    assert not optimizer._history.pending
    assert [one.kind for one in optimizer.history_] == ["initial"] * 3 + ["model"] * 2
    asked = optimizer.ask()
    for other in ({"x": 10.0 - asked["x"]}, {"kind": "b" if asked["kind"] == "a" else "a"}, {"n": 101 - asked["n"]}):
        optimizer.tell(asked | other, 1.0)
    assert len(optimizer._history.pending) == 1  # none of these is it
    optimizer.tell(asked, 1.0)
    assert not optimizer._history.pending


def test_points_that_will_not_be_evaluated_can_be_withdrawn():
    optimizer = BayesianOptimizer({"x": Real(0, 1)}, n_initial_points=2, random_state=0)
    optimizer.tell(optimizer.ask(2), [1.0, 2.0])
    places = [{"x": place} for place in np.linspace(0, 1, 9)]
    before = optimizer.acquisition_values(places)
    asked = optimizer.ask(3)
    assert np.abs(optimizer.acquisition_values(places) - before).max() > 1e-6
    optimizer.withdraw(asked[1])
    assert len(optimizer._history.pending) == 2
    with pytest.raises(ValueError, match="params must be under way"):
        optimizer.withdraw(asked[1])
    optimizer.withdraw([asked[0]])
    optimizer.withdraw()
    np.testing.assert_allclose(optimizer.acquisition_values(places), before, rtol=1e-9)
    assert len(optimizer.history_) == 2
