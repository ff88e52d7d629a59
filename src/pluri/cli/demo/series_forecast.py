"""Two noisy sensors with gaps: what was missing, and what comes next, with intervals held against what happened."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pluri.cli.demo.part import Part, new_figure, write_figure
from pluri.dynamics import LinearDynamicalSystem

if TYPE_CHECKING:
    from pluri.dynamics import Forecast

FILE = "series_forecast.png"
N_SERIES, N_SEEN, N_AHEAD, LEVEL = 12, 240, 40, 0.9
GAP = slice(110, 140)


@dataclass(frozen=True)
class Series:
    """Arrays (series, steps, sensors): all rows, those that the model saw (NaN in the gap), what it filled in."""

    whole: NDArray[np.float64]
    seen: NDArray[np.float64]
    filled: NDArray[np.float64]
    std: NDArray[np.float64]
    forecast: Forecast


def show(path: Path, seed: int) -> Part:
    """Fit, fill, forecast, draw."""
    series = run(seed)
    coming, future = series.forecast, series.whole[:, N_SEEN:]
    numbers = {
        "covered": float(((coming.lower <= future) & (future <= coming.upper)).mean()),
        "error": _rms(coming.mean - future),
        "error_of_last_value": _rms(series.whole[:, N_SEEN - 1 : N_SEEN] - future),
        "error_in_gap": _rms((series.filled - series.whole[:, :N_SEEN])[:, GAP]),
        "error_of_straight_line": _rms(_straight(series.whole) - series.whole[:, GAP]),
    }
    draw(series, path)
    return Part(reading(numbers), numbers, path)


def run(seed: int) -> Series:
    """Slow swings with noise in their movement and in both sensors; a gap of thirty rows in each series."""
    rng = np.random.default_rng([seed, 5])
    angle = 2 * np.pi / 55
    turn = 0.995 * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    state = rng.normal(0, 2.0, size=(N_SERIES, 2))
    whole = np.empty((N_SERIES, N_SEEN + N_AHEAD, 2))
    for step in range(N_SEEN + N_AHEAD):
        state = state @ turn.T + rng.normal(0, 0.12, state.shape)
        whole[:, step] = state @ np.array([[1.0, -0.4], [0.2, 0.9]]) + [10.0, 4.0] + rng.normal(0, 0.3, state.shape)
    seen = whole[:, :N_SEEN].copy()
    seen[:, GAP] = np.nan
    sequences = list(seen)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # more iterations would change nothing that is drawn
        model = LinearDynamicalSystem(2, random_state=seed).fit(sequences)
    filled, std = (np.reshape(rows, seen.shape) for rows in model.impute(sequences, return_std=True))
    return Series(whole, seen, filled, std, model.forecast(sequences, N_AHEAD, level=LEVEL))


def _straight(whole: NDArray[np.float64]) -> NDArray[np.float64]:
    """The gaps by straight lines between their ends."""
    before, after = whole[:, GAP.start - 1, None], whole[:, GAP.stop, None]
    share = (np.arange(GAP.start, GAP.stop) - GAP.start + 1) / (GAP.stop - GAP.start + 1)
    return np.asarray(before + share[:, None] * (after - before))


def _rms(errors: NDArray[np.float64]) -> float:
    return float(np.sqrt((errors**2).mean()))


def reading(numbers: dict[str, Any]) -> list[str]:
    """What the numbers show."""
    return [
        f"{N_SERIES} series of two sensors, each with a gap of {GAP.stop - GAP.start} rows. The gaps are filled with "
        f"an error of {numbers['error_in_gap']:.2f} (straight lines: {numbers['error_of_straight_line']:.2f}); the "
        "noise of a sensor is 0.30.",
        f"Of the {N_AHEAD} rows that came after each, {numbers['covered']:.0%} of the values lie in their "
        f"{LEVEL:.0%} intervals; error {numbers['error']:.2f} (of the last value: "
        f"{numbers['error_of_last_value']:.2f}).",
    ]


def draw(series: Series, path: Path) -> None:
    """Both sensors of the first series: seen, filled in, forecast, and what came."""
    figure = new_figure(11.0, 5.0)
    coming = series.forecast
    ahead = np.arange(N_SEEN, N_SEEN + N_AHEAD)
    gap = np.arange(GAP.start, GAP.stop)
    wide = 1.6448536269514722  # of a normal distribution, 90 % lie within so many standard deviations
    for sensor, ax in enumerate(figure.subplots(2, 1, sharex=True)):
        ax.plot(series.whole[0, :, sensor], ".", ms=3, color="#B0BEC5", label="what happened")
        ax.plot(series.seen[0, :, sensor], lw=1, color="#37474F", label="what the model saw")
        middle, half = series.filled[0, GAP, sensor], wide * series.std[0, GAP, sensor]
        ax.fill_between(gap, middle - half, middle + half, color="#E69F00", alpha=0.3, lw=0)
        ax.plot(gap, middle, color="#E69F00", label="filled in")
        ax.fill_between(
            ahead, coming.lower[0, :, sensor], coming.upper[0, :, sensor], color="#0072B2", alpha=0.25, lw=0
        )
        ax.plot(ahead, coming.mean[0, :, sensor], color="#0072B2", label="forecast")
        ax.set(ylabel=f"sensor {sensor + 1}")
        ax.spines[["top", "right"]].set_visible(False)
        if sensor == 0:
            ax.legend(loc="upper left", ncols=4, frameon=False, bbox_to_anchor=(0, 1.25))
    ax.set(xlabel="time step")
    write_figure(figure, path)
