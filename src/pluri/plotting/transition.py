"""The transition matrix of a Markov model as a heat map or as a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from numpy.typing import ArrayLike

from pluri.metrics.diversity import as_stochastic
from pluri.plotting.heatmap import draw_heatmap, square_size
from pluri.plotting.style import checked_names, checked_order, single_axes
from pluri.plotting.transition_graph import draw_graph, graph_size

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.image import AxesImage
    from matplotlib.patches import Circle, FancyArrowPatch
    from matplotlib.text import Text


class TransitionDisplay:
    """Transition probabilities between states.

    Make it with :meth:`from_estimator` or :meth:`from_matrix`.

    Parameters
    ----------
    transmat : array-like of shape (n_states, n_states)
        Row ``i`` holds the probabilities of the state after ``i``.
    state_names : array-like of shape (n_states,), optional
        Names of the states; their numbers by default.
    order : array-like of shape (n_states,), optional
        Order in which to show the states, such as ``align_states(...).order``; rows and columns move together.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    image_ : AxesImage or None
        The heat map.
    nodes_, edges_ : dict
        Circles by state and arrows by pair of states, for the graph.
    texts_ : list of Text
        The probabilities written.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from pluri.plotting import TransitionDisplay
    >>> display = TransitionDisplay.from_matrix([[0.9, 0.1], [0.4, 0.6]], state_names=["dry", "wet"])
    >>> [text.get_text() for text in display.texts_]
    ['.90', '.10', '.40', '.60']
    >>> display.plot(style="graph").edges_.keys()
    dict_keys([(0, 1), (1, 0), (1, 1), (0, 0)])
    >>> matplotlib.pyplot.close("all")
    """

    ax_: Axes
    figure_: Figure | SubFigure
    image_: AxesImage | None
    nodes_: dict[int, Circle]
    edges_: dict[tuple[int, int], FancyArrowPatch]
    texts_: list[Text]

    def __init__(
        self, transmat: ArrayLike, *, state_names: ArrayLike | None = None, order: ArrayLike | None = None
    ) -> None:
        self.transmat = as_stochastic(transmat, "transmat")
        n_states = self.transmat.shape[0]
        if self.transmat.shape != (n_states, n_states):
            raise ValueError(f"transmat must be square, got shape {self.transmat.shape}")
        self.state_names = checked_names(state_names, n_states)
        self.order = checked_order(order, n_states)

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        *,
        style: str = "heatmap",
        state_names: ArrayLike | None = None,
        order: ArrayLike | None = None,
        ax: Axes | None = None,
        **options: Any,
    ) -> Self:
        """Draw the transitions of a fitted model (its ``transmat_``).

        Parameters
        ----------
        model : object
            Anything with an attribute ``transmat_``.
        style : {"heatmap", "graph"}, default="heatmap"
            The picture.
        state_names, order : array-like of shape (n_states,), optional
            As for the class.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        **options
            Passed to :meth:`plot`.

        Returns
        -------
        TransitionDisplay
        """
        model = getattr(model, "hmm_", model)  # a classifier holds its model
        if not hasattr(model, "transmat_"):
            raise ValueError(f"model must be fitted and have transmat_, got {type(model).__name__} without it")
        return cls.from_matrix(model.transmat_, style=style, state_names=state_names, order=order, ax=ax, **options)

    @classmethod
    def from_matrix(
        cls,
        transmat: ArrayLike,
        *,
        style: str = "heatmap",
        state_names: ArrayLike | None = None,
        order: ArrayLike | None = None,
        ax: Axes | None = None,
        **options: Any,
    ) -> Self:
        """Draw a transition matrix; the arguments are those of :meth:`from_estimator`."""
        return cls(transmat, state_names=state_names, order=order).plot(style=style, ax=ax, **options)

    def plot(
        self,
        *,
        style: str = "heatmap",
        ax: Axes | None = None,
        title: str | None = None,
        threshold: float = 0.03,
        annotate: bool | None = None,
        cmap: str | None = None,
        colorbar: bool = True,
    ) -> Self:
        """Draw.

        Parameters
        ----------
        style : {"heatmap", "graph"}, default="heatmap"
            The picture.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        title : str, optional
            Title; "Transition probabilities" by default, an empty string for none.
        threshold : float, default=0.03
            Graph: transitions less likely than this are left out.
        annotate : bool, optional
            Write the probabilities; by default up to 16 states in the heat map and up to 5 in the graph.
        cmap : str, optional
            Heat map: name of a Matplotlib colour map; cividis by default.
        colorbar : bool, default=True
            Heat map: draw the colour scale.

        Returns
        -------
        TransitionDisplay
            Itself.
        """
        if style not in ("heatmap", "graph"):
            raise ValueError(f"style must be 'heatmap' or 'graph', got {style!r}")
        if not 0 < threshold <= 1:
            raise ValueError(f"threshold must be above 0 and at most 1, got {threshold!r}")
        size = graph_size(len(self.order)) if style == "graph" else square_size(len(self.order))
        self.figure_, self.ax_ = single_axes(ax, size)
        self.image_, self.nodes_, self.edges_ = None, {}, {}
        if style == "graph":
            self.nodes_, self.edges_, self.texts_ = draw_graph(
                self.ax_, self.transmat, self.state_names, self.order, threshold=threshold, annotate=annotate
            )
        else:
            self.image_, self.texts_ = draw_heatmap(
                self.ax_,
                self.transmat[self.order][:, self.order],
                [self.state_names[state] for state in self.order],
                vmax=1.0,
                cmap=cmap,
                annotate=annotate,
                colorbar="probability" if colorbar else None,
            )
            self.ax_.set(xlabel="next state", ylabel="state")
        self.ax_.set_title("Transition probabilities" if title is None else title)
        return self
