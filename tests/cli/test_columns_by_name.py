"""A model knows its columns by name, whether it was fitted by the command or to a data frame in Python."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from pluri.cli.application import application
from pluri.dynamics import LatentDynamics
from pluri.io import load, save
from pluri.mixtures import GaussianMixture
from pluri.report import model_report
from pluri.sequences import GaussianHMM


def run(*arguments, code=0):
    result = CliRunner().invoke(application, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    states = np.repeat([0, 1, 0, 1], 25)
    return pd.DataFrame({"temp": 15 + 5 * states, "load": 200 - 90 * states}) + rng.normal(size=(100, 2))


@pytest.mark.parametrize("kind", [GaussianHMM, GaussianMixture])
def test_columns_in_another_order_are_found_by_name(frame, kind, tmp_path):
    model = kind(2, random_state=0).fit(frame)
    save(model, tmp_path / "model.skops")
    expected = model.predict(frame)
    frame.to_csv(tmp_path / "same.csv", index=False)
    frame[["load", "temp"]].to_csv(tmp_path / "turned.csv", index=False)
    frame.assign(day="Monday")[["day", "load", "temp"]].to_csv(tmp_path / "more.csv", index=False)
    for name, options in [("same", []), ("turned", []), ("more", []), ("more", ["--columns", "load,temp"])]:
        found = run("predict", tmp_path / "model.skops", tmp_path / f"{name}.csv", *options, "--json")
        assert "warning" not in found.stderr
        np.testing.assert_array_equal(next(iter(json.loads(found.stdout).values())), expected)


def test_a_file_with_a_part_of_the_columns_is_refused(frame, tmp_path):
    save(GaussianMixture(2, random_state=0).fit(frame), tmp_path / "model.skops")
    frame.rename(columns={"load": "burden"}).to_csv(tmp_path / "renamed.csv", index=False)
    told = run("score", tmp_path / "model.skops", tmp_path / "renamed.csv", code=1).stderr
    assert "the columns that the model was fitted to (temp, load), got none named 'load'; --columns says" in told
    run("score", tmp_path / "model.skops", tmp_path / "renamed.csv", "--columns", "temp,burden")


def test_a_file_with_none_of_the_columns_is_taken_in_order_with_a_word(frame, tmp_path):
    model = GaussianMixture(2, random_state=0).fit(frame)
    save(model, tmp_path / "model.skops")
    frame.rename(columns={"temp": "a", "load": "b"}).to_csv(tmp_path / "renamed.csv", index=False)
    found = run("predict", tmp_path / "model.skops", tmp_path / "renamed.csv", "--json")
    assert "none of the columns of the fit (temp, load): its own are taken, in order" in found.stderr
    np.testing.assert_array_equal(json.loads(found.stdout)["components"], model.predict(frame))
    frame.to_csv(tmp_path / "nameless.csv", index=False, header=False)
    assert run("predict", tmp_path / "model.skops", tmp_path / "nameless.csv", "--json").stderr == ""


def test_a_model_and_its_data_in_the_wrong_order_are_told_so(frame, tmp_path):
    save(GaussianMixture(2, random_state=0).fit(frame), tmp_path / "model.skops")
    frame.to_csv(tmp_path / "rows.csv", index=False)
    for command in ("predict", "score"):
        told = run(command, tmp_path / "rows.csv", tmp_path / "model.skops", code=2).stderr.replace("│", " ")
        assert "the model comes first and then the data, got rows.csv and then model.skops" in " ".join(told.split())


def test_a_model_that_needs_complete_rows_says_so_in_a_sentence(frame, tmp_path):
    frame.mask(frame > 24).to_csv(tmp_path / "holes.csv", index=False)
    told = run("fit", "SNE", tmp_path / "holes.csv", "-o", tmp_path / "map.skops", code=1).stderr
    assert told.strip().endswith("SNE does not accept missing values: pluri impute fills empty cells")


def test_what_is_told_of_a_model_names_its_columns(frame, tmp_path):
    frame.to_csv(tmp_path / "rows.csv", index=False)
    told = run("fit", "GaussianMixture", tmp_path / "rows.csv", "-q", "-o", tmp_path / "model.skops").stdout
    assert re.search(r"temp: \d+.*, load: \d+", told)
    assert re.search(r"temp: \d+.*, load: \d+", run("inspect", tmp_path / "model.skops").stdout)
    run("report", tmp_path / "model.skops", tmp_path / "rows.csv", "-o", tmp_path / "page.html")
    assert re.search(r"temp: \d+.*, load: \d+", (tmp_path / "page.html").read_text())
    assert not hasattr(load(tmp_path / "model.skops"), "feature_names_in_")


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_model_that_predicts_rows_has_a_page_with_data():
    t = np.arange(120.0)
    motion = np.stack([np.sin(t / 8 + place) for place in range(4)], axis=1)
    model = LatentDynamics(random_state=0).fit(motion + np.random.default_rng(0).normal(0, 0.05, motion.shape))
    assert "What is predicted of the first column of 120 rows" in model_report(model, X=motion)


def test_a_list_of_sequences_is_drawn_as_what_was_joined(frame):
    model = GaussianHMM(2, random_state=0).fit(frame.to_numpy(), lengths=[60, 40])
    pieces = [frame.to_numpy()[:60], frame.to_numpy()[60:]]
    assert model_report(model, X=pieces) == model_report(model, X=frame.to_numpy(), lengths=[60, 40])


def test_tables_of_a_page_are_headed_by_the_names_of_columns(frame):
    page = model_report(GaussianMixture(3, random_state=0).fit(frame))
    assert "feature names in" not in page
    assert re.search(r"means \(3 x 2\)</h3>.{0,80}<th scope=col>temp</th><th scope=col>load</th>", page)
    assert "weights (3)</h3>" in page
    assert page.count("<th scope=col>temp</th>") == 1
