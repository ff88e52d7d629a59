"""Codes that grow atom by atom: orthogonal matching pursuit, its stagewise form, and the path of the Lasso.

All three correlate atoms with what is not yet explained. Matching pursuit takes the best atom at a time, StOMP all
that stand out of the noise, the path of the Lasso moves along the direction equally correlated with all atoms in use.

References
----------
Donoho, Tsaig, Drori and Starck (2012), Sparse solution of underdetermined systems of linear equations by stagewise
orthogonal matching pursuit, IEEE Transactions on Information Theory 58.
Efron, Hastie, Johnstone and Tibshirani (2004), Least angle regression, Annals of Statistics 32.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from sklearn.linear_model import LassoLarsCV, lars_path, orthogonal_mp

from pluri.factors.dictionaries.sensing.baselines.interface import SparseRegression
from pluri.validation import Allowed, Number, Only, Whole

Array = NDArray[np.float64]

#: A residual below this share of the measurements is rounding.
EXPLAINED = 1e-12


class MatchingPursuit(SparseRegression):
    """Orthogonal matching pursuit, scikit-learn's.

    Parameters
    ----------
    max_atoms : int or None, default=None
        Atoms of a code at most; None is as many as there are measurements.
    max_residual : float, default=0.01
        The pursuit ends when the misfit ``|y - Phi w|`` is below this share of ``|y|``.

    Attributes
    ----------
    coef_ : array of shape (n_atoms,)
    n_features_in_ : int
    """

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        "max_atoms": Whole(1) | Only(None),
        "max_residual": Number(least=0, below=1),
    }

    def __init__(self, max_atoms: int | None = None, *, max_residual: float = 0.01) -> None:
        self.max_atoms = max_atoms
        self.max_residual = max_residual

    def _solve(self, Phi: Array, y: Array) -> Array:
        norms = np.linalg.norm(Phi, axis=0)
        usable, size = np.flatnonzero(norms > 0), float(np.linalg.norm(y))
        coef = np.zeros(Phi.shape[1])
        if size == 0 or not len(usable):
            return coef
        most = min(len(y), len(usable), self.max_atoms or len(y))
        units = Phi[:, usable] / norms[usable]
        # scikit-learn stops at a number of atoms or at a misfit, not at whichever comes first: the path has both.
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Orthogonal matching pursuit ended prematurely")
            path = orthogonal_mp(units, y / size, n_nonzero_coefs=most, return_path=True).reshape(len(usable), -1)
        misfits = np.linalg.norm(y[:, None] / size - units @ path, axis=0)
        good = np.flatnonzero(misfits <= max(self.max_residual, EXPLAINED))
        chosen = path[:, good[0] if len(good) else -1]
        coef[usable] = size * chosen / norms[usable]
        return coef


class LarsLasso(SparseRegression):
    """The Lasso by least-angle regression, scikit-learn's.

    Parameters
    ----------
    selection : {"residual", "cv"}, default="residual"
        Which point of the path is taken: the first at which the misfit is small enough, or the one that predicts
        measurements that were left out best.
    max_residual : float, default=0.01
        The misfit ``|y - Phi w|``, as a share of ``|y|``, at which the path ends if ``selection="residual"``.
    n_folds : int, default=5
        Parts into which the measurements are divided if ``selection="cv"``.

    Attributes
    ----------
    coef_ : array of shape (n_atoms,)
    n_features_in_ : int
    """

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        "selection": Only("residual", "cv"),
        "max_residual": Number(least=0, below=1),
        "n_folds": Whole(2),
    }

    def __init__(self, *, selection: str = "residual", max_residual: float = 0.01, n_folds: int = 5) -> None:
        self.selection = selection
        self.max_residual = max_residual
        self.n_folds = n_folds

    def _solve(self, Phi: Array, y: Array) -> Array:
        size = float(np.linalg.norm(y))
        if size == 0:
            return np.zeros(Phi.shape[1])
        if self.selection == "cv":
            if len(y) < self.n_folds:
                raise ValueError(f"n_folds must be at most the number of measurements ({len(y)}), got {self.n_folds}")
            found = LassoLarsCV(fit_intercept=False, cv=int(self.n_folds)).fit(Phi, y / size)
            return size * np.asarray(found.coef_)
        _, _, path = lars_path(Phi, y / size, method="lasso")
        return size * point_of_path(Phi, y / size, path, float(self.max_residual))


def point_of_path(Phi: Array, y: Array, path: Array, misfit: float) -> Array:
    """Where a piecewise linear path (n_atoms, n_knots) from zero first has a misfit; its end if it never has."""
    residuals = y[:, None] - Phi @ path
    norms = np.linalg.norm(residuals, axis=0)
    small = np.flatnonzero(norms <= misfit)
    if not len(small):
        return np.asarray(path[:, -1])
    if small[0] == 0:
        return np.asarray(path[:, 0])
    before, after = residuals[:, small[0] - 1], residuals[:, small[0]]
    # |before + t (after - before)| = misfit: the root between 0 and 1 of a quadratic whose value falls there.
    step = after - before
    a, b, c = float(step @ step), float(before @ step), float(before @ before) - misfit**2
    share = min(max(c / (-b + math.sqrt(max(b * b - a * c, 0.0))), 0.0), 1.0)
    return np.asarray((1 - share) * path[:, small[0] - 1] + share * path[:, small[0]])


class StOMP(SparseRegression):
    """Stagewise orthogonal matching pursuit with a constant rate of false alarms.

    In each stage all atoms join whose correlation with the residual r is larger than ``t |r| / sqrt(n)``, and the code
    is fitted by least squares. With columns of length one, correlations of pure noise are about Gaussian with standard
    deviation ``|r| / sqrt(n)``, and t is the quantile that a share of `false_alarm_rate` of them exceeds.

    Parameters
    ----------
    false_alarm_rate : float, default=0.05
        Share of the atoms that join by chance in each stage.
    max_stages : int, default=10

    Attributes
    ----------
    coef_ : array of shape (n_atoms,)
    n_stages_ : int
        Stages in which atoms joined.
    n_features_in_ : int
    """

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        "false_alarm_rate": Number(above=0, below=1),
        "max_stages": Whole(1),
    }

    def __init__(self, false_alarm_rate: float = 0.05, *, max_stages: int = 10) -> None:
        self.false_alarm_rate = false_alarm_rate
        self.max_stages = max_stages

    def _solve(self, Phi: Array, y: Array) -> Array:
        norms = np.linalg.norm(Phi, axis=0)
        units = Phi / np.where(norms > 0, norms, 1.0)
        threshold = -float(ndtri(self.false_alarm_rate / 2)) / math.sqrt(len(y))
        used, weights, residual = np.zeros(Phi.shape[1], dtype=bool), np.zeros(Phi.shape[1]), y
        self.n_stages_ = 0
        for _ in range(self.max_stages):
            size = float(np.linalg.norm(residual))
            joining = (np.abs(units.T @ residual) > threshold * size) & ~used
            if size <= EXPLAINED * float(np.linalg.norm(y)) or not joining.any():
                break
            used |= joining
            weights[used] = np.linalg.lstsq(units[:, used], y, rcond=None)[0]
            residual = y - units @ weights
            self.n_stages_ += 1
        return np.asarray(weights / np.where(norms > 0, norms, 1.0))
