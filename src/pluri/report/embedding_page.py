"""A page with a map: points of an embedding to walk through, with colours, labels, pictures and straight cuts."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.plotting.embedding.places import Places, places_of
from pluri.report.embedding_cuts import checked_cuts, cut_data, inverse_of, lattice_data, look_of, shows
from pluri.report.embedding_data import MOST_LABEL, MOST_TITLE, columns_of, fitted_columns, point_data, texts_of
from pluri.report.fit_curve import draw_curve, fit_curve
from pluri.report.markup import escape
from pluri.report.page import html_page, write_page
from pluri.report.pictures import checked_pictures, range_of, sprite_sheet, thumbnails
from pluri.report.tables import facts_table, parameter_table

STYLES = ("colors.css", "page.css", "layout.css", "embedding.css")
#: Twelve colours for light and twelve for dark paper, chosen greedily as those of `pluri.plotting.style` were: two of
#: them differ by at least 14 in CIELAB for each kind of sight (``tests/report/test_embedding_page.py``). The scale is
#: cividis, of which a page leaves out the end that is like its paper.
COLORS = {
    "light": ["#0072b2", "#d55e00", "#009e73", "#b45a94", "#56b4e9", "#ff9900", "#8800ff", "#442200", "#aabb66",
              "#001188", "#770044", "#bb55ff"],
    "dark": ["#56b4e9", "#e69f00", "#009e73", "#dd8fbf", "#8844ff", "#eeffaa", "#bb3311", "#bbffdd", "#994488",
             "#99bb66", "#8888ff", "#ffdd66"],
    "scale": ["#00224e", "#123570", "#3b496c", "#575d6d", "#707173", "#8a8678", "#a59c74", "#c3b369", "#e1cc55",
              "#fee838"],
}  # fmt: skip
BUTTONS = (("in", "+", "Larger"), ("out", "\N{MINUS SIGN}", "Smaller"), ("fit", "⤢", "Show the whole map"))
LATTICE = 24


def embedding_report(
    model: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    title: str | None = None,
    labels: ArrayLike | None = None,
    titles: ArrayLike | None = None,
    columns: Any = None,
    images: ArrayLike | None = None,
    picture_shape: tuple[int, ...] | None = None,
    proportions: ArrayLike | None = None,
    inverse: Any = None,
    cuts: Sequence[tuple[int, int]] = (),
    facts: Mapping[str, Any] | None = None,
) -> str:
    """Write a page with a map on which a reader can move, zoom, search, and look at points.

    The page is one file: it loads nothing, runs nothing that comes from the data, and can be sent and archived. Its
    address says what is shown: ``map.html#point=3`` opens it at point 3 (they are counted from 0).

    Parameters
    ----------
    model : fitted embedding, or array-like of shape (n_points, n_axes) or (n_points, n_images, n_axes)
        A model with ``embedding_``, or ``images_`` and ``proportions_`` if points have several images; or coordinates.
        Of more than two axes the reader chooses two; of more than ten the first ten are there.
    path : path, optional
        File to write.
    title : str, optional
        Heading; by default the kind of model and the number of points.
    labels : array-like of str, optional
        A short name of each point, found by the search and written beside points where there is room.
    titles : array-like of str, optional
        A longer text of each point, shown with it and found by the search.
    columns : mapping of names to columns, or data frame, optional
        What points can be coloured by, the first at the beginning: text, Booleans and up to twelve different whole
        numbers are classes, other numbers have a scale. By default what the model has learned of each point, such as
        its cluster.
    images : array-like of shape (n_points, height, width), with a fourth axis of 3 if they are coloured, optional
        A picture of each point, drawn where it overlaps no other. Large ones are made smaller.
    picture_shape : (height, width) or (height, width, 3), optional
        Shape of rows that are pictures, if `images` has two axes, or for rows that the model makes.
    proportions : array-like of shape (n_points, n_images), optional
        How much of a point is at each of its images; those of the model by default.
    inverse : function or model, optional
        The way back from coordinates to rows, or a model with ``inverse_transform``; that of `model` by default, if it
        has one. The page then shows what is between two points.
    cuts : list of pairs of points, optional
        Pairs between which rows are made exactly; between others the page blends 24 x 24 rows made over the map.
    facts : dict, optional
        More to tell about the model, names and values.

    Returns
    -------
    str
        The page.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.report import embedding_report
    >>> coordinates = np.random.default_rng(0).normal(size=(50, 2))
    >>> page = embedding_report(coordinates, columns={"half": np.arange(50) < 25})
    >>> "50 points" in page
    True
    """
    places = places_of(model, proportions)
    n_points = len(places.coordinates)
    pictures = _pictures(images, picture_shape, n_points)
    values = None if pictures is None else range_of(pictures)
    data: dict[str, Any] = {
        "points": point_data(places),
        "labels": texts_of(labels, n_points, "labels", MOST_LABEL),
        "titles": texts_of(titles, n_points, "titles", MOST_TITLE),
        "columns": columns_of(fitted_columns(model, n_points) if columns is None else columns, n_points),
        "pictures": None if pictures is None or values is None else sprite_sheet(thumbnails(pictures, values)),
        "colors": COLORS,
        **_cuts(model, inverse, places, cuts, look_of(pictures, picture_shape, values)),
    }
    data["color"] = 0 if data["columns"] else -1
    kind = type(model).__name__ if hasattr(model, "fit") else ""
    count = f"{n_points:,} point{'' if n_points == 1 else 's'}"
    heading = title or (f"{kind}: {count}" if kind else f"Map of {count}")
    page = html_page(heading, _body(heading, data, _overview(model, places, facts)), styles=STYLES,
                     script=("embedding_map.js", "embedding.js"), data=data)  # fmt: skip
    if path is not None:
        write_page(page, path)
    return page


def _pictures(images: ArrayLike | None, shape: tuple[int, ...] | None, n_points: int) -> NDArray[Any] | None:
    if images is None:
        return None
    found = np.asarray(images)
    if found.ndim == 2 and shape is not None:
        if found.shape[1] != np.prod(shape):
            raise ValueError(f"images must have rows of {int(np.prod(shape))} values for {shape}, got {found.shape[1]}")
        found = found.reshape(len(found), *shape)
    return checked_pictures(found, n_points)


def _cuts(model: Any, inverse: Any, places: Places, cuts: Sequence[tuple[int, int]], look: Any) -> dict[str, Any]:
    """What lies between points, if the model can go back and each point has one place."""
    back = inverse_of(model, inverse)
    pairs = checked_cuts(cuts, len(places.coordinates))
    several = places.coordinates.shape[1] > 1
    if len(pairs) and (back is None or several):
        got = "points with several images" if several else f"{type(model).__name__}, which has no inverse_transform"
        raise ValueError(f"cuts must be given with a way back from coordinates to rows, got {got}")
    if back is None or several or len(places.coordinates) < 2:
        return {"lattice": None, "cuts": None}
    coordinates = places.coordinates[:, 0]
    if inverse is None and not len(pairs) and not shows(look, back, coordinates):
        return {"lattice": None, "cuts": None}  # nobody has asked for it
    lattice = lattice_data(back, coordinates, look, LATTICE) if coordinates.shape[1] > 1 else None
    return {"lattice": lattice, "cuts": cut_data(back, coordinates, look, pairs) if len(pairs) else None}


def _overview(model: Any, places: Places, facts: Mapping[str, Any] | None) -> str:
    n_points, n_images, n_axes = places.coordinates.shape
    told: dict[str, Any] = {"model": type(model).__name__} if hasattr(model, "fit") else {}
    told |= {"points": n_points, "coordinates": n_axes} | ({"images of each point": n_images} if n_images > 1 else {})
    curve = fit_curve(model)
    return (
        facts_table(told | dict(facts or {}))
        + (draw_curve(curve) if curve is not None else "")
        + (parameter_table(model.get_params(deep=False)) if hasattr(model, "get_params") else "")
    )


def _body(heading: str, data: Mapping[str, Any], overview: str) -> str:
    zoom = "".join(
        f'<button type="button" data-zoom="{way}" title="{told}" aria-label="{told}">{sign}</button>'
        for way, sign, told in BUTTONS
    )
    points = data["points"]
    empty = "" if points["n"] else '<p class="empty">There are no points.</p>'
    band = " One coordinate: the height means nothing." if points["axes"] == 1 else ""
    named = ", ".join(filter(None, ["labels" if data["labels"] else "points", "titles" if data["titles"] else ""]))
    cuts = '<h3>Cuts</h3><ul class="links" id="cuts"></ul>' if data["cuts"] else ""
    return f"""<header class="top">
<h1><a href="#">{escape(heading)}</a></h1>
<div class="search"><input id="find" type="search" placeholder="Find {named} and classes" autocomplete="off"
 spellcheck="false" aria-label="Find {named} and classes" aria-controls="found"><div id="found" hidden></div></div>
</header>
<noscript><p class="note">This map is drawn by JavaScript, which is switched off.</p></noscript>
<main>
<section class="views" aria-label="Map">
<div class="bar"><div class="choices">{_choices(data)}</div>
<div class="zoom" role="group" aria-label="Size">{zoom}</div></div>
<div class="frame"><canvas id="map" tabindex="0" role="application" aria-label="Map of {points["n"]} points. Arrow keys
 move it, plus and minus zoom, 0 shows all of it, Enter chooses the point nearest to its middle."></canvas>
<div id="tip" role="status" hidden></div>{empty}</div>
</section>
<aside id="panel" aria-label="About" tabindex="-1">
{_colors(data["columns"])}<section id="overview"><h2>About the map</h2>{overview}{cuts}
<p class="note hint">Drag to move, turn the wheel or pinch to zoom, click a point to see what it is.{band} With the map
focused, arrow keys move it, <kbd>+</kbd> and <kbd>-</kbd> zoom, <kbd>0</kbd> shows all of it, <kbd>Enter</kbd> chooses
the point at the cross. <kbd>/</kbd> searches, <kbd>Esc</kbd> returns here.</p></section>
<section id="point" aria-live="polite" hidden></section>
</aside>
</main>"""


def _choices(data: Mapping[str, Any]) -> str:
    """What is drawn, as far as there is a choice."""
    parts = []
    n_axes = data["points"]["axes"]
    if n_axes > 2:
        for place, (name, told) in enumerate((("first", "across"), ("second", "up"))):
            options = "".join(
                f'<option value="{axis}"{" selected" if axis == place else ""}>coordinate {axis + 1}</option>'
                for axis in range(n_axes)
            )
            parts.append(f'<label>{told} <select id="{name}">{options}</select></label>')
    if data["pictures"]:
        modes = (("auto", "where there is room"), ("always", "always"), ("never", "never"))
        options = "".join(f'<option value="{mode}">{told}</option>' for mode, told in modes)
        parts.append(f'<label>pictures <select id="pictures">{options}</select></label>')
    if data["points"]["images"] > 1:
        parts.append('<label><input type="checkbox" id="lines" checked> lines between images</label>')
    return "".join(parts)


def _colors(columns: Sequence[Mapping[str, Any]]) -> str:
    if not columns:
        return '<div id="legend" hidden></div>'
    options = "".join(
        f'<option value="{place}">{escape(column["name"])}</option>' for place, column in enumerate(columns)
    )
    return (
        '<section id="colors"><h3>Colour</h3><select id="color" aria-label="Colour by"><option value="-1">one colour'
        f'</option>{options}</select><div id="legend"></div></section>'
    )
