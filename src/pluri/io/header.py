"""Who wrote a model file: the class and the versions, in the archive's member ``pluri.json``."""

from __future__ import annotations

import io
import json
import os
import re
import warnings
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

MEMBER = "pluri.json"
FORMAT = 1
PACKAGES = ("pluri", "numpy", "scikit-learn", "skops")

PathLike = str | os.PathLike[str]


class VersionWarning(UserWarning):
    """A model was saved by a newer version of pluri than the one that loads it."""


@dataclass(frozen=True)
class ModelInfo:
    """What a model file says about itself; nothing of the model is built to read it.

    Attributes
    ----------
    class_name : str
        Module and name of the model's class.
    versions : dict of str to str
        Versions of the packages that saved it: pluri, numpy, scikit-learn, skops.
    notes : dict
        What the caller of :func:`save` wished to remember, such as the names of columns.
    format : int
        Number of the file format.
    """

    class_name: str
    versions: dict[str, str]
    notes: dict[str, Any] = field(default_factory=dict)
    format: int = FORMAT


class NotAModel(Exception):
    """The bytes are no archive of ours; the message says in a few words what is wrong."""


def installed(package: str) -> str:
    """Version of a package, or "unknown" if it runs from a folder that was never installed."""
    if package == "pluri":
        from pluri import __version__

        return __version__
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "unknown"


def describe(class_name: str, notes: Mapping[str, Any] | None = None) -> ModelInfo:
    """The header that a file written now would have."""
    return ModelInfo(class_name, {package: installed(package) for package in PACKAGES}, dict(notes or {}))


def to_json(info: ModelInfo) -> str:
    """Text of the archive's member."""
    fields = {"format": info.format, "class": info.class_name, "versions": info.versions, "notes": info.notes}
    try:
        return json.dumps(fields, indent=2, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"notes must be what JSON can hold, got {info.notes!r}") from error


def open_archive(data: bytes) -> zipfile.ZipFile:
    """The zip archive in some bytes, or `NotAModel`."""
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
        names = archive.namelist()
    except Exception as error:
        raise NotAModel("it is not a zip archive, or is cut short") from error
    if MEMBER not in names or "schema.json" not in names:
        raise NotAModel(f"it is an archive without the members {MEMBER} and schema.json")
    if len(set(names)) != len(names):
        raise NotAModel("it has two members of the same name")
    # Members are stored as they are, so a small file cannot unfold into a huge one.
    if any(member.compress_type != zipfile.ZIP_STORED for member in archive.infolist()):
        raise NotAModel("it has compressed members, which pluri does not write")
    return archive


def parse(archive: zipfile.ZipFile) -> ModelInfo:
    """Header of an archive, or `NotAModel`."""
    try:
        given = json.loads(archive.read(MEMBER))
        info = ModelInfo(given["class"], dict(given["versions"]), dict(given["notes"]), given["format"])
        texts = [info.class_name, *info.versions, *info.versions.values()]
        if type(info.format) is not int or not all(isinstance(text, str) for text in texts):
            raise TypeError("header fields of the wrong type")
    except Exception as error:
        raise NotAModel(f"its member {MEMBER} cannot be read") from error
    return info


def check_version(info: ModelInfo, path: PathLike) -> None:
    """Refuse a newer file format; warn if a newer major or minor version of pluri wrote the file."""
    theirs = info.versions.get("pluri", "unknown")
    ours = installed("pluri")
    if info.format > FORMAT:
        raise ValueError(
            f"path must hold a model of file format {FORMAT} or older, got format {info.format} in "
            f"{os.fspath(path)!r}, saved by pluri {theirs}: update pluri (this is {ours})"
        )
    if (_minor(theirs) or (0, 0)) > (_minor(ours) or (0, 0)):
        warnings.warn(
            f"{os.fspath(path)!r} was saved by pluri {theirs}, newer than this pluri {ours}: the model may behave "
            "differently; update pluri",
            VersionWarning,
            stacklevel=3,
        )


def _minor(version: str) -> tuple[int, int] | None:
    found = re.match(r"(\d{1,6})\.(\d{1,6})", version)
    return (int(found[1]), int(found[2])) if found else None


def read_bytes(path: PathLike) -> bytes:
    """Content of a file; the usual errors name the argument."""
    place = Path(path)
    if place.is_dir():
        raise IsADirectoryError(f"path must name a model file, got the folder {os.fspath(path)!r}")
    if not place.exists():
        raise FileNotFoundError(f"path must name an existing model file, got {os.fspath(path)!r}")
    return place.read_bytes()


def not_a_model(path: PathLike, reason: object) -> ValueError:
    """The one sentence for a file that is damaged or something else."""
    return ValueError(f"path must name a model saved by pluri.io.save, got {os.fspath(path)!r}: {reason}")


def read_info(path: PathLike) -> ModelInfo:
    """Read which class and which versions wrote a model file, without loading the model.

    Parameters
    ----------
    path : path
        File written by :func:`save`.

    Returns
    -------
    ModelInfo

    Raises
    ------
    ValueError
        If the file is damaged or something else.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from pluri.io import read_info, save
    >>> from pluri.sequences import GaussianHMM
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(GaussianHMM(3), pathlib.Path(folder) / "model.skops")
    ...     read_info(pathlib.Path(folder) / "model.skops").class_name
    'pluri.sequences.gaussian.GaussianHMM'
    """
    data = read_bytes(path)
    try:
        with open_archive(data) as archive:
            return parse(archive)
    except NotAModel as error:
        raise not_a_model(path, error) from error.__cause__
