"""Discrete factor graphs: p(x) = (1/Z) prod_f psi_f(x_f) over variables with finitely many states.

Factors of the same shape are stacked, so that messages and expectations run over all of them at a time. Small graphs
can be summed over exactly, which is what approximations are compared with.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

#: Stands for log 0 in a factor: finite, so that 0 * log 0 = 0, and beyond any sum of ordinary log potentials.
LOG_ZERO = -1e300
#: Exact sums go over at most so many configurations.
LARGEST_ENUMERATION = 2**22


@dataclass(frozen=True)
class FactorStack:
    """Factors of one shape: `log_tables` (F, S_1, ..., S_k), `variables` (F, k) by index."""

    log_tables: Array
    variables: NDArray[np.int64]


@dataclass(frozen=True)
class FactorGraph:
    """Variables, their numbers of states, and the factors, stacked by shape.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference.variational import FactorGraph
    >>> graph = FactorGraph.of([(("rain",), np.log([0.8, 0.2])), (("rain", "wet"), np.log([[0.9, 0.1], [0.2, 0.8]]))])
    >>> graph.variables, graph.cardinalities
    (('rain', 'wet'), array([2, 2]))
    """

    variables: tuple[Hashable, ...]
    cardinalities: NDArray[np.int64]
    stacks: tuple[FactorStack, ...]

    @classmethod
    def of(cls, factors: FactorGraph | Iterable[tuple[Sequence[Hashable], ArrayLike]]) -> FactorGraph:
        """Build a graph from pairs (variables, log potentials), an axis for each variable; -inf is allowed.

        Variables are any hashable names; they are kept in the order in which they first appear, integers in their own.
        """
        if isinstance(factors, FactorGraph):
            return factors
        pairs = [(tuple(names), _checked_table(names, table, index)) for index, (names, table) in enumerate(factors)]
        if not pairs:
            raise ValueError("factors must have at least one factor, got none")
        sizes: dict[Any, int] = {}
        for index, (names, table) in enumerate(pairs):
            for name, size in zip(names, table.shape):
                if sizes.setdefault(name, size) != size:
                    raise ValueError(
                        f"factor {index} must have {sizes[name]} states for variable {name!r} like those before it, "
                        f"got {size}"
                    )
        order = sorted(sizes) if all(isinstance(name, int | np.integer) for name in sizes) else list(sizes)
        number = {name: index for index, name in enumerate(order)}
        by_shape: dict[tuple[int, ...], list[tuple[Array, list[int]]]] = {}
        for names, table in pairs:
            by_shape.setdefault(table.shape, []).append((table, [number[name] for name in names]))
        stacks = tuple(
            FactorStack(np.stack([table for table, _ in group]), np.array([indices for _, indices in group]))
            for group in by_shape.values()
        )
        return cls(tuple(order), np.array([sizes[name] for name in order]), stacks)

    def neighbours(self) -> list[set[int]]:
        """For each variable, those that share a factor with it."""
        near: list[set[int]] = [set() for _ in self.variables]
        for stack in self.stacks:
            for row in stack.variables.tolist():
                for variable in row:
                    near[variable].update(row)
        for variable, others in enumerate(near):
            others.discard(variable)
        return near

    def independent_sets(self) -> list[NDArray[np.int64]]:
        """Greedy colouring: sets of variables of which no two share a factor."""
        colors = np.full(len(self.variables), -1)
        for variable, others in enumerate(self.neighbours()):
            taken = {int(colors[other]) for other in others}
            colors[variable] = next(color for color in range(len(taken) + 1) if color not in taken)
        return [np.flatnonzero(colors == color) for color in range(colors.max() + 1)]


def _checked_table(names: Sequence[Hashable], table: ArrayLike, index: int) -> Array:
    values = np.asarray(table, dtype=np.float64)
    if values.ndim != len(names) or values.ndim == 0 or values.size == 0:
        raise ValueError(
            f"factor {index} must have one axis of log potentials for each of its {len(names)} variables, got shape "
            f"{values.shape}"
        )
    if len(set(names)) != len(names):
        raise ValueError(f"factor {index} must name each variable once, got {list(names)}")
    if np.isnan(values).any() or (values == np.inf).any():
        raise ValueError(f"factor {index} must have log potentials below infinity, got NaN or +inf")
    return np.maximum(values, LOG_ZERO)


@dataclass(frozen=True)
class ExactPosterior:
    """What enumeration gives: log Z, the marginals and the most probable configuration, by variable."""

    log_normalizer: float
    marginals: Mapping[Any, Array]
    most_probable: Mapping[Any, int]


def enumerate_exactly(factors: FactorGraph | Iterable[tuple[Sequence[Hashable], ArrayLike]]) -> ExactPosterior:
    """Sum over every configuration of a small graph.

    Parameters
    ----------
    factors : FactorGraph or list of (variables, log potentials)
        With at most 2**22 configurations.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference.variational import enumerate_exactly
    >>> exact = enumerate_exactly([((0,), np.log([0.8, 0.2])), ((0, 1), np.log([[0.9, 0.1], [0.2, 0.8]]))])
    >>> round(exact.log_normalizer, 6), exact.marginals[1], exact.most_probable
    (0.0, array([0.76, 0.24]), {0: 0, 1: 0})
    """
    graph = FactorGraph.of(factors)
    n_configurations = math.prod(graph.cardinalities.tolist())
    if n_configurations > LARGEST_ENUMERATION:
        raise ValueError(
            f"factors must have at most {LARGEST_ENUMERATION} configurations to be enumerated, got {n_configurations}"
        )
    log_table = np.zeros(graph.cardinalities)
    for stack in graph.stacks:
        for table, row in zip(stack.log_tables, stack.variables):
            shape = np.ones(len(graph.variables), dtype=np.int64)
            shape[row] = table.shape
            log_table += np.transpose(table, np.argsort(row)).reshape(shape)
    highest = float(log_table.max())
    if highest < LOG_ZERO / 2:
        raise ValueError("factors must leave at least one configuration possible, got none")
    weights = np.exp(log_table - highest)
    total = float(weights.sum())
    best = np.unravel_index(int(log_table.argmax()), log_table.shape)
    axes = range(log_table.ndim)
    marginals = [weights.sum(axis=tuple(other for other in axes if other != axis)) / total for axis in axes]
    return ExactPosterior(
        highest + math.log(total),
        dict(zip(graph.variables, marginals)),
        {name: int(state) for name, state in zip(graph.variables, best)},
    )
