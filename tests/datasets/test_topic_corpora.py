"""Counting words, dividing documents, and loaders of collections on small files of the same make."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest
import scipy.sparse

from pluri.datasets import (
    WordCounts,
    count_words,
    load_ap_news,
    load_cora_abstracts,
    load_labelme_codewords,
    load_movie_polarity,
    load_movie_scale,
    load_newsgroups,
    load_nips_papers,
    load_political_blogs,
    load_psychological_review,
    load_restaurant_reviews,
    train_test,
)

COUNTS = scipy.sparse.csr_matrix([[2, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 3]])
WORDS = np.array(["ape", "bee", "cat", "dog"])


def write(folder, name, **arrays):
    matrix = {"data": COUNTS.data, "indices": COUNTS.indices, "indptr": COUNTS.indptr, "shape": COUNTS.shape}
    np.savez(folder / name, **(matrix | {"vocab": WORDS} | arrays))


def write_lines(folder, name, rows):
    with gzip.open(folder / name, "wt", encoding="utf-8") as file:
        file.write("\n".join(json.dumps(row) for row in rows) + "\n")


def test_words_are_counted_as_by_hand():
    texts = ["The Dog's bone: dog, DOG2 dog_x a-b", "no dogs here... bone", ""]
    data = count_words(texts, min_documents=1, max_share=1.0, stop_words=["the", "no", "here"])
    assert data.vocabulary.tolist() == ["bone", "dog", "dogs"]
    assert data.counts.toarray().tolist() == [[1, 2, 0], [1, 0, 1], [0, 0, 0]]
    assert data.texts == tuple(texts)
    assert data.counts.dtype == np.int64
    assert len(data) == 3


def test_rare_and_common_words_are_left_out():
    texts = ["all one two", "all one three", "all two four four four", "all one"]
    data = count_words(texts, min_documents=2, max_share=0.8, stop_words=None)
    assert data.vocabulary.tolist() == ["one", "two"]
    most = count_words(texts, min_documents=1, max_share=1.0, max_words=2, stop_words=None)
    assert most.vocabulary.tolist() == ["all", "four"]


def test_stems_are_those_of_porter():
    words = "caresses ponies relational hopping conflated connections"
    data = count_words([words, "connection connected"], min_documents=1, max_share=1.0, stem=True)
    assert data.vocabulary.tolist() == ["caress", "conflat", "connect", "hop", "poni", "relat"]
    assert data.counts.toarray()[:, 2].tolist() == [1, 2]


def test_documents_bring_titles_labels_and_split(tmp_path):
    rows = [
        {"id": i, "split": split, "label": label, "subject": f"s{i}", "text": text}
        for i, (split, label, text) in enumerate(
            [("train", "sport", "ball ball goal"), ("train", "cars", "wheel goal"), ("test", "sport", "ball wheel")]
        )
    ]
    write_lines(tmp_path, "newsgroups20_bydate.jsonl.gz", rows)
    data = count_words(load_newsgroups(tmp_path), min_documents=1, max_share=1.0)
    assert data.titles == ("s0", "s1", "s2")
    assert [data.target_names[c] for c in data.y] == ["sport", "cars", "sport"]
    train, test = train_test(data, None)
    assert train.counts.toarray().tolist() == [[2, 1, 0], [0, 1, 1]]
    assert (test.titles, test.y.tolist(), test.texts) == (("s2",), [1], ("ball wheel",))


def test_parts_are_disjoint_and_repeat_for_a_seed():
    links = np.array([[0, 1], [2, 9], [9, 2], [3, 4]])
    data = WordCounts(
        scipy.sparse.csr_matrix(np.arange(30).reshape(10, 3)),
        np.array(["a", "b", "c"]),
        links=links,
        titles=tuple("abcdefghij"),
    )
    train, test = train_test(data, 0.3, random_state=0)
    assert (len(train), len(test)) == (7, 3)
    assert sorted(train.titles + test.titles) == list("abcdefghij")
    assert list(train.titles) == sorted(train.titles)
    assert train_test(data, 0.3, random_state=0)[1].titles == test.titles
    assert train_test(data, 0.3, random_state=1)[1].titles != test.titles
    kept = data.documents([9, 2, 0])
    assert kept.links.tolist() == [[1, 0], [0, 1]]
    assert kept.counts.toarray().tolist() == [[27, 28, 29], [6, 7, 8], [0, 1, 2]]
    for share, message in ((0.0, "between 0 and 1"), (0.01, "both sides"), (None, "split of its own")):
        with pytest.raises(ValueError, match=message):
            train_test(data, share)


def test_common_words_keep_the_most_frequent():
    data = WordCounts(COUNTS, WORDS)
    assert data.common_words(min_documents=1, max_words=2).vocabulary.tolist() == ["ape", "dog"]
    assert data.common_words(min_documents=1).counts.shape == (3, 4)
    with pytest.raises(ValueError, match="leave at least one word"):
        data.common_words(min_documents=2)
    with pytest.raises(ValueError, match="max_share"):
        data.common_words(max_share=0.0)
    with pytest.raises(ValueError, match="min_documents must be an integer"):
        data.common_words(min_documents=0.5)
    with pytest.raises(KeyError):
        data["words"]
    assert data["counts"] is data.X
    assert repr(data) == "WordCounts(3 documents, 4 words, 7 tokens)"


def test_texts_without_words_get_a_sentence():
    with pytest.raises(ValueError, match="at least one word that is no stop word"):
        count_words(["the of", "12"])
    with pytest.raises(ValueError, match="sequence of strings"):
        count_words("one string")
    with pytest.raises(ValueError, match="sequence of strings"):
        count_words([b"bytes"])
    with pytest.raises(ValueError, match="stop_words must be 'english'"):
        count_words(["x"], stop_words="german")


def test_nips_papers_are_read_with_titles_authors_and_split(tmp_path):
    write(
        tmp_path,
        "nips12_bow_titles_authors.npz",
        titles=["t0", "t1", "t2"],
        authors=["Ann", "Bob"],
        author_doc=[[1, 0], [0, 1], [1, 1]],
    )
    write(tmp_path, "nips_uci_bow.npz", is_test=[False, True, False])
    data = load_nips_papers(data_home=tmp_path)
    assert data.titles == ("t0", "t1", "t2")
    assert data.authors == (("Bob",), ("Ann", "Bob"), ())
    np.testing.assert_array_equal(data.counts.toarray(), COUNTS.toarray())
    assert data.vocabulary.tolist() == WORDS.tolist()
    assert load_nips_papers("uci", tmp_path).is_test.tolist() == [False, True, False]
    with pytest.raises(ValueError, match="edition must be"):
        load_nips_papers("2024", tmp_path)


def test_collections_with_targets_and_links_are_read(tmp_path):
    write(tmp_path, "ap_lda_bow.npz")
    write(tmp_path, "psychreview_abstracts.npz")
    write(tmp_path, "poliblog_slda.npz", rating=[100.0, -100.0, 100.0])
    write(tmp_path, "we8there_ratings.npz", ratings=[[1, 2], [3, 4], [5, 5]], rating_names=["Food", "Overall"])
    write(tmp_path, "labelme8_codewords_slda.npz", y=[0, 7, 7], is_test=[True, False, True])
    write(tmp_path, "cora_rtm.npz", titles=["t0", "t1", "t2"], edges=[[0, 2]])
    assert load_ap_news(tmp_path).counts.sum() == load_psychological_review(tmp_path).counts.sum() == 7
    assert load_political_blogs(tmp_path).target.tolist() == [100.0, -100.0, 100.0]
    assert load_restaurant_reviews(data_home=tmp_path).target.tolist() == [2.0, 4.0, 5.0]
    assert load_restaurant_reviews(None, tmp_path).target.shape == (3, 2)
    images = load_labelme_codewords(tmp_path)
    assert (images.target.tolist(), images.is_test.sum(), images.vocabulary[3]) == ([0, 7, 7], 2, "codeword 3")
    assert load_cora_abstracts(tmp_path).links.tolist() == [[0, 2]]
    with pytest.raises(ValueError, match="rating must be one of"):
        load_restaurant_reviews("Price", tmp_path)


def test_reviews_are_read_and_counted(tmp_path):
    for reviewer, rating in (("schwartz", 0.1), ("berardinelli", 0.5), ("renshaw", 0.9)):
        rows = [
            {"id": "7", "rating": str(rating), "text": "good film"},
            {"id": "8", "rating": "0.3", "text": "bad film"},
        ]
        write_lines(tmp_path, f"movie_scale_{reviewer}.jsonl.gz", rows)
    options = {"min_documents": 1, "max_share": 1.0}
    data = load_movie_scale(data_home=tmp_path, **options)
    assert data.vocabulary.tolist() == ["bad", "film", "good"]
    assert data.target.tolist() == [0.1, 0.3, 0.5, 0.3, 0.9, 0.3]
    assert load_movie_scale("renshaw", tmp_path, **options).titles == ("renshaw 7", "renshaw 8")
    write_lines(
        tmp_path,
        "movie_reviews_polarity.jsonl.gz",
        [{"id": "a", "label": "pos", "text": "good"}, {"id": "b", "label": "neg", "text": "bad"}],
    )
    assert load_movie_polarity(tmp_path, **options).target.tolist() == [1, 0]
    write_lines(tmp_path, "movie_reviews_polarity.jsonl.gz", [{"id": "a", "label": "so", "text": "good"}])
    with pytest.raises(ValueError, match="'neg' and 'pos', got 'so'"):
        load_movie_polarity(tmp_path)
    with pytest.raises(ValueError, match="reviewer must be"):
        load_movie_scale("ebert", tmp_path)


@pytest.mark.parametrize(
    "load",
    [
        load_ap_news,
        load_cora_abstracts,
        load_labelme_codewords,
        load_movie_polarity,
        load_political_blogs,
        load_psychological_review,
        lambda home: load_nips_papers(data_home=home),
        lambda home: load_nips_papers("uci", home),
        lambda home: load_restaurant_reviews(data_home=home),
        lambda home: load_movie_scale(data_home=home),
    ],
)
def test_a_missing_file_gets_a_sentence(load, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"must hold \w+\.(npz|jsonl\.gz), which is not there.*PLURI_DATA"):
        load(tmp_path)


def test_damaged_files_get_a_sentence(tmp_path):
    write(tmp_path, "ap_lda_bow.npz", vocab=WORDS[:2])
    with pytest.raises(ValueError, match="a word for each of 4 columns, got 2"):
        load_ap_news(tmp_path)
    np.savez(tmp_path / "ap_lda_bow.npz", data=COUNTS.data)
    with pytest.raises(ValueError, match=r"got none named \['indices', 'indptr', 'shape', 'vocab'\]"):
        load_ap_news(tmp_path)
    write(tmp_path, "poliblog_slda.npz", rating=[1.0])
    with pytest.raises(ValueError, match="rating for 3 documents, got 1"):
        load_political_blogs(tmp_path)
    write_lines(tmp_path, "movie_reviews_polarity.jsonl.gz", [{"id": "a", "text": "x"}])
    with pytest.raises(ValueError, match=r"none of \['label'\] in 1"):
        load_movie_polarity(tmp_path)
