"""A saved recommender, opened quickly: if its model counts commits, NumPy is all that it needs."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from pluri.cochange.calibration import calibrated
from pluri.cochange.models.counting import Array, CommitRows, Places, frequent, popular, together, votes
from pluri.cochange.suggester import Suggester

RECOMMENDER = "pluri.cochange.recommender.FileRecommender"
NOTHING = np.empty(0, dtype=np.int64)
Scores = Callable[[CommitRows, Places, Any], Array]

#: Models that count, by class: scores from the commits, the given columns and the attributes of the estimator.
COUNTING: dict[str, Scores] = {
    "pluri.cochange.models.neighbors.CommitNeighbors": lambda rows, present, state: votes(
        rows,
        present,
        NOTHING,
        row_votes=state["row_votes_"],
        row_squares=state["row_squares_"],
        overlap_power=state["overlap_power"],
        shrinkage=state["shrinkage"],
    ),
    "pluri.cochange.models.baselines.CoOccurrence": lambda rows, present, state: together(
        rows, present, NOTHING, measure=state["measure"], combine=state["combine"]
    ),
    "pluri.cochange.models.baselines.FrequentItemsets": lambda rows, present, state: frequent(
        rows, present, NOTHING, min_support=state["min_support"]
    ),
    "pluri.cochange.models.baselines.Popularity": lambda rows, present, state: popular(rows),
}


def open_suggester(path: str | os.PathLike[str], *, before_building: Callable[[], None] | None = None) -> Suggester:
    """What answers questions from a file that `FileRecommender.save` has written.

    Parameters
    ----------
    path : path
    before_building : callable, optional
        Called before an estimator has to be built, which needs scikit-learn and skops.

    Returns
    -------
    Suggester
        As from `FileRecommender.load`, but without scikit-learn if the model is one that counts.

    Raises
    ------
    ValueError
        If the file is damaged or holds something else.
    """
    from pluri.io.plain import PlainObject, read_plain

    found = read_plain(path)
    if found.name != RECOMMENDER:
        kind = found.name.rpartition(".")[2]
        raise ValueError(f"path must name a saved FileRecommender, got {kind} in {os.fspath(path)!r}")
    state = found.attributes
    if "hook_threshold_" not in state or not isinstance(state.get("model_"), PlainObject):
        raise ValueError(
            f"path must name a fitted FileRecommender of this version, got {os.fspath(path)!r}, saved before it knew "
            "how often it is wrong: train it again"
        )
    if state["model_"].name not in COUNTING:
        if before_building is not None:
            before_building()
        from pluri.cochange.recommender import FileRecommender

        suggester = FileRecommender.load(path).suggester()
        _check(suggester, NOTHING)
        return suggester
    try:
        return _light(state)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise ValueError(
            f"path must name a saved FileRecommender, got {os.fspath(path)!r}: its content is damaged"
        ) from error


def _light(state: dict[str, Any]) -> Suggester:
    model, columns, coefficients = state["model_"], state["columns_"], state["calibration_"]
    n_files, model_rows, scores = len(state["files_"]), CommitRows.of(model.attributes), COUNTING[model.name]
    model_rows.check()
    for name in ("row_votes_", "row_squares_"):
        if name in model.attributes and model.attributes[name].shape != model_rows.weights.shape:
            raise ValueError(f"{name} must have a number for each commit")
    if coefficients is not None and not (coefficients.shape == (3,) and np.isfinite(coefficients).all()):
        raise ValueError("calibration_ must be three numbers")
    place = np.full(n_files, -1)
    place[columns] = np.arange(model_rows.n_items)  # refused unless each column of the model has a file

    def score(present: Places) -> Array:
        known = place[present]
        found = np.zeros(n_files)
        found[columns] = scores(model_rows, known[known >= 0], model.attributes)
        return calibrated(found, coefficients)

    suggester = Suggester(
        score=score,
        rows=CommitRows.of(state["counts_"].attributes),
        files=state["files_"],
        alive=state["alive_"],
        commits=state["commits_"],
        threshold=float(state["threshold_"]),
        hook_threshold=float(state["hook_threshold_"]),
        drop_deleted=bool(state["drop_deleted"]),
    )
    _check(suggester, columns)
    return suggester


def _check(suggester: Suggester, columns: Places) -> None:
    """Refuse what a damaged file may hold, before anything is asked."""
    rows, n_files = suggester.rows, len(suggester.files)
    rows.check()
    if not (
        rows.n_items == n_files
        and suggester.files.dtype.kind == "U"
        and suggester.alive.shape == (n_files,)
        and suggester.alive.dtype.kind == "b"
        and suggester.commits.shape == (rows.n_rows,)
        and suggester.commits.dtype.kind == "S"
        and (columns.size == 0 or (columns.min() >= 0 and len(np.unique(columns)) == len(columns)))
        and math.isfinite(suggester.threshold)
        and math.isfinite(suggester.hook_threshold)
    ):
        raise ValueError("a recommender must hold files and commits that belong together")
