"""Texts, tokens and token numbers become rows of a table of embeddings, or an error sentence."""

from __future__ import annotations

import numpy as np
import pandas
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator
from sklearn.feature_extraction.text import CountVectorizer

from pluri.networks import UnknownTokenWarning
from pluri.networks.classifiers.tokens import (
    TokenLists,
    check_not_empty,
    encode,
    given_embeddings,
    learn_vocabulary,
    read_tokens,
    warn_of_unknown,
)


def read(X, vectorizer=None):
    return read_tokens(BaseEstimator(), X, vectorizer, reset=True)


def test_texts_are_split_into_words_and_signs():
    assert read(["It doesn't work!", "Ça va"]).sequences == [["it", "doesn't", "work", "!"], ["ça", "va"]]
    assert read(np.array(["a b", "c"])).sequences == [["a", "b"], ["c"]]
    assert read(pandas.Series(["a b", "c"], index=[7, 9])).sequences == [["a", "b"], ["c"]]


def test_a_vectorizer_splits_as_it_does_for_counts():
    vectorizer = CountVectorizer(stop_words="english", lowercase=False)
    assert read(["the Cat and the Hat"], vectorizer).sequences == [["Cat", "Hat"]]
    with pytest.raises(ValueError, match=r"vectorizer must have ngram_range \(1, 1\), got \(1, 2\)"):
        read(["a"], CountVectorizer(ngram_range=(1, 2)))


@pytest.mark.parametrize(
    "X",
    [
        [[3, 1], [2, 0]],
        [np.array([3, 1]), (2, 0)],
        np.array([[3, 1], [2, 0]]),
        np.array([[3.0, 1.0, -1], [2, 0, -1]], dtype=np.float32),
        pandas.DataFrame({"first": [3, 2], "second": [1, 0]}),
    ],
)
def test_token_numbers_come_in_many_forms(X):
    found = read(X)
    assert found.kind == "numbers"
    assert [one.tolist() for one in found.sequences] == [[3, 1], [2, 0]]


def test_a_table_sets_its_width_and_another_is_refused():
    owner = BaseEstimator()
    read_tokens(owner, np.zeros((2, 3), int), reset=True)
    assert owner.n_features_in_ == 3
    with pytest.raises(ValueError, match="4 features"):
        read_tokens(owner, np.zeros((2, 4), int))


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ("one text", "got one string"),
        (7, "got 7"),
        ([], "got 0 samples"),
        (csr_matrix(np.eye(2)), "got a sparse matrix"),
        (["a text", ["some", "tokens"]], "all texts, or all sequences of tokens, got 'a text' at 0"),
        ([["a", 1]], "tokens of one kind, got 'a' and 1"),
        ([[1, "a"]], "X must hold tokens"),
        ([[0.5]], "whole token numbers, got 0.5"),
        (np.array([[np.nan, 1.0]]), "whole token numbers, got nan"),
        (np.array([[np.inf, 1.0]]), "whole token numbers, got inf"),
        ([[-1, 2]], "token numbers of at least 0, got -1"),
        (np.array([[-2, 2]]), "or -1 for padding, got -2"),
        ([[1e300]], "below 2"),
        ([[[1, 2]]], "all sequences of tokens"),
        (pandas.DataFrame({"text": ["a b", "c"]}), "got a table of one column: give the column"),
        ([None], "all sequences of tokens, got None at 0"),
    ],
)
def test_what_cannot_be_meant_is_refused(X, message):
    with pytest.raises(ValueError, match=message):
        read(X)


def test_empty_sequences_are_named():
    with pytest.raises(ValueError, match="got none in sequence 1 and 1 more"):
        check_not_empty([["a"], [], []])


def test_a_vocabulary_is_sorted_and_leaves_out_what_is_rare():
    words, counts = learn_vocabulary(read(["b a b", "c b a"]), 2)
    assert (words.tolist(), counts.tolist()) == (["a", "b"], [2, 3])
    numbers, counts = learn_vocabulary(read([[9, 4], [9]]), 1)
    assert (numbers.tolist(), counts.tolist()) == ([4, 9], [1, 2])
    with pytest.raises(ValueError, match="min_count must leave some tokens, got 4; the commonest occurs 3 times"):
        learn_vocabulary(read(["b a b", "c b a"]), 4)


def test_unknown_tokens_are_row_zero_and_counted():
    rows = encode(read(["a z b", "q"]), np.array(["a", "b"]))
    assert [row.tolist() for row in rows] == [[1, 0, 2], [0]]
    with pytest.warns(UnknownTokenWarning, match="2 of 4 tokens of X are unknown"):
        assert warn_of_unknown(rows) == 2
    assert [row.tolist() for row in encode(read([[9, 5, 4, 99]]), np.array([4, 9]))] == [[2, 0, 1, 0]]
    assert warn_of_unknown([np.array([1])]) == 0


def test_words_are_not_taken_for_numbers():
    with pytest.raises(ValueError, match="X must hold words, as the data of fit did, got numbers"):
        encode(TokenLists([np.array([1])], "numbers"), np.array(["a"]))


def test_embeddings_are_sorted_with_their_words():
    words, vectors = given_embeddings((["b", "a"], [[1.0, 2.0], [3.0, 4.0]]))
    assert words.tolist() == ["a", "b"]
    assert_array_equal(vectors, [[3, 4], [1, 2]])
    assert given_embeddings(np.eye(3))[0].tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("embeddings", "message"),
    [
        ((["a"], np.eye(2)), "words and a vector for each"),
        ((["a", "a"], np.eye(2)), "one vector for each word, got 1 repeated"),
        (np.full((2, 2), np.nan), "finite vectors"),
        (np.ones(3), r"got shape \(3,\)"),
    ],
)
def test_embeddings_that_do_not_fit_are_refused(embeddings, message):
    with pytest.raises(ValueError, match=message):
        given_embeddings(embeddings)


def test_what_is_no_text_among_texts_is_named():
    owner = BaseEstimator()
    with pytest.raises(ValueError, match=r"X must be all texts, .* got nan at 2"):
        read_tokens(owner, ["a film", "a plot", float("nan"), "an actor"])
    with pytest.raises(ValueError, match=r"X must be all texts, .* got 'a film' at 1"):
        read_tokens(owner, [["a", "film"], "a film", ["a", "plot"]])
