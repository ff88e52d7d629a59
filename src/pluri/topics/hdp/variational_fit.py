"""A variational fit of all documents: restarts, mergers of topics that say the same, and the ascent to the end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pluri.inference.variational import coordinate_ascent
from pluri.priors.hyperpriors import Gamma
from pluri.topics.hdp.batch_ascent import BatchAscent
from pluri.topics.hdp.merging import merge_topics
from pluri.topics.hdp.variational import HDPVariational, Natural
from pluri.validation.interruption import held, holding

#: Mergers in a row that may fail, and rounds of mergers and ascent.
MAX_TRIES, MAX_ROUNDS = 10, 5


@dataclass(frozen=True, eq=False)
class BatchFit:
    """What is left of a fit.

    Attributes
    ----------
    model : HDPVariational: with the prior count of words that was learned
    params : natural parameters
    elbo : bounds of the best run, sweep after sweep; mergers lift it between two of them
    n_iter : sweeps of the best run
    last_stick : share of the tokens in the last stick of their documents
    """

    model: HDPVariational
    params: Natural
    elbo: list[float]
    n_iter: int
    converged: bool
    interrupted: bool
    last_stick: float


def fit_batch(
    model: HDPVariational, data: Any, rng: np.random.Generator, *, eta_prior: Gamma | None = None, max_iter: int,
    tol: float, n_init: int, verbose: int = 0, callback: Callable[[Any], bool | None] | None = None,
) -> BatchFit:  # fmt: skip
    """Fit to all documents.

    Parameters
    ----------
    model : HDPVariational
    data : csr matrix
    rng : numpy.random.Generator
    eta_prior : Gamma, optional
        Under which eta is learned.
    max_iter, tol, n_init, verbose
        Of `coordinate_ascent`.
    callback : callable, optional
        Called after each sweep; returning True ends the fit.
    """
    ascent = BatchAscent(model, eta_prior)
    stopped = False

    def watch(state: Any) -> bool:
        nonlocal stopped
        stopped = callback is not None and bool(callback(state))
        return stopped

    options: dict[str, Any] = {"max_iter": max_iter, "tol": tol, "verbose": verbose, "on_iteration": watch}
    result = coordinate_ascent(ascent, data, rng=rng, n_init=n_init, **options)
    trace, n_iter = list(result.trace), result.n_iter
    with holding("fit interrupted; the topics of the last round are kept"):
        for _ in range(MAX_ROUNDS):
            if result.interrupted or stopped:
                break
            beliefs, _, n_merged = merge_topics(ascent, result.params, result.elbo, data, rng, max_tries=MAX_TRIES)
            if not n_merged or held():
                break
            result = coordinate_ascent(ascent, data, rng=rng, start=beliefs, **options)
            trace, n_iter = trace + list(result.trace), n_iter + result.n_iter
    beliefs = result.params
    tokens = beliefs.factors[1][:, :, 0] - 1.0
    return BatchFit(
        replace(model, eta=beliefs.eta),
        beliefs.params,
        [float(value) for value in trace],
        n_iter,
        bool(result.converged),
        held() or stopped,
        float(tokens[:, -1].sum() / max(tokens.sum(), 1e-300)),
    )
