"""The item-by-item sampler: block sizes, both forms, and what it refuses. Its law is in test_exact_laws."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from pluri.processes.dpp.samplers.sequential import BLOCK, draw_sequentially, draw_sequentially_low_rank
from pluri.processes.dpp.spectrum import spectrum_of_features, spectrum_of_kernel


def grid_kernel(n_items: int) -> np.ndarray:
    points = np.random.default_rng(0).random((n_items, 2))
    squares = ((points[:, None] - points) ** 2).sum(axis=2)
    return 2.0 * np.exp(-20 * squares)


def eliminate(K: np.ndarray, rng: np.random.Generator) -> list[int]:
    """The textbook loop, one rank-one update of the whole rest for each item."""
    M, kept = K.copy(), []
    for i in range(len(K)):
        if rng.random() < M[i, i]:
            kept.append(i)
        else:
            M[i, i] -= 1.0
        M[i + 1 :, i] /= M[i, i]
        M[i + 1 :, i + 1 :] -= np.outer(M[i + 1 :, i], M[i, i + 1 :])
    return kept


@pytest.mark.parametrize("n_items", [1, 5, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 7])
def test_blocks_decide_as_the_textbook_loop(n_items: int) -> None:
    spectrum = spectrum_of_kernel(grid_kernel(n_items))
    K = (spectrum.vectors * spectrum.probabilities) @ spectrum.vectors.T
    for random_state in range(5):
        (draw,) = draw_sequentially(K, 1, np.random.default_rng(random_state))
        assert draw.tolist() == eliminate(K, np.random.default_rng(random_state))


def test_the_low_rank_form_decides_as_the_full_one() -> None:
    spectrum = spectrum_of_features(np.random.default_rng(1).normal(size=(300, 12)))
    K = (spectrum.vectors * spectrum.probabilities) @ spectrum.vectors.T
    full = draw_sequentially(K, 20, np.random.default_rng(2))
    small = draw_sequentially_low_rank(spectrum.vectors, spectrum.probabilities, 20, np.random.default_rng(2))
    assert [a.tolist() for a in full] == [b.tolist() for b in small]


def test_a_projection_gives_its_rank_at_several_blocks() -> None:
    basis = np.linalg.qr(np.random.default_rng(3).normal(size=(400, 30)))[0]
    draws = draw_sequentially(basis @ basis.T, 20, np.random.default_rng(4))
    draws += draw_sequentially_low_rank(basis, np.ones(30), 20, np.random.default_rng(4))
    assert {draw.size for draw in draws} == {30}
    assert all((np.diff(draw) > 0).all() for draw in draws)


def test_mean_sizes_agree_with_the_spectrum_at_several_blocks() -> None:
    """False alarm rate 1e-6: z below 4.9."""
    spectrum = spectrum_of_kernel(grid_kernel(150))
    K = (spectrum.vectors * spectrum.probabilities) @ spectrum.vectors.T
    sizes = np.array([draw.size for draw in draw_sequentially(K, 1000, np.random.default_rng(5))])
    variance = (spectrum.probabilities * (1 - spectrum.probabilities)).sum()
    z = (sizes.mean() - spectrum.probabilities.sum()) / np.sqrt(variance / 1000)
    assert 2 * stats.norm.sf(abs(z)) > 1e-6


def test_the_marginal_kernel_is_left_as_it_was() -> None:
    K = np.array([[0.5, 0.3], [0.3, 0.5]])
    before = K.copy()
    draw_sequentially(K, 3, np.random.default_rng(0))
    np.testing.assert_array_equal(K, before)


@pytest.mark.parametrize(
    ("K", "message"),
    [
        ([[0.5, 0.1]], "square matrix"),
        ([[0.5, 0.1], [0.3, 0.5]], "symmetric"),
        ([[1.5]], "between 0 and 1, got 1.5"),
        ([[-0.5]], "between 0 and 1, got -0.5"),
        ([[np.nan]], "finite"),
    ],
)
def test_what_is_no_marginal_kernel_is_refused(K, message) -> None:
    with pytest.raises(ValueError, match=message):
        draw_sequentially(K, 1, np.random.default_rng(0))


def test_low_rank_input_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="one for each of the columns"):
        draw_sequentially_low_rank(np.eye(3), [0.5, 0.5], 1, np.random.default_rng(0))
    with pytest.raises(ValueError, match="between 0 and 1"):
        draw_sequentially_low_rank(np.eye(2), [0.5, 1.5], 1, np.random.default_rng(0))
