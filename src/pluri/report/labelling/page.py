"""The page on which items are labelled: markup; the program is ``assets/labelling.js``."""

from __future__ import annotations

from collections.abc import Sequence

from pluri.report.markup import escape
from pluri.report.page import html_page

STYLES = ("colors.css", "page.css", "labelling.css")
#: Keys of classes, in their order; S skips and U takes back.
KEYS = "123456789abcdefghijklmnopqrtvwxyz"


def labelling_page(title: str, classes: Sequence[str], place: str) -> str:
    """The page; what it shows it asks the server for.

    Parameters
    ----------
    title : str
    classes : list of str
        At most as many as there are keys.
    place : str
        The file in which labels are kept, to be told.

    Returns
    -------
    str

    Examples
    --------
    >>> from pluri.report.labelling.page import labelling_page
    >>> page = labelling_page("letters", ["spam", "<b>ham</b>"], "letters.labels.jsonl")
    >>> "<kbd>2</kbd>" in page, "<b>ham" in page
    (True, False)
    """
    check_classes(classes)
    buttons = "".join(
        f'<button type="button" class="choice" data-place="{place}" aria-keyshortcuts="{key}">'
        f'<kbd>{key.upper()}</kbd><span class="name">{escape(name)}</span><span class="count">0</span></button>'
        for place, (key, name) in enumerate(zip(KEYS, classes))
    )
    body = f"""<header class="top"><h1>{escape(title)}</h1>
<p id="counts" class="note" role="status"></p></header>
<noscript><p class="note">Items are shown by JavaScript, which is switched off.</p></noscript>
<main>
<section class="work" aria-label="Item">
<p id="message" role="alert" hidden></p>
<article id="item" tabindex="-1" aria-live="polite"></article>
<div id="choices" role="group" aria-label="Classes">{buttons}</div>
<div class="others"><button type="button" id="skip" aria-keyshortcuts="s"><kbd>S</kbd> skip</button>
<button type="button" id="undo" aria-keyshortcuts="u"><kbd>U</kbd> undo</button>
<span id="last" class="note"></span></div>
</section>
<aside aria-label="Progress"><h3>Learning curve</h3>
<svg id="curve" viewBox="0 0 300 170" role="img" aria-label="Accuracy against number of labels"></svg>
<p class="note" id="curvenote">Accuracy by cross-validation within the labelled items, with its standard error. They
were chosen to be difficult: on other items a model is usually better.</p>
<h3>Kept</h3><p class="note">Every label is on the disk before the next item is shown:
<code>{escape(place)}</code>. End with Ctrl-C; begin again with the same command.</p>
</aside></main>"""
    return html_page(title, body, styles=STYLES, script="labelling.js", data=_data(classes), connects=True)


def _data(classes: Sequence[str]) -> dict[str, list[str]]:
    return {"classes": list(classes), "keys": list(KEYS[: len(classes)])}


def check_classes(classes: Sequence[str]) -> None:
    """Refuse classes that cannot be told apart, or are more than there are keys."""
    if not 2 <= len(classes) <= len(KEYS):
        raise ValueError(f"classes must be from 2 to {len(KEYS)}, one for each key, got {len(classes)}")
    if len(set(classes)) < len(classes) or not all(name.strip() for name in classes):
        raise ValueError(f"classes must have different names, got {', '.join(map(repr, classes))}")
