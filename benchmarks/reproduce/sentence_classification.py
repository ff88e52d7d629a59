"""Phrases of film reviews in five classes, 10 % labelled: two networks with MC dropout beside a bag of words.

The first 10,000 phrases of the Stanford Sentiment Treebank, split by sentence, since phrases of one sentence are nearly
the same: the phrases of a tenth of the sentences to learn from, of another tenth to test. The published experiment (the
same phrases with frozen GloVe vectors, split by phrase) came close to 55 % with both networks. GloVe is not at hand;
its place is taken by vectors from the texts of 2,000 film reviews without their labels: positive pointwise mutual
information of words within four words of each other, and a truncated SVD. The logistic regression has counts of words,
or the mean of the same vectors of a phrase; its penalty is chosen by cross-validation within the labelled phrases. The
networks have these vectors as they are ("frozen"), learn on from them, or learn all from the labelled phrases.

Settings of the networks are their defaults: the sizes of the published experiment, and no choice made by these data.
``--data subjectivity`` (subjective or objective sentences, 1,000 to learn from and 1,000 to test) is for trying others.

    PLURI_DATA=... python benchmarks/reproduce/sentence_classification.py          # three seeds: five minutes
    ... --quick                                                                    # one seed, frozen vectors alone
    ... --phrases 160000 --quick --seeds 0 1 2                                     # all phrases, a tenth labelled
    ... --results table.jsonl                                                      # goes on where it was stopped
    ... --data subjectivity
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
import warnings
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from published import half_width, kept
from scipy.sparse import coo_matrix, diags
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, log_loss
from sklearn.model_selection import GridSearchCV, GroupKFold, GroupShuffleSplit
from sklearn.pipeline import make_pipeline

from pluri.datasets import load_sst_phrases
from pluri.datasets.home import find_file
from pluri.networks import BiLSTMClassifier, PredictiveUncertainty, TextCNNClassifier
from pluri.networks.classifiers.tokens import splitter

REVIEWS, SUBJECTIVITY = "movie_reviews_polarity.jsonl.gz", "subjectivity_sentences.jsonl.gz"
ADVICE = "It is made from the corpora movie_reviews and subjectivity of nltk_data: a line of JSON with label and text."
SIZE, WINDOW, LEAST = 100, 4, 3
SPLIT = splitter()
BAG = "logistic regression, words"


def read(name: str) -> list[dict[str, str]]:
    with gzip.open(find_file((name,), None, ADVICE), "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def word_vectors(texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Words and their vectors: singular vectors of the positive pointwise mutual information of neighbours."""
    documents = [SPLIT(text) for text in texts]
    counts = Counter(word for document in documents for word in document)
    words = np.array(sorted(word for word, count in counts.items() if count >= LEAST))
    place = {word: number for number, word in enumerate(words.tolist())}
    gap = [-1] * WINDOW  # neighbours are of one document
    flat = np.array([place.get(word, -1) for document in documents for word in [*document, *gap]][:-WINDOW])
    pairs = coo_matrix((len(words), len(words)))
    for offset in range(1, WINDOW + 1):
        one, other = flat[:-offset], flat[offset:]
        both = (one >= 0) & (other >= 0)
        weight = np.full(both.sum(), 1 / offset)
        pairs = pairs + coo_matrix((weight, (one[both], other[both])), shape=pairs.shape).tocsr()
    pairs = (pairs + pairs.T).tocsr()
    total = np.asarray(pairs.sum(axis=1)).ravel()
    smoothed = total**0.75
    information = diags(1 / np.maximum(total, 1e-9)) @ pairs @ diags(smoothed.sum() / np.maximum(smoothed, 1e-9))
    information.data = np.maximum(np.log(information.data), 0)
    vectors = TruncatedSVD(SIZE, n_iter=3, random_state=0).fit(information)
    found = (information @ vectors.components_.T) / np.sqrt(vectors.singular_values_)
    return words, (found / found.std()).astype(np.float32)


def mean_vectors(texts: list[str], words: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    place = {word: number for number, word in enumerate(words.tolist())}
    rows = [[place[word] for word in SPLIT(text) if word in place] for text in texts]
    return np.array([vectors[row].mean(axis=0) if row else np.zeros(vectors.shape[1]) for row in rows])


def calibration_error(probability: np.ndarray, codes: np.ndarray, n_bins: int = 15) -> float:
    """Mean distance of confidence and accuracy over bins of equal width, weighted by their sizes."""
    confidence, right = probability.max(axis=1), probability.argmax(axis=1) == codes
    bins = np.minimum((confidence * n_bins).astype(int), n_bins - 1)
    gaps = [abs((confidence - right)[bins == one].sum()) for one in range(n_bins)]
    return float(sum(gaps) / len(codes))


def judge(probability: np.ndarray, codes: np.ndarray) -> list[float]:
    predicted = probability.argmax(axis=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        balanced = balanced_accuracy_score(codes, predicted)
    likelihood = log_loss(codes, probability, labels=np.arange(probability.shape[1]))
    return [100 * (predicted == codes).mean(), 100 * balanced, likelihood, 100 * calibration_error(probability, codes)]


def penalised(steps: list[object], X: object, y: np.ndarray, groups: np.ndarray) -> GridSearchCV:
    pipeline = make_pipeline(*steps, LogisticRegression(max_iter=1000))
    grid = {"logisticregression__C": [0.03, 0.1, 0.3, 1, 3]}
    return GridSearchCV(pipeline, grid, cv=GroupKFold(3), scoring="accuracy").fit(X, y, groups=groups)


class Task:
    """One seed: what is labelled, what is to be predicted, and the ways of doing so by name."""

    def __init__(self, texts: list[str], y: np.ndarray, groups: np.ndarray, seed: int, vectors: tuple) -> None:
        split = GroupShuffleSplit(1, train_size=0.1, test_size=0.1, random_state=seed)
        train, test = next(split.split(texts, groups=groups))
        self.X, self.held = [texts[row] for row in train], [texts[row] for row in test]
        self.y, self.y_held, self.groups = y[train], y[test], groups[train]
        self.n_classes, self.seed, self.vectors = y.max() + 1, seed, vectors

    def ways(self, quick: bool) -> dict[str, Callable[[], dict[str, list[float]]]]:
        """Functions that fit one model each, and give what there is to say of it, by name."""
        found = {"largest class": self.largest, "words": self.words, "mean vectors": self.mean_vectors}
        for kind in (BiLSTMClassifier, TextCNNClassifier):
            settings: dict[str, dict[str, Any]] = {"frozen vectors": {"embeddings": self.vectors}}
            if not quick:
                settings["learned"] = {}
                settings["learned on"] = {"embeddings": self.vectors, "freeze_embeddings": False}
            for title, those in settings.items():
                found[f"{kind.__name__}, {title}"] = partial(self.network, kind, title, those)
        return found

    def largest(self) -> dict[str, list[float]]:
        share = np.bincount(self.y, minlength=self.n_classes) / len(self.y)
        return {"shares of the classes": judge(np.tile(share, (len(self.held), 1)), self.y_held)}

    def words(self) -> dict[str, list[float]]:
        model = penalised([CountVectorizer(analyzer=SPLIT)], self.X, self.y, self.groups)
        return {BAG: judge(self.all_classes(model, self.held), self.y_held)}

    def mean_vectors(self) -> dict[str, list[float]]:
        model = penalised([], mean_vectors(self.X, *self.vectors), self.y, self.groups)
        probability = self.all_classes(model, mean_vectors(self.held, *self.vectors))
        return {"logistic regression, mean vectors": judge(probability, self.y_held)}

    def network(self, kind: Any, title: str, settings: dict[str, Any]) -> dict[str, list[float]]:
        model = kind(random_state=self.seed, **settings).fit(self.X, self.y, groups=self.groups)
        name = f"{kind.__name__}, {title}"
        draws = PredictiveUncertainty.from_samples(model.predict_proba_samples(self.held))
        if (draws.mutual_information > draws.entropy).any():
            raise AssertionError(f"{name}: BALD is above the entropy")
        print(f"    seed {self.seed}: {name}: epoch {model.best_epoch_} of {model.n_iter_}", flush=True)
        means = np.zeros((len(self.held), self.n_classes))
        means[:, model.classes_] = draws.mean
        single = self.all_classes(model, self.held)
        return {name: judge(single, self.y_held), f"{name}, MC dropout": judge(means, self.y_held)}

    def all_classes(self, model: Any, X: Any) -> np.ndarray:
        """Probabilities of all classes, also of those that no labelled phrase has."""
        found = np.zeros((len(self.held), self.n_classes))
        found[:, model.classes_] = model.predict_proba(X)
        return found


def timed(way: Callable[[], Any]) -> tuple[Any, float]:
    start = time.process_time()
    return way(), time.process_time() - start


def one_seed(task: Task, title: str, given: argparse.Namespace) -> dict[str, list[float]]:
    """What each model comes to; models that the file of results has are not fitted again."""
    found: dict[str, list[float]] = {}
    for name, way in task.ways(given.quick).items():
        scores, seconds = kept(given.results, {"data": title, "seed": task.seed, "way": name}, partial(timed, way))
        print(f"    seed {task.seed}: {name}: {seconds:.0f} s", flush=True)
        found |= scores
    print(f"    seed {task.seed}: {len(task.X)} labelled, {len(task.held)} to test", flush=True)
    return found


def show(runs: list[dict[str, list[float]]]) -> None:
    """Means over seeds with intervals, and the gains on the bag of words, seed by seed."""
    print(f"{'':46} accuracy        balanced        log loss        calibration error (%)")
    tables = {name: np.array([run[name] for run in runs]) for name in runs[0]}
    for name, table in tables.items():
        cells = zip(table.mean(axis=0), half_width(table))
        print(f"{name:46} " + "  ".join(f"{mean:6.2f} +-{wide:5.2f}" for mean, wide in cells))
    print(f"\n{'accuracy above the bag of words':46} mean            in how many seeds")
    for name, table in tables.items():
        if "Classifier" in name:
            gain = (table - tables[BAG])[:, :1]
            print(f"{name:46} {gain.mean():6.2f} +-{half_width(gain)[0]:5.2f}  {(gain > 0).sum()} of {len(gain)}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", choices=["sst", "subjectivity"], default="sst")
    parser.add_argument("--phrases", type=int, default=10_000, help="how many of the 159,274 phrases")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seeds", type=int, nargs="*", default=None)
    parser.add_argument("--results", type=Path, default=None, help="file that keeps results, a line for each fit")
    given = parser.parse_args()
    warnings.filterwarnings("ignore", message=".*tokens of X are unknown")
    title = given.data
    if given.data == "sst":
        data = load_sst_phrases(n_phrases=given.phrases)
        texts, y, groups = list(data.texts), data.y, data.sentence
        title = f"{len(y)} phrases"
    else:
        rows = read(SUBJECTIVITY)
        texts, y = [row["text"] for row in rows], np.array([int(row["label"] == "subjective") for row in rows])
        groups = np.arange(len(y))
    vectors = word_vectors([row["text"] for row in read(REVIEWS)])
    print(f"{len(vectors[0])} word vectors", flush=True)
    seeds = given.seeds or ([0] if given.quick else [0, 1, 2])
    show([one_seed(Task(texts, y, groups, seed, vectors), title, given) for seed in seeds])


if __name__ == "__main__":
    main()
