"""The panels that a drawing of one sequence is made of; all share the time axis, step ``t`` centred on ``x = t``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pluri.plotting.style import HEATMAP, text_color, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_LINES = 6
POINTS_PER_LETTER = 5.2
UNKNOWN = (0.93, 0.93, 0.93)


def draw_observations(ax: Axes, observations: NDArray[np.generic], colors: list[str]) -> None:
    """One to six columns as lines (a single one with points in the colours of the states), more as an image."""
    n_steps, n_features = observations.shape
    time = np.arange(n_steps)
    values = observations.astype(np.float64)
    if n_features > MOST_LINES:
        ax.imshow(values.T, aspect="auto", cmap=HEATMAP, interpolation="nearest", origin="upper")
        ax.set_ylabel("feature")
        return
    for feature, shade in enumerate(np.linspace(0.35, 0.75, n_features)):
        ax.plot(time, values[:, feature], color=str(shade), linewidth=0.9 if n_features == 1 else 1.3, zorder=1)
    if n_features == 1:
        ax.scatter(time, values[:, 0], c=colors, s=26 if n_steps <= 150 else 10, linewidths=0, zorder=2)
    ax.set_ylabel("observation")
    tidy(ax, grid="y")


def draw_posterior(ax: Axes, posterior: NDArray[np.float64], colors: list[str]) -> None:
    """Posterior probabilities as stacked areas."""
    # A step at both ends, so that the first and the last column are as wide as the others.
    n_steps = posterior.shape[0]
    time = np.concatenate([[-0.5], np.arange(n_steps), [n_steps - 0.5]])
    padded = np.concatenate([posterior[:1], posterior, posterior[-1:]])
    ax.stackplot(time, padded.T, colors=colors[: posterior.shape[1]], step="mid", linewidth=0)
    ax.set(ylim=(0, 1), yticks=[0, 1], ylabel="posterior")
    ax.spines[["top", "right"]].set_visible(False)


def draw_strip(ax: Axes, labels: NDArray[np.int64], colors: list[str], names: list[str], title: str) -> None:
    """States as a strip of colours; a run that is wide enough bears its name, unknown steps are pale grey."""
    from matplotlib.colors import to_rgb

    n_steps = labels.size
    row = np.array([to_rgb(colors[state]) if state >= 0 else UNKNOWN for state in labels])
    ax.imshow(row[None], aspect="auto", extent=(-0.5, n_steps - 0.5, 0, 1), interpolation="nearest")
    points = ax.bbox.width / ax.figure.dpi * 72 / n_steps
    starts = np.flatnonzero(np.diff(labels, prepend=-2))
    stops = np.append(starts[1:], n_steps)
    fits = (
        np.array([len(names[state]) for state in labels[starts]]) * POINTS_PER_LETTER + 3 <= (stops - starts) * points
    )
    # Names on most runs or on none: a few here and there would look like marks.
    for start, stop in zip(starts[fits], stops[fits]) if fits.mean() >= 0.5 else ():
        state = int(labels[start])
        if state >= 0:
            color = text_color(colors[state])
            ax.text((start + stop - 1) / 2, 0.47, names[state], ha="center", va="center", color=color, fontsize=8)
    ax.set(ylim=(0, 1), yticks=[])
    ax.set_ylabel(title, rotation=0, ha="right", va="center")
    ax.tick_params(axis="x", length=2)
    ax.spines[:].set_visible(False)


def draw_tokens(ax: Axes, tokens: list[str]) -> None:
    """Write a word under each step, upright while there is room."""
    crowded = max(map(len, tokens)) * len(tokens) > 90
    ax.set_xticks(
        range(len(tokens)),
        tokens,
        rotation=60 if crowded else 0,
        ha="right" if crowded else "center",
        rotation_mode="anchor",
        fontsize=9 if len(tokens) <= 40 else 7,
    )
    ax.tick_params(axis="x", length=0)
