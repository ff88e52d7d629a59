"""Diversified HMM, toy problem 1: five Gaussian states, 300 sequences of 6 steps.

The paper shows one run; its transition matrix is only an image, so a substitute with the same mean Bhattacharyya
distance (0.531) is used, and ten data sets with one start each.

    python benchmarks/reproduce/dhmm_toy.py
"""

from __future__ import annotations

import numpy as np
from published import Report
from toy_starts import STARTS, measure, oracle

from pluri.datasets import make_toy_hmm

N_RUNS = 10
PUBLISHED = {("poor", 0.0): 0.4117, ("poor", 1.0): 0.4728}


def main() -> None:
    toys = [make_toy_hmm(random_state=seed) for seed in range(N_RUNS)]
    report = Report("Toy 1: one-to-one accuracy, mean diversity of the transition rows, states seen 50 times or more")
    report.row("true parameters, Viterbi", 1.0, float(np.mean([oracle(toy) for toy in toys])))
    for how in STARTS:
        for strength in (0.0, 1.0, 10.0, 100.0) if how == "poor" else (0.0, 1.0):
            runs = np.array([measure(toy, how, strength, seed) for seed, toy in enumerate(toys)])
            name = f"{how} start, " + (f"diversity {strength:g}" if strength else "plain HMM")
            report.row(f"{name}: accuracy", PUBLISHED.get((how, strength)), runs[:, 0].mean(), runs[:, 0].std(ddof=1))
            report.row(f"{name}: mean Bhattacharyya distance", None, runs[:, 1].mean())
            report.row(f"{name}: states found", None, runs[:, 2].mean())
    report.note(
        "The problem is separable: with a sensible start both models are nearly perfect; the published 0.41 and 0.47\n"
        "are local optima of a poor start. There the prior spreads the rows; what it does to the accuracy is within\n"
        "the spread over runs."
    )
    report.close()


if __name__ == "__main__":
    main()
