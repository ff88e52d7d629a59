"""The code with the smallest sum of absolute values that explains the measurements.

Without a penalty it is a linear programme in ``w = u - v``, ``u, v >= 0``, which HiGHS solves; with one it is
``min 1/2 |y - Phi w|^2 + l1_penalty |w|_1``, which scikit-learn's coordinate descent solves.

References
----------
Chen, Donoho and Saunders (1998), Atomic decomposition by basis pursuit, SIAM Journal on Scientific Computing 20.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from sklearn.linear_model import Lasso

from pluri.factors.dictionaries.sensing.baselines.interface import SparseRegression
from pluri.validation import Allowed, Number

Array = NDArray[np.float64]

#: Singular values below this share of the largest count as zero.
RANK_TOLERANCE = 1e-12
#: Coordinate descent ends here; its duality gap is the check.
MOST_SWEEPS, GAP = 20_000, 1e-8


class BasisPursuit(SparseRegression):
    """Basis pursuit, with or without noise.

    Parameters
    ----------
    l1_penalty : float, default=0.0
        Weight of ``|w|_1`` beside half the squared misfit. 0 asks for ``Phi w = y``; if no code explains the
        measurements exactly, of all codes that explain them best the one with the smallest sum of absolute values.

    Attributes
    ----------
    coef_ : array of shape (n_atoms,)
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.factors.dictionaries.sensing import BasisPursuit
    >>> Phi = np.random.default_rng(0).normal(size=(10, 30))
    >>> code = np.zeros(30)
    >>> code[[3, 17]] = 2.0, -1.0
    >>> bool(np.allclose(BasisPursuit().fit(Phi, Phi @ code).coef_, code))
    True
    """

    _parameters: ClassVar[Mapping[str, Allowed]] = {"l1_penalty": Number(least=0)}

    def __init__(self, l1_penalty: float = 0.0) -> None:
        self.l1_penalty = l1_penalty

    def _solve(self, Phi: Array, y: Array) -> Array:
        size = float(np.abs(y).max())
        if size == 0:
            return np.zeros(Phi.shape[1])
        if self.l1_penalty > 0:
            lasso = Lasso(self.l1_penalty / len(y), fit_intercept=False, max_iter=MOST_SWEEPS, tol=GAP)
            return np.asarray(lasso.fit(Phi, y).coef_)
        # The equations are turned to the range of Phi: those left are independent and have a solution.
        left, singular, right = np.linalg.svd(Phi, full_matrices=False)
        rank = int((singular > RANK_TOLERANCE * singular[0]).sum())
        if rank == 0:
            return np.zeros(Phi.shape[1])
        equations = right[:rank]
        target = (left[:, :rank].T @ y) / singular[:rank]
        scale = float(np.abs(target).max())
        if scale == 0:
            return np.zeros(Phi.shape[1])
        result = linprog(
            np.ones(2 * Phi.shape[1]), A_eq=np.hstack([equations, -equations]), b_eq=target / scale, method="highs"
        )
        if result.x is None:
            raise ValueError(f"the linear programme of basis pursuit has no solution: {result.message}")
        return np.asarray(scale * (result.x[: Phi.shape[1]] - result.x[Phi.shape[1] :]))
