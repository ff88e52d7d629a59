"""A page on which a walk passes into a run, and gaps in a walk and in a run are filled.

Walks and runs of subject 35 of the CMU collection become features (steps of the root, rotations of joints). Less the
mean of their task, so that walks and runs are loops through the same places, they become coordinates by spectral
regression, and `MultiTaskDynamics` learns the flows of both tasks with shared regimes. Frames of one walk and one run
are taken out before anything is learned, and put in again by the model (a bridge from both ends). A walk is continued
by the model for a second, and then handed over to the run where its path is most probable as one (they share no
regime); the mean of the walks gives way to that of the runs over half a second from there. The page shows recorded and
made motions in step, their paths in the first two coordinates, gaps, hand-overs and regimes; it is written where
PLURI_FIGURES says. Printed: errors of joints inside the gaps, in centimetres and relative to the hips, beside a cubic
spline of the features and the mean pose; and how near the continued motion is to recorded runs, and at which speed it
moves.

    PLURI_DATA=folder python benchmarks/reproduce/motion_page.py [--quick] [--seed 0]
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any, NamedTuple

import numpy as np
from published import figure_path, run_if_data
from scipy.interpolate import CubicSpline
from sklearn.neighbors import NearestNeighbors

from pluri.datasets import Motion, load_cmu_walks, moving_joints
from pluri.dynamics import MultiTaskDynamics
from pluri.embedding import SpectralRegression
from pluri.report import motion_report

CENTIMETRES, FRAMES_PER_SECOND = 5.644, 30
#: One long chain with clusters of fifty rows: what the figures were measured with.
ONE_CHAIN = {"n_chains": 1, "n_warmup": 200, "n_draws": 100, "n_predictive": 10, "rows_per_cluster": 50}
N_COORDINATES, N_REGIMES, N_REGIONS = 8, 8, 20
#: Trial and frames that are taken out of it.
GAPS = {"35_05": (40, 70), "35_20": (14, 26)}
#: The walk that is continued, the frame from which on, for how many frames as a walk and for how many more that may
#: become a run, and frames from one mean to the other.
START, FROM, N_WALK, N_STEPS, BLEND = "35_01", 45, 30, 90, 15


class Data(NamedTuple):
    """Motions by trial, the task of each, and which joints are features."""

    motions: dict[str, Motion]
    tasks: dict[str, str]
    joints: tuple[str, ...]

    def features(self, trial: str, *, whole: bool = False) -> np.ndarray:
        """Rows of a trial, NaN where frames were taken out unless they are wanted whole."""
        rows = self.motions[trial].to_features(joints=self.joints)
        if trial in GAPS and not whole:
            rows[slice(*GAPS[trial])] = np.nan
        return rows

    def motion(self, trial: str, rows: np.ndarray) -> Motion:
        """The motion of rows that begins where a trial does."""
        return self.motions[trial].from_features(rows, joints=self.joints)


class Space(NamedTuple):
    """The way from features to coordinates and back."""

    means: dict[str, np.ndarray]
    scale: np.ndarray
    embedding: SpectralRegression

    def places(self, rows: np.ndarray, task: str) -> np.ndarray:
        """Coordinates of rows; NaN where rows have none."""
        known = ~np.isnan(rows).any(axis=1)
        found = np.full((len(rows), N_COORDINATES), np.nan)
        found[known] = self.embedding.transform((rows[known] - self.means[task]) / self.scale)
        return found

    def rows(self, places: np.ndarray, share: np.ndarray | float) -> np.ndarray:
        """Rows of places, about a mean that is that of runs to this share."""
        mean = np.multiply.outer(1 - share, self.means["walk"]) + np.multiply.outer(share, self.means["run"])
        return mean + self.scale * self.embedding.inverse_transform(places)


class Shown(NamedTuple):
    """What the page tells of a motion."""

    motion: Motion
    places: np.ndarray
    task: str
    gaps: list[tuple[int, int]]
    hand_overs: list[tuple[int, str]]


def load(quick: bool) -> Data:
    captures = load_cmu_walks()
    tasks = {
        trial: "run" if "run" in description else "walk"
        for trial, description in zip(captures.trials, captures.descriptions)
        if trial.startswith("35")
    }
    walks = [trial for trial, task in tasks.items() if task == "walk"][: 8 if quick else None]
    kept = {trial: task for trial, task in tasks.items() if task == "run" or trial in walks}
    motions = {trial: motion for trial, motion in zip(captures.trials, captures.motions()) if trial in kept}
    return Data(motions, kept, moving_joints(list(motions.values())))


def learn(data: Data, quick: bool, seed: int) -> tuple[MultiTaskDynamics, Space, dict[str, np.ndarray]]:
    """The model, the space that it is in, and the coordinates of each trial."""
    rows = {trial: data.features(trial) for trial in data.motions}
    known = {trial: values[~np.isnan(values).any(axis=1)] for trial, values in rows.items()}
    means = {
        task: np.concatenate([known[trial] for trial in known if data.tasks[trial] == task]).mean(axis=0)
        for task in ("walk", "run")
    }
    centred = np.concatenate([values - means[data.tasks[trial]] for trial, values in known.items()])
    scale = centred.std(axis=0)
    scale[scale < 1e-9] = 1.0  # joints with one axis have numbers that never change
    embedding = SpectralRegression(
        N_COORDINATES, 20, random_state=seed, **{**ONE_CHAIN, "n_warmup": 50 if quick else 200}
    )
    space = Space(means, scale, embedding.fit(centred / scale))
    places = {trial: space.places(values, data.tasks[trial]) for trial, values in rows.items()}
    n_sweeps = 100 if quick else 400
    model = MultiTaskDynamics(
        N_REGIMES, N_REGIONS, n_warmup=n_sweeps, n_draws=n_sweeps // 2, random_state=seed
    ).fit(list(places.values()), tasks=list(data.tasks.values()))  # fmt: skip
    return model, space, places


def joint_error(made: Motion, recorded: Motion, frames: slice) -> float:
    """Root-mean-square distance of joints from where they were, seen from the hips."""
    places = [motion.positions()[frames] for motion in (made, recorded)]
    away = (places[0] - places[0][:, :1]) - (places[1] - places[1][:, :1])
    return CENTIMETRES * float(np.sqrt((away**2).sum(axis=2).mean()))


def splined(rows: np.ndarray) -> np.ndarray:
    time, known = np.arange(len(rows)), ~np.isnan(rows).any(axis=1)
    return np.where(known[:, None], rows, CubicSpline(time[known], rows[known])(time))


def filled(model: MultiTaskDynamics, space: Space, data: Data, places: dict[str, np.ndarray], trial: str) -> Shown:
    """A motion whose gap the model has filled; errors are printed."""
    (start, stop), task = GAPS[trial], data.tasks[trial]
    path = model.impute([places[trial]], tasks=[task])
    rows = {name: data.features(trial) for name in ("model", "mean pose")}
    rows["model"][start:stop] = space.rows(path[start:stop], float(task == "run"))
    rows["mean pose"][start:stop] = space.means[task]
    rows["cubic spline"] = splined(data.features(trial))
    made = {name: data.motion(trial, values) for name, values in rows.items()}
    errors = {name: joint_error(motion, data.motions[trial], slice(start, stop)) for name, motion in made.items()}
    told = ", ".join(f"{name} {errors[name]:.1f} cm" for name in ("model", "cubic spline", "mean pose"))
    print(f"{trial} {task}, {stop - start} frames missing: {told}")
    return Shown(made["model"], path, task, [(start, stop)], [])


def continued(model: MultiTaskDynamics, space: Space, data: Data, places: dict[str, np.ndarray]) -> Shown:
    """A recorded walk that goes on as the model says, and passes into a run."""
    walked = model.simulate(N_WALK, places[START][FROM], task="walk")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that there is no hand-over is printed
        last = walked[np.isfinite(walked).all(axis=1)][-1]
        found = model.hand_over(last, "walk", "run", N_STEPS, meet="density", n_blend=BLEND)
    path = np.concatenate([walked, found.path])
    path = path[~np.isnan(path).any(axis=1)]
    marks = [(FROM + 1, "simulated from here")]
    share = np.zeros(len(path))
    if found.switched_at is None:
        print(f"no hand-over in {len(path)} simulated frames: the path left the flow")
    else:
        at = N_WALK + int(found.switched_at)
        print(f"the walk passes into a run after {at} simulated frames of {len(path)}")
        marks.append((FROM + 1 + at, "walk passes into run"))
        share = np.clip((np.arange(len(path)) - at + 1) / BLEND, 0, 1)
    made = space.rows(path, share)
    motion = data.motion(START, np.concatenate([data.features(START)[: FROM + 1], made]))
    compare(data, space, made[-30:])
    return Shown(motion, np.concatenate([places[START][: FROM + 1], path]), "walk", [], marks)


def compare(data: Data, space: Space, rows: np.ndarray) -> None:
    """How far rows are from recorded ones, in units of the distance between neighbours of these, and how fast."""
    speed = {"the last second of the continued motion": rows[:, 2].mean()}
    for task in ("walk", "run"):
        recorded = np.concatenate(
            [data.features(trial, whole=True) for trial in data.tasks if data.tasks[trial] == task]
        )
        speed[f"recorded {task}s"] = recorded[:, 2].mean()
        neighbors = NearestNeighbors(n_neighbors=2).fit(recorded / space.scale)
        between = neighbors.kneighbors(recorded / space.scale)[0][:, 1].mean()
        away = neighbors.kneighbors(rows / space.scale, 1)[0].mean() / between
        print(f"its last second is {away:.1f} times as far from recorded {task}s as these are from each other")
    metres = CENTIMETRES / 100 * FRAMES_PER_SECOND
    print("speed: " + ", ".join(f"{name} {metres * value:.1f} m/s" for name, value in speed.items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer walks, shorter chains")
    parser.add_argument("--seed", type=int, default=0, help="of the embedding and of the dynamics")
    asked = parser.parse_args()
    data = load(asked.quick)
    model, space, places = learn(data, asked.quick, asked.seed)
    print(f"{len(data.motions)} motions, {sum(map(len, data.motions.values()))} frames, {N_COORDINATES} coordinates")
    shared = model.shared_atoms("walk", "run")
    print(f"{model.n_active_regimes_} regimes, of which {len(shared.regimes)} are shared by walks and runs")
    shown: dict[str, Shown] = {"walk into run": continued(model, space, data, places)}
    for trial in GAPS:
        task, motion = data.tasks[trial], data.motions[trial]
        shown[f"{trial} {task}, gap filled"] = filled(model, space, data, places, trial)
        at = space.places(data.features(trial, whole=True), task)
        shown[f"{trial} {task}, recorded"] = Shown(motion, at, task, [], [])
    write(model, shown)


def write(model: MultiTaskDynamics, shown: dict[str, Shown]) -> None:
    told: dict[str, Any] = {
        "latent": {name: one.places for name, one in shown.items()},
        "gaps": {name: one.gaps for name, one in shown.items()},
        "hand_overs": {name: one.hand_overs for name, one in shown.items()},
        "regimes": {name: regimes(model, one) for name, one in shown.items()},
    }
    facts = {
        "map": f"the first 2 of {N_COORDINATES} coordinates of SpectralRegression",
        "dynamics": f"MultiTaskDynamics with {model.n_active_regimes_} regimes",
        "data": "mocap.cs.cmu.edu, subject 35; bones of an average body",
    }
    page = figure_path("motion_page.html")
    motions = {name: one.motion for name, one in shown.items()}
    motion_report(motions, page, title="Walks and runs, recorded and made", facts=facts, **told)
    print("page:", page)


def regimes(model: MultiTaskDynamics, one: Shown) -> np.ndarray:
    """Regimes of the frames; after a hand-over, those of runs."""
    found = model.predict_regime([one.places], tasks=[one.task])
    if len(one.hand_overs) == 2:
        at = one.hand_overs[1][0]
        found[at:] = model.predict_regime([one.places[at:]], tasks=["run"])
    return found


if __name__ == "__main__":
    run_if_data(main)
