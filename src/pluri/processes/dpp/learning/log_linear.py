"""Likelihood of subsets when the qualities of the items are log-linear in features and the similarity is known.

With ``q_i = exp(theta' f_i / 2)`` and ``L = diag(q) S diag(q)``,
``log P(Y) = theta' sum_{i in Y} f_i + log det S_Y - log det(L + I)`` is concave in theta. Its gradient is
``sum_{i in Y} f_i - sum_i K_ii f_i`` and its Hessian ``-sum_ij Cov(i, j) f_i f_j'``, where
``Cov(i, i) = K_ii (1 - K_ii)`` and ``Cov(i, j) = -K_ij^2``.

References
----------
Kulesza and Taskar (2011), Learning determinantal point processes, UAI.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.processes.dpp.kernel_checks import check_kernel
from pluri.processes.dpp.learning.likelihood import subset_log_probabilities
from pluri.processes.dpp.similarity import as_similarity

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Candidates:
    """A ground set: features of its items, (n_items, n_features), and their similarity, (n_items, n_items)."""

    features: Array
    similarity: Array

    def kernel(self, coef: Array, intercept: float) -> Array:
        """``L_ij = q_i S_ij q_j``."""
        scores = self.features @ coef + intercept
        if scores.max() > 600:
            raise ValueError(f"the quality of an item overflows: its score theta' f is {scores.max():.4g}")
        quality = np.exp(scores / 2)
        return np.asarray(quality[:, None] * self.similarity * quality)


@dataclass(frozen=True, eq=False)
class ObservedCandidates:
    """The subsets seen of one ground set.

    Attributes
    ----------
    candidates : Candidates
    weight : total weight of the subsets
    feature_total : (n_features,): weighted sum of the features of all chosen items
    size_total : weighted number of chosen items
    log_similarity : weighted sum of log det S_Y
    """

    candidates: Candidates
    weight: float
    feature_total: Array
    size_total: float
    log_similarity: float


def log_partition(scores: Array, similarity: Array) -> tuple[float, Array]:
    """``log det(L + I)`` and ``K = I - (L + I)^-1`` for ``L = diag(e^(h/2)) S diag(e^(h/2))``, h the scores.

    Large scores do not overflow: with ``e_i = max(1, e^(h_i / 2))`` the matrix that is factored is
    ``diag(e)^-1 (L + I) diag(e)^-1``. The value is +inf if that is singular in floating point.
    """
    scale = np.maximum(scores, 0.0) / 2
    shrunk = np.exp(scores / 2 - scale)
    inner = shrunk[:, None] * similarity * shrunk
    inner[np.diag_indices(len(inner))] += np.exp(-2 * scale)
    try:
        half = np.linalg.cholesky(inner)
    except np.linalg.LinAlgError:
        return math.inf, np.zeros(inner.shape)
    inverse_half = np.linalg.inv(half) * np.exp(-scale)
    value = 2 * float(np.log(np.diagonal(half)).sum() + scale.sum())
    return value, np.eye(len(inner)) - inverse_half.T @ inverse_half


@dataclass(frozen=True, eq=False)
class LogLinearObjective:
    """Mean log-likelihood less ``alpha / 2 |coef|^2``, as a function of the coefficients (and last, the intercept).

    Attributes
    ----------
    observed : tuple of ObservedCandidates
    alpha : penalty
    fit_intercept : whether there is an intercept, which is not penalised
    """

    observed: tuple[ObservedCandidates, ...]
    alpha: float
    fit_intercept: bool

    @property
    def n_features(self) -> int:
        """Number of coefficients without the intercept."""
        return int(self.observed[0].candidates.features.shape[1])

    @property
    def total(self) -> float:
        """Sum of all weights."""
        return math.fsum(one.weight for one in self.observed)

    def split(self, theta: Array) -> tuple[Array, float]:
        """Coefficients and intercept."""
        return theta[: self.n_features], float(theta[-1]) if self.fit_intercept else 0.0

    def _design(self, features: Array) -> Array:
        return np.column_stack([features, np.ones(len(features))]) if self.fit_intercept else features

    def log_likelihood(self, theta: Array) -> float:
        """Mean log-likelihood alone."""
        coef = theta[: self.n_features]
        return self(theta)[0] + 0.5 * self.alpha * float(coef @ coef)

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """Value and gradient."""
        coef, intercept = self.split(theta)
        value, slope = 0.0, np.zeros(len(theta))
        for one in self.observed:
            features = one.candidates.features
            partition, K = log_partition(features @ coef + intercept, one.candidates.similarity)
            value += float(one.feature_total @ coef) + one.size_total * intercept + one.log_similarity
            value -= one.weight * partition
            if not math.isfinite(value):
                return -math.inf, np.zeros(len(theta))
            expected = np.diagonal(K)
            slope[: self.n_features] += one.feature_total - one.weight * (expected @ features)
            if self.fit_intercept:
                slope[-1] += one.size_total - one.weight * float(expected.sum())
        pull = self.alpha * coef
        slope /= self.total
        slope[: self.n_features] -= pull
        return value / self.total - 0.5 * float(pull @ coef), slope

    @cached_property
    def units(self) -> Array:
        """Length of each column of the features (root mean square), and 1 for the intercept: (n_parameters,)."""
        largest = np.max([np.abs(one.candidates.features).max(axis=0) for one in self.observed], axis=0)
        largest = np.where(largest > 0, largest, 1.0)
        squares = sum(one.weight * ((one.candidates.features / largest) ** 2).mean(axis=0) for one in self.observed)
        lengths = np.sqrt(squares / self.total) * largest
        return np.append(np.where(lengths > 0, lengths, 1.0), np.ones(int(self.fit_intercept)))

    def in_units(self, point: Array) -> tuple[float, Array]:
        """Value and gradient at ``point / units``: the climb must not depend on the units of the features."""
        value, slope = self(point / self.units)
        return value, slope / self.units

    def information(self, theta: Array) -> Array:
        """Minus the Hessian, of all subsets together: (n_parameters, n_parameters)."""
        coef, intercept = self.split(theta)
        hessian = np.zeros((len(theta), len(theta)))
        for one in self.observed:
            features = one.candidates.features
            K = log_partition(features @ coef + intercept, one.candidates.similarity)[1]
            covariance = -(K * K)
            covariance[np.diag_indices(len(K))] += np.diagonal(K)
            design = self._design(features)
            hessian += one.weight * design.T @ covariance @ design
        penalised = np.arange(self.n_features)
        hessian[penalised, penalised] += self.alpha * self.total
        return hessian


def read_candidates(
    X: Any, similarity: str | Callable[..., Any], n_features: int | None
) -> tuple[list[Candidates], bool]:
    """Ground sets, and whether there is a single one that all subsets share.

    Objects that occur several times in the list are read once.
    """
    shared = isinstance(X, tuple) or (isinstance(X, np.ndarray) and X.ndim == 2)
    if not shared and (not isinstance(X, Sequence | np.ndarray) or isinstance(X, str)):
        raise ValueError(f"X must be a pair (features, similarity) or a list of such pairs, got {type(X).__name__}")
    if not shared and not len(X):
        raise ValueError("X must hold at least one ground set, got an empty list")
    made: dict[int, Candidates] = {}
    found = []
    for index, item in enumerate([X] if shared else X):
        key = id(item)
        if key not in made:
            made[key] = _candidates(item, similarity, n_features, "X" if shared else f"X[{index}]")
            n_features = made[key].features.shape[1]
        found.append(made[key])
    return found, shared


def _candidates(item: Any, similarity: str | Callable[..., Any], n_features: int | None, name: str) -> Candidates:
    if isinstance(item, tuple) and len(item) == 2:
        features, other = item
    elif isinstance(similarity, str) and similarity == "precomputed":
        raise ValueError(f"{name} must be a pair (features, similarity) when similarity is 'precomputed'")
    else:
        features = other = item
    features = np.asarray(features, dtype=np.float64)
    if features.ndim == 1:
        features = features[:, None]
    if features.ndim != 2 or not features.size:
        raise ValueError(f"features of {name} must be a matrix (n_items, n_features), got shape {features.shape}")
    if not np.isfinite(features).all():
        raise ValueError(f"features of {name} must be finite, got NaN or infinity")
    if n_features is not None and features.shape[1] != n_features:
        raise ValueError(f"features of {name} must have {n_features} columns, got {features.shape[1]}")
    if isinstance(similarity, str) and similarity == "precomputed":
        matrix = check_kernel(other, f"similarity of {name}")
    else:
        rows = np.asarray(other, dtype=np.float64)
        if rows.ndim != 2 or not np.isfinite(rows).all():
            raise ValueError(f"rows that similarities of {name} are made from must be a finite matrix")
        matrix = check_kernel(as_similarity(similarity)(rows, rows), f"similarity of {name}")
    if len(matrix) != len(features):
        raise ValueError(f"similarity of {name} must have one row per item ({len(features)}), got shape {matrix.shape}")
    return Candidates(features, matrix)


def observe(candidates: list[Candidates], subsets: list[Any], weight: Array) -> tuple[ObservedCandidates, ...]:
    """Gather subsets by ground set; refuse those that no theta makes possible.

    Parameters
    ----------
    candidates : list of Candidates, one for each subset
    subsets : list of arrays of item numbers
    weight : (n_subsets,)
    """
    places: dict[int, list[int]] = {}
    for index, one in enumerate(candidates):
        places.setdefault(id(one), []).append(index)
    found = []
    for members in places.values():
        ground = candidates[members[0]]
        own = weight[members]
        # The normaliser of the similarity alone is taken out again: what is left is log det S_Y.
        logs = subset_log_probabilities(ground.similarity, [subsets[index] for index in members])
        logs += log_partition(np.zeros(len(ground.features)), ground.similarity)[0]
        impossible = np.flatnonzero((logs == -np.inf) & (own > 0))
        if impossible.size:
            index = members[impossible[0]]
            raise ValueError(
                f"y[{index}] = {list(map(int, subsets[index]))} has probability zero whatever the coefficients: the "
                "similarity of its items is singular"
            )
        chosen = np.zeros(len(ground.features))
        for index, mass in zip(members, own.tolist()):
            chosen[subsets[index]] += mass
        found.append(
            ObservedCandidates(
                ground,
                float(own.sum()),
                chosen @ ground.features,
                float(chosen.sum()),
                float(own[own > 0] @ logs[own > 0]),
            )
        )
    return tuple(found)
