"""A run of a learner on disk: what was asked and answered, replaced as a whole after every batch.

JSON with the numbers of the rows, their labels, the scores so far, and a digest of what the run was started with. A run
that is begun again with the same file asks for nothing twice, and goes on as if it had never stopped.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.validation import check_writable, replacing

FORMAT = "pluri active learning 1"


def read_run(path: str | os.PathLike[str], about: dict[str, Any]) -> dict[str, Any] | None:
    """What a file tells of a run; None if there is no file; an error if it is of another run."""
    place = Path(path)
    check_writable(path, "checkpoint")
    if not place.exists():
        return None
    try:
        stored = json.loads(place.read_text(encoding="utf-8"))
        good = stored["format"] == FORMAT and len(stored["queried"]) == len(stored["labels"])
    except (ValueError, KeyError, TypeError, UnicodeDecodeError):
        good = False
    if not good:
        raise ValueError(f"checkpoint must be a file of a run of a learner, got {os.fspath(path)!r}, which is another")
    for name, value in about.items():
        if stored["about"].get(name) != value:
            raise ValueError(
                f"checkpoint {os.fspath(path)!r} belongs to another run: its {name} is "
                f"{stored['about'].get(name)!r}, not {value!r}"
            )
    return dict(stored)


def write_run(path: str | os.PathLike[str], about: dict[str, Any], state: dict[str, Any]) -> None:
    """Replace the file."""
    text = json.dumps({"format": FORMAT, "about": about, **state}, ensure_ascii=False)
    with replacing(path, "checkpoint") as file:
        file.write(text.encode("utf-8", "surrogatepass"))


def plain_labels(y: NDArray[Any]) -> list[Any]:
    """Labels as JSON can hold them."""
    labels = y.tolist()
    if not all(isinstance(one, bool | int | float | str) for one in labels):
        raise ValueError("labels must be numbers or text to be kept in checkpoint, got other objects")
    return list(labels)


def labels_like(labels: list[Any], known: NDArray[Any] | None) -> NDArray[Any]:
    """Labels of a file, of the type of those known already."""
    array = np.asarray(labels)
    return array if known is None or known.dtype.kind in "OUS" else array.astype(known.dtype)
