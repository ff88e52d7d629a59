"""Phrases of film reviews in five classes, 10 % labelled: two networks with MC dropout beside a bag of words.

The first 10,000 phrases of the Stanford Sentiment Treebank, split by sentence, since phrases of one sentence are nearly
the same: the phrases of a tenth of the sentences to learn from, of another tenth to test. The published experiment (the
same phrases with frozen GloVe vectors, split by phrase) came close to 55 % with both networks. GloVe is not at hand;
its place is taken by vectors from the texts of 2,000 film reviews without their labels: positive pointwise mutual
information of words within four words of each other, and a truncated SVD. The logistic regression has counts of words,
or the mean of the same vectors of a phrase; its penalty is chosen by cross-validation within the labelled phrases.

Settings of the networks are their defaults: the sizes of the published experiment, and no choice made by these data.
``--data subjectivity`` (subjective or objective sentences, 1,000 to learn from and 1,000 to test) is for trying others.

    PLURI_DATA=... python benchmarks/reproduce/sentence_classification.py          # three seeds
    ... --quick                                                                    # one seed, frozen vectors alone
    ... --data subjectivity
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
import warnings
from collections import Counter

import numpy as np
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


def one_seed(texts: list[str], y: np.ndarray, groups: np.ndarray, seed: int, vectors: tuple, quick: bool) -> dict:
    split = GroupShuffleSplit(1, train_size=0.1, test_size=0.1, random_state=seed)
    train, test = next(split.split(texts, groups=groups))
    X, held = [texts[row] for row in train], [texts[row] for row in test]
    found = {
        "largest class": judge(np.tile(np.eye(y.max() + 1)[np.bincount(y[train]).argmax()], (len(test), 1)), y[test])
    }
    words = CountVectorizer(analyzer=SPLIT)
    found["logistic regression, words"] = judge(
        penalised([words], X, y[train], groups[train]).predict_proba(held), y[test]
    )
    means = penalised([], mean_vectors(X, *vectors), y[train], groups[train])
    found["logistic regression, mean vectors"] = judge(means.predict_proba(mean_vectors(held, *vectors)), y[test])
    for kind in (BiLSTMClassifier, TextCNNClassifier):
        for title, settings in (("frozen vectors", {"embeddings": vectors}), ("learned", {})):
            if quick and not settings:
                continue
            start = time.process_time()
            model = kind(random_state=seed, **settings).fit(X, y[train], groups=groups[train])
            seconds = time.process_time() - start
            name = f"{kind.__name__}, {title}"
            found[name] = judge(model.predict_proba(held), y[test])
            draws = PredictiveUncertainty.from_samples(model.predict_proba_samples(held))
            found[f"{name}, MC dropout"] = judge(draws.mean, y[test])
            assert (draws.mutual_information <= draws.entropy).all()
            print(f"    seed {seed}: {name}: epoch {model.best_epoch_} of {model.n_iter_}, {seconds:.0f} s", flush=True)
    print(f"    seed {seed}: {len(train)} labelled, {len(test)} to test", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", choices=["sst", "subjectivity"], default="sst")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    warnings.filterwarnings("ignore", message=".*tokens of X are unknown")
    if given.data == "sst":
        data = load_sst_phrases(n_phrases=10_000)
        texts, y, groups = list(data.texts), data.y, data.sentence
    else:
        rows = read(SUBJECTIVITY)
        texts, y = [row["text"] for row in rows], np.array([int(row["label"] == "subjective") for row in rows])
        groups = np.arange(len(y))
    vectors = word_vectors([row["text"] for row in read(REVIEWS)])
    print(f"{len(vectors[0])} word vectors", flush=True)
    runs = [one_seed(texts, y, groups, seed, vectors, given.quick) for seed in range(1 if given.quick else given.seeds)]
    print(f"{'':46} accuracy        balanced        log loss        calibration error (%)")
    for name in runs[0]:
        table = np.array([run[name] for run in runs])
        # Half the width of a 95 % interval of the mean over seeds (t distribution).
        half = {1: np.nan, 2: 12.71, 3: 4.30, 4: 3.18, 5: 2.78}.get(len(runs), 2.5) * table.std(
            axis=0, ddof=len(runs) > 1
        )
        half = half / np.sqrt(len(runs))
        print(f"{name:46} " + "  ".join(f"{mean:6.2f} +-{wide:5.2f}" for mean, wide in zip(table.mean(axis=0), half)))


if __name__ == "__main__":
    main()
