"""The two estimators: what they find, what they say of sequences, and the contract of models of sequences."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.special import gammaln
from sklearn.model_selection import GridSearchCV
from small_count_systems import count_system, draw, poisson_system

import pluri
from pluri.dynamics import CountDynamicalSystem, PoissonDynamicalSystem
from pluri.dynamics.counts.regression import ImpossibleCountWarning
from pluri.dynamics.counts.system import SilentNeuronWarning
from pluri.engine import IterableSource

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
LENGTHS = [12, 9, 15, 10, 12, 8]


@pytest.fixture(scope="module")
def poisson_data():
    return draw(poisson_system(n_neurons=6)[0], LENGTHS)[0]


@pytest.fixture(scope="module")
def count_data():
    return draw(count_system(n_neurons=6)[0], LENGTHS, missing=0.1)[0]


@pytest.fixture(scope="module")
def poisson_model(poisson_data):
    return PoissonDynamicalSystem(2, random_state=0, max_iter=15).fit(poisson_data, lengths=LENGTHS)


@pytest.fixture(scope="module")
def count_model(count_data):
    return CountDynamicalSystem(2, random_state=0, max_iter=6).fit(count_data, lengths=LENGTHS)


@pytest.fixture(params=["poisson", "counts"])
def fitted(request, poisson_model, count_model, poisson_data, count_data):
    return (poisson_model, poisson_data) if request.param == "poisson" else (count_model, count_data)


# What it finds -------------------------------------------------------------------------------------------------


def test_loadings_are_recovered_up_to_rotation():
    """Largest angle between the planes of true and fitted loadings, 100 sequences of 40 steps, 12 neurons.

    Over 20 draws of the counts the angle had mean 0.104 and standard deviation 0.026, so that 0.3 is more than seven
    standard deviations away; the absolute eigenvalues were off by at most 0.08.
    """
    params, _ = poisson_system(n_neurons=12, seed=7)
    counts, _ = draw(params, [40] * 100, seed=7)
    model = PoissonDynamicalSystem(2, random_state=0).fit(counts, lengths=[40] * 100)
    one, other = (np.linalg.qr(C)[0] for C in (params.observation.loadings, model.observation_matrix_))
    assert np.arccos(np.clip(np.linalg.svd(one.T @ other)[1].min(), -1, 1)) < 0.3
    true, found = (np.sort(np.abs(np.linalg.eigvals(A))) for A in (params.states.transition, model.transition_matrix_))
    assert_allclose(found, true, atol=0.25)


def test_the_penalty_makes_shapes_straight():
    params, _ = count_system(n_neurons=8, bend=-0.4, K=8, seed=1)
    counts, _ = draw(params, [20] * 30, seed=1)
    lengths = [20] * 30
    free = CountDynamicalSystem(2, observation="simple", random_state=0).fit(counts, lengths=lengths)
    stiff = CountDynamicalSystem(2, observation="simple", smoothness=1e6, random_state=0).fit(counts, lengths=lengths)
    assert_allclose(np.diff(stiff.g_[0], 2), 0.0, atol=1e-3)
    # 0.065 is the standard deviation over 24 draws of the counts, around -0.3: false alarms are below 1e-5.
    assert np.diff(free.g_[0], 2)[0] < -0.02
    assert free.score(counts, lengths=lengths) > stiff.score(counts, lengths=lengths)


def test_zeros_and_ones_are_a_logistic_system():
    params, _ = count_system(n_neurons=5, K=1, bend=0.0)
    counts, _ = draw(params, [12] * 8)
    model = CountDynamicalSystem(2, max_iter=8, random_state=0).fit(counts, lengths=[12] * 8)
    assert model.g_.shape == (5, 2)
    found = model.posterior(counts, lengths=[12] * 8)
    # The bound by formulas of logistic regression, with the prior by its dense covariance.
    x = np.linspace(-8, 8, 4001)
    density = stats.norm.pdf(x)
    theta = found.mean @ model.observation_matrix_.T + model.g_[:, 1]
    spread = np.sqrt(np.einsum("ia,tab,ib->ti", model.observation_matrix_, found.covariance, model.observation_matrix_))
    log_normalizer = np.trapezoid(density * np.logaddexp(0.0, theta[..., None] + spread[..., None] * x), x, axis=-1)
    likelihood = (counts * theta - log_normalizer).sum(axis=1).reshape(8, 12).sum(axis=1)
    direct = CountDynamicalSystem(2, max_iter=8, random_state=0).fit(counts, lengths=[12] * 8)
    direct.g_ = np.column_stack([np.zeros(5), np.zeros(5)])
    direct.observation_matrix_ = 0.0 * direct.observation_matrix_
    nothing = direct.posterior(np.full((96, 5), np.nan), lengths=[12] * 8)
    assert_allclose(nothing.bound, 0.0, atol=1e-10)
    kl = likelihood - found.bound
    assert (kl > 0).all()
    for r in range(8):
        rows = slice(12 * r, 12 * r + 12)
        assert_allclose(kl[r], dense_divergence(model, found, rows), atol=1e-6)


def dense_divergence(model, found, rows):
    """KL(q || prior) of a sequence from marginal and lagged covariances alone: both are Markov chains."""
    mean, V, lagged = found.mean[rows], found.covariance[rows], found.lagged[rows]
    A, Q = model.transition_matrix_, model.transition_covariance_
    prior_mean, prior_cov = model.initial_mean_, model.initial_covariance_

    def gaussian(m, S, mu, C):
        away = np.linalg.solve(C, m - mu) @ (m - mu)
        return 0.5 * (np.trace(np.linalg.solve(C, S)) + away - len(m) + np.log(np.linalg.det(C) / np.linalg.det(S)))

    total = gaussian(mean[0], V[0], prior_mean, prior_cov)
    for t in range(len(mean) - 1):
        gain = lagged[t] @ np.linalg.inv(V[t])
        rest = V[t + 1] - gain @ lagged[t].T
        drift = gain - A  # the conditional means differ by drift x + ..., averaged over x_t
        offset = mean[t + 1] - A @ mean[t]
        spread = drift @ V[t] @ drift.T + np.outer(offset, offset)
        total += 0.5 * (
            np.trace(np.linalg.solve(Q, rest + spread)) - len(A) + np.log(np.linalg.det(Q) / np.linalg.det(rest))
        )
    return total


@pytest.mark.parametrize("kind", [PoissonDynamicalSystem, CountDynamicalSystem])
def test_laplace_and_variational_fits_are_near_each_other(kind, poisson_data):
    one, other = (
        kind(2, inference=how, random_state=0, max_iter=15).fit(poisson_data, lengths=LENGTHS)
        for how in ("vb", "laplace")
    )
    rates = [model.predict(poisson_data, lengths=LENGTHS) for model in (one, other)]
    assert np.corrcoef(rates[0].ravel(), rates[1].ravel())[0, 1] > 0.98


def test_a_mean_that_varies_in_time_is_found():
    """Rates with a course in time that all sequences share; the correlation of true and fitted courses is above 0.9."""
    rng = np.random.default_rng(0)
    course = np.sin(np.linspace(0, 6, 25))[:, None] * rng.normal(size=8)
    counts = rng.poisson(np.exp(course + 0.2), size=(40, 25, 8)).astype(float)
    model = PoissonDynamicalSystem(2, time_varying_mean=True, random_state=0).fit(list(counts))
    assert model.transition_offset_.shape == (24, 2)
    found = model.moments().mean
    assert np.corrcoef(np.log(found).ravel(), course.ravel())[0, 1] > 0.9
    with pytest.raises(ValueError, match="at most 25 steps"):
        model.transform(np.ones((26, 8)))
    with pytest.raises(ValueError, match="one length"):
        PoissonDynamicalSystem(2, time_varying_mean=True).fit([counts[0], counts[1, :9]])


def test_the_objective_never_falls_and_counts_have_a_history(fitted):
    model, _ = fitted
    objective = model.history_.objective
    assert (np.diff(objective) > -1e-8 * np.abs(objective[0])).all()
    assert model.n_iter_ == len(objective)


# What it says of sequences -------------------------------------------------------------------------------------


def test_leaving_a_neuron_out_is_to_miss_its_counts(fitted):
    model, counts = fitted
    found = model.leave_one_neuron_out(counts, lengths=LENGTHS)
    others = counts.copy()
    others[:, 2] = np.nan
    assert_allclose(found.mean[:, 2], model.predict(others, lengths=LENGTHS)[:, 2], atol=1e-5)
    posterior = model.posterior(others, lengths=LENGTHS)
    c = model.observation_matrix_[2]
    x = np.linspace(-8, 8, 4001)
    t = int(np.flatnonzero(~np.isnan(counts[:, 2]))[3])
    theta = posterior.mean[t] @ c + np.sqrt(c @ posterior.covariance[t] @ c) * x
    y = int(counts[t, 2])
    if isinstance(model, PoissonDynamicalSystem):
        p = stats.poisson.pmf(y, np.exp(theta + model.observation_offset_[2]))
    else:
        k = np.arange(model.g_.shape[1])
        weights = np.exp(theta[:, None] * k + model.g_[2] - gammaln(k + 1))
        p = weights[:, y] / weights.sum(axis=1)
    expected = np.log(np.trapezoid(p * stats.norm.pdf(x), x))
    assert_allclose(found.log_probability[t, 2], expected, atol=1e-5)
    seen = ~np.isnan(counts)
    rate = np.nanmean(counts, axis=0)
    base = stats.poisson.logpmf(np.where(seen, counts, 0), rate)[seen]
    assert_allclose(found.nll_reduction, 100 * (1 - found.log_probability[seen].mean() / base.mean()))
    errors = (counts - found.mean)[seen] ** 2
    assert_allclose(found.mse_reduction, 100 * (1 - errors.mean() / ((counts - rate)[seen] ** 2).mean()))


def test_counts_that_are_all_missing_leave_the_prior(fitted):
    model, _ = fitted
    found = model.posterior(np.full((5, 6), np.nan))
    assert_allclose(found.bound, 0.0, atol=1e-10)
    assert_allclose(found.mean[0], model.initial_mean_)
    assert_allclose(found.covariance[0], model.initial_covariance_)
    prior, posterior = model.moments(n_steps=5), model.moments("posterior", np.full((5, 6), np.nan))
    assert_allclose(posterior.mean, prior.mean)
    assert_allclose(posterior.variance, prior.variance)
    assert_allclose(
        model.cross_covariance(3, "posterior", np.full((5, 6), np.nan)), model.cross_covariance(3, n_steps=5), atol=1e-8
    )


def test_poisson_moments_have_their_closed_forms(poisson_model):
    model, T = poisson_model, 8
    C, d = model.observation_matrix_, model.observation_offset_
    found = model.moments(n_steps=T)
    mu, S = model.initial_mean_, model.initial_covariance_
    for t in range(T):
        rate = np.exp(C @ mu + d + 0.5 * np.einsum("ia,ab,ib->i", C, S, C))
        assert_allclose(found.mean[t], rate)
        assert_allclose(found.variance[t], rate + rate**2 * np.expm1(np.einsum("ia,ab,ib->i", C, S, C)), rtol=1e-6)
        if t == 0:
            first, first_cov = rate, S
        mu, S = (
            model.transition_matrix_ @ mu,
            model.transition_matrix_ @ S @ model.transition_matrix_.T + model.transition_covariance_,
        )
    lag1 = model.cross_covariance(1, n_steps=2)[1]
    shared = C @ first_cov @ model.transition_matrix_.T @ C.T
    assert_allclose(lag1, np.outer(first, found.mean[1]) * np.expm1(shared), rtol=1e-5, atol=1e-8)


def test_draws_have_the_moments_of_the_prior(fitted):
    """Means of 3000 sequences within 5.5 standard errors: false-alarm rate below 1e-5 for all 24 together."""
    model, _ = fitted
    X, states = model.sample(random_state=1, lengths=[4] * 3000)
    assert states.shape == (12000, 2)
    X = X.reshape(3000, 4, 6)
    found = model.moments(n_steps=4)
    assert (np.abs(X.mean(axis=0) - found.mean) < 5.5 * np.sqrt(found.variance / 3000)).all()
    # Of products, whose standard errors are estimated from the draws.
    away = X - found.mean
    products = away[:, :-1, :, None] * away[:, 1:, None, :]
    expected = model.cross_covariance(1, n_steps=4)[1]
    averaged = products.mean(axis=1)
    error = averaged.std(axis=0) / np.sqrt(3000)
    assert (np.abs(averaged.mean(axis=0) - expected) < 6 * error).all()


def test_posterior_moments_are_those_of_simulated_posteriors(count_model, count_data):
    found = count_model.moments("posterior", count_data, LENGTHS)
    rates = count_model.predict(count_data, lengths=LENGTHS)
    firsts = np.concatenate([[0], np.cumsum(LENGTHS)[:-1]])
    assert_allclose(found.mean[0], rates[firsts].mean(axis=0), atol=1e-6)
    assert found.mean.shape == (15, 6)
    assert_allclose(found.neuron_mean, rates.mean(axis=0), atol=1e-6)
    lags = count_model.cross_covariance(2, "posterior", count_data, LENGTHS)
    assert_allclose(lags[0], lags[0].T, atol=1e-10)


# The contract of models of sequences ---------------------------------------------------------------------------


def test_lists_lengths_and_groups_say_the_same(fitted):
    model, counts = fitted
    parts = np.split(counts, np.cumsum(LENGTHS)[:-1])
    groups = np.repeat(np.arange(len(LENGTHS)), LENGTHS)
    expected = model.transform(counts, LENGTHS)
    assert_allclose(model.transform(parts), expected)
    assert_allclose(model.transform(counts, groups=groups), expected)
    assert_allclose(model.score(parts), model.score_sequences(counts, LENGTHS).sum())
    assert_allclose(model.score(counts, groups=groups), model.score(counts, LENGTHS))
    assert_allclose(model.transform(parts[2]), expected[21:36])  # a sequence does not know of the others
    again = model.__class__(**model.get_params()).fit(parts)
    assert_allclose(again.observation_matrix_, model.observation_matrix_, atol=1e-6)


def test_a_list_of_trials_is_taken_by_searches_and_an_array_is_told_how_to_become_one(poisson_data):
    stacked = poisson_data[:60].reshape(6, 10, -1)
    trials, model = list(stacked), PoissonDynamicalSystem(2, random_state=0, max_iter=2)
    model.fit(trials)
    assert_allclose(model.score_sequences(trials, groups=np.arange(6)), model.score_sequences(trials), atol=0)
    search = GridSearchCV(model, {"n_components": [1]}, cv=2).fit(trials)
    assert search.best_estimator_.posterior(trials).lengths.tolist() == [10] * 6
    for ask in (model.fit, model.fit_transform, model.score_sequences, model.posterior, model.leave_one_neuron_out):
        with pytest.raises(ValueError, match=r"got shape \(6, 10, 6\): pass list\(X\) for 6 sequences"):
            ask(stacked)


@pytest.mark.parametrize("kind", [PoissonDynamicalSystem, CountDynamicalSystem])
def test_a_weight_is_a_sequence_written_out(kind, poisson_data):
    parts = np.split(poisson_data, np.cumsum(LENGTHS)[:-1])
    weight = np.array([2, 1, 0, 1, 1, 1])
    many = [part for part, n in zip(parts, weight) for _ in range(n)]
    settings = {"random_state": 0, "max_iter": 4, "tol": 0.0, "init": "pca"}
    weighted, written = kind(2, **settings), kind(2, **settings)
    weighted.fit(parts, sequence_weight=weight)
    written.fit(many)
    assert_allclose(weighted.mean_counts_, written.mean_counts_)
    start = dict(vars(written))
    # Both starts look at rows without weights; from one and the same start they go the same way.
    weighted.set_params(warm_start=True), written.set_params(warm_start=True)
    vars(weighted).update({name: value for name, value in start.items() if name.endswith("_")})
    weighted.fit(parts, sequence_weight=weight)
    written.fit(many)
    assert_allclose(weighted.objective_, written.objective_, rtol=1e-6)
    assert_allclose(weighted.transition_matrix_, written.transition_matrix_, atol=1e-4)
    assert_allclose(weighted.score(parts, sample_weight=weight), weighted.score(many), rtol=1e-9)


def test_batches_and_threads_find_what_one_array_does(poisson_data):
    parts = np.split(poisson_data, np.cumsum(LENGTHS)[:-1])
    settings = {"random_state": 0, "max_iter": 5, "tol": 0.0}
    expected = PoissonDynamicalSystem(2, **settings).fit(parts)

    def batches():
        for first in (0, 2, 4):
            yield np.concatenate(parts[first : first + 2]), LENGTHS[first : first + 2]

    for model in (
        PoissonDynamicalSystem(2, **settings).fit(IterableSource(batches)),
        PoissonDynamicalSystem(2, **settings, n_jobs=2).fit(parts),
    ):
        assert_allclose(model.observation_matrix_, expected.observation_matrix_, atol=1e-6)
        assert_allclose(model.objective_, expected.objective_, rtol=1e-8)


def test_a_warm_start_goes_on(count_data):
    settings = {"random_state": 0, "tol": 0.0}
    whole = CountDynamicalSystem(2, max_iter=6, **settings).fit(count_data, lengths=LENGTHS)
    model = CountDynamicalSystem(2, max_iter=3, warm_start=True, **settings).fit(count_data, lengths=LENGTHS)
    model.fit(count_data, lengths=LENGTHS)
    assert_allclose(model.objective_, whole.objective_, rtol=1e-6)


def test_a_checkpoint_is_gone_on_from(tmp_path, poisson_data):
    settings = {"random_state": 0, "tol": 0.0, "checkpoint": tmp_path / "fit.npz"}
    PoissonDynamicalSystem(2, max_iter=4, **settings).fit(poisson_data, lengths=LENGTHS)
    resumed = PoissonDynamicalSystem(2, max_iter=8, **settings).fit(poisson_data, lengths=LENGTHS)
    plain = PoissonDynamicalSystem(2, max_iter=8, random_state=0, tol=0.0).fit(poisson_data, lengths=LENGTHS)
    assert_allclose(resumed.observation_matrix_, plain.observation_matrix_, rtol=1e-10)


def test_several_starts_keep_the_best(poisson_data):
    model = PoissonDynamicalSystem(2, n_init=3, max_iter=5, random_state=0).fit(poisson_data, lengths=LENGTHS)
    best = [model.history_.run(restart).objective[-1] for restart in range(3)]
    assert len(set(best)) == 3
    assert_allclose(model.objective_, max(best))


def test_systems_come_back_from_their_files(fitted, tmp_path):
    model, counts = fitted
    pluri.save(model, tmp_path / "model.skops")
    loaded = pluri.load(tmp_path / "model.skops")
    assert_allclose(loaded.predict(counts, LENGTHS), model.predict(counts, LENGTHS))
    assert "hidden dimensions" in loaded.summary()


# Bad input -----------------------------------------------------------------------------------------------------


def test_a_silent_neuron_is_left_out_with_a_warning(poisson_data):
    quiet = poisson_data.copy()
    quiet[:, 3] = 0.0
    for kind in (PoissonDynamicalSystem, CountDynamicalSystem):
        with pytest.warns(SilentNeuronWarning, match=r"\[3\]"):
            model = kind(2, random_state=0, max_iter=5).fit(quiet, lengths=LENGTHS)
        assert_allclose(model.observation_matrix_[3], 0.0)
        assert_allclose(model.predict(quiet, LENGTHS)[:, 3], 0.0)
        loud = quiet.copy()
        loud[:, 3] = 2.0
        assert_allclose(model.score(loud, LENGTHS), model.score(quiet, LENGTHS))
        assert np.isfinite(model.leave_one_neuron_out(quiet, LENGTHS).nll)
        assert (model.sample(50, random_state=0)[0][:, 3] == 0).all()


def test_a_count_above_max_count_has_no_score_but_a_path(count_data):
    largest = int(np.nanmax(count_data))
    model = CountDynamicalSystem(2, max_count=largest, max_iter=3, random_state=0).fit(count_data, lengths=LENGTHS)
    strange = count_data.copy()
    strange[3, 1] = 40.0
    with pytest.warns(ImpossibleCountWarning, match="40 in column 1"):
        scores = model.score_sequences(strange, LENGTHS)
    assert np.isneginf(scores[0])
    assert np.isfinite(scores[1:]).all()
    assert np.isfinite(model.transform(strange, LENGTHS)).all()
    with pytest.warns(ImpossibleCountWarning, match="40 in column 1"):
        assert model.leave_one_neuron_out(strange, LENGTHS).nll == np.inf


@pytest.mark.parametrize("kind", [PoissonDynamicalSystem, CountDynamicalSystem])
@pytest.mark.parametrize(
    ("X", "settings", "message"),
    [
        ([[0.5, 1.0], [1.0, 2.0]], {}, "counts 0, 1, 2"),
        ([[-1.0, 1.0], [1.0, 2.0]], {}, "Negative values"),
        ([[np.inf, 1.0], [1.0, 2.0]], {}, "infinity|counts"),
        ([[0.0, 0.0], [0.0, 0.0]], {}, "above 0"),
        ([[np.nan, np.nan], [np.nan, np.nan]], {}, "not missing"),
        ([[1.0, 2.0], [2.0, 1.0]], {"n_components": 3}, "columns of X"),
        ([[1.0, 2.0]], {}, "rows of X"),
        ([[1.0, 9999.0], [1.0, 2.0]], {}, "shorter bins"),
        ([[1.0, 2.0], [2.0, 1.0]], {"inference": "gibbs"}, "inference"),
        ([[1.0, 2.0], [2.0, 1.0]], {"init": "random"}, "init"),
        ([[1.0, 2.0], [2.0, 1.0]], {"n_components": 0}, "n_components"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(kind, X, settings, message):
    with pytest.raises(ValueError, match=message):
        kind(**({"n_components": 2} | settings)).fit(np.array(X))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_count": 2}, "largest count"),
        ({"max_count": 30, "smoothness": 0.0}, "smoothness must be positive"),
        ({"observation": "half"}, "observation"),
        ({"elbo": "exact"}, "elbo"),
        ({"n_quadrature": 1}, "n_quadrature"),
    ],
)
def test_bad_settings_of_shapes_are_refused(settings, message, count_data):
    with pytest.raises(ValueError, match=message):
        CountDynamicalSystem(2, **settings).fit(count_data)


def test_without_smoothness_unseen_counts_are_impossible(count_data):
    counts = np.where(count_data == 2, 1.0, count_data)
    model = CountDynamicalSystem(2, smoothness=0.0, max_iter=4, random_state=0).fit(counts, lengths=LENGTHS)
    assert np.isneginf(model.g_[:, 2]).all()
    assert np.isfinite(model.score(counts, LENGTHS))
