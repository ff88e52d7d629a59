"""One sequence with its decoded states: observations, a coloured strip, the truth below, posteriors if wanted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.metrics import align_states
from pluri.plotting.style import HEATMAP, checked_names, stacked_axes, state_colors, text_color, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure


MOST_LINES = 6
POINTS_PER_LETTER = 5.2
UNKNOWN = (0.93, 0.93, 0.93)


def draw_observations(ax: Axes, observations: NDArray[np.generic], colors: list[str]) -> None:
    """One to six columns as lines (a single one with points in the colours of the states), more as an image."""
    n_steps, n_features = observations.shape
    time = np.arange(n_steps)
    values = observations.astype(np.float64)
    if n_features > MOST_LINES:
        ax.imshow(values.T, aspect="auto", cmap=HEATMAP, interpolation="nearest", origin="upper")
        ax.set_ylabel("feature")
        return
    for feature, shade in enumerate(np.linspace(0.35, 0.75, n_features)):
        ax.plot(time, values[:, feature], color=str(shade), linewidth=0.9 if n_features == 1 else 1.3, zorder=1)
    if n_features == 1:
        ax.scatter(time, values[:, 0], c=colors, s=26 if n_steps <= 150 else 10, linewidths=0, zorder=2)
    ax.set_ylabel("observation")
    tidy(ax, grid="y")


def draw_posterior(ax: Axes, posterior: NDArray[np.float64], colors: list[str]) -> None:
    """Posterior probabilities as stacked areas."""
    # A step at both ends, so that the first and the last column are as wide as the others.
    n_steps = posterior.shape[0]
    time = np.concatenate([[-0.5], np.arange(n_steps), [n_steps - 0.5]])
    padded = np.concatenate([posterior[:1], posterior, posterior[-1:]])
    ax.stackplot(time, padded.T, colors=colors[: posterior.shape[1]], step="mid", linewidth=0)
    ax.set(ylim=(0, 1), yticks=[0, 1], ylabel="posterior")
    ax.spines[["top", "right"]].set_visible(False)


def draw_strip(ax: Axes, labels: NDArray[np.int64], colors: list[str], names: list[str], title: str) -> None:
    """States as a strip of colours; a run that is wide enough bears its name, unknown steps are pale grey."""
    from matplotlib.colors import to_rgb

    n_steps = labels.size
    row = np.array([to_rgb(colors[state]) if state >= 0 else UNKNOWN for state in labels])
    ax.imshow(row[None], aspect="auto", extent=(-0.5, n_steps - 0.5, 0, 1), interpolation="nearest")
    points = ax.bbox.width / ax.figure.dpi * 72 / n_steps
    starts = np.flatnonzero(np.diff(labels, prepend=-2))
    stops = np.append(starts[1:], n_steps)
    fits = (
        np.array([len(names[state]) for state in labels[starts]]) * POINTS_PER_LETTER + 3 <= (stops - starts) * points
    )
    # Names on most runs or on none: a few here and there would look like marks.
    for start, stop in zip(starts[fits], stops[fits]) if fits.mean() >= 0.5 else ():
        state = int(labels[start])
        if state >= 0:
            color = text_color(colors[state])
            ax.text((start + stop - 1) / 2, 0.47, names[state], ha="center", va="center", color=color, fontsize=8)
    ax.set(ylim=(0, 1), yticks=[])
    ax.set_ylabel(title, rotation=0, ha="right", va="center")
    ax.tick_params(axis="x", length=2)
    ax.spines[:].set_visible(False)


def draw_tokens(ax: Axes, tokens: list[str]) -> None:
    """Write a word under each step, upright while there is room."""
    crowded = max(map(len, tokens)) * len(tokens) > 90
    ax.set_xticks(
        range(len(tokens)),
        tokens,
        rotation=60 if crowded else 0,
        ha="right" if crowded else "center",
        rotation_mode="anchor",
        fontsize=9 if len(tokens) <= 40 else 7,
    )
    ax.tick_params(axis="x", length=0)


class DecodedSequenceDisplay:
    """A sequence and its states along time.

    Make it with :meth:`from_estimator` or :meth:`from_labels`.

    Parameters
    ----------
    labels : array-like of shape (n_steps,)
        Decoded states, from 0.
    X : array-like of shape (n_steps,) or (n_steps, n_features), optional
        Observations: numbers are drawn (as an image if there are more than six columns), strings written below.
    y_true : array-like of shape (n_steps,), optional
        True states, from 0; below zero means unknown and is drawn pale grey.
    posterior : array-like of shape (n_steps, n_states), optional
        Posterior probabilities of the states.
    state_names : array-like of shape (n_states,), optional
        Names of the states; their numbers by default.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        The topmost panel, and its figure.
    panels_ : dict of str to Axes
        The panels by name: "observations", "posterior", "decoded", "truth".

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from pluri.plotting import DecodedSequenceDisplay
    >>> display = DecodedSequenceDisplay.from_labels([0, 0, 1], [0.1, 0.2, 5.0], y_true=[0, 1, 1])
    >>> list(display.panels_)
    ['observations', 'decoded', 'truth']
    >>> matplotlib.pyplot.close("all")
    """

    ax_: Axes
    figure_: Figure | SubFigure
    panels_: dict[str, Axes]

    def __init__(
        self,
        labels: ArrayLike,
        X: ArrayLike | None = None,
        *,
        y_true: ArrayLike | None = None,
        posterior: ArrayLike | None = None,
        state_names: ArrayLike | None = None,
    ) -> None:
        self.labels = _as_path(labels, "labels")
        n_steps = self.labels.size
        self.y_true = None if y_true is None else _as_path(y_true, "y_true")
        self.observations = None if X is None else np.asarray(X)
        if self.observations is not None and self.observations.ndim == 1:
            self.observations = self.observations[:, None]
        self.posterior = None if posterior is None else np.asarray(posterior, dtype=np.float64)
        for name, value, axes in (
            ("y_true", self.y_true, 1),
            ("X", self.observations, 2),
            ("posterior", self.posterior, 2),
        ):
            if value is not None and (value.ndim != axes or value.shape[0] != n_steps):
                raise ValueError(f"{name} must have {n_steps} rows like labels, got shape {value.shape}")
        largest = max(int(path.max()) for path in (self.labels, self.y_true) if path is not None)
        n_states = max(largest + 1, 1, 0 if self.posterior is None else self.posterior.shape[1])
        given = 0 if state_names is None else np.asarray(state_names).size
        # More names than states in use: the others do not occur in this sequence.
        self.state_names = checked_names(state_names, max(n_states, given))

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: ArrayLike,
        lengths: ArrayLike | None = None,
        *,
        sequence: int = 0,
        y_true: ArrayLike | None = None,
        align: bool = True,
        posterior: bool = False,
        tokens: ArrayLike | None = None,
        state_names: ArrayLike | None = None,
        ax: Axes | None = None,
        **options: Any,
    ) -> Self:
        """Decode with a fitted model and draw one sequence.

        Parameters
        ----------
        model : object
            Anything with ``predict(X, lengths)`` and, for posteriors, ``predict_proba(X, lengths)``.
        X : array-like of shape (n_samples, n_features)
            Observations of all sequences.
        lengths : array-like of shape (n_sequences,), optional
            Lengths of the sequences; one sequence by default.
        sequence : int, default=0
            Which sequence to draw.
        y_true : array-like of shape (n_samples,), optional
            True states of all sequences.
        align : bool, default=True
            Renumber the decoded states to agree best with ``y_true`` over all sequences.
        posterior : bool, default=False
            Draw the posterior probabilities too.
        tokens : array-like of shape (n_samples,), optional
            Words to write instead of the observations.
        state_names : array-like, optional
            Names of the states (of the true ones, if aligned).
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        **options
            Passed to :meth:`plot`.

        Returns
        -------
        DecodedSequenceDisplay
        """
        data = np.asarray(X)
        sizes = np.array([data.shape[0]]) if lengths is None else np.asarray(lengths)
        if not -sizes.size <= sequence < sizes.size:
            raise ValueError(f"sequence must be below the number of sequences ({sizes.size}), got {sequence}")
        stop = int(np.cumsum(sizes)[sequence])
        here = slice(stop - int(sizes[sequence]), stop)
        probabilities = np.asarray(model.predict_proba(data[here])) if posterior else None
        if y_true is not None and align:
            truth = np.asarray(y_true)
            predicted = np.asarray(model.predict(data, sizes))
            n_states = max(int(predicted.max()) + 1, 0 if probabilities is None else probabilities.shape[1])
            alignment = align_states(truth, predicted, n_pred=n_states)
            labels = alignment.relabel(predicted[here])
            if probabilities is not None:
                moved = np.zeros((labels.size, int(alignment.mapping.max()) + 1))
                moved[:, alignment.mapping] = probabilities
                probabilities = moved
        else:
            labels = np.asarray(model.predict(data[here]))
        shown = data if tokens is None else np.asarray(tokens)
        return cls(
            labels,
            shown[here],
            y_true=None if y_true is None else np.asarray(y_true)[here],
            posterior=probabilities,
            state_names=state_names,
        ).plot(ax=ax, **options)

    @classmethod
    def from_labels(
        cls,
        labels: ArrayLike,
        X: ArrayLike | None = None,
        *,
        y_true: ArrayLike | None = None,
        posterior: ArrayLike | None = None,
        state_names: ArrayLike | None = None,
        ax: Axes | None = None,
        **options: Any,
    ) -> Self:
        """Draw a sequence that is already decoded; the arguments are those of the class and of :meth:`plot`."""
        return cls(labels, X, y_true=y_true, posterior=posterior, state_names=state_names).plot(ax=ax, **options)

    def plot(self, *, ax: Axes | None = None, title: str | None = None, legend: bool = True) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Place that the panels share; a new figure by default.
        title : str, optional
            Title; "Decoded states" by default, an empty string for none.
        legend : bool, default=True
            Name the colours of the states that occur, at the right.

        Returns
        -------
        DecodedSequenceDisplay
            Itself.
        """
        numeric = self.observations is not None and self.observations.dtype.kind in "biuf"
        heights = {"observations": 2.6} if numeric else {}
        if self.posterior is not None:
            heights["posterior"] = 1.2
        heights["decoded"] = 0.38
        if self.y_true is not None:
            heights["truth"] = 0.38
        inches = 0.75 + 0.95 * sum(heights.values()) + (0 if numeric or self.observations is None else 0.6)
        self.figure_, axes = stacked_axes(ax, list(heights.values()), (8.4, inches))
        self.panels_ = dict(zip(heights, axes))
        self.ax_ = axes[0]

        colors = state_colors(len(self.state_names))
        if numeric and self.observations is not None:
            draw_observations(self.panels_["observations"], self.observations, [colors[max(z, 0)] for z in self.labels])
        if self.posterior is not None:
            draw_posterior(self.panels_["posterior"], self.posterior, colors)
        draw_strip(self.panels_["decoded"], self.labels, colors, self.state_names, "decoded")
        if self.y_true is not None:
            draw_strip(self.panels_["truth"], self.y_true, colors, self.state_names, "truth")
        if numeric or self.observations is None:
            axes[-1].set_xlabel("time step")
            axes[-1].locator_params(axis="x", integer=True, min_n_ticks=1)
        else:
            draw_tokens(axes[-1], [str(token) for token in self.observations[:, 0]])
        self.ax_.set_xlim(-0.5, self.labels.size - 0.5)
        self.ax_.set_title("Decoded states" if title is None else title)
        if legend:
            self._draw_legend(colors, outside=ax is None)
        return self

    def _draw_legend(self, colors: list[str], *, outside: bool) -> None:
        """Name the states at the right edge of a figure of our own, else right of the axes that were given."""
        from matplotlib.patches import Patch

        paths = [self.labels] if self.y_true is None else [self.labels, self.y_true]
        used = [int(state) for state in np.unique(np.concatenate(paths)) if state >= 0]
        handles = [Patch(facecolor=colors[state], label=self.state_names[state]) for state in used]
        look = {"title": "state", "frameon": False, "fontsize": "small", "handlelength": 1.2}
        look["ncols"] = 1 if len(used) <= 16 else 2
        if outside:
            self.figure_.legend(handles=handles, loc="outside right upper", **look)
        else:
            self.ax_.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.01, 1.02), borderaxespad=0, **look)


def _as_path(labels: ArrayLike, name: str) -> NDArray[np.int64]:
    path = np.asarray(labels)
    if path.ndim != 1 or path.size == 0 or path.dtype.kind not in "biu":
        raise ValueError(f"{name} must hold whole numbers along one axis, got shape {path.shape} of {path.dtype}")
    return path.astype(np.int64)
