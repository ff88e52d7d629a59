"""scikit-learn's own tests of its Gaussian mixture, run with ours in its place.

The module is loaded afresh with one name exchanged. What is not expected to pass is listed with the reason.
"""

import importlib.util
import inspect

import numpy as np
import pytest

from pluri.mixtures import GaussianMixture

SUITE = "sklearn.mixture.tests.test_gaussian_mixture"
PRIVATE = "calls private methods or replaces private functions of scikit-learn's class"
EXCUSED = {
    "test_gaussian_mixture_precisions_init": PRIVATE,
    "test_gaussian_mixture_all_init_does_not_estimate_gaussian_parameters": PRIVATE,
    "test_gaussian_mixture_precisions_init_diag": "needs components in the order of scikit-learn's stream of k-means",
    "test_gaussian_mixture_array_api_compliance": "computes with other array libraries, which ours does not",
    "test_gaussian_mixture_raises_where_array_api_not_implemented": "same",
}


def _load():
    pytest.importorskip(SUITE)
    spec = importlib.util.find_spec(SUITE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.GaussianMixture = GaussianMixture
    return module


MODULE = _load()
pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::pluri.mixtures.DeadComponentWarning"),
]


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
