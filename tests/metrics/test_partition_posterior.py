"""Expected losses against definitions, and searches against every partition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import rand_score

from pluri.metrics import variation_of_information
from pluri.metrics.partition_losses import co_clustering_matrix, expected_binder, expected_variation_of_information
from pluri.metrics.partition_posterior import credible_ball, minimize_expected_loss, minimize_expected_vi
from pluri.testing import set_partitions

partitions = st.lists(st.integers(-3, 9), min_size=6, max_size=6)


@given(partitions, st.lists(partitions, min_size=1, max_size=5))
def test_expected_losses_are_means_of_losses(labels, draws):
    vi = np.mean([variation_of_information(np.array(labels) + 3, np.array(draw) + 3) for draw in draws])
    rand = np.mean([rand_score(labels, draw) for draw in draws])
    assert expected_variation_of_information(labels, draws) == pytest.approx(vi, abs=1e-12)
    assert expected_binder(labels, draws) == pytest.approx(1 - rand, abs=1e-12)


@pytest.mark.parametrize("loss", ["vi", "binder"])
def test_the_search_finds_the_best_of_all_partitions(loss):
    expected = {"vi": expected_variation_of_information, "binder": expected_binder}[loss]
    everything = list(set_partitions(7))
    for seed in range(3):
        draws = np.random.default_rng(seed).integers(0, 3, size=(12, 7))
        best = min(expected(partition, draws) for partition in everything)
        found = minimize_expected_loss(draws, loss=loss, max_clusters=7, random_state=0)
        assert found.expected_loss == pytest.approx(best, abs=1e-10)
        assert expected(found.labels, draws) == pytest.approx(found.expected_loss)


def test_the_search_recovers_what_noise_hides():
    """No draw is right in all rows, but together they are."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 6, size=300)
    draws = np.where(rng.random((60, 300)) < 0.15, rng.integers(0, 8, size=(60, 300)), truth)
    found = minimize_expected_vi(draws, random_state=0)
    assert variation_of_information(truth, found.labels) == 0.0
    assert (np.diff(np.bincount(found.labels)) <= 0).all()
    assert min(expected_variation_of_information(draw, draws) for draw in draws) > found.expected_loss


def test_the_number_of_clusters_can_be_bounded():
    draws = np.tile(np.arange(9) // 3, (5, 1))
    assert minimize_expected_vi(draws, random_state=0).labels.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert minimize_expected_vi(draws, max_clusters=2, random_state=0).labels.max() <= 1


def test_shares_of_pairs_over_chains():
    draws = np.random.default_rng(0).integers(0, 40, size=(3, 50, 70))
    flat = draws.reshape(-1, 70)
    np.testing.assert_allclose(co_clustering_matrix(draws), (flat[:, :, None] == flat[:, None]).mean(axis=0), atol=1e-6)


def test_the_ball_holds_the_share_that_it_should():
    draws = np.random.default_rng(0).integers(0, 3, size=(200, 8))
    center = minimize_expected_vi(draws, random_state=0).labels
    ball = credible_ball(center, draws, mass=0.9)
    distances = np.array([variation_of_information(center, draw) for draw in draws])
    np.testing.assert_allclose(ball.distances, distances, atol=1e-12)
    assert (distances <= ball.radius + 1e-12).mean() >= 0.9
    assert (distances < ball.radius - 1e-12).mean() < 0.9
    inside = draws[distances <= ball.radius + 1e-12]
    numbers = [len(set(draw)) for draw in inside]
    assert len(set(ball.coarsest)) == min(numbers)
    assert len(set(ball.finest)) == max(numbers)
    assert variation_of_information(center, ball.farthest) == pytest.approx(ball.radius)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: co_clustering_matrix([0, 1]), "draws must be"),
        (lambda: co_clustering_matrix([[0.5, 1.0]]), "draws must be"),
        (lambda: expected_binder([0, 1], [[0, 1, 2]]), "labels must have shape"),
        (lambda: minimize_expected_loss([[0, 1]], loss="rand"), "loss must be"),
        (lambda: minimize_expected_vi([[0, 1]], n_starts=0), "n_starts must be"),
        (lambda: credible_ball([0, 1], [[0, 1]], mass=0.0), "mass must be"),
    ],
)
def test_mistakes_get_a_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()
