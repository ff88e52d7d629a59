"""Coordinates and rows of data, by an embedding that goes both ways."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.dynamics.regions.transitions import with_holes
from pluri.validation import Only, check_value, unmasked
from pluri.validation.sequences import check_sequence_lengths, is_sequence_list, join_sequences, offsets_of

Array = NDArray[np.float64]


def embedding_of(model: Any) -> Any:
    """The embedding of an estimator, if it has one that goes both ways."""
    embedding = model.embedding
    if not (hasattr(embedding, "transform") and hasattr(embedding, "inverse_transform")):
        raise ValueError(
            "embedding must be a fitted object with transform and inverse_transform for space='data', got "
            f"{type(embedding).__name__}"
        )
    return embedding


def from_data(model: Any, X: Any, lengths: ArrayLike | None, space: str) -> tuple[Array | None, Any, ArrayLike | None]:
    """Rows of data, their coordinates (NaN where a row has holes), and lengths; X itself if it is latent."""
    check_value(space, "space", Only("latent", "data"))
    if space == "latent":
        return None, X, lengths
    embedding = embedding_of(model)
    if is_sequence_list(X):
        if lengths is not None:
            raise ValueError("lengths must be None when X is a list of sequences")
        X, lengths = join_sequences(X)
    rows = np.asarray(unmasked(X), dtype=np.float64)
    if rows.ndim != 2:
        raise ValueError(f"X must have two axes, got shape {rows.shape}")
    lengths = check_sequence_lengths(lengths, len(rows))
    holes = with_holes(rows)
    width = int(model.centers_.shape[1])
    coordinates = np.full((len(rows), width), np.nan)
    if not holes.all():
        found = np.asarray(embedding.transform(rows[~holes]), dtype=np.float64)
        if found.shape[1] != width:
            raise ValueError(
                f"embedding must give the {width} coordinates that the model was fitted to, got {found.shape[1]}"
            )
        coordinates[~holes] = found
    return rows, coordinates, lengths


def to_space(model: Any, coordinates: Array, space: str) -> Array:
    """Coordinates as they are, or rows of data; NaN stays NaN."""
    if space == "latent":
        return coordinates
    embedding = embedding_of(model)
    known = ~with_holes(coordinates)
    if not known.any():
        probe = np.asarray(embedding.inverse_transform(np.asarray(model.center_)[None]))
        return np.full((len(coordinates), probe.shape[1]), np.nan)
    made = np.asarray(embedding.inverse_transform(coordinates[known]), dtype=np.float64)
    rows = np.full((len(coordinates), made.shape[1]), np.nan)
    rows[known] = made
    return rows


def carried_across(residuals: Array, lengths: NDArray[np.int64]) -> Array:
    """Residuals with gaps (rows with NaN) filled: linear from one side to the other, constant at the ends."""
    found = residuals.copy()
    offsets = offsets_of(lengths)
    for begin, end in pairwise(offsets.tolist()):
        known = begin + np.flatnonzero(~with_holes(residuals[begin:end]))
        missing = np.setdiff1d(np.arange(begin, end), known)
        for column in range(found.shape[1]) if len(missing) and len(known) else ():
            found[missing, column] = np.interp(missing, known, residuals[known, column])
    return found


def lines_across(rows: Array, lengths: NDArray[np.int64]) -> Array:
    """Rows whose missing values are on the straight line from the row before to the row after, NaN at the ends."""
    found = rows.copy()
    offsets = offsets_of(lengths)
    for begin, end in pairwise(offsets.tolist()):
        known = begin + np.flatnonzero(~with_holes(rows[begin:end]))
        for column in range(rows.shape[1]) if len(known) else ():
            missing = begin + np.flatnonzero(np.isnan(rows[begin:end, column]))
            found[missing, column] = np.interp(missing, known, rows[known, column], left=np.nan, right=np.nan)
    return found
