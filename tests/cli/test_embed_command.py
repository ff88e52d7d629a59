"""``pluri embed``: rows of a data file as a map, and saved embeddings as pages."""

from __future__ import annotations

import base64
import json
import re
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.manifold import Isomap
from sklearn.preprocessing import StandardScaler
from typer.testing import CliRunner

from pluri.cli.application import application
from pluri.report import embedding_report


def run(*arguments, code=0, command="embed"):
    result = CliRunner().invoke(application, [command, *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result


def data_of(path):
    return json.loads(re.search(r'id="data">(.*?)</script>', path.read_text(encoding="utf-8"), re.DOTALL)[1])


def coordinates_of(data):
    points = data["points"]
    packed = np.frombuffer(base64.b64decode(points["coordinates"]), dtype="<f4").reshape(points["axes"], -1)
    return packed.T * points["unit"] + points["middle"]


@pytest.fixture
def flowers(tmp_path):
    """A table of two kinds, written to a file; its numbers."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3)) * [1, 5, 0.2]
    lines = [f"{a},{b},{c},{'xy'[row % 2]},flower {row},{row / 8}" for row, (a, b, c) in enumerate(X.tolist())]
    (tmp_path / "flowers.csv").write_text("\n".join(["a,b,c,kind,name,age", *lines]) + "\n")
    return X


def test_the_map_has_the_coordinates_labels_and_colours_of_the_file(flowers, tmp_path):
    result = run(tmp_path / "flowers.csv", "-o", tmp_path / "map.html", "--method", "pca", "--color", "kind, age",
                 "--label", "name", "--title", "Flowers & bees")  # fmt: skip
    data = data_of(tmp_path / "map.html")
    np.testing.assert_allclose(coordinates_of(data), PCA(2, random_state=0).fit_transform(flowers), atol=1e-5)
    assert data["labels"] == [f"flower {row}" for row in range(40)]
    assert [(column["name"], column["kind"]) for column in data["columns"]] == [("kind", "classes"), ("age", "numbers")]
    assert "<title>Flowers &amp; bees</title>" in (tmp_path / "map.html").read_text()
    assert f"map of 40 points written to {tmp_path / 'map.html'}" in result.stderr
    assert result.stdout == ""


def test_columns_are_scaled_before_and_rows_unscaled_after(flowers, tmp_path):
    run(tmp_path / "flowers.csv", "-o", tmp_path / "map.html", "--method", "pca", "--columns", "a,b,c", "--standardize",
        "--coordinates", tmp_path / "places.csv")  # fmt: skip
    scaler = StandardScaler().fit(flowers)
    pca = PCA(2, random_state=0).fit(scaler.transform(flowers))
    expected = pca.transform(scaler.transform(flowers))
    written = np.loadtxt(tmp_path / "places.csv", delimiter=",", skiprows=1)
    np.testing.assert_allclose(written, expected)
    lattice = data_of(tmp_path / "map.html")["lattice"]
    first = np.frombuffer(base64.b64decode(lattice["rows"]), dtype="<f4")[:3]
    np.testing.assert_allclose(
        first, scaler.inverse_transform(pca.inverse_transform(lattice["corners"][:1]))[0], rtol=1e-4
    )


def test_rows_that_are_pictures_are_shown_as_pictures(tmp_path):
    X = np.random.default_rng(0).uniform(size=(20, 12))
    np.save(tmp_path / "pictures.npy", X)
    run(tmp_path / "pictures.npy", "-o", tmp_path / "map.html", "--method", "pca", "--pictures", "3x4")
    data = data_of(tmp_path / "map.html")
    assert (data["pictures"]["height"], data["pictures"]["width"], data["pictures"]["count"]) == (3, 4, 20)
    assert data["lattice"]["pictures"]["count"] == 576


def test_a_method_with_an_embedding_is_told_its_settings_and_seed(flowers, tmp_path):
    run(tmp_path / "flowers.csv", "-o", tmp_path / "map.html", "--method", "isomap", "--set", "n_neighbors=7",
        "--columns", "a,b,c", "--quiet")  # fmt: skip
    isomap = Isomap(n_neighbors=7).fit(flowers)
    facts = {"method": "Isomap", "features": 3, "standardized": False}
    assert (tmp_path / "map.html").read_text() == embedding_report(isomap, title="flowers.csv", columns={}, facts=facts)
    for place in ("one.npy", "two.npy"):
        settings = ["--set", "perplexity=5", "--set", "max_iter=250", "--seed", 3, "--columns", "a,b,c"]
        run(tmp_path / "flowers.csv", "-o", tmp_path / "map.html", "--method", "tsne", *settings,
            "--coordinates", tmp_path / place, "--force")  # fmt: skip
    np.testing.assert_array_equal(np.load(tmp_path / "one.npy"), np.load(tmp_path / "two.npy"))


def test_the_report_of_a_saved_embedding_is_a_map(tmp_path, monkeypatch):
    isomap = Isomap(n_neighbors=5).fit(np.random.default_rng(0).normal(size=(30, 4)))
    monkeypatch.setattr("pluri.io.load", lambda path: isomap)
    monkeypatch.setattr("pluri.io.read_info", lambda path: SimpleNamespace(notes={}))
    run(tmp_path / "model.skops", "-o", tmp_path / "map.html", "--title", "Mine", command="report")
    assert (tmp_path / "map.html").read_text() == embedding_report(isomap, title="Mine")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--method", "best"], "--method must be one of sne, mixture-sne, diffusion"),
        (["--method", "pca", "--set", "2"], "--set must have the form name=value"),
        (["--method", "pca", "--set", "k=2"], "--set must name a parameter of PCA, got 'k'"),
        (["--method", "pca", "--pictures", "3"], "--pictures must be a height and a width, as in 28x28, got '3'"),
        (["--method", "pca", "--columns", "a,b", "--pictures", "2x2"], "--pictures must be of 2 pixels"),
        (["--method", "pca", "--coordinates", "places.txt"], "--coordinates must be a file of type .csv, .npy"),
        (["--method", "pca", "-o", "map.pdf"], "--output must be a file of type .html, .htm"),
        (["--method", "pca", "-o", "nowhere/map.html"], "--output must lie in an existing folder"),
    ],
)
def test_options_that_cannot_be_meant_have_exit_code_two(flowers, tmp_path, monkeypatch, options, message):
    monkeypatch.chdir(tmp_path)
    shown = run("flowers.csv", "-o", "map.html", *options, code=2).stderr
    assert message.split(",")[0] in " ".join(shown.replace("│", " ").split())
    assert [path.name for path in tmp_path.iterdir()] == ["flowers.csv"]


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        (
            "a,b\n1,2\n3,x\n",
            [],
            "column 'b' must hold numbers for embed, got 'x' in row 2: choose others with --columns",
        ),
        ("a,b\n1,NA\n3,x\n", [], "column 'b' must hold numbers for embed, got 'x' in row 2"),
        (
            "a;b\n1;NA\n3;-2,5\n",
            [],
            "column 'b' must hold numbers for embed, got '-2,5' in row 2: write numbers as 1234.5",
        ),
        ('a,b\n1,2\n3,"1,234"\n', [], "column 'b' must hold numbers for embed, got '1,234' in row 2: write numbers as"),
        ('a,b\n1,2\n3,"Lyon, 2"\n', [], "got 'Lyon, 2' in row 2: choose others with --columns"),
        ("a,b\n1,2\n3,\n5,6\n", [], "got nan in row 2 of column 'b', and 1 such rows in all"),
        ("a,b\n1,2\n3,4\n", ["--color", "z"], "must have a column 'z', got a, b"),
        ("a,b\n1,2\n3,4\n", ["--color", "a", "--label", "b"], "must have a column to embed besides a, b, got none"),
        ("", [], "must have at least one row, got an empty file"),
    ],
)
def test_bad_tables_are_refused_in_a_sentence(tmp_path, content, options, message):
    (tmp_path / "data.csv").write_text(content)
    shown = run(tmp_path / "data.csv", "-o", tmp_path / "map.html", "--method", "pca", *options, code=1).stderr
    assert message in shown
    assert not (tmp_path / "map.html").exists()


def test_a_page_is_not_replaced_by_accident(flowers, tmp_path):
    (tmp_path / "map.html").write_text("precious")
    assert "which exists" in run(tmp_path / "flowers.csv", "-o", tmp_path / "map.html", code=2).stderr
    assert (tmp_path / "map.html").read_text() == "precious"
