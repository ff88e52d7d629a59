"""Schedules: closed forms, limits, and what is refused. Nothing here needs JAX."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from pluri.networks import ConstantRate, EpochRamp, ExponentialDecay, InverseSigmoidDecay, LinearDecay
from pluri.networks.schedules import SCHEDULES, as_schedule, probability_at

STEPS = np.arange(0, 3000)


@pytest.mark.parametrize(
    ("schedule", "formula"),
    [
        (LinearDecay(0.001, 1.0, 0.2), lambda i: np.maximum(0.2, 1 - 0.001 * i)),
        (LinearDecay(0.001, 1.3), lambda i: np.clip(1.3 - 0.001 * i, 0, 1)),
        (ExponentialDecay(0.99), lambda i: 0.99**i),
        (InverseSigmoidDecay(100.0), lambda i: 100 / (100 + np.exp(i / 100))),
        (InverseSigmoidDecay(100.0, 0.25), lambda i: np.maximum(0.25, 100 / (100 + np.exp(i / 100)))),
        (ConstantRate(0.3), lambda i: np.full(i.shape, 0.3)),
        (EpochRamp(0.9, 0.5, 10), lambda i: 0.9 - 0.4 * np.minimum(1, i / 10)),
    ],
)
def test_schedules_follow_their_formulas_and_never_rise(schedule, formula):
    found = schedule(STEPS)
    assert_allclose(found, formula(STEPS), rtol=1e-12, atol=1e-300)
    assert (np.diff(found) <= 1e-15).all()
    assert found.min() >= 0
    assert found.max() <= 1
    assert float(schedule(7)) == pytest.approx(found[7])


@given(st.floats(0.0, 1e6))
def test_the_inverse_sigmoid_has_the_midpoint_that_was_asked_for(midpoint):
    schedule = InverseSigmoidDecay.from_midpoint(midpoint)
    assert schedule.k * np.log(schedule.k) == pytest.approx(midpoint, rel=1e-9, abs=1e-9)
    assert float(schedule(midpoint)) == pytest.approx(0.5, abs=1e-9)
    assert float(schedule(0)) == pytest.approx(schedule.k / (schedule.k + 1))


def test_far_steps_do_not_overflow():
    with np.errstate(all="raise", under="ignore"):
        assert float(InverseSigmoidDecay(2.0)(1e6)) == 0.0


@pytest.mark.parametrize("name", SCHEDULES)
def test_names_are_placed_by_the_length_of_the_training(name):
    schedule = as_schedule(name, 1000, 0.25)
    values = [probability_at(schedule, step, step // 20) for step in range(1000)]
    assert values[0] >= 0.5
    assert values[-1] == pytest.approx(0.25, abs=0.01)
    assert as_schedule(None, 10, 0.0)(5) == 1.0


@pytest.mark.parametrize(
    "make",
    [
        lambda: ConstantRate(1.2),
        lambda: ConstantRate(-0.1),
        lambda: EpochRamp(1.5, 0.0),
        lambda: LinearDecay(0.1, minimum=2.0),
        lambda: ExponentialDecay(1.0),
        lambda: InverseSigmoidDecay(0.5),
        lambda: as_schedule("cosine", 10, 0.0),
        lambda: as_schedule(0.5, 10, 0.0),
        lambda: probability_at(lambda i: 1.5, 3, 0),
        lambda: probability_at(lambda i: float("nan"), 3, 0),
    ],
)
def test_what_is_no_probability_is_refused(make):
    with pytest.raises(ValueError, match=r"must (be|give)"):
        make()


def test_without_jax_everything_else_works_and_a_class_says_what_to_install():
    program = """
        import importlib, pkgutil, sys
        class Missing:
            def find_spec(self, name, path=None, target=None):
                if name.split(".")[0] in ("jax", "jaxlib", "equinox", "optax"):
                    raise ImportError(f"no module named {name}")
        sys.meta_path.insert(0, Missing())
        import pluri
        for module in pkgutil.iter_modules(pluri.__path__, "pluri."):
            importlib.import_module(module.name)
        from pluri.networks import InverseSigmoidDecay
        print(round(float(InverseSigmoidDecay.from_midpoint(9)(9)), 3))
        for name in ("SequenceDecoder", "FrameTagger", "SequenceParser"):
            try:
                getattr(pluri.networks, name)
            except ImportError as error:
                print(error)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    sentence = 'pluri.networks needs jax, which is not installed: pip install "pluri[jax]"'
    assert done.stdout.splitlines() == ["0.5", sentence, sentence, sentence]
