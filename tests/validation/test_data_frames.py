"""Data frames: gaps in times are told where steps are taken as equal, and columns that cannot be read are named."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from pluri.cli.application import application
from pluri.dynamics import LinearDynamicalSystem, PoissonDynamicalSystem, SwitchingDynamicalSystem
from pluri.mixtures import CategoricalMixture, GaussianMixture, NaiveBayes
from pluri.sequences import CategoricalHMM, GaussianHMM
from pluri.validation.inputs import find_gap


@pytest.fixture(scope="module")
def hours():
    t = np.arange(120)
    rng = np.random.default_rng(0)
    values = {"temp": 15 + 5 * np.sin(t / 4) + rng.normal(0, 0.4, 120), "load": 9 + rng.normal(0, 1, 120)}
    return pd.DataFrame(values, index=pd.date_range("2024-01-01", periods=120, freq="h"))


def test_the_largest_gap_is_found_and_calendars_have_none():
    days = pd.bdate_range("2024-01-01", periods=300)
    assert find_gap(days) is None
    assert find_gap(days.drop(days[[10, 50, 51]])) is None  # holidays
    assert find_gap(pd.date_range("2020-01-31", periods=40, freq="ME")) is None
    assert find_gap(pd.date_range("2024-01-01", periods=3, freq="h")) is None
    broken = pd.date_range("2024-01-01", periods=100, freq="min").delete(range(30, 60))
    row, usual, gap = find_gap(broken)
    assert (row, usual, gap) == (29, np.timedelta64(60, "s"), np.timedelta64(31 * 60, "s"))
    assert find_gap(broken[::-1]) is None  # not in order of time: nothing is said
    assert find_gap(["2024-01-01", "NaT", "2024-01-02", "2024-05-01"]) is None


@pytest.mark.parametrize(
    "model",
    [
        LinearDynamicalSystem(1, max_iter=3, tol=1e9),
        SwitchingDynamicalSystem(2, 1, max_iter=2, tol=1e9, random_state=0),
        PoissonDynamicalSystem(1, max_iter=2, tol=1e9, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_gap_in_the_index_is_told_where_steps_are_equal(hours, model):
    counts = hours.round()
    pieces = counts.drop(hours.index[40:60])
    with pytest.warns(UserWarning, match="a gap of 21 usual steps after 2024-01-02T15:00:00.*asfreq"):
        model.fit(pieces)
    with pytest.warns(UserWarning, match="a gap of 21 usual steps"):
        model.forecast(pieces, 2)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "X has a gap")
        model.fit(counts)
        model.fit(pieces.asfreq("h"))
        model.fit([pieces[:40], pieces[40:]])
        model.fit(pieces.reset_index(drop=True))


def test_a_state_for_each_row_needs_no_equal_steps(hours):
    GaussianHMM(2, random_state=0).fit(hours.drop(hours.index[40:60]))  # warnings are errors here


def test_the_command_tells_of_a_gap_in_a_column_that_it_does_not_use(hours, tmp_path):
    def told(frame, *options):
        frame.to_csv(tmp_path / "rows.csv", index_label="time")
        arguments = ["forecast", str(tmp_path / "rows.csv"), "--components", "1", "-q", "--columns", "temp", *options]
        result = CliRunner().invoke(application, arguments, catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return result.stderr

    assert "gap" not in told(hours)
    pieces = hours.drop(hours.index[40:60])
    assert "warning: time has a gap of 21 usual steps after 2024-01-02 15:00:00" in told(pieces)
    walks = pieces.assign(walk=np.repeat(["a", "b"], [40, 60]))
    assert "gap" not in told(walks, "--sequence", "walk")


@pytest.mark.parametrize("model", [GaussianHMM(2), LinearDynamicalSystem(1), CategoricalHMM(2)])
def test_a_series_is_told_to_become_a_table(hours, model):
    with pytest.raises(ValueError, match=r"X must be a table, got a series: X.to_frame\(\) is"):
        model.fit(hours["temp"].round())
    assert model.fit([hours["temp"].round()]) is model  # a list of one sequence


@pytest.mark.parametrize("model", [GaussianHMM(2), GaussianMixture(2)])
def test_a_column_of_dates_is_named(hours, model):
    with pytest.raises(ValueError, match="dates or durations in column 'when': leave it out"):
        model.fit(hours.assign(when=hours.index))
    with pytest.raises(ValueError, match="dates or durations in column 'since'"):
        model.fit(hours.assign(since=hours.index - hours.index[0]))


@pytest.mark.parametrize(
    "model", [GaussianHMM(2), GaussianMixture(2), LinearDynamicalSystem(1), NaiveBayes("gaussian")]
)
def test_a_column_of_words_is_named(hours, model):
    frame = hours.assign(city=["Bonn", None] * 60, code=["1", "2.5"] * 60)
    with pytest.raises(ValueError, match="could not convert string to float: 'Bonn' in column 'city'"):
        model.fit(frame, np.arange(120) % 2) if isinstance(model, NaiveBayes) else model.fit(frame)
    numbers = frame[["temp", "code"]]  # as text, but numbers
    assert (model.fit(numbers, np.arange(120) % 2) if isinstance(model, NaiveBayes) else model.fit(numbers)) is model


def test_words_are_taken_where_they_may_be(hours):
    words = pd.DataFrame({"city": ["Bonn", "Trier"] * 60})
    assert CategoricalMixture(2, random_state=0).fit(words).categories_[0].tolist() == ["Bonn", "Trier"]
    assert CategoricalHMM(2, random_state=0).fit(words).vocabulary_[0].tolist() == ["Bonn", "Trier"]
