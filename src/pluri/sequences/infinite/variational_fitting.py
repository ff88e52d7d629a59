"""How `InfiniteHMM` is fitted by variational inference, and what is kept of it; X may be read in batches."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from pluri.components.first_sequences import first_sequences
from pluri.engine import Source, resolve_engine
from pluri.progress.callbacks import fit_callbacks
from pluri.sequences.infinite.families import family_name, learn_model
from pluri.sequences.infinite.observations import ObservationModel
from pluri.sequences.infinite.state_parameters import state_parameters
from pluri.sequences.infinite.transitions import Hyperparameters, HyperPriors
from pluri.sequences.infinite.variational import VariationalFit, fit_variational
from pluri.sequences.infinite.variational_problem import VariationalInfiniteHMM
from pluri.sequences.infinite.variational_start import FIRST_STEPS
from pluri.validation import as_generator

#: What only a fit by sampling has.
OF_CHAINS = ("trace_", "best_chain_", "best_labels_", "expected_loss_", "duration_parameters_")


def model_of_source(estimator: Any, source: Source) -> ObservationModel:
    """Observation model of data that come in batches, its priors chosen from the first sequences."""
    if family_name(estimator.family) == "categorical":
        raise ValueError(
            "X must be an array or a list for family='categorical', got a source: all symbols must be known"
        )
    for lazy in source.batches():
        if lazy.load().lengths is None:
            raise ValueError("X, a source of batches, must give the lengths of its sequences")
        break
    first = first_sequences(source, FIRST_STEPS)
    data = estimator._check_data(first.rows, fitting=True)
    # Which rows are missing in part is not known before all batches were read.
    return learn_model(
        estimator.family, estimator.component_prior, data, first.offsets, order=int(estimator.order)
    ).by_column()


def fit_by_bound(
    estimator: Any,
    X: Any,
    source: Source,
    model: ObservationModel,
    settings: tuple[Hyperparameters, HyperPriors],
    most: int,
) -> None:
    """Fit an estimator, in place, to sequences under a model with at most so many states."""
    hyper, priors = settings
    with fit_callbacks(estimator, max_iter=int(estimator.max_iter), X=X) as on_iteration:
        fit = fit_variational(
            model,
            source,
            hyper,
            priors,
            as_generator(estimator.random_state),
            max_states=most,
            n_init=int(estimator.n_init),
            max_iter=int(estimator.max_iter),
            tol=float(estimator.tol),
            engine=resolve_engine(None, estimator.n_jobs),
            verbose=int(estimator.verbose),
            on_iteration=on_iteration,
        )
        _store(estimator, fit, VariationalInfiniteHMM(model, hyper, priors), source)
    result = fit.result
    if result.interrupted:
        return
    if result.reason == "max_iter":
        warnings.warn(
            f"the bound still rises after max_iter={estimator.max_iter} sweeps; raise max_iter or tol",
            ConvergenceWarning,
            stacklevel=4,
        )
    if fit.n_occupied == most:
        warnings.warn(
            f"the states reached max_components={most}: raise it unless the number of states is meant to be cut",
            UserWarning,
            stacklevel=4,
        )


def _store(estimator: Any, fit: VariationalFit, problem: VariationalInfiniteHMM, source: Source) -> None:
    """Set the fitted attributes."""
    q = fit.beliefs
    for name in OF_CHAINS:
        estimator.__dict__.pop(name, None)
    for name, value in q.weights.hyper._asdict().items():
        setattr(estimator, f"{name}_", float(value))
    estimator.n_states_ = q.n_states
    estimator.startprob_, estimator.transmat_ = fit.start, fit.transition
    estimator.common_weights_ = q.weights.mean
    estimator.state_occupancy_ = q.sizes
    estimator.objective_ = estimator.lower_bound_ = float(fit.bound)
    estimator.history_ = fit.result.history
    estimator.n_iter_, estimator.converged_ = int(fit.result.n_iter), bool(fit.result.converged)
    # One likelihood for each column, so that new rows may be missing in part.
    estimator.model_ = problem.model.by_column()
    by_column = replace(problem, counted=estimator.model_)
    labels, totals, statistics = [], [], []
    for lazy in source.batches():
        batch = lazy.load()
        labels.append(problem.decode(q, batch))
        statistics.append(by_column.expect(q, batch).sums)
        there = ~np.isnan(batch.X)
        totals.append(np.vstack([there.sum(axis=0), np.where(there, batch.X, 0.0).sum(axis=0)]))
    estimator.labels_ = np.concatenate(labels)
    estimator.state_sums_ = [np.asarray(sum(each)) for each in zip(*statistics)]
    # The factors of transitions and of parameters, as one draw of the states has them.
    estimator.posterior_draws_ = [{"rows": np.array(q.rows[:, :-1]), "sums": estimator.state_sums_}]
    estimator.state_parameters_ = state_parameters(estimator.model_, estimator.state_sums_)
    number, total = np.sum(totals, axis=0)
    estimator.data_mean_ = total / np.maximum(number, 1)
