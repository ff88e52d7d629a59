"""Chains of a compiled density: many steps in one call, during which other threads run.

A kernel makes them by its method ``block(rng, state, n_steps, adaptation)``. Between two windows of the warm-up the
settings are learned inside the compiled code; the steps at which a window ends are made one by one, by the code that
plain kernels use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from pluri.inference.mcmc.chain import Logbook
    from pluri.inference.mcmc.kernel import Info

Array = NDArray[np.float64]
#: Numbers of the path of one call at most, which is kept in memory until it returns.
MOST_NUMBERS = 1_000_000


class Block(NamedTuple):
    """Some steps of a chain: where it is then, the path, what the steps told, and what the compiled warm-up learned."""

    state: Any
    positions: Array
    values: Array
    told: dict[str, NDArray[Any]]
    memory: Array


def compiled_step(kernel: Any, rng: np.random.Generator, state: Any) -> tuple[Any, Info]:
    """One step."""
    block: Block = kernel.block(rng, state, 1)
    return block.state, {name: values[0].item() for name, values in block.told.items()}


def advance_compiled(books: list[Logbook], n_steps: int) -> None:
    """Make some steps of each chain."""
    for book in books:
        left = n_steps
        longest = max(1, MOST_NUMBERS // len(book.state.position))
        while left:
            left -= _advance_one(book, min(left, longest))


def _advance_one(book: Logbook, most: int) -> int:
    """Make at most so many steps in one call; gives how many."""
    if not book.warming:
        book.took_draws(book.kernel.block(book.rng, book.state, most))
        return most
    adaptation: Any = book.adaptation
    if adaptation is None:
        n_steps = min(most, book.warmup_left)
        book.learned(book.kernel.block(book.rng, book.state, n_steps).state, n_steps, lambda kernel: kernel)
        return n_steps
    quiet: int = min(most, adaptation.quiet_steps, book.warmup_left - 1)
    if quiet == 0:
        book.took(*book.kernel.step(book.rng, book.state))
        return 1
    block = book.kernel.block(book.rng, book.state, quiet, adaptation)
    book.learned(block.state, quiet, lambda kernel: adaptation.take(kernel, block, quiet))
    return quiet
