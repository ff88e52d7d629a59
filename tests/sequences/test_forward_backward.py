"""Likelihood, posteriors, filters, pair counts: against the sum over every path, for every family."""

import numpy as np
import pytest
from scipy.special import logsumexp

from pluri.engine import Batch
from pluri.sequences import GaussianHMM
from pluri.sequences.learning import ChainPrior, HiddenMarkovProblem

FAMILIES = [
    *(f"{family}-{kind}" for family in ("gaussian", "gmm") for kind in ("spherical", "diag", "full", "tied")),
    "categorical",
    "categorical-columns",
    "bernoulli",
    "poisson",
    "multinomial",
]
MISSING = [None, "features", "rows"]
TIGHT = {"rtol": 1e-11, "atol": 1e-11}


def test_the_list_of_families_is_complete(enumeration):
    assert tuple(FAMILIES) == enumeration.FAMILIES


@pytest.mark.parametrize("implementation", ["scaling", "log"])
@pytest.mark.parametrize("missing", MISSING)
@pytest.mark.parametrize("zeros", [False, True], ids=["dense", "hard-zeros"])
@pytest.mark.parametrize("family", FAMILIES)
def test_scores_and_posteriors_equal_enumeration(enumeration, e_step, family, zeros, missing, implementation):
    case = enumeration.make_case(family, zeros=zeros, missing=missing, seed=1, implementation=implementation)
    truth = case.enumerate()
    score, posterior = case.model.score_samples(case.X)
    np.testing.assert_allclose(score, truth.log_likelihood, **TIGHT)
    np.testing.assert_allclose(case.model.score(case.X), truth.log_likelihood, **TIGHT)
    np.testing.assert_allclose(posterior, truth.posterior, **TIGHT)
    np.testing.assert_allclose(case.model.filter_proba(case.X), truth.filtered, **TIGHT)
    stats = e_step(case.model, case.X, in_log_space=implementation == "log")
    np.testing.assert_allclose(stats.transition, truth.pairs.sum(axis=0), **TIGHT)
    np.testing.assert_allclose(stats.start, truth.posterior[0], **TIGHT)
    np.testing.assert_allclose(stats.occupancy, truth.posterior.sum(axis=0), **TIGHT)
    np.testing.assert_allclose(stats.log_likelihood, truth.log_likelihood, **TIGHT)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_online_filter_equals_enumeration(enumeration, family):
    case = enumeration.make_case(family, missing="features" if family != "multinomial" else "rows", seed=2)
    truth = case.enumerate()
    online = case.model.filter()
    for t, x in enumerate(case.X):
        np.testing.assert_allclose(online.update(x), truth.filtered[t], **TIGHT)
    np.testing.assert_allclose(online.log_likelihood, truth.log_likelihood, **TIGHT)
    assert online.n_steps == len(case.X)


@pytest.mark.parametrize("labels", [[-1, 2, -1, 0, -1], [1, 1, 2, 2, 0], [-1] * 5], ids=["some", "all", "none"])
@pytest.mark.parametrize("in_log_space", [False, True])
@pytest.mark.parametrize("family", ["gaussian-full", "gmm-tied", "categorical", "bernoulli", "poisson", "multinomial"])
def test_known_states_are_clamped(enumeration, e_step, family, labels, in_log_space):
    case = enumeration.make_case(family, seed=3)
    truth = case.enumerate(labels=labels)
    stats = e_step(case.model, case.X, labels=np.array(labels), in_log_space=in_log_space)
    np.testing.assert_allclose(stats.log_likelihood, truth.log_likelihood, **TIGHT)
    np.testing.assert_allclose(stats.transition, truth.pairs.sum(axis=0), **TIGHT)
    np.testing.assert_allclose(stats.start, truth.posterior[0], **TIGHT)


@pytest.mark.parametrize("in_log_space", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_weights_and_sequences_of_length_zero_and_one(enumeration, e_step, family, in_log_space):
    case = enumeration.make_case(family, n_samples=9, seed=4)
    lengths, weight = [0, 4, 1, 0, 3, 1], np.array([9.0, 2.0, 0.5, 7.0, 0.0, 1.5])
    stats = e_step(case.model, case.X, lengths, weight, in_log_space=in_log_space)
    offsets = np.append(0, np.cumsum(lengths))
    start, pairs, total = np.zeros(3), np.zeros((3, 3)), 0.0
    for n, w in enumerate(weight):
        if lengths[n]:
            truth = case.enumerate(case.X[offsets[n] : offsets[n + 1]])
            start += w * truth.posterior[0]
            pairs += w * truth.pairs.sum(axis=0)
            total += w * truth.log_likelihood
    np.testing.assert_allclose(stats.start, start, **TIGHT)
    np.testing.assert_allclose(stats.transition, pairs, **TIGHT)
    np.testing.assert_allclose(stats.log_likelihood, total, **TIGHT)
    np.testing.assert_allclose(stats.occupancy.sum(), weight @ lengths, **TIGHT)


@pytest.mark.parametrize("k", [1, 2, 4, 5])
def test_every_padding_of_the_states_equals_enumeration(enumeration, e_step, k):
    case = enumeration.make_case("gaussian-diag", k=k, zeros=k > 2, seed=5)
    truth = case.enumerate()
    score, posterior = case.model.score_samples(case.X)
    np.testing.assert_allclose(score, truth.log_likelihood, **TIGHT)
    np.testing.assert_allclose(posterior, truth.posterior, **TIGHT)
    np.testing.assert_allclose(e_step(case.model, case.X).transition, truth.pairs.sum(axis=0), **TIGHT)
    best, path = case.model.decode(case.X)
    np.testing.assert_allclose(best, truth.log_joint[0], **TIGHT)
    np.testing.assert_array_equal(path, truth.paths[0])


@pytest.mark.parametrize("n_features", [1, 2, 4, 5, 8, 9])
@pytest.mark.parametrize("kind", ["spherical", "diag", "full", "tied"])
def test_gaussian_densities_of_every_width_equal_scipy(enumeration, kind, n_features):
    # 300 rows are more than two chunks of the compiled loops.
    case = enumeration.make_case(f"gaussian-{kind}", n_samples=300, n_features=n_features, missing="features", seed=6)
    emission, parameters = case.model._model()
    out = np.empty((300, 4))
    emission.log_prob(parameters.emission, emission.prepare(case.X), out)
    np.testing.assert_allclose(out[:, :3], case.log_density(case.X), rtol=1e-10, atol=1e-10)
    assert (out[:, 3] == -np.inf).all()


@pytest.mark.parametrize("kind", ["spherical", "diag", "full", "tied"])
def test_densities_far_from_zero_keep_their_digits(enumeration, kind):
    case = enumeration.make_case(f"gaussian-{kind}", seed=7)
    # Rounded to 20 binary places, so that the move is exact and the answer the same.
    X, case.model.means_ = (np.round(values * 2.0**20) / 2.0**20 for values in (case.X, case.model.means_))
    truth = case.model.score(X)
    case.model.means_ = case.model.means_ + 2.0**30
    np.testing.assert_allclose(case.model.score(X + 2.0**30), truth, rtol=1e-9)


def test_pair_counts_marginalise_to_posteriors(enumeration, e_step):
    case = enumeration.make_case("gaussian-full", n_samples=400, k=5, zeros=True, seed=8)
    posterior = case.model.predict_proba(case.X)
    stats = e_step(case.model, case.X)
    np.testing.assert_allclose(stats.transition.sum(axis=1), posterior[:-1].sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(stats.transition.sum(axis=0), posterior[1:].sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(posterior.sum(axis=1), 1.0, rtol=1e-12)


@pytest.mark.parametrize("family", FAMILIES)
def test_scaled_equals_log_space_on_long_sequences(enumeration, e_step, family):
    case = enumeration.make_case(family, n_samples=700, zeros=True, missing="rows", seed=9)
    lengths = [1, 250, 0, 449]
    fast, slow = (e_step(case.model, case.X, lengths, in_log_space=flag) for flag in (False, True))
    for name in ("log_likelihood", "start", "transition", "occupancy"):
        np.testing.assert_allclose(getattr(fast, name), getattr(slow, name), rtol=1e-9, atol=1e-9)


def two_gaussians(transition, start, means, **options):
    model = GaussianHMM(2, **options)
    model.startprob_, model.transmat_ = np.array(start), np.array(transition)
    model.means_, model.covars_ = np.array(means, dtype=float)[:, None], np.ones((2, 1))
    return model


# Each with a state that one step makes all but impossible (a factor that no double holds), and that the later ones ask
# for again, where the way back is forbidden.
UNDERFLOWS = {
    "no-way-back-at-once": ([[1.0, 0.0], [0.0, 1.0]], [0.0, 60.0], [[0.0], [60.0], [60.0]]),
    "no-way-back-in-two-steps": ([[1.0, 0.0], [0.0, 1.0]], [0.0, 40.0], [[2.0], [31.25], [31.25]]),
    "left-to-right-after-a-spike": ([[0.99, 0.01], [0.0, 1.0]], [0.0, 30.0], [[60.0]] + [[14.0]] * 80),
    "almost-forbidden": ([[1.0, 1e-300], [1e-300, 1.0]], [0.0, 40.0], [[2.0], [31.25], [31.25], [31.25]]),
}


@pytest.mark.parametrize("name", UNDERFLOWS)
def test_a_state_that_underflows_and_returns_is_not_forgotten(e_step, name):
    transition, means, X = UNDERFLOWS[name]
    fast = two_gaussians(transition, [0.5, 0.5], means)
    slow = two_gaussians(transition, [0.5, 0.5], means, implementation="log")
    X = np.array(X)
    # The log of the sum over the two paths that matter, by hand: a forward pass in log space with scipy.
    log_density = -0.5 * (X - fast.means_[:, 0]) ** 2 - 0.5 * np.log(2 * np.pi)
    with np.errstate(divide="ignore"):
        log_alpha, log_transition = np.log(fast.startprob_) + log_density[0], np.log(fast.transmat_)
    for row in log_density[1:]:
        log_alpha = logsumexp(log_alpha[:, None] + log_transition, axis=0) + row
    np.testing.assert_allclose(slow.score(X), logsumexp(log_alpha), rtol=1e-10)
    np.testing.assert_allclose(fast.score(X), logsumexp(log_alpha), rtol=1e-10)
    score, posterior = fast.score_samples(X)
    np.testing.assert_allclose(score, logsumexp(log_alpha), rtol=1e-10)
    np.testing.assert_allclose(posterior, slow.predict_proba(X), rtol=1e-8, atol=1e-8)
    quick, careful = e_step(fast, X), e_step(slow, X, in_log_space=True)
    np.testing.assert_allclose(quick.transition, careful.transition, rtol=1e-8, atol=1e-8)
    online = fast.filter()
    for x in X:
        last = online.update(x)
    np.testing.assert_allclose(online.log_likelihood, logsumexp(log_alpha), rtol=1e-10)
    np.testing.assert_allclose(last, np.exp(log_alpha - logsumexp(log_alpha)), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("name", UNDERFLOWS)
def test_sampled_paths_are_possible_after_an_underflow(name):
    transition, means, X = UNDERFLOWS[name]
    model = two_gaussians(transition, [0.5, 0.5], means)
    paths = model.sample_paths(np.array(X), n_paths=5, random_state=0)
    assert paths.min() >= 0
    assert (model.transmat_[paths[:, :-1], paths[:, 1:]] > 0).all()


def test_an_impossible_sequence_scores_minus_infinity_and_has_no_posterior():
    model = two_gaussians([[0.5, 0.5], [0.5, 0.5]], [0.5, 0.5], [0.0, 1.0])
    model.startprob_ = np.array([1.0, 0.0])
    emission, parameters = model._model()
    problem = HiddenMarkovProblem(2, emission, ChainPrior())
    # The start says state 0, the label says state 1.
    with pytest.raises(ValueError, match="probability zero"):
        problem.expect(parameters, Batch(np.zeros((2, 1)), np.array([2]), None, np.array([1, -1])))


def test_an_impossible_sequence_of_weight_zero_is_ignored():
    model = two_gaussians([[0.5, 0.5], [0.5, 0.5]], [1.0, 0.0], [0.0, 1.0])
    emission, parameters = model._model()
    problem = HiddenMarkovProblem(2, emission, ChainPrior())
    X, labels = np.zeros((4, 1)), np.array([1, -1, -1, -1])
    both = problem.expect(parameters, Batch(X, np.array([2, 2]), np.array([0.0, 1.0]), labels))
    alone = problem.expect(parameters, Batch(X[2:], np.array([2]), None, labels[2:]))
    np.testing.assert_array_equal(both.transition, alone.transition)
    assert both.log_likelihood == alone.log_likelihood


def test_symbols_that_no_state_emits_score_minus_infinity(enumeration):
    case = enumeration.make_case("categorical", seed=10)
    table = case.model.emissionprob_.copy()
    table[:, 0] = 0.0
    case.model.emissionprob_ = table / table.sum(axis=1, keepdims=True)
    X = np.array([[1], [0], [2]])
    assert case.model.score(X) == -np.inf
    for query in (
        case.model.decode,
        case.model.predict,
        case.model.predict_proba,
        case.model.filter_proba,
        case.model.sample_paths,
    ):
        with pytest.raises(ValueError, match="probability zero"):
            query(X)
    online = case.model.filter()
    online.update([1])
    before = online.probabilities.copy()
    with pytest.raises(ValueError, match="probability zero"):
        online.update([0])
    np.testing.assert_array_equal(online.probabilities, before)


def test_the_compiled_exponential_is_accurate_to_the_last_digits():
    from pluri.components.chain import _kernels

    rng = np.random.default_rng(0)
    rows = np.concatenate([np.zeros((20_000, 1)), -rng.uniform(0.0, 700.0, size=(20_000, 3))], axis=1)
    maxima = np.empty(len(rows))
    computed = rows.copy()
    _kernels.exponentiate(computed, maxima)
    # Two units in the last place: the sum of thousands of steps keeps ten digits or more.
    np.testing.assert_allclose(computed, np.exp(rows), rtol=4.5e-16)
    assert (maxima == 0).all()
