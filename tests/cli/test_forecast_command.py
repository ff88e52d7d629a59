"""``pluri forecast`` and ``pluri impute``."""

import csv

import numpy as np
import pytest
from typer.testing import CliRunner

from pluri.cli.application import application
from pluri.dynamics import LinearDynamicalSystem
from pluri.io import save
from pluri.mixtures import CategoricalMixture, DPMeans, GaussianMixture
from pluri.sequences import CategoricalHMM, GaussianHMM

DAYS = 60


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    rng = np.random.default_rng(0)
    turn = np.arange(DAYS) / 4
    X = np.round(np.stack([np.sin(turn), 2 + np.cos(turn)], axis=1) + 0.05 * rng.normal(size=(DAYS, 2)), 4)
    X[rng.random(X.shape) < 0.1] = np.nan
    path = tmp_path_factory.mktemp("data") / "swing.csv"
    lines = ["day,who,a,b"]
    for day, (a, b) in enumerate(X.tolist()):
        cells = ["" if value != value else str(value) for value in (a, b)]
        lines.append(",".join([f"d{day}", "x" if day < 35 else "y", *cells]))
    path.write_text("\n".join(lines) + "\n")
    return path, X


def run(*arguments):
    return CliRunner().invoke(application, [str(word) for word in arguments])


def read(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_a_forecast_is_that_of_the_model(table, tmp_path):
    path, X = table
    out = tmp_path / "forecast.csv"
    result = run("forecast", path, "--columns", "a,b", "--sequence", "who", "--components", 2, "--horizon", 3,
                 "--level", 0.8, "--set", "max_iter=20", "--set", "tol=-inf", "-q", "-o", out)  # fmt: skip
    assert result.exit_code == 0, result.output
    model = LinearDynamicalSystem(2, max_iter=20, tol=-np.inf, acceleration="squarem", random_state=0)
    expected = model.fit(X, lengths=[35, 25]).forecast(X, 3, [35, 25], level=0.8)
    rows = read(out)
    assert [(row["who"], row["step"]) for row in rows] == [(who, str(step)) for who in "xy" for step in (1, 2, 3)]
    for place, name in enumerate("ab"):
        for end, values in (("", expected.mean), ("_lower", expected.lower), ("_upper", expected.upper)):
            found = [float(row[name + end]) for row in rows]
            assert found == pytest.approx(values[:, :, place].ravel().tolist())
    assert "2 hidden dimensions (as asked for)" in result.output
    assert "3 steps forecast after 2 sequences" in result.output


def test_rows_in_no_order_are_filled_by_a_saved_model(tmp_path):
    rng = np.random.default_rng(0)
    groups = rng.integers(2, size=80)
    X = np.round(rng.normal(8.0 * groups[:, None], 1.0, (80, 2)), 4)
    X[::7, 1] = np.nan
    lines = ["who,b,a", *(f"c{row},{'' if b != b else b},{a}" for row, (a, b) in enumerate(X.tolist()))]
    (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n")
    model = GaussianMixture(2, random_state=0).fit(X)
    save(model, tmp_path / "model.skops", notes={"columns": ["a", "b"]})
    by_model = ["impute", tmp_path / "rows.csv", "--model", tmp_path / "model.skops"]
    result = run(*by_model, "-o", tmp_path / "filled.csv")
    assert result.exit_code == 0, result.output
    assert "12 missing values of 160 filled" in result.output
    rows = read(tmp_path / "filled.csv")
    assert [row["who"] for row in rows] == [f"c{row}" for row in range(80)]
    found = np.array([[float(row["a"]), float(row["b"])] for row in rows])
    np.testing.assert_allclose(found, model.impute(X), rtol=1e-12)
    assert run(*by_model, "--std", "-o", tmp_path / "sure.csv").exit_code == 0
    sure = read(tmp_path / "sure.csv")
    deviation = np.array([[float(row["a_std"]), float(row["b_std"])] for row in sure])
    np.testing.assert_allclose(deviation, model.impute(X, return_std=True)[1], rtol=1e-12)
    save(DPMeans(penalty=9.0).fit(np.nan_to_num(X)), tmp_path / "other.skops")
    refused = run("impute", tmp_path / "rows.csv", "--model", tmp_path / "other.skops")
    assert "MODEL must be able to impute, got DPMeans" in refused.output


def test_sequences_are_filled_by_a_saved_hidden_markov_model(tmp_path):
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(np.repeat([[0.0, 5.0], [9.0, -5.0]] * 3, 10, axis=0)), 4)
    X[::4, 0] = np.nan
    names = np.repeat(["u", "v"], 30)
    lines = ["who,a,b", *(f"{name},{'' if a != a else a},{b}" for name, (a, b) in zip(names, X.tolist()))]
    (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n")
    model = GaussianHMM(2, random_state=0).fit(X, lengths=[30, 30])
    save(model, tmp_path / "model.skops", notes={"columns": ["a", "b"], "sequence": "who"})
    result = run("impute", tmp_path / "rows.csv", "--model", tmp_path / "model.skops", "-o", tmp_path / "filled.csv")
    assert result.exit_code == 0, result.output
    found = np.array([[float(row["a"]), float(row["b"])] for row in read(tmp_path / "filled.csv")])
    np.testing.assert_allclose(found, model.impute(X, lengths=[30, 30]), rtol=1e-12)


def test_words_are_filled_by_a_saved_model_of_words(tmp_path):
    rows = ["red,hot", "red,hot", "blue,cold", "blue,cold", "blue,", ",hot"]
    (tmp_path / "rows.csv").write_text("\n".join(["color,feel", *rows]) + "\n")
    X = [[cell or None for cell in row.split(",")] for row in rows]
    save(CategoricalMixture(2, random_state=0).fit(X), tmp_path / "m.skops", notes={"columns": ["color", "feel"]})
    by_model = ["impute", tmp_path / "rows.csv", "--model", tmp_path / "m.skops", "-o", tmp_path / "filled.csv"]
    assert run(*by_model, "--std").exit_code == 2
    result = run(*by_model)
    assert result.exit_code == 0, result.output
    assert "2 missing values of 12 filled" in result.output
    filled = read(tmp_path / "filled.csv")
    assert (filled[4]["feel"], filled[5]["color"]) == ("cold", "red")


def test_a_saved_model_forecasts_by_the_columns_and_sequences_of_its_fit(table, tmp_path):
    path, X = table
    model = GaussianHMM(2, random_state=0).fit(X[:, ::-1], [35, 25])
    save(model, tmp_path / "model.skops", notes={"columns": ["b", "a"], "sequence": "who"})
    by_model = ["forecast", path, "--model", tmp_path / "model.skops"]
    result = run(*by_model, "--horizon", 3, "--level", 0.8, "-o", tmp_path / "coming.csv")
    assert result.exit_code == 0, result.output
    assert "3 steps forecast after 2 sequences" in result.output
    rows = read(tmp_path / "coming.csv")
    assert [(row["who"], row["step"]) for row in rows] == [(who, str(step)) for who in "xy" for step in (1, 2, 3)]
    expected = model.forecast(X[:, ::-1], 3, [35, 25], level=0.8)
    for place, name in enumerate("ba"):
        for end, values in (("", expected.mean), ("_lower", expected.lower), ("_upper", expected.upper)):
            found = [float(row[name + end]) for row in rows]
            np.testing.assert_allclose(found, values[:, :, place].ravel(), rtol=1e-12)
    assert run(*by_model, "--components", 2).exit_code == 2
    save(GaussianMixture(2, random_state=0).fit(np.nan_to_num(X)), tmp_path / "other.skops")
    refused = run("forecast", path, "--columns", "a,b", "--model", tmp_path / "other.skops")
    assert "MODEL must be able to forecast, got GaussianMixture" in refused.output


def test_a_saved_model_of_words_forecasts_the_probability_of_each(tmp_path):
    words = ["sun", "rain", "rain", "sun"] * 10
    (tmp_path / "days.csv").write_text("sky\n" + "\n".join(words) + "\n")
    model = CategoricalHMM(2, random_state=0).fit(np.array(words, dtype=object)[:, None])
    save(model, tmp_path / "model.skops", notes={"columns": ["sky"]})
    result = run("forecast", tmp_path / "days.csv", "--model", tmp_path / "model.skops", "--horizon", 2, "-o",
                 tmp_path / "coming.csv")  # fmt: skip
    assert result.exit_code == 0, result.output
    rows = read(tmp_path / "coming.csv")
    expected = model.forecast(np.array(words, dtype=object)[:, None], 2).probabilities[0]
    names = [str(word) for word in model.vocabulary_[0]]
    assert list(rows[0]) == ["step", *(f"p_{word}" for word in names)]
    found = [[float(row[f"p_{word}"]) for word in names] for row in rows]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_imputation_fills_what_is_empty_and_copies_the_rest(table, tmp_path):
    path, X = table
    out = tmp_path / "filled.csv"
    result = run("impute", path, "--columns", "a,b", "--set", "max_iter=20", "--std", "-q", "-o", out)
    assert result.exit_code == 0, result.output
    rows = read(out)
    assert list(rows[0]) == ["day", "who", "a", "b", "a_std", "b_std"]
    assert [row["day"] for row in rows] == [f"d{day}" for day in range(DAYS)]
    filled = np.array([[float(row["a"]), float(row["b"])] for row in rows])
    std = np.array([[float(row["a_std"]), float(row["b_std"])] for row in rows])
    seen = ~np.isnan(X)
    assert filled[seen] == pytest.approx(X[seen], abs=0)
    assert (std[~seen] > 0).all()
    assert not std[seen].any()
    assert f"{(~seen).sum()} missing values of {X.size} filled" in result.output
    assert "by the lowest BIC" in result.output


def test_the_errors_are_told_beside_those_of_the_last_value(table):
    path, X = table
    result = run("forecast", path, "--columns", "a,b", "--sequence", "who", "--components", 2, "-q", "--set",
                 "max_iter=20", "--set", "tol=-inf")  # fmt: skip
    model = LinearDynamicalSystem(2, max_iter=20, tol=-np.inf, acceleration="squarem", random_state=0)
    errors = X - model.fit(X, lengths=[35, 25]).predict(X, [35, 25])
    own, last = [], []
    for t in range(1, DAYS):
        for column in range(2):
            if t != 35 and not np.isnan([X[t, column], X[t - 1, column]]).any():
                scale = np.nanstd(X[:, column])
                own.append(errors[t, column] / scale)
                last.append((X[t, column] - X[t - 1, column]) / scale)
    ratio = np.sqrt(np.square(own).mean() / np.square(last).mean())
    assert f"one step ahead its errors are {ratio:.2f} times those of the last value" in " ".join(result.output.split())


def test_constant_data_have_no_last_value_to_beat(tmp_path):
    path = tmp_path / "constant.csv"
    path.write_text("a\n" + "3\n" * 20)
    result = run("forecast", path, "--horizon", 2)
    assert result.exit_code == 0, result.output
    assert "last value" not in result.output


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["forecast", "{data}", "--columns", "a,b", "--level", "2"], 2, "--level must be between 0 and 1"),
        (["forecast", "{data}", "--columns", "a,b", "--set", "n_components=3"], 2, "use --components"),
        (["impute", "{data}"], 1, "column 'day' must hold numbers for LinearDynamicalSystem"),
        (["impute", "{data}", "--columns", "a,c"], 1, "c"),
        (["forecast", "{data}", "--model", "nowhere.skops"], 1, "nowhere.skops"),
        (["forecast", "nowhere.csv"], 1, "data must name an existing file"),
        (["impute", "{data}", "--columns", "a,b", "-o", "{data}"], 2, "exists: add --force"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(table, words, code, message):
    result = run(*(word.format(data=table[0]) for word in words))
    assert result.exit_code == code
    assert message in " ".join(result.output.replace("│", " ").split())
