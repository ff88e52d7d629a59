# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled loops over the rows of a CSR matrix: weighted sums of table rows, and their transpose.

Tables are (n_features, width) with the components side by side, so that every non-zero reads or writes one stretch of
memory.
"""

from __future__ import annotations

from pluri.engine.compiled import compiled


@compiled()
def look_up(indptr, indices, data, table, base, out):
    """out[t] = base + sum over the non-zeros x_ti of x_ti table[i]; 0 times minus infinity is 0."""
    width = out.shape[1]
    for t in range(out.shape[0]):
        for j in range(width):
            out[t, j] = base[j]
        for place in range(indptr[t], indptr[t + 1]):
            x = data[place]
            if x != 0.0:
                i = indices[place]
                for j in range(width):
                    out[t, j] += x * table[i, j]


@compiled()
def scatter(indptr, indices, data, posterior, sums):
    """sums[i] += x_ti posterior[t] for every non-zero."""
    width = sums.shape[1]
    for t in range(posterior.shape[0]):
        for place in range(indptr[t], indptr[t + 1]):
            x = data[place]
            i = indices[place]
            for j in range(width):
                sums[i, j] += x * posterior[t, j]
