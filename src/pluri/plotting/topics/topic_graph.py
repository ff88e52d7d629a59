"""Topics as a graph: layers from left to right, or a map of the plane where a model has no hierarchy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.plotting.style import PALETTE, QUIET_COLOR, single_axes
from pluri.plotting.topics.topic_layout import LayeredLayout, layered_layout
from pluri.plotting.topics.topic_map import bubble_map, classical_scaling, hellinger_distances

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.patches import PathPatch
    from matplotlib.text import Text

#: Area of the largest disc in points squared, and width of the strongest edge in points.
LARGEST_AREA, LARGEST_WIDTH = 420.0, 4.5
MAP_WIDTH, MAP_HEIGHT = 10.0, 7.0


class TopicGraphDisplay:
    """The topics of a model, drawn as large as their share of the tokens and named by their words.

    Topics of a hierarchy are drawn in layers, with edges as wide as they are strong; branches below the root have
    colours of their own. Flat topics are drawn on a map, near each other where they share words.

    Parameters
    ----------
    labels : list of str
        What is written beside each topic.
    weight : array-like of shape (n_topics,)
        Shares of the tokens.
    depth : int array-like of shape (n_topics,), optional
        Layers; all topics are at the top by default.
    edges : int array-like of shape (n_edges, 2), optional
        Parents and children.
    edge_weight : array-like of shape (n_edges,), optional
    topic_word : array-like of shape (n_topics, n_words), optional
        Needed for a map.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    nodes_ : PathCollection
        Discs whose areas are in proportion to the shares.
    edges_ : list of PathPatch, in the order of the edges
    labels_ : list of Text, in the order of the topics
    layout_ : LayeredLayout or None
        Places in the layers; None on a map.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from pluri.plotting import TopicGraphDisplay
    >>> names = ["all", "ice goal", "bat ball"]
    >>> display = TopicGraphDisplay(names, [0.5, 0.3, 0.2], depth=[0, 1, 1], edges=[[0, 1], [0, 2]]).plot()
    >>> [text.get_text() for text in display.labels_]
    ['all', 'ice goal', 'bat ball']
    >>> matplotlib.pyplot.close("all")
    """

    ax_: Axes
    figure_: Figure | SubFigure
    nodes_: PathCollection
    edges_: list[PathPatch]
    labels_: list[Text]
    layout_: LayeredLayout | None

    def __init__(
        self,
        labels: list[str],
        weight: ArrayLike,
        depth: ArrayLike | None = None,
        edges: ArrayLike | None = None,
        edge_weight: ArrayLike | None = None,
        *,
        topic_word: ArrayLike | None = None,
    ) -> None:
        self.labels = [str(label) for label in labels]
        self.weight = np.asarray(weight, dtype=np.float64)
        n_topics = len(self.labels)
        if self.weight.shape != (n_topics,) or n_topics == 0:
            raise ValueError(f"weight must have one share for each of {n_topics} labels, got shape {self.weight.shape}")
        if not np.isfinite(self.weight).all() or (self.weight < 0).any():
            raise ValueError("weight must hold shares, finite and not negative")
        self.depth = np.zeros(n_topics, dtype=int) if depth is None else np.asarray(depth, dtype=int)
        if self.depth.shape != (n_topics,):
            raise ValueError(f"depth must have one layer for each of {n_topics} topics, got shape {self.depth.shape}")
        self.edges = np.zeros((0, 2), dtype=int) if edges is None else np.asarray(edges, dtype=int).reshape(-1, 2)
        self.edge_weight = np.asarray(np.ones(len(self.edges)) if edge_weight is None else edge_weight, dtype=float)
        if (shape := self.edge_weight.shape) != (len(self.edges),):
            raise ValueError(f"edge_weight must have one entry for each of {len(self.edges)} edges, got {shape}")
        self.topic_word = None if topic_word is None else np.asarray(topic_word, dtype=np.float64)
        if len(self.edges) == 0 and (self.topic_word is None or len(self.topic_word) != n_topics):
            raise ValueError("topic_word must have a row for each topic where there are no edges, for the map")

    @classmethod
    def from_estimator(
        cls, model: Any, *, feature_names: ArrayLike | None = None, n_words: int = 4, readable: bool = True,
        **options: Any,
    ) -> Self:  # fmt: skip
        """Draw the topics of a fitted topic model.

        Parameters
        ----------
        model : TopicModel
            Fitted.
        feature_names : array-like of str, optional
            Words of the columns, if the model does not know them.
        n_words : int, default=4
            Words beside each topic.
        readable : bool, default=True
            Of a hierarchy, draw the part that can be read, as :meth:`pluri.topics.TopicGraph.readable` gives it.
        **options : of :meth:`plot`
        """
        if not hasattr(model, "topic_graph"):
            raise ValueError(f"model must be a topic model, with topic_graph(), got {type(model).__name__}")
        graph = model.topic_graph(n_words, feature_names=feature_names)
        graph = graph.without_empty().readable() if readable and graph.edges else graph
        place = {node.index: row for row, node in enumerate(graph.nodes)}
        return cls(
            [node.label or " ".join(node.words[:n_words]) for node in graph.nodes],
            [node.weight for node in graph.nodes],
            [node.depth for node in graph.nodes],
            [(place[edge.parent], place[edge.child]) for edge in graph.edges],
            [edge.weight for edge in graph.edges],
            topic_word=model.topic_word_[list(place)],
        ).plot(**options)

    def plot(self, *, ax: Axes | None = None, title: str | None = None, font_size: float = 8.5) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default, large enough for the names.
        title : str, optional
        font_size : float, default=8.5

        Returns
        -------
        TopicGraphDisplay
            Itself.
        """
        if len(self.edges):
            self._plot_layers(ax, font_size)
        else:
            self._plot_map(ax, font_size)
        self.ax_.set_axis_off()
        self.ax_.set_title("" if title is None else title, fontsize="medium")
        return self

    def _plot_layers(self, ax: Axes | None, font_size: float) -> None:
        layout = self.layout_ = layered_layout(self.depth, self.edges, weight=self.edge_weight)
        n_layers = int(layout.layer.max()) + 1
        extent = float(layout.place.max()) + 1
        longest = max(map(len, self.labels)) * font_size / 72 * 0.56
        size = (max(4.5, n_layers * (longest + 0.9)), max(2.4, 0.25 * extent + 0.5))
        self.figure_, self.ax_ = single_axes(ax, size)
        colors = self._branches(layout)
        areas = np.maximum(LARGEST_AREA * self.weight / (self.weight.max() or 1.0), 6.0)
        self.nodes_ = self.ax_.scatter(
            layout.layer, layout.place, s=areas, c=colors, edgecolors="white", linewidths=0.8, zorder=3
        )
        self.ax_.set(xlim=(-0.12, n_layers - 0.12), ylim=(extent - 0.3, -0.7))
        self.labels_ = [
            self.ax_.annotate(
                label,
                (float(layout.layer[place]), float(layout.place[place])),
                xytext=(float(np.sqrt(areas[place] / np.pi)) + 3.5, 0),
                textcoords="offset points",
                ha="left",
                va="center",
                fontsize=font_size,
                zorder=4,
            )
            for place, label in enumerate(self.labels)
        ]
        self._draw_edges(layout, colors)

    def _draw_edges(self, layout: LayeredLayout, colors: list[str]) -> None:
        """Curves that begin where the parent's name ends, so that nothing is struck through."""
        from matplotlib.patches import PathPatch
        from matplotlib.path import Path

        self.figure_.canvas.draw()  # names have a width only when the axes have a size
        to_data = self.ax_.transData.inverted()
        ends = [float(to_data.transform((text.get_window_extent().x1 + 6, 0))[0]) for text in self.labels_]
        strongest = float(self.edge_weight.max()) or 1.0
        self.edges_ = []
        for (parent, child), weight, route in zip(self.edges, self.edge_weight, layout.routes):
            begin = (min(ends[parent], route[0, 0] + 0.9), route[0, 1])
            points, codes = [begin], [Path.MOVETO]
            for stop in route[1:]:
                middle = max((begin[0] + stop[0]) / 2, stop[0] - 0.3)
                points += [(middle, begin[1]), (middle, stop[1]), (stop[0], stop[1])]
                codes += [Path.CURVE4] * 3
                begin = (stop[0], stop[1])
            patch = PathPatch(
                Path(points, codes),
                facecolor="none",
                edgecolor=colors[child],
                alpha=0.5,
                linewidth=0.5 + (LARGEST_WIDTH - 0.5) * float(weight) / strongest,
                capstyle="round",
                zorder=2,
            )
            self.ax_.add_patch(patch)
            self.edges_.append(patch)

    def _branches(self, layout: LayeredLayout) -> list[str]:
        """A colour for each topic just below the top, and for all that lies below it by its strongest edges."""
        home: dict[int, int] = {}
        for number in np.argsort(self.edge_weight, kind="stable"):
            home[int(self.edges[number, 1])] = int(self.edges[number, 0])
        roots = [topic for topic in range(len(self.labels)) if topic not in home]
        bearing = [root for root in roots if root in set(self.edges[:, 0].tolist())]
        tops = [child for child, parent in home.items() if parent == bearing[0]] if len(bearing) == 1 else bearing
        tops.sort(key=lambda topic: float(layout.place[topic]))
        palette = [color for color in PALETTE if color != "#F0E442"]
        known = {top: palette[place % len(palette)] for place, top in enumerate(tops)}
        colors = []
        for topic in range(len(self.labels)):
            walk: int | None = topic
            while walk is not None and walk not in known:
                walk = home.get(walk)
            colors.append(QUIET_COLOR if walk is None else known[walk])
        return colors

    def _plot_map(self, ax: Axes | None, font_size: float) -> None:
        assert self.topic_word is not None
        self.layout_, self.edges_ = None, []
        scale = max(1.0, float(np.sqrt(len(self.labels) / 40)))
        width, height = MAP_WIDTH * scale, MAP_HEIGHT * scale
        points = classical_scaling(hellinger_distances(self.topic_word))
        centres, radii = bubble_map(points, self.weight, width=width, height=height)
        self.figure_, self.ax_ = single_axes(ax, (0.85 * width, 0.85 * height))
        self.ax_.set(xlim=(0, width), ylim=(0, height), aspect="equal")
        self.nodes_ = self._circles(centres, radii)
        self.labels_ = [
            self.ax_.text(x, y, label, ha="center", va="center", fontsize=font_size, zorder=4, linespacing=1.05)
            for (x, y), label in zip(centres, self.labels)
        ]
        self._fit_names(centres, radii)

    def _circles(self, centres: NDArray[np.float64], radii: NDArray[np.float64]) -> PathCollection:
        """Discs in data coordinates: their areas are shares however large the axes are."""
        nodes = self.ax_.scatter(
            centres[:, 0], centres[:, 1], c=[PALETTE[0]] * len(radii), alpha=0.28, edgecolors=PALETTE[0], zorder=3
        )
        # Points per unit of the axes, as they are drawn at the size of the figure.
        self.figure_.canvas.draw()
        unit = self.ax_.transData.transform([(0, 0), (1, 0)])
        points = float(unit[1, 0] - unit[0, 0]) * 72 / self.ax_.figure.dpi
        nodes.set_sizes((2 * radii * points) ** 2)
        return nodes

    def _fit_names(self, centres: NDArray[np.float64], radii: NDArray[np.float64]) -> None:
        """Write as many words as fit into a disc, or all beside it if there is room; large topics choose first."""
        from matplotlib.transforms import Bbox

        middle = self.ax_.transData.transform(centres)
        reach = self.ax_.transData.transform(centres + np.column_stack([radii, np.zeros_like(radii)]))[:, 0]
        rim = reach - middle[:, 0]
        discs = [Bbox([point - radius, point + radius]) for point, radius in zip(middle, rim)]
        taken: list[Any] = []
        for place in np.argsort(-radii, kind="stable"):
            text, words = self.labels_[place], self.labels[place].split()
            for n_lines in range(len(words), 0, -1):
                text.set_text("\n".join(words[:n_lines]))
                box = text.get_window_extent()
                if np.hypot(box.width, box.height) <= 2.1 * rim[place]:
                    break
            else:
                others = [*taken, *(disc for number, disc in enumerate(discs) if number != place)]
                text.set_visible(self._beside(text, centres[place], float(radii[place]), words, others))
            if text.get_visible():
                taken.append(text.get_window_extent())

    def _beside(
        self, text: Text, centre: NDArray[np.float64], radius: float, words: list[str], others: list[Any]
    ) -> bool:
        """Put a name to the right or left of a disc, with all words or the first; False if it does not fit anywhere."""
        for n_words in (len(words), 1):
            text.set_text(" ".join(words[:n_words]))
            for side in (1, -1):
                text.set_horizontalalignment("left" if side > 0 else "right")
                text.set_x(float(centre[0] + side * (radius + 0.05)))
                box = text.get_window_extent()
                inside = box.x0 > self.ax_.bbox.x0 and box.x1 < self.ax_.bbox.x1
                if inside and not any(box.overlaps(other) for other in others):
                    return True
        return False
