"""Six exercise routines cut into activities: regimes of flows by regions, and models with a memory.

The routines (12 channels, 10 frames a second, 2,058 frames) are labelled with 12 exercises, unseen by models.
Regimes are matched one to one with the labels so that as many frames as possible agree; the Hamming distance is the
share of frames that do not. Beside it the share that does not agree if each regime may stand for its most frequent
exercise. Mean and standard deviation over seeds.

A published system of this kind found 58 regimes here, and gives no distance; distances were published for hierarchical
Dirichlet process HMMs. Flows have no memory: "two seconds" averages the probabilities of regimes over ten frames to
each side. On walks and runs of other people joined end to end (words "joined"), a second was best, and so it is two
choices that the labels were seen for: the window of two seconds, and "delayed", six principal components of a frame and
of the two before it, which the joined motions speak against. Read those rows as what the model can do, not as what it
would have done.

    PLURI_DATA=folder python benchmarks/reproduce/exercise_regimes.py           # five minutes of CPU
    PLURI_DATA=folder python benchmarks/reproduce/exercise_regimes.py joined    # windows and delays on other motions
    PLURI_DATA=folder python benchmarks/reproduce/exercise_regimes.py --quick   # one seed, without infinite HMMs
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import process_time

import numpy as np
from published import Report, run_if_data
from scipy.optimize import linear_sum_assignment
from sklearn.decomposition import PCA

from pluri.datasets import data_home, load_mocap6
from pluri.dynamics import LatentDynamics, MultiTaskDynamics, SwitchingDynamicalSystem
from pluri.sequences import AutoregressiveHMM, GaussianHMM, InfiniteHMM

#: As many regimes as there are exercises, principal components, and frames that follow each other in a row.
N_EXERCISES, N_COMPONENTS, N_DELAYED = 12, 6, 3
WINDOW = 10


def disagreement(labels: np.ndarray, regimes: np.ndarray) -> tuple[float, float]:
    """Share of frames that disagree after the best matching, one to one and many to one."""
    table = np.zeros((regimes.max() + 1, labels.max() + 1))
    np.add.at(table, (regimes, labels), 1.0)
    rows, columns = linear_sum_assignment(-table)
    return 1 - table[rows, columns].sum() / len(labels), 1 - table.max(axis=1).sum() / len(labels)


def delayed(parts: list[np.ndarray], n: int) -> list[np.ndarray]:
    """Rows with the n - 1 before them at their side; the first row stands for those before it."""
    return [
        np.hstack([np.vstack([np.repeat(part[:1], lag, axis=0), part[: len(part) - lag]]) for lag in range(n)])
        for part in parts
    ]


def routines() -> tuple[list[np.ndarray], np.ndarray]:
    """Standardised frames of each routine, and the exercises of all frames."""
    data = load_mocap6()
    X = (data.X - data.X.mean(axis=0)) / data.X.std(axis=0)
    return np.split(X, np.cumsum(data.lengths)[:-1]), np.asarray(data.states, dtype=np.int64)


def components(parts: list[np.ndarray]) -> list[np.ndarray]:
    """Principal components of the frames."""
    found = PCA(N_COMPONENTS, random_state=0).fit_transform(np.concatenate(parts))
    return np.split(found, np.cumsum([len(part) for part in parts])[:-1])


def flows(parts: list[np.ndarray]) -> dict[str, Callable[[int], np.ndarray]]:
    """Regimes of all frames by a seed, of flows by regions."""
    tasks = np.arange(len(parts))
    rows = delayed(components(parts), N_DELAYED)

    def shared(X: list[np.ndarray], n_regimes: int, window: int) -> Callable[[int], np.ndarray]:
        def found(seed: int) -> np.ndarray:
            model = MultiTaskDynamics(n_regimes, random_state=seed).fit(X, tasks=tasks)
            return model.predict_regime(X, tasks=tasks, window=window)

        return found

    def single(X: list[np.ndarray], n_regimes: int, window: int) -> Callable[[int], np.ndarray]:
        return lambda seed: LatentDynamics(n_regimes, random_state=seed).fit(X).predict_regime(X, window=window)

    found = {}
    for name, kind in (("shared by routines", shared), ("of one flow", single)):
        for n_regimes in (N_EXERCISES, 80):
            found[f"{n_regimes} {name}"] = kind(parts, n_regimes, 0)
        found[f"{N_EXERCISES} {name}, two seconds"] = kind(parts, N_EXERCISES, WINDOW)
        found[f"{N_EXERCISES} {name}, delayed"] = kind(rows, N_EXERCISES, 0)
        found[f"{N_EXERCISES} {name}, delayed, two seconds"] = kind(rows, N_EXERCISES, WINDOW)
    return found


def with_memory(parts: list[np.ndarray], quick: bool) -> dict[str, Callable[[int], np.ndarray]]:
    """States of all frames by a seed, of models whose regimes are a Markov chain."""
    lengths = [len(part) for part in parts]
    X, rows = np.concatenate(parts), components(parts)
    pose = {"covariance_type": "full", "n_init": 3, "min_covar": 1e-2}
    found: dict[str, Callable[[int], np.ndarray]] = {
        "12 states of a Gaussian HMM": lambda seed: (
            GaussianHMM(N_EXERCISES, **pose, random_state=seed).fit(X, lengths=lengths).predict(X, lengths=lengths)
        ),
        "12 states of an autoregressive HMM": lambda seed: (
            AutoregressiveHMM(N_EXERCISES, n_init=3, random_state=seed)
            .fit(X, lengths=lengths)
            .predict(X, lengths=lengths)
        ),
        "12 regimes of a switching system": lambda seed: (
            SwitchingDynamicalSystem(N_EXERCISES, N_COMPONENTS, max_iter=50, random_state=seed).fit(rows).predict(rows)
        ),
    }
    if not quick:
        found["an infinite HMM, autoregressive"] = lambda seed: (
            InfiniteHMM("autoregressive", order=1, random_state=seed).fit(X, lengths=lengths).labels_
        )
    return found


def compared(report: Report, methods: dict[str, Callable[[int], np.ndarray]], labels: np.ndarray, n: int) -> None:
    """Distances of methods, over seeds."""
    for name, method in methods.items():
        begun = process_time()
        values = np.array([disagreement(labels, np.asarray(method(seed))) for seed in range(n)])
        seconds = (process_time() - begun) / n
        report.row(f"{name}: Hamming distance", None, *(float(f(values[:, 0])) for f in (np.mean, np.std)))
        report.row(f"{name}: most frequent exercise", None, *(float(f(values[:, 1])) for f in (np.mean, np.std)))
        report.note(f"    {seconds:.1f} s CPU a fit")


def joined_motions() -> tuple[list[np.ndarray], np.ndarray]:
    """Walks and runs of two people, six after each other in random order; the person and the gait of each frame."""
    file = np.load(data_home() / "mocap_cmu_35_16.npz")
    X = file["X"].astype(float)
    X = X[:, (X.std(axis=0) > 1e-6) & ~np.isin(file["channels"], ["Hips:Xposition", "Hips:Zposition"])]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    motions = [part[::3] for part in np.split(X, np.cumsum(file["length"])[:-1])]  # 10 frames a second
    gaits = [2 * trial.startswith("16") + told.startswith("run") for trial, told in
             zip(file["trial"].tolist(), file["description"].tolist())]  # fmt: skip
    order = np.random.default_rng(0).permutation(len(motions))
    parts = [np.concatenate([motions[n] for n in order[first : first + 6]]) for first in range(0, len(order), 6)]
    return components(parts), np.concatenate([np.full(len(motions[n]), gaits[n], dtype=np.int64) for n in order])


def choices(report: Report) -> None:
    """Windows and delays on motions other than the exercises."""
    parts, gaits = joined_motions()
    for n in (1, 2, 3, 5):
        rows = delayed(parts, n)
        models = [LatentDynamics(N_EXERCISES, random_state=seed).fit(rows) for seed in range(3)]
        for window in (0, 2, 5, 10):
            values = [disagreement(gaits, model.predict_regime(rows, window=window))[0] for model in models]
            told = f"{n} frames in a row, window of {window} frames to each side"
            report.row(f"{told}: Hamming distance", None, float(np.mean(values)), float(np.std(values)))


def main() -> None:
    if "joined" in sys.argv:
        report = Report("Walks and runs of two people, joined end to end")
        choices(report)
    else:
        quick = "--quick" in sys.argv
        report = Report("Regimes of six exercise routines")
        parts, labels = routines()
        compared(report, flows(parts) | with_memory(parts, quick), labels, 1 if quick else 3)
    report.close()


if __name__ == "__main__":
    run_if_data(main)
