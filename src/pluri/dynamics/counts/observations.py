"""Counts given states: log-likelihoods under Gaussian states, and learning loadings and shapes from them.

The expected log-likelihood of a neuron is concave in its loadings and its shape (or intercept) together, whichever way
it is integrated, so that the M-step is a few Newton steps for all neurons at a time. Where one shape is shared
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
from pluri.dynamics.counts import _poisson_kernels as poisson_kernels
from pluri.dynamics.counts._kernels import Nodes, Room
from pluri.dynamics.counts.newton import ascend, ascend_arrow
from pluri.dynamics.counts.records import CountObservation, PoissonObservation, Posteriors
from pluri.dynamics.counts.shapes import second_differences

Array = NDArray[np.float64]
Derivatives = tuple[Array, Array, Array]

KINDS = ("full", "simple", "linear")


def hermite_nodes(n_nodes: int) -> Nodes:
    """Gauss-Hermite quadrature of a standard normal."""
    place, weight = np.polynomial.hermite_e.hermegauss(n_nodes)
    return Nodes(place, weight / weight.sum(), False)


#: No integration: the state is taken to be at its mean.
POINT = Nodes(np.zeros(1), np.ones(1), False)
#: Jensen's inequality in place of quadrature.
JENSEN = Nodes(np.zeros(1), np.ones(1), True)


def room_for(n_counts: int, nodes: Nodes, p: int) -> Room:
    """Arrays for the loops to work in."""
    q = len(nodes.place)
    by_node = [np.empty(q) for _ in range(6)]
    return Room(np.empty((n_counts, q)), *by_node, np.empty(p), np.empty(n_counts), np.empty(n_counts))


@dataclass(frozen=True, eq=False)
class PoissonModel:
    """Poisson counts, whose expectations are known: exp(mean + variance / 2)."""

    def sites(self, observation: PoissonObservation, counts: Array, *, integrates: bool = True) -> Callable[..., Derivatives]:
        """Function of means and covariances, for `variational_paths` or `laplace_paths`."""

        def evaluate(means: Array, covariances: Array) -> Derivatives:
            out = _like(means)
            poisson_kernels.poisson_sites(
                counts, observation.loadings, observation.intercept, (means, covariances), integrates, out
            )
            return out

        return evaluate

    def constants(self, observation: PoissonObservation, counts: Array) -> Array:
        """The part of each row's log-likelihood that does not depend on states: (n,)."""
        return -np.nansum(gammaln(counts + 1.0), axis=1)

    def maximize(self, posteriors: Posteriors, observation: PoissonObservation) -> PoissonObservation:
        """Loadings and intercepts of a larger expected log-likelihood; neurons without a count stay as they are."""
        p = observation.loadings.shape[1]

        def evaluate(point: Array) -> Derivatives:
            n, d = point.shape
            out = np.zeros(n), np.zeros((n, d)), np.zeros((n, d, d))
            loadings, intercept = np.ascontiguousarray(point[:, :p]), np.ascontiguousarray(point[:, p])
            for counts, weight, mean, covariance in posteriors.parts:
                poisson_kernels.poisson_learning(
                    (counts, weight), loadings, intercept, (mean, covariance), np.empty(p), out
                )
            return out[0], out[1], _symmetric(out[2])

        start = np.column_stack([observation.loadings, observation.intercept])
        point = ascend(evaluate, start, np.ones(start.shape, dtype=bool))
        return PoissonObservation(point[:, :p].copy(), point[:, p].copy())

    def log_prior(self, observation: PoissonObservation) -> float:
        """There is none."""
        return 0.0


@dataclass(frozen=True, eq=False)
class CountModel:
    """Generalized counts.

    Parameters
    ----------
    kind : {"full", "simple", "linear"}: a shape for each neuron, one for all beside a slope of each, or slopes alone
    nodes : how expectations are taken
    support : (N, K + 1): counts that are possible
    kappa : (N,): weight of the squared second differences of each shape; of the shared one it is their sum
    """

    kind: str
    nodes: Nodes
    support: NDArray[np.bool_]
    kappa: Array

    @cached_property
    def penalty(self) -> Array:
        """Matrices P with which the penalty is g'P g / 2: (N, K + 1, K + 1); differences off the support are left out."""
        n_neurons, n_counts = self.support.shape
        D = second_differences(n_counts - 1)
        inside = self.support[:, :-2] & self.support[:, 1:-1] & self.support[:, 2:]
        return 2.0 * self.kappa[:, None, None] * np.einsum("ka,nk,kb->nab", D, inside.astype(np.float64), D)

    def table(self, observation: CountObservation) -> Array:
        """g(k) - log k!: (N, K + 1)."""
        return np.ascontiguousarray(observation.g - gammaln(np.arange(observation.g.shape[1]) + 1.0))

    def sites(self, observation: CountObservation, counts: Array, *, integrates: bool = True) -> Callable[..., Derivatives]:
        """Function of means and covariances, for `variational_paths` or `laplace_paths`."""
        nodes = self.nodes if integrates else POINT
        table = self.table(observation)
        room = room_for(table.shape[1], nodes, observation.loadings.shape[1])

        def evaluate(means: Array, covariances: Array) -> Derivatives:
            out = _like(means)
            kernels.count_sites(counts, observation.loadings, table, (means, covariances), nodes, room, out)
            return out

        return evaluate

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
        room = room_for(n_counts, self.nodes, p)
        log_factorials = gammaln(np.arange(n_counts) + 1.0)

        def evaluate(point: Array) -> Derivatives:
            g = np.where(self.support, point[:, p:], -np.inf)
            d = point.shape[1]
            out = np.zeros(n_neurons), np.zeros((n_neurons, d)), np.zeros((n_neurons, d, d))
            loadings, table = np.ascontiguousarray(point[:, :p]), np.ascontiguousarray(g - log_factorials)
            for counts, weight, mean, covariance in posteriors.parts:
                kernels.count_learning(
                    (counts, weight), loadings, table, (mean, covariance), self.nodes, room, out
                )
            pulled = np.einsum("nab,nb->na", self.penalty, point[:, p:])
            out[0][:] -= 0.5 * (pulled * point[:, p:]).sum(axis=1)
            out[1][:, p:] -= pulled
            hessian = _symmetric(out[2])
            hessian[:, p:, p:] += self.penalty
            return out[0], out[1], hessian

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
        return ascend_arrow(evaluate, start, line, self.support.any(axis=0), p)

    def log_prior(self, observation: CountObservation) -> float:
        """Minus the penalty."""
        g = np.where(self.support, observation.g, 0.0)
        return -0.5 * float(np.einsum("na,nab,nb->", g, self.penalty, g))


def _like(means: Array) -> Derivatives:
    n, p = means.shape
    return np.empty(n), np.empty((n, p)), np.empty((n, p, p))


def _symmetric(lower: Array) -> Array:
    """Matrices of which the loops have filled the lower halves."""
    return lower + np.swapaxes(np.tril(lower, -1), 1, 2)
