"""What the estimators of exponential-family PCA and of its mixtures share: settings, input, and running the fit."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from pluri.factors.exponential_family.expansion import INFERENCES
from pluri.factors.exponential_family.families import Family, as_family
from pluri.factors.exponential_family.learning import ComponentsModel, State
from pluri.factors.exponential_family.loadings import InterceptPrior, intercept_prior
from pluri.factors.exponential_family.observations import Observations, observe
from pluri.factors.exponential_family.relevance import WeightPrior, check_prior
from pluri.factors.exponential_family.starts import INITS
from pluri.inference.run import IterationState
from pluri.inference.variational import coordinate_ascent
from pluri.inference.variational.coordinate_ascent import CoordinateAscentResult
from pluri.validation import Number, Only, Whole, as_generator, check_parameters
from pluri.validation.estimator import Estimator

Array = NDArray[np.float64]

#: Loadings beyond this mean that zeros and ones, or counts of zero, are separated perfectly.
SEPARATED = 50.0
#: Larger data could not be squared and summed.
LARGEST = 1e100


class ExponentialFamilyEstimator(Estimator):
    """Settings, input and the loop; estimators add what they learn and what they answer."""

    _may_learn_smoothing = False
    _input_tags: ClassVar[Mapping[str, bool]] = {"allow_nan": True, "sparse": True}

    def _check_settings(self, least: dict[str, int]) -> tuple[Family, WeightPrior]:
        smoothing = Number(least=0)
        check_parameters(
            self,
            inference=Only(*INFERENCES),
            init=Only(*INITS),
            smoothing=smoothing | Only("auto") if self._may_learn_smoothing else smoothing,
            tol=Number(finite=False),
            **{name: Whole(lowest) for name, lowest in least.items()},
        )
        family = as_family(self.family)
        prior = check_prior(self.loading_prior, self.loading_precision, self.precision_update)
        if prior.kind == "ard" and self.inference == "map":
            raise ValueError(
                "loading_prior must be 'ridge' or None for inference='map', got 'ard': precisions are learned from the "
                "uncertainty of the latent variables, which point estimates do not have"
            )
        return family, prior

    def _read(
        self, X: Any, sample_weight: Any = None, *, reset: bool = False, family: Family | None = None
    ) -> Observations:
        if not reset:
            check_is_fitted(self)
        values = validate_data(
            self, X, dtype=np.float64, accept_sparse=("csr", "csc"), ensure_all_finite="allow-nan", reset=reset
        )
        if sparse.issparse(values):
            values = values.toarray()
        known = np.abs(values[~np.isnan(values)])
        if known.size and known.max() > LARGEST:
            raise ValueError(f"X must not exceed {LARGEST:g} in size, got {known.max():.3g}; rescale it")
        weight = None
        if sample_weight is not None:
            weight = _check_sample_weight(sample_weight, values, dtype=np.float64, ensure_non_negative=True)
            if not weight.sum() > 0:
                raise ValueError("sample_weight must have a positive sum, got 0")
        return observe(values, as_family(self.family) if family is None else family, weight)

    def _intercept_prior(self, data: Observations) -> InterceptPrior:
        return intercept_prior(data, float(self.smoothing), bool(self.fit_intercept))

    def _climb(
        self,
        model: ComponentsModel,
        data: Observations,
        start: State | None,
        on_iteration: Callable[[IterationState[State]], bool | None] | None = None,
    ) -> CoordinateAscentResult[State]:
        """Run the loop, and say what the user should know about its outcome."""
        result = coordinate_ascent(
            model,
            data,
            rng=as_generator(self.random_state),
            max_iter=int(self.max_iter),
            tol=float(self.tol),
            n_init=int(self.n_init),
            start=None if start is None else [start],
            may_fall=True,
            verbose=int(self.verbose),
            on_iteration=on_iteration,
        )
        if result.reason == "max_iter":
            warnings.warn(
                f"the objective still changes after max_iter={self.max_iter} sweeps; raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=3,
            )
        fitted = result.params.fitted
        largest = max(float(np.abs(loadings.weights).max(initial=0.0)) for loadings in fitted.loadings)
        if model.weight_prior.kind is None and model.family.name != "gaussian" and largest > SEPARATED:
            warnings.warn(
                f"loadings of {largest:.3g}: features are separated perfectly, and without a prior loadings grow for "
                "ever; set loading_prior='ard' or 'ridge'",
                UserWarning,
                stacklevel=3,
            )
        return result

    @staticmethod
    def _predictive(model: ComponentsModel) -> ComponentsModel:
        """The model that answers questions: latents are integrated out also where they were point estimates."""
        inference = "laplace" if model.inference == "map" else model.inference
        return replace(model, inference=inference, latent="per_component")


def check_non_negative(name: str, value: Any) -> float:
    """Refuse what is no number of at least zero."""
    if not isinstance(value, Real) or isinstance(value, bool) or not 0 <= float(value) < math.inf:
        raise ValueError(f"{name} must be a non-negative number, got {value!r}")
    return float(value)


def signed(weights: Array) -> Array:
    """Signs that make the largest entry of each column positive, (n_columns,)."""
    if weights.shape[1] == 0:
        return np.ones(0)
    largest = weights[np.abs(weights).argmax(axis=0), np.arange(weights.shape[1])]
    return np.where(largest < 0, -1.0, 1.0)
