"""EM of switching systems: the M-step against numerical optimisation, sums that add up, a bound that never falls."""

import warnings
from dataclasses import fields, replace

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from sklearn.exceptions import ConvergenceWarning

from pluri.dynamics import SwitchingDynamicalSystem
from pluri.dynamics.switching.learning import SwitchingPrior, SwitchingProblem
from pluri.engine import ArraySource, Batch
from pluri.priors import Dirichlet, Sticky
from pluri.validation import as_generator


def problem_and_statistics(systems, seed, groups, noise):
    rng = as_generator(seed)
    params = systems.random(3, 2, 3, rng, groups=groups, noise=noise)
    X = np.concatenate([systems.draw(params, n, rng)[0] for n in (25, 1, 14)])
    X[5] = np.nan
    if noise != "full":
        X[rng.random(X.shape) < 0.2] = np.nan
    scales = {"steps": np.array([0.05, 0.02]), "first": np.array([0.7, 1.5])}
    prior = SwitchingPrior(Dirichlet(1.5), Sticky(3.0, 1.2), np.array([0.1, 0.2, 0.3]), 0.5, 2.0, **scales)
    problem = SwitchingProblem(None, prior, noise)
    batch = Batch(X, [25, 1, 14], weight=np.array([1.0, 2.5, 0.5]))
    return problem, params, problem.expect(params, batch)


def expected_objective(problem, params, stats, old):
    """E_q[log p(y, x, z)] + log prior as a function of the parameters, written out from the sums alone."""
    total = stats.start @ np.log(params.start) + (stats.transition * np.log(params.transition)).sum()

    def gaussian(count, scatter, covariance):
        return -0.5 * count * np.linalg.slogdet(covariance)[1] - 0.5 * np.trace(np.linalg.solve(covariance, scatter))

    for z in range(len(params.start)):
        W = np.column_stack([params.dynamics[z], params.dynamics_offset[z]])
        cross, inputs, outputs = stats.moves.cross[z], stats.moves.inputs[z], stats.moves.outputs[z]
        scatter = outputs - cross @ W.T - W @ cross.T + W @ inputs @ W.T
        total += gaussian(stats.moves.count[z], scatter, params.dynamics_covariance[z])
    mean = params.initial_mean[0]
    scatter = stats.first_squares - np.outer(stats.first, mean) - np.outer(mean, stats.first)
    total += gaussian(
        stats.n_sequences, scatter + stats.n_sequences * np.outer(mean, mean), params.initial_covariance[0]
    )
    g, m, _ = params.emission.shape
    sums = stats.sights
    for z in range(g):
        W = np.column_stack([params.emission[z], params.emission_offset[z] - old.emission_offset[z]])
        if problem.noise_type == "full":
            scatter = sums.outputs[z] - sums.cross[z] @ W.T - W @ sums.cross[z].T + W @ sums.inputs[z] @ W.T
            total += gaussian(sums.count[z], scatter, params.emission_covariance[z])
            continue
        for j in range(m):
            r, w = z * m + j, W[j : j + 1]
            scatter = sums.outputs[r] - sums.cross[r] @ w.T - w @ sums.cross[r].T + w @ sums.inputs[r] @ w.T
            total += gaussian(sums.count[r], scatter, params.emission_covariance[z, j : j + 1, j : j + 1])
    return total + problem.log_prior(params)


def moved(params, direction, step):
    """The parameters after a step of an unconstrained direction: logits, plain numbers, symmetric factors."""

    def tilted(rows, by):
        rows = rows * np.exp(step * by)
        return rows / rows.sum(axis=-1, keepdims=True)

    def scaled(covariances, by):
        factor = np.eye(covariances.shape[-1]) + step * by
        return factor @ covariances @ np.swapaxes(factor, -1, -2)

    shift = {name: getattr(params, name) + step * direction[name] for name in
             ("dynamics", "dynamics_offset", "emission", "emission_offset")}  # fmt: skip
    return replace(
        params,
        start=tilted(params.start, direction["start"]),
        transition=tilted(params.transition, direction["transition"]),
        dynamics_covariance=scaled(params.dynamics_covariance, direction["dynamics_covariance"]),
        emission_covariance=scaled(params.emission_covariance, direction["emission_covariance"]),
        initial_mean=params.initial_mean + step * direction["initial_mean"],
        initial_covariance=scaled(params.initial_covariance, direction["initial_covariance"]),
        **shift,
    )


@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("noise", ["diag", "isotropic", "full"])
def test_no_direction_leads_up_from_the_m_step(systems, noise, groups):
    problem, params, stats = problem_and_statistics(systems, 0, groups, noise)
    best = problem.maximize(stats, params)
    top = expected_objective(problem, best, stats, params)
    assert top > expected_objective(problem, params, stats, params)
    rng = as_generator(5)
    for _ in range(25):
        direction = {name: rng.standard_normal(np.shape(getattr(best, name))) for name in vars(best)}
        m = best.emission.shape[1]
        if noise == "diag":
            direction["emission_covariance"] = direction["emission_covariance"] * np.eye(m)
        elif noise == "isotropic":
            direction["emission_covariance"] = direction["emission_covariance"][:, :1, :1] * np.eye(m)
        for name in ("initial_mean", "initial_covariance"):  # the same for all regimes
            direction[name] = np.broadcast_to(direction[name][:1], direction[name].shape)

        def along(step, direction=direction):
            return expected_objective(problem, moved(best, direction, float(step[0])), stats, params)

        slope = approx_fprime(np.zeros(1), along, 1e-6)[0]
        curvature = (along([1e-3]) - 2 * along([0.0]) + along([-1e-3])) / 1e-6
        assert abs(slope) < 1e-3 * (1 + abs(curvature))
        assert curvature < 0


@pytest.mark.parametrize("letters", ["", "st", "a", "q", "c", "r", "i", "acr"])
def test_what_is_not_asked_for_stays_as_it_is(systems, letters):
    problem, params, stats = problem_and_statistics(systems, 1, 1, "diag")
    fields = {"s": ["start"], "t": ["transition"], "a": ["dynamics", "dynamics_offset"], "q": ["dynamics_covariance"],
              "c": ["emission", "emission_offset"], "r": ["emission_covariance"],
              "i": ["initial_mean", "initial_covariance"]}  # fmt: skip
    partial = replace(problem, update=letters)
    new = partial.maximize(stats, params)
    for letter, names in fields.items():
        for name in names:
            same = np.array_equal(getattr(new, name), getattr(params, name))
            assert same == (letter not in letters), name
    assert expected_objective(partial, new, stats, params) >= expected_objective(partial, params, stats, params) - 1e-9


def test_statistics_of_batches_add_up_to_those_of_all(systems):
    problem, _, _ = problem_and_statistics(systems, 2, 3, "diag")
    rng = as_generator(2)
    params = systems.random(3, 2, 3, rng, groups=3, noise="diag")
    X = np.concatenate([systems.draw(params, n, rng)[0] for n in (25, 1, 14)])
    weight = np.array([1.0, 2.5, 0.0])
    params = replace(params, kept=np.full((40, 3), np.nan))
    whole = ArraySource(X, [25, 1, 14], sample_weight=weight, labels=np.arange(40), batch_size=100)
    parts = ArraySource(X, [25, 1, 14], sample_weight=weight, labels=np.arange(40), batch_size=1)
    (one,) = [problem.expect(params, lazy.load()) for lazy in whole.batches()]
    several = [problem.expect(params, lazy.load()) for lazy in parts.batches()]
    assert len(several) == 3
    total = several[0] + several[1] + several[2]
    for name in ("log_likelihood", "start", "transition", "occupancy", "first", "first_squares", "n_sequences"):
        np.testing.assert_allclose(getattr(total, name), getattr(one, name), rtol=1e-9, atol=1e-9)
    for sums in ("moves", "sights"):
        for name in ("count", "inputs", "cross", "outputs"):
            found, expected = getattr(getattr(total, sums), name), getattr(getattr(one, sums), name)
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(problem.maximize(total, params).kept, problem.maximize(one, params).kept, atol=1e-9)


@pytest.mark.filterwarnings("ignore::pluri.dynamics.DeadRegimeWarning")  # three regimes of 71 steps of two
@pytest.mark.parametrize("emission_type", ["shared", "regime"])
@pytest.mark.parametrize("noise_type", ["diag", "isotropic", "full"])
@pytest.mark.parametrize("seed", range(3))
def test_the_bound_never_falls(systems, seed, noise_type, emission_type):
    rng = as_generator(seed)
    params = systems.random(2, 2, 4, rng)
    X = [systems.draw(params, n, rng)[0] for n in (40, 1, 30)]
    if noise_type != "full":
        for part in X:
            part[rng.random(part.shape) < 0.2] = np.nan
    model = SwitchingDynamicalSystem(
        3, 2, noise_type=noise_type, emission_type=emission_type, max_iter=25, tol=0.0, random_state=seed
    ).fit(X)
    objective = model.history_.objective
    assert (np.diff(objective) > -1e-8 * np.abs(objective[1:])).all()


def test_threads_learn_what_one_process_learns(systems):
    rng = as_generator(4)
    params = systems.random(2, 2, 3, rng)
    X = [systems.draw(params, 30, rng)[0] for _ in range(6)]
    fits = [SwitchingDynamicalSystem(2, 2, max_iter=5, tol=0.0, random_state=0, engine=engine, n_jobs=n).fit(X)
            for engine, n in (("serial", None), ("threads", 2))]  # fmt: skip
    np.testing.assert_allclose(fits[0].history_.objective, fits[1].history_.objective, rtol=1e-9)
    np.testing.assert_allclose(fits[0].dynamics_, fits[1].dynamics_, atol=1e-8)


def test_a_weight_of_two_is_a_sequence_twice(systems):
    rng = as_generator(6)
    params = systems.random(2, 1, 2, rng)
    X = [systems.draw(params, 20, rng)[0] for _ in range(3)]
    settings = {"max_iter": 8, "tol": 0.0, "params": "staqcri", "random_state": 0}
    known = {f"{name}_init": value for name, value in
             (("dynamics", params.dynamics), ("emission", params.emission), ("startprob", params.start),
              ("dynamics_covariance", params.dynamics_covariance), ("emission_offset", params.emission_offset),
              ("emission_covariance", params.emission_covariance), ("transmat", params.transition),
              ("dynamics_offset", params.dynamics_offset), ("initial_mean", params.initial_mean),
              ("initial_covariance", params.initial_covariance))}  # fmt: skip
    one = SwitchingDynamicalSystem(2, 1, **settings, **known).fit(X, sequence_weight=[1.0, 2.0, 0.0])
    two = SwitchingDynamicalSystem(2, 1, **settings, **known).fit([X[0], X[1], X[1]])
    np.testing.assert_allclose(one.dynamics_, two.dynamics_, atol=1e-7)
    np.testing.assert_allclose(one.history_.objective, two.history_.objective, rtol=1e-8)


@pytest.mark.parametrize(("n_regimes", "times"), [(1, [0, 1, 2, 2]), (2, [0, 1, 1, 0])])
def test_weights_count_where_the_fit_starts(systems, n_regimes, times):
    rng = as_generator(8)
    params = systems.random(2, 2, 3, rng)
    X = [systems.draw(params, 30, rng)[0] for _ in range(4)]
    X[2][3:6, 1] = np.nan
    settings = {"max_iter": 4, "tol": 0.0, "random_state": 0}
    weighted = SwitchingDynamicalSystem(n_regimes, 2, **settings).fit(X, sequence_weight=times)
    written_out = SwitchingDynamicalSystem(n_regimes, 2, **settings).fit([X[i] for i in np.repeat(range(4), times)])
    np.testing.assert_allclose(weighted.history_.objective, written_out.history_.objective, rtol=1e-8)
    # Components may come out with another sign.
    np.testing.assert_allclose(np.abs(weighted.dynamics_), np.abs(written_out.dynamics_), atol=1e-6)


def test_the_bound_never_falls_from_parameters_that_the_m_step_could_not_give(systems):
    # Noise with correlations and a first state that depends on the regime are learned without either.
    rng = as_generator(7)
    params = systems.random(2, 2, 3, rng, noise="full")
    X = [systems.draw(params, 25, rng)[0] for _ in range(3)]
    apart = {"initial_mean_init": [[3.0, 0.0], [-3.0, 1.0]], "emission_covariance_init": params.emission_covariance}
    for noise_type in ("diag", "isotropic"):
        settings = {"noise_type": noise_type, "max_iter": 10, "tol": 0.0, "random_state": 0}
        model = SwitchingDynamicalSystem(2, 2, **settings, **apart).fit(X)
        assert (np.diff(model.history_.objective) > -1e-7).all()


@pytest.mark.parametrize("noise", ["diag", "isotropic", "full"])
@pytest.mark.parametrize("groups", [1, 3])
def test_unpack_is_the_inverse_of_pack(systems, noise, groups):
    problem, params, _ = problem_and_statistics(systems, 5, groups, noise)
    params = problem.conforming(params)
    vector = problem.pack(params)
    assert np.isfinite(vector[vector > -np.inf]).all()
    again = problem.unpack(vector, params)
    for field in fields(params):
        np.testing.assert_allclose(getattr(again, field.name), getattr(params, field.name), rtol=1e-9, atol=1e-12)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("acceleration", ["squarem", "anderson"])
def test_extrapolation_depends_on_no_unit_and_never_lowers_the_bound(systems, acceleration):
    rng = as_generator(3)
    X = systems.draw(systems.random(2, 2, 3, rng), 80, rng)[0]
    settings = {"max_iter": 12, "tol": 0.0, "random_state": 0, "acceleration": acceleration}
    unit = np.array([1e-3, 1.0, 50.0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        plain, scaled = (SwitchingDynamicalSystem(2, 2, **settings).fit(X * factor) for factor in (1.0, unit))
    for model in (plain, scaled):
        gains = np.diff(model.history_.objective)
        assert (gains > -1e-7 * np.abs(model.history_.objective[1:])).all()
    np.testing.assert_allclose(scaled.emission_ / unit[:, None], plain.emission_, rtol=1e-4, atol=1e-6)
