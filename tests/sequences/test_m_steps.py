"""Nothing near an M-step's answer is better: expected complete log-likelihood plus log prior, perturbed at random."""

import dataclasses

import numpy as np
import pytest

from pluri.engine import Batch
from pluri.engine.aligned import padded_width
from pluri.inference import flatten
from pluri.priors import Dirichlet, Diversity, Sticky
from pluri.sequences import GMMHMM, BernoulliHMM, CategoricalHMM, GaussianHMM, MultinomialHMM, PoissonHMM
from pluri.sequences.learning import ChainPrior, HiddenMarkovProblem

K, N = 3, 40
GAUSSIAN = {"means_prior": 0.4, "means_weight": 2.0, "covars_prior": 0.5, "covars_weight": 6.0}


def data(kind, missing):
    rng = np.random.default_rng(1)
    groups = rng.integers(K, size=(N, 1))
    X = {
        "real": rng.normal(size=(N, 2)) + 2.0 * groups,
        "symbols": (rng.integers(3, size=(N, 2)) + groups).astype(float),
        "counts": rng.poisson(1.0 + 3.0 * groups, size=(N, 3)).astype(float),
        "bits": (rng.random((N, 3)) < 0.2 + 0.3 * groups).astype(float),
    }[kind]
    if missing:
        X[rng.random(X.shape) < 0.2] = np.nan
    return X


# Model, data, whether missing values leave the expected log-likelihood a sum over what is seen.
CASES = {
    "gaussian-spherical": (lambda: GaussianHMM(K, "spherical"), "real", True),
    "gaussian-diag": (lambda: GaussianHMM(K, "diag"), "real", True),
    "gaussian-full": (lambda: GaussianHMM(K, "full"), "real", False),
    "gaussian-tied": (lambda: GaussianHMM(K, "tied"), "real", False),
    "gaussian-spherical-prior": (lambda: GaussianHMM(K, "spherical", **GAUSSIAN), "real", True),
    "gaussian-diag-prior": (lambda: GaussianHMM(K, "diag", **GAUSSIAN), "real", False),
    "gaussian-full-prior": (lambda: GaussianHMM(K, "full", **GAUSSIAN), "real", False),
    "gaussian-tied-prior": (lambda: GaussianHMM(K, "tied", **GAUSSIAN), "real", False),
    "gaussian-means-only": (lambda: GaussianHMM(K, "full", params="stm", **GAUSSIAN), "real", False),
    "gaussian-covars-only": (lambda: GaussianHMM(K, "full", params="stc", **GAUSSIAN), "real", False),
    "categorical": (lambda: CategoricalHMM(K), "symbols", True),
    "categorical-smooth": (lambda: CategoricalHMM(K, emissionprob_prior=2.0), "symbols", True),
    "categorical-sparse": (lambda: CategoricalHMM(K, emissionprob_prior=0.5), "symbols", False),
    "bernoulli": (lambda: BernoulliHMM(K), "bits", True),
    "bernoulli-prior": (lambda: BernoulliHMM(K, probs_prior=1.8), "bits", True),
    "poisson": (lambda: PoissonHMM(K), "counts", True),
    "poisson-prior": (lambda: PoissonHMM(K, lambdas_prior=3.0, lambdas_weight=2.0), "counts", True),
    "multinomial": (lambda: MultinomialHMM(K), "counts", True),
    "multinomial-prior": (lambda: MultinomialHMM(K, emissionprob_prior=1.5), "counts", False),
}
MIXTURES = {
    f"{kind}-{name}": (kind, options)
    for kind in ("spherical", "diag", "full", "tied")
    for name, options in {
        "flat": {},
        "prior": {
            "weights_prior": 2.0,
            "means_prior": 0.3,
            "means_weight": 1.5,
            "covars_prior": 2.0,
            "covars_weight": 3.0,
        },
    }.items()
}


def opened(model, X):
    """Emission family, prepared data and starting parameters of a model."""
    model.set_params(n_iter=0, random_state=0).fit(X)
    emission, parameters = model._model()
    return emission, emission.prepare(X), parameters.emission


def random_posterior(rng, n=N):
    posterior = np.zeros((n, padded_width(K)))
    posterior[:, :K] = rng.dirichlet(np.ones(K), size=n) * rng.uniform(0.2, 2.0, size=(n, 1))
    return posterior


def perturbed(emission, best, scale, rng):
    vector = emission.pack(best)
    finite = np.isfinite(vector)
    noise = scale * rng.standard_normal(vector.shape) * (rng.random(vector.shape) < rng.choice([0.2, 1.0]))
    return emission.unpack(np.where(finite, vector + noise, vector), best)


def assert_nothing_better(objective, best, neighbour):
    top = objective(best)
    assert np.isfinite(top)
    rng = np.random.default_rng(2)
    for scale in (1e-4, 1e-2, 0.3):
        for _ in range(25):
            assert objective(neighbour(best, scale, rng)) <= top + 1e-9 * max(1.0, abs(top))


@pytest.mark.parametrize("missing", [False, True], ids=["complete", "missing"])
@pytest.mark.parametrize("name", CASES)
def test_no_emission_parameters_nearby_are_better(name, missing):
    make, kind, may_miss = CASES[name]
    if missing and not may_miss:
        pytest.skip("with missing values the expected log-likelihood is not that of the observed ones")
    emission, X, start = opened(make(), data(kind, missing))
    posterior = random_posterior(np.random.default_rng(3))
    best = emission.maximize(emission.accumulate(start, X, posterior), start)

    def objective(parameters):
        out = np.empty_like(posterior)
        emission.log_prob(parameters, X, out)
        return float((posterior[:, :K] * out[:, :K]).sum()) + emission.log_prior(parameters)

    assert objective(best) > objective(start)
    assert_nothing_better(objective, best, lambda p, scale, rng: perturbed(emission, p, scale, rng))


@pytest.mark.parametrize("name", MIXTURES)
def test_no_mixture_parameters_nearby_are_better(name):
    kind, options = MIXTURES[name]
    emission, X, start = opened(GMMHMM(K, 2, covariance_type=kind, **options), data("real", False))
    posterior = random_posterior(np.random.default_rng(3))
    joint = emission._component_log_prob(start, X)
    shares = np.exp(joint - np.logaddexp.reduce(joint, axis=2, keepdims=True)) * posterior[:, :K, None]
    best = emission.maximize(emission.accumulate(start, X, posterior), start)

    def objective(parameters):
        return float((shares * emission._component_log_prob(parameters, X)).sum()) + emission.log_prior(parameters)

    assert objective(best) > objective(start)
    assert_nothing_better(objective, best, lambda p, scale, rng: perturbed(emission, p, scale, rng))


@pytest.mark.parametrize("kind", ["full", "tied"])
def test_missing_values_of_correlated_features_are_filled_in_by_their_conditional_moments(kind):
    """One sweep from a full record equals the textbook sums over each row's conditional mean and covariance."""
    X = data("real", missing=True)
    emission, prepared, start = opened(GaussianHMM(K, kind, covars_prior=0.0, covars_weight=0.0), X)
    posterior = random_posterior(np.random.default_rng(3))
    best = emission.maximize(emission.accumulate(start, prepared, posterior), start)
    weight = posterior[:, :K]
    filled, extra = np.zeros((K, N, 2)), np.zeros((K, N, 2, 2))
    for i in range(K):
        mean, covariance = start.means[i], start.covariances[start.group[i]]
        for t, x in enumerate(X):
            seen = ~np.isnan(x)
            gain = covariance[~seen][:, seen] @ np.linalg.pinv(covariance[seen][:, seen])
            filled[i, t] = x
            filled[i, t, ~seen] = mean[~seen] + gain @ (x[seen] - mean[seen])
            rest = covariance[~seen][:, ~seen] - gain @ covariance[seen][:, ~seen]
            extra[i, t][np.ix_(~seen, ~seen)] = rest
    means = np.einsum("ti,itd->id", weight, filled) / weight.sum(axis=0)[:, None]
    centred = filled - means[:, None]
    scatter = np.einsum("ti,itd,ite->ide", weight, centred, centred) + np.einsum("ti,itde->ide", weight, extra)
    expected = scatter / weight.sum(axis=0)[:, None, None]
    if kind == "tied":
        expected = scatter.sum(axis=0, keepdims=True) / weight.sum()
    np.testing.assert_allclose(best.means, means, rtol=1e-10)
    np.testing.assert_allclose(best.covariances, expected, rtol=1e-9)


CHAINS = {
    "flat": ChainPrior(),
    "smooth": ChainPrior(Dirichlet(2.0), Dirichlet(1.5)),
    "sparse": ChainPrior(Dirichlet(0.7), Dirichlet(0.6)),
    "sticky": ChainPrior(transition=Sticky(4.0)),
    "matrix": ChainPrior(transition=Dirichlet(np.arange(1.0, 10.0).reshape(3, 3))),
    "anchored": ChainPrior(anchor=np.full((3, 3), 1 / 3), anchor_weight=20.0),
    "diverse": ChainPrior(diversity=Diversity(5.0)),
    "diverse-fixed-point": ChainPrior(diversity=Diversity(5.0, solver="fixed_point", max_iter=2000)),
    "diverse-gradient": ChainPrior(diversity=Diversity(5.0, solver="projected_gradient", max_iter=2000)),
    "diverse-and-smooth": ChainPrior(Dirichlet(2.0), Dirichlet(1.5), Diversity(5.0)),
}


@pytest.mark.parametrize("zeros", [False, True], ids=["dense", "zeros"])
@pytest.mark.parametrize("name", CHAINS)
def test_no_chain_nearby_is_better(enumeration, name, zeros):
    if zeros and name == "anchored":
        pytest.skip("an anchor has to have the zeros of the chain")
    case = enumeration.make_case("gaussian-diag", n_samples=N, zeros=zeros)
    emission, parameters = case.model._model()
    problem = HiddenMarkovProblem(K, emission, CHAINS[name])
    stats = problem.expect(parameters, Batch(case.X, np.array([15, 25])))
    best = problem.maximize(stats, parameters)
    np.testing.assert_array_equal(best.transition == 0, parameters.transition == 0)
    np.testing.assert_allclose(best.transition.sum(axis=1), 1.0, rtol=1e-12)

    def objective(params):
        with np.errstate(divide="ignore", invalid="ignore"):
            value = np.nansum(stats.start * np.log(params.start))
            value += np.nansum(stats.transition * np.log(params.transition))
        still = dataclasses.replace(params, emission=parameters.emission)
        return float(value) + problem.log_prior(still)

    def neighbour(params, scale, rng):
        moved = problem.pack(params)
        moved = np.where(np.isfinite(moved), moved + scale * rng.standard_normal(moved.shape), moved)
        return problem.unpack(moved, params)

    assert objective(best) >= objective(parameters)
    # Diversity has several maxima: only the near neighbourhood is compared, to the solver's tolerance.
    top, rng = objective(best), np.random.default_rng(2)
    slack = 2e-5 if name == "diverse-gradient" else 1e-6 if name.startswith("diverse") else 1e-9
    for scale in (1e-3, 1e-2) if name.startswith("diverse") else (1e-3, 1e-2, 0.3):
        for _ in range(25):
            assert objective(neighbour(best, scale, rng)) <= top + slack * max(1.0, abs(top))


@pytest.mark.parametrize("name", [*CASES, *(f"gmm-{name}" for name in MIXTURES)])
def test_packing_and_unpacking_give_the_same_parameters(enumeration, name):
    if name.startswith("gmm-"):
        kind, options = MIXTURES[name.removeprefix("gmm-")]
        model, X = GMMHMM(K, 2, covariance_type=kind, **options), data("real", False)
    else:
        make, kind, _ = CASES[name]
        model, X = make(), data(kind, False)
    model.set_params(n_iter=3, tol=-np.inf, random_state=0).fit(X)
    emission, parameters = model._model()
    problem = HiddenMarkovProblem(K, emission, ChainPrior())
    vector = problem.pack(parameters)
    assert vector.ndim == 1
    again = problem.unpack(vector, parameters)
    one, two = flatten(parameters), flatten(again)
    assert one.keys() == two.keys()
    for leaf in one:
        if one[leaf].dtype.kind == "f":
            np.testing.assert_allclose(two[leaf], one[leaf], rtol=1e-9, atol=1e-12, err_msg=leaf)


def test_packing_keeps_exact_zeros_and_what_is_not_updated(enumeration):
    case = enumeration.make_case("categorical", zeros=True)
    case.model.emissionprob_ = np.array([[0.5, 0.5, 0.0, 0.0], [0.0, 0.2, 0.3, 0.5], [0.25, 0.25, 0.25, 0.25]])
    emission, parameters = case.model._model()
    problem = HiddenMarkovProblem(K, emission, ChainPrior(), update_start=False)
    vector = problem.pack(parameters)
    moved = problem.unpack(np.where(np.isfinite(vector), vector + 0.1 * np.arange(vector.size), vector), parameters)
    np.testing.assert_array_equal(moved.transition == 0, parameters.transition == 0)
    np.testing.assert_array_equal(moved.emission.table == 0, parameters.emission.table == 0)
    np.testing.assert_array_equal(moved.start, parameters.start)
    np.testing.assert_allclose(moved.transition.sum(axis=1), 1.0)
    assert np.abs(moved.transition - parameters.transition).max() > 1e-3
