"""Rounded values, labels and rows drawn twice: what estimates by nearest neighbours make of equal points."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_iris

from pluri.metrics import entropy_from_samples, kl_from_samples, mi_from_samples
from pluri.metrics.ties import rounding


def quietly(function, *arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return function(*arguments, **options)


@pytest.mark.parametrize("column", range(4))
def test_lengths_rounded_to_millimetres_have_the_entropy_of_a_density(column):
    # A Gaussian of the same variance has the largest entropy there is, 0.6 to 2.0 nats here; kernels come close.
    x = load_iris().data[:, column]
    with pytest.warns(UserWarning, match="multiples of 0.1, and were spread evenly"):
        found = entropy_from_samples(x)
    assert abs(found - entropy_from_samples(x, "kde")) < 0.4
    assert found < entropy_from_samples(x, "gaussian") + 0.1


@pytest.mark.parametrize("decimals", [1, 2])
def test_rounding_changes_the_entropy_of_a_normal_sample_by_little(decimals):
    # The standard error of the estimate is about 0.03 with 1000 points: five of them.
    exact = 0.5 * np.log(2 * np.pi * np.e)
    for seed in range(10):
        x = np.random.default_rng(seed).normal(size=1000).round(decimals)
        assert abs(quietly(entropy_from_samples, x) - exact) < 0.15


def test_whole_numbers_have_the_entropy_of_their_labels():
    labels = np.random.default_rng(0).choice(4, p=[0.4, 0.3, 0.2, 0.1], size=2000)
    found = quietly(entropy_from_samples, labels.astype(float))
    assert found == pytest.approx(entropy_from_samples(labels, "plug_in"), abs=0.12)


def test_points_without_ties_are_left_alone():
    x = np.random.default_rng(0).normal(size=300)
    assert entropy_from_samples(x) == entropy_from_samples(x, ties="keep") == entropy_from_samples(x, ties="error")


def test_rounded_pairs_keep_their_mutual_information():
    # Truth 0.83; the standard error is about 0.03.
    x, y = np.random.default_rng(0).multivariate_normal([0, 0], [[1, 0.9], [0.9, 1]], size=2000).T
    fine = mi_from_samples(x, y)
    assert quietly(mi_from_samples, x.round(1), y.round(1)) == pytest.approx(fine, abs=0.12)
    labels = (x > 0).astype(int)
    exact = mi_from_samples(labels, y, "mixed")
    assert quietly(mi_from_samples, labels, y.round(1), "mixed") == pytest.approx(exact, abs=0.05)


def test_rounded_samples_keep_their_divergence():
    rng = np.random.default_rng(0)
    x, y = rng.normal(1, 1, 3000), rng.normal(0, 1, 3000)
    assert quietly(kl_from_samples, x.round(1), y.round(1)) == pytest.approx(0.5, abs=0.15)


def test_ties_can_be_refused_or_kept():
    x = np.array([0.1, 0.1, 0.2, 0.3, 0.5, 0.5])
    for estimate in (
        lambda ties: entropy_from_samples(x, ties=ties),
        lambda ties: mi_from_samples(x, x, ties=ties),
        lambda ties: kl_from_samples(x, x[::-1], ties=ties),
    ):
        with pytest.raises(ValueError, match=r"must hold distinct points with ties='error', got \d+ among"):
            estimate("error")
        with pytest.raises(ValueError, match="ties must be one of"):
            estimate("ignore")
    assert quietly(entropy_from_samples, x, ties="keep", k=1) < -5
    assert quietly(entropy_from_samples, x, k=1) > -5


@pytest.mark.parametrize(
    ("column", "width"),
    [
        ([0.3, 0.3, 0.6, 1.5], 0.3),
        ([2.54, 5.08, 5.08, 12.7], 2.54),
        ([2.0, 2.0, 4.0, 7.0], 1.0),
        ([1e9 + 0.5, 1e9 + 0.5, 1e9 + 3.5, 1e9 + 8.5], 1.0),
        ([0.0, 0.0, 1.0, np.sqrt(2.0)], 0.0),
        ([1.0, 2.0, 3.0], 0.0),
        ([5.0, 5.0, 5.0], 0.0),
    ],
)
def test_the_width_of_a_rounding_is_found(column, width):
    found = rounding(np.array(column))
    if width and abs(max(column)) < 1e6:
        assert found == pytest.approx(width, rel=1e-6)
    elif width:
        assert found in (0.0, pytest.approx(width, rel=1e-3))  # beyond what the digits of the numbers tell
    else:
        assert found == 0.0


def test_rows_drawn_twice_are_not_taken_for_rounded_ones():
    rng = np.random.default_rng(0)
    for size in (5, 20, 300):
        x = rng.choice(rng.normal(size=size), size=size)
        assert rounding(x) == 0.0
