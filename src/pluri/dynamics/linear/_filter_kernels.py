# mypy: allow-untyped-defs, allow-untyped-calls, disable-error-code=call-arg
"""The Kalman filter as a compiled pass over the rows of any sequences.

The filter sees an observation through its information, the vector h = C^T R^-1 y and the matrix J = C^T R^-1 C = M^T M,
so that nothing here depends on the number of outputs. Covariances depend on which entries were seen, not on their
values: they are kept in slots, one for each history that has occurred. A sequence whose rows are all seen walks through
the slots of the one before it, and where the covariance no longer changes a slot follows itself: only means are
left to compute.

Covariances are kept by square roots, P = L L^T, which cannot become indefinite and may be singular:

    update:     K^T K = I + L^T J L by a QR decomposition of (I; M L),    F = L K^-1,    P_filtered = F F^T,
    prediction: (F^T A^T; Q^{T/2}) = O (L'^T; 0) with O orthogonal,       A F = L' T,    T^T the upper left block of O.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pluri.engine.compiled import compiled

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class System(NamedTuple):
    """A (d, d), a root of Q (d, d), the mean (d,) of the first state and a root of its covariance (d, d)."""

    dynamics: Floats
    noise_root: Floats
    first_mean: Floats
    first_root: Floats


class Rows(NamedTuple):
    """h (n, d), which pattern of entries was seen (n,), what is added to the next state (n, d), and offsets."""

    linear: Floats
    pattern: Integers
    drift: Floats
    offsets: Integers


class Patterns(NamedTuple):
    """J (p, d, d), its root M (p, d, d), and the slot of a first row with that pattern (p,), -1 until there is one."""

    precision: Floats
    root: Floats
    first: Integers


class Slots(NamedTuple):
    """What is known of the covariances of a row, s of them; all matrices (s, d, d).

    Predicted and filtered covariance; L, K and F; T and S of the prediction that follows, S the part of I - T^T T; then
    log det K, the pattern, and the slot of the row after it (-1 until there is one) if that has a certain pattern.
    """

    predicted: Floats
    filtered: Floats
    root: Floats
    triangle: Floats
    factor: Floats
    turn: Floats
    rest: Floats
    log_det: Floats
    pattern: Integers
    follower: Integers
    follower_pattern: Integers


class Filtered(NamedTuple):
    """Means (n, d), f = F^T (h - J m_predicted) (n, d), f^T f / 2 - log det K (n,), and the slot of each row (n,)."""

    predicted: Floats
    mean: Floats
    score: Floats
    gain: Floats
    slot: Integers


@compiled(inner=True, allocates=False)
def triangularize(stack, d):
    """Change `stack` (n, k) by reflections to where its first d columns are a triangle, its diagonal not negative."""
    n, k = stack.shape
    for j in range(d):
        norm = 0.0
        for i in range(j, n):
            norm += stack[i, j] * stack[i, j]
        norm = np.sqrt(norm)
        if norm > 0.0:
            head = stack[j, j]
            first = head + norm if head > 0.0 else head - norm
            scale = 1.0 / (norm * (norm + abs(head)))
            for l in range(j + 1, k):
                total = first * stack[j, l]
                for i in range(j + 1, n):
                    total += stack[i, j] * stack[i, l]
                total *= scale
                stack[j, l] -= total * first
                for i in range(j + 1, n):
                    stack[i, l] -= total * stack[i, j]
            stack[j, j] = norm
            if head > 0.0:
                for l in range(j + 1, k):
                    stack[j, l] = -stack[j, l]
        for i in range(j + 1, n):
            stack[i, j] = 0.0


@compiled(inner=True, allocates=False)
def is_settled(new, old, scale):
    """Whether two matrices are equal up to rounding, beside the diagonal of a third."""
    d = new.shape[0]
    for i in range(d):
        for j in range(d):
            allowed = 1.8e-15 * (d + 1) * np.sqrt(abs(scale[i, i] * scale[j, j]))  # 8 units of rounding
            if not abs(new[i, j] - old[i, j]) <= allowed:
                return False
    return True


@compiled(inner=True, allocates=False)
def is_same_root(new, old, covariance):
    """Whether two roots of a covariance are equal up to rounding, row by row."""
    d = new.shape[0]
    for i in range(d):
        allowed = 1.8e-15 * (d + 1) * np.sqrt(covariance[i, i])
        for j in range(d):
            if not abs(new[i, j] - old[i, j]) <= allowed:
                return False
    return True


@compiled(inner=True, allocates=False)
def predict_root(system, slots, before, stack, root):
    """Change `root` (d, d) to L of the next prediction, and slot `before` to how it is reached; -1 is the start."""
    A, noise, first_root = system.dynamics, system.noise_root, system.first_root
    d = A.shape[0]
    for i in range(d):
        for j in range(d):
            stack[i, d + j] = 1.0 if i == j else 0.0
            stack[d + i, d + j] = 0.0
            if before < 0:
                stack[j, i] = first_root[i, j]
                stack[d + j, i] = 0.0
            else:
                total = 0.0
                for k in range(d):
                    total += A[i, k] * slots.factor[before, k, j]
                stack[j, i] = total
                stack[d + j, i] = noise[i, j]
    triangularize(stack, d)
    for i in range(d):
        for j in range(d):
            root[i, j] = stack[j, i]
    if before >= 0:
        turn, rest = slots.turn[before], slots.rest[before]
        for i in range(d):
            for j in range(d):
                turn[i, j] = stack[i, d + j]
                total = 0.0
                for k in range(d):
                    total += stack[d + k, d + i] * stack[d + k, d + j]
                rest[i, j] = total


@compiled(inner=True, allocates=False)
def fill_slot(patterns, slots, new, kind, stack, root):
    """Change slot `new` to what is predicted with covariance `root root^T` and then seen with pattern `kind`."""
    d = root.shape[0]
    M = patterns.root[kind]
    predicted, filtered = slots.predicted[new], slots.filtered[new]
    triangle, factor, own_root = slots.triangle[new], slots.factor[new], slots.root[new]
    for i in range(d):
        for j in range(d):
            own_root[i, j] = root[i, j]
            stack[i, j] = 1.0 if i == j else 0.0
            seen, square = 0.0, 0.0
            for k in range(d):
                seen += M[i, k] * root[k, j]
                square += root[i, k] * root[j, k]
            stack[d + i, j] = seen
            predicted[i, j] = square
    triangularize(stack[:, :d], d)
    log_det = 0.0
    for j in range(d):
        log_det += np.log(stack[j, j])
        for i in range(d):
            triangle[i, j] = stack[i, j]
            total = root[i, j]
            for k in range(j):
                total -= factor[i, k] * stack[k, j]
            factor[i, j] = total / stack[j, j]
    for i in range(d):
        for j in range(d):
            total = 0.0
            for k in range(d):
                total += factor[i, k] * factor[j, k]
            filtered[i, j] = total
    slots.log_det[new] = log_det
    slots.pattern[new] = kind
    slots.follower[new] = -1
    slots.follower_pattern[new] = -1


@compiled(inner=True, allocates=False)
def next_slot(system, patterns, slots, slot, kind, n_slots, stack, root):
    """The slot of a row with pattern `kind` after `slot` (-1: the first row); filled if it is new, number `n_slots`."""
    if slot < 0:
        known = patterns.first[kind]
    else:
        known = slots.follower[slot] if slots.follower_pattern[slot] == kind else -1
    if known >= 0:
        return known
    predict_root(system, slots, slot, stack, root)
    fill_slot(patterns, slots, n_slots, kind, stack, root)
    if slot < 0:
        patterns.first[kind] = n_slots
        return n_slots
    same = slots.pattern[slot] == kind and is_same_root(root, slots.root[slot], slots.predicted[slot])
    slots.follower[slot] = slot if same else n_slots
    slots.follower_pattern[slot] = kind
    return slots.follower[slot]


@compiled(allocates=False)
def filter_rows(system, rows, patterns, slots, out, stack, root):
    """Change `slots` and `out` to the covariances and means of all rows; returns the number of slots in use."""
    A, offsets, pattern, drift, linear = system.dynamics, rows.offsets, rows.pattern, rows.drift, rows.linear
    J, factor, log_det = patterns.precision, slots.factor, slots.log_det
    predicted_mean, mean, score = out.predicted, out.mean, out.score
    d = A.shape[0]
    g = root[d]
    n_slots = 0
    for s in range(len(offsets) - 1):
        slot = -1
        for t in range(offsets[s], offsets[s + 1]):
            kind = pattern[t]
            slot = next_slot(system, patterns, slots, slot, kind, n_slots, stack, root[:d])
            n_slots = max(n_slots, slot + 1)
            out.slot[t] = slot
            for i in range(d):
                if t == offsets[s]:
                    total = system.first_mean[i]
                else:
                    total = drift[t - 1, i]
                    for k in range(d):
                        total += A[i, k] * mean[t - 1, k]
                predicted_mean[t, i] = total
            for i in range(d):
                total = linear[t, i]
                for k in range(d):
                    total -= J[kind, i, k] * predicted_mean[t, k]
                g[i] = total
            gain = 0.0
            for i in range(d):
                total = 0.0
                for k in range(d):
                    total += factor[slot, k, i] * g[k]
                score[t, i] = total
                gain += total * total
            for i in range(d):
                total = predicted_mean[t, i]
                for k in range(d):
                    total += factor[slot, i, k] * score[t, k]
                mean[t, i] = total
            out.gain[t] = 0.5 * gain - log_det[slot]
    return n_slots
