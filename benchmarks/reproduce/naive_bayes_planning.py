"""Information planning with Bernoulli naive Bayes on 20 Newsgroups: are labels chosen by uncertainty worth more?

Four groups (sci.space, comp.graphics, rec.autos, rec.sport.hockey), the 1,000 most frequent words in at least 2 and at
most 80 % of the posts, present or not. In each repeat 1,000 posts are drawn: 100 with labels, 700 in the pool, 200 held
out; 20 labels are bought in each round, by every strategy from the same beginning, and the model is counted anew. A
strategy is judged by the mean over rounds of its accuracy minus that of random labels, paired by repeat, with a 95 %
interval (Student's t). Published: about ten points above random.

Before that: accuracy of half the posts on the other half (published 0.6956), and the words that tell most of the group;
of the ten words published, at least eight should be among our first twenty. As published, posts are those of the
training part, 2,371 of the four groups, without headers, signatures and quotes (by scikit-learn's own rules).

Needs ``newsgroups20_bydate.jsonl.gz`` in PLURI_DATA.

    python benchmarks/reproduce/naive_bayes_planning.py            # 10 repeats of 15 rounds
    python benchmarks/reproduce/naive_bayes_planning.py --quick    # 3 repeats of 5 rounds
"""

from __future__ import annotations

import sys

import numpy as np
from published import Report, run_if_data
from scipy.stats import t
from sklearn.datasets._twenty_newsgroups import strip_newsgroup_footer, strip_newsgroup_quoting
from sklearn.feature_extraction.text import CountVectorizer

from pluri.datasets import load_newsgroups
from pluri.mixtures import NaiveBayes
from pluri.priors import Beta

GROUPS = ("sci.space", "comp.graphics", "rec.autos", "rec.sport.hockey")
WORDS = ("teams", "program", "league", "moon", "playoffs", "orbit", "players", "earth", "games", "nasa")
STRATEGIES = ("entropy", "bald", "word_mi", "eig", "published_mi")
N_LABELLED, N_POOL, N_HELD_OUT, N_BOUGHT = 100, 700, 200, 20


def model() -> NaiveBayes:
    return NaiveBayes(inference="bayes", probabilities_prior=Beta(1.0, 1.0), binarize=None)


def posts() -> tuple[CountVectorizer, object, np.ndarray]:
    documents = load_newsgroups(subset="train")
    chosen = np.flatnonzero(np.isin(documents.labels, GROUPS))
    counter = CountVectorizer(max_features=1000, max_df=0.8, min_df=2, stop_words="english", binary=True)
    texts = [strip_newsgroup_quoting(strip_newsgroup_footer(documents.texts[i])) for i in chosen]
    X = counter.fit_transform(texts).astype(np.float64).tocsr()
    return counter, X, documents.labels[chosen]


def curve(X: object, y: np.ndarray, order: np.ndarray, strategy: str, n_rounds: int, seed: int) -> np.ndarray:
    """Accuracy on the held-out posts after each round."""
    rng = np.random.default_rng(seed)
    labelled = order[:N_LABELLED]
    pool = order[N_LABELLED : N_LABELLED + N_POOL]
    held_out = order[N_LABELLED + N_POOL : N_LABELLED + N_POOL + N_HELD_OUT]
    found = []
    for _ in range(n_rounds):
        fitted = model().partial_fit(X[labelled], y[labelled], classes=np.unique(y))
        if strategy == "random":
            scores = rng.random(len(pool))
        else:
            scores = fitted.planning_scores(X[pool], strategy, n_samples=50, random_state=rng)
        bought = np.argsort(-scores, kind="stable")[:N_BOUGHT]
        labelled, pool = np.concatenate([labelled, pool[bought]]), np.delete(pool, bought)
        found.append(model().fit(X[labelled], y[labelled]).score(X[held_out], y[held_out]))
    return np.array(found)


def main() -> None:
    quick = "--quick" in sys.argv
    n_repeats, n_rounds = (3, 5) if quick else (10, 15)
    counter, X, y = posts()
    report = Report("Naive Bayes planning, four groups of 20 Newsgroups")
    order = np.random.default_rng(0).permutation(len(y))
    half = len(y) // 2
    whole = model().fit(X[order[:half]], y[order[:half]])
    report.row("accuracy, half the posts", 0.6956, whole.score(X[order[half:]], y[order[half:]]))
    names = counter.get_feature_names_out()
    best = names[np.argsort(-whole.feature_information())[:20]]
    report.row("published words among the first 20 by information", 10, float(np.isin(WORDS, best).sum()))
    report.note(f"our first 20: {' '.join(best)}")
    orders = [np.random.default_rng(1 + seed).permutation(len(y)) for seed in range(n_repeats)]
    random = np.array([curve(X, y, one, "random", n_rounds, seed) for seed, one in enumerate(orders)])
    report.row("random, accuracy at the end", None, random[:, -1].mean(), random[:, -1].std(ddof=1))
    intervals = {}
    for strategy in STRATEGIES:
        ours = np.array([curve(X, y, one, strategy, n_rounds, seed) for seed, one in enumerate(orders)])
        gaps = (ours - random).mean(axis=1)
        width = t.ppf(0.975, n_repeats - 1) * gaps.std(ddof=1) / np.sqrt(n_repeats)
        intervals[strategy] = (gaps.mean() - width, gaps.mean() + width)
        published = 0.10 if strategy == "entropy" else None
        report.row(f"{strategy} minus random, mean over rounds (half of 95 %)", published, gaps.mean(), width)
        at_end = (ours - random)[:, -1]
        report.row(f"{strategy} minus random, at the end", None, at_end.mean(), at_end.std(ddof=1) / np.sqrt(n_repeats))
    low, high = intervals["entropy"]
    inside = low <= 0.10 <= high
    report.note(f"ten points are {'inside' if inside else 'outside'} the interval of entropy ({low:+.3f}, {high:+.3f})")
    report.close()


if __name__ == "__main__":
    run_if_data(main)
