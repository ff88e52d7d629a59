r"""The E-step under Jensen's bound by its dual, with a certificate of how near the optimum is.

Jensen's inequality gives  E log p(y | theta) >= h_y - log sum_k exp(h_k + k^2 s^2 / 2),  h_k = k c'm + g(k) - log k!,
where the sum begins at k = 0. For distributions lambda_ti on 0..K with moments m1 and m2, with S the prior covariance,

    V(lambda)^-1 = J + blockdiag_t(sum_i m2_ti c_i c_i'),    w_t = sum_i c_i (m1_ti - y_ti),    m(lambda) = mu - S w
    D(lambda) = 1/2 w'S w - w'mu - sum (lambda_k - 1[k = y]) (g(k) - log k!) - 1/2 log|S V^-1| + sum lambda log lambda

is at least the bound of (m(lambda), V(lambda)), and they meet at the optimum, lambda = softmax(h + k^2 s^2 / 2).
Mirror descent goes there by mixing the logarithms. The bound grows worse with K, even for Poisson counts: keep K near
the largest count, or use quadrature.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, xlogy

from pluri.dynamics.counts.paths import PathPosterior, PathPrior, Sites, gaussian_bound, variational_paths

Array = NDArray[np.float64]

#: Steps at most. From the solution of the primal problem few are needed.
MOST_STEPS = 500
FIRST_SHARE, GROWTH, SHRINKAGE = 0.5, 1.5, 0.5


@dataclass(frozen=True, eq=False)
class DualPoint:
    """lambda as logarithms (n, N, K + 1), the scores h + k^2 s^2 / 2 that it leads to, primal and dual values of each
    sequence (without the constants of the counts), and the distribution of the paths.
    """

    log_share: Array
    scores: Array
    primal: Array
    dual: Array
    posterior: PathPosterior


@dataclass(frozen=True, eq=False)
class JensenDual:
    """The dual problem of sequences: counts (n, N) with NaN where missing, loadings (N, p), `table` of g - log k!."""

    prior: PathPrior
    counts: Array
    loadings: Array
    table: Array

    def scores(self, mean: Array, covariance: Array) -> Array:
        """H + k^2 s^2 / 2: (n, N, K + 1)."""
        k = np.arange(self.table.shape[1])
        theta = mean @ self.loadings.T
        variance = np.einsum("ia,tab,ib->ti", self.loadings, covariance, self.loadings)
        return np.asarray(theta[..., None] * k + 0.5 * variance[..., None] * k**2 + self.table)

    def visit(self, log_share: Array) -> DualPoint:
        """Both values at lambda."""
        prior, k = self.prior, np.arange(self.table.shape[1])
        seen = ~np.isnan(self.counts)
        y = np.where(seen, self.counts, 0.0)
        share = np.where(seen[..., None], np.exp(log_share), 0.0)
        m1, m2 = share @ k, share @ k**2
        w = np.where(seen, m1 - y, 0.0) @ self.loadings
        precision = np.einsum("ti,ia,ib->tab", m2, self.loadings, self.loadings)
        # S w by the prior alone, and V by the prior with its sites.
        deviation = -prior.with_sites(np.zeros_like(precision)).solve(w)
        distribution = prior.with_sites(precision)
        covariance, lagged = distribution.covariances()
        mean = prior.mean + deviation
        scores = self.scores(mean, covariance)
        theta = mean @ self.loadings.T
        value = np.where(seen, y * theta - logsumexp(scores, axis=2), 0.0).sum(axis=1)
        spread = prior.sum_rows(np.einsum("tab,tab->t", precision, covariance))
        primal = prior.sum_rows(value) + gaussian_bound(prior, distribution, spread, deviation)
        table = np.where(np.isfinite(self.table), self.table, 0.0)  # lambda is 0 where it is not
        rows = -0.5 * (w * deviation).sum(axis=1) - (w * prior.mean).sum(axis=1)
        rows += (xlogy(share, share) - share * table).sum(axis=(1, 2))
        dual = prior.sum_rows(rows) + 0.5 * (prior.log_determinants - distribution.log_determinants())
        return DualPoint(log_share, scores, primal, dual, PathPosterior(mean, covariance, lagged, primal, distribution))

    def descend(self, start: DualPoint, tol: float) -> DualPoint:
        """Mirror descent until the gap is below `tol` times the bound, in every sequence."""
        here = start
        share = np.full(len(here.dual), FIRST_SHARE)
        best = here
        for _ in range(MOST_STEPS):
            open_ = best.dual - best.primal > tol * np.maximum(1.0, np.abs(best.primal))
            if not open_.any():
                break
            move = np.where(open_, share, 0.0)[self.prior.sequence][:, None, None]
            with np.errstate(invalid="ignore"):  # -inf off the support
                mixed = here.log_share + move * (here.scores - here.log_share)
            mixed = np.where(np.isfinite(self.table), mixed, -np.inf)
            there = self.visit(mixed - logsumexp(mixed, axis=2, keepdims=True))
            better = there.dual <= best.dual + 1e-14 * np.abs(best.dual)
            share = np.where(better, np.minimum(1.0, share * GROWTH), share * SHRINKAGE)
            if better[open_].all():
                here = best = there
                continue
            row = (better | ~open_)[self.prior.sequence][:, None, None]
            best = here = self.visit(np.where(row, there.log_share, here.log_share))
        return best


def jensen_paths(dual: JensenDual, sites: Sites, tol: float) -> tuple[PathPosterior, Array]:
    """The Gaussian of the largest Jensen bound, and the duality gap of each sequence.

    `sites` are those of the primal problem, from whose solution the dual begins: mostly the gap is closed there.
    """
    primal = variational_paths(dual.prior, sites, damps=False)
    scores = dual.scores(primal.mean, primal.covariance)
    start = dual.visit(scores - logsumexp(scores, axis=2, keepdims=True))
    end = dual.descend(start, tol)
    # The primal solution is better still as long as the dual one has not closed the gap.
    gap = end.dual - primal.bound
    return primal, gap
