"""Which learned state plays which true state, and how to reorder parameters accordingly.

States of a latent-variable model are numbered at random. :func:`align_states` finds the numbering that agrees best
with known labels, :func:`align_rows` the one that brings parameter rows (emission means, say) nearest to known ones.
A transition matrix must be reordered along rows *and* columns: :func:`permute_states`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.metrics.contingency import as_labels, as_weights, assignment, known


@dataclass(frozen=True)
class StateAlignment:
    """A renumbering of the learned states.

    Attributes
    ----------
    mapping : ndarray of shape (n_pred,)
        ``mapping[z]`` is the new number of learned state ``z``: the true state it plays, or a number from ``n_true``
        on when it has no partner.
    order : ndarray of shape (n_pred,)
        The learned states in the order of their new numbers, so that ``means[order]`` lines up with the true means.
    matched : ndarray of shape (n_pred,)
        Whether the state has a partner.
    """

    mapping: NDArray[np.int64]
    order: NDArray[np.int64]
    matched: NDArray[np.bool_]

    def relabel(self, labels: ArrayLike) -> NDArray[np.int64]:
        """Rename predicted labels; negative (unknown) labels stay as they are."""
        old = _as_states(labels, "labels")
        if old.max() >= self.mapping.size:
            raise ValueError(f"labels must be below the number of states ({self.mapping.size}), got {old.max()}")
        return np.where(old >= 0, self.mapping[np.maximum(old, 0)], old)


def _as_states(labels: ArrayLike, name: str) -> NDArray[np.int64]:
    states = as_labels(labels, name)
    if states.dtype.kind not in "iu":
        raise ValueError(f"{name} must hold state numbers (0, 1, ...), got strings")
    return states.astype(np.int64)


def _count(states: NDArray[np.int64], given: int | None, name: str) -> int:
    found = max(int(states.max()) + 1, 0)
    if given is not None and given < found:
        raise ValueError(f"{name} must be at least {found}, the largest state plus one, got {given}")
    return found if given is None else given


def _alignment(gain: NDArray[np.float64]) -> StateAlignment:
    """Best matching of the rows (learned) to the columns (true); learned states left over are numbered last."""
    n_pred, n_true = gain.shape
    rows, columns = assignment(gain)
    mapping = np.full(n_pred, -1, dtype=np.int64)
    mapping[rows] = columns
    matched = mapping >= 0
    mapping[~matched] = n_true + np.arange(n_pred - rows.size)
    return StateAlignment(mapping, np.argsort(mapping), matched)


def align_states(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    n_true: int | None = None,
    n_pred: int | None = None,
    sample_weight: ArrayLike | None = None,
) -> StateAlignment:
    """Match learned states to true states so that the most tokens agree (Hungarian algorithm).

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,)
        State numbers; below zero means unknown and leaves the token out.
    n_true, n_pred : int, optional
        Numbers of states; the largest label plus one by default. Give ``n_pred`` when a state may be unused.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the tokens.

    Returns
    -------
    StateAlignment

    Examples
    --------
    >>> from pluri.metrics import align_states
    >>> alignment = align_states([0, 0, 1, 2], [2, 2, 0, 1])
    >>> alignment.mapping
    array([1, 2, 0])
    >>> alignment.relabel([2, 2, 0, 1])
    array([0, 0, 1, 2])
    """
    truth, pred = _as_states(y_true, "y_true"), _as_states(y_pred, "y_pred")
    if truth.shape != pred.shape:
        raise ValueError(f"y_true and y_pred must have equal lengths, got {truth.size} and {pred.size}")
    weight = as_weights(sample_weight, truth.size)
    columns, rows = _count(truth, n_true, "n_true"), _count(pred, n_pred, "n_pred")
    keep = known(truth) & known(pred)
    if not weight[keep].sum() > 0:
        raise ValueError("y_true and y_pred must share at least one known label of positive weight, got none")
    pairs = np.bincount(pred[keep] * columns + truth[keep], weights=weight[keep], minlength=rows * columns)
    return _alignment(pairs.astype(np.float64).reshape(rows, columns))


def align_rows(reference: ArrayLike, estimate: ArrayLike) -> StateAlignment:
    """Match parameter rows to reference rows at the smallest total squared distance.

    Use it on parameters that do not refer to other states (emission means, emission probabilities). For transition
    rows the columns would have to move too: align the means or the labels, then use :func:`permute_states`.

    Parameters
    ----------
    reference : array-like of shape (n_true, n_features)
        Known rows.
    estimate : array-like of shape (n_pred, n_features)
        Learned rows.

    Returns
    -------
    StateAlignment

    Examples
    --------
    >>> from pluri.metrics import align_rows
    >>> align_rows([[0.0], [5.0]], [[4.9], [0.2]]).order
    array([1, 0])
    """
    known_rows, learned = np.asarray(reference, dtype=np.float64), np.asarray(estimate, dtype=np.float64)
    if known_rows.ndim != 2 or learned.ndim != 2 or known_rows.shape[1] != learned.shape[1]:
        raise ValueError(
            "reference and estimate must have two axes and equally many columns, "
            f"got shapes {known_rows.shape} and {learned.shape}"
        )
    if not (np.isfinite(known_rows).all() and np.isfinite(learned).all()):
        raise ValueError("reference and estimate must be finite, got NaN or infinity")
    distance = ((learned[:, None, :] - known_rows[None, :, :]) ** 2).sum(axis=2)
    return _alignment(-distance)


def permute_states(
    parameter: ArrayLike, order: ArrayLike | StateAlignment, *, axes: Sequence[int] = (0, 1)
) -> NDArray[np.float64]:
    """Reorder a parameter whose given axes are indexed by states.

    Parameters
    ----------
    parameter : array-like
        A transition matrix (``axes=(0, 1)``), or means, covariances, emission or start probabilities (``axes=(0,)``).
    order : array-like of shape (n_states,) or StateAlignment
        The old state numbers in their new order.
    axes : sequence of int, default=(0, 1)
        The axes that run over states.

    Returns
    -------
    ndarray
        A reordered copy.

    Examples
    --------
    >>> from pluri.metrics import permute_states
    >>> permute_states([[0.9, 0.1], [0.4, 0.6]], [1, 0])
    array([[0.6, 0.4],
           [0.1, 0.9]])
    """
    values = np.array(parameter)
    permutation = order.order if isinstance(order, StateAlignment) else np.asarray(order)
    if permutation.ndim != 1 or not np.array_equal(np.sort(permutation), np.arange(permutation.size)):
        raise ValueError(f"order must be a permutation of 0, 1, ..., n_states - 1, got {order!r}")
    for axis in axes:
        if not -values.ndim <= axis < values.ndim or values.shape[axis] != permutation.size:
            raise ValueError(
                f"parameter must have {permutation.size} entries along axis {axis}, got shape {values.shape}"
            )
        values = np.take(values, permutation, axis=axis)
    return values
