"""Classes of token sequences by recurrent layers in both directions."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pluri.networks.cells import CELLS
from pluri.networks.classifiers.classifier import TokenClassifier
from pluri.networks.classifiers.networks import RecurrentDesign
from pluri.validation import Allowed, Number, Only, RandomState


class BiLSTMClassifier(TokenClassifier):
    """Classification of texts or token sequences by a recurrent network in both directions, with MC dropout.

    Parameters
    ----------
    hidden_size : int, default=64
        Units of a layer for each direction.
    n_layers : int, default=1
        Recurrent layers.
    cell : {"lstm", "gru", "rnn"}, default="lstm"
        Kind of unit; "rnn" is a plain tanh.
    pooling : {"mean", "max", "last"}, default="mean"
        How outputs along a sequence become one vector: their mean, their maximum, or the last of each direction.
    embeddings : array of shape (n_tokens, size), or pair (words, vectors), optional
        Vectors of tokens, such as GloVe's: by number, or after their words. Learned from the labelled data by default.
    freeze_embeddings : bool, default=True
        Whether given embeddings stay as they are; then all their words are known, and no others. Otherwise they are
        where learning begins.
    embedding_size : int, default=100
        Length of the vectors, if none are given.
    vectorizer : object with ``build_analyzer``, optional
        Splits texts into words, such as scikit-learn's ``CountVectorizer(stop_words="english")``. By default lower-case
        words and signs of punctuation.
    min_count : int, default=1
        Tokens that occur less often are unknown.
    max_length : int, optional
        Longer sequences are cut to their first so many tokens.
    dropout : float, default=0.5
        Share of the coordinates of embeddings, and of the last vector, that is set to zero in training and in draws.
    recurrent_dropout : float, default=0.2
        The same for what a layer remembers, with one mask for all steps of a sequence.
    learning_rate : float, default=0.001
        Of Adam.
    weight_decay : float, default=0.0001
        Share of each parameter, times the learning rate, that a step takes away.
    batch_size : int or "auto", default="auto"
        Sequences of a minibatch. "auto" is 32, or fewer where an epoch would have less than eight steps.
    max_epochs : int, default=50
        Passes over the data at most.
    validation_fraction : float, default=0.1
        Share of the sequences by whose log loss the epoch is chosen; 0 keeps the last epoch.
    n_iter_no_change : int, default=10
        Epochs in a row without a lower validation loss after which learning ends.
    checkpoint : path, optional
        File from which an unfinished fit goes on, written after each epoch.
    random_state : int, Generator, RandomState or None
        Source of randomness.
    verbose : int, default=0
        1 shows progress.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    vocabulary_ : array of shape (n_words,)
        Known tokens, sorted.
    params_ : dict of str to array
        Parameters of the network.
    embeddings_ : array of shape (n_words + 1, size) or None
        Frozen embeddings; the first is that of unknown tokens.
    loss_history_, validation_history_ : arrays of shape (n_epochs,)
        Mean training loss (with dropout) and validation log loss of each epoch.
    best_epoch_ : int
        The epoch that is kept, from 1.
    n_iter_ : int
        Epochs.
    n_unknown_ : int
        Tokens of the training data that are unknown.
    n_features_in_ : int
        Columns of X, if it was an array.

    See Also
    --------
    TextCNNClassifier : a convolutional network, quicker on long texts.

    Examples
    --------
    >>> from pluri.networks import BiLSTMClassifier
    >>> texts = ["a fine film", "fine indeed", "a dull film", "dull indeed"] * 10
    >>> model = BiLSTMClassifier(hidden_size=8, embedding_size=8, validation_fraction=0, max_epochs=15, random_state=0)
    >>> model = model.set_params(learning_rate=0.02).fit(texts, ["good", "good", "bad", "bad"] * 10)
    >>> model.predict(["fine", "a dull film"])
    array(['good', 'bad'], dtype='<U4')
    >>> model.predict_proba_samples(["fine", "a dull film"], 5).shape
    (5, 2, 2)
    """

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        **TokenClassifier._parameters,
        "cell": Only(*CELLS),
        "pooling": Only("mean", "max", "last"),
        "recurrent_dropout": Number(least=0, below=1),
    }

    def __init__(
        self,
        hidden_size: int = 64,
        *,
        n_layers: int = 1,
        cell: Literal["lstm", "gru", "rnn"] = "lstm",
        pooling: Literal["mean", "max", "last"] = "mean",
        embeddings: Any = None,
        freeze_embeddings: bool = True,
        embedding_size: int = 100,
        vectorizer: Any = None,
        min_count: int = 1,
        max_length: int | None = None,
        dropout: float = 0.5,
        recurrent_dropout: float = 0.2,
        learning_rate: float = 1e-3,
        weight_decay: float = 1e-4,
        batch_size: int | str = "auto",
        max_epochs: int = 50,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        checkpoint: str | os.PathLike[str] | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.hidden_size = hidden_size
        self.n_layers = n_layers
        self.cell = cell
        self.pooling = pooling
        self.embeddings = embeddings
        self.freeze_embeddings = freeze_embeddings
        self.embedding_size = embedding_size
        self.vectorizer = vectorizer
        self.min_count = min_count
        self.max_length = max_length
        self.dropout = dropout
        self.recurrent_dropout = recurrent_dropout
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.verbose = verbose

    def _design(self) -> RecurrentDesign:
        return RecurrentDesign(
            **self._sizes(),
            cell=self.cell,
            hidden_size=int(self.hidden_size),
            n_layers=int(self.n_layers),
            pooling=self.pooling,
            recurrent_dropout=float(self.recurrent_dropout),
        )
