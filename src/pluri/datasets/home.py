"""Where data files are looked for."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

VARIABLE = "PLURI_DATA"


def data_home(path: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder that holds data files.

    The first of these that is given: ``path``, the environment variable ``PLURI_DATA``, ``~/pluri_data``. The folder
    is not created, and need not exist.

    Parameters
    ----------
    path : str or path, optional
        A folder; ``~`` stands for the user's home.

    Returns
    -------
    pathlib.Path

    Examples
    --------
    >>> from pluri.datasets import data_home
    >>> data_home("somewhere/else").name
    'else'
    """
    chosen = path if path is not None else os.environ.get(VARIABLE) or Path("~") / "pluri_data"
    return Path(chosen).expanduser()


def find_file(names: tuple[str, ...], path: str | os.PathLike[str] | None, advice: str) -> Path:
    """Return the first of the named files that the data folder holds, or say how to get it."""
    home = data_home(path)
    for name in names:
        if (home / name).is_file():
            return home / name
    raise FileNotFoundError(
        f"data_home ({home}) must hold {' or '.join(names)}, which is not there; "
        f"give data_home=, or set {VARIABLE}, to the folder that has it. {advice}"
    )


def npz_arrays(path: Path, names: tuple[str, ...]) -> dict[str, NDArray[Any]]:
    """The named arrays of a file, or which of them it lacks."""
    with np.load(path, allow_pickle=False) as file:
        missing = set(names) - set(file.files)
        if missing:
            raise ValueError(
                f"{path.name} must hold the arrays {', '.join(names)}, got none named {', '.join(sorted(missing))}"
            )
        return {name: file[name] for name in names}
