"""EM of linear dynamical systems: the objective, its M-step, and statistics that add up."""

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pluri.dynamics.linear.learning import LinearProblem
from pluri.dynamics.linear.parameters import LETTERS, STABLE_RADIUS, LinearParameters, spectral_radius
from pluri.dynamics.linear.updates import FirstStatePrior
from pluri.engine import Batch

LEARNED = "".join(LETTERS)


def covariance(rng, size):
    factor = rng.normal(size=(size, size + 1))
    return factor @ factor.T / size + 0.2 * np.eye(size)


def make_problem(rng, d, n, q, kind, *, learned=LEARNED, stable=False, weight=1.0):
    A = rng.normal(size=(d, d))
    A *= rng.uniform(0.3, 0.99) / spectral_radius(A)
    R = {
        "diag": rng.uniform(0.3, 2.0, size=n),
        "spherical": np.full(n, rng.uniform(0.3, 2.0)),
        "full": covariance(rng, n),
    }[kind]
    start = LinearParameters(
        rng.normal(size=d), covariance(rng, d), A, rng.normal(size=(d, q)), rng.normal(size=d), covariance(rng, d),
        rng.normal(size=(n, d)), rng.normal(size=(n, q)), rng.normal(size=n), R,
    )  # fmt: skip
    prior = FirstStatePrior(weight, rng.normal(size=d), covariance(rng, d))
    learned = "".join(letter for letter in learned if q or letter not in "BD")
    return LinearProblem(
        start, learned, "", kind, rng.uniform(0.0, 0.1, size=n), rng.uniform(0.5, 2.0, size=n), prior, stable
    )


def make_batch(rng, n, q, *, holes, growth=1.0):
    lengths = rng.integers(0, 12, size=4)
    lengths[0] = 8
    rows = int(lengths.sum())
    outputs = 2 * rng.normal(size=(rows, n)) * growth ** np.arange(rows)[:, None]
    outputs[rng.random(outputs.shape) < holes] = np.nan
    return Batch(np.concatenate([outputs, rng.normal(size=(rows, q))], axis=1), lengths, rng.uniform(0.5, 2, size=4))


def objective(problem, params, batch):
    return problem.expect(params, batch).log_likelihood + problem.log_prior(params)


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(["diag", "full", "spherical"]),
    holes=st.sampled_from([0.0, 0.3, 0.7]),
    q=st.integers(0, 2),
    stable=st.booleans(),
    learned=st.sampled_from([LEARNED, "AQ", "CR", "mPb", "BDQR", "ACQR"]),
)
def test_an_iteration_never_lowers_the_objective(seed, kind, holes, q, stable, learned):
    rng = np.random.default_rng(seed)
    d, n = rng.integers(1, 4), rng.integers(1, 4)
    problem = make_problem(rng, d, n, q, kind, learned=learned, stable=stable, weight=rng.choice([0.0, 1.0]))
    batch = make_batch(rng, n, q, holes=holes, growth=rng.choice([1.0, 1.2]))
    params, last = problem.start, -np.inf
    for _ in range(4):
        stats = problem.expect(params, batch)
        now = stats.log_likelihood + problem.log_prior(params)
        assert now >= last - 1e-8 * max(1.0, abs(last))
        new = problem.maximize(stats, params)
        for letter in LETTERS:
            if letter not in problem.learned:
                assert getattr(new, letter) == pytest.approx(getattr(params, letter), abs=0)
        assert not stable or "A" not in learned or spectral_radius(new.A) <= STABLE_RADIUS + 1e-12
        params, last = new, now


def expected_log_joint(problem, params, batch, moments):
    """E[log p(x, y)] + log prior for posterior moments of whole paths; with complete or independent outputs."""
    n, d = len(params.c), len(params.m)
    total = 0.0

    def term(mean, spread, noise):
        return -0.5 * (np.linalg.slogdet(noise)[1] + np.trace(np.linalg.solve(noise, np.outer(mean, mean) + spread)))

    for s, (begin, end) in enumerate(itertools.pairwise(batch.offsets)):
        mean, spread = moments[s]
        for t in range(end - begin):
            row = batch.X[begin + t]
            y, u = row[:n], row[n:]
            here, x = slice(t * d, (t + 1) * d), mean[t * d : (t + 1) * d]
            part = term(x - params.m, spread[here, here], params.P) if t == 0 else 0.0
            if t + 1 < end - begin:
                later = slice((t + 1) * d, (t + 2) * d)
                map_ = np.concatenate([-params.A, np.eye(d)], axis=1)
                both = np.r_[here, later]
                w = mean[later] - params.A @ x - params.B @ u - params.b
                part += term(w, map_ @ spread[np.ix_(both, both)] @ map_.T, params.Q)
            seen = ~np.isnan(y)
            if seen.any():
                e = (y - params.C @ x - params.D @ u - params.c)[seen]
                C, R = params.C[seen], params.full_noise[np.ix_(seen, seen)]
                part += term(e, C @ spread[here, here] @ C.T, R)
            total += batch.weight[s] * part
    return total + problem.log_prior(params)


@pytest.mark.parametrize(("kind", "holes"), [("diag", 0.0), ("diag", 0.4), ("spherical", 0.4), ("full", 0.0)])
@pytest.mark.parametrize("learned", [LEARNED, "ABCR", "mQDc"])
def test_m_step_is_where_the_expected_objective_is_flat_and_highest(kind, holes, learned, dense):
    rng = np.random.default_rng(3)
    problem = make_problem(rng, 2, 3, 1, kind, learned=learned)
    batch = make_batch(rng, 3, 1, holes=holes)
    p = problem.start
    moments = {}
    for s, (begin, end) in enumerate(itertools.pairwise(batch.offsets)):
        y, u = batch.X[begin:end, :3], batch.X[begin:end, 3:]
        if end > begin:
            joint = dense.joint(p.m, p.P, p.A, p.b + u @ p.B.T, p.Q, p.C, p.c + u @ p.D.T, p.full_noise)
            moments[s] = joint.condition(y)[:2]
        else:
            moments[s] = (np.zeros(0), np.zeros((0, 0)))
    best = problem.maximize(problem.expect(p, batch), p)
    vector = problem.pack(best)

    def value(at):
        return expected_log_joint(problem, problem.unpack(at, best), batch, moments)

    peak, step = value(vector), 1e-4
    for i in range(len(vector)):
        move = np.zeros(len(vector))
        move[i] = step
        above, below = value(vector + move), value(vector - move)
        curvature = max(2 * peak - above - below, 0.0)
        assert abs(above - below) <= 1e-3 * curvature + 1e-8 * abs(peak)
        assert max(above, below) <= peak + 1e-9 * abs(peak)


@pytest.mark.parametrize("kind", ["diag", "full", "spherical"])
def test_statistics_of_batches_add_up(kind):
    rng = np.random.default_rng(0)
    problem = make_problem(rng, 2, 3, 1, kind)
    one, other = make_batch(rng, 3, 1, holes=0.3), make_batch(rng, 3, 1, holes=0.0)
    both = Batch(
        np.concatenate([one.X, other.X]),
        np.concatenate([one.lengths, other.lengths]),
        np.concatenate([one.weight, other.weight]),
    )
    total, whole = problem.expect(problem.start, one) + problem.expect(problem.start, other), None
    whole = problem.expect(problem.start, both)
    for field in dataclasses.fields(whole):
        if field.name != "emission":
            assert getattr(total, field.name) == pytest.approx(getattr(whole, field.name), rel=1e-10, abs=1e-10)
    new = problem.maximize(total, problem.start), problem.maximize(whole, problem.start)
    for letter in LETTERS:
        assert getattr(new[0], letter) == pytest.approx(getattr(new[1], letter), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("kind", ["diag", "full", "spherical"])
def test_a_weight_of_two_is_the_sequence_twice(kind):
    rng = np.random.default_rng(1)
    problem = make_problem(rng, 2, 2, 0, kind)
    rows = rng.normal(size=(11, 2))
    rows[3, 0] = np.nan
    twice = Batch(np.concatenate([rows[:6], rows]), [6, 6, 5], np.array([1.0, 1.0, 1.0]))
    weighted = Batch(rows, [6, 5], np.array([2.0, 1.0]))
    found = [problem.maximize(problem.expect(problem.start, batch), problem.start) for batch in (twice, weighted)]
    for letter in LETTERS:
        assert getattr(found[0], letter) == pytest.approx(getattr(found[1], letter), rel=1e-10)


@pytest.mark.parametrize("kind", ["diag", "full", "spherical"])
def test_unpack_is_the_inverse_of_pack(kind):
    rng = np.random.default_rng(2)
    problem = make_problem(rng, 3, 2, 1, kind)
    back = problem.unpack(problem.pack(problem.start), problem.start)
    for letter in LETTERS:
        assert getattr(back, letter) == pytest.approx(getattr(problem.start, letter), rel=1e-9, abs=1e-9)


def test_a_singular_covariance_can_be_packed():
    rng = np.random.default_rng(3)
    problem = make_problem(rng, 2, 2, 0, "diag")
    flat = dataclasses.replace(problem.start, Q=np.array([[1.0, 2.0], [2.0, 4.0]]))
    assert pytest.approx(flat.Q, abs=1e-7) == problem.unpack(problem.pack(flat), flat).Q
