"""Labels of the frames of sequences, one after the other, each given the frame and the label before it.

    log P(Y | X) = sum_t log P(y_t | h_t),   h_t = f(h_(t-1), y_(t-1), x_t).

Labels that seldom change make a trap: who is told the true label before hardly needs the frame, and is lost when that
label is its own guess. Scheduled sampling (`pluri.networks.scheduled_sampling`) is the way out.

References
----------
Bengio, Vinyals, Jaitly and Shazeer (2015), Scheduled sampling for sequence prediction with recurrent neural networks,
NeurIPS, section 4.3.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from pluri.components.sequence_model import TakesSequences
from pluri.networks.batches import bucket_edges, pad
from pluri.networks.design import Design
from pluri.networks.error_rates import Scores
from pluri.networks.examples import Examples, encode, standardisation
from pluri.networks.recurrent_decoder import Candidate, RecurrentDecoder
from pluri.validation import Number, as_generator, check_count, check_value, restored_on_failure
from pluri.validation.sequences import (
    BOUNDARIES,
    check_not_lost,
    is_sequence_list,
    may_be_rows,
    offsets_of,
    sequence_lengths,
)

Integers = NDArray[np.int64]


class FrameTagger(ClassifierMixin, RecurrentDecoder, TakesSequences):
    """Recurrent network that labels each frame of a sequence, trained by scheduled sampling.

    Parameters
    ----------
    cell : {"lstm", "gru", "rnn"}, default="lstm"
        Recurrent cell; "rnn" is the plain tanh cell.
    hidden_size : int, default=128
        Units of each layer.
    n_layers : int, default=1
    embedding_size : int, default=16
        Size of the vectors that stand for labels.
    schedule : {"ramp", "inverse_sigmoid", "linear", "exponential"}, callable or None, default="ramp"
        Probability of feeding the true label: a schedule of `pluri.networks`, a function of the number of the
        minibatch, or a name; "ramp" goes from 1/2 to 0 in ten epochs. None is teacher forcing.
    feedback : {"sample", "argmax", "uniform"}, default="sample"
        What is fed in place of the true label: a draw from the network, its best label, or any label.
    coin : {"token", "sequence"}, default="token"
        Whether the choice is made for each frame, or once for all frames of a sequence.
    sampling_grad : {"gumbel"} or None, default=None
        With "gumbel", gradients go through the draws (straight-through Gumbel-softmax). Experimental.
    temperature : float, default=1.0
        Of the Gumbel-softmax.
    confidence : bool, default=False
        Whether the network's label is fed less often where it is not sure. Experimental.
    dropout : float, default=0.0
        Share of the connections that are not recurrent to leave out, one mask a sequence.
    optimizer : {"adam", "rmsprop", "sgd"}, default="adam"
    learning_rate : float, default=3e-3
    batch_size : int, default=32
        Sequences of a minibatch; they have similar lengths.
    max_epochs, min_epochs : int, default=100, 1
        Passes through the data at most, and the first one that may be kept.
    early_stopping : {"free_running", "teacher_forced"} or None, default="free_running"
        The epoch that is kept: that of the lowest error of what the network decodes by itself, that of the lowest
        perplexity, or the last.
    n_iter_no_change : int, default=10
        Epochs without a better one after which the training ends.
    validation_fraction : float, default=0.1
        Share of the sequences held out to judge epochs; with fewer than 10 sequences all are used for both.
    clip_norm : float or None, default=1.0
        Longest gradient.
    n_members : int, default=1
        Networks trained from different seeds, whose probabilities are averaged.
    beam_size : int, default=10
        Candidates that `predict` keeps.
    warm_start : bool, default=False
        Whether `fit` goes on from the last one.
    checkpoint : path or None, default=None
        File from which an interrupted fit goes on to the last bit (a further one for each further member).
    random_state : int, numpy Generator, RandomState or None, default=None
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    params_ : dict of arrays
        Weights, with the members along the first axis.
    scores_ : dict
        ``teacher_forced_error``, ``free_running_error`` (greedy) and ``perplexity`` of the held-out sequences, and
        whether they were held out.
    loss_history_, teacher_forced_history_, free_running_history_, perplexity_history_, epsilon_history_ : arrays of \
shape (n_members_, n_iter_)
        Of each epoch: training loss; errors and perplexity of the held-out sequences; probability of true labels.
    best_epoch_ : array of shape (n_members_,)
        The epoch that is kept, from 1.
    n_iter_ : int
        Epochs of the longest training.
    n_members_ : int
    mean_, scale_ : arrays of shape (n_features,)
        By which frames are standardised.
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.networks import FrameTagger
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(rng.integers(3, size=(40, 5)), 4, axis=1)
    >>> X = [np.eye(3)[labels] + 0.3 * rng.normal(size=(20, 3)) for labels in y]
    >>> model = FrameTagger(hidden_size=16, max_epochs=15, random_state=0).fit(X[:30], list(y[:30]))
    >>> bool(model.score(X[30:], list(y[30:])) > 0.9)
    True
    """

    _weak_input: ClassVar[bool] = False
    _minimum: ClassVar[float] = 0.0
    # With metadata routing, boundaries reach the model without being asked for: without them it would be wrong.
    __metadata_request__fit: ClassVar[dict[str, bool]] = BOUNDARIES
    __metadata_request__predict: ClassVar[dict[str, bool]] = BOUNDARIES
    __metadata_request__predict_proba: ClassVar[dict[str, bool]] = BOUNDARIES
    __metadata_request__score: ClassVar[dict[str, bool]] = BOUNDARIES

    def __init__(
        self,
        cell: str = "lstm",
        *,
        hidden_size: int = 128,
        n_layers: int = 1,
        embedding_size: int = 16,
        schedule: Any = "ramp",
        feedback: str = "sample",
        coin: str = "token",
        sampling_grad: str | None = None,
        temperature: float = 1.0,
        confidence: bool = False,
        dropout: float = 0.0,
        optimizer: str = "adam",
        learning_rate: float = 3e-3,
        batch_size: int = 32,
        max_epochs: int = 100,
        min_epochs: int = 1,
        early_stopping: str | None = "free_running",
        n_iter_no_change: int = 10,
        validation_fraction: float = 0.1,
        clip_norm: float | None = 1.0,
        n_members: int = 1,
        beam_size: int = 10,
        warm_start: bool = False,
        checkpoint: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.cell = cell
        self.hidden_size = hidden_size
        self.n_layers = n_layers
        self.embedding_size = embedding_size
        self.schedule = schedule
        self.feedback = feedback
        self.coin = coin
        self.sampling_grad = sampling_grad
        self.temperature = temperature
        self.confidence = confidence
        self.dropout = dropout
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.min_epochs = min_epochs
        self.early_stopping = early_stopping
        self.n_iter_no_change = n_iter_no_change
        self.validation_fraction = validation_fraction
        self.clip_norm = clip_norm
        self.n_members = n_members
        self.beam_size = beam_size
        self.warm_start = warm_start
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.verbose = verbose

    def _n_features_of_parameters(self) -> int:
        return int(self.n_features_in_)

    def _check_data(self, X: Any, *, fitting: bool) -> NDArray[Any]:
        return self._validated(X, fitting, ensure_all_finite=True)

    def fit(
        self,
        X: Any,
        y: Any,
        lengths: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        validation_set: tuple[Any, Any] | None = None,
    ) -> Self:
        """Train the tagger; after Ctrl-C the best epoch so far stays.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), or list of sequences
        y : array of shape (n_samples,), or list of sequences of labels
        lengths : array of shape (n_sequences,), optional
            Lengths of the sequences in X, which sum to n_samples; one sequence if neither `lengths` nor `groups` is
            given.
        groups : array of shape (n_samples,), optional
            The sequence of each row, in place of `lengths`.
        validation_set : (X, y), optional
            Lists of sequences to judge epochs by, in place of `validation_fraction`.

        Returns
        -------
        self : object
        """
        self._checked()
        with restored_on_failure(self):
            rows, counts, labels = self._rows(X, y, lengths, groups, fitting=True)
            check_classification_targets(labels)
            classes = np.unique(labels)
            if len(classes) < 2:
                raise ValueError(f"y must have at least two classes, got one: {classes.tolist()[0]!r}")
            if self.warm_start and not np.array_equal(getattr(self, "classes_", classes), classes):
                raise ValueError("warm_start needs the classes of the fit before")
            self.classes_ = classes
            self.mean_, self.scale_ = standardisation(rows)
            self.lengths_ = bucket_edges(counts)
            design = Design(
                "frames", rows.shape[1], len(classes), self.cell, int(self.hidden_size), int(self.n_layers),
                int(self.embedding_size),
            )  # fmt: skip
            held_out = None
            if validation_set is not None:
                held_out = self._padded(*self._rows(*validation_set, None, None), design)
            self._learn(design, self._padded(rows, counts, labels, design), held_out)
        return self

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
        return [[Candidate(self.classes_[path].tolist(), score, cut) for path, score, cut in best] for best in found]

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
        data = self._asked(X, None, lengths, groups)
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

    def score(self, X: Any, y: Any, lengths: ArrayLike | None = None, *, groups: ArrayLike | None = None) -> float:
        """Share of the frames that `predict`, which sees no true label, gets right."""
        check_is_fitted(self, "params_")
        rows, counts, labels = self._rows(X, y, lengths, groups)
        found = self.predict(rows, counts)
        return float(np.mean(found == labels))

    def score_teacher_forced(
        self, X: Any, y: Any, lengths: ArrayLike | None = None, *, groups: ArrayLike | None = None
    ) -> float:
        """Share of the frames whose label is most probable given the true label before."""
        return 1.0 - self.evaluate(X, y, lengths, groups=groups).teacher_forced_error

    def perplexity(self, X: Any, y: Any, lengths: ArrayLike | None = None, *, groups: ArrayLike | None = None) -> float:
        """Exponential of the mean negative log-probability of the true labels, each given those before it."""
        return self.evaluate(X, y, lengths, groups=groups).perplexity


def _joined_labels(y: Any) -> tuple[NDArray[Any], Integers | None]:
    """Labels in one array, and how many each sequence has if they came as a list of sequences."""
    if isinstance(y, list | tuple) and len(y) > 0 and is_sequence_list(y):
        parts = [np.asarray(part) for part in y]
        filled = [part for part in parts if len(part)]
        joined = np.concatenate(filled) if filled else np.empty(0)
        return joined, np.array([len(part) for part in parts], dtype=np.int64)
    return np.asarray(column_or_1d(y, warn=True)), None
