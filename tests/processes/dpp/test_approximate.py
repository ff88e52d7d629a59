"""Low-rank and ridge approximations: exact where they should be, and exactly sampled everywhere."""

import signal
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import chisquare
from sklearn.exceptions import ConvergenceWarning

from pluri import on_interrupt
from pluri.processes.dpp import DPP, DenseKernel, FeatureKernel, FunctionKernel
from pluri.processes.dpp.approximations.nystrom import (
    NystromDPP,
    approximation_error,
    choose_landmarks,
    nystrom_features,
)
from pluri.processes.dpp.approximations.ridge import RidgeDPP
from pluri.processes.dpp.approximations.ridge_approximation import (
    RidgeApproximation,
    product,
    ridge_by_em,
    ridge_from_eigenvectors,
)

#: False-alarm rate of each statistical test below.
ALPHA = 1e-6


def gaussian(a, b):
    return np.exp(-0.5 * ((a[:, None] - b[None]) ** 2).sum(-1) / 0.3**2)


def low_rank(n_items, rank, seed=0):
    return np.random.default_rng(seed).normal(size=(n_items, rank))


def subsets(n_items):
    for size in range(n_items + 1):
        yield from combinations(range(n_items), size)


def chi_square(draws, probabilities):
    counts = dict.fromkeys(probabilities, 0)
    for draw in draws:
        counts[tuple(int(i) for i in draw)] += 1
    expected = np.array(list(probabilities.values())) * len(draws)
    observed = np.array(list(counts.values()), dtype=float)
    rare = expected < 10
    if rare.any():
        observed, expected = (
            np.append(observed[~rare], observed[rare].sum()),
            np.append(expected[~rare], expected[rare].sum()),
        )
    if expected[-1] == 0:
        observed, expected = observed[:-1], expected[:-1]
    return chisquare(observed, expected * observed.sum() / expected.sum()).pvalue


@pytest.mark.parametrize("selection", ["uniform", "greedy", "leverage"])
def test_nystrom_is_exact_when_the_landmarks_span_the_kernel(selection):
    features = low_rank(40, 4)
    kernel = features @ features.T
    found = nystrom_features(kernel, n_landmarks=6, selection=selection, random_state=0)
    np.testing.assert_allclose(found @ found.T, kernel, atol=1e-10)
    error = approximation_error(kernel, NystromDPP(kernel, 6, selection=selection, random_state=0))
    assert max(error) < 1e-9


def test_nystrom_agrees_with_the_kernel_on_the_rows_of_its_landmarks():
    X = np.random.default_rng(0).random((30, 2))
    kernel = gaussian(X, X)
    landmarks = [3, 8, 20]
    found = nystrom_features(kernel, landmarks)
    np.testing.assert_allclose((found @ found.T)[landmarks], kernel[landmarks], atol=1e-10)
    assert np.linalg.eigvalsh(kernel - found @ found.T)[0] > -1e-10


def test_nystrom_sees_every_form_of_a_kernel_alike():
    X = np.random.default_rng(0).random((25, 2))
    quality = np.linspace(0.5, 2.0, 25)
    dense = gaussian(X, X) * quality * quality[:, None]
    of_matrix = nystrom_features(dense, n_landmarks=8)
    of_function = nystrom_features(FunctionKernel(gaussian, X, quality), n_landmarks=8)
    np.testing.assert_allclose(of_matrix @ of_matrix.T, of_function @ of_function.T, atol=1e-9)
    features = low_rank(25, 6)
    of_features = nystrom_features(FeatureKernel(features), n_landmarks=6)
    np.testing.assert_allclose(of_features @ of_features.T, features @ features.T, atol=1e-9)


def test_greedy_landmarks_are_those_of_a_pivoted_cholesky_decomposition():
    from scipy.linalg.lapack import dpstrf

    rng = np.random.default_rng(1)
    X, quality = rng.random((30, 2)), rng.uniform(0.5, 2.0, size=30)
    kernel = gaussian(X, X) * quality * quality[:, None]
    _, pivots, _, _ = dpstrf(kernel, lower=1)
    chosen = choose_landmarks(DenseKernel(kernel), 7, "greedy", rng)
    np.testing.assert_array_equal(chosen, np.sort(pivots[:7] - 1))


def test_leverage_takes_the_few_items_that_matter():
    # 3 items of their own beside 197 copies of one: 8 uniform landmarks find 0.12 of them on average.
    features = np.zeros((200, 4))
    features[:197, 0] = 1.0
    features[197:, 1:] = 3.0 * np.eye(3)
    rng = np.random.default_rng(0)
    found = [(choose_landmarks(FeatureKernel(features), 8, "leverage", rng) >= 197).sum() for _ in range(30)]
    assert np.mean(found) > 1.5


def test_nystrom_process_is_that_of_its_features():
    X = np.random.default_rng(0).random((30, 2))
    process = NystromDPP(gaussian(X, X), 10)
    dense = nystrom_features(gaussian(X, X), n_landmarks=10)
    reference = DPP(dense @ dense.T)
    np.testing.assert_allclose(process.inclusion_probabilities(), reference.inclusion_probabilities(), atol=1e-9)
    assert process.log_normalizer == pytest.approx(reference.log_normalizer)
    assert process.log_prob([0, 5]) == pytest.approx(reference.log_prob([0, 5]))
    assert process.condition(include=[3]).log_prob([3, 9]) == pytest.approx(
        reference.condition(include=[3]).log_prob([3, 9])
    )
    assert max(map(len, process.sample(50, random_state=0))) <= 10


def test_a_kernel_of_zeros_gives_the_empty_set():
    process = NystromDPP(np.zeros((5, 5)), 2)
    assert all(len(draw) == 0 for draw in process.sample(5, random_state=0))
    assert approximation_error(np.zeros((5, 5)), process) == (0.0, 0.0, 0.0)
    assert len(RidgeDPP(np.zeros((5, 5)), 2).sample(random_state=0)) == 0


# Ridge ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_components", [3, 20])
def test_closed_form_takes_the_leading_eigenvectors_and_the_mean_of_the_rest(n_components):
    X = np.random.default_rng(0).random((60, 2))
    kernel = gaussian(X, X) + 0.05 * np.eye(60)
    values, vectors = np.linalg.eigh(kernel)
    ridge = values[: 60 - n_components].mean()
    found = ridge_from_eigenvectors(kernel, n_components)
    assert found.ridge == pytest.approx(ridge)
    leading = vectors[:, -n_components:] * (values[-n_components:] - ridge)
    np.testing.assert_allclose(found.factor @ found.factor.T, leading @ vectors[:, -n_components:].T, atol=1e-8)
    approximate = found.matrix()
    objective = np.linalg.slogdet(approximate)[1] + np.trace(kernel @ np.linalg.inv(approximate))
    assert found.objective == pytest.approx(objective)


def test_em_reaches_the_closed_form():
    features = low_rank(40, 40) * np.linspace(3.0, 0.2, 40)
    kernel = features @ features.T / 40
    best = ridge_from_eigenvectors(kernel, 3)
    found = ridge_by_em(kernel, 3, random_state=1, tol=1e-14, max_iter=20000)
    assert found.converged
    assert found.ridge == pytest.approx(best.ridge, rel=1e-6)
    assert found.objective == pytest.approx(best.objective, rel=1e-10)
    np.testing.assert_allclose(found.factor @ found.factor.T, best.factor @ best.factor.T, atol=1e-4)


def test_each_em_iteration_lowers_the_objective():
    X = np.random.default_rng(0).random((30, 2))
    kernel = gaussian(X, X) + 0.1 * np.eye(30)
    objectives = []
    for max_iter in range(2, 12):
        with pytest.warns(ConvergenceWarning, match="inference='eigen'"):
            objectives.append(ridge_by_em(kernel, 4, max_iter=max_iter, tol=0.0, random_state=0).objective)
    assert (np.diff(objectives) < 0).all()


def test_products_do_not_depend_on_the_form_of_the_kernel():
    features, right = low_rank(30, 5), low_rank(30, 3, 1)
    expected = features @ (features.T @ right)
    for form in (FeatureKernel(features), FunctionKernel(lambda a, b: a @ b.T, features)):
        np.testing.assert_allclose(product(form, right), expected)


@pytest.mark.parametrize("inference", ["eigen", "em"])
def test_the_ridge_process_equals_enumeration(inference):
    kernel = np.exp(-np.abs(np.subtract.outer(np.arange(6), np.arange(6))) / 2.0) * 1.5
    process = RidgeDPP(kernel, 2, inference=inference, random_state=0)
    exact = DPP(process.approximation.matrix())
    assert process.log_normalizer == pytest.approx(exact.log_normalizer)
    np.testing.assert_allclose(process.inclusion_probabilities(), exact.inclusion_probabilities())
    assert process.expected_size == pytest.approx(exact.expected_size)
    for subset in subsets(6):
        assert process.log_prob(subset) == pytest.approx(exact.log_prob(subset), abs=1e-9)


def test_ridge_draws_have_the_law_of_the_approximation():
    """False-alarm rate 1e-6."""
    kernel = np.exp(-np.abs(np.subtract.outer(np.arange(5), np.arange(5))) / 2.0) * 1.2
    process = RidgeDPP(kernel, 2)
    assert process.approximation.ridge > 0.1
    law = {subset: float(np.exp(process.log_prob(subset))) for subset in subsets(5)}
    assert sum(law.values()) == pytest.approx(1.0)
    assert chi_square(process.sample(20000, random_state=0), law) > ALPHA


def test_without_a_ridge_no_subset_is_larger_than_the_rank():
    features = low_rank(20, 3)
    process = RidgeDPP(features @ features.T, 3)
    assert process.approximation.ridge < 1e-12
    exact = RidgeDPP(RidgeApproximation(process.approximation.factor, 0.0))
    assert exact.log_prob(range(5)) == -np.inf
    assert max(map(len, exact.sample(50, random_state=0))) <= 3
    np.testing.assert_allclose(exact.inclusion_probabilities(), DPP(features=features).inclusion_probabilities())


def test_the_ridge_keeps_what_landmarks_lose():
    X = np.linspace(0, 1, 300)
    kernel = np.exp(-np.abs(X[:, None] - X) / 0.05)
    ridge = approximation_error(kernel, RidgeDPP(kernel, 20))
    landmarks = approximation_error(kernel, NystromDPP(kernel, 20))
    assert ridge.inclusion < 0.5 * landmarks.inclusion
    assert ridge.log_normalizer < 0.5 * landmarks.log_normalizer


def test_the_same_random_state_gives_the_same_draws():
    kernel = np.exp(-np.abs(np.subtract.outer(np.arange(9), np.arange(9))))
    process = RidgeDPP(kernel, 3)
    for one, other in zip(process.sample(5, random_state=3), process.sample(5, random_state=3), strict=True):
        np.testing.assert_array_equal(one, other)
    assert isinstance(process.sample(random_state=0), np.ndarray)
    assert process.sample(0) == []


def test_ctrl_c_keeps_the_approximation_so_far():
    X = np.random.default_rng(0).random((20, 1))

    calls = []

    def similarity(a, b):
        calls.append(len(calls))
        if len(calls) == 12:
            signal.raise_signal(signal.SIGINT)
        return gaussian(a, b)

    with on_interrupt("keep"), pytest.warns(UserWarning, match="interrupted"):
        found = ridge_by_em(FunctionKernel(similarity, X), 3, random_state=0)
    assert not found.converged
    assert np.isfinite(found.factor).all()


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: nystrom_features(np.eye(4)), "exactly one of landmarks and n_landmarks"),
        (lambda: nystrom_features(np.eye(4), n_landmarks=5), "n_landmarks must be from 1 to 4, got 5"),
        (lambda: nystrom_features(np.eye(4), n_landmarks=2, selection="best"), "selection must be one of 'uniform'"),
        (lambda: nystrom_features(np.eye(4), [0, 4]), "landmarks must hold items from 0 to 3, got 4"),
        (lambda: nystrom_features(np.eye(4), []), "landmarks must name at least one item"),
        (lambda: nystrom_features(-np.eye(3), [0]), "L must be positive semi-definite"),
        (lambda: RidgeDPP(np.eye(4), 4), "n_components must be a whole number from 1 to 3"),
        (lambda: RidgeDPP(np.eye(4), 2, inference="svd"), "inference must be 'eigen' or 'em'"),
        (lambda: RidgeDPP(np.eye(4), 2).sample(-1), "n_samples must be an integer of at least 0 or None"),
        (lambda: RidgeDPP(np.eye(4), 2).log_prob([7]), "Y must hold items from 0 to 3"),
        (lambda: ridge_by_em(np.eye(4), 2, max_iter=0), "max_iter must be an integer of at least 1"),
        (lambda: approximation_error(np.eye(3), RidgeDPP(np.eye(4), 2)), "approximation must be over 3 items"),
    ],
)  # fmt: skip
def test_bad_input_is_told_in_a_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()
