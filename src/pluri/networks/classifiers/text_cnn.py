"""Classes of token sequences by convolutions and a maximum over time."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, ClassVar

from pluri.networks.classifiers.classifier import TokenClassifier
from pluri.networks.classifiers.networks import ConvolutionalDesign
from pluri.validation import Allowed, RandomState, Whole


class TextCNNClassifier(TokenClassifier):
    """Classification of texts or token sequences by a convolutional network, with MC dropout.

    Parameters
    ----------
    n_filters : int, default=128
        Filters of each convolution.
    kernel_size : int, default=5
        Tokens that a filter sees at once.
    n_layers : int, default=2
        Convolutions, one after the other, before the maximum over time.
    hidden_size : int, default=64
        Units of the layer after it.
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
        Share of the coordinates of embeddings, of the filters between convolutions, and of the last vector, that is set
        to zero in training and in draws.
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
    BiLSTMClassifier : a recurrent network, which sees the order of words far apart.

    Examples
    --------
    >>> from pluri.networks import TextCNNClassifier
    >>> texts = ["a fine film", "fine indeed", "a dull film", "dull indeed"] * 10
    >>> model = TextCNNClassifier(n_filters=8, embedding_size=8, validation_fraction=0, max_epochs=15, random_state=0)
    >>> model = model.set_params(learning_rate=0.02).fit(texts, ["good", "good", "bad", "bad"] * 10)
    >>> model.predict(["fine", "a dull film"])
    array(['good', 'bad'], dtype='<U4')
    >>> model.predict_proba_samples(["fine", "a dull film"], 5).shape
    (5, 2, 2)
    """

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        **TokenClassifier._parameters,
        "n_filters": Whole(1),
        "kernel_size": Whole(1),
    }

    def __init__(
        self,
        n_filters: int = 128,
        *,
        kernel_size: int = 5,
        n_layers: int = 2,
        hidden_size: int = 64,
        embeddings: Any = None,
        freeze_embeddings: bool = True,
        embedding_size: int = 100,
        vectorizer: Any = None,
        min_count: int = 1,
        max_length: int | None = None,
        dropout: float = 0.5,
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
        self.n_filters = n_filters
        self.kernel_size = kernel_size
        self.n_layers = n_layers
        self.hidden_size = hidden_size
        self.embeddings = embeddings
        self.freeze_embeddings = freeze_embeddings
        self.embedding_size = embedding_size
        self.vectorizer = vectorizer
        self.min_count = min_count
        self.max_length = max_length
        self.dropout = dropout
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.verbose = verbose

    def _design(self) -> ConvolutionalDesign:
        return ConvolutionalDesign(
            **self._sizes(),
            n_filters=int(self.n_filters),
            kernel_size=int(self.kernel_size),
            n_layers=int(self.n_layers),
            hidden_size=int(self.hidden_size),
        )
