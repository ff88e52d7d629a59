"""The table every comparison of two labellings starts from: how often each pair of labels meets.

Entry ``(z, y)`` of the table is the total weight of the tokens that were given the label ``z`` and truly have the
label ``y``. Integer labels below zero mean "unknown" and drop the token.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class Contingency:
    """Weights of the label pairs.

    Attributes
    ----------
    table : ndarray of shape (n_pred_labels, n_true_labels)
        Total weight of each pair of labels.
    pred_labels, true_labels : ndarray
        The sorted distinct labels of the rows and of the columns.
    """

    table: NDArray[np.float64]
    pred_labels: NDArray[np.generic]
    true_labels: NDArray[np.generic]

    @property
    def total(self) -> float:
        """Weight of all tokens that were compared."""
        return float(self.table.sum())


def as_labels(labels: ArrayLike, name: str) -> NDArray[np.generic]:
    """Check a vector of labels: integers, whole floats, booleans or strings, one axis, not empty."""
    array = np.asarray(labels)
    if array.ndim != 1:
        raise ValueError(f"{name} must have one axis, got shape {array.shape}")
    if array.size == 0:
        raise ValueError(f"{name} must hold at least one label, got none")
    if array.dtype.kind == "b":
        return array.astype(np.int64)
    if array.dtype.kind == "f":
        if not (np.isfinite(array).all() and (array == np.rint(array)).all()):
            raise ValueError(f"{name} must hold whole numbers or strings, got other floats")
        return array.astype(np.int64)
    if array.dtype.kind == "O":
        if not all(isinstance(label, str) for label in array):
            raise ValueError(f"{name} must hold whole numbers or strings, got an array of other objects")
        return array.astype(np.str_)
    if array.dtype.kind not in "iuU":
        raise ValueError(f"{name} must hold whole numbers or strings, got dtype {array.dtype}")
    return array


def as_weights(sample_weight: ArrayLike | None, n_samples: int) -> NDArray[np.float64]:
    """Check the weights of ``n_samples`` tokens; ``None`` is weight one each."""
    if sample_weight is None:
        return np.ones(n_samples)
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (n_samples,):
        raise ValueError(f"sample_weight must have shape ({n_samples},), got {weight.shape}")
    if not np.isfinite(weight).all() or (weight < 0).any():
        raise ValueError("sample_weight must be finite and not negative, got other values")
    return weight


def known(labels: NDArray[np.generic]) -> NDArray[np.bool_]:
    """Which labels are known: an integer below zero stands for "unknown"."""
    if labels.dtype.kind == "i":
        return labels.astype(np.int64) >= 0
    return np.ones(labels.shape, dtype=bool)


def contingency(y_true: ArrayLike, y_pred: ArrayLike, sample_weight: ArrayLike | None = None) -> Contingency:
    """Count the label pairs of two labellings of the same tokens.

    Examples
    --------
    >>> from pluri.metrics.contingency import contingency
    >>> contingency([0, 0, 1, -1], ["a", "b", "b", "b"]).table
    array([[1., 0.],
           [1., 1.]])
    """
    truth, pred = as_labels(y_true, "y_true"), as_labels(y_pred, "y_pred")
    if truth.shape != pred.shape:
        raise ValueError(f"y_true and y_pred must have equal lengths, got {truth.size} and {pred.size}")
    weight = as_weights(sample_weight, truth.size)
    keep = known(truth) & known(pred)
    truth, pred, weight = truth[keep], pred[keep], weight[keep]
    if not weight.sum() > 0:
        raise ValueError("y_true and y_pred must share at least one known label of positive weight, got none")
    true_labels, column = np.unique(truth, return_inverse=True)
    pred_labels, row = np.unique(pred, return_inverse=True)
    shape = (pred_labels.size, true_labels.size)
    table = np.bincount(row * shape[1] + column, weights=weight, minlength=shape[0] * shape[1]).reshape(shape)
    return Contingency(table, pred_labels, true_labels)


def assignment(gain: NDArray[np.float64]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows and columns of the one-to-one matching of largest total gain (Hungarian algorithm, rectangular)."""
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(gain, maximize=True)
    return rows, columns
