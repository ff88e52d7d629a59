"""Reading a skops schema before skops does: every node must be of a kind, and build a type, that we know.

skops imports the modules that a file names and builds what it finds there, guided by its own lists of trusted types:
all of scikit-learn, ufuncs and more. Here the schema, which is plain JSON, is first walked with our much shorter
list; only a file in which nothing else occurs is handed on.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from typing import Any

import numpy as np

from pluri.io.header import NotAModel
from pluri.io.trusted import BIT_GENERATORS, Allowed

MAGIC = b"\x93NUMPY"


class UntrustedTypes(Exception):
    """A file names types that are not on the list."""

    def __init__(self, names: set[str]) -> None:
        super().__init__(", ".join(sorted(names)))
        self.names = names


def audit(archive: zipfile.ZipFile, names: Allowed) -> str:
    """Check every node of an archive; return the name of the type at its root.

    Parameters
    ----------
    archive : ZipFile
        A skops file.
    names : Allowed
        Names of the classes and functions it may hold besides numbers, text, arrays and containers.

    Raises
    ------
    UntrustedTypes
        If it names others.
    NotAModel
        If it is damaged.
    """
    try:
        schema = json.loads(archive.read("schema.json"))
    except Exception as error:
        raise NotAModel("its schema cannot be read") from error
    if not isinstance(schema, dict) or "__loader__" not in schema:
        raise NotAModel("its schema describes no object")
    offending: set[str] = set()
    for node in _nodes(schema):
        kind, name = _identity(node)
        if name not in names.of_node(kind):
            offending.add(name)
        elif kind == "NdArrayNode":
            _check_array(archive, node)
        elif kind == "RandomGeneratorNode":
            offending |= _check_bit_generator(node)
    if offending:
        raise UntrustedTypes(offending)
    return _identity(schema)[1]


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """Every description of an object anywhere in the schema; the depth of the tree costs no recursion."""
    waiting = [tree]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            if "__loader__" in item:
                yield item
            waiting.extend(item.values())
        elif isinstance(item, list):
            waiting.extend(item)


def _identity(node: dict[str, Any]) -> tuple[str, str]:
    kind, module, name = (node.get(key) for key in ("__loader__", "__module__", "__class__"))
    if not (isinstance(kind, str) and isinstance(module, str) and isinstance(name, str)):
        raise NotAModel("its schema has a node without a type")
    return kind, f"{module}.{name}"


def _check_array(archive: zipfile.ZipFile, node: dict[str, Any]) -> None:
    """An array in a member: NumPy's own format, no objects, and as many bytes as its header announces."""
    if node.get("type") == "json":
        return
    try:
        with archive.open(node["file"]) as member:
            content = member.read()
        if not content.startswith(MAGIC):
            raise ValueError("not in NumPy's format")
        stream = io.BytesIO(content)
        version = np.lib.format.read_magic(stream)
        read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read_header(stream)
        announced = dtype.itemsize
        for extent in shape:
            announced *= extent
        if dtype.hasobject or announced != len(content) - stream.tell():
            raise ValueError("header and content disagree")
    except Exception as error:
        raise NotAModel(f"its array {node.get('file')!r} is damaged") from error


def _check_bit_generator(node: dict[str, Any]) -> set[str]:
    """Skops calls the class of this name in numpy.random; older versions of it call any function there."""
    try:
        name = json.loads(node["content"]["bit_generator"]["content"]["bit_generator"]["content"])
    except Exception as error:
        raise NotAModel("its random generator has no name") from error
    return set() if name in BIT_GENERATORS else {f"numpy.random.{name}"}
