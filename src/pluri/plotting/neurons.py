"""Pictures of simulated neurons: voltages with their spikes, rasters, rates by current, and the phase plane."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from pluri.plotting.style import single_axes, state_colors

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure


class MembraneDisplay:
    """Voltages over time, with a tick for each spike.

    Parameters
    ----------
    traces : dict
        Name of each trace, and its times (ms), voltages (mV) and spikes (ms).

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    lines_ : list of Line2D
        The traces.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from pluri.neurons.models import hodgkin_huxley_patch
    >>> from pluri.plotting import MembraneDisplay
    >>> sim = hodgkin_huxley_patch(10.0)
    >>> sim.record("/patch", "Vm")
    >>> display = MembraneDisplay.from_result(sim.run(30.0))
    >>> display.ax_.get_ylabel(), len(display.lines_)
    ('voltage (mV)', 1)
    >>> matplotlib.pyplot.close("all")
    """

    ax_: Axes
    figure_: Figure | SubFigure

    def __init__(self, traces: Mapping[str, tuple[ArrayLike, ArrayLike, ArrayLike]]) -> None:
        self.traces = {name: tuple(np.asarray(part, dtype=float) for part in one) for name, one in traces.items()}
        for name, (time, voltage, _) in self.traces.items():
            if time.ndim != 1 or time.shape != voltage.shape:
                raise ValueError(f"times and voltages of {name} must have one shape, got {time.shape}, {voltage.shape}")

    @classmethod
    def from_result(
        cls, result: Any, paths: Sequence[str] | None = None, *, ax: Axes | None = None, **options: Any
    ) -> Self:
        """Draw recorded voltages.

        Parameters
        ----------
        result : SimulationResult
        paths : sequence of str, optional
            Which elements; all whose ``Vm`` was recorded by default.
        ax : matplotlib Axes, optional
        **options
            Of the lines.
        """
        chosen = [path for path, field in result.names if field == "Vm"] if paths is None else list(paths)
        traces = {path: (result.times(path, "Vm"), result[path, "Vm"], result.spikes(path)) for path in chosen}
        return cls(traces).plot(ax=ax, **options)

    def plot(self, *, ax: Axes | None = None, **options: Any) -> Self:
        """Draw, on given axes or new ones."""
        self.figure_, self.ax_ = single_axes(ax, (8.0, 3.2))
        self.lines_ = []
        top = max((voltage.max() for _, voltage, _ in self.traces.values() if len(voltage)), default=0.0)
        for k, (name, (time, voltage, spikes)) in enumerate(self.traces.items()):
            color = state_colors(max(len(self.traces), 2))[k]
            style: dict[str, Any] = {"color": color, "label": name, "linewidth": 1.2} | options
            self.lines_ += self.ax_.plot(time, voltage, **style)
            self.ax_.plot(spikes, np.full(len(spikes), top + 8.0 + 6.0 * k), "|", color=color, markersize=7)
        self.ax_.set(xlabel="time (ms)", ylabel="voltage (mV)")
        if len(self.traces) > 1:
            self.ax_.legend(loc="center right", fontsize="small")
        return self


class SpikeRasterDisplay:
    """Spikes of many units: a row for each, a tick for each spike.

    Parameters
    ----------
    times : array-like of shape (n_spikes,)
        In ms.
    units : array-like of shape (n_spikes,)
        Number of the row of each.
    names : sequence of str, optional
        Of the rows; written if there are few.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from pluri.neurons.models import two_neurons
    >>> from pluri.plotting import SpikeRasterDisplay
    >>> display = SpikeRasterDisplay.from_result(two_neurons().run(60.0))
    >>> [label.get_text() for label in display.ax_.get_yticklabels()]
    ['/net/a/axon', '/net/b/axon']
    >>> matplotlib.pyplot.close("all")
    """

    ax_: Axes
    figure_: Figure | SubFigure

    def __init__(self, times: ArrayLike, units: ArrayLike, names: Sequence[str] = ()) -> None:
        self.times, self.units, self.names = np.asarray(times, dtype=float), np.asarray(units, dtype=int), list(names)
        if self.times.shape != self.units.shape or self.times.ndim != 1:
            raise ValueError(f"times and units must have one length, got {self.times.shape} and {self.units.shape}")

    @classmethod
    def from_result(cls, result: Any, *, ax: Axes | None = None, **options: Any) -> Self:
        """Draw all spikes of a `SimulationResult`; `options` are those of the ticks."""
        return cls(*result.raster()).plot(ax=ax, **options)

    def plot(self, *, ax: Axes | None = None, **options: Any) -> Self:
        """Draw, on given axes or new ones."""
        n_rows = max(len(self.names), int(self.units.max(initial=-1)) + 1, 1)
        self.figure_, self.ax_ = single_axes(ax, (8.0, float(np.clip(0.25 * n_rows + 1, 2, 6))))
        size = float(np.clip(300 / n_rows, 1.0, 14.0))
        style: dict[str, Any] = {"marker": "|", "linestyle": "none", "color": "black", "markersize": size} | options
        self.ax_.plot(self.times, self.units, **style)
        self.ax_.set(xlabel="time (ms)", ylabel="" if 0 < len(self.names) <= 20 else "unit", ylim=(n_rows - 0.5, -0.5))
        if 0 < len(self.names) <= 20:
            self.ax_.set_yticks(range(len(self.names)), self.names)
        return self


class FiringRateDisplay:
    """Firing rate by injected current: where a cell begins to fire, and how fast.

    Parameters
    ----------
    currents : array-like of shape (n_currents,)
        Any unit, which `unit` names.
    rates : array-like of shape (n_currents,)
        In Hz.
    unit : str, default="nA"
        Unit of the currents.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from pluri.plotting import FiringRateDisplay
    >>> display = FiringRateDisplay([2, 6, 7, 10], [0, 0, 58, 68], unit="uA/cm^2").plot()
    >>> display.ax_.get_xlabel()
    'current (uA/cm^2)'
    >>> matplotlib.pyplot.close("all")
    """

    ax_: Axes
    figure_: Figure | SubFigure

    def __init__(self, currents: ArrayLike, rates: ArrayLike, *, unit: str = "nA") -> None:
        self.currents, self.rates, self.unit = np.asarray(currents, float), np.asarray(rates, float), unit
        if self.currents.shape != self.rates.shape or self.currents.ndim != 1:
            raise ValueError(
                f"currents and rates must have one length, got {self.currents.shape} and {self.rates.shape}"
            )

    def plot(self, *, ax: Axes | None = None, **options: Any) -> Self:
        """Draw, on given axes or new ones."""
        self.figure_, self.ax_ = single_axes(ax, (5.0, 3.2))
        order = np.argsort(self.currents, kind="stable")
        self.ax_.plot(self.currents[order], self.rates[order], **{"marker": "o"} | options)
        self.ax_.set(xlabel=f"current ({self.unit})", ylabel="rate (Hz)", ylim=(0, None))
        return self


class PhasePlaneDisplay:
    """One recorded field against another, with curves on which one of them stands still.

    Parameters
    ----------
    x, y : array-like of shape (n_times,)
        The trajectory, such as voltage and gate.
    nullclines : dict, optional
        Name of each curve, and its points x and y.
    labels : tuple of str, default=("voltage (mV)", "gate")
        Of the axes.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import numpy as np
    >>> from pluri.neurons.library.hodgkin_huxley import POTASSIUM, steady_state
    >>> from pluri.neurons.models import hodgkin_huxley_patch
    >>> from pluri.plotting import PhasePlaneDisplay
    >>> sim = hodgkin_huxley_patch(10.0)
    >>> sim.record("/patch", "Vm")
    >>> sim.record("/patch", "n")
    >>> result, v = sim.run(40.0), np.linspace(-80, 40, 100)
    >>> display = PhasePlaneDisplay(
    ...     result["/patch", "Vm"], result["/patch", "n"],
    ...     nullclines={"n stands still": (v, steady_state(POTASSIUM[0], v))}, labels=("voltage (mV)", "n"),
    ... ).plot()
    >>> display.ax_.get_ylabel()
    'n'
    >>> matplotlib.pyplot.close("all")
    """

    ax_: Axes
    figure_: Figure | SubFigure

    def __init__(
        self,
        x: ArrayLike,
        y: ArrayLike,
        *,
        nullclines: Mapping[str, tuple[ArrayLike, ArrayLike]] | None = None,
        labels: tuple[str, str] = ("voltage (mV)", "gate"),
    ) -> None:
        self.x, self.y, self.labels = np.asarray(x, dtype=float), np.asarray(y, dtype=float), labels
        if self.x.shape != self.y.shape or self.x.ndim != 1:
            raise ValueError(f"x and y must have one length, got {self.x.shape} and {self.y.shape}")
        self.nullclines = {} if nullclines is None else dict(nullclines)

    def plot(self, *, ax: Axes | None = None, **options: Any) -> Self:
        """Draw, on given axes or new ones."""
        self.figure_, self.ax_ = single_axes(ax, (5.0, 4.0))
        style: dict[str, Any] = {"color": "C0", "linewidth": 1.2} | options
        self.ax_.plot(self.x, self.y, **style)
        self.ax_.plot(self.x[:1], self.y[:1], "o", color="C0", markersize=5)
        for k, (name, (x, y)) in enumerate(self.nullclines.items()):
            self.ax_.plot(np.asarray(x), np.asarray(y), "--", color=f"C{k + 1}", label=name)
        if self.nullclines:
            self.ax_.legend(fontsize="small")
        self.ax_.set(xlabel=self.labels[0], ylabel=self.labels[1])
        return self
