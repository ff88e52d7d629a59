"""Pictures of alignments: what is drawn is what the kernel found."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from pluri.plotting import AlignmentDisplay
from pluri.sequences import TimeAlignmentKernel

RNG = np.random.default_rng(0)
X, V = RNG.normal(size=(12, 3)), RNG.normal(size=(9, 3))


def test_the_image_the_path_and_the_margins_are_the_kernel_s():
    kernel = TimeAlignmentKernel(sigma=2.0)
    display = AlignmentDisplay.from_kernel(kernel, X, V, names=("first", "second"))
    path, score = kernel.align(X, V)
    squares = ((X[:, None] - V[None]) ** 2).sum(axis=2)
    assert_allclose(display.image_.get_array(), np.exp(-squares / 4.0))
    assert_array_equal(np.column_stack(display.path_.get_data()), path[:, ::-1])
    beside, below = display.margins_
    assert_array_equal([line.get_xdata() for line in beside.lines], X.T)
    assert_array_equal([line.get_ydata() for line in below.lines], V.T)
    assert (beside.get_ylabel(), below.get_xlabel()) == ("frame of first", "frame of second")
    assert display.ax_.get_title() == f"similarity of the sequences {score:.3f}"
    assert beside.get_ylim() == display.ax_.get_ylim()
    assert below.get_xlim() == display.ax_.get_xlim()


def test_sums_of_paths_have_no_path_to_draw_and_axes_can_be_given():
    figure, axes = plt.subplots(1, 2)
    display = AlignmentDisplay.from_kernel(TimeAlignmentKernel("sum"), X[:, 0], V[:, 0], ax=axes[1], title="sum")
    assert display.path_ is None
    assert display.figure_ is figure
    assert display.ax_.get_title() == "sum"
    free = plt.figure().add_axes((0.1, 0.1, 0.8, 0.8))
    assert AlignmentDisplay.from_kernel(TimeAlignmentKernel(), X, V, ax=free).ax_ is free


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: AlignmentDisplay(X, V, np.ones((9, 12))), r"similarity must have shape \(12, 9\)"),
        (lambda: AlignmentDisplay(X, V, np.ones((12, 9)), path=[[0, 9]]), "path must hold pairs of frames"),
        (lambda: AlignmentDisplay(np.ones((2, 2, 2)), V, np.ones((2, 9))), "x must be a sequence of frames"),
        (lambda: AlignmentDisplay.from_kernel(None, X, V), "kernel must be a TimeAlignmentKernel"),
    ],
)
def test_mistakes_get_a_sentence(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()
