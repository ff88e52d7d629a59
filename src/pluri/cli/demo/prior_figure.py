"""The figure of ``pluri demo prior``: transition matrices, state frequencies, and the spread over data sets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pluri.cli.demo.part import new_figure, write_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pluri.cli.demo.prior import Outcome


def draw(example: dict[str, Any], outcomes: list[Outcome], path: Path) -> None:
    """Draw the models of one data set, and the accuracies of all, into a PNG file.

    Parameters
    ----------
    example : dict
        The data set under "toy", and a fitted model under the name of each model.
    outcomes : list of Outcome
        All fits.
    path : Path
        The file.
    """
    from pluri.metrics import align_states, one_to_one_accuracy
    from pluri.plotting import StateHistogramDisplay, TransitionDisplay

    toy = example["toy"]
    models = {name: model for name, model in example.items() if name != "toy"}
    k = len(toy.startprob)
    names = [str(state + 1) for state in range(k)]
    figure = new_figure(12.0, 7.8)
    grid = figure.add_gridspec(2, 6, height_ratios=[1.15, 1.0])
    heatmaps = [figure.add_subplot(grid[0, 2 * place : 2 * place + 2]) for place in range(3)]

    TransitionDisplay.from_matrix(
        toy.transmat, state_names=names, ax=heatmaps[0], title="true transition probabilities", colorbar=False
    )
    labels = {}
    for (name, model), ax in zip(models.items(), heatmaps[1:]):
        states = model.predict(toy.X, toy.lengths)
        labels[name] = states
        order = align_states(toy.states, states, n_true=k, n_pred=k).order
        accuracy = one_to_one_accuracy(toy.states, states)
        renamed = np.empty(k, dtype=object)
        renamed[order] = names
        TransitionDisplay.from_estimator(
            model,
            order=order,
            state_names=renamed,
            ax=ax,
            title=f"{_full(name)}, accuracy {accuracy:.2f}",
            colorbar=ax is heatmaps[-1],
        )
    for ax in heatmaps[1:]:
        ax.set_ylabel("")

    histogram = StateHistogramDisplay.from_predictions(
        toy.states,
        {_full(name): states for name, states in labels.items()},
        n_states=k,
        state_names=names,
        ax=figure.add_subplot(grid[1, :3]),
        title="how often each state is used",
    )
    histogram.ax_.set_ylabel("number of samples")
    highest = max(counts.max() for counts in histogram.counts.values())
    histogram.ax_.set_ylim(0, 1.3 * highest)  # room for the legend
    histogram.ax_.legend(ncols=3, loc="upper center", facecolor="white", edgecolor="none", framealpha=1.0)
    _draw_accuracies(figure.add_subplot(grid[1, 3:]), outcomes, list(models))
    figure.suptitle(
        "Five-state toy problem: first data set from the poor start; below right, all data sets and both starts",
        fontsize=12,
        fontweight="bold",
    )
    write_figure(figure, path)


def _full(name: str) -> str:
    return name if name.endswith("HMM") else f"{name} HMM"


def _draw_accuracies(ax: Axes, outcomes: list[Outcome], models: list[str]) -> None:
    """A dot for each fit, a line for each data set from one model to the other, a bar at the mean."""
    from pluri.cli.demo.prior import STARTS
    from pluri.plotting.style import PALETTE, QUIET_COLOR, tidy

    places, ticks = [], []
    for group, start in enumerate(STARTS):
        columns = []
        for number, model in enumerate(models):
            chosen = sorted(
                (outcome for outcome in outcomes if (outcome.start, outcome.model) == (start, model)),
                key=lambda outcome: outcome.data_set,
            )
            columns.append(np.array([outcome.accuracy for outcome in chosen]))
            places.append(group * 2.6 + number)
            ticks.append(_full(model))
        left, right = places[-2], places[-1]
        for before, after in zip(*columns):
            ax.plot([left, right], [before, after], color=QUIET_COLOR, linewidth=0.9, zorder=1)
        for place, values, color in zip((left, right), columns, PALETTE):
            ax.scatter(
                np.full(len(values), place), values, color=color, s=26, zorder=2, edgecolor="white", linewidth=0.6
            )
            ax.hlines(values.mean(), place - 0.16, place + 0.16, color=color, linewidth=3, zorder=3)
            side = -1 if place == left else 1
            ax.text(
                place + side * 0.2,
                values.mean(),
                f"{values.mean():.2f}",
                ha="right" if side < 0 else "left",
                va="center",
                color=color,
                fontweight="bold",
            )
        ax.text((left + right) / 2, 1.05, f"{start} start", ha="center", va="bottom", fontsize=10)
    ax.set_xticks(places, ticks)
    ax.set_xlim(-0.6, places[-1] + 0.6)
    lowest = min(outcome.accuracy for outcome in outcomes)
    ax.set_yticks(np.arange(0.0, 1.01, 0.2))
    ax.set_ylim(np.floor(5 * lowest) / 5, 1.13)
    ax.tick_params(axis="x", length=0)
    ax.set(ylabel="one-to-one accuracy", title="accuracy on each data set (bar: mean)")
    tidy(ax, grid="y")
