"""What a part of the demonstration has to show: sentences, the numbers they are made of, and a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pluri.cli.outputs import check_output
from pluri.cli.registry import UsageError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Part:
    """One part, done."""

    lines: list[str]
    numbers: dict[str, Any]
    file: Path


def prepare_folder(folder: Path, files: Sequence[str]) -> None:
    """Make the folder, and refuse it if the files cannot be written there; called before the work is done."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"--output must name a folder, got the file {str(folder)!r}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"--output must name a folder that can be made, got {str(folder)!r}: {error.strerror}"
        ) from error
    for name in files:
        check_output(folder / name, force=True)  # what an earlier run of the demonstration wrote is replaced


def new_figure(width: float, height: float) -> Figure:
    """A figure made without pyplot: no window system is asked for, and no figure stays open."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=150)
    FigureCanvasAgg(figure)
    figure.set_layout_engine("constrained", w_pad=0.1, h_pad=0.1)
    return figure


def write_figure(figure: Figure, path: Path) -> None:
    """Write a PNG file, or leave the old one as it was."""
    from pluri.validation import replacing

    with replacing(path) as file:
        figure.savefig(file, format="png")
