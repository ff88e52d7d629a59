"""Gaussian-process classification against exact quadrature on three points, scikit-learn and finite differences."""

import math
import warnings

import numpy as np
import pytest
from scipy import integrate, stats
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessClassifier as Reference
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.utils.estimator_checks import check_estimator

from pluri.inference import mcmc
from pluri.priors.hyperpriors import Gamma, LogUniform, Uniform
from pluri.processes.gaussian_process_classification import GaussianProcessClassifier
from pluri.processes.gp_inference._tilted_kernels import compiled_tilted_moments
from pluri.processes.gp_inference.approximate import ApproximateEvidence
from pluri.processes.gp_inference.covariance import covariance_at
from pluri.processes.gp_inference.expectation_propagation import expectation_propagation
from pluri.processes.gp_inference.laplace import laplace
from pluri.processes.gp_inference.latent_draws import JointPosterior
from pluri.processes.gp_inference.learning import Charts
from pluri.processes.gp_inference.polya_gamma import draw_polya_gamma, mean_polya_gamma, polya_gamma
from pluri.processes.gp_inference.sites import expected_sigmoid, tilted_moments

X3 = np.array([[-1.0], [0.0], [1.0]])
Y3 = np.array([1, -1, 1])
SIGMOID_HALF = 0.5215639


def exact_answers(length=1.0, n_nodes=60):
    """Log evidence, posterior mean, and P(y = 1 | x = 0.5) of the three points by a product rule."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(n_nodes)
    weights = weights / math.sqrt(2.0 * math.pi)
    X = np.append(X3[:, 0], 0.5)
    covariance = np.exp(-0.5 * (X[:, None] - X) ** 2 / length**2)
    root = np.linalg.cholesky(covariance[:3, :3] + 1e-12 * np.eye(3))
    z = np.stack(np.meshgrid(nodes, nodes, nodes, indexing="ij"), axis=-1).reshape(-1, 3)
    weight = np.einsum("i,j,k->ijk", weights, weights, weights).ravel()
    f = z @ root.T
    joint = weight * np.prod(1.0 / (1.0 + np.exp(-Y3 * f)), axis=1)
    evidence = joint.sum()
    # Averages over the fourth value given three: a further one-dimensional rule.
    pull = np.linalg.solve(covariance[:3, :3], covariance[:3, 3])
    spread = math.sqrt(max(1.0 - covariance[3, :3] @ pull, 0.0))
    chance = sum(w * (joint @ (1.0 / (1.0 + np.exp(-(f @ pull) - spread * x)))) for x, w in zip(nodes, weights))
    return math.log(evidence), joint @ f / evidence, chance / evidence


def some_data(n=40, seed=0, n_features=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features))
    return X, np.where(rng.random(n) < 1 / (1 + np.exp(-3.0 * X[:, 0])), 1.0, -1.0)


def test_quadrature_itself_gives_the_known_answers():
    evidence, _, chance = exact_answers()
    assert evidence == pytest.approx(-2.2842754, abs=1e-7)
    assert chance == pytest.approx(SIGMOID_HALF, abs=1e-7)


@pytest.mark.parametrize(
    ("inference", "evidence", "latent", "chance"),
    [
        ("laplace", -2.3055499, (0.2017957, 0.0364327, 0.2017957), 0.5202301),
        ("ep", -2.2842896, (0.2083407, 0.0433484, 0.2083407), 0.5216151),
        ("polya_gamma", -2.2986641, (0.2043858, 0.0391530, 0.2043858), None),
    ],
)
def test_three_points_have_the_known_answers(inference, evidence, latent, chance):
    model = GaussianProcessClassifier(RBF(1.0), inference=inference, hyper_inference="fixed").fit(X3, Y3)
    assert model.log_marginal_likelihood_value_ == pytest.approx(evidence, abs=1e-7)
    np.testing.assert_allclose(model.latent_mean_, latent, atol=1e-7)
    if chance is not None:
        assert model.predict_proba([[0.5]])[0, 1] == pytest.approx(chance, abs=1e-7)
    assert model.predict_proba([[0.5]])[0, 1] == pytest.approx(SIGMOID_HALF, abs=2e-3)


@pytest.mark.parametrize("length", [0.3, 1.0, 3.0])
def test_the_bound_lies_below_and_expectation_propagation_is_nearest(length):
    exact, mean, _ = exact_answers(length)
    K = RBF(length)(X3)
    found = {f.__name__: f(K, Y3.astype(float)) for f in (laplace, expectation_propagation, polya_gamma)}
    assert found["polya_gamma"].log_evidence < exact
    errors = {name: abs(sites.log_evidence - exact) for name, sites in found.items()}
    assert min(errors, key=errors.get) == "expectation_propagation"
    assert errors["expectation_propagation"] < 3e-4
    np.testing.assert_allclose(found["expectation_propagation"].mean, mean, atol=1e-3)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("inference", ["ess", "polya_gamma_gibbs"])
def test_samplers_agree_with_quadrature(inference):
    # Five and a half Monte Carlo errors for each of three means: false alarm below 1e-6.
    _, mean, chance = exact_answers()
    model = GaussianProcessClassifier(
        RBF(1.0), inference=inference, hyper_inference="fixed", n_draws=2000, n_warmup=100, n_chains=2,
        n_predictive=4000, random_state=0,
    ).fit(X3, Y3)  # fmt: skip
    draws = model.trace_["latent"]
    for index in range(3):
        assert abs(draws[..., index].mean() - mean[index]) < 5.5 * mcmc.mcse_mean(draws[..., index])
    assert model.predict_proba([[0.5]])[0, 1] == pytest.approx(chance, abs=0.015)
    assert math.isnan(model.log_marginal_likelihood_value_)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_hyperparameters_and_function_sampled_together_agree_with_quadrature():
    # Five and a half Monte Carlo errors: false alarm below 1e-6.
    lengths = np.linspace(0.0, 3.0, 61)[1:] - 0.025
    answers = [exact_answers(length, 20) for length in lengths]
    weight = np.exp([answer[0] for answer in answers])
    weight /= weight.sum()
    settings = {
        "hyper_inference": "nuts",
        "priors": {"length_scale": Uniform(0.0, 3.0)},
        "n_chains": 2,
        "random_state": 0,
    }
    model = GaussianProcessClassifier(RBF(1.0), inference="ess", n_draws=600, n_warmup=300, **settings).fit(X3, Y3)
    draws = model.trace_["length_scale"]
    assert abs(draws.mean() - weight @ lengths) < 5.5 * mcmc.mcse_mean(draws)
    latent = model.trace_["latent"][..., 0]
    expected = weight @ [answer[1][0] for answer in answers]
    assert abs(latent.mean() - expected) < 5.5 * mcmc.mcse_mean(latent)
    chance = weight @ [answer[2] for answer in answers]
    assert model.predict_proba([[0.5]])[0, 1] == pytest.approx(chance, abs=0.03)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_hyperparameters_sampled_under_an_approximation_agree_with_quadrature():
    # Five and a half Monte Carlo errors: false alarm below 1e-6.
    lengths = np.linspace(0.0, 3.0, 301)[1:] - 0.005
    labels = Y3.astype(float)
    evidence = [laplace(RBF(length)(X3), labels).log_evidence for length in lengths]
    weight = np.exp(np.array(evidence)) / np.exp(evidence).sum()
    model = GaussianProcessClassifier(
        RBF(1.0), inference="laplace", hyper_inference="nuts", priors={"length_scale": Uniform(0.0, 3.0)}, n_draws=400,
        n_warmup=200, n_chains=2, n_predictive=100, random_state=0,
    ).fit(X3, Y3)  # fmt: skip
    draws = model.trace_["length_scale"]
    assert abs(draws.mean() - weight @ lengths) < 5.5 * mcmc.mcse_mean(draws)
    mean, std = model.decision_function([[0.5]], return_std=True)
    assert 0.0 < mean[0] < 0.2
    assert 0.8 < std[0] < 1.0


@pytest.mark.parametrize(("mean", "variance"), [(0.0, 1.0), (-3.0, 0.5), (2.0, 25.0), (-20.0, 9.0), (0.5, 400.0)])
@pytest.mark.parametrize("moments", [tilted_moments, compiled_tilted_moments])
@pytest.mark.parametrize("label", [1.0, -1.0])
def test_tilted_moments_equal_adaptive_quadrature(mean, variance, moments, label):
    scale = math.sqrt(variance)
    low, high = mean - variance - 12 * scale, mean + variance + 12 * scale
    grid = np.linspace(low, high, 400_001)
    density = np.exp(-np.logaddexp(0, -label * grid) - 0.5 * (grid - mean) ** 2 / variance) / (
        scale * math.sqrt(2 * math.pi)
    )
    mass = integrate.simpson(density, x=grid)
    first = integrate.simpson(density * grid, x=grid) / mass
    second = integrate.simpson(density * (grid - first) ** 2, x=grid) / mass
    log_mass, found_mean, found_variance = moments(np.array([label]), np.array([mean]), np.array([variance]))
    assert log_mass[0] == pytest.approx(math.log(mass), abs=1e-8)
    assert found_mean[0] == pytest.approx(first, abs=1e-7 * scale)
    assert found_variance[0] == pytest.approx(second, rel=1e-7)


def test_expected_sigmoid_at_the_ends():
    values = expected_sigmoid(np.array([0.0, 0.0, 800.0, -800.0, 2.0]), np.array([1.0, 1e6, 1.0, 1.0, 0.0]))
    np.testing.assert_allclose(values, [0.5, 0.5, 1.0, 0.0, 1 / (1 + math.exp(-2))], atol=1e-8)


@pytest.mark.parametrize("how", ["laplace", "ep", "polya_gamma"])
@pytest.mark.parametrize("kernel", [ConstantKernel(4.0) * RBF([0.8, 2.0]), RBF(0.5)], ids=["ard", "rbf"])
def test_gradient_of_the_evidence_equals_finite_differences(how, kernel):
    X, labels = some_data(25)
    evidence = ApproximateEvidence(covariance_at(kernel, X), labels, how, 2000, 0.8)
    theta = np.asarray(kernel.theta)
    gradient = evidence(theta)[1]
    for index, step in enumerate(1e-4 * np.eye(len(theta))):
        slope = (evidence(theta + step)[0] - evidence(theta - step)[0]) / 2e-4
        assert gradient[index] == pytest.approx(slope, abs=2e-4 if how == "polya_gamma" else 2e-6)


def test_gradient_of_the_joint_density_equals_finite_differences():
    X, labels = some_data(6)
    charts = Charts((LogUniform(1e-2, 1e2), Gamma(2.0, 1.0), Uniform(0.0, 10.0)))
    posterior = JointPosterior(covariance_at(ConstantKernel(1.0) * RBF([1.0, 1.0]), X), labels, charts, 1e-8)
    position = np.random.default_rng(1).normal(size=9)
    gradient = posterior(position)[1]
    for index, step in enumerate(1e-5 * np.eye(9)):
        slope = (posterior(position + step)[0] - posterior(position - step)[0]) / 2e-5
        assert gradient[index] == pytest.approx(slope, abs=1e-6)
    assert posterior(np.full(9, 1e5))[0] == -math.inf


@pytest.mark.parametrize("variance", [1.0, 100.0])
def test_the_variational_bound_never_falls(variance):
    X, labels = some_data(60)
    sites = polya_gamma(variance * RBF(0.7)(X), labels)
    assert sites.n_iter > 3
    assert (np.diff(sites.history) > -1e-10).all()


@pytest.mark.parametrize("variance", [1.0, 1e2, 1e4])
@pytest.mark.parametrize("length", [0.05, 1.0, 20.0])
def test_expectation_propagation_converges_on_stiff_problems(variance, length):
    X, labels = some_data(60)
    sites = expectation_propagation(variance * RBF(length)(X) + 1e-8 * np.eye(60), labels)
    assert sites.converged
    assert sites.log_evidence < 0.0


def test_polya_gamma_draws_have_the_right_law():
    # Means and variances of 50000 draws within 5 standard errors; the law of c = 0 and 3 against a long sum of gamma
    # variables at 1e-7. False alarm below 1e-5 in all.
    rng = np.random.default_rng(0)
    for tilt in (0.0, 0.5, 2.0, 5.0, 40.0):
        draws = draw_polya_gamma(rng, np.full(50_000, -tilt))
        variance = 1 / 24 if tilt == 0 else (np.tanh(tilt / 2) - tilt / 2 / np.cosh(tilt / 2) ** 2) / (2 * tilt**3)
        assert abs(draws.mean() - mean_polya_gamma(np.array([tilt]))[0]) < 5 * math.sqrt(variance / 50_000)
        assert abs(draws.var() - variance) < 5 * draws.var() * math.sqrt(stats.kurtosis(draws, fisher=False) / 50_000)
    k = np.arange(1, 400)
    for tilt in (0.0, 3.0):
        series = rng.exponential(size=(4000, 399)) @ (1 / ((k - 0.5) ** 2 + (tilt / 2 / math.pi) ** 2))
        series /= 2 * math.pi**2
        assert stats.ks_2samp(draw_polya_gamma(rng, np.full(20_000, tilt)), series).pvalue > 1e-7


@pytest.mark.parametrize("inference", ["laplace", "ep", "polya_gamma"])
def test_flipping_the_labels_flips_the_probabilities(inference):
    X, labels = some_data(30)
    new = np.random.default_rng(9).normal(size=(8, 2))
    settings = {"kernel": 3.0 * RBF(1.0), "inference": inference, "hyper_inference": "fixed"}
    there = GaussianProcessClassifier(**settings).fit(X, labels).predict_proba(new)
    back = GaussianProcessClassifier(**settings).fit(X, -labels).predict_proba(new)
    np.testing.assert_allclose(there, back[:, ::-1], atol=1e-9)
    np.testing.assert_allclose(there.sum(axis=1), 1.0)


def test_laplace_agrees_with_scikit_learn():
    X, labels = some_data(60)
    kernel = ConstantKernel(2.0) * RBF(1.2)
    theirs = Reference(kernel, optimizer=None, max_iter_predict=1000).fit(X, labels)
    ours = GaussianProcessClassifier(kernel, hyper_inference="fixed").fit(X, labels)
    assert ours.log_marginal_likelihood_value_ == pytest.approx(theirs.log_marginal_likelihood_value_, abs=1e-8)
    new = np.random.default_rng(9).normal(size=(8, 2))
    # scikit-learn replaces the sigmoid by five error functions.
    np.testing.assert_allclose(ours.predict_proba(new), theirs.predict_proba(new), atol=2e-4)
    learned = GaussianProcessClassifier(kernel).fit(X, labels)
    reference = Reference(kernel).fit(X, labels)
    assert learned.log_marginal_likelihood_value_ == pytest.approx(reference.log_marginal_likelihood_value_, abs=1e-4)


@pytest.mark.parametrize("inference", ["laplace", "ep", "polya_gamma", "ess", "polya_gamma_gibbs"])
def test_three_classes_with_names(inference):
    X, y = make_blobs(45, centers=[[-3, 0], [3, 0], [0, 4]], random_state=0)
    names = np.array(["left", "right", "up"])[y]
    settings = {"n_draws": 100, "n_warmup": 20, "n_chains": 1, "n_predictive": 50, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = GaussianProcessClassifier(5.0 * RBF(2.0), inference=inference, hyper_inference="fixed", **settings).fit(
            X, names
        )
    assert model.score(X, names) > 0.95
    assert model.latent_mean_.shape == (3, 45)
    assert model.decision_function(X).shape == (45, 3)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert "3 classes" in model.summary()


def test_the_mode_of_the_hyperparameters_follows_its_prior():
    X, labels = some_data(40)
    near, far = (
        GaussianProcessClassifier(RBF(1.0), hyper_inference="map", priors={"length_scale": Gamma(400.0, 400.0 / mean)})
        .fit(X, labels)
        .kernel_.length_scale
        for mean in (0.5, 4.0)
    )
    assert near == pytest.approx(0.5, rel=0.15)
    assert far == pytest.approx(4.0, rel=0.15)


def test_scikit_learn_contract():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_estimator(GaussianProcessClassifier())


def test_duplicated_inputs_with_different_labels_are_fine():
    X = np.array([[0.0], [0.0], [0.0], [2.0]])
    for inference in ("laplace", "ep", "polya_gamma"):
        model = GaussianProcessClassifier(RBF(1.0), inference=inference, hyper_inference="fixed").fit(X, [0, 1, 1, 0])
        assert 0.5 < model.predict_proba([[0.0]])[0, 1] < 0.7


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"inference": "exact"}, "inference must be one of 'laplace', 'ep'"),
        ({"hyper_inference": "slice"}, "hyper_inference must be one of 'fixed', 'ml2', 'map', 'nuts', got 'slice'"),
        ({"multi_class": "softmax"}, "multi_class must be 'one_vs_rest', got 'softmax'"),
        ({"damping": 0.0}, "damping must be a number above 0 and at most 1, got 0.0"),
        ({"max_exact_n": 2}, "at most max_exact_n=2 rows, got 3"),
        ({"kernel": RBF(1.0, "fixed"), "hyper_inference": "nuts", "inference": "ess"}, "no hyper-parameter to learn"),
    ],
)
def test_bad_settings_are_refused_in_a_sentence(settings, message):
    with pytest.raises(ValueError, match=message):
        GaussianProcessClassifier(**settings).fit(X3, Y3)


def test_one_class_and_missing_values_are_refused():
    with pytest.raises(ValueError, match="at least two classes, got one class only"):
        GaussianProcessClassifier().fit(X3, [1, 1, 1])
    with pytest.raises(ValueError, match="NaN"):
        GaussianProcessClassifier().fit([[0.0], [np.nan]], [0, 1])


def test_a_short_run_says_that_it_has_not_converged():
    X, labels = some_data(30)
    with pytest.warns(ConvergenceWarning, match="had not converged after max_iter=2"):
        GaussianProcessClassifier(100.0 * RBF(1.0), inference="polya_gamma", hyper_inference="fixed", max_iter=2).fit(
            X, labels
        )


@pytest.mark.parametrize("label", [1.0, -1.0])
def test_compiled_moments_see_the_sigmoid_from_a_start_far_on_its_flat_side(label):
    # exp(-u) underflows at the start of the sums, and the lower tail still reaches u < 0.
    given = np.full(3, label), label * np.array([650.0, 731.9, 900.0]), np.full(3, 1e5)
    for found, expected in zip(compiled_tilted_moments(*given), tilted_moments(*given)):
        np.testing.assert_allclose(found, expected, rtol=1e-7)
