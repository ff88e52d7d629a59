# mypy: allow-untyped-defs, allow-untyped-calls
r"""The compiled step of particles of subsets from one kernel to the next: project, weigh, extend.

With c = x without the items that leave, D those items and N those that enter, the factor of the weight of x is

    det(L'_c) / det(L_c) * det(I + R'_N(c)) / det(I + R_D(c)),

where R(c) is the kernel given c; its weighted mean estimates Z'/Z. The first ratio is one but for items that are
reweighed (their rows changed, and they stay where they are) and for a factor on the whole kernel.

The functions take `Particles`, of which they work on the p-th, and the `Workspace`, whose panels hold columns of items
that leave in their first half and of items that enter in the second.
"""

from __future__ import annotations

import math

import numpy as np

from pluri.engine.compiled import compiled
from pluri.processes.dpp.tracking._move_kernels import DEPENDENT, FRAGILE, MAX_AGE, drop_item, rebuild, try_item
from pluri.processes.dpp.tracking.state import EFFECTIVE, LARGEST_SIZE, LOG_RATIO


@compiled(allocates=False)
def write_rows(kernel, slots, rows):
    """Put rows into the kernel, which is changed, and columns alike."""
    for a in range(slots.shape[0]):
        for j in range(kernel.shape[0]):
            kernel[slots[a], j] = rows[a, j]
    for a in range(slots.shape[0]):
        for j in range(kernel.shape[0]):
            kernel[j, slots[a]] = kernel[slots[a], j]


@compiled(reorder=True, inner=True, allocates=False)
def fill_images(panel, begin, end, members, size, inverse, images):
    """Fill ``images = A panel`` for the rows of the members and the columns from begin to end, four rows at a time."""
    for r in range(size):
        for c in range(begin, end):
            images[r, c] = 0.0
    j = 0
    while j + 3 < size:
        i0, i1, i2, i3 = members[j], members[j + 1], members[j + 2], members[j + 3]
        for r in range(size):
            f0, f1, f2, f3 = inverse[j, r], inverse[j + 1, r], inverse[j + 2, r], inverse[j + 3, r]
            for c in range(begin, end):
                images[r, c] += (f0 * panel[i0, c] + f1 * panel[i1, c]) + (f2 * panel[i2, c] + f3 * panel[i3, c])
        j += 4
    while j < size:
        item = members[j]
        for r in range(size):
            f0 = inverse[j, r]
            for c in range(begin, end):
                images[r, c] += f0 * panel[item, c]
        j += 1


@compiled(reorder=True, inner=True, allocates=False)
def condition(panel, begin, end, slots, members, size, images, conditional):
    """Fill the kernel of the items `slots` given the members, ``L_NN - L_Nx A L_xN``, from the panel."""
    for a in range(slots.shape[0]):
        for c in range(begin, end):
            conditional[a, c - begin] = panel[slots[a], c]
    for r in range(size):
        item = members[r]
        for a in range(slots.shape[0]):
            f = panel[item, begin + a]
            for c in range(begin, end):
                conditional[a, c - begin] -= f * images[r, c]


@compiled(inner=True, allocates=False)
def eliminate(conditional, n, factor, pivots):
    """Pivots of ``I + conditional``, leading n, by its LDL factors; returns the log determinant.

    Below its diagonal `factor` holds L D, above it L^T, and 1/D on it.
    """
    log_determinant = 0.0
    product = 1.0
    for i in range(n):
        pivot = 1.0 + conditional[i, i]
        for j in range(i):
            t = conditional[i, j]
            for l in range(j):
                t -= factor[i, l] * factor[l, j]
            factor[i, j] = t
            factor[j, i] = t * factor[j, j]
            pivot -= t * factor[j, i]
        pivots[i] = pivot = max(pivot, 1.0)  # I + R is at least I
        factor[i, i] = 1.0 / pivot
        product *= pivot
        if product > 1e100:
            log_determinant += math.log(product)
            product = 1.0
    return log_determinant + math.log(product)


@compiled(inner=True, allocates=False)
def copy_particle(particles, spare, p):
    """Copy particle p to `spare`, which is changed."""
    size = spare.sizes[p] = particles.sizes[p]
    spare.log_determinants[p] = particles.log_determinants[p]
    spare.ages[p] = particles.ages[p]
    for j in range(size):
        spare.members[p, j] = particles.members[p, j]
    for i in range(particles.places.shape[1]):
        spare.places[p, i] = particles.places[p, i]
    for r in range(size):
        for c in range(0, size, 8):
            for j in range(8):
                spare.inverses[p, r, c + j] = particles.inverses[p, r, c + j]


@compiled(inner=True, allocates=False)
def project(leaving, particles, p, work):
    """Take the items that leave out of particle p, which is changed."""
    members, places, inverse = particles.members[p], particles.places[p], particles.inverses[p]
    for a in range(leaving.shape[0]):
        place = places[leaving[a]]
        if place >= 0:
            gain = inverse[place, place]
            particles.log_determinants[p] += math.log(gain)
            particles.ages[p] += 1
            if gain * work.panel[leaving[a], a] > 1.0 / FRAGILE:
                particles.ages[p] = MAX_AGE
            drop_item(members, places, inverse, particles.sizes[p], place, work.column)
            particles.sizes[p] -= 1


@compiled(inner=True, allocates=False)
def reweigh(kernel, reweighed, particles, p, work):
    """Give particle p the inverse of the new kernel, changing it; the log ratio of the determinants, or -inf."""
    members, places, inverse = particles.members[p], particles.places[p], particles.inverses[p]
    touched = 0
    for a in range(reweighed.shape[0]):
        if places[reweighed[a]] >= 0:
            touched += 1
    if not touched:
        return 0.0
    size, before = particles.sizes[p], particles.log_determinants[p]
    if 2 * touched > size:
        rebuild(kernel, particles, p, work.column, work.image)
    else:
        kept = size
        for a in range(reweighed.shape[0]):
            place = places[reweighed[a]]
            if place >= 0:
                particles.log_determinants[p] += math.log(inverse[place, place])
                drop_item(members, places, inverse, kept, place, work.column)
                kept -= 1
                members[kept] = reweighed[a]  # beyond the end: those that come back
        for j in range(kept, size):
            schur = try_item(kernel, members, places, inverse, kept, np.int64(members[j]), work.column, work.image)
            if schur > 0.0:
                particles.log_determinants[p] += math.log(schur)
                kept += 1
        particles.sizes[p] = kept
        particles.ages[p] += 2 * touched
    # A subset that has become impossible is dead; it goes on without the items that made it so.
    return particles.log_determinants[p] - before if particles.sizes[p] == size else -math.inf


@compiled(inner=True, allocates=False)
def extend(kernel, entering, uniforms, particles, p, work):
    """Draw which of the items that enter join particle p, which is changed; returns whether it had room.

    From the last to the first, i is left out with probability 1/d_i, d the pivots of I + R'; after one is taken, the
    distribution of the rest is conditioned on it.
    """
    members, places, inverse = particles.members[p], particles.places[p], particles.inverses[p]
    conditional = work.conditional
    for i in range(entering.shape[0] - 1, -1, -1):
        item = entering[i]
        odds = conditional[i, i]
        if uniforms[i] * work.pivots[i] >= 1.0 and odds > DEPENDENT * kernel[item, item]:
            size = particles.sizes[p]
            if size == members.shape[0]:
                return False
            schur = try_item(kernel, members, places, inverse, size, item, work.column, work.image)
            if schur > 0.0:
                particles.sizes[p] = size + 1
                particles.log_determinants[p] += math.log(schur)
                fragile = not schur > FRAGILE * kernel[item, item]
                particles.ages[p] = MAX_AGE if fragile else particles.ages[p] + 1
                if i:
                    for a in range(i):
                        share = conditional[i, a] / odds
                        for b in range(a + 1):
                            conditional[a, b] -= share * conditional[i, b]
                    eliminate(conditional, i, work.lower, work.pivots)
    return True


@compiled(allocates=False)
def carry(kernel, leaving, entering, reweighed, factor, particles, weights, uniforms, spare, new_weights, work):
    """Carry every particle to a new kernel, changing `spare` and `new_weights`; returns whether all had room.

    The log of the mean weight, the effective sample size and the largest size go to the report.
    """
    n_leaving, n_entering = leaving.shape[0], entering.shape[0]
    # Unsigned columns need no test whether they count from the end, which would keep loops from being vectorised.
    none, first = np.uint64(0), np.uint64(work.panel.shape[1] // 2)
    width = np.uint64(work.panel.shape[1]) if n_entering else first
    at_once = reweighed.shape[0] == 0 and factor == 1.0  # one inverse for those that leave and that enter
    largest = -math.inf
    work.report[LARGEST_SIZE] = 0.0
    for p in range(weights.shape[0]):
        if particles.sizes[p] > spare.members.shape[1]:
            return False
        copy_particle(particles, spare, p)
        members, inverse = spare.members[p], spare.inverses[p]
        project(leaving, spare, p, work)
        size = spare.sizes[p]
        begin, end = none if n_leaving else first, width if at_once else first
        fill_images(work.panel, begin, end, members, size, inverse, work.images)
        log_weight = 0.0
        if n_leaving:
            condition(work.panel, none, first, leaving, members, size, work.images, work.conditional)
            log_weight -= eliminate(work.conditional, n_leaving, work.lower, work.pivots)
        if factor != 1.0:
            log_weight += size * math.log(factor)
            spare.log_determinants[p] += size * math.log(factor)
            for r in range(size):
                for c in range(size):
                    inverse[r, c] /= factor
        log_weight += reweigh(kernel, reweighed, spare, p, work)
        if n_entering:
            size = spare.sizes[p]
            if not at_once:
                fill_images(work.panel, first, width, members, size, inverse, work.images)
            condition(work.panel, first, width, entering, members, size, work.images, work.conditional)
            log_weight += eliminate(work.conditional, n_entering, work.lower, work.pivots)
            if not extend(kernel, entering, uniforms[p], spare, p, work):
                return False
        work.report[LARGEST_SIZE] = max(work.report[LARGEST_SIZE], spare.sizes[p])
        new_weights[p] = log_weight if weights[p] > 0.0 else -math.inf
        largest = max(largest, new_weights[p])
    normalize(weights, new_weights, largest, work.report)
    return True


@compiled(inner=True, allocates=False)
def normalize(weights, new_weights, largest, report):
    """Turn the log factors in `new_weights` into weights; log of their mean and effective sample size to the report."""
    total = 0.0
    unchanged = largest == 0.0
    for p in range(weights.shape[0]):
        unchanged = unchanged and new_weights[p] == 0.0
    for p in range(weights.shape[0]):
        if unchanged:
            new_weights[p] = weights[p]
        elif new_weights[p] > -math.inf:
            new_weights[p] = weights[p] * math.exp(new_weights[p] - largest)
            total += new_weights[p]
        else:
            new_weights[p] = 0.0
    squares = 0.0
    for p in range(weights.shape[0]):
        if not unchanged and total > 0.0:
            new_weights[p] /= total
        squares += new_weights[p] * new_weights[p]
    if unchanged:  # to the last bit
        report[LOG_RATIO] = 0.0
    else:
        report[LOG_RATIO] = largest + math.log(total) if total > 0.0 else -math.inf
    report[EFFECTIVE] = 1.0 / squares if squares > 0.0 else 0.0
