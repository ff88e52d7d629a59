"""The compiled chain over subsets: its transition matrix by exhaustion, its cached inverse, all forms of kernels."""

from itertools import combinations

import numpy as np
import pytest

from pluri.processes.dpp.kernel_forms import DenseKernel, FeatureKernel, FunctionKernel
from pluri.processes.dpp.samplers import _inverse_kernels
from pluri.processes.dpp.samplers.chain_walk import (
    MOVES,
    RULES,
    Records,
    Steps,
    advance,
    as_kernel_form,
    run_walk,
    start_walk,
    target_of,
    transition_matrix,
)


def random_features(n_items, n_features, seed=0, scale=0.7):
    return scale * np.random.default_rng(seed).normal(size=(n_items, n_features))


def random_kernel(n_items, seed=0, scale=0.7):
    features = random_features(n_items, n_items, seed, scale)
    return features @ features.T


def law(kernel, subsets):
    weights = np.array([np.linalg.det(kernel[np.ix_(subset, subset)]) if subset else 1.0 for subset in subsets])
    return weights / weights.sum()


def all_subsets(n_items):
    return [subset for size in range(n_items + 1) for subset in combinations(range(n_items), size)]


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("moves", ["flip", "flip or swap"])
def test_steps_leave_the_law_invariant_and_are_reversible(moves, rule, lazy):
    for n_items, seed in ((4, 0), (5, 1)):
        kernel, subsets = random_kernel(n_items, seed), all_subsets(n_items)
        transition = transition_matrix(target_of(kernel), Steps(moves, rule, lazy), subsets)
        probabilities = law(kernel, subsets)
        flow = probabilities[:, None] * transition
        assert np.allclose(transition.sum(axis=1), 1.0, atol=1e-12)
        assert np.abs(probabilities @ transition - probabilities).max() < 1e-12
        assert np.abs(flow - flow.T).max() < 1e-12
        assert (np.linalg.matrix_power(transition, 64) > 0).all()  # every set can be reached


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("size", [1, 3, 5])
def test_exchanges_leave_the_law_of_fixed_size_invariant_and_are_reversible(size, rule):
    kernel, subsets = random_kernel(6, 2), list(combinations(range(6), size))
    transition = transition_matrix(target_of(kernel), Steps("swap", rule), subsets)
    probabilities = law(kernel, subsets)
    flow = probabilities[:, None] * transition
    assert np.abs(probabilities @ transition - probabilities).max() < 1e-12
    assert np.abs(flow - flow.T).max() < 1e-12
    assert (np.linalg.matrix_power(transition, 64) > 0).all()


def test_acceptance_is_the_ratio_of_determinants():
    kernel = random_kernel(5, 3)
    target, start = target_of(kernel), (0, 2, 3)
    before = np.linalg.det(kernel[np.ix_(start, start)])
    cases = [("flip", 0.0, 1, (0, 1, 2, 3)), ("flip", 0.0, 2, (0, 3)), ("swap", 0.5, 4, (0, 3, 4))]
    for moves, choice, item, end in cases:
        ratio = np.linalg.det(kernel[np.ix_(end, end)]) / before
        for rule, expected in (("metropolis", min(1.0, ratio)), ("heat_bath", ratio / (1 + ratio))):
            walk = start_walk(target, start)
            advance(target, walk, Steps(moves, rule), np.array([[(item + 0.5) / 5, 0.0, choice]]))
            assert walk.subset.tolist() == list(end)
            assert walk.summed_acceptance == pytest.approx(expected, abs=1e-12)


def test_zero_one_kernels_are_never_left():
    """A diagonal kernel with an impossible item: it is not proposed, and the others are independent."""
    target = target_of(np.diag([1.0, 0.0, 3.0]))
    assert target.candidates.tolist() == [0, 2]
    subsets = [(), (0,), (2,), (0, 2)]
    transition = transition_matrix(target, Steps(), subsets)
    assert np.abs(np.array([1, 1, 3, 3]) / 8 @ transition - np.array([1, 1, 3, 3]) / 8).max() < 1e-15


@pytest.mark.parametrize("moves", MOVES)
def test_the_cached_inverse_is_the_inverse_after_many_moves(moves):
    kernel = random_kernel(30, 4)
    target, rng = target_of(kernel), np.random.default_rng(0)
    walk = start_walk(target, [0, 5, 9])
    for _ in range(5):
        run_walk(target, walk, Steps(moves, "metropolis"), 1500, rng)
        items = walk.items[: walk.size]
        block = kernel[np.ix_(items, items)]
        assert np.abs(walk.inverse[: walk.size, : walk.size] @ block - np.eye(walk.size)).max() < 1e-8
        assert walk.log_det == pytest.approx(np.linalg.slogdet(block)[1], abs=1e-8)
        assert (walk.place[items] == np.arange(walk.size)).all()
        assert (walk.place >= 0).sum() == walk.size
        assert walk.n_accepted > 300


def test_an_inverse_that_has_drifted_is_made_afresh():
    kernel = random_kernel(12, 5)
    target, rng = target_of(kernel), np.random.default_rng(0)
    walk = start_walk(target, [0, 3, 7, 8])
    walk.inverse[:4, :4] *= 1.0 + 1e-3
    run_walk(target, walk, Steps(), 400, rng)
    items = walk.items[: walk.size]
    assert (
        np.abs(walk.inverse[: walk.size, : walk.size] @ kernel[np.ix_(items, items)] - np.eye(walk.size)).max() < 1e-8
    )


def test_the_compiled_inverse_equals_that_of_lapack():
    kernel = random_kernel(9, 6)
    inverse, factor, column = np.zeros((12, 12)), np.zeros((12, 12)), np.zeros(12)
    items = np.array([4, 1, 7, 2, 0, 0], dtype=np.int64)
    log_det = _inverse_kernels.invert(kernel, False, np.diagonal(kernel).copy(), items, 4, inverse, factor, column)
    block = kernel[np.ix_(items[:4], items[:4])]
    assert np.allclose(inverse[:4, :4], np.linalg.inv(block), atol=1e-10)
    assert log_det == pytest.approx(np.linalg.slogdet(block)[1])


@pytest.mark.parametrize("moves", MOVES)
def test_every_form_of_a_kernel_walks_the_same_way(moves):
    from scipy import sparse

    features = random_features(40, 12, 7)
    forms = [
        DenseKernel(features @ features.T),
        FeatureKernel(features),
        FeatureKernel(sparse.csr_array(features)),
        FunctionKernel(lambda a, b: a @ b.T, features),
    ]
    walks = []
    for form in forms:
        target = target_of(form)
        walk, records = start_walk(target, [1, 2], np.arange(40.0)), Records.empty(200, with_items=True)
        run_walk(target, walk, Steps(moves), 1000, np.random.default_rng(0), 5, records)
        walks.append((records.subsets(), records.log_dets, records.mark_sums))
    for subsets, log_dets, marks in walks[1:]:
        assert len(subsets) == 200
        assert all(np.array_equal(a, b) for a, b in zip(subsets, walks[0][0], strict=True))
        assert np.allclose(log_dets, walks[0][1], atol=1e-8)
        assert np.allclose(marks, [subset.sum() for subset in subsets])


def test_records_tell_size_and_determinant_of_each_subset():
    kernel = random_kernel(20, 8)
    target, records = target_of(kernel), Records.empty(50, with_items=True, expected_size=1)
    run_walk(target, start_walk(target, []), Steps(), 400, np.random.default_rng(0), 8, records)
    for subset, size, log_det in zip(records.subsets(), records.sizes, records.log_dets, strict=True):
        assert len(subset) == size
        assert log_det == pytest.approx(np.linalg.slogdet(kernel[np.ix_(subset, subset)])[1], abs=1e-8)


def test_steps_do_not_depend_on_how_they_are_cut():
    target = target_of(random_kernel(15, 9))
    uniforms = np.random.default_rng(0).random((300, 3))
    whole, parts = start_walk(target, []), start_walk(target, [])
    advance(target, whole, Steps(), uniforms)
    for part in np.array_split(uniforms, 7):
        advance(target, parts, Steps(), part)
    assert np.array_equal(whole.subset, parts.subset)


def test_copies_of_an_item_are_never_together():
    features = random_features(6, 4, 10)
    features = np.vstack([features, features])
    for form in (FeatureKernel(features), DenseKernel(features @ features.T)):
        for moves, start in (("flip", []), ("swap", [0, 1, 2]), ("flip or swap", [])):
            target, records = target_of(form), Records.empty(4000, with_items=True)
            run_walk(target, start_walk(target, start), Steps(moves), 4000, np.random.default_rng(0), 1, records)
            assert all(len(np.unique(subset % 6)) == len(subset) <= 4 for subset in records.subsets())


def test_metropolis_near_the_identity_never_forgets_parity():
    """The trap: every flip is accepted, so that the size is even exactly at even steps. The heat bath has none."""
    target = target_of(np.eye(6))

    def parities(steps):
        records = Records.empty(400)
        run_walk(target, start_walk(target, []), steps, 400, np.random.default_rng(0), 1, records)
        return records.sizes % 2

    assert (parities(Steps("flip", "metropolis")) == np.arange(1, 401) % 2).all()
    for steps in (Steps("flip", "heat_bath"), Steps("flip", "metropolis", lazy=True)):
        agreement = (parities(steps) == np.arange(1, 401) % 2).mean()
        assert 0.35 < agreement < 0.65  # false alarms: below 1e-8


def test_a_start_of_determinant_zero_is_refused():
    with pytest.raises(ValueError, match="positive determinant"):
        start_walk(target_of(np.ones((3, 3))), [0, 1])


def test_bad_kernels_are_refused():
    for kernel, words in (
        (np.array([[1.0, np.nan], [np.nan, 1.0]]), "finite"),
        (np.ones((2, 3)), "square"),
        (-np.eye(2), "positive semi-definite"),
        (DenseKernel, "kernel must be"),
        (FunctionKernel(lambda a, b: np.full((len(a), len(b)), np.nan), np.zeros((3, 1))), "finite"),
    ):
        with pytest.raises(ValueError, match=words):
            target_of(kernel)
    form = DenseKernel(np.eye(2))
    assert as_kernel_form(form) is form
