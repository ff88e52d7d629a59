"""Entropies and Kullback-Leibler divergences of the usual conjugate families, in closed form.

All are in nats and ``KL(p || q)`` of two members of one family. Gamma distributions are given by shape and rate,
Wishart distributions by degrees of freedom and scale (mean ``df * scale``). Parameters broadcast, except for matrices.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaln, digamma, gammaln, multigammaln, rel_entr

from pluri.metrics.entropies import kl_divergence
from pluri.metrics.gaussian_information import cholesky_factor, log_determinant_of

Array = NDArray[np.float64]


def _positive(value: ArrayLike, name: str) -> Array:
    array = np.asarray(value, dtype=np.float64)
    if not (np.isfinite(array) & (array > 0)).all() or not array.size:
        raise ValueError(f"{name} must be positive and finite, got {value!r}")
    return array


def _result(nats: ArrayLike) -> float | Array:
    value = np.asarray(nats)
    return float(value) if value.ndim == 0 else value


def categorical_kl(p: ArrayLike, q: ArrayLike) -> float | Array:
    """KL divergence of two tables of probabilities: `pluri.metrics.kl_divergence` in nats.

    Examples
    --------
    >>> from pluri.metrics import categorical_kl
    >>> categorical_kl([0.5, 0.5], [0.25, 0.75])
    0.1438410
    """
    return kl_divergence(p, q)


def bernoulli_kl(p: ArrayLike, q: ArrayLike) -> float | Array:
    """KL divergence of two coins with head probabilities `p` and `q`.

    Examples
    --------
    >>> from pluri.metrics import bernoulli_kl
    >>> bernoulli_kl(0.5, 0.25)
    0.1438410
    """
    first, second = np.asarray(p, dtype=np.float64), np.asarray(q, dtype=np.float64)
    for name, value in (("p", first), ("q", second)):
        if not ((value >= 0) & (value <= 1)).all():
            raise ValueError(f"{name} must lie between 0 and 1, got {value!r}")
    return _result(np.maximum(rel_entr(first, second) + rel_entr(1 - first, 1 - second), 0.0))


def beta_entropy(a: ArrayLike, b: ArrayLike) -> float | Array:
    """Differential entropy of Beta(a, b).

    Examples
    --------
    >>> from pluri.metrics import beta_entropy
    >>> beta_entropy(1.0, 1.0)
    0.0
    """
    a, b = _positive(a, "a"), _positive(b, "b")
    nats = betaln(a, b) - (a - 1) * digamma(a) - (b - 1) * digamma(b) + (a + b - 2) * digamma(a + b)
    return _result(nats + 0.0)


def beta_kl(a_p: ArrayLike, b_p: ArrayLike, a_q: ArrayLike, b_q: ArrayLike) -> float | Array:
    """KL divergence of Beta(a_q, b_q) from Beta(a_p, b_p).

    Examples
    --------
    >>> from pluri.metrics import beta_kl
    >>> beta_kl(2.0, 1.0, 1.0, 1.0)
    0.1931471
    """
    a_p, b_p, a_q, b_q = (_positive(v, n) for v, n in ((a_p, "a_p"), (b_p, "b_p"), (a_q, "a_q"), (b_q, "b_q")))
    nats = betaln(a_q, b_q) - betaln(a_p, b_p) + (a_p - a_q) * digamma(a_p) + (b_p - b_q) * digamma(b_p)
    return _result(np.maximum(nats + (a_q - a_p + b_q - b_p) * digamma(a_p + b_p), 0.0))


def dirichlet_entropy(alpha: ArrayLike) -> float | Array:
    """Differential entropy of a Dirichlet distribution; `alpha` has its parameters on the last axis.

    Examples
    --------
    >>> from pluri.metrics import dirichlet_entropy
    >>> dirichlet_entropy([1.0, 1.0, 1.0])
    -0.6931472
    """
    a = np.atleast_1d(_positive(alpha, "alpha"))
    total = a.sum(axis=-1)
    log_constant = gammaln(a).sum(axis=-1) - gammaln(total)
    return _result(log_constant + (total - a.shape[-1]) * digamma(total) - ((a - 1) * digamma(a)).sum(axis=-1))


def dirichlet_kl(alpha_p: ArrayLike, alpha_q: ArrayLike) -> float | Array:
    """KL divergence of two Dirichlet distributions; parameters on the last axis.

    Examples
    --------
    >>> from pluri.metrics import dirichlet_kl
    >>> dirichlet_kl([2.0, 1.0], [1.0, 1.0])
    0.1931471
    """
    p, q = np.atleast_1d(_positive(alpha_p, "alpha_p")), np.atleast_1d(_positive(alpha_q, "alpha_q"))
    if p.shape[-1] != q.shape[-1]:
        raise ValueError(f"alpha_p and alpha_q must have equal last axes, got shapes {p.shape} and {q.shape}")
    total = p.sum(axis=-1, keepdims=True)
    nats = gammaln(total[..., 0]) - gammaln(p).sum(axis=-1) - gammaln(q.sum(axis=-1)) + gammaln(q).sum(axis=-1)
    return _result(np.maximum(nats + ((p - q) * (digamma(p) - digamma(total))).sum(axis=-1), 0.0))


def gamma_entropy(shape: ArrayLike, rate: ArrayLike) -> float | Array:
    """Differential entropy of a gamma distribution.

    Examples
    --------
    >>> from pluri.metrics import gamma_entropy
    >>> gamma_entropy(1.0, 1.0)
    1.0
    """
    a, b = _positive(shape, "shape"), _positive(rate, "rate")
    return _result(a - np.log(b) + gammaln(a) + (1 - a) * digamma(a))


def gamma_kl(shape_p: ArrayLike, rate_p: ArrayLike, shape_q: ArrayLike, rate_q: ArrayLike) -> float | Array:
    """KL divergence of two gamma distributions.

    Examples
    --------
    >>> from pluri.metrics import gamma_kl
    >>> gamma_kl(1.0, 2.0, 1.0, 1.0)
    0.1931471
    """
    a_p, b_p = _positive(shape_p, "shape_p"), _positive(rate_p, "rate_p")
    a_q, b_q = _positive(shape_q, "shape_q"), _positive(rate_q, "rate_q")
    return _result(gamma_kl_of_checked(a_p, b_p, a_q, b_q))


def gamma_kl_of_checked(a_p: Any, b_p: Any, a_q: Any, b_q: Any) -> Any:
    """`gamma_kl` of numbers or arrays that are known to be positive, for an ascent that asks at each step."""
    nats = (a_p - a_q) * digamma(a_p) - gammaln(a_p) + gammaln(a_q)
    return np.maximum(nats + a_q * np.log(b_p / b_q) + a_p * (b_q - b_p) / b_p, 0.0)


def _wishart(df: float, scale: ArrayLike, suffix: str) -> tuple[float, Array]:
    factor = cholesky_factor(scale, f"scale{suffix}")
    if not (np.ndim(df) == 0 and np.isfinite(df) and df > len(factor) - 1):
        raise ValueError(f"df{suffix} must be a number above {len(factor) - 1}, one less than the size, got {df!r}")
    return float(df), factor


def _multivariate_digamma(value: float, size: int) -> float:
    return float(digamma(value - np.arange(size) / 2).sum())


def wishart_entropy(df: float, scale: ArrayLike) -> float:
    """Differential entropy of a Wishart distribution.

    Examples
    --------
    >>> from pluri.metrics import wishart_entropy
    >>> wishart_entropy(2.0, 0.5)
    1.0
    """
    df, factor = _wishart(df, scale, "")
    d = len(factor)
    nats = (d + 1) / 2 * log_determinant_of(factor) + d * (d + 1) / 2 * np.log(2) + multigammaln(df / 2, d)
    return float(nats - (df - d - 1) / 2 * _multivariate_digamma(df / 2, d) + df * d / 2)


def wishart_kl(df_p: float, scale_p: ArrayLike, df_q: float, scale_q: ArrayLike) -> float:
    """KL divergence of two Wishart distributions.

    Parameters
    ----------
    df_p, df_q : float
        Degrees of freedom, above d - 1.
    scale_p, scale_q : float or array-like of shape (d, d)

    Examples
    --------
    >>> from pluri.metrics import wishart_kl
    >>> wishart_kl(2.0, 0.25, 2.0, 0.5)
    0.1931471
    """
    df_p, factor_p = _wishart(df_p, scale_p, "_p")
    df_q, factor_q = _wishart(df_q, scale_q, "_q")
    d = len(factor_p)
    if len(factor_q) != d:
        raise ValueError(f"scale_q must have the shape of scale_p, {(d, d)}, got {factor_q.shape}")
    ratio = log_determinant_of(factor_q) - log_determinant_of(factor_p)
    trace = float((np.linalg.solve(factor_q, factor_p) ** 2).sum())
    nats = df_q / 2 * ratio + df_p / 2 * (trace - d) + multigammaln(df_q / 2, d) - multigammaln(df_p / 2, d)
    return max(float(nats + (df_p - df_q) / 2 * _multivariate_digamma(df_p / 2, d)), 0.0)
