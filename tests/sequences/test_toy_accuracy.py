"""The published toy problem: what the start decides, and what the diversity prior does.

Measured over these very seeds; a change of the random streams may move the means by about their standard error.
"""

import numpy as np
import pytest

from pluri.datasets import make_toy_hmm
from pluri.metrics import bhattacharyya_diversity, one_to_one_accuracy
from pluri.sequences import GaussianHMM

K = 5
N_RUNS = 10


def measured(toy, model):
    states = model.fit(toy.X, lengths=toy.lengths).predict(toy.X, toy.lengths)
    distance = bhattacharyya_diversity(np.maximum(model.transmat_, 1e-12)).mean
    return one_to_one_accuracy(toy.states, states), distance


def poor_start(model, seed):
    """As published: means N(0, 1) and variances Gamma(1, 1), whatever the data."""
    rng = np.random.default_rng(1000 + seed)
    model.startprob_, model.transmat_ = rng.dirichlet(np.full(K, 3.0)), rng.dirichlet(np.full(K, 3.0), size=K)
    model.means_ = rng.normal(size=(K, 1))
    model.covars_ = np.maximum(rng.gamma(1.0, 1.0, size=(K, 1)), 1e-3)
    return model.set_params(init_params="")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("strength", [0.0, 1.0])
def test_from_k_means_the_states_are_found(strength):
    for seed in range(3):
        toy = make_toy_hmm(random_state=seed)
        accuracy, _ = measured(toy, GaussianHMM(K, diversity=strength, random_state=seed, n_iter=200, tol=1e-3))
        assert accuracy >= 0.99


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::pluri.sequences.DeadStateWarning")
def test_from_a_poor_start_the_prior_makes_rows_more_diverse_and_labels_no_worse():
    results = np.array(
        [
            [
                measured(toy, poor_start(GaussianHMM(K, diversity=strength, n_iter=300, tol=1e-3), seed))
                for strength in (0.0, 1.0)
            ]
            for seed, toy in ((seed, make_toy_hmm(random_state=seed)) for seed in range(N_RUNS))
        ]
    )
    (plain, plain_distance), (diverse, diverse_distance) = results.mean(axis=0)
    assert diverse_distance > plain_distance
    # Over 100 data sets labels are as good with the prior as without (a gain of -.006 +- .007). Local optima differ by
    # .1 and more from run to run: six standard errors of the paired difference of ten runs are, by Student's
    # distribution with nine degrees of freedom, a false alarm in ten thousand.
    gain = results[:, 1, 0] - results[:, 0, 0]
    assert gain.mean() >= -6.0 * gain.std(ddof=1) / np.sqrt(N_RUNS) - 0.02
    assert min(plain, diverse) >= 0.47


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
# The larger one is a second opinion: the smaller is the same claim.
@pytest.mark.parametrize("variance", [0.525, pytest.param(2.525, marks=pytest.mark.thorough)])
def test_at_larger_variances_the_prior_still_makes_rows_more_diverse(variance):
    distances = []
    for strength in (0.0, 1.0):
        runs = [
            measured(
                make_toy_hmm(variance=variance, random_state=seed),
                poor_start(GaussianHMM(K, diversity=strength, n_iter=300, tol=1e-3), seed),
            )[1]
            for seed in range(4)
        ]
        distances.append(np.mean(runs))
    assert distances[1] > distances[0]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_true_parameters_decode_almost_every_state():
    toy = make_toy_hmm(random_state=0)
    model = GaussianHMM(K)
    model.startprob_, model.transmat_, model.means_, model.covars_ = toy.startprob, toy.transmat, toy.means, toy.covars
    assert one_to_one_accuracy(toy.states, model.predict(toy.X, toy.lengths)) > 0.995
