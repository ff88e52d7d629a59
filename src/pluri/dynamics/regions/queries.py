"""What a fitted flow by regions says of rows: steps ahead, scores, regimes."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from pluri.components.sequence_model import TakesSequences
from pluri.dynamics.neighboring_steps import averaged
from pluri.dynamics.regions.flow import Flow, log_density_of_steps, next_means, regime_shares
from pluri.dynamics.regions.rollouts import Bounds, followed
from pluri.dynamics.regions.transitions import task_labels, transition_rows, with_holes
from pluri.validation import check_count
from pluri.validation.sequences import (
    BOUNDARIES,
    check_not_lost,
    check_sequence_weight,
    lengths_in_second_place,
    offsets_of,
    sequence_lengths,
    weight_by_either_name,
)

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

WITH_TASKS = BOUNDARIES | {"tasks": True}


class FlowQueries(TakesSequences):
    """Methods of a fitted flow; all are averages over the kept draws, and none depends on how regions are numbered."""

    __metadata_request__predict: ClassVar[dict[str, bool]] = WITH_TASKS
    # A pipeline always names weights, if only to say that there are none.
    __metadata_request__score: ClassVar[dict[str, bool]] = WITH_TASKS | {"sample_weight": True}

    random_state: Any
    embedding: Any
    weights_: Array
    draw_index_: Integers
    task_index_: Integers
    centers_: Array
    precisions_: Array
    matrices_: Array
    intercepts_: Array
    noise_variances_: Array
    regimes_: Integers
    regime_usage_: Array
    center_: Array
    reach_: float
    tasks_: NDArray[Any]

    def _n_features_of_parameters(self) -> int:
        return int(self.centers_.shape[1])

    def _flow(self, task: int, back: bool = False) -> Flow:
        """Regions of a task; with `back`, of the way back, whose noise is not known."""
        chosen = np.flatnonzero(self.task_index_ == task)
        chosen = chosen[np.argsort(self.draw_index_[chosen], kind="stable")]
        draws = self.draw_index_[chosen]
        with np.errstate(divide="ignore"):
            log_weights = np.log(self.weights_[chosen])
        names = ("centers", "precisions", "matrices", "intercepts")
        place = {name: getattr(self, f"back_{name}_" if back else f"{name}_")[chosen] for name in names}
        noise = self.noise_variances_[draws, task]
        return Flow(draws=draws, log_weights=log_weights, **place, variances=noise, regimes=self.regimes_[chosen])

    def _bounds(self) -> Bounds:
        return Bounds(self.center_, float(self.reach_))

    def _task(self, task: Any, name: str = "task") -> int:
        """Number of a task by its name; the only one if None."""
        check_is_fitted(self, "weights_")
        names = self.tasks_.tolist()
        if task is None and len(names) == 1:
            return 0
        if task is None or task not in names:
            raise ValueError(f"{name} must be one of {', '.join(map(repr, names))}, got {task!r}")
        return int(names.index(task))

    def _opened(
        self, X: Any, lengths: ArrayLike | None, groups: ArrayLike | None, tasks: ArrayLike | None
    ) -> tuple[Array, Integers, Integers]:
        """Checked rows, lengths of the sequences, and the number of the task of each."""
        check_is_fitted(self, "weights_")
        lengths = sequence_lengths(X, lengths, groups)
        check_not_lost(X, lengths, fitting=False)
        data, counts = self._observations(X, lengths)
        names = task_labels(tasks, counts)
        if names is None:
            return data.astype(np.float64), counts, np.full(len(counts), self._task(None, "tasks"))
        numbers = np.array([self._task(name, "tasks") for name in names.tolist()], dtype=np.int64)
        return data.astype(np.float64), counts, numbers

    def _filled(self, data: Array, lengths: Integers, numbers: Integers, how: Any) -> Array:
        """Rows with missing values replaced, sequence by sequence: ``how(task, rows, missing)``."""
        missing = with_holes(data)
        if not missing.any():
            return data
        found = data.copy()
        offsets = offsets_of(lengths)
        for n, task in enumerate(numbers.tolist()):
            part = slice(int(offsets[n]), int(offsets[n + 1]))
            if missing[part].any():
                found[part] = how(task, data[part], missing[part])
        return found

    def _followed(self, task: int, rows: Array, missing: NDArray[np.bool_]) -> Array:
        return followed(self._flow(task), rows, missing)

    def predict(
        self,
        X: Any,
        lengths: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        tasks: ArrayLike | None = None,
    ) -> Array:
        """Expected next row of each row.

        A missing value is taken to be what was expected of the rows before it in its sequence.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), or list of sequences
        lengths, groups : arrays of shape (n_sequences,) and (n_samples,), optional
            Where sequences begin, as in `fit`; it matters only where values are missing.
        tasks : array of shape (n_sequences,), optional
            The task of each sequence; needed if the model has several.

        Returns
        -------
        array of shape (n_samples, n_features)
        """
        data, counts, numbers = self._opened(X, lengths, groups, tasks)
        rows = self._filled(data, counts, numbers, self._followed)
        found = np.empty_like(rows)
        of_row = np.repeat(numbers, counts)
        for task in np.unique(of_row).tolist():
            found[of_row == task] = next_means(self._flow(task), rows[of_row == task])
        return found

    def score_sequences(
        self,
        X: Any,
        lengths: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        tasks: ArrayLike | None = None,
    ) -> Array:
        """Log predictive density of the steps of each sequence, its first row given.

        Steps from or to a row with a missing value do not count.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), or list of sequences
        lengths, groups, tasks : arrays, optional
            See `predict`.

        Returns
        -------
        array of shape (n_sequences,)
        """
        data, counts, numbers = self._opened(X, lengths, groups, tasks)
        complete = ~with_holes(data)
        first = transition_rows(counts)
        first = first[complete[first] & complete[first + 1]]
        sequence = np.repeat(np.arange(len(counts)), counts)[first]
        values = np.zeros(len(first))
        for task in np.unique(numbers).tolist():
            own = numbers[sequence] == task
            values[own] = log_density_of_steps(self._flow(task), data[first[own]], data[first[own] + 1])
        return np.bincount(sequence, values, minlength=len(counts)).astype(np.float64)

    def score(
        self,
        X: Any,
        y: Any = None,
        lengths: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        tasks: ArrayLike | None = None,
        sequence_weight: ArrayLike | None = None,
        **aliases: Any,
    ) -> float:
        """Log predictive density of all steps together, first rows given.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), or list of sequences
        y : ignored
            For scikit-learn; a program written for hmmlearn may pass `lengths` here.
        lengths, groups, tasks : arrays, optional
            See `predict`.
        sequence_weight : array of shape (n_sequences,), optional
            Weight of each sequence in the sum; also taken under the name ``sample_weight``.

        Returns
        -------
        float
        """
        sequence_weight = weight_by_either_name(sequence_weight, aliases)
        lengths = lengths_in_second_place(y, lengths if groups is None else sequence_lengths(X, lengths, groups), X)
        scores = self.score_sequences(X, lengths, tasks=tasks)
        if sequence_weight is None:
            return float(scores.sum())
        weight = check_sequence_weight(sequence_weight, self._observations(X, lengths)[1])
        assert weight is not None
        return float(weight @ scores)

    def predict_regime_proba(
        self,
        X: Any,
        lengths: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        tasks: ArrayLike | None = None,
        window: int = 0,
    ) -> Array:
        """Probability of each regime at each row, given the row and, where there is one, the next.

        Regimes of the draws are matched by the training steps that they have in common; columns are those of
        ``regime_usage_``. A missing value is replaced as in `predict`.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), or list of sequences
        lengths, groups, tasks : arrays, optional
            See `predict`.
        window : int, default=0
            Steps to each side, in the same sequence, over which probabilities are averaged: the model has no memory,
            and regimes of single rows change more often than what is done.

        Returns
        -------
        array of shape (n_samples, n_regimes)
        """
        check_count(window, "window", least=0)
        data, counts, numbers = self._opened(X, lengths, groups, tasks)
        complete = ~with_holes(data)
        rows = self._filled(data, counts, numbers, self._followed)
        n_named = self.regime_usage_.shape[1]
        found = np.empty((len(rows), n_named))
        with_next = np.zeros(len(rows), dtype=bool)
        with_next[transition_rows(counts)] = True
        with_next[:-1] &= complete[:-1] & complete[1:]
        of_row = np.repeat(numbers, counts)
        for task in np.unique(of_row).tolist():
            flow = self._flow(task)
            for follow in (True, False):
                own = np.flatnonzero((of_row == task) & (with_next == follow))
                if len(own):
                    after = rows[own + 1] if follow else None
                    found[own] = regime_shares(flow, rows[own], n_named, after)
        return averaged(found, offsets_of(counts), int(window)) if window else found

    def predict_regime(
        self,
        X: Any,
        lengths: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        tasks: ArrayLike | None = None,
        window: int = 0,
    ) -> Integers:
        """Most probable regime of each row; see `predict_regime_proba`."""
        shares = self.predict_regime_proba(X, lengths, groups=groups, tasks=tasks, window=window)
        return shares.argmax(axis=1).astype(np.int64)
