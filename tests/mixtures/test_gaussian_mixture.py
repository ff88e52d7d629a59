"""The Gaussian mixture: known answers, laws of EM, weights, missing values, priors, streams, engines."""

import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn.mixture
from scipy import stats
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from pluri.engine import ArraySource
from pluri.inference import AscentWarning
from pluri.mixtures import DeadComponentWarning, GaussianMixture
from pluri.mixtures.gaussian.family import GaussianFamily
from pluri.priors import DeterminantalPrior
from pluri.priors.kernels import RBFKernel

TYPES = ("full", "tied", "diag", "spherical")


@parametrize_with_checks([GaussianMixture()])
def test_the_estimator_keeps_scikit_learns_contract(estimator, check):
    check(estimator)


def clusters(n=400, d=3, k=3, spread=4.0, seed=0):
    rng = np.random.default_rng(seed)
    centers = spread * rng.normal(size=(k, d))
    labels = rng.integers(k, size=n)
    scales = rng.uniform(0.5, 1.5, size=(k, d))
    return centers[labels] + scales[labels] * rng.normal(size=(n, d)), labels


def start_of(X, k, kind="full", seed=0):
    """The same starting values for every fit."""
    rng = np.random.default_rng(seed)
    d = X.shape[1]
    precisions = {
        "full": np.tile(np.eye(d), (k, 1, 1)),
        "tied": np.eye(d),
        "diag": np.ones((k, d)),
        "spherical": np.ones(k),
    }
    complete = X[~np.isnan(X).any(axis=1)]
    return {
        "means_init": complete[rng.choice(len(complete), k, replace=False)],
        "weights_init": np.full(k, 1.0 / k),
        "precisions_init": precisions[kind],
    }


def fit(X, k=3, *, kind="full", weight=None, **options):
    options = {"tol": 0.0, "max_iter": 30, "reg_covar": 0.0} | options
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return GaussianMixture(k, covariance_type=kind, **(start_of(X, k, kind) | options)).fit(X, sample_weight=weight)


def assert_same(one, other, atol=1e-9):
    for name in ("weights_", "means_", "covariances_"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=0, atol=atol, err_msg=name)


def test_one_and_many_steps_reach_the_figures_worked_out_by_hand():
    X = np.array([-1.0, 0.0, 1.0, 4.0, 5.0])[:, None]
    given = {
        "weights_init": [0.5, 0.5],
        "means_init": [[0.0], [4.0]],
        "precisions_init": np.ones((2, 1, 1)),
        "tol": 0.0,
    }
    with pytest.warns(ConvergenceWarning):
        one = GaussianMixture(2, max_iter=1, **given).fit(X)
    np.testing.assert_allclose(one.objective_, -9.5415955, atol=5e-8)
    np.testing.assert_allclose(one.weights_, [0.5964028, 0.4035972], atol=5e-8)
    np.testing.assert_allclose(one.means_.ravel(), [-0.0055694, 4.4681217], atol=5e-8)
    np.testing.assert_allclose(one.covariances_.ravel(), [0.6664739, 0.3593541], atol=5e-8)
    np.testing.assert_allclose(5 * one.score(X), -8.5268225, atol=5e-8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        last = GaussianMixture(2, max_iter=500, **given).fit(X)
    np.testing.assert_allclose(last.weights_, [0.6000019, 0.3999981], atol=5e-8)
    np.testing.assert_allclose(last.covariances_.ravel(), [0.6667144, 0.25], atol=5e-7)
    np.testing.assert_allclose(5 * last.score(X), -8.4652497, atol=5e-8)


@pytest.mark.parametrize("kind", TYPES)
def test_every_iteration_agrees_with_scikit_learn(kind):
    X, _ = clusters()
    given = start_of(X, 3, kind)
    theirs = sklearn.mixture.GaussianMixture(3, covariance_type=kind, tol=0.0, max_iter=25, reg_covar=0.0, **given)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        theirs.fit(X)
    ours = fit(X, kind=kind, max_iter=25)
    for name in ("weights_", "means_", "covariances_", "precisions_", "precisions_cholesky_"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), atol=1e-8, err_msg=name)
    np.testing.assert_allclose(ours.score_samples(X), theirs.score_samples(X), atol=1e-8)
    np.testing.assert_allclose(ours.bic(X), theirs.bic(X), rtol=1e-10)
    bounds = getattr(theirs, "lower_bounds_", [theirs.lower_bound_])  # scikit-learn 1.6 keeps the last alone
    np.testing.assert_allclose(ours.lower_bounds_[-len(bounds) :], bounds, atol=1e-10)


@pytest.mark.parametrize("kind", TYPES)
def test_one_component_is_the_sample_mean_and_covariance(kind):
    X, _ = clusters()
    model = GaussianMixture(1, covariance_type=kind, reg_covar=0.0).fit(X)
    S = np.cov(X.T, bias=True)
    expected = {"full": S[None], "tied": S, "diag": np.diag(S)[None], "spherical": [np.trace(S) / 3]}[kind]
    np.testing.assert_allclose(model.means_[0], X.mean(axis=0), atol=1e-10)
    np.testing.assert_allclose(model.covariances_, expected, atol=1e-10)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_the_objective_never_falls(kind, missing):
    for seed in range(5):
        X, _ = clusters(n=120, seed=seed, spread=1.0)
        X[np.random.default_rng(seed).random(X.shape) < missing] = np.nan
        with warnings.catch_warnings():
            warnings.simplefilter("error", AscentWarning)
            warnings.simplefilter("ignore", DeadComponentWarning)
            model = fit(X, 4, kind=kind, max_iter=60, reg_covar=1e-3, init_params="random", means_init=None)
        gains = np.diff(model.history_.objective)
        assert gains.min() > -1e-9 * abs(model.objective_)


@pytest.mark.parametrize("kind", TYPES)
def test_a_weight_of_two_is_the_row_twice(kind):
    X, _ = clusters(n=150)
    X[::7, 1] = np.nan
    weight = np.random.default_rng(1).integers(0, 4, len(X))
    weighted = fit(X, kind=kind, weight=weight)
    repeated = fit(np.repeat(X, weight, axis=0), kind=kind, **start_of(X, 3, kind))
    assert_same(weighted, repeated)
    np.testing.assert_allclose(weighted.objective_, repeated.objective_, rtol=1e-12)


def marginal_log_density(model, x):
    """Log density of the observed part of a row, from the definition."""
    seen = ~np.isnan(x)
    terms = [
        np.log(w) + stats.multivariate_normal(m[seen], S[np.ix_(seen, seen)]).logpdf(x[seen])
        for w, m, S in zip(model.weights_, model.means_, model.covariances_)
    ]
    return logsumexp(terms)


def test_missing_values_are_integrated_out():
    X, _ = clusters(n=200)
    model = fit(X)
    rows = X[:20].copy()
    rows[np.random.default_rng(3).random(rows.shape) < 0.4] = np.nan
    rows[0] = np.nan
    expected = [0.0] + [marginal_log_density(model, row) for row in rows[1:] if True]
    for value, row, wanted in zip(model.score_samples(rows), rows, expected):
        np.testing.assert_allclose(value, wanted if not np.isnan(row).all() else 0.0, atol=1e-9)


def test_the_fit_with_missing_values_is_a_stationary_point_of_the_marginal_likelihood():
    X, _ = clusters(n=150, d=2, k=2)
    X[np.random.default_rng(5).random(X.shape) < 0.25] = np.nan
    model = fit(X, 2, max_iter=400)

    def total(shift):
        moved = GaussianMixture(2)
        moved.__dict__.update(model.__dict__)
        moved.means_ = model.means_ + shift
        return moved.score_samples(X).sum()

    for j in range(2):
        for d in range(2):
            step = np.zeros((2, 2))
            step[j, d] = 1e-4
            assert abs(total(step) - total(-step)) / 2e-4 < 1e-3


@pytest.mark.parametrize("kind", TYPES)
def test_permuting_the_components_of_the_start_permutes_those_of_the_fit(kind):
    X, _ = clusters()
    order = np.array([2, 0, 1])
    given = start_of(X, 3, kind)
    moved = {"means_init": given["means_init"][order]}
    one, other = fit(X, kind=kind), fit(X, kind=kind, **moved)
    np.testing.assert_allclose(other.means_, one.means_[order], atol=1e-10)
    np.testing.assert_allclose(other.score_samples(X), one.score_samples(X), atol=1e-10)


@pytest.mark.parametrize("kind", TYPES)
def test_the_map_update_is_the_mode_of_the_posterior(kind):
    X, _ = clusters(n=60, k=1)
    d = X.shape[1]
    options = {"mean_prior": np.ones(d), "mean_precision_prior": 5.0, "covariance_prior": 2.0}
    model = GaussianMixture(1, covariance_type=kind, reg_covar=0.0, degrees_of_freedom_prior=7.0, **options).fit(X)
    n, mean = len(X), X.mean(axis=0)
    np.testing.assert_allclose(model.means_[0], (n * mean + 5.0) / (n + 5.0), atol=1e-10)
    scatter = (X - mean).T @ (X - mean) + 5.0 * n / (n + 5.0) * np.outer(mean - 1, mean - 1)
    if kind in ("full", "tied"):
        expected = (2.0 * np.eye(d) + scatter) / (7.0 + n + d + 2)
        np.testing.assert_allclose(model.covariances_.reshape(d, d), expected, atol=1e-10)
    else:
        diagonal = 2.0 + np.diag(scatter)
        expected = diagonal / (7.0 + n + 3) if kind == "diag" else diagonal.sum() / (d * (7.0 + n + 3))
        np.testing.assert_allclose(model.covariances_.ravel(), np.ravel(expected), atol=1e-10)


def test_priors_keep_a_component_off_a_single_point():
    X = np.concatenate([np.random.default_rng(0).normal(size=(50, 2)), [[30.0, 30.0]]])
    model = GaussianMixture(2, covariance_prior=1.0, random_state=0).fit(X)
    assert np.linalg.eigvalsh(model.covariances_).min() > 0.1


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("missing", [0.0, 0.15])
def test_diversity_raises_its_own_objective_and_moves_the_means_apart(kind, missing):
    X, _ = clusters(n=200, k=2, spread=1.0, d=2)
    X[np.random.default_rng(0).random(X.shape) < missing] = np.nan
    distances = []
    for strength in (None, 2.0, 10.0):
        with warnings.catch_warnings():
            warnings.simplefilter("error", AscentWarning)
            model = fit(X, 3, kind=kind, diversity=strength, max_iter=100, reg_covar=1e-3)
        assert np.diff(model.history_.objective).min() > -1e-8
        distances.append(min(np.linalg.norm(a - b) for i, a in enumerate(model.means_) for b in model.means_[:i]))
    assert distances[0] < distances[1] < distances[2]


def test_zero_diversity_changes_nothing_and_a_prior_of_ones_own_is_taken():
    X, _ = clusters()
    assert_same(fit(X), fit(X, diversity=0.0), atol=0)
    own = fit(X, diversity=DeterminantalPrior(RBFKernel(2.0), 3.0))
    assert np.isfinite(own.objective_)


def test_split_and_merge_leaves_a_bad_optimum():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(center, 0.3, size=(100, 2)) for center in ([0, 0], [10, 0], [10, 2.5])])
    bad = {"means_init": [[0.0, 0.2], [0.0, -0.2], [10.0, 1.0]], "precisions_init": np.tile(np.eye(2), (3, 1, 1))}
    stuck = GaussianMixture(3, random_state=0, **bad).fit(X)
    free = GaussianMixture(3, random_state=0, split_merge=3, **bad).fit(X)
    assert free.objective_ > stuck.objective_ + 100
    assert sorted(np.round(free.means_[:, 1], 1).tolist()) == pytest.approx([0.0, 0.0, 2.5], abs=0.15)


def test_a_stream_of_batches_finds_what_one_batch_finds():
    X, _ = clusters(n=6000, seed=2)
    whole = GaussianMixture(3, random_state=0).fit(X)
    stream = GaussianMixture(3, random_state=0)
    for _ in range(3):
        for batch in np.array_split(X, 12):
            stream.partial_fit(batch)
    assert abs(stream.score(X) - whole.score(X)) < 0.02


def test_the_first_step_of_a_stream_is_a_step_of_em():
    X, _ = clusters(n=300)
    np.testing.assert_allclose(
        GaussianMixture(3, reg_covar=0.0, **start_of(X, 3)).partial_fit(X).means_, fit(X, max_iter=1).means_, atol=1e-12
    )


@pytest.mark.parametrize("kind", TYPES)
def test_moments_about_other_means_are_those_taken_there(kind):
    X, _ = clusters(n=50)
    X[::9, 0] = np.nan if kind in ("diag", "spherical") else 0.0
    family = GaussianFamily(kind)
    model = fit(X, kind=kind, max_iter=2, reg_covar=1e-3)
    old = family.parameters(model.means_, model.covariances_)
    new = family.parameters(model.means_ + 1.0, model.covariances_)
    posterior = np.random.default_rng(0).random((len(X), 4))
    moved, direct = family.rebase(family.accumulate(old, X, posterior), old, new), family.accumulate(new, X, posterior)
    for name in ("count", "first", "second"):
        np.testing.assert_allclose(getattr(moved, name), getattr(direct, name), atol=1e-9)


@pytest.mark.parametrize("options", [{"n_jobs": 2}, {"engine": "threads"}])
def test_engines_agree_to_the_last_bit(options):
    X, _ = clusters(n=40_000)
    assert_same(fit(X, max_iter=5), fit(X, max_iter=5, **options), atol=0)


def test_a_source_of_batches_gives_the_same_fit():
    X, _ = clusters(n=5000)
    model = GaussianMixture(3, tol=0.0, max_iter=10, reg_covar=0.0, **start_of(X, 3))
    with pytest.warns(ConvergenceWarning):
        model.fit(ArraySource(X, batch_size=600))
    assert_same(model, fit(X, max_iter=10))


@pytest.mark.slow
def test_a_dask_cluster_agrees_with_this_process():
    pytest.importorskip("distributed")
    X, _ = clusters(n=40_000)
    assert_same(fit(X, max_iter=5), fit(X, max_iter=5, engine="dask", n_jobs=2))


@pytest.mark.parametrize("init_params", ["kmeans", "k-means++", "random", "random_from_data"])
@pytest.mark.parametrize("kind", TYPES)
def test_every_start_finds_separated_clusters(init_params, kind):
    X, labels = clusters(n=600, spread=20.0)
    model = GaussianMixture(
        3, covariance_type=kind, init_params=init_params, n_init=8, random_state=0, max_iter=500, tol=1e-7
    )
    found = model.fit(X).predict(X)
    assert len(set(zip(found.tolist(), labels.tolist()))) == 3


def test_samples_have_the_moments_of_the_mixture():
    X, _ = clusters()
    model = fit(X)
    draws, labels = GaussianMixture(3, random_state=0).__class__.sample(model, 200_000)
    mean = model.weights_ @ model.means_
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=6 * draws.std(axis=0).max() / np.sqrt(len(draws)))
    np.testing.assert_allclose(np.bincount(labels) / len(labels), model.weights_, atol=0.006)


def test_warm_start_goes_on_where_it_left_off():
    X, _ = clusters()
    long = fit(X, max_iter=12)
    short = fit(X, max_iter=6, warm_start=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        short.fit(X)
    assert_same(short, long)


def test_a_refit_that_fails_loses_nothing():
    X, _ = clusters()
    model = fit(X)
    before = model.means_.copy()
    with pytest.raises(ValueError, match="n_samples >= n_components"):
        model.fit(X[:2])
    np.testing.assert_array_equal(model.means_, before)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 0}, "n_components must be"),
        ({"covariance_type": "round"}, "covariance_type must be one of"),
        ({"inference": "magic"}, "inference must be one of"),
        ({"init_params": "magic"}, "init_params must be one of"),
        ({"reg_covar": -1.0}, "reg_covar must be"),
        ({"tol": -1.0}, "tol must be"),
        ({"max_iter": 1.5}, "max_iter must be"),
        ({"diversity": -1.0}, "diversity must be"),
        ({"mean_prior": [0.0]}, "mean_precision_prior"),
        ({"mean_precision_prior": 1.0, "mean_prior": [0.0]}, "mean_prior must be"),
        ({"covariance_prior": -1.0}, "covariance_prior must be"),
        ({"degrees_of_freedom_prior": 3.0}, "covariance_prior"),
        ({"covariance_prior": 1.0, "degrees_of_freedom_prior": 0.5}, "degrees_of_freedom_prior must be above"),
        ({"means_init": np.zeros((2, 9)), "n_components": 2}, "'means' should have the shape"),
        ({"weight_prior": "x"}, "weight_prior must be"),
        ({"inference": "riemannian", "covariance_type": "diag"}, "covariance_type must be 'full'"),
        ({"inference": "riemannian", "diversity": 1.0}, "diversity must be None"),
    ],
)
def test_bad_settings_get_a_sentence(options, message):
    X, _ = clusters(n=30)
    with pytest.raises(ValueError, match=message):
        GaussianMixture(**options).fit(X)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[1.0, np.inf], [2.0, 1.0]], "infinity|inf"),
        ([[1.0, 1e200], [2.0, 1.0]], "below 1e\\+140"),
        ([["a", "b"], ["c", "d"]], "could not convert|numeric"),
        ([1.0, 2.0, 3.0], "2D"),
        ([[1.0, 2.0]], "minimum of 2"),
        (np.array([["2020-01-01"], ["2020-01-02"]], dtype="datetime64[D]"), "dates"),
    ],
)
def test_bad_data_get_a_sentence(X, message):
    with pytest.raises(ValueError, match=message):
        GaussianMixture().fit(X)


@pytest.mark.parametrize("weight", [[1.0], [-1.0] * 30, [0.0] * 30, [np.nan] * 30, np.ones((30, 1))])
def test_bad_weights_get_a_sentence(weight):
    X, _ = clusters(n=30)
    with pytest.raises(ValueError, match="sample_weight"):
        GaussianMixture().fit(X, sample_weight=weight)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", TYPES)
def test_constant_columns_duplicates_and_few_rows_do_not_break_the_fit(kind):
    X = np.tile([[1.0, 5.0], [2.0, 5.0]], (10, 1))
    model = GaussianMixture(2, covariance_type=kind, random_state=0).fit(X)
    assert np.isfinite(model.score_samples(X)).all()


def test_a_component_that_explains_nothing_is_named():
    X, _ = clusters(n=100, k=1)
    given = start_of(X, 2) | {"means_init": np.array([X[0], X[0] + 1e6])}
    with pytest.warns(DeadComponentWarning, match=r"\[1\]"):
        GaussianMixture(2, **given).fit(X)


@pytest.mark.parametrize("inference", ["riemannian", "riemannian_cg", "cholesky"])
def test_the_other_solvers_end_where_em_ends(inference):
    X, _ = clusters(n=300)
    weight = np.random.default_rng(0).integers(1, 4, len(X)).astype(float)
    options = {"tol": 1e-9, "max_iter": 3000, "reg_covar": 1e-9, **start_of(X, 3)}
    em = GaussianMixture(3, **options).fit(X, sample_weight=weight)
    other = GaussianMixture(3, inference=inference, **options).fit(X, sample_weight=weight)
    assert other.converged_
    np.testing.assert_allclose(other.score(X, sample_weight=weight), em.score(X, sample_weight=weight), atol=1e-6)
    np.testing.assert_allclose(other.means_, em.means_, atol=1e-2)
    np.testing.assert_allclose(other.lower_bound_, other.score(X, sample_weight=weight), atol=1e-9)
    assert other.n_evaluations_ >= 1
    assert len(other.history_) == other.n_iter_


def test_pseudo_rows_are_the_same_prior_for_both_solvers():
    X, _ = clusters(n=60, k=2)
    d = X.shape[1]
    prior = {"mean_prior": np.zeros(d), "covariance_prior": 2.0, "degrees_of_freedom_prior": 5.0, "weight_prior": 2.0}
    prior["mean_precision_prior"] = 5.0 + d + 2
    options = {"tol": 1e-10, "max_iter": 3000, **start_of(X, 2), **prior}
    em, other = GaussianMixture(2, **options).fit(X), GaussianMixture(2, inference="riemannian", **options).fit(X)
    np.testing.assert_allclose(other.means_, em.means_, atol=1e-4)
    np.testing.assert_allclose(other.covariances_, em.covariances_, atol=1e-3)
    np.testing.assert_allclose(other.weights_, em.weights_, atol=1e-4)
    with pytest.raises(ValueError, match="mean_precision_prior must equal"):
        GaussianMixture(2, inference="riemannian", covariance_prior=1.0).fit(X)


def test_the_other_solvers_refuse_missing_values():
    X, _ = clusters(n=30)
    X[0, 0] = np.nan
    with pytest.raises(ValueError, match="use inference='em'"):
        GaussianMixture(2, inference="riemannian").fit(X)


@pytest.mark.parametrize("kind", TYPES)
def test_missing_values_are_filled_by_their_expectation(kind):
    X, _ = clusters(n=200, d=2)
    model = fit(X, kind=kind, reg_covar=1e-6)
    filled = model.impute([[1.0, np.nan], [np.nan, np.nan], [0.5, 0.25]])
    # By numerical integration over the missing value.
    grid = np.linspace(-40, 40, 40_001)
    density = np.exp(model.score_samples(np.column_stack([np.ones_like(grid), grid])))
    np.testing.assert_allclose(filled[0], [1.0, (grid * density).sum() / density.sum()], atol=1e-6)
    np.testing.assert_allclose(filled[1], model.weights_ @ model.means_, atol=1e-10)
    np.testing.assert_array_equal(filled[2], [0.5, 0.25])


def test_a_small_batch_moves_a_stream_little():
    X, _ = clusters(n=1000)
    stream = GaussianMixture(3, random_state=0).partial_fit(X)
    before = stream.means_.copy()
    stream.partial_fit(X[:1])
    assert abs(stream.means_ - before).max() < 0.2


@pytest.mark.parametrize("kind", TYPES)
def test_parameters_set_by_hand_are_enough_for_queries(kind):
    X, _ = clusters(n=100)
    fitted = fit(X, kind=kind)
    by_hand = GaussianMixture(3, covariance_type=kind)
    by_hand.weights_, by_hand.means_, by_hand.covariances_ = fitted.weights_, fitted.means_, fitted.covariances_
    np.testing.assert_allclose(by_hand.score_samples(X), fitted.score_samples(X), atol=1e-9)


def test_another_covariance_type_after_the_fit_gets_a_sentence():
    X, _ = clusters(n=100)
    with pytest.raises(ValueError, match="covariance_type must be that of the last fit"):
        fit(X).set_params(covariance_type="diag").predict(X)


def test_sample_takes_a_random_state_of_its_own():
    X, _ = clusters(n=100)
    model = fit(X, random_state=0)
    one, other = model.sample(5, random_state=1)[0], model.sample(5, random_state=2)[0]
    assert not np.array_equal(one, other)
    np.testing.assert_array_equal(model.sample(5)[0], model.sample(5)[0])


def test_a_column_without_any_value_is_refused():
    X, _ = clusters(n=50)
    X[:, 1] = np.nan
    with pytest.raises(ValueError, match=r"got none in \[1\]"):
        GaussianMixture(2).fit(X)


def test_the_summary_names_every_component_heaviest_first():
    X, _ = clusters(n=300)
    model = fit(X)
    text = model.summary()
    assert text.startswith("GaussianMixture: 3 components")
    assert "not converged after 30 iterations" in text
    listed = [int(line.split()[0]) for line in text.splitlines()[4:]]
    assert listed == np.argsort(-model.weights_).tolist()


def test_a_floor_above_the_variance_of_a_column_is_told():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=90), 1e-9 * np.repeat([0.0, 10.0], 45) + 1e-9 * rng.normal(size=90)])
    with pytest.warns(UserWarning, match="reg_covar=1e-06 is above the variance of column 1 of X"):
        GaussianMixture(2, random_state=0).fit(X)
    with pytest.warns(UserWarning, match="column 'small' of X"):
        GaussianMixture(2, random_state=0).fit(pd.DataFrame(X, columns=["x", "small"]))
    X[:5, 1] = np.nan
    model = GaussianMixture(2, reg_covar=1e-24, random_state=0).fit(X * [0.0, 1.0])  # a constant column is no news
    assert np.ptp(model.means_[:, 1]) > 8e-9
