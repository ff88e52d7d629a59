"""What a tagger of frames reads and answers: labels, their probabilities, and how often they are wrong."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted, column_or_1d

from pluri.components.sequence_model import TakesSequences
from pluri.networks.batches import pad
from pluri.networks.decoder_queries import Candidate
from pluri.networks.design import Design
from pluri.networks.error_rates import Scores
from pluri.networks.examples import Examples, encode
from pluri.networks.recurrent_decoder import RecurrentDecoder
from pluri.validation import Number, as_generator, check_count, check_row_weight, check_value, weighted_mean
from pluri.validation.sequences import (
    BOUNDARIES,
    check_not_lost,
    is_sequence_list,
    may_be_rows,
    offsets_of,
    sequence_lengths,
)

Integers = NDArray[np.int64]


class FrameQueries(ClassifierMixin, RecurrentDecoder, TakesSequences):
    """Queries of `pluri.networks.FrameTagger`."""

    _weak_input: ClassVar[bool] = False
    _minimum: ClassVar[float] = 0.0
    # With metadata routing, boundaries reach the model without being asked for: without them it would be wrong.
    __metadata_request__fit: ClassVar[dict[str, bool]] = BOUNDARIES
    __metadata_request__predict: ClassVar[dict[str, bool]] = BOUNDARIES
    __metadata_request__predict_proba: ClassVar[dict[str, bool]] = BOUNDARIES
    __metadata_request__score: ClassVar[dict[str, bool]] = BOUNDARIES

    random_state: Any
    n_features_in_: int
    classes_: NDArray[Any]
    mean_: NDArray[np.float64]
    scale_: NDArray[np.float64]

    def _n_features_of_parameters(self) -> int:
        return int(self.n_features_in_)

    def _check_data(self, X: Any, *, fitting: bool) -> NDArray[Any]:
        return self._validated(X, fitting, ensure_all_finite=True)

    def _rows(
        self, X: Any, y: Any, lengths: ArrayLike | None, groups: ArrayLike | None, fitting: bool = False
    ) -> tuple[NDArray[Any], Integers, NDArray[Any]]:
        """Frames end to end, lengths of the sequences, and labels, of which there may be none."""
        label_lengths, labels = None, np.empty(0)
        if fitting and y is None:
            raise ValueError("FrameTagger requires y to be passed, but the target y is None")
        if y is not None:
            labels, label_lengths = _joined_labels(y)
            if label_lengths is None and may_be_rows(X) and len(labels) == len(X) > 0:
                X = np.array(X)
        lengths = sequence_lengths(X, lengths, groups)
        if lengths is None and label_lengths is not None and not is_sequence_list(X):
            lengths = label_lengths
        check_not_lost(X, lengths, fitting=fitting)
        rows, counts = self._sequences(X, lengths, fitting=fitting)
        if y is not None and len(labels) != len(rows):
            raise ValueError(
                f"y must have one label for each of {len(rows)} samples, got {len(labels)}: inconsistent numbers of "
                "samples"
            )
        if label_lengths is not None and len(label_lengths) == len(counts) and (label_lengths != counts).any():
            n = int(np.flatnonzero(label_lengths != counts)[0])
            raise ValueError(f"y[{n}] must have as many labels as X[{n}] has samples ({counts[n]})")
        return rows, counts, labels

    def _padded(self, rows: NDArray[Any], counts: Integers, labels: NDArray[Any], design: Design) -> Examples:
        cuts = offsets_of(counts)[1:-1]
        standard = ((rows - self.mean_) / self.scale_).astype(np.float32)
        inputs = {"frames": pad(np.split(standard, cuts)).values}
        if not len(labels):
            return Examples(inputs, counts)
        numbers = encode([labels.tolist()], self.classes_, design.unknown_token, "y")[0]
        return Examples(inputs, counts, pad(np.split(numbers, cuts)).values)

    def _asked(self, X: Any, y: Any, lengths: ArrayLike | None, groups: ArrayLike | None) -> Examples:
        check_is_fitted(self, "params_")
        return self._padded(*self._rows(X, y, lengths, groups), self._design())

    def _check_vocabulary(self) -> None:
        if len(self.classes_) != self._design().n_outputs:
            raise ValueError(
                f"classes_ must be {self._design().n_outputs}, one for each output, got {len(self.classes_)}"
            )

    def decode(
        self,
        X: Any,
        lengths: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        n_best: int = 1,
        beam_size: int | None = None,
    ) -> list[list[Candidate]]:
        """The best paths of labels that a beam search finds for each sequence, with their log-probabilities.

        Parameters
        ----------
        X, lengths, groups : as in `fit`
        n_best : int, default=1
            Candidates to return, at most `beam_size`.
        beam_size : int, optional
            In place of the setting.

        Returns
        -------
        list of lists of Candidate
            Best first, a list for each sequence.
        """
        data = self._asked(X, None, lengths, groups)
        found = self._beams(data, beam_size, n_best, None, 0.0)
        return [
            [Candidate(self.classes_[path].tolist(), float(score), cut) for path, cut, score in best] for best in found
        ]

    def predict(
        self,
        X: Any,
        lengths: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        beam_size: int | None = None,
    ) -> NDArray[Any]:
        """Labels of the frames: the most probable path that a beam search finds; a beam of 1 is greedy decoding.

        Parameters
        ----------
        X, lengths, groups : as in `fit`
        beam_size : int, optional
            In place of the setting.

        Returns
        -------
        labels : array of shape (n_samples,)
        """
        return self._best(self._asked(X, None, lengths, groups), beam_size)

    def _best(self, data: Examples, beam_size: int | None = None) -> NDArray[Any]:
        """Labels of the best path of each sequence, end to end."""
        found = self._beams(data, beam_size, 1, None, 0.0)
        return np.asarray(self.classes_[np.concatenate([best[0][0] for best in found])])

    def predict_proba(
        self, X: Any, y: Any = None, lengths: ArrayLike | None = None, *, groups: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """Probability of each class at each step, given the labels before it.

        Parameters
        ----------
        X, lengths, groups : as in `fit`
        y : array of shape (n_samples,), or list of sequences of labels, optional
            True labels to feed; the network's own best ones by default.

        Returns
        -------
        probabilities : array of shape (n_samples, n_classes)
        """
        data = self._asked(X, y, lengths, groups)
        found: list[Any] = [None] * len(data)
        for rows, steps in self._free(data, None) if y is None else self._forced(data):
            probabilities = np.exp(np.asarray(steps.all_log_probs, dtype=np.float64))
            for place, row in enumerate(rows.tolist()):
                found[row] = probabilities[place, : data.lengths[row]]
        joined = np.concatenate(found)
        return np.asarray(joined / joined.sum(axis=1, keepdims=True))

    def sample(
        self,
        X: Any,
        n_samples: int = 1,
        *,
        lengths: ArrayLike | None = None,
        temperature: float = 1.0,
        random_state: Any = None,
    ) -> NDArray[Any]:
        """Draw paths of labels.

        Parameters
        ----------
        X, lengths : as in `fit`
        n_samples : int, default=1
        temperature : float, default=1.0
            Log-probabilities are divided by it.
        random_state : int, numpy Generator, RandomState or None
            None: that of the estimator.

        Returns
        -------
        labels : array of shape (n_samples, n_frames)
        """
        check_count(n_samples, "n_samples")
        check_value(temperature, "temperature", Number(above=0))
        data = self._asked(X, None, lengths, None)
        rng = as_generator(self.random_state if random_state is None else random_state)
        drawn = []
        for _ in range(n_samples):
            found: list[Any] = [None] * len(data)
            for rows, steps in self._free(data, None, rng, float(temperature)):
                for place, row in enumerate(rows.tolist()):
                    found[row] = np.asarray(steps.tokens)[place, : data.lengths[row]]
            drawn.append(np.concatenate(found))
        return np.asarray(self.classes_[np.array(drawn)])

    def evaluate(self, X: Any, y: Any, lengths: ArrayLike | None = None, *, groups: ArrayLike | None = None) -> Scores:
        """Both errors and the perplexity.

        Parameters
        ----------
        X, y, lengths, groups : as in `fit`

        Returns
        -------
        Scores
            ``teacher_forced_error``, ``free_running_error`` (of greedy decoding) and ``perplexity``.
        """
        return self._evaluated(self._asked(X, y, lengths, groups))

    def score(
        self,
        X: Any,
        y: Any,
        lengths: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Share of the frames that `predict`, which sees no true label, gets right; frames may have weights."""
        check_is_fitted(self, "params_")
        rows, counts, labels = self._rows(X, y, lengths, groups)
        weight = check_row_weight(sample_weight, len(rows))
        found = self._best(self._padded(rows, counts, np.empty(0), self._design()))
        return weighted_mean((found == labels).astype(np.float64), weight)

    def score_teacher_forced(
        self, X: Any, y: Any, lengths: ArrayLike | None = None, *, groups: ArrayLike | None = None
    ) -> float:
        """Share of the frames whose label is most probable given the true label before."""
        return 1.0 - self.evaluate(X, y, lengths, groups=groups).teacher_forced_error

    def perplexity(self, X: Any, y: Any, lengths: ArrayLike | None = None, *, groups: ArrayLike | None = None) -> float:
        """Exponential of the mean negative log-probability of the true labels, each given those before it."""
        return self.evaluate(X, y, lengths, groups=groups).perplexity

    def errors_by_position(self, X: Any, y: Any, lengths: ArrayLike | None = None) -> dict[str, NDArray[np.float64]]:
        """Error rate at each place of the sequence, "teacher-forced" and "free-running" (greedy).

        Parameters
        ----------
        X, y, lengths : as in `fit`

        Returns
        -------
        dict of str to array of shape (n_positions,)
        """
        return self._errors_by_position(self._asked(X, y, lengths, None))

    def beam_tree(self, x: Any, *, beam_size: int | None = None) -> tuple[NDArray[Any], list[list[str]], NDArray[Any]]:
        """The beams of one sequence, step by step, for `pluri.plotting.BeamTreeDisplay`.

        Parameters
        ----------
        x : array of shape (n_frames, n_features)
        beam_size : int, optional
            In place of the setting.

        Returns
        -------
        parents : array of shape (n_frames, beam_size)
        labels : list of lists of str
        log_probs : array of shape (n_frames, beam_size)
        """
        beams, n_steps = self._tree(self._asked([np.asarray(x)], None, None, None), beam_size, None)
        names = [str(label) for label in self.classes_.tolist()]
        labels = [[names[label] for label in row] for row in beams.tokens[:n_steps]]
        return beams.parents[:n_steps], labels, beams.scores[:n_steps]


def _joined_labels(y: Any) -> tuple[NDArray[Any], Integers | None]:
    """Labels in one array, and how many each sequence has if they came as a list of sequences."""
    if isinstance(y, list | tuple) and len(y) > 0 and is_sequence_list(y):
        parts = [np.asarray(part) for part in y]
        filled = [part for part in parts if len(part)]
        joined = np.concatenate(filled) if filled else np.empty(0)
        return joined, np.array([len(part) for part in parts], dtype=np.int64)
    return np.asarray(column_or_1d(y, warn=True)), None
