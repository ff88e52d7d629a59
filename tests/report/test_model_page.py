"""Pages about models that are not topic models."""

from __future__ import annotations

import re

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from pluri.dynamics import LinearDynamicalSystem
from pluri.embedding import SNE
from pluri.factors import LogisticPCA
from pluri.mixtures import GaussianMixture
from pluri.processes import GaussianProcessRegressor
from pluri.processes.dpp import DPPSelector
from pluri.report import model_report
from pluri.report.data_figures import _labels_of, _map_of
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


def headings(page):
    return re.findall(r'<h3>([^<]+)</h3><img class="drawn"', page)


def tables():
    rng = np.random.default_rng(0)
    return np.concatenate([rng.normal(center, 1.0, (40, 3)) for center in (0, 6)])


@pytest.mark.parametrize(
    ("fitted", "expected"),
    [
        (lambda X: GaussianHMM(2, random_state=0).fit(X), ["States of 80 steps", "From state to state"]),
        (lambda X: GaussianMixture(2, random_state=0).fit(X), ["What is predicted of 80 rows"]),
        (lambda X: LinearDynamicalSystem(1, random_state=0).fit(X), ["The first column, and 10 rows to come"]),
        (
            lambda X: LogisticPCA(2, random_state=0).fit(X > 3),
            ["Where 80 rows are: the two coordinates that vary most"],
        ),
        (lambda X: DPPSelector(5, random_state=0).fit(X), ["5 of 80 rows"]),
        (lambda X: GaussianProcessRegressor().fit(X, X[:, 0]), ["What is predicted of 80 rows"]),
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_data_are_drawn_as_each_kind_of_model_sees_them(fitted, expected):
    X = tables()
    model = fitted(X)
    page = model_report(model, X=X)
    assert headings(page) == expected
    assert page.count("data:image/png;base64,") == len(expected)
    assert headings(model_report(model)) == []


def test_the_first_sequence_is_drawn_and_holes_stay_where_they_are():
    X = tables()
    X[3, 1] = np.nan
    page = model_report(GaussianHMM(2, random_state=0).fit(X, lengths=[30, 50]), X=X, lengths=[30, 50])
    assert headings(page) == ["States of 30 steps", "From state to state"]
    assert headings(model_report(GaussianMixture(2, random_state=0).fit(X), X=X)) == ["What is predicted of 80 rows"]


def test_rows_that_do_not_belong_are_refused():
    X = tables()
    with pytest.raises(ValueError, match="X must be the rows that the choice was made from, got 3 rows"):
        model_report(DPPSelector(5, random_state=0).fit(X), X=X[:3])
    with pytest.raises(ValueError, match="X must not be given for SNE, whose page holds the data of its fit"):
        model_report(SNE(perplexity=5, random_state=0).fit(X), X=X)
    with pytest.raises(ValueError, match="features"):
        model_report(GaussianMixture(2, random_state=0).fit(X), X=X[:, :2])


def test_a_map_of_rows_shows_their_principal_components():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 4)) @ rng.normal(size=(4, 4)) + 5.0
    places, names = _map_of(X, list("0123"))
    scores = np.linalg.svd((X - X.mean(axis=0)) / X.std(axis=0), full_matrices=False)
    np.testing.assert_allclose(np.abs(places), np.abs(scores[0] * scores[1])[:, :2], atol=1e-9)
    assert names == ("first principal component", "second")
    np.testing.assert_array_equal(_map_of(X[:, :2], list("01"))[0], X[:, :2])


def test_a_curve_of_one_column_is_drawn_against_it():
    X = np.random.default_rng(0).normal(size=(30, 1))
    model = GaussianProcessRegressor(random_state=0).fit(X, np.sin(X[:, 0]))
    title, figure = _labels_of(model, X, ["0"])
    (ax,) = figure.axes
    (line,) = ax.get_lines()
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("column 0", "predicted")
    np.testing.assert_array_equal(line.get_xdata(), np.sort(X[:, 0]))
    np.testing.assert_array_equal(line.get_ydata(), model.predict(X)[np.argsort(X[:, 0])])
    assert title == "What is predicted of 30 rows"


def test_facts_are_told_in_words():
    page = model_report(GaussianMixture(2, random_state=0).fit([[0.0], [0.1], [5.0], [5.1]]))
    assert re.search(r">columns<.*?>1<", page, re.DOTALL)
    assert re.search(r">iterations<", page)
    assert "n features in" not in page
