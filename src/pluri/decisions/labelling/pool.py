"""Items to label: what is shown of each, and the numbers by which a model compares them."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pluri.decisions.active.rows import fingerprint

#: Words that texts are compared by, at most: the most frequent ones.
MOST_WORDS = 50_000
#: Characters of a text that are shown.
MOST_SHOWN = 20_000


@dataclass(frozen=True)
class LabelPool:
    """Items to label.

    Attributes
    ----------
    features : ndarray or sparse matrix of shape (n_items, n_features)
        What a model learns from.
    shown : list of dicts
        What a page shows of each item: ``text``; ``cells``, pairs of names and values; or ``pixels``, ``width`` and
        ``height``.
    digest : str
        Of all items in their order.
    """

    features: Any
    shown: Sequence[Mapping[str, Any]]
    digest: str

    def __len__(self) -> int:
        return len(self.shown)

    @classmethod
    def of_texts(cls, texts: Sequence[str | None], beside: Mapping[str, Sequence[Any]] | None = None) -> LabelPool:
        """Texts, compared by their words (TF-IDF).

        Parameters
        ----------
        texts : list of str
            None is an empty text.
        beside : dict of str to sequences, optional
            Further columns to show.

        Examples
        --------
        >>> from pluri.decisions.labelling.pool import LabelPool
        >>> pool = LabelPool.of_texts(["red apple", "green apple"])
        >>> pool.features.shape, pool.shown[1]
        ((2, 3), {'text': 'green apple', 'cells': []})
        """
        whole = [text or "" for text in texts]
        vectorizer = TfidfVectorizer(
            sublinear_tf=True, max_features=MOST_WORDS, min_df=2 if len(whole) >= 1000 else 1, strip_accents="unicode"
        )
        try:
            features = vectorizer.fit_transform(whole)
        except ValueError as error:
            raise ValueError("texts must have words to compare them by, got none") from error
        cells = _cells(beside or {}, len(whole))
        shown = [{"text": text[:MOST_SHOWN], "cells": row} for text, row in zip(whole, cells)]
        return cls(features, shown, hashlib.blake2b("\0".join(whole).encode("utf-8", "replace")).hexdigest()[:32])

    @classmethod
    def of_columns(cls, columns: Mapping[str, Sequence[Any]]) -> LabelPool:
        """Rows of a table: columns of numbers are compared, standardised; others are shown only.

        Examples
        --------
        >>> from pluri.decisions.labelling.pool import LabelPool
        >>> pool = LabelPool.of_columns({"size": [1.0, 3.0], "name": ["a", "b"]})
        >>> pool.features.tolist(), pool.shown[0]
        ([[-1.0], [1.0]], {'cells': [['size', '1'], ['name', 'a']]})
        """
        numbers = [np.asarray(column) for column in columns.values() if np.asarray(column).dtype.kind in "biuf"]
        if not numbers:
            raise ValueError("columns must have at least one of numbers, got text only")
        table = np.column_stack(numbers).astype(np.float64)
        shown = [{"cells": row} for row in _cells(columns, len(table))]
        return cls(_standard(table), shown, fingerprint(table))

    @classmethod
    def of_pictures(cls, pixels: ArrayLike, width: int, height: int) -> LabelPool:
        """Grey pictures, a row of pixels each; the least value of all is shown black and the greatest white.

        Examples
        --------
        >>> from pluri.decisions.labelling.pool import LabelPool
        >>> LabelPool.of_pictures([[0.0, 1.0], [1.0, 0.5]], 2, 1).shown[1]
        {'pixels': [255, 128], 'width': 2, 'height': 1}
        """
        table = np.asarray(pixels, dtype=np.float64)
        if table.ndim != 2 or table.shape[1] != width * height:
            raise ValueError(f"pixels must be {width} times {height} = {width * height} columns, got {table.shape[-1]}")
        least, most = float(np.nanmin(table)), float(np.nanmax(table))
        grey = np.nan_to_num((table - least) * (255.0 / (most - least if most > least else 1.0)))
        shown = [{"pixels": row, "width": width, "height": height} for row in np.rint(grey).astype(np.uint8).tolist()]
        return cls(_standard(table), shown, fingerprint(table))


def _standard(table: NDArray[np.float64]) -> NDArray[np.float64]:
    if np.isinf(table).any():
        raise ValueError(f"columns must be finite, got infinity in row {int(np.isinf(table).any(axis=1).argmax())}")
    steps = make_pipeline(SimpleImputer(strategy="median", keep_empty_features=True), StandardScaler())
    return np.asarray(steps.fit_transform(table))


def _cells(columns: Mapping[str, Sequence[Any]], n_rows: int) -> list[list[list[str]]]:
    return [[[name, _told(column[row])] for name, column in columns.items()] for row in range(n_rows)]


def _told(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)[:MOST_SHOWN]
