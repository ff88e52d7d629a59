"""What users pass and what the core needs: one array with the sequences end to end, and their lengths.

Accepted: an array with ``lengths`` (one sequence if None), a list of sequences, or a `pluri.engine.Source` of
batches. A program written for hmmlearn passes ``lengths`` in second place, where scikit-learn has ``y``.

scikit-learn's tools hand `groups` (the sequence of each row) on to an estimator only with metadata routing; without it
they split by the groups and then call ``fit(X, y)``, where a model of sequences would see one long chain. Nothing in
that call tells so: that is why `check_not_lost` looks at who called.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import get_config

from pluri.validation import is_source, unmasked

Integers = NDArray[np.int64]

WEIGHT = "sequence_weight (also named sample_weight)"
ROUTING = (
    "call sklearn.set_config(enable_metadata_routing=True), with which groups (one id for each row) reach the model, "
    "pass a list of sequences as X, or use HMMSearchCV"
)

#: What methods ask metadata routing for.
BOUNDARIES = {"lengths": True, "groups": True}
#: Modules of scikit-learn that call other people's estimators.
TOOLS = ("sklearn.pipeline", "sklearn.model_selection", "sklearn.ensemble", "sklearn.utils.estimator_checks")


def lengths_in_second_place(y: Any, lengths: ArrayLike | None, X: Any) -> ArrayLike | None:
    """Decide what the second positional argument was: hmmlearn's `lengths`, or a `y` to ignore.

    An array of another length than X can only be meant as `lengths`, and is checked as such.
    """
    if y is None or lengths is not None or is_sequence_list(X) or is_source(X) or not hasattr(y, "__len__"):
        return lengths
    n_samples = X.shape[0] if hasattr(X, "shape") else len(X)
    values = np.asarray(y)
    return values if values.ndim == 1 and len(values) != n_samples else None


def refuse_streams(X: Any) -> None:
    """Refuse what can be read only batch by batch, or only once, where all observations are needed."""
    if is_source(X):
        raise TypeError(
            f"X must be an array or a list of sequences, got a {type(X).__name__}, which only fit takes; for a file, "
            "pass numpy.load(path, mmap_mode='r')"
        )
    if hasattr(X, "__next__"):
        raise TypeError(f"X must be an array or a list of sequences, got a {type(X).__name__}: make a list of it first")


def is_sequence_list(X: Any) -> bool:
    """Whether X is a list (or tuple) of sequences, of equal lengths or not; an item with one axis has one feature.

    Two plain lists are not: words, which are one sequence, and ``[[1], [2], [3]]``, which is a column. A column of
    arrays, ``[array([1]), array([2])]``, is a list of sequences of length 1. An array of arrays is a list.
    """
    if isinstance(X, np.ndarray) and X.dtype == object and X.ndim == 1:
        return len(X) > 0 and all(hasattr(item, "shape") and item.shape for item in X)
    if not isinstance(X, list | tuple) or not X:
        return False
    if any(isinstance(item, str | bytes) or not hasattr(item, "__len__") for item in X):
        return False
    return not all(isinstance(item, list | tuple) and len(item) == 1 and not _nested(item) for item in X)


def may_be_rows(X: Any) -> bool:
    """Whether X, a list of sequences, could be meant as a matrix: plain lists of scalars, all of one length."""
    if not isinstance(X, list | tuple) or not all(isinstance(item, list | tuple) for item in X):
        return False
    return len({len(item) for item in X}) == 1 and not any(_nested(item) for item in X)


def _nested(item: Sequence[Any]) -> bool:
    return len(item) > 0 and not isinstance(item[0], str | bytes) and hasattr(item[0], "__len__")


def _as_array(item: Any) -> NDArray[Any]:
    item = unmasked(item)
    if isinstance(item, list | tuple) and any(isinstance(cell, str) for cell in _cells(item)):
        return np.array(item, dtype=object)  # NumPy would make a word of None and NaN
    return np.asarray(item)


def _cells(item: Any) -> list[Any]:
    return [cell for row in item for cell in (row if isinstance(row, list | tuple) else [row])]


def join_sequences(X: Sequence[Any]) -> tuple[Any, Integers]:
    """One array and the lengths, of a list of sequences; a one-dimensional sequence has one feature.

    Data frames become one data frame, so that the names of columns are kept, and are checked where X is.
    """
    if len(X) > 0 and all(hasattr(item, "iloc") and hasattr(item, "columns") for item in X):
        return _join_tables(X)
    arrays = [_as_array(item) for item in X]
    arrays = [array.reshape(-1, 1) if array.ndim == 1 else array for array in arrays]
    wrong = [n for n, array in enumerate(arrays) if array.ndim != 2]
    if wrong:
        n = wrong[0]
        raise ValueError(f"X must hold sequences with one or two axes, got item {n} of shape {arrays[n].shape}")
    widths = {array.shape[1] for array in arrays if array.size} or {1}
    if len(widths) > 1:
        raise ValueError(f"X must hold sequences with the same number of features, got {sorted(widths)}")
    lengths = np.array([len(array) if array.size else 0 for array in arrays], dtype=np.int64)
    kept = [array for array in arrays if array.size]
    if not kept:
        raise ValueError("X must hold at least one observation, got only empty sequences (minimum of 1 is required)")
    return np.concatenate(kept), lengths


def _join_tables(X: Sequence[Any]) -> tuple[Any, Integers]:
    import pandas as pd

    names = [list(table.columns) for table in X]
    if others := [n for n, own in enumerate(names) if own != names[0]]:
        raise ValueError(
            f"X must hold data frames with the same columns in the same order, got {names[0]} in item 0 and "
            f"{names[others[0]]} in item {others[0]}"
        )
    kept = [table for table in X if len(table)]
    if not kept:
        raise ValueError("X must hold at least one observation, got only empty sequences (minimum of 1 is required)")
    return pd.concat(kept, ignore_index=True), np.array([len(table) for table in X], dtype=np.int64)


def check_sequence_lengths(lengths: ArrayLike | None, n_samples: int) -> Integers:
    """Lengths as integers that sum to the number of samples; one sequence if None."""
    if lengths is None:
        return np.array([n_samples], dtype=np.int64)
    values = np.asarray(lengths)
    if values.ndim != 1 or values.size == 0 or values.dtype.kind not in "iu" or (values < 0).any():
        raise ValueError(f"lengths must be a list of non-negative integers, got {lengths!r}")
    # In Python integers: a sum of int32 or uint8 lengths may overflow.
    total = sum(values.tolist())
    if total != n_samples:
        raise ValueError(f"lengths must sum to the number of samples ({n_samples}), got the sum {total}")
    return values.astype(np.int64)


def weight_by_either_name(sequence_weight: ArrayLike | None, aliases: dict[str, Any]) -> ArrayLike | None:
    """`sequence_weight`, or what was passed as `sample_weight`; other keywords are refused."""
    unknown = aliases.keys() - {"sample_weight"}
    if unknown:
        raise TypeError(f"got an unexpected keyword argument {min(unknown)!r}")
    alias = aliases.get("sample_weight")
    if alias is not None and sequence_weight is not None:
        raise ValueError("sequence_weight and sample_weight are two names of one thing: pass only one")
    return sequence_weight if alias is None else alias


def check_sequence_weight(sequence_weight: ArrayLike | None, lengths: Integers) -> NDArray[np.float64] | None:
    """One weight for each sequence; also taken: one for each sample, if it does not change within a sequence."""
    if sequence_weight is None:
        return None
    weight = np.asarray(sequence_weight, dtype=np.float64)
    if weight.ndim != 1:
        raise ValueError(f"{WEIGHT} must be 1D, one weight for each sequence, got shape {weight.shape}")
    if len(weight) != len(lengths) and len(weight) == lengths.sum():
        filled = np.flatnonzero(lengths)
        firsts = np.cumsum(lengths)[filled] - lengths[filled]
        by_sequence = np.zeros(len(lengths))
        by_sequence[filled] = weight[firsts]
        if not np.array_equal(np.repeat(by_sequence, lengths), weight):
            raise ValueError(
                f"{WEIGHT} must be the same for all samples of a sequence: a Markov chain has no meaning for a "
                "sample that counts more than its neighbours"
            )
        weight = by_sequence
    if len(weight) != len(lengths):
        raise ValueError(f"{WEIGHT} must have one weight for each sequence ({len(lengths)}), got {len(weight)}")
    if not np.isfinite(weight).all() or (weight < 0).any():
        raise ValueError(f"{WEIGHT} must be finite and non-negative")
    if not (weight > 0).any():
        raise ValueError(f"{WEIGHT} must have at least one positive weight, got only zero weights")
    return weight


def offsets_of(lengths: Integers) -> Integers:
    """Where each sequence begins and ends: (n_sequences + 1,)."""
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])


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
    for module, function, here in refuse_lost(X, lengths):
        if module == "sklearn.model_selection._validation" and function in ("_fit_and_score", "_fit_and_predict"):
            _warn_of_pieces(here, fitting)


def refuse_lost(X: Any, lengths: ArrayLike | None) -> list[tuple[str, str, dict[str, Any]]]:
    """Refuse an array whose boundaries a tool of scikit-learn kept to itself; gives the tools that are calling."""
    if lengths is not None or is_source(X) or is_sequence_list(X):
        return []
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
    return frames


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
