"""The binary tree of a NUTS trajectory: how it grows, when it has turned back, and which of its states is kept."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pluri.inference.mcmc.hamiltonian.leapfrog import DIVERGENCE

Array = NDArray[np.float64]
DOUBLE = np.dtype(np.float64)


class Tree(NamedTuple):
    """A stretch of ``2^depth`` states, from the end built first (`near`) to the one built last (`far`).

    Attributes
    ----------
    depth : logarithm of the number of states
    log_weight : logarithm of the sum of ``exp(H_0 - H)``
    proposal : one of its states, drawn with probability proportional to its weight
    total : (dim,): sum of the momenta
    near, far : (dim,): momenta at the ends
    """

    depth: int
    log_weight: float
    proposal: Any
    total: Array
    near: Array
    far: Array


#: Makes a `Tree` of its fields in a third of the time; it happens twice for each state.
new_tree = partial(tuple.__new__, Tree)


class Edge(NamedTuple):
    """An end of the trajectory, from which it can go on: the momentum has had its half kick already."""

    position: Array
    half: Array


def log_add(a: float, b: float) -> float:
    """``log(exp(a) + exp(b))``; a weight is never zero, as a divergent state is not added."""
    return a + math.log1p(math.exp(b - a)) if a > b else b + math.log1p(math.exp(a - b))


def turns(first: Tree, second: Tree, total: Array) -> bool:
    """Whether the ends of two joined stretches approach, or those of either with the next state of the other."""
    if total.dot(first.near) <= 0 or total.dot(second.far) <= 0:
        return True
    if first.depth == 0:
        return False  # two states: there is nothing in between
    across = first.total + second.near
    if across.dot(first.near) <= 0 or across.dot(second.near) <= 0:
        return True
    across = second.total + first.far
    return bool(across.dot(first.far) <= 0 or across.dot(second.far) <= 0)


def merge(first: Tree, second: Tree, uniform: float) -> Tree | None:
    """Join two neighbours of equal depth, `second` built after `first`; None if the whole turns back.

    The proposal comes from the second with probability ``W_2 / (W_1 + W_2)``.
    """
    total = first.total + second.total
    if turns(first, second, total):
        return None
    log_weight = log_add(first.log_weight, second.log_weight)
    proposal = second.proposal if uniform < math.exp(second.log_weight - log_weight) else first.proposal
    return new_tree((first.depth + 1, log_weight, proposal, total, first.near, second.far))


class Growth:
    """A subtree of ``2^depth`` states that is being built.

    Attributes
    ----------
    missing : states that it still lacks
    tree : the whole, once nothing is missing
    divergent : whether it ended because the energy rose without bound
    acceptance, n_leaves : sum of the acceptance probabilities, and number, of the states that were tried
    """

    __slots__ = ("_even", "_stack", "_uniform", "acceptance", "divergent", "missing", "n_leaves")

    def __init__(self, rng: np.random.Generator, depth: int):
        self.missing = self.n_leaves = 1 << depth
        self._uniform = rng.random
        self._stack: list[Tree] = []
        self._even: tuple[Any, Array, float, float] | None = None
        self.acceptance = 0.0
        self.divergent = False

    @property
    def tree(self) -> Tree:
        """The finished subtree."""
        return self._stack[0]

    def diverge(self) -> None:
        """The next state cannot be reached: the subtree is to be thrown away."""
        self.divergent = True
        self.missing -= 1
        self.n_leaves -= self.missing

    def add(self, point: Any, momentum: Array, kinetic: float, change: float) -> bool:
        """Add the next state; False if the subtree turns or diverges, and is to be thrown away.

        `kinetic` is ``p'p`` and `change` the energy above that of the start. Pairs of leaves are merged on the spot:
        for two states with momenta p and r the turn is seen from ``p'p + p'r``.
        """
        missing = self.missing = self.missing - 1
        if not change <= DIVERGENCE:  # NaN counts as divergent
            self.divergent = True
            self.n_leaves -= missing
            return False
        if change == -math.inf:
            raise ValueError("the log density is +inf at a point of the trajectory: it must be finite or -inf")
        self.acceptance += 1.0 if change <= 0 else math.exp(-change)
        even = self._even
        if even is None:
            if self.n_leaves == 1:
                self._stack.append(new_tree((0, -change, point, momentum, momentum, momentum)))
            self._even = (point, momentum, kinetic, change)
            return True
        before, other, other_kinetic, other_change = even
        self._even = None
        product = float(momentum.dot(other))
        if other_kinetic + product <= 0 or kinetic + product <= 0:
            self.n_leaves -= missing
            return False
        log_weight = log_add(-other_change, -change)
        proposal = point if self._uniform() < math.exp(-change - log_weight) else before
        tree: Tree | None = new_tree((1, log_weight, proposal, other + momentum, other, momentum))
        stack = self._stack
        while tree is not None and stack and stack[-1].depth == tree.depth:
            tree = merge(stack.pop(), tree, self._uniform())
        if tree is None:
            self.n_leaves -= missing
            return False
        stack.append(tree)
        return True
