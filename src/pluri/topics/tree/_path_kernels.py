# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled moves of single tokens in a tree whose scales and nodes are made when they are needed.

See `pluri.topics.tree.retrospective` and `pluri.topics.tree.slice_width`. A token keeps its whole path. Its scale moves
given the path, which is continued below it from the prior; then each node of the path moves given its neighbours. In
all of these a number t = 0, 1, ... has prior weight p_t, the piece of a stick, and likelihood f_t.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from pluri.engine.compiled import compiled
from pluri.topics.tree._draws import beta_draw, log_gamma_draw, stick_draw, uniform

RETROSPECTIVE, SLICE, ADAPTIVE = 0, 1, 2
#: What is left of a stick when rounding has eaten the rest.
NOTHING = 1e-13


class GrowingTree(NamedTuple):
    """A tree with room to grow: the arrays of `TreeState`, topics, and the laws of what is made.

    `caps` and `most_depth` say which node, and which scale, takes all that is left of a stick. `least` is the smallest
    concentration, `shape` and `rate` those of their prior.
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


@compiled()
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
        tree.zeta[s] = min(max(math.exp(log_gamma_draw(stream, tree.shape)) / tree.rate, tree.least), 1.0 / tree.least)
        tree.transition_rest[s, :] = 1.0
    tree.depth[0] = s + 1
    if top == 1 and s == 0:
        return open_node(stream, tree, 0)
    return True


@compiled()
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


@compiled()
def stick_rest(tree, d, s, parent):
    """Leftover of the stick that a node of scale s is drawn from."""
    return tree.theta_rest[d] if s == tree.top else tree.transition_rest[s, parent]


@compiled()
def piece(tree, d, s, parent, t):
    """Piece of that stick."""
    return tree.theta[d, t] if s == tree.top else tree.transition[tree.offsets[s] + t, parent]


@compiled()
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


@compiled()
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


@compiled()
def move_scale(stream, tree, kind, room, d, w, c, path, at_scale):
    """New scale of a token, or -1 if there is no room. `at_scale` counts the tokens of each scale, this one too."""
    usage, usage_rest, phi, offsets, depth = tree.usage, tree.usage_rest, tree.phi, tree.offsets, tree.depth
    if kind == SLICE:
        height = uniform(stream) * usage[d, c]
        while usage_rest[d] >= height and usage_rest[d] > 0.0:
            if not open_scale(stream, tree, room):
                return -1
        deepest = c
        for s in range(depth[0]):
            if usage[d, s] > height:
                deepest = max(deepest, s)
        if not continue_path(stream, tree, d, path, c + 1, deepest):
            return -1
        total = 0.0
        for s in range(deepest + 1):
            if usage[d, s] > height:
                total += phi[w, offsets[s] + path[s]]
        left, chosen = uniform(stream) * total, c
        for s in range(deepest + 1):
            if usage[d, s] > height:
                left -= phi[w, offsets[s] + path[s]]
                if left < 0.0:
                    return s
        return chosen
    size = 0
    for s in range(depth[0]):
        if at_scale[s] > 0:
            size = s + 1
    if not continue_path(stream, tree, d, path, c + 1, size - 1):
        return -1
    inside, mass, highest = 0.0, 0.0, 0.0
    for s in range(size):
        f = phi[w, offsets[s] + path[s]]
        inside += usage[d, s] * f
        mass += usage[d, s]
        highest = max(highest, f)
    outside = usage_rest[d]
    for s in range(size, depth[0]):
        outside += usage[d, s]
    whole = inside + highest * outside
    left = uniform(stream) * whole
    if left < inside:
        new = 0
        for s in range(size):
            new = s
            left -= usage[d, s] * phi[w, offsets[s] + path[s]]
            if left < 0.0:
                break
    else:
        left = (left - inside) / highest
        new = size
        while True:
            while new >= depth[0]:
                if usage_rest[d] < NOTHING:
                    return c
                if not open_scale(stream, tree, room):
                    return -1
            left -= usage[d, new]
            if left < 0.0:
                break
            new += 1
        if not continue_path(stream, tree, d, path, size, new):
            return -1
    size_after = new + 1
    for s in range(size):
        if at_scale[s] > (1 if s == c else 0):
            size_after = max(size_after, s + 1)
    if size_after == size:
        return new
    inside_after, outside_after, highest_after = 0.0, usage_rest[d], 0.0
    for s in range(depth[0]):
        if s < size_after:
            f = phi[w, offsets[s] + path[s]]
            inside_after += usage[d, s] * f
            highest_after = max(highest_after, f)
        else:
            outside_after += usage[d, s]
    whole_after = inside_after + highest_after * outside_after
    if new < size:
        ratio = whole * highest_after / (whole_after * phi[w, offsets[c] + path[c]])
    else:
        ratio = whole * phi[w, offsets[new] + path[new]] / (whole_after * highest)
    return new if uniform(stream) < ratio else c


@compiled()
def fill_likelihood(tree, s, first, last, w, child, likelihood):
    """Likelihood of a token given each node of scale s: of its word, or of the node below."""
    offsets, transition, phi = tree.offsets, tree.transition, tree.phi
    for t in range(first, last):
        likelihood[t] = phi[w, offsets[s] + t] if child < 0 else transition[offsets[s + 1] + child, t]


@compiled()
def move_node(stream, tree, kind, d, w, s, parent, now, child, likelihood):
    """New node of a token at scale s, or -1 if there is no room. `used` counts this token too."""
    widths, offsets, used, caps = tree.widths, tree.offsets, tree.used, tree.caps
    if kind == SLICE:
        height = uniform(stream) * piece(tree, d, s, parent, now)
        while stick_rest(tree, d, s, parent) >= height and stick_rest(tree, d, s, parent) > 0.0:
            if not open_node(stream, tree, s):
                return -1
        fill_likelihood(tree, s, 0, widths[s], w, child, likelihood)
        total = 0.0
        for t in range(widths[s]):
            if piece(tree, d, s, parent, t) > height:
                total += likelihood[t]
        left = uniform(stream) * total
        for t in range(widths[s]):
            if piece(tree, d, s, parent, t) > height:
                left -= likelihood[t]
                if left < 0.0:
                    return t
        return now
    size = 0
    for t in range(widths[s]):
        if used[offsets[s] + t] > 0:
            size = t + 1
    if kind == ADAPTIVE and size < caps[s] and widths[s] == size and not open_node(stream, tree, s):
        return -1
    fill_likelihood(tree, s, 0, widths[s], w, child, likelihood)
    inside, highest = 0.0, 0.0
    outside = stick_rest(tree, d, s, parent)
    for t in range(size, widths[s]):
        outside += piece(tree, d, s, parent, t)
    for t in range(size):
        inside += piece(tree, d, s, parent, t) * likelihood[t]
        highest = max(highest, likelihood[t])
    if kind == ADAPTIVE:  # the whole leftover goes to one new node
        more = outside * likelihood[size] if size < widths[s] else 0.0
        left = uniform(stream) * (inside + more)
        for t in range(size):
            left -= piece(tree, d, s, parent, t) * likelihood[t]
            if left < 0.0:
                return t
        return size if more > 0.0 else now
    whole = inside + highest * outside
    left = uniform(stream) * whole
    if left < inside:
        new = now
        for t in range(size):
            new = t
            left -= piece(tree, d, s, parent, t) * likelihood[t]
            if left < 0.0:
                break
    else:
        left = (left - inside) / highest
        new = size
        while True:
            while new >= widths[s]:
                if stick_rest(tree, d, s, parent) < NOTHING:
                    return now
                if not open_node(stream, tree, s):
                    return -1
                fill_likelihood(tree, s, new, new + 1, w, child, likelihood)
            left -= piece(tree, d, s, parent, new)
            if left < 0.0:
                break
            new += 1
    size_after = new + 1
    for t in range(size):
        if used[offsets[s] + t] > (1 if t == now else 0):
            size_after = max(size_after, t + 1)
    if size_after == size:
        return new
    inside_after, highest_after = 0.0, 0.0
    outside_after = stick_rest(tree, d, s, parent)
    for t in range(widths[s]):
        if t < size_after:
            inside_after += piece(tree, d, s, parent, t) * likelihood[t]
            highest_after = max(highest_after, likelihood[t])
        else:
            outside_after += piece(tree, d, s, parent, t)
    whole_after = inside_after + highest_after * outside_after
    if new < size:
        ratio = whole * highest_after / (whole_after * likelihood[now])
    else:
        ratio = whole * likelihood[new] / (whole_after * highest)
    return new if uniform(stream) < ratio else now


@compiled()
def move_tokens(stream, words, documents, tree, room, deep, kind, width_kind, scale, paths, likelihood):
    """Move every token in turn; False if there was no room for a scale or a node, and all must be done again."""
    top, offsets, used = tree.top, tree.offsets, tree.used
    at_scale = np.zeros(paths.shape[1] + 1, dtype=np.int64)
    path = np.zeros(paths.shape[1], dtype=np.int32)
    used[:] = 0
    for i in range(words.size):
        at_scale[scale[i]] += 1
        for s in range(scale[i] + 1):
            used[offsets[s] + paths[i, s]] += 1
    for i in range(words.size):
        # One type of whole numbers, so that each function is compiled once.
        d, w, c = np.int64(documents[i]), np.int64(words[i]), np.int64(scale[i])
        for s in range(c + 1):
            path[s] = paths[i, s]
        if deep:
            new = move_scale(stream, tree, kind, room, d, w, c, path, at_scale)
            if new < 0:
                return False
            at_scale[c] -= 1
            at_scale[new] += 1
            for s in range(new + 1, c + 1):
                used[offsets[s] + path[s]] -= 1
            for s in range(c + 1, new + 1):
                used[offsets[s] + path[s]] += 1
            c = new
        for s in range(top, c + 1):
            parent = np.int64(path[s - 1]) if s > top else np.int64(0)
            child = np.int64(path[s + 1]) if s < c else np.int64(-1)
            t = move_node(stream, tree, width_kind, d, w, s, parent, np.int64(path[s]), child, likelihood)
            if t < 0:
                return False
            used[offsets[s] + path[s]] -= 1
            used[offsets[s] + t] += 1
            path[s] = t
        scale[i] = c
        for s in range(c + 1):
            paths[i, s] = path[s]
    return True
