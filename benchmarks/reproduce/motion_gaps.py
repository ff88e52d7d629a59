"""Motion capture: gaps filled by a learned flow, and a walk that passes into a run.

Gaps. Frames of a motion are embedded (spectral regression of Isomap coordinates; factor analysis), the flow of the
coordinates is learned without the frames of the gaps, and gaps are bridged by it; beside them a cubic spline and a
straight line in the space of the data. The error is the root-mean-square distance of filled from true frames, the step
the largest distance between two frames that follow each other, gap and border included, averaged over gaps. Published
errors are of other recordings: what can be compared are ratios. The runs of the files have 30 frames a second and about
forty frames; a gap of 30 frames of a faster camera is a quarter second, 8 frames of theirs. Walks, and a run at 120
frames a second, have gaps of 30 frames.

Hand-over. Walks and runs of one person are two tasks in one embedding, in which they lie apart. A walk is handed over
where the two share a regime, and where it is most probable as a run; the last second is compared with recorded frames:
those of a run should be nearer than those of a walk.

Files are read here as they are; a channel that never changes, and where the person is on the floor, are left out.

    PLURI_DATA=folder python benchmarks/reproduce/motion_gaps.py [--quick]
"""

from __future__ import annotations

import sys
import warnings
from time import process_time
from typing import Any

import numpy as np
from published import Report, run_if_data
from scipy.interpolate import CubicSpline
from sklearn.decomposition import FactorAnalysis
from sklearn.neighbors import NearestNeighbors

from pluri.datasets import data_home
from pluri.dynamics import LatentDynamics, MultiTaskDynamics
from pluri.embedding import SpectralRegression

#: Coordinates of both embeddings.
#: One long chain with clusters of fifty rows: what the figures were measured with.
ONE_CHAIN = {"n_chains": 1, "n_warmup": 200, "n_draws": 100, "n_predictive": 10, "rows_per_cluster": 50}
N_COORDINATES = 6
#: Ratios of the published table: error against factor analysis and spline, step against factor analysis.
TARGETS = (0.85, 0.45, 0.75)


class LinearEmbedding:
    """Factor analysis that goes back to the data."""

    def __init__(self, n_coordinates: int) -> None:
        self.model = FactorAnalysis(n_coordinates, random_state=0)

    def fit(self, X: np.ndarray) -> LinearEmbedding:
        self.model.fit(X)
        return self

    def transform(self, X: np.ndarray) -> np.ndarray:
        return self.model.transform(X)

    def inverse_transform(self, x: np.ndarray) -> np.ndarray:
        return x @ self.model.components_ + self.model.mean_


def recordings(subject: str, word: str) -> list[np.ndarray]:
    """Frames of the trials of a person whose description begins with a word."""
    file = np.load(data_home() / "mocap_cmu_35_16.npz")
    X = file["X"].astype(float)
    kept = (X.std(axis=0) > 1e-6) & ~np.isin(file["channels"], ["Hips:Xposition", "Hips:Zposition"])
    parts = np.split(X[:, kept], np.cumsum(file["length"])[:-1])
    told = zip(parts, file["trial"], file["description"])
    return [part for part, trial, text in told if trial.startswith(subject) and text.startswith(word)]


def run_at_120_frames() -> list[np.ndarray]:
    """Markers of a run, from their mean in each frame."""
    X = np.load(data_home() / "mocap_osu_run1.npz")["X"].astype(float).reshape(217, -1, 3)
    return [(X - X.mean(axis=1, keepdims=True)).reshape(217, -1)]


def with_gap(motion: np.ndarray, first: int, size: int) -> np.ndarray:
    """A motion without some frames."""
    found = motion.copy()
    found[first : first + size] = np.nan
    return found


def interpolated(motion: np.ndarray, kind: str) -> np.ndarray:
    """A motion whose gap is filled column by column."""
    missing = np.isnan(motion).any(axis=1)
    time = np.arange(len(motion))
    found = motion.copy()
    if kind == "spline":
        found[missing] = CubicSpline(time[~missing], motion[~missing])(time[missing])
    else:
        for column in range(motion.shape[1]):
            found[missing, column] = np.interp(time[missing], time[~missing], motion[~missing, column])
    return found


def learned(motions: list[np.ndarray], embedding: Any) -> LatentDynamics:
    """A flow in the coordinates of an embedding; neither sees the gaps."""
    complete = [~np.isnan(motion).any(axis=1) for motion in motions]
    embedding.fit(np.concatenate([motion[there] for motion, there in zip(motions, complete)]))
    coordinates = []
    for motion, there in zip(motions, complete):
        x = np.full((len(motion), N_COORDINATES), np.nan)
        x[there] = embedding.transform(motion[there])
        coordinates.append(x)
    return LatentDynamics(40, embedding=embedding, random_state=0).fit(coordinates)


def bridged(motions: list[np.ndarray], embedding: Any) -> list[list[np.ndarray]]:
    """Motions whose gaps are filled by a flow.

    Twice: as the embedding makes the frames, and with what it leaves of the frames beside a gap carried across.
    """
    flow = learned(motions, embedding)
    return [[flow.impute(motion, space="data", seamless=seamless) for motion in motions] for seamless in (False, True)]


def errors(true: list[np.ndarray], holes: list[np.ndarray], filled: list[np.ndarray]) -> np.ndarray:
    """Error and largest step, averaged over gaps."""
    found = []
    for motion, gap, made in zip(true, holes, filled):
        missing = np.flatnonzero(np.isnan(gap).any(axis=1))
        away = np.sqrt(((motion - made)[missing] ** 2).sum(axis=1).mean())
        around = made[missing[0] - 1 : missing[-1] + 2]
        found.append((away, np.linalg.norm(np.diff(around, axis=0), axis=1).max()))
    return np.mean(found, axis=0)


def gaps(report: Report, title: str, groups: list[tuple[list[np.ndarray], list[np.ndarray]]]) -> None:
    """Errors of all methods on groups of motions with gaps, each group learned together."""
    methods: dict[str, Any] = {
        "recorded": lambda true, holes: [true],
        "line": lambda true, holes: [[interpolated(motion, "line") for motion in holes]],
        "spline": lambda true, holes: [[interpolated(motion, "spline") for motion in holes]],
        "factor analysis": lambda true, holes: bridged(holes, LinearEmbedding(N_COORDINATES)),
        "spectral regression": lambda true, holes: bridged(
            holes, SpectralRegression(N_COORDINATES, 20, random_state=0, **ONE_CHAIN)
        ),
    }
    found: dict[str, np.ndarray] = {}
    for name, method in methods.items():
        begun = process_time()
        filled = [method(*group) for group in groups]
        seconds = process_time() - begun
        for way, tail in enumerate(("", ", seamless")[: len(filled[0])]):
            mean = np.mean([errors(*group, made[way]) for group, made in zip(groups, filled)], axis=0)
            found[name + tail] = mean
            told = f"error {mean[0]:8.2f}  step {mean[1]:8.2f}  ({seconds:.1f} s CPU)"
            report.note(f"  {title}, {name + tail:31s} {told}")
    told_of, alone = warned(groups)
    for name, which in (("where the flow is said not to lead across", told_of), ("elsewhere", alone)):
        if which:
            report.note(f"  {title}, error / line of {len(which)} gaps {name}: {min(which):.2f} to {max(which):.2f}")
    for tail in ("", ", seamless"):
        ours, linear = found[f"spectral regression{tail}"], found[f"factor analysis{tail}"]
        report.row(f"{title}{tail}: error / FA", TARGETS[0], ours[0] / linear[0])
        report.row(f"{title}{tail}: error / spline", TARGETS[1], ours[0] / found["spline"][0])
        report.row(f"{title}{tail}: step / FA", TARGETS[2], ours[1] / linear[1])


def warned(groups: list[tuple[list[np.ndarray], list[np.ndarray]]]) -> tuple[list[float], list[float]]:
    """Errors beside those of a straight line, of gaps that `impute` warns of and of all others."""
    found: tuple[list[float], list[float]] = [], []
    for true, holes in groups:
        flow = learned(holes, SpectralRegression(N_COORDINATES, 20, random_state=0, **ONE_CHAIN))
        for motion, hole in zip(true, holes):
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                made = flow.impute(hole, space="data")
            unmet = any("does not lead across" in str(one.message) for one in told)
            ratio = errors([motion], [hole], [made])[0] / errors([motion], [hole], [interpolated(hole, "line")])[0]
            found[0 if unmet else 1].append(float(ratio))
    return found


def all_gaps(report: Report, quick: bool) -> None:
    """Runs of two people, walks, and one long run."""
    for subject in ("35",) if quick else ("35", "16"):
        runs = [motion for motion in recordings(subject, "run") if len(motion) > 33]
        holes = [with_gap(motion, 12 + n % 3, 8) for n, motion in enumerate(runs)]
        gaps(report, f"subject {subject}, runs, 8 frames", [(runs, holes)])
    if quick:
        return
    walks = recordings("35", "walk")
    holes = [with_gap(walk, 35 + n, 30) for n, walk in enumerate(walks)]
    gaps(report, "subject 35, walks, 30 frames", [(walks, holes)])
    run = run_at_120_frames()
    gaps(report, "run at 120 Hz, 30 frames", [(run, [with_gap(run[0], first, 30)]) for first in (30, 60, 80, 106, 130)])


def hand_over(report: Report) -> None:
    """A walk that passes into a run."""
    walks, runs = recordings("35", "walk"), recordings("35", "run")
    motions = walks + runs
    tasks = ["walk"] * len(walks) + ["run"] * len(runs)
    embedding = SpectralRegression(N_COORDINATES, 20, random_state=0, **ONE_CHAIN).fit(np.concatenate(motions))
    coordinates = [embedding.transform(motion) for motion in motions]
    model = MultiTaskDynamics(40, 40, embedding=embedding, random_state=0).fit(coordinates, tasks=tasks)
    n_shared = len(model.shared_atoms("walk", "run").regimes)
    report.note(f"  walk and run: {model.n_active_regimes_} regimes, {n_shared} shared")
    nearest = {name: NearestNeighbors(n_neighbors=1).fit(np.concatenate(part)) for name, part in
               (("walk", walks), ("run", runs))}  # fmt: skip
    usual = np.mean([np.linalg.norm(np.diff(run, axis=0), axis=1).max() for run in runs])
    for meet, n_blend in (("regime", 0), ("density", 0), ("density", 15)):
        arrived, steps = [], []
        for walk in walks[:10]:
            found = model.hand_over(walk[10], "walk", "run", 120, meet=meet, n_blend=n_blend, space="data")
            arrived.append(False)
            if found.switched_at is not None and not np.isnan(found.path).any():
                distance = {name: search.kneighbors(found.path[-30:])[0].mean() for name, search in nearest.items()}
                arrived[-1] = bool(distance["run"] < distance["walk"])
                around = found.path[max(found.switched_at - 1, 0) : found.switched_at + 20]
                steps.append(np.linalg.norm(np.diff(around, axis=0), axis=1).max())
        title = f"by {meet}, {n_blend} frames blended"
        report.row(f"{title}: share of walks that end as a run", None, float(np.mean(arrived)))
        if steps:
            report.row(f"{title}: largest step / largest of a run", None, np.mean(steps) / usual)


def main() -> None:
    quick = "--quick" in sys.argv
    report = Report("Gaps in motions; published ratios are targets")
    all_gaps(report, quick)
    report.close()
    report = Report("A walk passes into a run")
    hand_over(report)
    report.close()


if __name__ == "__main__":
    run_if_data(main)
