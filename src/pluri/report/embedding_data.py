"""What a page about a map knows: places, labels and columns, as short texts and packed numbers."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.plotting.embedding.places import LARGEST, Places

#: Coordinates that a reader can choose the axes from.
MOST_AXES = 10
#: Classes with a colour and shape of their own: twelve colours, three shapes. Others are drawn alike.
MOST_CLASSES = 36
#: A column of whole numbers with at most so many different ones is one of classes.
MOST_WHOLE_CLASSES = 12
MOST_LABEL, MOST_TITLE = 120, 400
#: The colours end at quantiles if few values would otherwise use up two thirds of them.
TAIL, MIDDLE = 0.01, 1.0 / 3.0

Array = NDArray[np.float64]


def point_data(places: Places) -> dict[str, Any]:
    """Places as the page has them: coordinates from the middle of the map, in units of half its longest side."""
    coordinates = places.coordinates[:, :, :MOST_AXES]
    n_points, n_images, n_axes = coordinates.shape
    flat = coordinates.reshape(-1, n_axes)
    low, high = (flat.min(axis=0), flat.max(axis=0)) if len(flat) else (np.zeros(n_axes), np.zeros(n_axes))
    middle, unit = low / 2 + high / 2, float((high - low).max()) / 2 or 1.0
    return {
        "n": n_points,
        "images": n_images,
        "axes": n_axes,
        "of": places.coordinates.shape[2],
        "middle": middle.tolist(),
        "unit": unit,
        "coordinates": packed(((flat - middle) / unit).T.astype(np.float32)),
        "proportions": packed(places.proportions.ravel().astype(np.float32)) if n_images > 1 else None,
    }


def texts_of(values: ArrayLike | None, n_points: int, name: str, most: int) -> list[str] | None:
    """One text for each point, cut where it is long; an empty one where there is none."""
    if values is None:
        return None
    found = list(values) if isinstance(values, Sequence) else np.asarray(values, dtype=object).tolist()
    if isinstance(values, str) or len(found) != n_points:
        got = repr(values) if isinstance(values, str) else str(len(found))
        other = " (the heading of the page is title)" if name == "titles" else ""
        raise ValueError(f"{name} must have one text for each of the {n_points} points{other}, got {got}")
    texts = ["" if _is_missing(value) else " ".join(str(value).split()) for value in found]
    return [text if len(text) <= most else text[: most - 1].rstrip() + "…" for text in texts]


def columns_of(columns: Any, n_points: int) -> list[dict[str, Any]]:
    """A table (a mapping or a data frame), each column as classes or as numbers.

    Examples
    --------
    >>> from pluri.report.embedding_data import columns_of
    >>> [column["kind"] for column in columns_of({"species": ["a", "b", "a"], "size": [0.5, 1.5, 2.5]}, 3)]
    ['classes', 'numbers']
    """
    if columns is None:
        return []
    if not isinstance(columns, Mapping) and not hasattr(columns, "columns"):
        raise TypeError(f"columns must be a mapping of names to columns or a data frame, got {type(columns).__name__}")
    names = list(columns.columns) if hasattr(columns, "columns") else list(columns)
    return [_column(str(name), columns[name], n_points) for name in names]


def fitted_columns(model: Any, n_points: int) -> dict[str, NDArray[Any]]:
    """What a fitted model knows of each point: its cluster (``labels_``), its cost, its local dimension."""
    found = {}
    for name, value in vars(model).items() if hasattr(model, "fit") else ():
        is_public = name.endswith("_") and not name.startswith("_")
        if is_public and isinstance(value, np.ndarray) and value.shape == (n_points,) and value.dtype.kind in "biuf":
            found["cluster" if name == "labels_" else name.removesuffix("_").replace("_", " ")] = value
    return dict(sorted(found.items(), key=lambda item: item[0] != "cluster"))


def _column(name: str, values: Any, n_points: int) -> dict[str, Any]:
    cells = np.asarray(values)
    if cells.dtype.kind not in "biuf":
        cells = np.empty(len(values), dtype=object)
        cells[:] = list(values)
    if cells.shape != (n_points,):
        raise ValueError(f"columns[{name!r}] must have one value for each of {n_points} points, got {cells.shape}")
    if cells.dtype == object:
        numbers = _as_numbers(cells)
        cells = cells if numbers is None else numbers
    if cells.dtype.kind not in "iuf":
        return _classes(name, cells.tolist())
    present = cells[np.isfinite(cells)]
    whole = bool((present == np.floor(present)).all())
    if whole and len(np.unique(present)) <= MOST_WHOLE_CLASSES:
        return _classes(name, [int(value) if np.isfinite(value) else None for value in cells.tolist()])
    if present.size and np.abs(present).max() > LARGEST:
        raise ValueError(f"columns[{name!r}] must hold numbers up to {LARGEST:g}, got {np.abs(present).max():g}")
    return _numbers(name, cells.astype(np.float64), whole)


def _as_numbers(cells: NDArray[Any]) -> Array | None:
    """Numbers among which some are missing; None if there is anything else."""
    if all(_is_missing(cell) or (isinstance(cell, int | float | np.number) and cell is not True) for cell in cells):
        return np.array([np.nan if _is_missing(cell) else float(cell) for cell in cells], dtype=np.float64)
    return None


def _classes(name: str, cells: list[Any]) -> dict[str, Any]:
    """Classes in the order of their names (of numbers: of their values), the largest ones if there are too many."""
    present = [cell for cell in cells if not _is_missing(cell)]
    count: dict[Any, int] = {}
    for cell in present:
        count[cell] = count.get(cell, 0) + 1
    kept = sorted(count, key=lambda cell: (-count[cell], str(cell)))[:MOST_CLASSES]
    in_order = sorted(kept) if all(isinstance(cell, int) for cell in kept) else sorted(kept, key=str)
    code = {cell: place for place, cell in enumerate(in_order)}
    others, missing = len(in_order), len(in_order) + 1
    codes = [missing if _is_missing(cell) else code.get(cell, others) for cell in cells]
    return {
        "name": name,
        "kind": "classes",
        "classes": [" ".join(str(cell).split())[:MOST_LABEL] for cell in in_order],
        "others": len(count) - len(kept),
        "codes": packed(np.array(codes, dtype=np.uint8)),
    }


def _numbers(name: str, values: Array, whole: bool) -> dict[str, Any]:
    present = values[np.isfinite(values)]
    low, high = (float(present.min()), float(present.max())) if present.size else (0.0, 1.0)
    least, greatest = (float(q) for q in np.quantile(present, [TAIL, 1 - TAIL])) if present.size else (low, high)
    is_cut = 0 < greatest - least < MIDDLE * (high - low)
    shares = (values - low) / ((high - low) or 1.0)  # in single precision dates would lose their minutes
    return {
        "name": name,
        "kind": "numbers",
        "whole": whole,
        "least": low,
        "greatest": high,
        "range": [least, greatest] if is_cut else [low, high],
        "values": packed(np.where(np.isfinite(values), shares, np.nan).astype(np.float32)),
    }


def _is_missing(value: Any) -> bool:
    return value is None or value != value or str(value) in ("<NA>", "NaT")


def packed(values: NDArray[Any]) -> str:
    """Numbers in base 64, little-endian, as typed arrays of browsers are."""
    kind = values.dtype.newbyteorder("<")
    return base64.b64encode(np.ascontiguousarray(values, dtype=kind).tobytes()).decode()
