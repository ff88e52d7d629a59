"""States of a switching system along time, with the regimes that move them below."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from pluri.metrics import align_states
from pluri.plotting.decoded_sequence import draw_posterior, draw_strip
from pluri.plotting.style import checked_names, stacked_axes, state_colors, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure


class RegimesDisplay:
    """Trajectories over a strip of regimes with their probabilities.

    Make it with :meth:`from_estimator`.

    Parameters
    ----------
    probabilities : array-like of shape (n_steps, n_regimes)
        Probability of each regime at each step.
    trajectories : array-like of shape (n_steps, n_lines)
        What is drawn above: states, or observations; NaN leaves a gap.
    y_true : array-like of shape (n_steps,), optional
        True regimes, from 0; below zero means unknown.
    regime_names : array-like of shape (n_regimes,), optional
        Names of the regimes; their numbers by default.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        The topmost panel, and its figure.
    panels_ : dict of str to Axes
        The panels by name: "trajectories", "probabilities", "regimes", "truth".

    Examples
    --------
    >>> import matplotlib, numpy as np
    >>> matplotlib.use("agg")
    >>> from pluri.plotting import RegimesDisplay
    >>> display = RegimesDisplay([[0.9, 0.1], [0.2, 0.8]], [[0.0, 1.0], [1.0, 2.0]]).plot()
    >>> list(display.panels_), display.regimes.tolist()
    (['trajectories', 'probabilities', 'regimes'], [0, 1])
    >>> matplotlib.pyplot.close("all")
    """

    ax_: Axes
    figure_: Figure | SubFigure
    panels_: dict[str, Axes]

    def __init__(
        self,
        probabilities: ArrayLike,
        trajectories: ArrayLike,
        *,
        y_true: ArrayLike | None = None,
        regime_names: ArrayLike | None = None,
    ) -> None:
        self.probabilities = np.asarray(probabilities, dtype=np.float64)
        self.trajectories = np.asarray(trajectories, dtype=np.float64)
        self.y_true = None if y_true is None else np.asarray(y_true).astype(np.int64)
        if self.probabilities.ndim != 2 or 0 in self.probabilities.shape:
            raise ValueError(
                f"probabilities must have shape (n_steps, n_regimes), got shape {self.probabilities.shape}"
            )
        n_steps = len(self.probabilities)
        for name, value, axes in (("trajectories", self.trajectories, 2), ("y_true", self.y_true, 1)):
            if value is not None and (value.ndim != axes or len(value) != n_steps):
                raise ValueError(f"{name} must have {n_steps} rows like probabilities, got shape {value.shape}")
        self.regimes = self.probabilities.argmax(axis=1)
        largest = max(self.probabilities.shape[1], 0 if self.y_true is None else int(self.y_true.max()) + 1)
        self.regime_names = checked_names(regime_names, largest)

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: ArrayLike,
        *,
        y_true: ArrayLike | None = None,
        observations: bool = False,
        regime_names: ArrayLike | None = None,
        ax: Axes | None = None,
        **options: Any,
    ) -> Self:
        """Infer regimes and states of one sequence and draw them.

        Parameters
        ----------
        model : object
            Anything with ``predict_proba(X)`` and ``transform(X)``, such as `SwitchingDynamicalSystem`.
        X : array-like of shape (n_steps, n_features)
            One sequence.
        y_true : array-like of shape (n_steps,), optional
            True regimes; the inferred ones are renumbered to agree with them best.
        observations : bool, default=False
            Draw X in place of the states.
        regime_names : array-like, optional
            Names of the regimes (of the true ones, if given).
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        **options
            Passed to :meth:`plot`.

        Returns
        -------
        RegimesDisplay
        """
        data = np.asarray(X, dtype=np.float64)
        probabilities = np.asarray(model.predict_proba(data))
        if y_true is not None:
            alignment = align_states(np.asarray(y_true), probabilities.argmax(axis=1), n_pred=probabilities.shape[1])
            moved = np.zeros((len(probabilities), int(alignment.mapping.max()) + 1))
            moved[:, alignment.mapping] = probabilities
            probabilities = moved
        trajectories = data if observations else np.asarray(model.transform(data))
        display = cls(probabilities, trajectories, y_true=y_true, regime_names=regime_names)
        return display.plot(ax=ax, **options)

    def plot(self, *, ax: Axes | None = None, title: str | None = None, **line_options: Any) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Place that the panels share; a new figure by default.
        title : str, optional
            Title; "Regimes" by default, an empty string for none.
        **line_options
            Passed to matplotlib's ``plot`` for the trajectories.

        Returns
        -------
        RegimesDisplay
            Itself.
        """
        heights = {"trajectories": 2.6, "probabilities": 1.0, "regimes": 0.38}
        if self.y_true is not None:
            heights["truth"] = 0.38
        self.figure_, axes = stacked_axes(ax, list(heights.values()), (8.4, 0.75 + 0.95 * sum(heights.values())))
        self.panels_ = dict(zip(heights, axes))
        self.ax_ = axes[0]
        colors = state_colors(len(self.regime_names))
        steps, n_lines = np.arange(len(self.trajectories)), self.trajectories.shape[1]
        for line, shade in enumerate(np.linspace(0.2, 0.7, n_lines)):
            look: dict[str, Any] = {"color": str(shade), "linewidth": 1.1} | line_options
            self.ax_.plot(steps, self.trajectories[:, line], **look)
        tidy(self.ax_, grid="y")
        draw_posterior(self.panels_["probabilities"], self.probabilities, colors)
        self.panels_["probabilities"].set_ylabel("probability")
        draw_strip(self.panels_["regimes"], self.regimes, colors, self.regime_names, "regime")
        if self.y_true is not None:
            draw_strip(self.panels_["truth"], self.y_true, colors, self.regime_names, "truth")
        axes[-1].set_xlabel("time step")
        axes[-1].locator_params(axis="x", integer=True, min_n_ticks=1)
        self.ax_.set_xlim(-0.5, len(steps) - 0.5)
        self.ax_.set_title("Regimes" if title is None else title)
        return self
