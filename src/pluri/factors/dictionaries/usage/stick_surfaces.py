"""Surfaces over locations that sticks are broken at: kernel regressions with a probit link.

    g_l(u) = zeta_l0 + sum_m zeta_lm exp(-||u - u_m||^2 / psi_l),   zeta_lm ~ N(0, 1 / alpha_lm),
    alpha_lm ~ Gamma(shape, rate),   psi_l from a library with probabilities p ~ Dirichlet(1)

A row of cluster l was refused by the sticks before l and taken by that of l: a normal variable of mean g_h(u_i) behind
each such decision is negative or positive. Given the clusters the sticks are independent of each other. For each stick:
the width psi_l with the normal variables integrated out, the normal variables, the coefficients, their precisions.

References
----------
.. [1] Ren, L., Du, L., Carin, L. and Dunson, D. (2011). Logistic stick-breaking process. JMLR 12, 203-239.
.. [2] Bhattacharya, A., Chakraborty, A. and Mallick, B. (2016). Fast sampling with Gaussian scale mixture priors in
   high-dimensional regression. Biometrika 103, 985-991.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular
from scipy.linalg.blas import dsyrk
from scipy.special import log_ndtr

from pluri.priors.hyperpriors import Gamma
from pluri.processes.dirichlet import draw_log_dirichlet
from pluri.processes.stick_draws import choose_rows, draw_truncated

Array = NDArray[np.float64]
Labels = NDArray[np.intp]

#: Precisions beyond these, of coefficients that are zero or free to all intents, would only cost digits.
LEAST_PRECISION, LARGEST_PRECISION = 1e-6, 1e10


@dataclass(frozen=True, eq=False)
class Surfaces:
    """What belongs to the sticks.

    Attributes
    ----------
    coefficients, precisions : array of shape (n_clusters - 1, n_centers + 1)
        Intercept first.
    widths : array of int of shape (n_clusters - 1,)
        Which of the library each stick has.
    log_width_weights : array of shape (n_widths,)
        Logarithms of the probabilities of the widths.
    """

    coefficients: Array
    precisions: Array
    widths: NDArray[np.intp]
    log_width_weights: Array

    def in_order(self, order: NDArray[np.intp]) -> Surfaces:
        """With the sticks in another order."""
        return Surfaces(self.coefficients[order], self.precisions[order], self.widths[order], self.log_width_weights)


@dataclass(frozen=True, eq=False)
class SurfacePrior:
    """Prior of the surfaces, and the kernels at all locations.

    Attributes
    ----------
    designs : array of shape (n_widths, n_samples, n_centers + 1)
        For each width of the library a one and the kernels of each row.
    precision_prior : Gamma
    """

    designs: Array
    precision_prior: Gamma

    def predictors(self, surfaces: Surfaces) -> Array:
        """Values g of all sticks with each width of the library: (n_widths, n_clusters - 1, n_samples)."""
        return np.asarray(surfaces.coefficients @ self.designs.transpose(0, 2, 1))

    def chosen_predictors(self, surfaces: Surfaces) -> Array:
        """Values g of all sticks, each with its own width: (n_clusters - 1, n_samples)."""
        found = np.empty((len(surfaces.widths), self.designs.shape[1]))
        for j in np.unique(surfaces.widths):
            own = surfaces.widths == j
            found[own] = surfaces.coefficients[own] @ self.designs[j].T
        return found

    def sample(self, n_sticks: int, rng: np.random.Generator) -> Surfaces:
        """Draw surfaces from the prior."""
        n_widths, _, n_coefficients = self.designs.shape
        log_weights = draw_log_dirichlet(rng, np.ones(n_widths))
        widths = choose_rows(rng, np.broadcast_to(log_weights, (n_sticks, n_widths))).astype(np.intp)
        prior, shape = self.precision_prior, (n_sticks, n_coefficients)
        precisions = np.clip(rng.gamma(prior.shape, 1.0 / prior.rate, size=shape), LEAST_PRECISION, LARGEST_PRECISION)
        return Surfaces(rng.standard_normal(shape) / np.sqrt(precisions), precisions, widths, log_weights)

    def log_density(self, surfaces: Surfaces) -> float:
        """Log density of coefficients, logarithms of precisions, widths, and log probabilities of the widths."""
        zeta, alpha, prior = surfaces.coefficients, surfaces.precisions, self.precision_prior
        total = 0.5 * float((np.log(alpha) - np.log(2 * np.pi) - alpha * zeta**2).sum())
        total += float(sum(prior.log_density(value) for value in alpha.ravel().tolist()) + np.log(alpha).sum())
        weights = surfaces.log_width_weights
        # The Dirichlet density is constant; to logarithms of the first n - 1 probabilities belongs their sum.
        total += float(weights[surfaces.widths].sum() + weights[:-1].sum())
        return total + float(np.log(np.arange(1, len(weights))).sum())

    def resample(self, surfaces: Surfaces, labels: Labels, predictors: Array, rng: np.random.Generator) -> Surfaces:
        """Draw everything given the clusters; `predictors` are those of these surfaces."""
        n_sticks, n_widths = predictors.shape[1], len(self.designs)
        order = np.argsort(labels, kind="stable")
        # Rows that reach stick l are order[begins[l]:], those that it takes come first.
        begins = np.searchsorted(labels[order], np.arange(n_sticks + 1))
        log_likelihood = np.zeros((n_sticks, n_widths))
        for l in range(n_sticks):
            rows = order[begins[l] :]
            if len(rows):
                passed = np.where(np.arange(len(rows)) < begins[l + 1] - begins[l], 1.0, -1.0)
                log_likelihood[l] = log_ndtr(passed * predictors[:, l, rows]).sum(axis=1)
        widths = choose_rows(rng, surfaces.log_width_weights + log_likelihood).astype(np.intp)
        latent = []
        for l in range(n_sticks):
            means = predictors[widths[l], l, order[begins[l] :]]
            latent.append(draw_truncated(rng, means, np.arange(len(means)) < begins[l + 1] - begins[l]))
        zeta = self._draw_coefficients(rng, surfaces.precisions, widths, order, begins, latent)
        prior = self.precision_prior
        alpha = rng.standard_gamma(prior.shape + 0.5, zeta.shape) / (prior.rate + 0.5 * zeta**2)
        log_weights = draw_log_dirichlet(rng, np.bincount(widths, minlength=n_widths) + np.ones(n_widths))
        return Surfaces(zeta, np.clip(alpha, LEAST_PRECISION, LARGEST_PRECISION), widths, log_weights)

    def _draw_coefficients(
        self,
        rng: np.random.Generator,
        precisions: Array,
        widths: NDArray[np.intp],
        order: NDArray[np.intp],
        begins: NDArray[np.intp],
        latent: list[Array],
    ) -> Array:
        """Regressions of the latent normals.

        The rows that reach a stick also reach those before it: X'X of sticks with the same width is added up from the
        last to the first, so that each row is used once for each width.
        """
        scale = 1.0 / np.sqrt(precisions)
        found = scale * rng.standard_normal(scale.shape)  # stays for sticks that no row reaches
        n_rows, n_coefficients = len(order), scale.shape[1]
        for j in np.unique(widths):
            mine = [l for l in np.flatnonzero(widths == j)[::-1].tolist() if begins[l] < n_rows]
            if not mine:
                continue
            design = self.designs[j][order[begins[mine[-1]] :]]
            done, gram = n_rows, np.zeros((n_coefficients, n_coefficients))
            shift = begins[mine[-1]]
            for l in mine:
                rows = design[begins[l] - shift :]
                if len(rows) < n_coefficients:
                    found[l] = draw_few_rows(rng, rows, latent[l], scale[l])
                    continue
                gram += dsyrk(1.0, design[begins[l] - shift : done - shift].T, lower=True)
                done = begins[l]
                found[l] = draw_many_rows(rng, gram, rows.T @ latent[l], scale[l])
        return found


def draw_many_rows(rng: np.random.Generator, gram: Array, shift: Array, scale: Array) -> Array:
    """Draw from N(Q^-1 shift, Q^-1), Q = gram + diag(1 / scale^2); only the lower half of `gram` is read.

    In units of the scale all eigenvalues are at least one, whatever the precisions.
    """
    precision = np.tril(gram) * np.outer(scale, scale)
    precision[np.diag_indices_from(precision)] += 1.0
    root = cholesky(precision, lower=True, overwrite_a=True, check_finite=False)
    half = solve_triangular(root, scale * shift, lower=True, check_finite=False)
    noise = rng.standard_normal(len(shift))
    return np.asarray(scale * solve_triangular(root, half + noise, lower=True, trans=1, check_finite=False))


def draw_few_rows(rng: np.random.Generator, rows: Array, response: Array, scale: Array) -> Array:
    """The same for fewer rows than coefficients, without a matrix of coefficients by coefficients [2]_."""
    scaled = rows * scale
    prior = rng.standard_normal(len(scale))
    gap = response - scaled @ prior - rng.standard_normal(len(rows))
    covariance = scaled @ scaled.T
    covariance[np.diag_indices_from(covariance)] += 1.0
    root = cholesky(covariance, lower=True, overwrite_a=True, check_finite=False)
    solved = solve_triangular(root, gap, lower=True, check_finite=False)
    solved = solve_triangular(root, solved, lower=True, trans=1, check_finite=False)
    return np.asarray(scale * (prior + scaled.T @ solved))
