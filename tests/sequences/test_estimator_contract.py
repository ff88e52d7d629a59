"""scikit-learn's own checks of an estimator, for every hidden Markov model and for the classifier."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from pluri.sequences import (
    GMMHMM,
    AutoregressiveHMM,
    BayesianCategoricalHMM,
    BernoulliHMM,
    CategoricalHMM,
    DrivenHMM,
    GaussianHMM,
    HMMClassifier,
    MultinomialHMM,
    PoissonHMM,
    RegressionHMM,
    VariationalCategoricalHMM,
    VariationalGaussianHMM,
)

FAMILIES = [GaussianHMM, GMMHMM, CategoricalHMM, BernoulliHMM, PoissonHMM, MultinomialHMM]
ESTIMATORS = [
    *(family() for family in FAMILIES),
    *(family(n_components=2) for family in FAMILIES),
    GaussianHMM(n_components=3),
    CategoricalHMM(n_components=3),
    GaussianHMM(n_components=2, topology="left-right"),
    AutoregressiveHMM(n_components=2),
    RegressionHMM(n_components=2),
    DrivenHMM(),
    DrivenHMM(PoissonHMM(n_components=2, random_state=0)),
    HMMClassifier(),
    HMMClassifier(GaussianHMM(algorithm="map", diversity=0.1), pseudo_count=1.0, anchor=10.0),
    HMMClassifier(BernoulliHMM(algorithm="map")),
    BayesianCategoricalHMM(n_components=2, n_draws=20, n_warmup=20),
    VariationalGaussianHMM(n_components=2),
    VariationalCategoricalHMM(n_components=2),
]

#: What a model of sequences cannot do, and should not.
EXPECTED_FAILURES = {
    "check_methods_sample_order_invariance": "the state of a sample depends on the samples before and after it",
    "check_methods_subset_invariance": "the state of a sample depends on the samples before and after it",
}


def test_fewer_than_three_checks_are_excused():
    assert len(EXPECTED_FAILURES) < 3


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::pluri.priors.DiversityWarning")
@pytest.mark.filterwarnings("ignore:every value of X")  # the checks are not of zeros and ones
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=lambda estimator: EXPECTED_FAILURES)
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)
