"""Printing a published figure beside ours."""

from __future__ import annotations

import json
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

warnings.simplefilter("ignore")


class Report:
    """Rows of (what, published, ours); a published value of None means that the paper gives no number."""

    def __init__(self, title: str) -> None:
        self.started = time.perf_counter()
        print(f"\n{title}\n{'-' * len(title)}")
        print(f"{'':<62s} {'published':>10s} {'ours':>16s} {'difference':>11s}")

    def row(self, what: str, published: float | None, ours: float, spread: float | None = None) -> None:
        shown = f"{ours:.4f}" + ("" if spread is None else f" +- {spread:.4f}")
        paper = "-" if published is None else f"{published:.4f}"
        gap = "-" if published is None else f"{ours - published:+.4f}"
        print(f"{what:<62s} {paper:>10s} {shown:>16s} {gap:>11s}", flush=True)

    def note(self, text: str) -> None:
        print(text, flush=True)

    def close(self) -> None:
        print(f"({time.perf_counter() - self.started:.0f} s)")


def kept(path: Path | None, which: dict[str, Any], compute: Callable[[], Any]) -> Any:
    """The result of `compute`; from a file of results (a line of JSON each) if an earlier run has it for `which`.

    So a long experiment goes on where it was stopped. Without a path nothing is kept.
    """
    if path is not None and path.exists():
        for line in path.read_text().splitlines():
            row = json.loads(line)
            if row["which"] == which:
                return row["result"]
    result = compute()
    if path is not None:
        with path.open("a") as file:
            file.write(json.dumps({"which": which, "result": result}) + "\n")
    return result


def half_width(values: Any) -> Any:
    """Half the width of a 95 % interval of the mean over the first axis (t distribution); NaN for a single value."""
    from scipy.stats import t

    array = np.asarray(values, dtype=float)
    if len(array) < 2:
        return np.full(array.shape[1:], np.nan)
    return t.ppf(0.975, len(array) - 1) * array.std(axis=0, ddof=1) / np.sqrt(len(array))


def run_if_data(main: Callable[[], None]) -> None:
    """Run an experiment on files that cannot be shipped; say what is missing, and do nothing, without them."""
    try:
        main()
    except FileNotFoundError as error:
        print(f"skipped: {error}")


def figure_path(name: str) -> Path:
    """Where figures go: PLURI_FIGURES, or benchmarks/figures."""
    folder = Path(os.environ.get("PLURI_FIGURES", Path(__file__).parent.parent / "figures"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder / name
