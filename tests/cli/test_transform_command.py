"""``pluri transform`` writes what the model's transform gives."""

import csv
import json

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from typer.testing import CliRunner

import pluri
from pluri.cli.application import application
from pluri.embedding import SpectralKMeans
from pluri.mixtures import GaussianMixture


def run(*arguments, code=0):
    result = CliRunner().invoke(application, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result


@pytest.fixture
def rows(tmp_path):
    X = np.random.default_rng(0).normal(size=(30, 2))
    np.savetxt(tmp_path / "rows.csv", X, delimiter=",", header="a,b", comments="")
    return np.loadtxt(tmp_path / "rows.csv", delimiter=",", skiprows=1)


def test_distances_to_clusters_are_written(rows, tmp_path):
    model = SpectralKMeans(3, random_state=0).fit(rows)
    pluri.save(model, tmp_path / "model.skops")
    run("transform", tmp_path / "model.skops", tmp_path / "rows.csv", "-o", tmp_path / "out.csv")
    with (tmp_path / "out.csv").open() as file:
        names, *lines = csv.reader(file)
    assert names == list(model.get_feature_names_out())
    np.testing.assert_allclose(np.array(lines, dtype=float), model.transform(rows))
    told = json.loads(run("transform", tmp_path / "model.skops", tmp_path / "rows.csv", "--json").stdout)
    np.testing.assert_allclose(told["X"], model.transform(rows))


def test_a_pipeline_is_transformed_as_a_whole(rows, tmp_path):
    model = make_pipeline(StandardScaler(), SpectralKMeans(3, random_state=0)).fit(rows)
    pluri.save(model, tmp_path / "model.skops")
    run("transform", tmp_path / "model.skops", tmp_path / "rows.csv", "-o", tmp_path / "out.npy")
    np.testing.assert_allclose(np.load(tmp_path / "out.npy"), model.transform(rows))


def test_a_model_without_coordinates_says_so(rows, tmp_path):
    pluri.save(GaussianMixture(2, random_state=0).fit(rows), tmp_path / "model.skops")
    told = run("transform", tmp_path / "model.skops", tmp_path / "rows.csv", code=1)
    assert "MODEL must be able to transform, got GaussianMixture" in told.output
