from itertools import pairwise, product

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp
from scipy.stats import dirichlet, multivariate_normal, wishart
from sklearn.base import clone

from pluri.components.gaussian import GaussianStatistics
from pluri.engine import ArraySource
from pluri.engine.aligned import padded_width
from pluri.inference import AscentWarning
from pluri.priors import Sticky
from pluri.sequences.variational import normal_wishart
from pluri.sequences.variational.categorical import VariationalCategoricalHMM
from pluri.sequences.variational.gaussian import VariationalGaussianHMM
from pluri.sequences.variational.hmm import dirichlet_divergence, expected_log
from pluri.sequences.variational.normal_wishart import NormalWishart

COVARIANCE_TYPES = ("spherical", "diag", "full", "tied")
LENGTHS = [40, 1, 25, 34]
pytestmark = pytest.mark.filterwarnings("ignore:EM did not converge")


def switching(rng, n_samples, n_states, stay=0.9):
    return np.cumsum(rng.random(n_samples) > stay) % n_states


def gaussian_data(seed=0, n_samples=100, n_features=2, missing=0.0):
    rng = np.random.default_rng(seed)
    states = switching(rng, n_samples, 3)
    centers = rng.normal(scale=4.0, size=(3, n_features))
    mixing = rng.normal(size=(n_features, n_features))
    X = centers[states] + rng.normal(size=(n_samples, n_features)) @ mixing
    X[rng.random(X.shape) < missing] = np.nan
    return X


def categorical_data(seed=0, n_samples=100, n_symbols=4, missing=0.0):
    rng = np.random.default_rng(seed)
    table = rng.dirichlet(np.full(n_symbols, 0.3), size=3)
    X = np.array([rng.choice(n_symbols, p=table[state]) for state in switching(rng, n_samples, 3)], dtype=float)
    X[0] = n_symbols - 1
    X[1:][rng.random(n_samples - 1) < missing] = np.nan
    return X[:, None] if missing else X[:, None].astype(int)


# Distributions ------------------------------------------------------------------------------------------------------


def test_dirichlet_functions_agree_with_quadrature():
    """Both against integrals over the unit interval."""
    posterior, prior = np.array([2.5, 1.3]), np.array([0.4, 3.0])
    grid = (np.arange(400_000) + 0.5) / 400_000
    points = np.stack([grid, 1 - grid])
    density = np.exp((posterior - 1) @ np.log(points) + gammaln(posterior.sum()) - gammaln(posterior).sum())
    np.testing.assert_allclose((density * np.log(points)).mean(axis=1), expected_log(posterior), atol=1e-4)
    log_ratio = np.log(density) - [dirichlet.logpdf([0.5, 0.5], prior)]
    log_ratio -= (prior - 1) @ (np.log(points) - np.log(0.5))
    assert (density * log_ratio).mean() == pytest.approx(dirichlet_divergence(posterior, prior), abs=1e-4)


def random_record(rng, kind, tied=False, k=3, n_features=2):
    n_scales = 1 if tied else k
    factors = rng.normal(size=(n_scales, n_features, n_features + 2))
    scale = {
        "spherical": rng.gamma(3.0, size=k),
        "diag": rng.gamma(3.0, size=(k, n_features)),
        "full": factors @ factors.transpose(0, 2, 1),
    }[kind]
    group = np.zeros(k, dtype=int) if tied else np.arange(k)
    dof = n_features + rng.gamma(3.0, size=n_scales)
    return NormalWishart(rng.normal(size=(k, n_features)), rng.gamma(2.0, size=k) + 0.1, dof, scale, kind, group)


def dense_scale(record, c):
    n_features = record.means.shape[1]
    scale = record.scale[record.group[c]]
    return scale if record.kind == "full" else np.eye(n_features) * scale


KINDS = [("spherical", False), ("diag", False), ("full", False), ("full", True)]


@pytest.mark.parametrize(("kind", "tied"), KINDS)
def test_normal_wishart_functions_agree_with_simulation(kind, tied):
    """Means over 2,000 draws, within 5.5 standard errors: false alarm about 1e-6 for all sixteen checks together."""
    rng = np.random.default_rng(2)
    q, prior = random_record(rng, kind, tied), random_record(rng, kind, tied)
    x = rng.normal(size=(1, 2))
    out = np.empty((1, padded_width(3)))
    normal_wishart.expected_log_prob(q, x, out)
    n_draws, total, variance = 2000, 0.0, 0.0
    for c in range(3):
        g = q.group[c]
        target, target_prior = (wishart(r.dof[g], np.linalg.inv(dense_scale(r, c))) for r in (q, prior))
        precisions = target.rvs(n_draws, random_state=rng)
        roots = np.linalg.cholesky(np.linalg.inv(precisions))
        noise = np.einsum("nij,nj->ni", roots, rng.normal(size=(n_draws, 2)))
        means = q.means[c] + noise / np.sqrt(q.beta[c])

        def log_normal(differences, precisions=precisions):
            log_det = np.linalg.slogdet(precisions)[1]
            return 0.5 * (
                log_det - 2 * np.log(2 * np.pi) - np.einsum("ni,nij,nj->n", differences, precisions, differences)
            )

        draws = log_normal(x - means)
        assert abs(draws.mean() - out[0, c]) < 5.5 * draws.std() / np.sqrt(n_draws)

        of_mean = log_normal((means - q.means[c]) * np.sqrt(q.beta[c])) + np.log(q.beta[c])
        of_mean -= log_normal((means - prior.means[c]) * np.sqrt(prior.beta[c])) + np.log(prior.beta[c])
        log_ratio = of_mean
        if not (tied and c):
            stacked = precisions.transpose(1, 2, 0)
            log_ratio = of_mean + target.logpdf(stacked) - target_prior.logpdf(stacked)
        total += log_ratio.mean()
        variance += log_ratio.var() / n_draws
    assert abs(total - normal_wishart.divergence(q, prior)) < 5.5 * np.sqrt(variance)
    assert normal_wishart.divergence(q, q) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(("kind", "tied"), KINDS)
@pytest.mark.parametrize("fixed", ["nothing", "means", "covariances"])
def test_the_update_is_where_the_bound_is_highest(kind, tied, fixed):
    """Any small step from the updated hyper-parameters lowers E[log p(x)] - KL, with whatever is held fixed."""
    rng = np.random.default_rng(5)
    prior, old = random_record(rng, kind, tied), random_record(rng, kind, tied)
    X, posterior = rng.normal(size=(12, 2)), np.zeros((12, padded_width(3)))
    posterior[:, :3] = rng.dirichlet(np.ones(3), size=12)

    def bound(q):
        out = np.empty_like(posterior)
        normal_wishart.expected_log_prob(q, X, out)
        return (posterior[:, :3] * out[:, :3]).sum() - normal_wishart.divergence(q, prior)

    updates = {"update_means": fixed != "means", "update_covariances": fixed != "covariances"}
    best = normal_wishart.update(normal_wishart.accumulate(old, X, posterior), old, prior, **updates)
    vector, top = normal_wishart.pack(best), bound(best)
    np.testing.assert_allclose(normal_wishart.pack(normal_wishart.unpack(vector, best)), vector)
    assert top >= bound(old)
    n_scales = len(best.dof)
    of_means = np.zeros(len(vector), dtype=bool)
    of_means[:3] = of_means[3 + n_scales : 3 + n_scales + 6] = True
    free = {"nothing": of_means | ~of_means, "means": ~of_means, "covariances": of_means}[fixed]
    for i in np.flatnonzero(free):
        for step in (-1e-3, 1e-3):
            moved = vector.copy()
            moved[i] += step
            assert bound(normal_wishart.unpack(moved, best)) < top


# The bound ----------------------------------------------------------------------------------------------------------


def log_marginal_likelihood(X, lengths, k, start, transition, emission):
    """Exact: all state paths, with the probabilities integrated out (Dirichlet-multinomial)."""

    def evidence(counts, concentration):
        whole = concentration.sum(axis=-1)
        return (
            gammaln(whole)
            - gammaln(whole + counts.sum(axis=-1))
            + (gammaln(counts + concentration) - gammaln(concentration)).sum(axis=-1)
        ).sum()

    offsets = np.concatenate([[0], np.cumsum(lengths)])
    terms = []
    for path in product(range(k), repeat=len(X)):
        starts, pairs, symbols = np.zeros(k), np.zeros((k, k)), np.zeros(emission.shape)
        for begin, end in pairwise(offsets):
            starts[path[begin]] += 1
            for t in range(begin + 1, end):
                pairs[path[t - 1], path[t]] += 1
        for t, x in enumerate(X[:, 0]):
            if not np.isnan(x):
                symbols[path[t], int(x)] += 1
        terms.append(evidence(starts, start) + evidence(pairs, transition) + evidence(symbols, emission))
    return logsumexp(terms)


@pytest.mark.parametrize("seed", range(3))
def test_the_bound_is_below_the_exact_evidence(seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(3, size=(8, 1)).astype(float)
    X[0, 0], X[3, 0] = 2.0, np.nan
    lengths = [5, 3]
    priors = {"startprob_prior": 0.7, "transmat_prior": rng.gamma(2.0, size=(2, 2)), "emissionprob_prior": 0.5}
    model = VariationalCategoricalHMM(2, **priors, n_init=10, n_iter=500, random_state=seed).fit(X, lengths=lengths)
    exact = log_marginal_likelihood(
        X, lengths, 2, model.startprob_prior_, model.transmat_prior_, model.emissionprob_prior_
    )
    assert (model.history_.objective < exact).all()
    assert model.lower_bound_ > exact - 3.0


def test_the_bound_is_tight_with_one_state():
    """One state: q is the exact posterior, and the bound the evidence in closed form."""
    X = categorical_data(n_samples=30)
    model = VariationalCategoricalHMM(1, emissionprob_prior=0.4, random_state=0).fit(X)
    flat = np.full((1, 4), 0.4)
    exact = log_marginal_likelihood(X.astype(float), [30], 1, np.ones(1), np.ones((1, 1)), flat)
    assert model.lower_bound_ == pytest.approx(exact)

    X = gaussian_data(n_samples=30)
    model = VariationalGaussianHMM(1, beta_prior=2.0, dof_prior=3.5, scale_prior=0.5, means_prior=[1.0, -1.0]).fit(X)
    beta, dof, scale = model.beta_posterior_[0], model.dof_posterior_[0], model.scale_posterior_[0]
    log_evidence = (
        -30 * np.log(np.pi)
        + np.log(2.0 / beta)
        + gammaln(0.5 * (dof - np.arange(2))).sum()
        - gammaln(0.5 * (3.5 - np.arange(2))).sum()
        + 0.5 * 3.5 * np.linalg.slogdet(0.5 * np.eye(2))[1]
        - 0.5 * dof * np.linalg.slogdet(scale)[1]
    )
    assert model.lower_bound_ == pytest.approx(log_evidence)


def models(**settings):
    settings = {"n_iter": 60, "tol": -np.inf, "random_state": 3} | settings
    return [
        *(VariationalGaussianHMM(4, kind, **settings) for kind in COVARIANCE_TYPES),
        VariationalCategoricalHMM(4, **settings),
    ]


def data_for(model, **options):
    return categorical_data(**options) if isinstance(model, VariationalCategoricalHMM) else gaussian_data(**options)


def name_of(model):
    return f"{type(model).__name__} {getattr(model, 'covariance_type', '')}".strip()


@pytest.mark.filterwarnings("error::pluri.inference.AscentWarning")
@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("model", models(), ids=name_of)
def test_the_bound_never_falls(model, missing):
    assert issubclass(AscentWarning, RuntimeWarning)
    for seed in range(2):
        X = data_for(model, seed=seed, missing=missing)
        if missing:
            X[7] = np.nan  # a whole row
        weight = np.array([1.0, 0.5, 2.0, 0.0])
        fitted = clone(model).set_params(random_state=seed).fit(X, lengths=LENGTHS, sample_weight=weight)
        objective = fitted.history_.objective
        assert (np.diff(objective) >= -1e-9 * np.abs(objective[1:])).all()
        assert objective[-1] > objective[0]


@pytest.mark.parametrize("params", ["s", "t", "e", "st"])
def test_the_bound_never_falls_when_some_posteriors_are_held(params):
    X = categorical_data()
    first = VariationalCategoricalHMM(3, random_state=0, n_iter=2).fit(X)
    before = {name: np.array(getattr(first, name)) for name in vars(first) if name.endswith("_posterior_")}
    first.set_params(params=params, init_params="", n_iter=20, tol=-np.inf).fit(X)
    assert (np.diff(first.history_.objective) >= -1e-9).all()
    letters = {"startprob_posterior_": "s", "transmat_posterior_": "t", "emissionprob_posterior_": "e"}
    for name, letter in letters.items():
        assert np.array_equal(before[name], getattr(first, name)) == (letter not in params)


# hmmlearn -----------------------------------------------------------------------------------------------------------


def starting_point(rng, k, n_features, covariance_type):
    """Prior and posterior attributes of a Gaussian model."""
    factors = rng.normal(size=(k, n_features, n_features + 3))
    full = factors @ factors.transpose(0, 2, 1)
    scale = {
        "spherical": np.trace(full, axis1=1, axis2=2),
        "diag": np.diagonal(full, axis1=1, axis2=2).copy(),
        "full": full,
        "tied": full[0],
    }[covariance_type]
    tied = covariance_type == "tied"
    return {
        "means_prior_": rng.normal(size=(k, n_features)),
        "means_posterior_": rng.normal(scale=4.0, size=(k, n_features)),
        "beta_prior_": rng.gamma(2.0, size=k),
        "beta_posterior_": rng.gamma(20.0, size=k),
        "dof_prior_": 3.5 if tied else n_features + rng.gamma(2.0, size=k),
        "dof_posterior_": 30.0 if tied else n_features + rng.gamma(20.0, size=k),
        "scale_prior_": scale * 0.1,
        "scale_posterior_": scale * 10.0,
    }


def chain_point(rng, k):
    return {
        "startprob_prior_": rng.gamma(2.0, size=k),
        "startprob_posterior_": rng.gamma(2.0, size=k),
        "transmat_prior_": rng.gamma(2.0, size=(k, k)),
        "transmat_posterior_": rng.gamma(5.0, size=(k, k)),
    }


def fit_both(ours, theirs, attributes, X):
    for model in (ours, theirs):
        for name, value in attributes.items():
            setattr(model, name, np.copy(value) if np.ndim(value) else value)
        model.fit(X, LENGTHS)
    for name in attributes:
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-6, atol=1e-8, err_msg=name)
    return ours, theirs


def same_answers(ours, theirs, X):
    assert ours.score(X, LENGTHS) == pytest.approx(theirs.score(X, LENGTHS))
    for algorithm in ("viterbi", "map"):
        log_prob, states = ours.decode(X, LENGTHS, algorithm=algorithm)
        expected, expected_states = theirs.decode(X, LENGTHS, algorithm=algorithm)
        assert log_prob == pytest.approx(expected)
        np.testing.assert_array_equal(states, expected_states)
    np.testing.assert_allclose(ours.predict_proba(X, LENGTHS), theirs.predict_proba(X, LENGTHS), atol=1e-7)


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
@pytest.mark.parametrize("n_features", [1, 2])
def test_gaussian_equals_hmmlearn_from_the_same_start(covariance_type, n_features):
    vhmm = pytest.importorskip("hmmlearn.vhmm")
    rng = np.random.default_rng(n_features)
    X = gaussian_data(n_features=n_features)
    settings = {"covariance_type": covariance_type, "n_iter": 25, "tol": -np.inf, "init_params": ""}
    ours, theirs = VariationalGaussianHMM(3, **settings), vhmm.VariationalGaussianHMM(3, **settings)
    theirs.n_features = n_features
    attributes = chain_point(rng, 3) | starting_point(rng, 3, n_features, covariance_type)
    fit_both(ours, theirs, attributes, X)
    for name in ("startprob_", "transmat_", "means_", "covars_"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-6, atol=1e-9, err_msg=name)
    constant = -0.5 * X.size * np.log(2 * np.pi)
    np.testing.assert_allclose(ours.history_.objective, np.array(theirs.monitor_.history) + constant, rtol=1e-8)
    same_answers(ours, theirs, X)


@pytest.mark.parametrize("implementation", ["scaling", "log"])
def test_categorical_equals_hmmlearn_from_the_same_start(implementation):
    vhmm = pytest.importorskip("hmmlearn.vhmm")
    rng = np.random.default_rng(0)
    X = categorical_data()
    settings = {"n_iter": 25, "tol": -np.inf, "init_params": "", "implementation": implementation}
    ours, theirs = VariationalCategoricalHMM(3, **settings), vhmm.VariationalCategoricalHMM(3, **settings)
    emission = {
        "emissionprob_prior_": rng.gamma(1.0, size=(3, 4)),
        "emissionprob_posterior_": rng.gamma(9, size=(3, 4)),
    }
    fit_both(ours, theirs, chain_point(rng, 3) | emission, X)
    np.testing.assert_allclose(ours.history_.objective, np.array(theirs.monitor_.history), rtol=1e-8)
    assert ours.lower_bound_ == pytest.approx(theirs.monitor_.history[-1])
    same_answers(ours, theirs, X)


def test_signatures_and_default_priors_are_those_of_hmmlearn():
    vhmm = pytest.importorskip("hmmlearn.vhmm")
    for ours, X in ((VariationalGaussianHMM, gaussian_data()), (VariationalCategoricalHMM, categorical_data())):
        theirs = getattr(vhmm, ours.__name__)
        expected = theirs().get_params() | {"implementation": "scaling"}
        assert {name: ours().get_params()[name] for name in expected} == expected
        # The scale of the Gaussian model is the exception: relative to the data, where hmmlearn's is a number.
        options = (
            {"scale_prior": 1e-3 * np.tile(np.eye(X.shape[1]), (3, 1, 1))} if ours is VariationalGaussianHMM else {}
        )
        fits = [family(3, random_state=0, n_iter=2, **options).fit(X, LENGTHS) for family in (ours, theirs)]
        for name in vars(fits[0]):
            if name.endswith("_prior_"):
                np.testing.assert_allclose(getattr(fits[0], name), getattr(fits[1], name), err_msg=name)
            if name.endswith("_posterior_"):
                assert np.shape(getattr(fits[0], name)) == np.shape(getattr(fits[1], name))


# The estimators -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_gaussian_model_keeps_only_the_states_it_needs(covariance_type):
    rng = np.random.default_rng(1)
    states = switching(rng, 400, 3)
    X = np.array([[-6.0, 0.0], [0.0, 6.0], [6.0, 0.0]])[states] + rng.normal(size=(400, 2))
    model = VariationalGaussianHMM(5, covariance_type, n_init=10, n_iter=300, random_state=0).fit(X)
    assert (model.state_occupancy_ > 4).sum() == 3
    predicted = model.predict(X)
    assert len({(a, b) for a, b in zip(states, predicted)}) <= 4
    unused = model.state_occupancy_ < 1e-3  # such a state falls back to its prior
    np.testing.assert_allclose(model.means_posterior_[unused], model.means_prior_[unused], atol=0.01)


def test_categorical_model_keeps_only_the_states_it_needs():
    """A cycle of six steps with two symbols needs six states."""
    X = np.tile([0, 0, 0, 1, 1, 1], 40)[:, None]
    model = VariationalCategoricalHMM(9, n_init=10, n_iter=300, random_state=0).fit(X)
    assert (model.state_occupancy_ > 1).sum() == 6


@pytest.mark.parametrize("model", models(n_iter=15), ids=name_of)
def test_batches_threads_log_space_and_lists_change_nothing(model):
    X = data_for(model)
    expected = clone(model).fit(X, lengths=LENGTHS)
    split = np.split(X, np.cumsum(LENGTHS)[:-1])
    if isinstance(model, VariationalCategoricalHMM):
        model = clone(model).set_params(n_features=4)
    fits = [
        clone(model).fit(split),
        clone(model).set_params(n_jobs=2).fit(ArraySource(X, np.array(LENGTHS), batch_size=30)),
        clone(model).set_params(implementation="log").fit(X, LENGTHS),
        clone(model).fit(X, lengths=LENGTHS, sample_weight=np.ones(4)),
    ]
    for other in fits:
        np.testing.assert_allclose(other.history_.objective, expected.history_.objective, rtol=1e-9)
        np.testing.assert_allclose(other.transmat_posterior_, expected.transmat_posterior_, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("model", models(n_iter=300, tol=1e-9), ids=name_of)
def test_acceleration_and_warm_start_reach_the_same_bound(model):
    X = data_for(model)
    plain = clone(model).fit(X, lengths=LENGTHS)
    fast = clone(model).set_params(acceleration="squarem").fit(X, lengths=LENGTHS)
    assert fast.lower_bound_ >= plain.history_.objective[0]
    assert (np.diff(fast.history_.objective) >= -1e-7 * abs(fast.lower_bound_)).all()
    halves = clone(model).set_params(n_iter=7, warm_start=True, tol=-np.inf)
    halves.fit(X, lengths=LENGTHS).fit(X, lengths=LENGTHS)
    rest = plain.history_.objective[7:14]  # fewer, if it had converged before
    np.testing.assert_allclose(halves.history_.objective[: len(rest)], rest, rtol=1e-9)


def test_strings_and_several_columns_have_a_posterior_each():
    words = np.array([["the", "x"], ["dog", "y"], ["runs", "x"], ["the", "y"]] * 6, dtype=object)
    model = VariationalCategoricalHMM(3, emissionprob_prior=[0.2, 0.7], random_state=0).fit(words, lengths=[12, 12])
    assert [table.shape for table in model.emissionprob_posterior_] == [(3, 3), (3, 2)]
    assert [float(table[0, 0]) for table in model.emissionprob_prior_] == [0.2, 0.7]
    for table, mean in zip(model.emissionprob_posterior_, model.emissionprob_):
        np.testing.assert_allclose(table / table.sum(axis=1, keepdims=True), mean)
        assert table.sum() == pytest.approx(24 + 3 * (0.6 if table.shape[1] == 3 else 1.4))
    again = clone(model).set_params(n_iter=3, init_params="", tol=-np.inf)
    for name in ("emissionprob_prior_", "emissionprob_posterior_"):
        setattr(again, name, getattr(model, name))
    assert again.fit(words, lengths=[12, 12]).predict(words).shape == (24,)


def test_a_missing_value_counts_as_its_expectation():
    """Moments with missing values equal those of a cloud that has the conditional mean and variance."""
    rng = np.random.default_rng(0)
    for kind, tied in KINDS:
        q = random_record(rng, kind, tied)
        x = np.array([[1.3, np.nan]])
        posterior = np.zeros((1, padded_width(3)))
        posterior[0, :3] = [0.2, 0.5, 0.3]
        stats = normal_wishart.accumulate(q, x, posterior)
        assert isinstance(stats, GaussianStatistics)
        for c in range(3):
            covariance = dense_scale(q, c) / q.dof[q.group[c]]
            seen = x[0, 0] - q.means[c, 0]
            guess = covariance[0, 1] / covariance[0, 0] * seen
            spread = covariance[1, 1] - covariance[0, 1] ** 2 / covariance[0, 0]
            weight = posterior[0, c]
            np.testing.assert_allclose(stats.first[c], weight * np.array([seen, guess]))
            second = stats.second[c] if stats.second.ndim == 2 else np.diag(stats.second[c])
            np.testing.assert_allclose(second, weight * np.array([seen**2, guess**2 + spread]))
            np.testing.assert_allclose(stats.count[c], weight)
        out = np.empty((1, padded_width(3)))
        normal_wishart.expected_log_prob(q, x, out)
        center = multivariate_normal(q.means[0, 0], (dense_scale(q, 0) / q.dof[0])[0, 0])
        assert out[0, 0] == pytest.approx(center.logpdf(1.3) + q.log_offset[0])


def test_priors_may_be_objects_and_numbers():
    X = gaussian_data()
    sticky = VariationalGaussianHMM(3, transmat_prior=Sticky(5.0), startprob_prior=2.0, random_state=0, n_iter=3)
    sticky.fit(X)
    np.testing.assert_array_equal(sticky.transmat_prior_, 1.0 + 5.0 * np.eye(3))
    np.testing.assert_array_equal(sticky.startprob_prior_, [2.0, 2.0, 2.0])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"covariance_type": "round"}, "covariance_type"),
        ({"startprob_prior": 0.0}, "startprob_prior"),
        ({"transmat_prior": np.ones(4)}, "transmat_prior"),
        ({"means_prior": np.ones((2, 2))}, "means_prior"),
        ({"beta_prior": -1.0}, "beta_prior"),
        ({"dof_prior": 1.0}, "dof_prior"),
        ({"scale_prior": -np.eye(2)}, "scale_prior"),
        ({"scale_prior": np.eye(3)}, "scale_prior"),
        ({"params": "ste"}, "params"),
        ({"n_components": 0}, "n_components"),
    ],
)
def test_bad_settings_are_refused_by_name(settings, message):
    with pytest.raises(ValueError, match=message):
        VariationalGaussianHMM(**({"n_components": 3} | settings)).fit(gaussian_data())


def test_bad_symbol_priors_are_refused_by_name():
    for value in (0.0, np.ones((2, 2)), "flat"):
        with pytest.raises(ValueError, match="emissionprob_prior" if not isinstance(value, str) else "could not"):
            VariationalCategoricalHMM(3, emissionprob_prior=value).fit(categorical_data())
