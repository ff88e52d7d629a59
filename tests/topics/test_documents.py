"""Counts of words are checked once, and tokens are the counts written out."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator

from pluri.topics.documents import check_documents, tokens_of


class Reader(BaseEstimator):
    """Something that counts are checked for."""


@pytest.fixture
def counts():
    return np.random.default_rng(0).poisson(0.7, size=(9, 6)) + np.eye(9, 6, dtype=int)


@pytest.mark.parametrize(
    "container",
    [
        np.asarray,
        np.ndarray.tolist,
        sparse.csr_matrix,
        sparse.csr_array,
        sparse.csc_matrix,
        sparse.coo_array,
        np.float32,
    ],
)
def test_every_container_gives_the_same_counts(container, counts):
    checked = check_documents(Reader(), container(counts), empty="ignore")
    np.testing.assert_array_equal(checked.toarray(), counts)
    assert checked.dtype == np.float64
    assert checked.has_canonical_format
    assert (checked.data > 0).all()


def test_stored_zeros_and_repeated_entries_are_gone_and_the_input_is_unchanged():
    made = sparse.csr_matrix(
        (np.array([1.0, 2.0, 0.0, 4.0]), np.array([1, 1, 0, 2]), np.array([0, 3, 4])), shape=(2, 3)
    )
    before = made.data.copy(), made.indices.copy(), made.indptr.copy()
    checked = check_documents(Reader(), made)
    np.testing.assert_array_equal(checked.toarray(), [[0, 3, 0], [0, 0, 4]])
    assert checked.nnz == 2
    for old, new in zip(before, (made.data, made.indices, made.indptr)):
        np.testing.assert_array_equal(old, new)


def test_negative_fractional_and_missing_counts_are_refused(counts):
    with pytest.raises(ValueError, match=r"Negative values in data passed to Reader\.fit"):
        check_documents(Reader(), -counts)
    with pytest.raises(ValueError, match=r"whole counts of words, got 0\.5"):
        check_documents(Reader(), counts * 0.5)
    for bad in (np.nan, np.inf):
        broken = counts.astype(float)
        broken[0, 0] = bad
        with pytest.raises(ValueError, match=r"NaN|infinity"):
            check_documents(Reader(), broken)
    with pytest.raises(ValueError, match="at most 2147483647"):
        check_documents(Reader(), counts * 1e10)
    assert check_documents(Reader(), counts * 0.5, whole=False, empty="ignore").sum() == counts.sum() / 2


def test_empty_documents_are_named():
    counts = np.zeros((8, 2))
    counts[3, 1] = 1
    with pytest.warns(UserWarning, match=r"7 of 8 documents have no words \(rows 0, 1, 2, 4, 5, \.\.\.\)"):
        check_documents(Reader(), counts)
    with pytest.raises(ValueError, match="leave them out"):
        check_documents(Reader(), counts, empty="error")


def test_columns_are_learned_and_then_asked_for(counts):
    reader = Reader()
    check_documents(reader, counts, empty="ignore")
    assert reader.n_features_in_ == 6
    with pytest.raises(ValueError, match="5 features"):
        check_documents(reader, counts[:, :5], reset=False, empty="ignore")


def test_tokens_count_back_to_the_documents(counts):
    counts[4] = 0
    tokens = tokens_of(sparse.csr_matrix(counts))
    again = np.zeros_like(counts)
    np.add.at(again, (tokens.documents, tokens.words), 1)
    np.testing.assert_array_equal(again, counts)
    assert tokens.n_tokens == counts.sum()
    assert tokens.n_documents == len(counts)
    for row in range(len(counts)):
        np.testing.assert_array_equal(
            np.bincount(tokens.words[tokens.offsets[row] : tokens.offsets[row + 1]], minlength=6), counts[row]
        )
