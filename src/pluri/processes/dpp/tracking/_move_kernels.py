# mypy: allow-untyped-defs, allow-untyped-calls
r"""The compiled loops that carry particles of subsets from one kernel to the next.

A particle is a subset x with the inverse :math:`A = L_x^{-1}` and :math:`\log\det L_x`. With
:math:`b = L_{x,i}` and :math:`s = L_{ii} - b^\top A b`,

- adding i multiplies the determinant by s, and :math:`A \leftarrow A + v v^\top / s` with :math:`v = (A b, -1)`, A
  having got a row and a column of zeros;
- dropping the item at place j multiplies it by :math:`A_{jj}`, and
  :math:`A \leftarrow A - A_{:j} A_{j:} / A_{jj}` without row and column j.

Inverses are worked on in blocks of eight columns, so that the inner loops have a length that the compiler knows. What
lies beyond the size of a subset is left over from larger ones: finite, and always multiplied by zero.
"""

from __future__ import annotations

import math

import numpy as np

from pluri.engine.compiled import compiled
from pluri.processes.dpp.tracking.state import ACCEPTED, LARGEST_SIZE, MEAN_SIZE, SIZE_VARIANCE

#: An item that adds less than this share of its own L_ii to the volume depends on the others: it is never added.
DEPENDENT = 1e-10
#: After a change by less than this share the inverse has lost digits, and is made anew.
FRAGILE = 1e-3
#: Number of changes after which an inverse is made anew.
MAX_AGE = 256
#: Squared correlations below this are zero: they are far below rounding, and their products would fall among the
#: denormal numbers, which are slow.
UNRELATED = 1e-60


@compiled(reorder=True, inner=True, allocates=False)
def quadratic(kernel, item, members, size, inverse, column, image):
    """Fill `column`, b, and `image`, A b, of an item; returns ``b^T A b``. Both are zero up to the end of the block."""
    width = (size + 7) // 8 * 8
    least = UNRELATED * kernel[item, item]
    for j in range(size):
        entry = kernel[item, members[j]]
        column[j] = entry if entry * entry >= least * kernel[members[j], members[j]] else 0.0
    for j in range(size, width):
        column[j] = 0.0
    total = 0.0
    for r in range(size):
        t = 0.0
        for c in range(width):
            t += inverse[r, c] * column[c]
        image[r] = t
        total += t * column[r]
    for j in range(size, width):
        image[j] = 0.0
    return total


@compiled(reorder=True, inner=True, allocates=False)
def add_outer(inverse, size, vector, scale):
    """``inverse += scale * vector vector^T`` on the leading block; the vector is zero to the end of its last block."""
    width = (size + 7) // 8 * 8
    for r in range(size):
        f = vector[r] * scale
        for c in range(width):
            inverse[r, c] += f * vector[c]


@compiled(reorder=True, inner=True, allocates=False)
def add_item(members, places, inverse, size, item, image, schur):
    """Add an item, whose image and Schur complement are given, to a subset and its inverse, which are changed."""
    scale = 1.0 / schur
    add_outer(inverse, size, image, scale)
    for j in range(size):
        inverse[j, size] = inverse[size, j] = -image[j] * scale
    inverse[size, size] = scale
    members[size] = item
    places[item] = size


@compiled(inner=True, allocates=False)
def try_item(kernel, members, places, inverse, size, item, column, image):
    """Add an item unless it depends on the members; its Schur complement, or 0. The subset and inverse are changed."""
    schur = kernel[item, item] - quadratic(kernel, item, members, size, inverse, column, image)
    if not schur > DEPENDENT * kernel[item, item]:
        return 0.0
    add_item(members, places, inverse, size, item, image, schur)
    return schur


@compiled(reorder=True, inner=True, allocates=False)
def drop_item(members, places, inverse, size, place, vector):
    """Drop the item at a place, which the last one takes, from a subset and its inverse, which are changed."""
    last = size - 1
    for c in range(size):
        vector[c] = inverse[place, c]
    for c in range(size, (size + 7) // 8 * 8):
        vector[c] = 0.0
    add_outer(inverse, size, vector, -1.0 / vector[place])
    places[members[place]] = -1
    if place != last:
        corner = inverse[last, last]
        for c in range(size):
            inverse[place, c] = inverse[last, c]
        for r in range(size):
            inverse[r, place] = inverse[r, last]
        inverse[place, place] = corner
        members[place] = members[last]
        places[members[place]] = place


@compiled(inner=True, allocates=False)
def rebuild(kernel, particles, p, column, image):
    """Make the inverse of particle p anew from the kernel; changes the particle and its size.

    Members that depend on those before them are dropped: the determinant with them is zero to working precision.
    """
    members, places, inverse = particles.members[p], particles.places[p], particles.inverses[p]
    kept = np.int64(0)  # of this type from the beginning, or what it is passed to would be compiled a second time
    log_determinant = 0.0
    product = 1.0
    for j in range(particles.sizes[p]):
        item = np.int64(members[j])
        places[item] = -1
        schur = try_item(kernel, members, places, inverse, kept, item, column, image)
        if schur > 0.0:
            kept += 1
            product *= schur
            if not 1e-100 < product < 1e100:
                log_determinant += math.log(product)
                product = 1.0
    particles.sizes[p] = kept
    particles.log_determinants[p] = log_determinant + math.log(product)
    particles.ages[p] = 0


@compiled(inner=True, allocates=False)
def move_once(kernel, item, chance, metropolis, members, size, places, inverse, column, image):
    """Propose to add or to drop an item, changing the subset; the determinant's factor, or 0 if nothing changed.

    Heat bath: with the ratio r of the two determinants, change with probability r / (1 + r). Metropolis: min(1, r),
    made lazy by one half, since plain Metropolis alternates between even and odd sizes when all items fit.
    """
    place = places[item]
    if place >= 0:
        ratio = inverse[place, place]
        bound = 0.5 * min(1.0, ratio) if metropolis else ratio / (1.0 + ratio)
        if chance >= bound:
            return 0.0
        drop_item(members, places, inverse, size, place, column)
        return ratio
    # The ratio is at most L_ii: most refusals cost nothing.
    ratio = kernel[item, item]
    if chance >= (0.5 * min(1.0, ratio) if metropolis else ratio / (1.0 + ratio)):
        return 0.0
    ratio -= quadratic(kernel, item, members, size, inverse, column, image)
    if chance >= (0.5 * min(1.0, ratio) if metropolis else ratio / (1.0 + ratio)):
        return 0.0
    if ratio <= DEPENDENT * kernel[item, item]:
        return 0.0
    add_item(members, places, inverse, size, item, image, ratio)
    return ratio


@compiled(inner=True, allocates=False)
def run_moves(kernel, candidates, uniforms, metropolis, particles, p, column, image):
    """Move particle p, for which there must be room, and change it: a move for each row; returns those accepted."""
    accepted = 0
    members, places, inverse = particles.members[p], particles.places[p], particles.inverses[p]
    size = particles.sizes[p]
    for step in range(uniforms.shape[0]):
        item = candidates[int(uniforms[step, 0] * candidates.shape[0])]
        grows = places[item] < 0
        ratio = move_once(kernel, item, uniforms[step, 1], metropolis, members, size, places, inverse, column, image)
        if ratio > 0.0:
            accepted += 1
            size += 1 if grows else -1
            particles.sizes[p] = size
            particles.log_determinants[p] += math.log(ratio)
            particles.ages[p] += 1
            if (ratio if grows else 1.0 / ratio) < FRAGILE * kernel[item, item]:
                particles.ages[p] = MAX_AGE
            if particles.ages[p] >= MAX_AGE:
                rebuild(kernel, particles, p, column, image)
                size = particles.sizes[p]
    return accepted


@compiled(allocates=False)
def move_all(kernel, candidates, n_moves, uniforms, metropolis, particles, weights, report, column, image):
    """Move every particle, which is changed; accepted moves, mean size, its squared standard error and the largest
    size go to `report`.
    """
    mean = 0.0
    report[LARGEST_SIZE] = 0.0
    for p in range(weights.shape[0]):
        own = uniforms[p * n_moves : (p + 1) * n_moves]
        report[ACCEPTED] += run_moves(kernel, candidates, own, metropolis, particles, p, column, image)
        if particles.ages[p] >= MAX_AGE:
            rebuild(kernel, particles, p, column, image)
        report[LARGEST_SIZE] = max(report[LARGEST_SIZE], particles.sizes[p])
        mean += weights[p] * particles.sizes[p]
    variance = 0.0
    for p in range(weights.shape[0]):
        variance += (weights[p] * (particles.sizes[p] - mean)) ** 2
    report[MEAN_SIZE] = mean
    report[SIZE_VARIANCE] = variance


@compiled(allocates=False)
def settle(kernel, particles, column, image):
    """Make the inverses of the particles, which are changed, from the kernel and their members."""
    for p in range(particles.sizes.shape[0]):
        rebuild(kernel, particles, p, column, image)


@compiled(reorder=True, allocates=False)
def prepare_rows(rows, to_unit_length):
    """Give rows unit length, if wanted, in place; whether all entries are finite."""
    for i in range(rows.shape[0]):
        total = 0.0
        largest = 0.0
        for j in range(rows.shape[1]):
            total += rows[i, j] * rows[i, j]
            largest = max(largest, abs(rows[i, j]))
        if not total < math.inf or 0.0 < total < 1e-280:
            # Squares may overflow or vanish where the entries themselves are fine.
            total = 0.0
            for j in range(rows.shape[1]):
                if not abs(rows[i, j]) < math.inf:
                    return False
                scaled = rows[i, j] / largest
                total += scaled * scaled
                if to_unit_length:
                    rows[i, j] = scaled
        if to_unit_length and total > 0.0:
            scale = 1.0 / math.sqrt(total)
            for j in range(rows.shape[1]):
                rows[i, j] *= scale
    return True
