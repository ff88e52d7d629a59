"""Pictures of dictionaries: atoms as tiles, and pictures before and after."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from pluri.plotting import DictionaryMosaicDisplay, RestorationDisplay

RNG = np.random.default_rng(0)


def test_tiles_stand_in_the_order_of_usage():
    atoms = RNG.normal(size=(5, 9))
    model = SimpleNamespace(components_=atoms, usage_=np.array([0.1, 0.5, 0.2, 0.4, 0.3]))
    display = DictionaryMosaicDisplay.from_estimator(model, title="atoms")
    assert_array_equal(display.order_, [1, 3, 4, 2, 0])
    sheet = display.image_.get_array()
    assert sheet.shape == (10, 15)
    for place, atom in zip([(0, 0), (0, 5), (0, 10), (5, 0), (5, 5)], atoms[display.order_]):
        tile = sheet[place[0] + 1 : place[0] + 4, place[1] + 1 : place[1] + 4]
        assert_allclose(tile, (0.5 + 0.5 * atom / np.abs(atom).max()).reshape(3, 3))
    widths = display.ax_.collections[0].get_linewidths()
    assert_allclose(widths, 2.5 * np.array([0.5, 0.4, 0.3, 0.2, 0.1]) / 0.5)
    assert display.ax_.get_title() == "atoms"
    assert len(display.plot(n_atoms=2).ax_.collections[0].get_linewidths()) == 2


def test_atoms_of_colours_are_drawn_in_colour():
    display = DictionaryMosaicDisplay(RNG.normal(size=(4, 12)), n_channels=3).plot()
    assert display.image_.get_array().shape == (8, 8, 3)


def test_the_map_is_of_errors_or_of_standard_deviations():
    truth, before, after = RNG.random((3, 6, 8, 3))
    display = RestorationDisplay(before, after, truth=truth, std=after).plot(title="all")
    assert_allclose(display.axes_[2].images[0].get_array(), np.abs(after - truth).mean(axis=2))
    decibel = -10 * np.log10(((after - truth) ** 2).mean())
    assert display.axes_[1].get_title() == f"after, {decibel:.1f} dB"
    unsure = RestorationDisplay(before[..., 0], after[..., 0], std=truth[..., 0]).plot()
    assert_array_equal(unsure.axes_[2].images[0].get_array(), truth[..., 0])
    assert unsure.axes_[1].get_title() == "after"
    assert len(RestorationDisplay(before, after).plot().axes_) == 2
    holes = np.where(before < 0.5, np.nan, before)
    again = RestorationDisplay(holes, after, truth=truth).plot(axes=display.axes_)
    assert again.figure_ is display.figure_
    assert again.axes_[0].get_title() == "before"


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(ValueError, match=r"components must have shape \(n_components, side \* side \* 1\)"):
        DictionaryMosaicDisplay(np.zeros((2, 5)))
    with pytest.raises(ValueError, match="usage must have one number for each of 2 atoms"):
        DictionaryMosaicDisplay(np.zeros((2, 4)), [1.0])
    with pytest.raises(ValueError, match="n_channels must be 1 or 3, got 2"):
        DictionaryMosaicDisplay(np.zeros((2, 4)), n_channels=2)
    with pytest.raises(ValueError, match="must be fitted and have components_"):
        DictionaryMosaicDisplay.from_estimator(object())
    with pytest.raises(ValueError, match="n_atoms must be at least 1"):
        DictionaryMosaicDisplay(np.zeros((2, 4))).plot(n_atoms=0)
    with pytest.raises(ValueError, match=r"std must have the shape of after, \(4, 4\), got \(3, 4\)"):
        RestorationDisplay(np.zeros((4, 4)), np.zeros((4, 4)), std=np.zeros((3, 4)))
    with pytest.raises(ValueError, match="after must have shape"):
        RestorationDisplay(np.zeros(4), np.zeros(4))
    with pytest.raises(ValueError, match="axes must be 2 axes, got 1"):
        RestorationDisplay(np.zeros((4, 4)), np.zeros((4, 4))).plot(axes=[None])
