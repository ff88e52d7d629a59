"""Every exact sampler against the enumeration of all subsets; chi-square tests raise a false alarm once in 10,000."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from pluri.processes.dpp import DPP, KDPP
from pluri.processes.dpp.kernel_forms import DenseKernel, FeatureKernel, FunctionKernel
from pluri.processes.dpp.samplers.intermediate import IntermediateSampler
from pluri.processes.dpp.samplers.sequential import draw_sequentially, draw_sequentially_low_rank
from pluri.processes.dpp.samplers.spectral import draw_subsets
from pluri.processes.dpp.spectrum import spectrum_of_features, spectrum_of_kernel, spectrum_of_marginal

FALSE_ALARM = 1e-7
N_DRAWS = 10_000


def all_subsets(n_items: int) -> list[tuple[int, ...]]:
    return [subset for size in range(n_items + 1) for subset in combinations(range(n_items), size)]


def law_of_kernel(L: np.ndarray, size: int | None = None) -> dict[tuple[int, ...], float]:
    """P(Y) by determinants of all blocks."""
    weights = {
        subset: max(float(np.linalg.det(L[np.ix_(subset, subset)])), 0.0) if subset else 1.0
        for subset in all_subsets(len(L))
        if size is None or len(subset) == size
    }
    total = sum(weights.values())
    return {subset: weight / total if weight > 1e-12 * total else 0.0 for subset, weight in weights.items()}


def law_of_marginal(K: np.ndarray) -> dict[tuple[int, ...], float]:
    """P(Y) = |det(K - I outside Y)|, which needs no L."""
    law = {}
    for subset in all_subsets(len(K)):
        outside = np.setdiff1d(np.arange(len(K)), subset)
        shifted = K.copy()
        shifted[outside, outside] -= 1.0
        probability = abs(float(np.linalg.det(shifted)))
        law[subset] = probability if probability > 1e-12 else 0.0
    return law


def assert_follows(draws: list[np.ndarray], law: dict[tuple[int, ...], float]) -> None:
    """Goodness of fit, cells of fewer than five expected draws pooled; what is impossible never happens."""
    counts = dict.fromkeys(law, 0)
    for draw in draws:
        counts[tuple(draw.tolist())] += 1  # KeyError: a subset of the wrong size or out of order
    observed, probabilities = np.array(list(counts.values())), np.array(list(law.values()))
    assert probabilities.sum() == pytest.approx(1.0, abs=1e-9)
    assert not observed[probabilities == 0.0].any()
    expected = probabilities * len(draws)
    large = expected >= 5
    cells = [*zip(observed[large], expected[large]), (observed[~large].sum(), expected[~large].sum())]
    cells = [(seen, mean) for seen, mean in cells if mean > 1e-9]
    statistic = sum((seen - mean) ** 2 / mean for seen, mean in cells)
    assert len(cells) == 1 or stats.chi2.sf(statistic, len(cells) - 1) > FALSE_ALARM


def random_kernel(n_items: int = 8, random_state: int = 0) -> np.ndarray:
    X = np.random.default_rng(random_state).normal(size=(n_items, n_items))
    return X @ X.T / n_items * np.linspace(0.3, 2.0, n_items)[:, None] * np.linspace(0.3, 2.0, n_items)


def some_features(n_items: int = 9, n_features: int = 4, random_state: int = 3) -> np.ndarray:
    return np.random.default_rng(random_state).normal(size=(n_items, n_features)) * 0.7


def some_marginal() -> np.ndarray:
    """Eigenvalues 1, 1, 0.6, 0.2 and four zeros: certain directions, chance, and a low rank in one."""
    basis = np.linalg.qr(np.random.default_rng(5).normal(size=(8, 8)))[0]
    return basis * np.array([1.0, 1.0, 0.6, 0.2, 0, 0, 0, 0]) @ basis.T


def closeness(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return 1.5 * np.exp(-3.0 * (a - b.T) ** 2)


@pytest.mark.parametrize("size", [None, 1, 3, 7, 8])
def test_spectral_draws_follow_the_enumeration(size: int | None) -> None:
    L = random_kernel()
    draws = draw_subsets(spectrum_of_kernel(L), N_DRAWS, np.random.default_rng(1), size=size)
    assert_follows(draws, law_of_kernel(L, size))


@pytest.mark.parametrize("size", [None, 1, 3, 4])
def test_dual_draws_follow_the_enumeration(size: int | None) -> None:
    F = some_features()
    draws = draw_subsets(spectrum_of_features(F), N_DRAWS, np.random.default_rng(1), size=size)
    assert_follows(draws, law_of_kernel(F @ F.T, size))


@pytest.mark.parametrize("n_items", [1, 2, 8, 10])
def test_sequential_draws_follow_the_enumeration(n_items: int) -> None:
    L = random_kernel(n_items)
    K = L @ np.linalg.inv(L + np.eye(n_items))
    assert_follows(draw_sequentially(K, N_DRAWS, np.random.default_rng(1)), law_of_kernel(L))


def test_low_rank_sequential_draws_follow_the_enumeration() -> None:
    F = some_features()
    spectrum = spectrum_of_features(F)
    draws = draw_sequentially_low_rank(spectrum.vectors, spectrum.probabilities, N_DRAWS, np.random.default_rng(1))
    assert_follows(draws, law_of_kernel(F @ F.T))


@pytest.mark.parametrize("sampler", ["spectral", "sequential", "low rank"])
def test_draws_where_some_directions_are_certain_follow_the_marginal_kernel(sampler: str) -> None:
    K, rng = some_marginal(), np.random.default_rng(2)
    spectrum = spectrum_of_marginal(K)
    if sampler == "spectral":
        draws = draw_subsets(spectrum, N_DRAWS, rng)
    elif sampler == "sequential":
        draws = draw_sequentially(K, N_DRAWS, rng)
    else:
        draws = draw_sequentially_low_rank(spectrum.vectors, spectrum.probabilities, N_DRAWS, rng)
    assert_follows(draws, law_of_marginal(K))


@pytest.mark.parametrize("sampler", ["spectral", "sequential"])
def test_draws_of_a_projection_have_its_rank(sampler: str) -> None:
    basis = np.linalg.qr(np.random.default_rng(7).normal(size=(7, 3)))[0]
    K, rng = basis @ basis.T, np.random.default_rng(3)
    draws = (
        draw_subsets(spectrum_of_marginal(K), N_DRAWS, rng)
        if sampler == "spectral"
        else draw_sequentially(K, N_DRAWS, rng)
    )
    assert {draw.size for draw in draws} == {3}
    assert_follows(draws, law_of_kernel(K, 3))


# Few candidates and few landmarks, so that proposals are rejected and the weighting is what makes the law right.
@pytest.mark.parametrize(
    ("form", "n_landmarks", "n_candidates"),
    [
        ("dense", 8, 1.5),
        ("dense", 3, 3.0),
        ("features", "auto", 2.0),
        ("function", 4, 2.0),
        ("function", "auto", "auto"),
    ],
)
@pytest.mark.parametrize("size", [None, 2])
def test_intermediate_draws_follow_the_enumeration(form, n_landmarks, n_candidates, size) -> None:
    if form == "dense":
        L = 0.5 * random_kernel()
        kernel = DenseKernel(L)
    elif form == "features":
        F = 0.7 * some_features()
        L, kernel = F @ F.T, FeatureKernel(F)
    else:
        X, quality = np.linspace(0, 2, 8)[:, None], np.linspace(0.3, 1.0, 8)
        kernel = FunctionKernel(closeness, X, quality)
        L = kernel.rows(np.arange(8))
    sampler = IntermediateSampler(kernel, size, n_landmarks, n_candidates)
    assert_follows(sampler.draw(2500, np.random.default_rng(4)), law_of_kernel(L, size))
    assert n_candidates == "auto" or 0.01 < sampler.acceptance < 0.95


@pytest.mark.parametrize("method", ["auto", "spectral", "sequential", "intermediate"])
def test_a_process_draws_what_its_probabilities_say(method: str) -> None:
    process = DPP(random_kernel())
    law = {subset: np.exp(process.log_prob(subset)) for subset in all_subsets(8)}
    assert_follows(process.sample(4000, random_state=5, method=method), law)


@pytest.mark.parametrize("method", ["auto", "spectral", "intermediate"])
def test_a_process_of_fixed_size_draws_what_its_probabilities_say(method: str) -> None:
    process = KDPP(random_kernel(), 3)
    law = {subset: np.exp(process.log_prob(subset)) for subset in combinations(range(8), 3)}
    assert_follows(process.sample(4000, random_state=5, method=method), law)


def processes() -> dict[str, DPP | KDPP]:
    F = some_features(8)
    return {
        "L": DPP(random_kernel()),
        "K": DPP(K=some_marginal()),
        "features": DPP(features=F),
        "k of L": KDPP(random_kernel(), 3),
        "k of features": KDPP(features=F, size=3),
    }


@pytest.mark.parametrize("name", processes())
def test_probabilities_sum_to_one_and_give_the_marginals(name: str) -> None:
    process = processes()[name]
    law = {subset: np.exp(process.log_prob(subset)) for subset in all_subsets(8)}
    assert sum(law.values()) == pytest.approx(1.0, abs=1e-10)
    inclusion = [sum(p for subset, p in law.items() if i in subset) for i in range(8)]
    np.testing.assert_allclose(process.inclusion_probabilities(), inclusion, atol=1e-10)
    for A in [(2,), (0, 5), (1, 2, 7), ()]:
        together = sum(p for subset, p in law.items() if set(A) <= set(subset))
        none = sum(p for subset, p in law.items() if not set(A) & set(subset))
        assert process.marginal(list(A)) == pytest.approx(together, abs=1e-10)
        assert process.exclusion_probability(list(A)) == pytest.approx(none, abs=1e-10)


@pytest.mark.parametrize("name", ["L", "K", "features"])
def test_sizes_follow_from_the_enumeration(name: str) -> None:
    process = processes()[name]
    by_size = np.zeros(9)
    for subset in all_subsets(8):
        by_size[len(subset)] += np.exp(process.log_prob(subset))
    pmf = process.size_pmf()
    np.testing.assert_allclose(pmf, by_size[: pmf.size], atol=1e-10)
    assert by_size[pmf.size :].sum() == pytest.approx(0.0, abs=1e-10)
    sizes = np.arange(9)
    assert process.expected_size == pytest.approx(sizes @ by_size)
    assert process.size_variance == pytest.approx(sizes**2 @ by_size - (sizes @ by_size) ** 2)


@pytest.mark.parametrize("name", processes())
@pytest.mark.parametrize(("include", "exclude"), [([2], []), ([], [0, 6]), ([1, 4], [3]), ([7], [0, 1, 2])])
def test_conditioned_laws_are_ratios_of_probabilities(name: str, include: list[int], exclude: list[int]) -> None:
    process = processes()[name]
    law = {subset: np.exp(process.log_prob(subset)) for subset in all_subsets(8)}
    agreeing = {s: p for s, p in law.items() if set(include) <= set(s) and not set(exclude) & set(s)}
    total = sum(agreeing.values())
    conditioned = process.condition(include=include, exclude=exclude)
    for subset in law:
        expected = agreeing.get(subset, 0.0) / total
        assert np.exp(conditioned.log_prob(subset)) == pytest.approx(expected, abs=1e-9)
    draws = conditioned.sample(2000, random_state=8)
    assert_follows(draws, {s: p / total if p > 1e-12 else 0.0 for s, p in agreeing.items()})


def test_conditioning_in_two_steps_is_conditioning_at_once() -> None:
    process = DPP(random_kernel())
    stepwise = process.condition(include=[2]).condition(exclude=[5]).condition(include=[0])
    at_once = process.condition(include=[0, 2], exclude=[5])
    for subset in all_subsets(8):
        assert np.exp(stepwise.log_prob(subset)) == pytest.approx(np.exp(at_once.log_prob(subset)), abs=1e-10)


@pytest.mark.parametrize("name", ["L", "K", "features"])
def test_the_complement_and_the_restriction_follow_from_the_enumeration(name: str) -> None:
    process = processes()[name]
    law = {subset: np.exp(process.log_prob(subset)) for subset in all_subsets(8)}
    complement = process.complement()
    for subset, probability in law.items():
        rest = [i for i in range(8) if i not in subset]
        assert np.exp(complement.log_prob(rest)) == pytest.approx(probability, abs=1e-9)
    items = [1, 2, 5]
    restricted = process.restrict(items)
    for subset in all_subsets(8):
        expected = 0.0
        if set(subset) <= set(items):
            expected = sum(p for s, p in law.items() if set(s) & set(items) == set(subset))
        assert np.exp(restricted.log_prob(subset)) == pytest.approx(expected, abs=1e-9)


def test_a_mixture_of_fixed_sizes_is_the_process() -> None:
    process, L = DPP(random_kernel()), random_kernel()
    pmf = process.size_pmf()
    for subset in [(0,), (2, 5), (1, 3, 6), tuple(range(8))]:
        fixed = KDPP(L, len(subset))
        assert process.log_prob(subset) == pytest.approx(np.log(pmf[len(subset)]) + fixed.log_prob(subset), abs=1e-9)


def test_the_two_items_of_the_textbook() -> None:
    process = DPP([[2, 1], [1, 2]])
    probabilities = [np.exp(process.log_prob(subset)) for subset in all_subsets(2)]
    np.testing.assert_allclose(probabilities, [1 / 8, 2 / 8, 2 / 8, 3 / 8])
    np.testing.assert_allclose(process.K, [[5 / 8, 1 / 8], [1 / 8, 5 / 8]])


@pytest.mark.parametrize("method", ["spectral", "sequential", "intermediate"])
def test_duplicates_are_never_drawn_together(method: str) -> None:
    rows = np.repeat(np.random.default_rng(0).normal(size=(4, 6)), 3, axis=0)
    process = DPP(rows @ rows.T * 5)
    for draw in process.sample(500, random_state=0, method=method):
        assert np.unique(draw // 3).size == draw.size
    assert process.log_prob([0, 1]) == -np.inf
    assert process.rank == 4


@pytest.mark.parametrize("method", ["spectral", "sequential", "intermediate"])
def test_one_item_is_a_coin(method: str) -> None:
    draws = DPP([[3.0]]).sample(2000, random_state=0, method=method)
    assert stats.binomtest(sum(draw.size for draw in draws), 2000, 0.75).pvalue > FALSE_ALARM


@pytest.mark.parametrize("method", ["spectral", "sequential", "intermediate"])
def test_a_kernel_of_zeros_draws_nothing(method: str) -> None:
    process = DPP(np.zeros((5, 5)))
    assert all(draw.size == 0 for draw in process.sample(20, random_state=0, method=method))
    assert process.log_prob([]) == 0.0


@pytest.mark.parametrize("method", ["spectral", "intermediate"])
def test_fixed_sizes_from_zero_to_the_rank(method: str) -> None:
    F = some_features()
    assert all(draw.size == 0 for draw in KDPP(F @ F.T, 0).sample(5, random_state=0, method=method))
    draws = KDPP(F @ F.T, 4).sample(4000, random_state=0, method=method)
    assert_follows(draws, law_of_kernel(F @ F.T, 4))
    with pytest.raises(ValueError, match="at most the rank of the kernel"):
        KDPP(F @ F.T, 5).sample(random_state=0, method=method)


@pytest.mark.parametrize("method", ["spectral", "sequential", "intermediate"])
def test_draws_repeat_for_a_random_state(method: str) -> None:
    first, second = (DPP(random_kernel(30)).sample(5, random_state=11, method=method) for _ in range(2))
    assert [a.tolist() for a in first] == [b.tolist() for b in second]


def test_relabelled_items_have_relabelled_probabilities() -> None:
    L, order = random_kernel(), np.random.default_rng(0).permutation(8)
    process, relabelled = DPP(L), DPP(L[np.ix_(order, order)])
    for subset in all_subsets(8):
        assert relabelled.log_prob(subset) == pytest.approx(process.log_prob(order[list(subset)]), abs=1e-9)


@pytest.mark.parametrize("method", ["spectral", "sequential", "intermediate"])
def test_twelve_items_follow_the_enumeration_of_all_4096_subsets(method: str) -> None:
    L = random_kernel(12, random_state=4)
    process, law = DPP(L), law_of_kernel(L)
    if method == "spectral":
        probabilities = np.array([np.exp(process.log_prob(subset)) for subset in law])
        assert abs(probabilities.sum() - 1.0) < 1e-10
        np.testing.assert_allclose(probabilities, list(law.values()), atol=1e-12)
    n_draws = N_DRAWS // 4 if method == "intermediate" else N_DRAWS  # its draws take long
    assert_follows(process.sample(n_draws, random_state=2, method=method), law)


@pytest.mark.parametrize("method", ["spectral", "intermediate"])
def test_five_of_twelve_and_a_condition_follow_the_enumeration(method: str) -> None:
    F = some_features(12, 7, random_state=6)
    law = law_of_kernel(F @ F.T, 5)
    process = KDPP(features=F, size=5)
    assert abs(sum(np.exp(process.log_prob(subset)) for subset in law) - 1.0) < 1e-10
    n_draws = N_DRAWS // 4 if method == "intermediate" else N_DRAWS  # its draws take long
    assert_follows(process.sample(n_draws, random_state=3, method=method), law)
    kept = {subset: p for subset, p in law.items() if 2 in subset and 7 not in subset}
    total = sum(kept.values())
    conditioned = process.condition(include=[2], exclude=[7])
    draws = conditioned.sample(n_draws, random_state=4, method=method)
    assert_follows(draws, {subset: p / total for subset, p in kept.items()})
