"""Collections of documents that topic models are tried on, read from the data folder.

None may be shipped. Counts are read from npz files with the arrays ``data, indices, indptr, shape`` of a CSR matrix
and the words in ``vocab``; reviews from lines of JSON.

References
----------
.. [1] Blei, D., Ng, A. and Jordan, M. (2003). Latent Dirichlet allocation. JMLR 3 (news of the Associated Press).
.. [2] Griffiths, T. and Steyvers, M. (2004). Finding scientific topics. PNAS 101 (topic toolbox: NIPS papers,
   abstracts of Psychological Review).
.. [3] Pang, B. and Lee, L. (2004, 2005). A sentimental education; Seeing stars. ACL (movie reviews).
.. [4] Wang, C., Blei, D. and Li, F.-F. (2009). Simultaneous image classification and annotation. CVPR (images).
.. [5] Chang, J. and Blei, D. (2009). Relational topic models for document networks. AISTATS (Cora abstracts).
.. [6] Taddy, M. (2013). Multinomial inverse regression for text analysis. JASA 108 (restaurant reviews).
"""

from __future__ import annotations

import gzip
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from pluri.datasets.home import find_file
from pluri.datasets.word_counts import WordCounts, count_words
from pluri.validation import Only, check_value

Home = str | os.PathLike[str] | None
COUNTS_ADVICE = (
    "It is an npz file with the arrays data, indices, indptr and shape of a CSR matrix of documents and words, and the "
    "words in vocab"
)
NIPS_FILES = {"titles": "nips12_bow_titles_authors.npz", "uci": "nips_uci_bow.npz"}
REVIEWERS = ("schwartz", "berardinelli", "renshaw")


def load_nips_papers(edition: Literal["titles", "uci"] = "titles", data_home: Home = None) -> WordCounts:
    """Load papers of the conference on neural information processing.

    Parameters
    ----------
    edition : {"titles", "uci"}, default="titles"
        1740 papers of volumes 0 to 12 with titles and authors, or the 1500 of the UCI repository with a test part.
    data_home : str or path, optional
        Folder of the file; see :func:`pluri.datasets.data_home`.

    Examples
    --------
    >>> from pluri.datasets import load_nips_papers
    >>> load_nips_papers()  # doctest: +SKIP
    WordCounts(1740 documents, 13649 words, 2301375 tokens)
    """
    check_value(edition, "edition", Only(*NIPS_FILES))
    if edition == "uci":
        data, rest = _counts(NIPS_FILES["uci"], data_home, ("is_test",), "(UCI bag of words, NIPS full papers).")
        return replace(data, is_test=rest["is_test"].astype(bool))
    fields = ("titles", "authors", "author_doc")
    data, rest = _counts(NIPS_FILES["titles"], data_home, fields, "(Steyvers and Griffiths, topic toolbox).")
    authors: list[list[str]] = [[] for _ in range(len(data))]
    for author, document in rest["author_doc"]:
        authors[document].append(str(rest["authors"][author]))
    return replace(data, titles=_strings(rest["titles"]), authors=tuple(tuple(names) for names in authors))


def load_ap_news(data_home: Home = None) -> WordCounts:
    """Load 2246 news stories of the Associated Press.

    Parameters
    ----------
    data_home : str or path, optional
        Folder of the file; see :func:`pluri.datasets.data_home`.

    Examples
    --------
    >>> from pluri.datasets import load_ap_news
    >>> load_ap_news()  # doctest: +SKIP
    WordCounts(2246 documents, 10473 words, 435838 tokens)
    """
    return _counts("ap_lda_bow.npz", data_home, (), "(made from ap.dat of lda-c).")[0]


def load_psychological_review(data_home: Home = None) -> WordCounts:
    """Load 1281 abstracts of Psychological Review.

    Parameters
    ----------
    data_home : str or path, optional
        Folder of the file; see :func:`pluri.datasets.data_home`.

    Examples
    --------
    >>> from pluri.datasets import load_psychological_review
    >>> load_psychological_review()  # doctest: +SKIP
    WordCounts(1281 documents, 9244 words, 85031 tokens)
    """
    return _counts("psychreview_abstracts.npz", data_home, (), "(Steyvers and Griffiths, topic toolbox).")[0]


def load_political_blogs(data_home: Home = None) -> WordCounts:
    """Load 773 posts of political blogs of 2008; the target is 100 for conservative ones and -100 for liberal ones.

    Parameters
    ----------
    data_home : str or path, optional
        Folder of the file; see :func:`pluri.datasets.data_home`.

    Examples
    --------
    >>> from pluri.datasets import load_political_blogs
    >>> load_political_blogs()  # doctest: +SKIP
    WordCounts(773 documents, 1290 words, 105225 tokens)
    """
    data, rest = _counts("poliblog_slda.npz", data_home, ("rating",), "(made from poliblog of the R package lda).")
    return replace(data, target=rest["rating"].astype(np.float64), target_names=("rating",))


def load_restaurant_reviews(rating: str | None = "Overall", data_home: Home = None) -> WordCounts:
    """Load 6166 reviews of restaurants as counts of pairs of words, with ratings from 1 to 5.

    Parameters
    ----------
    rating : {"Food", "Service", "Value", "Atmosphere", "Overall"} or None, default="Overall"
        Which rating is the target; None for all five, in columns.
    data_home : str or path, optional
        Folder of the file; see :func:`pluri.datasets.data_home`.

    Examples
    --------
    >>> from pluri.datasets import load_restaurant_reviews
    >>> load_restaurant_reviews()  # doctest: +SKIP
    WordCounts(6166 documents, 2640 words, 69592 tokens)
    """
    fields = ("ratings", "rating_names")
    data, rest = _counts("we8there_ratings.npz", data_home, fields, "(made from we8there of the R package textir).")
    names = _strings(rest["rating_names"])
    if rating is None:
        return replace(data, target=rest["ratings"].astype(np.float64), target_names=names)
    check_value(rating, "rating", Only(*names, None))
    return replace(data, target=rest["ratings"][:, names.index(rating)].astype(np.float64), target_names=(rating,))


def load_labelme_codewords(data_home: Home = None) -> WordCounts:
    """Load 1600 images of eight classes as counts of 158 codewords, half of them for testing.

    Parameters
    ----------
    data_home : str or path, optional
        Folder of the file; see :func:`pluri.datasets.data_home`.

    Examples
    --------
    >>> from pluri.datasets import load_labelme_codewords
    >>> load_labelme_codewords()  # doctest: +SKIP
    WordCounts(1600 documents, 158 words, 3841600 tokens)
    """
    fields = ("y", "is_test")
    data, rest = _counts("labelme8_codewords_slda.npz", data_home, fields, "(made from the data of class-slda).", False)
    return replace(data, target=rest["y"].astype(np.int64), is_test=rest["is_test"].astype(bool))


def load_cora_abstracts(data_home: Home = None) -> WordCounts:
    """Load 2410 abstracts of computer science, with titles and citations.

    Parameters
    ----------
    data_home : str or path, optional
        Folder of the file; see :func:`pluri.datasets.data_home`.

    Examples
    --------
    >>> from pluri.datasets import load_cora_abstracts
    >>> load_cora_abstracts()  # doctest: +SKIP
    WordCounts(2410 documents, 2961 words, 136394 tokens)
    """
    data, rest = _counts("cora_rtm.npz", data_home, ("titles", "edges"), "(made from cora of the R package lda).")
    return replace(data, titles=_strings(rest["titles"]), links=rest["edges"].astype(np.int64))


def load_movie_scale(
    reviewer: Literal["all", "schwartz", "berardinelli", "renshaw"] = "all", data_home: Home = None, **options: Any
) -> WordCounts:
    """Load reviews of movies with ratings from 0 to 1.

    Parameters
    ----------
    reviewer : {"all", "schwartz", "berardinelli", "renshaw"}, default="all"
        Whose reviews.
    data_home : str or path, optional
        Folder of the files; see :func:`pluri.datasets.data_home`.
    **options
        How words are counted: see :func:`pluri.datasets.count_words`.

    Examples
    --------
    >>> from pluri.datasets import load_movie_scale
    >>> load_movie_scale("schwartz").counts.shape[0]  # doctest: +SKIP
    1027
    """
    if reviewer != "all" and reviewer not in REVIEWERS:
        raise ValueError(f"reviewer must be 'all' or one of {REVIEWERS}, got {reviewer!r}")
    advice = "It is made from scale data v1.0 of Pang and Lee: a line of JSON for each review with id, rating and text."
    rows = []
    for name in REVIEWERS if reviewer == "all" else (reviewer,):
        path = find_file((f"movie_scale_{name}.jsonl.gz",), data_home, advice)
        rows += [row | {"title": f"{name} {row['id']}"} for row in _rows(path, ("id", "rating", "text"))]
    data = count_words([row["text"] for row in rows], **options)
    ratings = np.array([row["rating"] for row in rows], dtype=np.float64)
    return replace(data, titles=tuple(row["title"] for row in rows), target=ratings, target_names=("rating",))


def load_movie_polarity(data_home: Home = None, **options: Any) -> WordCounts:
    """Load 2000 reviews of movies, half of them negative (class 0) and half positive (class 1).

    Parameters
    ----------
    data_home : str or path, optional
        Folder of the file; see :func:`pluri.datasets.data_home`.
    **options
        How words are counted: see :func:`pluri.datasets.count_words`.

    Examples
    --------
    >>> from pluri.datasets import load_movie_polarity
    >>> load_movie_polarity().counts.shape[0]  # doctest: +SKIP
    2000
    """
    advice = (
        "It is made from polarity data v2.0 of Pang and Lee: a line of JSON for each review with id, label and text."
    )
    rows = _rows(find_file(("movie_reviews_polarity.jsonl.gz",), data_home, advice), ("id", "label", "text"))
    names = ("neg", "pos")
    wrong = [row["label"] for row in rows if row["label"] not in names]
    if wrong:
        raise ValueError(f"movie_reviews_polarity.jsonl.gz must have the labels 'neg' and 'pos', got {wrong[0]!r}")
    data = count_words([row["text"] for row in rows], **options)
    classes = np.array([names.index(row["label"]) for row in rows], dtype=np.int64)
    return replace(data, titles=tuple(row["id"] for row in rows), target=classes, target_names=names)


def _counts(
    name: str, data_home: Home, fields: tuple[str, ...], origin: str, has_words: bool = True
) -> tuple[WordCounts, dict[str, NDArray[Any]]]:
    """Counts of a file and its further arrays, one row for each document where they are about documents."""
    path = find_file((name,), data_home, f"{COUNTS_ADVICE} {origin}")
    needed = ("data", "indices", "indptr", "shape", *(("vocab",) if has_words else ()), *fields)
    with np.load(path, allow_pickle=False) as file:
        missing = sorted(set(needed) - set(file.files))
        if missing:
            raise ValueError(f"{path.name} must hold the arrays {', '.join(needed)}, got none named {missing}")
        arrays = {field: file[field] for field in needed}
    shape = tuple(int(size) for size in arrays["shape"])
    parts = arrays["data"].astype(np.int64), arrays["indices"], arrays["indptr"]
    counts = scipy.sparse.csr_matrix(parts, shape=shape)
    counts.sum_duplicates()
    words = arrays["vocab"] if has_words else np.array([f"codeword {column}" for column in range(shape[1])])
    if len(words) != shape[1]:
        raise ValueError(f"{path.name} must hold a word for each of {shape[1]} columns, got {len(words)}")
    for field in set(fields) & {"titles", "is_test", "rating", "ratings", "y"}:
        if len(arrays[field]) != shape[0]:
            raise ValueError(f"{path.name} must hold {field} for {shape[0]} documents, got {len(arrays[field])}")
    return WordCounts(counts, words.astype(np.str_)), {field: arrays[field] for field in fields}


def _rows(path: Path, fields: tuple[str, ...]) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        rows = [json.loads(line) for line in stream if line.strip()]
    for number, row in enumerate(rows, start=1):
        missing = [field for field in fields if field not in row]
        if missing:
            raise ValueError(
                f"{path.name} must have the fields {fields} in each line, got none of {missing} in {number}"
            )
    if not rows:
        raise ValueError(f"{path.name} must hold at least one review, got none")
    return rows


def _strings(values: NDArray[Any]) -> tuple[str, ...]:
    return tuple(str(value) for value in values)
