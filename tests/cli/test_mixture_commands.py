"""The commands on mixtures: tables whose rows do not depend on each other, against the same work done in Python."""

from __future__ import annotations

import csv
import io
import json
import warnings

import numpy as np
import pytest
from typer.testing import CliRunner

import pluri.mixtures
from pluri.cli.application import application
from pluri.factors import LogisticPCA
from pluri.io import load, save
from pluri.mixtures import CategoricalMixture, DPMeans, GaussianMixture, NaiveBayes


def run(*arguments, code=0):
    result = CliRunner().invoke(application, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result


def table(text):
    rows = list(csv.reader(io.StringIO(text)))
    return rows[0], np.array(rows[1:])


def plain(text):
    return " ".join(text.replace("│", " ").split())


def write(path, X, names, kind=None):
    lines = [",".join(names + (["kind"] if kind is not None else []))]
    for place, row in enumerate(X.tolist()):
        lines.append(",".join([*map(repr, row), *([kind[place]] if kind is not None else [])]))
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    return np.vstack([rng.normal(0, 1, (40, 2)), rng.normal(8, 1, (20, 2))])


@pytest.fixture(scope="module")
def folder(rows, tmp_path_factory):
    folder = tmp_path_factory.mktemp("mixtures")
    write(folder / "rows.csv", rows, ["x", "y"], kind=["near"] * 40 + ["far"] * 20)
    rng = np.random.default_rng(1)
    counts = np.vstack([rng.poisson(1, (30, 4)), rng.poisson(9, (30, 4))]).astype(float)
    write(folder / "counts.csv", counts, list("abcd"))
    write(folder / "votes.csv", rng.multinomial(12, [0.1, 0.2, 0.3, 0.4], 60).astype(float), list("abcd"))
    write(folder / "marks.csv", (counts > 3).astype(float), list("abcd"))
    run("fit", "gaussianmixture", folder / "rows.csv", "--columns", "x,y", "--set", "n_components=2", "--set",
        "random_state=0", "-q", "-o", folder / "model.skops")  # fmt: skip
    return folder


@pytest.fixture(scope="module")
def reference(rows):
    return GaussianMixture(2, random_state=0).fit(rows)


def test_the_score_is_the_total_and_its_mean(folder, rows, reference):
    report = json.loads(run("score", folder / "model.skops", folder / "rows.csv", "--label", "kind", "--json").stdout)
    total = reference.score_samples(rows).sum()
    assert report["log_likelihood"] == pytest.approx(total, rel=1e-12)
    assert report["log_likelihood_per_sample"] == pytest.approx(total / 60, rel=1e-12)
    assert report["one_to_one_accuracy"] == 1.0
    assert "n_sequences" not in report


def test_rows_are_labelled_with_components(folder, rows, reference):
    names, cells = table(run("predict", folder / "model.skops", folder / "rows.csv", "--proba").stdout)
    assert names == ["component", "p_0", "p_1"]
    np.testing.assert_array_equal(cells[:, 0].astype(int), reference.predict(rows))
    np.testing.assert_array_equal(cells[:, 1:].astype(float), reference.predict_proba(rows))
    found = json.loads(run("predict", folder / "model.skops", folder / "rows.csv", "--json").stdout)
    assert found == {"components": reference.predict(rows).tolist()}


def test_rows_are_drawn_with_the_seed_or_the_model_s_own(folder, reference):
    names, cells = table(run("sample", folder / "model.skops", "-n", "7").stdout)
    X, components = reference.sample(7)
    assert names == ["x", "y", "component"]
    np.testing.assert_array_equal(cells.astype(float), np.column_stack([X, components]))
    drawn = json.loads(run("sample", folder / "model.skops", "-n", "7", "--seed", "5", "--json").stdout)
    X, components = reference.sample(7, random_state=5)
    np.testing.assert_array_equal(drawn["X"], X)
    assert drawn["components"] == components.tolist()


def test_a_fitted_mixture_is_described_and_an_unfitted_one_said_to_be(folder, reference, tmp_path):
    text = run("inspect", folder / "model.skops").stdout
    assert "not fitted" not in text
    for weight, mean in zip(reference.weights_, reference.means_):
        assert f"{weight:.4f}" in text
        assert f"x: {mean[0]:.4g}, y: {mean[1]:.4g}" in text  # by the names in the file
    fit = json.loads(run("inspect", folder / "model.skops", "--json").stdout)["fit"]
    assert fit["weights"] == reference.weights_.tolist()
    assert fit["lower_bound"] == reference.lower_bound_
    save(GaussianMixture(2), tmp_path / "new.skops")
    assert "not fitted" in run("inspect", tmp_path / "new.skops").stdout


@pytest.mark.parametrize(
    ("name", "data", "settings"),
    [
        ("BernoulliMixture", "marks", {"n_components": 2}),
        ("PoissonMixture", "counts", {"n_components": 2}),
        ("MultinomialMixture", "votes", {"n_components": 2}),
        ("CategoricalMixture", "marks", {"n_components": 2}),
        ("FactorAnalyzerMixture", "counts", {"n_components": 2}),
        ("ExponentialFamilyPCAMixture", "counts", {"n_components": 2, "max_iter": 20}),
        ("DirichletProcessMixture", "counts", {"n_draws": 4, "n_warmup": 10, "n_chains": 2}),
        ("BayesianBernoulliMixture", "marks", {"n_components": 3, "n_chains": 2}),
        ("NonparametricFactorAnalyzerMixture", "counts", {"max_iter": 20}),
    ],
)
def test_every_mixture_goes_through_all_commands(folder, tmp_path, name, data, settings):
    path, model = folder / f"{data}.csv", tmp_path / "model.skops"
    options = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
    run("fit", name, path, *options, "--set", "random_state=0", "-q", "-o", model)
    X = np.loadtxt(path, delimiter=",", skiprows=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        same = getattr(pluri.mixtures, name)(random_state=0, **settings).fit(X)
    names, cells = table(run("predict", model, path, "--proba").stdout)
    np.testing.assert_array_equal(cells[:, 0].astype(int), same.predict(X))
    np.testing.assert_array_equal(cells[:, 1:].astype(float), same.predict_proba(X))
    assert names == ["component", *(f"p_{place}" for place in range(cells.shape[1] - 1))]
    report = json.loads(run("score", model, path, "--json").stdout)
    assert report["log_likelihood"] == pytest.approx(same.score_samples(X).sum(), rel=1e-9)
    names, cells = table(run("sample", model, "-n", "5", "--seed", "2").stdout)
    assert names == [*"abcd", "component"]
    again = table(run("sample", model, "-n", "5", "--seed", "2").stdout)[1]
    np.testing.assert_array_equal(cells, again)
    assert "not fitted" not in run("inspect", model).stdout


def test_clusters_by_distance_have_no_likelihood_and_no_probabilities(folder, rows, tmp_path):
    model, data = tmp_path / "model.skops", folder / "rows.csv"
    told = run("fit", "DPMeans", data, "--columns", "x,y", "--set", "penalty=30", "--set", "random_state=0", "-q",
               "-o", model).stdout  # fmt: skip
    same = DPMeans(30, random_state=0).fit(rows)
    assert f"n clusters  {same.n_clusters_}\n" in told
    names, cells = table(run("predict", model, data).stdout)
    assert names == ["cluster"]
    np.testing.assert_array_equal(cells[:, 0].astype(int), same.predict(rows))
    report = json.loads(run("score", model, data, "--json").stdout)
    distance = ((rows - same.cluster_centers_[same.predict(rows)]) ** 2).sum()
    assert report["minus_squared_distance"] == pytest.approx(-distance, rel=1e-9)
    assert report["minus_squared_distance_per_sample"] == pytest.approx(-distance / 60, rel=1e-9)
    assert "--proba must not be given for DPMeans" in plain(run("predict", model, data, "--proba", code=2).stderr)
    assert "MODEL must be able to sample, got DPMeans" in run("sample", model, code=1).stderr


def test_words_are_categories_even_if_later_ones_look_like_numbers(tmp_path):
    words = [["a", "1"], ["b", "2"], ["a", "1"], ["b", "2"]] * 5
    (tmp_path / "words.csv").write_text("p,q\n" + "\n".join(map(",".join, words)))
    (tmp_path / "new.csv").write_text("q,p\n1,a\n2,b\n")
    model = tmp_path / "model.skops"
    run("fit", "CategoricalMixture", tmp_path / "words.csv", "--set", "n_components=2", "--set", "random_state=0",
        "-q", "-o", model)  # fmt: skip
    same = CategoricalMixture(2, random_state=0).fit(np.array(words, dtype=object))
    _, cells = table(run("predict", model, tmp_path / "new.csv").stdout)
    np.testing.assert_array_equal(cells[:, 0].astype(int), same.predict(np.array(words[:2], dtype=object)))
    assert set(table(run("sample", model, "-n", "9").stdout)[1][:, 1]) <= {"1", "2"}


def test_a_classifier_of_tables_learns_from_labels(folder, rows, tmp_path):
    model, data = tmp_path / "model.skops", folder / "rows.csv"
    run("fit", "NaiveBayes", data, "--label", "kind", "--set", "family=gaussian", "-q", "-o", model)
    same = NaiveBayes(family="gaussian").fit(rows, np.array(["near"] * 40 + ["far"] * 20))
    names, cells = table(run("predict", model, data, "--proba").stdout)
    assert names == ["label", "p_far", "p_near"]
    np.testing.assert_array_equal(cells[:, 1:].astype(float), same.predict_proba(rows))
    assert json.loads(run("score", model, data, "--label", "kind", "--json").stdout)["accuracy"] == 1.0


def test_what_a_table_does_not_have_is_refused(folder, tmp_path):
    data, target = folder / "rows.csv", ["-o", tmp_path / "new.skops"]
    told = plain(run("fit", "GaussianMixture", data, "--sequence", "kind", *target, code=2).stderr)
    assert "--sequence must not be given for GaussianMixture, whose rows do not depend on each other" in told
    told = plain(run("score", folder / "model.skops", data, "--sequence", "kind", code=2).stderr)
    assert "--sequence must not be given for GaussianMixture" in told
    told = plain(run("fit", "GaussianMixture", data, "--label", "kind", *target, code=2).stderr)
    assert "learns without labels; see NaiveBayes" in told
    assert "column 'kind' must hold numbers" in run("fit", "GaussianMixture", data, *target, code=1).stderr


def test_a_model_of_another_family_can_be_looked_at(tmp_path):
    X = (np.random.default_rng(0).random((30, 5)) < 0.5).astype(float)
    save(LogisticPCA(1, max_iter=50, alpha=1.0, random_state=0).fit(X), tmp_path / "model.skops")
    assert "not fitted" not in run("inspect", tmp_path / "model.skops").stdout
    assert load(tmp_path / "model.skops").n_features_in_ == 5
