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

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_array, check_is_fitted

from pluri.networks.batches import bucket_edges, pad
from pluri.networks.decoder_fit import lengths_of
from pluri.networks.design import Design
from pluri.networks.error_rates import Scores, edit_distances
from pluri.networks.examples import (
    Examples,
    check_sequences,
    check_tokens,
    encode,
    learn_vocabulary,
    source_kind,
    standardisation,
    with_end,
)
from pluri.networks.recurrent_decoder import Candidate, RecurrentDecoder
from pluri.validation import (
    Allowed,
    Flag,
    Number,
    Only,
    Whole,
    as_generator,
    check_count,
    check_value,
    restored_on_failure,
)


class SequenceDecoder(RecurrentDecoder):
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
        batch_size: int = 32,
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
            self._take(learned, vocabulary, lengths)
            held_out = None if validation_set is None else self._examples(*validation_set, design)
            self._learn(design, Examples(inputs, lengths, targets, sources), held_out)
        return self

    def _take(self, learned: dict[str, Any], vocabulary: NDArray[Any], lengths: NDArray[np.int64]) -> None:
        """Store what was learned of the inputs and the tokens."""
        self.vocabulary_, self.input_vocabulary_ = vocabulary, learned["words"]
        self.mean_, self.scale_ = learned["mean"], learned["scale"]
        if learned["words"] is None:
            self.n_features_in_ = learned["n_inputs"]
        elif hasattr(self, "n_features_in_"):
            del self.n_features_in_
        self.max_length_ = int(2 * lengths.max()) if self.max_length is None else int(self.max_length)
        self.lengths_ = bucket_edges(lengths)

    def _read(
        self, X: Any, kind: str, learned: dict[str, Any] | None
    ) -> tuple[dict[str, NDArray[Any]], NDArray[np.int64] | None, dict[str, Any]]:
        """Inputs as padded arrays, lengths of sequences, and what is learned of them unless it is known already."""
        known = learned or {"n_inputs": None, "mean": None, "scale": None, "words": None}
        if kind == "tokens":
            words = check_tokens(X, "X", empty=False)
            known = learned or {**known, "words": learn_vocabulary(words, "X")}
            known["n_inputs"] = len(known["words"])
            values, mask = pad(encode(words, known["words"], known["n_inputs"], "X"))
            return {"source": values.astype(np.int32), "source_mask": mask}, mask.sum(axis=1), known
        if kind == "vector":
            rows = check_array(X, dtype=np.float64, input_name="X")
            arrays = [rows]
            if known["n_inputs"] not in (None, rows.shape[1]):
                raise ValueError(f"X must have {known['n_inputs']} features, got {rows.shape[1]}")
        else:
            arrays = check_sequences(X, known["n_inputs"])
        if learned is None:
            mean, scale = standardisation(np.concatenate(arrays))
            known = {**known, "n_inputs": arrays[0].shape[1], "mean": mean, "scale": scale}
        standard = [((array - known["mean"]) / known["scale"]).astype(np.float32) for array in arrays]
        if kind == "vector":
            return {"vectors": standard[0]}, None, known
        values, mask = pad(standard)
        return {"source": values, "source_mask": mask}, mask.sum(axis=1), known

    def _examples(self, X: Any, y: Any = None, design: Design | None = None) -> Examples:
        """Examples to ask a fitted decoder about."""
        design = self._design() if design is None else design
        kind = source_kind(X)
        if kind != design.source:
            said = {"vector": "vectors", "sequence": "sequences of vectors", "tokens": "lists of tokens"}
            raise ValueError(f"X must hold {said[design.source]} as in fit, got {said[kind]}")
        known = {
            "n_inputs": design.n_inputs, "mean": self.mean_, "scale": self.scale_, "words": self.input_vocabulary_
        }  # fmt: skip
        inputs, sources, _ = self._read(X, kind, known)
        n = len(next(iter(inputs.values())))
        if y is None:
            return Examples(inputs, np.ones(n, dtype=np.int64), None, sources)
        tokens = check_tokens(y, "y", empty=True)
        if len(tokens) != n:
            raise ValueError(f"y must have one sequence for each of {n} inputs, got {len(tokens)}")
        encoded = encode(tokens, self.vocabulary_, design.unknown_token, "y")
        targets, lengths = with_end(encoded, design.n_outputs - 1)
        return Examples(inputs, lengths, targets, sources)

    def _check_vocabulary(self) -> None:
        design = self._design()
        if len(self.vocabulary_) + 1 != design.n_outputs:
            raise ValueError(f"vocabulary_ must hold {design.n_outputs - 1} tokens, got {len(self.vocabulary_)}")
        if design.source == "tokens" and len(self.input_vocabulary_) != design.n_inputs:
            raise ValueError(f"input_vocabulary_ must hold {design.n_inputs} tokens, got {len(self.input_vocabulary_)}")

    def _words(self, tokens: NDArray[np.int64]) -> list[Any]:
        return self.vocabulary_[tokens].tolist()

    def decode(
        self, X: Any, *, n_best: int = 1, beam_size: int | None = None, max_length: int | None = None,
        length_penalty: float = 0.0,
    ) -> list[list[Candidate]]:  # fmt: skip
        """The best outputs that a beam search finds for each input, with their log-probabilities.

        Parameters
        ----------
        X : as in `fit`
        n_best : int, default=1
            Candidates to return, at most `beam_size`.
        beam_size, max_length : int, optional
            In place of the settings.
        length_penalty : float, default=0.0
            Candidates are ranked by their log-probability divided by their length to this power.

        Returns
        -------
        list of lists of Candidate
            Best first; fewer than `n_best` where there are no more outputs.
        """
        check_is_fitted(self, "params_")
        length = check_count(self.max_length_ if max_length is None else max_length, "max_length")
        found = self._beams(self._examples(X), beam_size, n_best, length, length_penalty)
        return [[Candidate(self._words(tokens), score, cut) for tokens, score, cut in best] for best in found]

    def predict(self, X: Any, *, beam_size: int | None = None, max_length: int | None = None) -> list[list[Any]]:
        """The most probable output that a beam search finds for each input; 1 as `beam_size` is greedy decoding.

        Parameters
        ----------
        X : as in `fit`
        beam_size, max_length : int, optional
            In place of the settings.

        Returns
        -------
        list of lists of tokens
            Outputs that were cut off at `max_length` are counted in a warning; `decode` tells which.
        """
        best = [found[0] for found in self.decode(X, beam_size=beam_size, max_length=max_length)]
        n_cut = sum(one.truncated for one in best)
        if n_cut:
            warnings.warn(
                f"{n_cut} of {len(best)} outputs did not end within max_length and are cut off",
                UserWarning,
                stacklevel=2,
            )
        return [one.tokens for one in best]

    def sample(
        self, X: Any, n_samples: int = 1, *, temperature: float = 1.0, max_length: int | None = None,
        random_state: Any = None,
    ) -> list[list[list[Any]]]:  # fmt: skip
        """Draw outputs.

        Parameters
        ----------
        X : as in `fit`
        n_samples : int, default=1
            Draws for each input.
        temperature : float, default=1.0
            Log-probabilities are divided by it: lower ones give likelier outputs.
        max_length : int, optional
        random_state : int, numpy Generator, RandomState or None
            None: that of the estimator.

        Returns
        -------
        list of lists of lists of tokens
            `n_samples` outputs for each input.
        """
        check_is_fitted(self, "params_")
        check_count(n_samples, "n_samples")
        check_value(temperature, "temperature", Number(above=0))
        length = check_count(self.max_length_ if max_length is None else max_length, "max_length")
        rng = as_generator(self.random_state if random_state is None else random_state)
        data, end = self._examples(X), self._design().n_outputs - 1
        found: list[list[list[Any]]] = [[] for _ in range(len(data))]
        for _ in range(n_samples):
            for rows, steps in self._free(data, length, rng, float(temperature)):
                tokens = np.asarray(steps.tokens)
                lengths = lengths_of(tokens, end)
                for place, row in enumerate(rows.tolist()):
                    found[row].append(self._words(tokens[place, : lengths[place]]))
        return found

    def predict_proba(self, X: Any, y: Any) -> list[NDArray[np.float64]]:
        """Probabilities of all tokens at each step, given the true tokens before it.

        Parameters
        ----------
        X, y : as in `fit`

        Returns
        -------
        list of arrays of shape (n_steps + 1, n_tokens + 1)
            Columns are `vocabulary_`, then the end; the last row is the step after the last token.
        """
        check_is_fitted(self, "params_")
        data = self._examples(X, y)
        found: list[Any] = [None] * len(data)
        for rows, steps in self._forced(data):
            probabilities = np.exp(np.asarray(steps.all_log_probs, dtype=np.float64))
            for place, row in enumerate(rows.tolist()):
                found[row] = probabilities[place, : data.lengths[row]]
        return found

    def attention_weights(self, X: Any, y: Any) -> list[NDArray[np.float64]]:
        """Weight of each step of the input at each step of the output, given the true tokens before it.

        Parameters
        ----------
        X, y : as in `fit`

        Returns
        -------
        list of arrays of shape (n_steps + 1, n_input_steps)
            Averaged over the members; the last row is the end.
        """
        check_is_fitted(self, "params_")
        if not self._design().attention:
            raise ValueError("attention_weights needs a decoder with attention=True")
        data = self._examples(X, y)
        found: list[Any] = [None] * len(data)
        for rows, steps in self._forced(data):
            weights = np.asarray(steps.attention, dtype=np.float64)
            for place, row in enumerate(rows.tolist()):
                found[row] = weights[place, : data.lengths[row], : data.source_lengths[row]]  # type: ignore[index]
        return found

    def evaluate(self, X: Any, y: Any) -> Scores:
        """Both errors and the perplexity.

        Parameters
        ----------
        X, y : as in `fit`

        Returns
        -------
        Scores
            ``teacher_forced_error``, ``free_running_error`` (of greedy decoding) and ``perplexity``.
        """
        check_is_fitted(self, "params_")
        return self._evaluated(self._examples(X, y))

    def score(self, X: Any, y: Any) -> float:
        """One minus the free-running error of `predict`: the edits for each true token that its outputs need."""
        data = self._examples(X, y)
        outputs = self._beams(data, None, 1, int(self.max_length_), 0.0)
        found, mask = pad([best[0][0] for best in outputs])
        wrong = edit_distances(data.targets, data.lengths - 1, found, mask.sum(axis=1))  # type: ignore[arg-type]
        return float(1.0 - wrong.sum() / max(1, (data.lengths - 1).sum()))

    def score_teacher_forced(self, X: Any, y: Any) -> float:
        """Share of the tokens that are most probable given the true ones before them."""
        return 1.0 - self.evaluate(X, y).teacher_forced_error

    def perplexity(self, X: Any, y: Any) -> float:
        """Exponential of the mean negative log-probability of the true tokens, ends included."""
        return self.evaluate(X, y).perplexity
