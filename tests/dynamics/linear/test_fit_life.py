"""The life of a fit: starts, known parts, engines, sources, checkpoints, warm starts, and what is refused."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from pluri.dynamics import LinearDynamicalSystem
from pluri.engine import ArraySource, IterableSource, NpySource

LONG = {"max_iter": 6, "tol": -np.inf}
PARTS = ["initial_mean_", "initial_covariance_", "transition_matrix_", "transition_covariance_",
         "observation_matrix_", "observation_offset_", "observation_covariance_"]  # fmt: skip

#: What a model of sequences cannot do, and should not.
EXPECTED_FAILURES = {
    "check_methods_sample_order_invariance": "the state of a row depends on the rows before and after it",
    "check_methods_subset_invariance": "the state of a row depends on the rows before and after it",
    "check_transformer_data_not_an_array": "a list of lists of numbers is read as sequences of one feature",
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    [LinearDynamicalSystem(max_iter=10), LinearDynamicalSystem(1, covariance_type="full", stable=True, max_iter=10)],
    expected_failed_checks=lambda estimator: EXPECTED_FAILURES,
)
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 40, size=25)
    n = int(lengths.sum())
    turn = np.cumsum(0.3 + 0.05 * rng.normal(size=n))
    X = np.stack([np.sin(turn), np.cos(turn), np.sin(turn + 1)], axis=1) + 0.2 * rng.normal(size=(n, 3))
    X[rng.random(X.shape) < 0.1] = np.nan
    return X, lengths


def assert_close(one, other, tolerance=1e-9):
    for name in PARTS:
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("kind", ["diag", "full"])
def test_every_place_and_form_gives_the_same_fit(data, kind, tmp_path):
    X, lengths = data

    def fit(X, **options):
        return LinearDynamicalSystem(2, covariance_type=kind, **LONG | options).fit(X)

    expected = fit(ArraySource(X, lengths, batch_size=60))
    np.save(tmp_path / "X.npy", X)
    for source in (
        NpySource(tmp_path / "X.npy", lengths, batch_size=60),
        IterableSource(lambda: iter(np.split(X, np.cumsum(lengths)[:-1])), batch_size=60),
    ):
        assert_close(fit(source), expected, 0.0)
    assert_close(fit(ArraySource(X, lengths, batch_size=60), n_jobs=2), expected, 0.0)
    assert_close(fit(ArraySource(X, lengths, batch_size=10**6)), expected)
    assert_close(fit(np.split(X, np.cumsum(lengths)[:-1])), expected)


def test_a_cluster_gives_the_bits_of_one_core(data):
    distributed = pytest.importorskip("distributed")
    X, lengths = data
    source = ArraySource(X, lengths, batch_size=100)
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        there = LinearDynamicalSystem(2, engine=client, **LONG).fit(source)
    assert_close(there, LinearDynamicalSystem(2, **LONG).fit(source), 0.0)


def test_inputs_may_be_the_last_columns_of_a_source():
    rng = np.random.default_rng(1)
    U = rng.normal(size=(80, 1))
    X = np.concatenate([np.zeros((1, 1)), np.cumsum(U, axis=0)[:-1]]) + 0.1 * rng.normal(size=(80, 1))
    apart = LinearDynamicalSystem(1, **LONG).fit(X, inputs=U, lengths=[50, 30])
    source = ArraySource(np.concatenate([X, U], axis=1), [50, 30])
    assert_close(LinearDynamicalSystem(1, **LONG).fit(source, inputs=1), apart)


def test_weights_of_zero_leave_sequences_out(data):
    X, lengths = data
    sequences = np.split(X, np.cumsum(lengths)[:-1])
    weight = np.arange(len(lengths)) % 2
    some = LinearDynamicalSystem(2, **LONG).fit(sequences, sequence_weight=weight)
    kept = LinearDynamicalSystem(2, **LONG).fit([part for part, kept in zip(sequences, weight) if kept])
    assert_close(some, kept)
    again = LinearDynamicalSystem(2, **LONG).fit(X, lengths=lengths, sample_weight=np.repeat(weight, lengths))
    assert_close(again, some)


@pytest.mark.parametrize("with_inputs", [False, True])
def test_a_weight_of_two_is_a_sequence_twice_also_where_the_fit_starts(data, with_inputs):
    X, lengths = data
    sequences = np.split(X, np.cumsum(lengths)[:-1])
    times = np.arange(len(lengths)) % 3
    inputs = [np.cos(np.arange(n, dtype=float))[:, None] for n in lengths] if with_inputs else None
    weighted = LinearDynamicalSystem(2, **LONG).fit(sequences, sequence_weight=times, inputs=inputs)
    index = np.repeat(np.arange(len(lengths)), times)
    written_out = LinearDynamicalSystem(2, **LONG).fit(
        [sequences[i] for i in index], inputs=inputs and [inputs[i] for i in index]
    )
    assert_close(weighted, written_out)
    np.testing.assert_allclose(weighted.feature_variance_, written_out.feature_variance_)


def test_known_parts_stay_and_survive_a_clone(data):
    X, lengths = data
    A = np.array([[0.9, 0.3], [-0.3, 0.9]])
    model = LinearDynamicalSystem(2, params="CRQ", transition_matrix_init=A, initial_mean_init=[1.0, 2.0], **LONG)
    fitted = clone(model).fit(X, lengths=lengths)
    assert fitted.transition_matrix_ == pytest.approx(A, abs=0)
    assert fitted.initial_mean_.tolist() == [1.0, 2.0]
    by_hand = LinearDynamicalSystem(2, params="CRQ", init_params="PBbQCDcR", **LONG)
    by_hand.transition_matrix_, by_hand.initial_mean_ = A, [1.0, 2.0]
    assert_close(by_hand.fit(X, lengths=lengths), fitted)
    lost = LinearDynamicalSystem(2, **LONG)
    lost.transition_matrix_ = A
    with pytest.warns(UserWarning, match="transition_matrix_ were set but will be overwritten"):
        lost.fit(X, lengths=lengths)


def test_a_warm_start_goes_on_where_the_fit_ended(data):
    X, lengths = data
    whole = LinearDynamicalSystem(2, max_iter=12, tol=-np.inf, acceleration=None).fit(X, lengths=lengths)
    parts = LinearDynamicalSystem(2, max_iter=6, tol=-np.inf, acceleration=None, warm_start=True)
    parts.fit(X, lengths=lengths).fit(X, lengths=lengths)
    assert_close(parts, whole)


def test_a_checkpoint_goes_on_where_it_stopped(data, tmp_path):
    X, lengths = data
    file = tmp_path / "fit.checkpoint"
    LinearDynamicalSystem(2, max_iter=5, tol=-np.inf, checkpoint=file).fit(X, lengths=lengths)
    went_on = LinearDynamicalSystem(2, max_iter=12, tol=-np.inf, checkpoint=file).fit(X, lengths=lengths)
    assert_close(went_on, LinearDynamicalSystem(2, max_iter=12, tol=-np.inf).fit(X, lengths=lengths))
    assert went_on.n_iter_ == 12


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_more_starts_are_never_worse(data):
    X, lengths = data
    one = LinearDynamicalSystem(2, max_iter=15, random_state=0).fit(X, lengths=lengths)
    three = LinearDynamicalSystem(2, max_iter=15, n_init=3, random_state=0).fit(X, lengths=lengths)
    assert three.objective_ >= one.objective_
    assert set(three.history_.restart) == {0, 1, 2}


@pytest.mark.parametrize("covariance_type", ["diag", "full", "spherical"])
def test_growing_data_are_fitted_by_a_stable_system_if_asked_for(covariance_type):
    X = 1.05 ** np.arange(60)[:, None] * np.array([[1.0, 2.0]])
    X = X + 0.1 * np.random.default_rng(0).normal(size=X.shape)
    free, stable = (
        LinearDynamicalSystem(1, covariance_type=covariance_type, stable=stable, max_iter=40, tol=-np.inf).fit(X)
        for stable in (False, True)
    )
    assert abs(free.transition_matrix_[0, 0]) > 1
    assert abs(stable.transition_matrix_[0, 0]) < 1
    assert (np.diff(stable.history_.objective) > -1e-7).all()


def test_the_first_start_knows_the_frequency():
    """Noise a tenth of the signal; the angle of the first A is off by less than a tenth."""
    turn = 0.4 * np.arange(400)
    X = np.stack([np.sin(turn), np.cos(turn)], axis=1) + 0.1 * np.random.default_rng(0).normal(size=(400, 2))
    model = LinearDynamicalSystem(2, max_iter=1, tol=-np.inf).fit(X)
    assert np.angle(np.linalg.eigvals(model.transition_matrix_)).max() == pytest.approx(0.4, rel=0.1)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "X",
    [
        np.ones((5, 2)),
        np.arange(4.0)[:, None],
        np.array([[1.0, np.nan], [np.nan, np.nan], [2.0, np.nan]]),
        np.array([[3.0]]),
        1e-6 * np.random.default_rng(0).normal(size=(8, 3)),
        1e8 + np.random.default_rng(0).normal(size=(8, 3)),
    ],
    ids=["constant", "line", "a column never seen", "one row", "tiny values", "far away"],
)
@pytest.mark.parametrize("covariance_type", ["diag", "full"])
@pytest.mark.filterwarnings("ignore:columns .* of X hold no value")
def test_poor_data_give_a_model_that_can_be_used(X, covariance_type):
    model = LinearDynamicalSystem(3, covariance_type=covariance_type, max_iter=50).fit(X)
    for name in PARTS:
        assert np.isfinite(getattr(model, name)).all()
    assert (np.diff(model.history_.objective) > -1e-6 * np.abs(model.history_.objective[:-1]) - 1e-6).all()
    assert np.isfinite(model.impute(X)).all()
    assert np.isfinite(model.forecast(X, 3).upper).all()
    assert np.linalg.eigvalsh(model.observation_covariance_).min() > 0


@pytest.mark.parametrize("covariance_type", ["diag", "full"])
def test_a_constant_column_stays_constant_and_disturbs_nothing(covariance_type):
    """0.1 has no exact mean in floating point: what rounding leaves of it must not be taken for a signal."""
    turn = np.arange(120) / 8
    X = np.stack([np.sin(turn), np.cos(turn)], axis=1) + 0.1 * np.random.default_rng(0).normal(size=(120, 2))
    model = LinearDynamicalSystem(2, covariance_type=covariance_type)
    alone = clone(model).fit(X).forecast(X, 5)
    beside = np.concatenate([X, np.full((120, 1), 0.1)], axis=1)
    found = model.fit(beside).forecast(beside, 5)
    assert (np.diff(model.history_.objective) > -1e-6).all()
    assert found.mean[:, :, :2] == pytest.approx(alone.mean, abs=0.02)
    assert found.mean[:, :, 2] == pytest.approx(0.1, abs=1e-3)
    assert found.std[:, :, 2].max() < 0.01


def test_outputs_that_inputs_explain_to_the_last_digit_are_learned():
    u = np.random.default_rng(0).normal(size=(80, 1))
    model = LinearDynamicalSystem(1).fit(2.0 * u + 1.0, inputs=u)
    forecast = model.forecast(2.0 * u + 1.0, 1, inputs=u, future_inputs=[[3.0]])
    assert forecast.mean[0, 0, 0] == pytest.approx(7.0, abs=1e-3)


@pytest.mark.parametrize("acceleration", [None, "squarem", "anderson"])
def test_the_fit_does_not_depend_on_units(acceleration):
    rng = np.random.default_rng(2)
    X = np.cumsum(rng.normal(size=(60, 2)), axis=0)
    plain, scaled = (
        LinearDynamicalSystem(2, max_iter=10, tol=-np.inf, acceleration=acceleration).fit(X * unit)
        for unit in (1.0, 1e-4)
    )
    assert scaled.predict(X * 1e-4) == pytest.approx(1e-4 * plain.predict(X), rel=1e-5, abs=1e-9)


def known():
    model = LinearDynamicalSystem(1)
    model.initial_mean_, model.initial_covariance_ = np.zeros(1), np.eye(1)
    model.transition_matrix_, model.transition_covariance_ = 0.9 * np.eye(1), np.eye(1)
    model.observation_matrix_, model.observation_covariance_ = np.ones((2, 1)), np.eye(2)
    return model


@pytest.mark.parametrize(
    ("options", "arguments", "message"),
    [
        ({"n_components": 0}, {}, "n_components must be an integer of at least 1, got 0"),
        ({"covariance_type": "tied"}, {}, "covariance_type must be one of 'diag', 'full', 'spherical', got 'tied'"),
        ({"params": "xyz"}, {}, "params must be made of the letters 'mPABbQCDcR', got 'xyz'"),
        ({"covars_prior": "big"}, {}, "covars_prior must be 'auto', got 'big'"),
        ({"covars_prior": -1.0}, {}, "covars_prior must be"),
        ({"initial_prior": -1}, {}, "initial_prior must be a number of at least 0, got -1"),
        ({"acceleration": "fast"}, {}, "acceleration must be one of None, 'squarem', 'anderson', got 'fast'"),
        ({"transition_matrix_init": np.eye(3)}, {}, r"transition_matrix_ must have shape \(2, 2\), got \(3, 3\)"),
        ({"transition_covariance_init": -np.eye(2)}, {}, "transition_covariance_ must be positive semi-definite"),
        ({"observation_covariance_init": np.ones((3, 3))}, {}, "observation_covariance_ must be positive definite"),
        ({"observation_covariance_init": np.eye(3) + 0.1}, {}, "must be diagonal for covariance_type='diag'"),
        ({"stable": True, "transition_matrix_init": 2 * np.eye(2)}, {}, "must have a spectral radius of at most"),
        ({}, {"inputs": np.ones((4, 1))}, r"inputs must have one row for each of the 12 rows of X, got shape \(4, 1\)"),
        ({}, {"inputs": np.full((12, 1), np.nan)}, "inputs must be finite"),
        ({}, {"lengths": [5, 5]}, "lengths must sum to the number of samples"),
        ({}, {"sequence_weight": [-1.0]}, "must be finite and non-negative"),
    ],
)
def test_a_fit_that_cannot_be_is_refused_in_a_sentence(options, arguments, message):
    X = np.random.default_rng(0).normal(size=(12, 3))
    with pytest.raises(ValueError, match=message):
        LinearDynamicalSystem(**{"n_components": 2, **options}).fit(X, **arguments)


def test_data_that_cannot_be_are_refused_in_a_sentence():
    for X, message in [
        (np.full((4, 2), np.nan), "at least one value that is not missing"),
        (np.full((4, 2), np.inf), "infinity"),
        (np.full((4, 2), 1e200), "rescale the data"),
        (np.zeros((0, 2)), "minimum of 1 is required"),
    ]:
        with pytest.raises(ValueError, match=message):
            LinearDynamicalSystem().fit(X)
    with pytest.raises(NotFittedError):
        LinearDynamicalSystem().predict(np.zeros((3, 2)))
    half = LinearDynamicalSystem(1)
    half.transition_matrix_ = np.eye(1)
    with pytest.raises(NotFittedError, match="lacks initial_mean_"):
        half.predict(np.zeros((3, 2)))


def test_questions_that_cannot_be_answered_are_refused_in_a_sentence():
    model = known()
    X = np.zeros((5, 2))
    for call, message in [
        (lambda: model.forecast(X, 0), "horizon must be an integer of at least 1, got 0"),
        (lambda: model.forecast(X, 3, level=1.0), "level must be a number above 0 and below 1, got 1.0"),
        (lambda: model.predict(X, inputs=np.ones((5, 1))), "inputs must be None: the model was fitted"),
        (lambda: model.forecast(X, 3, future_inputs=np.ones((3, 1))), "inputs must be None: the model was fitted"),
        (lambda: model.predict(np.zeros((5, 3))), "X must have 2 features, as many as the parameters describe, got 3"),
        (lambda: model.filter().update([1.0]), "x must have 2 values, got 1"),
        (lambda: model.filter().update([1.0, np.inf]), "got infinity"),
        (lambda: model.sample(0), "n_samples must be an integer of at least 1, got 0"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()
    driven = known()
    driven.transition_input_, driven.observation_input_ = np.ones((1, 1)), np.zeros((2, 1))
    with pytest.raises(ValueError, match="inputs must be given, 1 for each row"):
        driven.predict(X)
    with pytest.raises(ValueError, match="future_inputs must be given, 3 rows of 1"):
        driven.forecast(X, 3, inputs=np.zeros(5))
