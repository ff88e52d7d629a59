"""The sampler of concept graphs against enumeration, quadrature, forward simulation and published figures."""

from dataclasses import replace
from itertools import permutations, product

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.special import betaln, gammaln, logsumexp

from pluri.priors import Beta
from pluri.testing import SamplerProblem
from pluri.topics.concept_graph._level_kernels import draw_tau
from pluri.topics.concept_graph.arrays import END
from pluri.topics.concept_graph.edge_prior import edge_predictive, log_marginal, log_swap_ratio
from pluri.topics.concept_graph.evaluation.levels import level_distribution
from pluri.topics.concept_graph.sampling._graph_kernels import log_swap, take_out
from pluri.topics.concept_graph.sampling.gibbs import ConceptGraphGibbs
from pluri.topics.concept_graph.sampling.path_sampler import enumerate_paths, programme_path
from pluri.topics.concept_graph.sampling.state import NOTHING

COUNTS = np.array([5, 3, 8, 2, 0, 4])


# Forward simulation: all nodes have labels, sticks and words are drawn --------------------------------------------


def draw_forward(rng, kernel):
    """Everything but the words, with explicit sticks and labelled nodes; then blank nodes are forgotten."""
    n_levels, n_nodes = kernel.n_levels, kernel.max_nodes
    beta = float(rng.exponential()) if kernel.stick_beta == "learn" else kernel.stick_beta
    eta = float(rng.exponential()) if kernel.topic_word_prior == "learn" else kernel.topic_word_prior
    depth = np.concatenate([[1], np.repeat(np.arange(2, n_levels + 1), n_nodes)])
    orders, weights = [], []
    for k in depth:
        below = np.flatnonzero(depth > k) if kernel.deeper else np.flatnonzero(depth == k + 1)
        order = rng.permutation(np.append(below, END))
        stick = np.append(rng.beta(kernel.stick_alpha, beta, size=len(order) - 1), 1.0)
        orders.append(order)
        weights.append(stick * np.concatenate([[1.0], np.cumprod(1.0 - stick)[:-1]]))
    path = np.full((kernel.n_documents, n_levels), -1)
    for row in path:
        x = row[0] = 0
        for i in range(1, n_levels + 1):
            x = orders[x][rng.choice(len(orders[x]), p=weights[x] / weights[x].sum())]
            if x == END:
                break
            row[i] = x
    tau = np.clip(rng.beta(kernel.tau_prior.a, kernel.tau_prior.b, size=len(path)), 1e-12, 1 - 1e-12)
    level = kernel.draw_levels(rng, path, tau)
    used = np.unique(path[path >= 0])
    number = np.full(len(depth), -1)
    number[used] = np.arange(len(used))
    order = np.full((len(used), max(len(orders[x]) for x in used)), NOTHING)
    for row, x in zip(order, used):
        atoms = orders[x]
        row[: len(atoms)] = [END if y == END else number[y] if number[y] >= 0 else -1 - depth[y] for y in atoms]
    return {
        "node_depth": depth[used], "node_protected": used == 0, "node_name": np.arange(len(used)), "order": order,
        "n_nodes": np.array([0, 1] + [n_nodes] * (n_levels - 1)), "path": np.where(path >= 0, number[path], -1),
        "level": level, "tau": tau, "stick_beta": np.asarray(beta), "topic_word_prior": np.asarray(eta),
    }  # fmt: skip


def draw_words(rng, kernel, position):
    """Words by urns, so that no probability underflows."""
    seen = np.zeros((len(position["node_depth"]), kernel.n_words))
    length = (position["path"] >= 0).sum(axis=1)
    documents = np.repeat(np.arange(kernel.n_documents), np.diff(kernel.offsets))
    words = np.empty(len(documents), dtype=np.int32)
    for i, d in enumerate(documents):
        x = position["path"][d, length[d] - 1 - position["level"][i]]
        weight = np.cumsum(seen[x] + position["topic_word_prior"])
        words[i] = min(np.searchsorted(weight, rng.random() * weight[-1], side="right"), kernel.n_words - 1)
        seen[x, words[i]] += 1
    return words


def sweep_with(rng, kernel, position, words):
    """One step given words in any order: the sampler wants equal words of a document side by side."""
    documents = np.repeat(np.arange(kernel.n_documents), np.diff(kernel.offsets))
    order = np.lexsort((words, documents))
    kernel = replace(kernel, words=np.asarray(words, dtype=np.int32)[order])
    state = kernel.init(rng, {**position, "level": position["level"][order]})
    after = dict(kernel.step(rng, state)[0].position)
    level = after["level"].copy()
    after["level"][order] = level
    return after


def tiny_kernel(kind):
    lengths = [4, 3, 4]
    settings = {
        "geometric": {"tau_prior": Beta(2.0, 2.0), "n_levels": 3, "max_nodes": 2},
        "learned": {"n_levels": 2, "max_nodes": 3, "stick_beta": "learn", "topic_word_prior": "learn"},
        "dirichlet": {"level_prior": "dirichlet", "tau_prior": Beta(1.0, 0.5), "n_levels": 3, "max_nodes": 2},
        "deeper": {"feasible": "deeper", "n_levels": 3, "max_nodes": 2, "tau_prior": Beta(1.0, 2.0)},
    }[kind]  # fmt: skip
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    base = {"stick_alpha": 1.5, "stick_beta": 1.0, "topic_word_prior": 0.5}
    return ConceptGraphGibbs(np.zeros(offsets[-1], dtype=np.int32), offsets, 5, **(base | settings))


def statistics(theta, y):
    path = theta["path"]
    length = (path >= 0).sum(axis=1)
    end = [int(np.flatnonzero(row == END)[0]) for row in theta["order"]]
    found = {
        "lengths": length.astype(float), "tau": theta["tau"], "level": float(theta["level"].mean()),
        "n_nodes": float(len(theta["node_depth"])), "end of root": float(end[0]), "mean end": float(np.mean(end)),
        "same last": float(len(np.unique([row[n - 1] for row, n in zip(path, length)]))),
        "beta": float(theta["stick_beta"]), "eta": float(theta["topic_word_prior"]),
        "lengths x level": float((length.mean() - 1) * theta["level"].mean()),
    }  # fmt: skip
    if y is not None:
        found["same words"] = float((np.bincount(y, minlength=5) ** 2).sum())
        found["level of the first word"] = float(theta["level"][y == y[0]].mean())
    return found


def concept_graph_problem(kind):
    """For the table of all samplers."""
    kernel = tiny_kernel(kind)
    return SamplerProblem(
        f"concept graph, {kind}",
        prior=lambda rng: draw_forward(rng, kernel),
        data=lambda rng, theta: draw_words(rng, kernel, theta),
        transition=lambda rng, theta, y: sweep_with(rng, kernel, theta, y),
        statistics=statistics,
        n_steps=3,
        n_convergence=20,
    )


# Steps and orders ----------------------------------------------------------------------------------------------------


def test_edge_predictive_is_the_ratio_of_marginals_and_has_the_published_values():
    probability, tail = edge_predictive(COUNTS, 1.0, 2.5)
    np.testing.assert_allclose(probability, [0.235294, 0.149211, 0.316540, 0.094407, 0.027273, 0.118183], atol=1e-6)
    assert tail == pytest.approx(0.059092, abs=1e-6)
    assert probability.sum() + tail == pytest.approx(1.0)
    for last_takes_rest in (False, True):
        probability, tail = edge_predictive(COUNTS, 1.0, 2.5, last_takes_rest=last_takes_rest)
        before = log_marginal(COUNTS, 1.0, 2.5, last_takes_rest=last_takes_rest)
        for i in range(6):
            after = log_marginal(COUNTS + (np.arange(6) == i), 1.0, 2.5, last_takes_rest=last_takes_rest)
            assert np.exp(after - before) == pytest.approx(probability[i])
    assert probability.sum() == pytest.approx(1.0)
    assert tail == 0.0


def test_expected_weights_of_sticks_fall_geometrically():
    probability, tail = edge_predictive(np.zeros(5), 2.0, 3.0)
    np.testing.assert_allclose(probability, 0.4 * 0.6 ** np.arange(5))
    assert tail == pytest.approx(0.6**5)


def test_swap_ratio_is_that_of_marginals_for_all_pairs_and_has_the_published_values():
    for last_takes_rest in (False, True):
        for i, j in permutations(range(6), 2):
            swapped = COUNTS.copy()
            swapped[[i, j]] = COUNTS[[j, i]]
            one, other = (log_marginal(n, 1.0, 2.5, last_takes_rest=last_takes_rest) for n in (swapped, COUNTS))
            ratio = log_swap_ratio(COUNTS, i, j, 1.0, 2.5, last_takes_rest=last_takes_rest)
            assert ratio == pytest.approx(one - other, abs=1e-10)
    known = {(0, 5): -0.5063, (0, 1): -0.097638, (1, 2): 0.361013, (0, 2): 0.367725}
    for (i, j), value in known.items():
        assert log_swap_ratio(COUNTS, i, j, 1.0, 2.5) == pytest.approx(value, abs=5e-5)


def some_state(kind, seed, n_documents=6):
    """A state with several nodes, after some sweeps on words from the model."""
    rng = np.random.default_rng(seed)
    offsets = np.arange(0, 5 * n_documents + 1, 5).astype(np.int64)
    kernel = replace(tiny_kernel(kind), words=np.zeros(offsets[-1], dtype=np.int32), offsets=offsets)
    position = draw_forward(rng, kernel)
    words = draw_words(rng, kernel, position).reshape(n_documents, 5)
    words.sort(axis=1)
    kernel = replace(kernel, words=words.ravel())
    state = kernel.init(rng, position)
    for _ in range(3):
        kernel.step(rng, state)
    return rng, kernel, state


@pytest.mark.parametrize("kind", ["geometric", "deeper"])
def test_compiled_steps_and_swaps_are_those_of_the_formulas(kind):
    _, kernel, state = some_state(kind, 0)
    graph, capacity = state.graph, len(state.graph.depth)
    sticks, (alpha, beta) = kernel.sticks(state.stick_beta), (kernel.stick_alpha, state.stick_beta)
    for x in np.flatnonzero(graph.depth):
        n = graph.n_atoms[graph.depth[x]]
        atoms = graph.order[x, :n]
        counts = [graph.edge[x, capacity if y == END else y] if y >= END else 0 for y in atoms]
        assert sum(counts) == graph.visits[x]
        expected, _ = edge_predictive(counts, alpha, beta, last_takes_rest=True)
        column = [y if y >= 0 else graph.probability.shape[1] - 1 if y == END else capacity - 1 - y for y in atoms]
        row = np.zeros(graph.probability.shape[1])
        np.add.at(row, column, expected)
        np.testing.assert_allclose(graph.probability[x, np.unique(column)], row[np.unique(column)])
        for i in range(n):
            for j in range(i + 1, n):
                ratio = log_swap_ratio(counts, i, j, alpha, beta, last_takes_rest=True)
                assert log_swap(graph, sticks, x, i, j) == pytest.approx(ratio, abs=1e-9)


# Paths ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["geometric", "deeper", "dirichlet"])
def test_dynamic_programme_is_enumeration_with_new_nodes_and_unequal_lengths(kind):
    """Sums over paths of each length agree to rounding; draws by a chi-square test of level 1e-6."""
    rng, kernel, state = some_state(kind, 3)
    numbers, path = kernel.numbers(state), np.empty(kernel.n_levels, dtype=np.int64)
    document = 2
    take_out(state.graph, numbers, state.corpus, document, path)
    state.corpus.level[kernel.offsets[document] : kernel.offsets[document + 1]] = [0, 0, 1, 0, 0]
    state.corpus.tau[document] = 0.4
    weights = enumerate_paths(state, numbers, document)
    assert any(max(path) >= len(state.graph.depth) for path in weights)
    assert {len(path) for path in weights} == {2, 3}
    draws = [programme_path(rng, state, numbers, document) for _ in range(2000)]
    for length, value in draws[0][1].items():
        assert value == pytest.approx(logsumexp([w for p, w in weights.items() if len(p) == length]))
    total = logsumexp(list(weights.values()))
    expected = {path: 2000 * np.exp(w - total) for path, w in weights.items()}
    seen = {path: sum(draw == path for draw, _ in draws) for path in expected}
    assert sum(seen.values()) == 2000
    large = [path for path in expected if expected[path] >= 5]
    rest = 2000 - sum(expected[path] for path in large), 2000 - sum(seen[path] for path in large)
    f_exp, f_obs = [expected[path] for path in large], [seen[path] for path in large]
    if rest[0] > 1:
        f_exp, f_obs = [*f_exp, rest[0]], [*f_obs, rest[1]]
    assert stats.chisquare(f_obs, np.array(f_exp) * 2000 / sum(f_exp)).pvalue > 1e-6


def test_labelled_document_has_only_paths_to_its_label():
    _, kernel, state = some_state("geometric", 3)
    numbers = kernel.numbers(state)
    document = int(np.argmax(state.corpus.length))
    label = int(state.corpus.path[document, state.corpus.length[document] - 1])
    state.graph.protected[label] = True
    state.corpus.label[document] = label
    take_out(state.graph, numbers, state.corpus, document, np.empty(kernel.n_levels, dtype=np.int64))
    assert {path[-1] for path in enumerate_paths(state, numbers, document)} == {label}
    draws = {programme_path(np.random.default_rng(i), state, numbers, document)[0][-1] for i in range(50)}
    assert draws == {label}


def test_slice_samples_of_tau_follow_the_posterior_and_the_prior():
    """Kolmogorov-Smirnov tests of level 1e-6 on thinned draws, and 1e-7 on independent ones of five priors."""
    rng = np.random.default_rng(0)
    a, b, sum_levels, n_words, length = 2.0, 5.0, 30, 25, 4
    grid = np.linspace(0.0, 1.0, 4001)[1:-1]
    series = ((1 - grid)[:, None] ** np.arange(length)).sum(axis=1)
    log_density = (a - 1) * np.log(grid) + (b - 1 + sum_levels) * np.log1p(-grid) - n_words * np.log(series)
    mass = np.cumsum(np.exp(log_density - log_density.max()))
    tau, draws = 0.5, []
    for i in range(6000):
        tau = draw_tau(rng, tau, a, b, sum_levels, n_words, length)
        if i % 6 == 0:
            draws.append(tau)
    assert stats.kstest(draws, lambda x: np.interp(x, grid, mass / mass[-1])).pvalue > 1e-6
    for a, b in ((2.0, 5.0), (5.0, 1.0), (0.3, 4.0), (0.5, 0.7), (1.0, 1.0)):
        prior = [draw_tau(rng, 0.5, a, b, 0, n_words, 1) for _ in range(4000)]
        assert stats.kstest(prior, stats.beta(a, b).cdf).pvalue > 1e-7


# The joint distribution ----------------------------------------------------------------------------------------------


def slow_log_joint(kernel, position):
    """Log joint probability by loops over nodes, documents and labelled orders."""
    a, b = kernel.tau_prior.a, kernel.tau_prior.b
    eta, beta, total = float(position["topic_word_prior"]), float(position["stick_beta"]), 0.0
    path, depth = position["path"], position["node_depth"]
    n, (length, n_words) = len(depth), ((path >= 0).sum(axis=1), kernel.n_words)
    counts, steps = np.zeros((n, n_words)), np.zeros((n, n + 1))
    for d in range(len(path)):
        nodes = path[d, : length[d]]
        for x, y in zip(nodes, [*nodes[1:], n]):
            steps[x, y] += 1
        levels = position["level"][kernel.offsets[d] : kernel.offsets[d + 1]]
        for word, level in zip(kernel.words[kernel.offsets[d] :], levels):
            counts[nodes[length[d] - 1 - level], word] += 1
        if kernel.level_prior == "dirichlet":
            prior = np.array([a] + [b] * (length[d] - 1))
            own = np.bincount(levels, minlength=length[d])
            total += gammaln(prior.sum()) - gammaln(prior.sum() + len(levels))
            total += (gammaln(prior + own) - gammaln(prior)).sum()
        else:
            tau = position["tau"][d]
            total += stats.beta(a, b).logpdf(tau) + np.log(level_distribution(tau, int(length[d])))[levels].sum()
    for x in range(n):
        total += gammaln(n_words * eta) - gammaln(n_words * eta + counts[x].sum())
        total += (gammaln(eta + counts[x]) - gammaln(eta)).sum()
        atoms = [y for y in position["order"][x] if y != NOTHING]
        total += log_marginal(
            [steps[x, n if y == END else y] if y >= END else 0 for y in atoms],
            kernel.stick_alpha,
            beta,
            last_takes_rest=True,
        )
        # Orders of all atoms are equally likely; those that differ in blank atoms of a depth are one.
        total -= gammaln(len(atoms) + 1) - sum(gammaln(atoms.count(y) + 1) for y in set(atoms))
    for k in range(2, kernel.n_levels + 1):
        nodes, used = position["n_nodes"][k], (depth == k).sum()
        total += gammaln(nodes + 1) - gammaln(nodes - used + 1)
    return (
        total - (beta if kernel.stick_beta == "learn" else 0.0) - (eta if kernel.topic_word_prior == "learn" else 0.0)
    )


@pytest.mark.parametrize("kind", ["geometric", "learned", "dirichlet", "deeper"])
def test_log_joint_after_sweeps_is_the_one_computed_from_scratch(kind):
    rng, kernel, state = some_state(kind, 1)
    for _ in range(5):
        kernel.step(rng, state)
        assert state.log_density == pytest.approx(slow_log_joint(kernel, state.position), rel=1e-10)
        graph, capacity = state.graph, len(state.graph.depth)
        into = graph.edge[:, :capacity].sum(axis=0) + np.where(np.arange(capacity) == 0, kernel.n_documents, 0)
        np.testing.assert_array_equal(into, graph.edge.sum(axis=1))
        np.testing.assert_array_equal(into, graph.visits)
        again = kernel.init(rng, state.position)
        assert again.log_density == pytest.approx(state.log_density, rel=1e-12)
        assert graph.word_count.sum() == len(kernel.words)


def exact_shapes(kernel):
    """Posterior of which documents share a node below the root, by summing over all labelled states.

    Two levels, two nodes below the root: orders of three atoms, paths, levels; tau by quadrature.
    """
    a, b = kernel.tau_prior.a, kernel.tau_prior.b
    eta, n_words = kernel.topic_word_prior, kernel.n_words
    documents = [kernel.words[kernel.offsets[d] : kernel.offsets[d + 1]] for d in range(kernel.n_documents)]

    def log_levels(levels, length):
        if length == 1:
            return 0.0
        n, s = len(levels), sum(levels)
        value, _ = quad(lambda t: t ** (a - 1) * (1 - t) ** (b - 1 + s) * (2 - t) ** -n, 0, 1)
        return np.log(value) - betaln(a, b)

    weights = {}
    for order in permutations(["x", "y", "end"]):
        for ends in product(["x", "y", "end"], repeat=len(documents)):
            prior = log_marginal(
                [ends.count(atom) for atom in order], kernel.stick_alpha, kernel.stick_beta, last_takes_rest=True
            )
            key = tuple(
                0 if end == "end" else 1 + [e for e in dict.fromkeys(ends) if e != "end"].index(end) for end in ends
            )
            for levels in product(
                *(product(range(1 if end == "end" else 2), repeat=len(w)) for w, end in zip(documents, ends))
            ):
                value, counts = prior, {"root": np.zeros(n_words), "x": np.zeros(n_words), "y": np.zeros(n_words)}
                for words, end, own in zip(documents, ends, levels):
                    value += log_levels(own, 1 if end == "end" else 2)
                    for word, level in zip(words, own):
                        counts["root" if end == "end" or level == 1 else end][word] += 1
                for n in counts.values():
                    value += gammaln(n_words * eta) - gammaln(n_words * eta + n.sum())
                    value += (gammaln(eta + n) - gammaln(eta)).sum()
                weights.setdefault(key, []).append(value)
    keys = list(weights)
    logs = np.array([logsumexp(weights[key]) for key in keys])
    return dict(zip(keys, np.exp(logs - logsumexp(logs))))


@pytest.mark.parametrize(("n_joint", "path_sampler"), [(1, "dp"), (0, "dp"), (0, "enumerate")])
def test_chain_visits_shapes_of_a_tiny_corpus_as_often_as_enumeration_says(n_joint, path_sampler):
    """Frequencies within seven standard errors by 40 batch means: false-alarm rate about 1e-6."""
    kernel = ConceptGraphGibbs(
        np.array([0, 0, 1, 0, 1, 2, 2], dtype=np.int32), np.array([0, 3, 4, 7]), 3, 2, 2, 1.0, 1.5, 0.3, Beta(1.0, 2.0),
        n_joint=n_joint, path_sampler=path_sampler, collecting=False,
    )  # fmt: skip
    exact = exact_shapes(kernel)
    rng = np.random.default_rng(1)
    state = kernel.init(rng, kernel.start(rng))
    seen, n_steps = [], 4000 if path_sampler == "dp" else 1600
    for _ in range(n_steps):
        kernel.step(rng, state)
        last = [int(row[1]) for row in state.corpus.path]
        names = [x for x in dict.fromkeys(last) if x >= 0]
        seen.append(tuple(0 if x < 0 else 1 + names.index(x) for x in last))
    for key, probability in exact.items():
        batches = np.array([shape == key for shape in seen], dtype=float).reshape(40, -1).mean(axis=1)
        error = max(batches.std(ddof=1) / np.sqrt(40), 0.002)
        assert abs(batches.mean() - probability) < 7 * error, key


# The factor that the published sampler lacks -------------------------------------------------------------------------


def share_at_root(length_factor, n_sweeps, n_joint=0):
    """Share of documents that end at the root, the words being drawn anew before each sweep; and the prior's."""
    offsets = np.array([0, 6, 12, 18])
    kernel = ConceptGraphGibbs(
        np.zeros(18, dtype=np.int32), offsets, 4, 2, 2, 1.0, 1.0, 0.5, Beta(2.0, 2.0), given_depth=np.array([1, 2, 2]),
        length_factor=length_factor, reorder=False, n_joint=n_joint, collecting=False,
    )  # fmt: skip
    rng = np.random.default_rng(5)
    position = dict(kernel.start(rng))
    position["order"] = np.array([[1, 2, END], [END, NOTHING, NOTHING], [END, NOTHING, NOTHING]])
    shares = []
    for _ in range(n_sweeps):
        position = sweep_with(rng, kernel, position, draw_words(rng, kernel, position))
        shares.append(float((position["path"][:, 1] < 0).mean()))
    return np.array(shares)


@pytest.mark.parametrize("n_joint", [0, 1])
def test_paths_end_at_the_root_as_often_as_the_prior_says(n_joint):
    """The order is child, child, end, all sticks Beta(1, 1): the prior is 1/4. Six and a half errors by batches."""
    shares = share_at_root(True, 2200, n_joint)[200:].reshape(40, -1).mean(axis=1)
    error = shares.std(ddof=1) / np.sqrt(40)
    assert error < 0.03
    assert abs(shares.mean() - 0.25) < 6.5 * error


def test_without_the_factor_of_the_length_paths_are_far_too_long():
    """As the published sampler has it: 0.025 was measured, not 0.25."""
    shares = share_at_root(False, 800)[100:]
    assert shares.mean() < 0.08
