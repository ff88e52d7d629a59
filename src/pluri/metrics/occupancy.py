"""How often each state is used, and how many states are really in use.

``effective_states`` counts the states whose frequency reaches a threshold, or takes the perplexity
``exp(-sum_i p_i ln p_i)`` of the frequencies, which needs no threshold: ``k`` equal states give exactly ``k``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.metrics.contingency import as_labels, as_weights, known
from pluri.validation import Only, check_positive, check_value


def state_histogram(
    labels: ArrayLike,
    n_states: int | None = None,
    *,
    sort: bool = False,
    normalize: bool = False,
    sample_weight: ArrayLike | None = None,
) -> NDArray[np.float64]:
    """Count how often each state occurs.

    Parameters
    ----------
    labels : array-like of shape (n_samples,)
        State numbers; below zero means unknown and leaves the token out.
    n_states : int, optional
        Number of states; the largest label plus one by default.
    sort : bool, default=False
        Largest count first instead of in the order of the states.
    normalize : bool, default=False
        Shares that sum to one instead of counts.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the tokens.

    Returns
    -------
    ndarray of shape (n_states,)

    Examples
    --------
    >>> from pluri.metrics import state_histogram
    >>> state_histogram([0, 2, 2, -1], n_states=4)
    array([1., 0., 2., 0.])
    >>> state_histogram([0, 2, 2], n_states=4, sort=True)
    array([2., 1., 0., 0.])
    """
    states = as_labels(labels, "labels")
    if states.dtype.kind not in "iu":
        raise ValueError("labels must hold state numbers (0, 1, ...), got strings")
    weight = as_weights(sample_weight, states.size)
    keep = known(states)
    numbers, weight = states[keep].astype(np.int64), weight[keep]
    if not weight.sum() > 0:
        raise ValueError("labels must hold at least one known label of positive weight, got none")
    largest = int(numbers.max())
    if n_states is not None and n_states <= largest:
        raise ValueError(f"n_states must exceed the largest label ({largest}), got {n_states}")
    counts = np.bincount(numbers, weights=weight, minlength=n_states or 0).astype(np.float64)
    if normalize:
        counts = counts / counts.sum()
    return np.sort(counts)[::-1] if sort else counts


def effective_states(
    labels: ArrayLike | None = None,
    *,
    occupancy: ArrayLike | None = None,
    threshold: float = 0.01,
    method: str = "count",
    sample_weight: ArrayLike | None = None,
) -> float:
    """Count the states that are in use.

    Parameters
    ----------
    labels : array-like of shape (n_samples,), optional
        State numbers, such as a Viterbi path; below zero means unknown and leaves the token out.
    occupancy : array-like of shape (n_states,), optional
        Frequencies or expected counts of the states, instead of ``labels``.
    threshold : float, default=0.01
        For ``method="count"``: the frequency a state must reach. Below 1 it is a share of all tokens, from 1 on a
        number of tokens (Qiao et al. take 50 of 1800).
    method : {"count", "perplexity"}, default="count"
        Count the states at or above the threshold, or take the exponential of the entropy of the frequencies.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the tokens; only with ``labels``.

    Returns
    -------
    float
        A whole number for ``method="count"``.

    Examples
    --------
    >>> from pluri.metrics import effective_states
    >>> effective_states([0, 0, 0, 1, 1, 1, 2], threshold=2)
    2.0
    >>> effective_states(occupancy=[10, 10, 0], method="perplexity")
    2.0
    """
    if (labels is None) == (occupancy is None):
        raise ValueError("exactly one of labels and occupancy must be given")
    check_value(method, "method", Only("count", "perplexity"))
    check_positive(threshold, "threshold")
    if labels is not None:
        frequency = state_histogram(labels, sample_weight=sample_weight)
    else:
        if sample_weight is not None:
            raise ValueError("sample_weight must be None when occupancy is given")
        frequency = _as_occupancy(occupancy)
    share = frequency / frequency.sum()
    if method == "perplexity":
        used = share[share > 0]
        return float(np.exp(-(used * np.log(used)).sum()))
    return float(np.count_nonzero((share if threshold < 1 else frequency) >= threshold))


def _as_occupancy(occupancy: ArrayLike | None) -> NDArray[np.float64]:
    frequency = np.asarray(occupancy, dtype=np.float64)
    if frequency.ndim != 1 or frequency.size == 0:
        raise ValueError(f"occupancy must have one axis and at least one entry, got shape {frequency.shape}")
    if not np.isfinite(frequency).all() or (frequency < 0).any() or not frequency.sum() > 0:
        raise ValueError("occupancy must be finite, not negative and not all zero, got other values")
    return frequency
