r"""The ridge approximation of a kernel: a few directions, and the same small weight for all that is left.

.. math:: L \approx A A^\top + \delta I, \qquad A : (n, D), \; \delta > 0

minimises :math:`\log\det C + \mathrm{tr}(L C^{-1})` over :math:`C = A A^\top + \delta I`, as probabilistic principal
components do. In closed form :math:`\delta` is the mean of the remaining eigenvalues and
:math:`A = V_D (\Lambda_D - \delta)^{1/2}`; by EM no eigendecomposition is needed, one product L A for each iteration.

Draws are exact, and cost no more than those of :math:`A A^\top` alone: since
:math:`\det((A A^\top + \delta I)_Y) = \sum_{S \subseteq Y} \det((A A^\top)_S) \, \delta^{|Y \setminus S|}`, a subset is
:math:`S \sim \mathrm{DPP}(A A^\top / (1 + \delta))` together with every other item by a coin of odds :math:`\delta`.

References
----------
.. [1] S. Wang, C. Zhang, H. Qian and Z. Zhang, "Using the matrix ridge approximation to speedup determinantal point
   processes sampling algorithms", AAAI 2014.
.. [2] M. E. Tipping and C. M. Bishop, "Probabilistic principal component analysis", JRSS B 61, 1999.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from pluri.optimize.fixed_point import iterate
from pluri.processes.dpp.kernel_forms import Array, DenseKernel, FeatureKernel, KernelForm, as_kernel_form
from pluri.validation import RandomState, Whole, as_generator, check_value
from pluri.validation.interruption import holding, interruptible

#: Rows of a kernel that are computed at a time when it is not written out.
BLOCK = 512
#: Up to this share of the items, leading eigenpairs come from Lanczos' method and not from all of them.
FEW = 0.1


@dataclass(frozen=True, eq=False)
class RidgeApproximation:
    """A kernel ``A A^T + ridge I``.

    Attributes
    ----------
    factor : (n_items, n_components)
        A.
    ridge : float
        The weight delta of everything outside the columns of A.
    objective : float
        ``log det C + tr(L C^-1)``, which the approximation makes small; NaN if the ridge is zero.
    n_iter : int
        Iterations of EM; 0 for the closed form.
    converged : bool
    """

    factor: Array
    ridge: float
    objective: float = np.nan
    n_iter: int = 0
    converged: bool = True

    def matrix(self) -> Array:
        """The approximate kernel written out."""
        return self.factor @ self.factor.T + self.ridge * np.eye(len(self.factor))


def ridge_from_eigenvectors(kernel: ArrayLike | KernelForm, n_components: int) -> RidgeApproximation:
    """The best ridge approximation, from the leading eigenpairs.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.processes.dpp.approximations.ridge_approximation import ridge_from_eigenvectors
    >>> ridge_from_eigenvectors(np.diag([5.0, 0.3, 0.1, 0.2]), 1).ridge
    0.2
    """
    from scipy.linalg import eigh
    from scipy.sparse.linalg import LinearOperator, eigsh

    form = as_kernel_form(kernel, "L")
    n_items, width = form.n_items, _check_components(form, n_components)
    trace = float(form.diagonal().sum())
    if trace == 0:
        return RidgeApproximation(np.zeros((n_items, width)), 0.0)
    if width < FEW * n_items:
        operator = LinearOperator(
            (n_items, n_items),
            matvec=lambda v: product(form, v.reshape(-1, 1))[:, 0],
            matmat=lambda v: product(form, v),
            dtype=np.float64,
        )
        # A fixed start, so that the same kernel gives the same approximation.
        start = np.random.default_rng(0).standard_normal(n_items)
        values, vectors = eigsh(operator, k=width, which="LA", v0=start)
    else:
        values, vectors = eigh(form.rows(np.arange(n_items)), subset_by_index=(n_items - width, n_items - 1))
    ridge = max((trace - float(values.sum())) / (n_items - width), 0.0)
    factor = vectors * np.sqrt(np.maximum(values - ridge, 0.0))
    return RidgeApproximation(factor, ridge, _objective(form, factor, ridge))


@interruptible
def ridge_by_em(
    kernel: ArrayLike | KernelForm,
    n_components: int,
    *,
    max_iter: int = 2000,
    tol: float = 1e-10,
    random_state: RandomState = None,
) -> RidgeApproximation:
    """The ridge approximation by expectation-maximisation, without eigenvectors.

    Each iteration multiplies the kernel once with a matrix of ``n_components`` columns. It ends when the objective
    falls by less than ``tol`` of its scale; Ctrl-C keeps what there is.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.processes.dpp.approximations.ridge_approximation import ridge_by_em
    >>> round(ridge_by_em(np.diag([5.0, 0.3, 0.1, 0.2]), 1, random_state=0).ridge, 6)
    0.2
    """
    form = as_kernel_form(kernel, "L")
    n_items, width = form.n_items, _check_components(form, n_components)
    check_value(max_iter, "max_iter", Whole(1))
    trace = float(form.diagonal().sum())
    if trace == 0:
        return RidgeApproximation(np.zeros((n_items, width)), 0.0)
    mean = trace / n_items
    rng = as_generator(random_state)
    # One product with the kernel already turns a random start towards the leading directions.
    factor = product(form, rng.standard_normal((n_items, width)))
    factor *= np.sqrt(0.5 * trace / max(float((factor**2).sum()), np.finfo(float).tiny))
    reached = RidgeApproximation(factor, 0.5 * mean, np.inf, 0, False)

    def improve(now: RidgeApproximation) -> tuple[RidgeApproximation, float]:
        nonlocal reached
        reached, change = _em_step(form, trace, now, tol)
        return reached, change

    with holding(
        lambda: f"interrupted after {reached.n_iter} iterations; the ridge approximation so far is kept"
    ) as run:
        iterate(improve, reached, max_iter=max_iter)
    if run.interrupted:
        return reached
    if not reached.converged:
        from sklearn.exceptions import ConvergenceWarning

        warnings.warn(
            f"the ridge approximation has not converged in {max_iter} iterations: raise max_iter or tol, or use the "
            "closed form (inference='eigen')",
            ConvergenceWarning,
            stacklevel=2,
        )
    return reached


def _em_step(form: KernelForm, trace: float, now: RidgeApproximation, tol: float) -> tuple[RidgeApproximation, float]:
    """The approximation after an iteration and what it gained, which is zero where it is below the tolerance."""
    factor, ridge = now.factor, now.ridge
    n_items, width = factor.shape
    image = product(form, factor)
    inner = ridge * np.eye(width) + factor.T @ factor
    solved = np.linalg.solve(inner, np.column_stack([factor.T @ image, image.T]))
    moment, half = solved[:, :width], solved[:, width:]
    objective = log_det_of(inner, n_items, ridge) + (trace - float(np.trace(moment))) / ridge
    if now.objective - objective <= tol * (abs(objective) + n_items):
        return RidgeApproximation(factor, ridge, objective, now.n_iter + 1, True), 0.0
    factor = np.asarray(np.linalg.solve((ridge * np.eye(width) + moment).T, image.T).T, dtype=np.float64)
    ridge = max((trace - float(np.einsum("dn,nd->", half, factor))) / n_items, 1e-12 * trace / n_items)
    return RidgeApproximation(factor, ridge, objective, now.n_iter + 1, False), now.objective - objective


def product(form: KernelForm, right: Array) -> Array:
    """``L @ right`` without writing the kernel out."""
    if isinstance(form, DenseKernel):
        return np.asarray(form.matrix @ right)
    if isinstance(form, FeatureKernel):
        return np.asarray(form.features @ (form.features.T @ right))
    parts = [
        form.rows(np.arange(begin, min(begin + BLOCK, form.n_items))) @ right for begin in range(0, form.n_items, BLOCK)
    ]
    return np.concatenate(parts)


def _check_components(form: KernelForm, n_components: int) -> int:
    if isinstance(n_components, bool) or n_components != int(n_components) or not 1 <= n_components < form.n_items:
        raise ValueError(
            f"n_components must be a whole number from 1 to {form.n_items - 1} (one less than the items), got "
            f"{n_components!r}"
        )
    return int(n_components)


def log_det_of(inner: Array, n_items: int, ridge: float) -> float:
    return float(np.linalg.slogdet(inner)[1]) + (n_items - len(inner)) * float(np.log(ridge))


def _objective(form: KernelForm, factor: Array, ridge: float) -> float:
    if ridge == 0:
        return np.nan
    n_items, width = factor.shape
    inner = ridge * np.eye(width) + factor.T @ factor
    explained = float(np.trace(np.linalg.solve(inner, factor.T @ product(form, factor))))
    return log_det_of(inner, n_items, ridge) + (float(form.diagonal().sum()) - explained) / ridge
