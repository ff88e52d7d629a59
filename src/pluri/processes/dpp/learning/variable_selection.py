"""Variable selection in linear regression with a determinantal prior: correlated variables are rarely chosen together.

The prior of a set of variables is ``P(gamma) = det(L_gamma) / det(L + I)`` with ``L = c R``, R the correlation matrix
of the variables; c sets the expected number. With Zellner's g-prior on the coefficients the marginal likelihood is, up
to a constant, ``(1 + g)^((n - 1 - |gamma|) / 2) (1 + g (1 - R2_gamma))^(-(n - 1) / 2)``, where R2_gamma is the share of
variance that least squares on gamma explains. Sets are sampled by adding, deleting and swapping variables.

References
----------
Kojima and Komaki (2016), Determinantal point process priors for Bayesian variable selection in linear regression,
Statistica Sinica 26. Liang et al. (2008), Mixtures of g priors for Bayesian variable selection, JASA 103.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import solve_triangular
from sklearn.base import RegressorMixin
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from pluri.inference.mcmc import Sampled
from pluri.processes.dpp.sizes import scale_for_size
from pluri.processes.gp_inference.learning import one_thread_if_small
from pluri.validation import Allowed, Number, Only, Stored, as_generator, check_parameters
from pluri.validation.estimator import Estimator

Array = NDArray[np.float64]

#: Pivots of a correlation matrix below this count as zero: the variable depends on those before it.
DEPENDENT = 1e-7
#: A column that varies by less than this share of its entries is constant but for rounding.
CONSTANT = 1e-13


@dataclass(frozen=True, eq=False)
class SubsetPosterior:
    """Log posterior of sets of variables, up to a constant.

    Attributes
    ----------
    correlation : (n_features, n_features); zero rows for constant variables
    with_target : (n_features,): correlations with the target
    log_scale : log c
    g : spread of the prior of coefficients, in units of the sampling variance
    n_samples : int
    """

    correlation: Array
    with_target: Array
    log_scale: float
    g: float
    n_samples: int

    def solve(self, chosen: NDArray[np.int64]) -> tuple[float, float, Array]:
        """``log det R_gamma``, the share of variance explained, and least-squares coefficients (standardised)."""
        if not len(chosen):
            return 0.0, 0.0, np.zeros(0)
        nothing = (-math.inf, 0.0, np.zeros(len(chosen)))
        try:
            half = np.linalg.cholesky(self.correlation[np.ix_(chosen, chosen)])
        except np.linalg.LinAlgError:
            return nothing
        pivots = np.diagonal(half)
        if pivots.min() < DEPENDENT:
            return nothing
        projected = solve_triangular(half, self.with_target[chosen], lower=True, check_finite=False)
        coefficients = solve_triangular(half, projected, lower=True, trans=1, check_finite=False)
        return 2 * float(np.log(pivots).sum()), min(float(projected @ projected), 1.0), coefficients

    def __call__(self, position: NDArray[Any]) -> float:
        """Log posterior of a mask of zeros and ones."""
        chosen = np.flatnonzero(position)
        log_determinant, explained, _ = self.solve(chosen)
        if log_determinant == -math.inf:
            return -math.inf
        prior = len(chosen) * self.log_scale + log_determinant
        rest = self.n_samples - 1
        likelihood = 0.5 * (rest - len(chosen)) * math.log1p(self.g)
        return prior + likelihood - 0.5 * rest * math.log1p(self.g * (1 - explained))


def swap(rng: np.random.Generator, position: NDArray[np.int64]) -> NDArray[np.int64]:
    """Exchange a chosen variable for one that is not; as likely as the way back."""
    moved = position.copy()
    inside, outside = np.flatnonzero(position), np.flatnonzero(position == 0)
    if len(inside) and len(outside):
        moved[rng.choice(inside)] = 0
        moved[rng.choice(outside)] = 1
    return moved


def record_selected(position: NDArray[np.int64]) -> dict[str, Any]:
    """What a trace keeps: the mask, and how many variables it has."""
    return {"selected": position.astype(np.int8), "size": int(position.sum())}


class DPPVariableSelection(Sampled, SelectorMixin, RegressorMixin, Estimator):
    """Linear regression averaged over sets of variables, with a prior against choosing correlated ones together.

    Parameters
    ----------
    expected_size : float, optional
        Prior mean of the number of variables; a third of the variables by default.
    g : float, optional
        Of the g-prior: coefficients are shrunk by ``g / (1 + g)``. The number of samples by default.
    threshold : float, default=0.5
        Variables with at least this posterior probability are selected.
    n_draws, n_warmup, n_chains : int
        Sweeps of the sampler that are kept, those before, and number of chains.
    random_state : int, Generator, RandomState or None, default=None
    verbose : int, default=0

    Attributes
    ----------
    inclusion_ : array of shape (n_features,)
        Posterior probability that each variable belongs to the model.
    coef_ : array of shape (n_features,)
        Mean coefficients over the models drawn.
    intercept_ : float
    trace_ : `pluri.inference.mcmc.Trace`
        Draws: "selected", (n_chains, n_draws, n_features), and "size", the number of variables.
    converged_ : bool
        Whether the chains agree on the number of variables.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.processes.dpp.learning import DPPVariableSelection
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((60, 5))
    >>> y = X[:, 1] - X[:, 3] + 0.3 * rng.standard_normal(60)
    >>> DPPVariableSelection(n_draws=200, n_warmup=100, random_state=0).fit(X, y).get_support(indices=True)
    array([1, 3])
    """

    _fitted_layout: ClassVar[Mapping[str, Stored]] = {
        "inclusion_": Stored("n_features_in_"),
        "coef_": Stored("n_features_in_"),
    }

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        "expected_size": Number(above=0) | Only(None),
        "g": Number(above=0) | Only(None),
        "threshold": Number(least=0),
    }

    def __init__(
        self,
        expected_size: float | None = None,
        *,
        g: float | None = None,
        threshold: float = 0.5,
        n_draws: int = 500,
        n_warmup: int = 200,
        n_chains: int = 4,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.expected_size = expected_size
        self.g = g
        self.threshold = threshold
        self.n_draws = n_draws
        self.n_warmup = n_warmup
        self.n_chains = n_chains
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Sample sets of variables.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        y : array of shape (n_samples,)

        Returns
        -------
        self : object
        """
        from pluri.inference import mcmc

        check_parameters(self)
        data, target = validate_data(self, X, y, y_numeric=True, ensure_min_samples=2, dtype=np.float64)
        target = np.asarray(target, dtype=np.float64)
        center, middle = data.mean(axis=0), float(target.mean())
        sizes = np.abs(data).max(axis=0), float(np.abs(target).max())
        posterior, lengths, height = self._posterior(data - center, target - middle, *sizes)
        flips = mcmc.DiscreteFlip(posterior)
        swaps = mcmc.MetropolisHastings(posterior, swap, check_proposal=False)
        with one_thread_if_small(data.shape[1]):
            trace = mcmc.sample(
                mcmc.KernelCycle([flips, swaps]),
                np.zeros(data.shape[1], dtype=np.int64),
                record=record_selected,
                n_draws=self.n_draws,
                n_warmup=self.n_warmup,
                n_chains=self.n_chains,
                random_state=as_generator(self.random_state),
                verbose=self.verbose,
                warn=False,
            )
        self.trace_ = trace.detached()  # a kernel holds all the data
        masks, times = np.unique(self.trace_.flat("selected"), axis=0, return_counts=True)
        self.inclusion_ = times @ masks / times.sum()
        coefficients = np.zeros(data.shape[1])
        for mask, count in zip(masks, times.tolist()):
            chosen = np.flatnonzero(mask)
            coefficients[chosen] += count / times.sum() * posterior.solve(chosen)[2]
        shrinkage = posterior.g / (1 + posterior.g)
        self.coef_ = shrinkage * height * coefficients / np.where(lengths > 0, lengths, 1.0)
        self.intercept_ = middle - float(center @ self.coef_)
        self.converged_ = True
        if not trace.interrupted:
            verdict = trace.verdict("size", limit=mcmc.LATENT_R_HAT_LIMIT)
            self.converged_ = verdict.settled
            verdict.warn()
        return self

    def _posterior(
        self, X: Array, y: Array, largest: Array | None = None, y_largest: float | None = None
    ) -> tuple[SubsetPosterior, Array, float]:
        """The target of the sampler, for centred data, with the lengths of the columns and of y.

        ``largest`` and ``y_largest`` are the largest entries of the columns and of y before they were centred.
        """
        largest = np.abs(X).max(axis=0) if largest is None else largest
        units = np.where(largest > 0, largest, 1.0)
        y_unit = (float(np.abs(y).max()) if y_largest is None else y_largest) or 1.0
        unit, y = X / units, y / y_unit
        lengths, height = np.linalg.norm(unit, axis=0), float(np.linalg.norm(y))
        # Rounding of a constant column must not look like a variable, nor that of a constant target like a response.
        lengths = np.where(lengths > CONSTANT * np.sqrt(len(X)), lengths, 0.0)
        height = height if height > CONSTANT * np.sqrt(len(X)) else 0.0
        unit *= np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)
        correlation = unit.T @ unit
        odds = np.maximum(np.linalg.eigvalsh(correlation), 0.0)
        odds = odds[odds > DEPENDENT]
        size = len(odds) / 3 if self.expected_size is None else self.expected_size
        if odds.size and not size < len(odds):
            raise ValueError(
                f"expected_size must be below the rank of the variables ({len(odds)}), got {self.expected_size!r}"
            )
        scale = float(scale_for_size(odds, size)) if odds.size else 1.0
        g = float(len(X)) if self.g is None else float(self.g)
        with_target = unit.T @ y / height if height > 0 else np.zeros(X.shape[1])
        return SubsetPosterior(correlation, with_target, math.log(scale), g, len(X)), lengths * units, height * y_unit

    def predict(self, X: ArrayLike) -> Array:
        """Mean prediction over the models drawn: (n_samples,)."""
        check_is_fitted(self, "coef_")
        data = validate_data(self, X, reset=False, dtype=np.float64)
        return np.asarray(data @ self.coef_ + self.intercept_)

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self, "inclusion_")
        return np.asarray(self.inclusion_ >= self.threshold)
