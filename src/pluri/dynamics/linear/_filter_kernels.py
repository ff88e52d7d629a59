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


#: Places of matrices in records; one array of several is read, and compiled, faster than several arrays.
DYNAMICS, NOISE_ROOT, FIRST_ROOT = 0, 1, 2
PRECISION, PATTERN_ROOT = 0, 1
PREDICTED, FILTERED, ROOT, TRIANGLE, FACTOR, TURN, REST = 0, 1, 2, 3, 4, 5, 6
PATTERN, FOLLOWER, FOLLOWER_PATTERN = 0, 1, 2
PREDICTED_MEAN, FILTERED_MEAN, SCORE = 0, 1, 2


class System(NamedTuple):
    """A, a root of Q and one of the first state's covariance (3, d, d); the mean of the first state (d,)."""

    matrices: Floats
    first_mean: Floats


class Rows(NamedTuple):
    """h (n, d), which pattern of entries was seen (n,), what is added to the next state (n, d), and offsets."""

    linear: Floats
    pattern: Integers
    drift: Floats
    offsets: Integers


class Patterns(NamedTuple):
    """J and its root M (p, 2, d, d), and the slot of a first row with that pattern (p,), -1 until there is one."""

    matrices: Floats
    first: Integers


class Slots(NamedTuple):
    """What is known of the covariances of a row, s of them.

    Matrices (s, 7, d, d): predicted and filtered covariance; L, K and F; T and S = I - T^T T of the prediction that
    follows. Then log det K (s,), and links (s, 3): the pattern, and the slot of the row after it (-1 until there is
    one) if that has a certain pattern.
    """

    matrices: Floats
    log_det: Floats
    links: Integers


class Filtered(NamedTuple):
    """Predicted mean, filtered mean, f = F^T (h - J m) (3, n, d); f^T f / 2 - log det K (n,); slot of a row (n,)."""

    states: Floats
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
def is_same_root(new, old):
    """Whether L is equal up to rounding to that of a slot, row by row."""
    d = new.shape[0]
    for i in range(d):
        allowed = 1.8e-15 * (d + 1) * np.sqrt(old[PREDICTED, i, i])
        for j in range(d):
            if not abs(new[i, j] - old[ROOT, i, j]) <= allowed:
                return False
    return True


@compiled(inner=True, allocates=False)
def predict_root(system, slots, before, stack, root):
    """Change `root` (d, d) to L of the next prediction, and slot `before` to how it is reached; -1 is the start."""
    fixed, matrices = system.matrices, slots.matrices
    d = root.shape[0]
    for i in range(d):
        for j in range(d):
            stack[i, d + j] = 1.0 if i == j else 0.0
            stack[d + i, d + j] = 0.0
            if before < 0:
                stack[j, i] = fixed[FIRST_ROOT, i, j]
                stack[d + j, i] = 0.0
            else:
                total = 0.0
                for k in range(d):
                    total += fixed[DYNAMICS, i, k] * matrices[before, FACTOR, k, j]
                stack[j, i] = total
                stack[d + j, i] = fixed[NOISE_ROOT, i, j]
    triangularize(stack, d)
    for i in range(d):
        for j in range(d):
            root[i, j] = stack[j, i]
    if before >= 0:
        for i in range(d):
            for j in range(d):
                matrices[before, TURN, i, j] = stack[i, d + j]
                total = 0.0
                for k in range(d):
                    total += stack[d + k, d + i] * stack[d + k, d + j]
                matrices[before, REST, i, j] = total


@compiled(inner=True, allocates=False)
def fill_slot(patterns, slots, new, kind, stack, root):
    """Change slot `new` to what is predicted with covariance `root root^T` and then seen with pattern `kind`."""
    d = root.shape[0]
    M, own = patterns.matrices[kind, PATTERN_ROOT], slots.matrices[new]
    for i in range(d):
        for j in range(d):
            own[ROOT, i, j] = root[i, j]
            stack[i, j] = 1.0 if i == j else 0.0
            stack[i, d + j] = 0.0
            stack[d + i, d + j] = 0.0
            seen, square = 0.0, 0.0
            for k in range(d):
                seen += M[i, k] * root[k, j]
                square += root[i, k] * root[j, k]
            stack[d + i, j] = seen
            own[PREDICTED, i, j] = square
    triangularize(stack, d)
    log_det = 0.0
    for j in range(d):
        log_det += np.log(stack[j, j])
        for i in range(d):
            own[TRIANGLE, i, j] = stack[i, j]
            total = root[i, j]
            for k in range(j):
                total -= own[FACTOR, i, k] * stack[k, j]
            own[FACTOR, i, j] = total / stack[j, j]
    for i in range(d):
        for j in range(d):
            total = 0.0
            for k in range(d):
                total += own[FACTOR, i, k] * own[FACTOR, j, k]
            own[FILTERED, i, j] = total
    slots.log_det[new] = log_det
    slots.links[new, PATTERN] = kind
    slots.links[new, FOLLOWER] = -1
    slots.links[new, FOLLOWER_PATTERN] = -1


@compiled(inner=True, allocates=False)
def next_slot(system, patterns, slots, slot, kind, n_slots, stack, root):
    """The slot of a row with pattern `kind` after `slot` (-1: the first row); filled if it is new, number `n_slots`."""
    links = slots.links
    if slot < 0:
        known = patterns.first[kind]
    else:
        known = links[slot, FOLLOWER] if links[slot, FOLLOWER_PATTERN] == kind else -1
    if known >= 0:
        return known
    predict_root(system, slots, slot, stack, root)
    fill_slot(patterns, slots, n_slots, kind, stack, root)
    if slot < 0:
        patterns.first[kind] = n_slots
        return n_slots
    same = links[slot, PATTERN] == kind and is_same_root(root, slots.matrices[slot])
    links[slot, FOLLOWER] = slot if same else n_slots
    links[slot, FOLLOWER_PATTERN] = kind
    return links[slot, FOLLOWER]


@compiled(allocates=False)
def filter_rows(system, rows, patterns, slots, out, stack, root):
    """Change `slots` and `out` to the covariances and means of all rows; returns the number of slots in use."""
    A, first_mean = system.matrices[DYNAMICS], system.first_mean
    linear, pattern, drift, offsets = rows
    informations, covariances, log_det = patterns.matrices, slots.matrices, slots.log_det
    states, gains, places = out
    d = A.shape[0]
    g = root[d]
    n_slots = 0
    for s in range(len(offsets) - 1):
        slot = -1
        for t in range(offsets[s], offsets[s + 1]):
            kind = pattern[t]
            slot = next_slot(system, patterns, slots, slot, kind, n_slots, stack, root[:d])
            if slot == n_slots:
                n_slots += 1
            places[t] = slot
            for i in range(d):
                if t == offsets[s]:
                    total = first_mean[i]
                else:
                    total = drift[t - 1, i]
                    for k in range(d):
                        total += A[i, k] * states[FILTERED_MEAN, t - 1, k]
                states[PREDICTED_MEAN, t, i] = total
            for i in range(d):
                total = linear[t, i]
                for k in range(d):
                    total -= informations[kind, PRECISION, i, k] * states[PREDICTED_MEAN, t, k]
                g[i] = total
            gain = 0.0
            for i in range(d):
                total = 0.0
                for k in range(d):
                    total += covariances[slot, FACTOR, k, i] * g[k]
                states[SCORE, t, i] = total
                gain += total * total
            for i in range(d):
                total = states[PREDICTED_MEAN, t, i]
                for k in range(d):
                    total += covariances[slot, FACTOR, i, k] * states[SCORE, t, k]
                states[FILTERED_MEAN, t, i] = total
            gains[t] = 0.5 * gain - log_det[slot]
    return n_slots
