"""A page about any fitted model: data as it sees them, how the fit went, its summary, parameters and small arrays."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pluri.report.data_figures import draw_data
from pluri.report.fit_curve import draw_curve, fit_curve
from pluri.report.markup import escape
from pluri.report.page import html_page, write_page
from pluri.report.tables import array_table, facts_table, parameter_table

#: What attributes are called where their names are no words.
TOLD = {"n_features_in_": "columns", "n_iter_": "iterations", "n_samples_fit_": "rows of the fit"}
MOST_ARRAYS = 12
MOST_FACTS = 24


#: Arrays with a number for each column of the data, which are headed by its name.
BY_COLUMN = ("components", "feature variance", "lambdas", "means", "noise variance", "probabilities", "probs", "rates")


def model_report(
    model: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    title: str | None = None,
    X: Any = None,
    lengths: ArrayLike | None = None,
) -> str:
    """Write a page about a fitted model; topic models get that of :func:`topic_report`, maps :func:`embedding_report`.

    Parameters
    ----------
    model : estimator
        Fitted.
    path : path, optional
        File to write.
    title : str, optional
        Heading; the name of the class by default.
    X : array-like of shape (n_samples, n_features), or list of such sequences, optional
        Data to draw as the model sees them: states under a sequence, a forecast after it, labels or coordinates on a
        map of the rows. The columns of a data frame are named on the map. Pages about topics and maps hold their own.
    lengths : array-like of shape (n_sequences,), optional
        Of sequences that were joined to one array `X`, of which the first is drawn; a list brings its own.

    Returns
    -------
    str
        The page.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.mixtures import GaussianMixture
    >>> from pluri.report import model_report
    >>> X = np.array([[0.0], [0.1], [5.0], [5.1]])
    >>> page = model_report(GaussianMixture(2, random_state=0).fit(X))
    >>> "means" in page, "<script" in page
    (True, False)
    >>> "data:image/png" in model_report(GaussianMixture(2, random_state=0).fit(X), X=X)
    True
    """
    from sklearn.utils.validation import check_is_fitted

    found: Any = getattr(model, "images_", getattr(model, "embedding_", None))
    if X is not None and (hasattr(model, "topic_graph") or np.ndim(found) in (2, 3)):
        raise ValueError(f"X must not be given for {type(model).__name__}, whose page holds the data of its fit")
    if hasattr(model, "topic_graph"):
        from pluri.report.topic_page import topic_report

        return topic_report(model, path, title=title)
    if np.ndim(found) in (2, 3):
        from pluri.report.embedding_page import embedding_report

        return embedding_report(model, path, title=title)
    if not hasattr(model, "get_params") or not hasattr(model, "fit"):
        raise TypeError(
            f"model must be an estimator (a topic model, a mixture, a hidden Markov model, ...), got "
            f"{type(model).__name__}"
        )
    check_is_fitted(model)
    heading = title or type(model).__name__
    drawn = "" if X is None else draw_data(model, X, lengths)
    page = html_page(heading, _body(heading, model, drawn), styles=("colors.css", "page.css", "model.css"))
    if path is not None:
        write_page(page, path)
    return page


def _body(heading: str, model: Any, drawn: str) -> str:
    fitted = dict(_fitted(model))
    facts = {name: value for name, value in fitted.items() if np.ndim(value) == 0}
    arrays = {
        name: np.asarray(value) for name, value in fitted.items() if np.ndim(value) in (1, 2) and np.size(value) > 0
    }
    facts = {"model": type(model).__name__, **dict(list(facts.items())[:MOST_FACTS])}
    parts = [f"<h1>{escape(heading)}</h1>", facts_table(facts), drawn]
    curve = fit_curve(model)
    if curve is not None:
        parts.append(draw_curve(curve))
    summary = _summary(model)
    if summary:
        parts.append(f"<h3>Summary</h3><pre>{escape(summary)}</pre>")
    columns = [str(column) for column in arrays.pop("feature names in", ())]
    for name, values in list(arrays.items())[:MOST_ARRAYS]:
        named = columns if name in BY_COLUMN and values.shape[-1] == len(columns) else None
        size = " x ".join(map(str, values.shape))
        parts.append(f"<h3>{escape(name)} ({size})</h3>{array_table(values, columns=named)}")
    parts.append(parameter_table(model.get_params(deep=False)))
    return f'<main class="plain">{"".join(parts)}</main>'


def _summary(model: Any) -> str:
    method = getattr(model, "summary", None)
    return str(method()) if callable(method) else ""


def _fitted(model: Any) -> Iterator[tuple[str, Any]]:
    """Fitted attributes that a table can show: numbers, words, and arrays of either."""
    for name, value in vars(model).items():
        if not name.endswith("_") or name.startswith("_") or name in ("history_", "log_joint_", "elbo_", "trace_"):
            continue
        told = TOLD.get(name) or name.removesuffix("_").replace("_", " ")
        if value is None or isinstance(value, bool | int | float | str | np.generic):
            yield told, value
        elif isinstance(value, np.ndarray) and value.dtype.kind in "biufUSO":
            yield told, value.item() if value.ndim == 0 else value
