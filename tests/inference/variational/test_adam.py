"""The loop behind all that Adam fits: when it ends, what Ctrl-C leaves, and that it descends."""

import numpy as np
import pytest

from pluri import on_interrupt
from pluri.inference.variational.adam import Adam, adam_step, descend, no_moments, refuse_divergence
from pluri.validation.interruption import interruptible


def test_moving_repeats_the_published_step():
    rng = np.random.default_rng(0)
    start = rng.normal(size=3)
    adam, parameters, moments = Adam(start, (0.8, 0.99)), start.copy(), no_moments(3)
    for gradient in rng.normal(size=(5, 3)):
        step, moments = adam_step(gradient, moments, 0.1, (0.8, 0.99))
        parameters = parameters + step
        adam.move(gradient, 0.1)
    np.testing.assert_array_equal(adam.parameters, parameters)
    np.testing.assert_array_equal(start, np.random.default_rng(0).normal(size=3))  # it is not written to


def test_a_descent_ends_when_it_has_settled_or_has_no_iterations_left():
    assert descend(lambda number: 1.0 / (number + 1), 100, settled=lambda losses: losses[-1] < 0.2) == (
        [1.0, 1 / 2, 1 / 3, 1 / 4, 1 / 5, 1 / 6],
        True,
        False,
    )
    assert descend(float, 3) == ([0.0, 1.0, 2.0], False, False)


@pytest.mark.parametrize("at", [0, 3])
def test_ctrl_c_keeps_complete_iterations_and_goes_through_before_the_first(at):
    def step(number):
        if number == at:
            raise KeyboardInterrupt
        return 0.0

    run = interruptible(lambda: descend(step, 10, kept="all is kept"))
    if at == 0:
        with on_interrupt("keep"), pytest.raises(KeyboardInterrupt):
            run()
        return
    with on_interrupt("keep"), pytest.warns(UserWarning, match="after 3 of 10 iterations; all is kept"):
        result = run()
    assert result == ([0.0] * 3, False, True)


@pytest.mark.parametrize(("loss", "gradient"), [(np.nan, [0.0]), (0.0, [np.inf])])
def test_a_divergence_is_told_with_its_iteration(loss, gradient):
    refuse_divergence(0, 0.0, np.zeros(1))
    with pytest.raises(FloatingPointError, match="diverged at iteration 8: lower learning_rate"):
        refuse_divergence(7, loss, np.array(gradient))
