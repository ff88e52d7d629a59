"""How good suggestions would have been: learnt from earlier commits, asked about later ones.

References
----------
.. [1] Hu, D., van der Maaten, L., Cho, Y., Saul, L. & Lerner, S. (2010). Latent variable models for predicting file
   dependencies in large-scale software development. NIPS 23.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from pluri.cochange.alarms import highest_missing
from pluri.cochange.calibration import Bin, reliability
from pluri.cochange.history import CommitHistory
from pluri.cochange.queries import Answers, answer, make_part_queries, make_queries, take_one_out
from pluri.cochange.recommender import FileRecommender
from pluri.cochange.scoring import QueryScores, recall_at, score_queries
from pluri.validation import RandomState, as_generator


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """Figures of a recommender on later commits.

    Attributes
    ----------
    precision, recall, f, cpr : float
        Means over the queries (macro); an empty answer counts as zero. CPR is the share of hits among the first r
        suggestions where r files were to be found.
    micro_precision, micro_recall, micro_f : float
        From the numbers of suggestions, hits and files of all queries together.
    recall_at_10 : float
        Share of the files to be found that are among the first ten suggestions, whatever the threshold.
    empty : float
        Share of the queries without any suggestion.
    n_queries, n_start : int
    threshold : float
    false_alarms : float
        Share of the later commits, taken as complete, in which a check would name a file as missing.
    caught : float
        Share of the later commits of two known files or more in which a check names a file that was taken out of them
        at random.
    n_complete : int
        Number of later commits that were checked.
    hook_threshold : float
        Probability above which a check names a file.
    calibration : list of dict
        Bins of stated probabilities, from questions that show a part of each commit: ``low``, ``high``, the number
        ``n`` of files in the bin, the mean ``stated`` probability and the ``observed`` share that did change. Empty
        for scores that are not probabilities.
    calibration_error : float
        Mean distance between what was stated and what was observed, over the files with a stated probability above
        0.05; NaN if there are none.
    table : dict of arrays
        For each query: ``commit``, ``starters``, ``n_labels``, ``n_suggested``, ``n_hits``, ``precision``, ``recall``,
        ``f``, ``cpr``, ``recall_at_10``.
    """

    precision: float
    recall: float
    f: float
    cpr: float
    micro_precision: float
    micro_recall: float
    micro_f: float
    recall_at_10: float
    empty: float
    n_queries: int
    n_start: int
    threshold: float
    false_alarms: float
    caught: float
    n_complete: int
    hook_threshold: float
    calibration: Sequence[Mapping[str, float]]
    calibration_error: float
    table: Mapping[str, Any]

    def __repr__(self) -> str:
        """The figures in one line."""
        return (
            f"Evaluation(f={self.f:.3f}, cpr={self.cpr:.3f}, precision={self.precision:.3f}, "
            f"recall={self.recall:.3f}, n_queries={self.n_queries}, n_start={self.n_start})"
        )

    def figures(self) -> dict[str, Any]:
        """All but the table."""
        return {name: value for name, value in vars(self).items() if name != "table"}


def evaluate(
    recommender: FileRecommender,
    train: CommitHistory | None,
    test: CommitHistory,
    *,
    n_start: int = 1,
    random_state: RandomState = None,
) -> Evaluation:
    """Learn from earlier commits and ask about later ones.

    Parameters
    ----------
    recommender : FileRecommender
        Copied and fitted to `train`; if that is None, it must have been fitted already.
    train, test : CommitHistory
        As from :meth:`CommitHistory.split`. No commit of `test` may be earlier than one that was learnt from.
    n_start : int, default=1
        Number of files shown of each test commit, chosen at random; the others are to be found.
    random_state : int, Generator or None, default=None
        Chooses the files shown.

    Returns
    -------
    Evaluation

    Examples
    --------
    >>> from pluri.cochange import CommitHistory, FileRecommender, evaluate
    >>> commits = [{"time": t, "files": ["a.c", "a.h"] if t % 3 else ["b.c", "b.h"]} for t in range(60)]
    >>> train, test = CommitHistory.from_records(commits).split()
    >>> evaluate(FileRecommender("cooccurrence"), train, test, random_state=0)
    Evaluation(f=1.000, cpr=1.000, precision=1.000, recall=1.000, n_queries=20, n_start=1)
    """
    if train is not None:
        _check_order(int(train.times_[-1]) if len(train) else None, test)
        recommender = clone(recommender).fit(train)
    check_is_fitted(recommender)
    _check_order(recommender.last_time_, test)
    X = _columns_as(recommender, test)
    popularity = recommender.counts_.frequencies_
    rng = as_generator(random_state)
    queries = make_queries(X, n_start, rng, popularity > 0)
    if len(queries) == 0:
        raise ValueError(f"test must have commits with more than n_start = {n_start} known files, got none")
    answers = answer(recommender.score_files, queries, popularity)
    scores = score_queries(answers, recommender.threshold_)
    parts = make_part_queries(X, rng, popularity > 0)
    bins = _reliability(answer(recommender.score_files, parts, popularity))
    return Evaluation(
        **_figures(scores, answers),
        **_checks(recommender, X, rng),
        n_queries=len(queries),
        n_start=n_start,
        threshold=float(recommender.threshold_),
        calibration=[group._asdict() for group in bins],
        calibration_error=_error(bins),
        table={
            "commit": test.ids_[queries.commits],
            "starters": queries.starters,
            "n_labels": answers.n_labels,
            "recall_at_10": recall_at(answers, 10),
            **vars(scores),
        },
    )


def _check_order(last: int | None, test: CommitHistory) -> None:
    if last is not None and len(test) and last > int(test.times_[0]):
        raise ValueError(
            f"test must not begin before the end of what was learnt from, got {_day(int(test.times_[0]))} before "
            f"{_day(last)}"
        )


def _columns_as(recommender: FileRecommender, test: CommitHistory) -> Any:
    """The test commits with the columns of the recommender; files that it does not know are left out."""
    if np.array_equal(recommender.files_, test.files_):
        return test.X_
    place = {str(path): column for column, path in enumerate(recommender.files_)}
    columns = np.array([place.get(str(path), -1) for path in test.files_])[test.X_.indices]
    rows = np.repeat(np.arange(len(test)), np.diff(test.X_.indptr))
    known = columns >= 0
    shape = (len(test), len(recommender.files_))
    return sparse.csr_array((np.ones(int(known.sum())), (rows[known], columns[known])), shape=shape)


def _figures(scores: QueryScores, answers: Answers) -> dict[str, Any]:
    hits, suggested, labels = scores.n_hits.sum(), scores.n_suggested.sum(), answers.n_labels.sum()
    return {
        "precision": float(scores.precision.mean()),
        "recall": float(scores.recall.mean()),
        "f": float(scores.f.mean()),
        "cpr": float(scores.cpr.mean()),
        "micro_precision": float(hits / max(suggested, 1)),
        "micro_recall": float(hits / labels),
        "micro_f": float(2 * hits / (suggested + labels)),
        "recall_at_10": float(recall_at(answers, 10).mean()),
        "empty": float((scores.n_suggested == 0).mean()),
    }


def _checks(recommender: FileRecommender, X: Any, rng: np.random.Generator) -> dict[str, Any]:
    """What a check would say of complete commits, and of those with one file taken out."""
    level, rows = recommender.hook_threshold_, recommender.suggester().rows
    past = sparse.csr_array((np.ones(len(rows.items)), rows.items, rows.indptr), shape=(rows.n_rows, rows.n_items))
    whole = X[np.flatnonzero(np.diff(X.indptr))]
    alarms = highest_missing(recommender.score_files, whole, past) > level
    taken = take_one_out(X, rng)
    found = answer(recommender.score_files, taken, recommender.counts_.frequencies_) if len(taken) else None
    caught = float("nan") if found is None else float((found.hits & (found.scores > level)).any(axis=1).mean())
    return {
        "false_alarms": float(alarms.mean()) if len(alarms) else float("nan"),
        "caught": caught,
        "n_complete": len(alarms),
        "hook_threshold": float(level),
    }


def _reliability(answers: Answers) -> list[Bin]:
    real = np.isfinite(answers.scores)
    stated = answers.scores[real]
    return reliability(stated, answers.hits[real]) if stated.size and stated.max() <= 1 else []


def _error(bins: Sequence[Bin]) -> float:
    # Nearly all files have next to no chance, and all models know it: they would hide any error.
    counted = [group for group in bins if group.low > 0]
    total = sum(group.n for group in counted)
    return sum(group.n * abs(group.stated - group.observed) for group in counted) / total if total else float("nan")


def _day(seconds: int) -> str:
    return str(np.datetime64(seconds, "s"))
