"""Pictures of simulated neurons show the numbers of the result."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from pluri.neurons.models import two_neurons
from pluri.plotting import FiringRateDisplay, MembraneDisplay, PhasePlaneDisplay, SpikeRasterDisplay


@pytest.fixture(scope="module")
def result():
    sim = two_neurons()
    sim.record("/net/*/soma", "Vm")
    return sim.run(40.0)


def test_membranes_show_traces_and_a_tick_for_each_spike(result):
    display = MembraneDisplay.from_result(result)
    assert [line.get_label() for line in display.lines_] == ["/net/a/soma", "/net/b/soma"]
    assert_array_equal(display.lines_[1].get_ydata(), result["/net/b/soma", "Vm"])
    ticks = [line for line in display.ax_.lines if line.get_marker() == "|"]
    assert_array_equal(ticks[0].get_xdata(), result.spikes("/net/a/soma"))
    assert min(ticks[0].get_ydata()) > result["/net/a/soma", "Vm"].max()
    again = MembraneDisplay.from_result(result, ["/net/b/soma"], ax=display.ax_)
    assert again.ax_ is display.ax_


def test_rasters_show_a_row_for_each_unit(result):
    display = SpikeRasterDisplay.from_result(result)
    times, units, names = result.raster()
    assert_array_equal(display.ax_.lines[0].get_xdata(), times)
    assert_array_equal(display.ax_.lines[0].get_ydata(), units)
    assert [text.get_text() for text in display.ax_.get_yticklabels()] == names
    many = SpikeRasterDisplay(np.arange(50.0), np.arange(50)).plot()
    assert many.ax_.get_ylabel() == "unit"
    assert SpikeRasterDisplay([], []).plot().ax_.lines[0].get_xdata().size == 0


def test_rates_are_in_the_order_of_currents():
    line = FiringRateDisplay([3, 1, 2], [30, 10, 20]).plot().ax_.lines[0]
    assert_array_equal(line.get_xdata(), [1, 2, 3])
    assert_array_equal(line.get_ydata(), [10, 20, 30])


def test_a_phase_plane_shows_trajectory_and_nullclines():
    display = PhasePlaneDisplay([0, 1], [2, 3], nullclines={"still": ([0, 1], [1, 1])}).plot()
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["still"]
    assert_array_equal(display.ax_.lines[0].get_ydata(), [2, 3])


@pytest.mark.parametrize(
    "make",
    [
        lambda: MembraneDisplay({"a": ([0, 1], [0], [])}),
        lambda: SpikeRasterDisplay([0, 1], [0]),
        lambda: FiringRateDisplay([0, 1], [0]),
        lambda: PhasePlaneDisplay([0, 1], [0]),
    ],
)
def test_lengths_that_differ_are_refused(make):
    with pytest.raises(ValueError, match=r"one length|one shape"):
        make()
