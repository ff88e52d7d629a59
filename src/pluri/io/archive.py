"""Saving and loading a model: one file, written whole or not at all, read without running anything.

Models that come from a file are looked at before anybody uses them. Nothing in a file can run, but compiled loops do
not look where they read and write: an index out of range, or an array shorter than another, could end the process.
Every object of a loaded model is held against its own account of what it may look like: the table `_fitted_layout` of
its class and its method `_check_fitted_state`, if it has them. Sparse matrices are checked wherever they are.
"""

from __future__ import annotations

import importlib
import io
import json
import os
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from pluri.io.audit import UntrustedTypes, audit
from pluri.io.header import (
    MEMBER,
    NotAModel,
    PathLike,
    check_version,
    describe,
    not_a_model,
    open_archive,
    parse,
    read_bytes,
    to_json,
)
from pluri.io.portable import pack, restore
from pluri.io.trusted import Allowed, allowed, type_name
from pluri.validation import Stored, check_compressed, check_layout, check_target, replacing


def save(model: Any, path: PathLike, *, notes: Mapping[str, Any] | None = None, trusted: Sequence[Any] = ()) -> None:
    """Save a model in a file that can be loaded without running code.

    Stored are all parameters, fitted attributes and the versions of the packages involved. Not stored is what belongs
    to this machine: an engine that is an object (names are kept), a checkpoint path, a monitor of your own class,
    callbacks. The file is replaced in one go or stays as it was.

    Parameters
    ----------
    model : estimator
        A model of pluri, fitted or not, or a scikit-learn ``Pipeline`` that ends in one.
    path : path
        File to write, by custom with the suffix ``.skops``; its folder must exist. A link is followed: the file it
        leads to is replaced. What is no regular file (a device, a pipe, a socket) is refused.
    notes : dict, optional
        Anything JSON can hold that is to be remembered with the model; see :func:`read_info`.
    trusted : list of classes and functions, optional
        Those of your own that the model holds, such as a prior or a score; `load` needs them too.

    Raises
    ------
    ValueError
        If the model holds something that could not be loaded again, or `path` names something else than a file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from pluri.io import load, save
    >>> from pluri.sequences import GaussianHMM
    >>> X = np.array([[0.0], [0.1], [5.0], [5.1], [0.1]] * 3)
    >>> model = GaussianHMM(2, random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(model, pathlib.Path(folder) / "model.skops")
    ...     same = load(pathlib.Path(folder) / "model.skops")
    >>> bool((same.predict(X) == model.predict(X)).all())
    True
    """
    check_target(path)
    names = allowed(trusted)
    name = type_name(type(model))
    if name not in names.objects:
        raise ValueError(f"model must be a model of pluri or a pipeline of them, got {name}")
    header = to_json(describe(name, notes))
    try:
        check_soundness(model)  # by the rules of `load`, so that no file is written that could not be read
    except Unsound as error:
        raise ValueError(f"model must be sound to be loaded again, but {error}") from error.__cause__
    content = _archive(pack(model, names), name, header, names)
    with replacing(path) as file:
        file.write(content)


def _archive(packed: Any, name: str, header: str, names: Allowed) -> memoryview:
    import skops.io

    try:
        data = io.BytesIO(skops.io.dumps(packed))
        with zipfile.ZipFile(data, "a") as archive:
            archive.writestr(MEMBER, header)
            audit(archive, names)  # by the list of `load`, so that no file is written that could not be read
    except Exception as error:
        raise ValueError(f"model must hold only what can be loaded again, got {name} with {error}") from error
    return data.getbuffer()


def load(path: PathLike, *, trusted: Sequence[Any] = ()) -> Any:
    """Load a model saved by :func:`save`; nothing in the file is ever run.

    Only the types that pluri's models are made of are built, from an explicit list (`pluri.io.trusted`); a file with
    any other is refused before anything is imported. Arrays that do not belong together (an index out of range, another
    shape) are refused too: compiled loops would read and write wherever such a file tells them.

    Parameters
    ----------
    path : path
        File written by :func:`save`.
    trusted : list of classes and functions, optional
        Those of your own that the file may hold as well. Instances are built without ``__init__``, and with
        ``__setstate__`` if the class has it.

    Returns
    -------
    model : estimator

    Raises
    ------
    ValueError
        If the file is damaged or tampered with, is something else, holds other types, or has a newer format.

    Warns
    -----
    VersionWarning
        If a newer major or minor version of pluri wrote it.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from pluri.io import load
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "notes.skops"
    ...     _ = path.write_text("no model")
    ...     load(path)
    Traceback (most recent call last):
    ...
    ValueError: path must name a model saved by pluri.io.save, got '...': it is not a zip archive, or is cut short
    """
    data = read_bytes(path)
    names = allowed(trusted)
    try:
        with open_archive(data) as archive:
            info = parse(archive)
            check_version(info, path)
            if audit(archive, names) != info.class_name:
                raise NotAModel("its header names another class than its content")
    except NotAModel as error:
        raise not_a_model(path, error) from error.__cause__
    except UntrustedTypes as error:
        raise ValueError(
            f"path must name a file with types of pluri only, got {os.fspath(path)!r} with {error}: nothing was loaded"
        ) from None
    model = _build(data, names, path)
    try:
        check_soundness(model)
    except Unsound as error:
        raise not_a_model(path, error) from error.__cause__
    return model


def _build(data: bytes, names: Allowed, path: PathLike) -> Any:
    import skops.io

    _import_types(data)  # what fails here is not the fault of the file: it goes on as it is
    try:
        return restore(skops.io.loads(data, trusted=names.names))
    except MemoryError:
        raise
    except Exception as error:
        raise not_a_model(path, "its content is damaged") from error


def _import_types(data: bytes) -> None:
    """Import the modules that a file names, all of which are known to be allowed."""
    modules: set[str] = set()

    def look(node: dict[str, Any]) -> None:
        if "__loader__" in node:
            modules.add(node["__module__"])

    with open_archive(data) as archive:
        json.loads(archive.read("schema.json"), object_hook=look)
    for module in sorted(modules):
        importlib.import_module(module)


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
    >>> from pluri.io.archive import check_soundness
    >>> from pluri.sequences import GaussianHMM
    >>> model = GaussianHMM(2, random_state=0).fit(np.array([[0.0], [0.1], [5.0], [5.1], [0.1]] * 3))
    >>> check_soundness(model)
    >>> model.means_ = model.means_[:1]
    >>> check_soundness(model)
    Traceback (most recent call last):
    ...
    pluri.io.archive.Unsound: its GaussianHMM is damaged: means_ must have shape (2, n_features), got (1, 1)
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
