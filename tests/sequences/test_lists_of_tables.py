"""Lists of data frames: names of columns are kept and compared; arrays of objects are lists too."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from pluri.dynamics import LinearDynamicalSystem, PoissonDynamicalSystem
from pluri.sequences import DrivenHMM, GaussianHMM, InfiniteHMM, RegressionHMM, SequenceSVC, SequenceSVR

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
MODELS = {
    "hmm": GaussianHMM(2, n_iter=2, random_state=0),
    "infinite": InfiniteHMM(n_draws=2, n_warmup=1, n_chains=1, init_components=3, random_state=0),
    "linear": LinearDynamicalSystem(1, max_iter=2),
    "counts": PoissonDynamicalSystem(1, max_iter=2),
    "svc": SequenceSVC(psd="clip"),
    "svr": SequenceSVR(psd="clip"),
}


@pytest.fixture
def tables():
    rng = np.random.default_rng(0)
    return [pd.DataFrame(rng.poisson([2, 5, 9], (n, 3)).astype(float), columns=["x", "u", "v"]) for n in (9, 7, 8, 10)]


def fitted(name, X):
    model = clone(MODELS[name])
    return model.fit(X, [0, 1, 0, 1]) if name.startswith("sv") else model.fit(X)


@pytest.mark.filterwarnings("ignore:the chains have not settled")
@pytest.mark.parametrize("name", MODELS)
def test_names_of_columns_are_learned_and_compared(name, tables):
    model = fitted(name, tables)
    assert model.feature_names_in_.tolist() == ["x", "u", "v"]
    swapped = [table[["u", "x", "v"]] for table in tables]
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(swapped)
    with pytest.raises(ValueError, match=r"same columns in the same order.*item 2"):
        fitted(name, [*tables[:2], swapped[2], tables[3]])
    found = model.predict(tables)
    assert_allclose(fitted(name, [table.to_numpy() for table in tables]).predict([t.to_numpy() for t in tables]), found)


def test_inputs_have_names_in_lists_too(tables):
    by_name = RegressionHMM(2, inputs=["u"], n_iter=2, random_state=0).fit(tables)
    by_number = RegressionHMM(2, inputs=[1], n_iter=2, random_state=0).fit([table.to_numpy() for table in tables])
    assert_array_equal(by_name.coef_, by_number.coef_)
    driven = DrivenHMM(GaussianHMM(2, n_iter=2, random_state=0), transition_inputs=["u"])
    assert np.isfinite(cross_val_score(driven, tables, cv=2)).all()


@pytest.mark.parametrize("name", ["hmm", "svc", "linear"])
def test_an_array_of_arrays_is_a_list(name, tables):
    X = np.empty(4, dtype=object)
    X[:] = [table.to_numpy() for table in tables]
    assert_array_equal(fitted(name, X).predict(X), fitted(name, list(X)).predict(list(X)))
