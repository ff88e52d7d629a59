"""What is missing is named with the command that brings it."""

import sys

import numpy as np
import pytest

from pluri.engine.extras import import_pandas
from pluri.inference.mcmc import Trace
from pluri.neurons.models import two_neurons


def test_without_pandas_a_data_frame_says_what_it_needs(monkeypatch):
    trace = Trace({"x": np.array([[0.0, 1.0, 0.5, 0.2]])})
    sim = two_neurons()
    sim.record("/net/a/soma", "Vm")
    result = sim.run(1.0)
    monkeypatch.setitem(sys.modules, "pandas", None)
    for call in (import_pandas, result.to_frame, trace.summary().to_frame):
        with pytest.raises(ImportError, match="a data frame needs pandas: pip install pandas"):
            call()
