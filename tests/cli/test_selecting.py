"""``pluri select`` from end to end, against the selector in Python."""

from __future__ import annotations

import io
import json
import subprocess
import sys

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import StandardScaler
from typer.testing import CliRunner

from pluri.cli.application import application
from pluri.processes.dpp.selection.selector import DPPSelector

RNG = np.random.default_rng(5)
X = np.round(RNG.normal(size=(25, 3)), 6)
SCORES = np.round(RNG.uniform(0.5, 3.0, size=25), 6)
TEXTS = ["red apples", "red apples red apples", "blue sky", "sky so blue", "green grass grows"]


def run(*arguments, code=0, stdin=None):
    result = CliRunner().invoke(application, ["select", *map(str, arguments)], input=stdin, catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result


def csv_text():
    lines = [
        ",".join([f"r{i:03}", *map(repr, row), repr(score)])
        for i, (row, score) in enumerate(zip(X.tolist(), SCORES.tolist()))
    ]
    return "\n".join(["name,a,b,c,score", *lines]) + "\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("selecting")
    (folder / "points.csv").write_text(csv_text())
    np.save(folder / "points.npy", X)
    records = [{"id": 2**60 + i, "text": text, "vector": X[i].tolist(), "score": i + 1} for i, text in enumerate(TEXTS)]
    (folder / "texts.jsonl").write_text("".join(json.dumps(record) + "\n\n" for record in records))
    return folder


def expected(size, rows=X, quality=None, **options):
    return DPPSelector(size, **options).fit(rows, quality=quality).selected_indices_.tolist()


def test_row_numbers_of_an_array_are_those_of_python(folder):
    for method in ("exact", "map", "mcmc"):
        result = run(folder / "points.npy", "--size", 6, "--method", method, "--seed", 3)
        assert [int(line) for line in result.stdout.split()] == expected(6, method=method, random_state=3)
        assert result.stderr == ""
    assert len(run(folder / "points.npy").stdout.split()) == 10
    assert len(run(folder / "points.npy", "-k", "0.2").stdout.split()) == 5
    drawn = run(folder / "points.npy", "-k", "auto", "--seed", 1).stdout.split()
    assert [int(line) for line in drawn] == expected(None, random_state=1)


def test_names_and_qualities_come_from_columns(folder):
    result = run(folder / "points.csv", "--size", 5, "--method", "map", "--quality", "score", "--id", "name")
    chosen = expected(5, quality=SCORES, method="map")
    assert result.stdout.split() == [f"r{index:03}" for index in chosen]
    few = run(
        folder / "points.csv", "--columns", "c, a", "--size", 4, "--method", "map", "--id", "name", "--standardize"
    )
    chosen = expected(4, StandardScaler().fit_transform(X[:, [2, 0]]), method="map")
    assert few.stdout.split() == [f"r{index:03}" for index in chosen]


def test_parameters_of_the_kernel_are_set(folder):
    options = ["--size", 5, "--method", "map", "--kernel", "exponential_cosine", "--set", "alpha=3"]
    result = run(folder / "points.npy", *options)
    chosen = expected(5, kernel="exponential_cosine", kernel_params={"alpha": 3}, method="map")
    assert [int(line) for line in result.stdout.split()] == chosen
    scaled = run(folder / "points.npy", "--size", 5, "--method", "map", "--set", "length_scale=0.3")
    assert [int(line) for line in scaled.stdout.split()] == expected(
        5, kernel_params={"length_scale": 0.3}, method="map"
    )


def test_texts_are_compared_by_their_words(folder):
    result = run(folder / "texts.jsonl", "--text", "text", "--size", 3, "--method", "map", "--id", "id")
    chosen = expected(3, TfidfVectorizer().fit_transform(TEXTS), kernel="cosine", method="map")
    assert [int(line) for line in result.stdout.split()] == [2**60 + index for index in chosen]
    (folder / "texts.csv").write_text("".join(f'"{text}"\n' for text in ["words", *TEXTS]))
    same = run(folder / "texts.csv", "--text", "words", "--size", 3, "--method", "map")
    assert [int(line) for line in same.stdout.split()] == chosen


def test_a_text_that_is_missing_is_empty_in_all_formats(tmp_path):
    texts = ["red apples", "", "blue sky"]
    (tmp_path / "texts.csv").write_text("n,words\n" + "".join(f"{n},{text}\n" for n, text in enumerate(texts)))
    records = [{"words": "red apples"}, {"words": ""}, {"words": "blue sky"}]
    (tmp_path / "texts.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    (tmp_path / "null.jsonl").write_text('{"words": "red apples"}\n{"words": null}\n{"words": "blue sky"}\n')
    for name in ("texts.csv", "texts.jsonl", "null.jsonl"):
        chosen = run(tmp_path / name, "--text", "words", "--size", 2, "--method", "map").stdout.split()
        assert chosen == ["0", "2"]


def test_lists_of_numbers_are_several_columns(folder):
    result = run(folder / "texts.jsonl", "--columns", "vector", "--quality", "score", "--size", 2, "--method", "map")
    chosen = expected(2, X[:5], quality=np.arange(1, 6), method="map")
    assert [int(line) for line in result.stdout.split()] == chosen


def test_json_tells_the_ids_and_their_probability(folder, tmp_path):
    options = [folder / "points.csv", "--size", 4, "--seed", 2, "--columns", "a,b,c", "--id", "name", "--json"]
    report = json.loads(run(*options).stdout)
    selector = DPPSelector(4, random_state=2).fit(X)
    assert report["indices"] == selector.selected_indices_.tolist()
    assert report["selected"] == [f"r{index:03}" for index in report["indices"]]
    assert report["log_prob"] == pytest.approx(selector.log_prob_)
    assert (report["n_rows"], report["kernel"], report["method"]) == (25, "rbf", "exact")
    written = run(*options, "--output", tmp_path / "picks.json")
    assert written.stdout == ""
    assert "4 of 25 ids written to" in written.stderr
    assert json.loads((tmp_path / "picks.json").read_text()) == report
    assert "which exists: add --force" in " ".join(run(*options, "-o", tmp_path / "picks.json", code=2).stderr.split())


def test_the_standard_input_is_read_and_its_format_told():
    options = ["--size", 5, "--method", "map", "--quality", "score", "--id", "name", "--output", "-"]
    chosen = [f"r{index:03}" for index in expected(5, quality=SCORES, method="map")]
    assert run("-", *options, stdin=csv_text()).stdout.split() == chosen
    records = [
        {"name": f"r{i:03}", "x": row, "score": score}
        for i, (row, score) in enumerate(zip(X.tolist(), SCORES.tolist()))
    ]
    lines = "\n".join(json.dumps(record) for record in records)
    assert run("-", *options, stdin=lines).stdout.split() == chosen
    buffer = io.BytesIO()
    np.save(buffer, X)
    found = run("-", "--size", 5, "--method", "map", stdin=buffer.getvalue()).stdout.split()
    assert [int(line) for line in found] == expected(5, method="map")
    failed = run("-", stdin="", code=1)
    assert failed.stderr == "error: the standard input must have at least one row, got an empty file\n"


def test_parquet_keeps_large_ids(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = arrow.table({"id": [2**60 + i for i in range(25)], "a": X[:, 0], "b": X[:, 1], "c": X[:, 2]})
    parquet.write_table(table, tmp_path / "points.parquet")
    result = run(tmp_path / "points.parquet", "--size", 4, "--method", "map", "--id", "id")
    assert [int(line) - 2**60 for line in result.stdout.split()] == expected(4, method="map")


def test_a_shell_pipe_carries_rows_in_and_ids_out():
    command = [sys.executable, "-m", "pluri", "select", "-", "--size", "3", "--method", "map", "--columns", "a,b,c"]
    result = subprocess.run(command, input=csv_text(), capture_output=True, text=True, check=True)
    assert [int(line) for line in result.stdout.split()] == expected(3, method="map")


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("a,b\n1,2\n3,4\n", ["--size", "3"], r"--size must be at most the number of rows (n_samples = 2), got 3"),
        (
            "a,b\n1,2\n1,2\n3,4\n",
            ["--size", "3"],
            "--size must be at most 2, the number of the 3 rows that this kernel tells",
        ),
        (
            "a,b\n1,2\n3,\n5,6\n",
            ["--size", "2"],
            "complete to be compared, got nan in row 2 of column 'b', and 1 such rows",
        ),
        ("a,b\n1,2\n3,4\n", ["--columns", "a,z"], "must have a column 'z', got a, b"),
        ("a,b\n1,2\n3,4\n", ["--quality", "z"], "must have a column 'z', got a, b"),
        ("a,b\n1,2\n3,4\n", ["--id", "z", "--text", "a"], "must have a column 'z', got a, b"),
        ("a,b\n1,2\n3,4\n", ["--id", "a", "--quality", "b"], "must have a column to compare besides b, a, got none"),
        ("a,b\n1,2\n3,-4\n", ["--quality", "b"], "column 'b' must hold finite, non-negative numbers, got -4 in row 2"),
        ("a,b\n1,2\n3,x\n", ["--quality", "b"], "column 'b' must hold finite, non-negative numbers, got 'x' in row 2"),
        ("a,b\n1,x\n3,y\n", [], "column 'b' must hold numbers for select without --text, got 'x' in row 1"),
        ("a,b\n1,x\n3,\n", ["--columns", "a", "--id", "b"], "column 'b' must have no missing cell, got one in row 2"),
        ("a\n!\n?\n", ["--text", "a"], "--text must name a column with words, got none"),
        ("", [], "must have at least one row, got an empty file"),
        ("a,b\n", [], "must have at least one row, got only the names a, b"),
    ],
)
def test_bad_tables_are_refused_in_a_sentence(tmp_path, content, options, message):
    (tmp_path / "data.csv").write_text(content)
    given = options if "--size" in options else [*options, "--size", "1"]
    result = run(tmp_path / "data.csv", *given, code=1)
    assert message in result.stderr
    assert result.stderr.startswith("error: ")
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("", [], "must have at least one row, got an empty file"),
        ('{"a": 1}\n[2]\n', [], "line 2 of the standard input must be a JSON object, got '[2]'"),
        ('{"a": 1}\n{"a": \n', [], "line 2 of the standard input must be a JSON object"),
        ('{"a": 1}\n{"a": "x"}\n', [], "column 'a' must hold numbers, got 'x' in row 2: choose others with --columns"),
        ('{"a": 1}\n{"b": 1}\n', [], "complete to be compared, got nan in row 1 of column 'b'"),
        (
            '{"a": [1, 2]}\n{"a": [1]}\n',
            [],
            "column 'a' must hold lists of the same length everywhere, got lengths [1, 2]",
        ),
        ('{"a": [1, 2]}\n{"a": 1}\n', [], "column 'a' must hold lists of the same length everywhere, got also 1"),
        ('{"a": 1}\n{"a": 2}\n', ["--text", "t"], "must have a column 't', got a"),
        ('{"a": 1}\n{"a": 2}\n', ["--id", "a"], "must have a column to compare besides a, got none"),
        ('{"a": 1, "q": 1}\n{"a": 2, "q": true}\n', ["--quality", "q"], "numbers, got True in row 2"),
    ],
)
def test_bad_lines_of_json_are_refused_in_a_sentence(content, options, message):
    assert message in run("-", *options, "--size", "1", stdin=content, code=1).stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--size", "0"], "--size must be a whole number of at least 1"),
        (["--size", "many"], "--size must be a whole number of at least 1"),
        (["--size", "1.5"], "--size must be a whole number of at least 1"),
        (["--method", "best"], "--method must be one of exact, map, mcmc, got 'best'"),
        (["--kernel", "gauss"], "--kernel must be one of rbf, cosine"),
        (["--text", "a", "--kernel", "rbf"], "--kernel must be cosine, linear or"),
        (["--text", "a", "--columns", "a"], "--text must not be given together with"),
        (["--set", "alpha=1"], "--set: the kernel 'rbf' takes the parameters ['length_scale']"),
        (["--set", "length_scale=-1"], "length_scale must be a positive number"),
        (["--set", "0.5"], "--set must have the form name=value"),
    ],
)
def test_options_that_cannot_be_meant_have_exit_code_two(folder, options, message):
    shown = run(folder / "points.npy", *options, code=2).stderr
    assert message.split(",")[0] in " ".join(shown.replace("│", " ").split())


def test_a_missing_or_unknown_file_is_named(tmp_path):
    assert "data must name an existing file, got" in run(tmp_path / "absent.csv", code=1).stderr
    (tmp_path / "data.xls").write_text("1")
    assert ".jsonl, .ndjson, got 'data.xls'" in run(tmp_path / "data.xls", code=1).stderr
