"""Where sequences begin and end: from lengths, or from the sequence of each row (scikit-learn's `groups`).

scikit-learn's tools hand `groups` on to an estimator only with metadata routing; without it they split by the groups
and then call ``fit(X, y)``, where a model of sequences would see one long chain. Nothing in that call tells so: that is
why `check_not_lost` looks at who called.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from types import FrameType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import get_config

from pluri.sequences.inputs import is_sequence_list
from pluri.validation import is_source

Integers = NDArray[np.int64]

ROUTING = (
    "call sklearn.set_config(enable_metadata_routing=True), with which groups (one id for each row) reach the model, "
    "pass a list of sequences as X, or use HMMSearchCV"
)


#: Modules of scikit-learn that call other people's estimators.
TOOLS = ("sklearn.pipeline", "sklearn.model_selection", "sklearn.ensemble", "sklearn.utils.estimator_checks")


class BoundaryWarning(UserWarning):
    """Rows of several sequences were taken for one, because nothing told where they begin."""


def sequence_lengths(X: Any, lengths: ArrayLike | None, groups: ArrayLike | None) -> ArrayLike | None:
    """`lengths` as they are, or those of the `groups`; None if neither is given.

    For a list of sequences `groups` may have one entry for each of them (cross-validation may need that), which tells
    nothing new.
    """
    if groups is None:
        return lengths
    if lengths is not None:
        raise ValueError("groups and lengths must not both be given: they say the same")
    if is_source(X):
        raise ValueError("groups must be None when X is a source of batches: it holds the lengths")
    n_samples = X.shape[0] if hasattr(X, "shape") else len(X)
    ids = np.asarray(groups)
    if ids.shape != (n_samples,):
        what = "sequences" if is_sequence_list(X) else "samples"
        raise ValueError(f"groups must have one entry for each of {n_samples} {what}, got shape {ids.shape}")
    return None if is_sequence_list(X) else lengths_of_groups(ids)


def lengths_of_groups(ids: NDArray[Any]) -> Integers:
    """Lengths of the runs of equal ids; an id that comes back after another one is refused."""
    cells = ids.tolist()
    if any(cell is None or cell != cell for cell in cells):
        raise ValueError("groups must tell the sequence of every row, got a missing value")
    firsts = [t for t, cell in enumerate(cells) if t == 0 or cell != cells[t - 1]]
    seen: set[Any] = set()
    for t in firsts:
        if cells[t] in seen:
            raise ValueError(
                f"groups must keep the rows of a sequence together, got {cells[t]!r} again in row {t} after another "
                "sequence: sort the rows by sequence and time"
            )
        seen.add(cells[t])
    return np.diff(firsts, append=len(cells)).astype(np.int64)


def check_not_lost(X: Any, lengths: ArrayLike | None, *, fitting: bool) -> None:
    """Refuse, or warn of, an array without boundaries if scikit-learn's tools are known to have lost them.

    An error if the caller of the tool gave `groups` (or `lengths`) that the tool kept to itself; a warning if the rows
    are pieces of cross-validation that did not follow each other.
    """
    if lengths is not None or is_source(X) or is_sequence_list(X):
        return
    frames = [
        (str(frame.f_globals.get("__name__", "")), frame.f_code.co_name, frame.f_locals)
        for frame in _callers()
        if str(frame.f_globals.get("__name__", "")).startswith(("sklearn.pipeline", "sklearn.model_selection"))
    ]
    for module, function, here in frames:
        if not get_config()["enable_metadata_routing"] and _gave_boundaries(module, function, here):
            raise ValueError(
                f"{function} of scikit-learn got lengths or groups, but does not hand them on to the model, which "
                f"would take all rows for one sequence: {ROUTING}"
            )
    for module, function, here in frames:
        if module == "sklearn.model_selection._validation" and function in ("_fit_and_score", "_fit_and_predict"):
            _warn_of_pieces(here, fitting)


def called_by_scikit_learn() -> bool:
    """Whether a tool of scikit-learn is calling, which passes `y` on without knowing whether it is used."""
    return any(str(frame.f_globals.get("__name__", "")).startswith(TOOLS) for frame in _callers())


def _callers() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back


def _gave_boundaries(module: str, function: str, here: dict[str, Any]) -> bool:
    """Whether this frame is a tool of scikit-learn that was given boundaries and keeps them without routing."""
    names: tuple[str, ...] = ()
    if module == "sklearn.pipeline" and function == "score":
        names = ("lengths", "groups")
    elif module.startswith("sklearn.model_selection"):
        names = ("groups",)
    params = here.get("params")
    given = {**(params if isinstance(params, dict) else {}), **{name: here.get(name) for name in names if name in here}}
    return any(given.get(name) is not None for name in names)


def _warn_of_pieces(here: dict[str, Any], fitting: bool) -> None:
    rows = np.asarray(here["train" if fitting else "test"])
    handed_on = {str(name).rpartition("__")[2] for name in here.get("fit_params") or {}}
    if not fitting and handed_on & {"groups", "lengths"}:
        message = (
            "fit was told where sequences begin, but the held-out rows come without it and are taken for one sequence: "
            "leave scoring=None for the model's own score, which takes groups, or pass a list of sequences as X"
        )
    elif rows.dtype.kind in "iu" and rows.size > 1 and (np.diff(rows) != 1).any():
        message = f"rows that did not follow each other before cross-validation are taken for one sequence: {ROUTING}"
    else:
        return
    warnings.warn(message, BoundaryWarning, stacklevel=4)
