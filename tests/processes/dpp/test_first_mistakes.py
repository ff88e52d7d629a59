"""Input that once gave a wrong answer, a raw error or no end: each against enumeration or the same in other units."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from pluri.priors.kernels import RBFKernel, repair_kernel
from pluri.processes.dpp import (
    DPP,
    KDPP,
    Box,
    ContinuousDPP,
    DenseKernel,
    FeatureKernel,
    FunctionKernel,
    NystromDPP,
    PointGibbs,
    StructuredDPP,
    TimeVaryingDPP,
    greedy_map,
    relaxed_map,
)
from pluri.processes.dpp.learning import ConditionalDPP, DPPKernelLearner, DPPVariableSelection
from pluri.processes.dpp.spectrum import spectrum_of_kernel


def closeness(scale):
    return lambda a, b: np.exp(-scale * (a - b.T) ** 2)


def enumerated(features, quality):
    """Log volumes of all subsets, qualities taken out of the determinants: nothing is lost however far they span."""
    logs = {}
    for size in range(features.shape[1] + 1):
        for items in combinations(range(len(features)), size):
            rows = features[list(items)]
            logs[items] = 2 * np.log(quality[list(items)]).sum() + np.linalg.slogdet(rows @ rows.T)[1]
    return logs


@pytest.mark.parametrize("span", [1, 9, 60, 100])
@pytest.mark.parametrize("rank", [4, 6])
def test_qualities_of_any_span_keep_their_digits(span, rank):
    rng = np.random.default_rng(span)
    features, quality = rng.normal(size=(6, rank)), 10.0 ** rng.uniform(-span, span, size=6)
    logs = enumerated(features, quality)
    values = np.array(list(logs.values()))
    total = np.logaddexp.reduce(values)
    inclusion = [sum(np.exp(v - total) for items, v in logs.items() if i in items) for i in range(6)]
    of_size = [v for items, v in logs.items() if len(items) == 3]
    for given in ({"L": features @ features.T}, {"features": features}):
        process = DPP(**given, quality=quality)
        assert process.log_normalizer == pytest.approx(total, rel=1e-12)
        np.testing.assert_allclose(process.inclusion_probabilities(), inclusion, rtol=1e-9, atol=1e-290)
        assert KDPP(**given, size=3, quality=quality).log_normalizer == pytest.approx(np.logaddexp.reduce(of_size))


def test_short_items_that_are_rounding_do_not_make_a_kernel_indefinite():
    kernel = np.array([[1.0, 1e-9, 0.3], [1e-9, 1e-20, 0.0], [0.3, 0.0, 1.0]])  # off by 1e-18: within the rounding
    np.testing.assert_allclose(spectrum_of_kernel(kernel).odds[:2], [1.3, 0.7])


def test_rare_subsets_of_a_process_with_certain_directions_have_a_probability():
    assert DPP(K=np.diag([1.0, 1e-4])).log_prob([0, 1]) == pytest.approx(np.log(1e-4))
    rng = np.random.default_rng(0)
    vectors = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    process = DPP(K=(vectors * [1.0, 1.0, 1e-5, 1e-3, 0.5, 0.0]) @ vectors.T)
    subsets = [items for size in range(7) for items in combinations(range(6), size)]
    logs = np.array([process.log_prob(items) for items in subsets])
    assert np.exp(logs).sum() == pytest.approx(1.0)
    assert (logs[[len(items) < 2 or len(items) > 5 for items in subsets]] == -np.inf).all()
    largest = [log for items, log in zip(subsets, logs) if len(items) == 5]
    assert np.exp(largest).sum() == pytest.approx(0.5e-8, rel=1e-6)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: DPP(np.eye(2) * 1e307), "L must have entries of at most"),
        (lambda: DPP(np.eye(2), quality=[1e200, 1.0]), "L times quality must be finite"),
        (lambda: DPP(features=np.eye(2) * 1e200), "their products stay finite"),
        (lambda: DPP(features=np.eye(2), quality=[1e200, 1.0]), "their products stay finite"),
        (lambda: DPP(DenseKernel(np.array([[1.0, np.nan], [np.nan, 1.0]]))), "L must be finite"),
        (lambda: DPP(FeatureKernel(np.array([[np.nan]]))), "must be finite"),
        (lambda: DPP(FunctionKernel(lambda a, b: np.full((len(a), len(b)), np.nan), np.zeros((3, 1)))).sample(),
         "must be finite"),
        (lambda: DPP(FunctionKernel(lambda a, b: a + 0 * b.T, np.arange(3.0)[:, None])).sample(), "must be symmetric"),
        (lambda: KDPP(np.eye(3) * 1e-200, 2).sample(method="mcmc"), "the distribution of a fixed size does not change"),
        (lambda: DPP(np.eye(2)).condition([True, False], [True, False]), r"got \[0\] in both"),
        (lambda: DPP(features=np.ones((30_000, 1))).complement(), "too large to be written out"),
        (lambda: DPP(features=np.ones((30_000, 1))).sample(method="sequential"), "too large to be written out"),
        (lambda: DPP(features=np.ones((30_000, 1))).restrict(range(25_000)), "items must be at most 20000"),
        (lambda: relaxed_map(FeatureKernel(np.ones((30_000, 1)))), "at most 20000 items for the relaxation"),
        (lambda: DPP.from_kernel(np.zeros((20_001, 1)), length_scale=1.0, expected_size=2),
         "expected_size needs the eigenvalues"),
        (lambda: DPP.from_kernel(np.zeros((20_003, 1)), length_scale=1.0).condition(include=[0]),
         "include must be empty"),
    ],
)  # fmt: skip
def test_what_cannot_be_worked_with_gets_a_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()


@pytest.mark.parametrize(("scale", "size"), [(50.0, 45), (1.0, 20)])
def test_more_items_than_differ_are_refused_and_not_waited_for(scale, size):
    kernel = FunctionKernel(closeness(scale), np.linspace(0.0, 1.0, 2000)[:, None])
    with pytest.raises(ValueError, match="differ to working precision"):
        KDPP(kernel, size).sample(method="intermediate", random_state=0)


def test_items_of_low_quality_can_still_be_drawn_when_many_are_wanted():
    # 20 good items explain nothing of 20 others whose L_ii is 1e-12 of theirs: 25 of 40 is possible, and exact.
    kernel = FunctionKernel(closeness(4.0), np.arange(40.0)[:, None], np.repeat([1.0, 1e-6], 20))
    (subset,) = KDPP(kernel, 25).sample(1, method="intermediate", random_state=0)
    assert subset.size == 25
    assert (subset < 20).sum() == 20


def test_kernel_objects_hold_any_numbers():
    rng = np.random.default_rng(0)
    matrix, rows = np.array([[2, 1], [1, 2]]), rng.normal(size=(5, 2)).astype(np.float32)
    for method in ("spectral", "sequential", "intermediate", "mcmc"):
        for form in (DenseKernel(matrix), DenseKernel(matrix.tolist())):
            assert isinstance(DPP(form).sample(random_state=0, method=method), np.ndarray)
    np.testing.assert_array_equal(
        DPP(FeatureKernel(rows)).inclusion_probabilities(), DPP(features=rows).inclusion_probabilities()
    )


def test_a_kernel_object_of_the_user_is_enough():
    class Own:
        n_items = 3

        def diagonal(self):
            return np.full(3, 2.0)

        def rows(self, indices):
            return 2 * np.eye(3)[np.asarray(indices)]

        def block(self, rows, columns):
            return 2 * np.eye(3)[np.ix_(np.asarray(rows, int), np.asarray(columns, int))]

    process = DPP(Own())
    np.testing.assert_allclose(process.inclusion_probabilities(), 2 / 3)
    for method in ("spectral", "sequential", "intermediate", "mcmc"):
        assert set(process.sample(random_state=0, method=method)) <= {0, 1, 2}


@pytest.mark.parametrize("given", [{"L": np.diag([1.0, 2.0, 3.0])}, {"features": np.eye(3)}])
@pytest.mark.parametrize("method", ["spectral", "sequential", "intermediate", "mcmc"])
def test_nothing_left_to_draw_is_no_error(given, method):
    process = DPP(**given)
    assert process.condition(exclude=[0, 1, 2]).sample(random_state=0, method=method).size == 0
    assert process.condition(include=[0, 1, 2]).sample(2, random_state=0, method=method)[1].tolist() == [0, 1, 2]
    assert process.condition(include=[0, 1, 2]).map().tolist() == [0, 1, 2]
    assert process.condition(include=[0, 1, 2]).complement().sample(random_state=0).size == 0


def test_a_copy_of_an_item_that_is_in_stays_out_however_large_the_kernel():
    kernel = np.array([[1e20, 1e20, 0.0], [1e20, 1e20, 0.0], [0.0, 0.0, 1.0]])
    np.testing.assert_allclose(DPP(kernel).condition(include=[0]).inclusion_probabilities(), [1.0, 0.0, 0.5])


def test_the_kernel_that_is_shown_cannot_be_written_to():
    process = DPP(np.eye(3))
    with pytest.raises(ValueError, match="read-only"):
        process.L[0, 0] = 5.0


@pytest.mark.parametrize("n_given", [1, 2, 3])
def test_features_given_items_equal_the_schur_complement(n_given):
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(7, 3))
    given = list(range(n_given))
    inclusion = DPP(features=rows).condition(include=given, exclude=[6]).inclusion_probabilities()
    np.testing.assert_allclose(
        inclusion, DPP(rows @ rows.T).condition(include=given, exclude=[6]).inclusion_probabilities(), atol=1e-10
    )


def test_the_exclusion_of_many_items_goes_over_the_eigenvectors():
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(9, 3))
    process, items = DPP(features=rows), [0, 1, 2, 4, 5, 7]
    rest = np.delete(rows, items, axis=0)
    expected = np.linalg.det(np.eye(3) + rest @ rest.T) / np.linalg.det(np.eye(9) + rows @ rows.T)
    assert process.exclusion_probability(items) == pytest.approx(expected)


def test_items_may_be_excluded_from_a_kernel_too_large_to_write_out():
    points = np.linspace(0.0, 20.0, 20_010)[:, None]
    process = DPP.from_kernel(points, length_scale=1.0, quality=np.full(20_010, 0.03)).condition(exclude=[3, 5])
    subset = process.sample(random_state=0)
    assert subset.size
    assert not np.isin([3, 5], subset).any()


def test_a_target_size_that_fails_leaves_the_features_as_they_were():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(6, 4))
    model = TimeVaryingDPP(20, expected_size=3, random_state=0)
    model.update(list("abcdef"), rows)
    with pytest.raises(ValueError, match="expected_size"):
        model.update(list("abcde"), np.ones((5, 4)))
    new = rng.normal(size=4)
    model.update(["f"], new[None])
    rows[5] = new
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    expected = DPP(features=unit).with_expected_size(3).inclusion_probabilities()
    np.testing.assert_allclose(model.inclusion_probabilities(exact=True), expected, atol=1e-8)


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_learned_coefficients_do_not_depend_on_the_units_of_the_features(unit):
    rng = np.random.default_rng(0)
    features = rng.normal(size=(8, 2))
    similarity = np.exp(-((features[:, None] - features) ** 2).sum(axis=-1))
    subsets = [[1], [2, 3], [0, 4, 5], [6], []]
    model = ConditionalDPP(alpha=0.0).fit((features, similarity), subsets)
    other = ConditionalDPP(alpha=0.0).fit((features * unit, similarity), subsets)
    np.testing.assert_allclose(other.coef_ * unit, model.coef_, rtol=1e-6)
    assert other.log_likelihood_ == pytest.approx(model.log_likelihood_, abs=1e-9)


def test_variables_are_selected_in_any_units():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4))
    settings = {"n_draws": 60, "n_warmup": 20, "n_chains": 2, "random_state": 0}
    plain = DPPVariableSelection(**settings).fit(X, X[:, 0])
    other = DPPVariableSelection(**settings).fit(X * [1e-8, 1.0, 1e8, 1.0], X[:, 0] * 1e10)
    np.testing.assert_allclose(other.inclusion_, plain.inclusion_)
    np.testing.assert_allclose(other.coef_[0], plain.coef_[0] * 1e18)
    constant = np.column_stack([X, np.full(30, 1e9 + 0.1)])
    assert DPPVariableSelection(**settings).fit(constant, X[:, 0]).inclusion_[4] == 0


def test_a_point_that_will_never_be_accepted_is_not_waited_for():
    chain = PointGibbs(closeness(10.0), Box([0.0], [1.0]), bound=1e12, max_proposals=10**8)
    with pytest.raises(RuntimeError, match="bound is far too large"):
        chain.draw_start(np.random.default_rng(0), 1)


def test_landmarks_that_lose_most_of_the_kernel_are_told_of(monkeypatch):
    monkeypatch.setattr("pluri.processes.dpp.continuous.process.MOST_LANDMARKS", 400)  # 1600 lose most, too, in a while
    with pytest.warns(UserWarning, match="of the trace of the kernel"):
        ContinuousDPP(Box([0.0], [1.0]), length_scale=1e-6)


def test_structures_with_features_that_overflow_are_refused():
    with pytest.raises(ValueError, match="node_features must be at most"):
        StructuredDPP(np.full((2, 2, 1), 1e160))


def test_a_kernel_of_single_precision_is_taken():
    X = np.random.default_rng(0).normal(size=(60, 10)).astype(np.float32)
    single, double = DPP(X @ X.T), DPP(features=X)
    np.testing.assert_allclose(single.inclusion_probabilities(), double.inclusion_probabilities(), atol=1e-4)
    with pytest.raises(ValueError, match="must be symmetric"):
        DPP(X[:10, :10])


def test_distances_are_not_taken_for_similarities():
    points = np.random.default_rng(0).normal(size=(8, 2))
    distances = np.linalg.norm(points[:, None] - points, axis=-1)
    for refuse in (DPP, repair_kernel):
        with pytest.raises(ValueError, match="must hold similarities, got a diagonal of zeros, as distances have"):
            refuse(distances)


def test_small_negative_eigenvalues_point_to_the_repair():
    rounded = np.exp(-0.5 * np.subtract.outer(np.arange(30), np.arange(30)) ** 2 / 100.0).round(3)
    with pytest.raises(ValueError, match="repair_kernel mends it"):
        DPP(rounded)
    assert DPP(repair_kernel(rounded)).rank > 3


def test_searches_refuse_a_conditioned_process():
    process = DPP(np.eye(5) + 0.1).condition(include=[3], exclude=[0])
    with pytest.raises(ValueError, match="must be a process that is not conditioned"):
        greedy_map(process, 2)
    assert greedy_map(DPP(2 * np.eye(5)), 2).items.size == 2


def test_lazy_search_works_with_a_kernel_function():
    X = np.random.default_rng(0).normal(size=(300, 3))
    kernel = FunctionKernel(RBFKernel(1.0), X)
    assert greedy_map(kernel, 5, lazy=True).items.tolist() == greedy_map(kernel, 5).items.tolist()


def test_an_approximation_can_be_made_from_rows():
    X = np.random.default_rng(0).normal(size=(200, 2))
    process = NystromDPP.from_kernel(X, "rbf", n_landmarks=60, length_scale=1.0)
    assert isinstance(process, NystromDPP)
    exact = DPP.from_kernel(X, "rbf", length_scale=1.0)
    assert process.expected_size == pytest.approx(exact.expected_size, rel=0.05)


@pytest.mark.parametrize("form", [np.asarray, pd.DataFrame, sparse.csr_array, lambda table: table.astype(float)])
def test_tables_of_baskets_are_taken(form):
    table = (np.random.default_rng(0).random((50, 4)) < 0.4).astype(int)
    learned = DPPKernelLearner("quality").fit(form(table))
    np.testing.assert_allclose(learned.L_, DPPKernelLearner("quality").fit(table.astype(bool)).L_)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: DPP(sparse.csr_array(np.eye(3))), "L must be a dense matrix, got a sparse one"),
        (lambda: DPP("kernel"), "L must hold numbers only"),
        (lambda: DPP(features=[["a", "b"]]), "features must hold numbers only"),
        (lambda: KDPP(np.eye(4), size="two"), "size must be a whole number from 0 to 4, got 'two'"),
        (lambda: DPP(np.eye(3)).sample("three"), "n_samples must be an integer of at least 0 or None, got 'three'"),
        (lambda: DPP(np.eye(3) + 0j), "L must be real, got complex numbers"),
        (lambda: DPP(np.eye(3)).log_prob([[0], [0, 1]]), "Y must be one list of items or one mask"),
        (lambda: DPP(np.eye(3)).with_expected_size("2"), "expected_size must be above 0 and below the rank"),
        (
            lambda: DPP(np.eye(9)).condition(include=[0, 1, 2]).with_expected_size(2),
            r"above 3 and below the rank of the kernel and the 3 fixed items \(9\), got 2",
        ),
    ],
)
def test_more_mistakes_get_a_sentence(make, message):
    with pytest.raises(ValueError, match=message):
        make()
