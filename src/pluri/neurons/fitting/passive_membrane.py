r"""A passive membrane fitted to a trace by least squares.

:math:`C \dot V = (E - V)/R + I` is linear in :math:`1/C`, :math:`1/(RC)` and :math:`E/(RC)`: with the voltage and the
current as columns, the slope of the voltage is a linear regression.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from pluri.validation import Allowed, Number, Only, Stored, check_parameters, check_row_weight
from pluri.validation.estimator import Estimator

Array = NDArray[np.float64]


def membrane_rows(time: ArrayLike, voltage: ArrayLike, current: ArrayLike) -> tuple[Array, Array]:
    """Rows for `PassiveMembraneFit` from a trace.

    Parameters
    ----------
    time, voltage : array-like of shape (n_times,)
        In ms and mV.
    current : array-like of shape (n_times,) or (n_times - 1,)
        Injected current in nA: at each time, or between each time and the next.

    Returns
    -------
    X : ndarray of shape (n_times - 1, 2)
        Voltage in the middle between two times, and current.
    y : ndarray of shape (n_times - 1,)
        Slope of the voltage in mV/ms.
    """
    t, v, i = (np.asarray(one, dtype=float) for one in (time, voltage, current))
    if t.ndim != 1 or v.shape != t.shape or i.shape not in ((len(t),), (len(t) - 1,)):
        raise ValueError(
            f"time, voltage and current must have one length (current may have one less), got {t.shape}, {v.shape} and "
            f"{i.shape}"
        )
    if not (np.diff(t) > 0).all():
        raise ValueError("time must rise")
    if len(i) == len(t):
        i = (i[1:] + i[:-1]) / 2
    return np.column_stack([(v[1:] + v[:-1]) / 2, i]), np.diff(v) / np.diff(t)


class PassiveMembraneFit(RegressorMixin, Estimator):
    """Capacitance, resistance and resting potential of a membrane, by least squares.

    Parameters
    ----------
    reversal : float or None, default=None
        Resting potential in mV if it is known; None has it estimated.

    Attributes
    ----------
    capacitance_ : float
        In nF.
    resistance_ : float
        In MOhm; infinite if the voltage does not pull the slope down.
    reversal_ : float
        In mV.
    time_constant_ : float
        In ms.
    coef_ : ndarray of shape (2,)
        Slope of the voltage per mV, and per nA.
    intercept_ : float
        Slope of the voltage at 0 mV without current.
    n_features_in_, feature_names_in_

    See Also
    --------
    membrane_rows : Rows from a trace.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.neurons import PassiveMembraneFit, Simulation, membrane_rows
    >>> sim = Simulation(dt=0.1, method="crank_nicolson")
    >>> cell = sim.create("compartment", "/cell", capacitance=0.05, resistance=200.0, Em=-70.0, initial_Vm=-70.0)
    >>> pulse = sim.create("pulse_generator", "/pulse", delay=5.0, width=20.0, level=0.1)
    >>> sim.link(pulse, cell)
    >>> sim.record(cell, "Vm")
    >>> result = sim.run(60.0)
    >>> current = np.where((result.time[:-1] >= 4.99) & (result.time[:-1] < 24.99), 0.1, 0.0)
    >>> fit = PassiveMembraneFit().fit(*membrane_rows(result.time, result[cell, "Vm"], current))
    >>> round(fit.capacitance_, 4), round(fit.resistance_, 2), round(fit.reversal_, 2), round(fit.time_constant_, 3)
    (0.05, 200.0, -70.0, 10.0)
    """

    _parameters: ClassVar[Mapping[str, Allowed]] = {"reversal": Number() | Only(None)}
    _fitted_layout: ClassVar[Mapping[str, Stored]] = {"coef_": Stored(2)}

    def __init__(self, reversal: float | None = None) -> None:
        self.reversal = reversal

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # columns after the first are added up: it is no general regression
        return tags

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Estimate the membrane.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Voltage in mV in the first column; injected currents in nA, which are added up, in the others.
        y : array-like of shape (n_samples,)
            Slope of the voltage in mV/ms.
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        self : object
        """
        check_parameters(self)
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2)
        columns = self._columns(X)
        weight = check_row_weight(sample_weight, len(y))
        root = np.ones(len(y)) if weight is None else np.sqrt(weight)
        if self.reversal is None:
            design, shift = np.column_stack([columns, np.ones(len(y))]), 0.0
        else:
            shift = float(self.reversal)
            design = columns - [shift, 0.0]
        # Columns of different units are scaled before the solution of least norm is taken.
        scale = np.sqrt(((root[:, None] * design) ** 2).mean(axis=0))
        scale = np.where(scale > 0, scale, 1.0)
        solution = np.linalg.lstsq(root[:, None] * design / scale, root * y, rcond=None)[0] / scale
        self.coef_ = solution[:2].copy()
        self.intercept_ = float(solution[2]) if self.reversal is None else float(-solution[0] * shift)
        self._name_constants()
        return self

    def _columns(self, X: Array) -> Array:
        if X.shape[1] < 2:
            raise ValueError(
                f"X must have at least 2 features, the voltage and an injected current, got {X.shape[1]} feature(s)"
            )
        return np.column_stack([X[:, 0], X[:, 1:].sum(axis=1)])

    def _name_constants(self) -> None:
        pull, push = float(-self.coef_[0]), float(self.coef_[1])
        self.capacitance_ = 1 / push if push != 0 else np.inf
        self.resistance_ = push / pull if pull != 0 else np.inf
        self.time_constant_ = 1 / pull if pull != 0 else np.inf
        if self.reversal is None:
            self.reversal_ = self.intercept_ / pull if pull != 0 else np.nan
        else:
            self.reversal_ = float(self.reversal)
        if not (pull > 0 and push > 0):
            warnings.warn(
                "the rows are not those of a passive membrane: its slope does not fall with the voltage and rise with "
                "the current, so that capacitance_ and resistance_ mean nothing",
                UserWarning,
                stacklevel=3,
            )

    def predict(self, X: Any) -> Array:
        """Slope of the voltage.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
            In mV/ms.
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        slope: Array = self._columns(X) @ self.coef_ + self.intercept_
        return slope
