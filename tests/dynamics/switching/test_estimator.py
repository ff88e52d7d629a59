"""Switching systems as users meet them: what is found, forecast and filled in, and what is refused."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import pluri
from pluri.dynamics import SwitchingDynamicalSystem, SwitchingLinearModel, make_maneuvering_target, rao_blackwell_filter
from pluri.engine import ArraySource, IterableSource
from pluri.validation import as_generator


def turning(seed, n=300, stay=0.95):
    """A point that goes round one way or the other, seen by five noisy sensors: model, regimes, observations."""
    rng = as_generator(seed)
    c, s = np.cos(0.3), np.sin(0.3)
    model = SwitchingLinearModel(
        transition=[[stay, 1 - stay], [1 - stay, stay]],
        initial_probabilities=[0.5, 0.5],
        dynamics=0.98 * np.array([[[c, -s], [s, c]], [[c, s], [-s, c]]]),
        dynamics_noise=[0.2 * np.eye(2)] * 2,
        emission=[rng.normal(size=(5, 2))] * 2,
        emission_noise=[0.3 * np.eye(5)] * 2,
        initial_mean=[0.0, 0.0],
        initial_covariance=np.eye(2),
    )
    particles, X = model.sample(n, random_state=rng)
    return model, particles[:, 0].astype(int), X


def errors(found, truth, k=2):
    """Share of wrong regimes under the best numbering."""
    return min((np.array(order)[found] != truth).mean() for order in permutations(range(k)))


@pytest.fixture(scope="module")
def learned():
    model, regimes, X = turning(0)
    return model, regimes, X, SwitchingDynamicalSystem(2, 2, random_state=0, tol=0.1).fit(X)


def test_regimes_are_found_where_they_can_be():
    # Of fits to 150 other seeds two had more than 15 % errors. At 4.2 %, the most that this allows (95 %), more than
    # four of ten have with probability 3e-5; at 1.3 % with 1e-7.
    shares = []
    for seed in range(10):
        _, regimes, X = turning(seed)
        model = SwitchingDynamicalSystem(2, 2, random_state=seed, tol=0.1).fit(X)
        shares.append(errors(model.predict(X), regimes))
    assert np.sum(np.array(shares) > 0.15) <= 4


def test_a_known_model_filters_as_the_known_filter_does():
    target = make_maneuvering_target()
    _, X = target.sample(5, random_state=np.random.default_rng(0))  # always these: figures are known
    model = SwitchingDynamicalSystem.from_model(target, random_state=0, n_particles=500)
    exact = -60.99387
    estimate = model.log_likelihood(X, n_runs=20)
    # Twenty runs; eight standard errors, Student with 19 degrees of freedom: false alarm 2e-7.
    assert abs(estimate.value - exact) < 8 * estimate.error + 1e-5
    assert model.score(X) < exact
    found, expected = [], []
    for seed in range(20):
        online = model.filter(random_state=seed)
        for row in X:
            online.update(row)
        found.append(online.probabilities)
        filtered = rao_blackwell_filter(target, X, 500, random_state=100 + seed)
        expected.append(filtered.regime_probabilities[-1])
    # Twenty runs of each; seven standard errors, Student with about 38 degrees of freedom: false alarm 3e-8 for each.
    error = np.sqrt((np.var(found, axis=0, ddof=1) + np.var(expected, axis=0, ddof=1)) / 20)
    assert (np.abs(np.mean(found, axis=0) - np.mean(expected, axis=0)) < 7 * error).all()
    assert online.n_steps == 5
    assert online.covariance.shape == (4, 4)


def test_one_regime_forecasts_and_fills_in_as_dense_conditioning_does(systems):
    rng = as_generator(1)
    params = systems.random(1, 2, 3, rng, noise="full")
    X, _ = systems.draw(params, 12, rng)
    holes = X.copy()
    holes[3], holes[5, 1], holes[8, :2] = np.nan, np.nan, np.nan
    model = SwitchingDynamicalSystem(1, 2, noise_type="full", n_particles=3)
    for name in ("dynamics", "dynamics_offset", "dynamics_covariance", "emission", "emission_offset",
                 "emission_covariance", "initial_mean", "initial_covariance"):  # fmt: skip
        setattr(model, f"{name}_", getattr(params, name))
    model.startprob_, model.transmat_ = np.ones(1), np.ones((1, 1))
    longer = np.vstack([holes, np.full((4, 3), np.nan)])
    log_density, mean, covariance = systems.given_regimes(params, longer, [0] * 16)
    C, c, R = params.emission[0], params.emission_offset[0], params.emission_covariance[0]
    assert model.score(holes) == pytest.approx(log_density, abs=1e-9)
    assert model.log_likelihood(holes).value == pytest.approx(log_density, abs=1e-9)
    found = model.forecast(holes, 4, level=0.8)
    for step in range(4):
        rows = slice((12 + step) * 2, (13 + step) * 2)
        deviation = np.sqrt(np.diag(C @ covariance[rows, rows] @ C.T + R))
        np.testing.assert_allclose(found.mean[0, step], C @ mean[12 + step] + c, atol=1e-9)
        np.testing.assert_allclose(found.std[0, step], deviation, atol=1e-9)
        np.testing.assert_allclose(
            found.upper[0, step], found.mean[0, step] + 1.2815515655446004 * deviation, atol=1e-7
        )
    filled, std = model.impute(holes, return_std=True)
    assert (filled[~np.isnan(holes)] == holes[~np.isnan(holes)]).all()
    assert not std[~np.isnan(holes)].any()
    np.testing.assert_allclose(std[3], np.sqrt(np.diag(C @ covariance[6:8, 6:8] @ C.T + R)), atol=1e-9)
    # Of y_8 given the states and its third entry: e = (I, -K)(y - C x) has covariance R_uu - K R_ou.
    known = R[:2, 2:] / R[2, 2]
    loading = C[:2] - known @ C[2:]
    left = loading @ covariance[16:18, 16:18] @ loading.T + R[:2, :2] - known @ R[2:, :2]
    np.testing.assert_allclose(std[8, :2], np.sqrt(np.diag(left)), atol=1e-9)
    expected = C @ mean[8] + c
    residual = holes[8, 2] - expected[2]
    np.testing.assert_allclose(filled[8, :2], expected[:2] + R[:2, 2] / R[2, 2] * residual, atol=1e-9)
    np.testing.assert_allclose(filled[3], C @ mean[3] + c, atol=1e-9)


def test_forecasts_cover_what_comes():
    # Sixty independent sequences of a known model: at 80 % the count in one step and feature is binomial, and two-sided
    # bounds of 1e-6 for each of four counts leave a false alarm of 4e-6.
    target, _, _ = turning(3)
    model = SwitchingDynamicalSystem.from_model(target, random_state=0, n_particles=300)
    rng = as_generator(11)
    futures = [target.sample(24, random_state=rng)[1] for _ in range(60)]
    forecast = model.forecast([future[:20] for future in futures], 4, level=0.8)
    later = np.array([future[20:] for future in futures])
    inside = ((forecast.lower < later) & (later < forecast.upper))[:, :, 0].sum(axis=0)
    low, high = binom(60, 0.8).ppf([5e-7, 1 - 5e-7])
    assert ((low <= inside) & (inside <= high)).all()
    assert forecast.regime_probabilities.sum(axis=2) == pytest.approx(np.ones((60, 4)))


def test_draws_have_the_moments_of_the_model(learned):
    # Means of 400 sequences of length 2 at five standard errors, ten of them: false alarm 6e-6.
    *_, model = learned
    rng = as_generator(2)
    X = np.array([model.sample(2, random_state=rng)[0] for _ in range(400)])
    mean = model.startprob_ @ model.initial_mean_
    then = (model.startprob_ @ model.transmat_) @ (model.dynamics_ @ mean + model.dynamics_offset_)
    for step, state in enumerate((mean, then)):
        expected = model.emission_[0] @ state + model.emission_offset_[0]
        error = X[:, step].std(axis=0, ddof=1) / 20
        assert (np.abs(X[:, step].mean(axis=0) - expected) < 5 * error).all()


def test_standard_deviations_of_regimes_with_emissions_of_their_own_are_those_of_a_mixture(systems):
    """Against 40,000 draws from q: means and variances at six standard errors (false alarm 1e-8)."""
    rng = as_generator(4)
    params = systems.random(2, 2, 3, rng, groups=2, noise="full")
    alike = ("dynamics", "dynamics_offset", "dynamics_covariance")  # so that nothing tells the regime of a row not seen
    params = replace(
        params,
        transition=np.array([[0.6, 0.4]] * 2),
        **{name: getattr(params, name)[[0, 0]] for name in alike},
    )
    X, _ = systems.draw(params, 6, rng)
    X[2] = np.nan
    model = SwitchingDynamicalSystem(2, 2, emission_type="regime", noise_type="full")
    for name in ("dynamics", "dynamics_offset", "dynamics_covariance", "emission", "emission_offset",
                 "emission_covariance", "initial_mean", "initial_covariance"):  # fmt: skip
        setattr(model, f"{name}_", getattr(params, name))
    model.startprob_, model.transmat_ = params.start, params.transition
    filled, std = model.impute(X, return_std=True)
    q = model._posterior(X, None, None)[0]
    n = 40_000
    z = (rng.random(n) > q.regimes[2, 0]).astype(int)
    x = rng.multivariate_normal(q.mean[2], q.covariance[2], size=n)
    noise = np.array([rng.multivariate_normal(np.zeros(3), R, size=n) for R in params.emission_covariance])
    y = np.einsum("nij,nj->ni", params.emission[z], x) + params.emission_offset[z] + noise[z, np.arange(n)]
    np.testing.assert_allclose(q.regimes[2], [0.6, 0.4], atol=1e-6)
    assert (np.abs(y.mean(axis=0) - filled[2]) < 6 * y.std(axis=0) / np.sqrt(n)).all()
    squares = np.square(y - filled[2])
    assert (np.abs(squares.mean(axis=0) - std[2] ** 2) < 6 * squares.std(axis=0) / np.sqrt(n)).all()


def test_filling_in_beats_the_mean(learned):
    _, _, X, model = learned
    holes = X.copy()
    holes[as_generator(0).random(X.shape) < 0.3] = np.nan
    hidden = np.isnan(holes)
    error = np.sqrt(np.square(model.impute(holes) - X)[hidden].mean())
    # Noise of 0.3 is what cannot be known; 0.32 to 0.41 over 30 seeds.
    assert error < 0.5 < X[hidden].std()


def test_lists_lengths_and_groups_are_one_thing(learned):
    _, _, X, model = learned
    parts, groups = [X[:100], X[100:130], X[130:]], np.repeat([5, 2, 9], [100, 30, 170])
    expected = model.predict_proba(parts)
    np.testing.assert_array_equal(model.predict_proba(X, lengths=[100, 30, 170]), expected)
    np.testing.assert_array_equal(model.predict_proba(X, groups=groups), expected)
    assert model.score_sequences(parts).shape == (3,)
    assert model.score(parts, sample_weight=[1.0, 0.0, 2.0]) == pytest.approx(model.score_sequences(parts) @ [1, 0, 2])
    assert model.forecast(parts, 2).mean.shape == (3, 2, 5)
    fits = [
        SwitchingDynamicalSystem(2, 2, max_iter=3, tol=0.0, random_state=0).fit(*given[0], **given[1])
        for given in (((parts,), {}), ((X,), {"lengths": [100, 30, 170]}), ((X,), {"groups": groups}))
    ]
    for other in fits[1:]:
        np.testing.assert_array_equal(other.dynamics_, fits[0].dynamics_)


def test_a_source_of_batches_is_learned_from(learned):
    _, _, X, _ = learned
    parts = [X[:100], X[100:200], X[200:]]
    source = IterableSource(lambda: iter([(part, [len(part)]) for part in parts]))
    model = SwitchingDynamicalSystem(2, 2, max_iter=60, tol=1.0, random_state=0).fit(source)
    whole = SwitchingDynamicalSystem(2, 2, max_iter=60, tol=1.0, random_state=0).fit(parts)
    # Without the last q(z) an E-step may end in another optimum; here they agree to a part in a hundred.
    assert model.score(parts) == pytest.approx(whole.score(parts), rel=1e-2)


def test_a_model_comes_back_from_a_file(learned, tmp_path):
    _, _, X, model = learned
    pluri.save(model, tmp_path / "model.pluri")
    again = pluri.load(tmp_path / "model.pluri")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.history_ == model.history_
    np.testing.assert_array_equal(again.forecast(X, 3).upper, model.forecast(X, 3).upper)


def test_a_checkpoint_goes_on_to_the_same_parameters(learned, tmp_path):
    _, _, X, _ = learned
    place = tmp_path / "fit.npz"
    for max_iter in (4, 9):
        model = SwitchingDynamicalSystem(2, 2, max_iter=max_iter, tol=0.0, random_state=0, checkpoint=place).fit(X)
    straight = SwitchingDynamicalSystem(2, 2, max_iter=9, tol=0.0, random_state=0).fit(X)
    np.testing.assert_allclose(model.dynamics_, straight.dynamics_, rtol=1e-12)


def test_a_warm_start_goes_on(learned):
    _, _, X, _ = learned
    model = SwitchingDynamicalSystem(2, 2, max_iter=5, tol=0.0, random_state=0, warm_start=True).fit(X)
    before = model.objective_
    assert model.fit(X).objective_ > before


def test_more_components_than_features_are_possible():
    _, _, X = turning(4, n=120)
    model = SwitchingDynamicalSystem(2, 3, max_iter=5, tol=0.0, random_state=0).fit(X[:, :1])
    assert model.transform(X[:, :1]).shape == (120, 3)
    assert np.isfinite(model.score(X[:, :1]))


@pytest.mark.parametrize(
    "X",
    [
        np.zeros((30, 2)),
        np.full((30, 2), 1e9) + np.arange(30)[:, None],
        1e-9 * as_generator(0).normal(size=(30, 2)),
        np.column_stack([np.arange(30.0), np.full(30, np.nan)]),
        as_generator(0).normal(size=(2, 2)),
        np.where(np.arange(60).reshape(30, 2) % 7 == 0, as_generator(1).normal(size=(30, 2)), np.nan),
    ],
    ids=["constant", "huge", "tiny", "a column never seen", "two rows", "six of seven missing"],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::pluri.dynamics.DeadRegimeWarning")
@pytest.mark.filterwarnings("ignore:columns .* of X hold no value")
def test_strange_data_give_finite_answers(X):
    model = SwitchingDynamicalSystem(2, 2, random_state=0, max_iter=20).fit(X)
    assert np.isfinite(model.score(X))
    assert np.isfinite(model.transform(X)).all()
    assert np.isfinite(model.impute(X)).all()
    assert np.isfinite(model.forecast(X, 3).mean).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_regimes": 0}, "n_regimes must be an integer of at least 1, got 0"),
        ({"n_components": 0}, "n_components must be an integer of at least 1, got 0"),
        ({"n_regimes": 500}, r"n_regimes must be at most the number of samples \(300\), got 500"),
        ({"emission_type": "both"}, "emission_type must be one of 'shared', 'regime', got 'both'"),
        ({"noise_type": "tied"}, "noise_type must be"),
        ({"dynamics_prior": 0.0}, "dynamics_prior must be a positive number"),
        ({"emission_prior": -1.0}, "emission_prior must be a positive number"),
        ({"params": "xyz"}, "params must be made of the letters 'staqcri', got 'xyz'"),
        ({"dynamics_init": np.eye(3)}, r"dynamics_ must have shape \(2, 2, 2\)"),
        ({"transmat_init": np.eye(3)}, r"transmat_ must have shape \(2, 2\)"),
        ({"startprob_init": [0.5, 0.6]}, "startprob_"),
        ({"emission_init": np.zeros((4, 2))}, "emission_init must be for 5 features, got 4"),
        ({"dynamics_covariance_init": -np.eye(2)}, "dynamics_covariance_ of regime 0 must be positive definite"),
    ],
)
def test_settings_that_cannot_be_are_refused(learned, settings, message):
    with pytest.raises(ValueError, match=message):
        SwitchingDynamicalSystem(**settings).fit(learned[2])


def test_questions_that_cannot_be_answered_are_refused(learned):
    _, _, X, model = learned
    with pytest.raises(NotFittedError):
        SwitchingDynamicalSystem().predict(X)
    with pytest.raises(ValueError, match="horizon must be an integer of at least 1, got 0"):
        model.forecast(X, 0)
    with pytest.raises(ValueError, match="level must be a number above 0 and below 1, got 1"):
        model.forecast(X, 1, level=1.0)
    with pytest.raises(ValueError, match="n_runs must be an integer of at least 2, got 1"):
        model.log_likelihood(X, n_runs=1)
    with pytest.raises(ValueError, match="X has 3 features, but SwitchingDynamicalSystem is expecting 5"):
        model.predict(X[:, :3])
    with pytest.raises(ValueError, match=r"lengths must sum to the number of samples \(300\)"):
        model.predict(X, lengths=[3])
    with pytest.raises(ValueError, match="infinity"):
        model.predict(np.where(X > 1, np.inf, X))
    holes = X.copy()
    holes[3, 1] = np.nan
    with pytest.raises(ValueError, match="noise_type must be 'diag' or 'isotropic' to learn from rows seen in part"):
        SwitchingDynamicalSystem(noise_type="full").fit(holes)
    with pytest.raises(ValueError, match="X must hold at least one value that is not missing"):
        SwitchingDynamicalSystem().fit(np.full((9, 2), np.nan))
    with pytest.raises(TypeError, match="model must be a SwitchingLinearModel"):
        SwitchingDynamicalSystem.from_model(model)
    with pytest.raises(ValueError, match="must give the lengths of its sequences"):
        SwitchingDynamicalSystem().fit(ArraySource(X))
    with pytest.warns(ConvergenceWarning, match="raise max_iter or tol"):
        SwitchingDynamicalSystem(max_iter=2, random_state=0).fit(X)


def test_the_summary_fits_on_a_page(learned):
    text = learned[3].summary()
    assert text.startswith("SwitchingDynamicalSystem: 2 regimes, 2 components, 5 features")
    assert len(text.splitlines()) < 20
    assert "set by hand" in SwitchingDynamicalSystem.from_model(learned[0]).summary()
