"""A particle filter at work: the cloud over time, its mean, what was observed, and how many particles count."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.plotting.style import PALETTE, TRUTH_COLOR, stacked_axes, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure


class ParticleCloudDisplay:
    """Particles of one coordinate against time, as large as their weights; below, the effective sample size.

    Make it with :meth:`from_result`.

    Parameters
    ----------
    particles : array-like of shape (n_steps, n_particles)
        One coordinate of the particles.
    weights : array-like of shape (n_steps, n_particles)
        Normalised weights.

    Attributes
    ----------
    axes_ : list of matplotlib Axes
    figure_ : matplotlib Figure
    mean_, ess_ : ndarray of shape (n_steps,)

    Examples
    --------
    >>> import matplotlib, numpy as np
    >>> matplotlib.use("agg")
    >>> from pluri.plotting import ParticleCloudDisplay
    >>> particles = np.random.default_rng(0).normal(size=(5, 20))
    >>> ParticleCloudDisplay(particles, np.full((5, 20), 1 / 20)).plot().ess_
    array([20., 20., 20., 20., 20.])
    >>> matplotlib.pyplot.close("all")
    """

    axes_: list[Axes]
    figure_: Figure | SubFigure

    def __init__(self, particles: ArrayLike, weights: ArrayLike) -> None:
        self.particles = np.asarray(particles, dtype=np.float64)
        self.weights = np.asarray(weights, dtype=np.float64)
        if self.particles.ndim != 2 or self.weights.shape != self.particles.shape:
            raise ValueError(
                "particles and weights must have shape (n_steps, n_particles), "
                f"got {self.particles.shape} and {self.weights.shape}"
            )
        self.mean_: NDArray[np.float64] = (self.weights * self.particles).sum(axis=1)
        self.ess_: NDArray[np.float64] = 1.0 / (self.weights**2).sum(axis=1)

    @classmethod
    def from_result(cls, result: Any, *, coordinate: int = 0, ax: Axes | None = None, **options: Any) -> Self:
        """Draw the result of a particle filter that kept its clouds.

        Parameters
        ----------
        result : pluri.inference.smc.ParticleFilterResult
        coordinate : int, default=0
            Which coordinate of the state to draw.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        **options
            Passed to :meth:`plot`.

        Returns
        -------
        ParticleCloudDisplay
        """
        particles = np.asarray(result.particles)
        if len(particles) != len(result.ess):
            raise ValueError("result must hold the cloud of every step: run with store='marginals' or store='paths'")
        flat = particles.reshape(*particles.shape[:2], -1)
        if not 0 <= coordinate < flat.shape[2]:
            raise ValueError(f"coordinate must be from 0 to {flat.shape[2] - 1}, got {coordinate}")
        return cls(flat[:, :, coordinate], np.exp(result.log_weights)).plot(ax=ax, **options)

    def plot(
        self,
        *,
        ax: Axes | None = None,
        observations: ArrayLike | None = None,
        truth: ArrayLike | None = None,
        max_particles: int = 200,
        title: str | None = None,
    ) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        observations, truth : array-like of shape (n_steps,), optional
            What was seen, and the states themselves if they are known.
        max_particles : int, default=200
            Particles drawn at each step, the heaviest first.
        title : str, optional
            Title; "Particles" by default.

        Returns
        -------
        ParticleCloudDisplay
            Itself.
        """
        self.figure_, self.axes_ = stacked_axes(ax, (3.2, 1.0), (7.5, 4.6))
        upper, lower = self.axes_
        n_steps, n_particles = self.particles.shape
        time = np.arange(n_steps)
        order = np.argsort(-self.weights, axis=1, kind="stable")[:, :max_particles]
        shown = np.take_along_axis(self.particles, order, axis=1)
        area = np.take_along_axis(self.weights, order, axis=1) * n_particles
        upper.scatter(
            np.repeat(time, shown.shape[1]), shown, s=np.clip(3.0 * area, 0.3, 40.0), color=PALETTE[4], alpha=0.35,
            linewidths=0, label="particles, by weight",
        )  # fmt: skip
        upper.plot(time, self.mean_, color=PALETTE[0], linewidth=1.6, label="filtered mean")
        if truth is not None:
            upper.plot(time, np.asarray(truth), color=TRUTH_COLOR, linestyle="--", linewidth=1.2, label="truth")
        if observations is not None:
            upper.plot(time, np.asarray(observations), "x", color=PALETTE[5], markersize=4, label="observed")
        upper.set(ylabel="state", title="Particles" if title is None else title)
        upper.legend(frameon=False, loc="best")
        lower.plot(time, self.ess_, color=PALETTE[2], linewidth=1.4)
        lower.set(xlabel="step", ylabel="effective", ylim=(0, 1.05 * n_particles))
        for panel in self.axes_:
            tidy(panel)
        return self
