"""How compiled loops are compiled, in one place.

Every loop is cached on disk (the second program that uses it does not wait) and lets other threads run. Wrappers
that only C callers need are left out: they are a fifth of the time to compile a small loop.

Where neither the folder of the package nor the home can be written, the cache is a folder in the temporary directory
that belongs to the user alone: compiled code that somebody else might have put there is never loaded. If there is no
such folder either, nothing is cached.
"""

from __future__ import annotations

import os
import stat
import tempfile
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from pluri.engine.callees import callee, lend
from pluri.engine.collection_pause import CollectionPause
from pluri.engine.compile_cache import CompileCacheWarning, watch_sources
from pluri.engine.compile_record import attach, listen
from pluri.engine.compile_status import CompileStatus

#: Products may be fused and sums reordered, but NaN and infinity keep their meaning: they mark missing values and
#: impossible events.
REORDER = frozenset({"contract", "reassoc", "nsz"})


def compiled(
    *, reorder: bool = False, inner: bool = False, allocates: bool = True, **options: Any
) -> Callable[[Callable[..., Any]], Any]:
    """Decorate a pure function on arrays: compile it, without the interpreter's lock, when it is first called.

    Parameters
    ----------
    reorder : bool, default=False
        Whether the compiler may reorder floating-point sums, which it needs to do several at a time.
    inner : bool, default=False
        Called by compiled functions only: there is no machine code for Python, which gets a `TypeError`.
    allocates : bool, default=True
        False for a loop that makes no array and returns none: references to the arrays of its records are then not
        counted, which costs more than the work itself where a record is read for each item.
    **options
        Passed on to `numba.njit`.
    """
    options = {"cache": True, "nogil": True, "no_cfunc_wrapper": True, "error_model": "numpy"} | options
    if not allocates:
        options["_nrt"] = False
    if reorder:
        options["fastmath"] = set(REORDER)

    def decorate(function: Callable[..., Any]) -> Any:
        if inner:
            return watch_sources(callee(function, options), function)
        loop = _cached(function, options) if options["cache"] else _compiled(function, options)
        return lend(loop, function, options)

    return decorate


def _compiled(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    import numba

    _watch()
    decorator: Callable[[Callable[..., Any]], Any] = numba.njit(**options)
    return watch_sources(decorator(function), function)


@cache
def _watch() -> None:
    """Have a line shown on a terminal when compiling takes long, and the garbage collector rest meanwhile."""
    attach()
    for watcher in (CompileStatus(), CollectionPause()):
        listen(watcher.begin, watcher.end)


def _cached(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """Compiled and cached wherever numba finds a place, else in a folder of ours, else not cached."""
    from numba import config

    settings: Any = config
    is_a_file = os.path.exists(function.__code__.co_filename)
    try:
        loop = _compiled(function, options)
        if not is_a_file:  # in a zip archive numba would look whether it can write only when it does
            loop._cache._impl.locator.ensure_cache_path()
        elif settings.CACHE_DIR and not Path(loop._cache.cache_path).is_relative_to(settings.CACHE_DIR):
            _warn_of_refused_folder(settings.CACHE_DIR)
        return loop
    except (RuntimeError, OSError) as error:
        if isinstance(error, RuntimeError) and "cannot cache function" not in str(error):
            raise
    folder = private_folder() if is_a_file else None
    if folder is not None:
        # Only while the loop looks for its place: it is the setting of the whole program.
        before, settings.CACHE_DIR = settings.CACHE_DIR, folder
        try:
            loop = _compiled(function, options)
        except RuntimeError:
            folder = None
        finally:
            settings.CACHE_DIR = before
    _warn_once(folder)
    return _compiled(function, options | {"cache": False}) if folder is None else loop


@cache
def _warn_once(folder: str | None) -> None:
    instead = "are compiled anew in each program" if folder is None else f"are kept in {folder}"
    warnings.warn(
        f"neither the folder of pluri nor the home can be written, so compiled loops {instead}: set NUMBA_CACHE_DIR to "
        "a folder that can be",
        CompileCacheWarning,
        stacklevel=4,
    )


@cache
def _warn_of_refused_folder(folder: str) -> None:
    warnings.warn(
        f"NUMBA_CACHE_DIR must be a folder that can be written, got {folder}: compiled loops are kept beside their "
        "source, or in the home",
        CompileCacheWarning,
        stacklevel=4,
    )


def cache_folder() -> str | None:
    """The folder that compiled loops of this package are kept in; None if they are not kept.

    Beside the source they are in the ``__pycache__`` folders of the package.
    """

    def example(x: float) -> float:
        return x

    place = compiled()(example)._cache.cache_path
    if place is None:
        return None
    above = Path(place).parent
    return str(above.parent if Path(place).name == "__pycache__" else above)


@cache
def private_folder() -> str | None:
    """A folder for compiled loops that nobody but this user (and root) can write to; None if there is none."""
    if not hasattr(os, "getuid"):  # who may write where cannot be told
        return None
    user = os.getuid()
    try:
        above = Path(tempfile.gettempdir()).resolve()
        folder = above / f"pluri-compiled-{user}"
        with suppress(FileExistsError):
            folder.mkdir(0o700)
        own = folder.lstat()
        tempfile.TemporaryFile(dir=folder).close()
        # Whoever can write to a folder above can put another folder in place of this one, unless only owners may.
        safe = all(_only_owners_rename(place.stat(), user) for place in (above, *above.parents))
    except OSError:
        return None
    private = stat.S_ISDIR(own.st_mode) and own.st_uid == user and not own.st_mode & 0o077
    return str(folder) if private and safe else None


def _only_owners_rename(place: os.stat_result, user: int) -> bool:
    others_write = place.st_mode & 0o022 and not place.st_mode & stat.S_ISVTX
    return place.st_uid in (0, user) and not others_write
