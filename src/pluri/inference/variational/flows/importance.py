"""Importance weights of an approximation: the evidence, and how far the approximation can be trusted.

With draws ``z_s ~ q`` and ``log w_s = log p~(z_s) - log q(z_s)``: the mean of log w is the evidence lower bound, the
log of the mean of w estimates log Z, and the tail of w says whether that mean exists. The tail is fitted by a
generalised Pareto distribution; its shape k below 0.5 means finite variance, above 0.7 that q misses part of p.

References
----------
Vehtari, Simpson, Gelman, Yao and Gabry (2024), Pareto smoothed importance sampling, JMLR 25.
Zhang and Stephens (2009), A new and efficient estimation method for the generalized Pareto distribution, Technometrics.
Yao, Vehtari, Simpson and Gelman (2018), Yes, but did it work? Evaluating variational inference, ICML.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pluri.inference.variational.flows.layer import Array


@dataclass(frozen=True)
class Evidence:
    """What importance weights say.

    Attributes
    ----------
    elbo, elbo_standard_error : mean of the log weights, a lower bound of log Z in expectation
    log_z, log_z_standard_error : log of the mean weight, and its standard error by the delta method
    effective_sample_size : (sum w)^2 / sum w^2
    pareto_k : shape of the tail of the weights; NaN with fewer than 21 samples
    n_samples : number of draws
    """

    elbo: float
    elbo_standard_error: float
    log_z: float
    log_z_standard_error: float
    effective_sample_size: float
    pareto_k: float
    n_samples: int


def evidence(log_weights: Array) -> Evidence:
    """Summarise log importance weights.

    Examples
    --------
    A normal density times 3, approximated by itself: all weights are 3.

    >>> import numpy as np
    >>> from pluri.inference.variational.flows import evidence
    >>> found = evidence(np.full(100, np.log(3.0)))
    >>> found.log_z, found.elbo, found.effective_sample_size
    (1.0986, 1.0986, 100.0)
    """
    n_samples = len(log_weights)
    largest = log_weights.max()
    weights = np.exp(log_weights - largest)
    mean = weights.mean()
    spread = weights.std(ddof=1) / np.sqrt(n_samples) if n_samples > 1 else np.nan
    return Evidence(
        elbo=float(log_weights.mean()),
        elbo_standard_error=float(log_weights.std(ddof=1) / np.sqrt(n_samples)) if n_samples > 1 else np.nan,
        log_z=float(largest + np.log(mean)),
        log_z_standard_error=float(spread / mean),
        effective_sample_size=float(weights.sum() ** 2 / (weights**2).sum()),
        pareto_k=pareto_shape(log_weights),
        n_samples=n_samples,
    )


def pareto_shape(log_weights: Array) -> float:
    """Shape k of a generalised Pareto distribution fitted to the largest weights; -inf if these are all equal.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference.variational.flows.importance import pareto_shape
    >>> heavy = -0.8 * np.log(np.random.default_rng(0).random(10_000))  # weights U^-0.8 have the shape 0.8
    >>> abs(pareto_shape(heavy) - 0.8) < 0.2
    True
    """
    n_samples = len(log_weights)
    n_tail = int(np.ceil(min(0.2 * n_samples, 3.0 * np.sqrt(n_samples))))
    if n_tail < 5:
        return float("nan")
    ordered = np.sort(log_weights)
    excess = np.exp(ordered[-n_tail:] - ordered[-1]) - np.exp(ordered[-n_tail - 1] - ordered[-1])
    excess = np.sort(excess)
    if excess[-1] <= 1e-12:
        return float("-inf")
    excess = np.maximum(excess, 1e-300)
    # Zhang and Stephens: the posterior mean of theta = -k / sigma over a grid that depends on the data.
    n_grid = 30 + int(np.sqrt(n_tail))
    quartile = excess[int(n_tail / 4 + 0.5) - 1]
    theta = 1.0 / excess[-1] + (1.0 - np.sqrt(n_grid / (np.arange(1, n_grid + 1) - 0.5))) / (3.0 * quartile)
    shapes = np.log1p(-theta[:, None] * excess).mean(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        profile = n_tail * (np.log(-theta / shapes) - shapes - 1.0)
    profile = np.where(np.isfinite(profile), profile, -np.inf)
    weights = np.exp(profile - profile.max())
    best = (weights @ theta) / weights.sum()
    shape = np.log1p(-best * excess).mean()
    return float((n_tail * shape + 5.0) / (n_tail + 10.0))  # a weak prior around 0.5, as in the reference
