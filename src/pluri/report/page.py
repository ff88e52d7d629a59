"""An HTML page that needs nothing but itself: style, program and data are inside, and nothing else may be loaded.

A content security policy names the one program that may run by its hash: whatever text comes from documents, it is
shown and never run. Data are JSON in which no tag can begin.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from functools import cache
from importlib.resources import files
from typing import Any

from pluri.report.markup import allowed_in, escape
from pluri.validation import replacing

#: What would end the element or begin another, and the two ends of lines that JSON allows and old JavaScript did not.
UNSAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


@cache
def asset(name: str) -> str:
    """A file of the folder ``assets``."""
    return (files("pluri.report") / "assets" / name).read_text(encoding="utf-8")


def html_page(
    title: str,
    body: str,
    *,
    styles: tuple[str, ...],
    script: str | tuple[str, ...] = "",
    data: Any = None,
    connects: bool = False,
) -> str:
    """A whole page.

    Parameters
    ----------
    title : str
        Plain text.
    body : str
        HTML, in which all text is escaped already.
    styles : names of files of the folder ``assets``
    script : name of the program, or names of its parts, if there is one
    data : what JSON can hold, for the program
    connects : bool, default=False
        Whether the program may ask the server that the page came from, and nobody else.

    Returns
    -------
    str

    Examples
    --------
    >>> from pluri.report.page import html_page
    >>> page = html_page("a < b", "<p>c</p>", styles=("colors.css",))
    >>> "<title>a &lt; b</title>" in page
    True
    """
    style = "".join(map(asset, styles))
    program = "".join(map(asset, (script,) if isinstance(script, str) else script)) if script else ""
    digest = base64.b64encode(hashlib.sha256(program.encode()).digest()).decode()
    allowed = f"'sha256-{digest}'" if script else "'none'"
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src {allowed}; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    ) + ("; connect-src 'self'" if connects else "")
    parts = [
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark"><meta name="referrer" content="no-referrer">',
        f"<title>{escape(title)}</title><style>{style}</style></head><body>\n{body}\n",
    ]
    if data is not None:
        parts.append(f'<script type="application/json" id="data">{embedded_json(data)}</script>\n')
    if script:
        parts.append(f"<script>{program}</script>\n")
    # Halves of surrogate pairs, as file names can hold them, cannot be written in UTF-8.
    return "".join([*parts, "</body></html>\n"]).encode("utf-8", "replace").decode("utf-8")


def embedded_json(data: Any) -> str:
    r"""JSON that can stand inside an element: no tag, comment or entity can begin in it.

    Examples
    --------
    >>> from pluri.report.page import embedded_json
    >>> print(embedded_json(["</script>"]))
    ["\u003c/script\u003e"]
    """
    text = json.dumps(allowed_in(data), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character, code in UNSAFE.items():
        text = text.replace(character, code)
    return text


def write_page(page: str, path: str | os.PathLike[str]) -> None:
    """Write a page whole or not at all."""
    with replacing(path) as file:
        file.write(page.encode("utf-8", "replace"))
