"""Set functions: their gains are differences of their values, and gains diminish where it is said that they do."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from pluri.decisions import (
    ConicSum,
    Coverage,
    FacilityLocation,
    FeatureCoverage,
    FunctionOfSets,
    GaussianBlockInformation,
    GaussianEntropy,
    GaussianMutualInformation,
    GraphCut,
    InformationGain,
    LogDeterminant,
    VarianceReduction,
    check_submodular,
)

N_ITEMS = 7


def covariance(rng, n=N_ITEMS, noise=0.1):
    places = rng.uniform(0, 4, (n, 2))
    squared = ((places[:, None] - places) ** 2).sum(axis=2)
    return np.exp(-0.5 * squared) + noise * np.eye(n)


def similarity(rng, n=N_ITEMS):
    half = rng.random((n, n))
    return (half + half.T) / 2.0


def sparse_similarity(rng):
    full = similarity(rng)
    return sparse.csr_matrix(np.where(full > 0.5, full, 0.0))


FUNCTIONS = {
    "coverage": lambda rng: Coverage(rng.random((N_ITEMS, 12)) < 0.3, weights=rng.random(12)),
    "features": lambda rng: FeatureCoverage(rng.random((N_ITEMS, 5))),
    "features, sparse": lambda rng: FeatureCoverage(
        sparse.random(N_ITEMS, 9, 0.4, random_state=1, format="csr"), "log"
    ),
    "features, saturated": lambda rng: FeatureCoverage(rng.random((N_ITEMS, 5)), "saturated", weights=rng.random(5)),
    "facility location": lambda rng: FacilityLocation(rng.normal(size=(N_ITEMS, 9)), weights=rng.random(9)),
    "facility location, sparse": lambda rng: FacilityLocation(sparse_similarity(rng)),
    "graph cut": lambda rng: GraphCut(similarity(rng)),
    "cut": lambda rng: GraphCut(sparse_similarity(rng), redundancy=1.0),
    "log determinant": lambda rng: LogDeterminant(covariance(rng)),
    "log determinant, raised": lambda rng: LogDeterminant(covariance(rng), jitter=1.0),
    "entropy": lambda rng: GaussianEntropy(covariance(rng)),
    "information gain": lambda rng: InformationGain(covariance(rng), noise_variance=0.3),
    "mutual information": lambda rng: GaussianMutualInformation(covariance(rng)),
    "blocks": lambda rng: GaussianBlockInformation(covariance(rng, 17), np.r_[np.repeat(range(N_ITEMS), 2), -1, 0, -1]),
    "blocks that overlap": lambda rng: GaussianBlockInformation(
        covariance(rng, 15), [rng.choice(15, size=3, replace=False) for _ in range(N_ITEMS)]
    ),
    "variance": lambda rng: VarianceReduction(covariance(rng), noise_variance=0.2),
    "variance, no noise": lambda rng: VarianceReduction(covariance(rng, noise=0.01)),
    "sum": lambda rng: 0.5 * FacilityLocation(similarity(rng)) + 2.0 * GaussianMutualInformation(covariance(rng)),
    "callable": lambda rng: FunctionOfSets(lambda items: len(items) ** 0.5 - 0.1 * len(items), N_ITEMS),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gains_are_differences_of_values_to_ten_digits(name):
    rng = np.random.default_rng(3)
    function = FUNCTIONS[name](rng)
    state = function.start()
    chosen: list[int] = []
    for item in rng.permutation(function.n_items):
        assert_allclose(state.value, function.value(chosen), rtol=1e-10, atol=1e-10)
        expected = [
            0.0 if i in chosen else function.value([*chosen, i]) - function.value(chosen) for i in range(N_ITEMS)
        ]
        assert_allclose(function.gains(state), expected, rtol=1e-10, atol=1e-10)
        assert_allclose(function.gain(int(item), state), expected[item], rtol=1e-10, atol=1e-10)
        function.add(int(item), state)
        chosen.append(int(item))


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("seed", range(3))
def test_gains_diminish_and_values_rise_where_that_is_said(name, seed):
    function = FUNCTIONS[name](np.random.default_rng(seed))
    report = check_submodular(function)
    assert report.exhaustive
    assert report.submodular or not function.submodular
    assert report.monotone or not function.monotone


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_last_gains_are_those_beside_all_others(name):
    function = FUNCTIONS[name](np.random.default_rng(5))
    whole = function.value(range(N_ITEMS))
    expected = [whole - function.value([j for j in range(N_ITEMS) if j != i]) for i in (4, 1)]
    assert_allclose(function.last_gains([4, 1]), expected, rtol=1e-9, atol=1e-10)


def test_variance_reduction_is_not_submodular_where_one_place_explains_another():
    # A large signal, a disturbance, and their sum: the sum tells far more of the signal beside the disturbance.
    factor = np.array([[10.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    report = check_submodular(VarianceReduction(factor @ factor.T))
    assert not report.submodular
    assert report.monotone


def test_mutual_information_is_symmetric_and_nothing_at_both_ends():
    rng = np.random.default_rng(0)
    function = GaussianMutualInformation(covariance(rng))
    for _ in range(10):
        inside = rng.random(N_ITEMS) < 0.5
        assert_allclose(function.value(np.flatnonzero(inside)), function.value(np.flatnonzero(~inside)), atol=1e-10)
    assert function.value([]) == 0.0
    assert abs(function.start(range(N_ITEMS)).value) < 1e-10


def test_the_majorant_of_mutual_information_is_monotone_and_nowhere_below_it():
    function = GaussianMutualInformation(covariance(np.random.default_rng(1)))
    larger = function.majorant()
    report = check_submodular(larger)
    assert report.submodular
    assert report.monotone
    for number in range(2**N_ITEMS):
        items = [i for i in range(N_ITEMS) if number >> i & 1]
        assert larger.value(items) >= function.value(items) - 1e-12


def test_a_convex_function_is_found_out():
    report = check_submodular(lambda items: len(items) ** 2, 5)
    assert (report.submodular, report.monotone) == (False, True)
    assert report.excess == pytest.approx(2.0)
    many = check_submodular(lambda items: len(items) ** 2, 40, n_pairs=20)
    assert not many.submodular
    assert not many.exhaustive
    assert many.n_checked == 20


def test_sparse_similarities_are_those_written_out():
    matrix = sparse_similarity(np.random.default_rng(2))
    thin, full = FacilityLocation(matrix), FacilityLocation(matrix.toarray())
    assert_allclose(thin.gains(thin.start([2, 5])), full.gains(full.start([2, 5])))
    assert thin.value([1, 3]) == pytest.approx(full.value([1, 3]))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: FacilityLocation([[1.0, np.nan]]), "similarity contains NaN"),
        (lambda: FacilityLocation(np.zeros((0, 3))), "0 sample"),
        (lambda: FacilityLocation(np.eye(2), weights=[1.0, -1.0]), "weights must be a finite non-negative number"),
        (lambda: GraphCut(np.ones((2, 3))), "similarity must be square"),
        (lambda: GraphCut([[0.0, 1.0], [0.5, 0.0]]), "similarity must be symmetric"),
        (lambda: GraphCut([[0.0, -1.0], [-1.0, 0.0]]), "similarity must be non-negative"),
        (lambda: GraphCut(np.eye(2), redundancy=-1.0), "redundancy must be a number of at least 0"),
        (lambda: Coverage([]), "membership must have at least one set"),
        (lambda: Coverage([{1}, {"a"}]), "elements must be of one kind"),
        (lambda: FeatureCoverage([[-1.0]]), "features must be non-negative"),
        (lambda: FeatureCoverage([[1.0]], "square"), "concave must be one of"),
        (lambda: LogDeterminant(np.ones((2, 3))), "covariance must be a square matrix"),
        (lambda: LogDeterminant([[1.0, 2.0], [2.0, 1.0]]), "positive semi-definite"),
        (lambda: LogDeterminant([[1.0, 0.0], [0.5, 1.0]]), "covariance must be symmetric"),
        (lambda: LogDeterminant([[np.nan]]), "covariance must be finite"),
        (lambda: GaussianMutualInformation(np.ones((2, 2))), "positive definite"),
        (lambda: InformationGain([[1.0]], noise_variance=0.0), "noise_variance must be a positive number"),
        (lambda: ConicSum([]), "terms must have at least one"),
        (lambda: Coverage(np.eye(2)) + Coverage(np.eye(3)), "functions of the same items"),
        (lambda: -1.0 * Coverage(np.eye(2)), "weight of a set function must be a positive number"),
        (lambda: Coverage(np.eye(2)).value([0, 0]), "items must be distinct"),
        (lambda: Coverage(np.eye(2)).value([5]), "from 0 to 1"),
        (lambda: FunctionOfSets(lambda items: np.nan, 3).value([0]), "function must give a number"),
        (lambda: check_submodular(len), "n_items must be given"),
    ],
)
def test_mistakes_get_a_sentence(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()
