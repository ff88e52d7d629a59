"""Which step of a sequence of zeros and ones, or of counts, to observe next, against all paths and outcomes."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import entr
from scipy.stats import bernoulli, poisson

from pluri.decisions import NextObservation
from pluri.sequences import BernoulliHMM, PoissonHMM

NAN = np.nan


def fitted(kind):
    X = np.random.default_rng(0).integers(2, size=(40, 2))
    model = (BernoulliHMM if kind == "bernoulli" else PoissonHMM)(2, n_iter=1, random_state=0).fit(X)
    model.startprob_, model.transmat_ = np.array([0.6, 0.4]), np.array([[0.9, 0.1], [0.3, 0.7]])
    if kind == "bernoulli":
        model.probs_ = np.array([[0.2, 0.6], [0.7, 0.4]])
        return model, bernoulli(model.probs_.T[:, :, None]), 2
    model.lambdas_ = np.array([[0.4, 1.0], [2.0, 0.1]])
    return model, poisson(model.lambdas_.T[:, :, None]), 25


def path_posterior(model, law, sequence):
    """Probabilities of all paths and of what is seen: (n_paths,)."""
    n_steps = len(sequence)
    chances = []
    for path in product(range(2), repeat=n_steps):
        chance = model.startprob_[path[0]]
        for step, state in enumerate(path):
            chance *= model.transmat_[path[step - 1], state] if step else 1.0
            for column in np.flatnonzero(~np.isnan(sequence[step])):
                chance *= law.pmf(sequence[step, column])[column, state, 0]
        chances.append(chance)
    return np.array(chances)


@pytest.mark.parametrize("kind", ["bernoulli", "poisson"])
def test_information_is_that_of_all_paths_and_outcomes(kind):
    model, law, n_values = fitted(kind)
    sequence = np.array([[1.0, 0.0], [NAN, NAN], [NAN, 1.0]])
    seen = path_posterior(model, law, sequence)
    base = entr(seen / seen.sum()).sum()
    scores = NextObservation(model).information(sequence)
    assert scores.candidates.tolist() == [1, 2]
    for step, found in zip(scores.candidates, scores.information):
        missing = np.flatnonzero(np.isnan(sequence[step]))
        left = 0.0
        for outcome in product(range(n_values), repeat=len(missing)):
            longer = sequence.copy()
            longer[step, missing] = outcome
            joint = path_posterior(model, law, longer)
            left += joint.sum() / seen.sum() * entr(joint / joint.sum()).sum()
        assert_allclose(found, base - left, rtol=1e-8)
    assert (scores.standard_error == 0).all()
    plan = NextObservation(model, n_samples=200, random_state=0).plan(sequence, budget=2)
    assert sorted(plan.items.tolist()) == [1, 2]
