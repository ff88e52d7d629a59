"""The No-U-Turn sampler: Hamiltonian trajectories that grow until they turn back.

A trajectory doubles, forwards or backwards at random, until its ends move towards each other; one of its states is
drawn with probability proportional to ``exp(-H)``, favouring the newer half. A new half that turned within itself is
thrown away, which keeps the transition reversible. The tree is built without recursion: leaves are added one by one
and equal subtrees merged, like the carries of a binary counter. Momenta are those of `Landscape`, in which the metric
is the identity.

References
----------
.. [1] Hoffman, M. D. and Gelman, A. (2014). The No-U-Turn sampler. JMLR 15, 1593-1623.
.. [2] Betancourt, M. (2017). A conceptual introduction to Hamiltonian Monte Carlo. arXiv:1701.02434.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pluri.inference.mcmc.hamiltonian import DIVERGENCE, GradientState, HamiltonianKernel, ValueAndGrad, strides_of
from pluri.inference.mcmc.kernel import Info

Array = NDArray[np.float64]
Point = tuple[Array, float, Array]  # position, log density, gradient


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
    proposal: Point
    total: Array
    near: Array
    far: Array


class Edge(NamedTuple):
    """An end of the trajectory, from which it can go on: the momentum has had its half kick already."""

    position: Array
    half: Array


class Growth(NamedTuple):
    """Outcome of growing one subtree: none if it turned or diverged on the way."""

    tree: Tree | None
    edge: Edge
    n_leaves: int
    acceptance: float
    divergent: bool


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
    return Tree(first.depth + 1, log_weight, proposal, total, first.near, second.far)


def grow(
    rng: np.random.Generator, value_and_grad: ValueAndGrad, stride: tuple[Array, Array], edge: Edge, depth: int,
    energy: float,
) -> Growth:  # fmt: skip
    """Add ``2^depth`` leapfrog states beyond `edge`; `stride` is how far a drift and half a kick go.

    Pairs of leaves are merged on the spot: for two states with momenta p and r the turn is seen from ``p'p + p'r``.
    """
    drift, kick = stride
    dense = drift.ndim == 2
    exp = math.exp
    position, half = edge
    n_leaves = 1 << depth
    uniforms = iter(rng.random(n_leaves).tolist())  # one for each merge: n - 1 of them
    stack: list[Tree] = []
    acceptance = 0.0
    even = None
    for leaf in range(1, n_leaves + 1):
        position = position + (drift.dot(half) if dense else drift * half)
        log_density, gradient = value_and_grad(position)
        kicked = kick.dot(gradient) if dense else kick * gradient
        momentum = half + kicked
        half = momentum + kicked
        kinetic = float(momentum.dot(momentum))
        change = 0.5 * kinetic - float(log_density) - energy
        if not change <= DIVERGENCE:  # NaN counts as divergent
            return Growth(None, edge, leaf, acceptance, True)
        if change == -math.inf:
            raise ValueError("the log density is +inf at a point of the trajectory: it must be finite or -inf")
        acceptance += 1.0 if change <= 0 else exp(-change)
        point = (position, log_density, gradient)
        if even is None:
            if depth == 0:
                stack.append(Tree(0, -change, point, momentum, momentum, momentum))
            even = (point, momentum, kinetic, change)
            continue
        before, other, other_kinetic, other_change = even
        even = None
        product = float(momentum.dot(other))
        if other_kinetic + product <= 0 or kinetic + product <= 0:
            return Growth(None, edge, leaf, acceptance, False)
        log_weight = log_add(-other_change, -change)
        proposal = point if next(uniforms) < exp(-change - log_weight) else before
        tree: Tree | None = Tree(1, log_weight, proposal, other + momentum, other, momentum)
        while tree is not None and stack and stack[-1].depth == tree.depth:
            tree = merge(stack.pop(), tree, next(uniforms))
        if tree is None:
            return Growth(None, edge, leaf, acceptance, False)
        stack.append(tree)
    return Growth(stack[0], Edge(position, half), n_leaves, acceptance, False)


@dataclass(frozen=True)
class NUTS(HamiltonianKernel):
    """No-U-Turn sampler (multinomial, with the generalised criterion) for a smooth density with a gradient.

    The other parameters are those of :class:`HamiltonianKernel`.

    Parameters
    ----------
    max_tree_depth : int, default=10
        A trajectory has at most ``2^max_tree_depth`` steps.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference import mcmc
    >>> def value_and_grad(x):  # a standard normal
    ...     return -0.5 * x @ x, -x
    >>> trace = mcmc.sample(mcmc.NUTS(value_and_grad), np.zeros(3), n_draws=500, n_warmup=300, random_state=0)
    >>> trace["x"].shape
    (4, 500, 3)
    >>> bool(np.abs(trace["x"].mean(axis=(0, 1))).max() < 0.1)
    True
    """

    max_tree_depth: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.max_tree_depth <= 20:
            raise ValueError(f"max_tree_depth must be from 1 to 20, got {self.max_tree_depth!r}")

    def step(self, rng: np.random.Generator, state: GradientState) -> tuple[GradientState, Info]:
        """One trajectory and the state drawn from it."""
        step_size = self.step_size if self.step_size is not None else 1.0
        drift, kick = strides_of(self.terrain(len(state.position)), step_size)
        momentum = rng.standard_normal(len(state.position))
        energy = 0.5 * float(momentum.dot(momentum)) - state.log_density
        whole = Tree(0, 0.0, state, momentum, momentum, momentum)
        kicked = kick.dot(state.gradient) if kick.ndim == 2 else kick * state.gradient
        # The latest end in time and the earliest, each with what a drift and half a kick multiply by there.
        edges = [Edge(state.position, momentum + kicked), Edge(state.position, momentum - kicked)]
        strides = ((drift, kick), (-drift, -kick))
        acceptance, n_leaves, depth, divergent = 0.0, 0, 0, False
        choices = rng.random(2 * self.max_tree_depth).tolist()
        while depth < self.max_tree_depth:
            backwards = choices[2 * depth] < 0.5
            growth = grow(rng, self.value_and_grad, strides[backwards], edges[backwards], depth, energy)
            acceptance += growth.acceptance
            n_leaves += growth.n_leaves
            depth += 1
            if growth.tree is None:
                divergent = growth.divergent
                break
            edges[backwards] = growth.edge
            whole, turned = extend(whole, growth.tree, backwards, choices[2 * depth - 1])
            if turned:
                break
        position, log_density, gradient = whole.proposal
        return GradientState(position, float(log_density), gradient), {
            "acceptance": acceptance / n_leaves,
            "n_evaluations": n_leaves,
            "divergent": divergent,
            "tree_depth": depth,
            "energy": energy,
            "step_size": step_size,
        }


def extend(whole: Tree, grown: Tree, backwards: bool, uniform: float) -> tuple[Tree, bool]:
    """Put a grown subtree at one end of the trajectory; also tells whether the whole now turns.

    `whole` runs in time: its near end is the earliest. The proposal moves to the new part with probability
    ``min(1, W_new / W_old)``.
    """
    depth, log_weight, proposal, total, near, far = whole
    if uniform < math.exp(min(0.0, grown.log_weight - log_weight)):
        proposal = grown.proposal
    # Seen from the new part, the trajectory is read in the direction in which it grew.
    seen = Tree(depth, log_weight, proposal, total, far, near) if backwards else whole
    total = total + grown.total
    turned = turns(seen, grown, total)
    ends = (grown.far, far) if backwards else (near, grown.far)
    return Tree(depth + 1, log_add(log_weight, grown.log_weight), proposal, total, *ends), turned
