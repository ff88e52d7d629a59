"""Naive Bayes: known answers, scikit-learn's own estimators, and the chain rule of the evidence."""

import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy import stats as laws
from scipy.optimize import minimize
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, GaussianNB
from sklearn.utils.estimator_checks import parametrize_with_checks

from pluri.mixtures import NaiveBayes
from pluri.priors import Beta

X5 = np.array([[1, 0, 1], [1, 1, 0], [1, 0, 0], [0, 1, 1], [0, 1, 0]])
Y5 = np.array([0, 0, 0, 1, 1])
MIXED = ["bernoulli", "gaussian", "categorical", "gaussian", "bernoulli"]
NORMAL_PRIOR = (0.3, 0.7, 1.5, 2.0)


def mixed_data(seed=0, n_samples=60):
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n_samples)
    X = np.column_stack(
        [
            rng.random(n_samples) < 0.2 + 0.3 * y,
            rng.normal(y, 1.0),
            (rng.integers(3, size=n_samples) + y) % 4,
            rng.normal(-2.0 * y, 0.5),
            rng.random(n_samples) < 0.5,
        ]
    ).astype(float)
    return X, y


# Known answers ------------------------------------------------------------------------------------------------------


def test_posterior_modes_of_five_rows():
    model = NaiveBayes(probabilities_prior=Beta(2.0, 2.0)).fit(X5, Y5)
    np.testing.assert_allclose(model.theta_, [[0.8, 0.4, 0.4], [0.25, 0.75, 0.5]])
    np.testing.assert_allclose(model.class_prior_, [0.6, 0.4])
    np.testing.assert_allclose(model.predict_joint_log_proba([[1, 1, 1]])[0], [-2.5665506, -3.2834144], atol=5e-8)
    assert np.isclose(model.predict_proba([[1, 1, 1]])[0, 0], 0.6719160, atol=5e-8)


def test_posterior_means_of_five_rows():
    model = NaiveBayes(inference="bayes", probabilities_prior=Beta(1.0, 1.0)).fit(X5, Y5)
    assert np.isclose(model.predict_proba([[1, 1, 1]])[0, 0], 0.6454460, atol=5e-8)


@pytest.mark.parametrize("settings", [{"probabilities_prior": Beta(1.0, 1.0)}, {"inference": "ml"}])
def test_impossible_features_are_exact_and_give_no_nan(settings):
    model = NaiveBayes(**settings).fit(X5, Y5)
    assert model.theta_[1, 0] == 0.0
    proba = model.predict_proba([[0, 1, 1]])
    np.testing.assert_array_equal(proba, [[0.0, 1.0]])
    assert np.isneginf(model.predict_joint_log_proba([[1, 1, 1]])[0, 1])


def test_ones_and_zeros_of_the_prior_are_not_swapped():
    X = np.array([[1]] * 7 + [[0]] * 3)
    assert NaiveBayes(probabilities_prior=Beta(1.0, 1.0)).fit(X, np.zeros(10)).theta_ == pytest.approx(0.7)
    model = NaiveBayes(inference="bayes", probabilities_prior=Beta(9.0, 1.0)).fit(X, np.zeros(10))
    assert model.theta_ == pytest.approx(16 / 20)


def test_rows_impossible_under_every_class_get_the_prior():
    X = np.array([[1, 0], [1, 0], [0, 1]])
    model = NaiveBayes(inference="ml").fit(X, [0, 0, 1])
    with pytest.warns(UserWarning, match="1 rows are impossible under every class"):
        np.testing.assert_allclose(model.predict_proba([[1, 1]]), [[2 / 3, 1 / 3]])


# Peers --------------------------------------------------------------------------------------------------------------


def test_it_equals_scikit_learn_family_by_family():
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=80)
    X = rng.normal(size=(80, 4)) + y[:, None]
    pairs = [
        (NaiveBayes("bernoulli"), BernoulliNB(alpha=1.0), X),
        (NaiveBayes("gaussian", "ml"), GaussianNB(), X),
        (NaiveBayes("categorical"), CategoricalNB(alpha=1.0), rng.integers(5, size=(80, 4)) // (1 + y[:, None])),
    ]
    weight = rng.integers(0, 4, size=80)
    for ours, theirs, data in pairs:
        for sample_weight in (None, weight):
            ours.fit(data, y, sample_weight=sample_weight)
            theirs.fit(data, y, sample_weight=sample_weight)
            np.testing.assert_allclose(ours.predict_proba(data), theirs.predict_proba(data), rtol=1e-6, atol=1e-12)


def test_columns_of_several_families_multiply():
    X, y = mixed_data()
    model = NaiveBayes(MIXED, category_prior=1.5).fit(X, y)
    parts = {
        "bernoulli": NaiveBayes("bernoulli").fit(X[:, [0, 4]], y).predict_joint_log_proba(X[:, [0, 4]]),
        "gaussian": NaiveBayes("gaussian").fit(X[:, [1, 3]], y).predict_joint_log_proba(X[:, [1, 3]]),
        "categorical": NaiveBayes("categorical", category_prior=1.5)
        .fit(X[:, [2]], y)
        .predict_joint_log_proba(X[:, [2]]),
    }
    expected = sum(parts.values()) - 2 * np.log(model.class_prior_)
    np.testing.assert_allclose(model.predict_joint_log_proba(X), expected, atol=1e-10)


# Laws ---------------------------------------------------------------------------------------------------------------


@given(st.integers(0, 10_000))
@settings(max_examples=15)
def test_the_evidence_is_the_product_of_the_predictives(seed):
    # p(x_1..n, y_1..n) = prod_i p(x_i, y_i | those before): every factor is the Bayesian model's own prediction.
    X, y = mixed_data(seed, n_samples=12)
    model = NaiveBayes(
        MIXED, "bayes", n_categories=4, normal_prior=NORMAL_PRIOR, var_smoothing=0.0, weight_prior=[1.0, 2.0, 0.5]
    )
    total, last = 0.0, None
    for i in range(len(X)):
        row, label = X[i : i + 1], y[i : i + 1]
        if last is not None:
            total += model.predict_joint_log_proba(row)[0, label[0]]
        model.partial_fit(row, label, classes=[0, 1, 2])
        if last is None:
            total = model.log_evidence_
        last = i
    assert np.isclose(model.log_evidence_, total, rtol=1e-10)


def test_modes_maximise_the_log_posterior():
    X, y = mixed_data()
    model = NaiveBayes(MIXED, category_prior=1.7, weight_prior=2.0, normal_prior=NORMAL_PRIOR, var_smoothing=0.0).fit(
        X, y
    )
    bernoulli, gaussian, categorical = (kind for kind, _ in model._layout)
    counted = model._statistics

    def bernoulli_posterior(theta):
        return bernoulli.log_score(counted[0], theta) + bernoulli.log_prior(theta, counted[0])

    best = bernoulli_posterior(model.theta_)
    for shift in (-1e-3, 1e-3):
        assert bernoulli_posterior(model.theta_ + shift) < best

    def negative(vector):
        mean, log_precision = vector.reshape(2, 3, 2)
        estimate = type(model._estimates[1])(mean, np.exp(-log_precision))
        return -(gaussian.log_score(counted[1], estimate) + gaussian.log_prior(estimate, counted[1]))

    start = np.concatenate([np.zeros(6), np.zeros(6)])
    found = minimize(negative, start, method="BFGS", options={"gtol": 1e-7}).x.reshape(2, 3, 2)
    np.testing.assert_allclose(found[0], model.mean_, atol=1e-4)
    np.testing.assert_allclose(np.exp(-found[1]), model.var_, rtol=1e-3)
    rng = np.random.default_rng(0)
    table = model.category_prob_[0]
    best = categorical.log_score(counted[2], [table]) + categorical.log_prior([table], counted[2])
    for _ in range(20):
        moved = 0.99 * table + 0.01 * rng.dirichlet(np.ones(table.shape[1]), size=3)
        assert categorical.log_score(counted[2], [moved]) + categorical.log_prior([moved], counted[2]) < best


def test_log_likelihood_and_prior_equal_scipy():
    X, y = mixed_data()
    model = NaiveBayes(MIXED, category_prior=1.7, weight_prior=2.0, normal_prior=NORMAL_PRIOR).fit(X, y)
    joint = model.predict_joint_log_proba(X)
    assert np.isclose(model.log_likelihood_, joint[np.arange(len(y)), y].sum(), rtol=1e-10)
    m, strength, shape, rate = NORMAL_PRIOR
    precision = 1 / model.var_
    prior = laws.dirichlet.logpdf(model.class_prior_, [2.0] * 3)
    prior += laws.beta.logpdf(model.theta_, 2, 2).sum()
    prior += sum(laws.dirichlet.logpdf(row / row.sum(), [1.7] * 4) for row in model.category_prob_[0])
    prior += laws.gamma.logpdf(precision, shape, scale=1 / rate).sum()
    prior += laws.norm.logpdf(model.mean_, m, 1 / np.sqrt(strength * precision)).sum()
    assert np.isclose(model.log_posterior_, model.log_likelihood_ + prior, rtol=1e-10)


def test_the_predictive_of_a_gaussian_feature_is_student():
    x = np.array([[1.0], [2.5], [0.2], [3.0]])
    model = NaiveBayes("gaussian", "bayes", normal_prior=NORMAL_PRIOR, var_smoothing=0.0).fit(x, np.zeros(4))
    m, strength, shape, rate = NORMAL_PRIOR
    after, a = strength + 4, shape + 2
    b = rate + 0.5 * ((x - x.mean()) ** 2).sum() + 0.5 * strength * 4 * (x.mean() - m) ** 2 / after
    student = laws.t(2 * a, (strength * m + 4 * x.mean()) / after, np.sqrt(b * (after + 1) / (a * after)))
    points = np.linspace(-3, 5, 9)[:, None]
    np.testing.assert_allclose(model.predict_joint_log_proba(points)[:, 0], student.logpdf(points[:, 0]), rtol=1e-10)


@pytest.mark.parametrize("inference", ["map", "ml", "bayes"])
def test_batches_weights_and_sparsity_do_not_matter(inference):
    X, y = mixed_data()
    weight = np.random.default_rng(1).integers(0, 4, size=len(y))
    model = NaiveBayes(MIXED, inference, n_categories=4).fit(X, y, sample_weight=weight)
    expected = model.predict_joint_log_proba(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parts = NaiveBayes(MIXED, inference, n_categories=4)
        for rows in np.array_split(np.arange(len(y)), 4):
            parts.partial_fit(X[rows], y[rows], classes=[0, 1, 2], sample_weight=weight[rows])
    repeated = NaiveBayes(MIXED, inference, n_categories=4).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    dotted = NaiveBayes(MIXED, inference, n_categories=4).fit(sparse.csr_matrix(X), y, sample_weight=weight)
    for other in (parts, repeated, dotted):
        np.testing.assert_allclose(other.predict_joint_log_proba(X), expected, rtol=1e-9)
        assert np.isclose(other.log_likelihood_, model.log_likelihood_)
    np.testing.assert_allclose(dotted.predict_joint_log_proba(sparse.csr_matrix(X)), expected, rtol=1e-9)


def test_more_sparse_rows_than_a_block_are_counted_alike():
    rng = np.random.default_rng(0)
    X = sparse.random(9000, 3, density=0.2, format="csr", random_state=0)
    y = rng.integers(2, size=9000)
    one, other = NaiveBayes("gaussian").fit(X, y), NaiveBayes("gaussian").fit(X.toarray(), y)
    np.testing.assert_allclose(one.predict_joint_log_proba(X), other.predict_joint_log_proba(X.toarray()), rtol=1e-9)


def test_a_large_offset_does_not_spoil_variances():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1000, 2)), rng.integers(2, size=1000)
    near = NaiveBayes("gaussian", "ml", var_smoothing=0.0).fit(X, y)
    far = NaiveBayes("gaussian", "ml", var_smoothing=0.0)
    for rows in np.array_split(np.arange(1000), 7):
        far.partial_fit(X[rows] + 1e7, y[rows], classes=[0, 1])
    np.testing.assert_allclose(far.var_, near.var_, rtol=1e-6)


def test_doubling_the_data_leaves_maximum_likelihood_alone():
    X, y = mixed_data()
    one = NaiveBayes(MIXED, "ml").fit(X, y)
    two = NaiveBayes(MIXED, "ml").fit(np.tile(X, (2, 1)), np.tile(y, 2))
    np.testing.assert_allclose(one.predict_joint_log_proba(X), two.predict_joint_log_proba(X), rtol=1e-9)
    assert np.isclose(two.log_likelihood_, 2 * one.log_likelihood_)


def test_explanations_add_up_to_the_log_odds():
    X, y = mixed_data()
    model = NaiveBayes(MIXED).fit(X, y)
    joint = model.predict_joint_log_proba(X)
    odds = model.explain(X, target=2, against=0)
    np.testing.assert_allclose(odds.total, joint[:, 2] - joint[:, 0], atol=1e-9)
    assert odds.contributions.shape == X.shape
    default = model.explain(X)
    np.testing.assert_array_equal(default.target, model.predict(X))
    ordered = np.sort(joint, axis=1)
    np.testing.assert_allclose(default.total, ordered[:, -1] - ordered[:, -2], atol=1e-9)
    np.testing.assert_allclose(model.explain(sparse.csr_matrix(X)).total, default.total, atol=1e-9)


def test_a_class_that_has_not_come_yet_is_never_predicted():
    X, y = mixed_data()
    seen = y < 2
    for inference in ("map", "ml"):
        model = NaiveBayes(MIXED, inference).partial_fit(X[seen], y[seen], classes=[0, 1, 2])
        proba = model.predict_proba(X[seen])
        assert np.isfinite(proba).all()
        assert (proba[:, 2] == 0).all()


def test_it_survives_pickling_and_goes_on():
    X, y = mixed_data()
    half = NaiveBayes(MIXED, n_categories=4).partial_fit(X[:30], y[:30], classes=[0, 1, 2])
    back = pickle.loads(pickle.dumps(half)).partial_fit(X[30:], y[30:])
    whole = NaiveBayes(MIXED, n_categories=4).fit(X, y)
    np.testing.assert_allclose(back.predict_joint_log_proba(X), whole.predict_joint_log_proba(X), rtol=1e-9)


# Refusals -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"probabilities_prior": Beta(0.5, 0.5)}, "probabilities_prior below 1 leaves no posterior mode"),
        ({"probabilities_prior": (0.5, 0.5)}, r"probabilities_prior must be a prior \(Beta\)"),
        ({"family": "poisson"}, "family must be one of"),
        ({"family": ["gaussian"]}, "a family for each of 3 columns, got 1"),
        ({"inference": "best"}, "inference must be one of"),
        ({"weight_prior": [1.0, 2.0, 3.0]}, "one for each of 2 classes"),
        ({"category_prior": 0.0}, "category_prior must be a positive number"),
        ({"family": "categorical", "n_categories": 1}, r"below n_categories \(1\)"),
        ({"normal_prior": (0.0, 1.0)}, "normal_prior must be"),
        ({"family": "gaussian", "normal_prior": (0.0, 1.0, 0.2, 1.0)}, "shape above 0.5"),
        ({"var_smoothing": -1.0}, "var_smoothing"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        NaiveBayes(**settings).fit(X5, Y5)


def test_bad_values_are_refused():
    with pytest.raises(ValueError, match="zeros and ones"):
        NaiveBayes(binarize=None).fit(X5 * 2, Y5)
    with pytest.raises(ValueError, match="whole numbers"):
        NaiveBayes("categorical").fit(X5 + 0.5, Y5)
    with pytest.raises(ValueError, match="codes below 2 in categorical column 0"):
        NaiveBayes("categorical").fit(X5, Y5).predict([[5, 0, 0]])
    with pytest.raises(ValueError, match="classes must be given"):
        NaiveBayes().partial_fit(X5, Y5)
    with pytest.raises(ValueError, match="y must hold the classes"):
        NaiveBayes().partial_fit(X5, Y5, classes=[0, 2])
    with pytest.raises(ValueError, match="target must be one of the classes"):
        NaiveBayes().fit(X5, Y5).explain(X5, target=7)


def test_a_failed_fit_leaves_the_model_as_it_was():
    model = NaiveBayes("categorical").fit(X5, Y5)
    before = model.predict_proba(X5)
    with pytest.raises(ValueError, match="whole numbers"):
        model.partial_fit(X5 - 0.5, Y5)
    np.testing.assert_array_equal(model.predict_proba(X5), before)


@parametrize_with_checks([NaiveBayes(), NaiveBayes("gaussian"), NaiveBayes("gaussian", "bayes")])
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)
