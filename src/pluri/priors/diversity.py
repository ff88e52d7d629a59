r"""The diversity prior: a determinantal prior that keeps the rows of a stochastic matrix apart.

.. math:: \log p(A) = \alpha \log\det \tilde K_A + \text{const}

with the kernel of :mod:`pluri.priors.determinant`. For :math:`\alpha = 1` and :math:`\rho = 1/2` it is a determinantal
point process over :math:`k` distributions (:mod:`pluri.priors.diverse_rows` samples it); for other :math:`\alpha` its
normaliser is unknown, so objectives at different strengths do not compare.

References
----------
.. [1] M. Qiao, W. Bian, R. Y. D. Xu and D. Tao, "Diversified hidden Markov models for sequential labeling", IEEE
   Transactions on Knowledge and Data Engineering 27, 2015.
.. [2] A. Kulesza and B. Taskar, "Determinantal point processes for machine learning", Foundations and Trends in Machine
   Learning 5, 2012.
"""

from __future__ import annotations

import numbers
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from pluri.priors.determinant import log_determinant, log_determinant_gradient
from pluri.priors.protocol import BoolArray, FloatArray, RowPrior
from pluri.priors.row_solvers import SOLVERS
from pluri.priors.rows import maximize_rows
from pluri.validation import Number, Only, check_value


@dataclass(frozen=True)
class Diversity:
    """Determinantal prior over the rows of a stochastic matrix.

    The strength is absolute, like a count: about 1e-3 of the number of observed transitions is a moderate value. As it
    grows, the rows are driven to disjoint supports, which for a square matrix means **a permutation matrix**, whatever
    the data say; :func:`warn_if_permutation` tells when that has happened.

    Parameters
    ----------
    strength : float
        Weight of the log determinant, non-negative; 0 is no prior.
    rho : float, default=0.5
        Power of the entries in the kernel; 0.5 gives Bhattacharyya coefficients.
    solver : {"lbfgs", "fixed_point", "projected_gradient"}, default="lbfgs"
        How the M-step climbs; see :mod:`pluri.priors.row_solvers`.
    max_iter : int, default=50
        Iterations of the solver for each M-step and start.
    floor : float, default=1e-12
        Lower bound of the entries in the M-step.
    tol : float, default=1e-10
        The solver stops when the objective gains less than this, relatively.

    Examples
    --------
    >>> from pluri.priors import Diversity
    >>> prior = Diversity(2.0)
    >>> prior.log_density([[0.9, 0.1], [0.2, 0.8]])
    -1.386294
    >>> prior.maximize([[6.0, 4.0], [4.0, 6.0]], [[0.6, 0.4], [0.3, 0.7]]).round(4)
    array([[0.75, 0.25],
           [0.25, 0.75]])
    """

    strength: float
    rho: float = 0.5
    solver: str = "lbfgs"
    max_iter: int = 50
    floor: float = 1e-12
    tol: float = 1e-10

    def __post_init__(self) -> None:
        for name in ("strength", "tol"):
            value = getattr(self, name)
            if isinstance(value, bool) or not (np.isfinite(value) and value >= 0):
                raise ValueError(f"{name} must be a non-negative number, got {value!r}")
            object.__setattr__(self, name, float(value))
        if not (np.isfinite(self.rho) and self.rho > 0):
            raise ValueError(f"rho must be a positive number, got {self.rho!r}")
        object.__setattr__(self, "rho", float(self.rho))
        check_value(self.solver, "solver", Only(*SOLVERS))
        object.__setattr__(self, "solver", str(self.solver))
        if not (isinstance(self.max_iter, numbers.Integral) and int(self.max_iter) >= 1):
            raise ValueError(f"max_iter must be a positive integer, got {self.max_iter!r}")
        object.__setattr__(self, "max_iter", int(self.max_iter))
        check_value(self.floor, "floor", Number(above=0, below=1))
        object.__setattr__(self, "floor", float(self.floor))

    def log_density(self, rows: ArrayLike, *, support: BoolArray | None = None) -> float:
        """``strength`` times the log determinant of the rows' kernel; ``support`` changes nothing here."""
        return self.strength * log_determinant(rows, self.rho) if self.strength > 0 else 0.0

    def gradient(self, rows: ArrayLike) -> FloatArray:
        """Gradient of :meth:`log_density`; along a row, ``sum(rows * gradient)`` is zero."""
        if self.strength == 0:
            return np.zeros(np.shape(rows))
        return self.strength * log_determinant_gradient(rows, self.rho)

    def maximize(
        self,
        counts: ArrayLike,
        start: ArrayLike,
        *,
        anchor: ArrayLike | None = None,
        anchor_weight: float = 0.0,
        base: RowPrior | None = None,
        support: BoolArray | None = None,
        rng: np.random.Generator | None = None,
    ) -> FloatArray:
        """Penalised M-step; see :func:`maximize_rows`."""
        return maximize_rows(
            counts,
            start,
            base=base,
            diversity=self,
            anchor=anchor,
            anchor_weight=anchor_weight,
            support=support,
            rng=rng,
        )


def as_diversity(value: Diversity | float | None) -> Diversity | None:
    """Turn the ``diversity`` argument of an estimator into a prior: a number is a strength, None and 0 are no prior.

    Examples
    --------
    >>> from pluri.priors import as_diversity
    >>> as_diversity(1.5).strength
    1.5
    >>> as_diversity(0) is None
    True
    """
    if value is None:
        return None
    if isinstance(value, Diversity):
        return value if value.strength > 0 else None
    if isinstance(value, numbers.Real) and not isinstance(value, bool) and np.isfinite(float(value)) and value >= 0:
        return Diversity(float(value)) if value > 0 else None
    raise ValueError(f"diversity must be None, a non-negative number or a Diversity, got {value!r}")
