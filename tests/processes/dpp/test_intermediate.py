"""The sampler by candidates: its bound, its landmarks, large ground sets. Its law is in test_exact_laws."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import sparse, stats

from pluri import on_interrupt
from pluri.processes.dpp.kernel_forms import DenseKernel, FeatureKernel, FunctionKernel
from pluri.processes.dpp.samplers import intermediate
from pluri.processes.dpp.samplers.intermediate import IntermediateSampler, draw_intermediate, tilt
from pluri.processes.dpp.samplers.landmarks import approximate_below, more_landmarks
from pluri.processes.dpp.samplers.spectral import draw_subsets
from pluri.processes.dpp.spectrum import spectrum_of_kernel


def closeness(a: np.ndarray, b: np.ndarray, rate: float = 20.0) -> np.ndarray:
    squares = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1) - 2 * a @ b.T
    return np.exp(-rate * np.maximum(squares, 0.0))


def points_kernel(n_items: int, quality: float = 0.3) -> FunctionKernel:
    X = np.random.default_rng(0).random((n_items, 2))
    return FunctionKernel(closeness, X, np.full(n_items, quality))


def candidates_of(n_items: int) -> list[np.ndarray]:
    return [np.array(s, dtype=int) for size in range(n_items + 1) for s in combinations(range(n_items), size)]


def test_weighted_candidates_sum_to_the_normalizer() -> None:
    """Sum over candidate sets of P(set) det(I + weighted kernel) = det(I + L), which makes the scheme exact."""
    L = points_kernel(7, 1.0).rows(np.arange(7))
    probabilities = np.linspace(0.1, 0.9, 7)
    total = 0.0
    for chosen in candidates_of(7):
        weighted = L[np.ix_(chosen, chosen)] / np.sqrt(np.outer(probabilities[chosen], probabilities[chosen]))
        inside = np.zeros(7, dtype=bool)
        inside[chosen] = True
        chance = np.where(inside, probabilities, 1 - probabilities).prod()
        total += chance * np.linalg.det(np.eye(chosen.size) + weighted)
    assert total == pytest.approx(np.linalg.det(np.eye(7) + L))


@pytest.mark.parametrize("n_landmarks", [1, 3, 7])
@pytest.mark.parametrize("scale", [0.1, 1.0, 30.0])
def test_the_bound_holds_for_every_set_of_candidates(n_landmarks: int, scale: float) -> None:
    kernel = points_kernel(7, 1.0)
    L = scale * kernel.rows(np.arange(7))
    sampler = IntermediateSampler(
        FunctionKernel(closeness, kernel.X, np.full(7, np.sqrt(scale))), None, n_landmarks, 4.0
    )
    for chosen in candidates_of(7):
        weight = np.sqrt(sampler._probabilities[chosen])
        determinant = np.linalg.slogdet(np.eye(chosen.size) + L[np.ix_(chosen, chosen)] / np.outer(weight, weight))[1]
        assert determinant <= sampler._log_bound + sampler._cost[chosen].sum() + 1e-9


def test_leverages_follow_from_the_dense_approximation() -> None:
    kernel = points_kernel(40, 1.0)
    L = kernel.rows(np.arange(40))
    landmarks = np.array([3, 17, 25, 31])
    approximation = approximate_below(kernel, landmarks)
    below = L[:, landmarks] @ np.linalg.solve(L[np.ix_(landmarks, landmarks)], L[landmarks])
    rows = approximation.rows(np.arange(40))
    np.testing.assert_allclose(rows @ rows.T, below, atol=1e-10)
    np.testing.assert_allclose(approximation.left_over, np.diagonal(L - below), atol=1e-10)
    for scale in (1.0, 0.2):
        marginal = scale * below @ np.linalg.inv(np.eye(40) + scale * below)
        expected = scale * np.diagonal(L - below) + np.diagonal(marginal)
        np.testing.assert_allclose(approximation.leverage(scale), expected, atol=1e-10)


def test_proposed_probabilities_are_tilted_by_their_share_of_the_bound() -> None:
    leverage = np.array([0.0, 0.01, 0.2, 0.7])
    probabilities, tilted, log_loss = tilt(leverage, 2.0)
    np.testing.assert_allclose(probabilities, [0.0, 0.02, 0.4, 1.0])
    up = probabilities[1:] * np.exp(leverage[1:] / probabilities[1:])
    np.testing.assert_allclose(tilted, [0.0, *(up / (1 - probabilities[1:] + up))])
    assert log_loss == pytest.approx(np.log(1 - probabilities[1:] + up).sum() - leverage.sum())


def test_candidates_are_independent_with_the_proposed_probabilities() -> None:
    """False alarm rate 1e-6 over all items."""
    sampler = IntermediateSampler(points_kernel(30, 0.5), None, "auto", 10.0)
    tilted = tilt(sampler._approximation.leverage(1.0), sampler._given_ratio(sampler._approximation.leverage(1.0)))[1]
    rng, n_draws = np.random.default_rng(1), 4000
    hits, pairs = np.zeros(30), np.zeros((30, 30))
    for _ in range(n_draws):
        inside = np.zeros(30)
        inside[sampler._candidates(rng)] = 1.0
        hits += inside
        pairs += np.outer(inside, inside)
    z = (hits - n_draws * tilted) / np.sqrt(n_draws * tilted * (1 - tilted) + 1e-9)
    assert 2 * stats.norm.sf(abs(z).max()) * 30 > 1e-6
    together = np.outer(tilted, tilted)
    z = ((pairs - n_draws * together) / np.sqrt(n_draws * together * (1 - together) + 1e-9))[np.triu_indices(30, 1)]
    assert 2 * stats.norm.sf(abs(z).max()) * z.size > 1e-6


def test_landmarks_are_chosen_where_most_is_left() -> None:
    """Two far clusters and a lone item of high quality: three landmarks explain the kernel almost whole."""
    X = np.concatenate([np.full(500, 0.0), np.full(500, 5.0), [20.0]])[:, None]
    X[:1000, 0] += 1e-4 * np.random.default_rng(0).normal(size=1000)
    kernel = FunctionKernel(lambda a, b: closeness(a, b, 1.0), X)
    start = approximate_below(kernel, np.empty(0, dtype=np.int64))
    landmarks = more_landmarks(start, 3, 0.0)
    assert sorted(np.searchsorted([500, 1000], landmarks, side="right")) == [0, 1, 2]
    assert approximate_below(kernel, landmarks).left_over.sum() < 1e-3


def test_sizes_and_determinants_agree_with_the_spectrum() -> None:
    """N = 600; two-sample Kolmogorov-Smirnov of the log determinants and z of the mean size, false alarm rate 1e-6."""
    kernel = points_kernel(600, 0.4)
    spectrum = spectrum_of_kernel(kernel.rows(np.arange(600)))
    sampler = IntermediateSampler(kernel)
    ours = sampler.draw(400, np.random.default_rng(1))
    theirs = draw_subsets(spectrum, 400, np.random.default_rng(2))
    mean = spectrum.probabilities.sum()
    variance = (spectrum.probabilities * (1 - spectrum.probabilities)).sum()
    z = (np.mean([draw.size for draw in ours]) - mean) / np.sqrt(variance / 400)
    assert 2 * stats.norm.sf(abs(z)) > 1e-6
    volumes = [[np.linalg.slogdet(kernel.block(draw, draw))[1] for draw in draws] for draws in (ours, theirs)]
    assert stats.ks_2samp(*volumes).pvalue > 1e-6
    assert 0.02 < sampler.acceptance < 1.0
    assert sampler.expected_candidates < 400


def test_a_hundred_thousand_points_need_no_matrix_of_all() -> None:
    calls = []

    def watched(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        calls.append(len(a) * len(b))
        return closeness(a, b)

    X = np.random.default_rng(0).random((100_000, 2))
    sampler = IntermediateSampler(FunctionKernel(watched, X), size=15)
    preparation = sum(calls)
    assert preparation < 100_000 * 600
    assert max(calls) < 2e6
    calls.clear()
    (draw,) = sampler.draw(1, np.random.default_rng(1))
    assert draw.size == 15
    assert sum(calls) < 1e7
    # Fifteen points that repel each other on the unit square keep apart: independent ones have a closest pair of 0.03.
    apart = np.sqrt(((X[draw][:, None] - X[draw]) ** 2).sum(axis=2))[np.triu_indices(15, 1)]
    assert apart.min() > 0.05


@pytest.mark.parametrize("as_sparse", [False, True])
def test_few_features_need_no_landmarks(as_sparse: bool) -> None:
    """Mean size against the exact one, false alarm rate 1e-6."""
    F = np.random.default_rng(0).normal(size=(3000, 6)) * 0.05
    sampler = IntermediateSampler(FeatureKernel(sparse.csr_array(F) if as_sparse else F))
    assert sampler.landmarks is None
    eigenvalues = np.linalg.eigvalsh(F.T @ F)
    probabilities = eigenvalues / (1 + eigenvalues)
    sizes = [draw.size for draw in sampler.draw(500, np.random.default_rng(1))]
    z = (np.mean(sizes) - probabilities.sum()) / np.sqrt((probabilities * (1 - probabilities)).sum() / 500)
    assert 2 * stats.norm.sf(abs(z)) > 1e-6


def test_more_features_than_items_use_landmarks() -> None:
    F = np.random.default_rng(0).normal(size=(20, 50)) * 0.1
    sampler = IntermediateSampler(FeatureKernel(F), size=3)
    assert sampler.landmarks is not None
    assert {draw.size for draw in sampler.draw(20, np.random.default_rng(1))} == {3}


def test_too_few_landmarks_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intermediate, "PATIENCE", 50)
    with pytest.raises(RuntimeError, match=r"none of the last 50 proposals .* 1 landmarks leave"):
        IntermediateSampler(points_kernel(500, 2.0), None, 1, 40.0).draw(1, np.random.default_rng(0))


def test_landmarks_grow_after_too_many_rejections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intermediate, "PATIENCE", 3)
    monkeypatch.setattr(intermediate, "LEFT_OVER", 5.0)
    sampler = IntermediateSampler(points_kernel(500, 0.5))
    assert sampler.landmarks is not None
    before = sampler.landmarks.size
    with pytest.raises(RuntimeError, match="none of the last 3"):  # which no number of landmarks can rule out
        sampler.draw(10_000, np.random.default_rng(0))
    assert sampler.landmarks.size > before


def test_an_interrupted_draw_keeps_what_was_made(monkeypatch: pytest.MonkeyPatch) -> None:
    sampler = IntermediateSampler(points_kernel(100))
    original, calls = sampler._candidates, iter(range(10**6))

    def interrupted(rng: np.random.Generator) -> np.ndarray:
        if sampler.n_accepted >= 3:
            raise KeyboardInterrupt
        next(calls)
        return original(rng)

    monkeypatch.setattr(sampler, "_candidates", interrupted)
    with on_interrupt("keep"), pytest.warns(UserWarning, match="interrupted after 3 of 10"):
        assert len(sampler.draw(10, np.random.default_rng(0))) == 3


def test_draws_repeat_for_a_generator_and_differ_between_draws() -> None:
    kernel = points_kernel(300)
    first, again = (draw_intermediate(kernel, 3, np.random.default_rng(7)) for _ in range(2))
    assert [a.tolist() for a in first] == [b.tolist() for b in again]
    assert first[0].tolist() != first[1].tolist()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"size": -1}, "size must be between 0"),
        ({"size": 11}, "size must be between 0"),
        ({"n_landmarks": 0}, "n_landmarks must be"),
        ({"n_candidates": 0}, "n_candidates must be"),
        ({"size": 3}, "at most the rank of the kernel"),
    ],
)
def test_arguments_out_of_range_are_refused(arguments, message) -> None:
    kernel = DenseKernel(np.outer(np.arange(10.0), np.arange(10.0)))
    with pytest.raises(ValueError, match=message):
        IntermediateSampler(kernel, **arguments)


def test_subsets_too_large_for_candidates_are_refused() -> None:
    kernel = FunctionKernel(lambda a, b: (a == b.T).astype(float), np.arange(30_000.0)[:, None])
    with pytest.raises(ValueError, match="would need"):
        IntermediateSampler(kernel, n_landmarks=5)
