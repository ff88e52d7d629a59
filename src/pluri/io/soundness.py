"""Models that come from a file are looked at before anybody uses them: do their arrays belong together?

Nothing in a file can run, but compiled loops do not look where they read and write: an index out of range, or an array
shorter than another, could end the process. Every object of a loaded model is held against its own account of what it
may look like: the table `_fitted_layout` of its class and its method `_check_fitted_state`, if it has them. Sparse
matrices are checked wherever they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import FunctionType
from typing import Any

import numpy as np

from pluri.validation import Stored, check_compressed, check_layout


class Unsound(Exception):
    """Parts of a model that do not belong together; the message names the class and the attribute."""


def check_soundness(model: Any) -> None:
    """Hold every object of a model against what its class says about it.

    Raises
    ------
    Unsound
        In a few words that name the class and the attribute.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.io.soundness import check_soundness
    >>> from pluri.sequences import GaussianHMM
    >>> model = GaussianHMM(2, random_state=0).fit(np.array([[0.0], [0.1], [5.0], [5.1], [0.1]] * 3))
    >>> check_soundness(model)
    >>> model.means_ = model.means_[:1]
    >>> check_soundness(model)
    Traceback (most recent call last):
    ...
    pluri.io.soundness.Unsound: its GaussianHMM is damaged: means_ must have shape (2, n_features), got (1, 1)
    """
    for part in _parts(model):
        try:
            if hasattr(part, "indptr") and hasattr(part, "has_canonical_format"):
                _check_sparse(part)
            check_layout(part, _layout_of(type(part)))
            check = getattr(type(part), "_check_fitted_state", None)
            if check is not None:
                check(part)
        except Exception as error:  # whatever a check stumbles over, what it looked at is not what it should be
            raise Unsound(f"its {type(part).__name__} is damaged: {' '.join(str(error).split())}") from error


def _layout_of(kind: type) -> dict[str, Stored]:
    """The table of a class and of those that it is made from."""
    layout: dict[str, Stored] = {}
    for base in reversed(kind.__mro__):
        layout |= vars(base).get("_fitted_layout", {})
    return layout


def _parts(model: Any) -> Iterator[Any]:
    """Every object in a model, the inner ones first, each once; the depth of a model costs no recursion."""
    found: list[Any] = []
    seen: set[int] = set()
    waiting = [model]
    while waiting:
        item = waiting.pop()
        if id(item) in seen or item is None or isinstance(item, str | int | float | type | FunctionType):
            continue
        seen.add(id(item))
        if isinstance(item, dict):
            waiting.extend(item.values())
        elif isinstance(item, list | tuple):
            if hasattr(item, "_fields"):
                found.append(item)
            waiting.extend(item)
        elif isinstance(item, np.ndarray):
            waiting.extend(np.ma.getdata(item).ravel() if item.dtype == object else ())
        elif isinstance(getattr(item, "__dict__", None), dict):
            found.append(item)
            waiting.extend(vars(item).values())
    # A model may ask its parts to check itself; they must be sound by then.
    return reversed(found)


def _check_sparse(matrix: Any) -> None:
    n_major, n_minor = matrix.shape if matrix.format != "csc" else matrix.shape[::-1]
    if matrix.format == "bsr":
        n_major, n_minor = n_major // matrix.blocksize[0], n_minor // matrix.blocksize[1]
    check_compressed(f"a {matrix.format} matrix", matrix.indptr, matrix.indices, n_major, n_minor)
    if len(matrix.data) != len(matrix.indices):
        raise ValueError(f"a {matrix.format} matrix must have {len(matrix.indices)} entries, got {len(matrix.data)}")
    if matrix.data.dtype.kind not in "biuf":
        raise ValueError(f"a {matrix.format} matrix must hold numbers, got {matrix.data.dtype}")
