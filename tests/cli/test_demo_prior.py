"""The comparison with the diversity prior: its numbers, its sentences, its picture."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from pluri.cli.application import application
from pluri.cli.demo.prior import MODELS, STARTS, TRUTH, Outcome, reading, summarize


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo") / "new" / "folder"
    arguments = ["demo", "prior", "--output", str(folder), "--data-sets", "3", "--seed", "1", "--json"]
    result = CliRunner().invoke(application, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    return json.loads(result.stdout)


def test_every_start_and_model_is_judged_on_every_data_set(report):
    cases = {(row["start"], row["model"], row["data_set"]) for row in report["outcomes"]}
    expected = {(start, model, number) for start in STARTS for model in MODELS for number in range(3)}
    assert cases == expected | {(TRUTH, TRUTH, number) for number in range(3)}
    truth = [row for row in report["outcomes"] if row["start"] == TRUTH]
    for row in truth:
        assert row["accuracy"] > 0.99
        assert row["diversity"] == pytest.approx(0.5308, abs=1e-4)
        best = max(other["accuracy"] for other in report["outcomes"] if other["data_set"] == row["data_set"])
        assert row["accuracy"] >= best - 0.002


def test_the_picture_is_a_large_coloured_image(report):
    from matplotlib.image import imread

    pixels = imread(report["figure"])
    assert pixels.shape[0] > 900
    assert pixels.shape[1] > 1500
    assert len(np.unique(pixels[::5, ::5].reshape(-1, pixels.shape[2]), axis=0)) > 30


def outcomes(poor, diverse, spread=0.0):
    """Results of ten data sets whose accuracies from the poor start are given on average."""
    rng = np.random.default_rng(0)
    rows = []
    for number in range(10):
        noise = spread * rng.normal(size=2)
        for start, model, accuracy in [
            (TRUTH, TRUTH, 1.0),
            ("poor", "HMM", poor + noise[0]),
            ("poor", "diversified", diverse + noise[1]),
            ("k-means", "HMM", 0.97),
            ("k-means", "diversified", 0.97),
        ]:
            rows.append(Outcome(start, model, number, accuracy, 0.5, -4.0, 5.0, -1000.0, 0.1, 20))
    return rows


def test_the_sentences_follow_the_numbers():
    gained = reading(outcomes(0.5, 0.6))
    assert "from 0.500 to 0.600: more than chance (+0.100" in gained[0]
    assert "helped on 10, hurt on 0 of 10" in gained[0]
    lost = reading(outcomes(0.6, 0.5))
    assert "more than chance (-0.100" in lost[0]
    assert "helped on 0, hurt on 10" in lost[0]
    unclear = reading(outcomes(0.5, 0.52, spread=0.2))
    assert "no more than chance" in unclear[0]
    assert "no more than chance" in unclear[1]


def test_the_summary_has_means_and_medians():
    rows = {(row["start"], row["model"]): row for row in summarize(outcomes(0.5, 0.6))}
    assert rows["poor", "HMM"]["accuracy"] == pytest.approx(0.5)
    assert rows["poor", "HMM"]["accuracy_sd"] == pytest.approx(0.0, abs=1e-12)
    assert rows["poor", "diversified"]["log_det"] == -4.0
    assert len(rows) == 5


def test_the_table_fits_in_80_columns(tmp_path):
    result = CliRunner().invoke(
        application,
        ["demo", "prior", "-o", str(tmp_path), "--data-sets", "2"],
        catch_exceptions=False,
        env={"COLUMNS": "80"},
    )
    assert result.exit_code == 0
    assert "…" not in result.stdout
    assert "diversified" in result.stdout
    assert (tmp_path / "toy_hmm.png").exists()
