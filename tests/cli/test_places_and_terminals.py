"""What the commands do before the work and after it: bad places, seeds, and words that would steer a terminal."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import sys
import unicodedata

import numpy as np
import pytest
from typer.testing import CliRunner

import pluri.cli.demo.collapsed_fits
import pluri.cli.demo.prior
from pluri.cli.application import application
from pluri.cli.console import printable
from pluri.cli.outputs import write_table
from pluri.factors import BinaryRBM
from pluri.inference.mcmc import Trace
from pluri.io import load, save
from pluri.mixtures import GaussianMixture
from pluri.processes.dpp import DPPSelector
from pluri.sequences import CategoricalHMM, GaussianHMM, HiddenMarkovModel


def run(*arguments, code=0, **options):
    result = CliRunner().invoke(
        application, [str(argument) for argument in arguments], catch_exceptions=False, **options
    )
    assert result.exit_code == code, result.output
    return result


def sentence(result):
    """What was said on stderr, without the frame around it."""
    return " ".join(re.sub(r"[─│╭╮╰╯]", " ", result.stderr).split())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("places")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2)) + 3 * rng.integers(2, size=(60, 1))
    np.savetxt(folder / "data.csv", X, delimiter=",", header="a,b", comments="")
    save(GaussianMixture(2, random_state=0).fit(X), folder / "model.skops", notes={"columns": ["a", "b"]})
    Trace({"x": rng.normal(size=(4, 100))}, {}).save(folder / "trace.npz")
    return folder


class WorkBegan(Exception):
    """Raised instead of working."""


#: Every command that writes, and the option that says where.
COMMANDS = {
    "fit": (["fit", "GaussianHMM", "{folder}/data.csv", "-q"], "-o", ".skops"),
    "predict": (["predict", "{folder}/model.skops", "{folder}/data.csv"], "-o", ".csv"),
    "sample": (["sample", "{folder}/model.skops"], "-o", ".csv"),
    "select": (["select", "{folder}/data.csv", "--size", "3"], "-o", ".txt"),
    "report": (["report", "{folder}/model.skops"], "-o", ".html"),
    "diagnose": (["diagnose", "{folder}/trace.npz"], "--figure", ".png"),
    "topics": (["topics", "{folder}/data.csv"], "-o", ".skops"),
    "topics with a page": (["topics", "{folder}/data.csv"], "-r", ".html"),
    "topics with shares": (["topics", "{folder}/data.csv"], "--shares", ".csv"),
}


@pytest.fixture
def no_work(monkeypatch):
    def work(*arguments, **options):
        raise WorkBegan

    import pluri.cli.candidates
    import pluri.cli.topics.reading
    import pluri.io

    monkeypatch.setattr(HiddenMarkovModel, "fit", work)
    monkeypatch.setattr(Trace, "load", work)
    monkeypatch.setattr(pluri.cli.candidates, "read_candidates", work)
    monkeypatch.setattr(pluri.cli.topics.reading, "read_corpus", work)
    for name in ("load", "read_info"):
        monkeypatch.setattr(pluri.io, name, work)


def place_of(kind, tmp_path, suffix, monkeypatch):
    if kind == "in a folder that is not there":
        return tmp_path / "nowhere" / f"x{suffix}", "must lie in an existing folder"
    if kind == "in a file":
        (tmp_path / "file").write_text("")
        return tmp_path / "file" / f"x{suffix}", "must lie in an existing folder"
    if kind == "a folder":
        (tmp_path / f"folder{suffix}").mkdir()
        return tmp_path / f"folder{suffix}", "must name a file, got the folder"
    if kind == "a pipe":
        os.mkfifo(tmp_path / f"pipe{suffix}")
        return tmp_path / f"pipe{suffix}", "must name a regular file, got the pipe"
    real = os.open

    def read_only(path, *arguments, **options):
        if str(path).startswith(str(tmp_path)):
            raise OSError(30, "Read-only file system")
        return real(path, *arguments, **options)

    monkeypatch.setattr(os, "open", read_only)
    return tmp_path / f"x{suffix}", "must lie in a folder that can be written"


PLACES = ["in a folder that is not there", "in a file", "a folder", "a pipe", "on a read-only disc"]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("kind", PLACES)
def test_a_place_that_cannot_be_written_is_refused_before_the_work(
    command, kind, folder, tmp_path, monkeypatch, no_work
):
    words, option, suffix = COMMANDS[command]
    place, message = place_of(kind, tmp_path, suffix, monkeypatch)
    force = ["--force"] if kind in ("a pipe",) else []
    result = run(*(word.format(folder=folder) for word in words), option, place, *force, code=2)
    assert message in sentence(result)
    with pytest.raises(WorkBegan):  # so that the first half cannot pass for another reason
        run(*(word.format(folder=folder) for word in words), option, folder / f"new{suffix}")


@pytest.mark.parametrize(
    ("words", "file"), [(("demo",), "topics.html"), (("demo", "prior"), "toy_hmm.png")], ids=["parts", "prior"]
)
@pytest.mark.parametrize("kind", PLACES[1:])
def test_the_demo_looks_at_its_folder_before_the_work(kind, words, file, tmp_path, monkeypatch):
    def work(*arguments):
        raise WorkBegan

    monkeypatch.setattr(pluri.cli.demo.prior, "run", work)
    monkeypatch.setattr(pluri.cli.demo.collapsed_fits, "run", work)
    (tmp_path / "demo").mkdir()
    if kind == "in a file":
        (tmp_path / "file").write_text("")
        result = run(*words, "-o", tmp_path / "file" / "demo", code=2)
        assert "--output must name a folder that can be made" in sentence(result)
        return
    if kind == "a folder":
        (tmp_path / "demo" / file).mkdir()
    elif kind == "a pipe":
        os.mkfifo(tmp_path / "demo" / file)
    else:
        place_of(kind, tmp_path, "", monkeypatch)
    assert "--output must" in sentence(run(*words, "-o", tmp_path / "demo", code=2))


def test_two_fits_of_one_command_are_the_same(folder, tmp_path):
    models = []
    for number, seed in enumerate([[], [], ["--seed", "0"], ["--set", "random_state=0"], ["--seed", "5"]]):
        run("fit", "GaussianHMM", folder / "data.csv", "--set", "n_components=3", *seed, "-q",
            "-o", tmp_path / f"{number}.skops")  # fmt: skip
        models.append(load(tmp_path / f"{number}.skops"))
    assert [model.random_state for model in models] == [0, 0, 0, 0, 5]
    for model in models[1:4]:
        np.testing.assert_array_equal(model.means_, models[0].means_)


def test_the_seed_reaches_the_parts_of_a_model_but_not_what_was_set(folder, tmp_path):
    run("fit", "HMMSearchCV", folder / "data.csv", "--set", "estimator=GaussianHMM", "--set", "estimator__n_iter=2",
        "--set", "estimator__random_state=None", "--set", "param_grid={'n_components': [1, 2]}", "--set", "cv=2",
        "--set", "block_length=20", "--seed", "3", "-q", "-o", tmp_path / "search.skops")  # fmt: skip
    search = load(tmp_path / "search.skops")
    assert (search.random_state, search.estimator.random_state) == (3, None)


def test_a_seed_that_nobody_uses_is_refused(folder, tmp_path):
    place = ["-o", tmp_path / "model.skops"]
    result = run("fit", "GaussianHMM", folder / "data.csv", "--set", "random_state=1", "--seed", "2", *place, code=2)
    assert "--seed must not be given together with --set random_state=..." in sentence(result)
    result = run("fit", "NaiveBayes", folder / "data.csv", "--label", "b", "--seed", "2", *place, code=2)
    assert "--seed must not be given for NaiveBayes, whose fit draws nothing" in sentence(result)
    run("fit", "NaiveBayes", folder / "data.csv", "--label", "zz", *place, code=1)  # without it, as ever


HOSTILE = "\x1b]0;owned\x07\x1b[31m[bold]red[/]\x9b2J\x7f\r\u202eabc\u2028\ud800"


def steering(text):
    """Characters that a terminal would obey, turn or fail to write."""
    return [
        character
        for character in text
        if (character != "\n" and unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp"))
        or "\u202a" <= character <= "\u202e"
    ]  # fmt: skip


@pytest.fixture
def hostile(tmp_path):
    """A model whose file is full of such words: notes, versions, symbols, names of columns."""
    symbols = np.array([[HOSTILE], ["b"]], dtype=object)[np.arange(20) % 2]
    model = CategoricalHMM(2, n_iter=2, tol=np.inf, random_state=0).fit(symbols)
    model.feature_names_in_ = np.array([HOSTILE], dtype=object)
    save(model, tmp_path / "model.skops", notes={HOSTILE: HOSTILE, "columns": [HOSTILE], "deep": {HOSTILE: [HOSTILE]}})
    return tmp_path / "model.skops"


@pytest.mark.parametrize("arguments", [["inspect"], ["inspect", "--json"], ["report", "-o", "{folder}/x.html"]])
def test_no_word_of_a_file_steers_the_terminal(hostile, tmp_path, arguments):
    command, *rest = (argument.format(folder=tmp_path) for argument in arguments)
    result = run(command, hostile, *rest)
    assert steering(HOSTILE)
    assert steering(result.stdout) == steering(result.stderr) == []
    if command == "inspect" and not rest:
        assert r"\x1b]0;owned\x07\x1b[31m[bold]red[/]\x9b2J\x7f\r\u202eabc" in result.stdout
    elif command == "inspect":
        assert json.loads(result.stdout)["notes"][HOSTILE] == HOSTILE, "JSON says it exactly"


def test_a_word_of_a_note_cannot_fake_a_line(tmp_path):
    save(GaussianHMM(2), tmp_path / "model.skops", notes={"corpus": "x\nsaved by pluri 99.9.9"})
    assert r"corpus: x\nsaved by pluri 99.9.9" in run("inspect", tmp_path / "model.skops").stdout


def test_messages_about_words_of_files_are_escaped_too(tmp_path):
    (tmp_path / "data.csv").write_text("a,\x1b[31mb\n1,x\n2,y\n", encoding="utf-8")
    for arguments in (["--columns", "zz"], []):
        result = run("fit", "GaussianHMM", tmp_path / "data.csv", *arguments, "-o", tmp_path / "m.skops", code=1)
        assert r"\x1b[31mb" in result.stderr
        assert steering(result.stderr) == []
    result = run("predict", tmp_path / "no\x1b[31m.skops", tmp_path / "data.csv", code=1)
    assert steering(result.stderr) == []


def test_names_in_a_trace_do_not_steer_the_terminal(tmp_path):
    Trace({"x\x1b[31m": np.random.default_rng(0).normal(size=(4, 50))}, {}).save(tmp_path / "trace.npz")
    result = run("diagnose", tmp_path / "trace.npz")
    assert r"x\x1b[31m" in result.stdout
    assert steering(result.stdout) == []


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_tables_are_exact_in_files_and_pipes_and_harmless_on_terminals(monkeypatch, tmp_path):
    words = np.array(["a\x1b[31m", "b"], dtype=object)
    write_table(tmp_path / "table.csv", ["word"], [[words]])
    assert list(csv.reader(io.StringIO((tmp_path / "table.csv").read_text())))[1] == ["a\x1b[31m"]
    for stream, expected in ((io.StringIO(), "a\x1b[31m"), (Terminal(), r"a\x1b[31m")):
        monkeypatch.setattr(sys, "stdout", stream)
        write_table(None, ["word"], [[words]])
        assert stream.getvalue().splitlines()[1] == expected


def test_text_in_other_scripts_is_shown_as_it_is():
    text = "naïve 東京\u3000क\u094d\u200dष 👩\u200d💻\u00a0€"
    assert printable(text) == text
    assert printable("a\nb\tc", lines=True) == "a\nb\tc"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("empty", "data must name a file or a folder of Parquet files, got '.*empty', a folder without any"),
        ("texts", "data must name a file or a folder of Parquet files, got '.*texts', a folder without any"),
        ("zero.csv", "must have at least one row, got an empty file"),
        ("zero.npy", "must be a .npy file with numbers or text, got something else"),
        ("binary.csv", "must be text in UTF-8, got other bytes"),
        ("binary.npy", "must be a .npy file with numbers or text, got something else"),
        ("binary.parquet", "must be a Parquet file or a folder of them, got something else"),
        ("names.csv", "must have at least one row, got only the names a, b"),
        ("absent.csv", "data must name an existing file, got"),
    ],
)
@pytest.mark.parametrize("command", ["fit", "predict", "score", "select"])
def test_data_that_are_none_are_named(name, message, command, folder, tmp_path):
    pytest.importorskip("pyarrow")
    (tmp_path / "empty").mkdir()
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "data.csv").write_text("a,b\n1,2\n")
    for suffix in (".csv", ".npy"):
        (tmp_path / f"zero{suffix}").write_bytes(b"")
    for suffix in (".csv", ".npy", ".parquet"):
        (tmp_path / f"binary{suffix}").write_bytes(b"\xff\xfe\x00\x81" * 500)
    (tmp_path / "names.csv").write_text("a,b\n")
    before = {"fit": ["fit", "GaussianMixture"], "select": ["select"]}.get(command, [command, folder / "model.skops"])
    after = {"fit": ["-o", tmp_path / "model.skops", "-q"], "select": ["--size", "1"]}.get(command, [])
    result = run(*before, tmp_path / name, *after, code=1)
    assert re.search(message, sentence(result)), result.stderr


def test_a_broken_worker_is_one_sentence(folder, tmp_path, monkeypatch):
    def die(*arguments, **options):
        raise RuntimeError("a process that ran a chain ended: was it killed, or out of memory?")

    monkeypatch.setattr(HiddenMarkovModel, "fit", die)
    result = run("fit", "GaussianHMM", folder / "data.csv", "-q", "-o", tmp_path / "m.skops", code=1)
    assert result.stderr == "error: a process that ran a chain ended: was it killed, or out of memory?\n"


@pytest.fixture(scope="module")
def kinds(tmp_path_factory):
    """Models of kinds that few commands take."""
    folder = tmp_path_factory.mktemp("kinds")
    X = np.random.default_rng(0).integers(2, size=(20, 2)).astype(float)
    np.savetxt(folder / "data.csv", X, delimiter=",", header="a,b", comments="")
    save(BinaryRBM(2, n_iter=1, random_state=0).fit(X), folder / "rbm.skops")
    save(DPPSelector(3, random_state=0).fit(X + np.arange(20)[:, None]), folder / "selector.skops")
    return folder


def test_a_model_that_cannot_be_asked_that_says_so(kinds):
    for model, kind in (("rbm", "BinaryRBM"), ("selector", "DPPSelector")):
        result = run("predict", kinds / f"{model}.skops", kinds / "data.csv", code=1)
        assert result.stderr == f"error: MODEL must be able to predict, got {kind}\n"
    result = run("score", kinds / "selector.skops", kinds / "data.csv", code=1)
    assert result.stderr == "error: MODEL must be able to score, got DPPSelector\n"
    result = run("sample", kinds / "selector.skops", code=1)
    assert result.stderr == "error: MODEL must be able to sample, got DPPSelector\n"


def test_a_model_of_rows_without_labels_can_be_sampled(kinds):
    rows = list(csv.reader(io.StringIO(run("sample", kinds / "rbm.skops", "-n", "3").stdout)))
    assert rows[0] == ["x0", "x1"]
    assert [len(row) for row in rows] == [2] * 4
    assert run("sample", kinds / "rbm.skops", "-n", "3", "--json").stdout.count("columns") == 1


def test_a_folder_is_no_trace(tmp_path):
    for place in (tmp_path, tmp_path / "absent.npz"):
        result = run("diagnose", place, code=1)
        assert f"TRACE must name an existing file, got {str(place)!r}" in sentence(result)
