"""A search space: named dimensions, and points of it as rows of numbers.

A point is a dict of values for the user and a row of codes (`pluri.decisions.bayesian_optimization.dimensions`) inside.
For the covariance a choice is a vector of zeros and one ``1/sqrt(2)``, so that any two differ by a distance of one.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.decisions.bayesian_optimization.dimensions import Categorical, Dimension, Integer, Real
from pluri.decisions.bayesian_optimization.distributed import Distributed

Array = NDArray[np.float64]

#: Latin hypercubes of which the one with the largest smallest distance is taken.
N_DESIGNS = 20


@dataclass(frozen=True)
class Space:
    """Named dimensions.

    Attributes
    ----------
    names : tuple of str
    dimensions : tuple of Dimension
    """

    names: tuple[str, ...]
    dimensions: tuple[Dimension, ...]

    @classmethod
    def of(cls, given: Any, argument: str = "space") -> Space:
        """A dict of dimensions; lists are choices, and distributions of SciPy are taken as they are.

        Examples
        --------
        >>> from pluri.decisions import Integer, Real
        >>> from pluri.decisions.bayesian_optimization.space import Space
        >>> space = Space.of({"rate": Real(0.0, 2.0), "depth": Integer(1, 3), "kind": ["a", "b"]})
        >>> space.params(space.row({"rate": 0.5, "depth": 2, "kind": "b"}))
        {'rate': 0.5, 'depth': 2, 'kind': 'b'}
        """
        if isinstance(given, Space):
            return given
        if not isinstance(given, Mapping) or not given:
            raise ValueError(f"{argument} must be a dict of at least one name and its dimension, got {given!r}")
        dimensions = []
        for name, one in given.items():
            if not isinstance(name, str):
                raise ValueError(f"{argument} must have strings as names, got {name!r}")
            dimensions.append(as_dimension(one, name, argument))
        return cls(tuple(given), tuple(dimensions))

    @property
    def n_dimensions(self) -> int:
        """Number of parameters."""
        return len(self.names)

    @cached_property
    def continuous(self) -> NDArray[np.bool_]:
        """Which dimensions have infinitely many values."""
        return np.array([math.isinf(one.n_levels) for one in self.dimensions])

    @cached_property
    def varying(self) -> NDArray[np.bool_]:
        """Which dimensions have more than one value."""
        return np.array([one.n_levels > 1 for one in self.dimensions])

    @property
    def n_points(self) -> float:
        """Number of different points."""
        return math.prod(one.n_levels for one in self.dimensions)

    def params(self, row: Array) -> dict[str, Any]:
        """Values of a row of codes, by name."""
        return {name: one.value(code) for name, one, code in zip(self.names, self.dimensions, row.tolist())}

    def row(self, params: Any) -> Array:
        """Codes of a point (n_dimensions,); an error if it is not of the space."""
        if not isinstance(params, Mapping):
            raise ValueError(f"a point must be a dict with the names {', '.join(self.names)}, got {params!r}")
        if set(params) != set(self.names):
            raise ValueError(f"a point must have the names {', '.join(self.names)}, got {', '.join(map(str, params))}")
        codes = []
        for name, one in zip(self.names, self.dimensions):
            try:
                codes.append(one.code(params[name]))
            except ValueError as error:
                raise ValueError(f"{name} is outside the space: {error}") from None
        return np.array(codes)

    def rows(self, points: Sequence[Mapping[str, Any]]) -> Array:
        """Codes of several points (n, n_dimensions)."""
        return np.array([self.row(point) for point in points]).reshape(-1, self.n_dimensions)

    def snap(self, rows: Array) -> Array:
        """The nearest rows that are codes of points."""
        return np.stack([one.snap(rows[:, j]) for j, one in enumerate(self.dimensions)], axis=1)

    def spread(self, shares: Array) -> Array:
        """Rows of codes for shares (n, n_dimensions) from 0 to 1."""
        return np.stack([one.spread(shares[:, j]) for j, one in enumerate(self.dimensions)], axis=1)

    def sample(self, rng: np.random.Generator, n_samples: int) -> Array:
        """Points drawn evenly."""
        return self.spread(rng.random((n_samples, self.n_dimensions)))

    def design(self, rng: np.random.Generator, n_points: int) -> Array:
        """A Latin hypercube: each dimension cut into as many parts as there are points, each part used once.

        Of several that are drawn, the one whose points lie farthest apart.
        """
        best, widest = None, -1.0
        for _ in range(N_DESIGNS):
            parts = rng.permuted(np.tile(np.arange(n_points), (self.n_dimensions, 1)), axis=1).T
            shares = (parts + rng.random(parts.shape)) / n_points
            if n_points < 2:
                return self.spread(shares)
            gaps = ((shares[:, None] - shares[None]) ** 2).sum(axis=2)[np.triu_indices(n_points, 1)].min()
            if gaps > widest:
                best, widest = shares, float(gaps)
        assert best is not None
        return self.spread(best)

    def features(self, rows: Array) -> Array:
        """What the covariance sees (n, n_features): numbers as they are, choices as vectors."""
        if self._all_numbers:
            return rows
        columns = []
        for j, one in enumerate(self.dimensions):
            if not one.n_levels > 1:
                continue
            if one.categorical:
                columns.append((rows[:, [j]] == np.arange(one.n_levels)) / math.sqrt(2.0))
            else:
                columns.append(rows[:, [j]])
        return np.concatenate(columns, axis=1) if columns else np.zeros((len(rows), 0))

    @cached_property
    def _all_numbers(self) -> bool:
        """Whether features are the codes themselves."""
        return all(one.n_levels > 1 and not one.categorical for one in self.dimensions)

    @cached_property
    def feature_dimension(self) -> NDArray[np.int64]:
        """Number of the varying dimension that each feature belongs to (n_features,)."""
        varying = [one for one in self.dimensions if one.n_levels > 1]
        widths = [int(one.n_levels) if one.categorical else 1 for one in varying]
        return np.repeat(np.arange(len(varying)), widths)

    def neighbours(self, row: Array) -> Array:
        """Points that differ from one in a single dimension with finitely many values: integers by one step."""
        found = []
        for j, one in enumerate(self.dimensions):
            if math.isinf(one.n_levels) or one.n_levels <= 1:
                continue
            if one.categorical:
                others = [float(code) for code in range(int(one.n_levels)) if code != row[j]]
            else:
                others = _codes_beside(one, one.value(float(row[j])))
            for code in others:
                moved = row.copy()
                moved[j] = code
                found.append(moved)
        return np.array(found).reshape(-1, self.n_dimensions)


def as_dimension(given: Any, name: str, argument: str = "space") -> Dimension:
    """A dimension as a person gives it."""
    if isinstance(given, Real | Integer | Categorical | Distributed):
        return given
    if isinstance(given, list | np.ndarray):
        return Categorical(list(given))
    if callable(getattr(given, "ppf", None)):
        return Distributed(given)
    meant = ""
    if isinstance(given, tuple) and len(given) == 2 and all(isinstance(one, numbers.Real) for one in given):
        kind = "Integer" if all(isinstance(one, numbers.Integral) for one in given) else "Real"
        meant = f": {kind}{given} is all numbers between, {list(given)} these two"
    raise ValueError(
        f"{argument}[{name!r}] must be Real, Integer, Categorical, a list of choices or a distribution of scipy.stats, "
        f"got {given!r}{meant}"
    )


def _codes_beside(one: Dimension, here: int) -> list[float]:
    """Codes of the integers before and after one, as far as they belong to the dimension."""
    codes = []
    for value in (here - 1, here + 1):
        with suppress(ValueError):
            codes.append(one.code(value))
    return codes
