"""A hidden Markov model of data with holes: the exact answer beside that after filling them with the mean.

Four states in a row: the mean of all data lies among the inner ones, so that a value filled in looks like one of
theirs. A missing value that is left missing (NaN) is summed out exactly.
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
from pluri.sequences import GaussianHMM

FILE = "missing_values.png"
N_STATES, N_OBSERVATIONS, SHARE, N_STARTS = 4, 600, 0.3, 5
WAYS = {"complete": "nothing missing", "left": "holes left open (NaN)", "filled": "filled with the mean"}


@dataclass(frozen=True)
class Fits:
    """Three versions of the data, and a model fitted to each."""

    data: dict[str, NDArray[np.float64]]
    states: NDArray[np.int64]
    truth: GaussianHMM
    models: dict[str, GaussianHMM]

    def accuracy(self, way: str) -> float:
        return one_to_one_accuracy(self.states, self.models[way].predict(self.data[way]))


def show(path: Path, seed: int, n_observations: int = N_OBSERVATIONS) -> Part:
    """Fit, compare, draw."""
    fits = run(seed, n_observations)
    numbers = {
        "missing": float(np.isnan(fits.data["left"]).mean()),
        "accuracy": {way: fits.accuracy(way) for way in WAYS},
        "error_of_means": {way: mean_error(fits, way) for way in WAYS},
    }
    draw(fits, path)
    return Part(reading(numbers), numbers, path)


def run(seed: int, n_observations: int = N_OBSERVATIONS) -> Fits:
    """Draw a sequence, hide 30 % of its values at random, fit all three."""
    truth = GaussianHMM(N_STATES, covariance_type="full")
    truth.startprob_ = np.full(N_STATES, 1 / N_STATES)
    truth.transmat_ = np.full((N_STATES, N_STATES), 0.1 / 3) + (0.9 - 0.1 / 3) * np.eye(N_STATES)
    truth.means_ = np.array([-4.0, -1.3, 1.3, 4.0])[:, None] * np.ones(2)
    truth.covars_ = np.tile(np.eye(2), (N_STATES, 1, 1))
    X, states = truth.sample(n_observations, random_state=seed)
    holes = np.where(np.random.default_rng([seed, 1]).random(X.shape) < SHARE, np.nan, X)
    filled = np.where(np.isnan(holes), np.nanmean(holes, axis=0), holes)
    data = {"complete": X, "left": holes, "filled": filled}
    models = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the filled data may take more iterations than there are
        for way, values in data.items():
            model = GaussianHMM(N_STATES, covariance_type="full", n_init=N_STARTS, random_state=seed)
            models[way] = model.fit(values)
    return Fits(data, states, truth, models)


def mean_error(fits: Fits, way: str) -> float:
    """Largest distance of a state's fitted mean from the true one."""
    return float(np.linalg.norm(fits.models[way].means_[_order(fits, way)] - fits.truth.means_, axis=1).max())


def _order(fits: Fits, way: str) -> NDArray[np.int64]:
    labels = fits.models[way].predict(fits.data[way])
    order: NDArray[np.int64] = align_states(fits.states, labels, n_true=N_STATES, n_pred=N_STATES).order
    return order


def reading(numbers: dict[str, Any]) -> list[str]:
    """What the numbers show."""
    accuracy, error = numbers["accuracy"], numbers["error_of_means"]
    return [
        f"A sequence with four states, of which {numbers['missing']:.0%} of the values were hidden. Share of correctly "
        "labelled time steps, and largest error of a state's mean (its spread is 1):",
        *(f"  {told:<24s}{accuracy[way]:>6.0%}{error[way]:>8.2f}" for way, told in WAYS.items()),
    ]


def draw(fits: Fits, path: Path) -> None:
    """The data as each model saw them, in the colours of its states, with their ellipses."""
    from pluri.plotting import EllipsesDisplay
    from pluri.plotting.style import state_colors

    figure = new_figure(12.6, 4.4)
    axes = figure.subplots(1, len(WAYS), sharex=True, sharey=True)
    colors = np.array(state_colors(N_STATES))
    for ax, (way, told) in zip(axes, WAYS.items()):
        model, order = fits.models[way], _order(fits, way)
        place = np.argsort(order)
        shares = np.full(N_STATES, 1 / N_STATES)
        EllipsesDisplay(shares, model.means_[order], model.covars_[order], covariance_type="full").plot(
            ax=ax, n_std=(2.0,), title=f"{told}: {fits.accuracy(way):.0%} right"
        )
        values = fits.data[way]
        seen = ~np.isnan(values).any(axis=1)
        ax.scatter(*values[seen].T, s=8, c=colors[place[model.predict(values)[seen]]], alpha=0.6, lw=0)
        ax.set(xlabel="first value", ylabel="second value" if way == "complete" else "")
    write_figure(figure, path)
