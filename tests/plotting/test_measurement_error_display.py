"""The curve of errors against measurements."""

import numpy as np
import pytest

from pluri.plotting import MeasurementErrorDisplay


def test_curves_are_medians_and_bands_reach_from_the_least_to_the_largest():
    errors = {"repeated": [[0.3, 0.5, 0.4], [0.1, 0.3, 0.15]], "once": [0.6, 0.2]}
    display = MeasurementErrorDisplay([30, 10], errors).plot(title="a title")
    assert [line.get_label() for line in display.lines_] == ["repeated", "once"]
    np.testing.assert_array_equal(display.lines_[0].get_xdata(), [10, 30])
    np.testing.assert_allclose(display.lines_[0].get_ydata(), [0.15, 0.4])
    (band,) = display.ax_.collections
    heights = band.get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == (0.1, 0.5)
    assert display.ax_.get_yscale() == "log"
    assert display.ax_.get_title() == "a title"


@pytest.mark.parametrize(
    ("numbers", "errors", "message"),
    [
        ([], {"one": []}, "n_measurements must be a list of numbers"),
        ([1, 2], {}, "at least one method"),
        ([1, 2], {"one": [0.1]}, r"errors\['one'\] must have an entry for each of 2"),
    ],
)
def test_what_does_not_fit_is_refused(numbers, errors, message):
    with pytest.raises(ValueError, match=message):
        MeasurementErrorDisplay(numbers, errors)
