"""Variable selection: the posterior by enumeration, the prior in closed form, and scikit-learn's own checks."""

import itertools

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import check_estimator

from pluri.processes.dpp.learning import DPPVariableSelection
from pluri.processes.dpp.learning.variable_selection import swap

MASKS = np.array(list(itertools.product((0, 1), repeat=5)))


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 5)) * [1, 2, 0.1, 1, 5] + 3
    X[:, 1] = X[:, 0] + 0.3 * rng.standard_normal(30)
    return X, 0.5 * X[:, 0] + 1.5 * X[:, 3] + rng.standard_normal(30)


def by_enumeration(X, y, odds, g):
    """Weights of all sets by the formulas themselves, with least squares."""
    R = np.corrcoef(X.T)
    n = len(y)
    centred, target = X - X.mean(axis=0), y - y.mean()
    logs, coefs = [], []
    for mask in MASKS:
        chosen = np.flatnonzero(mask)
        coef = np.zeros(5)
        coef[chosen] = np.linalg.lstsq(centred[:, chosen], target, rcond=None)[0]
        left = ((target - centred @ coef) ** 2).sum() / (target**2).sum()
        prior = np.linalg.slogdet(odds * R[np.ix_(chosen, chosen)])[1] if len(chosen) else 0.0
        logs.append(prior + 0.5 * (n - 1 - len(chosen)) * np.log(1 + g) - 0.5 * (n - 1) * np.log(1 + g * left))
        coefs.append(coef * g / (1 + g))
    weight = np.exp(np.array(logs) - max(logs))
    return weight / weight.sum(), np.array(logs), np.array(coefs)


def test_the_posterior_equals_enumeration(data):
    X, y = data
    model = DPPVariableSelection(expected_size=2.0, g=20.0, n_draws=1500, n_warmup=100, random_state=0).fit(X, y)
    posterior, _, _ = model._posterior(X - X.mean(axis=0), y - y.mean())
    odds = np.exp(posterior.log_scale)
    eigenvalues = np.linalg.eigvalsh(np.corrcoef(X.T)) * odds
    assert (eigenvalues / (1 + eigenvalues)).sum() == pytest.approx(2.0)
    weight, logs, coefs = by_enumeration(X, y, odds, 20.0)
    found = np.array([posterior(mask) for mask in MASKS])
    np.testing.assert_allclose(found - found[0], logs - logs[0], atol=1e-8)
    # Effective sizes are above 1000, standard errors below 0.016: six of them.
    np.testing.assert_allclose(model.inclusion_, weight @ MASKS, atol=0.1)
    np.testing.assert_allclose(model.coef_ * X.std(axis=0), weight @ coefs * X.std(axis=0), atol=0.13)
    np.testing.assert_allclose(model.predict(X), X @ model.coef_ + model.intercept_)
    assert model.predict(X).mean() == pytest.approx(y.mean())


def test_orthogonal_variables_are_independent_coins_in_the_prior():
    X = np.linalg.qr(np.random.default_rng(1).standard_normal((40, 6)))[0]
    X = np.linalg.qr(X - X.mean(axis=0))[0][:, :5]
    posterior, _, _ = DPPVariableSelection(expected_size=1.5)._posterior(X, np.zeros(40))
    # Without a signal the likelihood depends on the number of variables alone.
    for mask in MASKS:
        size = mask.sum()
        coin = size * np.log(0.3) + (5 - size) * np.log(0.7)
        flat = 0.5 * (39 - size) * np.log(41) - 0.5 * 39 * np.log(41)
        empty = 5 * np.log(0.7)
        assert posterior(mask) - posterior(MASKS[0]) == pytest.approx(coin + flat - empty)


def test_copies_are_never_chosen_together(data):
    X, y = data
    X = np.column_stack([X, X[:, 3], np.ones(len(X))])
    model = DPPVariableSelection(n_draws=400, n_warmup=100, random_state=0).fit(X, y)
    chosen = model.trace_.flat("selected")
    assert not (chosen[:, 3] & chosen[:, 5]).any()
    assert model.inclusion_[3] + model.inclusion_[5] > 0.99
    # Swaps take a chain from one copy to the other.
    assert 0.3 < model.inclusion_[3] < 0.7
    assert model.inclusion_[6] == 0.0


def test_a_swap_keeps_the_size():
    rng = np.random.default_rng(0)
    position = np.array([1, 0, 1, 0, 0])
    moved = [swap(rng, position) for _ in range(200)]
    assert {int(one.sum()) for one in moved} == {2}
    assert len({tuple(one) for one in moved}) == 6
    assert (swap(rng, np.ones(3, dtype=int)) == 1).all()


@pytest.mark.filterwarnings("ignore:No features were selected:UserWarning")
@pytest.mark.filterwarnings("ignore:the chains have not settled")
def test_scikit_learn_agrees():
    check_estimator(DPPVariableSelection(n_draws=10, n_warmup=5, n_chains=2, random_state=0), on_skip=None)


def test_selection_and_first_mistakes(data):
    X, y = data
    model = DPPVariableSelection(n_draws=200, n_warmup=100, random_state=0).fit(X, y)
    assert model.get_support()[3]
    assert model.transform(X).shape == (30, int(model.get_support().sum()))
    with pytest.raises(ValueError, match="expected_size must be below the rank of the variables"):
        DPPVariableSelection(expected_size=5.0).fit(X, y)
    with pytest.raises(ValueError, match="expected_size must be a positive number or None"):
        DPPVariableSelection(expected_size=0.0).fit(X, y)
    with pytest.raises(ValueError, match="g must be a positive number or None"):
        DPPVariableSelection(g=-1.0).fit(X, y)
    short = [DPPVariableSelection(n_draws=8, n_warmup=1, random_state=seed, g=0.1) for seed in range(40)]
    with pytest.warns(
        ConvergenceWarning, match="have not settled: R-hat of size"
    ):  # one fit of four warns: none of forty is 1e-5
        _ = [model.fit(X, y) for model in short]
