"""Fixtures that the tests of the hidden Markov models share."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from pluri.engine import Batch
from pluri.sequences.learning import ChainPrior, HiddenMarkovProblem


def load(name):
    """Import a file beside this one (the tests are no package)."""
    path = Path(__file__).with_name(f"{name}.py")
    spec = importlib.util.spec_from_file_location(f"pluri_tests_sequences_{name}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def enumeration():
    """Brute force over all paths, with densities from scipy.stats."""
    return load("enumeration")


@pytest.fixture(scope="session")
def e_step():
    """Expected counts of one batch under a model whose parameters were set by hand."""

    def expect(model, X, lengths=None, weight=None, labels=None, in_log_space=False):
        emission, parameters = model._model()
        lengths = [len(X)] if lengths is None else lengths
        problem = HiddenMarkovProblem(model.n_components, emission, ChainPrior(), in_log_space=in_log_space)
        weight = None if weight is None else np.asarray(weight, dtype=float)
        return problem.expect(parameters, Batch(np.asarray(X), np.asarray(lengths), weight, labels))

    return expect


def pytest_collection_modifyitems(items):
    """Small problems are what these tests are made of: more parameters than numbers is no news here."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore::pluri.sequences.TooManyParametersWarning"))
