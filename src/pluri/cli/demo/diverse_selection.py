"""Ten of several hundred points: at random, and by a determinantal point process that avoids what is alike."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.cli.demo.part import Part, new_figure, write_figure
from pluri.processes.dpp import DPPSelector

FILE = "diverse_selection.png"
#: Sizes of the groups: the large ones take most places of a choice at random.
SIZES = (200, 130, 85, 55, 36, 24, 16, 11, 8, 6)
N_CHOSEN, N_RANDOM = len(SIZES), 1000
RADIUS, SPREAD = 5.0, 0.3


@dataclass(frozen=True)
class Choice:
    """Points, the group of each, and the rows chosen."""

    points: NDArray[np.float64]
    groups: NDArray[np.int64]
    diverse: NDArray[np.int64]
    random: NDArray[np.int64]

    def n_groups(self, rows: NDArray[np.int64]) -> int:
        return len(np.unique(self.groups[..., rows]))


def show(path: Path, seed: int) -> Part:
    """Choose, count, draw."""
    choice = run(seed)
    numbers = {
        "n_points": len(choice.points),
        "groups_found": choice.n_groups(choice.diverse),
        "groups_found_at_random": [choice.n_groups(rows) for rows in choice.random],
    }
    draw(choice, path)
    return Part(reading(numbers), numbers, path)


def run(seed: int) -> Choice:
    """Groups of very different sizes on a circle; neither choice is told of the groups."""
    rng = np.random.default_rng([seed, 2])
    groups = np.repeat(np.arange(len(SIZES)), SIZES)
    angle = 2 * np.pi * rng.permutation(len(SIZES))[groups] / len(SIZES)
    points = RADIUS * np.stack([np.cos(angle), np.sin(angle)], axis=1) + SPREAD * rng.normal(size=(len(groups), 2))
    diverse = np.asarray(DPPSelector(N_CHOSEN, method="map").select(points), dtype=np.int64)
    random = np.array([rng.choice(len(points), N_CHOSEN, replace=False) for _ in range(N_RANDOM)])
    return Choice(points, groups, diverse, random)


def reading(numbers: dict[str, Any]) -> list[str]:
    """What the numbers show."""
    at_random = np.array(numbers["groups_found_at_random"])
    return [
        f"{numbers['n_points']} points lie in {len(SIZES)} groups, the largest {SIZES[0]} strong, the smallest "
        f"{SIZES[-1]}. {N_CHOSEN} points that a determinantal point process chooses (it knows distances, not groups) "
        f"are from {numbers['groups_found']} groups; {N_CHOSEN} at random from {at_random.mean():.1f} on average, at "
        f"most {at_random.max()} in {len(at_random)} tries.",
        "So one chooses rows to label, headlines for a page, or test cases: pluri select does it to a table.",
    ]


def draw(choice: Choice, path: Path) -> None:
    """Both choices over the points."""
    from pluri.plotting import PALETTE
    from pluri.plotting.style import QUIET_COLOR

    figure = new_figure(9.6, 4.6)
    chosen = {"at random": (choice.random[0], PALETTE[5]), "diverse": (choice.diverse, PALETTE[0])}
    axes = figure.subplots(1, 2, sharex=True, sharey=True)
    for ax, (name, (rows, color)) in zip(axes, chosen.items()):
        ax.scatter(*choice.points.T, s=8, color=QUIET_COLOR, alpha=0.6, lw=0)
        ax.scatter(*choice.points[rows].T, s=70, color=color, ec="white", lw=0.8)
        ax.set_title(f"{N_CHOSEN} {name}: {choice.n_groups(rows)} of {len(SIZES)} groups")
        ax.set(aspect="equal", xticks=[], yticks=[])
        ax.spines[:].set_color("0.85")
    write_figure(figure, path)
