"""scikit-learn's own tests of latent Dirichlet allocation, run with ours in its place.

The module is loaded afresh with one name exchanged. What is not expected to pass is listed with the reason.
"""

import importlib.util
import inspect

import numpy as np
import pytest

from pluri.topics import LatentDirichletAllocation

#: Their fits end before the bound has settled, which ours tells.
pytestmark = pytest.mark.filterwarnings("ignore:.*the bound still rises:sklearn.exceptions.ConvergenceWarning")
SUITE = "sklearn.decomposition.tests.test_online_lda"
EXCUSED = {
    "test_lda_preplexity_mismatch": "calls a private method of scikit-learn's class",
    "test_verbosity": "counts lines of text; ours shows a progress bar",
    "test_dirichlet_expectation": "is about a private function of scikit-learn",
}


def _load():
    spec = importlib.util.find_spec(SUITE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.LatentDirichletAllocation = LatentDirichletAllocation
    return module


MODULE = _load()


@pytest.fixture
def global_dtype():
    return np.float64  # scikit-learn's default too; parameters are float64 whatever the type of the data


@pytest.fixture
def global_random_seed():
    return 42


def test_every_excuse_is_of_a_test_that_exists():
    assert all(hasattr(MODULE, name) for name in EXCUSED)


for _name, _test in inspect.getmembers(MODULE, inspect.isfunction):
    if _name.startswith("test_") and _name not in EXCUSED:
        globals()[_name] = _test
