"""Variation of information: a metric on partitions, and equal to entropies computed by scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import entropy
from sklearn.metrics import mutual_info_score

from pluri.metrics import variation_of_information

triples = st.integers(1, 40).flatmap(
    lambda n: st.tuples(*[st.lists(st.integers(0, 4), min_size=n, max_size=n) for _ in range(3)])
)


@given(triples)
def test_it_equals_entropies_minus_twice_the_mutual_information(triple):
    first, second, _ = triple
    entropies = sum(entropy(np.bincount(labels)) for labels in (first, second))
    expected = entropies - 2 * mutual_info_score(first, second)
    assert variation_of_information(first, second) == pytest.approx(expected, abs=1e-10)


@given(triples)
def test_it_is_a_metric(triple):
    first, second, third = triple
    distance = variation_of_information(first, second)
    assert distance >= 0
    assert distance == pytest.approx(variation_of_information(second, first), abs=1e-12)
    through = variation_of_information(first, third) + variation_of_information(third, second)
    assert distance <= through + 1e-12


@given(triples, st.permutations(range(5)))
def test_it_is_zero_exactly_for_equal_partitions(triple, rename):
    first, second = np.array(triple[0]), np.array(triple[1])
    assert variation_of_information(first, np.array(rename)[first]) == 0.0
    same = np.array_equal(first[:, None] == first, second[:, None] == second)
    assert (variation_of_information(first, second) == 0) == same


def test_known_answers_in_nats_bits_and_weights():
    assert variation_of_information([0, 0, 1, 1], [0, 1, 0, 1]) == pytest.approx(2 * np.log(2))
    assert variation_of_information([0, 0, 1, 1], [0, 1, 0, 1], base=2) == pytest.approx(2)
    assert variation_of_information([0, 0, 0, 1], [0, 0, 0, 0], base=2) == pytest.approx(0.8112781244591328)
    assert variation_of_information([0, 1], [0, 0], base=2, sample_weight=[3, 1]) == pytest.approx(0.8112781244591328)
    assert variation_of_information([0, 1, -1], [0, 1, 1]) == 0.0


@pytest.mark.parametrize("base", [0, 1, -2, np.nan, np.inf])
def test_a_base_that_is_none_is_refused(base):
    with pytest.raises(ValueError, match="base must be a positive number other than 1"):
        variation_of_information([0, 1], [0, 1], base=base)
