"""Alignment kernels against known answers, all monotone paths written out, and what is known to be false of them."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from pluri.sequences import TimeAlignmentKernel
from pluri.sequences.alignment import gram
from pluri.sequences.alignment.frames import Frames

RBF = {"frame_kernel": "rbf", "sigma": 1.3}


def column(*values):
    return np.array(values, dtype=float)


def random_sequences(seed, n=6, longest=5, n_features=2):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(rng.integers(1, longest + 1), n_features)) for _ in range(n)]


def all_paths(n, m, max_step=1, window=None):
    """Every path of cells from the origin (0, 0) to (n, m); cells count from 1."""
    steps = [step for step in itertools.product(range(max_step + 1), repeat=2) if step != (0, 0)]

    def inside(i, j):
        within = window is None or abs(i * m - j * n) <= window * max(n, m)
        return 1 <= i <= n and 1 <= j <= m and within

    def extend(path):
        i, j = path[-1]
        if (i, j) == (n, m):
            yield path
        for a, b in steps:
            if inside(i + a, j + b):
                yield from extend([*path, (i + a, j + b)])

    return list(extend([(0, 0)]))


def frame_similarity(x, v, frame_kernel="rbf", sigma=1.0):
    if frame_kernel == "linear":
        return x @ v.T
    return np.array([[np.exp(-np.sum((a - b) ** 2) / sigma**2) for b in v] for a in x])


def enumerated(x, v, kind="max", max_step=1, window=None, **frames):
    similar = frame_similarity(x, v, **frames)
    values = []
    for path in all_paths(len(x), len(v), max_step, window):
        cells = [similar[i - 1, j - 1] for i, j in path[1:]]
        weights = [sum(here) - sum(before) for before, here in itertools.pairwise(path)]
        assert sum(weights) == len(x) + len(v)
        if kind == "max":
            values.append(np.dot(weights, cells) / (len(x) + len(v)))
        else:
            values.append(np.prod([k / (2 - k) for k in cells]))
    return max(values) if kind == "max" else sum(values)


def test_known_answers():
    linear, rbf = TimeAlignmentKernel(frame_kernel="linear"), TimeAlignmentKernel(sigma=1.0)
    assert_allclose(linear([column(1, 2, 3), column(1, 3)]), [[14 / 3, 4.6], [4.6, 5.0]], rtol=1e-15)
    assert_allclose(rbf([column(1, 2, 3)], [column(1, 3)]), [[(4 + np.exp(-1)) / 5]], rtol=1e-15)


def test_cauchy_schwarz_fails_for_inner_products_of_frames():
    sequences = [column(10, 0), column(10, 10)]
    found = TimeAlignmentKernel(frame_kernel="linear")(sequences)
    assert_allclose(found, [[50, 75], [75, 100]])
    assert found[0, 1] ** 2 > found[0, 0] * found[1, 1]
    normalized = TimeAlignmentKernel(frame_kernel="linear", normalize=True)(sequences)
    assert normalized[0, 1] > 1.0


@pytest.mark.parametrize(
    ("sequences", "smallest"),
    [
        ([column(0), column(0, 0, 1), column(0, 1, 1)], -0.027543),
        ([column(0, 1), column(1, 0), column(0, 0, 0), column(1, 1, 1)], -0.175758),
    ],
)
def test_the_best_alignment_is_no_positive_definite_kernel(sequences, smallest):
    found = TimeAlignmentKernel()(sequences)
    if len(sequences) == 3:
        assert_allclose(found, [[1, 0.841970, 0.683940], [0.841970, 1, 1], [0.683940, 1, 1]], atol=5e-7)
    assert_allclose(np.linalg.eigvalsh(found)[0], smallest, atol=5e-7)


def test_there_are_as_many_paths_as_delannoy_counted():
    assert [len(all_paths(n, n)) for n in (1, 2, 3, 4)] == [1, 3, 13, 63]


@pytest.mark.parametrize("window", [None, 1, 2])
@pytest.mark.parametrize("max_step", [1, 2, 3])
@pytest.mark.parametrize(("kind", "frame_kernel"), [("max", "rbf"), ("max", "linear"), ("sum", "rbf")])
def test_the_kernel_is_the_enumeration_of_all_paths(kind, frame_kernel, max_step, window):
    frames = {"frame_kernel": frame_kernel, "sigma": 1.3}
    kernel = TimeAlignmentKernel(kind, max_step=max_step, window=window, **frames)
    longest = 5 if max_step == 1 else 4
    X, Y = random_sequences(1, longest=longest), random_sequences(2, longest=longest)
    X[0], Y[0] = np.resize(X[0], (longest, 2)), np.resize(Y[0], (longest, 2))
    expected = [[enumerated(x, v, kind, max_step, window, **frames) for v in Y] for x in X]
    assert_allclose(kernel(X, Y), expected, rtol=1e-12)


@pytest.mark.parametrize("window", [None, 1])
@pytest.mark.parametrize("max_step", [1, 2])
def test_sums_whose_parts_underflow_are_the_enumeration_too(max_step, window):
    """Far apart in the middle and close at the ends: a scaled recursion would lose the only paths that matter."""
    rng = np.random.default_rng(0)
    X = [40.0 * rng.normal(size=(4, 1)) for _ in range(3)]
    X[1][:2] = X[0][:2]
    kernel = TimeAlignmentKernel("sum", max_step=max_step, window=window)
    comparison = kernel._comparison()
    for x, v in itertools.product(X, X):
        frames = Frames(np.concatenate([x, v]), np.array([4, 4]))
        found = gram.pair_values(comparison, frames, frames, np.array([0]), np.array([1]), None)[0]
        squares = (x - v.T) ** 2
        logs = -squares - np.log(2 - np.exp(-squares))
        paths = [
            sum(logs[i - 1, j - 1] for i, j in path[1:]) for path in all_paths(4, 4, max_step=max_step, window=window)
        ]
        assert_allclose(found, np.logaddexp.reduce(paths), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("sigma", [0.05, 0.3, 1.0, 5.0, 100.0])
def test_scaled_sums_agree_with_those_in_log_space(sigma):
    rng = np.random.default_rng(3)
    X = [rng.normal(size=(length, 3)).cumsum(axis=0) for length in (3, 40, 90, 200)]
    comparison = TimeAlignmentKernel("sum", sigma=sigma)._comparison()
    frames = Frames(np.concatenate(X), np.array([len(x) for x in X]))
    found = gram.gram_matrix(comparison, frames, None, None)
    assert_allclose(found, [[comparison.of_pair(x, v) for v in X] for x in X], rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("kind", ["max", "sum"])
@pytest.mark.parametrize("setting", [{}, {"window": 2}, {"normalize": True}, {"max_step": 2, "kind": "max"}])
def test_the_kernel_is_symmetric_to_the_last_bit(kind, setting):
    kernel = TimeAlignmentKernel(**{"kind": kind, **RBF, **setting})
    X, Y = random_sequences(4, n=8, longest=12), random_sequences(5, n=7, longest=12)
    assert_array_equal(kernel(X, Y), kernel(Y, X).T)
    found = kernel(X)
    assert_array_equal(found, found.T)
    assert_allclose(found, kernel(X, X), rtol=1e-15)


@pytest.mark.parametrize("n_jobs", [2, -1])
@pytest.mark.parametrize("kind", ["max", "sum", "linear"])
def test_threads_change_nothing(kind, n_jobs, monkeypatch):
    monkeypatch.setattr(gram, "PIECE", 100)
    X = random_sequences(6, n=15, longest=9)
    kernel = TimeAlignmentKernel(kind, **RBF)
    assert_array_equal(clone(kernel).set_params(n_jobs=n_jobs)(X), kernel(X))


def test_a_sequence_is_like_itself_and_like_itself_slowed_down():
    X = random_sequences(7, longest=9)
    kernel = TimeAlignmentKernel(**RBF)
    assert_array_equal(kernel.diag(X), 1.0)
    slow = [np.repeat(x, 2, axis=0) for x in X]
    assert_array_equal([kernel([x], [y])[0, 0] for x, y in zip(X, slow)], 1.0)
    found = kernel(X)
    assert (found > 0).all()
    assert (found <= 1).all()


def test_single_frames_are_compared_by_the_frame_kernel():
    X, Y = random_sequences(8, longest=1), random_sequences(9, longest=1)
    expected = frame_similarity(np.concatenate(X), np.concatenate(Y), sigma=1.3)
    assert_allclose(TimeAlignmentKernel(**RBF)(X, Y), expected, rtol=1e-14)
    assert_allclose(TimeAlignmentKernel("linear", **RBF)(X, Y), expected, rtol=1e-14)
    assert_allclose(TimeAlignmentKernel("sum", **RBF)(X, Y), expected / (2 - expected), rtol=1e-13)


def test_padding_and_neighbours_in_the_list_do_not_matter():
    X = random_sequences(10, n=9, longest=20)
    kernel = TimeAlignmentKernel(**RBF)
    assert_array_equal(kernel(X), [[kernel([x], [v])[0, 0] for v in X] for x in X])


@pytest.mark.parametrize("frame_kernel", ["rbf", "linear"])
def test_linear_warps_compare_frames_at_rounded_up_places(frame_kernel):
    X = random_sequences(11, longest=7)
    for length in (None, 5, 13):
        found = TimeAlignmentKernel("linear", frame_kernel=frame_kernel, length=length)(X)
        for (i, x), (j, v) in itertools.product(enumerate(X), repeat=2):
            steps = length or max(len(x), len(v))
            similar = frame_similarity(x, v, frame_kernel)
            places = [(-(-len(x) * k // steps) - 1, -(-len(v) * k // steps) - 1) for k in range(1, steps + 1)]
            assert_allclose(found[i, j], np.mean([similar[place] for place in places]), rtol=1e-12)


def test_no_linear_warp_along_the_lattice_beats_the_best_path():
    """With steps of one frame in each sequence at most, a linear warp is a path; a diagonal step of it counts twice."""
    X = random_sequences(12, n=8, longest=9)
    kernel = TimeAlignmentKernel(**RBF)
    for x, v in itertools.product(X, X):
        if len(x) == len(v):
            fixed = np.mean(np.diagonal(frame_similarity(x, v, sigma=1.3)))
            assert kernel([x], [v])[0, 0] >= fixed - 1e-14


@pytest.mark.parametrize("setting", [{}, {"max_step": 2}, {"max_step": 3, "window": 1}, {"frame_kernel": "linear"}])
def test_the_path_is_monotone_ends_at_the_ends_and_has_the_score(setting):
    kernel = TimeAlignmentKernel(**setting)
    max_step = setting.get("max_step", 1)
    for x, v in itertools.product(random_sequences(13, longest=9), random_sequences(14, longest=9)):
        path, score = kernel.align(x, v)
        assert_allclose(score, kernel([x], [v])[0, 0], rtol=1e-12)
        steps = np.diff(np.vstack([[-1, -1], path]), axis=0)
        assert np.isin(steps, np.arange(max_step + 1)).all()
        assert (steps.sum(axis=1) > 0).all()
        assert path[-1].tolist() == [len(x) - 1, len(v) - 1]
        similar = frame_similarity(x, v, setting.get("frame_kernel", "rbf"))
        assert_allclose(steps.sum(axis=1) @ similar[tuple(path.T)] / (len(x) + len(v)), score, rtol=1e-12)


def test_equally_good_steps_go_along_both_sequences():
    path, score = TimeAlignmentKernel().align(column(1, 1, 1), column(1, 1, 1))
    assert path.tolist() == [[0, 0], [1, 1], [2, 2]]
    assert score == 1.0
    assert TimeAlignmentKernel("linear").align(column(1, 2, 3), column(1, 3))[0].tolist() == [[0, 0], [1, 1], [2, 1]]


@pytest.mark.parametrize("max_step", [1, 2])
def test_sums_of_all_paths_are_positive_definite(max_step):
    rng = np.random.default_rng(15)
    for sigma in (0.5, 1.0, 3.0):
        X = [rng.integers(3, size=(rng.integers(1, 7), 1)).astype(float) for _ in range(40)]
        found = TimeAlignmentKernel("sum", sigma=sigma, normalize=True, max_step=max_step)(X)
        assert_allclose(np.diagonal(found), 1.0, rtol=1e-12)
        assert np.linalg.eigvalsh(found)[0] > -1e-10


def test_linear_warps_of_one_length_are_positive_definite_and_an_inner_product():
    X = random_sequences(16, n=12, longest=8)
    found = TimeAlignmentKernel("linear", frame_kernel="linear", length=6)(X)
    flat = np.stack([x[[-(-len(x) * k // 6) - 1 for k in range(1, 7)]].ravel() for x in X])
    assert_allclose(found, flat @ flat.T / 6, rtol=1e-12, atol=1e-14)
    assert np.linalg.eigvalsh(TimeAlignmentKernel("linear", length=6)(X))[0] > -1e-12


def test_a_function_of_frames_is_as_good_as_a_name():
    X, Y = random_sequences(17), random_sequences(18)

    def rbf(x, v):
        return frame_similarity(x, v, sigma=1.3)

    def divisible(x, v):
        return rbf(x, v) / (2 - rbf(x, v))

    for kind, function in (("max", rbf), ("linear", rbf), ("sum", divisible)):
        expected = TimeAlignmentKernel(kind, **RBF)(X, Y)
        assert_allclose(TimeAlignmentKernel(kind, frame_kernel=function)(X, Y), expected, rtol=1e-12)


def test_normalized_sums_of_long_sequences_do_not_overflow():
    rng = np.random.default_rng(19)
    X = [rng.normal(size=(length, 1)) for length in (900, 1000)]
    found = TimeAlignmentKernel("sum", sigma=10.0, normalize=True)(X)
    assert_allclose(np.diagonal(found), 1.0, rtol=1e-9)
    assert 0 < found[0, 1] < 1
    with pytest.raises(ValueError, match="normalize must be True"):
        TimeAlignmentKernel("sum", sigma=10.0)(X)


def test_the_median_is_that_of_the_distances_of_frames():
    X = random_sequences(20, n=10, longest=6)
    rows = np.concatenate(X)
    distances = [np.linalg.norm(a - b) for a, b in itertools.combinations(rows, 2)]
    assert_allclose(TimeAlignmentKernel(sigma="median").resolve(X).sigma, np.median(distances))
    lengths = [len(x) for x in X]
    expected = np.median(distances) * np.sqrt(np.median(lengths))
    assert_allclose(TimeAlignmentKernel("sum", sigma="median").resolve(X).sigma, expected)
    assert TimeAlignmentKernel(sigma="median").resolve([np.zeros((3, 1))]).sigma == 1.0
    kernel = TimeAlignmentKernel(sigma=2.0)
    assert kernel.resolve(X) is kernel


def test_an_array_with_three_axes_and_one_feature_are_sequences():
    rng = np.random.default_rng(21)
    X = rng.normal(size=(4, 6, 2))
    kernel = TimeAlignmentKernel()
    assert_array_equal(kernel(X), kernel(list(X)))
    assert_array_equal(kernel([x[:, 0] for x in X]), kernel([x[:, :1] for x in X]))
    assert_array_equal(kernel(X.astype(np.float32)), kernel(X.astype(np.float32).astype(float)))


@pytest.mark.parametrize(
    ("X", "told"),
    [
        (np.zeros((4, 2)), r"X must be a list of sequences, .* got an array with 2 axes"),
        ([np.zeros((2, 2)), np.zeros((2, 3))], "same number of features"),
        ([np.zeros((2, 2)), np.zeros((0, 2))], "at least one frame, got none in sequence 1"),
        ([np.array([[0.0, np.nan]])], "no missing values, got NaN"),
        ([np.array([[0.0, np.inf]])], "must be finite"),
        ([np.array([["a", "b"]])], "X must|could not convert"),
    ],
)
def test_what_cannot_be_compared_is_refused(X, told):
    with pytest.raises(ValueError, match=told):
        TimeAlignmentKernel()(X)


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ({"sigma": 0.0}, "sigma must be a positive number"),
        ({"sigma": "median"}, "resolve"),
        ({"kind": "soft"}, "kind must be one of"),
        ({"max_step": 0}, "max_step must be"),
        ({"window": 0}, "window must be"),
        ({"length": 5}, "length must be None"),
        ({"kind": "linear", "window": 3}, "one path only"),
        ({"kind": "sum", "frame_kernel": "linear"}, "frame_kernel must not be"),
        ({"kind": "sum", "frame_kernel": lambda x, v: -np.ones((len(x), len(v)))}, "must not be negative"),
        ({"frame_kernel": lambda x, v: np.ones(3)}, "of shape"),
        ({"frame_kernel": "cosine"}, "frame_kernel must be"),
        ({"normalize": True, "frame_kernel": "linear"}, "normalize must be False"),
        ({"n_jobs": 0}, "n_jobs must be"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(setting, told):
    with pytest.raises(ValueError, match=told):
        TimeAlignmentKernel(**setting)([np.zeros((2, 1)), np.ones((2, 1))])


def test_sums_of_paths_have_no_single_path():
    with pytest.raises(ValueError, match="kind must be 'max'"):
        TimeAlignmentKernel("sum").align([1.0], [2.0])
