"""Supervised topic models: ratings and classes predicted, against topics first and regression after, and tomotopy.

- synthetic: four topics rated -2, -0.7, 0.7 and 2, noise 0.3, 150 documents to learn from and 50 to predict. Known:
  mean squared error 0.098 to 0.103 of the sampler (noise 0.09, variance of ratings 1.446), 0.100 to 0.106 in two
  stages; coefficients (-2.0, -0.76, 0.65, 2.07), noise 0.094 to 0.097. The exact figures are of one drawn corpus; ours
  are of five others.
- blogs, restaurants, movies: predictive R^2 of ratings of documents that were left out (a fifth, drawn).
- images: eight classes of LabelMe as codewords, 800 for training and 800 for testing; published accuracy of supervised
  topics with classes about 0.76 with 80 to 120 topics. An image has 2401 codewords, of which an eighth is drawn here,
  for time, and 40 topics; `--whole` takes all, and 100 topics. Settings are compared by `--validate`, which learns from
  three quarters of the training half and is tested on the last: the other half is not looked at for a choice. So was
  the prior of the shares chosen: accuracy 0.805 with alpha 1, 0.775 with 0.05 (of all codewords, 100 topics), 0.740 if
  coefficients have variance 1e4 too, 0.785 with 40 topics and alpha 0.125. On the other half Gibbs sampling then had
  0.769, in 69 s (0.741 with alpha 0.05; logistic regression on square roots of counts, without topics, 0.785).
- active: 100 polarity reviews, 15 rated to begin with, 35 to choose from, 50 to predict. Published, without numbers:
  choosing what is asked by the entropy of the answer gives lower error than choosing at random.

Two stages are LatentDirichletAllocation by Gibbs sampling with as many topics and the same priors, then ridge or
logistic regression on the shares, its penalty chosen by cross-validation.

Needs files in PLURI_DATA for all but the first part; see the loaders in pluri.datasets.

    python benchmarks/reproduce/supervised_topics.py                   # about ten minutes
    python benchmarks/reproduce/supervised_topics.py --quick
    python benchmarks/reproduce/supervised_topics.py images active     # single parts, by name
    python benchmarks/reproduce/supervised_topics.py images --whole    # about ten minutes
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegressionCV, RidgeCV
from sklearn.model_selection import StratifiedShuffleSplit

from pluri.datasets import (
    WordCounts,
    load_labelme_codewords,
    load_movie_polarity,
    load_movie_scale,
    load_political_blogs,
    load_restaurant_reviews,
    make_rated_documents,
    train_test,
)
from pluri.topics import LatentDirichletAllocation, SupervisedLDA, SupervisedLDAClassifier

sys.path.insert(0, str(Path(__file__).parent.parent / "peers"))
QUICK = "--quick" in sys.argv
N_WARMUP = 50 if QUICK else 200
SHARE_OF_CODEWORDS = 0.125


def error(asked: np.ndarray, answered: np.ndarray) -> float:
    return float(np.mean((asked - answered) ** 2))


def two_stages(X: Any, y: np.ndarray, new: Any, n_topics: int, alpha: float, eta: float, head: Any) -> np.ndarray:
    """Topics without ratings, then regression on the shares."""
    lda = LatentDirichletAllocation(
        n_topics, inference="gibbs", doc_topic_prior=alpha, topic_word_prior=eta, random_state=0, n_warmup=150
    ).fit(X)
    return head.fit(lda.transform(X), y).predict(lda.transform(new))


def tomotopy_ratings(X: Any, y: np.ndarray, new: Any, n_topics: int, alpha: float, n_sweeps: int) -> np.ndarray | None:
    try:
        from topics_supervised import Theirs

        model = Theirs(X, y, n_topics, alpha=alpha)
    except ImportError:
        return None
    model.run(n_sweeps)
    return model.predict(new)


def synthetic() -> None:
    print("synthetic (known: sampler 0.098-0.103, two stages 0.100-0.106, noise 0.094-0.097)")
    rows = []
    for state in range(2 if QUICK else 5):
        made = make_rated_documents(200, 40, 60, random_state=state)
        X, y, new, asked = made.counts[:150], made.y[:150], made.counts[150:], made.y[150:]
        options: dict[str, Any] = {"doc_topic_prior": 0.3, "topic_word_prior": 0.1, "random_state": 0}
        sampled = SupervisedLDA(4, n_warmup=100, n_draws=10, thin=5, **options).fit(X, y)
        bound = SupervisedLDA(4, inference="vb", **options).fit(X, y)
        stages = two_stages(X, y, new, 4, 0.3, 0.1, RidgeCV(np.logspace(-4, 2, 13)))
        rows.append([error(asked, answer) for answer in (sampled.predict(new), bound.predict(new), stages)])
        rows[-1] += [sampled.noise_, bound.noise_, asked.var()]
        print(
            f"  corpus {state}: error gibbs {rows[-1][0]:.3f}, vb {rows[-1][1]:.3f}, two stages {rows[-1][2]:.3f}; "
            f"noise {sampled.noise_:.3f}, {bound.noise_:.3f}; coefficients {np.sort(sampled.coef_).round(2)}; "
            f"variance of ratings {asked.var():.2f}",
            flush=True,
        )
    print(
        "  mean error of the three, noise of the first two, variance: "
        + ", ".join(f"{value:.4f}" for value in np.mean(rows, axis=0))
    )


def ways_to_ratings(X: Any, y: np.ndarray, new: Any, n_topics: int, state: int) -> dict[str, Callable[[], Any]]:
    """Functions that learn and predict."""
    alpha, eta = 5.0 / n_topics, 0.1
    options: dict[str, Any] = {"doc_topic_prior": alpha, "topic_word_prior": eta, "random_state": state}
    sampled = SupervisedLDA(n_topics, n_warmup=N_WARMUP, n_draws=10, thin=5, **options)
    bound = SupervisedLDA(n_topics, inference="vb", n_init=1, max_iter=100, **options)
    stages = RidgeCV(np.logspace(-4, 2, 13))
    words = RidgeCV(np.logspace(0, 5, 11))
    return {
        "gibbs": lambda: sampled.fit(X, y).predict(new),
        "vb": lambda: bound.fit(X, y).predict(new),
        "two stages": lambda: two_stages(X, y, new, n_topics, alpha, eta, stages),
        "tomotopy": lambda: tomotopy_ratings(X, y, new, n_topics, alpha, N_WARMUP + 50),
        "ridge on words": lambda: words.fit(np.log1p(X), y).predict(np.log1p(new)),
    }


def ways_to_classes(X: Any, y: np.ndarray, new: Any, n_topics: int) -> dict[str, Callable[[], Any]]:
    alpha, eta = 1.0, 0.1
    options: dict[str, Any] = {"doc_topic_prior": alpha, "topic_word_prior": eta, "random_state": 0}
    sweeps = {"n_warmup": N_WARMUP, "n_draws": 10, "thin": 5}
    best = SupervisedLDAClassifier(n_topics, **options, **sweeps)
    drawn = SupervisedLDAClassifier(n_topics, coefficients="draw", **options, **sweeps)
    bound = SupervisedLDAClassifier(n_topics, inference="vb", n_init=1, max_iter=60, **options)
    stages = LogisticRegressionCV(Cs=np.logspace(-1, 4, 6), cv=3, max_iter=500, use_legacy_attributes=False)
    return {
        "gibbs": lambda: best.fit(X, y).predict(new),
        "gibbs, drawn": lambda: drawn.fit(X, y).predict(new),
        "vb": lambda: bound.fit(X, y).predict(new),
        "two stages": lambda: two_stages(X, y, new, n_topics, alpha, eta, stages),
    }


def ratings(name: str, data: WordCounts, n_topics: int, repeats: int) -> None:
    assert data.y is not None
    print(f"{name}: {data}, {n_topics} topics; R^2 of ratings that were left out, and processor seconds")
    gathered: dict[str, list[tuple[float, float]]] = {}
    for state in range(repeats):
        train, test = train_test(data, 0.2, state)
        kept = np.asarray(train.counts.sum(axis=1)).ravel() > 0
        for way, answer in ways_to_ratings(train.counts[kept], train.y[kept], test.counts, n_topics, state).items():
            begun = time.process_time()
            foretold = answer()
            if foretold is not None:
                seconds = time.process_time() - begun
                gathered.setdefault(way, []).append((1.0 - error(test.y, foretold) / test.y.var(), seconds))
    for way, values in gathered.items():
        mean = np.mean(values, axis=0)
        each = " ".join(f"{value:.3f}" for value, _ in values)
        print(f"  {way:<15s} {mean[0]:7.3f}  {mean[1]:7.1f} s   ({each})", flush=True)


def thinned(counts: Any, share: float) -> Any:
    """Each token with a probability."""
    drawn = counts.copy()
    drawn.data = np.random.default_rng(0).binomial(counts.data, share)
    drawn.eliminate_zeros()
    return drawn


def validate(X: Any, y: np.ndarray) -> None:
    """Accuracy on a quarter of the training half, for settings that might have been taken instead."""
    learned, held = next(StratifiedShuffleSplit(1, test_size=0.25, random_state=0).split(X, y))
    for n_topics, alpha, variance in ((100, 0.05, 100.0), (100, 0.05, 1e4), (100, 1.0, 100.0), (40, 0.125, 100.0)):
        model = SupervisedLDAClassifier(
            n_topics, doc_topic_prior=alpha, coef_prior_var=variance, n_warmup=60, n_draws=4, random_state=0
        )
        accuracy = model.fit(X[learned], y[learned]).score(X[held], y[held])
        print(
            f"  validation: {n_topics} topics, alpha {alpha}, variance {variance:g}: accuracy {accuracy:.3f}",
            flush=True,
        )


def images() -> None:
    data, whole = load_labelme_codewords(), "--whole" in sys.argv
    train, test = train_test(data, None)
    if QUICK:
        train, test = train.documents(np.arange(0, 800, 4)), test.documents(np.arange(0, 800, 4))
    share = 1.0 if whole else SHARE_OF_CODEWORDS
    X, y, new, asked = thinned(train.counts, share), train.y, thinned(test.counts, share), test.y
    assert y is not None
    print(f"images: train {train}, test {test}, {share:.3g} of the codewords (published about 0.76)")
    if "--validate" in sys.argv:
        validate(X, y)
    plain = LogisticRegressionCV(Cs=np.logspace(-3, 2, 6), cv=3, max_iter=500, use_legacy_attributes=False)
    accuracy = float(np.mean(plain.fit(np.sqrt(X.toarray()), y).predict(np.sqrt(new.toarray())) == asked))
    print(f"  logistic regression on square roots of counts: accuracy {accuracy:.3f}", flush=True)
    n_topics = 20 if QUICK else 100 if whole else 40
    for way, answer in ways_to_classes(X, y, new, n_topics).items():
        begun = time.process_time()
        accuracy = float(np.mean(answer() == asked))
        seconds = time.process_time() - begun
        print(f"  {n_topics} topics, {way:<14s} accuracy {accuracy:.3f}  {seconds:.1f} s", flush=True)


def warm_up() -> None:
    """Compile, so that seconds are those of the fits."""
    made = make_rated_documents(20, 10, 15, random_state=0)
    for how in ("gibbs", "vb"):
        SupervisedLDA(2, inference=how, n_warmup=2, max_iter=2).fit(made.counts, made.y).predict(made.counts)
        SupervisedLDAClassifier(2, inference=how, n_warmup=2, max_iter=2).fit(made.counts, made.y > 0)
    LatentDirichletAllocation(2, inference="gibbs", n_warmup=2).fit(made.counts)


def active() -> None:
    """Error after each answer, for three ways to choose what is asked."""
    data = load_movie_polarity(min_documents=40, max_share=0.3, max_words=1000)
    assert data.y is not None
    score = 2.0 * data.y - 1.0
    repeats, n_asked, at_a_time = (2, 6, 3) if QUICK else (10, 21, 3)
    curves: dict[str, list[list[float]]] = {"entropy": [], "mutual information": [], "random": []}
    for repeat in range(repeats):
        chosen = np.random.default_rng(repeat).permutation(len(data))[:100]
        first, pool, hidden = chosen[:15], chosen[15:50], chosen[50:]
        for way in curves:
            rng = np.random.default_rng(1000 + repeat)
            known, left, curve = list(first), list(pool), []
            while True:
                model = SupervisedLDA(8, doc_topic_prior=0.5, n_warmup=60, n_draws=10, thin=3, random_state=repeat).fit(
                    data.counts[known], score[known]
                )
                curve.append(error(score[hidden], model.predict(data.counts[hidden])))
                if len(known) >= 15 + n_asked:
                    break
                value = {
                    "entropy": lambda model=model, left=left: model.predict_entropy(data.counts[left]),
                    "mutual information": lambda model=model, left=left: model.mutual_information(data.counts[left]),
                    "random": lambda rng=rng, left=left: rng.random(len(left)),
                }[way]()
                best = set(np.argsort(-value)[:at_a_time].tolist())
                known += [row for place, row in enumerate(left) if place in best]
                left = [row for place, row in enumerate(left) if place not in best]
            curves[way].append(curve)
    print(f"active: mean squared error of 50 reviews after 15, 18, ... answers, mean of {repeats} draws of 100 reviews")
    table = {way: np.array(several) for way, several in curves.items()}
    for way, several in table.items():
        gap = several[:, 1:].mean(axis=1) - table["random"][:, 1:].mean(axis=1)
        spread = gap.std(ddof=1) / np.sqrt(repeats)
        print(
            f"  {way:<19s} {' '.join(f'{value:.3f}' for value in several.mean(axis=0))}"
            + ("" if way == "random" else f"; less random, over all answers: {gap.mean():+.4f} +- {spread:.4f}"),
            flush=True,
        )


def restaurants() -> None:
    ratings("restaurants", load_restaurant_reviews(), 20, 1)


def blogs() -> None:
    ratings("blogs", load_political_blogs(), 10, 1 if QUICK else 3)


def movies() -> None:
    ratings("movies", load_movie_scale(min_documents=20, max_share=0.25), 20, 1)


PARTS = {
    "synthetic": synthetic,
    "blogs": blogs,
    "restaurants": restaurants,
    "movies": movies,
    "images": images,
    "active": active,
}

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    warm_up()
    for part in [name for name in sys.argv[1:] if name in PARTS] or PARTS:
        begun = time.perf_counter()
        try:
            PARTS[part]()
        except FileNotFoundError as missing:
            print(f"{part}: skipped, {missing}")
        print(f"  ({time.perf_counter() - begun:.0f} s)", flush=True)
