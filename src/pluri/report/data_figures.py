"""Pictures of data as a fitted model sees them: what a page about the model shows beside its numbers.

Which pictures there are depends on what the model can do, not on its class: states are drawn under a sequence, a
forecast after it, labels and coordinates on a map of the rows, a choice among those that were left.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.report.markup import escape

#: Rows of a sequence, and points of a map, that can be told apart on a page.
MOST_STEPS, MOST_POINTS = 1_000, 4_000
WIDE, SQUARE = (8.6, 3.4), (6.2, 4.8)


def draw_data(model: Any, X: Any, lengths: ArrayLike | None = None) -> str:
    """HTML of all pictures of `X` that the model gives: a heading and a PNG inside the page for each.

    Parameters
    ----------
    model : estimator
        Fitted.
    X : array-like of shape (n_samples, n_features), or list of them
    lengths : array-like of shape (n_sequences,), optional
        Of sequences one after the other: the first one is drawn.
    """
    parts = []
    X, lengths = joined(X, lengths)
    for heading, figure in _figures(model, X, lengths):
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=110)
        data = base64.b64encode(buffer.getvalue()).decode("ascii")
        told = escape(heading)
        parts.append(f'<h3>{told}</h3><img class="drawn" alt="{told}" src="data:image/png;base64,{data}">')
    return "".join(parts)


def joined(X: Any, lengths: ArrayLike | None) -> tuple[Any, ArrayLike | None]:
    """Rows of a list of sequences one after the other, and their lengths; an array or a data frame as it is."""
    if not isinstance(X, list | tuple) or not all(np.ndim(one) == 2 for one in X) or not X:
        return X, lengths
    return np.concatenate([np.asarray(one) for one in X]), [len(one) for one in X]


def _figures(model: Any, X: Any, lengths: ArrayLike | None) -> Iterator[tuple[str, Any]]:
    n_rows = len(X) if lengths is None else int(np.ravel(np.asarray(lengths))[0])
    first = X[: min(n_rows, MOST_STEPS)]
    if hasattr(model, "transmat_") and hasattr(model, "predict"):
        yield _states_of(model, first)
        yield _transitions_of(model)
    elif hasattr(model, "forecast"):
        yield _forecast_of(model, first)
    rows = np.asarray(X[:: max(1, -(-len(X) // MOST_POINTS))])
    if rows.ndim != 2 or rows.dtype.kind not in "biuf":
        return
    chosen = getattr(model, "selected_indices_", getattr(model, "selected_", None))
    columns = [str(name) for name in getattr(model, "feature_names_in_", getattr(X, "columns", range(rows.shape[1])))]
    if hasattr(model, "predict") and not hasattr(model, "transmat_") and not hasattr(model, "forecast"):
        yield _labels_of(model, rows, columns)
    elif chosen is not None:
        yield _choice_of(np.asarray(chosen), np.asarray(X), columns)
    elif hasattr(model, "transform") and not hasattr(model, "transmat_") and not hasattr(model, "forecast"):
        yield _coordinates_of(model, rows)


def _figure(size: tuple[float, float]) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    return figure, figure.subplots()


def _states_of(model: Any, rows: Any) -> tuple[str, Any]:
    from pluri.plotting import DecodedSequenceDisplay

    figure, ax = _figure(WIDE)
    DecodedSequenceDisplay.from_estimator(model, rows, ax=ax)
    return f"States of {_first(len(rows))}", figure


def _transitions_of(model: Any) -> tuple[str, Any]:
    from pluri.plotting import TransitionDisplay

    figure, ax = _figure(SQUARE)
    TransitionDisplay.from_estimator(model, ax=ax)
    return "From state to state", figure


def _forecast_of(model: Any, rows: Any) -> tuple[str, Any]:
    from pluri.plotting import ForecastDisplay

    figure, ax = _figure(WIDE)
    horizon = max(5, len(rows) // 8)
    ForecastDisplay.from_estimator(model, rows, horizon, n_shown=min(len(rows), 6 * horizon), ax=ax)
    return f"The first column, and {horizon} rows to come", figure


def _labels_of(model: Any, rows: NDArray[Any], columns: list[str]) -> tuple[str, Any]:
    labels = np.asarray(model.predict(rows))
    if labels.ndim > 1:
        return _predicted_rows(labels, rows, columns)
    figure, ax = _figure(SQUARE)
    places, names = _map_of(rows, columns)
    if labels.dtype.kind == "f" and rows.shape[1] == 1:
        order = np.argsort(rows[:, 0], kind="stable")
        ax.plot(rows[order, 0], labels[order], ".-", ms=4, lw=0.8)
        names = (names[0], "predicted")
    elif labels.dtype.kind == "f":
        points = ax.scatter(*places.T, c=labels, s=10)
        figure.colorbar(points, ax=ax, label="predicted")
    else:
        from pluri.plotting import state_colors

        shown = np.unique(labels)[:20]
        for label, color in zip(shown, state_colors(len(shown))):
            here = labels == label
            ax.scatter(*places[here].T, s=10, color=color, label=f"{label} ({here.sum()})")
        ax.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    ax.set(xlabel=names[0], ylabel=names[1])
    return f"What is predicted of {_first(len(rows), 'rows')}", figure


def _predicted_rows(predicted: NDArray[Any], rows: NDArray[Any], columns: list[str]) -> tuple[str, Any]:
    figure, ax = _figure(WIDE)
    shown = slice(min(len(rows), MOST_STEPS))
    if predicted.shape == rows.shape:
        ax.plot(rows[shown, 0], color="0.6", label="seen")
    ax.plot(predicted[shown, 0], label="predicted")
    ax.set(xlabel="row", ylabel=_column(columns, 0))
    ax.legend(fontsize=8)
    return f"What is predicted of the first column of {_first(len(predicted[shown]), 'rows')}", figure


def _coordinates_of(model: Any, rows: NDArray[Any]) -> tuple[str, Any]:
    found = model.transform(rows)
    places = np.asarray(found.toarray() if hasattr(found, "toarray") else found, dtype=np.float64)
    figure, ax = _figure(SQUARE)
    order = np.argsort(-np.nanvar(places, axis=0), kind="stable")[:2]
    second = places[:, order[1]] if len(order) > 1 else np.zeros(len(places))
    ax.scatter(places[:, order[0]], second, s=10)
    ax.set(xlabel=f"coordinate {order[0]}", ylabel=f"coordinate {order[1]}" if len(order) > 1 else "")
    return f"Where {_first(len(rows), 'rows')} are: the two coordinates that vary most", figure


def _choice_of(chosen: NDArray[Any], rows: NDArray[Any], columns: list[str]) -> tuple[str, Any]:
    if chosen.dtype.kind not in "iu" or (chosen.size and chosen.max() >= len(rows)):
        raise ValueError(f"X must be the rows that the choice was made from, got {len(rows)} rows")
    figure, ax = _figure(SQUARE)
    places, names = _map_of(rows, columns)
    ax.scatter(*places.T, s=6, color="0.7", label="all")
    ax.scatter(*places[chosen].T, s=26, label="chosen")
    ax.legend(fontsize=8)
    ax.set(xlabel=names[0], ylabel=names[1])
    return f"{len(chosen)} of {len(rows)} rows", figure


def _column(columns: list[str], place: int) -> str:
    """The name of a column, or its number."""
    return f"column {columns[place]}" if columns[place].isdigit() else columns[place]


def _map_of(rows: NDArray[Any], columns: list[str]) -> tuple[NDArray[np.float64], tuple[str, str]]:
    """Rows in the plane: as they are, or by principal components of the columns at equal scale, holes at the mean."""
    values = np.asarray(rows, dtype=np.float64)
    if values.shape[1] == 1:
        return np.column_stack([values[:, 0], np.arange(len(values))]), (_column(columns, 0), "row")
    if values.shape[1] == 2:
        return values, (_column(columns, 0), _column(columns, 1))
    seen = np.isfinite(values)
    count = np.maximum(seen.sum(axis=0), 1)
    values = np.where(seen, values - np.where(seen, values, 0).sum(axis=0) / count, 0.0)
    scale = np.sqrt((values**2).sum(axis=0) / count)
    values = values / np.where(scale > 0, scale, 1.0)
    _, _, directions = np.linalg.svd(values, full_matrices=False)
    signs = np.sign(directions[np.arange(len(directions)), np.abs(directions).argmax(axis=1)])
    return values @ (directions * signs[:, None])[:2].T, ("first principal component", "second")


def _first(n: int, what: str = "steps") -> str:
    return f"{n:,} {what}"
