"""A sampled model with states on one page: four traces, the transitions and what the states emit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.plotting.style import HEATMAP, PALETTE, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

#: Traces that are drawn, and what they are called.
TRACES = {
    "n_states": "number of states",
    "log_density": "log joint density",
    "concentration": "concentration",
    "weight_concentration": "concentration\nof the weights",
}


class SampledStatesDisplay:
    """Six panels: number of states, log joint density, two concentrations by draw; transitions; emissions.

    Parameters
    ----------
    traces : dict of arrays of shape (n_chains, n_draws)
        "n_states", "log_density", "concentration" and "weight_concentration".
    transition : array-like of shape (n_states, n_states)
    emission : array-like of shape (n_states, n_values)
        Probabilities, means or rates of each state.
    best_chain : int, default=0
        The chain that is drawn in front.

    Attributes
    ----------
    axes_ : list of six matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import numpy as np
    >>> from pluri.plotting import SampledStatesDisplay
    >>> names = ("n_states", "log_density", "concentration", "weight_concentration")
    >>> traces = {name: np.ones((2, 5)) for name in names}
    >>> display = SampledStatesDisplay(traces, np.eye(2), np.eye(2, 3)).plot()
    >>> len(display.axes_)
    6
    >>> matplotlib.pyplot.close("all")
    """

    axes_: list[Axes]
    figure_: Figure | SubFigure

    def __init__(
        self, traces: Mapping[str, ArrayLike], transition: ArrayLike, emission: ArrayLike, *, best_chain: int = 0
    ) -> None:
        missing = [name for name in TRACES if name not in traces]
        if missing:
            raise ValueError(f"traces must have {', '.join(TRACES)}, got none named {missing[0]!r}")
        self.traces = {name: np.atleast_2d(np.asarray(traces[name], dtype=np.float64)) for name in TRACES}
        self.transition = np.asarray(transition, dtype=np.float64)
        self.emission = np.asarray(emission, dtype=np.float64)
        if self.transition.ndim != 2 or self.transition.shape[0] != self.transition.shape[1]:
            raise ValueError(f"transition must be square, got shape {self.transition.shape}")
        if self.emission.ndim != 2 or len(self.emission) != len(self.transition):
            raise ValueError(
                f"emission must have a row for each of {len(self.transition)} states, got shape {self.emission.shape}"
            )
        self.best_chain = best_chain

    @classmethod
    def from_estimator(cls, model: Any, **options: Any) -> Self:
        """Draw a fitted `pluri.sequences.InfiniteHMM`; see :meth:`plot` for the rest."""
        if not hasattr(model, "trace_") or not hasattr(model, "state_parameters_"):
            raise ValueError(f"model must be fitted by sampling, got {type(model).__name__} without draws")
        traces = {name: model.trace_[name] for name in TRACES if name in model.trace_.draws}
        traces["log_density"] = model.trace_.stats["log_density"]
        return cls(traces, model.transmat_, _emission(model.state_parameters_), best_chain=model.best_chain_).plot(
            **options
        )

    def plot(self, *, figure: Any = None, title: str | None = None, cmap: str | None = None) -> Self:
        """Draw.

        Parameters
        ----------
        figure : matplotlib Figure or SubFigure, optional
            Where to draw; a new one by default.
        title : str, optional
        cmap : str, optional
            Name of a Matplotlib colour map; cividis by default.

        Returns
        -------
        SampledStatesDisplay
            Itself.
        """
        from matplotlib import pyplot
        from matplotlib.ticker import MaxNLocator

        self.figure_ = pyplot.figure(figsize=(9.0, 6.6), layout="constrained") if figure is None else figure
        grid = self.figure_.subplots(3, 2, height_ratios=[1.0, 1.0, 1.5])
        self.axes_ = list(grid.ravel())
        for ax, (name, label) in zip(self.axes_, TRACES.items()):
            values = self.traces[name]
            for chain in range(len(values)):
                if chain != self.best_chain:
                    ax.plot(values[chain], color="0.75", linewidth=0.8)
            ax.plot(values[self.best_chain], color=PALETTE[0], linewidth=1.2)
            ax.set(xlabel="draw", ylabel=label)
            tidy(ax, grid="y")
        self.axes_[0].yaxis.set_major_locator(MaxNLocator(integer=True))
        images = ((self.transition, "next state", "transitions"), (self.emission, "value", "emissions"))
        for ax, (values, across, name) in zip(self.axes_[4:], images):
            image = ax.imshow(values, aspect="auto", cmap=cmap or HEATMAP, interpolation="nearest")
            ax.set(xlabel=across, ylabel="state", xticks=[], yticks=range(len(values)))
            ax.set_title(name, fontsize="medium")
            self.figure_.colorbar(image, ax=ax).outline.set_visible(False)
        if title is not None:
            self.figure_.suptitle(title, fontsize="medium")
        return self


def _emission(parameters: Mapping[str, Any]) -> NDArray[np.float64]:
    """The first kind of parameters, a row for each state."""
    first = next(iter(parameters.values()))
    tables = first if isinstance(first, list) else [first]
    return np.concatenate([np.reshape(table, (len(table), -1)) for table in tables], axis=1)
