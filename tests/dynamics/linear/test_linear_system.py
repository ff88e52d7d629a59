"""What a linear dynamical system says of sequences, against conditioning in the joint Gaussian distribution."""

import pickle

import numpy as np
import pytest
from scipy.stats import binom

import pluri
from pluri.dynamics import LinearDynamicalSystem

NAMES = ["initial_mean_", "initial_covariance_", "transition_matrix_", "transition_input_", "transition_offset_",
         "transition_covariance_", "observation_matrix_", "observation_input_", "observation_offset_",
         "observation_covariance_"]  # fmt: skip


def known_model(seed=0, d=2, n=3, q=1, kind="full"):
    """A system with all parts set by hand."""
    rng = np.random.default_rng(seed)
    model = LinearDynamicalSystem(d, covariance_type=kind)
    A = rng.normal(size=(d, d))
    factor = rng.normal(size=(n, n))
    values = [
        rng.normal(size=d), np.eye(d) + 0.3, 0.9 * A / abs(np.linalg.eigvals(A)).max(), rng.normal(size=(d, q)),
        rng.normal(size=d), 0.5 * np.eye(d) + 0.1, rng.normal(size=(n, d)), rng.normal(size=(n, q)),
        5 * rng.normal(size=n), factor @ factor.T + np.eye(n) if kind == "full" else np.diag(rng.uniform(0.5, 2, n)),
    ]  # fmt: skip
    for name, value in zip(NAMES, values):
        setattr(model, name, value)
    return model


def joint(model, inputs, dense):
    drift = model.transition_offset_ + inputs @ model.transition_input_.T
    shift = model.observation_offset_ + inputs @ model.observation_input_.T
    return dense.joint(
        model.initial_mean_, model.initial_covariance_, model.transition_matrix_, drift, model.transition_covariance_,
        model.observation_matrix_, shift, model.observation_covariance_,
    )  # fmt: skip


def with_holes(model, n_samples, seed, share=0.3):
    rng = np.random.default_rng(seed)
    inputs = rng.normal(size=(n_samples, np.shape(model.transition_input_)[1]))
    X, states = model.sample(n_samples, random_state=seed, inputs=inputs)
    X = X.copy()
    X[rng.random(X.shape) < share] = np.nan
    return X, inputs, states


@pytest.mark.parametrize("kind", ["diag", "full"])
@pytest.mark.parametrize("seed", range(4))
def test_scores_states_and_imputed_values_equal_dense_conditioning(kind, seed, dense):
    model = known_model(seed, kind=kind)
    X, inputs, _ = with_holes(model, 14, seed)
    exact = joint(model, inputs, dense)
    mean, covariance, score = exact.condition(X)
    assert model.score(X, inputs=inputs) == pytest.approx(score, abs=1e-9)
    assert model.transform(X, inputs=inputs).ravel() == pytest.approx(mean, abs=1e-9)
    assert model.smooth(X, inputs=inputs)[1][5] == pytest.approx(covariance[10:12, 10:12], abs=1e-9)
    # The joint distribution of what was seen and what was not.
    H, shift, noise = exact.emission, exact.shift, exact.noise
    every = H @ exact.covariance @ H.T + noise
    seen = ~np.isnan(X.ravel())
    gain = np.linalg.solve(every[np.ix_(seen, seen)], every[np.ix_(seen, ~seen)]).T
    centre = H @ exact.mean + shift
    filled, std = model.impute(X, inputs=inputs, return_std=True)
    assert filled.ravel()[seen] == pytest.approx(X.ravel()[seen], abs=0)
    assert not std.ravel()[seen].any()
    expected = centre[~seen] + gain @ (X.ravel() - centre)[seen]
    assert filled.ravel()[~seen] == pytest.approx(expected, abs=1e-9)
    left = every[np.ix_(~seen, ~seen)] - gain @ every[np.ix_(seen, ~seen)]
    assert std.ravel()[~seen] == pytest.approx(np.sqrt(np.diag(left)), abs=1e-9)


def test_predictions_are_made_of_the_rows_before(dense):
    model = known_model(1)
    X, inputs, _ = with_holes(model, 10, 1)
    exact = joint(model, inputs, dense)
    mean, std = model.predict(X, inputs=inputs, return_std=True)
    for t in range(10):
        known = np.repeat(np.arange(10) < t, 3).reshape(10, 3)
        states, covariance, _ = exact.condition(X, known)
        rows = slice(3 * t, 3 * t + 3)
        assert mean[t] == pytest.approx((exact.emission @ states + exact.shift)[rows], abs=1e-9)
        spread = exact.emission @ covariance @ exact.emission.T + exact.noise
        assert std[t] == pytest.approx(np.sqrt(np.diag(spread)[rows]), abs=1e-9)


def test_a_forecast_is_the_imputation_of_rows_never_seen():
    model = known_model(2)
    X, inputs, _ = with_holes(model, 20, 2)
    rng = np.random.default_rng(3)
    future = rng.normal(size=(6, 1))
    forecast = model.forecast([X[:12], X[12:]], 6, inputs=[inputs[:12], inputs[12:]], future_inputs=future)
    for s, part in enumerate((slice(0, 12), slice(12, 20))):
        longer = np.concatenate([X[part], np.full((6, 3), np.nan)])
        filled, std = model.impute(longer, inputs=np.concatenate([inputs[part], future]), return_std=True)
        assert forecast.mean[s] == pytest.approx(filled[-6:], abs=1e-9)
        assert forecast.std[s] == pytest.approx(std[-6:], abs=1e-9)
    assert forecast.upper - forecast.mean == pytest.approx(1.6448536 * forecast.std, rel=1e-6)  # 95 % point of N(0, 1)
    each = model.forecast([X[:12], X[12:]], 6, inputs=[inputs[:12], inputs[12:]], future_inputs=[future, future])
    assert each.mean == pytest.approx(forecast.mean, abs=0)


def test_forecast_intervals_hold_what_they_promise():
    """Of 600 independent values those inside are binomial; the bound is left once in a million seeds."""
    model = known_model(4, q=0)
    rng = np.random.default_rng(5)
    inside = 0
    for number in range(600):
        X, _ = model.sample(13, random_state=rng)
        forecast = model.forecast(X[:10], 3, level=0.8)
        step, feature = number % 3, (number // 3) % 3
        inside += forecast.lower[0, step, feature] <= X[10 + step, feature] <= forecast.upper[0, step, feature]
    low, high = binom.ppf([5e-7, 1 - 5e-7], 600, 0.8)
    assert low <= inside <= high


def test_online_filter_equals_the_batch_and_can_be_pickled():
    model = known_model(3)
    X, inputs, _ = with_holes(model, 25, 3)
    predicted = model.predict(X, inputs=inputs)
    online = model.filter()
    for t in range(25):
        assert online.predict(inputs[t])[0] == pytest.approx(predicted[t], abs=1e-9)
        mean = online.update(X[t], inputs[t])
        online = pickle.loads(pickle.dumps(online))
    assert mean == pytest.approx(model.transform(X, inputs=inputs)[-1], abs=1e-9)  # the last state has no future
    assert online.log_likelihood == pytest.approx(model.score(X, inputs=inputs), abs=1e-8)
    assert online.n_steps == 25


def test_samples_have_the_moments_of_the_model(dense):
    model = known_model(5)
    inputs = np.random.default_rng(0).normal(size=(3, 1))
    exact = joint(model, inputs, dense)
    rng = np.random.default_rng(1)
    draws = np.array([model.sample(3, random_state=rng, inputs=inputs)[0].ravel() for _ in range(4000)])
    covariance = exact.emission @ exact.covariance @ exact.emission.T + exact.noise
    error = np.sqrt(np.diag(covariance) / 4000)
    # 9 means and 9 variances: six standard errors of each are left less than once in ten million seeds.
    assert (np.abs(draws.mean(axis=0) - exact.emission @ exact.mean - exact.shift) < 6 * error).all()
    assert draws.var(axis=0) == pytest.approx(np.diag(covariance), rel=6 * np.sqrt(2 / 4000))


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    truth = known_model(6, n=4, q=1, kind="diag")
    sequences, inputs = [], []
    for length in (60, 45, 80, 30):
        X, u, _ = with_holes(truth, length, int(length), share=0.1)
        sequences.append(X)
        inputs.append(u)
    del rng
    model = LinearDynamicalSystem(2, max_iter=40, tol=-np.inf, random_state=0).fit(sequences, inputs=inputs)
    return truth, model, sequences, inputs


def test_a_fit_finds_what_can_be_found(fitted):
    truth, model, sequences, inputs = fitted
    assert (np.diff(model.history_.objective) > -1e-8).all()
    # The best parameters explain the data at least as well as the true ones do.
    assert model.score(sequences, inputs=inputs) > truth.score(sequences, inputs=inputs) - 5
    assert model.n_inputs_ == 1
    assert model.n_features_in_ == 4


@pytest.mark.parametrize("acceleration", ["squarem", "anderson"])
def test_acceleration_goes_further_and_never_down(fitted, acceleration):
    _, _, sequences, inputs = fitted
    plain, fast = (
        LinearDynamicalSystem(2, max_iter=40, tol=-np.inf, acceleration=kind).fit(sequences, inputs=inputs)
        for kind in (None, acceleration)
    )
    assert (np.diff(fast.history_.objective) > -1e-8).all()
    assert fast.objective_ >= plain.objective_ - 1e-6


def test_the_forms_of_input_are_one(fitted):
    _, model, sequences, inputs = fitted
    X, U = np.concatenate(sequences), np.concatenate(inputs)
    lengths = [len(part) for part in sequences]
    groups = np.repeat(["a", "b", "c", "d"], lengths)
    for other in ({"lengths": lengths}, {"groups": groups}):
        again = LinearDynamicalSystem(2, max_iter=40, tol=-np.inf, random_state=0).fit(X, inputs=U, **other)
        assert again.transition_matrix_ == pytest.approx(model.transition_matrix_, abs=0)
        assert again.transform(X, inputs=U, **other) == pytest.approx(model.transform(sequences, inputs=inputs), abs=0)


def test_the_states_may_be_mapped_without_a_trace(fitted):
    _, model, sequences, inputs = fitted
    T = np.array([[2.0, 1.0], [-0.5, 3.0]])
    inverse = np.linalg.inv(T)
    other = LinearDynamicalSystem(2)
    for name in NAMES:
        setattr(other, name, getattr(model, name))
    for name in ("initial_mean_", "transition_input_", "transition_offset_"):
        setattr(other, name, T @ getattr(model, name))
    for name in ("initial_covariance_", "transition_covariance_"):
        setattr(other, name, T @ getattr(model, name) @ T.T)
    other.transition_matrix_ = T @ model.transition_matrix_ @ inverse
    other.observation_matrix_ = model.observation_matrix_ @ inverse
    assert other.score(sequences, inputs=inputs) == pytest.approx(model.score(sequences, inputs=inputs), rel=1e-10)
    assert other.predict(sequences, inputs=inputs) == pytest.approx(model.predict(sequences, inputs=inputs), abs=1e-8)


def test_information_criteria_count_what_is_learned(fitted):
    _, model, sequences, inputs = fitted
    free = 2 + 3 + 4 + 2 + 3 + 8 + 4 + 4 + 4 - 4  # m P A B Q C D c R, less the maps of the states
    assert model.n_free_parameters() == free
    score = model.score(sequences, inputs=inputs)
    assert model.aic(sequences, inputs=inputs) == pytest.approx(-2 * score + 2 * free)
    weight = [2.0, 0.0, 1.0, 1.0]
    weighted = model.score(sequences, inputs=inputs, sequence_weight=weight)
    assert weighted == pytest.approx(weight @ model.score_sequences(sequences, inputs=inputs))
    rows = 2 * 60 + 80 + 30
    assert model.bic(sequences, inputs=inputs, sample_weight=weight) == pytest.approx(
        -2 * weighted + free * np.log(rows)
    )


def test_a_saved_model_is_the_same_model(fitted, tmp_path):
    _, model, sequences, inputs = fitted
    pluri.save(model, tmp_path / "model.pluri")
    back = pluri.load(tmp_path / "model.pluri")
    assert back.predict(sequences, inputs=inputs) == pytest.approx(model.predict(sequences, inputs=inputs), abs=0)
    assert back.history_.objective.tolist() == model.history_.objective.tolist()
    assert "spectral radius" in back.summary()
