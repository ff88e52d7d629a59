"""Facts about an installation: versions, processors, threads, the folder of compiled code, and the extras."""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

#: What only whoever works on pluri, or builds its documentation, installs.
NOT_FOR_USERS = {"test", "lint", "dev", "docs", "bench", "release", "all"}


def facts() -> dict[str, dict[str, Any]]:
    """What is here, under four headings.

    Examples
    --------
    >>> from pluri.cli.doctor.machine import facts
    >>> sorted(facts())
    ['compiled code', 'extras', 'processors', 'versions']
    """
    return {
        "versions": versions(),
        "processors": processors(),
        "compiled code": compiled_code(),
        "extras": extras(),
    }


def versions() -> dict[str, str]:
    """Versions of Python, of pluri and of what it needs."""
    from pluri import __version__

    needed = [name for name, condition in _requirements() if "extra ==" not in condition]
    return {
        "python": f"{platform.python_version()} ({sys.executable})",
        "system": f"{platform.system()} {platform.machine()}",
        "pluri": __version__,
        **{name: _version(name) for name in needed},
    }


def processors() -> dict[str, Any]:
    """How many processors there are, how many threads each library would start, and which BLAS NumPy calls."""
    import numba
    import numpy as np
    import sklearn.utils  # noqa: F401  # brings in its OpenMP, whose threads are counted below
    from threadpoolctl import threadpool_info

    np.ones((2, 2)) @ np.ones((2, 2))
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    found: dict[str, Any] = {"processors for this program": usable, "threads of Numba": numba.get_num_threads()}
    for pool in threadpool_info():
        kernel = f", {pool['architecture']}" if pool.get("architecture") else ""
        found[f"threads of {pool['internal_api']}"] = f"{pool['num_threads']} (version {pool['version']}{kernel})"
    given = {name: os.environ[name] for name in os.environ if re.fullmatch(r"\w*_NUM_THREADS", name)}
    return found | given


def compiled_code() -> dict[str, Any]:
    """Where compiled functions are kept, how many there are, and whether more can be."""
    from pluri.engine.compiled import cache_folder

    folder = cache_folder()
    if folder is None:
        return {"folder": None, "functions": 0, "megabytes": 0.0}
    files = list(Path(folder).rglob("*.nbc"))
    size = sum(file.stat().st_size for file in files)
    return {"folder": folder, "functions": len(files), "megabytes": round(size / 1e6, 1)}


def extras() -> dict[str, dict[str, Any]]:
    """Each extra with the versions of its packages; None for those that are missing."""
    found: dict[str, dict[str, Any]] = {}
    for name, condition in _requirements():
        of = re.search(r"extra == ['\"]([\w-]+)['\"]", condition)
        if of and of[1] not in NOT_FOR_USERS and name != "pluri":
            found.setdefault(of[1], {})[name] = _version(name, missing=None)
    return found


def problems(found: dict[str, dict[str, Any]]) -> list[str]:
    """What is wrong with these facts, a sentence each."""
    told = []
    if found["compiled code"]["folder"] is None:
        told.append(
            "Compiled code can be kept nowhere, so that every program compiles anew: set NUMBA_CACHE_DIR to a folder "
            "that can be written."
        )
    for name, version in found["versions"].items():
        if version == "missing":
            told.append(f"{name} is missing: pip install {name}")
    return told


def _requirements() -> Iterator[tuple[str, str]]:
    """Names of the packages that pluri requires, and the condition of each (empty, or the extra it belongs to)."""
    try:
        lines = metadata.requires("pluri") or []
    except metadata.PackageNotFoundError:  # run from the source, without being installed
        lines = []
    for line in lines:
        wanted, _, condition = line.partition(";")
        name = re.match(r"[\w.-]+", wanted.strip())
        if name:
            yield name[0], condition


def _version(package: str, missing: Any = "missing") -> Any:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return missing
