"""Conjugate likelihoods by name, with priors that fit the scale of the data where none are given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pluri.processes.conjugate import BetaBernoulli, DirichletMultinomial, GammaPoisson
from pluri.processes.conjugate_clusters._kernels import BINARY, COUNTS, GAUSSIAN, TOKENS
from pluri.processes.conjugate_clusters.records import Array, kind_of
from pluri.processes.conjugate_gaussian import NormalInverseWishart

#: Families by name, and what can be said of their priors.
FAMILIES: dict[str, tuple[str, ...]] = {
    "gaussian": ("mean", "strength", "df", "scale"),
    "bernoulli": ("a", "b"),
    "multinomial": ("concentration",),
    "poisson": ("shape", "rate"),
}
KIND_OF_FAMILY = {"gaussian": GAUSSIAN, "bernoulli": BINARY, "multinomial": TOKENS, "poisson": COUNTS}
#: How many clusters the default prior of a covariance has in mind: their volume is this share of that of the data.
TYPICAL_CLUSTERS = 5


def family_kind(family: Any) -> int:
    """Which of the compiled likelihoods a family is, by name or itself."""
    if not isinstance(family, str):
        return kind_of(family)
    if family not in FAMILIES:
        names = ", ".join(map(repr, FAMILIES))
        raise ValueError(f"family must be one of {names} or a conjugate likelihood, got {family!r}")
    return KIND_OF_FAMILY[family]


def make_likelihood(family: Any, prior: Mapping[str, Any] | None, data: Any, weights: Array) -> Any:
    """Likelihood of a family for given data, with what `prior` says of its prior."""
    family_kind(family)
    if not isinstance(family, str):
        if prior is not None:
            raise ValueError("component_prior must be None when family is a likelihood, which has its own")
        if family.n_features != data.shape[1]:
            raise ValueError(f"family is for {family.n_features} columns, but X has {data.shape[1]}")
        return family
    given = dict(prior or {})
    unknown = sorted(set(given) - set(FAMILIES[family]))
    if unknown:
        raise ValueError(f"component_prior of {family!r} may have {', '.join(FAMILIES[family])}, got {unknown[0]!r}")
    d, total = data.shape[1], float(weights.sum())
    if family == "multinomial":
        return DirichletMultinomial(d, _plain(given.get("concentration", 0.5)))
    mean = np.asarray(weights @ data, dtype=np.float64).ravel() / total
    if family == "gaussian":
        variance = weights @ (data - mean) ** 2 / total
        # A column that never varies gets the smallest spread that still leaves a density.
        floor = 1e-6 * (float(variance.mean()) or 1.0)
        spread = np.diag(np.maximum(variance, floor)) / TYPICAL_CLUSTERS ** (2.0 / d)
        scale = given.get("scale", spread)
        if np.ndim(scale) == 0:
            scale = float(scale) * np.eye(d)
        return NormalInverseWishart(
            given.get("mean", mean), given.get("strength", 0.01), given.get("df", d + 2.0), scale
        )
    if family == "bernoulli":
        # Worth two rows, around the frequencies in the data, kept away from zero and one.
        share = (mean * total + 1) / (total + 2)
        return BetaBernoulli(d, _plain(given.get("a", 2 * share)), _plain(given.get("b", 2 * (1 - share))))
    shape = given.get("shape", 1.0)
    rate = np.asarray(shape, dtype=np.float64) * total / (mean * total + 1)
    return GammaPoisson(d, _plain(shape), _plain(given.get("rate", rate)))


def _plain(value: Any) -> Any:
    """Numbers as the likelihoods, which are compared and hashed, keep them."""
    array = np.asarray(value, dtype=np.float64)
    return float(array) if array.ndim == 0 else tuple(array.tolist())
