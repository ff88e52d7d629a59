"""Generalized counts given Gaussian states: log-likelihoods, and learning loadings and shapes from them.

The expected log-likelihood of a neuron is concave in its loadings and its shape together, whichever way it is
integrated, so that the M-step is a few Newton steps for all neurons at a time. Where one shape is shared
("simple"), the second derivatives have the form of an arrow: blocks of the neurons, bordered by the shape.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from pluri.dynamics.counts import _kernels as kernels
from pluri.dynamics.counts._kernels import Nodes, Room
from pluri.dynamics.counts.newton import ascend, ascend_arrow
from pluri.dynamics.counts.poisson_model import BLOCK, Derivatives, site_derivatives, theta_moments
from pluri.dynamics.counts.records import CountObservation, Posteriors
from pluri.dynamics.counts.shapes import second_differences

Array = NDArray[np.float64]

KINDS = ("full", "simple", "linear")


def hermite_nodes(n_nodes: int) -> Nodes:
    """Gauss-Hermite quadrature of a standard normal."""
    place, weight = np.polynomial.hermite_e.hermegauss(n_nodes)
    return Nodes(place, weight / weight.sum())


#: No integration: the state is taken to be at its mean.
POINT = Nodes(np.zeros(1), np.ones(1))


def room_for(n_counts: int, nodes: Nodes) -> Room:
    """Arrays for the loops to work in."""
    q = len(nodes.place)
    base, ratio, power, total, mean, variance = (np.empty(q) for _ in range(6))
    shares, tilted = np.empty(n_counts), np.empty(n_counts)
    return Room(np.empty((n_counts, q)), base, ratio, power, total, mean, variance, shares, tilted)


@dataclass(frozen=True, eq=False)
class CountModel:
    """Generalized counts.

    Parameters
    ----------
    kind : {"full", "simple", "linear"}: a shape for each neuron, one for all beside a slope of each, or slopes alone
    nodes : quadrature of expectations; None for Jensen's bound in place of it
    support : (N, K + 1): counts that are possible
    kappa : (N,): weight of the squared second differences of each shape; of the shared one it is their sum
    """

    kind: str
    nodes: Nodes | None
    support: NDArray[np.bool_]
    kappa: Array

    @cached_property
    def penalty(self) -> Array:
        """Matrices P with which the penalty is g'P g / 2: (N, K + 1, K + 1); none of it is off the support."""
        D = second_differences(self.support.shape[1] - 1)
        inside = self.support[:, :-2] & self.support[:, 1:-1] & self.support[:, 2:]
        return 2.0 * self.kappa[:, None, None] * np.einsum("ka,nk,kb->nab", D, inside.astype(np.float64), D)

    def table(self, observation: CountObservation) -> Array:
        """g(k) - log k!: (N, K + 1)."""
        return np.ascontiguousarray(observation.g - gammaln(np.arange(observation.g.shape[1]) + 1.0))

    def sites(
        self, observation: CountObservation, counts: Array, *, integrates: bool = True
    ) -> Callable[..., Derivatives]:
        """Function of means and covariances, for `variational_paths` or `laplace_paths`."""
        nodes = self.nodes if integrates else POINT
        table = self.table(observation)
        y = np.where(np.isnan(counts), 0.0, counts)

        def evaluate(means: Array, covariances: Array, rows: NDArray[np.bool_] | None = None) -> Derivatives:
            theta, variance = theta_moments(observation.loadings, means, covariances)
            wanted = counts if rows is None else np.where(rows[:, None], counts, np.nan)
            normalizer, first, second = _expectations(wanted, theta, variance, table, nodes)
            return site_derivatives(observation.loadings, y * theta - normalizer, y - first, second)

        return evaluate

    def working_sites(self, observation: CountObservation, counts: Array, center: Array) -> None:
        """None: tables end somewhere, and so do the precisions that the prior asks for, which is start enough."""

    def constants(self, observation: CountObservation, counts: Array) -> Array:
        """Sums of g(y) - log y! (n,): -inf where a count is impossible."""
        table = self.table(observation)
        seen = ~np.isnan(counts)
        whole = np.where(seen, counts, 0.0).astype(np.int64)
        inside = np.minimum(whole, table.shape[1] - 1)
        values = table[np.arange(table.shape[0]), inside]
        return np.where(seen, np.where(whole < table.shape[1], values, -np.inf), 0.0).sum(axis=1)

    def maximize(self, posteriors: Posteriors, observation: CountObservation) -> CountObservation:
        """Loadings and shapes of a larger expected log-likelihood less penalty."""
        n_neurons, p = observation.loadings.shape
        n_counts = self.support.shape[1]
        start = np.column_stack([observation.loadings, np.where(self.support, observation.g, 0.0)])
        log_factorials = gammaln(np.arange(n_counts) + 1.0)

        def evaluate(point: Array) -> Derivatives:
            d = point.shape[1]
            out = np.zeros(n_neurons), np.zeros((n_neurons, d)), np.zeros((n_neurons, d, d))
            table = np.where(self.support, point[:, p:], -np.inf) - log_factorials
            for part in posteriors.parts:
                for begin in range(0, len(part[0]), BLOCK):
                    _add_counts(out, point[:, :p], table, self.nodes, *(array[begin : begin + BLOCK] for array in part))
            pulled = np.einsum("nab,nb->na", self.penalty, point[:, p:])
            out[0][:] -= 0.5 * (pulled * point[:, p:]).sum(axis=1)
            out[1][:, p:] -= pulled
            out[2][:, p:, p:] += self.penalty
            return out

        point = self._ascend(evaluate, start, p)
        return CountObservation(point[:, :p].copy(), np.where(self.support, point[:, p:], -np.inf))

    def _ascend(self, evaluate: Callable[[Array], Derivatives], start: Array, p: int) -> Array:
        n_neurons, n_counts = self.support.shape
        free = np.column_stack([np.ones((n_neurons, p), dtype=bool), self.support])
        free[:, p] = False  # g(0) = 0
        if self.kind == "full":
            return ascend(evaluate, start, free)
        line = np.zeros((p + n_counts, p + 1))
        line[:p, :p] = np.eye(p)
        line[p:, p] = np.arange(n_counts)
        if self.kind == "linear":
            own = np.column_stack([start[:, :p], start[:, p + 1]])

            def along(point: Array) -> Derivatives:
                value, gradient, hessian = evaluate(point @ line.T)
                return value, gradient @ line, np.einsum("ac,nab,bd->ncd", line, hessian, line)

            return ascend(along, own, np.ones(own.shape, dtype=bool)) @ line.T
        return ascend_arrow(evaluate, start, line, np.asarray(self.support.any(axis=0)), p)

    def log_prior(self, observation: CountObservation) -> float:
        """Minus the penalty."""
        g = np.where(self.support, observation.g, 0.0)
        return -0.5 * float(np.einsum("na,nab,nb->", g, self.penalty, g))


def _add_counts(
    out: Derivatives,
    loadings: Array,
    table: Array,
    nodes: Nodes | None,
    counts: Array,
    weight: Array,
    means: Array,
    covariances: Array,
) -> None:
    """Add to `out` the expected log-likelihood of each neuron and its derivatives in (c, g).

    With v = V c, E log M = F(c'm, c'v) has the gradient F_mu m + 2 F_s2 v in c and the second derivatives
    F_mu_mu m m' + 2 F_mu_s2 (m v' + v m') + 4 F_s2_s2 v v' + 2 F_s2 V.
    """
    n, p = means.shape
    n_counts = table.shape[1]
    theta, variance = (np.ascontiguousarray(one.T) for one in theta_moments(loadings, means, covariances))
    for i in range(len(loadings)):
        seen = ~np.isnan(counts[:, i])
        w = np.where(seen, weight, 0.0)
        y = np.where(seen, counts[:, i], 0.0)
        local, by_mean, by_spread, by_shape = _local_derivatives(w, theta[i], variance[i], table[i], nodes)
        observed = np.bincount(y.astype(np.int64), w, minlength=n_counts)
        used = observed > 0
        out[0][i] += w @ (y * theta[i] - local[:, 0]) + observed[used] @ table[i, used]
        v = covariances @ loadings[i]
        weighted = w[:, None] * local
        out[1][i, :p] += (w * y - weighted[:, 1]) @ means - weighted[:, 2] @ v
        out[1][i, p:] += observed - by_shape[:, n_counts]
        mixed = means.T @ (weighted[:, 4, None] * v)
        block = means.T @ (weighted[:, 3, None] * means) + mixed + mixed.T + v.T @ (weighted[:, 5, None] * v)
        out[2][i, :p, :p] += block + (weighted[:, 2] @ covariances.reshape(n, -1)).reshape(p, p)
        border = means.T @ (w[:, None] * by_mean) + v.T @ (w[:, None] * by_spread)
        out[2][i, :p, p:] += border
        out[2][i, p:, :p] += border.T
        square = by_shape[:, :n_counts]
        out[2][i, p:, p:] += square + np.tril(square, -1).T


def _expectations(counts: Array, theta: Array, variance: Array, table: Array, nodes: Nodes | None) -> Derivatives:
    """E log M, E[E(k | theta)] and E[Var(k | theta)]: (n, N) each; under Jensen's bound the last are second moments."""
    if nodes is not None:
        out = np.empty(theta.shape), np.empty(theta.shape), np.empty(theta.shape)
        kernels.expect_counts(counts, theta, variance, table, nodes, room_for(table.shape[1], nodes), out)
        return out
    k = np.arange(table.shape[1], dtype=np.float64)
    seen = ~np.isnan(counts)
    P, normalizer = _jensen_shares(theta, variance, table)
    return np.where(seen, normalizer, 0.0), np.where(seen, P @ k, 0.0), np.where(seen, P @ k**2, 0.0)


def _jensen_shares(theta: Array, variance: Array, log_weight: Array) -> tuple[Array, Array]:
    """Softmax over k of log_weight_k + k theta + k^2 variance / 2, on a last axis, and the logarithm of its sum."""
    k = np.arange(log_weight.shape[-1], dtype=np.float64)
    scores = theta[..., None] * k + 0.5 * variance[..., None] * k**2 + log_weight
    top = scores.max(axis=-1)
    P = np.exp(scores - top[..., None])
    total = P.sum(axis=-1)
    return P / total[..., None], top + np.log(total)


def _local_derivatives(
    weight: Array, theta: Array, variance: Array, log_weight: Array, nodes: Nodes | None
) -> tuple[Array, Array, Array, Array]:
    """What `learn_counts` gives, of one neuron, or the same for Jensen's bound F = log sum_k exp(... + k^2 s^2 / 2)."""
    n, n_counts = len(theta), len(log_weight)
    out = np.empty((n, 6)), np.empty((n, n_counts)), np.empty((n, n_counts)), np.zeros((n_counts, n_counts + 1))
    if nodes is not None:
        kernels.learn_counts(weight, theta, variance, log_weight, nodes, room_for(n_counts, nodes), out)
        return out
    k = np.arange(n_counts, dtype=np.float64)
    P, normalizer = _jensen_shares(theta, variance, log_weight)
    first, second, third, fourth = (P @ k**order for order in (1, 2, 3, 4))
    local = np.column_stack([normalizer, first, second, second - first**2, third - first * second, fourth - second**2])
    total = weight @ P
    square = np.diag(total) - P.T @ (weight[:, None] * P)
    return local, P * (k - first[:, None]), P * (k**2 - second[:, None]), np.column_stack([np.tril(square), total])
