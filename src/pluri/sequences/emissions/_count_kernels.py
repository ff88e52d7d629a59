# mypy: allow-untyped-defs, allow-untyped-calls, disable-error-code=call-arg
"""Compiled loops for categorical emissions: look-ups and scattered sums, the state index running fastest."""

from __future__ import annotations

from pluri.engine.compiled import compiled


@compiled()
def look_up(codes, table, out):
    """out[t] = sum over columns f of table[codes[t, f]]; a negative code is a missing value."""
    n_samples, n_columns = codes.shape
    width = out.shape[1]
    for t in range(n_samples):
        code = codes[t, 0]
        if code >= 0:
            for j in range(width):
                out[t, j] = table[code, j]
        else:
            for j in range(width):
                out[t, j] = 0.0
        for f in range(1, n_columns):
            code = codes[t, f]
            if code >= 0:
                for j in range(width):
                    out[t, j] += table[code, j]


@compiled()
def scatter(codes, posterior, counts):
    """counts[codes[t, f]] += posterior[t] for every column f and step t."""
    n_samples, n_columns = codes.shape
    width = posterior.shape[1]
    for t in range(n_samples):
        for f in range(n_columns):
            code = codes[t, f]
            if code >= 0:
                for j in range(width):
                    counts[code, j] += posterior[t, j]
