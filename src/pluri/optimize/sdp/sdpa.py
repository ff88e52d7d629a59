"""Reading semidefinite programmes in SDPA's sparse format, in which SDPLIB and other collections come.

A file says: minimise ``c'x`` subject to ``sum_i x_i F_i - F_0`` positive semidefinite. After comments (lines that begin
with ``"`` or ``*``) come n, the number of blocks, their sizes (negative for diagonal ones), c, and one line for each
entry: matrix, block, row, column, value, of one triangle.
"""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: What may stand between numbers.
PUNCTUATION = str.maketrans("{}(),", "     ")


@dataclass(frozen=True)
class SDPProblem:
    """A semidefinite programme, ready for `solve_sdp`: ``solve_sdp(problem.c, problem.F, problem.F0)``.

    Attributes
    ----------
    c : ndarray of shape (n,)
    F : tuple of n sparse arrays of shape (m, m)
    F0 : sparse array of shape (m, m)
        With the sign of `solve_sdp`, minus that of the file.
    blocks : tuple of int
        Sizes of the blocks, which follow each other along the diagonal; negative for diagonal blocks.
    """

    c: Array
    F: tuple[Any, ...]
    F0: Any
    blocks: tuple[int, ...]


def read_sdpa(source: str | os.PathLike[str]) -> SDPProblem:
    r"""Read a problem in SDPA's sparse format.

    Parameters
    ----------
    source : path or str
        A file, compressed if its name ends in ``.gz``; or the text itself, if it has several lines.

    Returns
    -------
    SDPProblem

    Examples
    --------
    >>> from pluri.optimize.sdp import read_sdpa, solve_sdp
    >>> problem = read_sdpa("1 = n\n1\n2\n1.0\n0 1 1 2 1.0\n1 1 1 1 1.0\n1 1 2 2 1.0\n")
    >>> problem.F0.toarray()
    array([[ 0., -1.],
           [-1.,  0.]])
    >>> result = solve_sdp(problem.c, problem.F, problem.F0)
    >>> result.lower_bound <= 1.0 <= result.fun
    True
    """
    text, name = _text(source)
    lines = _numbered(text)
    n = _count(*_next(lines, name, "the number of variables"), name, "the number of variables")
    n_blocks = _count(*_next(lines, name, "the number of blocks"), name, "the number of blocks")
    blocks = _sizes(*_next(lines, name, "the sizes of the blocks"), n_blocks, name)
    c = _objective(lines, n, name)
    return _assemble(lines, n, blocks, c, name)


def _text(source: str | os.PathLike[str]) -> tuple[str, str]:
    if isinstance(source, str) and "\n" in source:
        return source, "the text"
    path = Path(source)
    try:
        raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        return raw.decode("ascii", errors="replace"), path.name
    except (gzip.BadGzipFile, EOFError) as error:
        raise ValueError(f"{path.name} must be a file compressed by gzip, as its name says: {error}") from error


def _numbered(text: str) -> Iterator[tuple[int, str]]:
    """Lines that say something, with their numbers."""
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip() and line.lstrip()[0] not in '"*':
            yield number, line


def _next(lines: Iterator[tuple[int, str]], name: str, what: str) -> tuple[int, str]:
    try:
        return next(lines)
    except StopIteration:
        raise ValueError(f"{name} must have a line with {what}, got the end of the file") from None


def _count(number: int, line: str, name: str, what: str) -> int:
    found = re.match(r"\s*\+?(\d+)", line)
    if found is None or int(found[1]) < 1:
        raise ValueError(
            f"line {number} of {name} must begin with {what}, an integer of at least 1, got {line.strip()!r}"
        )
    return int(found[1])


def _numbers(number: int, line: str, name: str, what: str) -> list[float]:
    """Numbers at the beginning of a line; words after them are a comment."""
    found = []
    for word in line.translate(PUNCTUATION).split():
        try:
            found.append(float(word))
        except ValueError:
            break
    if not found:
        raise ValueError(f"line {number} of {name} must hold {what}, got {line.strip()[:60]!r}")
    if not np.isfinite(found).all():
        raise ValueError(f"line {number} of {name} must hold finite numbers, got {line.strip()[:60]!r}")
    return found


def _sizes(number: int, line: str, n_blocks: int, name: str) -> tuple[int, ...]:
    found = _numbers(number, line, name, f"the sizes of {n_blocks} blocks")[:n_blocks]
    if len(found) < n_blocks or any(size != int(size) or size == 0 for size in found):
        raise ValueError(
            f"line {number} of {name} must hold {n_blocks} sizes of blocks, integers, got {line.strip()[:60]!r}"
        )
    return tuple(int(size) for size in found)


def _objective(lines: Iterator[tuple[int, str]], n: int, name: str) -> Array:
    """c, which may take several lines."""
    found: list[float] = []
    while len(found) < n:
        number, line = _next(lines, name, f"the {n} entries of c ({len(found)} so far)")
        found += _numbers(number, line, name, "entries of c")
    if len(found) > n:
        raise ValueError(f"line {number} of {name} must end c after {n} entries, got {len(found)}")
    return np.array(found)


def _assemble(lines: Iterator[tuple[int, str]], n: int, blocks: tuple[int, ...], c: Array, name: str) -> SDPProblem:
    from scipy.sparse import coo_array

    starts = np.concatenate([[0], np.cumsum(np.abs(blocks))])
    entries: list[tuple[list[int], list[int], list[float]]] = [([], [], []) for _ in range(n + 1)]
    for number, line in lines:
        matrix, block, i, j, value = _entry(number, line, n, blocks, name)
        row, column = int(starts[block - 1]) + i - 1, int(starts[block - 1]) + j - 1
        rows, columns, values = entries[matrix]
        for one, other in {(row, column), (column, row)}:
            rows.append(one)
            columns.append(other)
            values.append(-value if matrix == 0 else value)
    m = int(starts[-1])
    matrices = []
    for matrix, (rows, columns, values) in enumerate(entries):
        if len({*zip(rows, columns, strict=True)}) < len(rows):
            raise ValueError(
                f"{name} must give each entry of a matrix once, in one triangle, got one of matrix {matrix} twice"
            )
        places = (np.array(rows, dtype=np.int64), np.array(columns, dtype=np.int64))
        matrices.append(coo_array((np.array(values, dtype=np.float64), places), shape=(m, m)).tocsr())
    return SDPProblem(c, tuple(matrices[1:]), matrices[0], blocks)


def _entry(number: int, line: str, n: int, blocks: tuple[int, ...], name: str) -> tuple[int, int, int, int, float]:
    found = _numbers(number, line, name, "an entry: matrix, block, row, column, value")
    if len(found) != 5 or any(one != int(one) for one in found[:4]):
        raise ValueError(
            f"line {number} of {name} must hold matrix, block, row and column (integers) and a value, "
            f"got {line.strip()[:60]!r}"
        )
    matrix, block, i, j = (int(one) for one in found[:4])
    if not 0 <= matrix <= n:
        raise ValueError(f"line {number} of {name} must name a matrix of 0, ..., {n}, got {matrix}")
    if not 1 <= block <= len(blocks):
        raise ValueError(f"line {number} of {name} must name a block of 1, ..., {len(blocks)}, got {block}")
    size = abs(blocks[block - 1])
    if not (1 <= i <= size and 1 <= j <= size):
        raise ValueError(f"line {number} of {name} must name a row and a column of 1, ..., {size}, got {i} and {j}")
    if blocks[block - 1] < 0 and i != j:
        raise ValueError(
            f"line {number} of {name} must lie on the diagonal, as block {block} does, got row {i}, column {j}"
        )
    return matrix, block, i, j, found[4]
