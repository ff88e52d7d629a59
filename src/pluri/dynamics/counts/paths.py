"""E-steps: Gaussian distributions of state paths given counts, by variational or Laplace's approximation.

With J the block tridiagonal precision of the prior and mu its mean, q(x) = N(m, V) maximises

    1/2 [log|V| - tr(J V) - (m - mu)'J(m - mu) + log|J| + p T] + sum_ti E_q log p(y_ti | c_i' x_t)

At the optimum V^-1 = J + blockdiag(L_t) with L_t = sum_i E[Var(k | theta_ti)] c_i c_i', and J(m - mu)_t =
sum_i c_i (y_ti - E k_ti). Damped steps towards these equations are steps along the natural gradient; precisions are
damped more where they answer to themselves. Laplace's
approximation takes the mode of the posterior for m, by Newton's method, and the curvature there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pluri.dynamics.block_tridiagonal import PathDistribution
from pluri.dynamics.counts.records import StateModel

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
#: Means and covariances to expected log-likelihoods (n,), their gradients (n, p) and precisions (n, p, p); a third
#: argument, rows (n,) that are wanted, spares the others.
Sites = Callable[..., tuple[Array, Array, Array]]

#: Steps of an E-step at most; most need ten to twenty.
MOST_STEPS = 200
#: First share of the way to the new sites, and how it changes.
FIRST_SHARE, GROWTH, SHRINKAGE = 0.7, 1.5, 0.5
#: A sequence is done when a step gains less than this, relative to its bound.
TOLERANCE = 1e-10
#: Share of the damping of precisions that is left after a step.
MEMORY = 0.5
#: Shares below this are given up: rounding is all that is left to gain.
LEAST_SHARE = 1e-4


@dataclass(frozen=True, eq=False)
class PathPrior:
    """Distribution of the paths of several sequences before counts are seen.

    Attributes
    ----------
    offsets : (n_sequences + 1,): where sequences begin and end
    sequence : (n,): the sequence of each row
    diagonal, below : (n, p, p): blocks of the precision J, `below` 0 in the last row of a sequence
    mean : (n, p)
    log_determinants : (n_sequences,): of J
    """

    offsets: Integers
    sequence: Integers
    diagonal: Array
    below: Array
    mean: Array
    log_determinants: Array

    @classmethod
    def of(cls, states: StateModel, offsets: Integers) -> PathPrior:
        """From the model of the states."""
        lengths = np.diff(offsets)
        n, A = int(offsets[-1]), states.transition
        sequence = np.repeat(np.arange(len(lengths)), lengths)
        noise, first = _inverse(states.noise), _inverse(states.initial_covariance)
        diagonal = np.tile(noise + A.T @ noise @ A, (n, 1, 1))
        below = np.tile(-noise @ A, (n, 1, 1))
        firsts, lasts = offsets[:-1][lengths > 0], offsets[1:][lengths > 0] - 1
        diagonal[firsts] += first - noise
        diagonal[lasts] -= A.T @ noise @ A
        below[lasts] = 0.0
        time = np.arange(n) - offsets[sequence]
        mean = states.means(int(lengths.max(initial=0)))[time]
        log_q1, log_q = (np.linalg.slogdet(one)[1] for one in (states.initial_covariance, states.noise))
        log_determinants = -np.where(lengths > 0, log_q1 + (lengths - 1) * log_q, 0.0)
        return cls(offsets, sequence, diagonal, below, mean, log_determinants)

    def sum_rows(self, values: Array) -> Array:
        """Sums over the rows of each sequence."""
        return np.bincount(self.sequence, values, minlength=len(self.offsets) - 1).astype(np.float64, copy=False)

    def squares(self, deviation: Array) -> Array:
        """(m - mu)'J(m - mu) of each sequence."""
        within = np.einsum("ta,tab,tb->t", deviation, self.diagonal, deviation)
        after = np.vstack([deviation[1:], np.zeros((1, deviation.shape[1]))])
        within += 2.0 * np.einsum("ta,tab,tb->t", after, self.below, deviation)
        return self.sum_rows(within)

    def with_sites(self, precision: Array) -> PathDistribution:
        """Distribution of the paths when blocks are added to the precision."""
        return PathDistribution.from_precision(self.diagonal + precision, self.below, self.offsets)


@dataclass(frozen=True, eq=False)
class PathPosterior:
    """q(x): means (n, p), covariances and covariances with the step before (n, p, p), and a bound for each sequence."""

    mean: Array
    covariance: Array
    lagged: Array
    bound: Array
    distribution: PathDistribution


@dataclass(frozen=True, eq=False)
class _Visit:
    """Sites, the deviations of the mean from the prior's that they lead to, and what sites those ask for."""

    precision: Array
    linear: Array
    posterior: PathPosterior
    deviation: Array
    gradient: Array
    next_precision: Array


def gaussian_bound(prior: PathPrior, distribution: PathDistribution, spread: Array, deviation: Array) -> Array:
    """-KL(q || prior) of each sequence; `spread` (n_sequences,) is the sum of tr(L_t V_t)."""
    return 0.5 * (prior.log_determinants - distribution.log_determinants() + spread - prior.squares(deviation))


def _visit(
    prior: PathPrior, sites: Sites, precision: Array, linear: Array, rows: NDArray[np.bool_] | None = None
) -> _Visit:
    """What sites lead to; only `rows` (n,), if given, are of any use."""
    distribution = prior.with_sites(precision)
    deviation = distribution.solve(linear)
    covariance, lagged = distribution.covariances()
    value, gradient, wanted = sites(prior.mean + deviation, covariance, rows)
    spread = prior.sum_rows(np.einsum("tab,tab->t", precision, covariance))
    bound = prior.sum_rows(value) + gaussian_bound(prior, distribution, spread, deviation)
    posterior = PathPosterior(prior.mean + deviation, covariance, lagged, bound, distribution)
    return _Visit(precision, linear, posterior, deviation, gradient, wanted)


def _sites_on_the_way(here: _Visit, share: Array, precision_share: Array) -> tuple[Array, Array]:
    """Precisions and linear terms of sites that a row (n,) has gone this share of the way to, in mean and precision.

    With L' the new precision, the mean moves by a share of (J + L')^-1 (gradient - J deviation), as Newton's would.
    """
    precision = here.precision + precision_share[:, None, None] * (here.next_precision - here.precision)
    from_prior = here.linear - np.einsum("tab,tb->ta", here.precision, here.deviation)  # J deviation
    move = share[:, None]
    pull = np.einsum("tab,tb->ta", precision, here.deviation)
    return precision, pull + (1.0 - move) * from_prior + move * here.gradient


def _stiffness(prior: PathPrior, here: _Visit, there: _Visit) -> Array:
    """How much lower precisions are asked for when they rise by one, in each sequence; 0 if they are not."""
    change, answer = there.precision - here.precision, there.next_precision - here.next_precision
    square = prior.sum_rows(np.einsum("tab,tab->t", change, change))
    product = prior.sum_rows(np.einsum("tab,tab->t", change, answer))
    return np.maximum(-product / np.where(square > 0, square, 1.0), 0.0)


def variational_paths(
    prior: PathPrior,
    sites: Sites,
    *,
    tol: float = TOLERANCE,
    near: PathPosterior | None = None,
    working: tuple[Array, Array] | None = None,
    damps: bool = True,
) -> PathPosterior:
    """The Gaussian with the largest bound, by damped steps along the natural gradient.

    Each sequence has its own share of the way, which is halved where its bound falls. Where a precision that rises
    asks for lower ones (states that are known badly), precisions go a smaller part of it than means, unless `damps` is
    False, as under Jensen's bound, whose precisions are too high anyway and would come down too slowly. It begins with
    the sites that a posterior `near` the solution asks for; or with `working` sites, gradients at the prior mean (n, p)
    and precisions (n, p, p), made from counts, beside which a prior may expect far too much; or at the prior.
    """
    n, p = prior.mean.shape
    linear, precision = working or (np.zeros((n, p)), np.zeros((n, p, p)))
    if near is not None:
        _, linear, precision = sites(near.mean, near.covariance)
        linear = linear + np.einsum("tab,tb->ta", precision, near.mean - prior.mean)
    here = _visit(prior, sites, precision, linear)
    bound = here.posterior.bound
    share, stiffness = np.full(len(bound), FIRST_SHARE), np.zeros(len(bound))
    active = np.diff(prior.offsets) > 0
    settled = np.zeros(len(bound), dtype=bool)
    for _ in range(MOST_STEPS):
        if not active.any():
            break
        move = np.where(active, share, 0.0)
        by_row = prior.sequence
        wanted = _sites_on_the_way(here, move[by_row], (move / (1.0 + stiffness))[by_row])
        there = _visit(prior, sites, *wanted, active[by_row])
        if damps:  # an estimate from one step may be far off: what was learned before is forgotten slowly
            stiffness = np.maximum(np.where(active, _stiffness(prior, here, there), 0.0), MEMORY * stiffness)
        gain = there.posterior.bound - bound
        scale = np.maximum(1.0, np.abs(bound))
        refused = active & ~(gain >= -1e-14 * scale)
        kept = refused | ~active
        here = _keep(here, there, kept[prior.sequence]) if kept.any() else there
        bound = np.where(kept, bound, there.posterior.bound)
        # A step twice too long gains nothing either: two in a row must not be worth the way.
        small = ~refused & (gain < tol * scale * share)
        active &= refused | ~small | ~settled
        settled = np.where(refused, settled, small)
        share = np.where(refused, share * SHRINKAGE, np.minimum(1.0, share * GROWTH))
        active &= share > LEAST_SHARE
    if np.array_equal(bound, here.posterior.bound):
        return here.posterior
    return _visit(prior, sites, here.precision, here.linear).posterior


def _keep(here: _Visit, there: _Visit, kept: NDArray[np.bool_]) -> _Visit:
    """`there` except for the rows that are kept; the posterior is then of neither, and has no bound."""
    row, block = kept[:, None], kept[:, None, None]
    unknown = replace(there.posterior, bound=np.full_like(there.posterior.bound, np.nan))
    return _Visit(
        np.where(block, here.precision, there.precision),
        np.where(row, here.linear, there.linear),
        unknown,
        np.where(row, here.deviation, there.deviation),
        np.where(row, here.gradient, there.gradient),
        np.where(block, here.next_precision, there.next_precision),
    )


def laplace_paths(prior: PathPrior, sites: Sites, tol: float = TOLERANCE) -> PathPosterior:
    """The mode of each path, by Newton's method with backtracking, and the curvature there.

    `sites` takes no notice of covariances. The bound is Laplace's approximation to the log-likelihood, which bounds
    nothing.
    """
    n, p = prior.mean.shape
    unused = np.zeros((n, p, p))
    deviation = np.zeros((n, p))
    value, gradient, precision = sites(prior.mean, unused)
    joint = prior.sum_rows(value)
    share = np.ones(len(joint))
    active = np.diff(prior.offsets) > 0
    for _ in range(MOST_STEPS):
        if not active.any():
            break
        target = prior.with_sites(precision).solve(gradient + np.einsum("tab,tb->ta", precision, deviation))
        move = np.where(active, share, 0.0)[prior.sequence][:, None]
        tried = deviation + move * (target - deviation)
        value, new_gradient, new_precision = sites(prior.mean + tried, unused)
        new_joint = prior.sum_rows(value) - 0.5 * prior.squares(tried)
        gain = new_joint - joint
        scale = np.maximum(1.0, np.abs(joint))
        refused = active & ~(gain >= -1e-14 * scale)
        row = refused[prior.sequence]
        deviation = np.where(row[:, None], deviation, tried)
        gradient = np.where(row[:, None], gradient, new_gradient)
        precision = np.where(row[:, None, None], precision, new_precision)
        joint = np.where(refused, joint, new_joint)
        active &= refused | (gain >= 1e-4 * tol * scale) | (share < 1.0)
        share = np.where(refused, share * SHRINKAGE, np.minimum(1.0, share / SHRINKAGE))
        active &= share > LEAST_SHARE
    distribution = prior.with_sites(precision)
    covariance, lagged = distribution.covariances()
    evidence = joint + 0.5 * (prior.log_determinants - distribution.log_determinants())
    return PathPosterior(prior.mean + deviation, covariance, lagged, evidence, distribution)


def _inverse(covariance: Array) -> Array:
    inverse = np.linalg.inv(covariance)
    return np.asarray(0.5 * (inverse + inverse.T))
