"""The file of labels and the session around it: nothing is lost, nothing waits, and what is wrong is said."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from pluri.decisions.labelling.journal import LabelJournal
from pluri.decisions.labelling.pool import LabelPool
from pluri.decisions.labelling.session import LabelSession

NAMES = ["a", "b"]


def journal_at(tmp_path, pool="digest", classes=NAMES):
    return LabelJournal(tmp_path / "labels.jsonl", pool, classes)


def test_answers_come_back_in_their_order_without_those_taken_back(tmp_path):
    journal = journal_at(tmp_path)
    journal.add(3, "a")
    journal.add(1, None)
    journal.add(2, "b")
    assert journal.take_back() == (2, "b")
    journal.add(2, "a")
    journal.add_point(3, 0.5, 0.1)
    journal.close()
    again = journal_at(tmp_path)
    assert again.answers == journal.answers == [(3, "a"), (1, None), (2, "a")]
    assert again.labels() == {3: "a", 2: "a"}
    assert again.curve == [(3, 0.5, 0.1)]
    for _ in range(3):
        again.take_back()
    assert again.take_back() is None
    again.close()


def test_a_file_cut_at_any_byte_keeps_every_whole_line(tmp_path):
    journal = journal_at(tmp_path)
    for row in range(4):
        journal.add(row, "a")
    journal.close()
    content = (tmp_path / "labels.jsonl").read_bytes()
    for cut in range(len(content) + 1):
        (tmp_path / "labels.jsonl").write_bytes(content[:cut])
        part = journal_at(tmp_path)
        whole = max(0, content[:cut].count(b"\n") - 1)
        assert [answer.row for answer in part.answers] == list(range(whole))
        part.add(9, "b")
        part.close()
        lines = [json.loads(line) for line in (tmp_path / "labels.jsonl").read_text().splitlines()]
        assert lines[-1] == {"row": 9, "label": "b"}


@pytest.mark.parametrize("content", [b"hello", b'{"row": 1}\n', b"\xff\n", b'{"format": "pluri labels 1"', b"[1]\n"])
def test_other_files_are_refused_and_left_alone(tmp_path, content):
    (tmp_path / "labels.jsonl").write_bytes(content)
    if content.startswith(b'{"format'):  # the beginning of ours: nothing was in it
        journal_at(tmp_path).close()
        return
    with pytest.raises(ValueError, match="labels must be a file of labels"):
        journal_at(tmp_path)
    assert (tmp_path / "labels.jsonl").read_bytes() == content


def test_labels_of_other_items_or_classes_are_refused(tmp_path):
    journal_at(tmp_path).close()
    with pytest.raises(ValueError, match="labels must be of these items"):
        journal_at(tmp_path, "another")
    with pytest.raises(ValueError, match=r"classes must have all of those in .*, got none named b"):
        journal_at(tmp_path, classes=["a", "c"])
    more = journal_at(tmp_path, classes=["a", "b", "c"])
    more.add(0, "c")
    more.close()


def test_a_file_in_use_is_refused(tmp_path):
    pytest.importorskip("fcntl")
    journal = journal_at(tmp_path)
    with pytest.raises(ValueError, match="which is in use"):
        journal_at(tmp_path)
    journal.close()
    journal_at(tmp_path).close()


def test_what_was_confirmed_survives_a_kill(tmp_path):
    program = (
        "import sys\nfrom pluri.decisions.labelling.journal import LabelJournal\n"
        "journal = LabelJournal(sys.argv[1], 'digest', ['a', 'b'])\n"
        "for row in range(10**9):\n    journal.add(row, 'a')\n    print(row, flush=True)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "labels.jsonl")], stdout=subprocess.PIPE, text=True
    )
    seen = [int(process.stdout.readline()) for _ in range(50)]
    process.send_signal(signal.SIGKILL)
    seen += [int(line) for line in process.communicate()[0].splitlines()]
    journal = journal_at(tmp_path)
    rows = [answer.row for answer in journal.answers]
    assert rows == list(range(len(rows)))
    assert len(rows) >= len(seen)
    journal.close()


def table(n_rows=60):
    rng = np.random.default_rng(0)
    group = np.arange(n_rows) % 2
    return LabelPool.of_columns({"x": rng.normal(size=n_rows) + 4 * group, "y": rng.normal(size=n_rows)}), group


def session_at(tmp_path, pool, **settings):
    return LabelSession(pool, NAMES, LabelJournal(tmp_path / "labels.jsonl", pool.digest, NAMES), **settings)


def wait_for(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_session_asks_every_item_once_and_learns_meanwhile(tmp_path):
    pool, group = table()
    rows = []
    with session_at(tmp_path, pool, random_state=0) as session:
        state = session.state()
        while state["item"] is not None:
            rows.append(state["item"]["row"])
            state = session.answer(rows[-1], NAMES[group[rows[-1]]])
            if len(rows) == 30:
                wait_for(lambda: session.state()["n_fitted"] == 30 and session.state()["curve"])
        wait_for(lambda: session.state()["curve"][-1][0] > 50)
        assert session.state()["counts"] == [30, 30]
        assert 0.8 < session.state()["curve"][-1][1] <= 1
    assert sorted(rows) == list(range(60))
    assert set(group[rows[:3]]) == {0, 1}  # the first items differ from each other


def test_an_answer_does_not_wait_for_the_model(tmp_path):
    pool, group = table()
    gate, entered = threading.Event(), threading.Event()

    def slow(learner, rows):
        entered.set()
        assert gate.wait(60)
        return np.zeros(len(rows))

    with session_at(tmp_path, pool, strategy=slow, random_state=0) as session:
        rows, state = [], session.state()
        while len(rows) < 40:  # far more than were chosen before
            rows.append(state["item"]["row"])
            state = session.answer(rows[-1], NAMES[group[rows[-1]]])
        assert entered.wait(60)
        assert not gate.is_set()
        assert state["n_fitted"] == 0
        assert len(set(rows)) == 40
        gate.set()
        wait_for(lambda: session.state()["n_fitted"] == 40)


def test_a_model_that_fails_does_not_end_the_labelling(tmp_path):
    pool, group = table()

    def broken(learner, rows):
        raise RuntimeError("no such thing")

    with session_at(tmp_path, pool, strategy=broken, random_state=0) as session:
        state = session.state()
        for _ in range(20):
            row = state["item"]["row"]
            state = session.answer(row, NAMES[group[row]])
        wait_for(lambda: "no such thing" in session.state()["trouble"])
        assert session.state()["n_labels"] == 20


def test_known_labels_are_taught_and_not_asked_for(tmp_path):
    pool, group = table(20)
    known = {row: NAMES[group[row]] for row in range(10)}
    with session_at(tmp_path, pool, known=known, random_state=0) as session:
        wait_for(lambda: session.state()["n_fitted"] == 10)
        assert session.state()["item"]["row"] >= 10
        assert session.state()["n_labels"] == 10


def test_answers_that_cannot_be_meant_are_refused(tmp_path):
    pool, _ = table(20)
    with session_at(tmp_path, pool, random_state=0) as session:
        row = session.state()["item"]["row"]
        with pytest.raises(ValueError, match="label must be among a, b, got 'c'"):
            session.answer(row, "c")
        with pytest.raises(LookupError, match="is not the one that is asked for now"):
            session.answer((row + 1) % 20, "a")
        assert session.take_back()["item"]["row"] == row  # nothing to take back
    with pytest.raises(ValueError, match="closed"):
        session.answer(row, "a")
    with pytest.raises(ValueError, match="labels must be of rows from 0 to 19, got row 99"):
        LabelSession(pool, NAMES, session.journal, known={99: "a"})


def test_pools_of_texts_tables_and_pictures():
    texts = LabelPool.of_texts(["red apple", None, "red car"], {"from": ["x", None, 3.5]})
    assert texts.features.shape == (3, 3)
    assert texts.shown[1] == {"text": "", "cells": [["from", ""]]}
    assert texts.shown[2]["cells"] == [["from", "3.5"]]
    holes = LabelPool.of_columns({"a": [1.0, np.nan, 3.0], "name": ["u", "v", "w"]})
    assert np.isfinite(holes.features).all()
    for make, message in (
        (lambda: LabelPool.of_texts(["", " "]), "texts must have words"),
        (lambda: LabelPool.of_columns({"name": ["u", "v"]}), "columns must have at least one of numbers"),
        (lambda: LabelPool.of_columns({"a": [1.0, np.inf]}), "columns must be finite, got infinity in row 1"),
        (lambda: LabelPool.of_pictures(np.zeros((2, 5)), 2, 2), "pixels must be 2 times 2 = 4 columns, got 5"),
    ):
        with pytest.raises(ValueError, match=message):
            make()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="shell of a Unix")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--classes must name the classes"),
        (["--classes", "a"], "--classes must be from 2 to 33"),
        (["--classes", "a,a"], "--classes must have different names"),
        (["--classes", "a,b", "--strategy", "guess"], "--strategy must be one of"),
        (["--classes", "a,b", "--text", "nowhere"], "--text must be one of the columns"),
        (["--classes", "a,b", "--picture", "9"], "--picture must be of the form WIDTHxHEIGHT"),
        (["--classes", "a,b", "--picture", "9x9"], "--picture 9x9 must be the number of columns of numbers"),
    ],
)
def test_commands_that_cannot_be_meant_are_refused(tmp_path, arguments, message):
    from typer.testing import CliRunner

    from pluri.cli.application import application

    (tmp_path / "pool.csv").write_text("x,y\n1,2\n3,4\n5,6\n")
    result = CliRunner().invoke(application, ["label", str(tmp_path / "pool.csv"), "--no-browser", *arguments])
    assert result.exit_code == 2
    assert message in " ".join(result.output.replace("│", " ").split())


def test_labels_are_exported_beside_their_rows(tmp_path):
    from typer.testing import CliRunner

    from pluri.cli.application import application
    from pluri.cli.labelling.reading import read_items

    pool = tmp_path / "pool.csv"
    pool.write_text('text,size,kind\n"red, blue",1.5,x\ngreen,,\nblue,2,\n')
    items = read_items(pool, "kind", "text", None, None)
    assert items.known == {0: "x"}
    journal = LabelJournal(tmp_path / "pool.labels.jsonl", items.pool.digest, ["x", "y"])
    journal.add(2, "y")
    journal.close()
    command = ["label", str(pool), "--label-column", "kind", "--text", "text", "--classes", "x,y"]
    result = CliRunner().invoke(application, [*command, "--export", str(tmp_path / "out.csv")])
    assert result.exit_code == 0, result.output
    assert (tmp_path / "out.csv").read_text().splitlines() == [
        "text,size,kind",
        '"red, blue",1.5,x',
        "green,,",
        "blue,2,y",
    ]


def test_other_cells_are_exported_as_they_were(tmp_path):
    from typer.testing import CliRunner

    from pluri.cli.application import application

    rows = ["007,12345678901234567890,1e3,na,x", "008,12345678901234567891, 2.50 ,3,y"]
    (tmp_path / "pool.csv").write_text("\n".join(["id,number,size,other,label", *rows]) + "\n")
    result = CliRunner().invoke(
        application, ["label", str(tmp_path / "pool.csv"), "--export", str(tmp_path / "out.csv")]
    )
    assert result.exit_code == 0, result.output
    assert (tmp_path / "out.csv").read_text().splitlines()[1:] == rows
