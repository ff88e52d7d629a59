"""The No-U-Turn sampler: Hamiltonian trajectories that grow until they turn back.

A trajectory doubles, forwards or backwards at random, until the ends move towards each other; one of its states is
drawn with probability proportional to ``exp(-H)``, favouring the newer half. Subtrees that turned within themselves
are thrown away, which keeps the transition reversible. The tree is built without recursion: leaves are pushed one by
one and equal subtrees merged, like the carries of a binary counter.

References
----------
.. [1] Hoffman, M. D. and Gelman, A. (2014). The No-U-Turn sampler. JMLR 15, 1593-1623.
.. [2] Betancourt, M. (2017). A conceptual introduction to Hamiltonian Monte Carlo. arXiv:1701.02434.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.inference.mcmc.hamiltonian import DIVERGENCE, GradientState, HamiltonianKernel, Landscape
from pluri.inference.mcmc.kernel import Info

Array = NDArray[np.float64]


class Tree:
    """A stretch of trajectory, from the end built first (`near`) to the one built last (`far`).

    Attributes
    ----------
    depth : int
        It holds ``2^depth`` states.
    log_weight : float
        Logarithm of the sum of ``exp(H_0 - H)``.
    proposal : GradientState
        One of its states, drawn with probability proportional to its weight.
    total : (dim,)
        Sum of the momenta.
    near, far : (dim,)
        Momenta at the ends.
    near_velocity, far_velocity : (dim,)
        ``M^-1 p`` at the ends.
    """

    __slots__ = ("depth", "far", "far_velocity", "log_weight", "near", "near_velocity", "proposal", "total")

    def __init__(
        self, depth: int, log_weight: float, proposal: Any, total: Array, near: Array, near_velocity: Array,
        far: Array, far_velocity: Array,
    ):  # fmt: skip
        self.depth = depth
        self.log_weight = log_weight
        self.proposal = proposal
        self.total = total
        self.near = near
        self.near_velocity = near_velocity
        self.far = far
        self.far_velocity = far_velocity


def merge(first: Tree, second: Tree, uniform: float) -> Tree | None:
    """Join two neighbours of equal depth, `second` built after `first`; None if the whole turns back.

    The proposal comes from the second with probability ``W_2 / (W_1 + W_2)``.
    """
    if _turns(first, second):
        return None
    log_weight = _log_add(first.log_weight, second.log_weight)
    take_second = uniform < math.exp(second.log_weight - log_weight)
    return Tree(
        first.depth + 1,
        log_weight,
        second.proposal if take_second else first.proposal,
        first.total + second.total,
        first.near,
        first.near_velocity,
        second.far,
        second.far_velocity,
    )


def _log_add(a: float, b: float) -> float:
    """``log(exp(a) + exp(b))``; a weight is never zero, as a divergent state is not added."""
    return a + math.log1p(math.exp(b - a)) if a > b else b + math.log1p(math.exp(a - b))


def _turns(first: Tree, second: Tree) -> bool:
    """Whether the ends of the joined stretch, or of either half with the first state of the other, approach."""
    total = first.total + second.total
    if total.dot(first.near_velocity) <= 0 or total.dot(second.far_velocity) <= 0:
        return True
    if first.depth == 0:
        return False  # the two further checks are the same for two states
    across = first.total + second.near
    if across.dot(first.near_velocity) <= 0 or across.dot(second.near_velocity) <= 0:
        return True
    across = second.total + first.far
    return bool(across.dot(first.far_velocity) <= 0 or across.dot(second.far_velocity) <= 0)


class _Edge:
    """An end of the trajectory, from which it can go on."""

    __slots__ = ("gradient", "momentum", "position")

    def __init__(self, position: Array, momentum: Array, gradient: Array):
        self.position = position
        self.momentum = momentum
        self.gradient = gradient


class Grown:
    """Outcome of growing one subtree."""

    __slots__ = ("acceptance", "divergent", "n_leaves", "tree")

    def __init__(self, tree: Tree | None, n_leaves: int, acceptance: float, divergent: bool):
        self.tree = tree
        self.n_leaves = n_leaves
        self.acceptance = acceptance
        self.divergent = divergent


def grow(
    rng: np.random.Generator, terrain: Landscape, edge: _Edge, depth: int, step_size: float, energy: float
) -> Grown:
    """Add ``2^depth`` leapfrog states beyond `edge` (moved along); no tree if they turn or diverge on the way."""
    value_and_grad, inverse_mass = terrain.value_and_grad, terrain.inverse_mass
    dense = inverse_mass.ndim == 2
    drift, kick = step_size * inverse_mass, 0.5 * step_size
    position, momentum, gradient = edge.position, edge.momentum, edge.gradient
    stack: list[Tree] = []
    acceptance = 0.0
    n_leaves = 1 << depth
    uniforms = rng.random(n_leaves)  # one for each merge: n - 1 of them
    merges = 0
    for leaf in range(1, n_leaves + 1):
        half = momentum + kick * gradient
        position = position + (drift.dot(half) if dense else drift * half)
        log_density, gradient = value_and_grad(position)
        momentum = half + kick * gradient
        velocity = inverse_mass.dot(momentum) if dense else inverse_mass * momentum
        change = float(0.5 * momentum.dot(velocity) - log_density - energy)
        if not change <= DIVERGENCE:  # NaN counts as divergent
            return Grown(None, leaf, acceptance, True)
        if change == -math.inf:
            raise ValueError("the log density is +inf at a point of the trajectory: it must be finite or -inf")
        acceptance += 1.0 if change <= 0 else math.exp(-change)
        proposal = (position, log_density, gradient)
        tree: Tree | None = Tree(0, -change, proposal, momentum, momentum, velocity, momentum, velocity)
        while tree is not None and stack and stack[-1].depth == tree.depth:
            tree = merge(stack.pop(), tree, uniforms[merges])
            merges += 1
        if tree is None:
            return Grown(None, leaf, acceptance, False)
        stack.append(tree)
    edge.position, edge.momentum, edge.gradient = position, momentum, gradient
    return Grown(stack[0], n_leaves, acceptance, False)


@dataclass(frozen=True)
class NUTS(HamiltonianKernel):
    """No-U-Turn sampler (multinomial, with a generalised criterion) for a smooth density with a gradient.

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

    def step(self, rng: np.random.Generator, state: GradientState) -> tuple[GradientState, Info]:
        """One trajectory and the state drawn from it."""
        terrain = self.terrain(len(state.position))
        step_size = self.step_size if self.step_size is not None else 1.0
        momentum = terrain.draw(rng)
        velocity = terrain.velocity(momentum)
        energy = 0.5 * float(momentum.dot(velocity)) - state.log_density
        whole = Tree(0, 0.0, state, momentum, momentum, velocity, momentum, velocity)
        edges = _Edge(state.position, momentum, state.gradient), _Edge(state.position, momentum, state.gradient)
        acceptance, n_leaves, depth, divergent = 0.0, 0, 0, False
        directions = rng.random(self.max_tree_depth)
        while depth < self.max_tree_depth:
            backwards = bool(directions[depth] < 0.5)
            grown = grow(
                rng, terrain, edges[backwards], depth, -step_size if backwards else step_size, energy
            )  # fmt: skip
            acceptance += grown.acceptance
            n_leaves += grown.n_leaves
            depth += 1
            if grown.tree is None:
                divergent = grown.divergent
                break
            whole, turned = extend(whole, grown.tree, backwards, rng.random())
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
    take = uniform < math.exp(min(0.0, grown.log_weight - whole.log_weight))
    # Seen from the new part the trajectory is read in the direction in which it grew.
    old = whole
    if backwards:
        old = Tree(whole.depth, whole.log_weight, whole.proposal, whole.total, whole.far, whole.far_velocity,
                   whole.near, whole.near_velocity)  # fmt: skip
    turned = _turns(old, grown)
    log_weight = _log_add(old.log_weight, grown.log_weight)
    ends = (grown.far, grown.far_velocity, old.near, old.near_velocity) if backwards else (
        old.near, old.near_velocity, grown.far, grown.far_velocity)  # fmt: skip
    proposal = grown.proposal if take else whole.proposal
    return Tree(whole.depth + 1, log_weight, proposal, old.total + grown.total, *ends), turned
