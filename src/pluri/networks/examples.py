"""What decoders learn from and are asked about, as padded arrays: inputs of four kinds, tokens as numbers.

Tokens are numbered in sorted order; the end of a sequence is the number after the last one. A token that was not seen
in training has the number of unknown ones, an embedding of zeros.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.networks.batches import pad

Integers = NDArray[np.int64]


class UnknownTokenWarning(UserWarning):
    """Tokens that were not seen in training."""


@dataclass(frozen=True)
class Examples:
    """Inputs and targets, padded once.

    Parameters
    ----------
    inputs : dict of arrays
        "vectors" (n, n_inputs); or "frames" (n, longest, n_inputs); or "source" and "source_mask" (n, longest source).
    lengths : array of shape (n,)
        Steps of each output, the end included; of frames if there is no output.
    targets : array of shape (n, longest), optional
    source_lengths : array of shape (n,), optional
    """

    inputs: Mapping[str, NDArray[Any]]
    lengths: Integers
    targets: Integers | None = None
    source_lengths: Integers | None = None

    def __len__(self) -> int:
        return len(self.lengths)

    def part(self, rows: Integers) -> Examples:
        """Some of the examples."""
        inputs = {name: array[rows] for name, array in self.inputs.items()}
        targets = None if self.targets is None else self.targets[rows]
        sources = None if self.source_lengths is None else self.source_lengths[rows]
        return Examples(inputs, self.lengths[rows], targets, sources)

    def batch(self, rows: Integers, length: int, n_rows: int, source_length: int | None = None) -> dict[str, Any]:
        """Arrays of a minibatch with `n_rows` rows, the last of which are empty."""
        found = {name: _filled(array[rows], n_rows) for name, array in self.inputs.items()}
        if "frames" in found:
            found["frames"] = _cut(found["frames"], length)
        for name in ("source", "source_mask"):
            if name in found:
                found[name] = _cut(found[name], source_length or found[name].shape[1])
        if "source_mask" in found:
            found["source_mask"][len(rows) :, 0] = True  # attention needs something to look at
        if self.targets is not None:
            found["targets"] = _cut(_filled(self.targets[rows], n_rows), length)
            found["mask"] = np.arange(length) < _filled(self.lengths[rows], n_rows)[:, None]
        return found


def _filled(array: NDArray[Any], n_rows: int) -> NDArray[Any]:
    found = np.zeros((n_rows, *array.shape[1:]), dtype=array.dtype)
    found[: len(array)] = array
    return found


def _cut(array: NDArray[Any], length: int) -> NDArray[Any]:
    """The first steps, or zeros after the last."""
    if array.shape[1] >= length:
        return array[:, :length]
    return np.pad(array, [(0, 0), (0, length - array.shape[1])] + [(0, 0)] * (array.ndim - 2))


def source_kind(X: Any) -> str:
    """What an input is: "vector", "sequence" or "tokens"."""
    if hasattr(X, "shape") and not isinstance(X, list | tuple):
        if len(X.shape) not in (2, 3):
            raise ValueError(f"X must be a table of vectors or a list of sequences, got an array of shape {X.shape}")
        return "vector" if len(X.shape) == 2 else "sequence"
    if not isinstance(X, list | tuple) or not X:
        raise ValueError(f"X must be a table of vectors or a list of sequences, got {X!r:.80}")
    if any(isinstance(item, str | bytes) or not hasattr(item, "__len__") for item in X):
        raise ValueError("X must hold vectors or sequences, got a string or a number: split strings into tokens first")
    filled = [item for item in X if len(item)]
    if any(np.ndim(item) == 2 for item in filled):
        return "sequence"
    kinds = {np.asarray(item).dtype.kind for item in filled}
    return "vector" if "f" in kinds else "tokens"


def check_sequences(X: Sequence[Any], n_features: int | None) -> list[NDArray[Any]]:
    """Sequences of vectors, none of them empty, all finite and of one width."""
    arrays = [np.asarray(item, dtype=np.float64) for item in X]
    for number, array in enumerate(arrays):
        if array.ndim != 2 or not len(array):
            raise ValueError(f"X must hold sequences of at least one vector, got shape {array.shape} at {number}")
        if array.shape[1] != (n_features or arrays[0].shape[1]):
            wanted = n_features or arrays[0].shape[1]
            raise ValueError(f"X must hold sequences with {wanted} features, got {array.shape[1]} at {number}")
        if not np.isfinite(array).all():
            raise ValueError(f"X must be finite, got NaN or infinity in sequence {number}")
    return arrays


def check_tokens(sequences: Any, name: str, empty: bool) -> list[list[Any]]:
    """Lists of tokens; `empty` ones only where they mean something."""
    if isinstance(sequences, str | bytes) or not hasattr(sequences, "__len__") or not len(sequences):
        raise ValueError(f"{name} must be a list of sequences of tokens, got {sequences!r:.80}")
    found = []
    for number, item in enumerate(sequences):
        if isinstance(item, str | bytes) or np.ndim(item) == 0:
            raise ValueError(f"{name} must hold sequences of tokens, got {item!r:.80} at {number}: split strings first")
        tokens = item.tolist() if hasattr(item, "tolist") else list(item)
        if not tokens and not empty:
            raise ValueError(f"{name} must hold sequences of at least one token, got an empty one at {number}")
        if any(not isinstance(token, str | int | np.integer) for token in tokens):
            wrong = next(token for token in tokens if not isinstance(token, str | int | np.integer))
            raise ValueError(f"{name} must hold tokens that are strings or integers, got {wrong!r} at {number}")
        found.append(tokens)
    return found


def learn_vocabulary(sequences: Sequence[Sequence[Any]], name: str) -> NDArray[Any]:
    """The different tokens in sorted order."""
    tokens = {token for sequence in sequences for token in sequence}
    if not tokens:
        raise ValueError(f"{name} must hold at least one token, got only empty sequences")
    try:
        return np.array(sorted(tokens))
    except TypeError as error:
        raise ValueError(f"{name} must hold tokens of one kind, all strings or all integers, got both") from error


def encode(sequences: Sequence[Sequence[Any]], vocabulary: NDArray[Any], unknown: int, name: str) -> list[Integers]:
    """Numbers of tokens; those that are not in the vocabulary are `unknown`, with a warning that counts them."""
    numbers = {token: number for number, token in enumerate(vocabulary.tolist())}
    found = [np.array([numbers.get(token, unknown) for token in one], dtype=np.int64) for one in sequences]
    n_unknown = sum(int((one == unknown).sum()) for one in found)
    if n_unknown:
        total = sum(map(len, found))
        warnings.warn(
            f"{name} holds {n_unknown} of {total} tokens that were not seen in training; they are taken as unknown",
            UnknownTokenWarning,
            stacklevel=4,
        )
    return found


def with_end(targets: Sequence[Integers], end: int) -> tuple[Integers, Integers]:
    """Targets with their end, padded, and their lengths."""
    ended = [np.append(one, end) for one in targets]
    return pad(ended).values, np.array([len(one) for one in ended], dtype=np.int64)


def standardisation(rows: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and scale of columns; constant ones have scale 1."""
    mean = rows.mean(axis=0)
    scale = rows.std(axis=0)
    scale = np.where(scale > 1e-12 * np.maximum(1.0, np.abs(mean)), scale, 1.0)
    return mean, scale
