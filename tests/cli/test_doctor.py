"""``pluri doctor`` tells what is here, and notices what is wrong."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from pluri.cli.application import application
from pluri.cli.doctor import machine, self_test
from pluri.inference import mcmc


def run(*arguments, code=0):
    result = CliRunner().invoke(application, ["doctor", *arguments], catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result


def test_this_installation_is_well():
    text = run().stdout
    assert "numpy: " + np.__version__ in text
    assert text.count(": right (") == len(self_test.CHECKS)
    assert "No problem found" in text


def test_json_has_the_same_facts_without_other_words():
    told = json.loads(run("--json", "--no-self-test").stdout)
    assert told["versions"]["numpy"] == np.__version__
    assert told["problems"] == []
    assert told["self-test"] == []


def test_a_missing_extra_names_the_command(monkeypatch):
    monkeypatch.setattr(machine, "extras", lambda: {"dask": {"dask": None, "pyarrow": "16.0"}})
    assert 'dask missing: pip install "pluri[dask]"' in run("--no-self-test").stdout


def test_a_cache_that_is_nowhere_is_a_problem(monkeypatch):
    monkeypatch.setattr(machine, "compiled_code", lambda: {"folder": None, "functions": 0, "megabytes": 0.0})
    assert "NUMBA_CACHE_DIR" in run("--no-self-test", code=1).stdout


@pytest.mark.parametrize(
    ("title", "target", "broken"),
    [
        ("hidden_markov_model", "pluri.sequences.GaussianHMM.score", lambda self, X: -9.0),
        ("model_file", "pluri.load", lambda path: 1 / 0),
        (
            "markov_chain",
            "pluri.inference.mcmc.sample",
            lambda *a, **k: mcmc.Trace(
                {"x": np.full((2, 500, 1), 3.0) + np.random.default_rng(0).normal(size=(2, 500, 1))}
            ),
        ),
    ],
)
def test_a_wrong_answer_is_found(monkeypatch, title, target, broken):
    check = getattr(self_test, title)
    monkeypatch.setattr(target, broken)
    assert self_test.run("", check).trouble
