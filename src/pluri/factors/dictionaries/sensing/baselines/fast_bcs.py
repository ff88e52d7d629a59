"""Fast Bayesian compressive sensing: precisions of the coefficients that maximise the evidence, one at a time.

    y = Phi w + noise,   w_k ~ N(0, 1 / a_k),   noise ~ N(0, v)
    log evidence  L(a) = log N(y; 0, C),   C = v I + Phi A^-1 Phi'

As a function of one precision L has a single maximum, in closed form: with ``s = phi' C_k^-1 phi`` and
``q = phi' C_k^-1 y``, C_k without atom k, it is ``a = s^2 / (q^2 - s)`` if ``q^2 > s``, and infinite otherwise, which
leaves the atom out. Each step makes the one change (an atom joins, leaves or gets another precision) that gains most.

References
----------
Tipping and Faul (2003), Fast marginal likelihood maximisation for sparse Bayesian models, AISTATS.
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
from sklearn.exceptions import ConvergenceWarning

from pluri.factors.dictionaries.sensing.baselines.interface import SparseRegression
from pluri.inference.variational import coordinate_ascent
from pluri.validation import Allowed, Number, Only, Stored

Array = NDArray[np.float64]

#: Share of the mean square of the measurements that is noise, if nothing is said.
NOISE_SHARE = 0.01


@dataclass(frozen=True, eq=False)
class Relevance:
    """Precisions (inf: not in use), and what follows from them.

    Attributes
    ----------
    precisions : (K,)
    strengths : (K,): ``phi_k' C^-1 phi_k``
    qualities : (K,): ``phi_k' C^-1 y``
    log_evidence : float
    """

    precisions: Array
    strengths: Array
    qualities: Array
    log_evidence: float


@dataclass(frozen=True, eq=False)
class EvidenceAscent:
    """The ascent as `pluri.inference.variational.coordinate_ascent` runs it: a sweep is one change."""

    Phi: Array
    y: Array
    noise_variance: float

    def initialize(self, data: Any, rng: np.random.Generator) -> Relevance:
        """No atom in use."""
        return self.at(np.full(self.Phi.shape[1], np.inf))

    def at(self, precisions: Array) -> Relevance:
        """What follows from precisions."""
        used = np.isfinite(precisions)
        active = self.Phi[:, used]
        C = self.noise_variance * np.eye(len(self.y)) + (active / precisions[used]) @ active.T
        root = np.linalg.cholesky(C)
        half, target = np.linalg.solve(root, self.Phi), np.linalg.solve(root, self.y)
        log_det = 2 * float(np.log(np.diagonal(root)).sum())
        value = -0.5 * (len(self.y) * math.log(2 * math.pi) + log_det + float(target @ target))
        return Relevance(precisions, (half**2).sum(axis=0), half.T @ target, value)

    def elbo(self, params: Relevance, data: Any) -> float:
        """The log evidence itself."""
        return params.log_evidence

    def update(self, params: Relevance, data: Any) -> Relevance:
        """The change that gains most; none if nothing gains."""
        target, gain = best_changes(params)
        k = int(np.argmax(gain))
        if not gain[k] > 0:
            return params
        precisions = params.precisions.copy()
        precisions[k] = target[k]
        return self.at(precisions)


def best_changes(params: Relevance) -> tuple[Array, Array]:
    """The best precision of each atom given the others, and what it gains in log evidence: (K,) and (K,)."""
    a, S, Q = params.precisions, params.strengths, params.qualities
    used = np.isfinite(a)
    with np.errstate(divide="ignore", invalid="ignore"):
        # S and Q include atom k itself if it is in use; s and q do not.
        without = np.where(used, a / (a - S), 1.0)
        s, q = without * S, without * Q
        surplus = q**2 - s
        best = np.where(surplus > 0, s**2 / surplus, np.inf)
        # 2 L as a function of one precision: log a - log(a + s) + q^2 / (a + s), which tends to 0.
        value = np.where(surplus > 0, -np.log1p(s / best) + q**2 / (best + s), 0.0)
        now = np.where(used, -np.log1p(s / a) + q**2 / (a + s), 0.0)
    gain = 0.5 * np.where(S > 0, value - now, 0.0)
    return np.where(S > 0, best, np.inf), np.nan_to_num(gain, nan=0.0)


class FastBCS(SparseRegression):
    """Bayesian compressive sensing by sequential maximisation of the evidence.

    Parameters
    ----------
    noise_variance : float or None, default=None
        Variance of the noise of the measurements; None is a hundredth of their mean square.
    max_iter : int, default=500
        Changes at most.
    tol : float, default=1e-8
        The ascent ends when the best change gains less than this share of the log evidence.

    Attributes
    ----------
    coef_ : array of shape (n_atoms,)
        Posterior mean of the code; zero for atoms that are not in use.
    coef_std_ : array of shape (n_atoms,)
        Its standard deviation, zero for the same atoms.
    log_evidence_ : float
    noise_variance_ : float
    n_iter_ : int
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.factors.dictionaries.sensing import FastBCS
    >>> rng = np.random.default_rng(0)
    >>> Phi, code = rng.normal(size=(20, 40)), np.zeros(40)
    >>> code[[3, 17]] = 2.0, -1.0
    >>> found = FastBCS(noise_variance=1e-4).fit(Phi, Phi @ code + 0.01 * rng.normal(size=20)).coef_
    >>> np.flatnonzero(np.abs(found) > 0.1).tolist()
    [3, 17]
    """

    _parameters: ClassVar[Mapping[str, Allowed]] = {"noise_variance": Number(above=0) | Only(None)}
    _fitted_layout: ClassVar[Mapping[str, Stored]] = {
        "coef_": Stored("n_features_in_"),
        "coef_std_": Stored("n_features_in_", least=0),
    }

    def __init__(self, *, noise_variance: float | None = None, max_iter: int = 500, tol: float = 1e-8) -> None:
        self.noise_variance = noise_variance
        self.max_iter = max_iter
        self.tol = tol

    def _solve(self, Phi: Array, y: Array) -> Array:
        size = float(np.abs(y).max()) or 1.0
        mean_square = float(((y / size) ** 2).mean()) or 1.0
        noise = NOISE_SHARE * mean_square if self.noise_variance is None else self.noise_variance / size**2
        model = EvidenceAscent(Phi, y / size, max(noise, np.finfo(float).tiny))
        result = coordinate_ascent(
            model, None, rng=np.random.default_rng(0), max_iter=int(self.max_iter), tol=float(self.tol)
        )
        if not result.converged and not result.interrupted and self.tol > 0:
            warnings.warn(
                f"the evidence still rises after max_iter={self.max_iter} changes; raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=4,
            )
        found: Relevance = result.params
        a, used = found.precisions, np.isfinite(found.precisions)
        coef, variance = np.zeros(len(a)), np.zeros(len(a))
        coef[used] = found.qualities[used] / a[used]
        variance[used] = np.maximum(1 / a[used] - found.strengths[used] / a[used] ** 2, 0.0)
        self.coef_std_ = np.sqrt(variance) * size
        self.noise_variance_ = model.noise_variance * size**2
        self.log_evidence_ = float(result.elbo) - len(y) * math.log(size)
        self.n_iter_ = int(result.n_iter)
        return coef * size
