"""Parameters of a kernel function (a length scale, a quality) from observed subsets: maximised, or sampled under a
prior.

For any ``L(theta)``, ``dl/dtheta_j = sum(Delta * dL/dtheta_j)`` with Delta the gradient of the mean log-likelihood with
respect to L. The likelihood is not concave: use several starts, or look at the whole posterior.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from pluri.inference import History
from pluri.inference.ascent import climb
from pluri.processes.dpp.learning.likelihood import impossible_subset, kernel_value, kernel_value_and_gradient
from pluri.processes.dpp.learning.observations import SubsetCounts, count_subsets
from pluri.validation import Only, RandomState, Whole, as_generator, check_value
from pluri.validation.interruption import interruptible

Array = NDArray[np.float64]
KernelFunction = Callable[[Array], Any]


#: Relative step of central differences, about the cube root of the rounding error.
DIFFERENCE = 6e-6


@dataclass(frozen=True, eq=False)
class KernelParameterFit:
    """Maximum-likelihood parameters of a kernel function.

    Attributes
    ----------
    parameters : (n_parameters,)
    L : (n_items, n_items): the kernel there
    log_likelihood : mean log-likelihood there
    n_iter : iterations of the best run
    converged, interrupted : bool
    history : objective of all runs, the mean log-likelihood
    """

    parameters: Array
    L: Array
    log_likelihood: float
    n_iter: int
    converged: bool
    interrupted: bool
    history: History


@dataclass(frozen=True, eq=False)
class KernelFamily:
    """Mean log-likelihood as a function of free coordinates: logarithms of the parameters that are positive.

    Attributes
    ----------
    kernel_function : theta -> L, (n_items, n_items)
    counts : SubsetCounts
    positive : (n_parameters,): which parameters are positive
    gradient : theta -> dL/dtheta, (n_parameters, n_items, n_items); central differences if None
    """

    kernel_function: KernelFunction
    counts: SubsetCounts
    positive: NDArray[np.bool_]
    gradient: KernelFunction | None = None

    def free(self, theta: Array) -> Array:
        """Free coordinates of parameters."""
        return np.where(self.positive, np.log(np.where(self.positive, theta, 1.0)), theta)

    def theta(self, free: Array) -> Array:
        """Parameters of free coordinates."""
        with np.errstate(over="ignore"):
            return np.where(self.positive, np.exp(np.where(self.positive, free, 0.0)), free)

    def kernel(self, theta: Array) -> Array:
        """The kernel, checked."""
        L = np.asarray(self.kernel_function(theta), dtype=np.float64)
        shape = (self.counts.n_items, self.counts.n_items)
        if L.shape != shape:
            raise ValueError(f"kernel_function must give a matrix of shape {shape}, got {L.shape}")
        return L

    def value(self, free: Array) -> float:
        """Mean log-likelihood; -inf where the kernel is not finite or a subset is impossible."""
        theta = self.theta(free)
        if not np.isfinite(theta).all():
            return -math.inf
        with np.errstate(all="ignore"):
            L = self.kernel(theta)
        return kernel_value(L, self.counts) if np.isfinite(L).all() else -math.inf

    def __call__(self, free: Array) -> tuple[float, Array]:
        """Mean log-likelihood and its gradient with respect to the free coordinates."""
        nowhere = (-math.inf, np.zeros(len(free)))
        theta = self.theta(free)
        if not np.isfinite(theta).all():
            return nowhere
        with np.errstate(all="ignore"):
            L = self.kernel(theta)
            if not np.isfinite(L).all():
                return nowhere
            value, slope = kernel_value_and_gradient(L, self.counts)
            if not math.isfinite(value):
                return nowhere
            if self.gradient is None:
                changes = self._differences(free)
            else:
                changes = np.asarray(self.gradient(theta), dtype=np.float64)
                if changes.shape != (len(free), *L.shape):
                    raise ValueError(f"gradient must give shape {(len(free), *L.shape)}, got {changes.shape}")
                changes = changes * np.where(self.positive, theta, 1.0)[:, None, None]
        return value, np.einsum("jik,ik->j", changes, slope)

    def _differences(self, free: Array) -> Array:
        changes = np.empty((len(free), self.counts.n_items, self.counts.n_items))
        for index in range(len(free)):
            step = DIFFERENCE * max(1.0, abs(free[index]))
            there, back = free.copy(), free.copy()
            there[index] += step
            back[index] -= step
            difference = self.kernel(self.theta(there)) - self.kernel(self.theta(back))
            changes[index] = difference / (there[index] - back[index])
        return changes


def kernel_family(
    kernel_function: KernelFunction, theta0: ArrayLike, subsets: Any, sample_weight: ArrayLike | None,
    positive: ArrayLike, gradient: KernelFunction | None,
) -> tuple[KernelFamily, Array]:  # fmt: skip
    """The objective, and the free coordinates to start from."""
    theta = np.atleast_1d(np.asarray(theta0, dtype=np.float64))
    if theta.ndim != 1 or not theta.size or not np.isfinite(theta).all():
        raise ValueError(f"theta0 must be a vector of finite parameters, got {theta0!r}")
    signs = np.asarray(positive, dtype=bool)
    if signs.shape not in ((), theta.shape):
        raise ValueError(
            f"positive must be a boolean or one for each parameter ({len(theta)}), got shape {signs.shape}"
        )
    signs = np.broadcast_to(signs, theta.shape)
    if (theta[signs] <= 0).any():
        raise ValueError(f"theta0 must be positive where positive is True, got {theta.tolist()}")
    if not callable(kernel_function):
        raise ValueError(f"kernel_function must be a function of the parameters, got {kernel_function!r}")
    L = np.asarray(kernel_function(theta), dtype=np.float64)
    if L.ndim != 2 or L.shape[0] != L.shape[1] or not np.isfinite(L).all():
        raise ValueError(f"kernel_function must give a finite square matrix at theta0, got shape {L.shape}")
    counts = count_subsets(subsets, len(L), sample_weight)
    if kernel_value(L, counts) == -math.inf:
        raise ValueError(f"theta0 must make all subsets possible, but {impossible_subset(L, counts, False)}")
    family = KernelFamily(kernel_function, counts, signs, gradient)
    return family, family.free(theta)


@interruptible
def fit_kernel_parameters(
    kernel_function: KernelFunction,
    theta0: ArrayLike,
    subsets: Any,
    *,
    gradient: KernelFunction | None = None,
    positive: ArrayLike = False,
    sample_weight: ArrayLike | None = None,
    n_init: int = 1,
    spread: float = 1.0,
    max_iter: int = 200,
    tol: float = 1e-10,
    random_state: RandomState = None,
    verbose: int = 0,
) -> KernelParameterFit:
    """Maximise the likelihood of subsets over the parameters of a kernel function, by L-BFGS.

    Parameters
    ----------
    kernel_function : callable
        Parameters (n_parameters,) to the kernel L (n_items, n_items).
    theta0 : array of shape (n_parameters,)
        Where to start.
    subsets : list of subsets, or SubsetCounts
    gradient : callable, optional
        Parameters to dL/dtheta, (n_parameters, n_items, n_items). Without it the kernel function is differenced, which
        calls it twice per parameter.
    positive : bool or array of bool, default=False
        Which parameters are positive; these are moved on the logarithmic scale.
    sample_weight : array of shape (n_subsets,), optional
    n_init : int, default=1
        Number of starts; those after the first are spread around it.
    spread : float, default=1.0
        Standard deviation of the other starts, on the logarithmic scale for positive parameters.
    max_iter, tol
        Most iterations of a run, and the relative gain at which it ends.
    random_state : int, Generator, RandomState or None
    verbose : int, default=0

    Returns
    -------
    KernelParameterFit

    Examples
    --------
    The length scale of points on a line.

    >>> import numpy as np
    >>> from pluri.processes.dpp import DPP
    >>> from pluri.processes.dpp.learning import fit_kernel_parameters
    >>> squares = np.subtract.outer(np.arange(8.0), np.arange(8.0)) ** 2
    >>> def kernel(theta):
    ...     return theta[1] * np.exp(-squares / (2 * theta[0] ** 2))
    >>> subsets = DPP(kernel([1.0, 2.0])).sample(2000, random_state=0)
    >>> fit = fit_kernel_parameters(kernel, [0.3, 1.0], subsets, positive=True)
    >>> bool(np.abs(fit.parameters - [1.0, 2.0]).max() < 0.2)
    True
    """
    check_value(n_init, "n_init", Whole(1))
    check_value(max_iter, "max_iter", Whole(1))
    family, first = kernel_family(kernel_function, theta0, subsets, sample_weight, positive, gradient)
    streams = as_generator(random_state).spawn(n_init)
    starts = [first, *(first + spread * rng.standard_normal(len(first)) for rng in streams[1:])]
    top = climb(family, starts, max_iter=max_iter, tol=tol, verbose=verbose)
    if top.reason in ("max_iter", "stopped"):
        warnings.warn(
            f"the likelihood still rose after {top.n_iter} iterations: raise max_iter ({max_iter}) or start elsewhere",
            ConvergenceWarning,
            stacklevel=2,
        )
    theta = family.theta(top.point)
    return KernelParameterFit(
        theta, family.kernel(theta), top.objective, top.n_iter, top.converged, top.interrupted, top.history
    )


@dataclass(frozen=True, eq=False)
class KernelPosterior:
    """Log posterior density of the free coordinates; a record, so that chains can be sent to other processes."""

    family: KernelFamily
    center: Array
    prior_scale: Array
    log_prior: Callable[[Array], float] | None

    def __call__(self, free: Array) -> float:
        """Log density up to a constant."""
        if self.log_prior is None:
            offset = (free - self.center) / self.prior_scale
            prior = -0.5 * float(offset @ offset)
        else:
            # The density of a logarithm is that of the parameter times the parameter.
            prior = float(self.log_prior(self.family.theta(free))) + float(free[self.family.positive].sum())
        if not prior > -math.inf:
            return -math.inf
        return self.family.counts.total * self.family.value(free) + prior

    def record(self, free: Array) -> dict[str, Array]:
        """The parameters themselves."""
        return {"theta": self.family.theta(free)}


def sample_kernel_parameters(
    kernel_function: KernelFunction,
    theta0: ArrayLike,
    subsets: Any,
    *,
    log_prior: Callable[[Array], float] | None = None,
    prior_scale: ArrayLike = 2.0,
    positive: ArrayLike = True,
    sample_weight: ArrayLike | None = None,
    inference: Literal["slice", "random_walk"] = "slice",
    n_draws: int = 1000,
    n_warmup: int = 500,
    n_chains: int = 4,
    random_state: RandomState = None,
    **options: Any,
) -> Any:
    """Draw the parameters of a kernel function from their posterior.

    Parameters
    ----------
    kernel_function, theta0, subsets, positive, sample_weight
        As in `fit_kernel_parameters`; parameters are positive by default.
    log_prior : callable, optional
        Parameters to their log prior density. Without it each free coordinate (the logarithm of a positive parameter)
        is normal around `theta0`.
    prior_scale : float or array, default=2.0
        Standard deviation of these normal priors.
    inference : {"slice", "random_walk"}, default="slice"
    n_draws, n_warmup, n_chains, random_state, **options
        For `pluri.inference.mcmc.sample`.

    Returns
    -------
    Trace
        With the variable "theta": (n_chains, n_draws, n_parameters).

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.processes.dpp.learning import sample_kernel_parameters
    >>> trace = sample_kernel_parameters(
    ...     lambda theta: theta[0] * np.eye(2), [1.0], [[0], [1], [0, 1], []] * 20, n_draws=300, n_warmup=100,
    ...     random_state=0,
    ... )
    >>> bool(abs(np.log(trace["theta"]).mean()) < 0.1)  # the odds of an item are 1, its log odds 0
    True
    """
    from pluri.inference import mcmc

    check_value(inference, "inference", Only("slice", "random_walk"))
    family, first = kernel_family(kernel_function, theta0, subsets, sample_weight, positive, None)
    scale = np.asarray(prior_scale, dtype=np.float64)
    if scale.shape not in ((), first.shape) or not (np.isfinite(scale) & (scale > 0)).all():
        raise ValueError(f"prior_scale must be positive, a number or one for each parameter, got {prior_scale!r}")
    posterior = KernelPosterior(family, first, np.broadcast_to(scale, first.shape), log_prior)
    kernel: Any = mcmc.Slice(posterior) if inference == "slice" else mcmc.RandomWalk(posterior)
    return mcmc.sample(
        kernel, first, record=posterior.record, n_draws=n_draws, n_warmup=n_warmup, n_chains=n_chains,
        random_state=random_state, **options,
    )  # fmt: skip
