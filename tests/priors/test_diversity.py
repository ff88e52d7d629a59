"""The diversity prior as an object: its values, its warnings, and how it travels."""

import copy
import pickle

import numpy as np
import pytest
import skops.io
from sklearn.base import BaseEstimator, clone

from pluri.priors import (
    Dirichlet,
    Diversity,
    DiversityWarning,
    RowPrior,
    Sticky,
    as_diversity,
    log_determinant,
    rows_objective,
    warn_if_permutation,
)

KNOWN = np.array([[0.9, 0.1], [0.2, 0.8]])


class Model(BaseEstimator):
    """An estimator that takes priors as parameters."""

    def __init__(self, diversity=None, transmat_prior=None):
        self.diversity = diversity
        self.transmat_prior = transmat_prior


def test_density_and_gradient_scale_with_the_strength():
    assert Diversity(3.0).log_density(KNOWN) == pytest.approx(3 * np.log(0.5))
    np.testing.assert_allclose(Diversity(3.0).gradient(KNOWN), [[1, -9], [-6, 1.5]], atol=1e-12)
    assert Diversity(0.0).log_density(np.full((2, 2), 0.5)) == 0.0
    np.testing.assert_array_equal(Diversity(0.0).gradient(KNOWN), np.zeros((2, 2)))


def test_coinciding_rows_in_the_start_are_jittered_with_a_warning():
    counts = np.array([[6.0, 4.0, 1.0], [4.0, 6.0, 1.0], [1.0, 1.0, 8.0]])
    start = np.full((3, 3), 1 / 3)
    with pytest.warns(DiversityWarning, match="jittered"):
        rows = Diversity(1.0).maximize(counts, start, rng=np.random.default_rng(1))
    assert log_determinant(rows) > -3
    with pytest.warns(DiversityWarning, match="jittered"):
        again = Diversity(1.0).maximize(counts, start, rng=np.random.default_rng(1))
    np.testing.assert_array_equal(rows, again)


def test_coinciding_counts_are_no_obstacle():
    counts = np.array([[5.0, 5.0], [5.0, 5.0]])
    prior = Diversity(1.0)
    rows = prior.maximize(counts, KNOWN)
    assert rows_objective(counts, rows, diversity=prior) > rows_objective(counts, KNOWN, diversity=prior)


def test_overwhelming_strength_warns_that_the_rows_became_a_permutation():
    counts = np.random.default_rng(0).gamma(1.0, 10.0, size=(4, 4))
    prior = Diversity(1e7, max_iter=500)
    rows = prior.maximize(counts, np.random.default_rng(1).dirichlet(np.ones(4), size=4))  # one M-step says nothing
    with pytest.warns(DiversityWarning, match="permutation"):
        warn_if_permutation(rows, prior)
    assert sorted(rows.argmax(axis=1)) == [0, 1, 2, 3]
    assert rows.max(axis=1).min() > 0.99


def test_a_permutation_is_no_surprise_without_diversity_or_with_distinct_rows():
    for rows, prior in (
        (np.eye(3), None),
        (np.eye(3), Diversity(0.0)),
        (KNOWN, Diversity(1e7)),
        ([[1.0]], Diversity(1.0)),
    ):
        warn_if_permutation(rows, prior)


def test_shorthand_for_estimators():
    assert as_diversity(None) is None
    assert as_diversity(0) is None
    assert as_diversity(0.0) is None
    assert as_diversity(Diversity(0.0)) is None
    assert as_diversity(2) == Diversity(2.0)
    assert as_diversity(np.float32(0.5)) == Diversity(0.5)
    assert as_diversity(Diversity(2.0, rho=0.7)) == Diversity(2.0, rho=0.7)


@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf, "1", True, [1.0]])
def test_shorthand_refuses_what_is_no_strength(value):
    with pytest.raises(ValueError, match="diversity must be None"):
        as_diversity(value)


def test_prior_is_a_plain_value():
    prior = Diversity(np.float64(2), rho=1, solver="fixed_point", max_iter=np.int64(7))
    assert isinstance(prior, RowPrior)
    assert copy.deepcopy(prior) == pickle.loads(pickle.dumps(prior)) == eval(repr(prior)) == prior
    assert hash(copy.deepcopy(prior)) == hash(prior)
    assert {type(value) for value in vars(prior).values()} == {float, int, str}
    with pytest.raises(AttributeError):
        prior.strength = 3.0


def test_estimators_with_priors_can_be_cloned_and_set():
    model = Model(diversity=Diversity(2.0), transmat_prior=Sticky(1.0, [2.0, 3.0]))
    twin = clone(model)
    assert twin.get_params() == model.get_params()
    assert twin.set_params(diversity=1.0).diversity == 1.0


@pytest.mark.parametrize("prior", [Diversity(2.0, rho=0.7), Dirichlet([[1.0, 2.0], [3.0, 4.0]]), Sticky(2.0)])
def test_priors_survive_a_file_without_pickle(prior):
    data = skops.io.dumps(prior)
    assert skops.io.loads(data, trusted=skops.io.get_untrusted_types(data=data)) == prior


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"strength": -1.0}, "strength must be a non-negative"),
        ({"strength": np.nan}, "strength must be a non-negative"),
        ({"rho": 0.0}, "rho must be a positive"),
        ({"solver": "newton"}, "solver must be one of"),
        ({"max_iter": 0}, "max_iter must be a positive integer"),
        ({"max_iter": 2.5}, "max_iter must be a positive integer"),
        ({"floor": 0.0}, "floor must be a number above 0"),
        ({"tol": -1.0}, "tol must be a non-negative"),
    ],
)
def test_bad_parameters_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Diversity(**({"strength": 1.0} | arguments))


def test_more_rows_than_columns_are_refused():
    rows = np.full((3, 2), 0.5)
    for call in (Diversity(1.0).log_density, Diversity(1.0).gradient, lambda r: Diversity(1.0).maximize(r, r)):
        with pytest.raises(ValueError, match="at most as many rows as columns"):
            call(rows)
