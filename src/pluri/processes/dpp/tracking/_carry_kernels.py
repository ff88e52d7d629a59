# mypy: allow-untyped-defs, allow-untyped-calls
"""The compiled step of particles of subsets from one kernel to the next: project, weigh, extend."""

from __future__ import annotations

import math

from pluri.engine.compiled import compiled
from pluri.processes.dpp.tracking._move_kernels import (
    DEPENDENT,
    FRAGILE,
    MAX_AGE,
    add_item,
    drop_item,
    forget_place,
    gather,
    quadratic,
    rebuild,
)


@compiled()
def write_rows(kernel, slots, rows):
    """Put rows into the kernel, and columns alike."""
    for a in range(slots.shape[0]):
        for j in range(kernel.shape[0]):
            kernel[slots[a], j] = rows[a, j]
    for a in range(slots.shape[0]):
        for j in range(kernel.shape[0]):
            kernel[j, slots[a]] = kernel[slots[a], j]


@compiled()
def exchange_rows(kernel, slots, rows, leaving, entering, panel, first, candidates):
    """Put rows into the kernel; columns of the items that leave, from before, and that enter, to the panel.

    Returns the number of items that can be chosen at all (L_ii > 0), which are listed in `candidates`.
    """
    n_slots = kernel.shape[0]
    for i in range(n_slots):
        for a in range(leaving.shape[0]):
            panel[i, a] = kernel[i, leaving[a]]
    write_rows(kernel, slots, rows)
    n_candidates = 0
    for i in range(n_slots):
        for a in range(entering.shape[0]):
            panel[i, first + a] = kernel[i, entering[a]]
        if kernel[i, i] > 0.0:
            candidates[n_candidates] = i
            n_candidates += 1
    return n_candidates


@compiled(reorder=True)
def fill_images(panel, begin, end, members, size, inverse, images):
    """``images = A panel`` for the rows of the members and the columns from begin to end, four rows at a time."""
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


@compiled(reorder=True)
def condition(panel, begin, end, slots, members, size, images, conditional):
    """Kernel of the items `slots` given the members, ``L_NN - L_Nx A L_xN``, from their columns of the panel."""
    for a in range(slots.shape[0]):
        for c in range(begin, end):
            conditional[a, c - begin] = panel[slots[a], c]
    for r in range(size):
        item = members[r]
        for a in range(slots.shape[0]):
            f = panel[item, begin + a]
            for c in range(begin, end):
                conditional[a, c - begin] -= f * images[r, c]


@compiled()
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


@compiled()
def carry(
    kernel, leaving, entering, reweighed, factor, panel, first,
    members, sizes, places, inverses, log_determinants, ages,
    new_members, new_sizes, new_places, new_inverses, new_log_determinants, new_ages,
    uniforms, weights, new_weights, report, images, conditional, lower, pivots, column, image,
):  # fmt: skip
    r"""Carry every particle to a new kernel: project, weigh, extend. Returns whether all subsets had room.

    With c = x without the items that leave, D those items and N those that enter, the factor of the weight is

        det(L'_c) / det(L_c) * det(I + R'_N(c)) / det(I + R_D(c)),

    where R(c) is the kernel given c; its weighted mean estimates Z'/Z. The first ratio is one but for items that are
    reweighed (their rows changed, and they stay where they are) and for a factor on the whole kernel. Items that enter
    are then drawn from their distribution given c: from the last to the first, i is left out with probability 1/d_i, d
    the pivots of I + R'; after one is taken, the distribution of the rest is conditioned on it.

    `report` gets the log of the mean weight, the effective sample size, and the largest size.
    """
    n_particles, room = new_members.shape
    n_slots = places.shape[1]
    n_leaving, n_entering, n_reweighed = leaving.shape[0], entering.shape[0], reweighed.shape[0]
    width = panel.shape[1] if n_entering else first
    at_once = n_reweighed == 0 and factor == 1.0  # the inverse is the same for those that leave and that enter
    log_factor = math.log(factor)
    largest = -math.inf
    largest_size = 0
    for p in range(n_particles):
        x, place_of, inverse = new_members[p], new_places[p], new_inverses[p]
        size = sizes[p]
        if size > room:
            return False
        log_determinant = log_determinants[p]
        age = ages[p]
        for j in range(size):
            x[j] = members[p, j]
        for i in range(n_slots):
            place_of[i] = places[p, i]
        for r in range(size):
            for c in range(0, size, 8):
                for j in range(8):
                    inverse[r, c + j] = inverses[p, r, c + j]
        log_weight = 0.0
        for a in range(n_leaving):
            place = place_of[leaving[a]]
            if place >= 0:
                gain = inverse[place, place]
                log_determinant += math.log(gain)
                age += 1
                if gain * panel[leaving[a], a] > 1.0 / FRAGILE:
                    age = MAX_AGE
                drop_item(inverse, size, place, column)
                forget_place(x, place_of, size, place)
                size -= 1
        fill_images(panel, 0 if n_leaving else first, width if at_once else first, x, size, inverse, images)
        if n_leaving:
            condition(panel, 0, first, leaving, x, size, images, conditional)
            log_weight -= eliminate(conditional, n_leaving, lower, pivots)
        touched = 0
        for a in range(n_reweighed):
            if place_of[reweighed[a]] >= 0:
                touched += 1
        if factor != 1.0:
            log_weight += size * log_factor
            log_determinant += size * log_factor
            for r in range(size):
                for c in range(size):
                    inverse[r, c] /= factor
        if touched:
            before = log_determinant
            kept = size
            if 2 * touched > size:
                kept, log_determinant = rebuild(kernel, x, place_of, size, inverse, column, image)
                age = 0
            else:
                n_away = 0
                for a in range(n_reweighed):
                    place = place_of[reweighed[a]]
                    if place >= 0:
                        log_determinant += math.log(inverse[place, place])
                        drop_item(inverse, size - n_away, place, column)
                        item = x[place]
                        forget_place(x, place_of, size - n_away, place)
                        n_away += 1
                        x[size - n_away] = item  # beyond the end: those that come back
                kept = size - n_away
                for j in range(kept, size):
                    item = x[j]
                    gather(kernel, item, x, kept, column)
                    schur = kernel[item, item] - quadratic(inverse, kept, column, image)
                    if schur > DEPENDENT * kernel[item, item]:
                        add_item(inverse, kept, image, schur)
                        log_determinant += math.log(schur)
                        x[kept] = item
                        place_of[item] = kept
                        kept += 1
                age += 2 * touched
            # A subset that has become impossible is dead; it goes on without the items that made it so.
            log_weight += log_determinant - before if kept == size else -math.inf
            size = kept
        if n_entering:
            if not at_once:
                fill_images(panel, first, width, x, size, inverse, images)
            condition(panel, first, width, entering, x, size, images, conditional)
            log_weight += eliminate(conditional, n_entering, lower, pivots)
            for i in range(n_entering - 1, -1, -1):
                item = entering[i]
                odds = conditional[i, i]
                if uniforms[p, i] * pivots[i] >= 1.0 and odds > DEPENDENT * kernel[item, item]:
                    if size == room:
                        return False
                    gather(kernel, item, x, size, column)
                    schur = kernel[item, item] - quadratic(inverse, size, column, image)
                    if schur > DEPENDENT * kernel[item, item]:
                        add_item(inverse, size, image, schur)
                        log_determinant += math.log(schur)
                        age = age + 1 if schur > FRAGILE * kernel[item, item] else MAX_AGE
                        x[size] = item
                        place_of[item] = size
                        size += 1
                        if i:
                            for a in range(i):
                                share = conditional[i, a] / odds
                                for b in range(a + 1):
                                    conditional[a, b] -= share * conditional[i, b]
                            eliminate(conditional, i, lower, pivots)
        new_sizes[p] = size
        largest_size = max(largest_size, size)
        new_log_determinants[p] = log_determinant
        new_ages[p] = age
        if not weights[p] > 0.0:
            log_weight = -math.inf
        new_weights[p] = log_weight
        largest = max(largest, log_weight)
    report[5] = largest_size
    normalize(weights, new_weights, largest, report)
    return True


@compiled()
def normalize(weights, new_weights, largest, report):
    """Turn the log factors in `new_weights` into weights; log of their mean and effective sample size to `report`."""
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
        report[0] = 0.0
    else:
        report[0] = largest + math.log(total) if total > 0.0 else -math.inf
    report[1] = 1.0 / squares if squares > 0.0 else 0.0
