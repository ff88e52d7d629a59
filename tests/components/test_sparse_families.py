"""Component families on sparse rows: the same densities and statistics as on dense ones."""

import numpy as np
import pytest
from scipy import sparse, stats

from pluri.components.bernoulli import BernoulliFamily, BernoulliParameters
from pluri.components.multinomial import MultinomialFamily, MultinomialParameters
from pluri.components.poisson import PoissonFamily, PoissonParameters
from pluri.components.sparse_rows import canonical_rows
from pluri.components.starting_shares import INIT_PARAMS, divide_rows, shortened
from pluri.engine.aligned import padded_width

K, D = 5, 7


def cases():
    rng = np.random.default_rng(0)
    binary = (rng.random((40, D)) < 0.3).astype(float)
    counts = rng.poisson(0.5, (40, D)).astype(float)
    probabilities = rng.dirichlet(np.ones(D), K)
    return {
        "bernoulli": (BernoulliFamily(), BernoulliParameters(rng.uniform(0.05, 0.9, (K, D))), binary),
        "poisson": (PoissonFamily(), PoissonParameters(rng.gamma(1.0, 1.0, (K, D))), counts),
        "multinomial": (MultinomialFamily(), MultinomialParameters(probabilities), counts),
    }


def log_prob(family, parameters, X):
    out = np.empty((X.shape[0], padded_width(K)))
    family.log_prob(parameters, family.prepare(X), out)
    assert np.isneginf(out[:, K:]).all()
    return out[:, :K]


@pytest.mark.parametrize("name", ["bernoulli", "poisson", "multinomial"])
@pytest.mark.parametrize("form", [sparse.csr_matrix, sparse.csr_array, sparse.csc_array])
def test_sparse_rows_have_the_densities_and_sums_of_dense_ones(name, form):
    family, parameters, X = cases()[name]
    X[3] = 0.0
    dense = log_prob(family, parameters, X)
    assert np.allclose(log_prob(family, parameters, form(X)), dense, rtol=0, atol=1e-12)
    posterior = np.random.default_rng(1).random((len(X), padded_width(K)))
    ours = family.accumulate(parameters, family.prepare(form(X)), posterior)
    theirs = family.accumulate(parameters, family.prepare(X), posterior)
    assert np.allclose(ours.total, theirs.total, atol=1e-12)
    assert np.allclose(ours.exposure, theirs.exposure, atol=1e-12)


def test_densities_are_those_of_scipy():
    for name, (family, parameters, X) in cases().items():
        found = log_prob(family, parameters, sparse.csr_array(X))
        for j in range(K):
            if name == "bernoulli":
                expected = stats.bernoulli.logpmf(X, parameters.probs[j]).sum(axis=1)
            elif name == "poisson":
                expected = stats.poisson.logpmf(X, parameters.rates[j]).sum(axis=1)
            else:
                expected = stats.multinomial.logpmf(X, X.sum(axis=1).astype(int), parameters.probabilities[j])
            assert np.allclose(found[:, j], expected, atol=1e-10)


def test_a_symbol_of_probability_zero_is_impossible_but_its_absence_costs_nothing():
    parameters = MultinomialParameters(np.array([[0.5, 0.5, 0.0]] * K))
    X = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]])
    stored = sparse.csr_array((np.array([1.0, 1.0, 0.0]), np.array([0, 1, 2]), np.array([0, 3])), shape=(1, 3))
    for rows in (X, sparse.csr_array(X)):
        found = log_prob(MultinomialFamily(), parameters, rows)
        assert np.allclose(found[0], np.log(0.5))
        assert np.isneginf(found[1]).all()
    assert np.allclose(log_prob(MultinomialFamily(), parameters, stored), np.log(0.5))


def test_canonical_rows_add_duplicates_drop_zeros_and_leave_the_input_alone():
    data, indices = np.array([1.0, 2.0, 0.0, 4.0]), np.array([2, 2, 0, 1])
    X = sparse.csr_array((data.copy(), indices.copy(), np.array([0, 3, 4])), shape=(2, 3))
    rows = canonical_rows(X)
    assert rows.toarray().tolist() == [[0.0, 0.0, 3.0], [0.0, 4.0, 0.0]]
    assert rows.nnz == 2
    assert (X.data == data).all()
    assert (X.indices == indices).all()
    assert canonical_rows(rows) is rows


@pytest.mark.parametrize("how", INIT_PARAMS)
@pytest.mark.parametrize("k", [1, 3, 12])
def test_rows_are_divided_into_shares_that_sum_to_one_even_when_they_are_all_alike(how, k):
    rng = np.random.default_rng(0)
    for X in (np.ones((12, 2)), rng.random((12, 2)), np.zeros((12, 2))):
        for rows in (X, sparse.csr_array(X)):
            shares = divide_rows(rows, np.ones(12), k, how, np.random.default_rng(1))
            assert np.allclose(shares.sum(axis=1), 1.0)
            assert (shares.sum(axis=0) > 0).all()


def test_shortened_rows_have_length_one():
    X = np.random.default_rng(0).poisson(1.0, (10, 4)).astype(float)
    X[2] = 0.0
    short = shortened(X, 1.0)
    assert np.allclose(np.linalg.norm(short, axis=1), (X.sum(axis=1) > 0).astype(float))
    assert np.allclose(shortened(sparse.csr_array(X), 1.0).toarray(), short)
