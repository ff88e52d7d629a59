"""The objective never falls: every family, covariance type, prior, solver, acceleration, with gaps and weights."""

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from pluri.inference import AscentWarning
from pluri.priors import Dirichlet, Diversity, DiversityWarning, Sticky
from pluri.priors.protocol import RowPriorWarning
from pluri.sequences import (
    GMMHMM,
    BernoulliHMM,
    CategoricalHMM,
    DeadStateWarning,
    GaussianHMM,
    MultinomialHMM,
    PoissonHMM,
    TooManyParametersWarning,
)
from pluri.sequences.learning import HiddenMarkovProblem

KINDS = st.sampled_from(["spherical", "diag", "full", "tied"])
#: Flat, smoothing and sparse.
CONCENTRATIONS = st.sampled_from([1.0, 2.5, 0.6])
#: Rounding is far below this; a wrong M-step is far above.
RELATIVE_SLACK = 1e-9


@st.composite
def chain_options(draw, k):
    transition = draw(
        st.one_of(
            CONCENTRATIONS,
            st.just(Sticky(3.0)),
            st.just(Sticky(2.0, concentration=0.7)),
            st.just(Dirichlet(0.5, floor=1e-4)),
        )
    )
    solver = draw(st.sampled_from(["lbfgs", "fixed_point", "projected_gradient"]))
    strength = draw(st.sampled_from([None, 0.3, 3.0, 40.0]))
    rho = draw(st.sampled_from([0.5, 0.8]))
    return {
        "n_components": k,
        "startprob_prior": draw(CONCENTRATIONS),
        "transmat_prior": transition,
        "diversity": None if strength is None else Diversity(strength, rho=rho, solver=solver),
        "acceleration": draw(st.sampled_from([None, None, "squarem", "anderson"])),
        "implementation": draw(st.sampled_from(["scaling", "log"])),
        "n_iter": draw(st.integers(6, 15)),
        "tol": -np.inf,
        "random_state": draw(st.integers(0, 2**20)),
    }


@st.composite
def data_sets(draw, kind):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    lengths = rng.integers(0, 12, size=draw(st.integers(3, 8)))
    lengths[0] += 5
    n, d = int(lengths.sum()), draw(st.integers(1, 3))
    groups = rng.integers(3, size=(n, 1))
    if kind == "real":
        X = rng.normal(size=(n, d)) * draw(st.sampled_from([1e-3, 1.0, 1e4])) + 2.0 * groups
    elif kind == "symbols":
        X = (rng.integers(4, size=(n, d)) + groups).astype(float)
    else:
        X = rng.poisson(0.5 + 3.0 * groups, size=(n, d)).astype(float)
    if draw(st.booleans()):
        X[rng.random(X.shape) < 0.25] = np.nan
        X[0] = 1.0
    weight = rng.choice([0.0, 0.5, 1.0, 3.0], size=len(lengths)) if draw(st.booleans()) else None
    if weight is not None:
        weight[0] = 1.0
    return X, lengths, weight


def gaussian(draw):
    return GaussianHMM, {
        "covariance_type": draw(KINDS),
        "means_weight": draw(st.sampled_from([0.0, 2.0])),
        "means_prior": 0.5,
        "covars_prior": draw(st.sampled_from([0.0, 1e-2, 1.0])),
        "covars_weight": draw(st.sampled_from([0.0, 1.0, 7.0])),
    }


def mixture(draw):
    informative = draw(st.booleans())
    return GMMHMM, {
        "n_mix": draw(st.integers(1, 2)),
        "covariance_type": draw(KINDS),
        "weights_prior": draw(CONCENTRATIONS),
        "means_weight": 1.0 if informative else 0.0,
        "covars_prior": 2.0 if informative else None,
        "covars_weight": 4.0 if informative else None,
    }


def categorical(draw):
    return CategoricalHMM, {"emissionprob_prior": draw(CONCENTRATIONS)}


def bernoulli(draw):
    return BernoulliHMM, {"probs_prior": draw(st.sampled_from([1.0, 1.5])), "binarize": 1.0}


def poisson(draw):
    return PoissonHMM, {"lambdas_prior": draw(st.sampled_from([0.0, 2.0])), "lambdas_weight": 0.5}


def multinomial(draw):
    return MultinomialHMM, {"emissionprob_prior": draw(CONCENTRATIONS)}


HARMLESS = (ConvergenceWarning, DeadStateWarning, DiversityWarning, RowPriorWarning, TooManyParametersWarning)
#: Family, the data it reads, and its share of 200 cases.
FAMILIES = [
    pytest.param(gaussian, "real", 60, id="gaussian"),
    pytest.param(mixture, "real", 50, id="gmm"),
    pytest.param(categorical, "symbols", 30, id="categorical"),
    pytest.param(bernoulli, "counts", 20, id="bernoulli"),
    pytest.param(poisson, "counts", 20, id="poisson"),
    pytest.param(multinomial, "counts", 20, id="multinomial"),
]


@pytest.mark.slow
# A third of the cases are enough to guard the claim; all of them are a second opinion.
@pytest.mark.parametrize("share", [3, pytest.param(1, marks=pytest.mark.thorough)], ids=["some", "all"])
@pytest.mark.parametrize(("family", "kind", "n_cases"), FAMILIES)
def test_the_objective_never_falls(family, kind, n_cases, share):
    @settings(
        max_examples=n_cases // share,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def check(data):
        make, own = family(data.draw)
        X, lengths, weight = data.draw(data_sets(kind))
        k = data.draw(st.integers(1, 4))
        model = make(**own, **data.draw(chain_options(k)))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.filterwarnings("ignore", "X has one column")
            for harmless in HARMLESS:
                warnings.simplefilter("ignore", harmless)
            warnings.simplefilter("error", AscentWarning)
            model.fit(X, lengths=lengths, sequence_weight=weight)
        objective = model.history_.objective
        assert np.isfinite(objective).all()
        assert (np.diff(objective) >= -RELATIVE_SLACK * np.maximum(1.0, np.abs(objective[1:]))).all()

    check()


@pytest.mark.parametrize("letters", ["s", "t", "m", "c", "mc", "st", "tm"])
@pytest.mark.parametrize("kind", ["spherical", "diag", "full", "tied"])
def test_updating_only_some_parameters_never_lowers_the_objective_and_keeps_the_others(kind, letters):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2)) + 3.0 * rng.integers(2, size=(60, 1))
    options = {"random_state": 0, "means_weight": 1.0, "covars_prior": 0.3, "covars_weight": 5.0, "diversity": 1.0}
    before = GaussianHMM(3, kind, n_iter=0, **options).fit(X)
    after = GaussianHMM(3, kind, n_iter=8, tol=-np.inf, params=letters, **options).fit(X)
    objective = after.history_.objective
    assert (np.diff(objective) >= -RELATIVE_SLACK * np.abs(objective[1:])).all()
    for letter, name in {"s": "startprob_", "t": "transmat_", "m": "means_", "c": "covars_"}.items():
        same = np.array_equal(getattr(before, name), getattr(after, name))
        assert same == (letter not in letters), name


def test_an_extrapolated_guess_stays_above_the_floors_of_the_m_step():
    """Else it can beat every answer that the M-step may give, and the objective falls at the next step."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2)) + 4.0 * rng.integers(2, size=(40, 1))
    for kind in ("spherical", "diag", "full", "tied"):
        prior = Dirichlet(0.5, floor=1e-3)
        model = GaussianHMM(2, kind, transmat_prior=prior, startprob_prior=prior, n_iter=3, tol=-np.inf, random_state=0)
        emission, parameters = model.fit(X)._model()
        problem = HiddenMarkovProblem(2, emission, model._chain_prior())
        vector = problem.pack(parameters)
        vector[[0, 2]] -= 50.0
        vector[6 + parameters.emission.means.size :] -= 50.0
        guess = problem.unpack(vector, parameters)
        np.testing.assert_allclose(guess.start, [1e-3, 0.999])
        np.testing.assert_allclose(guess.transition[0], [1e-3, 0.999])
        np.testing.assert_allclose(guess.transition[1], parameters.transition[1])
        record = guess.emission
        floor = np.broadcast_to(record.floor, (2,))
        if kind in ("full", "tied"):
            units = np.sqrt(floor[:, None] * floor)
            assert np.linalg.eigvalsh(record.covariances / units).min() >= 1.0 - 1e-9
        else:
            assert (record.covariances >= record.floor).all()


def test_acceleration_does_not_overshoot_the_variance_floor():
    """The states of this fit shrink onto single points, where only the floor stops the likelihood from growing."""
    X = np.array(
        [1.0, -16612.9, 37875.6, -2940.9, -17763.3, np.nan, -4809.0, -10742.8, np.nan, 1920.7, -1790.3, 20639.4]
    )
    X = np.append(X, [11543.7, 16519.2, -456.9, np.nan, np.nan, np.nan, -7819.1, 17631.2, np.nan, -3300.3, -17962.3])
    model = GMMHMM(4, 1, covariance_type="spherical", transmat_prior=Sticky(3.0), diversity=40.0, random_state=0)
    model.set_params(acceleration="anderson", n_iter=8, tol=-np.inf)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DiversityWarning)
        objective = model.fit(X[:, None], lengths=[9, 3, 11]).history_.objective
    assert (np.diff(objective) >= -RELATIVE_SLACK * np.abs(objective[1:])).all()
