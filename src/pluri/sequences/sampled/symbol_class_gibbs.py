"""The sampler of `pluri.sequences.sampled.symbol_class_sampler` as a kernel for `pluri.inference.mcmc.sample`.

The posterior of the classes has many modes, which a chain does not leave in a few hundred sweeps: a chain finds one,
its draws vote on the class of each symbol within it, and chains are compared by the mean log joint probability of
their draws, which needs no labels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pluri.sequences.sampled import symbol_class_sampler as sampler
from pluri.sequences.sampled.symbol_class_sampler import (
    LEARNED,
    Assignment,
    ConcentrationPriors,
    Concentrations,
    Corpus,
    Counts,
    Tables,
)

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
#: ``classes`` (V,) and the concentrations by name.
Position = Mapping[str, NDArray[Any]]

#: Concentrations move on every third sweep.
CONCENTRATION_SWEEPS = 3


@dataclass(frozen=True, eq=False)
class SymbolClasses:
    """Where a chain is, and how many sweeps it has made.

    `log_density` is that of data and classes together, `log_likelihood` that of the data given the classes.
    """

    position: Position
    log_density: float
    log_likelihood: float
    point: Assignment
    tables: Tables
    n_sweeps: int


@dataclass(frozen=True, eq=False)
class SymbolClassGibbs:
    """A sweep over the classes of all symbols and, now and then, over the concentrations that are learned.

    Parameters
    ----------
    corpus : Corpus
    n_components : number of classes
    concentrations : where chains begin
    priors : of the concentrations that are learned
    n_held : sweeps before these move for the first time, so that the classes have taken shape by then
    """

    corpus: Corpus
    n_components: int
    concentrations: Concentrations
    priors: ConcentrationPriors = LEARNED
    n_held: int = 0

    def sample_start(self, rng: np.random.Generator) -> Position:
        """Where a chain begins: random classes."""
        return position_of(rng.integers(0, self.n_components, len(self.corpus.frequencies)), self.concentrations)

    def init(self, rng: np.random.Generator, position: Position) -> SymbolClasses:
        """State at a position."""
        concentrations = concentrations_of(position)
        point = sampler.assign(self.corpus, np.asarray(position["classes"]), self.n_components)
        return self._state(point, Tables.of(self.corpus, self.n_components, concentrations), concentrations, 0)

    def step(self, rng: np.random.Generator, state: SymbolClasses) -> tuple[SymbolClasses, dict[str, float]]:
        """One sweep."""
        # The old state stays as it is: Ctrl-C may fall into the middle of a sweep.
        point, tables, concentrations = state.point.copy(), state.tables, concentrations_of(state.position)
        moved = sampler.sweep(self.corpus, point, tables, rng)
        if state.n_sweeps >= self.n_held and state.n_sweeps % CONCENTRATION_SWEEPS == 0 and any(self.priors):
            concentrations = sampler.sample_concentrations(self.corpus, point.counts, concentrations, rng, self.priors)
            tables = Tables.of(self.corpus, self.n_components, concentrations)
        new = self._state(point, tables, concentrations, state.n_sweeps + 1)
        return new, {"log_likelihood": new.log_likelihood, "moved": moved / len(point.classes)}

    def adaptation(self, n_warmup: int) -> None:
        """Nothing is tuned."""
        return None

    def record(self, position: Position) -> dict[str, Any]:
        """What to keep of a position: classes in as few bytes as they need."""
        return {**position, "classes": position["classes"].astype(np.min_scalar_type(self.n_components - 1))}

    def _state(self, point: Assignment, tables: Tables, concentrations: Concentrations, n_sweeps: int) -> SymbolClasses:
        value = sampler.log_joint(self.corpus, point.counts, concentrations)
        log_likelihood = value - sampler.log_types(point.counts, concentrations.classes)
        position = position_of(point.classes, concentrations)
        return SymbolClasses(position, value, log_likelihood, point, tables, n_sweeps)


def position_of(classes: Integers, concentrations: Concentrations) -> Position:
    """Classes and concentrations by name."""
    return {
        "classes": classes,
        "transition_concentration": np.asarray(concentrations.transition),
        "emission_concentration": np.asarray(concentrations.emission),
        "class_concentration": np.asarray(concentrations.classes),
        "feature_concentration": np.asarray(concentrations.features, dtype=np.float64),
    }


def concentrations_of(position: Position) -> Concentrations:
    """The concentrations of a position."""
    return Concentrations(
        float(position["transition_concentration"]),
        float(position["emission_concentration"]),
        float(position["class_concentration"]),
        tuple(position["feature_concentration"].tolist()),
    )


def majority(draws: NDArray[Any], n_components: int) -> Integers:
    """The class that each symbol has in most draws (V,); the first of them where several have as many."""
    symbols = np.arange(draws.shape[1])
    votes = np.zeros((len(symbols), n_components), dtype=np.int64)
    for classes in draws:
        votes[symbols, classes] += 1
    return votes.argmax(axis=1).astype(np.int64)


class PosteriorMeans(NamedTuple):
    """Expected probabilities given the classes: start (k,), transition (k, k), emission (k, V), features (k, S_f)."""

    start: Array
    transition: Array
    emission: Array
    features: list[Array]


def posterior_means(
    corpus: Corpus, counts: Counts, classes: Integers, concentrations: Concentrations
) -> PosteriorMeans:
    """Posterior means given the classes (V,) and their counts; a class without symbols has them all alike."""
    k, n_symbols = len(counts.tokens), len(classes)
    # A part of a Dirichlet vector, divided by its sum, is Dirichlet too: the boundary's column drops out.
    rows = (counts.transition[:, :k] + concentrations.transition).astype(np.float64)
    rows /= rows.sum(axis=1, keepdims=True)
    b = concentrations.emission
    emission = np.zeros((k, n_symbols))
    emission[classes, np.arange(n_symbols)] = (corpus.frequencies + b) / (counts.tokens + counts.types * b)[classes]
    emission[counts.types == 0] = 1.0 / n_symbols
    values = np.split(counts.features, np.cumsum(corpus.sizes)[:-1])  # a part for each feature, if there are any
    features = [
        ((part + e) / (counts.types + len(part) * e)).T.copy() for part, e in zip(values, concentrations.features)
    ]
    return PosteriorMeans(rows[k], rows[:k], emission, features)
