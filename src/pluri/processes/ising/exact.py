r"""Exact marginals of labels on a narrow grid, by transfer matrices.

A grid is cut into slices across its longest axis. All K^c configurations of a slice of c pixels are carried along at
a time: a forward and a backward pass over the slices, in log space, give every marginal and the log of the sum of
p~(x, y) over all labellings x. The weight between two slices is a product over pixels, so it is applied one pixel at a
time, K^(c + 1) operations each, instead of as a matrix of K^(2 c) numbers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pluri.processes.ising.grid import LabelField

Array = NDArray[np.float64]

#: Configurations of a slice: 16 pixels with two labels.
LARGEST_SLICE = 2**16
#: Numbers in the forward messages of a grid.
LARGEST_MESSAGES = 2**24


def exact_marginals(field: LabelField) -> tuple[Array, float]:
    """Marginals of every pixel, and the log of the sum over all labellings.

    Parameters
    ----------
    field : LabelField
        Each image with at most 16 pixels across its longest axis (for two labels).

    Returns
    -------
    proba : array of shape (n_images, depth, height, width, K)
    log_sum : float
        log p(y) + log Z(J), all images together.

    Examples
    --------
    The critical square lattice is out of reach of enumeration: 2**100 labellings.

    >>> import numpy as np
    >>> from pluri.processes.ising.exact import exact_marginals
    >>> from pluri.processes.ising.grid import LabelField
    >>> field = LabelField(np.zeros((1, 1, 10, 10, 2)), agreement=2 * 0.4407, constant=-0.4407 * 180)
    >>> proba, log_partition = exact_marginals(field)
    >>> proba[0, 0, 5, 5], round(log_partition, 3)
    (array([0.5, 0.5]), 89.694)
    """
    check_size(field)
    n_images, k = len(field.log_likelihood), field.n_labels
    longest = max(field.shape[1:])
    together = max(1, LARGEST_MESSAGES // int(longest * k ** (np.prod(field.shape[1:]) // longest)))
    parts = [
        grid_marginals(field.log_likelihood[first : first + together], field.agreement)
        for first in range(0, n_images, together)
    ]
    proba = np.concatenate([marginals for marginals, _ in parts])
    return proba, float(sum(log_sums.sum() for _, log_sums in parts)) + field.constant


def check_size(field: LabelField) -> None:
    """Refuse grids that are too wide."""
    *_, k = field.log_likelihood.shape
    n_slices = max(field.shape[1:])
    c = int(np.prod(field.shape[1:])) // n_slices
    # The logarithm, as K^c itself may have thousands of digits.
    if c * np.log(k) > np.log(LARGEST_SLICE) + 1e-9 or n_slices * k**c > LARGEST_MESSAGES:
        raise ValueError(
            f"inference='exact' takes grids of at most {int(np.log(LARGEST_SLICE) / np.log(k))} pixels across their "
            f"longest axis with {k} labels, got {c} ({n_slices} slices); use 'gibbs' or 'vb'"
        )


def grid_marginals(log_likelihood: Array, agreement: float) -> tuple[Array, Array]:
    """Marginals of narrow grids of one shape (n, depth, height, width, K), and the log sum of each of them."""
    longest = 1 + int(np.argmax(log_likelihood.shape[1:4]))
    slices = np.moveaxis(log_likelihood, longest, 0)
    n_slices, n, *across, k = slices.shape
    c = int(np.prod(across))
    rows = slices.reshape(n_slices, n, c, k)
    inside = _inside(tuple(across), k, agreement)
    local = [_spread(row, k) + inside for row in rows]
    potential = agreement * np.eye(k)
    forward = [local[0]]
    for here in local[1:]:
        forward.append(_carry(forward[-1], potential) + here)
    log_sums = _log_sums(forward[-1])
    each = (n,) + (1,) * c
    marginals = np.empty_like(rows)
    backward = np.zeros(each)
    for t in reversed(range(n_slices)):
        joint = np.exp(forward[t] + backward - log_sums.reshape(each))
        for pixel in range(c):
            others = tuple(1 + other for other in range(c) if other != pixel)
            marginals[t, :, pixel] = joint.sum(axis=others)
        backward = _carry(backward + local[t], potential)
    marginals /= marginals.sum(axis=-1, keepdims=True)
    return np.moveaxis(marginals.reshape(slices.shape), 0, longest), log_sums


def _inside(across: tuple[int, ...], k: int, agreement: float) -> Array:
    """Log weight of the edges inside a slice, for every configuration: an axis of K for each pixel."""
    c = int(np.prod(across))
    numbers = np.arange(c).reshape(across)
    pairs = [*zip(numbers[:-1].ravel(), numbers[1:].ravel()), *zip(numbers[:, :-1].ravel(), numbers[:, 1:].ravel())]
    total = np.zeros((k,) * c)
    for one, other in pairs:
        shape = np.ones(c, dtype=np.int64)
        shape[[one, other]] = k
        total = total + (agreement * np.eye(k)).reshape(shape)
    return total


def _spread(row: Array, k: int) -> Array:
    """Sum over the pixels of a slice of their own log-likelihoods (n, c, K), for every configuration."""
    n, c, _ = row.shape
    total = np.zeros((n,) + (k,) * c)
    for pixel in range(c):
        shape = np.ones(1 + c, dtype=np.int64)
        shape[[0, 1 + pixel]] = n, k
        total = total + row[:, pixel].reshape(shape)
    return total


def _carry(message: Array, potential: Array) -> Array:
    """Log sum over the configurations of the slice before, pixel by pixel."""
    for pixel in range(1, message.ndim):
        terms = np.moveaxis(message, pixel, -1)[..., None, :] + potential
        highest = terms.max(axis=-1, keepdims=True)
        highest = np.where(np.isfinite(highest), highest, 0.0)
        with np.errstate(divide="ignore"):
            summed = np.log(np.exp(terms - highest).sum(axis=-1)) + highest[..., 0]
        message = np.moveaxis(summed, -1, pixel)
    return message


def _log_sums(values: Array) -> Array:
    flat = values.reshape(len(values), -1)
    highest = flat.max(axis=1)
    return np.asarray(highest + np.log(np.exp(flat - highest[:, None]).sum(axis=1)))
