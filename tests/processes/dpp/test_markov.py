"""Chains of sets against the sum over all subsets."""

import signal
from itertools import combinations, pairwise

import numpy as np
import pytest
from scipy.stats import chisquare

from pluri import on_interrupt
from pluri.processes.dpp import DPP
from pluri.processes.dpp.successive.markov import MarkovDPP

N = 5
#: False-alarm rate of each statistical test below.
ALPHA = 1e-6
SUBSETS = [s for size in range(N + 1) for s in combinations(range(N), size)]


@pytest.fixture(scope="module")
def kernel():
    root = np.random.default_rng(0).normal(size=(N, N))
    matrix = root @ root.T
    return 0.8 * matrix / np.linalg.eigvalsh(matrix)[-1]


@pytest.fixture(scope="module")
def laws(kernel):
    """P(first) and P(second given first) by the formulas, written out."""
    M = kernel @ np.linalg.inv(np.eye(N) - kernel)
    first = np.array([np.linalg.det(kernel[np.ix_(s, s)]) for s in SUBSETS]) / np.linalg.det(kernel + np.eye(N))
    transition = np.zeros((len(SUBSETS), len(SUBSETS)))
    for a, before in enumerate(SUBSETS):
        outside = np.diag([0.0 if i in before else 1.0 for i in range(N)])
        for b, after in enumerate(SUBSETS):
            if not set(before) & set(after):
                union = list(before + after)
                transition[a, b] = np.linalg.det(M[np.ix_(union, union)]) / np.linalg.det(M + outside)
    return first, transition


def test_transitions_equal_enumeration(kernel, laws):
    chain = MarkovDPP(kernel)
    _, transition = laws
    np.testing.assert_allclose(transition.sum(axis=1), 1.0)
    for a, before in enumerate(SUBSETS):
        law = chain.transition(before)
        found = np.exp([law.log_prob(after) for after in SUBSETS])
        np.testing.assert_allclose(found, transition[a], atol=1e-10)


def test_every_set_has_the_law_of_the_kernel_and_the_chain_is_reversible(kernel, laws):
    first, transition = laws
    np.testing.assert_allclose(first @ transition, first, atol=1e-12)
    joint = first[:, None] * transition
    np.testing.assert_allclose(joint, joint.T, atol=1e-12)
    np.testing.assert_allclose([np.exp(MarkovDPP(kernel).marginal_law.log_prob(s)) for s in SUBSETS], first)


def test_the_union_of_neighbours_has_the_kernel_2m(kernel, laws):
    first, transition = laws
    union = dict.fromkeys(SUBSETS, 0.0)
    for a, before in enumerate(SUBSETS):
        for b, after in enumerate(SUBSETS):
            if transition[a, b] > 0:
                union[tuple(sorted(before + after))] += first[a] * transition[a, b]
    law = MarkovDPP(kernel).union_law
    np.testing.assert_allclose([np.exp(law.log_prob(s)) for s in SUBSETS], list(union.values()), atol=1e-10)


def test_the_likelihood_is_the_product_along_the_chain(kernel, laws):
    first, transition = laws
    sequence = [(0, 2), (1,), (), (3, 4), (0,)]
    places = [SUBSETS.index(s) for s in sequence]
    expected = np.log(first[places[0]]) + np.log([transition[a, b] for a, b in pairwise(places)]).sum()
    chain = MarkovDPP(kernel)
    assert chain.log_likelihood(sequence) == pytest.approx(expected)
    assert chain.log_likelihood([(0, 2), (2,)]) == -np.inf
    assert chain.log_likelihood([]) == 0.0


def test_draws_follow_the_joint_law_of_neighbours(kernel, laws):
    """Many short chains; false-alarm rate 1e-6."""
    first, transition = laws
    chain, rng = MarkovDPP(kernel), np.random.default_rng(0)
    pairs = [chain.sample(2, random_state=rng) for _ in range(2000)]
    counts = np.zeros_like(transition)
    for before, after in pairs:
        counts[SUBSETS.index(tuple(before.tolist())), SUBSETS.index(tuple(after.tolist()))] += 1
    expected = (first[:, None] * transition * len(pairs)).ravel()
    counts, rare = counts.ravel(), expected < 10
    counts, expected = np.append(counts[~rare], counts[rare].sum()), np.append(expected[~rare], expected[rare].sum())
    assert chisquare(counts, expected).pvalue > ALPHA


def test_neighbours_are_disjoint_and_reproducible(kernel):
    chain = MarkovDPP(kernel)
    one, other = (chain.sample(30, random_state=1) for _ in range(2))
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b)
    assert not any(set(a) & set(b) for a, b in pairwise(one))
    assert 0 not in chain.sample(1, initial=[0], random_state=0)[0]


def test_when_everything_was_chosen_nothing_is_left(kernel):
    law = MarkovDPP(kernel).transition(range(N))
    assert law.log_prob([]) == 0.0
    assert len(law.sample(random_state=0)) == 0


def test_sizes_may_be_fixed(kernel):
    sets = MarkovDPP(kernel).sample(10, size=2, random_state=0)
    assert [len(s) for s in sets] == [2] * 10
    assert not any(set(a) & set(b) for a, b in pairwise(sets))


def test_kernels_that_do_not_change_give_the_same_draws(kernel):
    chain = MarkovDPP(kernel)
    for a, b in zip(
        chain.sample(8, random_state=2), chain.sample(8, kernels=[kernel] * 8, random_state=2), strict=True
    ):
        np.testing.assert_array_equal(a, b)


def test_ctrl_c_keeps_the_sets_so_far(kernel, monkeypatch):
    chain = MarkovDPP(kernel)
    original, calls = DPP.sample, []

    def sample(self, *args, **settings):
        calls.append(1)
        if len(calls) == 4:
            signal.raise_signal(signal.SIGINT)
        return original(self, *args, **settings)

    monkeypatch.setattr(DPP, "sample", sample)
    with on_interrupt("keep"), pytest.warns(UserWarning, match="interrupted after 3 of 10 sets"):
        assert len(chain.sample(10, random_state=0)) == 3


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: MarkovDPP(np.eye(3)), "L must have all eigenvalues below 1 .* got 1: scale it by less than 1"),
        (lambda: MarkovDPP(-np.eye(3)), "L must be positive semi-definite"),
        (lambda: MarkovDPP(0.1 * np.eye(3)).sample(-1), "n_samples must be an integer of at least 0, got -1"),
        (lambda: MarkovDPP(0.1 * np.eye(3)).transition([5]), "previous must hold items from 0 to 2"),
        (lambda: MarkovDPP(0.1 * np.ones((2, 2))).transition([0, 1]), "previous must have a positive probability"),
        (lambda: MarkovDPP(0.1 * np.eye(3)).sample(2, kernels=[np.eye(3) / 2]), "kernels must hold one for each of 2"),
        (lambda: MarkovDPP(0.1 * np.eye(3)).sample(1, kernels=[np.eye(2) / 2]), "kernels must be over 3 items, got 2"),
    ],
)
def test_bad_input_is_told_in_a_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()
