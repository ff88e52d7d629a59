r"""The determinantal prior over the parts of a model: components, topics, states, subspaces that should differ.

.. math:: p(\theta_1, \dots, \theta_k) \propto \prod_i p(\theta_i) \cdot \det\bigl( K(\theta) \bigr)^{w}

For a model whose components are exchangeable it replaces the independent prior: the E-step stays as it is and the
M-step gains :math:`w \log\det K`. Three questions arise: which parameters should differ, by which kernel, and how to
climb. The first two are the user's; for the third there is :math:`\nabla \log\det K = \operatorname{tr}(K^{-1} \nabla
K)`, which every kernel of :mod:`pluri.priors.kernels` has in closed form. For rows on a simplex
:class:`pluri.priors.Diversity` is the same prior with an M-step of its own.

References
----------
.. [1] J. Y. Zou and R. P. Adams, "Priors for diversity in generative latent variable models", NIPS 2012.
.. [2] A. Kulesza and B. Taskar, "Determinantal point processes for machine learning", Foundations and Trends in Machine
   Learning 5, 2012.
"""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np

from pluri.priors.kernels.similarity import inverse_of_matrix, log_determinant_of_matrix
from pluri.priors.protocol import FloatArray

#: Similarities below this count as this in distances, so that disjoint pairs leave averages finite.
SIMILARITY_FLOOR = 1e-300


@dataclass(frozen=True)
class DeterminantalDiagnosis:
    """How far apart the parts are.

    Attributes
    ----------
    log_determinant : float
        Of the kernel matrix; minus infinity when parts coincide.
    mean_distance : float
        Mean over the pairs of minus the log similarity, scaled to unit diagonal: for a probability product kernel with
        ``rho=0.5`` the Bhattacharyya distance. Disjoint pairs count as 690.78; NaN for a single part.
    nearest_pair : tuple of int or None
        The two parts that are most alike; None for a single part.
    nearest_overlap : float
        Their similarity, 1 if they coincide; NaN for a single part.
    """

    log_determinant: float
    mean_distance: float
    nearest_pair: tuple[int, int] | None
    nearest_overlap: float


@dataclass(frozen=True)
class DeterminantalPrior:
    """A prior under which the parts of a model repel each other: ``weight * log det K``.

    Parameters
    ----------
    kernel : SimilarityKernel
        What "alike" means; any object of :mod:`pluri.priors.kernels`, or a callable ``kernel(parameters) -> (n, n)``,
        which for gradients also has ``pullback(parameters, sensitivity)``.
    weight : float, default=1.0
        Non-negative, absolute like a count; 0 is no prior, and its density and gradient are exactly 0. A large weight
        drives parts to disjoint supports whatever the data say.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.priors.determinantal import DeterminantalPrior
    >>> from pluri.priors.kernels import ProbabilityProductKernel
    >>> prior = DeterminantalPrior(ProbabilityProductKernel("gaussian"), weight=2.0)
    >>> components = np.array([[0.0], [2.0]]), np.array([1.0, 1.0])
    >>> prior.log_density(components)
    -0.917350
    >>> means, variances = prior.gradient(components)
    >>> means.ravel().round(4), variances.round(4)
    (array([-1.164,  1.164]), array([-0.582, -0.582]))
    >>> prior.diagnose(components).nearest_overlap
    0.606531
    """

    kernel: Any
    weight: float = 1.0

    def __post_init__(self) -> None:
        if not callable(self.kernel):
            raise ValueError(f"kernel must be a similarity kernel, as in pluri.priors.kernels, got {self.kernel!r}")
        number = isinstance(self.weight, numbers.Real) and not isinstance(self.weight, bool)
        if not (number and np.isfinite(float(self.weight)) and self.weight >= 0):
            raise ValueError(f"weight must be a non-negative number, got {self.weight!r}")
        object.__setattr__(self, "weight", float(self.weight))

    def log_density(self, parameters: Any) -> float:
        """``weight`` times the log determinant of the kernel matrix, minus infinity when parts coincide."""
        return self.weight * self._log_determinant(parameters) if self.weight > 0 else 0.0

    def gradient(self, parameters: Any) -> Any:
        """Gradient of `log_density` in the shape of the parameters: an array, or a tuple of arrays for Gaussians.

        It is the gradient in the surrounding space: not projected on the simplex, on orthonormal frames or on positive
        definite matrices. Where the kernel matrix is singular its pseudo-inverse is used, with a `DiversityWarning`.
        """
        if self.weight == 0:
            return _map(lambda values: np.zeros(np.shape(values)), parameters)
        if hasattr(self.kernel, "log_determinant_gradient"):
            slope = self.kernel.log_determinant_gradient(parameters)
        elif hasattr(self.kernel, "pullback"):
            slope = self.kernel.pullback(parameters, inverse_of_matrix(self.kernel(parameters)))
        else:
            raise TypeError(f"kernel must have the method pullback for gradients, got {self.kernel!r}")
        return _map(lambda values: self.weight * values, slope)

    def diagnose(self, parameters: Any) -> DeterminantalDiagnosis:
        """Log determinant, mean distance and nearest pair of the parts; the weight plays no role."""
        logs = self._log_similarities(parameters)
        log_determinant = self._log_determinant(parameters)
        above, beside = np.triu_indices(len(logs), k=1)
        if above.size == 0:
            return DeterminantalDiagnosis(log_determinant, np.nan, None, np.nan)
        pairs = logs[above, beside]
        nearest = int(pairs.argmax())
        distances = -np.where(np.isneginf(pairs), np.log(SIMILARITY_FLOOR), pairs)
        return DeterminantalDiagnosis(
            log_determinant,
            float(distances.mean()),
            (int(above[nearest]), int(beside[nearest])),
            float(np.exp(pairs[nearest])),
        )

    def _log_determinant(self, parameters: Any) -> float:
        if hasattr(self.kernel, "log_determinant"):
            return float(self.kernel.log_determinant(parameters))
        return log_determinant_of_matrix(self.kernel(parameters))

    def _log_similarities(self, parameters: Any) -> FloatArray:
        """Logs of the absolute similarities, scaled to unit diagonal."""
        if hasattr(self.kernel, "log_matrix"):
            logs = np.asarray(self.kernel.log_matrix(parameters), dtype=np.float64)
        else:
            with np.errstate(divide="ignore"):
                logs = np.log(np.abs(np.asarray(self.kernel(parameters), dtype=np.float64)))
        own = np.diagonal(logs)
        own = np.where(np.isneginf(own), 0.0, own)  # a part without similarity to itself, such as a row of zeros
        return np.minimum(logs - 0.5 * (own[:, None] + own), 0.0)


def _map(function: Any, parameters: Any) -> Any:
    """Apply a function to the array, or to each array of a pair of means and covariances."""
    if isinstance(parameters, tuple):
        return tuple(function(values) for values in parameters)
    return function(parameters)
