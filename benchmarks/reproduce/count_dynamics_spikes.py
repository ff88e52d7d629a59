"""Recorded spikes: a Poisson system beside three generalized count systems, over the number of hidden dimensions.

    PLURI_DATA=folder python benchmarks/reproduce/count_dynamics_spikes.py --quick               # minutes
    PLURI_DATA=folder python benchmarks/reproduce/count_dynamics_spikes.py                       # p = 2..8: hours
    PLURI_DATA=folder python benchmarks/reproduce/count_dynamics_spikes.py --only macaque --components 2 4

Each neuron is predicted from the others in held-out sequences (four folds over sequences). Printed are the per cent by
which squared errors and negative log probabilities are below those of constant rates, and the difference to the Poisson
system with a 95 % interval of Student's t over folds. Data: macaque motor cortex in bins of 200 ms, cut into pieces of
20 (the file does not tell where reaches begin); rat hippocampus while it runs, bins of 250 ms, pieces of 40; locust
antennal lobe without odours, bins of 100 ms, pieces of 48. Neurons with less than one spike in 20 bins are left out.
These are not the recordings of Gao et al. (2015), whose reaches were in bins of 20 ms.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from scipy import stats

from pluri.datasets import data_home
from pluri.dynamics import CountDynamicalSystem, PoissonDynamicalSystem

MODELS = ("PLDS", "full", "simple", "linear")
LEAST_RATE = 0.05


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
    # Speed in pixels a second, over a second; bins of the track alone, in which there are spikes of running.
    speed = np.abs(np.gradient(np.convolve(where[:, 0], np.ones(60) / 60, mode="same"), at))
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


def evaluate(trials: list[np.ndarray], p: int, max_iter: int) -> dict[str, np.ndarray]:
    """Per cent of MSE and NLL of each model in four folds: (4, 2) each."""
    largest = int(max(trial.max() for trial in trials))
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in MODELS}
    for fold in range(4):
        fit = [trial for number, trial in enumerate(trials) if number % 4 != fold]
        test = trials[fold::4]
        for name in MODELS:
            settings = {"random_state": 0, "max_iter": max_iter}
            model = (
                PoissonDynamicalSystem(p, **settings)
                if name == "PLDS"
                else CountDynamicalSystem(p, observation=name, max_count=largest, n_quadrature=9, **settings)
            )
            held_out = model.fit(fit).leave_one_neuron_out(test)
            found[name].append((held_out.mse_reduction, held_out.nll_reduction))
    return {name: np.array(values) for name, values in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", choices=DATA, nargs="*", default=[*DATA])
    parser.add_argument("--components", type=int, nargs="*", default=None)
    parser.add_argument("--max-iter", type=int, default=None)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    components = options.components or ([2, 4] if options.quick else range(2, 9))
    for name in options.only:
        trials = DATA[name]()
        if options.quick:  # the neurons that fire most, and fewer sequences
            busy = np.argsort(-np.concatenate(trials).mean(axis=0))[:15]
            trials = [trial[:, np.sort(busy)] for trial in trials[:30]]
        everything = np.concatenate(trials)
        fano = everything.var(axis=0) / everything.mean(axis=0)
        print(f"\n{name}: {len(trials)} sequences of {len(trials[0])} bins, {everything.shape[1]} neurons, mean count "
              f"{everything.mean():.2f}, largest {everything.max():g}, median Fano {np.median(fano):.2f}")  # fmt: skip
        print(f"{'p':>3s} {'model':8s}{'% MSE':>9s}{'% NLL':>9s}{'% NLL - PLDS, 95 % interval':>34s}{'wall s':>9s}")
        for p in components:
            began = time.perf_counter()
            found = evaluate(trials, p, options.max_iter or (20 if options.quick else 60))
            seconds = time.perf_counter() - began
            for model, values in found.items():
                ahead = values[:, 1] - found["PLDS"][:, 1]
                half = stats.t.ppf(0.975, 3) * ahead.std(ddof=1) / 2.0
                interval = (
                    ""
                    if model == "PLDS"
                    else f"{ahead.mean():+10.2f}  [{ahead.mean() - half:+.2f}, {ahead.mean() + half:+.2f}]"
                )
                print(f"{p:3d} {model:8s}{values[:, 0].mean():9.2f}{values[:, 1].mean():9.2f}{interval:>34s}"
                      f"{seconds if model == 'PLDS' else np.nan:9.0f}".replace("nan", "   "), flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
