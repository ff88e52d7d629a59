"""What fitted classifiers of token sequences are asked: classes, probabilities, and draws of them by MC dropout."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.utils.validation import check_is_fitted

from pluri.networks.backend import jnp
from pluri.networks.batches import bucket_edges, minibatches, pad, rounded_length, rounded_rows
from pluri.networks.classifiers.networks import Design, Network, dropped_logits, logits
from pluri.networks.classifiers.predictive import PredictiveUncertainty
from pluri.networks.classifiers.tokens import Integers, check_not_empty, encode, read_tokens, warn_of_unknown
from pluri.networks.parameters import from_arrays, key_from
from pluri.validation import RandomState, as_generator, check_count

Array = NDArray[np.float64]

#: Sequences that are asked about at once.
CHUNK_SIZE = 256


class ClassifierQueries:
    """Answers of a fitted classifier."""

    vectorizer: Any
    max_length: int | None
    random_state: Any
    params_: Any
    classes_: Any
    vocabulary_: Any
    embeddings_: Any

    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes, without dropout.

        Parameters
        ----------
        X : list or array; see `fit`

        Returns
        -------
        array of shape (n_sequences, n_classes)
        """
        return np.asarray(softmax(self._logits(self._network(), self._rows(X)), axis=1))

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each sequence.

        Parameters
        ----------
        X : list or array; see `fit`

        Returns
        -------
        array of shape (n_sequences,)
        """
        numbers = self._logits(self._network(), self._rows(X)).argmax(axis=1)
        return np.asarray(self.classes_[numbers])

    def predict_proba_samples(self, X: Any, n_predictive: int = 20, *, random_state: RandomState = None) -> Array:
        """Draws of the probabilities of the classes, by dropout (MC dropout).

        Parameters
        ----------
        X : list or array; see `fit`
        n_predictive : int, default=20
            Number of draws.
        random_state : int, Generator, RandomState or None
            Source of randomness; that of the estimator by default.

        Returns
        -------
        array of shape (n_predictive, n_sequences, n_classes)
        """
        check_count(n_predictive, "n_predictive")
        rows, network = self._rows(X), self._network()
        rng = as_generator(self.random_state if random_state is None else random_state)
        found = np.empty((n_predictive, len(rows), len(self.classes_)))
        for chosen, tokens, mask in _padded(rows):
            # One program, called again: convolutions in a loop of JAX's own are many times slower.
            for draw in range(n_predictive):
                drawn = dropped_logits(self._design(), network, tokens, mask, self._frozen(), key_from(rng))
                found[draw, chosen] = np.asarray(drawn, dtype=np.float64)[: len(chosen)]
        return np.asarray(softmax(found, axis=-1))

    def uncertainty(self, X: Any, n_predictive: int = 20, *, random_state: RandomState = None) -> PredictiveUncertainty:
        """Mean, entropy and mutual information (BALD) of draws by dropout.

        Parameters
        ----------
        X : list or array; see `fit`
        n_predictive : int, default=20
            Number of draws.
        random_state : int, Generator, RandomState or None
            Source of randomness; that of the estimator by default.

        Returns
        -------
        PredictiveUncertainty
        """
        return PredictiveUncertainty.from_samples(
            self.predict_proba_samples(X, n_predictive, random_state=random_state)
        )

    def acquisition(
        self, X: Any, criterion: str = "bald", n_predictive: int = 20, *, random_state: RandomState = None
    ) -> Array:
        """How much is to be learned from the label of each sequence; see `PredictiveUncertainty.acquisition`.

        Parameters
        ----------
        X : list or array; see `fit`
        criterion : {"bald", "entropy", "variation_ratio"}, default="bald"
        n_predictive : int, default=20
            Number of draws.
        random_state : int, Generator, RandomState or None
            Source of randomness; that of the estimator by default.

        Returns
        -------
        array of shape (n_sequences,)
        """
        return self.uncertainty(X, n_predictive, random_state=random_state).acquisition(criterion)

    def _design(self) -> Design:
        """The settings of the network; `self` has its vocabulary, embeddings and classes."""
        raise NotImplementedError  # abstract

    def _cut(self, rows: list[Integers]) -> list[Integers]:
        return [row[: self.max_length] for row in rows]

    def _rows(self, X: Any) -> list[Integers]:
        """Sequences as rows of the table; says how many tokens are unknown."""
        check_is_fitted(self, "params_")
        tokens = read_tokens(self, X, self.vectorizer)
        check_not_empty(tokens.sequences)
        rows = self._cut(encode(tokens, self.vocabulary_))
        warn_of_unknown(rows)
        return rows

    def _logits(self, network: Network, rows: list[Integers]) -> Array:
        found = np.empty((len(rows), len(self.classes_)))
        for chosen, tokens, mask in _padded(rows):
            answer = logits(self._design(), network, tokens, mask, self._frozen())
            found[chosen] = np.asarray(answer, dtype=np.float64)[: len(chosen)]
        return found

    def _network(self) -> Network:
        check_is_fitted(self, "params_")
        return from_arrays(self.params_, self._design().make)

    def _frozen(self) -> Any:
        return None if self.embeddings_ is None else jnp.asarray(self.embeddings_)


def _padded(rows: list[Integers]) -> Iterator[tuple[Integers, Any, Any]]:
    """Chunks of sequences of similar lengths: their numbers, padded tokens and mask."""
    lengths = np.array([len(row) for row in rows])
    longest = rounded_length(int(lengths.max()))
    # The longest decides the shapes, so that calls for similar texts share programs.
    edges = bucket_edges(np.append(lengths, longest), CHUNK_SIZE)
    for chunk in minibatches(lengths, CHUNK_SIZE, edges):
        n_rows = rounded_rows(len(chunk.rows), CHUNK_SIZE)
        tokens, mask = pad([rows[row] for row in chunk.rows], chunk.length, n_rows)
        yield chunk.rows, tokens.astype(np.int32), mask
