r"""Probabilities of a classifier that was trained with other class frequencies than it meets.

Resampling or reweighting changes the prior pi of the classes to pi', and with it every probability:

.. math:: P(c \mid x) \propto P'(c \mid x) \, \frac{\pi_c}{\pi'_c}.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def correct_prior_shift(probabilities: ArrayLike, trained_prior: ArrayLike, met_prior: ArrayLike) -> Array:
    """Carry probabilities of classes from the frequencies of training to those that are met.

    Parameters
    ----------
    probabilities : array-like of shape (n_samples, n_classes), or (n_samples,) for the second of two classes
        As the classifier gives them.
    trained_prior, met_prior : array-like of shape (n_classes,), or float for the second of two classes
        Frequencies of the classes in training (after resampling), and where the classifier is used.

    Returns
    -------
    array of the shape of `probabilities`

    Examples
    --------
    Trained on as many frauds as honest payments, used where one in a hundred is a fraud:

    >>> from pluri.decisions import correct_prior_shift
    >>> correct_prior_shift([0.5, 0.9], trained_prior=0.5, met_prior=0.01).round(4)
    array([0.01  , 0.0833])
    """
    given = np.asarray(probabilities, dtype=np.float64)
    if given.ndim not in (1, 2) or not given.size:
        raise ValueError(f"probabilities must have shape (n_samples, n_classes) or (n_samples,), got {given.shape}")
    shares = np.stack([1.0 - given, given], axis=1) if given.ndim == 1 else given
    sums = shares.sum(axis=1)
    if not np.isfinite(shares).all() or (shares < 0).any() or (np.abs(sums - 1.0) > 1e-6).any():
        raise ValueError("probabilities must be non-negative and sum to 1 in each row, got others")
    before = _checked_prior(trained_prior, shares.shape[1], "trained_prior", positive=True)
    after = _checked_prior(met_prior, shares.shape[1], "met_prior", positive=False)
    weighted = shares * (after / before)
    total = weighted.sum(axis=1, keepdims=True)
    if (total == 0).any():
        raise ValueError("met_prior must allow a class that has a probability in each row, got one that does not")
    corrected = weighted / total
    return np.asarray(corrected[:, 1] if given.ndim == 1 else corrected)


def _checked_prior(prior: ArrayLike, n_classes: int, name: str, *, positive: bool) -> Array:
    found = np.asarray(prior, dtype=np.float64)
    if found.ndim == 0 and n_classes == 2:
        found = np.array([1.0 - found, found])
    if found.shape != (n_classes,) or not np.isfinite(found).all() or (found < 0).any() or abs(found.sum() - 1) > 1e-6:
        raise ValueError(f"{name} must be {n_classes} probabilities that sum to 1, got {prior!r}")
    if positive and (found == 0).any():
        raise ValueError(f"{name} must be positive for every class, got {prior!r}")
    return found
