"""What a fitted model is to a planner: its latent classes, steps or places, given what is observed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from scipy.stats import poisson
from sklearn.utils.validation import check_is_fitted

from pluri.decisions.planning.chain_steps import NormalEmission, StepPlanner, SymbolEmission
from pluri.decisions.planning.field_places import PlacePlanner
from pluri.decisions.planning.gaussian_columns import GaussianPlanner
from pluri.decisions.planning.scenarios import ClassColumns, ClassPlanner

Array = NDArray[np.float64]

#: Counts that are larger have this probability, and are left out.
NEGLIGIBLE = 1e-12


def planner_of(model: Any, X: Any, target: Any, n_samples: int, rng: np.random.Generator) -> Any:
    """The planner for a model and what is observed so far."""
    from pluri.mixtures import BernoulliMixture, CategoricalMixture, GaussianMixture, NaiveBayes
    from pluri.processes import GaussianProcessRegressor
    from pluri.sequences import BernoulliHMM, CategoricalHMM, GaussianHMM, PoissonHMM

    check_is_fitted(model)
    if isinstance(model, GaussianProcessRegressor):
        return _places(model, X, target)
    if isinstance(model, GaussianHMM | CategoricalHMM | BernoulliHMM | PoissonHMM):
        _refuse_target(target, model)
        return _steps(model, X, n_samples, rng)
    row = _row(X, model.n_features_in_, isinstance(model, CategoricalMixture))
    if isinstance(model, GaussianMixture):
        return _gaussian(model, row, target, n_samples, rng)
    if isinstance(model, BernoulliMixture):
        tables = [np.stack([1.0 - column, column], axis=1) for column in np.asarray(model.probabilities_).T]
        codes = _codes(row, [np.array([0.0, 1.0])] * len(tables))
        return _classes(np.log(model.weights_), tables, {}, codes, target, n_samples, rng)
    if isinstance(model, CategoricalMixture):
        tables = [np.asarray(table) for table in model.probabilities_]
        return _classes(np.log(model.weights_), tables, {}, _codes(row, model.categories_), target, n_samples, rng)
    if isinstance(model, NaiveBayes):
        return _naive_bayes(model, row, target, n_samples, rng)
    raise TypeError(
        "model must be a Gaussian, Bernoulli or categorical mixture, a naive Bayes classifier, a Gaussian, "
        "categorical, Bernoulli or Poisson hidden Markov model or a Gaussian-process regressor, got "
        f"{type(model).__name__}"
    )


def _refuse_target(target: Any, model: Any) -> None:
    if target is not None:
        raise ValueError(f"target must be None (the latent states) for a {type(model).__name__}, got {target!r}")


def _row(X: Any, n_features: int, categories: bool) -> NDArray[Any]:
    """One row, with None or NaN for what is not observed."""
    row = np.asarray(X, dtype=object if categories else np.float64)
    row = row[0] if row.ndim == 2 and len(row) == 1 else row
    if row.shape != (n_features,):
        raise ValueError(f"X must be one row of {n_features} columns, NaN where nothing is seen, got shape {row.shape}")
    return row


def _missing(value: Any) -> bool:
    return value is None or (isinstance(value, float | np.floating) and bool(np.isnan(value)))


def _codes(row: NDArray[Any], categories: Any) -> list[int | None]:
    """Category of each value that is observed, None of those that are not."""
    found: list[int | None] = []
    for column, (value, known) in enumerate(zip(row, categories)):
        if _missing(value):
            found.append(None)
            continue
        where = np.flatnonzero(np.asarray(known) == value)
        if not len(where):
            raise ValueError(f"X must hold one of {list(known)[:10]} in column {column}, got {value!r}")
        found.append(int(where[0]))
    return found


def _classes(
    log_weights: Array, tables: list[Array], normals: dict[int, tuple[Array, Array, float]], codes: list[int | None],
    target: Any, n_samples: int, rng: np.random.Generator,
) -> ClassPlanner:  # fmt: skip
    """Classes given the observed columns; `normals` have (means, variances, observed value or NaN)."""
    logs = np.array(log_weights, dtype=np.float64)
    discrete: dict[int, Array] = {}
    for column, (table, code) in enumerate(zip(tables, codes)):
        if table is None:
            continue
        if code is None:
            discrete[column] = table
        else:
            with np.errstate(divide="ignore"):
                logs += np.log(table[:, code])
    free: dict[int, tuple[Array, Array]] = {}
    for column, (means, variances, value) in normals.items():
        if np.isnan(value):
            free[column] = (means, variances)
        else:
            logs += -0.5 * (value - means) ** 2 / variances - 0.5 * np.log(variances)
    if np.isneginf(logs).all():
        raise ValueError("X must be possible under the model, got values that no component can have")
    if target is not None and target not in discrete:
        raise ValueError(f"target must be a discrete column that is not observed ({sorted(discrete)}), got {target!r}")
    if target is not None and free:
        raise ValueError("target must be None where columns are normal: information about the class is what is known")
    columns = ClassColumns(np.exp(logs - logsumexp(logs)), discrete, free)
    return ClassPlanner(columns, target, n_samples, rng)


def _naive_bayes(model: Any, row: Array, target: Any, n_samples: int, rng: np.random.Generator) -> ClassPlanner:
    from pluri.mixtures.naive_bayes.feature_families import BernoulliFeatures
    from pluri.mixtures.naive_bayes.gaussian_features import GaussianFeatures

    tables: list[Any] = [None] * len(row)
    normals: dict[int, tuple[Array, Array, float]] = {}
    values = row.copy()
    for (kind, columns), estimate in zip(model._layout, model._estimates):
        for place, column in enumerate(columns):
            if isinstance(kind, BernoulliFeatures):
                one = estimate[:, place]
                tables[column] = np.stack([1.0 - one, one], axis=1)
                if kind.threshold is not None and not np.isnan(values[column]):
                    values[column] = float(values[column] > kind.threshold)
            elif isinstance(kind, GaussianFeatures):
                if estimate.dof is not None:
                    raise ValueError("inference must be 'map' or 'ml' for Gaussian columns, got 'bayes'")
                normals[int(column)] = (estimate.mean[:, place], estimate.variance[:, place], float(row[column]))
            else:
                tables[column] = estimate[place]
    ranges = [np.arange(0 if table is None else table.shape[1], dtype=np.float64) for table in tables]
    plain = np.where([table is None for table in tables], np.nan, values)
    return _classes(model._log_class_prior, tables, normals, _codes(plain, ranges), target, n_samples, rng)


def _gaussian(model: Any, row: Array, target: Any, n_samples: int, rng: np.random.Generator) -> GaussianPlanner:
    means = np.asarray(model.means_, dtype=np.float64)
    k, d = means.shape
    given = np.asarray(model.covariances_, dtype=np.float64)
    kinds: dict[str, Any] = {
        "full": lambda: given.reshape(k, d, d),
        "tied": lambda: np.broadcast_to(given, (k, d, d)),
        "diag": lambda: np.stack([np.diag(one) for one in given.reshape(k, d)]),
        "spherical": lambda: np.stack([one * np.eye(d) for one in given.reshape(k)]),
    }
    if model.covariance_type not in kinds:
        raise ValueError(f"covariance_type must be one of {sorted(kinds)} to plan, got {model.covariance_type!r}")
    covariances = kinds[model.covariance_type]()
    seen, free = np.flatnonzero(~np.isnan(row)), np.flatnonzero(np.isnan(row))
    wanted = _wanted_columns(target, free)
    logs = np.log(model.weights_)
    if not len(seen):
        shares = np.exp(logs - logsumexp(logs))
        return GaussianPlanner(shares, means, covariances.copy(), free.tolist(), n_samples, rng, wanted)
    new_means, new_covariances = np.empty((k, len(free))), np.empty((k, len(free), len(free)))
    for z in range(k):
        block = covariances[z][np.ix_(seen, seen)]
        gap = row[seen] - means[z, seen]
        weights = np.linalg.solve(block, covariances[z][np.ix_(seen, free)])
        logs[z] += -0.5 * (gap @ np.linalg.solve(block, gap) + np.linalg.slogdet(block)[1])
        new_means[z] = means[z, free] + gap @ weights
        new_covariances[z] = covariances[z][np.ix_(free, free)] - covariances[z][np.ix_(free, seen)] @ weights
    shares = np.exp(logs - logsumexp(logs))
    return GaussianPlanner(shares, new_means, new_covariances, free.tolist(), n_samples, rng, wanted)


def _wanted_columns(target: Any, free: NDArray[np.int64]) -> list[int] | None:
    """Columns that information is wanted about."""
    if target is None:
        return None
    asked = np.asarray(target)
    wanted = [int(column) for column in np.atleast_1d(asked)] if asked.dtype.kind in "iu" and asked.ndim < 2 else []
    if not wanted or len(set(wanted)) < len(wanted) or not set(wanted) <= set(free.tolist()):
        raise ValueError(
            f"target must be one or several columns that are not observed ({free.tolist()}), each once, got {target!r}"
        )
    if len(wanted) == len(free):
        raise ValueError(f"target must leave a column to observe, of {free.tolist()}, got all of them")
    return wanted


def _steps(model: Any, X: Any, n_samples: int, rng: np.random.Generator) -> StepPlanner:
    sequence = np.asarray(X, dtype=np.float64)
    sequence = sequence[:, None] if sequence.ndim == 1 else sequence
    n_features = int(model.n_features_in_)
    if sequence.ndim != 2 or sequence.shape[1] != n_features or not len(sequence):
        raise ValueError(
            f"X must be one sequence of {n_features} columns, NaN where nothing is observed, got shape {np.shape(X)}"
        )
    tables = _tables_of_states(model)
    if tables is not None:
        return StepPlanner(model, sequence, SymbolEmission(tables), n_samples, rng)
    means = np.asarray(model.means_, dtype=np.float64)
    covariances = np.asarray(model.covars_, dtype=np.float64)
    if covariances.shape != (*means.shape, means.shape[1]):
        raise ValueError(f"covariance_type must be one with a matrix for each state, got {model.covariance_type!r}")
    return StepPlanner(model, sequence, NormalEmission(means, covariances), n_samples, rng)


def _tables_of_states(model: Any) -> list[Array] | None:
    """Distributions of each column (k, v) in the states of a model of symbols or counts; None for other models."""
    from pluri.sequences import BernoulliHMM, CategoricalHMM, PoissonHMM

    if isinstance(model, CategoricalHMM):
        given = model.emissionprob_
        return [np.asarray(table) for table in (given if isinstance(given, list | tuple) else [given])]
    if isinstance(model, BernoulliHMM):
        return [np.stack([1.0 - column, column], axis=1) for column in np.asarray(model.probs_, dtype=np.float64).T]
    if isinstance(model, PoissonHMM):
        rates = np.asarray(model.lambdas_, dtype=np.float64)
        counts = [np.arange(poisson.isf(NEGLIGIBLE, column.max()) + 1) for column in rates.T]
        tables = [poisson.pmf(count, column[:, None]) for count, column in zip(counts, rates.T)]
        return [table / table.sum(axis=1, keepdims=True) for table in tables]
    return None


def _places(model: Any, X: Any, target: Any) -> PlacePlanner:
    places = np.asarray(X, dtype=np.float64)
    if places.ndim != 2 or places.shape[1] != model.n_features_in_ or not len(places) or np.isnan(places).any():
        raise ValueError(
            f"X must be candidate places of {model.n_features_in_} columns without NaN, got shape {places.shape}"
        )
    noise = float(model.noise_variance_) * float(model._scale) ** 2
    if noise <= 0:
        raise ValueError("noise_variance of the model must be positive to plan, got 0: information would be infinite")
    if target is None:
        return PlacePlanner(model.predict(places, return_cov=True)[1], noise)
    wanted = np.asarray(target, dtype=np.float64)
    if wanted.ndim != 2 or wanted.shape[1] != model.n_features_in_ or not len(wanted):
        raise ValueError(f"target must be places of {model.n_features_in_} columns, got shape {wanted.shape}")
    joint = model.predict(np.vstack([places, wanted]), return_cov=True)[1]
    n = len(places)
    across = joint[:n, n:]
    explained = across @ np.linalg.pinv(joint[n:, n:], hermitian=True, rcond=1e-10) @ across.T
    return PlacePlanner(joint[:n, :n], noise, joint[:n, :n] - explained)
