"""Sequential processes against sums over all choices, and their learning against finite differences."""

from itertools import combinations, product

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.stats import chisquare
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from pluri.processes.dpp import DPP
from pluri.processes.dpp.successive.sequential import SequentialDPP
from pluri.processes.dpp.successive.sequential_learning import SequentialDPPLearner, _steps, log_likelihood_and_gradient

#: False-alarm rate of each statistical test below.
ALPHA = 1e-6


def subsets(n):
    return [s for size in range(n + 1) for s in combinations(range(n), size)]


@pytest.fixture(scope="module")
def segments():
    rng = np.random.default_rng(0)
    return [rng.normal(size=(n, 6)) / 2 for n in (3, 2, 3)]


@pytest.fixture(scope="module")
def process(segments):
    return SequentialDPP(segments, quality=[np.linspace(0.8, 1.5, len(rows)) for rows in segments])


def law_by_formula(segments, quality, t, previous, chosen):
    before = segments[t - 1][list(previous)] * quality[t - 1][list(previous), None] if t else segments[0][:0]
    rows = np.concatenate([before, segments[t] * quality[t][:, None]])
    omega = rows @ rows.T
    mask = np.diag(np.arange(len(rows)) >= len(before)).astype(float)
    taken = [*range(len(before)), *(len(before) + i for i in chosen)]
    return np.linalg.det(omega[np.ix_(taken, taken)]) / np.linalg.det(omega + mask)


def test_transitions_equal_the_formula_and_sum_to_one(segments, process):
    quality = [np.linspace(0.8, 1.5, len(rows)) for rows in segments]
    for t in range(3):
        for previous in subsets(len(segments[t - 1])) if t else [()]:
            law = process.transition(t, previous)
            expected = [law_by_formula(segments, quality, t, previous, s) for s in subsets(len(segments[t]))]
            np.testing.assert_allclose(
                np.exp([law.log_prob(s) for s in subsets(len(segments[t]))]), expected, atol=1e-10
            )
            assert sum(expected) == pytest.approx(1.0)


def test_all_sequences_together_have_probability_one(segments, process):
    every = product(*(subsets(len(rows)) for rows in segments))
    assert sum(np.exp(process.log_likelihood(sequence)) for sequence in every) == pytest.approx(1.0)


def test_after_an_empty_choice_a_segment_is_a_process_by_itself(segments, process):
    rows = segments[1] * np.linspace(0.8, 1.5, 2)[:, None]
    alone = DPP(features=rows)
    for chosen in subsets(2):
        assert process.transition(1, ()).log_prob(chosen) == pytest.approx(alone.log_prob(chosen))


def test_draws_have_the_law_of_the_sequence(segments, process):
    """False-alarm rate 1e-6."""
    rng = np.random.default_rng(0)
    every = list(product(subsets(3), subsets(2)))
    law = np.exp([process.log_likelihood(sequence) for sequence in every])
    place = {sequence: i for i, sequence in enumerate(every)}
    draws = [place[tuple(tuple(items.tolist()) for items in process.sample(2, random_state=rng))] for _ in range(2000)]
    counts, expected = np.bincount(draws, minlength=len(every)), law * len(draws)
    rare = expected < 10
    counts, expected = np.append(counts[~rare], counts[rare].sum()), np.append(expected[~rare], expected[rare].sum())
    assert chisquare(counts, expected).pvalue > ALPHA


def test_a_wide_beam_finds_the_most_probable_sequence(segments, process):
    best = max(product(*(subsets(len(rows)) for rows in segments)), key=process.log_likelihood)
    found = process.map(beam_width=8)
    assert tuple(tuple(items.tolist()) for items in found) == best
    assert process.log_likelihood(process.map()) <= process.log_likelihood(found) + 1e-12


def test_a_wider_beam_is_no_worse_on_longer_streams():
    rng = np.random.default_rng(1)
    process = SequentialDPP([rng.normal(size=(6, 4)) for _ in range(6)])
    values = [process.log_likelihood(process.map(beam_width=width)) for width in (1, 4, 16)]
    assert values == sorted(values)
    assert np.isfinite(values).all()


def test_copies_of_what_was_chosen_are_never_chosen():
    rows = 2 * np.eye(3)
    process = SequentialDPP([rows[[0, 1]], rows[[0, 2]]])
    for seed in range(20):
        first, second = process.sample(random_state=seed)
        assert not (0 in first and 0 in second)


def test_kernels_by_name():
    rng = np.random.default_rng(0)
    X = [rng.random((4, 2)) for _ in range(2)]
    by_name = SequentialDPP(X, "rbf", length_scale=0.3)
    by_hand = SequentialDPP(X, lambda a, b: np.exp(-0.5 * ((a[:, None] - b[None]) ** 2).sum(-1) / 0.09))
    assert by_name.log_likelihood([[0], [1, 2]]) == pytest.approx(by_hand.log_likelihood([[0], [1, 2]]))


# Learning ------------------------------------------------------------------------------------------------------------


def test_the_gradient_is_that_of_the_likelihood():
    rng = np.random.default_rng(0)
    stream = [rng.normal(size=(n, 3)) for n in (3, 4, 2)]
    steps = _steps([stream], [[[0, 1], [2], []]])
    W = rng.normal(size=(2, 3))
    value, gradient = log_likelihood_and_gradient(W, steps, 0.1)
    numerical = approx_fprime(W.ravel(), lambda w: log_likelihood_and_gradient(w.reshape(2, 3), steps, 0.1)[0], 1e-7)
    np.testing.assert_allclose(gradient.ravel(), numerical, atol=1e-4)
    process = SequentialDPP([rows @ W.T for rows in stream], ridge=0.1)
    assert process.log_likelihood([[0, 1], [2], []]) == pytest.approx(value)


def test_learning_recovers_the_probabilities_of_a_known_map():
    rng = np.random.default_rng(0)
    W = np.array([[2.0, 0.0, 0.0], [0.0, 1.0, 0.5]])
    streams = [[rng.normal(size=(5, 3)) for _ in range(60)] for _ in range(6)]
    choices = [SequentialDPP([rows @ W.T for rows in s], ridge=1e-3).sample(random_state=rng) for s in streams]
    learner = SequentialDPPLearner(2, random_state=0).fit(streams[:4], choices[:4])
    assert learner.score(streams[:4], choices[:4]) == pytest.approx(learner.log_likelihood_)
    # W itself is known up to a rotation, and its scale poorly: what counts are the probabilities of new choices.
    gaps = [
        log_likelihood_and_gradient(W, _steps(s, c), 1e-3)[0] / (60 * len(s)) - learner.score(s, c)
        for s, c in ((streams[:4], choices[:4]), (streams[4:], choices[4:]))
    ]
    assert gaps[0] < 0.0
    assert gaps[1] < 0.05
    best = learner.process(streams[5]).map()
    assert [s.tolist() for s in learner.predict(streams[5:])[0]] == [s.tolist() for s in best]


def test_an_early_end_warns_and_leaves_a_usable_learner():
    rng = np.random.default_rng(0)
    stream = [rng.normal(size=(4, 3)) for _ in range(5)]
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        learner = SequentialDPPLearner(max_iter=1, random_state=0).fit([stream], [[[0]] * 5])
    assert np.isfinite(learner.score([stream], [[[0]] * 5]))
    assert clone(learner).get_params() == learner.get_params()


ROWS = np.eye(3)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: SequentialDPP([]), "segments must hold at least one segment"),
        (lambda: SequentialDPP([ROWS, np.eye(2)]), "segments must have the same number of columns"),
        (lambda: SequentialDPP([ROWS * np.nan]), r"segments\[0\] must be finite"),
        (lambda: SequentialDPP([np.empty((0, 3))]), r"segments\[0\] must be a matrix with a row for each item"),
        (lambda: SequentialDPP([ROWS], quality=[]), "quality must be given for each of 1 segments"),
        (lambda: SequentialDPP([ROWS], ridge=-1), "ridge must be a number of at least 0"),
        (lambda: SequentialDPP([ROWS], "nearest"), "kernel must be one of"),
        (lambda: SequentialDPP([ROWS]).sample(2), "n_samples must be from 0 to 1 or None"),
        (lambda: SequentialDPP([ROWS]).map(beam_width=0), "beam_width must be an integer of at least 1"),
        (lambda: SequentialDPP([ROWS]).transition(1), "t must lie between 0 and 0"),
        (lambda: SequentialDPP([ROWS]).transition(0, [1]), "previous must be empty for the first segment"),
        (lambda: SequentialDPP([ROWS] * 2).log_likelihood([[0], [9]]), r"sequence\[1\] must hold items from 0 to 2"),
        (lambda: SequentialDPP([ROWS]).log_likelihood([[], []]), "sequence must have at most 1 choices, got 2"),
        (lambda: SequentialDPP([ROWS], lambda a, b: -a @ b.T).sample(), "kernel of segment 0 must be positive semi"),
        (lambda: SequentialDPPLearner().fit([], []), "X and y must hold the same number of streams"),
        (lambda: SequentialDPPLearner().fit([[ROWS]], [[]]), "y must have a choice for each of the 1 segments"),
        (
            lambda: SequentialDPPLearner(0).fit([[ROWS]], [[[0]]]),
            "n_components must be an integer of at least 1 or None",
        ),
        (lambda: SequentialDPPLearner(ridge=0).fit([[ROWS]], [[[0]]]), "ridge must be a positive number"),
    ],
)
def test_bad_input_is_told_in_a_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()
