"""Maps with two images of each object: hybrid digits, and a circle on a line.

Hinton and Roweis (2002), section 4: 300 USPS digits of each of 2, 3 and 4 and 100 hybrids, each pixel of which comes
from one of two new digits of different classes; perplexity 10, two images of fixed equal proportions, attraction 0.025
beyond 0.05, noise 0.05. They report that 66 % of the hybrids and 19 % of the others had significantly different images,
and that images of split hybrids lay in the regions of their two parents, never in the third. What "significantly" means
is not said; here farther apart than 1. A circle on a line is described without numbers; the targets are ours.

    PLURI_DATA=folder python benchmarks/reproduce/sne_mixtures.py [circle] [hybrids] [forces] [--quick]

``--quick`` takes one seed instead of three, and 100 digits of each class with 33 hybrids.
"""

from __future__ import annotations

import sys

import numpy as np
from published import Report, run_if_data

from pluri.datasets import load_usps
from pluri.embedding import MixtureSNE

QUICK = "--quick" in sys.argv[1:]
SEEDS = range(1 if QUICK else 3)
CLASSES = (2, 3, 4)


def hybrids(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Digits and hybrids; class of each digit; the two classes of each hybrid."""
    rng = np.random.default_rng(seed)
    per_class, n_hybrids = (100, 33) if QUICK else (300, 100)
    data = load_usps("train")
    pools = {c: rng.permutation(np.flatnonzero(data.y == c)) for c in CLASSES}
    chosen = np.concatenate([pools[c][:per_class] for c in CLASSES])
    fresh = {c: list(pools[c][per_class:]) for c in CLASSES}
    parents = np.array([rng.choice(CLASSES, size=2, replace=False) for _ in range(n_hybrids)])
    made = [
        np.where(rng.random(256) < 0.5, data.X[fresh[first].pop()], data.X[fresh[second].pop()])
        for first, second in parents
    ]
    return np.vstack([data.X[chosen], made]), data.y[chosen], parents


def of_hybrids(seed: int, force: float, proportions: str = "equal") -> tuple[float, float, float, float]:
    """Shares of hybrids and of digits that are split; of images of split hybrids in a parent's region; and the cost."""
    X, labels, parents = hybrids(seed)
    n = len(labels)
    model = MixtureSNE(
        perplexity=10, attraction=force, proportions=proportions, n_jobs=2, random_state=seed, max_iter=1000
    ).fit(X)
    home = []
    places = model.images_[:n].reshape(-1, 2)
    for images, pair in zip(model.images_[n:], parents):
        if np.linalg.norm(images[0] - images[1]) > model.split_distance:
            for image in images:
                near = np.argsort(((places - image) ** 2).sum(axis=1))[:10] // 2
                home.append(np.bincount(labels[near]).argmax() in pair)
    split = model.split_objects_
    return split[n:].mean(), split[:n].mean(), float(np.mean(home)) if home else np.nan, model.kl_divergence_


def part_hybrids() -> None:
    report = Report("Hybrid digits, published settings")
    rows = np.array([of_hybrids(seed, 0.025) for seed in SEEDS])
    for place, (what, published) in enumerate(
        (("hybrids split", 0.66), ("other digits split", 0.19), ("images of split hybrids in a parent's region", 1.0))
    ):
        spread = rows[:, place].std(ddof=1) if len(rows) > 1 else None
        report.row(what, published, rows[:, place].mean(), spread)
    report.row("cost", None, rows[:, 3].mean())
    report.close()


def part_forces() -> None:
    report = Report("Hybrid digits, other attractions (first seed): both shares should fall as it grows")
    for force in (0.1, 0.3):
        hybrid, other, home, cost = of_hybrids(0, force)
        report.row(f"attraction {force}: hybrids split", None, hybrid)
        report.row(f"attraction {force}: other digits split", None, other)
        report.row(f"attraction {force}: images in a parent's region", None, home)
        report.row(f"attraction {force}: cost", None, cost)
    report.close()


def kept_neighbours(Q: np.ndarray, count: int = 6) -> float:
    """Share of the most probable objects of each that are among its nearest on the circle."""
    n = len(Q)
    steps = np.abs(np.argsort(-Q, axis=1)[:, :count] - np.arange(n)[:, None])
    return float((np.minimum(steps, n - steps) <= count // 2).mean())


def runs_of_whole_points(split: np.ndarray) -> int:
    """Connected runs of points of the circle that are not split."""
    whole = ~split
    return 1 if whole.all() else int((whole & ~np.roll(whole, 1)).sum())


def part_circle() -> None:
    report = Report("60 points of a circle on a line, perplexity 6, attraction 0.025: share of 6 nearest kept")
    angles = 2 * np.pi * np.arange(60) / 60
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    for n_images, proportions in ((1, "equal"), (2, "equal"), (2, "learn")):
        models = [
            MixtureSNE(1, n_images=n_images, proportions=proportions, perplexity=6, random_state=seed).fit(circle)
            for seed in range(10)
        ]
        kept = np.array([kept_neighbours(model.neighbor_probabilities()) for model in models])
        runs = np.array([runs_of_whole_points(model.split_objects_) for model in models])
        title = f"{n_images} image{'s' * (n_images > 1)}, proportions {proportions}"
        report.row(f"{title}: kept (targets: < 0.95 with one, >= 0.95)", None, kept.mean(), kept.std(ddof=1))
        report.row(f"{title}: cost", None, float(np.mean([model.kl_divergence_ for model in models])))
        report.row(f"{title}: share of 10 seeds with one run of whole points", None, float((runs == 1).mean()))
        report.row(f"{title}: split points", None, float(np.mean([model.split_objects_.sum() for model in models])))
    report.close()


def main() -> None:
    words = [word for word in sys.argv[1:] if not word.startswith("-")]
    for word in words or ("circle", "hybrids", "forces"):
        globals()[f"part_{word}"]()


if __name__ == "__main__":
    run_if_data(main)
