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
