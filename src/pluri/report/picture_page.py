"""A page with a picture before and after: a slider between them, how sure each pixel is, and the dictionary."""

from __future__ import annotations

import base64
import math
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.report.markup import escape
from pluri.report.page import html_page, write_page
from pluri.report.pictures import Range, as_bytes, png
from pluri.report.tables import facts_table

STYLES = ("colors.css", "page.css", "picture.css")
#: Atoms that a page shows.
MOST_ATOMS = 256
GREY = 128


def picture_report(
    before: ArrayLike,
    after: ArrayLike,
    path: str | os.PathLike[str] | None = None,
    *,
    std: ArrayLike | None = None,
    model: Any = None,
    title: str = "Before and after",
    facts: Mapping[str, Any] | None = None,
) -> str:
    """Write a page with a picture before and after, and a slider between them.

    The page is one file: it loads nothing, runs nothing that comes from the data, and can be sent and archived. Its
    address says where the slider is: ``page.html#at=20`` shows a fifth of the picture before.

    Parameters
    ----------
    before, after : array-like of shape (height, width) or (height, width, 3)
        uint8, uint16, or numbers from 0 to 1. What is NaN is shown black.
    path : path, optional
        File to write.
    std : array-like of the same shape, optional
        Standard deviation of each pixel; shown as a map.
    model : ImageDenoiser or ImageInpainter, optional
        Fitted; its dictionary and noise level are shown.
    title : str
        Heading.
    facts : dict, optional
        More to tell, names and values.

    Returns
    -------
    str
        The page.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.report import picture_report
    >>> page = picture_report(np.zeros((20, 30)), np.ones((20, 30)), title="black & white")
    >>> "<title>black &amp; white</title>" in page
    True
    """
    first, second = (_checked(picture, name) for picture, name in ((before, "before"), (after, "after")))
    if first.shape != second.shape:
        raise ValueError(f"before and after must have the same shape, got {np.shape(before)} and {np.shape(after)}")
    told: dict[str, Any] = {"size": f"{first.shape[1]} x {first.shape[0]} pixels"}
    if model is not None:
        low, high = 255 * np.asarray(model.noise_interval_)
        told["noise, sd of 255"] = f"{255 * model.noise_sd_:.2f} ({low:.2f} to {high:.2f})"
        told["atoms"] = len(model.components_)
        told["atoms of a patch, on average"] = float(np.sum(model.usage_))
        told["model"] = type(model).__name__
    body = _body(title, first, second, _more(std, model, first.shape[:2]), told | dict(facts or {}))
    page = html_page(title, body, styles=STYLES, script="picture.js")
    if path is not None:
        write_page(page, path)
    return page


def mosaic(components: NDArray[Any], n_channels: int) -> NDArray[np.uint8]:
    """Atoms as tiles with lines between them, (height, width, 1 or 3); each has the full contrast, grey is 0."""
    atoms = np.asarray(components, dtype=np.float64)[:MOST_ATOMS]
    size = math.isqrt(atoms.shape[1] // n_channels)
    columns = math.ceil(math.sqrt(len(atoms)))
    rows = -(-len(atoms) // columns)
    largest = np.maximum(np.abs(atoms).max(axis=1, keepdims=True), 1e-300)
    tiles = np.clip(np.rint(GREY + 127 * atoms / largest), 0, 255).reshape(len(atoms), size, size, n_channels)
    sheet = np.full((rows * (size + 1) + 1, columns * (size + 1) + 1, n_channels), GREY, dtype=np.uint8)
    for number, tile in enumerate(tiles):
        y, x = (number // columns) * (size + 1) + 1, (number % columns) * (size + 1) + 1
        sheet[y : y + size, x : x + size] = tile
    return sheet


def _checked(picture: ArrayLike, name: str) -> NDArray[np.uint8]:
    found = np.asarray(picture)
    if found.ndim not in (2, 3) or (found.ndim == 3 and found.shape[2] not in (1, 3)) or found.dtype.kind not in "uf":
        raise ValueError(
            f"{name} must be uint8, uint16 or numbers from 0 to 1 of shape (height, width) or (height, width, 3), "
            f"got {found.dtype} of {found.shape}"
        )
    largest = float(np.iinfo(found.dtype).max) if found.dtype.kind == "u" else 1.0
    values = np.nan_to_num(found.reshape(*found.shape[:2], -1).astype(np.float64), nan=0.0)
    return as_bytes(values, Range(0.0, largest))


def _address(pixels: NDArray[np.uint8]) -> str:
    return "data:image/png;base64," + base64.b64encode(png(pixels)).decode()


def _more(std: ArrayLike | None, model: Any, shape: tuple[int, ...]) -> str:
    """The map of standard deviations and the dictionary."""
    parts = []
    if std is not None:
        spread = np.nan_to_num(np.asarray(std, dtype=np.float64))
        if spread.shape[:2] != shape:
            raise ValueError(f"std must have the shape of the picture, {shape}, got {spread.shape}")
        spread = spread.reshape(*shape, -1).mean(axis=2, keepdims=True)
        most = float(np.quantile(spread, 0.99)) or 1.0
        address = _address(as_bytes(spread, Range(0.0, most)))
        parts.append(
            f'<figure><img id="std" src="{address}" alt="Map of standard deviations"><figcaption>Standard deviation of '
            f"each pixel: black is 0, white {255 * most:.1f} of 255 or more.</figcaption></figure>"
        )
    if model is not None:
        address = _address(mosaic(model.components_, int(model.n_channels_)))
        n = min(MOST_ATOMS, len(model.components_))
        parts.append(
            f'<figure><img id="atoms" src="{address}" alt="Dictionary"><figcaption>The {n} atoms that are used most, '
            "the first in the upper left corner.</figcaption></figure>"
        )
    return f'<section class="more">{"".join(parts)}</section>' if parts else ""


def _body(title: str, before: NDArray[np.uint8], after: NDArray[np.uint8], more: str, told: Mapping[str, Any]) -> str:
    height, width = before.shape[:2]
    return f"""<header class="top"><h1>{escape(title)}</h1></header>
<main>
<section class="stage" aria-label="Before and after" style="--width:{width}px">
<div id="frame" style="aspect-ratio:{width}/{height}">
<img id="after" src="{_address(after)}" alt="After"><img id="before" src="{_address(before)}" alt="Before">
<div id="line" aria-hidden="true"></div><b class="tag left">before</b><b class="tag right">after</b></div>
<input type="range" id="slider" min="0" max="100" step="0.5" value="50" aria-label="Share of the picture before">
<p class="note">Drag across the picture, or use <kbd>←</kbd> and <kbd>→</kbd>.</p>
</section>
<aside aria-label="About">{facts_table(told)}</aside>
{more}
</main>"""
