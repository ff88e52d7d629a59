"""Stochastic neighbor embedding of 3000 USPS digits, 600 of each class from 0 to 4: the published cost, and lower ones.

Hinton and Roweis (2002) report 6719 nats after 3500 jittered steps and 500 without, at perplexity 15; points that all
lie in one place cost 3000 log(2999 / 15). Which 600 digits of a class they took, of which set, is not said; here the
first of the training set. The choice alone changes the cost by a percent (word "subsets"). Classes of nearest
neighbours are beside those of t-SNE and of two principal components. The cost of the method "neighbors" is that of a P
cut to 46 neighbours of each digit, which is lower, and not to be compared.

    PLURI_DATA=folder python benchmarks/reproduce/sne_digits.py [optimizer ...]

Without words: lbfgs, annealed, extra, both, spectral, neighbors, student_t (whose cost is another one), jitter (the
published schedule, some minutes), subsets (the default optimiser on four other draws of 600 digits of a class: what
the choice of digits alone changes), peers. The word search looks for a lower cost in ten minutes of CPU: random
starts, then the best map kicked by noise of four sizes and gone down again. In 49 CPU seconds it had tried 5 random
starts, which ended at 6721 to 7147, and 28 kicks: the lowest was 6718.0. The target of 6500 was never come near, and
is not proved to be out of reach.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from published import Report, run_if_data
from sklearn.decomposition import PCA
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import NearestNeighbors

from pluri.datasets import load_usps
from pluri.embedding import SNE
from pluri.metrics import neighborhood_preservation

PER_CLASS, PERPLEXITY = 600, 15.0
PUBLISHED, TARGET = 6719.0, 6500.0
SETTINGS = {
    "lbfgs": {},
    "annealed": {"perplexity_start": 1000.0},
    "extra": {"extra_dimensions": 1},
    "both": {"perplexity_start": 1000.0, "extra_dimensions": 1},
    "spectral": {"optimizer": "spectral"},
    "momentum": {"optimizer": "momentum"},
    # The published step, 0.2 for all, diverges here, where some digits are neighbours of many: "auto" shortens theirs.
    "jitter": {"optimizer": "jitter", "init": "random", "max_iter": 4000, "tol": 0.0},
    "neighbors": {"method": "neighbors"},
    "student_t": {"kernel": "student_t"},
}
DEFAULT = ("lbfgs", "annealed", "extra", "both", "spectral", "neighbors", "student_t", "jitter", "subsets", "peers")


def digits(seed: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The first 600 training digits of each class from 0 to 4; with a seed, a draw of 600."""
    data = load_usps("train")
    rng = np.random.default_rng(seed)
    members = [np.flatnonzero(data.y == digit) for digit in range(5)]
    if seed is not None:
        members = [rng.permutation(one) for one in members]
    chosen = np.concatenate([one[:PER_CLASS] for one in members])
    return data.X[chosen], data.y[chosen]


def agreement(points: np.ndarray, labels: np.ndarray) -> float:
    """Share of points whose nearest other point is of their class."""
    nearest = NearestNeighbors(n_neighbors=1).fit(points).kneighbors(return_distance=False)[:, 0]
    return float((labels[nearest] == labels).mean())


def search(report: Report, X: np.ndarray, seconds: float) -> None:
    """The lowest cost that restarts and kicks find."""
    rng, began = np.random.default_rng(0), time.process_time()
    settings = {"perplexity": PERPLEXITY, "max_iter": 2000, "tol": 1e-5, "random_state": 0}
    best, n_tried = SNE(**settings).fit(X), 0
    report.row("search: from principal components", PUBLISHED, best.kl_divergence_)
    while time.process_time() - began < seconds:
        random = n_tried < 5
        start = 1e-2 * rng.normal(size=(len(X), 2))
        if not random:
            start = best.embedding_ + (0.1, 0.3, 1.0, 2.0)[n_tried % 4] * 100 * start
        found = SNE(init=start, **settings).fit(X)
        n_tried += 1
        if random or found.kl_divergence_ < best.kl_divergence_ or n_tried % 20 == 0:
            told = "random start" if random else "kicked"
            report.row(f"search: {told}, try {n_tried}, {time.process_time() - began:.0f} CPU seconds", PUBLISHED,
                       found.kl_divergence_)  # fmt: skip
        best = min(best, found, key=lambda model: model.kl_divergence_)
    report.row(f"search: lowest of {n_tried + 1}", TARGET, best.kl_divergence_)


def anneal(report: Report, X: np.ndarray) -> None:
    """Descents with more dimensions that vanish and with falling perplexities; then digits that would rather move."""
    settings = {"perplexity": PERPLEXITY, "max_iter": 3000, "tol": 1e-5}
    ways: list[dict[str, object]] = [{}]
    ways += [
        {"extra_dimensions": extra, "init": init, "random_state": seed}
        for extra in (1, 3, 5) for init in ("pca", "random") for seed in range(2)
    ]  # fmt: skip
    ways += [{"perplexity_start": high, "extra_dimensions": 3} for high in (100.0, 500.0)]
    ways += [{"perplexity_start": high, "init": "random"} for high in (100.0, 500.0)]
    maps = []
    for way in ways:
        maps.append(SNE(**{"random_state": 0, **settings, **way}).fit(X))
        told = ", ".join(f"{name} {value}" for name, value in way.items()) or "principal components"
        report.row(f"anneal: {told}", TARGET, maps[-1].kl_divergence_)
    model = min(maps, key=lambda found: found.kl_divergence_)
    gains = gains_of_moves(X, model)
    report.row("anneal: the lowest map", TARGET, model.kl_divergence_)
    solid = SNE(n_components=3, random_state=0, **settings).fit(X)
    report.row("anneal: a map of three dimensions, not comparable", None, solid.kl_divergence_)
    report.row("anneal: most nats that a digit gains by moving", None, float(gains.max()))


def gains_of_moves(X: np.ndarray, model: SNE, n_places: int = 25) -> np.ndarray:
    """Nats that the whole cost falls by if a digit alone moves to the best place of its nearest neighbours: (n,)."""
    P = np.exp(-pairwise_distances(X, metric="sqeuclidean") / (2 * model.sigmas_[:, None] ** 2))
    np.fill_diagonal(P, 0.0)
    P /= P.sum(axis=1, keepdims=True)
    W, points = P + P.T, model.embedding_
    near = np.exp(-pairwise_distances(points, metric="sqeuclidean"))
    np.fill_diagonal(near, 0.0)
    norms = near.sum(axis=1)
    gains = np.empty(len(X))
    for i in range(len(X)):
        others = np.delete(np.arange(len(X)), i)
        places = np.vstack([points[i], points[np.argsort(-W[i])[:n_places]] + 1e-3])
        d = ((places[:, None] - points[others]) ** 2).sum(axis=2)
        rest = np.maximum(norms[others] - near[others, i], 1e-300)
        costs = d @ W[i, others] + np.log(np.exp(-d).sum(axis=1)) + np.log(rest + np.exp(-d)).sum(axis=1)
        gains[i] = costs[0] - costs[1:].min()
    return gains


def shown(report: Report, name: str, points: np.ndarray, X: np.ndarray, labels: np.ndarray) -> None:
    report.row(f"{name}: nearest neighbour of the same class", None, agreement(points, labels))
    report.row(f"{name}: share of 10 nearest neighbours kept", None, neighborhood_preservation(X, points, 10))


def main() -> None:
    X, labels = digits()
    n = len(X)
    report = Report(f"{n} USPS digits 0 to 4, perplexity 15: cost in nats")
    report.row("all points in one place", 15894.0, n * float(np.log((n - 1) / PERPLEXITY)))
    for word in sys.argv[1:] or DEFAULT:
        if word == "search":
            search(report, X, 600.0)
            continue
        if word == "anneal":
            anneal(report, X)
            continue
        if word == "subsets":
            for seed in range(4):
                found = SNE(perplexity=PERPLEXITY, random_state=0).fit(digits(seed)[0])
                report.row(f"lbfgs, draw {seed} of the digits: cost", PUBLISHED, found.kl_divergence_)
            continue
        if word == "peers":
            from sklearn.manifold import TSNE

            shown(report, "two principal components", PCA(2).fit_transform(X), X, labels)
            shown(
                report, "scikit-learn's t-SNE", TSNE(perplexity=PERPLEXITY, random_state=0).fit_transform(X), X, labels
            )
            continue
        began = time.process_time()
        model = SNE(perplexity=PERPLEXITY, random_state=0, **SETTINGS[word]).fit(X)
        seconds = time.process_time() - began
        report.row(f"{word}: cost (best optimiser: target {TARGET:.0f})", PUBLISHED, model.kl_divergence_)
        report.note(f"{'':<4s}{model.n_iter_} iterations, {seconds:.1f} CPU seconds, method {model.method_}")
        shown(report, word, model.embedding_, X, labels)
    report.close()


if __name__ == "__main__":
    run_if_data(main)
