"""Learning from known states by counting: the closed-form fit that supervised learning starts from, and often ends at.

With labels z and weights w,  start_i ~ sum_n w_n [z_n1 = i],  transition_ij ~ sum_n w_n #{t: z_t-1 = i, z_t = j},  and
the emissions are those of the family's M-step when a labelled sample belongs to its state alone. Steps with an unknown
end are not counted.
"""

from __future__ import annotations

import copy
import warnings
from dataclasses import dataclass
from functools import partial, reduce
from operator import add
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pluri.components.chain.forward_backward import BLOCK
from pluri.components.family import ComponentFamily, P
from pluri.engine import Batch, Source, Statistics, map_reduce
from pluri.engine.aligned import padded_width
from pluri.priors import Dirichlet, PseudoCountPrior, RowPrior
from pluri.sequences.learning import ChainPrior, HMMParameters
from pluri.validation import as_generator

if TYPE_CHECKING:
    from pluri.sequences.hmm import HiddenMarkovModel

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Rows of a state that are looked at to find its parts.
ROWS_TO_CLUSTER = 2000


@dataclass(frozen=True)
class LabelCounts(Statistics):
    """Weighted counts of labels.

    Attributes
    ----------
    starts : (k,): how often each state comes first
    pairs : (k, k): how often each pair follows
    samples : (k,): how many samples have each label
    unknown : how many samples have none
    log_likelihood : 0, there is none
    """

    starts: Array
    pairs: Array
    samples: Array
    unknown: float
    log_likelihood: float = 0.0


def count_labels(source: Source, n_components: int) -> LabelCounts:
    """Count the labels of all batches."""
    return map_reduce(partial(_count_batch, n_components), source)


def _labels_and_weights(batch: Batch) -> tuple[Integers, Array, Array]:
    """Labels (n_samples,), weight of each sequence, weight of each sample."""
    labels = np.full(batch.n_samples, -1, dtype=np.int64) if batch.labels is None else batch.labels
    weight = np.ones(batch.n_sequences) if batch.weight is None else batch.weight
    return labels, weight, np.repeat(weight, np.diff(batch.offsets))


def _count_batch(k: int, batch: Batch) -> LabelCounts:
    labels, weight, row_weight = _labels_and_weights(batch)
    lengths = np.diff(batch.offsets)
    filled = lengths > 0
    first = labels[batch.offsets[:-1][filled]]
    starts = _tally(first[first >= 0], weight[filled][first >= 0], k)
    sequence = np.repeat(np.arange(len(lengths)), lengths)
    before, after = labels[:-1], labels[1:]
    counted = (sequence[:-1] == sequence[1:]) & (before >= 0) & (after >= 0)
    pairs = _tally((before * k + after)[counted], row_weight[1:][counted], k * k)
    known = labels >= 0
    samples = _tally(labels[known], row_weight[known], k)
    return LabelCounts(starts, pairs.reshape(k, k), samples, float(row_weight[~known].sum()))


def _tally(numbers: Integers, weights: Array, size: int) -> Array:
    return np.asarray(np.bincount(numbers, weights=weights, minlength=size), dtype=np.float64)


def with_pseudo_count(prior: RowPrior, pseudo_count: float, shape: tuple[int, ...]) -> RowPrior:
    """The prior with a pseudo-count added to every entry."""
    if pseudo_count == 0:
        return prior
    if not isinstance(prior, PseudoCountPrior):
        raise ValueError(
            f"pseudo_count must be 0 with a prior that is not made of pseudo-counts ({type(prior).__name__}), "
            f"got {pseudo_count}"
        )
    return Dirichlet(1.0 + pseudo_count + prior.pseudo_counts(shape), floor=prior.floor)


def counted_chain(
    counts: LabelCounts, prior: ChainPrior, start: Array | None = None, transition: Array | None = None
) -> tuple[Array, Array]:
    """Start and transition probabilities of the counts, except those given; rows without counts are uniform."""
    k = len(counts.starts)
    uniform = np.full((k, k), 1.0 / k)
    if start is None:
        start = prior.start.maximize(counts.starts, uniform[0])
    if transition is None:
        transition = prior.transition.maximize(counts.pairs, uniform)
    return start, transition


def with_one_more(rows: Array, counts: Array) -> Array:
    """Rows after one more count that is spread evenly: none of their entries is zero."""
    total = counts.sum(axis=-1, keepdims=True)
    return (total * rows + 1.0 / rows.shape[-1]) / (total + 1.0)


def warn_never_left(counts: LabelCounts, prior: RowPrior, classes: NDArray[Any]) -> None:
    """Say so if nothing ever follows a class."""
    shape = counts.pairs.shape
    extra = prior.pseudo_counts(shape) if isinstance(prior, PseudoCountPrior) else np.zeros(shape)
    empty = np.flatnonzero((counts.pairs + extra).sum(axis=1) <= 0)
    if empty.size:
        warnings.warn(
            f"nothing ever follows the classes {classes[empty].tolist()}: their rows of the transition matrix are "
            "uniform; a positive pseudo_count says so on purpose",
            UserWarning,
            stacklevel=3,
        )


def starting_values(
    hmm: HiddenMarkovModel, source: Source, counts: LabelCounts, prior: ChainPrior, given: dict[str, Any]
) -> tuple[Array, HMMParameters[Any]]:
    """The transition matrix by counting, and the parameters that EM starts from."""
    counter = copy.copy(hmm)
    counter.params = "st" + "".join(letter for letter, name in hmm._emission_attributes.items() if name not in given)
    problem = counter._problem(prior, given)
    emission = emissions_of_labelled(problem.emission, source, counts, as_generator(hmm.random_state))
    start, anchor = counted_chain(counts, prior, problem.start, problem.transition)
    transition = anchor
    # EM keeps a zero for ever, and one that only the labelled samples know of may be wrong.
    if counts.unknown > 0 and "s" in hmm.params and "startprob_" not in given:
        start = with_one_more(start, counts.starts)
    if (counts.unknown > 0 or prior.diversity is not None) and "t" in hmm.params and "transmat_" not in given:
        transition = with_one_more(anchor, counts.pairs)
    return anchor, HMMParameters(start, transition, emission, np.full(len(start), np.nan))


def emissions_of_labelled(
    emission: ComponentFamily[P, Any], source: Source, counts: LabelCounts, rng: np.random.Generator
) -> P:
    """The M-step from the labelled samples.

    If some labels are unknown, their samples together count as one more observation of every state, so that no symbol
    that occurs is impossible and no state is narrower than its few labelled samples deserve; EM starts from there.
    """
    parameters = _reference(emission, source, len(counts.samples), rng)
    background = 1.0 / counts.unknown if counts.unknown > 0 else 0.0
    stats = map_reduce(partial(_accumulate, emission, parameters, len(counts.samples), background), source)
    return emission.maximize(stats, parameters)


def _reference(emission: ComponentFamily[P, Any], source: Source, k: int, rng: np.random.Generator) -> P:
    """Parameters for the statistics to refer to: starting values from labelled rows.

    One row a state is enough, since the M-step forgets them, unless the states have parts of their own to be told
    apart: such a family has a method `initialize_labelled`.
    """
    initialize = getattr(emission, "initialize_labelled", None)
    rows, states = _labelled_rows(source, k, 1 if initialize is None else ROWS_TO_CLUSTER)
    X = emission.prepare(rows)
    return emission.initialize(X, k, rng) if initialize is None else initialize(X, states, k, rng)


def _labelled_rows(source: Source, k: int, most: int) -> tuple[NDArray[Any], Integers]:
    """The first rows of every state, up to `most`, and their states."""
    room = np.full(k, most)
    rows: list[NDArray[Any]] = []
    states: list[Integers] = []
    for lazy in source.batches():
        batch = lazy.load()
        labels = _labels_and_weights(batch)[0]
        for state in np.flatnonzero(room):
            found = np.flatnonzero(labels == state)[: room[state]]
            rows.append(batch.X[found])
            states.append(labels[found])
            room[state] -= len(found)
        if not room.any():
            break
    return np.concatenate(rows), np.concatenate(states)


def _accumulate(emission: ComponentFamily[P, Any], parameters: P, k: int, background: float, batch: Batch) -> Any:
    labels, _, row_weight = _labels_and_weights(batch)
    parts = []
    for begin in range(0, max(batch.n_samples, 1), BLOCK):
        rows = slice(begin, min(begin + BLOCK, batch.n_samples))
        posterior = np.zeros((rows.stop - begin, padded_width(k)))
        here = labels[rows]
        known = np.flatnonzero(here >= 0)
        posterior[known, here[known]] = row_weight[rows][known]
        if background > 0:
            others = np.flatnonzero(here < 0)
            posterior[others, :k] = background * row_weight[rows][others, None]
        parts.append(emission.accumulate(parameters, emission.prepare(batch.X[rows]), posterior))
    return reduce(add, parts)


def labels_in_source(source: Source) -> Integers:
    """The classes 0 .. k-1 of a source that holds labels; each must occur."""
    seen: set[int] = set()
    for lazy in source.batches():
        labels = lazy.load().labels
        seen |= set() if labels is None else set(np.unique(labels).tolist())
    seen -= {-1}
    if not seen or seen != set(range(len(seen))):
        raise ValueError(
            "X, a source of batches, must hold labels 0 .. n_classes - 1 that all occur, and -1 where unknown, got "
            f"{sorted(seen) if len(seen) < 20 else f'{len(seen)} labels from {min(seen)} to {max(seen)}'}"
        )
    return np.arange(len(seen), dtype=np.int64)
