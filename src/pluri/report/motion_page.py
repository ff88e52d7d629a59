"""A page that plays motion: stick figures side by side, and beside them their paths in a map."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from pluri.report.embedding_page import COLORS
from pluri.report.markup import escape
from pluri.report.motion_data import (
    Figure,
    figure_data,
    figure_of,
    gap_list,
    hand_over_list,
    named,
    of_each,
    path_data,
    pose_map,
    regime_data,
)
from pluri.report.page import html_page, write_page
from pluri.report.tables import facts_table

STYLES = ("colors.css", "page.css", "layout.css", "motion.css")
SCRIPTS = ("motion_figure.js", "motion_path.js", "motion.js")
SPEEDS = (("0.1", "1/10"), ("0.25", "1/4"), ("0.5", "1/2"), ("1", "1"), ("2", "2"), ("4", "4"))
#: Sequences that a page shows side by side when it is opened.
SHOWN = 2
LIMBS = ' Left limbs are <b class="left">blue</b>, right ones <b class="right">orange</b>.'
BACK, ON = "\N{SINGLE LEFT-POINTING ANGLE QUOTATION MARK}", "\N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK}"
MARK_KEYS = ", <kbd>N</kbd> and <kbd>P</kbd> to the next and the previous gap or hand-over"
POSES = "two principal components of the poses"


def motion_report(
    motions: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    latent: Any = None,
    gaps: Any = None,
    hand_overs: Any = None,
    regimes: Any = None,
    title: str | None = None,
    facts: Mapping[str, Any] | None = None,
) -> str:
    """Write a page that plays motions as stick figures, with their paths in a map and what happens when.

    The page is one file: it loads nothing, runs nothing that comes from the data, and can be sent and archived. Its
    address says what is shown: ``walk.html#frame=120&show=0,2`` opens it at frame 120 with the first and third motion
    (both are counted from 0).

    What is said of motions below is a list with one entry for each of them, or a mapping with some of their names; or
    the entry alone, if one motion was given and no list.

    Parameters
    ----------
    motions : Motion or Markers, list of them, or mapping of names to them
        Recorded or made by a model (:meth:`pluri.datasets.Motion.from_features`). Of several motions a reader chooses
        those that are shown side by side; they are played in step, by the time and not by the number of the frame.
    path : path, optional
        File to write.
    latent : array-like of shape (n_frames, n_coordinates) for each motion, or False, optional
        Where each frame is in the latent space of a model; the first two coordinates are drawn. By default the two
        principal components of the poses of all motions together, if they have the same points; False for no map.
    gaps : list of pairs (start, stop), or Booleans of shape (n_frames,), for each motion, optional
        Frames that were not recorded but imputed: from start to before stop.
    hand_overs : list of frames, or of pairs of a frame and a text, for each motion, optional
        Where one kind of motion passes into another.
    regimes : array-like of shape (n_frames,) for each motion, optional
        Which regime of the dynamics each frame belongs to: numbers or names, None or NaN for none.
    title : str, optional
        Heading; by default the names of the motions.
    facts : dict, optional
        More to tell, names and values; that of ``"map"`` is written below the map.

    Returns
    -------
    str
        The page.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.datasets import Motion, cmu_skeleton
    >>> from pluri.report import motion_report
    >>> frames = np.zeros((60, 96))
    >>> frames[:, 13] = 40 * np.sin(np.arange(60) / 5)  # a knee
    >>> page = motion_report(Motion(cmu_skeleton(), frames, 1 / 30, "one knee"), gaps=[(20, 30)])
    >>> "<title>one knee</title>" in page
    True
    """
    found = named(motions)
    names = list(found)
    figures = [figure_of(name, motion) for name, motion in found.items()]
    said = {"gaps": gaps, "hand_overs": hand_overs, "regimes": regimes}
    each = {argument: of_each(value, motions, names, argument) for argument, value in said.items()}
    latents, is_made = _latents(latent, motions, figures)
    paths = path_data(latents, figures)
    data: dict[str, Any] = {
        "motions": figure_data(figures),
        "map": paths,
        "gaps": [gap_list(given, figure) for given, figure in zip(each["gaps"], figures)],
        "handOvers": [hand_over_list(given, figure) for given, figure in zip(each["hand_overs"], figures)],
        "regimes": regime_data(each["regimes"], figures),
        "shown": SHOWN,
        "colors": {"light": COLORS["light"], "dark": COLORS["dark"]},
    }
    heading = title or _heading(names)
    told: dict[str, Any] = {"motions": len(names), "frames": sum(len(figure.places) for figure in figures)}
    if paths is not None:
        told["map"] = POSES if is_made else "given coordinates"
    page = html_page(heading, _body(heading, data, told | dict(facts or {})), styles=STYLES, script=SCRIPTS, data=data)
    if path is not None:
        write_page(page, path)
    return page


def _latents(latent: Any, motions: Any, figures: Sequence[Figure]) -> tuple[Sequence[Any], bool]:
    """Coordinates of each motion if there are any, and whether they were made here."""
    if latent is False:
        return [None] * len(figures), False
    if latent is None:
        made = pose_map(figures)
        return ([None] * len(figures), False) if made is None else (made, True)
    return of_each(latent, motions, [figure.name for figure in figures], "latent"), False


def _heading(names: Sequence[str]) -> str:
    return " and ".join(names) if len(names) <= 2 else f"{names[0]} and {len(names) - 1} other motions"


def _body(heading: str, data: Mapping[str, Any], told: Mapping[str, Any]) -> str:
    has_map = data["map"] is not None
    map_frame = (
        '<div class="frame" id="mapframe"><canvas id="map" tabindex="0" role="application" aria-label="Paths in the '
        'map. Click on a path to go to that frame; arrow keys go from frame to frame."></canvas>'
        f'<p class="note" id="mapname">Map: {escape(str(told["map"]))}</p>'
        '<div id="tip" role="status" hidden></div></div>'
        if has_map
        else ""
    )
    color = (
        '<label>paths <select id="color"><option value="motion">by motion</option>'
        '<option value="regime" selected>by regime</option></select></label>'
        if has_map and data["regimes"]
        else ""
    )
    speeds = "".join(
        f'<option value="{value}"{" selected" if value == "1" else ""}>{told_as}</option>' for value, told_as in SPEEDS
    )
    regimes = '<section><h3>Regimes</h3><ul class="plain" id="regimes"></ul></section>' if data["regimes"] else ""
    marks = any(data["gaps"]) or any(data["handOvers"])
    sided = any(any(motion["sides"]) for motion in data["motions"])
    events = '<section><h3>Gaps and hand-overs</h3><ul class="links" id="events"></ul></section>' if marks else ""
    return f"""<header class="top">
<h1><a href="#">{escape(heading)}</a></h1>
</header>
<noscript><p class="note">The figures are drawn by JavaScript, which is switched off.</p></noscript>
<main>
<section class="views" aria-label="Motion">
<div class="stage{"" if has_map else " alone"}">
<div class="frame" id="figureframe"><canvas id="figure" tabindex="0" role="application" aria-label="Stick figures. Drag
 or press arrow keys to turn, plus and minus zoom, 0 returns to the first view."></canvas>
<div id="captions"></div></div>
{map_frame}
</div>
<div class="transport">
<div class="buttons" role="group" aria-label="Play">
<button type="button" id="back" title="One frame back" aria-label="One frame back">{BACK}</button>
<button type="button" id="play" aria-label="Play">▶</button>
<button type="button" id="on" title="One frame on" aria-label="One frame on">{ON}</button></div>
<output id="now" aria-live="off"></output>
<div class="choices"><label>speed <select id="speed">{speeds}</select></label>
<label><input type="checkbox" id="repeat" checked> repeat</label>
<label><input type="checkbox" id="follow" checked> follow</label>{color}</div>
</div>
<div class="timeline"><input type="range" id="scrub" min="0" max="0" value="0" step="1" aria-label="Frame">
<div id="strips" aria-hidden="true"></div></div>
</section>
<aside id="panel" aria-label="About" tabindex="-1">
<section><h3>Motions</h3><ul id="motions"></ul></section>
{events}{regimes}<section><h3>About</h3>{facts_table(told)}
<p class="note hint">Drag a figure to turn it, turn the wheel or pinch to come nearer. <kbd>Space</kbd> plays and
pauses, <kbd>←</kbd> and <kbd>→</kbd> go one frame (with <kbd>Shift</kbd> ten), <kbd>Home</kbd> and <kbd>End</kbd> to
the first and the last{MARK_KEYS if marks else ""}.{LIMBS if sided else ""}</p></section>
</aside>
</main>"""
