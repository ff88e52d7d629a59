"""Two unbiased gradients of the ELBO of a Gaussian q: along the path of its draws, and by the score function.

See :mod:`pluri.inference.variational.black_box` for the formulas.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pluri.inference.variational.adam import Array
from pluri.inference.variational.families import Family, MeanFieldGaussian
from pluri.inference.variational.flows.target import Target


@dataclass(frozen=True)
class ScoreGradient:
    """The score-function gradient, which needs no derivative of the density.

    Parameters
    ----------
    local_terms : callable, optional
        For the mean-field family: from points (n, dim) to (n, dim), where column i is the sum of those terms of the log
        density in which coordinate i occurs. The others only add noise to the gradient of that coordinate
        (Rao-Blackwellisation).
    """

    local_terms: Callable[[Array], Any] | None = None


def path_gradient(family: Family, parameters: Array, noise: Array, target: Target) -> tuple[float, Array]:
    """ELBO of a batch and its reparameterised gradient, along the path through z only."""
    z = family.draw(parameters, noise)
    values, slope = target(z)
    elbo = float(np.mean(values - family.log_prob(parameters, z)))
    return elbo, family.pull_back(parameters, noise, (slope - family.slope(parameters, noise)) / len(noise))


def score_gradient(
    family: Family, parameters: Array, noise: Array, target: Target, local_terms: Callable[[Array], Array] | None = None
) -> tuple[float, Array]:
    """ELBO of a batch and its score-function gradient, with a control variate for each parameter."""
    z = family.draw(parameters, noise)
    log_weights = target.values(z) - family.log_prob(parameters, z)
    score = family.score(parameters, z)
    worth = np.broadcast_to(log_weights[:, None], score.shape)
    if local_terms is not None:
        assert isinstance(family, MeanFieldGaussian)
        own = local_terms(z) - family.log_probs(parameters, z)
        worth = np.hstack([own, own])  # coordinate i has the parameters i and dim + i
    squares = score * score
    # The coefficient for a draw comes from the others, so that the gradient stays unbiased.
    top = (worth * squares).sum(axis=0) - worth * squares
    bottom = squares.sum(axis=0) - squares
    coefficient = top / np.maximum(bottom, np.finfo(float).tiny)
    return float(log_weights.mean()), ((worth - coefficient) * score).mean(axis=0)
