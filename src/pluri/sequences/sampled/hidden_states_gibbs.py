"""The sampler of `pluri.sequences.sampled.collapsed_gibbs` as a kernel for `pluri.inference.mcmc.sample`.

States have no names of their own: two chains may call the same state differently, so averages are only ever taken
within one chain.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pluri.sequences.sampled import collapsed_gibbs as gibbs
from pluri.sequences.sampled.collapsed_gibbs import ConcentrationPriors, Concentrations, Counts, SymbolSequences

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
#: ``states`` (n_samples,), ``transition_concentration`` and ``emission_concentration``.
Position = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class HiddenStates:
    """Where a chain is: its counts, how many sweeps it has made, and the best position that it has seen.

    `log_density` is that of states and symbols together, `log_likelihood` that of the symbols given the states.
    """

    position: Position
    log_density: float
    log_likelihood: float
    counts: Counts
    n_sweeps: int
    best: Position
    best_log_density: float


@dataclass(frozen=True, eq=False)
class HiddenStatesGibbs:
    """A sweep over the states of all steps, and over the concentrations that are learned.

    Parameters
    ----------
    data : SymbolSequences
    n_components : number of states
    concentrations : where chains begin
    priors : of the concentrations that are learned
    annealing : (at most n_warmup,): temperatures of the first sweeps; 1 from then on
    temperature : of the next sweep
    learns : whether the next sweep moves the concentrations
    """

    data: SymbolSequences
    n_components: int
    concentrations: Concentrations
    priors: ConcentrationPriors = field(default_factory=ConcentrationPriors)
    annealing: tuple[float, ...] = ()
    temperature: float = 1.0
    learns: bool = True

    def sample_start(self, rng: np.random.Generator) -> Position:
        """Where a chain begins: random states."""
        return _position(rng.integers(self.n_components, size=len(self.data.codes)), self.concentrations)

    def init(self, rng: np.random.Generator, position: Position) -> HiddenStates:
        """State at a position."""
        states = np.asarray(position["states"]).astype(np.int64)
        concentrations = self._concentrations(position)
        counts = gibbs.count(self.data, states, self.n_components)
        kept = _position(states, concentrations)
        log_joint, log_likelihood = gibbs.log_joint(self.data, counts, concentrations)
        return HiddenStates(kept, log_joint, log_likelihood, counts, 0, kept, log_joint)

    def step(self, rng: np.random.Generator, state: HiddenStates) -> tuple[HiddenStates, dict[str, float]]:
        """One sweep."""
        # The old state stays as it is: Ctrl-C may fall into the middle of a sweep.
        states, counts = state.position["states"].copy(), Counts(*(array.copy() for array in state.counts))
        concentrations = self._concentrations(state.position)
        gibbs.sweep(self.data, states, counts, concentrations, rng, temperature=self.temperature)
        if self.learns:
            concentrations = gibbs.sample_concentrations(self.data, counts, concentrations, rng, self.priors)
        log_joint, log_likelihood = gibbs.log_joint(self.data, counts, concentrations)
        position = _position(states, concentrations)
        better = log_joint > state.best_log_density
        best = (position, log_joint) if better else (state.best, state.best_log_density)
        moved = HiddenStates(position, log_joint, log_likelihood, counts, state.n_sweeps + 1, *best)
        return moved, {"log_likelihood": log_likelihood}

    def adaptation(self, n_warmup: int) -> Annealing:
        """Temperatures fall, and the concentrations begin to move."""
        return Annealing(n_warmup)

    def record(self, position: Position) -> dict[str, Any]:
        """What to keep of a position: states in as few bytes as they need."""
        return {**position, "states": position["states"].astype(np.min_scalar_type(self.n_components - 1))}

    def _concentrations(self, position: Position) -> Concentrations:
        a, b = position["transition_concentration"], position["emission_concentration"]
        return Concentrations(self.concentrations.start, float(a), float(b))


@dataclass
class Annealing:
    """Sets the temperature of each sweep of the warm-up, and when the concentrations move.

    They do not in the first half: states that are still random ask for large concentrations, which then keep the
    states random. Nor while the temperature is not 1.
    """

    n_warmup: int
    n_done: int = 0

    def start(self, rng: np.random.Generator, kernel: HiddenStatesGibbs, state: Any) -> HiddenStatesGibbs:
        """The kernel of the first sweep."""
        temperature = kernel.annealing[self.n_done] if self.n_done < len(kernel.annealing) else 1.0
        learns = self.n_done >= self.n_warmup // 2 and temperature == 1.0
        return replace(kernel, temperature=temperature, learns=learns)

    def update(self, rng: np.random.Generator, kernel: HiddenStatesGibbs, state: Any, info: Any) -> HiddenStatesGibbs:
        """The kernel of the next sweep."""
        self.n_done += 1
        return self.start(rng, kernel, state)

    def finish(self, kernel: HiddenStatesGibbs) -> HiddenStatesGibbs:
        """The kernel of the draws."""
        return replace(kernel, temperature=1.0, learns=True)


class PosteriorMeans(NamedTuple):
    """What draws of one chain say about the probabilities and the states.

    Attributes
    ----------
    start, transition, emission : (k,), (k, k), (V_total, k): posterior means
    labels : (n_samples,): most frequent state of each step
    occupancy : (k,): mean number of steps in each state
    """

    start: Array
    transition: Array
    emission: Array
    labels: Integers
    occupancy: Array


def posterior_means(kernel: HiddenStatesGibbs, draws: Mapping[str, NDArray[Any]]) -> PosteriorMeans:
    """Averages over the draws of one chain: arrays by name, the draw first."""
    k = kernel.n_components
    firsts = np.arange(len(kernel.data.codes)) * k  # where the votes on each step begin
    ballot = np.zeros(len(firsts) * k, dtype=np.int32)
    sums: list[Any] = [0.0, 0.0, 0.0]
    for values in zip(*draws.values()):
        position = dict(zip(draws, values))
        states = position["states"].astype(np.int64)
        ballot[firsts + states] += 1
        counts = gibbs.count(kernel.data, states, k)
        means = gibbs.posterior_mean(kernel.data, counts, kernel._concentrations(position))
        sums = [total + mean for total, mean in zip(sums, means)]
    start, transition, emission = (total / len(draws["states"]) for total in sums)
    votes = ballot.reshape(-1, k)
    occupancy = votes.sum(axis=0) / len(draws["states"])
    return PosteriorMeans(start, transition, emission, votes.argmax(axis=1).astype(np.int64), occupancy)


def _position(states: Integers, concentrations: Concentrations) -> Position:
    return {
        "states": states,
        "transition_concentration": np.asarray(concentrations.transition),
        "emission_concentration": np.asarray(concentrations.emission),
    }
