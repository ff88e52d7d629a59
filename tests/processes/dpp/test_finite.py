"""Closed forms of determinantal point processes against sums over all subsets."""

import itertools

import numpy as np
import pytest
from scipy import sparse

from pluri.processes.dpp import DPP, KDPP

RNG = np.random.default_rng(20)
FEATURES = RNG.normal(size=(6, 4))
FULL = 0.5 * FEATURES @ FEATURES.T + 0.3 * np.eye(6)
FRAME, _ = np.linalg.qr(RNG.normal(size=(6, 6)))
#: Two directions always taken, one never.
MARGINAL = (FRAME * [1.0, 1.0, 0.7, 0.4, 0.1, 0.0]) @ FRAME.T


def subsets(n):
    for size in range(n + 1):
        yield from itertools.combinations(range(n), size)


def law_of_kernel(L):
    weights = {s: np.linalg.det(L[np.ix_(s, s)]) if s else 1.0 for s in subsets(len(L))}
    total = sum(weights.values())
    return {s: weight / total for s, weight in weights.items()}


def law_of_marginal(K):
    """Inclusion-exclusion: P(Y) is an alternating sum of det(K_A) over the A that hold Y."""
    n = len(K)
    inside = {s: np.linalg.det(K[np.ix_(s, s)]) if s else 1.0 for s in subsets(n)}
    return {
        y: sum((-1) ** (len(a) - len(y)) * value for a, value in inside.items() if set(y) <= set(a)) for y in inside
    }


PROCESSES = {
    "matrix": (lambda: DPP(FULL), law_of_kernel(FULL)),
    "low rank matrix": (lambda: DPP(FEATURES @ FEATURES.T), law_of_kernel(FEATURES @ FEATURES.T)),
    "features": (lambda: DPP(features=FEATURES), law_of_kernel(FEATURES @ FEATURES.T)),
    "sparse features": (lambda: DPP(features=sparse.csr_array(FEATURES)), law_of_kernel(FEATURES @ FEATURES.T)),
    "wide features": (lambda: DPP(features=FEATURES[:3]), law_of_kernel(FEATURES[:3] @ FEATURES[:3].T)),
    "marginal": (lambda: DPP(K=DPP(FULL).K), law_of_kernel(FULL)),
    "marginal with certain directions": (lambda: DPP(K=MARGINAL), law_of_marginal(MARGINAL)),
    "quality": (
        lambda: DPP(FULL, quality=np.arange(1, 7)),
        law_of_kernel(FULL * np.outer(np.arange(1, 7), np.arange(1, 7))),
    ),
}


@pytest.fixture(params=PROCESSES)
def case(request):
    make, law = PROCESSES[request.param]
    return make(), law


def assert_law(process, law, atol=1e-11):
    found = {s: np.exp(process.log_prob(s)) for s in subsets(process.n_items)}
    assert sum(found.values()) == pytest.approx(1.0, abs=1e-10)
    np.testing.assert_allclose([found[s] for s in found], [law.get(s, 0.0) for s in found], atol=atol)


def given(law, include=(), exclude=()):
    kept = {s: p for s, p in law.items() if set(include) <= set(s) and not set(exclude) & set(s)}
    total = sum(kept.values())
    return {s: p / total for s, p in kept.items()}


def test_the_known_answer_for_two_items():
    process = DPP([[2, 1], [1, 2]])
    assert np.exp([process.log_prob(s) for s in ([], [0], [1], [0, 1])]) == pytest.approx([1 / 8, 2 / 8, 2 / 8, 3 / 8])
    np.testing.assert_allclose(process.K, np.array([[5, 1], [1, 5]]) / 8)
    assert process.log_normalizer == pytest.approx(np.log(8))


def test_probabilities_equal_enumeration_and_sum_to_one(case):
    assert_law(*case)


def test_inclusion_sizes_and_marginals_equal_enumeration(case):
    process, law = case
    inclusion = [sum(p for s, p in law.items() if i in s) for i in range(process.n_items)]
    np.testing.assert_allclose(process.inclusion_probabilities(), inclusion, atol=1e-10)
    sizes = np.array([sum(p for s, p in law.items() if len(s) == k) for k in range(process.n_items + 1)])
    pmf = process.size_pmf()
    np.testing.assert_allclose(np.pad(pmf, (0, len(sizes) - len(pmf))), sizes, atol=1e-10)
    assert process.expected_size == pytest.approx(np.arange(len(sizes)) @ sizes)
    assert process.size_variance == pytest.approx(np.arange(len(sizes)) ** 2 @ sizes - process.expected_size**2)
    for a in ((0,), (0, 1), (0, 2), (0, 1, 2)):
        assert process.marginal(a) == pytest.approx(sum(p for s, p in law.items() if set(a) <= set(s)), abs=1e-10)
        absent = sum(p for s, p in law.items() if not set(a) & set(s))
        assert process.exclusion_probability(a) == pytest.approx(absent, abs=1e-10)


@pytest.mark.parametrize(("include", "exclude"), [((0,), ()), ((), (1,)), ((0, 2), ()), ((2,), (0,)), ((), (0, 1))])
def test_conditioning_equals_enumeration(case, include, exclude):
    process, law = case
    conditioned = process.condition(include=include, exclude=exclude)
    assert_law(conditioned, given(law, include, exclude), atol=1e-9)
    inclusion = conditioned.inclusion_probabilities()
    assert (inclusion[list(include)] == 1).all()
    assert (inclusion[list(exclude)] == 0).all()
    for draw in conditioned.sample(20, random_state=0):
        assert set(include) <= set(draw)
        assert not set(exclude) & set(draw)


def test_conditioning_twice_is_conditioning_on_both(case):
    process, law = case
    if process.n_items > 3:
        assert_law(process.condition(include=[3]).condition(exclude=[1]), given(law, (3,), (1,)), atol=1e-9)


def test_conditioning_on_everything_leaves_one_subset():
    process = DPP(FULL).condition(include=[0, 2], exclude=[1, 3, 4, 5])
    assert process.log_prob([0, 2]) == 0.0
    assert process.sample(random_state=0).tolist() == [0, 2]
    np.testing.assert_array_equal(process.inclusion_probabilities(), [1, 0, 1, 0, 0, 0])


def test_the_complement_is_what_is_not_drawn(case):
    process, law = case
    everything = set(range(process.n_items))
    assert_law(process.complement(), {tuple(sorted(everything - set(s))): p for s, p in law.items()}, atol=1e-9)


def test_the_restriction_sums_over_the_other_items(case):
    process, law = case
    expected = {}
    for s, p in law.items():
        part = tuple(i for i in s if i in (0, 2))
        expected[part] = expected.get(part, 0.0) + p
    assert_law(process.restrict([0, 2]), expected, atol=1e-9)


def test_restriction_and_complement_respect_what_is_fixed():
    process = DPP(FULL).condition(include=[0], exclude=[1])
    law = given(law_of_kernel(FULL), (0,), (1,))
    flipped = {tuple(sorted(set(range(6)) - set(s))): p for s, p in law.items()}
    assert_law(process.complement(), flipped, atol=1e-9)
    assert process.restrict([0, 1]).log_prob([0]) == pytest.approx(0.0, abs=1e-12)


def test_kernels_go_back_and_forth():
    process = DPP(FULL)
    np.testing.assert_allclose(DPP(K=process.K).L, FULL, atol=1e-10)
    np.testing.assert_allclose(process.K, np.eye(6) - np.linalg.inv(FULL + np.eye(6)), atol=1e-12)


def test_a_mean_size_can_be_asked_for():
    process = DPP(features=FEATURES).with_expected_size(2.5)
    assert process.expected_size == pytest.approx(2.5)
    ratio = process.L / (FEATURES @ FEATURES.T)
    np.testing.assert_allclose(ratio, ratio[0, 0])
    tiny = DPP(np.diag([1e-12, 1e12, 1.0])).with_expected_size(1.5)
    assert tiny.expected_size == pytest.approx(1.5)


def test_repulsion_and_pair_correlation():
    process = DPP(FULL)
    K = process.K
    assert process.pair_correlation(0, 3) == pytest.approx(1 - K[0, 3] ** 2 / (K[0, 0] * K[3, 3]))
    assert process.repulsion == pytest.approx((K**2).sum() / np.trace(K))


def test_entropy_by_enumeration_and_by_draws():
    law = law_of_kernel(FULL)
    exact = -sum(p * np.log(p) for p in law.values())
    assert DPP(FULL).entropy() == (pytest.approx(exact), 0.0)
    blocks = DPP(np.kron(np.eye(3), FULL))  # three independent copies
    estimate = blocks.entropy(4000, random_state=0)
    # False-alarm rate 6e-7.
    assert abs(estimate.value - 3 * exact) < 5 * estimate.standard_error


def test_a_fixed_size_gives_the_k_dpp_and_the_mixture_over_sizes_gives_the_process_back():
    process = DPP(FULL)
    pmf = process.size_pmf()
    for s in subsets(6):
        sister = process.fixed_size(len(s))
        assert process.log_prob(s) == pytest.approx(np.log(pmf[len(s)]) + sister.log_prob(s))


@pytest.mark.parametrize("k", range(5))
@pytest.mark.parametrize("form", ["matrix", "features"])
def test_the_k_dpp_equals_enumeration(k, form):
    L = FEATURES @ FEATURES.T if form == "features" else FULL
    process = KDPP(features=FEATURES, size=k) if form == "features" else KDPP(FULL, k)
    law = {s: p for s, p in law_of_kernel(L).items() if len(s) == k}
    total = sum(law.values())
    law = {s: p / total for s, p in law.items()}
    assert_law(process, law, atol=1e-9)
    inclusion = process.inclusion_probabilities()
    np.testing.assert_allclose(inclusion, [sum(p for s, p in law.items() if i in s) for i in range(6)], atol=1e-9)
    assert inclusion.sum() == pytest.approx(k)
    assert process.marginal([0, 3]) == pytest.approx(sum(p for s, p in law.items() if {0, 3} <= set(s)), abs=1e-9)
    absent = sum(p for s, p in law.items() if not {0, 3} & set(s))
    assert process.exclusion_probability([0, 3]) == pytest.approx(absent, abs=1e-9)
    if k > 0:
        assert_law(process.condition(include=[1]), given(law, (1,)), atol=1e-9)
        assert_law(process.condition(include=[1], exclude=[0]), given(law, (1,), (0,)), atol=1e-9)


def test_relabelling_the_items_relabels_the_law():
    order = np.array([3, 1, 5, 0, 2, 4])
    process, relabelled = DPP(FULL), DPP(FULL[np.ix_(order, order)])
    for s in subsets(6):
        assert relabelled.log_prob(s) == pytest.approx(process.log_prob(order[list(s)]), abs=1e-10)


def test_twins_are_never_drawn_together():
    twins = FEATURES[[0, 1, 2, 0]]
    for process in (DPP(features=twins), DPP(twins @ twins.T), KDPP(features=twins, size=2)):
        assert process.log_prob([0, 3]) == -np.inf
        assert process.marginal([0, 3]) < 1e-12
        assert all(not {0, 3} <= set(draw) for draw in process.sample(300, random_state=1))


def test_small_and_empty_cases():
    assert DPP([[0.0]]).sample(3, random_state=0)[0].size == 0
    assert DPP(np.zeros((3, 3))).log_prob([]) == 0.0
    assert DPP([[3.0]]).inclusion_probabilities() == pytest.approx([0.75])
    assert KDPP(FULL, 0).sample(2, random_state=0)[1].size == 0
    assert KDPP(FULL, 6).sample(random_state=0).tolist() == [0, 1, 2, 3, 4, 5]
    assert DPP(FULL).sample(0) == []


def test_the_same_random_state_draws_the_same_and_the_process_keeps_nothing():
    process = DPP(FULL)
    first = process.sample(5, random_state=3)
    process.sample(7, random_state=4)
    assert all(np.array_equal(a, b) for a, b in zip(first, process.sample(5, random_state=3), strict=True))


def test_masks_sets_and_ids_name_the_same_subset():
    process = DPP(FULL)
    mask = np.array([True, False, True, False, False, False])
    assert process.log_prob(mask) == process.log_prob([2, 0]) == process.log_prob({0, 2})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: DPP(), "exactly one of L, K and features must be given, got none"),
        (lambda: DPP(FULL, K=FULL), "got L, K"),
        (lambda: DPP([[1.0, 2.0], [2.0, 1.0]]), r"L must be positive semi-definite, got the eigenvalue -1 \(the larg"),
        (lambda: DPP([[1.0, 0.5], [0.4, 1.0]]), "L must be symmetric, got entries that differ by 0.1"),
        (lambda: DPP([[1.0, np.nan], [np.nan, 1.0]]), "L must be finite"),
        (lambda: DPP(np.empty((0, 0))), "L must have at least one item"),
        (lambda: DPP(np.ones((2, 3))), r"L must be a square matrix, got shape \(2, 3\)"),
        (lambda: DPP(K=[[1.5]]), "K must have eigenvalues between 0 and 1, got 1.5"),
        (lambda: DPP(K=[[0.5]], quality=[1.0]), "quality belongs to L or features"),
        (lambda: DPP(features=[[1.0, np.inf]]), "features must be finite"),
        (lambda: DPP(features=np.empty((0, 3))), "features must be a matrix with a row for each item"),
        (lambda: DPP(FULL, quality=[-1.0] * 6), "quality must be 6 finite, non-negative numbers"),
        (lambda: KDPP(FULL), "size must be a whole number from 0 to 6, got None"),
        (lambda: KDPP(FULL, 7), "size must be a whole number from 0 to 6, got 7"),
        (lambda: KDPP(features=FEATURES, size=5).sample(), r"size must be at most the rank of the kernel \(4\), got 5"),
        (lambda: DPP(FULL).log_prob([0, 0]), "Y must not name an item twice, got 0 more than once"),
        (lambda: DPP(FULL).log_prob([6]), "Y must hold items from 0 to 5, got 6"),
        (lambda: DPP(FULL).log_prob([0.5]), "Y must hold whole numbers"),
        (lambda: DPP(FULL).log_prob([True, False]), "Y must be a mask over the 6 items, got 2 entries"),
        (lambda: DPP(FULL).condition(include=[1], exclude=[1]), "must not share items"),
        (lambda: DPP(FULL).condition(include=[1]).condition(exclude=[1]), "excluded or included already"),
        (lambda: DPP(features=FEATURES[[0, 0, 1]]).condition(include=[0, 1]), "include must have a positive prob"),
        (lambda: KDPP(FULL, 2).condition(include=[0, 1, 2]), "include must name at most size = 2 items"),
        (lambda: KDPP(FULL, 2).condition(exclude=[0, 1, 2, 3, 4]), "exclude must leave at least size = 2 items"),
        (lambda: DPP(FULL).with_expected_size(6), r"below the rank of the kernel \(6\), got 6"),
        (lambda: DPP(K=np.eye(2)).L, "no kernel L"),
        (lambda: DPP(FULL).sample(-1), "n_samples must be an integer of at least 0 or None, got -1"),
        (lambda: DPP(FULL).sample(method="magic"), "method must be one of"),
        (lambda: KDPP(FULL, 2).sample(method="sequential"), "for a fixed size"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_rounding_of_symmetry_and_of_zero_eigenvalues_is_forgiven():
    rough = FEATURES @ FEATURES.T
    rough[0, 1] += 1e-12
    assert DPP(rough).rank == 4
    slightly_negative = (FRAME * [1.0, 1.0, 1.0, 1.0, 1.0, -1e-10]) @ FRAME.T
    assert DPP(slightly_negative).rank == 5


def test_independent_items_of_any_scale_are_exact():
    values = 10.0 ** np.linspace(-12, 12, 13)
    process = KDPP(np.diag(values), 5)
    exact = np.array([
        sum(np.prod(values[list(s)]) for s in itertools.combinations(range(13), 5) if i in s) for i in range(13)
    ])  # fmt: skip
    total = sum(np.prod(values[list(s)]) for s in itertools.combinations(range(13), 5))
    np.testing.assert_allclose(process.inclusion_probabilities(), exact / total, rtol=1e-10)
    assert process.log_normalizer == pytest.approx(np.log(total), rel=1e-12)
