"""Batches, streams, made-up items, comparisons: each beside what can be worked out another way."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse, stats
from sklearn.datasets import make_blobs, make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import check_estimator

from pluri.decisions import (
    ActiveLearner,
    Committee,
    QueryByCommittee,
    StrategyComparison,
    StreamQuery,
    compare_strategies,
    diverse_rows,
    synthesize,
)
from pluri.decisions.active.batches import top_rows
from pluri.decisions.active.comparison import paired_interval

X, Y = make_classification(150, 2, n_informative=2, n_redundant=0, random_state=0)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", [ActiveLearner, Committee, QueryByCommittee])
def test_learners_pass_the_checks_of_scikit_learn(kind):
    check_estimator(kind(random_state=0))


def determinant(rows, quality, chosen):
    """The process written out: quality times RBF similarity with the length scale that the selector takes."""
    from pluri.processes.dpp.selection.row_choice import default_length_scale

    standard = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    scale = default_length_scale(standard, len(chosen))
    gaps = ((standard[:, None] - standard[None]) ** 2).sum(axis=2)
    L = quality[:, None] * np.exp(-gaps / (2 * scale**2)) * quality
    return np.linalg.det(L[np.ix_(chosen, chosen)])


def test_a_diverse_batch_is_more_probable_under_its_process_than_the_top():
    rng = np.random.default_rng(0)
    rows, scores = rng.normal(size=(60, 2)), rng.random(60)
    quality = 0.1 + 0.9 * (scores - scores.min()) / np.ptp(scores)
    chosen, top = diverse_rows(rows, scores, 6, rng), top_rows(scores, 6, rng)
    assert determinant(rows, quality, chosen) > determinant(rows, quality, top)
    best = max(range(60), key=lambda row: determinant(rows, quality, [row]))
    assert chosen[0] == best == top[0]


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_one_of_each_group_of_copies_is_taken(form):
    corners = np.array([[9.0, 1.0], [1.0, 9.0], [6.0, 6.0]])
    rows, scores = np.repeat(corners, 10, axis=0), np.repeat([3.0, 2.0, 1.0], 10)
    chosen = diverse_rows(form(rows), scores, 2, np.random.default_rng(0))
    assert set(chosen // 10) == {0, 1}
    many = diverse_rows(form(rows), scores, 12, np.random.default_rng(0))
    assert len(set(many.tolist())) == 12  # more than differ: the rest by their scores
    assert (many[3:] < 20).all()


def test_ties_are_broken_at_random():
    first = {int(top_rows(np.zeros(5), 1, np.random.default_rng(seed))[0]) for seed in range(60)}
    assert first == set(range(5))  # one of five is never first with probability 5 * 0.8^60 < 1e-5


@pytest.mark.parametrize("scores", ["continuous", "few values", "constant"])
def test_a_stream_asks_for_its_share_whatever_the_scores_are(scores):
    rng = np.random.default_rng(3)
    values = {
        "continuous": rng.normal(size=4000),
        "few values": rng.integers(3, size=4000).astype(float),
        "constant": np.zeros(4000),
    }[scores]
    stream = StreamQuery(0.15, window=100, random_state=1)
    asked = np.array([stream.decide(value) for value in values])
    # The rank of each is uniform; those of one window depend on each other, mostly against each other. Five standard
    # deviations of independent ones are passed with probability below 1e-6.
    assert abs(asked.mean() - 0.15) < 5 * np.sqrt(0.15 * 0.85 / 4000)
    assert (stream.n_seen_, stream.n_queries_) == (4000, asked.sum())


def test_a_stream_asks_above_its_quantile_and_follows_scores_that_fall():
    rng = np.random.default_rng(0)
    values = rng.random(2000) * np.linspace(1, 0.1, 2000)
    stream, wrong, asked = StreamQuery(0.2, window=150, random_state=0), 0, []
    for value in values:
        threshold = stream.threshold_
        asked.append(stream.decide(value))
        wrong += asked[-1] != (value > threshold)
    assert wrong < 20  # differences of a rank at the edge, and the first items
    late = np.mean(asked[1000:])
    assert 0.1 < late < 0.25


def test_a_stream_asks_for_no_more_than_it_may_and_teaches():
    learner = ActiveLearner(strategy="entropy").fit(X[:10], Y[:10])
    stream = StreamQuery(0.5, n_queries=7, random_state=0)
    asked = stream.run(learner, X[10:110], Y[10:110])
    assert len(asked) == 7
    assert_array_equal(learner.y_[10:], Y[10:110][asked])


@pytest.mark.parametrize("settings", [{"share": 0}, {"share": 1.5}, {"window": 0}, {"n_queries": -1}])
def test_streams_that_cannot_be_meant_are_refused(settings):
    with pytest.raises(ValueError, match=f"{next(iter(settings))} must be"):
        StreamQuery(**settings)
    with pytest.raises(ValueError, match="score must be a number"):
        StreamQuery().decide(np.nan)


def test_a_made_up_item_is_the_highest_point_of_a_smooth_score():
    peak = np.array([0.3, -0.7])
    point = synthesize(lambda rows: -((rows - peak) ** 2).sum(axis=1), [(-1, 1), (-1, 1)], random_state=0)
    assert_allclose(point, peak, atol=1e-4)
    corner = synthesize(lambda rows: rows.sum(axis=1), [(-1, 2), (0, 3)], random_state=0)
    assert_allclose(corner, [2, 3])


def test_a_made_up_item_is_where_the_model_is_torn():
    learner = ActiveLearner(strategy="least_confident").fit(X[:40], Y[:40])
    point = synthesize(learner, [(-2, 2), (-2, 2)], random_state=1)
    assert_allclose(learner.predict_proba(point[None]), 0.5, atol=1e-4)
    flat = synthesize(lambda rows: (rows[:, 0] > 0.5).astype(float), [(0, 1)], random_state=0)
    assert flat[0] > 0.5


@pytest.mark.parametrize("bounds", [[(1, 0)], [(0, np.inf)], [0, 1], np.empty((0, 2))])
def test_boxes_that_cannot_be_meant_are_refused(bounds):
    with pytest.raises(ValueError, match="bounds must"):
        synthesize(lambda rows: rows[:, 0], bounds)


def test_repeats_are_paired_and_calls_counted():
    found = compare_strategies(
        LogisticRegression(), X, Y, {"margin": "margin", "same": {"strategy": "random"}, "own": lambda l, r: r[:, 0]},
        n_initial=6, n_queries=9, batch_size=3, n_repeats=4, random_state=0,
    )  # fmt: skip
    assert found.n_labels.tolist() == [6, 9, 12, 15]
    assert all(calls == 36 for calls in found.n_oracle_calls.values())
    assert_array_equal(found.scores["same"], found.scores["random"])  # the same seeds, splits and first labels
    starts = {name: values[:, 0].tolist() for name, values in found.scores.items()}
    assert all(start == starts["random"] for start in starts.values())
    assert found.difference("same")[0].tolist() == [0, 0, 0, 0]
    gap = found.scores["margin"] - found.scores["random"]
    middle, low, high = found.difference("margin")
    reference = stats.ttest_rel(found.scores["margin"][:, -1], found.scores["random"][:, -1]).confidence_interval()
    assert_allclose([middle[-1], low[-1], high[-1]], [gap[:, -1].mean(), reference.low, reference.high])
    average = stats.ttest_1samp(gap.mean(axis=1), 0).confidence_interval()
    assert_allclose(found.average_difference("margin"), [gap.mean(), average.low, average.high])
    assert "4 paired repeats, 6 to 15 labels; baseline random" in found.summary()
    assert found.std("margin").shape == (4,)


def test_the_interval_covers_the_truth_as_often_as_it_says():
    rng = np.random.default_rng(0)
    covered = [low <= 0.5 <= high for _, low, high in (paired_interval(rng.normal(0.5, 1, 6)) for _ in range(2000))]
    assert abs(np.mean(covered) - 0.95) < 5 * np.sqrt(0.95 * 0.05 / 2000)  # passed over with probability below 1e-6
    assert np.isnan(paired_interval(np.array([1.0]))[1])


def test_a_boundary_is_learned_with_fewer_labels_than_at_random():
    """On one line with a boundary, asking at the boundary is bisection, and asking at random is not."""
    rows = np.linspace(-1, 1, 400)[:, None]
    labels = (rows[:, 0] > 0.3).astype(int)
    found = compare_strategies(
        LogisticRegression(C=1e4), rows, labels, ["margin"], n_initial=2, n_queries=10, n_repeats=10, random_state=0
    )
    # Bisection leaves an error of order 2^-10, ten random labels one of order 1/10.
    assert found.mean("margin")[-1] > 0.98
    assert found.difference("margin")[1][-1] > 0


def test_held_out_rows_of_a_comparison_are_in_no_pool():
    outside = make_blobs(30, 2, centers=2, random_state=5)
    found = compare_strategies(None, X, Y, "entropy", n_queries=3, n_repeats=2, evaluation=outside, random_state=0)
    assert found.scores["entropy"].shape == (2, 4)
    with pytest.raises(
        ValueError, match=r"X_eval must have no row that is also in X_pool, got 5 of 5, the first is row 0"
    ):
        compare_strategies(None, X, Y, "entropy", evaluation=(X[:5], Y[:5]))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_initial": 1}, "n_initial must be an integer of at least 2"),
        ({"n_queries": 500}, "n_initial \\+ n_queries must be at most the 90 rows of the pool, got 510"),
        ({"eval_size": 1.5}, "eval_size must be a number above 0 and below 1"),
        ({"eval_size": 150}, "eval_size must be from 1 to 149"),
        ({"strategies": ["guess"]}, "strategy must be one of"),
        ({"strategies": {"a": {"n_queries": 3}}}, "strategies must not set n_queries"),
        ({"strategies": {"a": {"min_score": -0.1}}}, "strategies must not set min_score: all curves"),
        ({"n_repeats": 0}, "n_repeats must be"),
    ],
)
def test_comparisons_that_cannot_be_meant_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        compare_strategies(None, X, Y, **{"strategies": ["margin"]} | settings)


def test_a_comparison_is_told_in_a_line():
    found = StrategyComparison(np.arange(3), {"random": np.zeros((2, 3)), "margin": np.ones((2, 3))}, "random", {})
    assert repr(found) == "<StrategyComparison of random, margin: print its summary()>"
