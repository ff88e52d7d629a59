"""Ids of items, as a person gives them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike


def check_ids(ids: Iterable[Hashable], name: str) -> None:
    """Refuse ids that occur twice."""
    seen: set[Hashable] = set()
    for item in ids:
        if item in seen:
            raise ValueError(f"{name} must not name an item twice, got {item!r} more than once")
        seen.add(item)


def as_ids(ids: ArrayLike | Iterable[Hashable], name: str) -> list[Hashable]:
    """A list of ids, each once; ids of an array become plain numbers or strings."""
    if isinstance(ids, (str, bytes)):
        raise ValueError(f"{name} must be a list of ids, got the string {ids!r}")
    if not isinstance(ids, Iterable) or (isinstance(ids, np.ndarray) and ids.ndim != 1):
        what = f"an array of shape {ids.shape}" if isinstance(ids, np.ndarray) else repr(ids)
        raise ValueError(f"{name} must be a list of ids, got {what}")
    listed: list[Hashable] = ids.tolist() if isinstance(ids, np.ndarray) else list(ids)  # type: ignore[arg-type]
    try:
        distinct = set(listed)
    except TypeError:
        wrong = next(item for item in listed if not _is_hashable(item))
        raise ValueError(
            f"{name} must hold ids that can be looked up, such as numbers, strings or tuples of them, got {wrong!r}"
        ) from None
    if len(distinct) != len(listed):
        check_ids(listed, name)
    return listed


def _is_hashable(item: Any) -> bool:
    try:
        hash(item)  # a tuple of lists is a Hashable by its type only
    except TypeError:
        return False
    return True
