"""Importance weights of an approximation: the evidence, and how far the approximation can be trusted.

With draws ``z_s ~ q`` and ``log w_s = log p~(z_s) - log q(z_s)``: the mean of log w is the evidence lower bound, the
log of the mean of w estimates log Z, and the tail of w says whether that mean exists. The tail is fitted by a
generalised Pareto distribution; its shape k below 0.5 means finite variance, above 0.7 that q misses part of p.

References
----------
Vehtari, Simpson, Gelman, Yao and Gabry (2024), Pareto smoothed importance sampling, JMLR 25.
Yao, Vehtari, Simpson and Gelman (2018), Yes, but did it work? Evaluating variational inference, ICML.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pluri.inference.ais.pareto_tail import smooth_log_weights
from pluri.inference.variational.flows.layer import Array


@dataclass(frozen=True)
class Evidence:
    """What importance weights say.

    Attributes
    ----------
    elbo, elbo_standard_error : mean of the log weights, a lower bound of log Z in expectation
    log_z, log_z_standard_error : log of the mean weight, and its standard error by the delta method
    effective_sample_size : (sum w)^2 / sum w^2
    pareto_k : shape of the tail of the weights; NaN with fewer than 25 samples
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
    return smooth_log_weights(log_weights)[1]
