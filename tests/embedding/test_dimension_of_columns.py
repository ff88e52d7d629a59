"""More dimensions than columns are told."""

import warnings

import numpy as np
import pytest

from pluri.embedding import nsr_dimension

SHORT = {"n_coordinates": 6, "n_components": 3, "n_warmup": 20, "n_draws": 20, "random_state": 0}


def test_more_coordinates_in_use_than_columns_are_told():
    rng = np.random.default_rng(0)
    curve = rng.uniform(0, 3, 300)
    line = np.column_stack([np.cos(curve), np.sin(curve)])
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = nsr_dimension(line, **SHORT)
    about = [one for one in told if "more than the 2 columns" in str(one.message)]
    assert bool(about) == (found.dimension > 2)


@pytest.mark.filterwarnings("error")
def test_a_plane_in_many_columns_raises_no_alarm():
    rng = np.random.default_rng(0)
    plane = rng.random((300, 2)) @ rng.normal(size=(2, 20)) + 0.1 * rng.normal(size=(300, 20))
    assert round(nsr_dimension(plane, **SHORT).dimension) == 2
