"""Sticks of the corpus, and concentrations that are learned, in the variational HDP topic model.

The expected number of document sticks that point to each topic, the *usage* s_k, says all about the sticks of the
corpus: ``a_k = 1 + s_k`` and ``b_k = gamma + sum_{l after k} s_l``. Which topic comes after which is free, and chosen
so that the bound is highest: by decreasing usage, with the last place, whose stick has no beta distribution, given to
the topic that suits it best. With gamma priors, q(alpha) and q(gamma) are gamma distributions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln

from pluri.priors.hyperpriors import Gamma

Array = NDArray[np.float64]

#: Rounds in which the sticks and the distribution of their concentration are fitted to each other.
N_ROUNDS = 50


@dataclass(frozen=True)
class Concentration:
    """A concentration that is fixed, or has a gamma distribution.

    Attributes
    ----------
    mean, log_mean : E[alpha], E[log alpha]
    bound : minus the divergence of its distribution from the prior
    """

    mean: float
    log_mean: float
    bound: float

    @classmethod
    def fixed(cls, value: float) -> Concentration:
        """A known number."""
        return cls(value, math.log(value), 0.0)

    @classmethod
    def gamma(cls, shape: float, rate: float, prior: Gamma) -> Concentration:
        """A gamma distribution with this shape and rate."""
        a, b = prior.shape, prior.rate
        log_mean = float(digamma(shape)) - math.log(rate)
        divergence = (
            (shape - a) * float(digamma(shape)) - float(gammaln(shape)) + float(gammaln(a))
            + a * (math.log(rate) - math.log(b)) + shape * (b - rate) / rate
        )  # fmt: skip
        return cls(shape / rate, log_mean, -divergence)


@dataclass(frozen=True, eq=False)
class CorpusSticks:
    """Sticks of the corpus at their optimum given the usage of the topics.

    Attributes
    ----------
    order : (n_topics,): topics in the order of their sticks
    log_weight : (n_topics,): E[log sigma_k(v)] of each topic
    weight : (n_topics,): E[sigma_k(v)]
    concentration : Concentration: gamma
    bound : minus the divergence of the sticks, and of gamma, from their priors
    """

    order: NDArray[np.int64]
    log_weight: Array
    weight: Array
    concentration: Concentration
    bound: float


def stick_order(usage: Array, gamma: float) -> NDArray[np.int64]:
    """Order of the topics in which the sticks have the highest bound.

    Of two topics in a row, but for the last two, the more used one should come first: the evidence has a factor
    ``1 / (gamma + what follows the second + the usage of the second)``.
    """
    order = np.argsort(-usage, kind="stable")
    sorted_usage = usage[order]
    n = len(order)
    if n < 2:
        return order
    tail = sorted_usage.sum() - np.cumsum(sorted_usage)
    place = np.arange(n)
    # Row j: the evidence of all sticks if the j-th topic is moved to the end.
    after = tail[None, :] + np.where(place[None, :] > place[:, None], sorted_usage[:, None], 0.0)
    terms = gammaln(1 + sorted_usage) + gammaln(gamma + after) - gammaln(1 + gamma + sorted_usage + after)
    evidence = terms.sum(axis=1) - terms.diagonal()
    last = int(n - 1 - np.argmax(evidence[::-1]))
    return np.append(np.delete(order, last), order[last])


def fit_sticks(usage: Array, gamma: float | Gamma, start: float | None = None) -> CorpusSticks:
    """Sticks given the usage of the topics, and the distribution of gamma if that has a prior.

    Parameters
    ----------
    usage : array of shape (n_topics,)
    gamma : float or Gamma
        The number, or its prior.
    start : float, optional
        Mean of gamma to begin with.
    """
    n = len(usage)
    mean = (gamma.mean if start is None else start) if isinstance(gamma, Gamma) else gamma
    concentration = Concentration.fixed(mean)
    for _ in range(N_ROUNDS):
        order = stick_order(usage, mean)
        a, b, log_in, log_out = _beta_laws(usage[order], mean)
        if not isinstance(gamma, Gamma):
            break
        concentration = Concentration.gamma(gamma.shape + n - 1, gamma.rate - float(log_out.sum()), gamma)
        moved, mean = abs(concentration.mean - mean), concentration.mean
        if moved < 1e-10 * mean:
            break
    passed = np.concatenate([[0.0], np.cumsum(log_out)])
    log_weight, weight = np.empty(n), np.empty(n)
    log_weight[order] = passed + np.append(log_in, 0.0)
    left = np.concatenate([[1.0], np.cumprod(b / (a + b))])
    weight[order] = left * np.append(a / (a + b), 1.0)
    entropy = gammaln(a) + gammaln(b) - gammaln(a + b) - (a - 1) * log_in - (b - 1) * log_out
    bound = float((concentration.log_mean + (concentration.mean - 1) * log_out + entropy).sum())
    return CorpusSticks(order, log_weight, weight, concentration, bound + concentration.bound)


def _beta_laws(usage: Array, gamma: float) -> tuple[Array, Array, Array, Array]:
    """Parameters of the beta distributions of all sticks but the last, E[log v] and E[log(1 - v)]."""
    tail = usage.sum() - np.cumsum(usage)
    a, b = 1.0 + usage[:-1], gamma + np.maximum(tail[:-1], 0.0)
    both = digamma(a + b)
    return a, b, digamma(a) - both, digamma(b) - both
