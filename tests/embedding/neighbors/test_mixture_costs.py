"""The cost of several images: against the definition written out, finite differences, and SNE."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from pluri.embedding import MixtureSNE
from pluri.embedding.neighbors.dense import DenseCost
from pluri.embedding.neighbors.distributions import from_dissimilarities
from pluri.embedding.neighbors.image_problem import ImageProblem
from pluri.embedding.neighbors.mixture import Attraction, image_cost, log_softmax, proportion_entropy
from pluri.embedding.neighbors.threads import Threads

RNG = np.random.default_rng(1)
ONE = Threads(1)
N, B, L = 9, 3, 2
NEIGHBORS = from_dissimilarities(RNG.random((N, N)) * 4, 3.0)
IMAGES, LOGITS = RNG.normal(size=(N, B, L)), RNG.normal(size=(N, B))


def responsibilities(images, shares):
    """r_{ib,jc} as the definition says, by loops; zero for j = i."""
    n, n_images, _ = images.shape
    r = np.zeros((n, n_images, n, n_images))
    for i in range(n):
        for b in range(n_images):
            for j in range(n):
                for c in range(n_images):
                    if j != i:
                        r[i, b, j, c] = shares[j, c] * np.exp(-((images[i, b] - images[j, c]) ** 2).sum())
            r[i, b] /= r[i, b].sum()
    return r


def brute(images, logits, P):
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    r = responsibilities(images, shares)
    q = np.einsum("ib,ibjc->ij", shares, r)
    off = ~np.eye(len(P), dtype=bool)
    return float((P[off] * np.log(P[off] / q[off])).sum()), q, r, shares


def differences(value, array, step=1e-5):
    gradient = np.empty_like(array)
    for place in np.ndindex(*array.shape):
        moved = array.copy()
        moved[place] += step
        up = value(moved)
        moved[place] -= 2 * step
        gradient[place] = (up - value(moved)) / (2 * step)
    return gradient


def test_the_cost_is_that_of_the_definition_and_rows_of_q_are_distributions():
    value, q, _, _ = brute(IMAGES, LOGITS, NEIGHBORS.P)
    assert_allclose(image_cost(IMAGES, LOGITS, NEIGHBORS, ONE).value, value, rtol=1e-10)
    assert_allclose(q.sum(axis=1), 1.0)


def test_gradients_are_those_of_finite_differences():
    found = image_cost(IMAGES, LOGITS, NEIGHBORS, ONE)
    by_points = differences(lambda y: image_cost(y, LOGITS, NEIGHBORS, ONE).value, IMAGES)
    by_logits = differences(lambda w: image_cost(IMAGES, w, NEIGHBORS, ONE).value, LOGITS)
    assert_allclose(found.points, by_points, atol=1e-8)
    assert_allclose(found.logits, by_logits, atol=1e-8)


def test_the_slopes_of_proportions_are_the_published_ones():
    """dq_ij/dpi_mg with its division by pi, through the softmax."""
    _, q, r, shares = brute(IMAGES, LOGITS, NEIGHBORS.P)
    ratio = np.where(np.eye(N, dtype=bool), 0.0, NEIGHBORS.P / np.where(q > 0, q, 1.0))
    own = np.einsum("mj,mgjc->mg", ratio, r)
    received = np.einsum("im,ib,ibmg->mg", ratio, shares, r)
    lost = np.einsum("ij,ib,ibmg,ibjc->mg", ratio, shares, r, r)
    A = -(shares * own + received - lost)  # pi_mg dC/dpi_mg
    expected = A - shares * A.sum(axis=1, keepdims=True)
    assert_allclose(image_cost(IMAGES, LOGITS, NEIGHBORS, ONE).logits, expected, atol=1e-12)


def test_what_images_explain_adds_up_to_one():
    found = image_cost(IMAGES, LOGITS, NEIGHBORS, ONE)
    assert_allclose(found.posterior.sum(axis=1), 1.0)
    assert (found.posterior >= 0).all()


def test_one_image_is_plain_embedding():
    plain = DenseCost(NEIGHBORS, ONE)(IMAGES[:, 0])
    found = image_cost(IMAGES[:, :1], LOGITS[:, :1], NEIGHBORS, ONE)
    assert_allclose(found.value, plain.value, rtol=1e-12)
    assert_allclose(found.points[:, 0], plain.gradient, atol=1e-12)
    assert_allclose(found.logits, 0.0, atol=1e-14)


def test_images_in_the_same_place_are_plain_embedding_whatever_the_proportions():
    together = np.repeat(IMAGES[:, :1], 2, axis=1)
    plain = DenseCost(NEIGHBORS, ONE)(IMAGES[:, 0])
    found = image_cost(together, LOGITS[:, :2], NEIGHBORS, ONE)
    assert_allclose(found.value, plain.value, rtol=1e-12)
    assert_allclose(found.points.sum(axis=1), plain.gradient, atol=1e-11)


def test_images_far_apart_and_proportions_of_nothing_are_finite():
    images, logits = IMAGES.copy(), LOGITS.copy()
    images[2, 0] = 500.0
    logits[3, 1] = -400.0
    found = image_cost(images, logits, NEIGHBORS, ONE)
    assert all(np.isfinite(part).all() for part in found)
    by_logits = differences(lambda w: image_cost(images, w, NEIGHBORS, ONE).value, logits, 1e-4)
    assert_allclose(found.logits, by_logits, atol=1e-6)


def test_the_number_of_threads_changes_no_bit():
    neighbors = from_dissimilarities(RNG.random((120, 120)) * 4, 5.0)
    images, logits = RNG.normal(size=(120, 2, 2)), RNG.normal(size=(120, 2))
    with Threads(3) as three:
        many = image_cost(images, logits, neighbors, three)
    alone = image_cost(images, logits, neighbors, ONE)
    assert all((np.asarray(a) == np.asarray(b)).all() for a, b in zip(many, alone, strict=True))


@pytest.mark.parametrize("distance", [0.0, 0.01, 0.049, 0.05, 0.051, 2.0])
def test_attraction_is_smooth_and_its_force_is_bounded(distance):
    pull = Attraction(0.025, 0.05)

    def energy(d):
        return pull(np.array([[[0.0, 0.0], [d, 0.0]]]))[0]

    value, gradient = pull(np.array([[[0.0, 0.0], [distance, 0.0]]]))
    expected = 0.25 * distance**2 if distance <= 0.05 else 0.025 * (distance - 0.025)
    assert value == pytest.approx(expected, abs=1e-15)
    assert gradient[0, 1, 0] == pytest.approx((energy(distance + 1e-7) - energy(distance - 1e-7)) / 2e-7, abs=1e-7)
    assert np.linalg.norm(gradient[0, 1]) <= 0.025 + 1e-15
    assert_allclose(gradient.sum(axis=1), 0.0, atol=1e-18)


def test_the_price_of_entropy_has_its_slope():
    value, gradient = proportion_entropy(LOGITS)
    shares = np.exp(log_softmax(LOGITS))
    assert value == pytest.approx(-(shares * np.log(shares)).sum())
    assert_allclose(gradient, differences(lambda w: proportion_entropy(w)[0], LOGITS), atol=1e-8)


def test_the_whole_problem_has_the_gradient_of_finite_differences():
    problem = ImageProblem(NEIGHBORS, ONE, B, L, Attraction(0.4, 0.5), True, 0.7)
    array = np.column_stack([IMAGES.reshape(N, -1), LOGITS])
    assert_allclose(problem(array)[1], differences(lambda a: problem(a)[0], array), atol=1e-8)


def test_the_model_gives_the_probabilities_of_the_definition():
    X = RNG.normal(size=(20, 3))
    model = MixtureSNE(perplexity=5, max_iter=30, proportions="learn", random_state=0).fit(X)
    r = responsibilities(model.images_, model.proportions_)
    assert_allclose(model.neighbor_probabilities(), np.einsum("ib,ibjc->ij", model.proportions_, r), atol=1e-12)
