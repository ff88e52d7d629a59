"""Draw without a screen, never show, and leave no figure open."""

from __future__ import annotations

import matplotlib
import pytest

matplotlib.use("agg")


@pytest.fixture(autouse=True)
def clean_figures(monkeypatch):
    import matplotlib.pyplot as plt

    def refuse(*args, **kwargs):
        raise AssertionError("plt.show was called")

    monkeypatch.setattr(plt, "show", refuse)
    yield
    # Drawing every figure raises what only layout or rendering would meet.
    for number in plt.get_fignums():
        plt.figure(number).canvas.draw()
    plt.close("all")
