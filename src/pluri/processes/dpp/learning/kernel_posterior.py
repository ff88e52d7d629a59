"""Parameters of a kernel under a prior, sampled; see `kernel_parameters` for the family and its likelihood."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.processes.dpp.learning.kernel_parameters import KernelFamily, kernel_family
from pluri.validation import Only, RandomState, check_value

Array = NDArray[np.float64]
KernelFunction = Callable[[Array], Any]


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
