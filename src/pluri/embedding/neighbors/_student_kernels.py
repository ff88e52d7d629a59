# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled loops of maps with heavy tails, where points attract and repel by 1 / (1 + squared distance).

Splines of a mesh are the cardinal B-splines of degree five; a mesh has three axes, and those that a map does not have
are one node wide.
"""

import math

from pluri.engine.compiled import compiled

#: Probabilities below this are lost in a sum over a row, with the logarithms that they would multiply.
LOST = 1e-13
#: Nodes that a spline covers on an axis.
WIDTH = 6


@compiled(reorder=True)
def dense_heavy_rows(points, P, begin, end, work, attraction, repulsion, norms, stretch):
    """Add to attraction and repulsion (L, n) the forces of rows begin to end; set their norms and log stretch.

    points (L, n), P (n, n), work (n,). For row i, with w_ij = 1 / (1 + |y_i - y_j|^2):

        norms_i = sum_j w_ij,   stretch_i = -sum_j p_ij log w_ij,   repulsion_i = sum_j w_ij^2 (y_i - y_j),
        attraction_i += sum_j p_ij w_ij (y_i - y_j),    attraction_j -= p_ij w_ij (y_i - y_j).
    """
    n_dimensions, n = points.shape
    for i in range(begin, end):
        for j in range(n):
            work[j] = 1.0
        for axis in range(n_dimensions):
            own = points[axis, i]
            for j in range(n):
                difference = points[axis, j] - own
                work[j] += difference * difference
        stretched = 0.0
        for j in range(n):
            if P[i, j] > LOST:
                stretched += P[i, j] * math.log(work[j])
        norm = -1.0
        for j in range(n):
            work[j] = 1.0 / work[j]
            norm += work[j]
        for axis in range(n_dimensions):
            own, pulled, pushed = points[axis, i], 0.0, 0.0
            for j in range(n):
                force = work[j] * (own - points[axis, j])
                pushed += work[j] * force
                force *= P[i, j]
                pulled += force
                attraction[axis, j] -= force
            attraction[axis, i] += pulled
            repulsion[axis, i] = pushed
        norms[i] = norm
        stretch[i] = stretched


@compiled(reorder=True)
def heavy_attractions(points, offsets, columns, pulls, own_pulls, begin, end, forces, stretch):
    """Set forces (L, n) = sum_j (p_ij + p_ji) w_ij (y_i - y_j) and stretch (n,) = -sum_j p_ij log w_ij of some rows.

    pulls holds p_ij + p_ji and own_pulls p_ij, at the entries of a CSR matrix; w_ij = 1 / (1 + |y_i - y_j|^2).
    """
    n_dimensions = points.shape[0]
    for i in range(begin, end):
        stretched = 0.0
        for axis in range(n_dimensions):
            forces[axis, i] = 0.0
        for k in range(offsets[i], offsets[i + 1]):
            j = columns[k]
            square = 1.0
            for axis in range(n_dimensions):
                difference = points[axis, i] - points[axis, j]
                square += difference * difference
            if own_pulls[k] > LOST:
                stretched += own_pulls[k] * math.log(square)
            pull = pulls[k] / square
            for axis in range(n_dimensions):
                forces[axis, i] += pull * (points[axis, i] - points[axis, j])
        stretch[i] = stretched


@compiled()
def spline_weights(points, origin, spacing, first, weights, slopes):
    """Set first (3, n), weights and slopes (3, n, 6): what a point gives to the nodes around it, and its derivative.

    points (L, n). With M_2(x) = 1 - |x - 1| and, for x between 0 and m,

        M_m(x) = [x M_{m-1}(x) + (m - x) M_{m-1}(x - 1)] / (m - 1),   M_m'(x) = M_{m-1}(x) - M_{m-1}(x - 1),

    node first + k has the weight M_6(u + 5 - k), where u is the fractional part of the place in units of spacing.
    """
    n_dimensions, n = points.shape
    last = WIDTH - 1
    for axis in range(3):
        for i in range(n):
            w, s = weights[axis, i], slopes[axis, i]
            if axis >= n_dimensions:
                first[axis, i] = 0
                w[0], s[0] = 1.0, 0.0
                continue
            place = (points[axis, i] - origin[axis]) / spacing
            node = math.floor(place)
            first[axis, i] = node - last
            u = place - node
            w[0], w[1] = 1.0 - u, u
            for m in range(3, WIDTH + 1):
                if m == WIDTH:
                    s[0] = -w[0] / spacing
                    for k in range(1, last):
                        s[k] = (w[k - 1] - w[k]) / spacing
                    s[last] = w[last - 1] / spacing
                w[m - 1] = u * w[m - 2] / (m - 1)
                for j in range(1, m - 1):
                    w[m - 1 - j] = ((u + j) * w[m - 2 - j] + (m - j - u) * w[m - 1 - j]) / (m - 1)
                w[0] = (1.0 - u) * w[0] / (m - 1)


@compiled(reorder=True)
def gather_slopes(stencil, field, begin, end, values, slopes_of):
    """Set values (n,) and slopes_of (3, n): a field and its derivative at points begin to end.

    stencil is (first, weights, slopes, widths).
    """
    first, weights, slopes, widths = stencil
    wide, high, deep = widths
    for i in range(begin, end):
        x, y, z = first[0, i], first[1, i], first[2, i]
        total, along, up, out = 0.0, 0.0, 0.0, 0.0
        for c in range(deep):
            for b in range(high):
                row, moment = 0.0, 0.0
                for a in range(wide):
                    value = field[z + c, y + b, x + a]
                    row += value * weights[0, i, a]
                    moment += value * slopes[0, i, a]
                total += weights[2, i, c] * weights[1, i, b] * row
                along += weights[2, i, c] * weights[1, i, b] * moment
                up += weights[2, i, c] * slopes[1, i, b] * row
                out += slopes[2, i, c] * weights[1, i, b] * row
        values[i] = total
        slopes_of[0, i], slopes_of[1, i], slopes_of[2, i] = along, up, out


@compiled(reorder=True)
def heavy_repulsions(points, begin, end, work, repulsion, norms):
    """Set repulsion (L, n) = sum_j w_ij^2 (y_i - y_j) and norms (n,) = sum_j w_ij of some rows, by all pairs."""
    n_dimensions, n = points.shape
    for i in range(begin, end):
        for j in range(n):
            work[j] = 1.0
        for axis in range(n_dimensions):
            own = points[axis, i]
            for j in range(n):
                difference = points[axis, j] - own
                work[j] += difference * difference
        norm = -1.0
        for j in range(n):
            work[j] = 1.0 / work[j]
            norm += work[j]
        norms[i] = norm
        for axis in range(n_dimensions):
            own, pushed = points[axis, i], 0.0
            for j in range(n):
                pushed += work[j] * work[j] * (own - points[axis, j])
            repulsion[axis, i] = pushed
