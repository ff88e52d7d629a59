"""Sparse codes of one row: against brute force, closed forms, optimality conditions and scikit-learn."""

import itertools

import numpy as np
import pytest
from scipy.stats import beta, norm
from sklearn.linear_model import ARDRegression, Lasso, OrthogonalMatchingPursuit
from sklearn.utils.estimator_checks import parametrize_with_checks

from pluri.factors.dictionaries.sensing import (
    BasisPursuit,
    FastBCS,
    LarsLasso,
    MatchingPursuit,
    StOMP,
    VariationalBCS,
    sparse_codes,
)
from pluri.factors.dictionaries.sensing.baselines.fast_bcs import EvidenceAscent, best_changes
from pluri.factors.dictionaries.sensing.baselines.variational_bcs import RelevanceModel
from pluri.inference.variational import coordinate_ascent
from pluri.priors.hyperpriors import Gamma

METHODS = [BasisPursuit(), MatchingPursuit(), LarsLasso(), StOMP(), VariationalBCS(), FastBCS()]


def problem(seed, n=12, K=30, n_used=2, noise=0.0):
    rng = np.random.default_rng(seed)
    Phi, code = rng.normal(size=(n, K)), np.zeros(K)
    code[rng.choice(K, n_used, replace=False)] = rng.choice([-1, 1], n_used) * rng.uniform(1, 3, n_used)
    return Phi, Phi @ code + noise * rng.normal(size=n), code


@pytest.mark.parametrize("seed", range(8))
def test_basis_pursuit_is_the_best_vertex(seed):
    rng = np.random.default_rng(seed)
    Phi, y = rng.normal(size=(3, 8)), rng.normal(size=3)
    found = BasisPursuit().fit(Phi, y).coef_
    np.testing.assert_allclose(Phi @ found, y, atol=1e-8)
    # An optimum of a linear programme is a vertex: a code with as many atoms as equations.
    vertices = [np.abs(np.linalg.solve(Phi[:, list(c)], y)).sum() for c in itertools.combinations(range(8), 3)]
    assert np.abs(found).sum() == pytest.approx(min(vertices), rel=1e-8)


def test_basis_pursuit_of_measurements_that_contradict_each_other_is_a_least_squares_solution():
    rng = np.random.default_rng(1)
    tall, y = rng.normal(size=(9, 4)), rng.normal(size=9)
    np.testing.assert_allclose(BasisPursuit().fit(tall, y).coef_, np.linalg.lstsq(tall, y)[0], atol=1e-8)
    deficient = tall[:, :2] @ rng.normal(size=(2, 6))
    found = BasisPursuit().fit(deficient, y).coef_
    np.testing.assert_allclose(deficient.T @ (deficient @ found - y), 0, atol=1e-8)
    assert np.abs(found).sum() <= np.abs(np.linalg.pinv(deficient) @ y).sum()


@pytest.mark.parametrize("penalty", [0.1, 1.0, 5.0])
def test_noisy_basis_pursuit_satisfies_the_optimality_conditions(penalty):
    Phi, y, _ = problem(4, noise=0.3)
    found = BasisPursuit(penalty).fit(Phi, y).coef_
    slope = Phi.T @ (y - Phi @ found)  # subgradient: penalty * sign where used, at most the penalty elsewhere
    used = found != 0
    np.testing.assert_allclose(slope[used], penalty * np.sign(found[used]), rtol=1e-3)
    assert np.abs(slope[~used]).max() <= penalty * (1 + 1e-3)


def test_matching_pursuit_is_that_of_scikit_learn():
    Phi, y, _ = problem(2, noise=0.5, n_used=5)
    Phi /= np.linalg.norm(Phi, axis=0)
    for most in (1, 3, 6):
        theirs = OrthogonalMatchingPursuit(n_nonzero_coefs=most, fit_intercept=False).fit(Phi, y).coef_
        np.testing.assert_allclose(MatchingPursuit(most, max_residual=0).fit(Phi, y).coef_, theirs, atol=1e-10)
    tol = 0.3
    theirs = OrthogonalMatchingPursuit(tol=(tol * np.linalg.norm(y)) ** 2, fit_intercept=False).fit(Phi, y).coef_
    np.testing.assert_allclose(MatchingPursuit(max_residual=tol).fit(Phi, y).coef_, theirs, atol=1e-10)


@pytest.mark.parametrize("misfit", [0.05, 0.3, 0.7])
def test_the_path_of_the_lasso_stops_exactly_at_the_misfit_at_a_point_of_the_path(misfit):
    Phi, y, _ = problem(5, noise=0.5, n_used=5)
    found = LarsLasso(max_residual=misfit).fit(Phi, y).coef_
    residual = y - Phi @ found
    assert np.linalg.norm(residual) == pytest.approx(misfit * np.linalg.norm(y), rel=1e-8)
    penalty = np.abs(Phi.T @ residual).max()  # the penalty whose Lasso this is
    lasso = Lasso(penalty / len(y), fit_intercept=False, max_iter=100_000, tol=1e-12).fit(Phi, y).coef_
    np.testing.assert_allclose(found, lasso, atol=1e-5)


def test_atoms_join_by_chance_as_often_as_they_may():
    rng, rate, K, n = np.random.default_rng(0), 0.1, 400, 100
    joined = [
        (StOMP(rate, max_stages=1).fit(rng.normal(size=(n, K)), rng.normal(size=n)).coef_ != 0).sum() for _ in range(40)
    ]
    # Cosines of random directions are a little less spread than Gaussian ones: the exact rate is that of the t
    # distribution. The standard error of the mean share is below 0.003; the bound is at five of them.
    exact = 1 - beta.cdf(norm.isf(rate / 2) ** 2 / n, 0.5, (n - 1) / 2)
    assert abs(np.mean(joined) / K - exact) < 5 * np.sqrt(exact * (1 - exact) / (40 * K))


def test_stagewise_pursuit_with_orthonormal_atoms_keeps_what_stands_out():
    rng = np.random.default_rng(1)
    Q = np.linalg.qr(rng.normal(size=(30, 30)))[0]
    code = np.zeros(30)
    code[[2, 9]] = 5.0, -4.0
    y = Q @ code + 0.01 * rng.normal(size=30)
    found = StOMP(0.01, max_stages=1).fit(Q, y).coef_
    kept = np.abs(Q.T @ y) > norm.isf(0.005) * np.linalg.norm(y) / np.sqrt(30)
    np.testing.assert_allclose(found, np.where(kept, Q.T @ y, 0), atol=1e-12)


def test_variational_code_is_that_of_ard_regression_at_convergence():
    rng = np.random.default_rng(3)
    Phi = rng.normal(size=(40, 6))
    y = Phi @ np.array([2.0, -1.5, 1.0, 3.0, -2.0, 1.2]) + 0.3 * rng.normal(size=40)
    y /= np.sqrt((y**2).mean())
    ours = VariationalBCS(max_iter=3000, tol=1e-15).fit(Phi, y)
    theirs = ARDRegression(fit_intercept=False, max_iter=3000, tol=1e-13, threshold_lambda=1e12).fit(Phi, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-6)
    np.testing.assert_allclose(ours.coef_std_, np.sqrt(np.diag(theirs.sigma_)), rtol=1e-6)
    assert 1 / ours.noise_variance_ == pytest.approx(theirs.alpha_, rel=1e-6)


def test_variational_moments_are_those_of_the_dense_formulas():
    rng = np.random.default_rng(0)
    model = RelevanceModel(rng.normal(size=(2, 5, 9)), rng.normal(size=(2, 5)), Gamma(0.3, 0.2), Gamma(0.4, 0.1))
    rates, noise_rates = rng.uniform(0.5, 2, size=(2, 9)), rng.uniform(0.5, 2, size=2)
    q = model._with_codes(rates, noise_rates)
    shape, noise_shape = model.shapes
    for i in range(2):
        Phi, g = model.Phi[i], noise_shape / noise_rates[i]
        S = np.linalg.inv(g * Phi.T @ Phi + np.diag(shape / rates[i]))
        mean = g * S @ Phi.T @ model.Y[i]
        np.testing.assert_allclose(q.means[i], mean, atol=1e-10)
        np.testing.assert_allclose(q.variances[i], np.diag(S), atol=1e-10)
        assert q.log_dets[i] == pytest.approx(np.linalg.slogdet(S)[1])
        misfit = ((model.Y[i] - Phi @ mean) ** 2).sum() + np.trace(Phi @ S @ Phi.T)
        assert q.misfits[i] == pytest.approx(misfit)


@pytest.mark.parametrize("seed", range(4))
def test_the_variational_bound_never_falls_and_stays_below_the_evidence(seed):
    rng = np.random.default_rng(seed)
    Phi, Y = rng.normal(size=(1, 3, 2)), rng.normal(size=(1, 3))
    prior, noise = Gamma(2.0, 1.0), Gamma(3.0, 1.0)
    model = RelevanceModel(Phi, Y, prior, noise)
    result = coordinate_ascent(model, None, rng=rng, max_iter=300, tol=1e-12, strict=True)
    assert (np.diff(result.trace) > -1e-9).all()
    a, g = rng.gamma(2.0, 1.0, size=(20_000, 2)), rng.gamma(3.0, 1.0, size=20_000)  # the evidence by plain averaging
    C = np.eye(3) / g[:, None, None] + np.einsum("nk,mk,sk->snm", Phi[0], Phi[0], 1 / a)
    _, log_det = np.linalg.slogdet(C)
    quad = np.einsum("n,sn->s", Y[0], np.linalg.solve(C, np.broadcast_to(Y[0], (20_000, 3))[:, :, None])[:, :, 0])
    densities = np.exp(-0.5 * (3 * np.log(2 * np.pi) + log_det + quad))
    high = densities.mean() + 5 * densities.std() / np.sqrt(20_000)  # false alarms: below 1e-6
    assert result.elbo < np.log(high)


def test_many_rows_at_once_are_the_rows_one_by_one():
    rng = np.random.default_rng(2)
    Phi, Y = rng.normal(size=(3, 8, 15)), rng.normal(size=(3, 8))
    method = VariationalBCS(max_iter=20, tol=0.0)
    each = [method.fit(Phi[i], Y[i]).coef_ for i in range(3)]
    np.testing.assert_allclose(sparse_codes(method, Y, Phi), each, atol=1e-10)
    shared = [method.fit(Phi[0], Y[i]).coef_ for i in range(3)]
    np.testing.assert_allclose(sparse_codes(method, Y, Phi[0]), shared, atol=1e-10)


def test_changes_of_the_evidence_are_those_of_the_dense_density():
    rng = np.random.default_rng(0)
    model = EvidenceAscent(rng.normal(size=(5, 7)), rng.normal(size=5), 0.3)

    def evidence(*precisions):
        spreads = 1 / np.array(precisions)
        covariances = 0.3 * np.eye(5) + np.einsum("nk,sk,mk->snm", model.Phi, spreads, model.Phi)
        quad = np.linalg.solve(covariances, np.broadcast_to(model.y[:, None], (len(spreads), 5, 1)))[:, :, 0] @ model.y
        return -0.5 * (5 * np.log(2 * np.pi) + np.linalg.slogdet(covariances)[1] + quad)

    a = np.array([np.inf, 2.0, np.inf, 0.5, np.inf, 30.0, np.inf])
    state = model.at(a)
    assert state.log_evidence == pytest.approx(evidence(a)[0])
    best, gain = best_changes(state)
    grid = np.append(np.exp(np.linspace(-8, 12, 2001)), np.inf)
    for k in range(7):
        values = evidence(*(np.where(np.arange(7) == k, value, a) for value in grid))
        assert gain[k] == pytest.approx(max(values) - state.log_evidence, abs=1e-4)
        assert gain[k] >= max(values) - state.log_evidence - 1e-10
        changed = np.where(np.arange(7) == k, best[k], a)
        assert evidence(changed)[0] - state.log_evidence == pytest.approx(gain[k], abs=1e-10)


def test_at_the_end_no_precision_can_be_improved_and_the_code_is_the_posterior_mean():
    Phi, y, _ = problem(7, noise=0.1, n_used=3)
    method = FastBCS(noise_variance=0.01, tol=1e-14).fit(Phi, y)
    used = method.coef_ != 0
    model = EvidenceAscent(Phi, y, 0.01)
    variances = method.coef_std_[used] ** 2
    # At a maximum 1/a = mean^2 + variance, atom by atom; those not in use gain nothing.
    a = np.full(30, np.inf)
    a[used] = 1 / (method.coef_[used] ** 2 + variances)
    assert best_changes(model.at(a))[1].max() < 1e-8
    S = np.linalg.inv(Phi[:, used].T @ Phi[:, used] / 0.01 + np.diag(a[used]))
    np.testing.assert_allclose(method.coef_[used], S @ Phi[:, used].T @ y / 0.01, rtol=1e-5)
    assert method.log_evidence_ == pytest.approx(model.at(a).log_evidence, abs=1e-8)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
def test_every_method_finds_two_of_thirty_atoms(method):
    # Twenty measurements and no noise: for each method wrong supports are rarer than 1 in 100 here; three of twenty
    # problems may fail (false alarms below 1e-3 for the mean of 0.01).
    wrong = 0
    for seed in range(20):
        Phi, y, code = problem(seed, n=20)
        found = method.fit(Phi, y).coef_
        wrong += set(np.argsort(-np.abs(found))[:2]) != set(np.flatnonzero(code))
    assert wrong <= 3


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
def test_codes_scale_with_the_measurements(method):
    Phi, y, _ = problem(11, noise=0.2)
    np.testing.assert_allclose(method.fit(Phi, 1e5 * y).coef_, 1e5 * method.fit(Phi, y).coef_, rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
def test_nothing_measured_is_an_empty_code(method):
    np.testing.assert_allclose(
        method.fit(np.random.default_rng(0).normal(size=(5, 9)), np.zeros(5)).coef_, 0, atol=1e-3
    )


@parametrize_with_checks(METHODS)
def test_scikit_learn_accepts_every_method(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: BasisPursuit(-1).fit(np.eye(3), np.ones(3)), "l1_penalty must be a number of at least 0"),
        (lambda: MatchingPursuit(0).fit(np.eye(3), np.ones(3)), "max_atoms must be"),
        (lambda: LarsLasso(max_residual=1.5).fit(np.eye(3), np.ones(3)), "max_residual must be"),
        (lambda: LarsLasso(selection="cv").fit(np.eye(3), np.ones(3)), "n_folds must be at most .* .3., got 5"),
        (lambda: StOMP(0).fit(np.eye(3), np.ones(3)), "false_alarm_rate must be"),
        (lambda: VariationalBCS(noise_prior=1.0).fit(np.eye(3), np.ones(3)), "noise_prior must be a prior"),
        (lambda: FastBCS(noise_variance=0).fit(np.eye(3), np.ones(3)), "noise_variance must be a positive number"),
        (lambda: FastBCS().fit(1e200 * np.eye(3), np.ones(3)), "X must not exceed"),
        (lambda: sparse_codes(StOMP(), np.ones((2, 3)), np.ones((4, 5))), "Phi must have shape .3, n_atoms."),
        (lambda: sparse_codes(StOMP(), np.ones((2, 3)), np.ones((5, 3, 5))), "one for each of 2 rows"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(act, message):
    with pytest.raises(ValueError, match=message):
        act()


def test_a_regressor_with_an_intercept_is_refused():
    """Its codes would be those of measurements less their mean, and the intercept be lost."""
    Phi, y, _ = problem(0)
    with pytest.raises(ValueError, match="method must be made with fit_intercept=False"):
        sparse_codes(Lasso(0.01), y[None], Phi)
    method = Lasso(0.1, fit_intercept=False)
    np.testing.assert_array_equal(sparse_codes(method, y[None], Phi)[0], method.fit(Phi, y).coef_)
