"""A decoder of sequences: from a vector or a sequence to tokens, one after the other, until it says that it is done.

    log P(Y | X) = sum_t log P(y_t | h_t),   h_t = f(h_(t-1), y_(t-1)),   h_1 = f(X).

It is trained by scheduled sampling (`pluri.networks.scheduled_sampling`), so that it meets its own mistakes before it
is used.

References
----------
Bengio, Vinyals, Jaitly and Shazeer (2015), Scheduled sampling for sequence prediction with recurrent neural networks,
NeurIPS.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from pluri.networks.batches import bucket_edges
from pluri.networks.design import Design
from pluri.networks.examples import Examples, check_tokens, encode, learn_vocabulary, source_kind, with_end
from pluri.networks.recurrent_decoder import RecurrentDecoder
from pluri.networks.sequence_queries import SequenceQueries
from pluri.validation import Allowed, Flag, Only, Whole, restored_on_failure


class SequenceDecoder(SequenceQueries):
    """Decoder from vectors or sequences to sequences of tokens, trained by scheduled sampling.

    Parameters
    ----------
    cell : {"lstm", "gru", "rnn"}, default="lstm"
        Recurrent cell; "rnn" is the plain tanh cell.
    hidden_size : int, default=128
        Units of each layer.
    n_layers : int, default=1
        Layers, of the encoder and of the decoder.
    embedding_size : int, default=64
        Size of the vectors that stand for tokens.
    attention : bool, default=False
        Whether each step looks at all steps of an input that is a sequence. Without it, the decoder knows the input
        by the encoder's last state alone.
    bidirectional : bool, default=False
        Whether the encoder reads a sequence in both directions.
    schedule : {"inverse_sigmoid", "linear", "exponential", "ramp"}, callable or None, default="inverse_sigmoid"
        Probability of feeding the true token: a schedule of `pluri.networks`, a function of the number of the
        minibatch, or a name, for one that is placed by the length of the training and ends at 0.25. None is teacher
        forcing.
    feedback : {"sample", "argmax", "uniform"}, default="sample"
        What is fed in place of the true token: a draw from the network, its best token, or any token.
    coin : {"token", "sequence"}, default="token"
        Whether the choice is made for each token, or once for all tokens of a sequence.
    sampling_grad : {"gumbel"} or None, default=None
        With "gumbel", gradients go through the draws (straight-through Gumbel-softmax). Experimental.
    temperature : float, default=1.0
        Of the Gumbel-softmax.
    confidence : bool, default=False
        Whether the network's token is fed less often where it is not sure. Experimental.
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
    max_length : int or None, default=None
        Longest output; twice the longest one of the training by default.
    warm_start : bool, default=False
        Whether `fit` goes on from the last one.
    checkpoint : path or None, default=None
        File from which an interrupted fit goes on to the last bit (a further one for each further member).
    random_state : int, numpy Generator, RandomState or None, default=None
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    vocabulary_ : array of shape (n_tokens,)
        Tokens of the outputs; the end has no token.
    input_vocabulary_ : array or None
        Tokens of the inputs, if they are tokens.
    params_ : dict of arrays
        Weights, with the members along the first axis.
    scores_ : dict
        ``teacher_forced_error``, ``free_running_error`` (greedy; edits for each true token) and ``perplexity`` of
        the held-out sequences, and whether they were held out.
    loss_history_, teacher_forced_history_, free_running_history_, perplexity_history_, epsilon_history_ : arrays of \
shape (n_members_, n_iter_)
        Of each epoch: training loss; errors and perplexity of the held-out sequences; probability of true tokens.
    best_epoch_ : array of shape (n_members_,)
        The epoch that is kept, from 1.
    n_iter_ : int
        Epochs of the longest training.
    n_members_ : int
    max_length_ : int
    n_features_in_ : int
        Of the vectors; not there with tokens.

    Notes
    -----
    With a probability below 1 the optimum is not the distribution of the data (`pluri.networks.scheduled_sampling`):
    look at both errors.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.networks import SequenceDecoder
    >>> X = np.repeat(np.eye(3), 20, axis=0)
    >>> y = [["a"] * (1 + int(row.argmax())) for row in X]
    >>> model = SequenceDecoder(hidden_size=16, embedding_size=8, max_epochs=30, random_state=0).fit(X, y)
    >>> model.predict(np.eye(3))
    [['a'], ['a', 'a'], ['a', 'a', 'a']]
    """

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        **RecurrentDecoder._parameters,
        "attention": Flag(),
        "bidirectional": Flag(),
        "max_length": Whole(1) | Only(None),
    }

    def __init__(
        self,
        cell: str = "lstm",
        *,
        hidden_size: int = 128,
        n_layers: int = 1,
        embedding_size: int = 64,
        attention: bool = False,
        bidirectional: bool = False,
        schedule: Any = "inverse_sigmoid",
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
        max_length: int | None = None,
        warm_start: bool = False,
        checkpoint: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.cell = cell
        self.hidden_size = hidden_size
        self.n_layers = n_layers
        self.embedding_size = embedding_size
        self.attention = attention
        self.bidirectional = bidirectional
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
        self.max_length = max_length
        self.warm_start = warm_start
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.verbose = verbose

    def written_tokens(self, y: Any) -> list[list[Any]]:
        """Outputs as the tokens that the decoder writes, without the end.

        Parameters
        ----------
        y : as in `fit`

        Returns
        -------
        list of lists
        """
        return [list(tokens) for tokens in y]

    def fit(self, X: Any, y: Any, *, validation_set: tuple[Any, Any] | None = None) -> Self:
        """Train the decoder; after Ctrl-C the best epoch so far stays.

        Parameters
        ----------
        X : array of shape (n_sequences, n_features), list of arrays of shape (n_steps, n_features), or list of lists \
of tokens
            A vector or a sequence for each output.
        y : list of lists of tokens
            Strings or integers; an output may be empty.
        validation_set : (X, y), optional
            To judge epochs by, in place of `validation_fraction`.

        Returns
        -------
        self : object
        """
        self._checked()
        kind = source_kind(X)
        if self.attention and kind == "vector":
            raise ValueError("attention must be False where X holds vectors: it looks at the steps of a sequence")
        tokens = check_tokens(y, "y", empty=True)
        vocabulary = learn_vocabulary(tokens, "y")
        inputs, sources, learned = self._read(X, kind, None)
        n = len(next(iter(inputs.values())))
        if len(tokens) != n:
            raise ValueError(f"y must have one sequence for each of {n} inputs, got {len(tokens)}")
        if self.warm_start and not np.array_equal(getattr(self, "vocabulary_", vocabulary), vocabulary):
            raise ValueError("warm_start needs the tokens of the fit before")
        targets, lengths = with_end(encode(tokens, vocabulary, -1, "y"), len(vocabulary))
        design = Design(
            kind, learned["n_inputs"], len(vocabulary) + 1, self.cell, int(self.hidden_size), int(self.n_layers),
            int(self.embedding_size), bool(self.attention), bool(self.bidirectional and kind != "vector"),
        )  # fmt: skip
        with restored_on_failure(self):
            self._take(learned, vocabulary, lengths, sources)
            held_out = None if validation_set is None else self._examples(*validation_set, design)
            self._learn(design, Examples(inputs, lengths, targets, sources), held_out)
        return self

    def _take(
        self,
        learned: dict[str, Any],
        vocabulary: NDArray[Any],
        lengths: NDArray[np.int64],
        sources: NDArray[np.int64] | None,
    ) -> None:
        """Store what was learned of the inputs and the tokens."""
        self.vocabulary_, self.input_vocabulary_ = vocabulary, learned["words"]
        self.mean_, self.scale_ = learned["mean"], learned["scale"]
        if learned["words"] is None:
            self.n_features_in_ = learned["n_inputs"]
        elif hasattr(self, "n_features_in_"):
            del self.n_features_in_
        self.max_length_ = int(2 * lengths.max()) if self.max_length is None else int(self.max_length)
        self.lengths_ = bucket_edges(lengths if sources is None else sources)
