"""What a model must give for coordinate ascent: a start, a sweep, and the bound."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar, runtime_checkable

import numpy as np

Params = TypeVar("Params")
Data = TypeVar("Data", contravariant=True)


class VariationalModel(Protocol[Params, Data]):
    """A family of q and its bound: what `coordinate_ascent` runs."""

    def initialize(self, data: Data, rng: np.random.Generator) -> Params:
        """Parameters of q to start a run from; all randomness comes from `rng`."""
        ...

    def update(self, params: Params, data: Data) -> Params:
        """One sweep: every block replaced by its optimum given the others."""
        ...

    def elbo(self, params: Params, data: Data) -> float:
        """The bound at these parameters."""
        ...


@runtime_checkable
class BlockModel(Protocol[Params, Data]):
    """A model that shows its blocks, in place of `update`: with ``strict=True`` each is checked by itself."""

    def initialize(self, data: Data, rng: np.random.Generator) -> Params:
        """Parameters of q to start a run from."""
        ...

    def elbo(self, params: Params, data: Data) -> float:
        """The bound at these parameters."""
        ...

    @property
    def blocks(self) -> Mapping[str, Callable[[Params, Data], Params]]:
        """The updates by name, in the order of a sweep."""
        ...
