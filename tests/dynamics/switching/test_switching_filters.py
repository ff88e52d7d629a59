"""Filters for switching linear systems against the enumeration of all paths of regimes."""

import itertools

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from pluri import on_interrupt
from pluri.dynamics import (
    LinearGaussianModel,
    SwitchingLinearModel,
    kalman_filter,
    make_maneuvering_target,
    make_slds_random,
    rao_blackwell_filter,
    regime_probabilities,
)
from pluri.inference.smc import particle_filter


def enumerate_paths(model, observations):
    """Exact log evidence, p(z_T-1 | y) and E[x_T-1 | y], summed over every path of regimes."""
    arrays = model.arrays
    k = len(arrays.P)
    logs, means, last = [], [], []
    for path in itertools.product(range(k), repeat=len(observations)):
        probability = (arrays.p0 @ arrays.P)[path[0]] * np.prod([arrays.P[a, b] for a, b in itertools.pairwise(path)])
        if probability == 0:
            continue
        total, mean, covariance = np.log(probability), arrays.mean, arrays.covariance
        for t, (z, y) in enumerate(zip(path, observations)):
            push, lift = model.offsets(t)
            mean = arrays.A[z] @ mean + push[z]
            covariance = arrays.A[z] @ covariance @ arrays.A[z].T + arrays.Q[z]
            spread = arrays.C[z] @ covariance @ arrays.C[z].T + arrays.R[z]
            centre = arrays.C[z] @ mean + lift[z]
            total += multivariate_normal(centre, spread).logpdf(y)
            gain = covariance @ arrays.C[z].T @ np.linalg.inv(spread)
            mean, covariance = mean + gain @ (y - centre), covariance - gain @ arrays.C[z] @ covariance
        logs.append(total)
        means.append(mean)
        last.append(path[-1])
    weights = np.exp(logs - logsumexp(logs))
    return logsumexp(logs), np.bincount(last, weights, minlength=k), weights @ np.array(means)


@pytest.fixture(scope="module")
def target():
    model = make_maneuvering_target()
    states, observations = model.sample(5, random_state=np.random.default_rng(0))  # always these: figures are known
    return model, states, observations


@pytest.fixture(scope="module")
def informative():
    """Two regimes that the observations tell apart well, with inputs that change over time."""
    rng = np.random.default_rng(0)
    model = SwitchingLinearModel(
        transition=[[0.7, 0.3], [0.4, 0.6]],
        initial_probabilities=[0.5, 0.5],
        dynamics=[[[0.9, 0.1], [0.0, 0.8]], [[-0.5, 0.3], [0.2, 0.4]]],
        dynamics_noise=[0.3 * np.eye(2), 0.6 * np.eye(2)],
        emission=[[[1.0, 0.0]], [[0.0, 1.0]]],
        emission_noise=[[[0.2]], [[0.3]]],
        initial_mean=[0.0, 0.0],
        initial_covariance=np.eye(2),
        dynamics_input=rng.normal(size=(2, 2, 1)),
        emission_input=[[[3.0]], [[-3.0]]],
        inputs=rng.normal(size=(6, 1)),
    )
    return model, *model.sample(6, random_state=1)


def test_enumeration_gives_the_known_evidence_of_the_maneuvering_target(target):
    model, _, observations = target
    assert enumerate_paths(model, observations)[0] == pytest.approx(-60.99387, abs=5e-6)


@pytest.mark.parametrize("proposal", ["prior", "optimal"])
@pytest.mark.parametrize("case", ["target", "informative"])
def test_rao_blackwell_evidence_and_moments_equal_enumeration(case, proposal, request):
    model, _, observations = request.getfixturevalue(case)
    log_evidence, probabilities, mean = enumerate_paths(model, observations)
    runs = [rao_blackwell_filter(model, observations, 500, proposal, random_state=i) for i in range(30)]
    ratios = np.exp([run.log_evidence - log_evidence for run in runs])
    # Six standard errors, Student with 29 degrees of freedom: false alarm 2e-6 each.
    assert abs(ratios.mean() - 1) < 6 * ratios.std(ddof=1) / np.sqrt(30)
    assert np.mean([run.regime_probabilities[-1] for run in runs], axis=0) == pytest.approx(probabilities, abs=0.02)
    assert np.mean([run.mean[-1] for run in runs], axis=0) == pytest.approx(mean, abs=0.05)


def test_integrating_the_state_out_lowers_the_variance(target):
    model, _, observations = target
    plain = [particle_filter(model, observations, 500, random_state=i).log_evidence for i in range(60)]
    marginal = [rao_blackwell_filter(model, observations, 500, random_state=i).log_evidence for i in range(60)]
    # Known standard deviations 0.126 and 0.021: the variance ratio is 36; each is known to 9 % from 60 runs.
    assert np.std(plain) == pytest.approx(0.126, rel=0.5)
    assert np.std(marginal) == pytest.approx(0.021, rel=0.5)


def test_looking_ahead_lowers_the_variance_when_observations_tell_regimes_apart(informative):
    model, _, observations = informative
    variance = {
        proposal: np.var(
            [rao_blackwell_filter(model, observations, 100, proposal, random_state=i).log_evidence for i in range(60)]
        )
        for proposal in ("prior", "optimal")
    }
    assert variance["optimal"] < 0.7 * variance["prior"]


def test_one_regime_is_exactly_one_kalman_filter():
    rng = np.random.default_rng(0)
    A, C = 0.5 * rng.normal(size=(2, 2)), rng.normal(size=(3, 2))
    B, D = rng.normal(size=(2, 2)), rng.normal(size=(3, 3))
    switching = SwitchingLinearModel([[1.0]], [1.0], [A], [B], [C], [D], [1.0, 2.0], np.eye(2))
    # The first state of the linear model is the one that the first observation sees.
    linear = LinearGaussianModel(A, B @ B.T, C, D @ D.T, A @ [1.0, 2.0], A @ A.T + B @ B.T)
    _, observations = switching.sample(50, random_state=0)
    observations[4] = np.nan
    observations[7, 1] = np.nan
    exact = kalman_filter(linear, observations)
    for proposal in ("prior", "optimal"):
        result = rao_blackwell_filter(switching, observations, 3, proposal, random_state=0)
        assert result.log_evidence == pytest.approx(exact.log_evidence, abs=1e-9)
        assert result.mean == pytest.approx(exact.mean, abs=1e-9)
        assert result.covariance == pytest.approx(exact.covariance, abs=1e-9)
        assert result.ess == pytest.approx(np.full(50, 3.0))


def test_particle_filter_approaches_the_rao_blackwellised_one(informative):
    model, _, observations = informative
    log_evidence, probabilities, mean = enumerate_paths(model, observations)
    result = particle_filter(model, observations, 50_000, random_state=0)
    assert result.log_evidence == pytest.approx(log_evidence, abs=0.1)
    assert regime_probabilities(model, result)[-1] == pytest.approx(probabilities, abs=0.03)
    assert result.mean[-1, 1:] == pytest.approx(mean, abs=0.05)


def test_tracking_errors_have_the_known_order():
    # Known over 100 runs: misclassified 0.333 and 0.322, squared position error 22.6 and 20.7, lower in 83 % of runs.
    model = make_maneuvering_target()
    rows = []
    for i in range(12):
        states, observations = model.sample(100, random_state=i)
        plain = particle_filter(model, observations, 500, random_state=i)
        marginal = rao_blackwell_filter(model, observations, 500, random_state=i)
        row = []
        for probabilities, mean in (
            (regime_probabilities(model, plain), plain.mean[:, 1:]),
            (marginal.regime_probabilities, marginal.mean),
        ):
            row.append((probabilities.argmax(axis=1) != states[:, 0]).mean())
            row.append(np.square(mean - states[:, 1:])[:, [0, 2]].sum(axis=1).mean())
        rows.append(row)
    known = np.array([0.333, 22.6, 0.322, 20.7])
    rows = np.array(rows)
    # Within eight standard errors of these runs (and of the known ones): Student with 11 degrees of freedom, 3e-5.
    assert (np.abs(rows.mean(axis=0) - known) < 8 * rows.std(axis=0, ddof=1) * np.sqrt(1 / 12 + 1 / 100)).all()
    # With few particles the order is far from chance: log ratios of errors of -1.1 with a spread of 0.6, so that the
    # mean of sixteen runs is seven standard errors below 0.
    ratios = []
    for i in range(16):
        states, observations = model.sample(100, random_state=i)
        plain = particle_filter(model, observations, 50, random_state=i).mean[:, 1:]
        marginal = rao_blackwell_filter(model, observations, 50, random_state=i).mean
        errors = [np.square(mean - states[:, 1:])[:, [0, 2]].sum(axis=1).mean() for mean in (plain, marginal)]
        ratios.append(np.log(errors[1] / errors[0]))
    assert np.mean(ratios) < 0


def test_covariances_stay_symmetric_and_positive_in_a_stiff_system():
    model = make_slds_random(random_state=3)
    _, observations = model.sample(64, random_state=3)
    result = rao_blackwell_filter(model, observations, 128, random_state=0)
    for covariances in (result.covariance, result.particle_covariances):
        assert (covariances == np.swapaxes(covariances, 1, 2)).all()
        assert (np.linalg.eigvalsh(covariances) >= 0).all()
    assert result.regime_probabilities.sum(axis=1) == pytest.approx(np.ones(64))


def test_an_interrupted_filter_keeps_the_steps_done(target, monkeypatch):
    from pluri.dynamics.switching import rao_blackwell

    def interrupt(verbose, t, n_steps, increment):
        if t == 2:
            raise KeyboardInterrupt

    model, _, observations = target
    monkeypatch.setattr(rao_blackwell, "report", interrupt)
    with on_interrupt("keep"), pytest.warns(UserWarning, match="interrupted after 3 time steps"):
        result = rao_blackwell_filter(model, observations, 20, random_state=0)
    assert result.interrupted
    assert result.mean.shape == (3, 4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"transition": [[0.7, 0.2], [0.4, 0.6]]}, "transition must have rows that are not negative and add up to 1"),
        ({"emission": np.zeros((2, 1, 3))}, r"emission must have shape \(2, n, 2\), got \(2, 1, 3\)"),
        ({"emission_noise": np.zeros((2, 1, 1))}, "emission_noise in regime 0 must be positive definite"),
        ({"dynamics_input": np.zeros((2, 2, 4))}, r"dynamics_input must have shape \(2, 2, 1\)"),
    ],
)
def test_matrices_that_do_not_fit_are_refused_by_name(informative, change, message):
    fields = {name: getattr(informative[0], name) for name in SwitchingLinearModel.__dataclass_fields__}
    with pytest.raises(ValueError, match=message):
        SwitchingLinearModel(**fields | change)


def test_inputs_that_end_too_early_are_named(informative):
    model, _, observations = informative
    with pytest.raises(ValueError, match="inputs must have a row for every time step, got 6 and needed step 6"):
        rao_blackwell_filter(model, np.vstack([observations, observations]), 10, random_state=0)


def test_wrong_settings_are_refused(target):
    model, _, observations = target
    with pytest.raises(ValueError, match="proposal must be one of 'prior', 'optimal'"):
        rao_blackwell_filter(model, observations, proposal="guided")
    with pytest.raises(TypeError, match="model must be a SwitchingLinearModel"):
        rao_blackwell_filter(object(), observations)
