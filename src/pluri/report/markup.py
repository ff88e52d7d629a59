"""Text inside markup: escaped, and without the characters that no XML and no page may hold."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from typing import Any

#: Control characters but for tabs and line ends, halves of surrogate pairs, and U+FFFE and U+FFFF: a picture with one
#: of them is no XML, and text with half a pair cannot be written as UTF-8.
FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]")


def allowed(text: str) -> str:
    r"""The text with U+FFFD in place of characters that may not be there.

    Examples
    --------
    >>> from pluri.report.markup import allowed
    >>> allowed("a\x00b") == "a\ufffdb"
    True
    """
    return FORBIDDEN.sub("\ufffd", text)


def allowed_in(data: Any) -> Any:
    """The same of all texts in lists and dicts: before they become JSON, in which such characters hide as codes."""
    if isinstance(data, str):
        return allowed(data)
    if isinstance(data, Mapping):
        return {allowed_in(key): allowed_in(value) for key, value in data.items()}
    return [allowed_in(item) for item in data] if isinstance(data, list | tuple) else data


def escape(text: str) -> str:
    """The text for an element or a quoted attribute.

    Examples
    --------
    >>> from pluri.report.markup import escape
    >>> escape('"R&D" <b>')
    '&quot;R&amp;D&quot; &lt;b&gt;'
    """
    return html.escape(allowed(text))
