"""The picture of the README: one run or ten, with and without the diversity prior, for forty seeds.

    python docs/make_readme_figure.py            # writes docs/_static/readme.png, in about a minute

A cycle of four states, of which two look alike: only what follows tells them apart. A run of EM that goes astray gives
two states the same row of transitions, and labels half of the data wrongly.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from pluri.metrics import align_states, one_to_one_accuracy
from pluri.plotting import PALETTE, TransitionDisplay
from pluri.sequences import CategoricalHMM

TARGET = Path(__file__).parent / "_static" / "readme.png"
N_SEEDS = 40
SETTINGS = {
    "one run": {},
    "one run,\nprior": {"diversity": 1.0},
    "ten runs": {"n_init": 10},
    "ten runs,\nprior": {"n_init": 10, "diversity": 1.0},
}


def cycle() -> CategoricalHMM:
    """States 0, 1, 2, 3 in turn; 0 and 2 emit the same symbol."""
    truth = CategoricalHMM(4)
    truth.startprob_ = np.full(4, 0.25)
    truth.transmat_ = 0.05 + 0.8 * np.eye(4)[[1, 2, 3, 0]]
    truth.emissionprob_ = 0.05 + 0.85 * np.eye(3)[[0, 1, 0, 2]]
    return truth


def main() -> None:
    truth = cycle()
    X, states = truth.sample(400, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a run that goes astray may not converge
        fits = {
            name: [CategoricalHMM(4, n_iter=1000, random_state=seed, **options).fit(X) for seed in range(N_SEEDS)]
            for name, options in SETTINGS.items()
        }
    accuracy = {
        name: np.array([one_to_one_accuracy(states, model.predict(X)) for model in models])
        for name, models in fits.items()
    }

    figure = Figure(figsize=(11.0, 3.7), dpi=110)
    FigureCanvasAgg(figure)
    figure.set_layout_engine("constrained", w_pad=0.08)
    axes = figure.subplots(1, 4, width_ratios=[1, 1, 1, 1.55])
    plain, best = fits["one run"], fits["ten runs,\nprior"][0]
    collapsed = plain[int(np.argmin([model.log_det_ for model in plain]))]
    shown = {"truth": truth, "one run, a bad seed": collapsed, "ten runs and the prior": best}
    for ax, (name, model) in zip(axes, shown.items()):
        order = align_states(states, model.predict(X), n_true=4, n_pred=4).order
        names = np.empty(4, dtype=object)
        names[order] = list("0123")
        log_det = getattr(model, "log_det_", None)
        title = name if log_det is None else f"{name}\nlog det {log_det:.1f}"
        TransitionDisplay.from_estimator(model, order=order, state_names=names, ax=ax, title=title, colorbar=False)
        ax.title.set_fontsize(11)
        if ax is not axes[0]:
            ax.set_ylabel("")

    ax, rng = axes[3], np.random.default_rng(0)
    for place, (values, color) in enumerate(zip(accuracy.values(), PALETTE)):
        ax.scatter(
            place + rng.uniform(-0.22, 0.22, N_SEEDS), values, s=18, color=color, alpha=0.8, edgecolor="white", lw=0.4
        )
    ax.set_xticks(range(len(accuracy)), list(accuracy))
    ax.set(xlim=(-0.5, len(accuracy) - 0.5), ylim=(0.35, 1.0), ylabel="accuracy")
    ax.set_title(f"the same data, {N_SEEDS} seeds", fontsize=11)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="y", color="0.9")
    ax.set_axisbelow(True)
    TARGET.parent.mkdir(exist_ok=True)
    figure.savefig(TARGET)
    for name, values in accuracy.items():
        print(
            f"{' '.join(name.split()):<16s} lowest {values.min():.2f}, median {np.median(values):.2f}, "
            f"{(values < 0.8).sum()} of {N_SEEDS} seeds below 0.8"
        )
    distances = {name: np.median([model.log_det_ for model in models]) for name, models in fits.items()}
    print("median log det:", {" ".join(name.split()): round(float(value), 2) for name, value in distances.items()})
    print(f"{TARGET} written, {TARGET.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
