# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled loops that carry a Gaussian kernel over a mesh, and those over the entries of a sparse P.

A mesh has three axes; those that a map does not have are one node wide, with a weight of one.
"""

import math

from pluri.embedding.neighbors._kernels import decay
from pluri.engine.compiled import compiled


@compiled()
def node_weights(points, origin, spacing, reach, first, lead, weights):
    """Set first (3, n), lead (3, n), weights (3, n, width): what a point gives to the nodes around it.

    points (L, n). On an axis the first node is the least within `reach`; lead is the distance from it to the point,
    and the weight of node k is exp(-2 (lead - k spacing)^2).
    """
    n_dimensions, n = points.shape
    for axis in range(3):
        for i in range(n):
            if axis >= n_dimensions:
                first[axis, i] = 0
                lead[axis, i] = 0.0
                weights[axis, i, 0] = 1.0
                continue
            place = (points[axis, i] - origin[axis]) / spacing
            least = math.ceil(place - reach / spacing)
            first[axis, i] = least
            offset = (place - least) * spacing
            lead[axis, i] = offset
            for k in range(weights.shape[2]):
                difference = offset - k * spacing
                weights[axis, i, k] = math.exp(-2.0 * difference * difference)


@compiled(reorder=True)
def spread(first, weights, widths, values, begin, end, field):
    """Add values (n,) of points begin to end to the nodes of field around them, by their weights."""
    wide, high, deep = widths
    for i in range(begin, end):
        x, y, z = first[0, i], first[1, i], first[2, i]
        for c in range(deep):
            for b in range(high):
                value = values[i] * weights[2, i, c] * weights[1, i, b]
                for a in range(wide):
                    field[z + c, y + b, x + a] += value * weights[0, i, a]


@compiled(reorder=True)
def gather(first, weights, widths, field, begin, end, sums):
    """Set sums (n,) of points begin to end: the weighted sum of the nodes of field around each."""
    wide, high, deep = widths
    for i in range(begin, end):
        x, y, z = first[0, i], first[1, i], first[2, i]
        total = 0.0
        for c in range(deep):
            for b in range(high):
                row = 0.0
                for a in range(wide):
                    row += weights[0, i, a] * field[z + c, y + b, x + a]
                total += weights[2, i, c] * weights[1, i, b] * row
        sums[i] = total


@compiled(reorder=True)
def gather_forces(stencil, spacing, inverse, ones, inverses, begin, end, forces):
    """Set forces (3, n): sum over nodes u of weight * 2 (y_i - u) * (inverse_i ones_u + inverses_u).

    stencil is (first, lead, weights, widths).
    """
    first, lead, weights, widths = stencil
    wide, high, deep = widths
    for i in range(begin, end):
        x, y, z = first[0, i], first[1, i], first[2, i]
        along, up, out = 0.0, 0.0, 0.0
        for c in range(deep):
            for b in range(high):
                row, moment = 0.0, 0.0
                for a in range(wide):
                    value = inverse[i] * ones[z + c, y + b, x + a] + inverses[z + c, y + b, x + a]
                    value *= weights[0, i, a]
                    row += value
                    moment += value * (lead[0, i] - a * spacing)
                weight = weights[2, i, c] * weights[1, i, b]
                along += weight * moment
                up += weight * row * (lead[1, i] - b * spacing)
                out += weight * row * (lead[2, i] - c * spacing)
        forces[0, i], forces[1, i], forces[2, i] = 2.0 * along, 2.0 * up, 2.0 * out


@compiled(reorder=True)
def lonely_row(points, i, work, forces):
    """Add to forces what the row of a point far from all others exerts, by all pairs; returns its log norm."""
    n_dimensions, n = points.shape
    for j in range(n):
        work[j] = 0.0
    for axis in range(n_dimensions):
        own = points[axis, i]
        for j in range(n):
            difference = points[axis, j] - own
            work[j] += difference * difference
    work[i] = math.inf
    least = math.inf
    for j in range(n):
        least = min(least, work[j])
    norm = 0.0
    for j in range(n):
        e = decay(work[j] - least)
        work[j] = e
        norm += e
    work[i] = 0.0
    for axis in range(n_dimensions):
        own, total = points[axis, i], 0.0
        for j in range(n):
            force = work[j] / norm * (own - points[axis, j])
            total += force
            forces[axis, j] -= force
        forces[axis, i] += total
    return math.log(norm) - least


@compiled(reorder=True)
def attractions(points, offsets, columns, pulls, own_pulls, begin, end, forces, stretch):
    """Set forces (L, n) = sum_j (p_ij + p_ji) (y_i - y_j) and stretch (n,) = sum_j p_ij d_ij of rows begin to end.

    pulls holds p_ij + p_ji and own_pulls p_ij, at the entries of a CSR matrix.
    """
    n_dimensions = points.shape[0]
    for i in range(begin, end):
        stretched = 0.0
        for axis in range(n_dimensions):
            own, total = points[axis, i], 0.0
            for k in range(offsets[i], offsets[i + 1]):
                difference = own - points[axis, columns[k]]
                total += pulls[k] * difference
                stretched += own_pulls[k] * difference * difference
            forces[axis, i] = total
        stretch[i] = stretched
