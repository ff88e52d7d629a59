"""The chart "which model when" of the home page: the README's table, row by row, with a link behind each name.

One table serves both, so that neither can say what the other does not. What one has stands on the left, once for all of
its rows; what one wants in the middle; the models on the right.
"""

from __future__ import annotations

import html
import posixpath
import re
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

README = Path(__file__).parent.parent / "README.md"
LINK = re.compile(r"\[(.+?)\]\((?:docs/)(.+?)\.rst\)")


class Row(NamedTuple):
    """What one has and wants, and the names to use with the page of each."""

    have: str
    want: str
    use: tuple[tuple[str, str], ...]


def rows_of_the_readme() -> list[Row]:
    """The table below "Choose by your data"; what semicolons part in both cells alike is a row each."""
    section = README.read_text(encoding="utf-8").split("## Choose by your data")[1].split("\n## ")[0]
    lines = [line.strip().strip("|").split(" | ") for line in section.splitlines() if line.startswith("| ")]
    rows: list[Row] = []
    for have, want, use in (cells for cells in lines[1:] if not cells[0].lstrip().startswith("---")):
        parted = want.split(";"), use.split(";")
        wants, uses = parted if len(parted[0]) == len(parted[1]) else ([want], [use])
        rows += [Row(have.strip(), one.strip(), tuple(LINK.findall(models))) for one, models in zip(wants, uses)]
    return rows


def chart(docname: str) -> str:
    """HTML of the chart, with links relative to the page `docname`."""
    here = posixpath.dirname(docname)
    parts = ['<div class="model-chart" role="list" aria-label="Which model when">']
    for have, rows in groupby(rows_of_the_readme(), key=lambda row: row.have):
        parts.append(f'<div class="have" role="listitem"><div class="subject">{_inline(have)}</div><div class="wants">')
        for row in rows:
            links = "".join(
                f'<a href="{posixpath.relpath(page, here or ".")}.html">{_inline(name)}</a>'
                for names, page in row.use
                for name in names.split(", ")
            )
            parts.append(f'<div class="want"><span>{_inline(row.want)}</span><div class="use">{links}</div></div>')
        parts.append("</div></div>")
    return "".join([*parts, "</div>"])


def _inline(text: str) -> str:
    return re.sub(r"`(.+?)`", r"<code>\1</code>", html.escape(text))
