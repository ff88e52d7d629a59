"""Conditional distributions of a dictionary and its codes, as functions of arrays: what Gibbs samplers are made of.

Given the dictionary, rows are independent: z and s of a row are drawn atom after atom (`draw_codes`). Given the codes,
the features of the dictionary are independent, and all atoms are drawn at once (`draw_components`): feature p has

    precision  P I + sum_i g_i w_i w_i'   and linear term  sum_i g_i x_ip w_i,   over the rows in which it is there
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, solve_triangular

from pluri.factors.dictionaries._code_kernels import (
    CodePrior,
    CodeState,
    Draws,
    add_products,
    draw_codes_with_gram,
    draw_codes_with_residuals,
)
from pluri.factors.dictionaries.records import Array, Floats, Rows

#: Entries of the codes that are drawn at a time: their random numbers stay in the cache.
BLOCK_ENTRIES = 2**18
#: Numbers in the precisions of the features that are factorised at a time, where values are missing.
PRECISION_ENTRIES = 2**23
#: Share of the prior's precision that rounding may have; where noise is next to nothing, single precision has more.
ROUNDED = 0.01


def blocks(n_rows: int, n_components: int) -> Iterator[slice]:
    """Rows in parts whose codes have at most `BLOCK_ENTRIES` entries."""
    length = max(1, BLOCK_ENTRIES // max(n_components, 1))
    for first in range(0, n_rows, length):
        yield slice(first, min(first + length, n_rows))


def draw_codes(
    rng: np.random.Generator,
    values: Floats,
    components: Floats,
    prior: CodePrior,
    codes: CodeState,
    *,
    observed: NDArray[np.bool_] | None = None,
    shared: bool = False,
) -> None:
    """Change codes: draw z and s of all rows given a dictionary.

    For measurements ``y = S x`` of rows, `values` are the measurements and `components` the projected atoms
    ``D S'``, (K, n), or a stack of them, (n_rows, K, n), if each row has its own S.

    Parameters
    ----------
    rng : Generator
    values : array of shape (n_rows, n)
        Zero where a value is missing.
    components : array of shape (K, n) or (n_rows, K, n)
        Of the same type as `values`, float32 or float64, as are the weights.
    prior : CodePrior
        ``CodePrior(log_odds, group, noise, weight_precision, collapsed)``: log odds (n_groups, K), group of each row
        (n_rows,) of intp, noise precision of each row (n_rows,), and two numbers.
    codes : CodeState
        ``CodeState(weights, used, mean)``: (n_rows, K) each, `used` of int8. The expected codes are added to `mean`,
        unless it has no rows.
    observed : array of bool of shape (n_rows, n), optional
        Which values are there; all of them by default.
    shared : bool, default=False
        Whether all rows use the same random numbers, so that the codes of a row do not depend on the others: rows are
        then right each by itself, but not independent.
    """
    stack = components.ndim == 3
    gram = components @ components.T if not stack and observed is None else None
    for rows in blocks(len(values), components.shape[-2]):
        weights = codes.weights[rows]
        n_streams = 1 if shared else len(weights)
        if not shared or rows.start == 0:
            uniforms = rng.random((n_streams, weights.shape[1]))
            normals = rng.standard_normal(uniforms.shape, dtype=weights.dtype)
        part = CodeState(weights, codes.used[rows], codes.mean[rows])
        here = prior._replace(group=prior.group[rows], noise=prior.noise[rows])
        if gram is not None:
            draw_codes_with_gram(values[rows] @ components.T, gram, here, Draws(uniforms, normals), part)
            continue
        there = np.ones_like(values[rows]) if observed is None else observed[rows].astype(values.dtype)
        dictionaries = components[rows] if stack else components[None]
        draw_codes_with_residuals(values[rows].copy(), dictionaries, there, here, Draws(uniforms, normals), part)


def component_posterior(rows: Rows, codes: Floats, noise: Array) -> tuple[Array, Array]:
    """Precision and linear term of each feature of the dictionary given the codes.

    Parameters
    ----------
    rows : Rows
    codes : array of shape (n_samples, n_components)
    noise : array of shape (n_samples,)
        Precision of the noise of each row.

    Returns
    -------
    precision : array of shape (n_components, n_components), or (n_components, n_components, n_features)
        One for all features if nothing is missing; of each of them otherwise, the lower triangle only.
    linear : array of shape (n_components, n_features)
    """
    K, P = codes.shape[1], rows.values.shape[1]
    weighted = codes * noise[:, None].astype(codes.dtype)
    linear = (weighted.T @ rows.values).astype(np.float64)
    if rows.observed is None:
        products = weighted.T @ codes
        if (
            products.diagonal().max(initial=0) * np.finfo(products.dtype).eps > ROUNDED * P
            and codes.dtype == np.float32
        ):
            return component_posterior(
                replace(rows, values=rows.values.astype(np.float64)), codes.astype(np.float64), noise
            )
        return P * np.eye(K) + products, linear
    precision = np.zeros((K, K, P))
    precision[np.arange(K), np.arange(K)] = P
    for part in blocks(len(codes), K):
        there = rows.observed[part].astype(np.float64)
        add_products(codes[part], (codes[part] != 0).view(np.int8), there, noise[part], precision)
    return precision, linear


def draw_components(rng: np.random.Generator, precision: Array, linear: Array) -> Array:
    """Draw a dictionary, (n_components, n_features), from what `component_posterior` gives."""
    normals = rng.standard_normal(linear.shape)
    if precision.ndim == 2:
        root = root_of(precision)
        half = solve_triangular(root, linear, lower=True, check_finite=False) + normals
        return np.asarray(solve_triangular(root, half, lower=True, trans="T", check_finite=False))
    atoms = np.empty_like(linear)
    K, P = linear.shape
    step = max(1, PRECISION_ENTRIES // K**2)
    for first in range(0, P, step):
        some = slice(first, min(first + step, P))
        root = root_of(np.moveaxis(precision[:, :, some], 2, 0))
        for p, factor in enumerate(root, start=first):
            half = solve_triangular(factor, linear[:, p], lower=True, check_finite=False) + normals[:, p]
            atoms[:, p] = solve_triangular(factor, half, lower=True, trans="T", check_finite=False)
    return atoms


def root_of(precision: Array) -> Array:
    """Lower Cholesky factors of precisions of a dictionary, (n_components, n_components) or a stack of these.

    Where noise is next to nothing, products of codes are so large that the prior is lost in their rounding, which may
    leave a matrix that is not positive definite: then a little of the size of the rounding is added.
    """
    share = 1e-12
    while True:
        try:
            return np.asarray(np.linalg.cholesky(precision), dtype=np.float64)
        except np.linalg.LinAlgError:
            if not (np.isfinite(precision).all() and share < 1):
                raise
            diagonal = np.einsum("...kk->...k", precision)
            precision = precision + share * diagonal.max(axis=-1)[..., None, None] * np.eye(precision.shape[-1])
            share *= 10


def expected_components(precision: Array, linear: Array) -> Array:
    """The mean of what `draw_components` draws."""
    if precision.ndim == 2:
        return np.asarray(cho_solve((root_of(precision), True), linear))
    atoms = np.empty_like(linear)
    for p in range(linear.shape[1]):
        atoms[:, p] = cho_solve((root_of(precision[:, :, p]), True), linear[:, p])
    return atoms


def component_covariance(precision: Array) -> Array:
    """Covariance over atoms of a feature that is missing as often as an average one: (n_components, n_components)."""
    mean = precision if precision.ndim == 2 else precision.mean(axis=2)
    return np.asarray(cho_solve((root_of(mean), True), np.eye(len(mean))))


def squared_residuals(rows: Rows, reconstruction: Floats) -> Array:
    """Sum of squares of what is left of each row."""
    left = rows.values - reconstruction
    if rows.observed is not None:
        left *= rows.observed
    return np.asarray(np.einsum("ij,ij->i", left, left, dtype=np.float64))
