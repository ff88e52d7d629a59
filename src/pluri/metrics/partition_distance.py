"""Variation of information: a distance between two labellings.

``VI(y, z) = H(y | z) + H(z | y)``: what one still has to be told about each labelling when the other is known. It is a
metric on partitions (zero only for equal partitions, symmetric, triangle inequality) and does not depend on names.

References
----------
.. [1] Meila, M. (2007). Comparing clusterings: an information based distance. J. Multivariate Analysis 98, 873-895.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from pluri.metrics.contingency import contingency


def variation_of_information(
    y_true: ArrayLike, y_pred: ArrayLike, *, base: float = math.e, sample_weight: ArrayLike | None = None
) -> float:
    """Variation of information between two labellings.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,)
        Labels: whole numbers or strings. A token with an integer label below zero in either is left out.
    base : float, default=e
        Base of the logarithm: e gives nats, 2 gives bits.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the tokens.

    Returns
    -------
    float
        At least 0, at most ``2 log(number of labels)``.

    Examples
    --------
    >>> from pluri.metrics import variation_of_information
    >>> variation_of_information([0, 0, 1, 1], [1, 1, 0, 0])
    0.0
    >>> variation_of_information([0, 0, 1, 1], [0, 1, 0, 1], base=2)
    2.0
    """
    if not (base > 0 and base != 1 and math.isfinite(base)):
        raise ValueError(f"base must be a positive number other than 1, got {base!r}")
    pairs = contingency(y_true, y_pred, sample_weight)
    joint = pairs.table / pairs.total
    row, column = np.nonzero(joint)
    together = joint[row, column]
    # Both ratios are at most one, so no term has the wrong sign and equal partitions give exactly zero.
    of_pred = np.minimum(together / joint.sum(axis=1)[row], 1.0)
    of_true = np.minimum(together / joint.sum(axis=0)[column], 1.0)
    return float(-(together * (np.log(of_pred) + np.log(of_true))).sum() / math.log(base)) + 0.0
