"""Every topic model through the ways in which data come: formats, weights, frames, pipelines, searches, clones."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from pluri.topics import (
    ConceptGraph,
    HDPTopicModel,
    HierarchicalLDA,
    HierarchicalPachinko,
    LatentDirichletAllocation,
    SupervisedLDA,
    SupervisedLDAClassifier,
    TreeTopicModel,
)

pytestmark = pytest.mark.filterwarnings("ignore")
SHORT = {"n_warmup": 4, "n_draws": 4, "random_state": 0}
MODELS = {
    **{
        f"lda {how}": LatentDirichletAllocation(3, inference=how, thin=1, **SHORT)
        for how in ("vb", "svi", "gibbs", "em")
    },
    "hdp gibbs": HDPTopicModel(max_topics=5, **SHORT),
    **{f"hdp {how}": HDPTopicModel(how, max_topics=5, max_iter=2, random_state=0) for how in ("vb", "svi")},
    "ratings": SupervisedLDA(2, **SHORT),
    "classes": SupervisedLDAClassifier(2, **SHORT),
    "hlda": HierarchicalLDA(2, **SHORT),
    "pachinko": HierarchicalPachinko(2, 2, **SHORT),
    "concept graph": ConceptGraph(2, max_nodes_per_level=4, **SHORT),
    "tree": TreeTopicModel(2, (2, 3), thin=1, **SHORT),
}  # fmt: skip


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    counts = rng.poisson(3.0 * np.repeat([[1.0, 0.1], [0.1, 1.0]], 6, axis=0).repeat(5, axis=1), (12, 10))
    counts[3] = 0  # an empty document
    return counts


def response(name, X):
    return {"ratings": X[:, 0] * 1.0, "classes": (X[:, 0] > 1).astype(int)}.get(name)


def frozen(matrix):
    for part in (matrix.data, matrix.indices, matrix.indptr) if sparse.issparse(matrix) else (matrix,):
        part.flags.writeable = False
    return matrix


def unsorted_with_duplicates_and_zeros(X):
    """The same counts: rows backwards, each count in two parts, and a stored zero in each row."""
    data, indices, indptr = [], [], [0]
    for row in X:
        places = np.flatnonzero(row)[::-1]
        zero = np.flatnonzero(row == 0)[:1]
        parts = np.concatenate([row[places] - row[places] // 2, row[places] // 2, np.zeros(len(zero))])
        data.append(parts)
        indices.append(np.concatenate([places, places, zero]))
        indptr.append(indptr[-1] + len(parts))
    return sparse.csr_matrix((np.concatenate(data), np.concatenate(indices), indptr), shape=X.shape)


def with_long_indices(X):
    csr = sparse.csr_array(X.astype(float))
    csr.indices, csr.indptr = csr.indices.astype(np.int64), csr.indptr.astype(np.int64)
    return csr


FORMATS = {
    "csc": lambda X: sparse.csc_matrix(X),
    "coo": lambda X: sparse.coo_array(X),
    "float32": lambda X: sparse.csr_matrix(X, dtype=np.float32),
    "long indices": with_long_indices,
    "odd entries": unsorted_with_duplicates_and_zeros,
    "read-only": lambda X: frozen(sparse.csr_matrix(X)),
    "read-only odd entries": lambda X: frozen(unsorted_with_duplicates_and_zeros(X)),
    "read-only dense": lambda X: frozen(np.array(X, dtype=np.int64)),
    "columns first": lambda X: np.asfortranarray(X),
    "booleans and lists": lambda X: X.tolist(),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_format_of_the_counts_does_not_matter(name, X):
    model, y = MODELS[name], response(name, X)
    plain = clone(model).fit(sparse.csr_matrix(X, dtype=float), y)
    shares, score = plain.transform(X), plain.held_out(X, random_state=0).log_likelihood
    for label, change in FORMATS.items():
        given = change(X)
        before = given.copy() if sparse.issparse(given) else np.array(given)
        fitted = clone(model).fit(given, y)
        np.testing.assert_allclose(fitted.topic_word_, plain.topic_word_, err_msg=label)
        np.testing.assert_allclose(plain.transform(given), shares, err_msg=label)
        np.testing.assert_allclose(plain.held_out(given, random_state=0).log_likelihood, score, err_msg=label)
        if sparse.issparse(given):
            np.testing.assert_array_equal(before.toarray(), given.toarray())
            assert given.nnz == before.nnz


@pytest.mark.parametrize("name", MODELS)
def test_frames_go_in_and_come_out(name, X):
    frame = pd.DataFrame(X, columns=[f"w{column}" for column in range(10)], index=[f"d{row}" for row in range(12)])
    model = clone(MODELS[name]).set_output(transform="pandas")
    both = model.fit_transform(frame, response(name, X))
    again = model.transform(frame)
    for found in (both, again):
        assert isinstance(found, pd.DataFrame)
        assert list(found.index) == list(frame.index)
        assert list(found.columns) == list(model.get_feature_names_out())
    np.testing.assert_allclose(both, again)
    assert set(model.top_words(2)[0]) <= set(frame.columns)
    with pytest.raises(ValueError, match="feature names"):
        model.transform(frame[frame.columns[::-1]])


@pytest.mark.parametrize("name", MODELS)
def test_pipelines_and_searches_work(name, X):
    pipeline = make_pipeline(FunctionTransformer(validate=False), clone(MODELS[name]))
    parameter = "n_warmup" if "n_warmup" in MODELS[name].get_params() else "max_iter"
    last = pipeline.steps[-1][0]
    search = GridSearchCV(pipeline, {f"{last}__{parameter}": [2, 3]}, cv=2, error_score="raise")
    search.fit(sparse.csr_matrix(X), response(name, X))
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@pytest.mark.parametrize("name", MODELS)
def test_an_empty_document_has_shares_and_costs_nothing(name, X):
    model = clone(MODELS[name]).fit(X, response(name, X))
    shares = model.transform(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert model.held_out(X, random_state=0).log_likelihood[3] == 0


@pytest.mark.parametrize("how", ["vb", "svi", "gibbs", "em"])
def test_weights_count_in_scores_as_in_fits(how, X):
    weight = np.where(np.arange(12) < 4, 3, 1)
    written_out = X[np.repeat(np.arange(12), weight)]
    model = clone(MODELS[f"lda {how}"]).fit(X)
    assert model.score(X, sample_weight=weight) == pytest.approx(model.score(written_out))
    assert model.perplexity(X, sample_weight=weight) == pytest.approx(model.perplexity(written_out))
    with pytest.raises(ValueError, match="sample_weight must be 12 numbers"):
        model.score(X, sample_weight=weight[1:])
