"""The sampled Bernoulli mixture against enumeration, integration, exact partitions, Geweke and calibration."""

import math
import warnings
from functools import partial
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, sparse, stats
from scipy.special import betaln, gammaln, logsumexp
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import check_estimator

from pluri import on_interrupt
from pluri.factors.binary_completion import BinaryRows, pattern
from pluri.inference import mcmc
from pluri.io import load, save
from pluri.mixtures.bayesian_bernoulli.counts import Counts, ListedRows, Tables, Workspace
from pluri.mixtures.bayesian_bernoulli.estimator import BayesianBernoulliMixture
from pluri.mixtures.bayesian_bernoulli.gibbs import BernoulliGibbs
from pluri.mixtures.bayesian_bernoulli.predictive import ClusterTables
from pluri.mixtures.discrete.bernoulli import BernoulliMixture
from pluri.priors.hyperpriors import Beta, Gamma, Hyperparameter
from pluri.testing import (
    SamplerProblem,
    canonical_labels,
    enumerate_posterior,
    set_partitions,
    simulation_based_calibration,
)

X = np.array([[1, 1, 0, 0], [1, 0, 0, 0], [0, 0, 1, 1], [0, 1, 1, 0], [1, 1, 0, 1]], dtype=float)
HOLES = X.copy()
HOLES[[0, 2, 3, 4], [1, 0, 3, 2]] = np.nan
ALPHA, SUCCESS, FAILURE = 1.5, 0.4, 0.7
LEARNED = Hyperparameter(ALPHA, Gamma(1.0, 1.0 / ALPHA))


def as_rows(data):
    data = np.asarray(data, dtype=float)
    missing = np.isnan(data)
    return BinaryRows(pattern(data == 1), pattern(missing) if missing.any() else None)


def kernel_of(data, k, **settings):
    given = {"weight_concentration": Hyperparameter(ALPHA), "probabilities_prior": Beta(SUCCESS, FAILURE)} | settings
    return BernoulliGibbs(as_rows(data), k, **given)


def log_joint(labels, data, k, alpha=ALPHA, b=SUCCESS, g=FAILURE):
    """log p(z, X) by the formula, with plain loops."""
    labels, n = np.asarray(labels), len(labels)
    sizes = np.bincount(labels)
    total = gammaln(alpha) - gammaln(n + alpha)
    for size in sizes[sizes > 0]:
        total += np.log(alpha) + gammaln(size) if k is None else gammaln(size + alpha / k) - gammaln(alpha / k)
    for j in np.unique(labels):
        for column in data[labels == j].T:
            on, off = np.nansum(column), np.nansum(1 - column)
            total += betaln(b + on, g + off) - betaln(b, g)
    return float(total)


@pytest.mark.parametrize("data", [X, HOLES], ids=["complete", "holes"])
@pytest.mark.parametrize("k", [3, None])
def test_log_joint_equals_the_formula(data, k):
    kernel, rng = kernel_of(data, k), np.random.default_rng(0)
    for _ in range(20):
        position = kernel.sample_prior(rng)
        assert kernel.log_joint(position) == pytest.approx(log_joint(position["labels"], data, k), abs=1e-10)


@pytest.mark.parametrize("steps", ["products", "logarithms"])
@pytest.mark.parametrize("data", [X, HOLES], ids=["complete", "holes"])
@pytest.mark.parametrize("k", [3, None])
def test_conditional_is_the_ratio_of_log_joints(data, k, steps):
    """The scores that the compiled draw leaves in its workspace, for every row and cluster."""
    from pluri.mixtures.bayesian_bernoulli._gibbs_kernels import sweep

    kernel = kernel_of(data, k)
    rows, labels = ListedRows.of(kernel.data), np.array([0, 1, 1, 2, 0])
    capacity = 3 if k else 6
    tables = kernel._tables if steps == "products" else kernel._tables._replace(step=1)

    def scores(n):
        counts, work, fresh = Counts.of(rows, labels, capacity), Workspace.of(capacity), 3 if k is None else 0
        order, uniforms = np.array([n]), np.array([0.5])
        log_prior = tables.log_prior(ALPHA, k)
        sweep(rows, counts, tables, log_prior, labels.copy(), order, uniforms, 0, fresh, k is None, work)
        found = work.scores
        return found / found.sum()

    for n in range(5):
        expected = []
        for j in range(capacity):
            moved = labels.copy()
            moved[n] = j
            free = k is None and j > 3
            expected.append(-np.inf if free else log_joint(moved, data, k))
        if k is None and n == 3:  # alone: staying is the same as a new cluster, and only the latter is scored
            expected[2] = -np.inf
        expected = np.exp(np.array(expected) - logsumexp(expected))
        np.testing.assert_allclose(scores(n), expected, atol=1e-12, rtol=1e-10)


def together(labels):
    labels = np.asarray(labels)
    return (labels[:, None] == labels).astype(float)


# A second opinion: `test_every_sampler` compares with enumeration, too (BernoulliGibbs, three components), and tries
# holes by Geweke's test.
@pytest.mark.thorough
@pytest.mark.parametrize("data", [X, HOLES], ids=["complete", "holes"])
def test_posterior_of_pairs_equals_enumeration(data):
    """20,000 sweeps: the largest of ten shares is 0.02 off once in more than a million runs."""
    exact = enumerate_posterior(partial(log_joint, data=data, k=3), [range(3)] * 5).expectation(together)
    kernel = kernel_of(data, 3)
    trace = mcmc.sample(
        kernel, kernel.start(), n_draws=5000, n_warmup=10, n_chains=4, random_state=0, warn=False
    )  # fmt: skip
    found = np.mean([together(labels) for labels in trace.flat("labels")], axis=0)
    assert np.abs(found - exact).max() < 0.02


def finite_problem():
    """Labels against all 3^5 of them."""
    kernel = kernel_of(X, 3)
    posterior = enumerate_posterior(partial(log_joint, data=X, k=3), [range(3)] * 5)

    def move(rng, labels):
        return kernel.sweep(rng, {"labels": labels, "concentration": np.asarray(ALPHA)}, kernel.data)["labels"]

    return SamplerProblem("Bernoulli mixture against enumeration", kernel=move, posterior=posterior, n_steps=2)


def process_problem():
    """Labels against all 52 partitions of five rows, some entries missing."""
    kernel = kernel_of(HOLES, None)
    posterior = enumerate_posterior(partial(log_joint, data=HOLES, k=None), configurations=set_partitions(5))

    def move(rng, labels):
        return kernel.sweep(rng, {"labels": labels, "concentration": np.asarray(ALPHA)}, kernel.data)["labels"]

    return SamplerProblem(
        "Dirichlet process of Bernoulli vectors against partitions", kernel=move, posterior=posterior,
        canonical=canonical_labels, n_steps=2,
    )  # fmt: skip


def joint_problem(k, data=X):
    """Concentration, labels and data drawn in two ways."""
    kernel = kernel_of(data, k, weight_concentration=LEARNED)

    def unpacked(values):
        return as_rows(np.where(values < 0, np.nan, values))  # NaN does not equal itself when inputs are compared

    def statistics(position, values):
        labels, values = position["labels"], np.maximum(values, 0)
        sizes = np.bincount(labels)
        return {
            "log concentration": np.log(position["concentration"]),
            "n clusters": (sizes > 0).sum(),
            "squared sizes": (sizes**2).sum(),
            "pair": float(labels[0] == labels[1]),
            "ones": values.sum(),
            "agree": sum(values[labels == j].sum(axis=0).max(initial=0) for j in range(len(sizes))),
        }

    return SamplerProblem(
        f"Bernoulli mixture, {k} clusters",
        prior=kernel.sample_prior,
        data=lambda rng, position: kernel.sample_data(rng, position).toarray(missing=-1.0),
        transition=lambda rng, position, values: kernel.sweep(rng, position, unpacked(values)),
        statistics=statistics,
        log_likelihood=lambda position, values: kernel.log_joint(position, unpacked(values)),
        n_steps=3,
    )


def problem_with_holes():
    """The joint distribution of concentration, labels and the values that are there."""
    return joint_problem(3, HOLES)


# A second opinion: `test_every_sampler` tries the same sweeps (BernoulliGibbs, concentration learned).
@pytest.mark.thorough
def test_chains_are_calibrated():
    """Two independent runs that both fail at 1e-3 are a false alarm in a million."""
    kernel = kernel_of(X, 3, weight_concentration=LEARNED)

    def sampler(rng, rows, n_draws):
        own = BernoulliGibbs(rows, 3, LEARNED, Beta(SUCCESS, FAILURE))
        return mcmc.sample(
            own, own.start(), n_draws=n_draws, n_warmup=20, n_chains=1, random_state=rng, warn=False
        )  # fmt: skip

    calibrate = partial(
        simulation_based_calibration,
        kernel.sample_prior,
        kernel.sample_data,
        sampler,
        n_simulations=80,
        n_draws=15,
        thin=6,
        quantities=lambda p, rows: {
            "log a": np.log(p["concentration"]),
            "n clusters": len(np.unique(p["labels"])),
            "pair": float(p["labels"][0] == p["labels"][1]),
            "log joint": kernel.log_joint(p, rows),
        },
        alpha=1e-3,
    )
    result = calibrate(random_state=1)
    result = result if result.passed else calibrate(random_state=2)
    assert result.passed, result.summary()


def test_many_finite_clusters_have_the_law_of_the_process():
    """Chi-square on the number of clusters at k = 1000, thinned to independence; false-alarm rate 1e-6."""
    rng = np.random.default_rng(3)
    data = (rng.random((12, 5)) < 0.4).astype(float)
    counts = []
    for k in (1000, None):
        kernel = kernel_of(data, k)
        trace = mcmc.sample(
            kernel, kernel.start(), record=kernel.record, n_draws=300, n_warmup=30, thin=5, n_chains=2,
            random_state=4, warn=False,
        )  # fmt: skip
        counts.append(np.bincount(trace.flat("n_clusters"), minlength=13))
    table = np.array(counts)
    common = table.sum(axis=0) >= 20
    table = np.column_stack([table[:, common], table[:, ~common].sum(axis=1)])
    table = table[:, table.sum(axis=0) > 0]
    assert stats.chi2_contingency(table).pvalue > 1e-6


def test_wide_and_dense_rows_leave_the_range_of_doubles_and_stay_exact():
    """3000 columns, half of them ones: products would underflow. Two groups of rows differ in every column."""
    rng = np.random.default_rng(0)
    base = rng.random(3000) < 0.5
    data = np.array([base ^ (rng.random(3000) < 0.1) ^ (n % 2 == 1) for n in range(12)], dtype=float)
    kernel = BernoulliGibbs(as_rows(data), None, Hyperparameter(1.0), Beta(0.5, 0.5))
    state = kernel.init(np.random.default_rng(1), kernel.start())
    for _ in range(3):
        state, _ = kernel.step(np.random.default_rng(2), state)
    labels = state.position["labels"]
    assert len(np.unique(labels)) == 2
    assert (labels[::2] == labels[0]).all()
    assert (labels[1::2] == labels[1]).all()
    assert state.log_density == pytest.approx(log_joint(labels, data, None, 1.0, 0.5, 0.5), rel=1e-10)


# Predictions --------------------------------------------------------------------------------------------------------


def fitted(data=X, k=3, **settings):
    given = {
        "weight_concentration": ALPHA, "probabilities_prior": Beta(SUCCESS, FAILURE), "n_chains": 4, "n_warmup": 5,
        "n_draws": 5, "random_state": 0,
    } | settings  # fmt: skip
    return BayesianBernoulliMixture(k, **given).fit(data)


def predictive(row, data, samples, k):
    """p(row | X) averaged over samples of labels, from ratios of log p(z, X)."""
    values = []
    for labels in samples:
        choices = range(k) if k is not None else range(labels.max() + 2)
        whole = np.vstack([data, row])
        values += [log_joint(np.append(labels, j), whole, k) - log_joint(labels, data, k) for j in choices]
    return np.exp(logsumexp(values)) / len(samples)


@pytest.mark.parametrize("data", [X, HOLES], ids=["complete", "holes"])
@pytest.mark.parametrize("k", [3, None])
def test_predictions_equal_sums_over_all_completions(data, k):
    model = fitted(data, k)
    samples = list(model.sample_labels_)
    every = np.array(list(product([0.0, 1.0], repeat=4)))
    mass = np.array([predictive(row, data, samples, k) for row in every])
    assert mass.sum() == pytest.approx(1.0, abs=1e-10)
    np.testing.assert_allclose(np.exp(model.score_samples(every)), mass, rtol=1e-9)
    for present, absent in (([], None), ([1], None), ([0, 2], [3]), ([], [0, 1])):
        fits = every[:, present].all(axis=1) & ~every[:, absent or []].any(axis=1)
        expected = mass[fits] @ every[fits] / mass[fits].sum()
        np.testing.assert_allclose(model.predict_missing(present, absent), expected, atol=1e-10)
        row = np.full((1, 4), np.nan)
        row[0, present], row[0, absent or []] = 1.0, 0.0
        np.testing.assert_allclose(model.predict_missing_rows(row)[0], expected, atol=1e-10)
        if not absent:
            np.testing.assert_allclose(
                model.predict_missing_rows(sparse.csr_array(np.nan_to_num(row)))[0], expected, atol=1e-10
            )
    unknown = np.array([[1.0, np.nan, 0.0, np.nan]])
    fits = (every[:, 0] == 1) & (every[:, 2] == 0)
    assert model.score_samples(unknown)[0] == pytest.approx(np.log(mass[fits].sum()), abs=1e-10)


def test_probability_of_a_one_equals_integration():
    """E[theta | two of three members have it] under a beta prior, by quadrature."""
    rows, labels = as_rows(np.array([[1.0], [1.0], [0.0]])), np.zeros(3, dtype=int)
    tables = ClusterTables.of(rows, [labels], [1.0], 1, Beta(0.4, 0.7))

    def density(theta):
        return theta ** (0.4 - 1 + 2) * (1 - theta) ** (0.7 - 1 + 1)

    expected = integrate.quad(lambda t: t * density(t), 0, 1)[0] / integrate.quad(density, 0, 1)[0]
    assert tables.probabilities(slice(0, 1))[0, 0] == pytest.approx(expected, abs=1e-7)


def test_both_averages_are_the_same_for_one_chain_and_as_defined_for_more():
    one = fitted(n_chains=1)
    joint = one.predict_missing([1])
    np.testing.assert_allclose(one.set_params(combine="average").predict_missing([1]), joint, atol=1e-12)
    several = fitted(n_chains=5)
    parts = []
    for labels in several.sample_labels_:
        tables = ClusterTables.of(as_rows(X), [labels], [ALPHA], 3, Beta(SUCCESS, FAILURE))
        several_one = fitted(n_chains=1)
        several_one.tables_ = tables
        parts.append(several_one.predict_missing([1]))
    np.testing.assert_allclose(
        several.set_params(combine="average").predict_missing([1]), np.mean(parts, axis=0), atol=1e-12
    )


def grouped(n=120, seed=0):
    rng = np.random.default_rng(seed)
    groups = np.array([[1, 1, 1, 0, 0, 0, 0, 0], [0, 0, 0, 1, 1, 1, 0, 0], [0, 0, 0, 0, 0, 1, 1, 1]])
    kinds = np.arange(n) % 3
    return ((rng.random((n, 8)) < 0.8) & (groups[kinds] == 1)).astype(float), kinds


def test_a_starter_of_one_group_raises_that_group():
    data, kinds = grouped()
    model = fitted(data, 10, n_warmup=15, n_draws=15)
    own = np.array([np.bincount(kinds[model.labels_ == j], minlength=3).argmax() for j in range(model.n_clusters_)])
    unknown = np.full((2, 8), np.nan)
    unknown[1, 0] = 1.0
    proba = model.predict_proba(unknown)[:, :-1]
    assert proba[1, own == 0].sum() > 0.9 > proba[0, own == 0].sum()
    answer = model.predict_missing([0])
    assert answer[[1, 2]].min() > 0.6 > 0.1 > answer[3:].max()


def test_permuted_columns_give_permuted_answers_and_copies_of_a_column_equal_ones():
    data, _ = grouped()
    order = np.array([3, 0, 7, 1, 5, 2, 6, 4])
    model, other = fitted(data, 6), fitted(data[:, order], 6)
    assert (model.labels_ == other.labels_).all()
    np.testing.assert_allclose(model.predict_missing([2])[order], other.predict_missing([5]), atol=1e-12)
    twice = fitted(np.column_stack([data, data[:, 4]]), 6).predict_missing([0])
    assert twice[4] == pytest.approx(twice[8], abs=1e-12)


def test_permuted_rows_have_the_same_posterior():
    exact = enumerate_posterior(partial(log_joint, data=X, k=3), [range(3)] * 5).expectation(together)
    order = np.array([4, 2, 0, 3, 1])
    kernel = kernel_of(X[order], 3)
    trace = mcmc.sample(kernel, kernel.start(), n_draws=3000, n_warmup=10, random_state=5, warn=False)
    found = np.mean([together(labels) for labels in trace.flat("labels")], axis=0)
    assert np.abs(found - exact[np.ix_(order, order)]).max() < 0.03


# The estimator ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [3, None])
def test_scikit_learn_accepts_it(k):
    """Its check of sparse input asks every estimator with predict_proba for the tags of a classifier."""
    reason = "not a classifier"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_estimator(
            BayesianBernoulliMixture(k, n_chains=2, n_warmup=2, n_draws=3),
            expected_failed_checks={"check_estimator_sparse_array": reason, "check_estimator_sparse_matrix": reason},
        )


def test_kinds_of_input_give_the_same_fit():
    data, _ = grouped(30)
    model = fitted(data, 4)
    for same in (
        data.tolist(), data.astype(bool), data.astype(np.float32), data.astype(np.int64), data.astype(object),
        sparse.csr_matrix(data), sparse.csc_array(data), sparse.coo_array(data), 2.5 * data,
    ):  # fmt: skip
        other = fitted(same, 4)
        assert (other.sample_labels_ == model.sample_labels_).all()
        np.testing.assert_allclose(other.predict_missing([0]), model.predict_missing([0]))
    kept = data.copy()
    fitted(data, 4)
    assert (kept == data).all()


def test_jobs_do_not_change_the_results():
    data, _ = grouped(40)
    one, two = (fitted(data, 4, n_warmup=15, n_draws=15, n_jobs=n_jobs).sample_labels_ for n_jobs in (None, 2))
    assert (one == two).all()


def test_attributes_describe_the_best_sample():
    data, _ = grouped()
    model = fitted(data, None)
    assert model.lower_bound_ == pytest.approx(log_joint(model.labels_, data, None))
    assert model.lower_bound_ == model.log_joint_trace_[:, -1].max()
    assert model.log_joint_trace_.shape == model.n_clusters_trace_.shape == (4, 10)
    sizes = np.bincount(model.labels_)
    assert (np.diff(sizes) <= 0).all()
    np.testing.assert_allclose(model.weights_, sizes / (len(data) + ALPHA))
    expected = [
        (SUCCESS + data[model.labels_ == j].sum(axis=0)) / (SUCCESS + FAILURE + sizes[j]) for j in range(len(sizes))
    ]
    np.testing.assert_allclose(model.probabilities_, expected)
    proba = model.predict_proba(data)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    assert (model.predict(data) == model.labels_).mean() > 0.8
    same = model.similarity_matrix([0, 3, 1])
    labels = model.sample_labels_[:, [0, 3, 1]]
    np.testing.assert_allclose(same, (labels[:, :, None] == labels[:, None, :]).mean(axis=0))
    assert "cluster" in model.summary()


def test_sampled_rows_have_the_predictive_marginals():
    """Eight columns, 20,000 rows: a standard error is at most 0.0036; false-alarm rate below 1e-6."""
    data, _ = grouped()
    model = fitted(data, 5)
    drawn, labels = model.sample(20_000)
    assert np.abs(drawn.mean(axis=0) - model.predict_missing([])).max() < 0.02
    assert labels.max() < model.tables_.n_rows
    assert (model.sample(50)[0] == model.sample(50)[0]).all()


def test_a_saved_model_answers_as_before(tmp_path):
    data, _ = grouped(30)
    data[0, 0] = np.nan
    model = fitted(data, 4)
    trusted = [BayesianBernoulliMixture, ClusterTables]
    save(model, tmp_path / "model.skops", trusted=trusted)
    other = load(tmp_path / "model.skops", trusted=trusted)
    np.testing.assert_array_equal(other.predict_missing([1]), model.predict_missing([1]))


def test_a_chain_that_still_rises_warns_and_ctrl_c_keeps_what_is_there(monkeypatch):
    from pluri.mixtures.bayesian_bernoulli import estimator as bayesian_bernoulli

    monkeypatch.setattr(bayesian_bernoulli, "_still_rising", lambda trace: True)
    apart = mcmc.Verdict(False, 1.5, "log_density", 1.1)
    monkeypatch.setattr(mcmc.Trace, "verdict", lambda *names, **limit: apart)
    with pytest.warns(ConvergenceWarning, match="raise n_warmup and n_draws.*still rises"):
        assert not fitted().converged_
    monkeypatch.undo()
    step, calls = BernoulliGibbs.step, []

    def stops(self, rng, state):
        calls.append(0)
        if len(calls) == 30:
            raise KeyboardInterrupt
        return step(self, rng, state)

    monkeypatch.setattr(BernoulliGibbs, "step", stops)
    with on_interrupt("keep"), pytest.warns(UserWarning, match="interrupted"):
        model = fitted(n_draws=995)
    assert 0 < model.n_iter_ < 1000
    assert model.predict_missing([0]).shape == (4,)


def test_rise_is_told_from_noise():
    from pluri.mixtures.bayesian_bernoulli.estimator import _still_rising

    rng = np.random.default_rng(0)
    assert _still_rising(np.arange(40.0) + 0.1 * rng.normal(size=(5, 40)))
    assert not _still_rising(rng.normal(size=(5, 40)))
    assert not _still_rising(-1000 * np.exp(-np.arange(40.0)) + rng.normal(size=(5, 40)))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_components": 0}, "n_components"),
        ({"weight_concentration": 0.0}, "weight_concentration"),
        ({"weight_concentration": (1.0, 1.0)}, "weight_concentration must be a positive number or 'learn' or a prior"),
        ({"probabilities_prior": (0.5, 0.5)}, r"probabilities_prior must be a prior \(Beta\)"),
        ({"probabilities_prior": Beta(1.0, 1e200)}, "probabilities_prior must have a and b between"),
        ({"n_chains": 0}, "n_chains"),
        ({"n_draws": 2.5}, "n_draws"),
        ({"combine": "mean"}, "combine"),
        ({"binarize": "no"}, "binarize"),
    ],
)
def test_wrong_settings_get_a_sentence(settings, message):
    with pytest.raises(ValueError, match=message):
        BayesianBernoulliMixture(**{"n_chains": 2} | settings).fit(X)


def test_wrong_queries_get_a_sentence_and_odd_shapes_work():
    model = fitted()
    for present, absent, message in (([4], None, "present"), ([0], [-1], "absent"), ([0], [0], "common"),
                                     ([0.5], None, "present"), ([[0]], None, "present")):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            model.predict_missing(present, absent)
    for rows in ([9], [-1], [], [0.5]):
        with pytest.raises(ValueError, match="rows"):
            model.similarity_matrix(rows)
    with pytest.raises(ValueError, match="zeros and ones"):
        fitted(3 * X, binarize=None)
    with pytest.raises(ValueError, match="binarize"):
        fitted(sparse.csr_array(X), binarize=-1.0)
    assert fitted(X[:1], 7).n_clusters_ == 1
    assert fitted(np.zeros((6, 3)), None).predict_missing([]).max() < 0.2
    assert fitted(np.ones((6, 3)), None).predict_missing([]).min() > 0.6
    empty = np.full((4, 3), np.nan)
    np.testing.assert_allclose(fitted(empty, 2).predict_missing([]), SUCCESS / (SUCCESS + FAILURE))
    assert model.predict_missing(range(4)).tolist() == [1.0] * 4


def test_a_matrix_of_very_many_pairs_is_refused(monkeypatch):
    monkeypatch.setattr("pluri.mixtures.bayesian_bernoulli.queries.MOST_PAIRS", 3)
    model = fitted()
    assert model.similarity_matrix([0, 1, 2]).shape == (3, 3)
    with pytest.raises(ValueError, match="rows must be given, at most 3"):
        model.similarity_matrix()


@pytest.mark.parametrize("prior", [1e-40, 0.3, 1e20, 1e60])
def test_rising_factorials_keep_their_digits_whatever_the_prior(prior):
    tables = Tables.of(6, Beta(0.5, prior))
    failures, totals = tables.rising_failure, tables.rising_total
    exact = [sum(math.log(prior + j) for j in range(n)) for n in range(7)]
    np.testing.assert_allclose(failures, exact, rtol=1e-14)
    np.testing.assert_allclose(totals, [sum(math.log(prior + 0.5 + j) for j in range(n)) for n in range(7)], rtol=1e-14)


# Dense rows ---------------------------------------------------------------------------------------------------------


def mirrored(seed):
    """400 rows of 30 columns: one half of the columns is likely in either of two groups."""
    rng = np.random.default_rng(seed)
    half = np.where(np.arange(30) < 15, 0.6, 0.1)
    theta = np.array([half, half[::-1]])
    return (rng.random((400, 30)) < theta[rng.integers(0, 2, 400)]).astype(float), theta


@pytest.mark.parametrize("k", [2, 5])
@pytest.mark.parametrize("seed", [0, 5])
def test_dense_rows_are_told_apart_by_default(seed, k):
    """No chain stays in one cluster; completed rows are as near to the truth as those of a fit by EM."""
    data, theta = mirrored(seed)
    model = BayesianBernoulliMixture(k, n_chains=10, random_state=0).fit(data)
    assert model.n_clusters_trace_[:, -1].min() >= 2
    assert model.converged_
    prior = model.probabilities_prior_
    assert prior.a + prior.b == pytest.approx(0.955)
    assert prior.mean == pytest.approx(data.mean(), abs=1e-3)
    peer = BernoulliMixture(2, random_state=0).fit(data)
    for present in ([0], [0, 1, 2], [20, 21]):
        weight = theta[:, present].prod(axis=1)
        exact = weight @ theta / weight.sum()
        exact[present] = 1.0
        error, peers = (np.abs(m.predict_missing(present) - exact).max() for m in (model, peer))
        assert error < max(0.12, peers + 0.03)


def test_chains_that_disagree_badly_are_reported(monkeypatch):
    """Under a prior for sparse rows chains that begin in one cluster cannot leave it; others are far likelier."""
    data, _ = mirrored(5)
    given = {"probabilities_prior": Beta(0.005, 0.95), "n_chains": 12, "random_state": 0}
    model = BayesianBernoulliMixture(5, **given).fit(data)
    assert model.converged_
    assert model.n_clusters_trace_[:, -1].min() == 2
    well, number = BernoulliGibbs.likelier_start, iter(range(12))

    def seldom_well(kernel, rng):
        position = well(kernel, rng)
        return position if next(number) % 4 == 0 else {**position, "labels": np.zeros(400, dtype=int)}

    monkeypatch.setattr(BernoulliGibbs, "likelier_start", seldom_well)
    with pytest.warns(ConvergenceWarning, match=r"R-hat of log_density is \d.*Several chains are far less likely"):
        model.fit(data)
    assert not model.converged_
    assert model.r_hat_ > 1.1
    single = model.log_joint_trace_[model.n_clusters_trace_[:, -1] == 1, -1]
    assert single.size > 0
    assert single.max() < model.lower_bound_ - 500


def test_a_prior_that_is_not_given_follows_the_data():
    model = BayesianBernoulliMixture(3, n_chains=1, n_warmup=0, n_draws=3, random_state=0).fit(HOLES)
    known = ~np.isnan(HOLES)
    share = (np.nansum(HOLES) + 0.5) / (known.sum() + 1)
    assert model.probabilities_prior_.a == pytest.approx(0.955 * share)
    assert model.probabilities_prior_.b == pytest.approx(0.955 * (1 - share))
    constant = BayesianBernoulliMixture(3, n_chains=2, n_draws=3, random_state=0).fit(np.zeros((4, 3)))
    assert 0 < constant.probabilities_prior_.a < 0.1


def test_a_start_is_at_least_as_likely_as_rows_seated_in_turn():
    data, _ = mirrored(6)
    kernel = BernoulliGibbs(as_rows(data), 5)
    gains = []
    for number in range(5):
        start = kernel.log_joint(kernel.likelier_start(np.random.default_rng(number)))
        gains.append(start - kernel.init(np.random.default_rng(number), kernel.start()).log_density)
    assert min(gains) >= 0
    assert max(gains) > 1000


def test_a_row_of_zeros_and_ones_is_not_taken_for_columns_and_names_are_understood():
    frame = pd.DataFrame(np.eye(3), columns=["a", "b", "c"])
    model = BayesianBernoulliMixture(2, n_chains=2, n_draws=3, random_state=0).fit(frame)
    np.testing.assert_array_equal(model.predict_missing(["c"], ["a"]), model.predict_missing([2], [0]))
    with pytest.raises(ValueError, match=r"repeats.*predict_missing_rows"):
        model.predict_missing(np.array([1, 0, 0]))
    with pytest.raises(ValueError, match="names of columns"):
        model.predict_missing(["d"])
    peer = BernoulliMixture(2, random_state=0).fit(frame)
    np.testing.assert_array_equal(peer.predict_missing(["c"]), peer.predict_missing([2]))
