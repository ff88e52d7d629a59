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

from pluri.engine.compiled import compiled

#: An item that adds less than this share of its own L_ii to the volume depends on the others: it is never added.
DEPENDENT = 1e-10
#: After a change by less than this share the inverse has lost digits, and is made anew.
FRAGILE = 1e-3
#: Number of changes after which an inverse is made anew.
MAX_AGE = 256
#: Squared correlations below this are zero: they are far below rounding, and their products would fall among the
#: denormal numbers, which are slow.
UNRELATED = 1e-60


@compiled(reorder=True)
def quadratic(inverse, size, column, image):
    """``image = inverse @ column``; returns ``column @ image``. The column is zero up to the end of its last block."""
    width = (size + 7) // 8 * 8
    total = 0.0
    for r in range(size):
        t = 0.0
        for c in range(width):
            t += inverse[r, c] * column[c]
        image[r] = t
        total += t * column[r]
    return total


@compiled(reorder=True)
def add_outer(inverse, size, vector, scale):
    """``inverse += scale * vector vector^T`` on the leading block; the vector is zero to the end of its last block."""
    width = (size + 7) // 8 * 8
    for r in range(size):
        f = vector[r] * scale
        for c in range(width):
            inverse[r, c] += f * vector[c]


@compiled()
def gather(kernel, item, members, size, column):
    """The entries of a row of the kernel at the members, zero up to the end of the block."""
    least = UNRELATED * kernel[item, item]
    for j in range(size):
        entry = kernel[item, members[j]]
        column[j] = entry if entry * entry >= least * kernel[members[j], members[j]] else 0.0
    for j in range(size, (size + 7) // 8 * 8):
        column[j] = 0.0


@compiled(reorder=True)
def add_item(inverse, size, image, schur):
    """Grow the inverse by the item whose image and Schur complement are given."""
    scale = 1.0 / schur
    for j in range(size, (size + 7) // 8 * 8):
        image[j] = 0.0
    add_outer(inverse, size, image, scale)
    for j in range(size):
        inverse[j, size] = inverse[size, j] = -image[j] * scale
    inverse[size, size] = scale


@compiled(reorder=True)
def drop_item(inverse, size, place, vector):
    """Shrink the inverse by the item at a place, which the last one takes."""
    last = size - 1
    for c in range(size):
        vector[c] = inverse[place, c]
    for c in range(size, (size + 7) // 8 * 8):
        vector[c] = 0.0
    add_outer(inverse, size, vector, -1.0 / vector[place])
    if place != last:
        corner = inverse[last, last]
        for c in range(size):
            inverse[place, c] = inverse[last, c]
        for r in range(size):
            inverse[r, place] = inverse[r, last]
        inverse[place, place] = corner


@compiled()
def forget_place(members, places, size, place):
    """Take the member at a place off the list; the last one takes its place."""
    places[members[place]] = -1
    if place != size - 1:
        members[place] = members[size - 1]
        places[members[place]] = place


@compiled()
def rebuild(kernel, members, places, size, inverse, column, image):
    """Make the inverse anew from the kernel; returns its size and the log determinant.

    Members that depend on those before them are dropped: the determinant with them is zero to working precision.
    """
    kept = 0
    log_determinant = 0.0
    product = 1.0
    for j in range(size):
        item = members[j]
        places[item] = -1
        gather(kernel, item, members, kept, column)
        schur = kernel[item, item] - quadratic(inverse, kept, column, image)
        if schur > DEPENDENT * kernel[item, item]:
            add_item(inverse, kept, image, schur)
            members[kept] = item
            places[item] = kept
            kept += 1
            product *= schur
            if not 1e-100 < product < 1e100:
                log_determinant += math.log(product)
                product = 1.0
    return kept, log_determinant + math.log(product)


@compiled()
def move_once(kernel, item, chance, metropolis, members, size, places, inverse, column, image):
    """Propose to add or to drop an item; the determinant's factor, or 0 if nothing changed.

    Heat bath: with the ratio r of the two determinants, change with probability r / (1 + r). Metropolis: min(1, r),
    made lazy by one half, since plain Metropolis alternates between even and odd sizes when all items fit.
    """
    place = places[item]
    if place >= 0:
        ratio = inverse[place, place]
        bound = 0.5 * min(1.0, ratio) if metropolis else ratio / (1.0 + ratio)
        if chance >= bound:
            return 0.0
        drop_item(inverse, size, place, column)
        forget_place(members, places, size, place)
        return ratio
    # The ratio is at most L_ii: most refusals cost nothing.
    ratio = kernel[item, item]
    if chance >= (0.5 * min(1.0, ratio) if metropolis else ratio / (1.0 + ratio)):
        return 0.0
    gather(kernel, item, members, size, column)
    ratio -= quadratic(inverse, size, column, image)
    if chance >= (0.5 * min(1.0, ratio) if metropolis else ratio / (1.0 + ratio)):
        return 0.0
    if ratio <= DEPENDENT * kernel[item, item]:
        return 0.0
    add_item(inverse, size, image, ratio)
    members[size] = item
    places[item] = size
    return ratio


@compiled()
def run_moves(kernel, candidates, n_moves, start, uniforms, metropolis, members, size, places, inverse,
              log_determinant, age, column, image):  # fmt: skip
    """A number of moves of one particle, for which there must be room; size, log determinant, age, accepted moves."""
    accepted = 0
    n_candidates = candidates.shape[0]
    for step in range(start, start + n_moves):
        item = candidates[int(uniforms[step, 0] * n_candidates)]
        grows = places[item] < 0
        ratio = move_once(kernel, item, uniforms[step, 1], metropolis, members, size, places, inverse, column, image)
        if ratio > 0.0:
            accepted += 1
            size += 1 if grows else -1
            log_determinant += math.log(ratio)
            age += 1
            if (ratio if grows else 1.0 / ratio) < FRAGILE * kernel[item, item]:
                age = MAX_AGE
            if age >= MAX_AGE:
                size, log_determinant = rebuild(kernel, members, places, size, inverse, column, image)
                age = 0
    return size, log_determinant, age, accepted


@compiled()
def move_all(
    kernel, candidates, n_moves, uniforms, metropolis, members, sizes, places, inverses, log_determinants, ages,
    weights, report, column, image,
):  # fmt: skip
    """Move every particle; accepted moves, mean size, its squared standard error and the largest size to `report`."""
    accepted = 0
    largest_size = 0
    mean = 0.0
    for p in range(members.shape[0]):
        size, log_determinant, age, count = run_moves(
            kernel, candidates, n_moves, p * n_moves, uniforms, metropolis, members[p], sizes[p], places[p],
            inverses[p], log_determinants[p], ages[p], column, image,
        )  # fmt: skip
        if age >= MAX_AGE:
            size, log_determinant = rebuild(kernel, members[p], places[p], size, inverses[p], column, image)
            age = 0
        sizes[p] = size
        log_determinants[p] = log_determinant
        ages[p] = age
        accepted += count
        largest_size = max(largest_size, size)
        mean += weights[p] * size
    variance = 0.0
    for p in range(members.shape[0]):
        variance += (weights[p] * (sizes[p] - mean)) ** 2
    report[2] += accepted
    report[3] = mean
    report[4] = variance
    report[5] = largest_size


@compiled()
def settle(kernel, members, sizes, places, inverses, log_determinants, column, image):
    """Inverses of the particles, from the kernel and their members."""
    for p in range(members.shape[0]):
        sizes[p], log_determinants[p] = rebuild(kernel, members[p], places[p], sizes[p], inverses[p], column, image)


@compiled(reorder=True)
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
