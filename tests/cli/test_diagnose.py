"""``pluri diagnose`` says what Trace.diagnose and Trace.summary say."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from pluri.cli.application import application
from pluri.inference import mcmc


def run(*arguments, code=0):
    result = CliRunner().invoke(application, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result


@pytest.fixture
def good(tmp_path):
    trace = mcmc.Trace({"mu": np.random.default_rng(0).normal(size=(4, 500, 2))}, n_warmup=100)
    trace.save(tmp_path / "good.npz")
    return tmp_path / "good.npz"


@pytest.fixture
def bad(tmp_path):
    draws = np.random.default_rng(0).normal(size=(4, 500)) + np.arange(4)[:, None]
    mcmc.Trace({"mu": draws}).save(tmp_path / "bad.npz")
    return tmp_path / "bad.npz"


def test_a_good_trace_has_a_table_and_no_problem(good):
    text = run("diagnose", good, "--strict").stdout
    assert "mu[1]" in text
    assert "4 chains x 500 draws after 100 steps" in text
    assert "No problem found" in text


def test_a_bad_trace_is_explained_and_strict_fails(bad):
    assert "chains disagree" in run("diagnose", bad).stdout
    run("diagnose", bad, "--strict", code=1)


def test_json_holds_the_same_numbers(good):
    found = json.loads(run("diagnose", good, "--json").stdout)
    summary = mcmc.Trace.load(good).summary()
    assert found["problems"] == []
    assert found["summary"]["mu[0]"]["mean"] == pytest.approx(summary["mean"][0])


def test_variables_can_be_chosen_and_drawn(good, tmp_path):
    text = run("diagnose", good, "--names", "mu[1]", "--figure", tmp_path / "f.png").stdout
    assert "mu[0]" not in text
    assert (tmp_path / "f.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("arguments", [["--names", "tau"], ["--mass", "2"], ["--figure", "f.txt"]])
def test_wrong_options_are_usage_errors(good, arguments):
    run("diagnose", good, *arguments, code=2)


def test_another_file_is_refused(tmp_path):
    (tmp_path / "x.npz").write_text("nothing")
    run("diagnose", tmp_path / "x.npz", code=1)


def test_a_figure_of_another_type_is_refused_by_the_name_of_its_option(good, tmp_path):
    result = run("diagnose", good, "--figure", tmp_path / "figure.xyz", code=2)
    assert "--figure must be a file of type" in result.output
