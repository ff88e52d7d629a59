"""Choosing the settings of a model by the last commits it may know of, and never by those it is judged on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

from pluri.cochange.held_back import hold_back
from pluri.cochange.history import CommitHistory
from pluri.cochange.models.registry import build_model, find_entry
from pluri.cochange.recommender import FileRecommender
from pluri.cochange.scoring import best_threshold, score_queries
from pluri.validation import Only, RandomState, as_generator, check_value

METRICS = ("f", "cpr")


@dataclass(frozen=True, eq=False, repr=False)
class Tuning:
    """What was tried, and what was best.

    Attributes
    ----------
    recommender : FileRecommender
        Not fitted, with the best settings and threshold.
    best_params : dict
        Settings of the model.
    threshold, f, cpr : float
        Chosen threshold and figures on the validation commits.
    n_queries : int
    table : list of dict
        ``params``, ``threshold``, ``f`` and ``cpr`` of each trial.
    """

    recommender: FileRecommender
    best_params: Mapping[str, Any]
    threshold: float
    f: float
    cpr: float
    n_queries: int
    table: Sequence[Mapping[str, Any]]

    def __repr__(self) -> str:
        """The best settings and their figures."""
        return f"Tuning({dict(self.best_params)}, threshold={self.threshold:.3g}, f={self.f:.3f}, cpr={self.cpr:.3f})"


def tune(
    recommender: FileRecommender,
    train: CommitHistory,
    param_grid: Mapping[str, Sequence[Any]] | None = None,
    *,
    n_start: int | None = None,
    metric: str = "f",
    random_state: RandomState = None,
) -> Tuning:
    """Choose settings and threshold of a model: fitted to the earlier commits of `train`, judged by its last ones.

    Parameters
    ----------
    recommender : FileRecommender
        What is not in the grid stays as it is. A threshold that is a number stays too.
    train : CommitHistory
        What may be known; never the test part.
    param_grid : dict of lists, optional
        Parameters of the model and the values to try; those that suit a model of this name by default.
    n_start : int, optional
        Number of files shown in each question; as in the recommender by default.
    metric : {"f", "cpr"}, default="f"
        What is to be largest; the f-measure is at the best threshold, averaged as the recommender says.
    random_state : int, Generator or None, default=None
        Chooses the files shown, the same for all trials.

    Returns
    -------
    Tuning

    Examples
    --------
    >>> from pluri.cochange import CommitHistory, FileRecommender, tune
    >>> commits = [{"time": t, "files": ["a.c", "a.h"] if t % 3 else ["b.c", "b.h"]} for t in range(60)]
    >>> train, test = CommitHistory.from_records(commits).split()
    >>> tune(FileRecommender("cooccurrence"), train, {"measure": ["confidence"]}, random_state=0)
    Tuning({'measure': 'confidence'}, threshold=0.5, f=1.000, cpr=1.000)
    """
    check_value(metric, "metric", Only(*METRICS))
    if param_grid is None:
        if not isinstance(recommender.model, str):
            raise ValueError("param_grid must be given for a model that is an estimator, got None")
        param_grid = find_entry(recommender.model).grid
    n_shown = recommender.n_start if n_start is None else n_start
    rng = as_generator(random_state)
    shown, seed = int(rng.integers(2**31)), int(rng.integers(2**31))
    trials = []
    for params in ParameterGrid(dict(param_grid)):
        answers = hold_back(
            build_model(recommender.model, {**(recommender.model_params or {}), **params}, len(train), seed),
            train,
            fraction=recommender.validation_fraction,
            n_start=n_shown,
            rng=np.random.default_rng(shown),
            half_life=recommender.half_life,
            drop_silent=recommender.drop_silent,
            calibrate=recommender.calibrate,
        ).answers
        if len(answers) == 0:
            raise ValueError(f"train must end in commits with more than n_start = {n_shown} known files, got none")
        trials.append({"params": params, "n_queries": len(answers), **_judged(answers, recommender)})
    best = max(trials, key=lambda trial: float(trial[metric]))
    chosen = clone(recommender).set_params(
        model_params={**(recommender.model_params or {}), **best["params"]},
        threshold=best["threshold"],
        n_start=n_shown,
    )
    return Tuning(chosen, best["params"], best["threshold"], best["f"], best["cpr"], best["n_queries"], trials)


def _judged(answers: Any, recommender: FileRecommender) -> dict[str, float]:
    threshold = recommender.threshold
    if threshold == "auto":
        threshold = best_threshold(answers, recommender.average).value
    figures = score_queries(answers, float(threshold))
    if recommender.average == "micro":
        f = 2 * figures.n_hits.sum() / (figures.n_suggested.sum() + answers.n_labels.sum())
    else:
        f = figures.f.mean()
    return {"threshold": float(threshold), "f": float(f), "cpr": float(figures.cpr.mean())}
