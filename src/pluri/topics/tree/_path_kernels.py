# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled moves of single tokens in a tree that grows; see `pluri.topics.tree.retrospective`.

A token keeps its whole path. Its scale moves given the path, which is continued below it from the prior; then each node
of the path moves given its neighbours. In all of these a number t = 0, 1, ... has prior weight p_t, the piece of a
stick, and likelihood f_t.
"""

import numpy as np

from pluri.engine.compiled import compiled
from pluri.topics.tree._draws import uniform
from pluri.topics.tree._growth_kernels import (
    NOTHING,
    continue_path,
    fill_likelihood,
    open_node,
    open_scale,
    piece,
    stick_rest,
)
from pluri.topics.tree._slice_kernels import slice_node, slice_scale


@compiled(inner=True, allocates=False)
def extent(counts, first, n):
    """One more than the last of n places from `first` on that holds anything."""
    size = 0
    for t in range(n):
        if counts[first + t] > 0:
            size = t + 1
    return size


@compiled(inner=True, allocates=False)
def extent_after(counts, first, size, now, new):
    """The same, of a row of that size, once a token has moved from `now` to `new`."""
    after = new + 1
    for t in range(size):
        if counts[first + t] > (1 if t == now else 0):
            after = max(after, t + 1)
    return after


@compiled(inner=True, allocates=False)
def scale_weights(tree, d, w, path, size):
    """Weight of the first scales for a word, what is left of the stick below them, and the highest likelihood."""
    usage, phi, offsets = tree.usage, tree.phi, tree.offsets
    inside, outside, highest = 0.0, tree.usage_rest[d], 0.0
    for s in range(size):
        f = phi[w, offsets[s] + path[s]]
        inside += usage[d, s] * f
        highest = max(highest, f)
    for s in range(size, tree.depth[0]):
        outside += usage[d, s]
    return inside, outside, highest


@compiled(allocates=False)
def move_scale(stream, tree, room, d, w, c, path, at_scale):
    """New scale of a token, or -1 if there is no room; changes the tree and `path` where they must grow.

    `at_scale` counts the tokens of each scale, this one too.
    """
    usage, usage_rest, phi, offsets, depth = tree.usage, tree.usage_rest, tree.phi, tree.offsets, tree.depth
    size = extent(at_scale, 0, depth[0])
    if not continue_path(stream, tree, d, path, c + 1, size - 1):
        return -1
    inside, outside, highest = scale_weights(tree, d, w, path, size)
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
    size_after = extent_after(at_scale, 0, size, c, new)
    if size_after == size:
        return new
    inside_after, outside_after, highest_after = scale_weights(tree, d, w, path, size_after)
    whole_after = inside_after + highest_after * outside_after
    if new < size:
        ratio = whole * highest_after / (whole_after * phi[w, offsets[c] + path[c]])
    else:
        ratio = whole * phi[w, offsets[new] + path[new]] / (whole_after * highest)
    return new if uniform(stream) < ratio else c


@compiled(inner=True, allocates=False)
def node_weights(tree, d, s, parent, size, likelihood):
    """Weight of the first nodes of a scale, what is left of the stick after them, and the highest likelihood."""
    inside, outside, highest = 0.0, stick_rest(tree, d, s, parent), 0.0
    for t in range(size):
        inside += piece(tree, d, s, parent, t) * likelihood[t]
        highest = max(highest, likelihood[t])
    for t in range(size, tree.widths[s]):
        outside += piece(tree, d, s, parent, t)
    return inside, outside, highest


@compiled(allocates=False)
def move_node(stream, tree, adaptive, d, w, s, parent, now, child, likelihood):
    """New node of a token at scale s, or -1 if there is no room; changes the tree where it must grow.

    `used` counts this token too; `likelihood` is room.
    """
    widths, first, used = tree.widths, tree.offsets[s], tree.used
    size = extent(used, first, widths[s])
    if adaptive and size < tree.caps[s] and widths[s] == size and not open_node(stream, tree, s):
        return -1
    fill_likelihood(tree, s, 0, widths[s], w, child, likelihood)
    inside, outside, highest = node_weights(tree, d, s, parent, size, likelihood)
    if adaptive:  # the whole leftover goes to one new node
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
    size_after = extent_after(used, first, size, now, new)
    if size_after == size:
        return new
    inside_after, outside_after, highest_after = node_weights(tree, d, s, parent, size_after, likelihood)
    whole_after = inside_after + highest_after * outside_after
    if new < size:
        ratio = whole * highest_after / (whole_after * likelihood[now])
    else:
        ratio = whole * likelihood[new] / (whole_after * highest)
    return new if uniform(stream) < ratio else now


@compiled()
def move_tokens(stream, words, documents, tree, room, deep, sliced, adaptive, scale, paths, likelihood):
    """Change the tree, `scale` and `paths`: move every token in turn.

    False if there was no room for a scale or a node, and all must be done again.
    """
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
            if sliced:
                new = slice_scale(stream, tree, room, d, w, c, path)
            else:
                new = move_scale(stream, tree, room, d, w, c, path, at_scale)
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
            now = np.int64(path[s])
            if sliced:
                t = slice_node(stream, tree, d, w, s, parent, now, child, likelihood)
            else:
                t = move_node(stream, tree, adaptive, d, w, s, parent, now, child, likelihood)
            if t < 0:
                return False
            used[offsets[s] + path[s]] -= 1
            used[offsets[s] + t] += 1
            path[s] = t
        scale[i] = c
        for s in range(c + 1):
            paths[i, s] = path[s]
    return True
