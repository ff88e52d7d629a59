"""A model file as plain data: numbers, text, arrays, lists and dicts, and names instead of classes.

For programs that need a few arrays out of a file at once, and cannot wait until the model's class, and all that it
imports, is there. Nothing is imported and nothing is built: an object is its name and its attributes.
"""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import dataclass
from typing import Any

import numpy as np

from pluri.io.header import NotAModel, PathLike, check_version, not_a_model, open_archive, parse, read_bytes

#: Deeper than any model, and shallow enough for the stack.
MAX_DEPTH = 60


@dataclass(frozen=True)
class PlainObject:
    """An object of a file: the module and name of its class, and its attributes."""

    name: str
    attributes: dict[str, Any]


def read_plain(path: PathLike) -> PlainObject:
    """Read a model file without building the model.

    Parameters
    ----------
    path : path
        File written by :func:`pluri.io.save`.

    Returns
    -------
    PlainObject
        Attributes that are no plain data (functions, random generators, masked or object arrays) are None.

    Raises
    ------
    ValueError
        If the file is damaged, is something else, or has a newer format.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from pluri.io import save
    >>> from pluri.io.plain import read_plain
    >>> from pluri.sequences import GaussianHMM
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(GaussianHMM(3), pathlib.Path(folder) / "model.skops")
    ...     found = read_plain(pathlib.Path(folder) / "model.skops")
    >>> found.name, found.attributes["n_components"]
    ('pluri.sequences.gaussian.GaussianHMM', 3)
    """
    data = read_bytes(path)
    try:
        with open_archive(data) as archive:
            info = parse(archive)
            check_version(info, path)
            found = _read(archive)
            if found.name != info.class_name:
                raise NotAModel("its header names another class than its content")
    except NotAModel as error:
        raise not_a_model(path, error) from error.__cause__
    return found


def _read(archive: zipfile.ZipFile) -> PlainObject:
    try:
        found = _value(json.loads(archive.read("schema.json")), archive, 0)
    except NotAModel:
        raise
    except Exception as error:  # whatever a damaged file can do to a reader of zip, JSON and arrays
        raise NotAModel("its content is damaged") from error
    if not isinstance(found, PlainObject):
        raise NotAModel("its schema describes no object")
    return found


def _value(node: dict[str, Any], archive: zipfile.ZipFile, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise NotAModel("its schema is too deep")
    kind = node["__loader__"]
    if kind == "JsonNode":
        return json.loads(node["content"])
    if kind == "NdArrayNode" and node.get("type") == "numpy":
        return np.lib.format.read_array(io.BytesIO(archive.read(node["file"])), allow_pickle=False)
    if kind == "DictNode":
        return {key: _value(item, archive, depth + 1) for key, item in node["content"].items()}
    if kind in ("ListNode", "TupleNode"):
        return [_value(item, archive, depth + 1) for item in node["content"]]
    if kind == "ObjectNode":
        inside = _value(node["content"], archive, depth + 1)
        return PlainObject(f"{node['__module__']}.{node['__class__']}", inside if isinstance(inside, dict) else {})
    return None
