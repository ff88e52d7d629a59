# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled loops over Gaussians whose precision is block tridiagonal."""

import numpy as np

from pluri.engine.compiled import compiled


@compiled(allocates=False)
def factorize(offsets, factors, couplings):
    """Change `factors` and `couplings` from the blocks of the precision to those of its Cholesky factor.

    ``factors[t]`` (p, p) is J_tt on the way in and L_t on the way out; ``couplings[t]`` is J_{t+1,t} and then
    E_t = J_{t+1,t} L_t^-T, where L_t L_t^T = J_tt - E_{t-1} E_{t-1}^T. Returns the first step whose block is not
    positive definite, or -1.
    """
    p = factors.shape[1]
    for s in range(len(offsets) - 1):
        for t in range(offsets[s], offsets[s + 1]):
            block = factors[t]
            if t > offsets[s]:
                before = couplings[t - 1]
                for i in range(p):
                    for j in range(i + 1):
                        total = block[i, j]
                        for k in range(p):
                            total -= before[i, k] * before[j, k]
                        block[i, j] = total
            for j in range(p):
                pivot = block[j, j]
                for k in range(j):
                    pivot -= block[j, k] * block[j, k]
                if not pivot > 0.0:
                    return t
                root = np.sqrt(pivot)
                block[j, j] = root
                for i in range(j + 1, p):
                    total = block[i, j]
                    for k in range(j):
                        total -= block[i, k] * block[j, k]
                    block[i, j] = total / root
                    block[j, i] = 0.0
            if t + 1 < offsets[s + 1]:
                after = couplings[t]
                for i in range(p):
                    for j in range(p):
                        total = after[i, j]
                        for k in range(j):
                            total -= after[i, k] * block[j, k]
                        after[i, j] = total / block[j, j]
    return -1


@compiled(allocates=False)
def log_determinants(offsets, factors, out):
    """Change `out` (n_sequences,) to the log determinants of the precisions whose factors these are."""
    p = factors.shape[1]
    for s in range(len(offsets) - 1):
        total = 0.0
        for t in range(offsets[s], offsets[s + 1]):
            for i in range(p):
                total += np.log(factors[t, i, i])
        out[s] = 2.0 * total


@compiled(allocates=False)
def solve(offsets, factors, couplings, x):
    """Change `x` (n, p) from the right-hand side to the solution of J x = b."""
    p = factors.shape[1]
    for s in range(len(offsets) - 1):
        for t in range(offsets[s], offsets[s + 1]):
            block = factors[t]
            for i in range(p):
                total = x[t, i]
                if t > offsets[s]:
                    for k in range(p):
                        total -= couplings[t - 1, i, k] * x[t - 1, k]
                for k in range(i):
                    total -= block[i, k] * x[t, k]
                x[t, i] = total / block[i, i]
    backward(offsets, factors, couplings, x)


@compiled(allocates=False)
def backward(offsets, factors, couplings, x):
    """Change `x` (n, p) to the solution of L^T x = b, which for standard normal b is a draw from N(0, J^-1)."""
    p = factors.shape[1]
    for s in range(len(offsets) - 1):
        for back in range(offsets[s + 1] - offsets[s]):
            t = offsets[s + 1] - 1 - back
            block = factors[t]
            for back_i in range(p):
                i = p - 1 - back_i
                total = x[t, i]
                if back > 0:
                    for k in range(p):
                        total -= couplings[t, k, i] * x[t + 1, k]
                for k in range(i + 1, p):
                    total -= block[k, i] * x[t, k]
                x[t, i] = total / block[i, i]


@compiled(allocates=False)
def covariances(offsets, factors, couplings, marginal, lagged, room):
    """Change `marginal` (n, p, p) to the blocks V_tt of J^-1, and `lagged` to V_{t+1,t}, 0 where a sequence ends.

    V_{t+1,t} = -V_{t+1,t+1} E_t L_t^-1 and V_tt = L_t^-T (I + E_t^T V_{t+1,t+1} E_t) L_t^-1; `room` (2, p, p) is
    to work in.
    """
    p = factors.shape[1]
    for s in range(len(offsets) - 1):
        for back in range(offsets[s + 1] - offsets[s]):
            t = offsets[s + 1] - 1 - back
            block, inner, product = factors[t], room[0], room[1]
            for i in range(p):
                for j in range(p):
                    inner[i, j] = 1.0 if i == j else 0.0
                    lagged[t, i, j] = 0.0
            if back > 0:
                for i in range(p):
                    for j in range(p):
                        total = 0.0
                        for k in range(p):
                            total += marginal[t + 1, i, k] * couplings[t, k, j]
                        product[i, j] = total
                for i in range(p):
                    for j in range(p):
                        total = 0.0
                        for k in range(p):
                            total += couplings[t, k, i] * product[k, j]
                        inner[i, j] += total
                # V_{t+1,t} = -product L_t^-1, row by row: x L_t = row is solved from the last column on.
                for i in range(p):
                    for back_j in range(p):
                        j = p - 1 - back_j
                        total = -product[i, j]
                        for k in range(j + 1, p):
                            total -= lagged[t, i, k] * block[k, j]
                        lagged[t, i, j] = total / block[j, j]
            # V_tt = L^-T inner L^-1: first the columns, then the rows.
            for j in range(p):
                for back_i in range(p):
                    i = p - 1 - back_i
                    total = inner[i, j]
                    for k in range(i + 1, p):
                        total -= block[k, i] * product[k, j]
                    product[i, j] = total / block[i, i]
            for i in range(p):
                for back_j in range(p):
                    j = p - 1 - back_j
                    total = product[i, j]
                    for k in range(j + 1, p):
                        total -= marginal[t, i, k] * block[k, j]
                    marginal[t, i, j] = total / block[j, j]
            for i in range(p):
                for j in range(i):
                    mean = 0.5 * (marginal[t, i, j] + marginal[t, j, i])
                    marginal[t, i, j] = mean
                    marginal[t, j, i] = mean
