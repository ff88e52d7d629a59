"""Shares of topics over time as pictures: what is drawn is what was given."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from pluri.plotting import TopicTrendsDisplay

WEEKS = np.arange("2024-01-01", "2024-02-26", 7, dtype="datetime64[D]")


def test_lines_bands_and_marks_are_those_given():
    shares = np.column_stack([np.linspace(0.6, 0.4, 8), np.linspace(0.4, 0.6, 8)])
    change = SimpleNamespace(topic=1, kind="emerging", since="2024-01-29")
    display = TopicTrendsDisplay(WEEKS, shares, np.full((8, 2), 0.05), labels=["ice", "moon"], changes=[change]).plot()
    first, second = display.axes_
    assert [first.get_title("left"), second.get_title("left")] == ["ice", "moon"]
    np.testing.assert_allclose(first.lines[0].get_ydata(), shares[:, 0])
    band = first.collections[0].get_paths()[0].vertices[:, 1]
    assert (band.min(), band.max()) == pytest.approx((0.3, 0.7))
    assert len(first.lines) == 1
    assert np.datetime64(second.lines[1].get_xdata()[0], "D") == np.datetime64("2024-01-29")


def test_the_topics_that_change_come_first_and_at_most_twelve():
    shares = np.random.default_rng(0).dirichlet(np.ones(20), 8)
    change = SimpleNamespace(topic=7, kind="fading", since="2024-02")
    trends = SimpleNamespace(
        over_time=SimpleNamespace(starts=WEEKS, shares=shares, errors=0.1 * shares),
        labels=[f"label {topic}" for topic in range(20)], emerging=list, fading=lambda: [change],
    )  # fmt: skip
    display = TopicTrendsDisplay.from_trends(trends)
    assert len(display.axes_) == 12
    assert display.axes_[0].get_title("left") == "label 7"
    second = np.argsort(-shares.mean(axis=0))
    assert display.axes_[1].get_title("left") == f"label {second[second != 7][0]}"


def test_mistakes_get_a_sentence():
    with pytest.raises(ValueError, match="shares and errors must have a row for each of 8 periods"):
        TopicTrendsDisplay(WEEKS, np.ones((7, 2)), np.ones((7, 2)))
    with pytest.raises(ValueError, match="topics must lie between 0 and 1, got"):
        TopicTrendsDisplay(WEEKS, np.ones((8, 2)), np.ones((8, 2))).plot(topics=[5])
