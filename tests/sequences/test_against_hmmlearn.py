"""From the same start, the same parameters as hmmlearn after several sweeps; and a diversity of zero is no prior."""

import numpy as np
import pytest

from pluri.priors import Diversity
from pluri.sequences import BernoulliHMM, CategoricalHMM, GaussianHMM, MultinomialHMM, PoissonHMM

hmm = pytest.importorskip("hmmlearn.hmm")
ConvergenceMonitor = pytest.importorskip("hmmlearn.base").ConvergenceMonitor

K, D = 3, 2
LENGTHS = [40, 1, 2, 57]
SWEEPS = 6


def chain(rng):
    return rng.dirichlet(np.full(K, 2.0)), rng.dirichlet(np.full(K, 2.0), size=K)


class Endless(ConvergenceMonitor):
    """hmmlearn stops when the log-likelihood falls, which under a prior it may: go on for all sweeps."""

    @property
    def converged(self):
        return self.iter == self.n_iter


def started(models, **values):
    """Give all models copies of the same starting values."""
    for model in models:
        model.set_params(n_iter=SWEEPS, tol=-np.inf, init_params="")
        for name, value in values.items():
            setattr(model, name, np.array(value))
    return models


def assert_same_model(ours, theirs, X, names):
    ours.fit(X, lengths=LENGTHS)
    theirs.monitor_ = Endless(-np.inf, SWEEPS, verbose=False)
    theirs.fit(X, LENGTHS)
    for name in ("startprob_", "transmat_", *names):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-8, atol=1e-8, err_msg=name)
    np.testing.assert_allclose(ours.score(X, LENGTHS), theirs.score(X, LENGTHS), rtol=1e-10)
    for algorithm in ("viterbi", "map"):
        (score, states), (expected, expected_states) = (
            model.decode(X, LENGTHS, algorithm=algorithm) for model in (ours, theirs)
        )
        np.testing.assert_allclose(score, expected, rtol=1e-9)
        np.testing.assert_array_equal(states, expected_states)
    np.testing.assert_allclose(ours.predict_proba(X, LENGTHS), theirs.predict_proba(X, LENGTHS), atol=1e-8)
    np.testing.assert_allclose(
        ours.get_stationary_distribution(), theirs.get_stationary_distribution(), atol=1e-8, err_msg="stationary"
    )
    return ours, theirs


def gaussian_data(rng):
    states = rng.integers(K, size=sum(LENGTHS))
    return rng.normal(size=(sum(LENGTHS), D)) + 2.0 * states[:, None] * [1.0, -1.0]


def gaussian_start(rng, kind):
    roots = rng.normal(size=(K, D, D + 3))
    full = roots @ roots.transpose(0, 2, 1) / D
    covars = {
        "spherical": full[:, 0, 0],
        "diag": np.diagonal(full, axis1=1, axis2=2),
        "full": full,
        "tied": full.mean(axis=0),
    }[kind]
    start, transition = chain(rng)
    return {"startprob_": start, "transmat_": transition, "means_": rng.normal(size=(K, D)), "covars_": covars}


# hmmlearn adds a scalar covars_prior to all entries of a matrix; we take it times the identity. Matrices are the same.
PRIORS = {
    "default": {"covars_prior": 1e-2},  # hmmlearn's default; ours is relative to the data
    "informative": {
        "means_prior": 0.7,
        "means_weight": 3.0,
        "covars_prior": 0.4,
        "covars_weight": 6.0,
        "startprob_prior": 2.0,
        "transmat_prior": 1.5,
    },
}


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("kind", ["spherical", "diag", "full", "tied"])
def test_gaussian_sweeps_equal_hmmlearn(kind, prior):
    rng = np.random.default_rng(0)
    options = dict(PRIORS[prior])
    if kind in ("full", "tied"):
        scale = options.get("covars_prior", 1e-2) * np.array([[1.0, 0.3], [0.3, 2.0]])
        options["covars_prior"] = np.tile(scale, (K, 1, 1)) if kind == "full" else scale
    ours, theirs = started(
        (GaussianHMM(K, kind, **options), hmm.GaussianHMM(K, kind, **options)), **gaussian_start(rng, kind)
    )
    names = ("means_",) if kind == "spherical" else ("means_", "covars_")
    assert_same_model(ours, theirs, gaussian_data(rng), names)
    if kind == "spherical":  # after fit, hmmlearn's own spherical covars_ has k * D matrices
        np.testing.assert_allclose(ours._covars_, theirs._covars_[:, 0], rtol=1e-8)


@pytest.mark.parametrize("concentration", [1.0, 1.7])
def test_categorical_sweeps_equal_hmmlearn(concentration):
    rng = np.random.default_rng(1)
    start, transition = chain(rng)
    table = rng.dirichlet(np.ones(5), size=K)
    options = {"emissionprob_prior": concentration, "transmat_prior": concentration}
    ours, theirs = started(
        (CategoricalHMM(K, **options), hmm.CategoricalHMM(K, **options)),
        startprob_=start,
        transmat_=transition,
        emissionprob_=table,
    )
    assert_same_model(ours, theirs, rng.integers(5, size=(sum(LENGTHS), 1)), ("emissionprob_",))


def test_multinomial_sweeps_equal_hmmlearn():
    rng = np.random.default_rng(2)
    start, transition = chain(rng)
    ours, theirs = started(
        (MultinomialHMM(K, n_trials=7), hmm.MultinomialHMM(K, n_trials=7)),
        startprob_=start,
        transmat_=transition,
        emissionprob_=rng.dirichlet(np.ones(4), size=K),
    )
    tables = rng.dirichlet(np.ones(4), size=K)[rng.integers(K, size=sum(LENGTHS))]
    assert_same_model(ours, theirs, np.stack([rng.multinomial(7, row) for row in tables]), ("emissionprob_",))


def test_poisson_sweeps_equal_hmmlearn():
    rng = np.random.default_rng(3)
    start, transition = chain(rng)
    ours, theirs = started(
        (PoissonHMM(K), hmm.PoissonHMM(K)),
        startprob_=start,
        transmat_=transition,
        lambdas_=rng.uniform(1.0, 6.0, size=(K, D)),
    )
    X = rng.poisson(np.array([1.0, 4.0, 9.0])[rng.integers(K, size=sum(LENGTHS))][:, None] * [1.0, 0.5])
    assert_same_model(ours, theirs, X, ("lambdas_",))


def test_samples_of_the_two_libraries_come_from_the_same_model():
    # Means of 4,000 samples, compared at five standard errors of a chain that forgets in a few steps: false alarms
    # below 1e-4 for all coordinates together.
    rng = np.random.default_rng(4)
    ours, theirs = started((GaussianHMM(K, "full"), hmm.GaussianHMM(K, "full")), **gaussian_start(rng, "full"))
    theirs.n_features = D
    ours_X, _ = ours.sample(4000, random_state=0)
    theirs_X, _ = theirs.sample(4000, random_state=0)
    error = np.sqrt((ours_X.var(axis=0) + theirs_X.var(axis=0)) * 4.0 / 4000)
    assert (np.abs(ours_X.mean(axis=0) - theirs_X.mean(axis=0)) < 5.0 * error).all()


@pytest.mark.parametrize("family", [GaussianHMM, BernoulliHMM, PoissonHMM, MultinomialHMM])
def test_a_diversity_of_zero_is_no_prior_bit_for_bit(family):
    X = np.random.default_rng(5).poisson(3.0, size=(sum(LENGTHS), D)) + 1
    if family is BernoulliHMM:
        X = X > 3
    fits = [
        family(K, diversity=diversity, random_state=0, n_iter=SWEEPS, tol=-np.inf).fit(X, lengths=LENGTHS)
        for diversity in (None, 0.0, Diversity(0.0))
    ]
    for other in fits[1:]:
        for name in ("startprob_", "transmat_", *family._emission_attributes.values()):
            np.testing.assert_array_equal(getattr(fits[0], name), getattr(other, name))
        np.testing.assert_array_equal(fits[0].history_.objective, other.history_.objective)
