"""Mixtures of sparse rows: the answers of dense rows, in every sparse form, and never a dense copy."""

import warnings
from functools import partialmethod

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from pluri.engine import ArraySource, SparseSource
from pluri.mixtures.discrete.bernoulli import BernoulliMixture
from pluri.mixtures.discrete.multinomial import MultinomialMixture
from pluri.mixtures.discrete.poisson import PoissonMixture

MODELS = (BernoulliMixture, PoissonMixture, MultinomialMixture)
K, D = 4, 60


def draw(model, n=400, seed=0, density=0.08):
    """Sparse rows of a planted mixture, dense."""
    rng = np.random.default_rng(seed)
    parts = rng.gamma(0.4, 1.0, (K, D))
    parts *= density * D / parts.sum(axis=1, keepdims=True)
    labels = rng.integers(K, size=n)
    if model is BernoulliMixture:
        return (rng.random((n, D)) < np.minimum(parts, 0.95)[labels]).astype(float), labels
    return rng.poisson(parts[labels]).astype(float), labels


def start(model):
    rng = np.random.default_rng(9)
    if model is MultinomialMixture:
        return {"probabilities_init": rng.dirichlet(np.full(D, 2.0), K)}
    return {"rates_init" if model is PoissonMixture else "probabilities_init": rng.uniform(0.05, 0.15, (K, D))}


def fit(model, X, weight=None, **options):
    options = {"tol": 0.0, "max_iter": 15} | start(model) | options
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model(K, **options).fit(X, sample_weight=weight)


def parts_of(model):
    return model.rates_ if isinstance(model, PoissonMixture) else model.probabilities_


def same(first, second, atol=1e-10):
    return (
        np.allclose(parts_of(first), parts_of(second), rtol=0, atol=atol)
        and np.allclose(first.weights_, second.weights_, rtol=0, atol=atol)
        and np.isclose(first.objective_, second.objective_, rtol=1e-12)
    )


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("form", ["csr_matrix", "csr_array", "csc_array", "coo_matrix", "lil_matrix"])
def test_sparse_equals_dense(model, form):
    X, _ = draw(model)
    S = getattr(sparse, form)(X)
    dense, thin = fit(model, X), fit(model, S)
    assert same(dense, thin)
    assert np.allclose(thin.score_samples(S), dense.score_samples(X), rtol=0, atol=1e-10)
    assert np.allclose(thin.predict_proba(S), dense.predict_proba(X), rtol=0, atol=1e-10)


@pytest.mark.parametrize("model", MODELS)
def test_options_are_those_of_dense_rows(model):
    X, _ = draw(model)
    S = sparse.csr_array(X)
    weight = np.random.default_rng(0).integers(0, 3, len(X)).astype(float)
    assert same(fit(model, S, weight), fit(model, X, weight))
    assert same(fit(model, S, weight), fit(model, sparse.csr_array(np.repeat(X, weight.astype(int), axis=0))), 1e-9)
    assert same(fit(model, S, acceleration="squarem"), fit(model, X, acceleration="squarem"), 1e-8)
    assert same(fit(model, S, smoothing=2.0), fit(model, X, smoothing=2.0))
    # A climb that ends when it gains little magnifies rounding.
    thin, dense = fit(model, S, diversity=2.0, max_iter=4), fit(model, X, diversity=2.0, max_iter=4)
    assert np.isclose(thin.objective_, dense.objective_, rtol=1e-6)
    assert same(fit(model, S.astype(np.int32)), fit(model, X))
    assert same(fit(model, S.astype(np.float32)), fit(model, X))


@pytest.mark.parametrize("model", MODELS)
def test_sources_streams_and_threads_take_sparse_rows(model):
    X, _ = draw(model)
    S = sparse.csr_array(X)
    whole = fit(model, S)
    assert same(fit(model, SparseSource(S, batch_size=100)), whole, 1e-9)
    assert same(fit(model, SparseSource(S, batch_size=100), engine="threads", n_jobs=2), whole, 1e-9)
    thin, dense = model(K, random_state=0, **start(model)), model(K, random_state=0, **start(model))
    for begin in range(0, 400, 100):
        thin.partial_fit(S[begin : begin + 100])
        dense.partial_fit(X[begin : begin + 100])
    assert np.allclose(parts_of(thin), parts_of(dense), atol=1e-10)


def test_a_cluster_gives_what_one_core_gives():
    distributed = pytest.importorskip("distributed")
    with distributed.Client(n_workers=1, processes=False, dashboard_address=":0", set_as_default=False) as client:
        for model in MODELS:
            X, _ = draw(model, 200)
            source = SparseSource(sparse.csr_array(X), batch_size=50)
            assert same(fit(model, source, engine=client, max_iter=5), fit(model, X, max_iter=5), 1e-9)


@pytest.mark.parametrize("model", MODELS)
def test_rows_are_never_made_dense(model, monkeypatch):
    X, _ = draw(model)
    S = sparse.csr_array(X)

    def only_centres(self, *args, original, **kwargs):
        assert self.shape[0] <= K, "a sparse matrix was made dense"
        return original(self, *args, **kwargs)

    for kind in (sparse.csr_array, sparse.csr_matrix, sparse.csc_array, sparse.coo_array):
        for method in ("toarray", "todense"):
            monkeypatch.setattr(kind, method, partialmethod(only_centres, original=getattr(kind, method)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for how in ("random", "kmeans"):
            fitted = model(K, init_params=how, random_state=0, split_merge=1, max_iter=20).fit(S)
    fitted.predict(S)
    fitted.score(S)


@pytest.mark.parametrize("model", MODELS)
def test_duplicates_stored_zeros_and_disorder_do_not_matter(model):
    X, _ = draw(model, 50)
    S = sparse.csr_array(X)
    rng = np.random.default_rng(0)
    coo = S.tocoo()
    rows, columns = np.r_[coo.row, rng.integers(50, size=30)], np.r_[coo.col, rng.integers(D, size=30)]
    data = np.r_[coo.data, np.zeros(30)]
    if model is not BernoulliMixture:  # a count in two parts
        rows, columns, data = np.r_[rows, rows[:20]], np.r_[columns, columns[:20]], np.r_[data, data[:20] / 2]
        data[:20] /= 2
    order = np.lexsort((rng.random(len(rows)), rows))
    ends = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=50))])
    messy = sparse.csr_array((data[order], columns[order], ends), shape=(50, D))
    before = messy.data.copy(), messy.indices.copy()
    assert same(fit(model, messy), fit(model, X))
    assert (messy.data == before[0]).all()
    assert (messy.indices == before[1]).all()


@pytest.mark.parametrize("model", MODELS)
def test_planted_components_are_found_in_sparse_rows(model):
    X, labels = draw(model, 2000, density=0.2)
    fitted = model(K, n_init=3, random_state=0).fit(sparse.csr_array(X))
    assert adjusted_rand_score(labels, fitted.predict(sparse.csr_array(X))) > 0.9


@pytest.mark.parametrize("model", MODELS)
def test_empty_rows_columns_and_matrices_are_data(model):
    X, _ = draw(model)
    X[:5], X[:, 3] = 0.0, 0.0
    assert same(fit(model, sparse.csr_array(X)), fit(model, X))
    nothing = model(2, random_state=0).fit(sparse.csr_array((8, 5)))
    assert np.allclose(nothing.score_samples(sparse.csr_array((2, 5))), 0.0, atol=1e-6)


def test_thresholds_apply_to_stored_values():
    X, _ = draw(PoissonMixture, density=1.0)
    for binarize in (0.0, 1.0, 2.5):
        ones = (binarize < X).astype(float)
        assert same(fit(BernoulliMixture, sparse.csr_array(X), binarize=binarize), fit(BernoulliMixture, ones))
        assert same(fit(BernoulliMixture, ArraySource(X), binarize=binarize), fit(BernoulliMixture, ones))
    assert same(fit(BernoulliMixture, sparse.csr_array(ones), binarize=None), fit(BernoulliMixture, ones))


def test_zeros_of_a_sparse_query_are_unobserved():
    X, _ = draw(BernoulliMixture)
    fitted = fit(BernoulliMixture, X)
    S = sparse.csr_array(X)
    holed = np.where(X == 1.0, 1.0, np.nan)
    found = fitted.predict_missing_rows(S)
    assert np.allclose(found, fitted.predict_missing_rows(holed), atol=1e-12)
    for row in range(5):
        assert np.allclose(found[row], fitted.predict_missing(np.flatnonzero(X[row])), atol=1e-12)


@pytest.mark.parametrize("model", MODELS)
def test_what_sparse_rows_cannot_hold_is_refused(model):
    X, _ = draw(model, 30)
    for value, words in ((np.nan, "finite|missing value needs a dense"), (np.inf, "infinity")):
        S = sparse.csr_array(X)
        S.data[0] = value
        with pytest.raises(ValueError, match=words):
            model(2).fit(S)
    if model is BernoulliMixture:
        with pytest.raises(ValueError, match="binarize must not be negative"):
            model(2, binarize=-1.0).fit(sparse.csr_array(X))
        with pytest.raises(ValueError, match="zeros and ones"):
            model(2, binarize=None).fit(sparse.csr_array(2.0 * X))
    else:
        with pytest.raises(ValueError, match="Negative values"):
            model(2).fit(sparse.csr_array(-X))
    fitted = fit(model, X, max_iter=1)
    with pytest.raises(ValueError, match="features"):
        fitted.predict(sparse.csr_array(X[:, :10]))
