"""Projections, their coherence, and pictures as measurements of tiles."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.fft import dctn
from scipy.sparse.linalg import LinearOperator, aslinearoperator
from scipy.stats import chi2, kstest
from sklearn.utils.estimator_checks import parametrize_with_checks

from pluri.factors.dictionaries.sensing import (
    PatchCompressor,
    SVDProjection,
    as_projections,
    averaged_coherence,
    gram_coherence,
    measure,
    mutual_coherence,
    random_projections,
)
from pluri.factors.dictionaries.sensing.projections import whitened

RNG = np.random.default_rng(3)
ATOMS = RNG.normal(size=(40, 16))


def test_gaussian_entries_are_standard_normal():
    entries = random_projections(5, 10, 40, random_state=1).ravel()
    assert kstest(entries, "norm").pvalue > 1e-4  # the false-alarm rate


def test_binary_entries_are_signs_that_balance():
    entries = random_projections(5, 10, 80, kind="binary", random_state=1)
    assert set(np.unique(entries)) == {-1.0, 1.0}
    assert abs(entries.sum()) < 4.9 * np.sqrt(entries.size)  # false alarms: 1e-6


def test_a_mask_chooses_each_feature_equally_often_and_none_twice():
    masks = random_projections(3, 8, 400, kind="mask", random_state=2)
    np.testing.assert_array_equal(masks @ masks.transpose(0, 2, 1), np.broadcast_to(np.eye(3), (400, 3, 3)))
    counts = masks.sum(axis=(0, 1))
    statistic = ((counts - 150) ** 2 / 150).sum()  # counts of one row are negatively correlated: conservative
    assert statistic < chi2.isf(1e-4, 7)


@pytest.mark.parametrize("selection", ["random", "top", "weighted"])
@pytest.mark.parametrize("n", [1, 7, 16])
def test_rows_of_a_matched_projection_are_orthonormal_singular_directions(selection, n):
    projection = SVDProjection(n, selection=selection, random_state=0).fit(ATOMS)
    S = projection.components_
    np.testing.assert_allclose(S @ S.T, np.eye(n), atol=1e-12)
    # Singular directions are eigenvectors of D'D with the squares of the singular values.
    np.testing.assert_allclose(S @ ATOMS.T @ ATOMS, projection.singular_values_[:, None] ** 2 * S, atol=1e-9)


def test_the_top_directions_carry_the_most_of_the_dictionary():
    top = SVDProjection(5).fit(ATOMS).components_  # the default
    others = [SVDProjection(5, selection="random", random_state=seed).fit(ATOMS).components_ for seed in range(20)]
    assert all(((ATOMS @ top.T) ** 2).sum() >= ((ATOMS @ other.T) ** 2).sum() - 1e-9 for other in others)


def test_weighted_directions_come_with_the_probabilities_of_successive_draws():
    atoms = np.diag(np.sqrt([4.0, 2.0, 1.0, 1.0]))
    expected = {}
    for pair in itertools.permutations(range(4), 2):
        weight = np.array([4.0, 2.0, 1.0, 1.0])
        probability = weight[pair[0]] / 8 * weight[pair[1]] / (8 - weight[pair[0]])
        expected[frozenset(pair)] = expected.get(frozenset(pair), 0) + probability
    rng, n = np.random.default_rng(5), 800
    counts = dict.fromkeys(expected, 0)
    for _ in range(n):
        rows = SVDProjection(2, selection="weighted", random_state=rng).fit(atoms).components_
        counts[frozenset(np.abs(rows).argmax(axis=1).tolist())] += 1
    statistic = sum((counts[s] - n * p) ** 2 / (n * p) for s, p in expected.items())
    assert statistic < chi2.isf(1e-4, len(expected) - 1)


def test_directions_outside_the_span_of_the_atoms_are_taken_last():
    atoms = np.zeros((2, 6))
    atoms[0, 1], atoms[1, 4] = 3.0, 1.0
    for seed in range(10):
        rows = SVDProjection(2, selection="weighted", random_state=seed).fit(atoms).components_
        np.testing.assert_allclose(np.abs(rows[:, [1, 4]]), np.eye(2), atol=1e-12)


def test_with_as_many_measurements_as_features_nothing_is_lost():
    projection = SVDProjection(16, random_state=0).fit(ATOMS)
    X = RNG.normal(size=(9, 16))
    np.testing.assert_allclose(projection.inverse_transform(projection.transform(X)), X, atol=1e-12)


def test_directions_of_an_orthonormal_dictionary_are_arbitrary_and_a_warning_says_so():
    with pytest.warns(UserWarning, match="up to a rotation"):
        SVDProjection(5).fit(np.linalg.qr(RNG.normal(size=(16, 16)))[0])


def test_maps_of_all_kinds_are_the_same_matrix():
    A = RNG.normal(size=(4, 6))
    maps = [A, A.tolist(), aslinearoperator(A), lambda x: A @ x, LinearOperator(A.shape, matvec=lambda x: A @ x)]
    for one in maps:
        np.testing.assert_allclose(as_projections(one, 7, 6), A, atol=1e-12)
    several = as_projections(maps[2:4], 2, 6)
    np.testing.assert_allclose(several, [A, A], atol=1e-12)


def test_a_transform_given_as_a_function_measures_as_it_does():
    def coarse(x):
        return dctn(x.reshape(4, 4), norm="ortho")[:2, :2].ravel()

    X = RNG.normal(size=(5, 16))
    np.testing.assert_allclose(measure(X, coarse), [coarse(x) for x in X], atol=1e-12)


@pytest.mark.parametrize("shared", [True, False])
def test_whitening_makes_noise_of_the_signal_white_and_keeps_the_equations(shared):
    S = random_projections(4, 9, None if shared else 6, random_state=0)
    X = RNG.normal(size=(6, 9))
    Y, W = whitened(measure(X, S), S)
    np.testing.assert_allclose(measure(X, W), Y, atol=1e-10)
    np.testing.assert_allclose(
        W @ np.swapaxes(W, -1, -2), np.broadcast_to(np.eye(4), (*W.shape[:-2], 4, 4)), atol=1e-10
    )


def test_coherences_are_those_of_a_double_loop():
    S, D = RNG.normal(size=(5, 12)), RNG.normal(size=(9, 12))
    cosines = [abs(s @ d) / np.linalg.norm(s) / np.linalg.norm(d) for s in S for d in D]
    assert mutual_coherence(S, D) == pytest.approx(max(cosines))
    Phi = S @ D.T
    pairs = [
        abs(Phi[:, j] @ Phi[:, k]) / np.linalg.norm(Phi[:, j]) / np.linalg.norm(Phi[:, k])
        for j, k in itertools.combinations(range(9), 2)
    ]
    assert gram_coherence(Phi) == pytest.approx(max(pairs))
    assert averaged_coherence(Phi) == pytest.approx(np.mean(pairs))
    assert averaged_coherence(Phi, 0.4) == pytest.approx(np.mean([pair for pair in pairs if pair >= 0.4]))
    assert averaged_coherence(np.eye(4), 0.5) == 0.0


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 23), st.integers(1, 23), st.sampled_from([0, 1, 3]), st.integers(1, 6))
def test_tiles_put_together_are_the_picture(height, width, channels, side):
    image = np.random.default_rng(height * 31 + width).normal(size=(height, width, channels)[: 3 if channels else 2])
    compressor = PatchCompressor(side, n_measurements=1, random_state=0).fit(image)
    tiles = compressor.tiles(image)
    np.testing.assert_array_equal(compressor.inverse_transform(tiles), image)
    assert len(compressor.locations_) == len(tiles) == -(-height // side) * -(-width // side)


def test_a_tile_is_the_block_of_pixels_about_its_location():
    image = np.arange(48.0).reshape(6, 8)
    compressor = PatchCompressor(2, n_measurements=2, random_state=0).fit(image)
    for tile, (row, column) in zip(compressor.tiles(image), compressor.locations_, strict=True):
        r, c = int(row - 0.5), int(column - 0.5)
        np.testing.assert_array_equal(tile.reshape(2, 2), image[r : r + 2, c : c + 2])


def test_measurements_are_those_of_each_tile_by_its_projection():
    image = RNG.normal(size=(9, 13))
    compressor = PatchCompressor(4, n_measurements=5, random_state=0).fit(image)
    expected = [S @ tile for S, tile in zip(compressor.projections_, compressor.tiles(image), strict=True)]
    np.testing.assert_allclose(compressor.transform(image), expected, atol=1e-12)
    margin = compressor.tiles(image)[3].reshape(4, 4)  # the last tile of the first row: one column, then reflected
    np.testing.assert_array_equal(margin[:, 1:], image[:4, [11, 10, 9]])


@parametrize_with_checks([SVDProjection()])
def test_scikit_learn_accepts_the_projection(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore:the dictionary has equal")
@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: random_projections(7, 6), "n_measurements must be at most the number of features .6., got 7"),
        (lambda: random_projections(0, 6), "n_measurements must be an integer of at least 1, got 0"),
        (lambda: random_projections(2, 6, kind="fourier"), "kind must be .* got 'fourier'"),
        (lambda: SVDProjection(17).fit(ATOMS), "n_measurements must be at most .* .16., got 17"),
        (lambda: SVDProjection(2, selection="best").fit(ATOMS), "selection must be"),
        (lambda: as_projections(np.ones((2, 2, 3)), 5), "one for each of 5 rows, or one for all, got 2"),
        (lambda: as_projections(np.ones((2, 3)), 5, 4), "must have 4 columns"),
        (lambda: as_projections(np.full((2, 3), np.nan)), "must be finite"),
        (lambda: as_projections(np.ones(3)), "must have shape"),
        (lambda: as_projections("gaussian"), "must be a matrix"),
        (lambda: as_projections(lambda x: x), "do not tell the number of features"),
        (lambda: as_projections(np.cos, 5, 4), "must be linear"),
        (lambda: as_projections(lambda x: x + 1.0, 5, 4), "must be linear"),
        (lambda: whitened(np.ones((2, 2)), np.ones((2, 3))), "independent rows"),
        (lambda: measure(np.ones(3), np.ones((2, 3))), "X must have shape"),
        (lambda: mutual_coherence(np.ones((1, 3)), np.zeros((2, 3))), "no row of zeros"),
        (lambda: mutual_coherence(np.ones((1, 3)), np.ones((2, 4))), "same features, got 3 and 4"),
        (lambda: averaged_coherence(np.eye(3), 2), "threshold must be a number between 0 and 1"),
        (lambda: PatchCompressor(0).fit(np.ones((9, 9))), "patch_size must be an integer of at least 1"),
        (lambda: PatchCompressor(2).fit(np.ones((9, 9))), "n_measurements must be at most .* .4., got 25"),
        (lambda: PatchCompressor(2, projection="svd").fit(np.ones((9, 9))), "projection must be 'gaussian'"),
        (lambda: PatchCompressor(2, projection=np.ones((2, 5))).fit(np.ones((9, 9))), "must have 4 columns"),
        (lambda: PatchCompressor(2, 2).fit(np.ones(9)), "image must have shape"),
        (lambda: PatchCompressor(2, 2).fit([[1.0, np.nan]]), "NaN"),
        (lambda: PatchCompressor(2, 2).fit(np.ones((4, 4))).transform(np.ones((4, 6))), "shape .4, 4. that was fitted"),
        (lambda: PatchCompressor(2, 2).fit(np.ones((4, 4))).inverse_transform(np.ones((4, 5))), "must have shape"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_in_one_sentence(act, message):
    with pytest.raises(ValueError, match=message):
        act()
