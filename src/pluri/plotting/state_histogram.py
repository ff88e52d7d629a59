"""How often each state is used, for several labellings side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.metrics import align_states, state_histogram
from pluri.plotting.style import PALETTE, TRUTH_COLOR, checked_names, single_axes, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.container import BarContainer
    from matplotlib.figure import Figure, SubFigure

TRUTH = "truth"


class StateHistogramDisplay:
    """Bars of state frequencies.

    Make it with :meth:`from_predictions`.

    Parameters
    ----------
    counts : mapping of str to array-like of shape (n_states,)
        Frequencies for each labelling; the one named "truth" is drawn dark grey.
    state_names : array-like of shape (n_states,), optional
        Names of the states; their numbers by default.
    sort : bool, default=False
        Largest first in each labelling; states then lose their names and become ranks.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    bars_ : dict of str to BarContainer
        The bars of each labelling.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from pluri.plotting import StateHistogramDisplay
    >>> display = StateHistogramDisplay.from_predictions([0, 0, 1], {"HMM": [1, 1, 1], "dHMM": [1, 1, 0]})
    >>> {name: counts.tolist() for name, counts in display.counts.items()}
    {'truth': [2.0, 1.0], 'HMM': [3.0, 0.0], 'dHMM': [2.0, 1.0]}
    >>> matplotlib.pyplot.close("all")
    """

    ax_: Axes
    figure_: Figure | SubFigure
    bars_: dict[str, BarContainer]

    def __init__(
        self, counts: Mapping[str, ArrayLike], *, state_names: ArrayLike | None = None, sort: bool = False
    ) -> None:
        if not counts:
            raise ValueError("counts must hold at least one labelling, got none")
        given = {name: np.asarray(values, dtype=np.float64) for name, values in counts.items()}
        n_states = max(values.size for values in given.values())
        self.counts: dict[str, NDArray[np.float64]] = {}
        for name, values in given.items():
            if values.ndim != 1 or values.size == 0:
                raise ValueError(f"counts[{name!r}] must have one axis and an entry, got shape {values.shape}")
            padded = np.pad(values, (0, n_states - values.size))
            self.counts[name] = np.sort(padded)[::-1] if sort else padded
        self.sort = sort
        self.state_names = checked_names(state_names, n_states)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike | None,
        y_pred: ArrayLike | Mapping[str, ArrayLike],
        *,
        n_states: int | None = None,
        sort: bool = False,
        align: bool = True,
        normalize: bool = False,
        state_names: ArrayLike | None = None,
        ax: Axes | None = None,
        **options: Any,
    ) -> Self:
        """Count states and draw.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,) or None
            True states, if known.
        y_pred : array-like of shape (n_samples,) or mapping of str to such
            Predicted states of one model, or of several by name.
        n_states : int, optional
            Number of states; the largest label plus one by default.
        sort : bool, default=False
            Largest first in each labelling.
        align : bool, default=True
            Renumber predicted states to agree best with ``y_true`` (when given, and not sorted).
        normalize : bool, default=False
            Shares instead of counts.
        state_names : array-like of shape (n_states,), optional
            Names of the states.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        **options
            Passed to :meth:`plot`.

        Returns
        -------
        StateHistogramDisplay
        """
        predictions: dict[str, ArrayLike] = dict(y_pred) if isinstance(y_pred, Mapping) else {"predicted": y_pred}
        if TRUTH in predictions:
            raise ValueError(f"y_pred must not name a model {TRUTH!r}: give the truth as y_true")
        counts: dict[str, ArrayLike] = {}
        if y_true is not None:
            counts[TRUTH] = state_histogram(y_true, n_states, normalize=normalize)
        for name, labels in predictions.items():
            if y_true is not None and align and not sort:
                labels = align_states(y_true, labels, n_true=n_states, n_pred=n_states).relabel(labels)
            counts[name] = state_histogram(labels, n_states, normalize=normalize)
        return cls(counts, state_names=state_names, sort=sort).plot(
            ax=ax, ylabel="share of tokens" if normalize else "number of tokens", **options
        )

    def plot(
        self, *, ax: Axes | None = None, title: str | None = None, ylabel: str = "number of tokens", legend: bool = True
    ) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        title : str, optional
            Title; "State frequencies" by default, an empty string for none.
        ylabel : str, default="number of tokens"
            Label of the y axis.
        legend : bool, default=True
            Name the labellings, if there are several.

        Returns
        -------
        StateHistogramDisplay
            Itself.
        """
        n_states, n_labellings = len(self.state_names), len(self.counts)
        self.figure_, self.ax_ = single_axes(ax, (float(np.clip(2.5 + 0.16 * n_states * n_labellings, 5, 12)), 3.6))
        width = 0.82 / n_labellings
        colors = iter(PALETTE * (1 + n_labellings // len(PALETTE)))
        self.bars_ = {}
        for number, (name, values) in enumerate(self.counts.items()):
            self.bars_[name] = self.ax_.bar(
                np.arange(n_states) + (number - (n_labellings - 1) / 2) * width,
                values,
                width=width * 0.94,
                color=TRUTH_COLOR if name == TRUTH else next(colors),
                label=name,
            )
        names = [str(rank + 1) for rank in range(n_states)] if self.sort else self.state_names
        slanted = sum(map(len, names)) > 60
        self.ax_.set_xticks(
            range(n_states), names, rotation=40 if slanted else 0, ha="right" if slanted else "center",
            rotation_mode="anchor" if slanted else "default",
        )  # fmt: skip
        self.ax_.tick_params(axis="x", length=0)
        self.ax_.set_xlim(-0.6, n_states - 0.4)
        self.ax_.set(xlabel="rank of the state, most frequent first" if self.sort else "state", ylabel=ylabel)
        self.ax_.set_title("State frequencies" if title is None else title)
        tidy(self.ax_, grid="y")
        if legend and n_labellings > 1:
            self.ax_.legend(frameon=False)
        return self
