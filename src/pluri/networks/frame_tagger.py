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

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.multiclass import check_classification_targets

from pluri.networks.batches import bucket_edges
from pluri.networks.design import Design
from pluri.networks.examples import standardisation
from pluri.networks.frame_queries import FrameQueries
from pluri.validation import restored_on_failure


class FrameTagger(FrameQueries):
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
    batch_size : int or "auto", default="auto"
        Sequences of a minibatch; they have similar lengths. "auto" is 32, or fewer where an epoch would have less than
        eight steps.
    max_epochs, min_epochs : int, default=100, 1
        Passes through the data at most, and the first one that may be kept.
    early_stopping : {"free_running", "teacher_forced"} or None, default="free_running"
        The epoch that is kept: that of the lowest error of what the network decodes by itself (of equal ones, the
        lowest perplexity), that of the lowest perplexity, or the last.
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
    >>> model = FrameTagger(hidden_size=16, max_epochs=60, random_state=0).fit(X[:30], list(y[:30]))
    >>> bool(model.score(X[30:], list(y[30:])) > 0.9)
    True
    """

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
        batch_size: int | str = "auto",
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
