"""Facts, parameters and arrays as tables in HTML; every text is escaped here."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.report.markup import escape

MOST_CELLS = 24
MOST_TEXT = 200


def shown(value: Any) -> str:
    """A value as short text, not escaped.

    Examples
    --------
    >>> from pluri.report.tables import shown
    >>> shown(0.123456), shown(1234567), shown(None), shown([1, 2])
    ('0.1235', '1,234,567', 'none', '[1, 2]')
    """
    if value is None:
        return "none"
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, numbers.Integral):
        return f"{int(value):,}"
    if isinstance(value, numbers.Real):
        return f"{float(value):.4g}"
    text = value if isinstance(value, str) else " ".join(repr(value).split())
    return text if len(text) <= MOST_TEXT else text[: MOST_TEXT - 1] + "…"


def facts_table(facts: Mapping[str, Any]) -> str:
    """Names and values, one pair after the other."""
    rows = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(shown(value))}</dd></div>" for name, value in facts.items()
    )
    return f'<dl class="facts">{rows}</dl>'


def parameter_table(parameters: Mapping[str, Any]) -> str:
    """Parameters of a model, folded away."""
    rows = "".join(
        f"<tr><th scope=row>{escape(name)}</th><td>{escape(shown(value))}</td></tr>"
        for name, value in parameters.items()
    )
    return f'<details class="parameters"><summary>Parameters</summary><table>{rows}</table></details>'


def array_table(values: NDArray[Any], *, rows: str = "", columns: Sequence[str] | None = None) -> str:
    """A vector or matrix; cells are shaded by magnitude where they are numbers, and long ones are cut.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.report.tables import array_table
    >>> array_table(np.eye(2)).count("<td")
    4
    """
    table = np.atleast_2d(values)
    cut = table[:MOST_CELLS, :MOST_CELLS]
    numeric = np.issubdtype(table.dtype, np.number) and not np.iscomplexobj(table)
    largest = float(np.nanmax(np.abs(cut))) if numeric and cut.size and np.isfinite(cut).any() else 0.0
    names = [str(name) for name in (columns if columns is not None else range(table.shape[1]))][: cut.shape[1]]
    head = "".join(f"<th scope=col>{escape(name)}</th>" for name in names)
    lines = []
    for number, row in enumerate(cut):
        cells = "".join(_cell(value, largest) for value in row)
        lines.append(f"<tr><th scope=row>{escape(f'{rows}{number}')}</th>{cells}</tr>")
    whole = (
        "" if cut.shape == table.shape else f"<p class=note>first {cut.shape[0]} x {cut.shape[1]} of {_size(table)}</p>"
    )
    return f'<div class="scroll"><table class="array"><tr><th></th>{head}</tr>{"".join(lines)}</table></div>{whole}'


def text_table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table of texts."""
    names = "".join(f"<th scope=col>{escape(name)}</th>" for name in head)
    lines = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><tr>{names}</tr>{lines}</table>"


def _cell(value: Any, largest: float) -> str:
    shade = ""
    if largest > 0 and np.isfinite(value):
        share = round(100 * abs(float(value)) / largest)
        shade = f' style="--share:{share}%"' if share else ""
    return f"<td{shade}>{escape(shown(value))}</td>"


def _size(table: NDArray[Any]) -> str:
    return " x ".join(map(str, table.shape))
