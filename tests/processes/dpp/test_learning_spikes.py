"""Neurons that inhibit each other: gradients, the independent case, and places that are known."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from pluri.processes.dpp import DPP
from pluri.processes.dpp.learning import LatentInhibition
from pluri.processes.dpp.learning.spike_likelihood import SpikeObjective, log_partitions, similarity_of


@pytest.fixture
def rng():
    return np.random.default_rng(4)


@pytest.fixture(scope="module")
def pairs():
    """Three pairs of neurons; the two of a pair inhibit each other."""
    places = np.array([[0.0, 0], [0.4, 0], [4, 0], [4.4, 0], [0, 4], [0, 4.4]])
    process = DPP(similarity_of(places), quality=np.full(6, 1.0))
    return [
        np.array([np.isin(np.arange(6), one) for one in process.sample(2000, random_state=state)]) for state in (0, 1)
    ]


def test_value_equals_the_process_and_gradient_equals_differences(rng):
    spikes = rng.random((12, 4)) < 0.4
    covariates = rng.standard_normal((12, 2))
    objective = SpikeObjective.of(spikes, covariates, 2.0, 0.7, 2)
    point = rng.standard_normal(4 * 2 + 4 + 4 * 2)
    value, gradient = objective(point)
    parameters = objective.split(point)
    logs = [
        DPP(similarity_of(parameters.places), quality=np.exp(scores / 2)).log_prob(row)
        for scores, row in zip(parameters.scores(covariates), spikes)
    ]
    penalty = (parameters.places**2).sum() / (2 * 4) + 0.35 * (parameters.coef**2).sum()
    assert value == pytest.approx(np.mean(logs) - penalty / 12)
    for index in range(len(point)):
        step = np.zeros(len(point))
        step[index] = 1e-5
        difference = (objective(point + step)[0] - objective(point - step)[0]) / 2e-5
        assert gradient[index] == pytest.approx(difference, rel=1e-4, abs=1e-8)


def test_huge_rates_do_not_overflow():
    values, inclusion, _ = log_partitions(np.array([[2000.0, -2000.0]]), np.eye(2))
    assert values[0] == pytest.approx(2000)
    np.testing.assert_allclose(inclusion[0], [1.0, 0.0], atol=1e-12)


def test_independent_neurons_have_their_frequencies(rng):
    spikes = rng.random((500, 3)) < [0.2, 0.5, 0.7]
    model = LatentInhibition(random_state=0).fit(spikes)
    frequency = spikes.mean(axis=0)
    expected = (frequency * np.log(frequency) + (1 - frequency) * np.log(1 - frequency)).sum()
    assert model.independent_log_likelihood_ == pytest.approx(expected, abs=1e-6)
    # Two parameters of hidden places per neuron gain about 3 / 500 where there is no inhibition.
    assert model.log_likelihood_ == pytest.approx(expected, abs=0.02)


def test_pairs_that_inhibit_each_other_are_found(pairs):
    train, held_out = pairs
    # One start in four finds them, so that one fit of ten starts in twenty does not; four such fits: 1e-5.
    for seed in range(4):
        model = LatentInhibition(random_state=seed, tol=1e-7).fit(train)
        partners = np.argsort(model.similarity_ - 2 * np.eye(6), axis=1)[:, -1]
        if partners.tolist() == [1, 0, 3, 2, 5, 4]:
            break
    assert partners.tolist() == [1, 0, 3, 2, 5, 4]
    independent = train.mean(axis=0)
    baseline = np.log(np.where(held_out, independent, 1 - independent)).sum(axis=1).mean()
    assert model.score(held_out) > baseline + 0.2
    assert (np.diff(model.history_.run(0).objective) >= 0).all()
    assert model.score(train) == pytest.approx(model.log_likelihood_)
    assert model.dpp().log_prob([0, 2]) == pytest.approx(model.log_prob(np.isin(np.arange(6), [0, 2])[None])[0])


def test_covariates_drive_the_rates(rng):
    drive = rng.standard_normal((1500, 1))
    spikes = rng.random((1500, 2)) < 1 / (1 + np.exp(-np.array([1.5, -1.0]) * drive))
    model = LatentInhibition(random_state=0, tol=1e-7).fit(spikes, drive)
    # Standard errors are about 0.08.
    np.testing.assert_allclose(model.coef_[:, 0], [1.5, -1.0], atol=0.35)
    assert model.dpp([1.0]).n_items == 2


def test_conventions_and_first_mistakes(rng):
    model = LatentInhibition(n_dimensions=1, alpha=0.5)
    assert clone(model).get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        model.score(np.eye(2))
    for X, settings, sentence in (
        ([[0, 2]], {}, "X must hold only 0 and 1"),
        ([0, 1], {}, "X must be a matrix"),
        ([[0, 1]], {"covariates": [[1.0], [2.0]]}, "one row per bin"),
        ([[0, 1]], {"covariates": [[np.nan]]}, "covariates must be finite"),
    ):
        with pytest.raises(ValueError, match=sentence):
            model.fit(X, **settings)
    with pytest.raises(ValueError, match="place_scale must be a positive number"):
        LatentInhibition(place_scale=0).fit([[0, 1]])
    model.fit(np.array([[0, 1], [1, 0], [0, 0], [1, 1]]))
    with pytest.raises(ValueError, match="X must have 2 columns, got 3"):
        model.score(np.eye(3))
    with pytest.raises(ValueError, match="covariates must have 0 entries"):
        model.dpp([1.0])
