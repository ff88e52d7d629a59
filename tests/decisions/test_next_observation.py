"""What to observe next: information against enumeration, quadrature, sampling, and log-determinants."""

from itertools import pairwise, product

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.special import entr, logsumexp
from scipy.stats import multivariate_normal, norm
from sklearn.gaussian_process.kernels import RBF

from pluri.decisions import NextObservation
from pluri.mixtures import BernoulliMixture, CategoricalMixture, GaussianMixture, NaiveBayes
from pluri.processes import GaussianProcessRegressor
from pluri.sequences import CategoricalHMM, GaussianHMM

NAN = np.nan
RNG = np.random.default_rng(0)
LABELS = np.arange(90) % 3
BINARY = (RNG.random((90, 5)) < np.where(np.arange(5) % 3 == LABELS[:, None], 0.8, 0.3)).astype(float)


def entropy(p):
    return entr(p).sum()


def joint_information(weights, tables, columns):
    """I(z; x_columns) by going through all outcomes."""
    expected = 0.0
    for outcome in product(*(range(tables[c].shape[1]) for c in columns)):
        joint = weights * np.prod([tables[c][:, v] for c, v in zip(columns, outcome)], axis=0)
        expected += joint.sum() * entropy(joint / joint.sum())
    return entropy(weights) - expected


@pytest.fixture(scope="module")
def bayes():
    return NaiveBayes(inference="bayes").fit(BINARY, LABELS)


def test_information_about_the_class_is_that_of_all_outcomes(bayes):
    tables = [np.stack([1 - t, t], axis=1) for t in bayes.theta_.T]
    scores = NextObservation(bayes).information([NAN] * 5)
    expected = [joint_information(bayes.class_prior_, tables, [c]) for c in range(5)]
    assert_allclose(scores.information, expected, rtol=1e-10)
    assert_allclose(scores.information, bayes.feature_information(), rtol=1e-10)
    assert (scores.standard_error == 0).all()
    plan = NextObservation(bayes).plan([NAN] * 5, budget=3)
    assert_allclose(plan.values[-1], joint_information(bayes.class_prior_, tables, plan.items.tolist()), rtol=1e-10)
    assert (plan.standard_error == 0).all()


def test_what_is_observed_is_conditioned_on(bayes):
    row = [1.0, NAN, 0.0, NAN, NAN]
    tables = [np.stack([1 - t, t], axis=1) for t in bayes.theta_.T]
    weights = bayes.class_prior_ * tables[0][:, 1] * tables[2][:, 0]
    scores = NextObservation(bayes).information(row)
    assert scores.candidates.tolist() == [1, 3, 4]
    expected = [joint_information(weights / weights.sum(), tables, [c]) for c in (1, 3, 4)]
    assert_allclose(scores.information, expected, rtol=1e-10)


def test_drawn_scenarios_agree_with_all_of_them(bayes, monkeypatch):
    exact = NextObservation(bayes).plan([NAN] * 5, budget=4)
    monkeypatch.setattr("pluri.decisions.planning.scenarios.MOST_EXACT", 1)
    drawn = NextObservation(bayes, n_samples=4000, random_state=0).plan([NAN] * 5, budget=4)
    assert drawn.items[0] == exact.items[0]
    assert (drawn.standard_error[1:] > 0).all()
    # The sum of four gains; four standard errors: one false alarm in 16,000.
    assert abs(drawn.values[-1] - exact.values[-1]) < 4 * np.sqrt((drawn.standard_error**2).sum()) + 0.02


def test_a_column_as_the_target(bayes):
    tables = [np.stack([1 - t, t], axis=1) for t in bayes.theta_.T]
    scores = NextObservation(bayes, target=3).information([NAN] * 5)
    assert scores.candidates.tolist() == [0, 1, 2, 4]
    for column, found in zip(scores.candidates, scores.information):
        joint = np.einsum("k,kv,kw->vw", bayes.class_prior_, tables[column], tables[3])
        expected = entropy(joint.sum(axis=0)) + entropy(joint.sum(axis=1)) - entropy(joint.ravel())
        assert_allclose(found, expected, rtol=1e-8)


def test_discrete_mixtures_are_asked_by_their_own_categories():
    binary = BernoulliMixture(2, random_state=0).fit(BINARY)
    tables = [np.stack([1 - t, t], axis=1) for t in binary.probabilities_.T]
    found = NextObservation(binary).information([NAN] * 5).information
    assert_allclose(found, [joint_information(binary.weights_, tables, [c]) for c in range(5)], rtol=1e-9)
    words = np.array(["low", "high"], dtype=object)[BINARY.astype(int)]
    named = CategoricalMixture(2, random_state=0).fit(words)
    scores = NextObservation(named).information(["low", None, "high", None, None])
    share = named.predict_proba(np.array([["low", None, "high", None, None]], dtype=object))[0]
    expected = [joint_information(share, named.probabilities_, [c]) for c in (1, 3, 4)]
    assert_allclose(scores.information, expected, rtol=1e-6)


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_gaussian_mixtures_by_quadrature_and_given_what_is_seen(kind):
    X = RNG.normal(size=(90, 3)) @ RNG.normal(size=(3, 3)) + 3.0 * (LABELS == 1)[:, None]
    model = GaussianMixture(2, covariance_type=kind, random_state=0).fit(X)
    row = np.array([0.5, NAN, NAN])
    share = model.predict_proba(row[None])[0]
    scores = NextObservation(model).information(row)
    full = {
        "full": lambda z: model.covariances_[z],
        "tied": lambda z: model.covariances_,
        "diag": lambda z: np.diag(model.covariances_[z]),
        "spherical": lambda z: model.covariances_[z] * np.eye(3),
    }[kind]
    for column, found in zip(scores.candidates, scores.information):
        parts = []
        for z in range(2):
            C, m = full(z), model.means_[z]
            slope = C[column, 0] / C[0, 0]
            parts.append(norm(m[column] + slope * (0.5 - m[0]), np.sqrt(C[column, column] - slope * C[0, column])))

        def integrand(x, parts=parts):
            mixed = sum(s * p.pdf(x) for s, p in zip(share, parts))
            return sum(s * p.pdf(x) * (p.logpdf(x) - np.log(max(mixed, 1e-300))) for s, p in zip(share, parts))

        expected = quad(integrand, -40, 40, limit=400, points=[p.mean() for p in parts])[0]
        assert_allclose(found, expected, atol=1e-6)


def test_a_plan_for_a_gaussian_mixture_is_worth_what_sampling_says():
    covariances = np.array([[[1.0, 0.8], [0.8, 1.0]], [[1.0, -0.8], [-0.8, 1.0]]])
    means = np.array([[0.0, 0.0], [0.5, 0.5]])
    model = GaussianMixture(2, random_state=0, weights_init=[0.5, 0.5]).fit(RNG.normal(size=(50, 2)))
    model.weights_, model.means_, model.covariances_ = np.array([0.5, 0.5]), means, covariances
    plan = NextObservation(model, n_samples=2000, random_state=0).plan([NAN, NAN], budget=2)
    # I(z; x) of both columns together by sampling: 40,000 draws have a standard error below 0.005.
    rng = np.random.default_rng(1)
    logs = [multivariate_normal(means[z], covariances[z]) for z in range(2)]
    drawn = np.concatenate([one.rvs(20_000, random_state=rng) for one in logs])
    density = np.stack([one.pdf(drawn) for one in logs], axis=1)
    posterior = density / density.sum(axis=1, keepdims=True)
    expected = np.log(2) - entr(posterior).sum(axis=1).mean()
    assert abs(plan.values[-1] - expected) < 4 * plan.standard_error[-1] + 0.02


def test_steps_of_a_chain_against_all_outcomes():
    model = CategoricalHMM(2, random_state=0).fit(np.tile([0, 0, 1, 1, 0, 2], 10)[:, None])
    model.startprob_, model.transmat_ = np.array([0.6, 0.4]), np.array([[0.9, 0.1], [0.2, 0.8]])
    model.emissionprob_ = np.array([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]])
    sequence = np.array([[0.0], [NAN], [NAN], [2.0]])

    def path_entropy(x):
        paths = list(product(range(2), repeat=4))
        chances = []
        for path in paths:
            chance = model.startprob_[path[0]]
            for t in range(4):
                chance *= model.transmat_[path[t - 1], path[t]] if t else 1.0
                chance *= model.emissionprob_[path[t], int(x[t])] if not np.isnan(x[t]) else 1.0
            chances.append(chance)
        chances = np.array(chances)
        return entropy(chances / chances.sum()), chances.sum()

    base, total = path_entropy(sequence[:, 0])
    scores = NextObservation(model).information(sequence)
    assert scores.candidates.tolist() == [1, 2]
    for step, found in zip(scores.candidates, scores.information):
        expected = 0.0
        for symbol in range(3):
            x = sequence[:, 0].copy()
            x[step] = symbol
            after, chance = path_entropy(x)
            expected += chance / total * after
        assert_allclose(found, base - expected, rtol=1e-8)
    both = 0.0
    for first, second in product(range(3), repeat=2):
        after, chance = path_entropy(np.array([0.0, first, second, 2.0]))
        both += chance / total * after
    plan = NextObservation(model, n_samples=3000, random_state=0).plan(sequence, budget=2)
    assert abs(plan.values[-1] - (base - both)) < 4 * plan.standard_error[-1] + 0.01


def test_steps_of_a_gaussian_chain_are_told_apart():
    X = np.concatenate([RNG.normal(0, 1, 60), RNG.normal(8, 1, 60)])[:, None]
    model = GaussianHMM(2, random_state=0).fit(X)
    sequence = np.full((9, 1), NAN)
    sequence[0], sequence[8] = 0.0, 8.0
    scores = NextObservation(model).information(sequence)
    assert 2 <= scores.best <= 6  # in the middle nobody knows
    assert scores.information.max() <= np.log(2) + 1e-9


def test_places_of_a_gaussian_process_against_determinants():
    X = RNG.uniform(0, 5, (8, 1))
    model = GaussianProcessRegressor(RBF(1.0), noise_variance=0.1, hyper_inference="fixed").fit(X, np.sin(X[:, 0]))
    places = np.linspace(0, 8, 12)[:, None]
    covariance = model.predict(places, return_cov=True)[1]
    plan = NextObservation(model).plan(places, budget=3)
    block = covariance[np.ix_(plan.items, plan.items)]
    assert_allclose(plan.values[-1], 0.5 * np.linalg.slogdet(np.eye(3) + block / 0.1)[1], rtol=1e-8)
    target = np.array([[7.0], [7.5]])
    scores = NextObservation(model, target=target).information(places)
    both = model.predict(np.vstack([places, target]), return_cov=True)[1]
    for place, found in enumerate(scores.information):
        chosen = [place, 12, 13]
        joint = both[np.ix_(chosen, chosen)] + np.diag([0.1, 1e-10, 1e-10])
        parts = np.linalg.slogdet(joint)[1], np.log(joint[0, 0]), np.linalg.slogdet(joint[1:, 1:])[1]
        assert_allclose(found, 0.5 * (parts[1] + parts[2] - parts[0]), atol=1e-5)
    assert abs(places[scores.best, 0] - 7.2) < 0.5


def test_costs_change_what_is_best_and_a_budget_is_kept(bayes):
    plain = NextObservation(bayes).information([NAN] * 5)
    costs = np.ones(5)
    costs[plain.best] = 100.0
    assert NextObservation(bayes).information([NAN] * 5, costs=costs).best != plain.best
    plan = NextObservation(bayes).plan([NAN] * 5, budget=3.5, costs=[1.0, 2.0, 0.5, 1.0, 0.0])
    assert plan.cost <= 3.5
    assert 4 in plan.items


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda m: NextObservation(m).information([NAN] * 4), "X must be one row of 5 columns"),
        (lambda m: NextObservation(m).information([1.0] * 5), "X must have something that is not observed"),
        (lambda m: NextObservation(m).information([2.0, NAN, NAN, NAN, 1.0], costs=[1.0]), "costs must be a number"),
        (lambda m: NextObservation(m).plan([NAN] * 5, budget=0.0), "budget must be a positive number"),
        (lambda m: NextObservation(m).plan([NAN] * 5, budget=1.0, costs=[-1.0] * 5), "costs must be finite"),
        (lambda m: NextObservation(m, target=9).information([NAN] * 5), "target must be a discrete column"),
        (lambda m: NextObservation(m, n_samples=1), "n_samples must be an integer of at least 2"),
    ],
)
def test_mistakes_get_a_sentence(bayes, call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call(bayes)


def test_models_that_cannot_be_asked_are_named():
    from sklearn.linear_model import LinearRegression

    with pytest.raises(TypeError, match="got LinearRegression"):
        NextObservation(LinearRegression().fit([[0.0], [1.0]], [0.0, 1.0])).information([NAN])


def path_entropy(model, log_prob, n_steps):
    """Entropy of the path given ``log_prob`` (n_steps, k) of what is seen, and the log probability of that."""
    k = len(model.startprob_)
    logs = []
    for path in product(range(k), repeat=n_steps):
        log = np.log(model.startprob_[path[0]]) + sum(np.log(model.transmat_[a, b]) for a, b in pairwise(path))
        logs.append(log + sum(log_prob[t, z] for t, z in enumerate(path)))
    logs = np.array(logs)
    total = logsumexp(logs)
    return entropy(np.exp(logs - total)), total


def test_a_step_of_several_symbols_against_all_paths():
    model = CategoricalHMM(2, random_state=0).fit(np.stack([np.arange(60) % 3, np.arange(60) % 2], axis=1))
    model.startprob_, model.transmat_ = np.array([0.6, 0.4]), np.array([[0.9, 0.1], [0.2, 0.8]])
    tables = [np.array([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]]), np.array([[0.8, 0.2], [0.4, 0.6]])]
    model.emissionprob_ = tables
    sequence = np.array([[0.0, 1.0], [NAN, NAN], [2.0, NAN]])  # the last is seen in part

    def logs(x):
        found = np.zeros((3, 2))
        for t, row in enumerate(x):
            found[t] = sum(np.log(tables[j][:, int(v)]) for j, v in enumerate(row) if not np.isnan(v))
        return found

    base, total = path_entropy(model, logs(sequence), 3)
    scores = NextObservation(model).information(sequence)
    assert scores.candidates.tolist() == [1, 2]
    for step, found in zip(scores.candidates, scores.information):
        missing = np.flatnonzero(np.isnan(sequence[step]))
        left = 0.0
        for outcome in product(*(range(tables[column].shape[1]) for column in missing)):
            seen = sequence.copy()
            seen[step, missing] = outcome
            after, chance = path_entropy(model, logs(seen), 3)
            left += np.exp(chance - total) * after
        assert_allclose(found, base - left, rtol=1e-9)
    assert (scores.standard_error == 0).all()
    plan = NextObservation(model, n_samples=64, random_state=0).plan(sequence, budget=2)
    assert sorted(plan.items.tolist()) == [1, 2]
    assert plan.values[-1] <= base + 4 * plan.standard_error[-1]


@pytest.mark.parametrize("covariance_type", ["full", "diag", "tied", "spherical"])
def test_a_step_of_several_numbers_against_quadrature(covariance_type):
    X = np.random.default_rng(0).normal(size=(80, 2)) + np.repeat([[0, 0], [1, 2]], 40, axis=0)
    model = GaussianHMM(2, covariance_type=covariance_type, random_state=0, n_iter=1).fit(X)
    model.startprob_, model.transmat_ = np.array([0.6, 0.4]), np.array([[0.7, 0.3], [0.2, 0.8]])
    sequence = np.full((3, 2), NAN)
    sequence[0, 0] = 0.5
    scores = NextObservation(model, n_samples=4000, random_state=0).information(sequence)
    assert scores.candidates.tolist() == [0, 1, 2]
    grid = np.linspace(-9, 11, 201)
    both = np.stack(np.meshgrid(grid, grid, indexing="ij"), axis=-1)
    density = np.stack(
        [multivariate_normal(mean, cov).pdf(both) for mean, cov in zip(model.means_, model.covars_)], axis=-1
    )
    for step, points in ((0, density[np.abs(grid - 0.5).argmin()]), (1, density), (2, density)):
        shares = model.predict_proba(sequence)[step]
        given = points.reshape(-1, 2) / points.reshape(-1, 2).sum(axis=0)
        mixed = given @ shares
        expected = np.sum(shares * given * (np.log(given + 1e-300) - np.log(mixed[:, None] + 1e-300)))
        found, error = scores.information[step], scores.standard_error[step]
        # Five standard errors: a false alarm in one of a million; quadrature is exact to 1e-6.
        assert abs(found - expected) <= 5 * error + 1e-5
    assert scores.standard_error[0] == 0  # one number, by quadrature
    plan = NextObservation(model, n_samples=200, random_state=0).plan(sequence, budget=2, costs=[5.0, 1.0, 1.0])
    assert plan.items.tolist() in ([1, 2], [2, 1])
    assert (plan.gains >= 0).all()


def test_costs_are_of_steps_and_places_even_if_there_is_one():
    X = RNG.uniform(0, 5, (8, 2))
    process = GaussianProcessRegressor(RBF(1.0), noise_variance=0.1, hyper_inference="fixed").fit(X, np.sin(X[:, 0]))
    assert NextObservation(process).information([[1.0, 2.0]], costs=[3.0]).costs.tolist() == [3.0]
    model = GaussianHMM(2, random_state=0, n_iter=1).fit(np.random.default_rng(0).normal(size=(30, 2)))
    assert NextObservation(model).information([[NAN, NAN]], costs=[2.0]).costs.tolist() == [2.0]
    with pytest.raises(ValueError, match="X must be one sequence of 2 columns"):
        NextObservation(model).information([[NAN], [NAN]])
