"""Twenty fits of a hidden Markov model: which have collapsed, how one sees it without labels, and what repairs it.

The truth is a cycle of six states, three of which emit the same symbol: only what comes before and after tells them
apart. EM from a random start often gives two of them the same future. Their rows of the transition matrix are then
nearly equal, and its log determinant (``log_det_``) lies far below 0.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.cli.demo.part import Part, new_figure, write_figure
from pluri.metrics import align_states, one_to_one_accuracy
from pluri.sequences import CategoricalHMM

FILE = "collapsed_fits.png"
N_STATES, N_OBSERVATIONS, N_FITS, N_RESTARTS = 6, 400, 20, 10
#: A fit is flagged if its ``log_det_`` is smaller: the rows then span less than a twentieth of the volume that
#: rows without anything in common would span.
FLAG_BELOW = -3.0


@dataclass(frozen=True)
class Fits:
    """The fits, and those that replace the flagged ones."""

    X: NDArray[Any]
    states: NDArray[np.int64]
    truth: CategoricalHMM
    models: list[CategoricalHMM]
    repaired: dict[int, CategoricalHMM]

    @property
    def log_det(self) -> NDArray[np.float64]:
        return np.array([model.log_det_ for model in self.models])

    @property
    def flagged(self) -> NDArray[np.bool_]:
        return self.log_det < FLAG_BELOW

    def accuracy(self, model: CategoricalHMM) -> float:
        return one_to_one_accuracy(self.states, model.predict(self.X))


def show(path: Path, seed: int, n_fits: int = N_FITS) -> Part:
    """Fit, repair, draw."""
    fits = run(seed, n_fits)
    numbers = judge(fits)
    draw(fits, path)
    return Part(reading(numbers), numbers, path)


def true_model() -> CategoricalHMM:
    """A cycle of six states; every second one emits the same symbol."""
    truth = CategoricalHMM(N_STATES)
    truth.startprob_ = np.full(N_STATES, 1 / N_STATES)
    truth.transmat_ = 0.02 + 0.88 * np.eye(N_STATES)[[1, 2, 3, 4, 5, 0]]
    truth.emissionprob_ = 0.02 + 0.92 * np.eye(4)[[0, 1, 0, 2, 0, 3]]
    return truth


def run(seed: int, n_fits: int = N_FITS) -> Fits:
    """Fit from several seeds, and the flagged ones again as the best of ten starts."""
    truth = true_model()
    X, states = truth.sample(N_OBSERVATIONS, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a fit that goes wrong may need more iterations: that is the point
        models = [CategoricalHMM(N_STATES, random_state=start).fit(X) for start in range(n_fits)]
        fits = Fits(X, states, truth, models, {})
        for start in np.flatnonzero(fits.flagged).tolist():
            again = CategoricalHMM(N_STATES, n_init=N_RESTARTS, random_state=n_fits + start)
            fits.repaired[start] = again.fit(X)
    return fits


def judge(fits: Fits) -> dict[str, Any]:
    """What was flagged, and how well each fit labels the data; the labels were used for nothing else."""
    accuracy = np.array([fits.accuracy(model) for model in fits.models])
    repaired = {start: fits.accuracy(model) for start, model in fits.repaired.items()}
    return {
        "log_det": fits.log_det.tolist(),
        "flagged": np.flatnonzero(fits.flagged).tolist(),
        "accuracy": accuracy.tolist(),
        "repaired_log_det": {start: model.log_det_ for start, model in fits.repaired.items()},
        "repaired_accuracy": repaired,
    }


def reading(numbers: dict[str, Any]) -> list[str]:
    """What the numbers show, in sentences made from the numbers themselves."""
    accuracy, flagged = np.array(numbers["accuracy"]), np.array(numbers["flagged"], dtype=int)
    n_fits, sound = len(accuracy), np.delete(accuracy, flagged)
    lines = [
        f"The truth is a cycle of {N_STATES} states, three of which look alike. The same {N_OBSERVATIONS} "
        f"observations, {n_fits} seeds, default settings."
    ]
    if not len(flagged):
        lines.append(f"No fit was flagged (log_det_ < {FLAG_BELOW:g}); accuracies {_range(accuracy)}.")
        return lines
    lines.append(
        f"{len(flagged)} of {n_fits} fits are flagged: log_det_ < {FLAG_BELOW:g}, some states have the same future. No "
        f"label was needed to see it. They label {_range(accuracy[flagged])} of the data correctly"
        + (f", the others {_range(sound)}." if len(sound) else ".")
    )
    repaired = np.array(list(numbers["repaired_accuracy"].values()))
    left = sum(value < FLAG_BELOW for value in numbers["repaired_log_det"].values())
    lines.append(
        f"Fitted again as the best of {N_RESTARTS} starts (n_init={N_RESTARTS}), "
        + ("none of them is" if not left else f"{left} of them {'is' if left == 1 else 'are'}")
        + f" flagged, and they label {_range(repaired)} correctly."
    )
    return lines


def _range(values: NDArray[np.float64]) -> str:
    low, high = f"{values.min():.0%}", f"{values.max():.0%}"
    return low if low == high else f"{low} to {high}"


def draw(fits: Fits, path: Path) -> None:
    """The true transitions, the worst fit, the same after restarts, and all fits by their ``log_det_``."""
    from pluri.plotting import TransitionDisplay
    from pluri.priors import log_determinant

    worst = int(np.argmin(fits.log_det))
    shown = {"truth": fits.truth, f"one start (seed {worst})": fits.models[worst]}
    if worst in fits.repaired:
        shown[f"best of {N_RESTARTS} starts"] = fits.repaired[worst]
    figure = new_figure(13.4, 3.8)
    axes = figure.subplots(1, len(shown) + 1, width_ratios=[1.0] * len(shown) + [1.9])
    for ax, (name, model) in zip(axes, shown.items()):
        order = align_states(fits.states, model.predict(fits.X), n_true=N_STATES, n_pred=N_STATES).order
        names = np.empty(N_STATES, dtype=object)
        names[order] = [str(state) for state in range(N_STATES)]
        log_det = log_determinant(model.transmat_)
        title = f"{name}\nlog det {log_det:.1f}" + (", flagged" if log_det < FLAG_BELOW else "")
        TransitionDisplay.from_estimator(
            model, order=order, state_names=names, ax=ax, title=title, colorbar=False, annotate=False
        )
        ax.title.set_fontsize(11)
        if ax is not axes[0]:
            ax.set_ylabel("")
    _draw_fits(axes[-1], fits)
    write_figure(figure, path)


def _draw_fits(ax: Any, fits: Fits) -> None:
    """A mark for each fit, the lowest ``log_det_`` first, with its accuracy; a ring where it was fitted again."""
    from pluri.plotting import PALETTE
    from pluri.plotting.style import QUIET_COLOR, tidy

    sound, flagged, repaired = PALETTE[0], PALETTE[5], PALETTE[2]
    seen: set[str] = set()

    def mark(place: int, model: CategoricalHMM, name: str, below: bool, **style: Any) -> None:
        ax.scatter(place, model.log_det_, zorder=2, label=None if name in seen else name, **style)
        seen.add(name)
        ax.annotate(
            f"{100 * fits.accuracy(model):.0f}", (place, model.log_det_), xytext=(0, -9 if below else 9),
            textcoords="offset points", ha="center", va="center", fontsize=8.5,
        )  # fmt: skip

    for place, start in enumerate(np.argsort(fits.log_det).tolist()):
        model = fits.models[start]
        if not fits.flagged[start]:
            mark(place, model, "fit", below=False, s=34, color=sound)
            continue
        mark(place, model, "flagged fit", below=True, s=44, color=flagged, marker="X", lw=0)
        again = fits.repaired[start]
        ax.plot([place, place], [model.log_det_, again.log_det_], color=QUIET_COLOR, lw=0.8, ls=":", zorder=1)
        mark(place, again, f"best of {N_RESTARTS} starts", below=False, s=44, facecolor="none", ec=repaired, lw=1.6)
    ax.axhline(FLAG_BELOW, color="0.4", lw=1, ls="--")
    ax.margins(y=0.12)
    ax.set(ylabel="log_det_ (needs no labels)", xlabel="fits (number: % of the data labelled correctly)", xticks=[])
    ax.set_title(f"the same data, {len(fits.models)} seeds", fontsize=11)
    ax.legend(loc="lower right", fontsize=9)
    tidy(ax, grid="y")
