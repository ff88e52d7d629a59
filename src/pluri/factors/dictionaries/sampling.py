"""A fit of a dictionary by chains of the Gibbs sampler."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pluri.factors.dictionaries.conditionals import component_covariance, component_posterior, expected_components
from pluri.factors.dictionaries.gibbs import FLAT, DictionaryGibbs, Totals
from pluri.factors.dictionaries.records import Array, DictionaryFit, DictionaryState, Rows
from pluri.factors.dictionaries.start import start_dictionary
from pluri.factors.dictionaries.usage.beta_process import BetaProcessUsage
from pluri.factors.dictionaries.usage.clusters import settled_within
from pluri.factors.dictionaries.usage.code_classes import CodeClasses, find_classes
from pluri.factors.dictionaries.usage.protocol import UsagePrior
from pluri.inference import mcmc
from pluri.validation import as_generator

if TYPE_CHECKING:
    from pluri.factors.dictionaries.estimator import BetaProcessDictionary


def usage_of(model: BetaProcessDictionary, rows: Rows) -> UsagePrior:
    """The prior of which row uses which atom that an estimator asks for."""
    n, K = len(rows.values), int(model.n_components)
    a, b = float(model.a), float(model.b)
    if model.share == "pattern":
        if model.usage_prior != "dp":
            raise ValueError(f"share='pattern' is for usage_prior='dp' only, got usage_prior={model.usage_prior!r}")
        from pluri.factors.dictionaries.usage.patterns import PatternUsage

        return PatternUsage(n, K, a, b, int(model.n_clusters))
    if model.usage_prior == "beta_process":
        return BetaProcessUsage(n, K, a, b)
    if model.usage_prior == "dp":
        from pluri.factors.dictionaries.usage.dirichlet_process import DirichletProcessUsage

        return DirichletProcessUsage(n, K, a, b, int(model.n_clusters))
    from pluri.factors.dictionaries.usage.probit_sticks import ProbitStickUsage

    return ProbitStickUsage(rows.locations, K, a, b, int(model.n_clusters))


def sampler_of(model: BetaProcessDictionary, rows: Rows) -> DictionaryGibbs:
    """The sampler that an estimator asks for."""
    usage, K = usage_of(model, rows), int(model.n_components)
    settings = (rows, usage, K, bool(model.collapsed), model.noise_prior or FLAT, model.weight_prior or FLAT)
    if model.share == "pattern":
        from pluri.factors.dictionaries.usage.patterns import PatternGibbs

        return PatternGibbs(*settings)
    return DictionaryGibbs(*settings)


def fit(model: BetaProcessDictionary, rows: Rows, init: Any) -> DictionaryFit:
    """Run the chains of an estimator; `init` is its `init`, or the state of an earlier fit (`DictionaryState`)."""
    kernel = sampler_of(model, rows)
    rng = as_generator(model.random_state)

    def start(rng: np.random.Generator) -> DictionaryState:
        state = start_dictionary(rng, rows, kernel.usage, kernel.n_components, init)
        return replace(state, usage=settled_within(state.usage, int(model.n_warmup)))

    trace = mcmc.sample(
        kernel, start, record=kernel.record, n_draws=int(model.n_draws), n_warmup=int(model.n_warmup),
        n_chains=int(model.n_chains), thin=int(model.thin), random_state=rng,
        n_jobs=model.n_jobs, backend="threads", verbose=int(model.verbose), warn=False,
    )  # fmt: skip
    best = max((end.state for end in trace.ends), key=lambda state: state.best_log_density)
    chosen = best.best
    each = [end.state.totals for end in trace.ends if end.state.totals.n_draws]
    totals = (
        Totals.over(each) if each else Totals.none().plus(chosen, (chosen.weights * chosen.used) @ chosen.components)
    )
    own = best.totals if best.totals.n_draws else totals
    mean = totals.values / totals.n_draws
    verdict = trace.verdict("log_density", limit=mcmc.LATENT_R_HAT_LIMIT)
    components, covariance = _expected_atoms(rows, chosen)
    return DictionaryFit(
        components=components,
        component_covariance=covariance,
        usage=own.usage / own.n_draws,
        power=own.power / own.n_draws,
        noise_precision=totals.n_draws / totals.noise_variance,
        weight_precision=float(totals.n_draws / totals.weight_variance),
        mean=mean,
        variance=np.maximum(totals.squares / totals.n_draws - mean**2, 0),
        weights=chosen.weights,
        used=chosen.used,
        converged=verdict.settled,
        n_iter=int(model.n_warmup) + trace.n_draws * int(model.thin),
        cluster_labels=getattr(chosen.usage, "labels", None),
        trace=replace(trace.detached(), ends=()),  # an end holds codes of all the data
        classes=_classes(rng, model, chosen, components),
    )


def _classes(
    rng: np.random.Generator, model: BetaProcessDictionary, at: DictionaryState, components: Array
) -> CodeClasses:
    """Classes of rows by their codes, as many as clusters are allowed."""
    n_classes = 1 if model.usage_prior == "beta_process" else int(model.n_clusters)
    lengths = np.linalg.norm(components, axis=1)
    return find_classes(rng, at.used, at.weights, lengths, n_classes, float(np.mean(1 / at.noise_precision)))


def _expected_atoms(rows: Rows, at: DictionaryState) -> tuple[Array, Array]:
    """Expected atoms given the codes of a draw, which err less than those drawn, and their covariance in a feature.

    Of atoms that no row uses nothing is known, and they stay as they were drawn: their mean has no direction.
    """
    codes = at.weights * at.used
    precision, linear = component_posterior(rows, codes, at.noise_precision[rows.noise_group])
    expected = np.where(np.asarray(codes.any(axis=0))[:, None], expected_components(precision, linear), at.components)
    return expected, component_covariance(precision)
