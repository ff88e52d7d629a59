"""Transitions that depend on inputs: all paths, finite differences, numerical optimisation, and the plain chain."""

from itertools import pairwise, product

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp
from scipy.stats import poisson
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pluri.components.chain.driven import DrivenChain, DrivenSums, smooth
from pluri.io import load, save
from pluri.sequences import (
    AutoregressiveHMM,
    CategoricalHMM,
    DrivenHMM,
    GaussianHMM,
    PoissonHMM,
    SequenceKFold,
    VariationalGaussianHMM,
    sequence_ids,
)
from pluri.sequences.driven.logistic_rows import RowPriors, improve_rows


def random_chain(rng, k, q, *, zeros=False):
    start, transition = rng.dirichlet(np.ones(k)), rng.dirichlet(np.ones(k), size=k)
    if zeros:
        transition = np.triu(transition)
        transition /= transition.sum(axis=1, keepdims=True)
    return DrivenChain.from_probabilities(start, transition, rng.normal(size=(k, k, q)))


def log_matrices(chain, inputs):
    return np.array([log_softmax(chain.log_transition + chain.coef @ u, axis=1) for u in inputs])


def enumerated(chain, log_density, inputs):
    """All paths of one sequence and their log joint probabilities, with one matrix for each step."""
    paths = np.array(list(product(range(chain.n_states), repeat=len(log_density))))
    matrices = log_matrices(chain, inputs)
    joint = chain.log_start[paths[:, 0]] + log_density[0, paths[:, 0]]
    for t in range(1, len(log_density)):
        joint = joint + matrices[t, paths[:, t - 1], paths[:, t]] + log_density[t, paths[:, t]]
    return paths, joint


@pytest.mark.parametrize("zeros", [False, True])
def test_forward_backward_is_the_sum_over_all_paths(zeros):
    rng = np.random.default_rng(0)
    chain, q, lengths, weight = random_chain(rng, 3, 2, zeros=zeros), 2, [5, 0, 1, 4], np.array([1.0, 1.0, 2.0, 0.5])
    log_density, inputs = rng.normal(size=(10, 3)) * 3.0, rng.normal(size=(10, 2))
    offsets = np.append(0, np.cumsum(lengths))
    result = smooth(chain, log_density.copy(), inputs, offsets, weight)
    expected, posterior = DrivenSums.zeros(3, q), np.zeros((10, 3))
    for n, (begin, end) in enumerate(pairwise(offsets)):
        if begin == end:
            assert result.scores[n] == 0.0
            continue
        paths, joint = enumerated(chain, log_density[begin:end], inputs[begin:end])
        assert result.scores[n] == pytest.approx(logsumexp(joint), rel=1e-12)
        matrices = np.exp(log_matrices(chain, inputs[begin:end]))
        for path, mass in zip(paths, weight[n] * np.exp(joint - logsumexp(joint)), strict=True):
            posterior[begin + np.arange(end - begin), path] += mass
            expected.starts[path[0]] += mass
            for t in range(1, end - begin):
                i, j, extended = path[t - 1], path[t], np.append(1.0, inputs[begin + t])
                expected.pairs[i, j] += mass
                expected.gradient[i] += mass * np.outer(np.eye(3)[j] - matrices[t, i], extended)
    np.testing.assert_allclose(result.posterior, posterior, atol=1e-12)
    np.testing.assert_allclose(result.sums.starts, expected.starts, atol=1e-12)
    np.testing.assert_allclose(result.sums.pairs, expected.pairs, atol=1e-12)
    np.testing.assert_allclose(result.sums.gradient, expected.gradient, atol=1e-11)


def test_the_gradient_is_that_of_the_log_likelihood():
    rng = np.random.default_rng(1)
    chain = random_chain(rng, 3, 2)
    log_density, inputs = rng.normal(size=(40, 3)), rng.normal(size=(40, 2))
    offsets, ones = np.array([0, 25, 40]), np.ones(2)

    def score(log_transition, coef):
        moved = DrivenChain(chain.log_start, log_transition, coef)
        return smooth(moved, log_density.copy(), inputs, offsets, ones).scores.sum()

    found = smooth(chain, log_density.copy(), inputs, offsets, ones).sums.gradient
    for i, j in np.ndindex(3, 3):
        for a in range(3):
            table = np.zeros((3, 3, 3))
            table[i, j, a] = 1e-5
            up = score(chain.log_transition + table[..., 0], chain.coef + table[..., 1:])
            down = score(chain.log_transition - table[..., 0], chain.coef - table[..., 1:])
            assert (up - down) / 2e-5 == pytest.approx(found[i, j, a], abs=1e-6)


def expected_log_likelihood(transition, coef, joint, inputs, priors):
    """Of the transitions, given pair probabilities (T, k, k), plus log prior; -inf times zero is zero."""
    with np.errstate(divide="ignore"):
        base = np.log(transition)
    matrices = log_softmax(base + np.einsum("ijd,td->tij", coef, inputs), axis=2)
    seen = (joint > 0) & np.isfinite(base)
    prior = (priors.pseudo_counts * np.where(transition > 0, base, 0.0)).sum()
    return float((joint[seen] * matrices[seen]).sum() + prior - 0.5 * priors.alpha * (coef**2).sum())


def sums_of(transition, coef, joint, inputs):
    """Gradient and packed curvature of complete data, computed step by step."""
    k, q = coef.shape[1:]
    sums = DrivenSums.zeros(k, q)
    rows, columns = np.tril_indices(q + 1)
    with np.errstate(divide="ignore"):
        matrices = np.exp(log_softmax(np.log(transition) + np.einsum("ijd,td->tij", coef, inputs), axis=2))
    for t, u in enumerate(inputs):
        extended = np.append(1.0, u)
        outer = np.outer(extended, extended)[rows, columns]
        for i in range(k):
            mass, p = joint[t, i].sum(), matrices[t, i]
            sums.gradient[i] += np.outer(joint[t, i] - mass * p, extended)
            sums.curvature[i] += (mass * (np.diag(p) - np.outer(p, p)))[:, :, None] * outer
    return joint.sum(axis=0), sums.gradient, sums.curvature


@pytest.mark.parametrize("seed", range(12))
def test_steps_of_the_rows_only_rise_and_end_where_numerical_optimisation_does(seed):
    rng = np.random.default_rng(seed)
    k, q, n = 3, 2, 60
    inputs = rng.standard_t(2.0, size=(n, q)) if seed % 2 else rng.normal(size=(n, q))  # heavy tails are the hard case
    joint = rng.dirichlet(np.full(k * k, 0.3), size=n).reshape(n, k, k)
    transition = rng.dirichlet(np.ones(k), size=k)
    if seed % 3 == 0:
        transition[2, 0] = joint[:, 2, 0] = 0.0
        transition /= transition.sum(axis=1, keepdims=True)
    coef = np.zeros((k, k, q))
    priors = RowPriors(np.full((k, k), 0.5 * (seed % 4 == 1)), 0.3, np.abs(inputs).max(axis=0))
    value = expected_log_likelihood(transition, coef, joint, inputs, priors)
    for _ in range(300):
        statistics = sums_of(transition, coef, joint, inputs)
        transition, coef = improve_rows(*statistics, transition, coef, priors)
        better = expected_log_likelihood(transition, coef, joint, inputs, priors)
        assert better >= value - 1e-10 * abs(value)
        if better - value < 1e-12:
            break
        value = better
    np.testing.assert_array_equal(coef[np.arange(k), np.arange(k)], 0.0)
    allowed = transition > 0
    free = allowed & ~np.eye(k, dtype=bool)

    def negative(vector):
        table = np.zeros((k, k, q + 1))
        table[free] = vector.reshape(-1, q + 1)
        with np.errstate(divide="ignore"):
            base = np.where(allowed, table[..., 0], -np.inf)
        rows = np.exp(log_softmax(base, axis=1))
        return -expected_log_likelihood(rows, table[..., 1:], joint, inputs, priors)

    best = minimize(negative, np.zeros(int(free.sum()) * (q + 1)), method="BFGS", options={"gtol": 1e-7})
    assert value >= -best.fun - 1e-6
    table = best.x.reshape(-1, q + 1)
    np.testing.assert_allclose(coef[free], table[:, 1:], atol=1e-3)


def by_hand(hmm, rng, q, columns):
    """A driven model with parameters set by hand over an `hmm` that has them."""
    model = DrivenHMM(hmm, columns)
    model.hmm_ = hmm
    k = hmm.n_components
    model.transition_coef_ = rng.normal(size=(k, k, q))
    model.input_mean_ = rng.normal(size=q)
    return model


def test_queries_are_those_of_all_paths():
    rng = np.random.default_rng(3)
    hmm = PoissonHMM(3)
    hmm.startprob_, hmm.transmat_ = rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(3), size=3)
    hmm.lambdas_ = np.array([[1.0], [3.0], [6.0]])
    model = by_hand(hmm, rng, 2, [0, 2])
    X = np.column_stack([rng.normal(size=6), rng.poisson(3.0, size=6), rng.normal(size=6)])
    X[3, 1] = np.nan
    centered = X[:, [0, 2]] - model.input_mean_
    chain = DrivenChain.from_probabilities(hmm.startprob_, hmm.transmat_, model.transition_coef_)
    x = X[:, 1]
    density = np.where(np.isnan(x)[:, None], 0.0, poisson.logpmf(np.nan_to_num(x)[:, None], hmm.lambdas_[:, 0]))
    paths, joint = enumerated(chain, density, centered)
    order = np.argsort(-joint, kind="stable")
    mass = np.exp(joint - logsumexp(joint))
    posterior = np.array([[mass[paths[:, t] == i].sum() for i in range(3)] for t in range(6)])
    assert model.score(X) == pytest.approx(logsumexp(joint))
    np.testing.assert_allclose(model.predict_proba(X), posterior, atol=1e-12)
    log_prob, path = model.decode(X)
    assert log_prob == pytest.approx(joint.max())
    np.testing.assert_array_equal(path, paths[order[0]])
    best, found = model.best_paths(X, 4)
    np.testing.assert_allclose(best, joint[order[:4]])
    np.testing.assert_array_equal(found, paths[order[:4]])
    filtered = []
    for t in range(6):
        ends, partial = enumerated(chain, density[: t + 1], centered[: t + 1])
        weights = np.exp(partial - logsumexp(partial))
        filtered.append([weights[ends[:, t] == i].sum() for i in range(3)])
    np.testing.assert_allclose(model.filter_proba(X), filtered, atol=1e-12)
    online = model.filter()
    np.testing.assert_allclose([online.update(row) for row in X], filtered, atol=1e-12)
    assert online.log_likelihood == pytest.approx(model.score(X))
    np.testing.assert_allclose(
        model.transition_matrices(X[:, [0, 2]]), np.exp(log_matrices(chain, centered)), atol=1e-14
    )
    np.testing.assert_allclose(
        online.predict(X[5, [0, 2]]), online.probabilities @ np.exp(log_matrices(chain, centered)[5])
    )
    # 4000 paths: each posterior probability within 5 standard errors; 18 comparisons, false alarm below 2e-5.
    drawn = model.sample_paths(X, n_paths=4000, random_state=0)
    shares = np.array([[(drawn[:, t] == i).mean() for i in range(3)] for t in range(6)])
    assert (np.abs(shares - posterior) < 5.0 * np.sqrt(posterior * (1 - posterior) / 4000) + 1e-12).all()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("inputs", ["none", "zero", "constant"])
def test_without_effects_it_is_the_plain_chain(inputs):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2)) + 2.0 * (np.arange(120) // 10 % 3)[:, None]
    column = {"none": np.zeros((120, 0)), "zero": np.zeros((120, 1)), "constant": np.full((120, 1), 7.0)}[inputs]
    hmm = GaussianHMM(3, random_state=0, n_iter=12, tol=0.0, transmat_prior=1.5)
    plain = clone(hmm).fit(X, lengths=[50, 70])
    driven = DrivenHMM(hmm, [2] if column.shape[1] else None)
    wide = np.hstack([X, column])
    driven.fit(wide, lengths=[50, 70])
    for name in ("objective", "log_likelihood"):
        np.testing.assert_allclose(driven.history_.to_dict()[name], plain.history_.to_dict()[name], rtol=1e-10)
    np.testing.assert_allclose(driven.transmat_, plain.transmat_, atol=1e-10)
    assert driven.score(wide, lengths=[50, 70]) == pytest.approx(plain.score(X, lengths=[50, 70]), rel=1e-10)
    np.testing.assert_allclose(
        driven.predict_proba(wide, lengths=[50, 70]), plain.predict_proba(X, lengths=[50, 70]), atol=1e-10
    )
    np.testing.assert_array_equal(driven.predict(wide), plain.predict(X))
    np.testing.assert_array_equal(driven.transition_coef_, 0.0)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::pluri.sequences.DeadStateWarning")
@pytest.mark.filterwarnings("ignore:.*free parameters were learned")
@pytest.mark.parametrize("seed", range(8))
def test_the_objective_never_falls(seed):
    rng = np.random.default_rng(seed)
    u = rng.standard_t(1.5, size=(150, 2)) * [1.0, 1e3] + [0.0, 1e5]
    X = np.column_stack([rng.normal(size=150) + 3.0 * (np.arange(150) % 7 < 3), u])
    settings = {
        "topology": ["ergodic", "left-right", "cyclic"][seed % 3],
        "random_state": seed,
        "n_iter": 40,
        "tol": 0.0,
    }
    hmm = GaussianHMM(3, **settings, acceleration=[None, "squarem"][seed % 2])
    model = DrivenHMM(hmm, [1, 2], alpha=[0.0, 0.1][seed % 2]).fit(X, lengths=[60, 1, 89])
    climb = model.history_.to_dict()["objective"]
    assert (np.diff(climb) > -1e-9 * np.abs(climb[1:])).all()
    assert np.isfinite(model.transition_coef_).all()
    if settings["topology"] == "left-right":
        assert (np.tril(model.transmat_, -1) == 0).all()
        assert (model.transition_matrices(u[:5])[:, 1, 0] == 0).all()


def test_weights_are_repetitions_and_lists_are_lengths(two_states):
    rng = np.random.default_rng(0)
    u, states = two_states(rng, 300)
    X = np.column_stack([rng.normal(size=300) + 3.0 * states, u])
    parts = [X[:100], X[100:180], X[180:]]
    hmm = GaussianHMM(2, random_state=0, n_iter=10, tol=0.0, means_init=[[0.0], [3.0]], covars_init=[[1.0], [1.0]])
    hmm.set_params(startprob_init=[0.5, 0.5], transmat_init=[[0.8, 0.2], [0.2, 0.8]], covars_prior=0.01)
    weighted = DrivenHMM(hmm, [1, 2]).fit(parts, sequence_weight=[1.0, 2.0, 0.0])
    repeated = DrivenHMM(hmm, [1, 2]).fit(np.concatenate([parts[0], parts[1], parts[1]]), lengths=[100, 80, 80])
    np.testing.assert_allclose(weighted.transition_coef_, repeated.transition_coef_, rtol=1e-8)
    np.testing.assert_allclose(weighted.transmat_, repeated.transmat_, rtol=1e-8)


def test_missing_observations_are_integrated_out_and_missing_inputs_refused(two_states):
    rng = np.random.default_rng(0)
    u, states = two_states(rng, 200)
    X = np.column_stack([rng.normal(size=200) + 3.0 * states, u])
    X[50:60, 0] = np.nan
    X[0, 1] = X[120, 2] = np.nan  # first in their sequences: they drive nothing
    model = DrivenHMM(GaussianHMM(2, random_state=0), [1, 2]).fit(X, lengths=[120, 80])
    assert np.isfinite(model.score(X, lengths=[120, 80]))
    X[7, 1] = np.nan
    with pytest.raises(
        ValueError, match="known at every step but the first of a sequence, got a missing value in row 7"
    ):
        model.fit(X, lengths=[120, 80])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_warm_start_goes_on_in_the_units_of_new_data(two_states):
    rng = np.random.default_rng(0)
    u, states = two_states(rng, 400)
    X = np.column_stack([rng.normal(size=400) + 3.0 * states, u])
    model = DrivenHMM(GaussianHMM(2, random_state=0, warm_start=True, n_iter=6, tol=0.0), [1, 2]).fit(X)
    score, before = model.score(X[:250]), model.objective_
    model.fit(X)
    assert model.objective_ > before
    model = DrivenHMM(GaussianHMM(2, random_state=0, warm_start=True, n_iter=30, tol=0.0), [1, 2]).fit(X)
    score = model.score(X[:250])
    model.hmm.n_iter = 1
    model.fit(X[:250])
    assert model.history_.to_dict()["log_likelihood"][0] == pytest.approx(score, rel=1e-10)


def test_any_family_can_be_driven(two_states):
    rng = np.random.default_rng(0)
    u, states = two_states(rng, 600)
    words = np.array(["a", "b", "c"], dtype=object)[np.minimum(states + (rng.random(600) < 0.1), 2)]
    X = np.empty((600, 3), dtype=object)
    X[:, 0], X[:, 1:] = words, u
    spoken = DrivenHMM(CategoricalHMM(2, random_state=0, n_init=3), [1, 2]).fit(X)
    assert (spoken.predict(X) == states).mean() > 0.7 or (spoken.predict(X) == 1 - states).mean() > 0.7
    x = np.zeros(600)
    for t in range(1, 600):
        x[t] = [0.9, -0.6][states[t]] * x[t - 1] + rng.normal()
    X = np.column_stack([x, u])
    series = DrivenHMM(AutoregressiveHMM(2, random_state=0, n_init=3), [1, 2]).fit(X)
    np.testing.assert_allclose(np.sort(series.hmm_.coef_.ravel()), [-0.6, 0.9], atol=0.2)
    predicted = np.zeros((600, 2))
    predicted[0] = series.startprob_
    matrices = series.transition_matrices(u)
    filtered = series.filter_proba(X)
    for t in range(1, 600):
        predicted[t] = filtered[t - 1] @ matrices[t]
    means = series.hmm_.intercept_[:, 0] + x[:-1, None] * series.hmm_.coef_[:, 0, 0]
    np.testing.assert_allclose(series.one_step_means(X)[1:, 0], (predicted[1:] * means).sum(axis=1))
    drawn, path = series.sample(5, random_state=0, transition_inputs=u[:5], history=[[1.0]])
    np.testing.assert_array_equal(drawn[:, 1:], u[:5])
    assert path.shape == (5,)


def test_samples_follow_the_matrix_of_each_step():
    # Leaving state 0 has probability 0.5 at input 0 and about 1 at input 9: 400 steps, within 5 standard errors.
    hmm = GaussianHMM(2)
    hmm.startprob_, hmm.transmat_ = np.array([1.0, 0.0]), np.full((2, 2), 0.5)
    hmm.means_, hmm.covars_ = np.array([[0.0], [9.0]]), np.ones((2, 1))
    model = DrivenHMM(hmm, [1])
    model.hmm_, model.transition_coef_ = hmm, np.array([[[0.0], [1.0]], [[0.0], [0.0]]])
    inputs = np.where(np.arange(2000) % 2, 9.0, 0.0)[:, None]
    _, states = model.sample(2000, random_state=0, transition_inputs=inputs)
    before, after, u = states[:-1], states[1:], inputs[1:, 0]
    for value, share in ((0.0, 0.5), (9.0, 1.0 / (1.0 + np.exp(-9.0)))):
        here = (before == 0) & (u == value)
        assert abs((after[here] == 1).mean() - share) < 5.0 * np.sqrt(share * (1 - share) / here.sum()) + 1e-3


def test_inputs_pass_through_pipelines_searches_and_files(two_states, tmp_path):
    rng = np.random.default_rng(0)
    u, states = two_states(rng, 360)
    X = np.column_stack([rng.normal(size=360) + 4.0 * states, u])
    with config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(StandardScaler(), DrivenHMM(GaussianHMM(2, random_state=0), [1, 2]))
        grid = {"drivenhmm__transition_inputs": [[1, 2]], "drivenhmm__hmm__n_components": [1, 2]}
        search = GridSearchCV(pipeline, grid, cv=SequenceKFold(3)).fit(X, groups=sequence_ids([60] * 6))
    assert search.best_params_["drivenhmm__hmm__n_components"] == 2
    best, scaled = search.best_estimator_[-1], search.best_estimator_[0].transform(X)
    save(best, tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(scaled), best.predict_proba(scaled))


@pytest.mark.parametrize(
    ("model", "error", "words"),
    [
        (DrivenHMM(GaussianHMM(2), [3]), ValueError, "transition_inputs must list columns of X, which has 2, got 3"),
        (DrivenHMM(GaussianHMM(2), [0, 1]), ValueError, "transition_inputs must leave at least one column"),
        (DrivenHMM(GaussianHMM(2), [1], alpha=-1.0), ValueError, "alpha must be a number of at least 0"),
        (DrivenHMM(GaussianHMM(2, diversity=1.0), [1]), ValueError, "diversity of hmm must be None"),
        (DrivenHMM(GaussianHMM(2, transmat_prior=0.5), [1]), ValueError, "transmat_prior of hmm must be a Dirichlet"),
        (DrivenHMM(VariationalGaussianHMM(2), [1]), TypeError, "hmm must be a hidden Markov model of pluri.sequences"),
        (DrivenHMM("gaussian", [1]), TypeError, "hmm must be a hidden Markov model of pluri.sequences"),
    ],
)
def test_what_does_not_fit_is_refused(model, error, words):
    with pytest.raises(error, match=words):
        model.fit(np.random.default_rng(0).normal(size=(20, 2)))
