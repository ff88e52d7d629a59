"""Structured processes against the finite process over all structures, written out."""

from itertools import combinations, product

import numpy as np
import pytest
from scipy.stats import chisquare

from pluri.processes.dpp import DPP, KDPP
from pluri.processes.dpp.structured.process import StructuredDPP

#: False-alarm rate of each statistical test below.
ALPHA = 1e-6

CHAIN = ([2, 2, 2], None)
SHAPES = {
    "chain": CHAIN,
    "chain, uneven": ([2, 3, 2], [(1, 0), (1, 2)]),
    "star": ([2, 2, 2, 2], [(2, 0), (2, 1), (3, 2)]),
    "two trees": ([2, 2, 3], [(2, 0)]),
    "one node": ([5], []),
    "branch": ([3, 1, 2, 2], [(0, 1), (1, 2), (1, 3)]),
}


class Problem:
    """Random factors on a tree, and the kernel over every structure."""

    def __init__(self, shape, width=3, with_edges=True, seed=0, scale=1.0):
        rng = np.random.default_rng(seed)
        self.sizes, edges = SHAPES[shape]
        self.edges = [(r, r + 1) for r in range(len(self.sizes) - 1)] if edges is None else edges
        self.features = [rng.normal(size=(size, width)) for size in self.sizes]
        self.quality = [scale * rng.uniform(0.3, 1.0, size=size) for size in self.sizes]
        self.edge_quality = [rng.uniform(0.3, 1.0, size=(self.sizes[a], self.sizes[b])) for a, b in self.edges]
        self.edge_features = [rng.normal(size=(self.sizes[a], self.sizes[b], width)) for a, b in self.edges]
        if not with_edges:
            self.edge_features = None
        self.process = StructuredDPP(
            self.features, self.quality, edges=edges, edge_quality=self.edge_quality, edge_features=self.edge_features
        )
        self.structures = np.array(list(product(*map(range, self.sizes))))
        self.rows = np.array([self.row(y) for y in self.structures])

    def row(self, y):
        quality = np.prod([q[s] for q, s in zip(self.quality, y)])
        feature = sum(f[s] for f, s in zip(self.features, y))
        for e, (a, b) in enumerate(self.edges):
            quality *= self.edge_quality[e][y[a], y[b]]
            if self.edge_features is not None:
                feature = feature + self.edge_features[e][y[a], y[b]]
        return quality * feature

    def numbers(self, structures):
        return tuple(sorted(int(np.flatnonzero((self.structures == y).all(axis=1))[0]) for y in structures))


@pytest.fixture(params=[(shape, edges) for shape in SHAPES for edges in (True, False)], ids=str, scope="module")
def problem(request):
    return Problem(*request.param[:1], with_edges=request.param[1])


def test_messages_give_the_sum_over_all_structures(problem):
    np.testing.assert_allclose(problem.process.dual, problem.rows.T @ problem.rows, rtol=1e-10)
    exact = DPP(features=problem.rows)
    assert problem.process.log_normalizer == pytest.approx(exact.log_normalizer)
    assert problem.process.expected_size == pytest.approx(exact.expected_size)


def test_marginals_count_the_structures_with_each_state(problem):
    for size, exact in ((None, DPP(features=problem.rows)), (2, KDPP(features=problem.rows, size=2))):
        inclusion = exact.inclusion_probabilities()
        for node, found in enumerate(problem.process.marginals(size=size)):
            expected = np.bincount(problem.structures[:, node], weights=inclusion, minlength=problem.sizes[node])
            np.testing.assert_allclose(found, expected, atol=1e-10)


def test_probabilities_are_those_of_the_finite_process(problem):
    free, fixed = DPP(features=problem.rows), KDPP(features=problem.rows, size=2)
    for size in range(4):
        for subset in list(combinations(range(len(problem.structures)), size))[:30]:
            structures = problem.structures[list(subset)]
            assert problem.process.log_prob(structures) == pytest.approx(free.log_prob(subset), abs=1e-8)
            assert problem.process.log_prob(structures, size=2) == pytest.approx(fixed.log_prob(subset), abs=1e-8)


@pytest.mark.parametrize("shape", ["chain", "branch"])
@pytest.mark.parametrize("with_edges", [True, False])
@pytest.mark.parametrize("size", [None, 2])
def test_draws_have_the_law_of_the_finite_process(shape, with_edges, size):
    """False-alarm rate 1e-6 for each."""
    problem = Problem(shape, with_edges=with_edges)
    draws = problem.process.sample(20000, size=size, random_state=0)
    law = DPP(features=problem.rows) if size is None else KDPP(features=problem.rows, size=2)
    every = [s for k in range(4) for s in combinations(range(len(problem.structures)), k)]
    probabilities = np.exp([law.log_prob(s) for s in every])
    assert probabilities.sum() == pytest.approx(1.0)
    place = {s: i for i, s in enumerate(every)}
    number = {tuple(y): i for i, y in enumerate(problem.structures.tolist())}
    counts = np.bincount(
        [place[tuple(sorted(number[tuple(y)] for y in draw.tolist()))] for draw in draws], minlength=len(every)
    )
    expected = probabilities * len(draws)
    rare = expected < 10
    together = [counts[rare].sum()] if expected[rare].sum() > 1e-6 else []
    counts, expected = np.append(counts[~rare], together), np.append(expected[~rare], expected[rare].sum())
    expected = expected[: len(counts)]
    assert counts.sum() == len(draws)
    assert chisquare(counts, expected).pvalue > ALPHA


def test_a_chain_of_a_thousand_nodes_neither_underflows_nor_overflows():
    rng = np.random.default_rng(0)
    for scale in (1e-3, 1e3):
        features = np.broadcast_to(rng.normal(size=(4, 6)), (1000, 4, 6))
        quality = np.full((1000, 4), scale)
        process = StructuredDPP(features, quality)
        assert np.isfinite(process.log_odds).all()
        # Without edges the nodes are independent: mean and covariance of the features add up.
        mean = features[0].mean(axis=0)
        centred = features[0] - mean
        moment = 1000 * centred.T @ centred / 4 + np.outer(1000 * mean, 1000 * mean)
        expected = np.log(np.linalg.eigvalsh(moment)[::-1][: process.rank]) + 1000 * np.log(4 * scale**2)
        np.testing.assert_allclose(process.log_odds, expected, rtol=1e-9)
        assert process.sample(size=2, random_state=0).shape == (2, 1000)
        np.testing.assert_allclose([values.sum() for values in process.marginals(size=2)], 2.0)


def test_states_of_quality_zero_are_never_drawn():
    features = np.random.default_rng(0).normal(size=(6, 3, 4))
    step = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0], [1.0, 0.0, 1.0]])
    process = StructuredDPP(features, edge_quality=step)
    for paths in process.sample(50, size=3, random_state=1):
        assert (step[paths[:, :-1], paths[:, 1:]] == 1).all()
        assert len({tuple(path) for path in paths.tolist()}) == 3


def test_an_edge_may_be_given_either_way_round():
    problem = Problem("chain")
    turned = StructuredDPP(
        problem.features,
        problem.quality,
        edges=[(b, a) for a, b in problem.edges],
        edge_quality=[values.T for values in problem.edge_quality],
        edge_features=[values.transpose(1, 0, 2) for values in problem.edge_features],
    )
    np.testing.assert_allclose(turned.log_odds, problem.process.log_odds)


def test_random_projections_keep_the_expected_size_approximately():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(5, 3, 60)) / 60
    exact, projected = StructuredDPP(features), StructuredDPP(features, n_projections=40, random_state=0)
    assert projected.rank <= 40
    assert projected.expected_size == pytest.approx(exact.expected_size, rel=0.1)


def test_the_same_random_state_gives_the_same_paths():
    process = Problem("star").process
    one, other = (process.sample(5, random_state=4) for _ in range(2))
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b)
    assert process.sample(0) == []
    assert process.sample(size=0, random_state=0).shape == (0, 4)


FEATURES = np.ones((3, 2, 2))


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: StructuredDPP(FEATURES, edges=[(0, 1), (1, 2), (2, 0)]), "edges must form a tree.*got a loop"),
        (lambda: StructuredDPP(FEATURES, edges=[(0, 1), (0, 1)]), "got a loop"),
        (lambda: StructuredDPP(FEATURES, edges=[(0, 3)]), "edges must join nodes from 0 to 2"),
        (lambda: StructuredDPP(FEATURES, edges=[(1, 1)]), "edges must join two nodes"),
        (lambda: StructuredDPP(FEATURES, edges=[(0.5, 1)]), "edges must be pairs of node numbers"),
        (lambda: StructuredDPP([]), "node_features must have at least one node"),
        (lambda: StructuredDPP([np.ones((2, 2)), np.ones((2, 3))]), "same number of columns"),
        (lambda: StructuredDPP(FEATURES * np.nan), r"node_features\[0\] must be finite"),
        (lambda: StructuredDPP(FEATURES, -np.ones((3, 2))), r"node_quality\[0\] must not be negative"),
        (lambda: StructuredDPP(FEATURES, np.ones((3, 4))), r"node_quality\[0\] must have shape \(2,\)"),
        (lambda: StructuredDPP(FEATURES, np.ones((2, 2))), "node_quality must have 3 nodes"),
        (lambda: StructuredDPP(FEATURES, np.zeros((3, 2))), "must allow at least one structure"),
        (lambda: StructuredDPP(FEATURES, edge_quality=np.ones((3, 2))), r"edge_quality\[0\] must have shape \(2, 2\)"),
        (lambda: StructuredDPP(FEATURES, edge_quality=[np.ones((2, 2))]), "one for each of 2 edges, got 1"),
        (lambda: StructuredDPP(FEATURES, n_projections=0), "n_projections must be an integer of at least 1"),
        (lambda: StructuredDPP(FEATURES).sample(size=9), "size must be a whole number from 0 to the rank .1., got 9"),
        (lambda: StructuredDPP(FEATURES).sample(-1), "n_samples must be an integer of at least 0 or None"),
        (lambda: StructuredDPP(FEATURES).log_prob([[0, 0]]), r"structures must be whole numbers of shape"),
        (lambda: StructuredDPP(FEATURES).log_prob([[0, 0, 5]]), "structures must have states from 0 to 1 at node 2"),
    ],
)
def test_bad_input_is_told_in_a_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()
