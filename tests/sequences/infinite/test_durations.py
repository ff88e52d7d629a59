"""The infinite hidden semi-Markov model: durations, exact inference by enumeration, the sampler, and the estimator."""

from itertools import groupby, pairwise, product

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp, roots_genlaguerre, roots_jacobi
from scipy.stats import nbinom, poisson

import pluri.io
from pluri.metrics import one_to_one_accuracy
from pluri.priors import Beta, Gamma
from pluri.processes import DirichletMultinomial
from pluri.sequences import InfiniteHMM
from pluri.sequences.infinite.explicit_durations.durations import (
    NegativeBinomialDurations,
    PoissonDurations,
    Segments,
    duration_model,
    expected_parameters,
    expected_segment_rows,
    segment_counts,
    segments_of,
)
from pluri.sequences.infinite.explicit_durations.sampler import (
    SemiMarkovSampler,
    draw_segment_weights,
    log_segment_path,
)
from pluri.sequences.infinite.explicit_durations.segments import ObservedSegments, draw_segments, segment_law
from pluri.sequences.infinite.observations import ObservationModel
from pluri.sequences.infinite.state_posterior import as_position, in_order
from pluri.sequences.infinite.transitions import Hyperparameters, HyperPriors
from pluri.testing import SamplerProblem, check_sampler, enumerate_posterior, set_partitions

POISSON = PoissonDurations(Gamma(2.0, 1.0))
NEGATIVE_BINOMIAL = NegativeBinomialDurations(Gamma(2.0, 1.5), Beta(1.5, 2.0))
LAWS = {"poisson": POISSON, "negative_binomial": NEGATIVE_BINOMIAL}
PARAMETERS = {
    "poisson": np.array([[0.7], [2.5], [1.2]]),
    "negative_binomial": np.array([[0.7, 0.6], [2.5, 0.3], [1.2, 0.5]]),
}
OFFSETS = np.array([0, 3, 3, 5])
SYMBOLS = np.array([[0.0], [0.0], [1.0], [np.nan], [1.0]])
MODEL = ObservationModel("categorical", (DirichletMultinomial(2, 0.5),), ((0,),))
HYPER = Hyperparameters(1.3, 0.9, 0.0)


# Durations -----------------------------------------------------------------------------------------------------------


def scipy_law(name, own):
    return poisson(own[0]) if name == "poisson" else nbinom(own[0], 1 - own[1])


@pytest.mark.parametrize("name", LAWS)
def test_tables_are_those_of_scipy(name):
    log_pmf, log_survival = LAWS[name].tables(PARAMETERS[name], 30)
    for k, own in enumerate(PARAMETERS[name]):
        law = scipy_law(name, own)
        np.testing.assert_allclose(log_pmf[k], law.logpmf(np.arange(30)), atol=1e-12)
        np.testing.assert_allclose(np.exp(log_survival[k]), law.sf(np.arange(30) - 1), rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize(("name", "own"), [("poisson", [3.0]), ("negative_binomial", [0.5, 0.2])])
def test_tails_far_out_are_sums_of_probabilities(name, own):
    """At 900 steps both tails are below what a float holds."""
    own = np.array([own])
    log_pmf, log_survival = LAWS[name].tables(own, 900)
    beyond = LAWS[name].log_pmf(own[:, None], np.arange(899, 1100))
    assert np.isclose(log_survival[0, -1], logsumexp(beyond), rtol=1e-12)
    assert log_survival[0, -1] < -745
    assert np.isclose(log_survival[0, 400], logsumexp(log_pmf[0, 400:]), rtol=1e-12)


def test_segments_of_labels():
    labels = np.array([2, 2, 0, 0, 0])
    found = segments_of(labels, OFFSETS)
    assert found.states.tolist() == [2, 0, 0]
    assert found.durations.tolist() == [2, 1, 2]
    assert found.censored.tolist() == [False, True, True]
    np.testing.assert_array_equal(segment_counts(labels, OFFSETS, 3), [[0, 0, 0], [0, 0, 0], [1, 0, 0], [1, 0, 1]])


@pytest.mark.parametrize("name", LAWS)
def test_segments_cut_off_are_completed_from_the_tail(name):
    """Frequencies of 4,000 draws within 5 standard errors."""
    n = 4000
    segments = Segments(np.ones(n, dtype=np.int64), np.full(n, 3), np.ones(n, dtype=bool))
    more = LAWS[name].completed(np.random.default_rng(0), PARAMETERS[name], segments)
    law = scipy_law(name, PARAMETERS[name][1])
    for m in range(2, 8):
        chance = law.pmf(m) / law.sf(1)
        assert abs(np.mean(more == m) - chance) < 5 * np.sqrt(chance / n)


@pytest.mark.parametrize("name", LAWS)
def test_parameters_of_durations_keep_their_joint_law(name):
    """Geweke's test of durations alone, segments cut off among them; false-alarm rate 1e-6."""
    law, states = LAWS[name], np.array([0, 1, 0, 1, 0])
    censored = np.array([False, False, True, True, False])

    def data(rng, theta):
        more = [scipy_law(name, theta[k]).rvs(random_state=rng) for k in states]
        return np.where(censored, np.minimum(more, 2), more) + 1, np.where(censored, np.array(more) >= 2, False)

    def move(rng, theta, seen):
        return law.draw(rng, theta, Segments(states, seen[0], seen[1]))

    def statistics(theta, seen):
        out = {f"log {i}": float(np.log(theta[0, i])) for i in range(theta.shape[1])}
        return {**out, "longest": float(np.log(seen[0].max())), "product": float(theta[0, 0] * np.log(seen[0][0]))}

    problem = SamplerProblem(
        name, prior=lambda rng: law.draw_prior(rng, 2), data=data, transition=move, statistics=statistics, n_steps=3
    )
    found = check_sampler(problem, alpha=1e-6, max_stages=5, n_replications=200, checks=["geweke"], random_state=0)
    found.raise_if_failed()


# Exact inference -----------------------------------------------------------------------------------------------------


def log_path_probability(path, start, rows, log_pmf, log_survival):
    runs = [(state, len(list(run))) for state, run in groupby(path)]
    value = np.log(start[runs[0][0]])
    value += sum(np.log(rows[a, b]) for (a, _), (b, _) in pairwise(runs))
    value += sum(log_pmf[state, d - 1] for state, d in runs[:-1])
    return value + log_survival[runs[-1][0], runs[-1][1] - 1]


def small_chain(name, n_steps):
    rng = np.random.default_rng(3)
    start, rows = rng.dirichlet(np.ones(3)), np.zeros((3, 3))
    rows[~np.eye(3, dtype=bool)] = rng.dirichlet(np.ones(2), size=3).ravel()
    tables = LAWS[name].tables(PARAMETERS[name], n_steps)
    return start, rows, tables, rng.normal(size=(n_steps, 3))


def enumerated(name, n_steps):
    start, rows, tables, density = small_chain(name, n_steps)
    paths = np.array(list(product(range(3), repeat=n_steps)))
    logs = [log_path_probability(p, start, rows, *tables) + density[np.arange(n_steps), p].sum() for p in paths]
    return paths, np.array(logs)


@pytest.mark.parametrize("name", LAWS)
def test_probabilities_of_all_paths_sum_to_one(name):
    start, rows, tables, _ = small_chain(name, 5)
    paths = product(range(3), repeat=5)
    assert np.isclose(sum(np.exp(log_path_probability(p, start, rows, *tables)) for p in paths), 1.0)


@pytest.mark.parametrize("name", LAWS)
def test_messages_equal_enumeration(name):
    """Score, posteriors, best path and filter of two sequences, one of five steps and one of one, and an empty one."""
    start, rows, tables, density = small_chain(name, 5)
    paths, logs = enumerated(name, 5)
    both = np.vstack([density, density[:1]])
    observed = ObservedSegments(segment_law(start, rows, tables), both, np.array([0, 5, 5, 6]))
    scores, posteriors = observed.smooth()
    one = np.log(start) + density[0]
    np.testing.assert_allclose(scores, [logsumexp(logs), 0.0, logsumexp(one)])
    np.testing.assert_allclose(observed.score(), scores)
    shares = np.exp(logs - logsumexp(logs))
    expected = np.array([[shares[paths[:, t] == k].sum() for k in range(3)] for t in range(5)])
    np.testing.assert_allclose(posteriors[:5], expected, atol=1e-12)
    np.testing.assert_allclose(posteriors[5], np.exp(one - logsumexp(one)))
    best, states = observed.viterbi()
    np.testing.assert_allclose(best, [logs.max(), 0.0, one.max()])
    np.testing.assert_array_equal(states[:5], paths[logs.argmax()])
    log_filtered, so_far = observed.filter()
    np.testing.assert_allclose(so_far, scores)
    for t in range(1, 6):
        begun, own = enumerated_filter(name, t)
        np.testing.assert_allclose(np.exp(log_filtered[t - 1]), begun, atol=1e-12, err_msg=str(own))


def enumerated_filter(name, n_steps):
    start, rows, tables, density = small_chain(name, 5)
    paths = np.array(list(product(range(3), repeat=n_steps)))
    steps = np.arange(n_steps)
    logs = [log_path_probability(p, start, rows, *tables) + density[steps, p].sum() for p in paths]
    shares = np.exp(logs - logsumexp(logs))
    return [shares[paths[:, -1] == k].sum() for k in range(3)], n_steps


@pytest.mark.parametrize("name", LAWS)
def test_paths_are_drawn_from_their_posterior(name):
    """Frequencies of 81 paths of four steps in 6,000 draws: a chi-square test with false-alarm rate 1e-6."""
    start, rows, tables, density = small_chain(name, 4)
    logs = enumerated(name, 4)[1]
    n = 6000
    law = segment_law(start, rows, tables)
    drawn = draw_segments(np.random.default_rng(0), law, np.tile(density, (n, 1)), np.arange(0, 4 * n + 1, 4))
    seen = np.bincount(drawn.reshape(n, 4) @ [27, 9, 3, 1], minlength=81)
    expected = n * np.exp(logs - logsumexp(logs))
    often = expected > 5
    assert seen[expected < 1e-9].sum() == 0
    statistic = ((seen - expected)[often] ** 2 / expected[often]).sum()
    assert statistic < often.sum() + 8 * np.sqrt(2 * often.sum())


# The sampler ---------------------------------------------------------------------------------------------------------


def simplex_rule(n_nodes, a):
    """Nodes and weights for means over Dirichlet(a, a, a), by Gauss and Jacobi."""
    first, w = roots_jacobi(n_nodes, 2 * a - 1, a - 1)
    second, v = roots_jacobi(n_nodes, a - 1, a - 1)
    u, r = np.meshgrid((1 + first) / 2, (1 + second) / 2, indexing="ij")
    weights = np.outer(w / w.sum(), v / v.sum())
    return np.stack([u, (1 - u) * r, (1 - u) * (1 - r)], axis=-1).reshape(-1, 3), weights.ravel()


RULE = simplex_rule(30, HYPER.weight_concentration / 3)


def prior_grid(law):
    """Points and log weights for means over the prior of one state's parameters, by Gauss, Laguerre and Jacobi."""
    value, weight = roots_genlaguerre(40 if isinstance(law, PoissonDurations) else 12, law.prior.shape - 1)
    if isinstance(law, PoissonDurations):
        return value[:, None] / law.prior.rate, np.log(weight / weight.sum())
    chance, other = roots_jacobi(60, law.chance.b - 1, law.chance.a - 1)
    cells = np.array(list(product(value / law.prior.rate, (1 + chance) / 2)))
    return cells, np.log(np.outer(weight / weight.sum(), other / other.sum()).ravel())


GRIDS = {name: prior_grid(law) for name, law in LAWS.items()}


def log_durations(name, states, durations, censored):
    """Log probability of durations with the parameters integrated out."""
    total, (cells, log_weights) = 0.0, GRIDS[name]
    for k in set(states):
        own = states == k
        seen = Segments(np.zeros(own.sum(), dtype=np.int64), durations[own], censored[own])
        total += logsumexp(log_weights + [LAWS[name].log_density(cell[None], seen) for cell in cells])
    return total


def test_integrals_over_durations_are_those_of_textbooks():
    """Gamma and Poisson: a negative binomial; and probabilities of all durations sum to one."""
    whole = np.array([False])
    logs = [log_durations("poisson", np.zeros(1, int), np.array([1 + m]), whole) for m in range(6)]
    np.testing.assert_allclose(logs, nbinom(2.0, 0.5).logpmf(np.arange(6)))
    for name in LAWS:
        some = [log_durations(name, np.zeros(1, int), np.array([1 + m]), whole) for m in range(4)]
        rest = log_durations(name, np.zeros(1, int), np.array([5]), ~whole)
        assert np.isclose(np.exp(some).sum() + np.exp(rest), 1.0)


def exact_posterior(name, kernel):
    """Of the partition of five steps into at most three states, everything else integrated out."""
    observations = kernel.model.prepare(kernel.data, kernel.offsets)
    nodes, weights = RULE

    def log_joint(labels):
        segments, n_used = segments_of(labels, kernel.offsets), labels.max() + 1
        counts = segment_counts(labels, kernel.offsets, 3)
        paths = [log_segment_path(counts, kernel.hyper.concentration, np.maximum(beta, 1e-300)) for beta in nodes]
        namings = gammaln(4) - gammaln(4 - n_used)  # beta is exchangeable
        lasting = log_durations(name, *segments)
        data = observations.log_marginal(observations.sums(labels, n_used))
        return namings + logsumexp(np.array(paths), b=weights) + lasting + data

    return enumerate_posterior(log_joint, configurations=list(set_partitions(5, 3)))


def make_kernel(name, priors=HyperPriors()):  # noqa: B008
    return SemiMarkovSampler(MODEL, SYMBOLS, OFFSETS, HYPER, priors, 3, durations=LAWS[name])


def enumeration_problem(name):
    """Weights and parameters of durations begin at exact draws given the states, by rejection."""
    kernel = make_kernel(name)

    def move(rng, labels):
        segments, counts = segments_of(labels, OFFSETS), segment_counts(labels, OFFSETS, 3)
        while True:
            beta = np.maximum(rng.dirichlet(np.full(3, HYPER.weight_concentration / 3)), 1e-300)
            if np.log(rng.random()) < log_segment_path(counts, HYPER.concentration, beta):
                break
        lasting = np.empty((3, len(kernel.durations.names)))
        for k in range(3):
            own = segments.states == k
            seen = Segments(np.zeros(own.sum(), dtype=np.int64), segments.durations[own], segments.censored[own])
            while True:
                lasting[k] = kernel.durations.draw_prior(rng, 1)[0]
                if np.log(rng.random()) < kernel.durations.log_density(lasting[k][None], seen):
                    break
        position = {**as_position(labels, beta, HYPER), "durations": lasting}
        return in_order(kernel.sweep(rng, position, kernel.data)["labels"])[0]

    return SamplerProblem(f"semi-Markov, {name}", kernel=move, posterior=exact_posterior(name, kernel), n_steps=2)


def joint_problem(name):
    """States, weights, hyper-parameters, durations and data together."""
    kernel = make_kernel(name, HyperPriors(Gamma(3.0, 2.0), Gamma(2.0, 1.5)))

    def statistics(position, X):
        labels = in_order(np.asarray(position["labels"]))[0]
        there = np.nan_to_num(X)
        return {
            "log concentration": np.log(position["concentration"]),
            "log weight concentration": np.log(position["weight_concentration"]),
            "n states": labels.max() + 1,
            "stays": float(labels[1] == labels[0]),
            "comes back": float(labels[0] == labels[2] != labels[1]),
            "first steps": float(labels[0] == labels[3]),
            "lasting": float(np.log(position["durations"][position["labels"][0], 0])),
            "largest": float(position["weights"].max()),
            "within": float(there[labels == 0].var()),
        }

    return SamplerProblem(
        f"semi-Markov, {name}", prior=kernel.sample_prior, data=kernel.sample_data, transition=kernel.sweep,
        statistics=statistics, log_likelihood=kernel.log_likelihood, n_steps=3,
    )  # fmt: skip


def test_integrals_over_weights_are_those_of_draws():
    """Within 5 standard errors of 4,000 draws."""
    counts = np.array([[0, 1, 1], [1, 0, 0], [0, 0, 0], [1, 0, 1]])
    nodes, weights = RULE
    exact = weights @ [np.exp(log_segment_path(counts, 1.3, np.maximum(beta, 1e-300))) for beta in nodes]
    draws = np.random.default_rng(0).dirichlet(np.full(3, 0.3), size=4000)
    found = [np.exp(log_segment_path(counts, 1.3, np.maximum(beta, 1e-300))) for beta in draws]
    assert abs(np.mean(found) - exact) < 5 * np.std(found) / np.sqrt(4000)


@pytest.mark.parametrize("name", LAWS)
def test_each_sampler_leaves_the_exact_posterior_invariant(name):
    """Every segmentation of five steps, durations integrated out: false-alarm rate 1e-6."""
    problem = enumeration_problem(name)
    check_sampler(problem, alpha=1e-6, max_stages=5, n_replications=300, random_state=1).raise_if_failed()


@pytest.mark.parametrize("name", LAWS)
def test_data_and_states_keep_their_joint_law(name):
    """False-alarm rate 1e-6."""
    checks = ["repeats itself", "input untouched", "moves", "geweke"]
    found = check_sampler(
        joint_problem(name), alpha=1e-6, max_stages=5, n_replications=100, checks=checks, random_state=0
    )
    found.raise_if_failed()


def test_weights_have_their_posterior():
    """Means over 6,000 steps of a chain given counts against quadrature, within 6 standard errors of batches."""
    counts, rng = np.array([[0, 4, 1], [3, 0, 0], [1, 0, 0], [1, 0, 1]]), np.random.default_rng(0)
    nodes, weights = RULE
    chances = weights * [np.exp(log_segment_path(counts, 1.3, np.maximum(beta, 1e-300))) for beta in nodes]
    expected = chances @ nodes / chances.sum()
    beta, kept = np.full(3, 1 / 3), []
    for _ in range(6000):
        beta, _ = draw_segment_weights(rng, counts, beta, HYPER, HyperPriors())
        kept.append(beta)
    batches = np.array(kept).reshape(60, 100, 3).mean(axis=1)
    assert (np.abs(batches.mean(axis=0) - expected) < 6 * batches.std(axis=0) / np.sqrt(60)).all()


# The estimator -------------------------------------------------------------------------------------------------------

SMALL = {"inference": "weak_limit", "n_draws": 15, "n_warmup": 40, "n_chains": 2, "random_state": 0}
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore:the states reached")
STATES = np.repeat([0, 1, 2, 0, 2, 1], [12, 25, 6, 12, 6, 25])


def rows(seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(len(STATES), 2)) + 8.0 * np.array([[-1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])[STATES]


@pytest.mark.parametrize("name", LAWS)
def test_states_and_their_durations_are_found(name, tmp_path):
    X = rows()
    model = InfiniteHMM(durations=name, **SMALL).fit(X, lengths=[43, 43])
    assert one_to_one_accuracy(STATES, model.labels_) > 0.95
    assert one_to_one_accuracy(STATES, model.predict([X[:43], X[43:]])) > 0.95
    assert (np.diagonal(model.transmat_) == 0).all()
    np.testing.assert_allclose(model.transmat_.sum(axis=1), 1.0)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    means = model.duration_parameters_["means"]
    assert means[model.labels_[20]] > means[model.labels_[40]]  # 25 steps and 6
    assert "mean duration" in model.summary()
    assert model.sample(60, random_state=0)[0].shape == (60, 2)
    assert model.sample_paths(X, n_paths=3).shape == (3, 86)
    assert np.isfinite(model.score(X))
    with pytest.raises(AttributeError, match="no list of best paths"):
        model.best_paths(X)
    pluri.io.save(model, tmp_path / "model.pluri")
    again = pluri.io.load(tmp_path / "model.pluri")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_one_state_lasts():
    X = np.random.default_rng(0).normal(size=(40, 1))
    model = InfiniteHMM(durations="poisson", **SMALL, max_components=1).fit(X)
    assert model.n_states_ == 1
    assert np.isfinite(model.score(X))
    assert (model.sample(10)[1] == 0).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"durations": "poisson"}, "durations='poisson' needs inference='weak_limit', got 'beam'"),
        ({"durations": "poisson", "inference": "vb"}, "needs inference='weak_limit', got 'vb'"),
        ({"durations": "geometric", "inference": "weak_limit"}, "durations must be"),
        ({"durations": "poisson", "inference": "weak_limit", "stickiness": 0.5}, "stickiness must be 0, or 'learn'"),
        ({"durations": "poisson", "inference": "weak_limit", "duration_prior": {"mean": 3}}, "got 'mean'"),
        ({"durations": "poisson", "inference": "weak_limit", "duration_prior": {"rate": -1}}, "rate"),
        ({"duration_prior": {"rate": 1.0}}, "duration_prior must be None without durations"),
    ],
)
def test_what_cannot_be_honoured_is_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        InfiniteHMM(**settings).fit(rows())


def test_default_prior_follows_the_lengths():
    law = duration_model("poisson", None, np.array([0, 100, 100, 200]))
    assert law.prior == Gamma(1.0, 0.1)
    found = expected_parameters(np.random.default_rng(0), law, np.repeat([0, 1, 0], [40, 20, 40]), np.array([0, 100]))
    assert 30 < found["means"][0] < 60
    rows_ = expected_segment_rows(np.array([[0, 2], [1, 0], [1, 0]]), 1.0, np.array([0.5, 0.5]))
    np.testing.assert_allclose(rows_, [[0, 1], [1, 0], [0.75, 0.25]])
