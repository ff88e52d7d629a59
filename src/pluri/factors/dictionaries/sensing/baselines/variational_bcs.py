"""Bayesian compressive sensing by variational Bayes: a precision for each coefficient, learned with the code.

    y = Phi w + noise,   w_k ~ N(0, 1 / a_k),   a_k ~ Gamma,   noise ~ N(0, 1 / g),   g ~ Gamma

With ``q(w) q(a) q(g)`` the code has ``S = (g Phi'Phi + diag(a))^-1`` and ``mean = g S Phi'y``, found from matrices of
the size of the measurements (Woodbury). Many rows are done at a time; each is a problem of its own.

References
----------
Bishop and Tipping (2000), Variational relevance vector machines, UAI.
Ji, Xue and Carin (2008), Bayesian compressive sensing, IEEE Transactions on Signal Processing 56.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma
from sklearn.exceptions import ConvergenceWarning

from pluri.factors.dictionaries.sensing.baselines.interface import SparseRegression
from pluri.inference.variational import coordinate_ascent
from pluri.metrics.distribution_information import gamma_kl
from pluri.priors.hyperpriors import Gamma
from pluri.validation import Allowed, Made, Only, Stored

Array = NDArray[np.float64]

FLAT = Gamma(1e-6, 1e-6)
#: Rows that are done at a time.
CHUNK = 256


@dataclass(frozen=True, eq=False)
class CodeBeliefs:
    """q of the codes of N rows.

    Attributes
    ----------
    means, variances : (N, K): of the coefficients
    log_dets : (N,): log determinants of the covariances
    misfits : (N,): expected squared misfits
    rates : (N, K): of q(a_k) = Gamma(shape + 1/2, rate)
    noise_rates : (N,): of q(g) = Gamma(shape + n/2, rate)
    """

    means: Array
    variances: Array
    log_dets: Array
    misfits: Array
    rates: Array
    noise_rates: Array


@dataclass(frozen=True, eq=False)
class RelevanceModel:
    """The model as `pluri.inference.variational.coordinate_ascent` runs it.

    Attributes
    ----------
    Phi : (N, n, K) or (1, n, K)
    Y : (N, n)
    weight_prior, noise_prior : Gamma
    """

    Phi: Array
    Y: Array
    weight_prior: Gamma
    noise_prior: Gamma

    def initialize(self, data: Any, rng: np.random.Generator) -> CodeBeliefs:
        """Precisions of one coefficient alone, noise a tenth of the measurements."""
        size, length = (self.Y**2).mean(axis=1), (self.Phi**2).sum(axis=1).mean(axis=1)
        size, length = np.where(size > 0, size, 1.0), np.where(length > 0, length, 1.0)
        shape, noise_shape = self.shapes
        precision = np.broadcast_to((length / (self.Y.shape[1] * size))[:, None], (len(self.Y), self.Phi.shape[2]))
        return self._with_codes(shape / precision, noise_shape * size / 100)

    @property
    def shapes(self) -> tuple[float, float]:
        """Shapes of q(a_k) and of q(g)."""
        return self.weight_prior.shape + 0.5, self.noise_prior.shape + self.Y.shape[1] / 2

    def update(self, params: CodeBeliefs, data: Any) -> CodeBeliefs:
        """q(a), q(g), then q(w)."""
        rates = self.weight_prior.rate + 0.5 * (params.means**2 + params.variances)
        return self._with_codes(rates, self.noise_prior.rate + 0.5 * params.misfits)

    def _with_codes(self, rates: Array, noise_rates: Array) -> CodeBeliefs:
        shape, noise_shape = self.shapes
        spread, noise = rates / shape, noise_rates / noise_shape  # one over the expected precisions
        n = self.Y.shape[1]
        carried = self.Phi * spread[:, None, :]  # Phi A^-1
        gram = carried @ np.swapaxes(self.Phi, 1, 2)
        root = np.linalg.cholesky(gram + noise[:, None, None] * np.eye(n))
        half = np.linalg.solve(root, carried)
        solved = np.linalg.solve(root, self.Y[:, :, None])
        means = (np.swapaxes(half, 1, 2) @ solved)[:, :, 0]
        residual = self.Y - (self.Phi @ means[:, :, None])[:, :, 0]
        inverse_root = np.linalg.inv(root)
        # tr(Phi S Phi') = noise tr(I - noise (gram + noise I)^-1)
        explained = noise * (n - noise * (inverse_root**2).sum(axis=(1, 2)))
        log_det = np.log(spread).sum(axis=1) + n * np.log(noise)
        log_det -= 2 * np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1)
        variances = np.maximum(spread - (half**2).sum(axis=1), 0.0)
        return CodeBeliefs(means, variances, log_det, (residual**2).sum(axis=1) + explained, rates, noise_rates)

    def elbo(self, params: CodeBeliefs, data: Any) -> float:
        """The bound, summed over the rows."""
        (shape, noise_shape), n = self.shapes, self.Y.shape[1]
        log_noise = digamma(noise_shape) - np.log(params.noise_rates)
        value = 0.5 * n * (log_noise - math.log(2 * math.pi))
        value -= 0.5 * noise_shape / params.noise_rates * params.misfits
        squares = params.means**2 + params.variances
        log_precision = digamma(shape) - np.log(params.rates)
        value += 0.5 * (log_precision - shape / params.rates * squares + 1.0).sum(axis=1) + 0.5 * params.log_dets
        value -= np.sum(gamma_kl(shape, params.rates, self.weight_prior.shape, self.weight_prior.rate), axis=1)
        value -= gamma_kl(noise_shape, params.noise_rates, self.noise_prior.shape, self.noise_prior.rate)
        return float(np.sum(value))


class VariationalBCS(SparseRegression):
    """Bayesian compressive sensing by variational Bayes (a variational relevance vector machine).

    Priors are for measurements that are divided by one number, so that their mean square is one.

    Parameters
    ----------
    weight_prior, noise_prior : `pluri.priors.Gamma` prior or None, default=None
        Of the precisions of the coefficients and of the noise; None is Gamma(1e-6, 1e-6).
    max_iter : int, default=200
        Sweeps at most.
    tol : float, default=1e-5
        The ascent ends when a sweep raises the bound by less than this share of itself.

    Attributes
    ----------
    coef_ : array of shape (n_atoms,)
        Posterior mean of the code.
    coef_std_ : array of shape (n_atoms,)
        Its standard deviation.
    noise_variance_ : float
    bound_ : float
        Lower bound of the log evidence.
    n_iter_ : int
    n_features_in_ : int
    """

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        "weight_prior": Made(Gamma, "a prior (Gamma)") | Only(None),
        "noise_prior": Made(Gamma, "a prior (Gamma)") | Only(None),
    }
    _fitted_layout: ClassVar[Mapping[str, Stored]] = {
        "coef_": Stored("n_features_in_"),
        "coef_std_": Stored("n_features_in_", least=0),
    }

    def __init__(
        self,
        *,
        weight_prior: Gamma | None = None,
        noise_prior: Gamma | None = None,
        max_iter: int = 200,
        tol: float = 1e-5,
    ) -> None:
        self.weight_prior = weight_prior
        self.noise_prior = noise_prior
        self.max_iter = max_iter
        self.tol = tol

    def _run(self, Phi: Array, Y: Array) -> tuple[RelevanceModel, Any]:
        model = RelevanceModel(Phi, Y, self.weight_prior or FLAT, self.noise_prior or FLAT)
        result = coordinate_ascent(
            model, None, rng=np.random.default_rng(0), max_iter=int(self.max_iter), tol=float(self.tol)
        )
        if not result.converged and not result.interrupted and self.tol > 0:
            warnings.warn(
                f"the bound still rises after max_iter={self.max_iter} sweeps; raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=4,
            )
        return model, result

    def _solve(self, Phi: Array, y: Array) -> Array:
        scale = _size(y[None])
        model, result = self._run(Phi[None], y[None] / scale[:, None])
        q: CodeBeliefs = result.params
        self.coef_std_ = np.sqrt(q.variances[0]) * scale[0]
        self.noise_variance_ = float(q.noise_rates[0] / model.shapes[1] * scale[0] ** 2)
        self.bound_ = float(result.elbo) - len(y) * math.log(float(scale[0]))
        self.n_iter_ = int(result.n_iter)
        return q.means[0] * scale[0]

    def _solve_many(self, Phi: Array, Y: Array) -> Array:
        found, scale = np.empty((len(Y), Phi.shape[-1])), _size(Y)
        for first in range(0, len(Y), CHUNK):
            rows = slice(first, first + CHUNK)
            matrices = Phi[None] if Phi.ndim == 2 else Phi[rows]
            result = self._run(matrices, Y[rows] / scale[rows, None])[1]
            found[rows] = result.params.means * scale[rows, None]
        return found


def _size(Y: Array) -> Array:
    """Root mean square of each row, 1 for a row of zeros."""
    largest = np.abs(Y).max(axis=1)
    largest[largest == 0] = 1.0
    return np.asarray(largest * np.maximum(np.sqrt(((Y / largest[:, None]) ** 2).mean(axis=1)), (Y == 0).all(axis=1)))
