"""Fixtures that the tests of linear systems share."""

import importlib.util
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def dense():
    """Conditioning in the joint Gaussian distribution of all states and outputs."""
    path = Path(__file__).with_name("dense.py")
    spec = importlib.util.spec_from_file_location("pluri_tests_linear_dense", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
