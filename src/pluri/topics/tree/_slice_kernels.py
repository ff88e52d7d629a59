# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled moves of single tokens by slices; see `pluri.topics.tree.retrospective`.

Under the present weight p_c a height u ~ U(0, p_c) is drawn; numbers are made until what is left of the stick is below
it, and one of those with a larger weight is chosen by likelihood alone.
"""

from pluri.engine.compiled import compiled
from pluri.topics.tree._draws import uniform
from pluri.topics.tree._growth_kernels import continue_path, fill_likelihood, open_node, open_scale, piece, stick_rest


@compiled(allocates=False)
def slice_scale(stream, tree, room, d, w, c, path):
    """New scale of a token, or -1 if there is no room."""
    usage, usage_rest, phi, offsets, depth = tree.usage, tree.usage_rest, tree.phi, tree.offsets, tree.depth
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


@compiled(allocates=False)
def slice_node(stream, tree, d, w, s, parent, now, child, likelihood):
    """New node of a token at scale s, or -1 if there is no room."""
    widths = tree.widths
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
