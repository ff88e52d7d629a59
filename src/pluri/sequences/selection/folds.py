"""Cross-validation over whole sequences: a fold never holds a part of one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import BaseCrossValidator

from pluri.validation import as_generator, check_count
from pluri.validation.sequences import check_sequence_lengths, is_sequence_list

Integers = NDArray[np.int64]


def sequence_ids(lengths: ArrayLike) -> Integers:
    """The number of the sequence that each sample belongs to: scikit-learn's `groups`.

    Parameters
    ----------
    lengths : array of shape (n_sequences,)

    Returns
    -------
    ids : array of shape (n_samples,)

    Examples
    --------
    >>> from pluri.sequences import sequence_ids
    >>> sequence_ids([3, 1, 2])
    array([0, 0, 0, 1, 2, 2])
    """
    counts = np.asarray(lengths)
    counts = check_sequence_lengths(counts, int(counts.sum()))
    return np.repeat(np.arange(len(counts), dtype=np.int64), counts)


def block_lengths(lengths: Integers, block_length: int) -> Integers:
    """Lengths of the blocks of at most `block_length` samples that sequences are cut into."""
    check_count(block_length, "block_length")
    ends = [[*range(block_length, length, block_length), length] for length in lengths.tolist()]
    return np.concatenate([np.diff(end, prepend=0) for end in ends]).astype(np.int64)


class SequenceKFold(BaseCrossValidator):
    """K folds of whole sequences.

    A list of sequences is split by its items, as any list. An array is split by its rows, those of a sequence
    together: pass `lengths`, or the sequence of each row as `groups` (see `sequence_ids`).

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds, at least 2.
    shuffle : bool, default=False
        Whether to deal the sequences out at random; otherwise a fold is a run of consecutive ones.
    random_state : int, numpy Generator, RandomState or None, default=None
        Seed of the shuffle.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.sequences import SequenceKFold
    >>> for train, test in SequenceKFold(n_splits=2).split(np.zeros((6, 1)), lengths=[2, 1, 3]):
    ...     print(train, test)
    [3 4 5] [0 1 2]
    [0 1 2] [3 4 5]
    """

    # Searches with metadata routing hand the groups on without being asked to, as for scikit-learn's GroupKFold.
    __metadata_request__split: ClassVar[dict[str, bool]] = {"groups": True}

    def __init__(self, n_splits: int = 5, *, shuffle: bool = False, random_state: Any = None) -> None:
        self.n_splits = n_splits
        self.shuffle = shuffle
        self.random_state = random_state

    def split(
        self, X: Any, y: Any = None, groups: ArrayLike | None = None, lengths: ArrayLike | None = None
    ) -> Iterator[tuple[Integers, Integers]]:
        """Give the training and test indices of each fold.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), or list of sequences
        y : ignored
        groups : array of shape (n_samples,), optional
            The sequence of each row.
        lengths : array of shape (n_sequences,), optional
            Lengths of the sequences in X.

        Yields
        ------
        train, test : arrays of int
            Rows of an array, items of a list.
        """
        check_count(self.n_splits, "n_splits", 2)
        sequence = _sequence_of_each_index(X, groups, lengths)
        n_sequences = int(sequence.max()) + 1 if len(sequence) else 0
        if n_sequences < self.n_splits:
            raise ValueError(
                f"n_splits must be at most the number of sequences ({n_sequences}), got {self.n_splits}; one long "
                "sequence can be cut into blocks first"
            )
        order = np.arange(n_sequences)
        if self.shuffle:
            order = as_generator(self.random_state).permutation(n_sequences)
        fold_of = np.empty(n_sequences, dtype=np.int64)
        for fold, members in enumerate(np.array_split(order, self.n_splits)):
            fold_of[members] = fold
        for fold in range(self.n_splits):
            held_out = fold_of[sequence] == fold
            yield np.flatnonzero(~held_out), np.flatnonzero(held_out)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of folds.

        Parameters
        ----------
        X, y, groups : ignored

        Returns
        -------
        n_splits : int
        """
        return self.n_splits


def _sequence_of_each_index(X: Any, groups: ArrayLike | None, lengths: ArrayLike | None) -> Integers:
    if groups is not None and lengths is not None:
        raise ValueError("groups and lengths must not both be given: they say the same")
    n_indices = X.shape[0] if hasattr(X, "shape") else len(X)
    if lengths is not None:
        ids = np.repeat(np.arange(np.size(lengths)), check_sequence_lengths(lengths, n_indices))
    elif groups is not None:
        ids = np.asarray(groups)
        if ids.shape != (n_indices,):
            raise ValueError(f"groups must have one entry for each of {n_indices} samples, got shape {ids.shape}")
    elif is_sequence_list(X):
        return np.arange(n_indices)
    else:
        raise ValueError("lengths or groups must be given to split an array into sequences, got neither")
    return np.unique(ids, return_inverse=True)[1].reshape(-1).astype(np.int64)
