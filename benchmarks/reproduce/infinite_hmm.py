"""Infinite hidden Markov model: a series of four states, and six motion-capture sequences against their labels.

The series (500 steps, eight symbols, four states that never stay) is that of the infinite HMM toolbox's demonstration;
the chain of highest mean log joint density among eight is compared with the truth, for several data seeds. The
motion-capture data (six sequences, 12 exercises, ``mocap6_exercise.npz`` in PLURI_DATA) are segmented without their
labels, and each model's mean Hamming distance after optimal matching is printed: sticky, not sticky or with explicit
durations, Gaussian rows (order 0) or autoregressive ones (order 1), with the defaults of the library. That chains need
a better start than random states was seen on these data, from the log joint density of the labels; which start, and how
many states, was then chosen on simulated series and on other motions. These sequences are those of Hughes, Fox and
Sudderth (2012, NIPS) and of Hughes, Stephenson and Sudderth (2015, NIPS); no figure is quoted from there, because none
could be checked against the papers. The toolbox of the first (NPBayesHMM) has a program that draws the distances of
mixtures, HMMs and its own model, on an axis from 0.15 to 0.75, but not the results that it reads.

    python benchmarks/reproduce/infinite_hmm.py            # about ten minutes
    python benchmarks/reproduce/infinite_hmm.py --quick    # two data seeds, shorter chains
    python benchmarks/reproduce/infinite_hmm.py series     # one part: series or mocap

Draws benchmarks/figures/infinite_hmm.png, the six panels of the demonstration.
"""

from __future__ import annotations

import argparse
from itertools import product
from typing import Any

import matplotlib

matplotlib.use("Agg")

import numpy as np
from published import Report, figure_path, run_if_data

from pluri.datasets import load_mocap6
from pluri.metrics import one_to_one_accuracy
from pluri.plotting import SampledStatesDisplay
from pluri.sequences import InfiniteHMM

TRANSITION = np.array([[0, 0.5, 0.5, 0], [0, 0, 0.5, 0.5], [0.5, 0, 0, 0.5], [0.5, 0.5, 0, 0]])
EMISSION = np.array([[1, 0, 0, 0, 0, 0, 1, 1], [1, 1, 1, 0, 0, 0, 0, 0], [0, 0, 1, 1, 1, 0, 0, 0],
                     [0, 0, 0, 0, 1, 1, 1, 0]]) / 3  # fmt: skip

MOTION_FAMILIES = {"autoregressive": 1, "gaussian": 0}
#: Models of motion, with the defaults of the library but for what is said here.
MOTION_MODELS: dict[str, dict[str, Any]] = {
    "sticky": {},
    "not sticky": {"stickiness": 0.0},
    "negative binomial durations": {"inference": "weak_limit", "durations": "negative_binomial"},
}


def simulate(seed: int, n_steps: int = 500) -> tuple[np.ndarray, np.ndarray]:
    """Symbols and states of the series."""
    rng = np.random.default_rng(seed)
    states = np.zeros(n_steps, dtype=np.int64)
    for t in range(1, n_steps):
        states[t] = rng.choice(4, p=TRANSITION[states[t - 1]])
    return np.array([rng.choice(8, p=EMISSION[k]) for k in states])[:, None], states


def four_states(quick: bool) -> None:
    report = Report("Four states, eight symbols, 500 steps: the best of eight chains (specification: 4 states, 0.80)")
    found = 0
    seeds = range(2 if quick else 8)
    for seed in seeds:
        symbols, states = simulate(seed)
        model = InfiniteHMM(
            "categorical", n_chains=8, n_warmup=250, n_draws=250, stickiness=0.0, random_state=seed
        ).fit(symbols)
        modal = int(np.argmax(model.n_components_posterior()))
        accuracy = one_to_one_accuracy(states, model.labels_)
        found += modal == 4 and accuracy >= 0.8
        report.row(f"data seed {seed}: modal number of states of the best chain", 4.0, float(modal))
        report.row(f"data seed {seed}: matched accuracy of the consensus", None, accuracy)
        modal_all = [int(np.bincount(chain).argmax()) for chain in model.n_states_trace_]
        report.note(f"    modal number of states of the eight chains: {modal_all}")
        if seed == 0:
            display = SampledStatesDisplay.from_estimator(model, title="Infinite HMM, four true states")
            display.figure_.savefig(figure_path("infinite_hmm.png"), dpi=120)
    report.note(f"four states and at least 0.80: {found} of {len(seeds)} data sets")
    report.close()


def mocap(quick: bool) -> None:
    data = load_mocap6()
    X = data.X / data.X.std(axis=0)
    report = Report("mocap6: mean Hamming distance to 12 labelled exercises, after optimal matching")
    length = {"n_warmup": 50, "n_draws": 50, "n_chains": 2} if quick else {}
    for (family, order), (name, settings) in product(MOTION_FAMILIES.items(), MOTION_MODELS.items()):
        own = {"order": order, "random_state": 0, **settings}
        model = InfiniteHMM(family, **own, **length).fit(X, lengths=data.lengths)
        draws = model.trace_["labels"][model.best_chain_][:: max(1, model.n_draws // 20)]
        distances = [1 - one_to_one_accuracy(data.states, draw.astype(np.int64)) for draw in draws]
        mean, spread = float(np.mean(distances)), float(np.std(distances))
        report.row(f"order {order}, {name}: draws of the best chain", None, mean, spread)
        consensus = 1 - one_to_one_accuracy(data.states, model.labels_)
        report.row(f"order {order}, {name}: consensus, {model.n_states_} states", None, consensus)
        densities = model.log_joint_trace_.mean(axis=1)
        report.note("    mean log joint density of the chains: " + ", ".join(f"{value:.0f}" for value in densities))
    for family, order in MOTION_FAMILIES.items():
        for name, stickiness in (("sticky", "learn"), ("not sticky", 0.0)):
            bound = InfiniteHMM(family, inference="vb", order=order, stickiness=stickiness, random_state=0)
            bound.fit(X, lengths=data.lengths)
            distance = 1 - one_to_one_accuracy(data.states, bound.labels_)
            report.row(f"order {order}, {name}: variational, {bound.n_states_} states", None, distance)
    report.close()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("part", nargs="?", choices=["series", "mocap"])
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    if arguments.part != "mocap":
        four_states(arguments.quick)
    if arguments.part != "series":
        mocap(arguments.quick)


if __name__ == "__main__":
    run_if_data(main)
