"""The commands from end to end, against the same work done in Python."""

from __future__ import annotations

import csv
import inspect
import io
import json

import numpy as np
import pytest
from typer.testing import CliRunner

from pluri.cli.application import application
from pluri.cli.registry import find_model
from pluri.datasets import make_toy_hmm
from pluri.io import load, read_info, save
from pluri.metrics import one_to_one_accuracy
from pluri.sequences import CategoricalHMM, GaussianHMM

SETTINGS = ["--set", "n_components=5", "--set", "random_state=0", "--set", "n_iter=20", "--set", "tol=-inf"]


def run(*arguments, code=0):
    result = CliRunner().invoke(application, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result


@pytest.fixture(scope="module")
def toy():
    return make_toy_hmm(60, random_state=0)


@pytest.fixture(scope="module")
def folder(toy, tmp_path_factory):
    folder = tmp_path_factory.mktemp("commands")
    with open(folder / "toy.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "x", "state", "word"])
        ids = np.repeat(np.arange(len(toy.lengths)), toy.lengths)
        for number, x, state in zip(ids, toy.X[:, 0].tolist(), toy.states):
            writer.writerow([f"s{number}", repr(x), state, "abcde"[state]])
    np.save(folder / "toy.npy", toy.X)
    np.save(folder / "lengths.npy", toy.lengths)
    return folder


@pytest.fixture(scope="module")
def reference(toy):
    return GaussianHMM(5, random_state=0, n_iter=20, tol=-np.inf).fit(toy.X, lengths=toy.lengths)


@pytest.fixture(scope="module")
def saved(folder):
    run("fit", "GaussianHMM", folder / "toy.csv", *SETTINGS, "--columns", "x", "--sequence", "id", "-q",
        "-o", folder / "model.skops")  # fmt: skip
    return folder / "model.skops"


def test_fit_learns_what_python_learns(folder, saved, reference):
    model = load(saved)
    np.testing.assert_array_equal(model.transmat_, reference.transmat_)
    np.testing.assert_array_equal(model.means_, reference.means_)
    assert model.get_params() == reference.get_params()
    assert read_info(saved).notes == {"columns": ["x"], "sequence": "id"}


def test_fit_reports_on_stdout_as_json_and_shows_progress_on_stderr(folder, reference, tmp_path):
    result = run("fit", "gaussianhmm", folder / "toy.npy", *SETTINGS, "--lengths", folder / "lengths.npy", "--json",
                 "-o", tmp_path / "model.skops")  # fmt: skip
    report = json.loads(result.stdout)
    assert report["model"] == "GaussianHMM"
    assert report["n_iter"] == 20
    assert report["objective"] == pytest.approx(reference.objective_, rel=1e-9)
    assert report["interrupted"] is False
    assert report["output"] == str(tmp_path / "model.skops")
    assert "iteration 20/20" in result.stderr
    model = load(tmp_path / "model.skops")
    np.testing.assert_allclose(model.transmat_, reference.transmat_, rtol=1e-9)
    assert model.verbose == 0, "progress on the terminal is no property of the model"


def test_fit_streams_parquet_files(folder, toy, reference, tmp_path):
    arrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    ids = np.repeat(np.arange(len(toy.lengths)), toy.lengths)
    parquet.write_table(arrow.table({"id": ids, "x": toy.X[:, 0]}), tmp_path / "toy.parquet")
    run("fit", "GaussianHMM", tmp_path / "toy.parquet", *SETTINGS, "--sequence", "id", "-q",
        "-o", tmp_path / "model.skops")  # fmt: skip
    np.testing.assert_allclose(load(tmp_path / "model.skops").transmat_, reference.transmat_, rtol=1e-6)
    result = run("predict", tmp_path / "model.skops", tmp_path / "toy.parquet", "-o", tmp_path / "states.npy")
    assert "rows written" in result.stderr
    np.testing.assert_array_equal(
        np.load(tmp_path / "states.npy")[:, 0], load(tmp_path / "model.skops").predict(toy.X, toy.lengths)
    )


def table(text):
    rows = list(csv.reader(io.StringIO(text)))
    return rows[0], np.array(rows[1:])


def test_predict_gives_the_states_and_their_probabilities(folder, saved, toy, reference, tmp_path):
    names, cells = table(run("predict", saved, folder / "toy.csv").stdout)
    assert names == ["state"]
    np.testing.assert_array_equal(cells[:, 0].astype(int), reference.predict(toy.X, toy.lengths))
    result = run("predict", saved, folder / "toy.csv", "--proba", "-o", tmp_path / "states.csv")
    assert result.stdout == ""
    names, cells = table((tmp_path / "states.csv").read_text())
    assert names == ["state", "p_0", "p_1", "p_2", "p_3", "p_4"]
    np.testing.assert_array_equal(cells[:, 1:].astype(float), reference.predict_proba(toy.X, toy.lengths))
    found = json.loads(run("predict", saved, folder / "toy.csv", "--proba", "--json").stdout)
    np.testing.assert_array_equal(found["probabilities"], reference.predict_proba(toy.X, toy.lengths))
    np.testing.assert_array_equal(found["states"], reference.predict(toy.X, toy.lengths))
    report = json.loads(
        run("predict", saved, folder / "toy.csv", "--json", "--force", "-o", tmp_path / "states.csv").stdout
    )
    assert report == {"n_samples": 360, "columns": ["state"], "output": str(tmp_path / "states.csv")}


def test_score_is_the_log_likelihood_and_with_labels_the_accuracy(folder, saved, toy, reference):
    result = run("score", saved, folder / "toy.csv", "--label", "state", "--json")
    report = json.loads(result.stdout)
    assert report["log_likelihood"] == reference.score(toy.X, lengths=toy.lengths)
    assert report["n_sequences"] == 60
    accuracy = one_to_one_accuracy(toy.states, reference.predict(toy.X, toy.lengths))
    assert report["one_to_one_accuracy"] == accuracy
    assert "sequences by column 'id', as in the fit" in result.stderr
    assert "log likelihood per sample" in run("score", saved, folder / "toy.csv").stdout


def test_sample_draws_what_python_draws(saved, reference, tmp_path):
    names, cells = table(run("sample", saved, "-n", "7", "--seed", "3").stdout)
    X, states = reference.sample(7, random_state=3)
    assert names == ["x", "state"]
    np.testing.assert_array_equal(cells[:, 0].astype(float), X[:, 0])
    np.testing.assert_array_equal(cells[:, 1].astype(int), states)
    run("sample", saved, "-n", "7", "--seed", "3", "-o", tmp_path / "drawn.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "drawn.npy"), np.column_stack([X, states]))
    drawn = json.loads(run("sample", saved, "-n", "7", "--seed", "3", "--json").stdout)
    np.testing.assert_array_equal(drawn["X"], X)


def test_inspect_tells_class_versions_parameters_and_fit(saved, reference):
    text = run("inspect", saved).stdout
    assert "pluri.sequences.gaussian.GaussianHMM" in text
    assert f"numpy {np.__version__}" in text
    assert reference.summary() in text
    report = json.loads(run("inspect", saved, "--json").stdout)
    assert report["parameters"]["n_components"] == 5
    assert report["parameters"]["tol"] is None, "infinity is no JSON"
    assert report["fit"]["n_iter"] == 20
    assert report["notes"]["columns"] == ["x"]


def test_inspect_shows_an_unfitted_model_too(tmp_path):
    save(GaussianHMM(3), tmp_path / "model.skops")
    assert "not fitted" in run("inspect", tmp_path / "model.skops").stdout


def test_models_are_listed_with_their_parameters():
    text = run("models").stdout
    listed = json.loads(run("models", "--json").stdout)
    for model in listed:
        assert model["name"] in text
        kind = find_model(model["name"])
        assert list(model["parameters"]) == list(inspect.signature(kind).parameters)
        assert model["summary"] in " ".join(kind.__doc__.split())
    families = {model["name"]: model["family"] for model in listed}
    assert families["GaussianHMM"] == families["CategoricalHMM"] == "Hidden Markov models"
    assert families["GaussianMixture"] == "Mixtures"
    assert text.index("Hidden Markov models") < text.index("GaussianHMM  ") < text.index("Mixtures\n")


def test_one_model_is_explained():
    text = " ".join(run("models", "gaussianhmm").stdout.split())
    assert "means_prior=0, means_weight=0 float or array Location and weight of the normal prior on the means" in text
    assert "PoissonHMM" not in text
    told = json.loads(run("models", "GaussianHMM", "--json").stdout)
    assert list(told["parameters"]) == list(inspect.signature(GaussianHMM).parameters)
    assert told["parameters"]["means_weight"]["default"] == 0
    refused = run("models", "GausianHMM", code=2).stderr.replace("│", " ")
    assert "did you mean GaussianHMM?" in " ".join(refused.split())


def test_words_are_fitted_predicted_and_drawn(tmp_path):
    words = ["the", "dog", "007", "the", "cat", "", "a", "dog", "007"] * 3
    (tmp_path / "words.csv").write_text("word\n" + "\n".join(words) + "\n")
    run("fit", "CategoricalHMM", tmp_path / "words.csv", "--set", "n_components=2", "--set", "random_state=0", "-q",
        "-o", tmp_path / "model.skops")  # fmt: skip
    model = load(tmp_path / "model.skops")
    X = np.array([word or None for word in words], dtype=object).reshape(-1, 1)
    same = CategoricalHMM(2, random_state=0).fit(X)
    np.testing.assert_array_equal(model.emissionprob_, same.emissionprob_)
    assert "007" in model.vocabulary_[0]
    (tmp_path / "new.csv").write_text("word\n007\n007\n")
    _, cells = table(run("predict", tmp_path / "model.skops", tmp_path / "new.csv").stdout)
    np.testing.assert_array_equal(cells[:, 0].astype(int), same.predict(["007", "007"]))
    names, cells = table(run("sample", tmp_path / "model.skops", "-n", "20").stdout)
    assert names == ["word", "state"]
    assert set(cells[:, 0]) <= set(words)


def test_a_classifier_learns_from_labels(folder, toy, tmp_path):
    arguments = [folder / "toy.csv", "--columns", "x", "--sequence", "id", "-q", "-o", tmp_path / "model.skops"]
    assert "--label must be given" in run("fit", "HMMClassifier", *arguments, code=2).stderr.replace("│\n│ ", "")
    run("fit", "HMMClassifier", *arguments, "--label", "word", "--set", "hmm=GaussianHMM", "--set", "pseudo_count=0.5")
    names, cells = table(run("predict", tmp_path / "model.skops", folder / "toy.csv", "--proba").stdout)
    assert names == ["label", "p_a", "p_b", "p_c", "p_d", "p_e"]
    assert (cells[:, 0] == np.array(list("abcde"))[toy.states]).mean() > 0.98
    report = json.loads(run("score", tmp_path / "model.skops", folder / "toy.csv", "--label", "word", "--json").stdout)
    assert report["accuracy"] == (cells[:, 0] == np.array(list("abcde"))[toy.states]).mean()
    assert "--label must be given" in run("score", tmp_path / "model.skops", folder / "toy.csv", code=1).stderr
    assert "HMMClassifier" in run("inspect", tmp_path / "model.skops").stdout
    assert table(run("sample", tmp_path / "model.skops", "-n", "3").stdout)[0] == ["x", "state"]


def test_a_search_finds_the_number_of_states(folder, toy, tmp_path):
    arguments = [folder / "toy.csv", "--columns", "x", "--sequence", "id", "-q", "-o", tmp_path / "model.skops"]
    assert "--set estimator=GaussianHMM" in plain(run("fit", "HMMSearchCV", *arguments, code=2).stderr)
    run("fit", "HMMSearchCV", *arguments, "--set", "estimator=GaussianHMM", "--set", "n_components=[2, 5]", "--set",
        "estimator__random_state=0", "--set", "random_state=0", "--set", "cv=3")  # fmt: skip
    assert load(tmp_path / "model.skops").best_params_ == {"n_components": 5}
    best = load(tmp_path / "model.skops").best_estimator_
    report = json.loads(run("score", tmp_path / "model.skops", folder / "toy.csv", "--json").stdout)
    assert report["log_likelihood"] == best.score(toy.X, lengths=toy.lengths)
    assert json.loads(run("inspect", tmp_path / "model.skops", "--json").stdout)["fit"]["best_params"] == {
        "n_components": 5
    }
    _, cells = table(run("predict", tmp_path / "model.skops", folder / "toy.csv").stdout)
    np.testing.assert_array_equal(cells[:, 0].astype(int), best.predict(toy.X, toy.lengths))


def plain(text):
    """What a message says, without the box around it."""
    return " ".join(text.replace("│", " ").split())


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["fit", "NoModel", "toy.csv", "-o", "new"], 2, "MODEL must be the name of a model"),
        (["fit", "GaussianHMM", "toy.csv", "-o", "new", "--set", "size=3"], 2, "valid are acceleration, algorithm"),
        (["fit", "GaussianHMM", "toy.csv", "-o", "new", "--set", "n_components"], 2, "the form name=value"),
        (["fit", "GaussianHMM", "toy.csv", "-o", "toy.csv"], 2, "which exists: add --force to replace it"),
        (["fit", "GaussianHMM", "toy.csv", "-o", "nowhere/new"], 2, "must lie in an existing folder"),
        (["fit", "GaussianHMM", "toy.csv", "-o", "."], 2, "must name a file, got the folder"),
        (["fit", "GaussianHMM", "toy.csv", "-o", "new", "--label", "state"], 2, "learns without labels"),
        (["fit", "GaussianHMM", "toy.csv"], 2, "--output"),
        (["fit", "GaussianHMM", "toy.csv", "-o", "new", "--color"], 2, "No such option"),
        (["fit", "GaussianHMM", "absent.csv", "-o", "new"], 1, "error: data must name an existing file"),
        (["fit", "GaussianHMM", "toy.csv", "-o", "new", "--columns", "z"], 1, "error: toy.csv must have a column 'z'"),
        (["fit", "GaussianHMM", "toy.csv", "-o", "new", "--columns", "x,word"], 1, "'word' must hold numbers for Gaus"),
        (["fit", "GaussianHMM", "toy.csv", "-o", "new", "--columns", "x", "--set", "n_components=0"], 1, "at least 1"),
        (["fit", "GaussianHMM", "toy.csv", "-o", "new", "--columns", "x", "--set", "tol=small"], 1, "error: tol must"),
        (["predict", "toy.csv", "toy.csv"], 1, "error: path must name a model saved by pluri.io.save"),
        (["predict", "absent.skops", "toy.csv"], 1, "error: path must name an existing model file"),
        (["predict", "model.skops", "toy.csv", "-o", "new.txt"], 2, "must be a file of type .csv, .npy"),
        (["predict", "model.skops", "toy.csv", "--columns", "word"], 1, "'word' must hold numbers for GaussianHMM"),
        (["predict", "model.skops", "toy.csv", "--columns", "x,state"], 1, "error: X has 2 features"),
        (["sample", "model.skops", "-n", "0"], 2, "n-samples"),
        (["inspect", "toy.npy"], 1, "error: path must name a model saved by pluri.io.save"),
        (["demo", "-o", "toy.csv"], 2, "must name a folder, got the file"),
        ([], 2, "Usage"),
    ],
)  # fmt: skip
def test_mistakes_give_one_sentence_and_the_right_code(folder, saved, monkeypatch, arguments, code, words):
    monkeypatch.chdir(folder)
    before = sorted(item.name for item in folder.iterdir())
    result = run(*arguments, code=code)
    assert words in plain(result.output)
    if code == 1:
        assert result.stdout == ""
        assert result.stderr.count("error: ") == 1
        assert result.stderr.endswith("\n")
        assert result.stderr.count("\n") == 1 or "sequences by column" in result.stderr or "iteration" in result.stderr
    assert sorted(item.name for item in folder.iterdir()) == before


def test_a_failed_prediction_leaves_the_old_file_as_it_was(folder, saved, tmp_path):
    (tmp_path / "states.csv").write_text("precious")
    run("predict", saved, folder / "toy.csv", "--columns", "x,state", "-o", tmp_path / "states.csv", "--force", code=1)
    assert (tmp_path / "states.csv").read_text() == "precious"
    assert [item.name for item in tmp_path.iterdir()] == ["states.csv"]


def test_warnings_are_lines_on_stderr(folder, tmp_path):
    result = run("fit", "GaussianHMM", folder / "toy.csv", "--columns", "x", "--set", "n_components=5", "--set",
                 "n_iter=2", "-q", "--json", "-o", tmp_path / "model.skops")  # fmt: skip
    assert "warning: EM did not converge in n_iter=2 iterations" in result.stderr
    json.loads(result.stdout)


def test_missing_cells_are_missing_values(toy, tmp_path):
    X = toy.X.copy()
    X[::7] = np.nan
    cells = ["" if np.isnan(x) else repr(x) for x in X[:, 0].tolist()]
    (tmp_path / "gaps.csv").write_text("x,k\n" + "\n".join(f"{cell},1" for cell in cells))
    run("fit", "GaussianHMM", tmp_path / "gaps.csv", "--columns", "x", *SETTINGS, "-q", "-o", tmp_path / "model.skops")
    same = GaussianHMM(5, random_state=0, n_iter=20, tol=-np.inf).fit(X)
    np.testing.assert_array_equal(load(tmp_path / "model.skops").means_, same.means_)
