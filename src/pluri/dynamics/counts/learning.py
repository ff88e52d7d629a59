"""A count dynamical system as something that EM can learn: E-step, M-step and start.

The objective is the sum of the variational lower bounds of the log-likelihoods of the sequences, less the penalty on
bent shapes. With Laplace's approximation it is an approximation, and may fall.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.dynamics.counts.count_model import CountModel
from pluri.dynamics.counts.dual import JensenDual, jensen_paths
from pluri.dynamics.counts.paths import PathPosterior, PathPrior, laplace_paths, variational_paths
from pluri.dynamics.counts.poisson_model import PoissonModel
from pluri.dynamics.counts.records import (
    CountObservation,
    PoissonObservation,
    Posteriors,
    SystemParameters,
    SystemStatistics,
)
from pluri.dynamics.counts.starting import starting_states
from pluri.dynamics.counts.state_updates import states_by_least_squares, update_states
from pluri.engine import Batch, Source
from pluri.inference import expectation_maximization
from pluri.validation import plain_array
from pluri.validation.sequences import offsets_of

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Rows that starting values are made from.
MAX_STARTING_ROWS = 20_000
#: EM iterations of the Poisson system that generalized counts start from.
N_POISSON = 12
#: Largest duality gap, relative to the bound, that an E-step under Jensen's bound leaves.
DUALITY_GAP = 1e-7


@dataclass(frozen=True, eq=False)
class CountProblem:
    """The four functions of `pluri.inference.Learnable`.

    Parameters
    ----------
    n_components : number of hidden dimensions
    model : how counts come from states
    inference : "vb" or "laplace"
    init : "nuclear" or "pca"
    disturbs : whether starts are disturbed at random
    n_times : length of all sequences if the mean of the states varies in time, else 0
    silent : (N,): neurons that are left out, since they had no count
    """

    n_components: int
    model: PoissonModel | CountModel
    inference: str
    init: str
    disturbs: bool
    n_times: int
    silent: NDArray[np.bool_]

    def prepare(self, X: Any) -> Array:
        """Counts as the loops want them: NaN for what is missing and for silent neurons."""
        counts = plain_array(X)
        return np.where(self.silent, np.nan, counts) if self.silent.any() else counts

    def posterior(self, params: SystemParameters, counts: Array, offsets: Integers) -> PathPosterior:
        """Distribution of the paths of some sequences; `counts` as `prepare` gives them."""
        return infer_paths(self.model, self.inference, params, counts, offsets)[0]

    def initialize(self, source: Source, rng: np.random.Generator) -> SystemParameters:
        """Log rates of low rank, then least squares; generalized counts begin with a few iterations of Poisson ones."""
        counts, offsets, typical = self._first_sequences(source)
        poisson = PoissonModel()
        paths, loadings, intercept = starting_states(
            counts, offsets, self.n_components, self.init, rng if self.disturbs else None
        )
        loadings = np.where(self.silent[:, None], 0.0, loadings)
        states = states_by_least_squares(paths, offsets, self.n_times)
        start = SystemParameters(states, PoissonObservation(loadings, intercept), typical)
        if isinstance(self.model, PoissonModel):
            return start
        problem = CountProblem(self.n_components, poisson, "vb", self.init, False, self.n_times, self.silent)
        found = expectation_maximization(problem, source, rng=rng, max_iter=N_POISSON, tol=1e-3, start=start).params
        k = np.arange(self.model.support.shape[1])
        g = np.where(self.model.support, found.observation.intercept[:, None] * k, -np.inf)
        return SystemParameters(found.states, CountObservation(found.observation.loadings, g), typical)

    def _first_sequences(self, source: Source) -> tuple[Array, Integers, int]:
        parts: list[Array] = []
        lengths: list[int] = []
        for lazy in source.batches():
            batch = lazy.load()
            offsets = batch.offsets
            for s in range(batch.n_sequences):
                if batch.weight is not None and not batch.weight[s] > 0:
                    continue
                parts.append(self.prepare(batch.X[offsets[s] : offsets[s + 1]]))
                lengths.append(len(parts[-1]))
            if sum(lengths) >= MAX_STARTING_ROWS:
                break
        n_rows = 0
        kept = 0
        for length in lengths:
            kept += 1
            n_rows += length
            if n_rows >= MAX_STARTING_ROWS:
                break
        counts = np.concatenate(parts[:kept])[: max(MAX_STARTING_ROWS, 1)]
        given = np.array(lengths[:kept], dtype=np.int64)
        given[-1] -= max(0, int(given.sum()) - len(counts))
        return counts, offsets_of(given), max(1, int(np.median([n for n in lengths if n] or [1])))

    def expect(self, params: SystemParameters, batch: Batch) -> SystemStatistics:
        """Posterior paths of a batch of whole sequences, and the sums that the states are learned from."""
        counts, offsets = self.prepare(batch.X), batch.offsets
        weight = np.ones(batch.n_sequences) if batch.weight is None else batch.weight
        if not (weight > 0).all():  # their counts may be larger than those that the tables were made for
            counts = np.where(np.repeat(weight > 0, np.diff(offsets))[:, None], counts, np.nan)
        found = self.posterior(params, counts, offsets)
        return gather(found, counts, offsets, weight, self.n_times)

    def maximize(self, stats: SystemStatistics, params: SystemParameters) -> SystemParameters:
        """States in closed form, observations by Newton steps."""
        observation = self.model.maximize(stats.posteriors, params.observation)
        return SystemParameters(update_states(stats, params.states), observation, params.typical_length)

    def log_prior(self, params: SystemParameters) -> float:
        """Minus the penalty on bent shapes."""
        return self.model.log_prior(params.observation)


def infer_paths(
    model: Any,
    inference: str,
    params: SystemParameters,
    counts: Array,
    offsets: Integers,
    near: PathPosterior | None = None,
) -> tuple[PathPosterior, Array]:
    """Distribution of the paths, and the duality gap of each sequence (NaN without Jensen's bound).

    `near` is a distribution to begin with, for variational inference by quadrature.
    """
    prior = PathPrior.of(params.states, offsets)
    sites = model.sites(params.observation, counts, integrates=inference != "laplace")
    gap = np.full(len(offsets) - 1, np.nan)
    if inference == "laplace":
        found = laplace_paths(prior, sites)
    elif isinstance(model, CountModel) and model.nodes is None:
        dual = JensenDual(prior, counts, params.observation.loadings, model.table(params.observation))
        found, gap = jensen_paths(dual, sites, DUALITY_GAP)
    else:
        working = model.working_sites(params.observation, counts, prior.mean)
        found = variational_paths(prior, sites, near=near, working=working)
    constants = prior.sum_rows(model.constants(params.observation, counts))
    return PathPosterior(found.mean, found.covariance, found.lagged, found.bound + constants, found.distribution), gap


def gather(found: PathPosterior, counts: Array, offsets: Integers, weight: Array, n_times: int) -> SystemStatistics:
    """Sums of moments of the states over some sequences."""
    lengths = np.diff(offsets)
    filled = lengths > 0
    row_weight = np.repeat(weight, lengths)
    firsts, lasts = offsets[:-1][filled], offsets[1:][filled] - 1
    inner = np.ones(len(row_weight), dtype=bool)
    inner[lasts] = False
    early, late = np.flatnonzero(inner), np.flatnonzero(inner) + 1
    mean, covariance = found.mean, found.covariance

    def squares(left: Integers, right: Integers, spread: Array, w: Array) -> Array:
        return np.asarray((mean[left] * w[:, None]).T @ mean[right] + np.einsum("t,tab->ab", w, spread))

    w_first, w_step = weight[filled], row_weight[early]
    n_by_time, by_time = np.zeros(n_times), np.zeros((n_times, mean.shape[1]))
    if n_times:
        time = np.arange(len(row_weight)) - np.repeat(offsets[:-1], lengths)
        np.add.at(n_by_time, time, row_weight)
        np.add.at(by_time, time, row_weight[:, None] * mean)
    counted = weight > 0
    return SystemStatistics(
        log_likelihood=float(weight[counted] @ found.bound[counted]),
        n_sequences=float(w_first.sum()),
        first=w_first @ mean[firsts],
        first_square=squares(firsts, firsts, covariance[firsts], w_first),
        n_steps=float(w_step.sum()),
        before=squares(early, early, covariance[early], w_step),
        across=squares(late, early, found.lagged[early], w_step),
        after=squares(late, late, covariance[late], w_step),
        n_by_time=n_by_time,
        by_time=by_time,
        posteriors=Posteriors(((counts, row_weight, mean, covariance),)),
    )
