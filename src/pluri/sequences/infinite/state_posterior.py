"""The posterior over the states of all steps under an infinite hidden Markov model: what its samplers have in common.

``p(z, x | beta) = p(z | beta) prod_k p(x_k)``: rows of transition probabilities are integrated out, and so are the
parameters of the states; ``p(x_k)`` is the marginal density of the observations in state k. Samplers are kernels for
`pluri.inference.mcmc.sample`, and show the three pure functions that a test of correctness needs: `sample_prior`,
`sample_data` and `sweep`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.sequences.infinite.emission_draws import draw_observations, draw_parameters, empty_sums
from pluri.sequences.infinite.merging import MergingWarmup, best_merge
from pluri.sequences.infinite.observations import Array, Integers, ObservationModel, Observations
from pluri.sequences.infinite.starts import block_labels
from pluri.sequences.infinite.transitions import (
    SMALLEST,
    Hyperparameters,
    HyperPriors,
    count_transitions,
    draw_hyperparameters,
    draw_tables,
    draw_weights,
    least_weights,
    log_path,
    prior_rows,
)

Position = Mapping[str, NDArray[Any]]
#: Names of the hyper-parameters in a position.
HYPERPARAMETERS = Hyperparameters._fields
#: Steps of the sampler of the common weights given the states of all steps, which begins near them.
WEIGHT_STEPS = 10


@dataclass(frozen=True, eq=False)
class StatesState:
    """Where a sampler is, how many sweeps it has made, and the best that it has seen: the highest log joint density."""

    position: Position
    log_density: float
    n_sweeps: int
    best: Position
    best_log_density: float


@dataclass(frozen=True, eq=False)
class StatePosterior:
    """Observations, their model, and the hyper-parameters of the transitions.

    Positions are dicts: ``labels`` (n_steps,), states numbered in the order in which they appear; ``weights``
    (n_states + 1,), beta with the rest of the stick last; ``concentration``, ``weight_concentration``, ``stickiness``;
    and, where only a part of some row is missing and its columns depend on each other, ``filled``, what is drawn there.

    Parameters
    ----------
    model : ObservationModel
    data : array of shape (n_steps, n_features)
        NaN is missing; symbols are 0, ..., V - 1.
    offsets : array of shape (n_sequences + 1,)
        Where each sequence begins and ends.
    hyper : Hyperparameters
        Where chains begin, and stay in what has no prior.
    priors : HyperPriors
    max_components : int, default=200
        States at most.
    merges : bool, default=False
        After each sweep, put two states together if that raises the log joint density. Set while chains warm up.
    """

    model: ObservationModel
    data: Array
    offsets: Integers
    hyper: Hyperparameters
    priors: HyperPriors = field(default_factory=HyperPriors)
    max_components: int = 200
    merges: bool = False
    _prepared: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_prepared", self._prepare(self.data))

    def _prepare(self, data: Array) -> Any:
        """Data as the sweeps read them."""
        return self.model.prepare(data, self.offsets)

    def _observations(self, prepared: Any) -> Observations:
        observations: Observations = prepared
        return observations

    def _completed(self, prepared: Any, position: Position) -> Observations:
        """Observations with the values of the position in place of what is missing in parts of rows."""
        observations = self._observations(prepared)
        return observations.with_filled(np.asarray(position["filled"])) if "filled" in position else observations

    def adaptation(self, n_warmup: int) -> MergingWarmup:
        """States are merged while the chain warms up."""
        return MergingWarmup(n_warmup)

    def init(self, rng: np.random.Generator, position: Position) -> StatesState:
        """State at a position."""
        labels = np.asarray(position["labels"])
        if labels.shape != (int(self.offsets[-1]),) or labels.min() < 0:
            raise ValueError(f"the position must have a state for each of {int(self.offsets[-1])} steps")
        value = self.log_joint(position)
        return StatesState(position, value, 0, position, value)

    def step(self, rng: np.random.Generator, state: StatesState) -> tuple[StatesState, dict[str, float]]:
        """One sweep."""
        position, info = self._sweep(rng, state.position, self._prepared)
        position = self._merged(position) if self.merges else position
        value = self.log_joint(position)
        best = (position, value) if value > state.best_log_density else (state.best, state.best_log_density)
        return StatesState(position, value, state.n_sweeps + 1, *best), info

    def sweep(self, rng: np.random.Generator, position: Position, data: Array) -> Position:
        """One sweep given data of the same shape."""
        return self._sweep(rng, position, self._prepare(data))[0]

    @abstractmethod
    def _sweep(self, rng: np.random.Generator, position: Position, prepared: Any) -> tuple[Position, dict[str, float]]:
        """One sweep, and what is known about it."""

    def _merged(self, position: Position) -> Position:
        """The position with two states in one, if that raises its density."""
        labels, used = in_order(np.asarray(position["labels"]))
        weights, hyper = np.array(position["weights"]), hyper_of(position)
        counts = count_transitions(labels, self.offsets, len(used))
        pair = best_merge(self._completed(self._prepared, position), labels, counts, weights[used], hyper)
        if pair is None:
            return position
        kept, gone = used[list(pair)]
        labels = np.where(position["labels"] == gone, kept, position["labels"])
        weights[kept] += weights[gone]
        weights[gone] = SMALLEST
        merged = self._without(labels, weights, hyper)
        return {**merged, "filled": position["filled"]} if "filled" in position else merged

    def _without(self, labels: Integers, weights: Array, hyper: Hyperparameters) -> Position:
        """A position of which some states may have no steps."""
        return as_position(*gathered(labels, weights), hyper)

    def record(self, position: Position) -> dict[str, Any]:
        """What to keep of a position: states numbered as they appear, in as few bytes as they need."""
        labels, _ = in_order(np.asarray(position["labels"]))
        kept = {name: position[name] for name in HYPERPARAMETERS}
        small = labels.astype(np.min_scalar_type(self.max_components))
        return {"labels": small, "n_states": np.asarray(int(labels.max()) + 1), **kept}

    def log_likelihood(self, position: Position, data: Array | None = None) -> float:
        """Log density of the observations given the states of all steps, parameters integrated out."""
        labels, _ = in_order(np.asarray(position["labels"]))
        observations = self._completed(self._prepared if data is None else self._prepare(data), position)
        return observations.log_marginal(observations.sums(labels, int(labels.max()) + 1))

    def log_joint(self, position: Position, data: Array | None = None) -> float:
        """Log density of states and observations given the weights and the hyper-parameters."""
        labels, used = in_order(np.asarray(position["labels"]))
        counts = count_transitions(labels, self.offsets, len(used))
        path = log_path(counts, hyper_of(position), np.asarray(position["weights"])[used])
        return path + self.log_likelihood(position, data)

    def sample_prior(self, rng: np.random.Generator) -> Position:
        """Draw a position from the prior."""
        hyper = self.priors.sample(rng, self.hyper)
        c, gamma, rho = hyper
        n = int(self.offsets[-1])
        labels, weights, rest = np.zeros(n, dtype=np.int64), np.empty(0), 1.0
        counts = np.zeros((n + 1, n))
        firsts = set(self.offsets[:-1].tolist())
        for t in range(n):
            row, k = (n if t in firsts else labels[t - 1]), len(weights)
            share = 1.0 if t in firsts else 1 - rho
            chances = counts[row, : k + 1] + c * share * np.append(weights, rest)
            if t not in firsts:
                chances[row] += c * rho
            state = int(np.searchsorted(chances.cumsum(), rng.random() * chances.sum()))
            if state == k:
                piece = rng.beta(1.0, gamma)
                weights, rest = np.append(weights, piece * rest), (1 - piece) * rest
            labels[t] = state
            counts[row, state] += 1
        return as_position(labels, np.append(weights, rest), hyper)

    def sample_data(self, rng: np.random.Generator, position: Position) -> Array:
        """Draw observations given the states, parameters of the states from their prior."""
        labels = np.asarray(position["labels"])
        parameters = draw_parameters(rng, self.model, empty_sums(self.model, int(labels.max()) + 1))
        return draw_observations(rng, self.model, parameters, labels, self.offsets, self.data)

    def sample_start(self, rng: np.random.Generator, n_states: int = 10, *, by_blocks: bool = False) -> Position:
        """Where a chain may begin: every step in one of some states at random, or blocks of steps that are alike."""
        if by_blocks:
            drawn = block_labels(rng, self._observations(self._prepared), self.offsets, n_states)
        else:
            drawn = rng.integers(0, n_states, size=int(self.offsets[-1]))
        labels, used = in_order(drawn)
        weights = draw_weights(rng, np.append(np.ones(len(used)), self.hyper.weight_concentration))
        return as_position(labels, weights, self.hyper)

    def draw_of_rows(self, rng: np.random.Generator, labels: Integers, hyper: Hyperparameters) -> dict[str, Array]:
        """``rows`` (K + 1, K): Dirichlet parameters of the rows on the states that are there; the weights are drawn."""
        counts = count_transitions(labels, self.offsets, int(labels.max()) + 1)
        weights = least_weights(counts, hyper)
        for _ in range(WEIGHT_STEPS):
            ordered = draw_tables(rng, counts, hyper, weights).ordered
            weights = self._state_weights(rng, ordered, hyper.weight_concentration)
        return {"rows": prior_rows(hyper, weights) + counts}

    def _state_weights(self, rng: np.random.Generator, ordered: Integers, gamma: float) -> Array:
        """Weights (K,) of the states given how many tables chose each."""
        return draw_weights(rng, np.append(ordered, gamma))[:-1]

    def _draw_common(
        self, rng: np.random.Generator, labels: Integers, weights: Array, hyper: Hyperparameters
    ) -> tuple[Array, Hyperparameters, Integers]:
        """Weights (the rest last) and hyper-parameters given the states of all steps; and the counts."""
        counts = count_transitions(labels, self.offsets, len(weights) - 1)
        seated = draw_tables(rng, counts, hyper, weights[:-1])
        hyper = draw_hyperparameters(rng, counts, seated, hyper, self.priors)
        return draw_weights(rng, np.append(seated.ordered, hyper.weight_concentration)), hyper, counts


def as_position(labels: Integers, weights: Array, hyper: Hyperparameters, filled: Array | None = None) -> Position:
    """A position of a chain."""
    values = {name: np.asarray(value) for name, value in zip(HYPERPARAMETERS, hyper)}
    position = {"labels": labels, "weights": weights, **values}
    return position if filled is None else {**position, "filled": filled}


def hyper_of(position: Position) -> Hyperparameters:
    """Hyper-parameters of a position."""
    return Hyperparameters(*(float(position[name]) for name in HYPERPARAMETERS))


def in_order(labels: Integers) -> tuple[Integers, Integers]:
    """States numbered in the order in which they appear, and which of the old ones each of them is."""
    used, firsts, place = np.unique(labels, return_index=True, return_inverse=True)
    order = np.argsort(firsts)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return rank[place].astype(np.int64), np.asarray(used[order], dtype=np.int64)


def gathered(labels: Integers, weights: Array) -> tuple[Integers, Array]:
    """States in order, and their weights; those of states that are not used join the rest, which is last."""
    labels, used = in_order(labels)
    kept = weights[used]
    others = np.delete(weights, used).sum()
    return labels, np.append(kept, max(float(others), 1e-300))


def drawn_rows(rng: np.random.Generator, counts: Integers, hyper: Hyperparameters, weights: Array) -> Array:
    """Rows of transition probabilities, (K + 1, K + 1), that of first steps last; the last column is the rest."""
    prior = np.delete(prior_rows(hyper, weights), len(weights) - 1, axis=0)
    return draw_weights(rng, prior + np.pad(counts, ((0, 0), (0, 1))))
