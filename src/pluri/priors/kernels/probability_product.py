r"""The probability product kernel: how alike two distributions are.

.. math:: K_\rho(p, q) = \int p(x)^\rho q(x)^\rho dx, \qquad
   \tilde K_\rho(p, q) = \frac{K_\rho(p, q)}{\sqrt{K_\rho(p, p) K_\rho(q, q)}}

For :math:`\rho = 1/2` it is the Bhattacharyya coefficient, which has unit diagonal by itself; for :math:`\rho = 1` the
expected likelihood. It is positive semi-definite because it is an inner product of the functions :math:`p^\rho`. All
values are computed in logs, since products over many features underflow.

References
----------
.. [1] T. Jebara, R. Kondor and A. Howard, "Probability product kernels", Journal of Machine Learning Research 5, 2004.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pluri.priors.determinant import log_determinant, log_determinant_gradient
from pluri.priors.kernels.discrete_families import Bernoulli, Categorical, Family, Poisson, power_rows
from pluri.priors.kernels.gaussian_family import COVARIANCE_TYPES, Gaussian
from pluri.priors.kernels.similarity import (
    SimilarityKernel,
    inverse_of_matrix,
    log_determinant_of_matrix,
    symmetric,
)
from pluri.priors.kernels.vectors import CosineKernel, LinearKernel
from pluri.priors.protocol import FloatArray
from pluri.validation import Only, check_positive, check_value

FAMILIES = ("categorical", "bernoulli", "gaussian", "poisson")


@dataclass(frozen=True)
class ProbabilityProductKernel(SimilarityKernel):
    """Similarity of distributions of one family, in closed form.

    Parameters
    ----------
    family : {"categorical", "bernoulli", "gaussian", "poisson"}, default="categorical"
        What the parameters are: rows of probabilities (n_parts, n_categories), dense or sparse; probabilities of
        success (n_parts, n_features) of independent binary features; a pair of means (n_parts, n_features) and
        covariances; rates (n_parts,) or (n_parts, n_features).
    rho : float, default=0.5
        Power of the densities; 0.5 gives Bhattacharyya coefficients, 1 the expected likelihood.
    normalized : bool, default=True
        Whether to divide by the similarities of the two with themselves, so that the diagonal is 1.
    covariance_type : {"auto", "full", "tied", "diag", "spherical"}, default="auto"
        Form of Gaussian covariances: (n_parts, D, D), (D, D), (n_parts, D) or (n_parts,). Their shape tells, except
        when there are as many parts as features.

    Notes
    -----
    Categorical rows need not sum to 1 for the normalised kernel. `features` exists for the categorical family only: the
    rows to the power ``rho``, scaled to unit length if the kernel is normalised.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.priors.kernels import ProbabilityProductKernel
    >>> ProbabilityProductKernel()([[0.9, 0.1], [0.2, 0.8]]).round(4)
    array([[1.    , 0.7071],
           [0.7071, 1.    ]])
    >>> gaussians = ProbabilityProductKernel("gaussian")
    >>> gaussians((np.array([[0.0], [2.0]]), np.array([1.0, 1.0]))).round(4)
    array([[1.    , 0.6065],
           [0.6065, 1.    ]])
    """

    family: str = "categorical"
    rho: float = 0.5
    normalized: bool = True
    covariance_type: str = "auto"

    def __post_init__(self) -> None:
        check_value(self.family, "family", Only(*FAMILIES))
        object.__setattr__(self, "rho", check_positive(self.rho, "rho"))
        if not isinstance(self.normalized, (bool, np.bool_)):
            raise ValueError(f"normalized must be True or False, got {self.normalized!r}")
        object.__setattr__(self, "normalized", bool(self.normalized))
        check_value(self.covariance_type, "covariance_type", Only(*COVARIANCE_TYPES))

    def __call__(self, parameters: Any, others: Any = None) -> FloatArray:
        """Similarities (n_parts, n_others); of the parts among each other if ``others`` is None."""
        if self.family != "categorical":
            return np.exp(self.log_matrix(parameters, others))
        linear = LinearKernel()
        if others is not None:
            return linear(self._power_rows(parameters), self._power_rows(others))
        matrix = linear(self._power_rows(parameters))
        if self.normalized:
            np.fill_diagonal(matrix, 1.0)
        return matrix

    def log_matrix(self, parameters: Any, others: Any = None) -> FloatArray:
        """Logs of the similarities: exact where the similarities themselves underflow."""
        family = self._family
        first = family.read(parameters, "parameters")
        second = first if others is None else family.read(others, "others")
        return self._log_matrix(first, second)

    def diagonal(self, parameters: Any) -> FloatArray:
        """Similarity of each part with itself, (n_parts,)."""
        logs = self._family.log_diagonal(self._family.read(parameters, "parameters"), self.rho)
        return np.ones_like(logs) if self.normalized else np.exp(logs)

    @property
    def features(self) -> Callable[[Any], Any]:
        """``features(rows)``: what the kernel is the inner product of; for the categorical family only."""
        if self.family != "categorical":
            raise AttributeError(f"the product kernel of the {self.family} family has no finite features")
        return self._power_rows

    def pullback(self, parameters: Any, sensitivity: ArrayLike) -> Any:
        """Gradient of ``sum(sensitivity * self(parameters))``, in the shape of the parameters.

        Probabilities and rates at a bound are read 1e-12 inside it, where the slope is still finite. The gradient by a
        covariance matrix is symmetric.
        """
        parts = self._family.interior(parameters)
        matrix = np.exp(self._log_matrix(parts, parts))
        return self._weighted_pullback(parts, symmetric(sensitivity, len(matrix)) * matrix)

    def log_determinant(self, parameters: Any) -> float:
        """Log determinant of the kernel matrix, minus infinity when it is singular to rounding."""
        parts = self._family.read(parameters, "parameters")
        logs = self._family.log_diagonal(parts, self.rho)
        scale = 0.0 if self.normalized else float(logs.sum())
        if self.family == "categorical":
            return log_determinant(_dense_rows(parts), self.rho) + scale
        return log_determinant_of_matrix(np.exp(self._unit_log_matrix(parts, parts))) + scale

    def log_determinant_gradient(self, parameters: Any) -> Any:
        """Gradient of `log_determinant`, in the shape of the parameters; bounds as in `pullback`."""
        parts = self._family.interior(parameters)
        if self.family == "categorical":
            gradient = log_determinant_gradient(parts, self.rho)
            if not self.normalized:
                gradient = gradient + self._family.log_pullback(parts, np.eye(len(parts)), self.rho)
            return gradient
        # K^-1 * K entry by entry does not depend on the scale of K, which may underflow: take the one of unit diagonal.
        units = np.exp(self._unit_log_matrix(parts, parts))
        return self._weighted_pullback(parts, inverse_of_matrix(units) * units)

    @property
    def _family(self) -> Family:
        if self.family == "categorical":
            return Categorical(self.normalized)
        if self.family == "gaussian":
            return Gaussian(self.covariance_type)
        return Bernoulli() if self.family == "bernoulli" else Poisson()

    def _log_matrix(self, first: Any, second: Any) -> FloatArray:
        if self.normalized:
            return self._unit_log_matrix(first, second)
        values = self._family.log_kernel(first, second, self.rho)
        return 0.5 * (values + values.T) if first is second else values

    def _unit_log_matrix(self, first: Any, second: Any) -> FloatArray:
        family = self._family
        values = family.log_kernel(first, second, self.rho)
        own = family.log_diagonal(first, self.rho)
        other = own if second is first else family.log_diagonal(second, self.rho)
        values = np.minimum(values - 0.5 * (own[:, None] + other), 0.0)
        if first is second:
            values = 0.5 * (values + values.T)
            np.fill_diagonal(values, 0.0)
        return values

    def _weighted_pullback(self, parts: Any, weights: FloatArray) -> Any:
        """Gradient of ``sum(weights * log(kernel))``, where the normalisation is a change of the diagonal weights."""
        if self.normalized:
            weights = weights - np.diag(weights.sum(axis=1))
        return self._family.log_pullback(parts, weights, self.rho)

    def _power_rows(self, parameters: Any) -> Any:
        rows = self._family.read(parameters, "parameters")
        if self.normalized:
            return CosineKernel().features(power_rows(rows, self.rho)[0])
        return rows.power(self.rho) if hasattr(rows, "tocsr") else rows**self.rho


def _dense_rows(rows: Any) -> FloatArray:
    return np.asarray(rows.toarray() if hasattr(rows, "tocsr") else rows, dtype=np.float64)
