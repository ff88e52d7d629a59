# mypy: allow-untyped-defs, allow-untyped-calls
"""A tree whose scales and nodes are made from the prior when they are needed, compiled; see `_path_kernels`."""

import math
from typing import Any, NamedTuple

import numpy as np

from pluri.engine.compiled import compiled
from pluri.topics.tree._draws import beta_draw, log_gamma_draw, stick_draw, uniform

#: What is left of a stick when rounding has eaten the rest.
NOTHING = 1e-13


class GrowingTree(NamedTuple):
    """A tree with room to grow: the arrays of `TreeState`, topics, and the distributions of what is made.

    `caps` and `most_depth` say which node, and which scale, takes all that is left of a stick. `least` is the smallest
    concentration, `shape` and `rate` those of their prior; with a shape of 0 they are all `rate`.
    """

    top: int
    most_depth: int
    caps: Any
    depth: Any
    widths: Any
    offsets: Any
    base: Any
    theta: Any
    theta_rest: Any
    usage: Any
    usage_rest: Any
    transition: Any
    transition_rest: Any
    phi: Any
    zeta: Any
    used: Any
    prior: float
    base_concentration: float
    doc_concentration: float
    usage_concentration: float
    shape: float
    rate: float
    least: float


@compiled(inner=True, allocates=False)
def open_scale(stream, tree, room):
    """Make the next scale from the prior; False if there is no room."""
    usage, usage_rest, top = tree.usage, tree.usage_rest, tree.top
    s = tree.depth[0]
    if s >= room:
        return False
    for d in range(usage.shape[0]):
        left = 0.0 if s == tree.most_depth - 1 else usage_rest[d] * stick_draw(stream, tree.usage_concentration)
        usage[d, s] = usage_rest[d] - left
        usage_rest[d] = left
    tree.widths[s] = 0
    if s == top:
        tree.base[-1] = 1.0
        tree.theta_rest[:] = 1.0
    elif s > top:
        zeta = tree.rate
        if tree.shape > 0.0:
            zeta = min(max(math.exp(log_gamma_draw(stream, tree.shape)) / tree.rate, tree.least), 1.0 / tree.least)
        tree.zeta[s] = zeta
        tree.transition_rest[s, :] = 1.0
    tree.depth[0] = s + 1
    if top == 1 and s == 0:
        return open_node(stream, tree, 0)
    return True


@compiled(inner=True, allocates=False)
def open_node(stream, tree, s):
    """Make the next node of a scale from the prior; False if there is no room."""
    widths, offsets, base, caps, phi, top = tree.widths, tree.offsets, tree.base, tree.caps, tree.phi, tree.top
    transition, transition_rest = tree.transition, tree.transition_rest
    t = widths[s]
    k = offsets[s] + t
    if k >= offsets[s + 1]:
        return False
    last = t == caps[s] - 1
    total = 0.0
    for v in range(phi.shape[0]):
        phi[v, k] = math.exp(log_gamma_draw(stream, tree.prior))
        total += phi[v, k]
    for v in range(phi.shape[0]):
        phi[v, k] /= total
    tree.used[k] = 0
    if s == top:
        rest = base[-1]
        left = 0.0 if last else rest * stick_draw(stream, tree.base_concentration)
        base[t], base[-1] = rest - left, left
        eta = tree.doc_concentration
        for d in range(tree.theta.shape[0]):
            taken, kept = 1.0, 0.0
            if left > 0.0 and rest > left:
                taken, kept = beta_draw(stream, eta * (rest - left), eta * left)
            elif left > 0.0:
                taken, kept = 0.0, 1.0
            tree.theta[d, t] = tree.theta_rest[d] * taken
            tree.theta_rest[d] *= kept
    elif s > top:
        for m in range(widths[s - 1]):
            left = 0.0 if last else transition_rest[s, m] * stick_draw(stream, tree.zeta[s])
            transition[k, m] = transition_rest[s, m] - left
            transition_rest[s, m] = left
    if s >= top and s + 1 < tree.depth[0]:
        rest = 1.0
        for below in range(widths[s + 1]):
            left = 0.0 if below == caps[s + 1] - 1 else rest * stick_draw(stream, tree.zeta[s + 1])
            transition[offsets[s + 1] + below, t] = rest - left
            rest = left
        transition_rest[s + 1, t] = rest
    widths[s] = t + 1
    return True


@compiled(inner=True, allocates=False)
def stick_rest(tree, d, s, parent):
    """Leftover of the stick that a node of scale s is drawn from."""
    return tree.theta_rest[d] if s == tree.top else tree.transition_rest[s, parent]


@compiled(inner=True, allocates=False)
def piece(tree, d, s, parent, t):
    """Piece of that stick."""
    return tree.theta[d, t] if s == tree.top else tree.transition[tree.offsets[s] + t, parent]


@compiled(inner=True, allocates=False)
def draw_below(stream, tree, d, s, parent):
    """Node of scale s below a parent, from the prior; -1 if there is no room."""
    widths = tree.widths
    left = uniform(stream)
    t = 0
    while True:
        while t >= widths[s]:
            if t > 0 and stick_rest(tree, d, s, parent) < NOTHING:
                return t - 1
            if not open_node(stream, tree, s):
                return -1
        left -= piece(tree, d, s, parent, t)
        if left < 0.0:
            return t
        t += 1


@compiled(inner=True, allocates=False)
def continue_path(stream, tree, d, path, first, last):
    """Draw the nodes of a path at scales `first` to `last` from the prior; False if there is no room."""
    top = tree.top
    for s in range(first, last + 1):
        if s < top:
            path[s] = 0
            continue
        parent = np.int64(path[s - 1]) if s > top else np.int64(0)
        path[s] = draw_below(stream, tree, d, s, parent)
        if path[s] < 0:
            return False
    return True


@compiled(inner=True, allocates=False)
def fill_likelihood(tree, s, first, last, w, child, likelihood):
    """Likelihood of a token given each node of scale s: of its word, or of the node below."""
    offsets, transition, phi = tree.offsets, tree.transition, tree.phi
    for t in range(first, last):
        likelihood[t] = phi[w, offsets[s] + t] if child < 0 else transition[offsets[s + 1] + child, t]
