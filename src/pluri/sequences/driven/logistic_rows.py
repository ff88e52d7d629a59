r"""The M-step of multinomial-logistic transition rows, from statistics that add up.

Row i of the matrix at step t is P_t(i, j) ~ A_ij exp(w_ij . u_t), a multinomial logistic regression with weights
g_t(i) = P(state_{t-1} = i | data) and intercepts log A_ij. Its maximum has no closed form, and finding it would need
all pair probabilities again and again. Two steps that need only sums over the data, and that provably raise the
expected log-likelihood, are compared by the gain they guarantee; the better one is taken (a generalised M-step):

    scaling   A_ij <- A_ij N_ij / E_ij  (N observed, E expected counts), which gains at least
              sum_j N_ij log(N_ij / E_ij) (Darroch and Ratcliff 1972); with inputs of zero, this is the M-step of the
              plain chain, exactly;
    Newton    in all log A_ij and w_ij, of length s. Along a direction h that changes no logit by more than r, relative
              to the others, at any step, the third derivative is at most r times the second (Bach 2010), hence

                  gain(s) >= s g.h - h.H.h (e^{sr} - sr - 1) / r^2,   largest at  s = log(1 + r g.h / h.H.h) / r.

Near the maximum s is 1, and the step is Newton's. One coefficient of each row, that of staying (or of the first state
that may follow, if the chain may not stay), is zero: w_ij is the effect on the log odds of j rather than staying. The
prior is normal, -alpha/2 |w|^2 with inputs in units of their standard deviations; pseudo-counts of a Dirichlet
prior are transitions seen where all inputs are at their means.

References
----------
J. N. Darroch and D. Ratcliff, "Generalized iterative scaling for log-linear models", Annals of Mathematical Statistics
43, 1972. F. Bach, "Self-concordant analysis for logistic regression", Electronic Journal of Statistics 4, 2010.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: Transitions expected less often than this are left to scaling, which cannot fail where there is nothing to see.
LEAST_EXPECTED = 1e-8

#: What is added to the diagonal of the curvature, of ones, before it is inverted.
JITTER = 1e-8


class RowSums(NamedTuple):
    """Observed counts (k,), gradient (k, 1 + q) and curvature (k, k, 1 + q, 1 + q) of one row, priors included."""

    observed: Array
    gradient: Array
    curvature: Array


class RowPriors(NamedTuple):
    """Pseudo-counts (k, k), weight of the squared coefficients, and the largest sizes (q,) of inputs in the data."""

    pseudo_counts: Array
    alpha: float
    reach: Array


def references(transition: Array) -> NDArray[np.int64]:
    """The state of each row whose coefficients are zero: itself, or the first that may follow: (k,)."""
    allowed = transition > 0
    staying = np.diagonal(allowed)
    return np.where(staying, np.arange(len(transition)), allowed.argmax(axis=1))


def full_curvature(packed: Array, n_inputs: int) -> Array:
    """Symmetric (k, k, k, 1 + q, 1 + q) from the lower triangles that compiled functions fill."""
    width = n_inputs + 1
    rows, columns = np.tril_indices(width)
    full = np.zeros((*packed.shape[:3], width, width))
    full[..., rows, columns] = packed
    full[..., columns, rows] = packed
    upper = np.swapaxes(full, 1, 2)
    lower = np.tri(packed.shape[1], dtype=bool)[:, :, None, None]
    return np.where(lower, full, upper)


def improve_rows(
    pairs: Array, gradient: Array, curvature: Array, transition: Array, coef: Array, priors: RowPriors
) -> tuple[Array, Array]:
    """One step up of every row: transition probabilities at inputs of zero (k, k), coefficients (k, k, q)."""
    transition, coef = transition.copy(), coef.copy()
    reference = references(transition)
    curvature = full_curvature(curvature, coef.shape[2])
    for i in range(len(transition)):
        sums = _with_priors(pairs[i], gradient[i], curvature[i], transition[i], coef[i], priors, i)
        if sums.observed.sum() > 0:
            transition[i], coef[i] = _improve_row(sums, transition[i], coef[i], int(reference[i]), priors.reach)
    return transition, coef


def _with_priors(
    observed: Array, gradient: Array, curvature: Array, row: Array, coef: Array, priors: RowPriors, i: int
) -> RowSums:
    extra = np.where(row > 0, priors.pseudo_counts[i], 0.0)
    observed = np.where(row > 0, observed, 0.0) + extra
    gradient, curvature = gradient.copy(), curvature.copy()
    gradient[:, 0] += extra - extra.sum() * row
    gradient[:, 1:] -= priors.alpha * coef
    curvature[:, :, 0, 0] += extra.sum() * (np.diag(row) - np.outer(row, row))
    places = np.arange(1, gradient.shape[1])
    for j in range(len(row)):
        curvature[j, j, places, places] += priors.alpha
    return RowSums(observed, gradient, curvature)


def _improve_row(sums: RowSums, row: Array, coef: Array, reference: int, reach: Array) -> tuple[Array, Array]:
    expected = sums.observed - sums.gradient[:, 0]
    gain, direction, length = _newton(sums, expected, row, reference, reach)
    seen = (sums.observed > 0) & (expected > 0)
    ratio = np.divide(sums.observed, expected, out=np.ones_like(row), where=seen)
    if gain > float(sums.observed @ np.log(ratio)) * (1.0 + 1e-9):
        with np.errstate(divide="ignore"):
            logits = np.log(row) + length * direction[:, 0]
        updated = np.exp(logits - logits.max())
        return updated / updated.sum(), coef + length * direction[:, 1:]
    scaled = np.where(row > 0, row * np.where(sums.observed > 0, ratio, 0.0), 0.0)
    return scaled / scaled.sum(), coef


def _newton(sums: RowSums, expected: Array, row: Array, reference: int, reach: Array) -> tuple[float, Array, float]:
    """Gain that is guaranteed, direction (k, 1 + q) and length of the best step along Newton's direction."""
    direction = np.zeros_like(sums.gradient)
    free = np.flatnonzero((row > 0) & (expected > LEAST_EXPECTED) & (np.arange(len(row)) != reference))
    width = direction.shape[1]
    if not free.size or width == 1:  # without inputs, scaling is exact
        return 0.0, direction, 0.0
    slope = sums.gradient[free].ravel()
    curvature = sums.curvature[np.ix_(free, free)].transpose(0, 2, 1, 3).reshape(len(slope), len(slope))
    # With ones on the diagonal and a little more, so that what nothing tells apart (separation) is no singular matrix;
    # any direction that goes up will do, since the length of the step follows from what it is sure to gain.
    root = np.sqrt(np.maximum(np.diagonal(curvature), LEAST_EXPECTED))
    step = np.linalg.solve(curvature / (root[:, None] * root) + JITTER * np.eye(len(slope)), slope / root) / root
    direction[free] = step.reshape(len(free), width)
    rise, bend = float(slope @ step), float(step @ curvature @ step)
    moved = direction[row > 0]
    apart = np.abs(moved[:, None] - moved[None])
    largest = float((apart[..., 0] + apart[..., 1:] @ reach).max())
    if not (rise > 0 and bend > 0 and largest > 0):
        return 0.0, direction, 0.0
    length = float(np.log1p(largest * rise / bend) / largest)
    turn = length * largest
    return length * rise - bend * float(np.expm1(turn) - turn) / largest**2, direction, length
