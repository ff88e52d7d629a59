"""A picture of the user guide: one run of EM or ten, with and without the diversity prior, for twenty seeds.

    python docs/make_prior_figure.py            # writes docs/_static/prior.png, in about a minute

A cycle of four states, of which two look alike: only what follows tells them apart. A run of EM that goes astray gives
two states the same row of transitions, and labels half of the data wrongly.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from pluri.metrics import align_states, one_to_one_accuracy
from pluri.plotting import PALETTE, TransitionDisplay
from pluri.sequences import CategoricalHMM

TARGET = Path(__file__).parent / "_static" / "prior.png"
DATA_SEED = 6
N_SEEDS = 20
#: Settings of one fit after the other, each from where the one before ended.
STAGES: dict[str, list[dict[str, Any]]] = {
    "one run": [{}],
    "one run,\nprior from\nthe start": [{"diversity": 1.0}],
    "ten runs": [{"n_init": 10}],
    "ten runs,\nthen the\nprior": [{"n_init": 10}, {"n_init": 1, "diversity": 1.0}],
}


def cycle() -> CategoricalHMM:
    """States 0, 1, 2, 3 in turn; 0 and 2 emit the same symbol."""
    truth = CategoricalHMM(4)
    truth.startprob_ = np.full(4, 0.25)
    truth.transmat_ = 0.05 + 0.8 * np.eye(4)[[1, 2, 3, 0]]
    truth.emissionprob_ = 0.05 + 0.85 * np.eye(3)[[0, 1, 0, 2]]
    return truth


def fit(X: np.ndarray, stages: list[dict[str, Any]], seed: int) -> CategoricalHMM:
    model = CategoricalHMM(4, n_iter=3000, tol=1e-4, random_state=seed, warm_start=True)
    for options in stages:
        if hasattr(model, "history_"):
            model.transmat_ = 0.99 * model.transmat_ + 0.01 / 4  # EM never moves an exact zero
        model.set_params(**options).fit(X)
    return model


def main() -> None:
    truth = cycle()
    X, states = truth.sample(400, random_state=DATA_SEED)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a run that goes astray may not converge
        fits = {name: [fit(X, stages, seed) for seed in range(N_SEEDS)] for name, stages in STAGES.items()}
    accuracy = {
        name: np.array([one_to_one_accuracy(states, model.predict(X)) for model in models])
        for name, models in fits.items()
    }

    figure = Figure(figsize=(11.0, 3.8), dpi=110)
    FigureCanvasAgg(figure)
    figure.set_layout_engine("constrained", w_pad=0.08)
    axes = figure.subplots(1, 4, width_ratios=[1, 1, 1, 1.55])
    plain, best = fits["one run"], fits["ten runs,\nthen the\nprior"][0]
    collapsed = plain[int(np.argmin([model.log_det_ for model in plain]))]
    shown = {"truth": truth, "one run, a bad seed": collapsed, "ten runs, then the prior": best}
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
    _draw_accuracies(axes[3], accuracy)
    TARGET.parent.mkdir(exist_ok=True)
    figure.savefig(TARGET)
    for name, values in accuracy.items():
        log_det = np.median([model.log_det_ for model in fits[name]])
        print(
            f"{' '.join(name.split()):<30s} {(values < 0.8).sum():2d} of {N_SEEDS} seeds below 0.8; accuracy lowest "
            f"{values.min():.2f}, median {np.median(values):.2f}; median log det {log_det:.2f}"
        )
    print(f"{TARGET.name} written, {TARGET.stat().st_size / 1000:.0f} kB")


def _draw_accuracies(ax: Any, accuracy: dict[str, np.ndarray]) -> None:
    rng = np.random.default_rng(0)
    for place, (values, color) in enumerate(zip(accuracy.values(), PALETTE)):
        around = place + rng.uniform(-0.22, 0.22, len(values))
        ax.scatter(around, values, s=20, color=color, alpha=0.8, edgecolor="white", lw=0.4)
    ax.set_xticks(range(len(accuracy)), list(accuracy), fontsize=9)
    ax.set(xlim=(-0.5, len(accuracy) - 0.5), ylim=(0.35, 1.0), ylabel="accuracy")
    ax.set_title(f"the same data, {N_SEEDS} seeds", fontsize=11)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="y", color="0.9")
    ax.set_axisbelow(True)


if __name__ == "__main__":
    main()
