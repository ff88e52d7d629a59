"""One page that ties the parts of the demonstration together: pictures inside, other pages by links."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path

from pluri.cli.demo.part import Part

FILE = "index.html"


def write_index(parts: Mapping[str, Part], headings: Mapping[str, str], folder: Path) -> Path:
    """Write ``index.html`` with the sentences and pictures of all parts."""
    from pluri.report.markup import escape
    from pluri.report.page import html_page, write_page

    pieces = ["<main class='demo'><h1>What pluri does</h1>"]
    for number, (name, part) in enumerate(parts.items(), 1):
        pieces.append(f"<section id='{name}'><h2>{number}. {escape(headings[name])}</h2>{_text(part.lines)}")
        if part.file.suffix == ".png":
            data = base64.b64encode(part.file.read_bytes()).decode()
            pieces.append(f"<img alt='{escape(headings[name])}' src='data:image/png;base64,{data}'>")
        else:
            pieces.append(f"<p><a href='{escape(part.file.name)}'>Open the page</a></p>")
        pieces.append("</section>")
    pieces.append(
        "<footer><p>One part alone: <code>pluri demo NAME</code>, where NAME is one of "
        f"{', '.join(f'<code>{name}</code>' for name in parts)}. Next: <code>pluri --help</code>.</p></footer></main>"
    )
    path = folder / FILE
    write_page(html_page("pluri demo", "".join(pieces), styles=("colors.css", "page.css", "demo.css")), path)
    return path


def _text(lines: list[str]) -> str:
    """Sentences as paragraphs; what was laid out in columns stays so."""
    from pluri.report.markup import escape

    pieces, laid_out = [], [line for line in lines if line.startswith("  ")]
    for line in lines:
        if not line.startswith("  "):
            pieces.append(f"<p>{escape(line)}</p>")
    if laid_out:
        pieces.append(f"<pre>{escape(chr(10).join(laid_out))}</pre>")
    return "".join(pieces)
