"""scikit-learn's own checks of an estimator, for every hidden Markov model and for the classifier."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import has_fit_parameter

from pluri.sequences import GMMHMM, BernoulliHMM, CategoricalHMM, GaussianHMM, MultinomialHMM, PoissonHMM
from pluri.sequences.classifier import HMMClassifier

FAMILIES = [GaussianHMM, GMMHMM, CategoricalHMM, BernoulliHMM, PoissonHMM, MultinomialHMM]
ESTIMATORS = [
    *(family() for family in FAMILIES),
    *(family(n_components=2) for family in FAMILIES),
    GaussianHMM(n_components=3),
    CategoricalHMM(n_components=3),
    HMMClassifier(),
    HMMClassifier(GaussianHMM(algorithm="map", diversity=0.1), pseudo_count=1.0, anchor=10.0),
    HMMClassifier(BernoulliHMM(algorithm="map")),
]

#: What a model of sequences cannot do, and should not.
NEIGHBOURS = {
    "check_methods_sample_order_invariance": "the state of a sample depends on the samples before and after it",
    "check_methods_subset_invariance": "the state of a sample depends on the samples before and after it",
}
WEIGHTS = {
    "check_sample_weights_not_overwritten": "weights are those of sequences, and the check weighs the samples of one",
    "check_sample_weight_equivalence_on_dense_data": "a sample that is repeated is a longer sequence, not a weight",
}


def expected_failures(estimator):
    return NEIGHBOURS | (WEIGHTS if has_fit_parameter(estimator, "sample_weight") else {})


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::pluri.priors.DiversityWarning")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)
