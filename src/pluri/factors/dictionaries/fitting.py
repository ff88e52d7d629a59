"""From prepared rows to fitted attributes: which way of learning is called, and what is kept of it."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from pluri.factors.dictionaries import sampling
from pluri.factors.dictionaries.preparation import Prepared
from pluri.factors.dictionaries.records import DictionaryFit
from pluri.factors.dictionaries.sizes import REGULAR, effective_size
from pluri.factors.dictionaries.start import Earlier

if TYPE_CHECKING:
    from pluri.factors.dictionaries.estimator import BetaProcessDictionary

#: Fitted attributes that not all ways of learning give.
OCCASIONAL = {
    "trace_", "bound_", "cluster_labels_", "noise_groups_", "statistics_", "n_samples_seen_", "n_steps_",
    "code_shares_", "code_usage_", "code_variances_",
}  # fmt: skip
#: Variance of the noise, as a share of that of the data, below which a fit is a mere interpolation.
NO_NOISE = 1e-12
#: If even the weakest atom has this share of the power of an average one, a dictionary is full.
FULL = 0.25


def learn(model: BetaProcessDictionary, prepared: Prepared, again: bool) -> DictionaryFit:
    """Learn in the way that the estimator asks for; `again`: from where it is."""
    init = model.components_ if again else _initial(model)
    if model.inference == "gibbs":
        if again:
            scale = prepared.scale**2
            init = Earlier(init, scale / float(np.mean(model.noise_variance_)), scale / model.weight_variance_)
        return sampling.fit(model, prepared.rows, init)
    from pluri.factors.dictionaries import variational

    return variational.fit(model, prepared.rows, init)


def learn_source(model: BetaProcessDictionary, source: Any) -> None:
    """Change an estimator: learn from a source of batches, which only the stochastic version can."""
    if model.inference != "svi":
        raise ValueError(f"X must be an array for inference={model.inference!r}, got a source: use inference='svi'")
    again = model.warm_start and hasattr(model, "components_")
    init = model.init if isinstance(model.init, str) else np.asarray(model.init, dtype=np.float64)
    model._fit_source(source, model.components_ if again else init)


def _initial(model: BetaProcessDictionary) -> Any:
    if isinstance(model.init, str):
        return model.init
    shape, atoms = (int(model.n_components), int(model.n_features_in_)), np.asarray(model.init, dtype=np.float64)
    if atoms.shape != shape or not np.isfinite(atoms).all():
        raise ValueError(f"init must be finite and of shape {shape}, got {atoms.shape}")
    return atoms


def store(model: BetaProcessDictionary, fitted: DictionaryFit, prepared: Prepared) -> None:
    """Change an estimator: its fitted attributes, in the units of the data, atoms in the order of their usage."""
    for name in OCCASIONAL & set(vars(model)):
        delattr(model, name)
    n, scale = len(prepared.rows.values), prepared.scale
    order = np.argsort(-fitted.usage, kind="stable")
    usage = fitted.usage[order]
    model.components_ = np.ascontiguousarray(fitted.components[order], dtype=np.float64)
    model.component_covariance_ = np.ascontiguousarray(fitted.component_covariance[np.ix_(order, order)])
    K = max(int(model.n_components), 2)
    first, second = float(model.a) / K, float(model.b) * (K - 1) / K
    model.usage_ = (first + n * usage) / (first + second + n)
    model.effective_size_ = effective_size(model.components_, usage, fitted.power[order])
    variance = scale**2 / np.asarray(fitted.noise_precision, dtype=np.float64)
    model.noise_variance_ = float(variance[0]) if model.noise_type == "shared" else variance
    model.weight_variance_ = float(scale**2 / fitted.weight_precision)
    model.mean_ = prepared.center if model.center == "feature" else np.zeros(model.n_features_in_)
    model.scale_ = scale
    model.reconstruction_ = fitted.mean.astype(np.float64) * scale + prepared.center
    model.reconstruction_std_ = np.sqrt(fitted.variance.astype(np.float64)) * scale
    model.converged_, model.n_iter_ = bool(fitted.converged), int(fitted.n_iter)
    if fitted.classes is not None:
        model.code_shares_ = fitted.classes.shares
        model.code_usage_ = np.ascontiguousarray(fitted.classes.usage[:, order])
        model.code_variances_ = np.ascontiguousarray(fitted.classes.variances[:, order]) * scale**2
    optional = {
        "noise_groups_": prepared.noise_labels,
        "cluster_labels_": fitted.cluster_labels,
        "trace_": fitted.trace,
        "bound_": fitted.bound,
    }
    for name, value in optional.items():
        if value is not None:
            setattr(model, name, value)


def warn(model: BetaProcessDictionary, fitted: DictionaryFit, prepared: Prepared) -> None:
    """Say what a user should know about a fit; that there was nothing to learn is said already."""
    K = int(model.n_components)
    if not prepared.rows.values.any():
        return
    if float(np.min(1 / fitted.noise_precision)) < NO_NOISE:
        warnings.warn(
            "the dictionary goes through the data without any noise: take fewer n_components, or a noise_prior that "
            "expects some, such as Gamma(1.0, 1e-4)",
            UserWarning,
            stacklevel=4,
        )
    if K > 1 and fitted.power.min() > FULL * fitted.power.mean() and fitted.usage.min() >= REGULAR:
        warnings.warn(
            f"all of n_components={K} atoms are in regular use: raise n_components", UserWarning, stacklevel=4
        )
    if not model.converged_ and fitted.bound is not None:
        warnings.warn(
            f"the bound still rises after max_iter={model.max_iter} iterations; raise max_iter or tol",
            ConvergenceWarning,
            stacklevel=4,
        )
