"""Traces handed to ArviZ, old (InferenceData) and from 1.0 on (DataTree)."""

import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from pluri.inference import mcmc


def run():
    kernel = mcmc.NUTS(lambda x: (-0.5 * x @ x, -x))
    return mcmc.sample(kernel, np.zeros(2), n_draws=40, n_warmup=30, random_state=0, warn=False)


def test_export_to_arviz_keeps_draws_and_names():
    arviz = pytest.importorskip("arviz")
    trace = run()
    data = trace.to_arviz()
    assert_array_equal(data["posterior"]["x"].values, trace["x"])
    assert data["sample_stats"]["diverging"].dtype == bool
    assert "lp" in data["sample_stats"]
    assert_allclose(arviz.summary(data, round_to=12)["mean"], trace.summary()["mean"], atol=1e-9)


@pytest.mark.parametrize("names", [{}, {"InferenceData": object}], ids=["1.0", "1.3"])
def test_export_to_arviz_from_version_one_on(monkeypatch, names):
    # Its from_dict (of arviz_base) takes one dictionary of groups, whether it knows the name InferenceData or not.
    base = pytest.importorskip("arviz_base")
    monkeypatch.setitem(sys.modules, "arviz", SimpleNamespace(from_dict=base.from_dict, **names))
    trace = run()
    tree = trace.to_arviz()
    assert_array_equal(tree["posterior"]["x"].values, trace["x"])
    assert tree["sample_stats"]["diverging"].dtype == bool


def test_export_without_arviz_names_the_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "arviz", None)
    with pytest.raises(ImportError, match=r"pluri\[arviz\]"):
        run().to_arviz()


def test_the_advertisement_of_the_day_is_not_shown(tmp_path):
    # ArviZ before 1.0 warns at the first import of a day, which it notes in the user's cache: here there is none.
    pytest.importorskip("arviz")
    program = (
        "import warnings; warnings.filterwarnings('error', r'\\s*ArviZ is undergoing'); import numpy as np; "
        "from pluri.inference import mcmc; mcmc.Trace({'x': np.zeros((1, 4))}).to_arviz()"
    )
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path), "HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "ArviZ" not in done.stderr


@pytest.fixture(scope="module")
def conjugate():
    """Draws of the mean of a normal sample with variance 1 and a flat prior, and the sample."""
    y = np.random.default_rng(0).normal(1.0, 1.0, size=30)
    draws = np.random.default_rng(1).normal(y.mean(), 1 / np.sqrt(len(y)), size=(4, 1000))
    return mcmc.Trace({"m": draws}), y


def pointwise(y):
    return lambda draw: -0.5 * (y - draw["m"]) ** 2 - 0.5 * np.log(2 * np.pi)


def test_leave_one_out_of_arviz_is_that_of_the_closed_form(conjugate):
    arviz = pytest.importorskip("arviz")
    trace, y = conjugate
    data = trace.to_arviz(log_likelihood=pointwise(y), observed_data={"y": y})
    found = arviz.loo(data)
    n = len(y)
    others = (y.sum() - y) / (n - 1)
    variance = 1.0 + 1.0 / (n - 1)
    exact = (-0.5 * (y - others) ** 2 / variance - 0.5 * np.log(2 * np.pi * variance)).sum()
    # The weights have a variance of order 1/n: a Monte Carlo error below 0.01 for 4000 draws.
    assert float(getattr(found, "elpd_loo", None) or found.elpd) == pytest.approx(exact, abs=0.06)


def test_groups_may_be_functions_arrays_or_variables_of_the_trace(conjugate):
    pytest.importorskip("arviz")
    trace, y = conjugate
    rng = np.random.default_rng(2)
    stored = -0.5 * (y - trace["m"][..., None]) ** 2 - 0.5 * np.log(2 * np.pi)
    with_stored = mcmc.Trace({**trace.draws, "terms": stored})
    data = with_stored.to_arviz(
        log_likelihood="terms", posterior_predictive=lambda draw: {"new": rng.normal(draw["m"], 1, size=30)}
    )
    assert list(data["posterior"].data_vars) == ["m"]
    assert_array_equal(data["log_likelihood"]["terms"].values, stored)
    assert data["posterior_predictive"]["new"].shape == (4, 1000, 30)
    assert_allclose(trace.to_arviz(pointwise(y))["log_likelihood"]["y"].values, stored)
    assert_allclose(trace.to_arviz({"y": stored})["log_likelihood"]["y"].values, stored)


def test_groups_that_do_not_fit_are_refused(conjugate):
    pytest.importorskip("arviz")
    trace, y = conjugate
    with pytest.raises(KeyError, match="there is no variable 'terms'"):
        trace.to_arviz("terms")
    with pytest.raises(ValueError, match=r"posterior_predictive must have shape \(4, 1000, ...\) .* got \(30,\)"):
        trace.to_arviz(posterior_predictive={"y": y})
