"""Pages about models that are not topic models."""

from __future__ import annotations

import re

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from pluri.mixtures import GaussianMixture
from pluri.report import model_report
from pluri.report.fit_curve import fit_curve
from pluri.report.tables import array_table, shown
from pluri.sequences import GaussianHMM


def cells(page, name):
    """Numbers of the table below a heading."""
    table = re.search(rf"<h3>{name} [^<]*</h3>.*?</table>", page, re.DOTALL)[0]
    return [float(text) for text in re.findall(r"<td[^>]*>([^<]+)</td>", table)]


def test_tables_hold_the_fitted_numbers(tmp_path):
    X = np.random.default_rng(0).normal(size=(200, 2))
    model = GaussianHMM(3, random_state=0, n_iter=5, tol=-np.inf).fit(X)
    page = model_report(model, tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text() == page
    assert cells(page, "transmat") == pytest.approx(model.transmat_.ravel().tolist(), rel=1e-3)
    assert cells(page, "means") == pytest.approx(model.means_.ravel().tolist(), rel=1e-3)
    assert str(model.summary()).splitlines()[0] in page.replace("&#x27;", "'")
    assert 'class="curve"' in page
    assert "<script" not in page
    assert "n_components" in page


def test_the_curve_is_the_objective_of_each_run():
    X = np.random.default_rng(0).normal(size=(60, 2))
    model = GaussianMixture(2, random_state=0, n_init=3).fit(X)
    curve = fit_curve(model)
    assert curve.step == "iteration"
    for run, values in enumerate(curve.values):
        np.testing.assert_array_equal(values, model.history_.run(run).objective)
    assert fit_curve(object()) is None


def test_long_arrays_are_cut_and_say_so():
    table = array_table(np.arange(5000.0).reshape(100, 50))
    assert table.count("<td") == 24 * 24
    assert "first 24 x 24 of 100 x 50" in table
    assert array_table(np.array(["<b>", "x"])).count("&lt;b&gt;") == 1
    assert "nan" in array_table(np.array([[np.nan, 1.0]]))
    assert [shown(value) for value in (True, 12345, 0.25, None, "a")] == ["yes", "12,345", "0.25", "none", "a"]
    assert len(shown("x" * 999)) == 200


def test_what_is_no_fitted_model_is_refused():
    with pytest.raises(NotFittedError):
        model_report(GaussianMixture(2))
    with pytest.raises(TypeError, match="model must be an estimator"):
        model_report([1, 2])
