"""Files to write: replaced in one go or left as they were, and nothing but regular files is ever replaced.

A file is written beside its target and then renamed over it. Renaming over a device, a pipe or a socket would delete
what other programs use, so these are refused. A link is followed: the file it leads to is replaced and the link stays.
"""

from __future__ import annotations

import contextlib
import os
import stat
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

PathLike = str | os.PathLike[str]

#: What may stand in the place of a regular file.
KINDS = (
    (stat.S_ISFIFO, "pipe"),
    (stat.S_ISSOCK, "socket"),
    (stat.S_ISCHR, "device"),
    (stat.S_ISBLK, "device"),
)


def check_target(path: PathLike, name: str = "path") -> Path:
    """The file that writing to a path would make or replace, behind any links.

    Parameters
    ----------
    path : path
    name : str, default="path"
        What the caller calls it, for messages.

    Returns
    -------
    Path

    Raises
    ------
    IsADirectoryError, FileNotFoundError, ValueError
        If it is a folder, lies in no existing folder, or is something else than a regular file.

    Examples
    --------
    >>> import tempfile
    >>> from pluri.validation import check_target
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     check_target(folder + "/nowhere/model.skops")
    Traceback (most recent call last):
    ...
    FileNotFoundError: path must lie in an existing folder, got '.../nowhere/model.skops'
    """
    told = os.fspath(path)
    try:
        # By the path itself: what /dev/stdout leads to cannot be found by a name.
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        mode = None
    except NotADirectoryError:
        raise FileNotFoundError(f"{name} must lie in an existing folder, got {told!r}") from None
    except OSError as error:
        raise type(error)(f"{name} must name a file that can be written, got {told!r}: {error.strerror}") from error
    target = Path(os.path.realpath(path))
    if mode is not None and stat.S_ISDIR(mode):
        raise IsADirectoryError(f"{name} must name a file, got the folder {told!r}")
    if mode is not None and not stat.S_ISREG(mode):
        kind = next((kind for test, kind in KINDS if test(mode)), "special file")
        raise ValueError(f"{name} must name a regular file, got the {kind} {told!r}")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{name} must lie in an existing folder, got {told!r}")
    return target


def check_writable(path: PathLike, name: str = "path") -> None:
    """Refuse what `replacing` could not write, before the work is done whose result is to be kept.

    A file is made in the folder and deleted again: permissions alone say nothing of a read-only file system.
    """
    target = check_target(path, name)
    descriptor, temporary = _beside(target, path, name)
    os.close(descriptor)
    os.unlink(temporary)


@contextlib.contextmanager
def replacing(path: PathLike, name: str = "path") -> Iterator[BinaryIO]:
    """A file to write that takes the place of `path` at the end, if nothing went wrong.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from pluri.validation import replacing
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     place = pathlib.Path(folder, "greeting.txt")
    ...     with replacing(place) as file:
    ...         _ = file.write(b"hello")
    ...     place.read_bytes()
    b'hello'
    """
    target = check_target(path, name)
    descriptor, temporary = _beside(target, path, name)
    try:
        with open(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if check_target(path, name).exists():  # once more: it may have changed in the meantime
            os.chmod(temporary, target.stat().st_mode & 0o777)
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _beside(target: Path, path: PathLike, name: str) -> tuple[int, Path]:
    """A new file in the folder of the target."""
    # Not tempfile: its files are private, and this one is to have the permissions of any new file.
    # The name of the target is not part of the name, which would become too long where the target's just fits.
    temporary = target.with_name(f".{uuid.uuid4().hex}.tmp")
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        return os.open(temporary, flags, 0o666), temporary
    except OSError as error:
        raise PermissionError(
            f"{name} must lie in a folder that can be written, got {os.fspath(path)!r}: {error.strerror}"
        ) from error
