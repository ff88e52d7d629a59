"""Recorded spikes: a Poisson system beside three generalized count systems, over the number of hidden dimensions.

    PLURI_DATA=folder python benchmarks/reproduce/count_dynamics_spikes.py --quick               # a minute
    PLURI_DATA=folder python benchmarks/reproduce/count_dynamics_spikes.py                       # p = 2..8: an hour
    PLURI_DATA=folder python benchmarks/reproduce/count_dynamics_spikes.py --only macaque --components 2 4
    PLURI_DATA=folder python benchmarks/reproduce/count_dynamics_spikes.py --results table.jsonl  # goes on later

Each neuron is predicted from the others in held-out sequences (four folds over sequences). Printed are the per cent by
which squared errors and negative log probabilities are below those of constant rates, and the differences to the
Poisson system with 95 % intervals of Student's t over folds. Data: macaque motor cortex in bins of 200 ms, cut into
pieces of 20 (the file does not tell where reaches begin); rat hippocampus while it runs, bins of 250 ms, pieces of 40;
locust antennal lobe without odours, bins of 100 ms, pieces of 48. Neurons with less than one spike in 20 bins are left
out. These are not the recordings of Gao et al. (2015), whose reaches were in bins of 20 ms.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from scipy import stats

from pluri.datasets import data_home
from pluri.dynamics import CountDynamicalSystem, PoissonDynamicalSystem

MODELS = ("PLDS", "full", "simple", "linear")
N_FOLDS = 4
LEAST_RATE = 0.05
#: What one fit found: its recording, settings, fold and model, and the per cent by which errors are lower.
Row = dict[str, Any]


def binned(times: np.ndarray, units: np.ndarray, width: float) -> np.ndarray:
    """Counts (n_bins, n_units) from the first spike to the last."""
    bins = ((times - times.min()) / width).astype(int)
    counts = np.zeros((bins.max() + 1, int(units.max()) + 1))
    np.add.at(counts, (bins, units.astype(int)), 1.0)
    return counts


def pieces(counts: np.ndarray, length: int) -> list[np.ndarray]:
    """Sequences of one length, without neurons that hardly fire."""
    kept = counts[:, counts.mean(axis=0) >= LEAST_RATE]
    return [kept[first : first + length] for first in range(0, len(kept) - length + 1, length)]


def macaque() -> list[np.ndarray]:
    with np.load(data_home() / "spikes_macaque_m1_mihi.npz", allow_pickle=False) as file:
        return pieces(file["Yte"].astype(float), 20)


def hippocampus() -> list[np.ndarray]:
    with np.load(data_home() / "spikes_hippocampus_linear_track.npz", allow_pickle=False) as file:
        times, units, where, at = file["spike_time"], file["unit"], file["pos_xy"].astype(float), file["pos_time"]
    counts = binned(times, units, 0.25)
    at, first = np.unique(at, return_index=True)  # some frames are in the file twice
    # Speed in pixels a second, over a second; bins of the track alone, in which there are spikes of running.
    speed = np.abs(np.gradient(np.convolve(where[first, 0], np.ones(60) / 60, mode="same"), at))
    middle = times.min() + 0.25 * (np.arange(len(counts)) + 0.5)
    runs = np.interp(middle, at, speed) > 5.0
    return pieces(counts[runs], 40)


def locust() -> list[np.ndarray]:
    with np.load(data_home() / "spikes_locust20010217_spontaneous.npz", allow_pickle=False) as file:
        first = file["recording"] == 0
        times, units, trial = file["spike_time"][first], file["unit"][first], file["trial"][first]
    found: list[np.ndarray] = []
    for number in np.unique(trial):
        counts = np.zeros((288, int(units.max()) + 1))
        inside = trial == number
        bins = ((times[inside] - times[inside].min()) / 0.1).astype(int)
        np.add.at(counts, (np.minimum(bins, 287), units[inside].astype(int)), 1.0)
        found.append(counts)
    return pieces(np.concatenate(found), 48)


DATA = {"macaque": macaque, "hippocampus": hippocampus, "locust": locust}


def fitted(trials: list[np.ndarray], name: str, p: int, fold: int, stop: Row) -> Row:
    """Per cent of MSE and NLL of a model that has not seen a fold."""
    began = time.process_time()
    settings: dict[str, Any] = {"random_state": 0, **stop}
    model = (
        PoissonDynamicalSystem(p, **settings)
        if name == "PLDS"
        else CountDynamicalSystem(p, observation=name, n_quadrature=9, **settings)
    )
    model.fit([trial for number, trial in enumerate(trials) if number % N_FOLDS != fold])
    held_out = model.leave_one_neuron_out(trials[fold::N_FOLDS])
    return {"mse": held_out.mse_reduction, "nll": held_out.nll_reduction, "n_iter": model.n_iter_,
            "cpu": time.process_time() - began}  # fmt: skip


def difference(values: np.ndarray) -> str:
    """Mean over folds and its 95 % interval."""
    half = stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return f"{values.mean():+8.2f} [{values.mean() - half:+.2f}, {values.mean() + half:+.2f}]"


def show(rows: list[Row], p: int) -> None:
    """The lines of a table that belong to a number of hidden dimensions."""
    one = {name: {kind: np.array([row[kind] for row in rows if row["model"] == name]) for kind in ("mse", "nll", "cpu")}
           for name in MODELS}  # fmt: skip
    for name, found in one.items():
        text = f"{p:3d} {name:8s}{found['mse'].mean():9.2f}{found['nll'].mean():9.2f}"
        for kind in ("mse", "nll"):
            text += f"{'' if name == 'PLDS' else difference(found[kind] - one['PLDS'][kind]):>28s}"
        print(f"{text}{found['cpu'].sum():8.0f}", flush=True)


def kept_results(path: Path | None) -> tuple[list[Row], Callable[[Row], None]]:
    """What a file holds, and a function that adds a line to it."""
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path and path.exists() else []

    def keep(row: Row) -> None:
        rows.append(row)
        if path:
            with path.open("a") as file:
                file.write(json.dumps(row) + "\n")

    return rows, keep


def table(name: str, trials: list[np.ndarray], components: list[int], stop: Row, path: Path | None) -> None:
    """Fit what a file does not hold yet, and print."""
    rows, keep = kept_results(path)
    everything = np.concatenate(trials)
    fano = everything.var(axis=0) / everything.mean(axis=0)
    print(f"\n{name}: {len(trials)} sequences of {len(trials[0])} bins, {everything.shape[1]} neurons, mean count "
          f"{everything.mean():.2f}, largest {everything.max():g}, median Fano {np.median(fano):.2f}")  # fmt: skip
    print(f"{'p':>3s} {'model':8s}{'% MSE':>9s}{'% NLL':>9s}{'MSE - PLDS':>28s}{'NLL - PLDS':>28s}{'CPU s':>8s}")
    for p in components:
        for model in MODELS:
            for fold in range(N_FOLDS):
                which = {"data": name, "shape": [*everything.shape], "p": p, **stop, "fold": fold, "model": model}
                if not any(which.items() <= row.items() for row in rows):
                    keep(which | fitted(trials, model, p, fold, stop))
        wanted = {"data": name, "shape": [*everything.shape], "p": p, **stop}
        show(sorted((row for row in rows if wanted.items() <= row.items()), key=lambda row: row["fold"]), p)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", choices=DATA, nargs="*", default=[*DATA])
    parser.add_argument("--components", type=int, nargs="*", default=None)
    parser.add_argument("--max-iter", type=int, default=None)
    parser.add_argument("--tol", type=float, default=1e-4, help="where EM stops; models' own default is 1e-5")
    parser.add_argument("--results", type=Path, default=None, help="file that keeps results, a line for each fit")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    components = options.components or ([2, 4] if options.quick else [*range(2, 9)])
    for name in options.only:
        trials = DATA[name]()
        if options.quick:  # the neurons that fire most, and fewer sequences
            busy = np.argsort(-np.concatenate(trials).mean(axis=0))[:15]
            trials = [trial[:, np.sort(busy)] for trial in trials[:30]]
        stop = {"max_iter": options.max_iter or (20 if options.quick else 60), "tol": options.tol}
        table(name, trials, components, stop, options.results)


if __name__ == "__main__":
    main()
