"""The last commits of a history, kept apart: they choose thresholds and calibrate a model that has not seen them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pluri.cochange.alarms import AlarmLevel, alarm_level, highest_missing
from pluri.cochange.calibration import Array, calibrated, fit_calibration
from pluri.cochange.history import CommitHistory
from pluri.cochange.models.completion import learn
from pluri.cochange.queries import Answers, Queries, answer, make_part_queries, make_queries

#: With fewer questions a calibration is left alone: it would mostly be chance.
FEWEST_QUESTIONS = 30


@dataclass(frozen=True, eq=False)
class HeldBack:
    """What a model said about the last commits, having learnt from those before.

    Attributes
    ----------
    answers : Answers
        To questions with the same number of files shown, with calibrated scores; maybe none.
    calibration : ndarray of shape (3,) or None
        For `calibrated`; None if there were too few questions, or if scores are no shares.
    alarms : AlarmLevel
        With the threshold in calibrated scores.
    """

    answers: Answers
    calibration: Array | None
    alarms: AlarmLevel


def hold_back(
    model: Any,
    history: CommitHistory,
    *,
    fraction: float,
    n_start: int,
    rng: np.random.Generator,
    half_life: float | None = None,
    drop_silent: float | None = None,
    calibrate: bool = True,
    false_alarm_rate: float = 0.02,
) -> HeldBack:
    """Fit a model to the earlier commits of a history and ask it about the last ones.

    Parameters
    ----------
    model : estimator
        Fitted in place.
    history : CommitHistory
    fraction : float
        Share of the commits that come last and make the questions.
    n_start : int
        Number of files shown in each question.
    rng : Generator
        Chooses them.
    half_life, drop_silent : float, optional
        As for `learn`.
    calibrate : bool, default=True
        Whether scores are made probabilities.
    false_alarm_rate : float, default=0.02
        For `alarm_level`.

    Returns
    -------
    HeldBack
    """
    cut = len(history) - math.ceil(fraction * len(history))
    if cut < 1:
        raise ValueError(f"history must have commits left before the last {fraction:g}, got {len(history)} in all")
    early, late, times = history.X_[:cut], history.X_[cut:], history.times_[:cut]
    assert times[-1] <= history.times_[cut], "what chooses a threshold comes after what was learnt"
    seen = np.bincount(early.indices, minlength=early.shape[1]) > 0
    queries = make_queries(late, n_start, rng, seen)
    completion = learn(model, early, times, half_life, drop_silent)

    def ask(asked: Queries) -> Answers:
        return answer(completion.scores, asked, completion.popularity) if len(asked) else no_answers()

    coefficients = None
    if calibrate:
        parts = ask(make_part_queries(late, rng, seen))
        if len(parts) >= FEWEST_QUESTIONS:
            real = np.isfinite(parts.scores)
            coefficients = fit_calibration(parts.scores[real], parts.hits[real])
    answers = ask(queries)
    level = alarm_level(highest_missing(completion.scores, late, early), false_alarm_rate)
    return HeldBack(
        replace(answers, scores=calibrated(answers.scores, coefficients)),
        coefficients,
        replace(level, threshold=float(calibrated(np.array([level.threshold]), coefficients)[0])),
    )


def no_answers() -> Answers:
    """Answers to no questions."""
    nothing = np.empty((0, 1))
    return Answers(nothing, nothing.astype(np.bool_), np.empty(0, dtype=np.int64))
