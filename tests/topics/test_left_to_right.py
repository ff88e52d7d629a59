"""Likelihood from left to right: the bookkeeping of its particles, and every model where the answer is known."""

from itertools import product

import numpy as np
import pytest
from scipy import sparse
from scipy.special import gammaln, roots_jacobi

from pluri.priors import Beta
from pluri.topics import held_out
from pluri.topics.concept_graph.evaluation.fitted import FittedGraph
from pluri.topics.concept_graph.evaluation.held_out import held_out as graph_held_out
from pluri.topics.held_out._particle_kernels import copy_whom, few_effective, normalise
from pluri.topics.hierarchical.fitted_tree import TreeOfTopics
from pluri.topics.hierarchical.level_sticks import LevelSticks
from pluri.topics.hierarchical.pachinko import PachinkoTopics
from pluri.topics.tree.evaluation import draw_word_distributions
from pluri.topics.tree.evaluation import left_to_right as tree_left_to_right
from pluri.topics.tree.tree import Tree

# Particles ------------------------------------------------------------------------------------------------------------


def copies(u, weights):
    weight, source = np.array(weights, dtype=float), np.zeros(len(weights), dtype=np.int64)
    copy_whom(u, weight, np.zeros(len(weights), dtype=np.int64), source)
    np.testing.assert_array_equal(weight, 1 / len(weights))
    return source


@pytest.mark.parametrize("weights", [[1.0], [0.5, 0.5], [0, 0, 1, 0], [0.1, 0.05, 0.55, 0.3, 0.0], [0.2] * 5])
def test_particles_are_chosen_by_their_weights_and_stay_where_they_are(weights):
    """Over a fine grid of the random number, the mean number of copies is n times the weight: each floor or ceiling."""
    n, times = len(weights), []
    for u in (np.arange(1000) + 0.5) / 1000:
        source = copies(u, weights)
        assert all(source[source[r]] == source[r] for r in range(n))
        times.append(np.bincount(source, minlength=n))
    expected = n * np.array(weights)
    np.testing.assert_allclose(np.mean(times, axis=0), expected, atol=2e-3)
    assert (np.abs(times - expected) < 1 + 1e-9).all()


def test_rounding_never_chooses_a_particle_without_weight():
    assert 2 not in copies(1 - 2**-53, [0.3, 0.7 - 1e-9, 0.0])


def test_few_particles_are_effective_when_their_weights_are_unequal():
    assert not few_effective(np.full(8, 1 / 8))
    assert not few_effective(np.array([0.5, 0.5, 0.0, 0.0]))  # two of four
    assert few_effective(np.array([0.51, 0.49, 0.0, 0.0]))
    assert not few_effective(np.array([1.0]))


def test_weights_sum_to_one_and_their_sum_is_given():
    weight = np.array([0.1, 0.3])
    assert normalise(weight) == pytest.approx(0.4)
    np.testing.assert_allclose(weight, [0.25, 0.75])
    nothing = np.zeros(4)
    assert normalise(nothing) == 0.0
    np.testing.assert_array_equal(nothing, 0.25)


# One topic, whatever its place ----------------------------------------------------------------------------------------

TOPICS = np.array(
    [[0.70, 0.20, 0.06, 0.04], [0.05, 0.65, 0.25, 0.05], [0.20, 0.10, 0.65, 0.05], [0.55, 0.05, 0.35, 0.05],
     [0.05, 0.45, 0.10, 0.40]]
)  # fmt: skip
PHI = np.array([0.5, 0.3, 0.15, 0.05])
COUNTS = sparse.csr_matrix(np.array([[3.0, 0, 2, 1], [0, 0, 0, 4], [0, 0, 0, 0], [1, 9, 0, 0]]))


def flat(topics, spread=1.0):
    prior = spread * np.array([0.4, 0.9, 0.6])

    def score(X, rng, n_particles):
        return held_out.left_to_right(topics[:3], prior, X, rng, n_particles=n_particles)

    return score, lambda rng, size: rng.dirichlet(prior, size=size) @ topics[:3]


def hierarchical(topics, spread=1.0, concentration=1e-280):
    fitted = TreeOfTopics(
        topics, np.array([-1, 0, 0, 1, 2]), np.array([0, 1, 1, 2, 2]), np.array([9, 4, 5, 4, 5]), concentration,
        np.full(3, 0.3), LevelSticks.dirichlet(spread * np.array([0.5, 1.0, 2.0])),
    )  # fmt: skip
    return fitted.left_to_right, lambda rng, size: fitted.draw(rng, size)[0]


def hierarchical_with_new_branches(topics, spread):
    return hierarchical(topics, spread, 3.0)


def pachinko(topics, spread=1.0):
    fitted = PachinkoTopics(topics, spread * np.array([0.3, 1.0, 0.6]), spread * np.full((2, 3), 0.7))
    return fitted.left_to_right, lambda rng, size: fitted.draw(rng, size)[0]


def tree(topics, spread=1.0):
    made = [np.round(1000 * topics[:m]).astype(np.int32) for m in (2, 3)]
    passes = np.array([[0.5, 0.2], [0.3, 0.3], [0.2, 0.5]])
    fitted = Tree(
        0, made, [passes], np.array([0.6, 0.4]), [c.sum(axis=1) for c in made], spread, 0.8, 1e-12,
        np.empty(0, np.int32),
    )  # fmt: skip

    def score(X, rng, n_particles):
        return tree_left_to_right([fitted], X, rng, n_particles=n_particles)

    return score, lambda rng, size: draw_word_distributions(fitted, rng, size)


def fitted_graph(topics, level_prior):
    step = np.zeros((5, 5))
    step[0, [1, 2]], step[1, [3, 4]], step[2, 4] = [0.3, 0.4], [0.2, 0.5], 0.6
    return FittedGraph.of(topics, step, 1 - step.sum(axis=1), 3, level_prior, Beta(1.5, 0.8))


def graph(topics, level_prior="geometric"):
    fitted = fitted_graph(topics, level_prior)

    def score(X, rng, n_particles):
        return graph_held_out(fitted, X, "left_to_right", rng, n_particles=n_particles)

    return score, None


def graph_with_free_levels(topics):
    return graph(topics, "dirichlet")


MODELS = [flat, hierarchical, pachinko, tree, graph, graph_with_free_levels]


@pytest.mark.parametrize("n_particles", [1, 3])
@pytest.mark.parametrize("model", MODELS)
def test_equal_topics_are_one_topic(model, n_particles):
    score = model(np.tile(PHI, (5, 1)))[0](COUNTS, np.random.default_rng(0), n_particles)
    np.testing.assert_allclose(score.log_likelihood, COUNTS @ np.log(PHI), atol=1e-9)
    assert score.n_tokens.tolist() == [6, 4, 0, 10]


@pytest.mark.parametrize("model", [flat, tree, graph])
def test_there_must_be_a_particle(model):
    with pytest.raises(ValueError, match=r"n_particles must be .*1, got 0"):
        model(np.tile(PHI, (5, 1)))[0](COUNTS, np.random.default_rng(0), 0)


@pytest.mark.parametrize("model", [made for made in MODELS if made is not graph])
def test_first_words_are_exact(model):
    """Nothing is drawn before a first word is foretold (but tau): particles agree, and all words sum to one."""
    score, _ = model(TOPICS)
    one, many = (score(sparse.csr_matrix(np.eye(4)), np.random.default_rng(n), n) for n in (1, 7))
    assert np.exp(one.log_likelihood).sum() == pytest.approx(1.0, abs=1e-9)
    np.testing.assert_allclose(many.log_likelihood, one.log_likelihood, atol=1e-9)


@pytest.mark.parametrize("model", [flat, hierarchical, hierarchical_with_new_branches, pachinko, tree])
def test_what_particles_have_read_is_not_forgotten(model):
    """Documents of almost one topic each, which Gibbs steps hardly leave: without carried weights the bias is large.

    Four particles, the mean of 20,000 estimates, and of 200,000 made-up documents; five standard errors of their
    difference, false-alarm rate below 1e-6.
    """
    score, draw = model(TOPICS, 0.03)
    words, rng = np.array([2, 1, 0, 0]), np.random.default_rng(0)
    counts = np.tile(np.bincount(words, minlength=4).astype(float), (20_000, 1))
    estimates = np.exp(score(sparse.csr_matrix(counts), rng, 4).log_likelihood)
    made_up = draw(rng, 200_000)[:, words].prod(axis=1)
    error = np.hypot(estimates.std() / np.sqrt(len(estimates)), made_up.std() / np.sqrt(len(made_up)))
    assert abs(estimates.mean() - made_up.mean()) < 5 * error
    assert error < 0.03 * made_up.mean()


# Concept graphs -------------------------------------------------------------------------------------------------------


def by_all_levels(fitted, words):
    """Probability of a document: all paths, all levels, and tau by a Gauss-Jacobi rule of forty points."""
    a, b = fitted.tau_prior.a, fitted.tau_prior.b
    place, weight = roots_jacobi(40, b - 1, a - 1)
    rest, weight = 0.5 * (1 - place), weight / weight.sum()
    total = 0.0
    for path, length, log_prior in zip(fitted.paths, fitted.lengths, fitted.log_prior):
        for levels in product(range(length), repeat=len(words)):
            emitted = np.prod([fitted.topic_word[path[length - 1 - l], w] for l, w in zip(levels, words)])
            if fitted.level_prior == "dirichlet":
                prior, sizes = np.array([a] + [b] * (length - 1)), np.bincount(levels, minlength=length)
                chance = gammaln(prior.sum()) - gammaln(prior.sum() + len(words))
                chance = np.exp(chance + (gammaln(prior + sizes) - gammaln(prior)).sum())
            else:
                series = sum(rest**l for l in range(length))
                chance = weight @ (rest ** sum(levels) / series ** len(words))
            total += np.exp(log_prior) * emitted * chance
    return total


@pytest.mark.parametrize("level_prior", ["geometric", "dirichlet"])
@pytest.mark.parametrize("words", [[1], [2, 2], [2, 0, 2], [0, 1, 3, 3], [0, 1, 2, 3]])
def test_concept_graphs_have_no_bias_with_few_particles(words, level_prior):
    """Topics of almost one word each, so that paths hardly change; without carried weights the bias is up to 76 %.

    Four particles, the mean of 5000 estimates; five standard errors, false-alarm rate below 1e-6.
    """
    rng = np.random.default_rng(0)
    fitted = fitted_graph(rng.dirichlet(np.full(4, 0.1), size=5) * 0.996 + 0.001, level_prior)
    X = sparse.csr_matrix(np.tile(np.bincount(words, minlength=4).astype(float), (5000, 1)))
    estimates = np.exp(graph_held_out(fitted, X, "left_to_right", rng, n_particles=4).log_likelihood)
    exact = by_all_levels(fitted, words)
    assert abs(estimates.mean() - exact) < 5 * estimates.std() / np.sqrt(5000) + 1e-12
    if level_prior == "geometric":
        by_paths = graph_held_out(fitted, X[:1], "exact", rng).log_likelihood[0]
        assert by_paths == pytest.approx(np.log(exact), abs=1e-4)
