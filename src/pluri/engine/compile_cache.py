"""Compiled code on disk: when it is out of date, and how several programs write it at once.

Numba looks only at the file of the function itself. Its code also holds what it calls, the constants it reads and the
places of the fields of its records, all of which may stand in other files: after a change there, the old code would be
run without a word. Files are told apart by what is in them, not by their age, which images and archives do not keep.

Numba numbers the files of compiled code from one, and names a file in its index before writing it. A program that is
killed in between leaves an index that points to the code of an earlier source, and two programs may give one number to
two functions of different types; either way, wrong code would be run. Here a file has a name that nothing had before,
and is written before the index names it.
"""

from __future__ import annotations

import hashlib
import os
import sys
import time
import uuid
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

#: Name of the attribute of a compiled function that tells what its code depends on.
DEPENDS = "__pluri_depends__"


class CompileCacheWarning(RuntimeWarning):
    """Compiled code cannot be kept where it should be, or not at all."""


#: Seconds to wait for another program that writes to the same folder; it takes milliseconds, unless it was stopped.
PATIENCE = 2.0


def watch_sources(loop: Any, function: Callable[..., Any]) -> Any:
    """Compile `loop` anew when anything has changed that its code is made of; gives `loop`."""
    depends = _dependencies(function)
    setattr(loop, DEPENDS, depends)
    kept: Any = getattr(loop, "_cache", None)
    if hasattr(kept, "_cache_file"):
        # In an archive only numba knows how old a file is.
        own = () if os.path.exists(function.__code__.co_filename) else (kept._cache_file._source_stamp,)
        kept._cache_file = _cache_file_class()(kept._cache_path, kept._impl.filename_base, (*own, *sorted(depends)))
        kept.save_overload = _or_warn(kept.save_overload, kept._cache_path)
    return loop


def _dependencies(function: Callable[..., Any]) -> frozenset[str]:
    """Files with what is in them, and constants with their values."""
    found = {_stamp(function.__code__.co_filename)}
    for name, value in list(function.__globals__.items()):
        if hasattr(value, DEPENDS):
            found |= getattr(value, DEPENDS)
        elif isinstance(value, type):
            found.add(_stamp(getattr(sys.modules.get(value.__module__), "__file__", None)))
        elif isinstance(value, int | float | str | tuple) and name in function.__code__.co_names:
            found.add(f"{name} = {value!r}")
    return frozenset(found)


@cache
def _stamp(path: str | None) -> str:
    try:
        content = Path(path or "").read_bytes()
    except OSError:  # built in, or in an archive
        return str(path)
    return f"{path}: {hashlib.sha256(content).hexdigest()}"


@cache
def _cache_file_class() -> Any:
    """Numba's index of compiled code, made safe for several programs at once; a class, since numba is imported late."""
    from numba.core import caching

    numbas: Any = caching.IndexDataCacheFile

    class CacheFile(numbas):
        def save(self, key: Any, data: Any) -> None:
            with _alone_in(self._cache_path):
                self._write(key, data)

        def _write(self, key: Any, data: Any) -> None:
            overloads = self._load_index()
            if not overloads:
                self._remove_old()
            elif key in overloads and os.path.exists(self._data_path(overloads[key])):
                return  # another program has compiled it meanwhile
            overloads[key] = self._data_name(uuid.uuid4().int >> 64)
            self._save_data(overloads[key], data)
            self._save_index(overloads)

        def _remove_old(self) -> None:
            """Remove code that no index names."""
            pattern = self._data_name_pattern.replace("{number:d}", "*")
            for path in Path(self._cache_path).glob(pattern):
                with suppress(OSError):
                    path.unlink()

        def load(self, key: Any) -> Any:
            name = self._load_index().get(key)
            try:
                return None if name is None else self._load_data(name)
            except OSError:  # it was removed
                return None
            except Exception:  # whatever unpickling raises for a file that the disk has spoilt
                with suppress(OSError):
                    os.unlink(self._data_path(name))
                return None

        def _load_index(self) -> dict[Any, Any]:
            try:
                return dict(super()._load_index())
            except Exception:  # spoilt, or it names a record that was moved since
                return {}

    return CacheFile


def _or_warn(save: Callable[..., None], folder: str) -> Callable[..., None]:
    """Save, if it can be done: a full disk, or a folder that was taken away, is no reason for a fit to fail."""

    def save_or_warn(*arguments: Any) -> None:
        try:
            save(*arguments)
        except OSError as error:
            _warn_once(os.path.dirname(folder), error.strerror or str(error))

    return save_or_warn


@contextmanager
def _alone_in(folder: str) -> Iterator[None]:
    """Keep other programs from writing to a folder at the same time, where the system can."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    place = os.open(folder, os.O_RDONLY)
    try:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            try:
                fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(0.005)
            except OSError:  # a file system without locks
                break
        yield
    finally:
        os.close(place)


@cache
def _warn_once(folder: str, reason: str) -> None:
    warnings.warn(
        f"compiled code cannot be kept in {folder} ({reason}), so it is compiled anew in each program: set "
        "NUMBA_CACHE_DIR to a folder that can be written",
        CompileCacheWarning,
        stacklevel=2,
    )
