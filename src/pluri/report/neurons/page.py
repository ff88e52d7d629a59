"""The page about neurons: markup; the programs are ``assets/neurons_plot.js`` and ``assets/neurons.js``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from pluri.report.markup import escape
from pluri.report.page import html_page, write_page

if TYPE_CHECKING:
    from pluri.neurons import Simulation

STYLES = ("colors.css", "page.css", "neurons.css")
SCRIPTS = ("neurons_plot.js", "neurons.js")
#: Milliseconds of the simulation in a second of the clock; 0 for as many as the computer can.
SPEEDS = ((5, "5 ms/s"), (20, "20 ms/s"), (50, "50 ms/s"), (100, "100 ms/s"), (250, "250 ms/s"), (1000, "real time"))
FASTEST = (0, "as fast as it can")
SPEED = 100
#: Milliseconds that are seen.
WINDOWS = (20, 50, 100, 200, 500, 1000, 5000)
WINDOW = 200


def live_page(title: str, layout: dict[str, Any]) -> str:
    """The page of a simulation that runs; what it shows it asks the server for.

    Examples
    --------
    >>> from pluri.report.neurons.page import live_page
    >>> page = live_page("a <b>", {"forms": [], "graphs": [], "cells": [], "networks": []})
    >>> "<title>a &lt;b&gt;</title>" in page, "connect-src 'self'" in page
    (True, True)
    """
    data = {"live": True, "layout": layout}
    return html_page(title, _body(title, live=True), styles=STYLES, script=SCRIPTS, data=data, connects=True)


def film_page(title: str, layout: dict[str, Any], film: dict[str, Any]) -> str:
    """A page that replays what was recorded, and needs nothing else.

    Parameters
    ----------
    title : str
    layout : dict
        What is seen (:func:`pluri.neurons.graphics.layout.output_layout`).
    film : dict
        What happened (:meth:`pluri.neurons.graphics.film.Film.whole`).
    """
    data = {"live": False, "layout": layout, "film": film}
    return html_page(title, _body(title, live=False), styles=STYLES, script=SCRIPTS, data=data)


def neuron_report(
    simulation: Simulation, path: str | os.PathLike[str] | None = None, *, title: str = "Simulation"
) -> str:
    """Write a page that replays a simulation: its graphs, rasters and cells, as they were recorded since the reset.

    The page is one file: it loads nothing, and can be sent and archived.

    Parameters
    ----------
    simulation : Simulation
        With graphs, cell views or network views, and after a run.
    path : path, optional
        File to write.
    title : str, default="Simulation"
        Heading.

    Returns
    -------
    str
        The page.

    Examples
    --------
    >>> from pluri.neurons import Simulation
    >>> from pluri.report import neuron_report
    >>> sim = Simulation()
    >>> soma = sim.create("active_compartment", "/soma", length=20, diameter=20, inject=0.1)
    >>> graph = sim.graph("/soma", "Vm")
    >>> result = sim.run(5.0)
    >>> "<title>one cell</title>" in neuron_report(sim, title="one cell")
    True
    """
    from pluri.neurons.graphics.film import Film
    from pluri.neurons.graphics.layout import output_layout

    layout = output_layout(simulation)
    page = film_page(title, layout, Film.of(simulation, layout).whole())
    if path is not None:
        write_page(page, path)
    return page


def _options(choices: tuple[tuple[int, str], ...], chosen: int) -> str:
    return "".join(
        f'<option value="{value}"{" selected" if value == chosen else ""}>{escape(text)}</option>'
        for value, text in choices
    )


def _body(title: str, *, live: bool) -> str:
    windows = tuple((value, f"{value} ms") for value in WINDOWS)
    speeds = (*SPEEDS, FASTEST) if live else SPEEDS
    seen, chosen = (windows, WINDOW) if live else (((0, "all"), *windows), 0)
    more = (
        '<button type="button" id="keep" title="Save what was seen as one file that replays">Save page</button>'
        if live
        else ""
    )
    line = (
        '<h3>Command</h3><form id="line"><input type="text" id="command" aria-label="Command" spellcheck="false" '
        'autocomplete="off" placeholder="set /soma inject 0.2"><button>Run</button></form>'
        '<p class="note">Any line of a script: <code>help</code> lists the commands.</p>'
        '<div id="saidbox" hidden><h3>Output</h3><pre id="said" tabindex="0"></pre></div>'
        if live
        else '<p class="note">A recording: the controls show the values that it ended with.</p>'
    )
    scrub = (
        ""
        if live
        else '<label id="scrubline"><input type="range" id="scrub" aria-label="Time in ms" min="0" max="1" '
        'value="0"></label>'
    )
    hint = (
        "Closing this page stops nothing: the simulation goes on until it is paused here, or ended with Ctrl-C."
        if live
        else "The page holds its data and asks nobody."
    )
    return f"""<header class="top"><h1>{escape(title)}</h1>
<div class="transport" role="group" aria-label="Run">
<button type="button" id="play" aria-pressed="false">▶ Start</button>
<button type="button" id="step" title="One millisecond">+1 ms</button>
<button type="button" id="reset" title="Back to the beginning">Reset</button>{more}</div>
<output id="time" aria-live="off">0.00 ms</output><span id="busy" class="note" hidden>running a command</span>
<div class="choices"><label>speed <select id="speed">{_options(speeds, SPEED)}</select></label>
<label>window <select id="window">{_options(seen, chosen)}</select></label></div></header>
<noscript><p class="note">The traces are drawn by JavaScript, which is switched off.</p></noscript>
<main><section id="views" aria-label="Views">
<p id="message" role="alert" hidden></p>
<p id="nothing" class="note" hidden>Nothing is drawn yet: a script says <code>graph PATH FIELD</code>,
<code>cell_view PATH</code> or <code>network_view PATTERN</code>.</p>
<div id="cards"></div>{scrub}</section>
<aside id="panel" aria-label="Controls">
<div id="forms"></div>
<p id="noforms" class="note" hidden>The script has no control panel.</p>
{line}
<p class="note">{hint} <kbd>Space</kbd> starts and pauses, <kbd>→</kbd> goes on by 1 ms.</p>
</aside></main>"""
