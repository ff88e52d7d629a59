"""Classes of rows by their codes: which atoms rows of a class use, and how large their weights are.

    z_ik ~ Bernoulli(pi_lk),   s_ik ~ N(0, v_lk)   for a row i of class l

A fit that clusters rows by the atoms that they use tells nothing of sizes: rows of little contrast use few atoms with
small weights, and what atom is likely depends on it. These classes describe the codes of a fit afterwards, by
classification EM from k-means of the logarithms of what atoms add. Classes with few rows are held near all rows: their
probabilities near those of all, and their variances near those of all times one number of the class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.components.k_means import k_means

Array = NDArray[np.float64]
#: Iterations, and how many rows what is true of all rows counts for in a class: for probabilities, and for variances.
ITERATIONS, ROWS_OF_USAGE, ROWS_OF_VARIANCE = 40, 5.0, 10.0
#: Least probability, and least variance as a share of the mean one.
LEAST_USAGE, LEAST_VARIANCE = 1e-6, 1e-6
#: What an atom adds, as a share of the root mean square of all that are in use, below which sizes look alike.
SMALL = 0.05


#: Attributes of a fitted dictionary that hold them.
STORED = ("code_shares_", "code_usage_", "code_variances_")


@dataclass(frozen=True, eq=False)
class CodeClasses:
    """What is known of codes.

    Attributes
    ----------
    shares : array of shape (n_classes,)
        Of the rows, largest first.
    usage, variances : array of shape (n_classes, n_components)
        Probability that a row uses an atom, and variance of its weight then.
    noise_variance : float
        In the same units.
    """

    shares: Array
    usage: Array
    variances: Array
    noise_variance: float

    def pooled(self) -> CodeClasses:
        """All rows in one class."""
        usage = self.shares @ self.usage
        power = self.shares @ (self.usage * self.variances)
        return CodeClasses(np.ones(1), usage[None], (power / usage)[None], self.noise_variance)

    def covariances(self, atoms: Array) -> Array:
        """Of rows of each class without noise: (n_classes, n_features, n_features)."""
        return np.einsum("lk,kp,kq->lpq", self.usage * self.variances, atoms, atoms, optimize=True)


def find_classes(
    rng: np.random.Generator, used: NDArray[np.int8], weights: Array, lengths: Array, n_classes: int,
    noise_variance: float,
) -> CodeClasses:  # fmt: skip
    """Classes of rows.

    Parameters
    ----------
    rng : Generator
    used, weights : array of shape (n_samples, n_components)
        Codes of a fit.
    lengths : array of shape (n_components,)
        Of the atoms.
    n_classes : int
        At most.
    noise_variance : float
    """
    Z = used.astype(np.float64)
    S = np.where(used == 1, weights, 0.0).astype(np.float64)
    n, k = len(Z), min(n_classes, len(Z))
    labels = np.zeros(n, dtype=np.intp)
    squares, counts = (S**2).sum(axis=0), Z.sum(axis=0)
    mean_square = float(squares.sum() / max(counts.sum(), 1.0)) or 1.0
    whole = (
        np.clip((counts + 0.5) / (n + 1), LEAST_USAGE, 1 - LEAST_USAGE),
        np.maximum((squares + mean_square) / (counts + 1), LEAST_VARIANCE * mean_square),
    )
    if k > 1 and counts.any():
        added = np.abs(S) * lengths
        size = float(np.sqrt((added**2).sum() / counts.sum())) or 1.0
        labels = np.asarray(k_means(np.log1p(added / (SMALL * size)), None, k, rng, n_init=1)[0], np.intp)
        for _ in range(ITERATIONS):
            shares, usage, variances = _described(Z, S, labels, k, whole)
            scores = np.log(shares) + log_density(Z, S**2, usage, variances)
            before, labels = labels, scores.argmax(axis=1)
            if (labels == before).all():
                break
    labels = np.unique(labels, return_inverse=True)[1]
    order = np.argsort(-np.bincount(labels), kind="stable")
    shares, usage, variances = (part[order] for part in _described(Z, S, labels, len(order), whole))
    return CodeClasses(shares / shares.sum(), usage, variances, noise_variance)


def forget_classes(model: Any) -> None:
    """Change an estimator whose atoms are others now: what it knew of codes of the former ones goes."""
    for name in STORED:
        vars(model).pop(name, None)


def log_density(used: Array, squares: Array, usage: Array, variances: Array) -> Array:
    """Log density of the codes of each row in each class, up to a constant: (n_samples, n_classes).

    `squares` are those of the weights, zero where an atom is not used.
    """
    odds = np.log(usage) - np.log1p(-usage) - 0.5 * np.log(variances)
    return np.asarray(used @ odds.T + np.log1p(-usage).sum(axis=1) - 0.5 * squares @ (1 / variances).T)


def _described(
    used: Array, weights: Array, labels: NDArray[np.intp], n_classes: int, whole: tuple[Array, Array]
) -> tuple[Array, Array, Array]:
    """Shares, probabilities and variances of classes."""
    members = np.zeros((n_classes, len(used)))
    members[labels, np.arange(len(used))] = 1.0
    sizes, counts, squares = members.sum(axis=1), members @ used, members @ weights**2
    usage, variances = whole
    scale = ((squares / variances).sum(axis=1) + 1) / (counts.sum(axis=1) + 1)
    found = (squares + ROWS_OF_VARIANCE * scale[:, None] * variances) / (counts + ROWS_OF_VARIANCE)
    probability = (counts + ROWS_OF_USAGE * usage) / (sizes[:, None] + ROWS_OF_USAGE)
    least = LEAST_VARIANCE * float(variances.mean())
    return (
        (sizes + 0.5) / (len(used) + 0.5 * n_classes),
        np.clip(probability, LEAST_USAGE, 1 - LEAST_USAGE),
        np.maximum(found, least),
    )
