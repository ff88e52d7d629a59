"""What the classifiers of token sequences share: reading X, learning, and files."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax
from sklearn.base import ClassifierMixin
from sklearn.model_selection import GroupShuffleSplit
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, column_or_1d

from pluri.inference.checkpoint import Checkpoint
from pluri.networks.batches import bucket_edges, minibatches, pad, rows_of_batches
from pluri.networks.classifiers.networks import (
    Batch,
    CrossEntropy,
    Network,
    first_network,
)
from pluri.networks.classifiers.queries import ClassifierQueries
from pluri.networks.classifiers.tokens import (
    Integers,
    check_not_empty,
    count_unknown,
    encode,
    given_embeddings,
    learn_vocabulary,
    read_tokens,
    warn_of_few_vectors,
)
from pluri.networks.parameters import to_arrays
from pluri.networks.training import Optimizer, train
from pluri.validation import (
    Allowed,
    Flag,
    Made,
    Number,
    Only,
    RandomState,
    Stored,
    Whole,
    as_generator,
    check_layout,
    check_parameters,
    check_row_weight,
    restored_on_failure,
)
from pluri.validation.estimator import Estimator

Array = NDArray[np.float64]

#: Sequences of similar length that are worth a program of their own, which takes a second or two to compile.
LARGE_BUCKET = 500
#: A word seen c times is read as unknown in training with probability a / (a + c): what unknown words mean is learned.
UNKNOWN_RATE = 0.25


class TokenClassifier(ClassifierQueries, ClassifierMixin, Estimator):
    """Base of the classifiers of token sequences; a subclass gives the design of its network."""

    _input_tags: ClassVar[Mapping[str, bool]] = {"two_d_array": False, "string": True, "categorical": True}
    _parameters: ClassVar[Mapping[str, Allowed]] = {
        "embedding_size": Whole(1),
        "freeze_embeddings": Flag(),
        "min_count": Whole(1),
        "max_length": Whole(1) | Only(None),
        "n_layers": Whole(1),
        "hidden_size": Whole(1),
        "dropout": Number(least=0, below=1),
        "learning_rate": Number(above=0),
        "weight_decay": Number(least=0),
        "batch_size": Whole(1) | Only("auto"),
        "max_epochs": Whole(1),
        "validation_fraction": Number(least=0, below=1),
        "n_iter_no_change": Whole(1),
        "checkpoint": Made((str, os.PathLike), "a path") | Only(None),
    }
    _fitted_layout: ClassVar[Mapping[str, Stored]] = {
        "loss_history_": Stored(None), "validation_history_": Stored(None), "embeddings_": Stored(None, None),
    }  # fmt: skip

    embeddings: Any
    freeze_embeddings: bool
    embedding_size: int
    vectorizer: Any
    min_count: int
    max_length: int | None
    dropout: float
    learning_rate: float
    weight_decay: float
    batch_size: int | str
    max_epochs: int
    validation_fraction: float
    n_iter_no_change: int
    checkpoint: str | os.PathLike[str] | None
    random_state: RandomState
    verbose: int
    classes_: NDArray[Any]
    vocabulary_: NDArray[Any]
    embeddings_: NDArray[np.float32] | None
    params_: dict[str, NDArray[Any]]

    def fit(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None, *, groups: ArrayLike | None = None
    ) -> Self:
        """Learn from labelled sequences.

        Parameters
        ----------
        X : list of str, list of lists of tokens, or array of shape (n_sequences, length)
            Texts; sequences of words; or sequences of token numbers from 0, where -1 in an array is padding.
        y : array-like of shape (n_sequences,)
            A label for each.
        sample_weight : array-like of shape (n_sequences,), optional
            Weights of the sequences; those of weight 0 are as if they were not there.
        groups : array-like of shape (n_sequences,), optional
            What belongs together (phrases of one sentence): sequences that validate are of other groups than those that
            are learned from.

        Returns
        -------
        self : object
        """
        check_parameters(self)
        with restored_on_failure(self):
            tokens = read_tokens(self, X, self.vectorizer, reset=True)
            if y is None:
                raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
            check_consistent_length(X, y)
            check_not_empty(tokens.sequences)
            labels = column_or_1d(y, warn=True)
            check_classification_targets(labels)
            weight = check_row_weight(sample_weight, len(labels))
            kept = np.arange(len(labels)) if weight is None else np.flatnonzero(weight)
            classes, codes = np.unique(labels[kept], return_inverse=True)
            if len(classes) < 2:
                raise ValueError(f"y must hold at least two classes, got one class ({classes.tolist()[0]!r})")
            tokens = tokens._replace(sequences=[tokens.sequences[row] for row in kept])
            together = None if groups is None else _one_group_each(groups, len(labels))[kept]
            relative = np.ones(len(kept)) if weight is None else weight[kept] / weight[kept].mean()
            self.classes_ = classes
            counts = self._learn_table(tokens)
            rows = self._cut(encode(tokens, self.vocabulary_))
            self.n_unknown_ = count_unknown(rows)[0]
            if self.embeddings_ is not None:
                warn_of_few_vectors(rows)
            self._learn(rows, codes, relative, together, counts)
        return self

    def _sizes(self) -> dict[str, Any]:
        """Settings that all designs have."""
        frozen = self.embeddings_
        return {
            "n_tokens": len(self.vocabulary_) + 1 if frozen is None else 0,
            "input_size": self._embedding_size() if frozen is None else frozen.shape[1],
            "n_classes": len(self.classes_),
            "dropout": float(self.dropout),
        }

    def _embedding_size(self) -> int:
        return int(self.embedding_size if self.embeddings is None else given_embeddings(self.embeddings)[1].shape[1])

    def _learn_table(self, tokens: Any) -> Integers:
        """Set `vocabulary_` and `embeddings_`, and return how often each token of the vocabulary occurs."""
        found, counts = learn_vocabulary(tokens, self.min_count)
        self.embeddings_ = None
        if self.embeddings is None:
            self.vocabulary_ = found
            return counts
        words, vectors = given_embeddings(self.embeddings)
        if (words.dtype.kind in "iu") != (found.dtype.kind in "iu"):
            raise ValueError(f"embeddings must be of {tokens.kind}, as X is, got {words[0]!r}")
        if not self.freeze_embeddings:
            self.vocabulary_ = np.union1d(words, found)
            places = np.searchsorted(self.vocabulary_, found)
            return np.bincount(places, counts, len(self.vocabulary_)).astype(np.int64)
        # Words without a vector are one with unknown ones: nothing is known of either.
        self.vocabulary_ = words
        self.embeddings_ = np.vstack([np.zeros((1, vectors.shape[1]), np.float32), vectors])
        return np.zeros(len(words), dtype=np.int64)

    def _start(self, rng: np.random.Generator) -> Network:
        """A network before the first step, with the embeddings that were given."""
        network = first_network(self._design(), rng)
        if self.embeddings is None or self.embeddings_ is not None:
            return network
        words, vectors = given_embeddings(self.embeddings)
        table = network.table.at[1 + np.searchsorted(self.vocabulary_, words)].set(vectors)
        return Network(table, network.layers)

    def _learn(self, rows: list[Integers], codes: Any, weight: Array, groups: Any, counts: Integers) -> None:
        rng = as_generator(self.random_state)
        learned, held = self._split(codes, groups, rng)
        network = self._start(rng)
        lengths = np.array([len(row) for row in rows])
        edges = bucket_edges(lengths, LARGE_BUCKET)
        table = self._frozen()
        unknown = np.zeros(len(counts) + 1) if table is not None else _unknown_rate(counts)

        batch_size = rows_of_batches(self.batch_size, len(learned))

        def epoch(number: int, first: int, generator: np.random.Generator) -> Iterator[Batch]:
            for batch in minibatches(lengths[learned], batch_size, edges, generator):
                chosen = learned[batch.rows]
                tokens, mask = pad([rows[row] for row in chosen], batch.length, batch_size)
                tokens = np.where(generator.random(tokens.shape) < unknown[tokens], 0, tokens)
                codes_, weight_ = np.zeros(batch_size, np.int32), np.zeros(batch_size, np.float32)
                codes_[: len(chosen)], weight_[: len(chosen)] = codes[chosen], weight[chosen]
                yield Batch(tokens.astype(np.int32), mask, codes_, weight_, np.float32(len(chosen)), table)

        def log_loss(params: Any) -> float:
            log_prob = log_softmax(self._logits(params, [rows[row] for row in held]), axis=1)
            return float(-np.average(log_prob[np.arange(len(held)), codes[held]], weights=weight[held]))

        end = train(
            network,
            CrossEntropy(self._design()),
            epoch,
            rng=rng,
            validate=log_loss if len(held) else None,
            optimizer=Optimizer(weight_decay=float(self.weight_decay)),
            learning_rate=float(self.learning_rate),
            max_epochs=int(self.max_epochs),
            n_iter_no_change=int(self.n_iter_no_change),
            checkpoint=self._checkpoint(rows, codes, weight),
            verbose=self.verbose,
        )
        self.params_ = to_arrays(end.params)
        self.loss_history_, self.validation_history_ = np.array(end.losses), np.array(end.errors)
        self.best_epoch_, self.n_iter_ = end.best_epoch, len(end.losses)

    def _split(self, codes: NDArray[Any], groups: Any, rng: np.random.Generator) -> tuple[Integers, Integers]:
        """Numbers of the sequences to learn from, and of those that validate: a share of each class, or groups."""
        held = np.zeros(len(codes), dtype=bool)
        if groups is not None and self.validation_fraction > 0 and len(np.unique(groups)) > 1:
            split = GroupShuffleSplit(1, test_size=self.validation_fraction, random_state=int(rng.integers(2**31)))
            held[next(split.split(codes, groups=groups))[1]] = True
        elif groups is None:
            for code in range(codes.max() + 1):
                members = rng.permutation(np.flatnonzero(codes == code))
                held[members[: int(self.validation_fraction * len(members))]] = True
        return np.flatnonzero(~held), np.flatnonzero(held)

    def _checkpoint(self, rows: list[Integers], codes: Any, weight: Array) -> Checkpoint | None:
        if self.checkpoint is None:
            return None
        digest = hashlib.sha256(repr((self._design(), self.batch_size, self.learning_rate, self.weight_decay)).encode())
        for part in (np.concatenate(rows), np.array([len(row) for row in rows]), codes, weight):
            digest.update(np.ascontiguousarray(part).tobytes())
        return Checkpoint(self.checkpoint, every=1, fingerprint=digest.hexdigest())

    def _check_fitted_state(self) -> None:
        check_layout(self, self._fitted_layout)
        names = self.vocabulary_
        if names.ndim != 1 or names.dtype.kind not in "Uiu" or (names[1:] <= names[:-1]).any():
            raise ValueError("vocabulary_ must be different words or numbers, sorted")
        if self.embeddings_ is not None and len(self.embeddings_) != len(names) + 1:
            raise ValueError(f"embeddings_ must have {len(names) + 1} rows, got {len(self.embeddings_)}")
        self._network()


def _unknown_rate(counts: Integers) -> Array:
    """How often each row of the table is read as unknown in training; the first is that already."""
    return np.concatenate([[0.0], UNKNOWN_RATE / (UNKNOWN_RATE + np.maximum(counts, 1))])


def _one_group_each(groups: ArrayLike, n_rows: int) -> NDArray[Any]:
    found = np.asarray(groups)
    if found.shape != (n_rows,):
        raise ValueError(f"groups must be one for each of {n_rows} sequences, got shape {found.shape}")
    return found
