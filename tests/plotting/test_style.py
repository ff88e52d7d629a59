"""Palette under simulated colour blindness, contrast of text, and imports that stay light."""

from __future__ import annotations

import itertools
import subprocess
import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgb

from pluri.plotting import PALETTE, state_colors
from pluri.plotting.style import checked_names, checked_order, stacked_axes, text_color

# Machado, Oliveira & Fernandes (2009), full severity, on linear RGB.
VISION = {
    "normal": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def linear(rgb):
    rgb = np.asarray(rgb)
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def lab(rgb_linear):
    """CIELAB (D65) of linear RGB."""
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    xyz = np.clip(rgb_linear, 0, 1) @ to_xyz.T / [0.9505, 1.0, 1.089]
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.stack([116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])], axis=1)


@pytest.mark.parametrize("vision", VISION)
def test_any_two_colours_differ_for_every_kind_of_sight(vision):
    colors = lab(linear([to_rgb(color) for color in PALETTE]) @ np.array(VISION[vision]).T)
    distance = np.linalg.norm(colors[:, None] - colors[None], axis=2)
    assert distance[np.triu_indices(len(PALETTE), 1)].min() >= 15


def test_state_colours_extend_the_palette_without_repeating_forty_times():
    assert tuple(state_colors(20)) == PALETTE
    assert len(set(state_colors(40))) == 40
    assert state_colors(41)[40] == PALETTE[0]
    with pytest.raises(ValueError, match="n_states must be at least 1, got 0"):
        state_colors(0)


@pytest.mark.parametrize("color", PALETTE)
def test_text_on_a_colour_has_the_better_of_two_contrasts(color):
    luminance = float(linear(to_rgb(color)) @ [0.2126, 0.7152, 0.0722])
    on_black, on_white = (luminance + 0.05) / 0.05, 1.05 / (luminance + 0.05)
    assert text_color(color) == ("black" if on_black > on_white else "white")
    assert text_color(to_rgb(color)) == text_color(color)


def test_names_and_order_are_checked():
    assert checked_names(None, 3) == ["0", "1", "2"]
    assert checked_names(np.array(["a", "b"]), 2) == ["a", "b"]
    assert checked_order([1, 0], 2) == [1, 0]
    with pytest.raises(ValueError, match="one name for each of the 3 states, got 2"):
        checked_names(["a", "b"], 3)
    with pytest.raises(ValueError, match=r"permutation of 0, \.\.\., 2, got \[0, 0, 1\]"):
        checked_order([0, 0, 1], 3)


@pytest.mark.parametrize("placed", ["subplot", "free"])
def test_stacked_panels_share_the_place_of_the_given_axes(placed):
    figure = plt.figure()
    ax = figure.add_subplot(1, 2, 2) if placed == "subplot" else figure.add_axes((0.4, 0.2, 0.5, 0.6))
    before = ax.get_position()
    _, panels = stacked_axes(ax, [3, 1, 1], (5, 5))
    assert panels[0] is ax
    boxes = [panel.get_position() for panel in panels]
    for box in boxes:
        assert box.x0 == pytest.approx(before.x0)
        assert box.x1 == pytest.approx(before.x1)
    assert boxes[0].y1 == pytest.approx(before.y1)
    assert boxes[-1].y0 == pytest.approx(before.y0)
    assert all(upper.y0 > lower.y1 for upper, lower in itertools.pairwise(boxes))
    assert boxes[0].height == pytest.approx(3 * boxes[1].height)
    ax.set_xlim(2, 7)
    assert panels[2].get_xlim() == (2, 7)


def test_importing_pluri_folders_does_not_import_matplotlib_or_nltk():
    code = (
        "import sys, pluri.plotting, pluri.metrics, pluri.datasets; "
        "print([m for m in ('matplotlib', 'nltk') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
