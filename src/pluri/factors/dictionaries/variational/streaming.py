"""Dictionaries from sources larger than memory, and from further rows after a fit.

A source (`pluri.engine`: Parquet, a ``.npy`` file, any iterable of arrays) is read once for the number of rows, their
mean and their size, and then twice in each pass. At any time some minibatches are in memory, and the sums that
`pluri.factors.dictionaries.variational.stochastic` follows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
from sklearn.utils.validation import validate_data

from pluri.engine import Batch, Source
from pluri.factors.dictionaries.preparation import LARGEST, center_of, check_present, scaled
from pluri.factors.dictionaries.records import Array, Rows
from pluri.factors.dictionaries.sizes import effective_size
from pluri.factors.dictionaries.usage.code_classes import forget_classes
from pluri.factors.dictionaries.variational import precisions
from pluri.factors.dictionaries.variational.fitting import SMALLEST_GAIN, asked_for, first_atoms
from pluri.factors.dictionaries.variational.stochastic import N_SWEEPS, StochasticDictionary, sums_of
from pluri.inference.variational.conjugate import Natural
from pluri.inference.variational.minibatches import Minibatches
from pluri.inference.variational.stochastic import RobbinsMonro, natural_step, stochastic_variational_inference
from pluri.validation import as_generator, check_parameters, restored_on_failure

if TYPE_CHECKING:
    from pluri.factors.dictionaries.estimator import BetaProcessDictionary

#: Rows that principal axes are taken from.
FIRST_ROWS = 20_000


@dataclass(frozen=True)
class Survey:
    """What one reading of a source tells: numbers of rows and features, and what is subtracted and divided by."""

    n_rows: int
    n_features: int
    mean: Array
    scale: float


@dataclass(frozen=True, eq=False)
class PreparedSource:
    """A source whose batches are centred and scaled, and cut into minibatches."""

    source: Source
    center: str | None
    mean: Array
    scale: float
    batch_size: int

    def batches(self) -> Iterator[Batch]:
        """Start a new pass."""
        for lazy in self.source.batches():
            X = loaded(lazy)
            for begin in range(0, len(X), self.batch_size):
                part = X[begin : begin + self.batch_size]
                yield Batch((part - center_of(part, self.center, self.mean)) / self.scale)


def loaded(lazy: Any) -> Array:
    """Rows of a batch of a source; ValueError for what cannot be honoured."""
    batch = lazy.load()
    if batch.weight is not None:
        raise ValueError("sample_weight of a source must be None: rows of a dictionary have no weights")
    X = np.asarray(batch.X, dtype=np.float64)
    if X.ndim != 2 or np.isinf(X).any():
        raise ValueError(f"X must have finite values, or NaN for what is missing, in 2 dimensions, got shape {X.shape}")
    if np.nanmax(np.abs(X), initial=0.0) > LARGEST:
        raise ValueError(f"X must not exceed {LARGEST:g} in size; rescale it")
    check_present(X)
    return X


def survey(source: Source, center: str | None) -> Survey:
    """Read a source once."""
    n_rows, sums, squares, counts, pivot = 0, np.zeros(0), np.zeros(0), np.zeros(0), np.zeros(0)
    for lazy in source.batches():
        X = loaded(lazy)
        if not n_rows:
            sums, squares, counts, pivot = (np.zeros(X.shape[1]) for _ in range(4))
            if center == "feature":  # squares of what is far from zero would leave nothing of how it varies
                pivot = center_of(X, center)
        if X.shape[1] != len(sums):
            raise ValueError(f"X must have {len(sums)} features in all batches, got {X.shape[1]}")
        X = X - (center_of(X, center) if center == "sample" else pivot)
        n_rows += len(X)
        sums += np.nansum(X, axis=0)
        squares += np.nansum(X**2, axis=0)
        counts += np.isfinite(X).sum(axis=0)
    if n_rows < 2:
        raise ValueError(f"X must have at least 2 rows, got a source of {n_rows}")
    mean = sums / np.maximum(counts, 1) if center == "feature" else np.zeros(len(sums))
    size = math.sqrt(max(float((squares - counts * mean**2).sum()) / float(counts.sum()), 0.0))
    return Survey(n_rows, len(sums), pivot + mean, size or 1.0)


class StreamedFit:
    """`partial_fit` and fits of sources, for an estimator of dictionaries."""

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Go on with further rows, by one noisy step of variational Bayes.

        The first call is a `fit`. After that all rows seen so far count alike, or the new ones more if there have been
        few batches before: a batch moves the model by the larger of its share of all rows and
        ``(learning_offset + t) ** -learning_decay`` times its share of `batch_size` rows. What was subtracted and
        divided by in the first fit stays as it is.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            NaN marks a missing value.
        y : ignored

        Returns
        -------
        self : object
        """
        model = cast("BetaProcessDictionary", self)
        check_parameters(model)
        learned = replace(asked_for(model, stochastic=True), n_sweeps=N_SWEEPS)
        if not hasattr(model, "components_"):
            return model.fit(X)
        data = validate_data(model, X, dtype=np.float64, reset=False, ensure_all_finite="allow-nan")
        check_present(data)
        offset = center_of(data, model.center, model.mean_ if model.center == "feature" else None)
        rows = scaled(data, offset, model.scale_)
        params, seen, steps = so_far(model)
        total = seen + len(rows)
        online = StochasticDictionary(learned, model.components_, float(total), np.dtype(model.dtype))
        rho = RobbinsMonro(float(model.learning_decay), float(model.learning_offset))(steps + 1)
        rho = max(min(1.0, len(rows) / float(model.batch_size)) * rho, len(rows) / total)
        grown = {name: value * (total / params["numbers"][2]) for name, value in params.items()}
        moved, _ = natural_step(online, grown, Batch(rows), rho=rho, n_total=total)
        with restored_on_failure(model):
            store_sums(model, online, moved)
            model.n_samples_seen_, model.n_steps_ = total, steps + 1
        return self

    def _fit_source(self, source: Source, init: Any) -> Self:
        """Learn from a source, which may be larger than memory; `init` as for a fit of rows."""
        model = cast("BetaProcessDictionary", self)
        learned = replace(asked_for(model, stochastic=True), n_sweeps=N_SWEEPS)
        rng = as_generator(model.random_state)
        found = survey(source, model.center)
        prepared = PreparedSource(source, model.center, found.mean, found.scale, int(model.batch_size))
        first = Rows.of(first_rows(prepared))
        atoms = first_atoms(rng, first, int(model.n_components), init)
        online = StochasticDictionary(learned, atoms, float(found.n_rows), np.dtype(model.dtype))
        result = stochastic_variational_inference(
            online, Minibatches(prepared, n_total=found.n_rows), rng=rng, max_iter=int(model.max_iter),
            schedule=RobbinsMonro(float(model.learning_decay), float(model.learning_offset)),
            tol=max(float(model.tol), SMALLEST_GAIN), verbose=int(model.verbose),
        )  # fmt: skip
        model.n_features_in_ = found.n_features
        model.mean_, model.scale_ = found.mean, found.scale
        model.converged_, model.n_iter_, model.bound_ = result.converged, result.n_passes, list(result.trace)
        store_sums(model, online, result.params)
        model.n_samples_seen_, model.n_steps_ = found.n_rows, result.n_steps
        return self


def first_rows(prepared: PreparedSource) -> Array:
    """Some rows to start from."""
    parts: list[Array] = []
    for batch in prepared.batches():
        parts.append(batch.X)
        if sum(map(len, parts)) >= FIRST_ROWS:
            break
    return np.concatenate(parts)


def so_far(model: BetaProcessDictionary) -> tuple[Natural, int, int]:
    """Sums that stand for what a model has learned, the number of rows, and of steps that it took."""
    if hasattr(model, "statistics_"):
        return model.statistics_, int(model.n_samples_seen_), int(model.n_steps_)
    # Without sums: after a fit of rows, or after atoms were merged.
    seen = getattr(model, "n_samples_seen_", None)
    n = len(model.reconstruction_) if seen is None else int(seen)
    unit = model.scale_**2
    noise, weight = float(np.mean(model.noise_variance_)) / unit, model.weight_variance_ / unit
    sums = sums_of(model.components_, float(n), usage=model.usage_, noise=noise, weight=weight)
    steps = int(model.n_iter_) * math.ceil(n / int(model.batch_size)) if seen is None else int(model.n_steps_)
    return sums, n, steps


def store_sums(model: BetaProcessDictionary, online: StochasticDictionary, params: Natural) -> None:
    """Change an estimator: fitted attributes from sums, atoms in the order of their usage."""
    order = np.argsort(-params["used"], kind="stable")
    sums = {
        "second": params["second"][np.ix_(order, order)], "cross": params["cross"][order],
        "used": params["used"][order], "numbers": np.asarray(params["numbers"]),
    }  # fmt: skip
    q = online.beliefs(sums)
    n_rows = float(sums["numbers"][2])
    D = q.components.astype(np.float64)
    model.components_, model.component_covariance_ = D, np.diag(q.component_variances[:, 0].astype(np.float64))
    model.usage_ = q.usage.expected_probabilities[0]
    lengths = (D**2).sum(axis=1) + D.shape[1] * q.component_variances[:, 0]
    model.effective_size_ = effective_size(D, sums["used"] / n_rows, sums["second"].diagonal() * lengths)
    model.noise_variance_ = float(model.scale_**2 / precisions.mean(q.noise_precision)[0])
    model.weight_variance_ = float(model.scale_**2 / precisions.mean(q.weight_precision)[0])
    model.statistics_ = sums
    forget_classes(model)
    # Those of an earlier fit are of other atoms.
    for name in {"reconstruction_", "reconstruction_std_", "trace_", "cluster_labels_"} & set(vars(model)):
        delattr(model, name)
