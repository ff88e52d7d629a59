r"""Common weights of the states in the variational infinite hidden Markov model: q of their sticks.

The sticks ``u_k ~ Beta(1, gamma)`` make common weights ``beta_k``, k = 1, ..., K, and a rest ``beta_{K+1}``. Row j of
the transitions is Dirichlet with parameters ``c ((1 - rho) beta_m + rho [m = j])``, that of first steps with
``c beta_m``, and q(u_k) = Beta(a_k, b_k). The only mean that has no closed form is that of the log normalisers of the
rows. With ``log Gamma(x) = log Gamma(1 + x) - log x``, where log Gamma(1 + x) is convex and zero at zero (so that it is
superadditive), and because ``log((1 - rho) beta + rho)`` is convex in ``log beta``, that of row j is bounded by

    E log c_j  >=  K log(c (1 - rho)) + log((1 - rho) exp(E log beta_j) + rho) + sum_{m not j} E log beta_m,

and all that follows is a lower bound of the evidence for any number K of states, so that models of different K can be
compared. Given expected counts N of transitions the best q of a row is Dirichlet with the prior's parameters, at
E beta, plus N_j. What is left to be maximised over the a_k and b_k (and over hyper-parameters that are learned, with
their log prior) is

    sum_j [ bound of E log c_j + sum_m log Gamma(N_jm + c (1 - rho) E beta_m + c rho [m = j]) - log Gamma(N_j. + c) ]
        + sum_k [ log gamma + (gamma - 1) E log(1 - u_k) + entropy of q(u_k) ].

References
----------
Hughes, Stephenson and Sudderth (2015), Scalable adaptation of state complexity for nonparametric hidden Markov models,
NIPS 28; there the second inequality is linear in beta, and no bound is left as rho goes to zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import betaln, digamma, expit, gammaln, logit, polygamma

from pluri.sequences.infinite.transitions import Hyperparameters, HyperPriors

Array = NDArray[np.float64]

#: Logarithms (of the stickiness, log odds) of what is optimised stay within these numbers.
LIMITS = (-15.0, 25.0)
#: Iterations of one update at most: the next sweep goes on where it ends.
STEPS = 30


@dataclass(frozen=True, eq=False)
class CommonWeights:
    """q of the sticks, and values of the hyper-parameters.

    Attributes
    ----------
    sticks : array of shape (n_states, 2)
        a_k and b_k.
    hyper : Hyperparameters
    """

    sticks: Array
    hyper: Hyperparameters

    @cached_property
    def mean(self) -> Array:
        """Means of the weights of the states and of the rest: (n_states + 1,)."""
        piece = self.sticks[:, 0] / self.sticks.sum(axis=1)
        return np.append(piece, 1.0) * np.append(1.0, np.cumprod(1.0 - piece))

    @cached_property
    def log_mean(self) -> Array:
        """Means of the logarithms of the weights: (n_states + 1,)."""
        log_piece, log_rest = expected_log_sticks(self.sticks)
        return np.append(log_piece, 0.0) + np.append(0.0, np.cumsum(log_rest))

    def prior_rows(self) -> Array:
        """Dirichlet parameters of the rows at E beta: (n_states + 1, n_states + 1), that of first steps last."""
        c, _, rho = self.hyper
        n_states, mean = len(self.sticks), self.mean
        rows = np.tile(c * (1.0 - rho) * mean, (n_states + 1, 1))
        rows[:-1, :-1] += c * rho * np.eye(n_states)
        rows[-1] = c * mean
        return rows


def expected_log_sticks(sticks: Array) -> tuple[Array, Array]:
    """``E log u_k`` and ``E log (1 - u_k)``."""
    both = digamma(sticks.sum(axis=1))
    return digamma(sticks[:, 0]) - both, digamma(sticks[:, 1]) - both


def first_weights(counts: Array, hyper: Hyperparameters) -> CommonWeights:
    """Where the optimisation starts: means of the weights are shares of the steps."""
    share = counts.sum(axis=0) + 1.0
    left = np.append(np.cumsum(share[::-1])[::-1], 0.0)[1:] + 1.0  # one for the rest
    piece, worth = share / (share + left), len(share) + 1.0
    sticks = np.column_stack([1.0 + worth * piece, hyper.weight_concentration + worth * (1.0 - piece)])
    return CommonWeights(sticks, hyper)


def weights_bound(counts: Array, weights: CommonWeights, priors: HyperPriors) -> float:
    """What is maximised, see above; `counts` (n_states + 1, n_states) has first steps in its last row."""
    c, gamma, rho = weights.hyper
    n_states, log_mean = counts.shape[1], weights.log_mean
    rows = weights.prior_rows()
    rows[:, :-1] += counts
    bound = n_states * (n_states + 1) * np.log(c) + n_states**2 * np.log1p(-rho)
    with np.errstate(divide="ignore"):
        bound += np.logaddexp(np.log1p(-rho) + log_mean[:-1], np.log(rho)).sum()
    bound += n_states * log_mean[:-1].sum() + (n_states + 1) * log_mean[-1]
    bound += gammaln(rows).sum() - gammaln(rows.sum(axis=1)).sum()
    a, b = weights.sticks.T
    log_piece, log_rest = expected_log_sticks(weights.sticks)
    bound += (betaln(a, b) - (a - 1.0) * log_piece + (gamma - b) * log_rest + np.log(gamma)).sum()
    learned = sum(prior.log_density(value) for prior, value in zip(priors, weights.hyper) if prior is not None)
    return float(bound) + learned


def weights_gradient(counts: Array, weights: CommonWeights, priors: HyperPriors) -> tuple[Array, Array]:
    """Gradient of `weights_bound` in the sticks, (n_states, 2), and in the hyper-parameters, (3,)."""
    c, gamma, rho = weights.hyper
    n_states, mean, stay = counts.shape[1], weights.mean, np.exp(weights.log_mean[:-1])
    rows = weights.prior_rows()
    rows[:, :-1] += counts
    digammas = digamma(rows)
    own, others, first = np.diagonal(digammas)[:n_states].sum(), digammas[:-1].sum(axis=0), digammas[-1]
    either = (1.0 - rho) * stay + rho
    # Derivatives by E log beta_m; by E beta_m, times E beta_m; and the sums of those after each stick.
    by_log = n_states + np.append((1.0 - rho) * stay / either, 1.0)
    by_mean = c * mean * ((1.0 - rho) * others + first)
    later_log, later_mean = (np.cumsum(each[::-1])[::-1][1:] for each in (by_log, by_mean))
    a, b = weights.sticks.T
    both = a + b
    spread_a, spread_b, spread = (polygamma(1, each) for each in (a, b, both))
    of_a, of_b = by_log[:-1] - a + 1.0, later_log + gamma - b
    by_piece = by_mean[:-1] / a - later_mean / b  # times the sum of a and b
    sticks = np.column_stack(
        [
            of_a * (spread_a - spread) - of_b * spread + by_piece * b / both,
            of_b * (spread_b - spread) - of_a * spread - by_piece * a / both,
        ]
    )
    by_c = n_states * (n_states + 1) / c + by_mean.sum() / c + rho * own - digamma(rows.sum(axis=1)).sum()
    by_gamma = n_states / gamma + expected_log_sticks(weights.sticks)[1].sum()
    by_rho = c * (own - others @ mean) + ((1.0 - stay) / either).sum() - n_states**2 / (1.0 - rho)
    values = np.array([by_c, by_gamma, by_rho])
    for place, (prior, value) in enumerate(zip(priors, weights.hyper)):
        if prior is not None:
            values[place] += prior.gradient(value)
    return sticks, values


def best_weights(counts: Array, start: CommonWeights, priors: HyperPriors, steps: int = STEPS) -> CommonWeights:
    """Q of the sticks, and hyper-parameters, that maximise the bound given counts; never worse than `start`."""
    learned = [place for place, prior in enumerate(priors) if prior is not None]
    n_sticks = start.sticks.size

    def unpacked(vector: Array) -> CommonWeights:
        values = list(start.hyper)
        for place, free in zip(learned, vector[n_sticks:].tolist()):
            values[place] = float(expit(free) if place == 2 else np.exp(free))
        return CommonWeights(np.exp(vector[:n_sticks]).reshape(-1, 2), Hyperparameters(*values))

    def downhill(vector: Array) -> tuple[float, Array]:
        weights = unpacked(vector)
        sticks, values = weights_gradient(counts, weights, priors)
        c, gamma, rho = weights.hyper
        values *= [c, gamma, rho * (1.0 - rho)]
        slope = np.append((sticks * weights.sticks).ravel(), values[learned])
        return -weights_bound(counts, weights, priors), -slope

    free = [
        float(logit(value) if place == 2 else np.log(value))
        for place, value in enumerate(start.hyper)
        if place in learned
    ]
    first = np.clip(np.append(np.log(start.sticks.ravel()), free), *LIMITS)
    found = minimize(
        downhill, first, jac=True, method="L-BFGS-B", bounds=[LIMITS] * len(first), options={"maxiter": steps}
    )
    best = unpacked(found.x)
    return best if weights_bound(counts, best, priors) >= weights_bound(counts, start, priors) else start
