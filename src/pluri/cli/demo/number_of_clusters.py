"""Clusters whose number nobody knows: a posterior of it, instead of a curve with an elbow."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.cli.demo.part import Part, new_figure, write_figure
from pluri.mixtures import DirichletProcessMixture, GaussianMixture

FILE = "number_of_clusters.png"
CENTERS = np.array([[-5.0, 0.0], [0.0, 4.0], [0.5, -3.5], [5.0, 0.5], [4.0, 5.0]])
SIZES = (140, 100, 70, 50, 30)
#: Clusters with a smaller share of the rows are not counted: a single stray row may have one of its own.
MIN_SHARE = 0.02
N_TIMED, N_REPEATS = 20_000, 3


@dataclass(frozen=True)
class Found:
    """Points, the cluster of each, and the posterior of the number of clusters (entry k for k clusters)."""

    points: NDArray[np.float64]
    labels: NDArray[np.int64]
    posterior: NDArray[np.float64]
    model: DirichletProcessMixture


def show(path: Path, seed: int, n_timed: int = N_TIMED) -> Part:
    """Fit, count, draw."""
    found = run(seed)
    numbers = {
        "n_points": len(found.points),
        "n_true": len(SIZES),
        "posterior": found.posterior.tolist(),
        "times_scikit_learn": ratio_to_scikit_learn(seed, n_timed),
    }
    draw(found, path)
    return Part(reading(numbers), numbers, path)


def run(seed: int) -> Found:
    """Five groups of unequal size, and a mixture that is not told so."""
    rng = np.random.default_rng([seed, 3])
    points = np.concatenate([rng.normal(center, 1.0, size=(size, 2)) for center, size in zip(CENTERS, SIZES)])
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # chains that have not settled would be told of in the sentences, by their spread
        model = DirichletProcessMixture(random_state=seed).fit(points)
    return Found(points, model.predict(points), model.n_components_posterior(MIN_SHARE), model)


def ratio_to_scikit_learn(seed: int, n_rows: int) -> float:
    """How many times as long scikit-learn takes for the same mixture from the same start: CPU time, best of three."""
    from sklearn.mixture import GaussianMixture as Theirs

    rng = np.random.default_rng([seed, 4])
    X = CENTERS[rng.integers(len(CENTERS), size=n_rows)] + rng.normal(size=(n_rows, 2))
    settings: dict[str, Any] = {"means_init": CENTERS, "max_iter": 20, "tol": 0.0, "init_params": "random"}

    def ours() -> None:
        GaussianMixture(len(CENTERS), **settings, random_state=0, n_jobs=1).fit(X)

    def theirs() -> None:
        Theirs(len(CENTERS), **settings, random_state=0).fit(X)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # twenty iterations are not meant to be enough
        ours()  # compiles
        return _seconds(theirs) / _seconds(ours)


def _seconds(work: Callable[[], None]) -> float:
    taken = []
    for _ in range(N_REPEATS):
        began = time.process_time()
        work()
        taken.append(time.process_time() - began)
    return max(min(taken), 1e-6)


def reading(numbers: dict[str, Any]) -> list[str]:
    """What the numbers show."""
    posterior = np.array(numbers["posterior"])
    best = int(posterior.argmax())
    right = "" if best == numbers["n_true"] else f"; there are {numbers['n_true']}"
    return [
        f"{numbers['n_points']} points in groups whose number the model is not told: it says {best} with probability "
        f"{posterior[best]:.2f}{right}.",
        f"For a mixture of known size, twenty steps of EM on {N_TIMED:,} rows, scikit-learn takes "
        f"{numbers['times_scikit_learn']:.1f} times the CPU time of pluri here.",
    ]


def draw(found: Found, path: Path) -> None:
    """The clusters, and the posterior of their number."""
    from pluri.plotting.style import state_colors

    figure = new_figure(11.0, 4.6)
    left, right = figure.subplots(1, 2, width_ratios=(1.3, 1.0))
    values, places = np.unique(found.labels, return_inverse=True)
    left.scatter(*found.points.T, s=12, c=np.array(state_colors(len(values)))[places], lw=0)
    left.set(title="as the model divides them", xlabel="first value", ylabel="second value")
    left.spines[["top", "right"]].set_visible(False)
    shown = np.arange(1, max(len(found.posterior), len(SIZES) + 3))
    heights = np.array([found.posterior[k] if k < len(found.posterior) else 0.0 for k in shown])
    right.bar(shown, heights, color=["#0072B2" if k == len(SIZES) else "#B0BEC5" for k in shown])
    right.set(title="posterior of their number", xlabel="clusters", ylabel="probability", ylim=(0, 1), xticks=shown)
    right.spines[["top", "right"]].set_visible(False)
    write_figure(figure, path)
