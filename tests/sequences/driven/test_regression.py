"""Emissions that regress: densities by hand, M-steps that nothing beats, and what is conditioned on or missing."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp
from sklearn import config_context
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pluri.engine import ArraySource
from pluri.engine.aligned import padded_width
from pluri.io import load, save
from pluri.sequences import AutoregressiveHMM, GaussianHMM, HMMClassifier, RegressionHMM, SequenceKFold, sequence_ids

KINDS = ("spherical", "diag", "full", "tied")


def covariances(rng, kind, k, d):
    full = np.array([(lambda a: a @ a.T + np.eye(d))(rng.normal(size=(d, d))) for _ in range(k)])
    by_type = {"spherical": full[:, 0, 0], "diag": np.diagonal(full, axis1=1, axis2=2), "full": full, "tied": full[0]}
    return by_type[kind]


def by_hand(model, rng, kind, *, n_outputs, n_regressors):
    k = model.n_components
    model.startprob_, model.transmat_ = rng.dirichlet(np.ones(k)), rng.dirichlet(np.ones(k), size=k)
    model.coef_ = rng.normal(size=(k, n_outputs, n_regressors)) / (1 + n_regressors)
    model.intercept_ = rng.normal(size=(k, n_outputs))
    model.covars_ = covariances(rng, kind, k, n_outputs)
    return model


def log_densities(model, outputs, regressors):
    """log p(x_t | z_t, state) from scipy; 0 where anything is missing."""
    table = np.zeros((len(outputs), model.n_components))
    for t, (x, z) in enumerate(zip(outputs, regressors, strict=True)):
        if np.isnan(x).any() or np.isnan(z).any():
            continue
        for i in range(model.n_components):
            mean = model.intercept_[i] + model.coef_[i] @ z
            table[t, i] = stats.multivariate_normal.logpdf(x, mean, model.covars_[i])
    return table


def lagged(x, order):
    """Regressors (T, order * D) of one sequence, the last observation first."""
    z = np.full((len(x), order * x.shape[1]), np.nan)
    for t in range(order, len(x)):
        z[t] = np.concatenate([x[t - lag] for lag in range(1, order + 1)])
    return z


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", [1, 2])
def test_autoregressive_likelihood_and_posteriors_are_those_of_all_paths(enumeration, order, kind):
    rng = np.random.default_rng(order)
    model = by_hand(AutoregressiveHMM(2, order, None, kind), rng, kind, n_outputs=2, n_regressors=2 * order)
    x = rng.normal(size=(7, 2))
    x[4, 1] = np.nan
    exact = enumeration.enumerate_paths(model.startprob_, model.transmat_, log_densities(model, x, lagged(x, order)))
    assert model.score(x) == pytest.approx(exact.log_likelihood, rel=1e-12)
    np.testing.assert_allclose(model.predict_proba(x), exact.posterior, atol=1e-12)
    np.testing.assert_allclose(model.filter_proba(x), exact.filtered, atol=1e-12)
    np.testing.assert_array_equal(model.predict(x), exact.paths[0])
    online = model.filter()
    np.testing.assert_allclose([online.update(row) for row in x], exact.filtered, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_regression_likelihood_is_that_of_all_paths_wherever_inputs_stand(enumeration, kind):
    rng = np.random.default_rng(5)
    model = by_hand(RegressionHMM(3, [2, 0], kind), rng, kind, n_outputs=2, n_regressors=2)
    X = rng.normal(size=(6, 4))
    X[2, 0] = np.nan  # an input
    densities = log_densities(model, X[:, [1, 3]], X[:, [2, 0]])
    exact = enumeration.enumerate_paths(model.startprob_, model.transmat_, densities)
    assert model.score(X) == pytest.approx(exact.log_likelihood, rel=1e-12)
    np.testing.assert_allclose(model.predict_proba(X), exact.posterior, atol=1e-12)


def test_without_inputs_it_is_a_gaussian_model():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 2))
    model = by_hand(RegressionHMM(2, None, "full"), rng, "full", n_outputs=2, n_regressors=0)
    plain = GaussianHMM(2, "full")
    plain.startprob_, plain.transmat_ = model.startprob_, model.transmat_
    plain.means_, plain.covars_ = model.intercept_, model.covars_
    assert model.score(X) == pytest.approx(plain.score(X), rel=1e-12)


@pytest.mark.parametrize("params", ["stwic", "stwc", "stic", "stw", "sti", "stc"])
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_near_an_m_step_is_better(kind, params):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 4)) * [1, 5, 1, 0.2] + [0, 30, -2, 1]
    model = RegressionHMM(3, [1, 3], kind, alpha=2.0, covars_prior=0.5, covars_weight=5.0, params=params, n_iter=0)
    model.fit(X)
    emission, parameters = model._model()
    rows = emission.prepare(X)
    posterior = np.zeros((60, padded_width(3)))
    posterior[:, :3] = rng.dirichlet(np.ones(3), size=60)
    best = emission.maximize(emission.accumulate(parameters.emission, rows, posterior), parameters.emission)

    def objective(record):
        out = np.empty_like(posterior)
        emission.log_prob(record, rows, out)
        return float((posterior[:, :3] * out[:, :3]).sum()) + emission.log_prior(record)

    top = objective(best)
    assert top > objective(parameters.emission)
    packed = emission.pack(best)
    for size in (1e-3, 1e-2, 0.3):
        for _ in range(20):
            other = emission.unpack(packed + size * rng.normal(size=packed.shape), best)
            assert objective(other) <= top + 1e-9 * abs(top)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("acceleration", [None, "anderson"])
def test_the_objective_never_falls(seed, acceleration):
    rng = np.random.default_rng(seed)
    X = np.cumsum(rng.normal(size=(120, 3)), axis=0)
    X[rng.random(X.shape) < 0.05] = np.nan
    kind = KINDS[seed % 4]
    model = AutoregressiveHMM(
        3, 1 + seed % 2, [2], kind, random_state=seed, n_iter=30, tol=0.0, acceleration=acceleration
    )
    climb = model.fit(X, lengths=[50, 2, 68]).history_.to_dict()["objective"]
    assert (np.diff(climb) > -1e-9 * np.abs(climb[1:])).all()


def simulated(n_samples, seed):
    """A switching AR(2) series: coefficients (2, 2), intercepts (2,), noise of standard deviation 1 and 0.5."""
    rng = np.random.default_rng(seed)
    coef, intercept, spread = np.array([[1.2, -0.5], [-0.4, 0.3]]), np.array([0.5, -1.0]), np.array([1.0, 0.5])
    x, state = np.zeros(n_samples), 0
    for t in range(2, n_samples):
        state = state if rng.random() < 0.97 else 1 - state
        x[t] = intercept[state] + coef[state] @ x[[t - 1, t - 2]] + spread[state] * rng.normal()
    return x[:, None], coef, intercept, spread


@pytest.mark.parametrize("seed", range(3))
def test_a_known_series_is_recovered(seed):
    # Standard errors as if the states were known, doubled for not knowing them; 6 numbers at 5 such errors.
    x, coef, intercept, spread = simulated(3000, seed)
    model = AutoregressiveHMM(2, 2, random_state=0, n_init=3, tol=1e-4).fit(x)
    order = [int(np.argmax(model.covars_.ravel())), int(np.argmin(model.covars_.ravel()))]
    z = np.column_stack([np.ones(2998), x[1:-1], x[:-2]])
    weight = model.predict_proba(x)[2:, order]
    for i in range(2):
        information = (z * weight[:, [i]]).T @ z / spread[i] ** 2
        errors = 2.0 * np.sqrt(np.diagonal(np.linalg.inv(information)))
        found = np.append(model.intercept_[order[i], 0], model.coef_[order[i], 0])
        assert (np.abs(found - np.append(intercept[i], coef[i])) < 5.0 * errors).all()


def test_units_do_not_matter():
    x, *_ = simulated(400, 0)
    u = np.random.default_rng(1).normal(size=(400, 1))
    one = AutoregressiveHMM(2, inputs=[1], random_state=0, tol=1e-8, n_iter=300).fit(np.column_stack([x, u]))
    other = AutoregressiveHMM(2, inputs=[1], random_state=0, tol=1e-8, n_iter=300)
    other.fit(np.column_stack([1e-3 * x + 7.0, 1e4 * u - 1e5]))
    np.testing.assert_allclose(other.coef_[:, :, 0], one.coef_[:, :, 0], rtol=1e-5)
    np.testing.assert_allclose(other.coef_[:, :, 1] * 1e7, one.coef_[:, :, 1], rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(other.covars_ * 1e6, one.covars_, rtol=1e-5)
    assert other.objective_ - one.objective_ == pytest.approx(399 * np.log(1e3), rel=1e-6)


def test_weights_are_repetitions_and_lists_are_lengths():
    x, *_ = simulated(300, 2)
    parts = [x[:120], x[120:200], x[200:]]
    settings = {"random_state": 0, "n_iter": 20, "tol": 0.0, "coef_init": [[[0.9]], [[-0.3]]]}
    settings |= {"intercept_init": [[0.0], [0.5]], "covars_init": [[1.0], [0.5]]}
    settings |= {"startprob_init": [0.5, 0.5], "transmat_init": [[0.9, 0.1], [0.2, 0.8]], "covars_prior": 0.01}
    weighted = AutoregressiveHMM(2, **settings, alpha=0.0).fit(parts, sequence_weight=[1, 3, 0])
    repeated = AutoregressiveHMM(2, **settings, alpha=0.0)
    repeated.fit(np.concatenate([parts[0], *[parts[1]] * 3]), lengths=[120, 80, 80, 80])
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-8)
    np.testing.assert_allclose(weighted.covars_, repeated.covars_, rtol=1e-8)


def test_short_sequences_carry_no_information():
    x, *_ = simulated(60, 0)
    model = AutoregressiveHMM(2, 2, random_state=0).fit(x)
    scores = model.score_sequences([x[:1], x[:2], x[:3]])
    np.testing.assert_allclose(scores[:2], 0.0, atol=1e-12)
    assert scores[2] != 0.0
    np.testing.assert_allclose(model.predict_proba(x[:1])[0], model.startprob_, atol=1e-12)
    with pytest.raises(ValueError, match="more samples than order \\(4\\), got at most 4 samples in a sequence"):
        AutoregressiveHMM(2, 4).fit([x[:3], x[:4]])
    x[::2] = np.nan
    with pytest.raises(ValueError, match="at least one step whose value and regressors are all known"):
        AutoregressiveHMM(2, 1).fit(x)


def test_one_step_means_are_over_predicted_states():
    rng = np.random.default_rng(4)
    model = by_hand(AutoregressiveHMM(2, 1, [1], "diag"), rng, "diag", n_outputs=1, n_regressors=2)
    X = rng.normal(size=(6, 2))
    X[5, 0] = np.nan  # one step beyond the end
    filtered = model.filter_proba(X)
    found = model.one_step_means([X, X[:2]])
    assert np.isnan(found[[0, 6]]).all()
    for t in range(1, 6):
        z = np.array([X[t - 1, 0], X[t, 1]])
        means = model.intercept_[:, 0] + model.coef_[:, 0] @ z
        assert found[t, 0] == pytest.approx(filtered[t - 1] @ model.transmat_ @ means)
    np.testing.assert_allclose(found[7], found[1])


def test_samples_follow_the_recursion():
    rng = np.random.default_rng(4)
    model = by_hand(AutoregressiveHMM(2, 2, [0], "diag"), rng, "diag", n_outputs=1, n_regressors=3)
    model.covars_ = np.full((2, 1), 1e-20)
    inputs, history = rng.normal(size=(5, 1)), np.array([[2.0], [-1.0]])
    X, states = model.sample(5, random_state=0, inputs=inputs, history=history)
    np.testing.assert_array_equal(X[:, 0], inputs[:, 0])
    x = np.concatenate([history[:, 0], X[:, 1]])
    for t in range(5):
        z = np.array([x[t + 1], x[t], inputs[t, 0]])
        assert x[t + 2] == pytest.approx(model.intercept_[states[t], 0] + model.coef_[states[t], 0] @ z, abs=1e-8)
    for given, words in (
        ({}, "inputs must be finite and have shape"),
        ({"inputs": inputs, "history": [1.0]}, "history must be finite and have shape"),
        ({"inputs": inputs[:4]}, "inputs must be finite and have shape"),
    ):
        with pytest.raises(ValueError, match=words):
            model.sample(5, **given)


def test_inputs_pass_through_pipelines_searches_and_files(tmp_path):
    rng = np.random.default_rng(0)
    u = rng.normal(size=(240, 1))
    slope = np.tile(np.repeat([2.0, -1.0], 20), 6)[:, None]
    X = np.column_stack([u, slope * u + 0.1 * rng.normal(size=(240, 1))])
    with config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(StandardScaler(), RegressionHMM(2, inputs=[0], random_state=0, n_init=3))
        search = GridSearchCV(pipeline, {"regressionhmm__n_components": [1, 2]}, cv=SequenceKFold(3))
        search.fit(X, groups=sequence_ids([40] * 6))
    assert search.best_params_ == {"regressionhmm__n_components": 2}
    best = search.best_estimator_[-1]
    save(best, tmp_path / "model")
    scaled = search.best_estimator_[0].transform(X)
    assert load(tmp_path / "model").score(scaled) == best.score(scaled)


def test_columns_may_be_named_and_sources_are_read():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3))
    frame = pandas.DataFrame(X, columns=["power", "wind", "hour"])
    named = RegressionHMM(2, ["hour", "wind"], random_state=0).fit(frame)
    numbered = RegressionHMM(2, [-1, 1], random_state=0).fit(X)
    streamed = RegressionHMM(2, [2, 1], random_state=0).fit(ArraySource(X, [50]))
    np.testing.assert_array_equal(named.coef_, numbered.coef_)
    np.testing.assert_allclose(streamed.coef_, numbered.coef_, rtol=1e-9)
    with pytest.raises(TypeError, match="X must be an array or a list of sequences"):
        AutoregressiveHMM(2).fit(ArraySource(X, [50]))


def test_known_states_need_no_em():
    x, *_ = simulated(500, 1)
    labels = np.repeat([0, 1, 0, 1, 0], 100)
    model = HMMClassifier(AutoregressiveHMM(order=1, alpha=0.0, covars_prior=0.0)).fit(x, labels).hmm_
    for i in range(2):
        rows = np.flatnonzero(labels == i)
        rows = rows[rows > 0]
        z = np.column_stack([np.ones(len(rows)), x[rows - 1]])
        expected = np.linalg.lstsq(z, x[rows], rcond=None)[0].ravel()
        np.testing.assert_allclose([model.intercept_[i, 0], model.coef_[i, 0, 0]], expected, rtol=1e-8)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"inputs": [5]}, "inputs must list columns of X, which has 3, got 5"),
        ({"inputs": [0, -3]}, "inputs must list each column once"),
        ({"inputs": ["wind"]}, "inputs must list columns by number where X has no column names"),
        ({"inputs": [0, 1, 2]}, "inputs must leave at least one column"),
        ({"inputs": [0.5]}, "inputs must list columns of X by number or by name, got 0.5"),
        ({"inputs": [True]}, "inputs must list columns of X by number or by name, got True"),
        ({"order": 0}, "order must be an integer of at least 1, got 0"),
        ({"alpha": -1.0}, "alpha must be a number of at least 0, got -1.0"),
        ({"coef_init": np.zeros((2, 3, 2))}, r"coef_ must be finite and have shape \(2, 3, 3\), got shape \(2, 3, 2\)"),
        ({"params": "stm"}, "params must be made of the letters 'stwic'"),
    ],
)
def test_what_does_not_fit_is_refused(settings, words):
    with pytest.raises(ValueError, match=words):
        AutoregressiveHMM(2, **settings).fit(np.random.default_rng(0).normal(size=(30, 3)))


def test_score_is_a_sum_over_sequences_of_logarithms_of_sums(enumeration):
    rng = np.random.default_rng(2)
    model = by_hand(AutoregressiveHMM(2, 1, None, "full"), rng, "full", n_outputs=1, n_regressors=1)
    x = rng.normal(size=(9, 1))
    parts = [x[:4], x[4:]]
    expected = [
        logsumexp(
            enumeration.enumerate_paths(
                model.startprob_, model.transmat_, log_densities(model, p, lagged(p, 1))
            ).log_joint
        )
        for p in parts
    ]
    np.testing.assert_allclose(model.score_sequences(x, lengths=[4, 5]), expected)
