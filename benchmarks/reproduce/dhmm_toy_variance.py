"""Diversified HMM, toy problem 2: the same chain with emission variances from 0.025 to 4.925.

The paper prints curves without numbers: diversity of the transition rows (truth 0.531; HMM below it, diversified
HMM above it at every variance) and the number of states seen at least 50 times.

    python benchmarks/reproduce/dhmm_toy_variance.py          # 11 variances
    python benchmarks/reproduce/dhmm_toy_variance.py --full   # all 50 of the paper

Draws benchmarks/figures/dhmm_toy_variance.png.
"""

from __future__ import annotations

import sys

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from published import Report, figure_path
from toy_starts import measure, oracle

from pluri.datasets import make_toy_hmm
from pluri.metrics import bhattacharyya_diversity

N_RUNS = 10
MODELS = (("poor", 0.0), ("poor", 1.0), ("k-means", 0.0), ("k-means", 1.0))


def main() -> None:
    variances = 0.025 + 0.1 * np.arange(0, 50, 1 if "--full" in sys.argv else 5)
    variances = np.unique(np.append(variances, [0.525, 1.025, 2.525, 4.925]))
    truth = bhattacharyya_diversity(make_toy_hmm(random_state=0).transmat).mean
    report = Report("Toy 2: mean over 10 runs of accuracy / mean Bhattacharyya distance / states seen 50 times or more")
    results = np.empty((len(variances), len(MODELS), 3))
    best = np.empty(len(variances))
    for v, variance in enumerate(variances):
        toys = [make_toy_hmm(variance=variance, random_state=seed) for seed in range(N_RUNS)]
        best[v] = np.mean([oracle(toy) for toy in toys])
        for m, (how, strength) in enumerate(MODELS):
            results[v, m] = np.mean([measure(toy, how, strength, seed) for seed, toy in enumerate(toys)], axis=0)
        cells = "   ".join("{:.3f} / {:.3f} / {:.1f}".format(*results[v, m]) for m in range(len(MODELS)))
        if v == 0:
            report.note(
                f"variance  oracle   {'   '.join(f'{how}, {strength:g}'.ljust(21) for how, strength in MODELS)}"
            )
        report.note(f"{variance:8.3f}  {best[v]:.3f}    {cells}")
    above = {how: int(np.sum(results[:, m + 1, 1] > results[:, m, 1])) for how, m in (("poor", 0), ("k-means", 2))}
    report.note(
        f"diversified rows are more diverse at {above['poor']} of {len(variances)} variances from the poor start and "
        f"at {above['k-means']} from k-means;\nplain HMM below the truth ({truth:.3f}), as published, at "
        f"{int(np.sum(results[:, 0, 1] < truth))} (poor) and {int(np.sum(results[:, 2, 1] < truth))} (k-means)."
    )
    draw(variances, results, best, truth)
    report.close()


def draw(variances: np.ndarray, results: np.ndarray, best: np.ndarray, truth: float) -> None:
    figure, axes = plt.subplots(1, 3, figsize=(13, 3.8), constrained_layout=True)
    looks = (
        {"color": "#0072B2", "ls": "--"},
        {"color": "#D55E00", "ls": "--"},
        {"color": "#0072B2"},
        {"color": "#D55E00"},
    )
    for column, (axis, title) in enumerate(
        zip(axes, ("one-to-one accuracy", "mean Bhattacharyya distance of rows", "states seen at least 50 times"))
    ):
        for m, (how, strength) in enumerate(MODELS):
            label = f"{'diversified' if strength else 'plain'} HMM, {how} start"
            axis.plot(variances, results[:, m, column], marker="o", ms=3, label=label, **looks[m])
        axis.set(xlabel="emission variance", title=title)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].plot(variances, best, color="0.4", ls=":", label="true parameters")
    axes[1].axhline(truth, color="0.4", ls=":")
    axes[1].text(variances[-1], truth, "truth", ha="right", va="bottom", color="0.4")
    axes[0].legend(frameon=False, fontsize=8)
    figure.savefig(figure_path("dhmm_toy_variance.png"), dpi=120)
    plt.close(figure)


if __name__ == "__main__":
    main()
