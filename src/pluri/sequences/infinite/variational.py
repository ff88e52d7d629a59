r"""Search for the variational approximation of highest bound: starts of different sizes, then fewer states.

The bound holds for any number of states (`variational_sticks`), so that runs of different size compete. Starts have 1,
2, 4, ... and at most `max_states` states, from k-means, or, for symbols and zeros and ones, from random groups of
symbols. After a few sweeps the best go on until they settle; then states that nothing is left of are dropped, and
pairs are joined or one dissolved as long as the bound rises. A sweep of coordinate ascent alone rarely empties a state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.components.first_sequences import first_sequences
from pluri.engine import Source
from pluri.inference import EMResult, expectation_maximization
from pluri.inference.run import IterationState
from pluri.sequences.infinite.observations import ObservationModel
from pluri.sequences.infinite.transitions import Hyperparameters, HyperPriors
from pluri.sequences.infinite.variational_problem import Beliefs, VariationalInfiniteHMM
from pluri.sequences.infinite.variational_start import FIRST_STEPS, first_beliefs
from pluri.validation.interruption import holding

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
Result = EMResult[Beliefs]

#: Sweeps of every start, after which only this many of them go on.
TRIAL_SWEEPS, FINALISTS = 10, 3
#: Pairs that are joined and states that are dissolved on trial, and sweeps after which a trial is judged.
TRIED_MOVES, MOVE_SWEEPS = 5, 5
#: A run that would not reach the best bound in this many more sweeps like the last one is given up.
PATIENCE = 20
#: What is said after Ctrl-C, which may come in the first sweep of a run, or between two runs.
KEPT = "fit interrupted; the best run so far is kept"
#: A state of fewer steps than this is empty.
OCCUPIED = 0.5


@dataclass(frozen=True, eq=False)
class VariationalFit:
    """What a fit gives.

    Attributes
    ----------
    beliefs : q, with states in the order of their sizes
    bound : evidence lower bound (plus the log prior of hyper-parameters that were learned)
    result : the last run of `pluri.inference.expectation_maximization`
    """

    beliefs: Beliefs
    bound: float
    result: Result

    @property
    def n_occupied(self) -> int:
        """Number of states with at least half a step."""
        return int((self.beliefs.sizes >= OCCUPIED).sum())

    @property
    def start(self) -> Array:
        """Posterior means of the probabilities of first states, among those of q: (n_states,)."""
        return _shares(self.beliefs.rows[-1:, :-1])[0]

    @property
    def transition(self) -> Array:
        """Posterior means of the transition probabilities, among the states of q: (n_states, n_states)."""
        return _shares(self.beliefs.rows[:-1, :-1])


def _shares(rows: Array) -> Array:
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))


@dataclass(frozen=True)
class Ascent:
    """Runs of one model on one source."""

    problem: VariationalInfiniteHMM
    source: Source
    rng: np.random.Generator
    max_iter: int
    tol: float
    engine: Any = None
    verbose: int = 0
    on_iteration: Callable[[Any], bool | None] | None = None

    def run(self, start: Beliefs, sweeps: int | None = None, least: float = -np.inf) -> Result:
        """A run that is given up where it would not reach `least`; a trial if it has few `sweeps`."""

        def watch(state: IterationState[Beliefs]) -> bool:
            left = min(state.max_iter - state.iteration + 1, PATIENCE)
            stop = self.on_iteration is not None and bool(self.on_iteration(state))
            return stop or state.objective + left * state.gain < least

        most = min(sweeps or self.max_iter, self.max_iter)
        return expectation_maximization(
            self.problem, self.source, rng=self.rng, start=[start], max_iter=most, tol=self.tol, engine=self.engine,
            verbose=0 if sweeps else self.verbose, on_iteration=watch,
        )  # fmt: skip


def fit_variational(
    model: ObservationModel,
    source: Source,
    hyper: Hyperparameters,
    priors: HyperPriors,
    rng: np.random.Generator,
    *,
    max_states: int,
    n_init: int = 1,
    max_iter: int = 200,
    tol: float = 1e-2,
    engine: Any = None,
    verbose: int = 0,
    on_iteration: Callable[[Any], bool | None] | None = None,
) -> VariationalFit:
    """The best of `n_init` starts for each number of states in 1, 2, 4, ..., `max_states`, without superfluous states.

    Parameters
    ----------
    model : ObservationModel
    source : Source
        Batches of whole sequences; each sweep goes through all of them, on the engine.
    hyper, priors : Hyperparameters and HyperPriors
        Values, and priors of those that are learned, which are maximised with the bound.
    rng : numpy.random.Generator
    max_states : int
        Most states that q may have.
    n_init, max_iter, tol : int, int, float
        A run ends when a sweep raises the bound by less than `tol`.
    engine, verbose, on_iteration
        See `pluri.inference.expectation_maximization`.

    Returns
    -------
    VariationalFit
        After Ctrl-C, the best so far.
    """
    problem = VariationalInfiniteHMM(model, hyper, priors)
    ascent = Ascent(problem, source, rng, max_iter, tol, engine, verbose, on_iteration)
    found: list[Result] = []
    with holding(KEPT, having=found):
        first = first_sequences(source, FIRST_STEPS)
        for number in start_sizes(min(max_states, len(first.rows)), n_init):
            start = first_beliefs(problem, first.rows, first.offsets, number, rng)
            found.append(ascent.run(start, TRIAL_SWEEPS, least=max(map(_bound, found), default=-np.inf)))
            if found[-1].interrupted:
                return _fit(max(found, key=_bound))
        found.sort(key=_bound, reverse=True)
        for place in range(min(FINALISTS, len(found))):
            if not found[place].converged:
                found[place] = ascent.run(found[place].params, least=max(map(_bound, found)))
                if found[place].interrupted:
                    return _fit(max(found, key=_bound))
        return _fit(with_fewer(ascent, max(found, key=_bound)))
    return _fit(replace(max(found, key=_bound), interrupted=True))


def with_fewer(ascent: Ascent, best: Result) -> Result:
    """A result improved by dropping, joining and dissolving states, as long as the bound rises."""
    with holding(KEPT):
        moved = True
        while moved:
            moved = False
            hyper = best.params.weights.hyper
            for counts, sums in fewer_states(ascent.problem.model, best.params):
                start = ascent.problem.start(counts, sums, hyper)
                trial = ascent.run(start, MOVE_SWEEPS, least=best.objective)
                if trial.objective > best.objective + ascent.tol:
                    moved, best = True, trial
                    if not trial.interrupted and not trial.converged:
                        best = ascent.run(trial.params)
                if trial.interrupted or best.interrupted:
                    return best
                if moved:
                    break
        return best
    return replace(best, interrupted=True)


def _bound(result: Result) -> float:
    return result.objective


def _fit(result: Result) -> VariationalFit:
    return VariationalFit(result.params, result.objective, result)


def start_sizes(most: int, n_init: int) -> list[int]:
    """1 once, and `n_init` times 2, 4, ... and `most`."""
    powers = [2**power for power in range(1, most.bit_length()) if 2**power < most]
    return [1] + [number for number in [*powers, most] if number > 1 for _ in range(n_init)]


def fewer_states(model: ObservationModel, q: Beliefs) -> Iterator[tuple[Array, tuple[Array, ...]]]:
    """Counts and sums with fewer states; what is most likely to help first.

    Joining is judged by ``log p(both) - log p(one) - log p(other)`` of the observations, without a pass over the data.
    """
    used = np.flatnonzero(q.sizes >= OCCUPIED)
    if len(used) < q.n_states and len(used):
        yield _kept(q, used)
    if len(used) < 2:
        return
    one, other = (used[place] for place in np.triu_indices(len(used), 1))
    gain = np.zeros(len(one))
    for likelihood, sums in zip(model.likelihoods, q.sums):
        alone = np.asarray(likelihood.log_marginal(sums))
        gain += np.asarray(likelihood.log_marginal(sums[one] + sums[other])) - alone[one] - alone[other]
    for pair in np.argsort(-gain, kind="stable")[:TRIED_MOVES]:
        yield _joined(q, int(one[pair]), int(other[pair]))
    for gone in used[np.argsort(q.sizes[used], kind="stable")[:TRIED_MOVES]]:
        yield _kept(q, np.delete(np.arange(q.n_states), gone))


def _kept(q: Beliefs, states: Integers) -> tuple[Array, tuple[Array, ...]]:
    counts = q.counts[np.append(states, q.n_states)][:, states]
    return counts, tuple(own[states] for own in q.sums)


def _joined(q: Beliefs, one: int, other: int) -> tuple[Array, tuple[Array, ...]]:
    merge = np.delete(np.eye(q.n_states), other, axis=0)
    merge[one - (other < one), other] = 1.0
    with_starts = np.zeros((q.n_states, q.n_states + 1))
    with_starts[:-1, :-1], with_starts[-1, -1] = merge, 1.0
    return with_starts @ q.counts @ merge.T, tuple(merge @ own for own in q.sums)
