"""The tagged Wall Street Journal sample of the Penn Treebank: 3828 sentences, 94,081 words, 46 tags.

The text is licensed for non-commercial use and not shipped. It is read from a table in the data folder, or from the
``treebank`` corpus of NLTK. A sentence ends at each token ``./.`` (not at a question or exclamation mark), and what is
left at the end of a file is dropped: this rule gives exactly the corpus of Qiao et al. (2015), "Diversified hidden
Markov models for sequential labeling", with all its 46 tag counts.

The 15 groups of tags and their frequencies are theirs too.
"""

from __future__ import annotations

import csv
import gzip
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from pluri.datasets.home import find_file
from pluri.datasets.records import LabelledSequences
from pluri.validation import Only, check_value

Sentence = list[tuple[str, str]]
FILE = "ptb_wsj_sample.tsv.gz"
N_NLTK_FILES = 199
ADVICE = (
    "Or let NLTK fetch the corpus: 'pip install nltk', then 'python -m nltk.downloader treebank'. "
    "make_zipf_tagging needs no data."
)


TAG_GROUPS = MappingProxyType(
    {
        "noun": ("NNP", "NNPS", "NNS", "NN", "SYM"),
        "punctuation": (",", "``", "''", ":", ".", "$", "(", ")", "LS", "#"),
        "number": ("CD",),
        "adjective": ("JJS", "JJ", "JJR"),
        "modal": ("MD",),
        "verb": ("VBZ", "VB", "VBG", "VBD", "VBN", "VBP", "VBG|NN"),
        "determiner": ("DT", "PDT", "WDT"),
        "preposition": ("IN", "CC", "TO"),
        "foreign": ("FW",),
        "adverb": ("WRB", "RB", "RBS", "RBR"),
        "interjection": ("UH",),
        "pronoun": ("WP", "WP$", "PRP", "PRP$"),
        "possessive": ("POS",),
        "existential": ("EX",),
        "particle": ("RP",),
    }
)
"""Name of each group -> its tags; the groups are numbered in this order, from 0."""

GROUP_COUNTS = (28866, 11727, 3546, 6397, 927, 12637, 8637, 14403, 4, 3178, 3, 2737, 824, 88, 107)
"""Tokens of each group among the 94,081 of the sample."""

GROUP_OF_TAG = MappingProxyType({tag: group for group, tags in enumerate(TAG_GROUPS.values()) for tag in tags})
"""Tag -> number of its group."""


@dataclass(frozen=True, eq=False, repr=False)
class TreebankSample(LabelledSequences):
    """Tagged sentences.

    Attributes
    ----------
    X : ndarray of shape (n_words, 1), dtype int64
        Number of each word in ``vocabulary``.
    lengths : ndarray of shape (n_sentences,)
        Words of each sentence.
    states : ndarray of shape (n_words,)
        Number of each word's tag in ``tags``; also ``y``.
    vocabulary : ndarray of shape (n_distinct_words,)
        The distinct words, sorted.
    tags : ndarray of shape (n_tags,)
        Names of the states.
    """

    vocabulary: NDArray[np.str_]
    tags: NDArray[np.str_]

    @property
    def words(self) -> NDArray[np.str_]:
        """The words themselves, shape (n_words,)."""
        return self.vocabulary[self.X[:, 0]]


def load_treebank_sample(
    data_home: str | os.PathLike[str] | None = None,
    *,
    lowercase: bool = True,
    tags: str = "merged",
    source: str = "auto",
) -> TreebankSample:
    """Load the tagged Wall Street Journal sample.

    Parameters
    ----------
    data_home : str or path, optional
        Folder of ``ptb_wsj_sample.tsv.gz`` (columns ``sentence``, ``word``, ``tag``); see
        :func:`pluri.datasets.data_home`.
    lowercase : bool, default=True
        Fold words to lower case: 10,946 distinct words instead of 11,967.
    tags : {"merged", "full"}, default="merged"
        The 15 groups of :data:`pluri.datasets.TAG_GROUPS`, or the 46 tags.
    source : {"auto", "file", "nltk"}, default="auto"
        Where to read: the data folder, NLTK's corpus, or the first of these that has it.

    Returns
    -------
    TreebankSample

    Examples
    --------
    >>> from pluri.datasets import load_treebank_sample
    >>> sample = load_treebank_sample()  # doctest: +SKIP
    >>> len(sample.lengths), len(sample.vocabulary), len(sample.tags)  # doctest: +SKIP
    (3828, 10946, 15)
    """
    check_value(tags, "tags", Only("merged", "full"))
    check_value(source, "source", Only("auto", "file", "nltk"))
    sentences = _from_nltk() if source == "nltk" else None
    if sentences is None:
        try:
            sentences = _from_file(find_file((FILE,), data_home, ADVICE))
        except FileNotFoundError:
            sentences = _from_nltk(required=False) if source == "auto" else None
            if sentences is None:
                raise
    return _encode(sentences, lowercase=lowercase, merged=tags == "merged")


def _from_file(path: Path) -> list[Sentence]:
    with gzip.open(path, "rt", encoding="utf-8", newline="") as stream:
        rows = csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE)
        if not {"sentence", "word", "tag"} <= set(rows.fieldnames or ()):
            raise ValueError(f"{path.name} must have the columns sentence, word and tag, got {rows.fieldnames}")
        sentences: list[Sentence] = []
        current: str | None = None
        for row in rows:
            if row["sentence"] != current:
                sentences.append([])
                current = row["sentence"]
            sentences[-1].append((row["word"], row["tag"]))
    if not sentences:
        raise ValueError(f"{path.name} must hold at least one word, got none")
    return sentences


def _from_nltk(*, required: bool = True) -> list[Sentence] | None:
    """Sentences of NLTK's corpus; ``None`` if it is not there and not required."""
    try:
        import nltk.data

        pointers = [
            nltk.data.find(f"corpora/treebank/tagged/wsj_{number:04d}.pos") for number in range(1, N_NLTK_FILES + 1)
        ]
    except (ImportError, LookupError) as error:
        if not required:
            return None
        raise FileNotFoundError(
            "source='nltk' needs NLTK and its treebank corpus, and one of them is missing; run 'pip install nltk', "
            "then 'python -m nltk.downloader treebank'."
        ) from error
    sentences: list[Sentence] = []
    for pointer in pointers:
        with pointer.open() as stream:
            sentences.extend(cut_sentences(stream.read().decode("utf-8").split()))
    return sentences


def cut_sentences(tokens: Iterable[str]) -> Iterator[Sentence]:
    r"""Cut the ``word/TAG`` tokens of one file into sentences, dropping brackets, rules and an unfinished end.

    Examples
    --------
    >>> from pluri.datasets.treebank import cut_sentences
    >>> list(cut_sentences("===== [ Who/WP ] knows/VBZ ?/. [ 1\\/2/CD ] ./. Unfinished/VBN".split()))
    [[('Who', 'WP'), ('knows', 'VBZ'), ('?', '.'), ('1\\/2', 'CD'), ('.', '.')]]
    """
    sentence: Sentence = []
    for token in tokens:
        word, slash, tag = token.rpartition("/")
        if not slash:
            continue
        sentence.append((word, tag))
        if token == "./.":
            yield sentence
            sentence = []


def _encode(sentences: list[Sentence], *, lowercase: bool, merged: bool) -> TreebankSample:
    pairs = [pair for sentence in sentences for pair in sentence]
    vocabulary, words = np.unique([word.lower() if lowercase else word for word, _ in pairs], return_inverse=True)
    full = [tag for _, tag in pairs]
    if merged:
        strange = sorted(set(full) - set(GROUP_OF_TAG))
        if strange:
            raise ValueError(f"the tags must be those of TAG_GROUPS when tags='merged', got {strange}")
        names = np.array(list(TAG_GROUPS))
        states = np.array([GROUP_OF_TAG[tag] for tag in full], dtype=np.int64)
    else:
        names, inverse = np.unique(full, return_inverse=True)
        states = inverse.astype(np.int64)
    lengths = np.array([len(sentence) for sentence in sentences], dtype=np.int64)
    return TreebankSample(words.astype(np.int64)[:, None], lengths, states, vocabulary, names)
