"""The picture of the README: four things that pluri does, on data that are made or come with scikit-learn.

    python docs/make_front_figure.py            # writes docs/_static/front.png, in about half a minute

Regimes of a series with missing days; clusters and the posterior of their number; a gap filled and a forecast; a
picture restored from three of ten pixels.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from sklearn.datasets import load_sample_image

from pluri.cli.demo import number_of_clusters, series_forecast
from pluri.factors import inpaint_image
from pluri.metrics import one_to_one_accuracy
from pluri.plotting.style import state_colors
from pluri.sequences import GaussianHMM

TARGET = Path(__file__).parent / "_static" / "front.png"
MISSING = 0.7


def regimes(ax: Axes) -> None:
    """A series of returns with calm and wild times; days are missing, in runs as holidays are."""
    rng = np.random.default_rng(1)
    truth = GaussianHMM(2)
    truth.startprob_, truth.transmat_ = np.array([1.0, 0.0]), np.array([[0.98, 0.02], [0.05, 0.95]])
    truth.means_, truth.covars_ = np.array([[0.05], [-0.1]]), np.array([[0.2], [2.0]])
    X, states = truth.sample(400, random_state=3)
    gone = np.convolve(rng.random(400) < 0.05, np.ones(6), "same") > 0
    X[gone] = np.nan
    model = GaussianHMM(2, n_init=10, random_state=0).fit(X)
    found = model.predict(X)
    wild = int(np.argmax(model.covars_.ravel()))
    ax.fill_between(
        np.arange(400), -4, 3.2, where=found == wild, color=state_colors(2)[1], alpha=0.25, lw=0, step="mid"
    )
    ax.plot(X, lw=0.8, color="#37474F")
    ax.plot(np.flatnonzero(gone), np.full(gone.sum(), -3.7), "|", color="#90A4AE", ms=5)
    right = one_to_one_accuracy(states, found)
    ax.set(title=f"regimes, {gone.mean():.0%} of the days missing: {right:.0%} right", xlabel="day", ylim=(-4, 3.2))


def clusters(ax: Axes) -> None:
    """Points by cluster, and the posterior of the number of clusters."""
    found = number_of_clusters.run(0)
    values, places = np.unique(found.labels, return_inverse=True)
    ax.scatter(*found.points.T, s=7, c=np.array(state_colors(len(values)))[places], lw=0)
    best = int(found.posterior.argmax())
    ax.set(
        title=f"clusters, number unknown: {best} with probability {found.posterior[best]:.2f}",
        xlim=(-8, 13),
        xticks=[],
        yticks=[],
    )
    inset = ax.inset_axes((0.74, 0.12, 0.25, 0.5))
    shown = np.arange(3, 9)
    inset.bar(shown, [found.posterior[k] if k < len(found.posterior) else 0.0 for k in shown], color="#0072B2")
    inset.set(xticks=shown, yticks=[], title="how many?")
    inset.spines[["top", "right", "left"]].set_visible(False)


def forecast(ax: Axes) -> None:
    """One sensor of a series: its gap filled, its future forecast."""
    series = series_forecast.run(0)
    n, ahead = series_forecast.N_SEEN, series_forecast.N_AHEAD
    gap = np.arange(series_forecast.GAP.start, series_forecast.GAP.stop)
    ax.plot(series.whole[0, :, 0], ".", ms=2.5, color="#B0BEC5")
    ax.plot(series.seen[0, :, 0], lw=0.9, color="#37474F")
    middle, half = series.filled[0, gap, 0], 1.645 * series.std[0, gap, 0]
    ax.fill_between(gap, middle - half, middle + half, color="#E69F00", alpha=0.3, lw=0)
    ax.plot(gap, middle, color="#E69F00")
    steps = np.arange(n, n + ahead)
    ax.fill_between(
        steps, series.forecast.lower[0, :, 0], series.forecast.upper[0, :, 0], color="#0072B2", alpha=0.25, lw=0
    )
    ax.plot(steps, series.forecast.mean[0, :, 0], color="#0072B2")
    ax.set(title="a gap filled, and a forecast, with 90 % intervals", xlabel="time step", xlim=(60, n + ahead))


def restored(ax: Axes) -> None:
    """A photograph of which most pixels are thrown away, beside what comes back."""
    picture = load_sample_image("flower.jpg")[120:280, 200:360].mean(axis=2) / 255
    gone = np.random.default_rng(0).random(picture.shape) < MISSING
    back = inpaint_image(np.where(gone, np.nan, picture), random_state=0)
    error = np.sqrt(np.mean((back - picture)[gone] ** 2))
    seen = np.where(gone, 1.0, picture)
    ax.imshow(np.hstack([seen, np.ones((len(seen), 8)), np.clip(back, 0, 1)]), cmap="gray", vmin=0, vmax=1)
    ax.set(title=f"a picture from {1 - MISSING:.0%} of its pixels: {-20 * np.log10(error):.1f} dB")
    ax.set_axis_off()


def main() -> None:
    """Draw all four."""
    figure = Figure(figsize=(12.6, 7.2), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(2, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for ax, draw in zip(panels.ravel(), (regimes, clusters, forecast, restored)):
            draw(ax)
            ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(TARGET)


if __name__ == "__main__":
    main()
