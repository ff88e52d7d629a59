"""Models of every family that takes a table go through the commands, as in Python."""

from __future__ import annotations

import csv
import io
import json
import warnings
from importlib import import_module

import numpy as np
import pytest
from typer.testing import CliRunner

from pluri.cli.application import application
from pluri.cli.families import DYNAMICS, EMBEDDINGS, FACTORS


def run(*arguments, code=0):
    result = CliRunner().invoke(application, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("families")
    rng = np.random.default_rng(0)
    t = np.arange(80)
    data = {
        "rows": rng.normal(size=(80, 2)) @ rng.normal(size=(2, 4)) + 0.3 * rng.normal(size=(80, 4)),
        "waves": np.stack([np.sin(t / 4), np.cos(t / 4)], axis=1) + 0.1 * rng.normal(size=(80, 2)),
        "counts": rng.poisson(np.exp(1 + np.sin(t / 4)[:, None] * [1.0, -1.0, 0.5])),
        "marks": (rng.random((80, 4)) < 0.4).astype(int),
    }
    for name, X in data.items():
        names = ",".join("abcd"[: X.shape[1]])
        np.savetxt(folder / f"{name}.csv", X, delimiter=",", header=names, comments="", fmt="%.17g")
    return folder


MODELS = [
    (DYNAMICS, "LinearDynamicalSystem", "waves", {"n_components": 2, "max_iter": 5}),
    (DYNAMICS, "SwitchingDynamicalSystem", "waves", {"n_regimes": 2, "n_components": 1, "max_iter": 3}),
    (DYNAMICS, "PoissonDynamicalSystem", "counts", {"n_components": 1, "max_iter": 3}),
    (FACTORS, "BayesianFactorAnalysis", "rows", {"n_components": 2}),
    (FACTORS, "BetaProcessDictionary", "rows", {"n_components": 4, "n_warmup": 5, "n_draws": 5}),
    (FACTORS, "BinaryRBM", "marks", {"n_components": 2, "n_iter": 5}),
    (FACTORS, "IBPLinearGaussian", "rows", {"max_features": 3, "max_iter": 5}),
    (FACTORS, "LogisticPCA", "marks", {"n_components": 2}),
    (EMBEDDINGS, "SNE", "rows", {"perplexity": 5.0, "max_iter": 20}),
    (EMBEDDINGS, "SpectralKMeans", "rows", {"n_clusters": 2}),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore::UserWarning")
@pytest.mark.parametrize(("family", "name", "data", "settings"), MODELS, ids=[row[1] for row in MODELS])
def test_models_of_other_families_are_fitted_and_asked(folder, tmp_path, family, name, data, settings):
    path, model = folder / f"{data}.csv", tmp_path / "model.skops"
    options = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
    run("fit", name, path, *options, "-q", "-o", model)
    X = np.loadtxt(path, delimiter=",", skiprows=1)
    kind = getattr(import_module(family.package), name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seed = {"random_state": 0} if "random_state" in kind().get_params() else {}
        same = kind(**seed, **settings).fit(X)
    asked = [question for question in ("predict", "transform") if hasattr(same, question)]
    assert asked
    for question in asked:
        told = list(csv.reader(io.StringIO(run(question, model, path).stdout)))
        found = np.array(told[1:], dtype=np.float64)
        expected = np.asarray(getattr(same, question)(X), dtype=np.float64).reshape(len(X), -1)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
        assert len(told[0]) == expected.shape[1]
        if question == "predict":
            assert told[0] == ([*"abcd"[: X.shape[1]]] if expected.shape[1] > 1 else [family.unit])
    if family.rating is not None:
        report = json.loads(run("score", model, path, "--json").stdout)
        per_row = same.score(X) / (1 if family.rating_is_mean else len(X))
        assert report["score_per_sample"] == pytest.approx(per_row, rel=1e-9)
    else:
        assert "must be able to score" in run("score", model, path, code=1).stderr
    run("report", model, "-o", tmp_path / "page.html")
    assert name in (tmp_path / "page.html").read_text()
