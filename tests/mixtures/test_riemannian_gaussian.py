"""Gaussian mixtures fitted on the manifold of positive definite matrices."""

import warnings

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from sklearn.exceptions import ConvergenceWarning

from pluri import on_interrupt
from pluri.datasets.separated_gaussians import make_separated_gaussians
from pluri.mixtures.riemannian.augmented import AugmentedMixture, MixturePoint, located
from pluri.mixtures.riemannian.baselines import cholesky_problem, original_problem
from pluri.mixtures.riemannian.coordinates import Penalty, augment, read_off
from pluri.mixtures.riemannian.data_pass import DataPass
from pluri.mixtures.riemannian.gaussian import fit_riemannian
from pluri.mixtures.riemannian.stochastic import RiemannianSGD
from pluri.optimize.manifolds import SPD


def log_likelihood(X, weights, means, covariances):
    parts = [
        np.log(w) + multivariate_normal.logpdf(X, m, c) for w, m, c in zip(weights, means, covariances, strict=True)
    ]
    return logsumexp(np.array(parts).reshape(len(weights), len(X)), axis=0).mean()


def em_step(X, weights, means, covariances):
    parts = [
        np.log(w) + multivariate_normal.logpdf(X, m, c) for w, m, c in zip(weights, means, covariances, strict=True)
    ]
    shares = np.exp(parts - logsumexp(parts, axis=0))
    counts = shares.sum(axis=1)
    means = shares @ X / counts[:, None]
    covariances = np.array(
        [(r[:, None] * (X - m)).T @ (X - m) / n for r, m, n in zip(shares, means, counts, strict=True)]
    )
    return counts / len(X), means, covariances


def em(X, start, tol=1e-6, max_iter=1500):
    values = [-np.inf]
    while len(values) <= max_iter:
        values.append(log_likelihood(X, *start))
        if values[-1] - values[-2] < tol:
            break
        start = em_step(X, *start)
    return values[-1], len(values) - 1, start


def near_start(X, n_components, draw):
    """Rows as means, everything else shared: no library needed."""
    rng = np.random.default_rng(draw)
    chosen = X[rng.choice(len(X), n_components, replace=False)]
    labels = ((X[:, None] - chosen) ** 2).sum(axis=2).argmin(axis=1)
    pooled = np.cov(X.T, bias=True).reshape(X.shape[1], X.shape[1])
    counts = np.bincount(labels, minlength=n_components)
    means = np.array([X[labels == j].mean(axis=0) for j in range(n_components)])
    return counts / len(X), means, np.repeat(pooled[None], n_components, axis=0)


@pytest.fixture(scope="module")
def overlapping():
    data = make_separated_gaussians(600, 3, 3, separation=1.0, eccentricity=3.0, random_state=3)
    return data.X, near_start(data.X, 3, 0)


def small_mixture(rng, *, prior=0.3, concentration=0.2, **settings):
    X = rng.standard_normal((40, 2)) * [1.0, 2.0]
    rows = np.column_stack([X, np.ones(40)])
    weights = rng.uniform(0.5, 1.5, size=40)
    matrices = SPD(3, 2).random_point(rng)
    second = SPD(3).random_point(rng)
    data = DataPass(rows, weights / weights.sum(), 2)
    penalty = Penalty(prior * second, prior, concentration)
    mixture = AugmentedMixture(data, penalty, matrices, np.log([0.3, 0.7]), **settings)
    return mixture, rows, weights / weights.sum(), matrices


def plain_objective(rows, weights, matrices, log_weights, penalty):
    """The formula, with determinants and inverses."""
    m = rows.shape[1]
    parts = []
    total = -penalty.concentration * log_weights.sum()
    for S, log_weight in zip(matrices, log_weights, strict=True):
        log_q = 0.5 * np.log(2 * np.pi) + 0.5 + multivariate_normal.logpdf(rows, np.zeros(m), S)
        parts.append(log_weight + log_q)
        total += 0.5 * (penalty.weight * np.linalg.slogdet(S)[1] + np.trace(penalty.second @ np.linalg.inv(S)))
    return total - weights @ logsumexp(parts, axis=0)


def test_augmented_density_is_the_normal_one_times_a_factor_of_the_scale():
    rng = np.random.default_rng(0)
    S = SPD(4).random_point(rng)
    means, covariances, scales = read_off(S[None])
    X = rng.standard_normal((20, 3))
    rows = np.column_stack([X, np.ones(20)])
    left = 0.5 * np.log(2 * np.pi) + 0.5 + multivariate_normal.logpdf(rows, np.zeros(4), S)
    normal = multivariate_normal.logpdf(X, means[0], covariances[0])
    np.testing.assert_allclose(left, normal - 0.5 * np.log(scales[0]) + 0.5 * (1 - 1 / scales[0]), atol=1e-11)
    assert (left <= normal + 1e-12).all()
    np.testing.assert_allclose(read_off(augment(means, covariances))[0], means, atol=1e-12)


def test_objective_equals_the_formula_and_its_gradient_finite_differences():
    rng = np.random.default_rng(1)
    mixture, rows, weights, matrices = small_mixture(rng)
    value, slopes = mixture.evaluate()
    assert value == pytest.approx(
        plain_objective(rows, weights, matrices, mixture.point.log_weights, mixture.penalty), abs=1e-12
    )
    frame = mixture.point.frames
    h = 1e-5
    for _ in range(10):
        noise = rng.standard_normal((2, 3, 3))
        z = noise + noise.transpose(0, 2, 1)
        logit = rng.standard_normal(1)
        ends = []
        for step in (h, -h):
            moved = SPD(3, 2).point(SPD(3, 2).move(frame, step * z.ravel()))
            logits = mixture.point.logits + step * np.append(logit, 0.0)
            ends.append(plain_objective(rows, weights, moved, logits - logsumexp(logits), mixture.penalty))
        numeric = (ends[0] - ends[1]) / (2 * h)
        assert slopes @ np.concatenate([z.ravel(), logit]) == pytest.approx(numeric, rel=1e-6, abs=1e-8)


def test_cheap_trials_equal_full_ones():
    rng = np.random.default_rng(2)
    full, *_ = small_mixture(np.random.default_rng(7), cheap_trials=False)
    cheap, *_ = small_mixture(np.random.default_rng(7), cheap_trials=True)
    for mixture in (full, cheap):
        mixture.evaluate()
    for _ in range(3):
        noise = rng.standard_normal((2, 3, 3))
        direction = np.append((noise + noise.transpose(0, 2, 1)).ravel(), rng.standard_normal())
        one, two = full.along(direction), cheap.along(direction)
        for step in (0.0, 0.03, 0.2):
            np.testing.assert_allclose(one(step), two(step), rtol=1e-10, atol=1e-12)
        before = full.n_evaluations, cheap.n_evaluations
        ends = full.advance(0.2), cheap.advance(0.2)
        assert (full.n_evaluations - before[0], cheap.n_evaluations - before[1]) == (0, 1)
        assert ends[0][0] == pytest.approx(ends[1][0], rel=1e-12)
        np.testing.assert_allclose(ends[0][1], ends[1][1], atol=1e-10)
        np.testing.assert_allclose(
            full.point.frames @ full.point.inverse, np.broadcast_to(np.eye(3), (2, 3, 3)), atol=1e-10
        )


@pytest.mark.parametrize("make", [original_problem, cholesky_problem])
def test_gradients_of_the_other_parametrisations_match_finite_differences(make):
    rng = np.random.default_rng(3)
    mixture, *_ = small_mixture(rng)
    problem = make(mixture)
    _, slopes = problem.evaluate()
    for _ in range(5):
        direction = rng.standard_normal(slopes.shape)
        if make is original_problem:
            direction[4:12] = (
                direction[4:12].reshape(2, 2, 2) + direction[4:12].reshape(2, 2, 2).swapaxes(1, 2)
            ).ravel()
        else:
            direction[:18] = np.tril(direction[:18].reshape(2, 3, 3)).ravel()
        phi = problem.along(direction)
        numeric = (phi(1e-5)[0] - phi(-1e-5)[0]) / 2e-5
        assert slopes @ direction == pytest.approx(numeric, rel=1e-5, abs=1e-8)


def test_augmented_likelihood_of_one_gaussian_is_geodesically_concave():
    rng = np.random.default_rng(4)
    manifold = SPD(4)
    rows = np.column_stack([rng.standard_normal((30, 3)), np.ones(30)])

    def negative(S):
        return -multivariate_normal.logpdf(rows, np.zeros(4), S).sum()

    for _ in range(300):
        first, second = manifold.random_point(rng), manifold.random_point(rng)
        left, middle, right = (negative(manifold.geodesic(first, second, t)) for t in (0.3, 0.5, 0.7))
        assert left + right - 2 * middle >= -1e-9 * abs(middle)


def test_ordinary_likelihood_is_not_the_counter_example_has_second_derivative_minus_half():
    def negative(a):
        return -multivariate_normal.logpdf(0.0, 1 + a, np.exp(a))

    h = 1e-4
    assert (negative(h) + negative(-h) - 2 * negative(0.0)) / h**2 == pytest.approx(-0.5, abs=1e-6)


@pytest.mark.parametrize("method", ["lbfgs", "cg"])
@pytest.mark.parametrize("lead", [0, None])
def test_one_component_gives_sample_mean_and_covariance(method, lead):
    rng = np.random.default_rng(5)
    X = rng.standard_normal((100, 4)) @ rng.standard_normal((4, 4)) + 10.0
    start = [1.0], X[:1] + 30.0, [SPD(4).random_point(rng)]
    fit = fit_riemannian(X, None, *start, method=method, lead=lead, tol=1e-12)
    np.testing.assert_allclose(fit.means[0], X.mean(axis=0), atol=1e-5)
    np.testing.assert_allclose(fit.covariances[0], np.cov(X.T, bias=True), atol=1e-4)
    np.testing.assert_allclose(fit.scales, 1.0, atol=1e-5)


def test_gradient_points_to_the_em_step_and_vanishes_at_its_fixed_point(overlapping):
    X, start = overlapping
    rows = np.column_stack([X, np.ones(len(X))])
    none = Penalty(np.zeros((4, 4)), 0.0, 0.0)
    mixture = AugmentedMixture(DataPass(rows, None, 3), none, augment(*start[1:]), np.log(start[0]))
    _, slopes = mixture.evaluate()
    stepped = em_step(X, *start)
    targets = augment(*stepped[1:])
    for j in range(3):
        block = slopes[16 * j : 16 * (j + 1)].reshape(4, 4)
        gradient = mixture.point.frames[j] @ block @ mixture.point.frames[j].T
        current = augment(*start[1:])[j]
        np.testing.assert_allclose(-gradient, 0.5 * stepped[0][j] * (targets[j] - current), atol=1e-10)
    np.testing.assert_allclose(slopes[48:], (start[0] - stepped[0])[:2], atol=1e-12)
    moved, _ = mixture.em_step()
    got = moved.read_off()
    for ours, reference in zip(got, (*stepped, np.ones(3)), strict=True):
        np.testing.assert_allclose(ours, reference, atol=1e-9)
    _, _, fixed = em(X, start, tol=1e-13, max_iter=4000)
    at_fixed = AugmentedMixture(DataPass(rows, None, 3), none, augment(*fixed[1:]), np.log(fixed[0]))
    assert np.abs(at_fixed.evaluate()[1]).max() < 1e-5


def test_scales_are_one_at_the_end_and_dropping_them_only_raises_the_likelihood():
    rng = np.random.default_rng(6)
    mixture, *_ = small_mixture(rng, prior=0.0, concentration=0.0)
    value, _ = mixture.evaluate()
    w, m, c, s = mixture.point.read_off()
    assert np.abs(s - 1).max() > 0.1
    assert mixture.visit(located(augment(m, c), np.log(w))).value <= value
    data = make_separated_gaussians(400, 2, 2, separation=1.0, random_state=0)
    fit = fit_riemannian(data.X, None, *near_start(data.X, 2, 0), lead=0, preconditioned=False)
    assert np.abs(fit.scales - 1).max() < 1e-2
    assert fit.lower_bound >= -fit.history["objective"][-1] - 1e-12
    assert fit.lower_bound == pytest.approx(log_likelihood(data.X, fit.weights, fit.means, fit.covariances), abs=1e-9)


@pytest.mark.parametrize("lead", [0, None])
def test_objective_never_rises_and_steps_satisfy_the_conditions(overlapping, lead):
    X, start = overlapping
    fit = fit_riemannian(X, None, *start, lead=lead, tol=1e-9)
    history = fit.history
    change = np.diff(history["objective"])
    assert (change <= 1e-12).all()
    descent = history["slope"][1:] < 0
    assert descent.any()
    armijo = 1e-4 * history["step"][1:] * history["slope"][1:]
    assert (change[descent] <= armijo[descent] + 1e-12).all()
    assert fit.n_evaluations == history["evaluations"][-1]
    assert (np.diff(history["evaluations"]) >= 1).all()


@pytest.mark.parametrize("method", ["lbfgs", "cg"])
def test_reaches_what_em_reaches_in_fewer_passes_where_components_overlap(method):
    # On one data set: on one of ten the two end at different optima.
    data = make_separated_gaussians(2000, 5, 2, separation=0.6, random_state=np.random.default_rng(3))
    start = near_start(data.X, 2, 1)
    value, n_iter, _ = em(data.X, start)
    fit = fit_riemannian(data.X, None, *start, method=method)
    assert fit.converged
    assert fit.lower_bound >= value - 1e-4
    assert fit.n_evaluations < n_iter


def test_separated_components_take_a_few_steps():
    data = make_separated_gaussians(500, 5, 2, separation=5.0, random_state=np.random.default_rng(0))
    start = near_start(data.X, 2, 4)
    value, n_iter, _ = em(data.X, start)
    fit = fit_riemannian(data.X, None, *start)
    assert max(n_iter, fit.n_iter) <= 5
    assert fit.lower_bound == pytest.approx(value, abs=1e-5)


@pytest.mark.parametrize("parametrization", ["original", "cholesky"])
@pytest.mark.parametrize("method", ["lbfgs", "cg"])
def test_other_parametrisations_have_the_same_optimum(overlapping, parametrization, method):
    data = make_separated_gaussians(400, 2, 2, separation=3.0, eccentricity=3.0, random_state=1)
    start = near_start(data.X, 2, 3)
    reference = fit_riemannian(data.X, None, *start, tol=1e-10)
    fit = fit_riemannian(
        data.X, None, *start, parametrization=parametrization, method=method, tol=1e-10,
        covariance_prior_weight=0.0,
    )  # fmt: skip
    assert fit.lower_bound == pytest.approx(reference.lower_bound, abs=1e-6)
    np.testing.assert_allclose(fit.means, reference.means, atol=1e-3)


def test_fit_follows_affine_maps_of_the_data(overlapping):
    X, (weights, means, covariances) = overlapping
    A = np.array([[2.0, 0.3, 0.0], [0.0, 50.0, 1.0], [0.1, 0.0, 0.02]])
    shift = np.array([1000.0, -5.0, 0.0])
    plain = fit_riemannian(X, None, weights, means, covariances)
    mapped = fit_riemannian(X @ A.T + shift, None, weights, means @ A.T + shift, A @ covariances @ A.T)
    assert mapped.n_evaluations == plain.n_evaluations
    np.testing.assert_allclose(mapped.weights, plain.weights, rtol=1e-6)
    np.testing.assert_allclose(mapped.means, plain.means @ A.T + shift, rtol=1e-6)
    np.testing.assert_allclose(mapped.covariances, A @ plain.covariances @ A.T, rtol=1e-4, atol=1e-6)
    assert mapped.lower_bound == pytest.approx(plain.lower_bound - np.linalg.slogdet(A)[1], abs=1e-7)


def test_fit_follows_permutations_of_components_and_rows(overlapping):
    X, (weights, means, covariances) = overlapping
    order, rows = [2, 0, 1], np.random.default_rng(0).permutation(len(X))
    plain = fit_riemannian(X, None, weights, means, covariances)
    turned = fit_riemannian(X[rows], None, weights[order], means[order], covariances[order])
    np.testing.assert_allclose(turned.weights, plain.weights[order], rtol=1e-5)
    np.testing.assert_allclose(turned.means, plain.means[order], atol=1e-5)


def test_weight_two_equals_two_copies_and_weight_zero_none(overlapping):
    X, start = overlapping
    count = np.random.default_rng(0).integers(0, 3, size=len(X))
    weighted = fit_riemannian(X, count.astype(float), *start, covariance_prior_weight=5.0, weight_concentration=2.0)
    copied = fit_riemannian(
        np.repeat(X, count, axis=0), None, *start, covariance_prior_weight=5.0, weight_concentration=2.0
    )
    np.testing.assert_allclose(weighted.means, copied.means, atol=1e-7)
    assert weighted.objective == pytest.approx(copied.objective, abs=1e-10)


def test_threads_and_blocks_change_nothing():
    data = make_separated_gaussians(3000, 4, 3, random_state=0)
    rows = np.column_stack([data.X, np.ones(3000)])
    inverse = np.linalg.inv(np.linalg.cholesky(augment(data.means, data.covariances)))
    offsets = np.array([0.1, -0.2, 0.3])
    one, many = DataPass(rows, None, 3), DataPass(rows, None, 3, n_jobs=2)
    one.blocks = [slice(0, 3000)]
    many.blocks = [slice(begin, begin + 700) for begin in range(0, 3000, 700)]
    with many.threads():
        found = many.moments(inverse, offsets)
    for ours, reference in zip(found, one.moments(inverse, offsets), strict=True):
        np.testing.assert_allclose(ours, reference, rtol=1e-11, atol=1e-13)


def test_heavy_prior_decides_the_matrices():
    rng = np.random.default_rng(8)
    X = rng.standard_normal((50, 2))
    scatter = np.array([[3.0, 1.0], [1.0, 2.0]])
    weight = 1e8
    fit = fit_riemannian(
        X, None, [0.5, 0.5], X[:2], [np.eye(2), 2 * np.eye(2)], covariance_prior=weight * scatter,
        covariance_prior_mean=[1.0, -1.0], covariance_prior_weight=weight,
    )  # fmt: skip
    np.testing.assert_allclose(fit.means, [[1.0, -1.0]] * 2, atol=1e-4)
    np.testing.assert_allclose(fit.covariances, [scatter] * 2, atol=1e-3)
    np.testing.assert_allclose(fit.scales, 1.0, atol=1e-6)


def test_prior_is_pseudo_observations():
    """One component: nu points of mean m and scatter Psi join the data."""
    rng = np.random.default_rng(9)
    X = rng.standard_normal((30, 2))
    extra = rng.standard_normal((10, 2)) + 2.0
    m = extra.mean(axis=0)
    scatter = (extra - m).T @ (extra - m)
    fit = fit_riemannian(
        X, None, [1.0], X[:1], [np.eye(2)], covariance_prior=scatter, covariance_prior_mean=m,
        covariance_prior_weight=10.0, tol=1e-13,
    )  # fmt: skip
    joined = np.concatenate([X, extra])
    np.testing.assert_allclose(fit.means[0], joined.mean(axis=0), atol=1e-6)
    np.testing.assert_allclose(fit.covariances[0], np.cov(joined.T, bias=True), atol=1e-6)


def test_concentration_lifts_small_weights(overlapping):
    X, start = overlapping
    free = fit_riemannian(X, None, *start)
    lifted = fit_riemannian(X, None, *start, weight_concentration=1e6)
    assert lifted.weights.min() > free.weights.min()
    np.testing.assert_allclose(lifted.weights, 1 / 3, atol=1e-3)


def test_collapse_is_named_and_leaves_numbers():
    rng = np.random.default_rng(10)
    X = np.concatenate([rng.standard_normal((100, 2)), np.full((5, 2), 8.0)])
    start = [0.9, 0.1], [[0.0, 0.0], [8.0, 8.0]], [np.eye(2), 0.1 * np.eye(2)]
    with pytest.warns(ConvergenceWarning, match=r"component 1 has collapsed.*covariance_prior_weight"):
        fit = fit_riemannian(X, None, *start)
    assert fit.reason == "collapsed"
    assert all(np.isfinite(values).all() for values in (fit.weights, fit.means, fit.covariances))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sound = fit_riemannian(X, None, *start, covariance_prior_weight=2.0)
    assert sound.converged


def test_singular_start_and_empty_component_are_mended(overlapping):
    X, (weights, means, covariances) = overlapping
    broken = covariances.copy()
    broken[1] = 0.0
    mended = covariances.copy()
    mended[1] = np.cov(X.T, bias=True)
    np.testing.assert_allclose(
        fit_riemannian(X, None, weights, means, broken).means, fit_riemannian(X, None, weights, means, mended).means
    )
    empty = fit_riemannian(X, None, [0.5, 0.5, 0.0], means, covariances, covariance_prior_weight=5.0)
    assert (empty.weights > 0).all()


def test_second_branch_never_hurts(monkeypatch):
    monkeypatch.setattr("pluri.mixtures.riemannian.gaussian.QUICK", 1)
    data = make_separated_gaussians(400, 8, 3, separation=0.2, random_state=0)
    start = near_start(data.X, 3, 0)
    settings = {"covariance_prior_weight": 5.0, "tol": 1e-9}
    one = fit_riemannian(data.X, None, *start, branches=1, **settings)
    two = fit_riemannian(data.X, None, *start, branches=2, **settings)
    assert two.objective <= one.objective + 1e-12
    assert two.n_evaluations > one.n_evaluations
    assert set(two.history["branch"]) == {0.0, 1.0}


def test_ctrl_c_keeps_the_best_so_far(overlapping):
    X, start = overlapping
    for stop in (3, 12):

        def interrupt(state, stop=stop):
            if state.iteration == stop:
                raise KeyboardInterrupt

        with on_interrupt("keep"), pytest.warns(UserWarning, match="interrupted"):
            fit = fit_riemannian(X, None, *start, tol=0.0, on_iteration=interrupt)
        assert fit.interrupted
        assert fit.n_iter == stop
        assert fit.lower_bound > log_likelihood(X, *start)


def test_on_iteration_sees_parameters_and_can_stop(overlapping):
    X, start = overlapping
    seen = []
    fit = fit_riemannian(X, None, *start, on_iteration=lambda state: seen.append(state) or state.iteration == 4)
    assert (fit.reason, fit.n_iter, len(seen)) == ("stopped", 4, 4)
    assert seen[-1].log_likelihood == pytest.approx(log_likelihood(X, *seen[-1].params), abs=1e-9)
    np.testing.assert_allclose(seen[-1].params[1], fit.means)


def test_end_of_iterations_is_said(overlapping):
    X, start = overlapping
    for max_iter in (3, 33):
        with pytest.warns(ConvergenceWarning, match=f"max_iter={max_iter}"):
            fit = fit_riemannian(X, None, *start, max_iter=max_iter, tol=0.0)
        assert (fit.n_iter, fit.converged) == (max_iter, False)


def test_stochastic_fit_comes_close_and_is_repeatable(overlapping):
    data = make_separated_gaussians(3000, 3, 3, separation=2.0, random_state=5)
    start = near_start(data.X, 3, 2)
    best = fit_riemannian(data.X, None, *start)
    fits = [fit_riemannian(data.X, None, *start, method="sgd", tol=1e-4, random_state=0) for _ in range(2)]
    assert fits[0].lower_bound > best.lower_bound - 0.02
    np.testing.assert_array_equal(fits[0].means, fits[1].means)
    assert fits[0].n_evaluations >= 2 * fits[0].n_iter


def test_stream_of_batches_teaches_the_mixture():
    data = make_separated_gaussians(6000, 3, 2, separation=2.0, random_state=6)
    start = near_start(data.X, 2, 0)
    learner = RiemannianSGD(*start)
    first = learner.update(data.X[:100])
    assert first == pytest.approx(log_likelihood(data.X[:100], *start), abs=1e-8)
    for begin in range(100, 6000, 100):
        learner.update(data.X[begin : begin + 100], np.ones(100))
    assert learner.n_updates == 60
    reached = log_likelihood(data.X, learner.weights, learner.means, learner.covariances)
    assert reached > log_likelihood(data.X, data.weights, data.means, data.covariances) - 0.05
    with pytest.raises(ValueError, match="3 features"):
        learner.update(np.zeros((5, 2)))


def test_inputs_are_left_alone(overlapping):
    X, start = overlapping
    copies = [np.array(values) for values in (X, *start)]
    fit_riemannian(X, None, *start, max_iter=1500)
    fit_riemannian(X.astype(np.float32), None, *start, max_iter=1500)
    for before, after in zip(copies, (X, *start), strict=True):
        np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"method": "newton"}, "method"), ({"parametrization": "other"}, "parametrization"), ({"tol": -1.0}, "tol"),
        ({"max_iter": 0}, "max_iter"), ({"memory": 0}, "memory"), ({"branches": 0}, "branches"),
        ({"covariance_prior_weight": -1.0}, "covariance_prior_weight"),
        ({"covariance_prior": np.eye(2), "covariance_prior_weight": 1.0}, "covariance_prior"),
        ({"covariance_prior_mean": [1.0], "covariance_prior_weight": 1.0}, "covariance_prior_mean"),
        ({"weight_concentration": np.nan}, "weight_concentration"),
        ({"method": "sgd", "parametrization": "original"}, "parametrization"),
    ],
)  # fmt: skip
def test_bad_settings_are_named(overlapping, settings, words):
    X, start = overlapping
    with pytest.raises(ValueError, match=words):
        fit_riemannian(X, None, *start, **settings)


def test_bad_data_are_named(overlapping):
    X, (weights, means, covariances) = overlapping
    constant = X.copy()
    constant[:, 1] = 7.0
    with pytest.raises(ValueError, match="feature 1 is constant"):
        fit_riemannian(constant, None, weights, means, covariances)
    dependent = X.copy()
    dependent[:, 2] = X[:, 0] + X[:, 1]
    with pytest.raises(ValueError, match="linearly independent"):
        fit_riemannian(dependent, None, weights, means, covariances)
    assert fit_riemannian(
        constant, None, weights, means, covariances, covariance_prior=np.eye(3), covariance_prior_weight=5.0
    ).converged
    broken = X.copy()
    broken[0, 0] = np.nan
    with pytest.raises(ValueError, match="finite"):
        fit_riemannian(broken, None, weights, means, covariances)
    with pytest.raises(ValueError, match="sample_weight"):
        fit_riemannian(X, -np.ones(len(X)), weights, means, covariances)
    with pytest.raises(ValueError, match="at most as many components"):
        fit_riemannian(X[:2], None, weights, means, covariances)
    with pytest.raises(ValueError, match="means"):
        fit_riemannian(X, None, weights, means[:2], covariances)


def test_points_know_their_weights():
    point = MixturePoint(np.eye(2)[None], np.eye(2)[None], np.zeros(1), np.array([800.0]))
    np.testing.assert_allclose(point.log_weights, 0.0)
