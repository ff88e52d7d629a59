"""``pluri neurons``: scripts in a batch, at a prompt, by name; files, exit codes and sentences."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from typer.testing import CliRunner

from pluri.cli.application import application
from pluri.cli.neurons.prompt import history_file, take_commands
from pluri.neurons import Simulation
from pluri.neurons.language import Interpreter
from pluri.neurons.language.completion import completions
from pluri.neurons.scripts import shipped_scripts

SMALL = """create active_compartment /soma -length 20 -diameter 20 -inject 0.1
create axon /axon
link /soma to /axon
graph /soma Vm
record /soma n
reset
step -time 30
echo ended at {time()} ms
"""


def run(*arguments, **settings):
    return CliRunner().invoke(application, ["neurons", *map(str, arguments)], **settings)


def test_a_script_runs_and_its_files_hold_what_it_recorded(tmp_path):
    (tmp_path / "small.g").write_text(SMALL)
    for kind in ("npz", "csv"):
        done = run(tmp_path / "small.g", "--results", tmp_path / f"r.{kind}")
        assert done.exit_code == 0, done.output
        assert done.stdout == "ended at 30 ms\n"
        assert "30 ms simulated" in done.stderr
    result = Simulation().run_script(tmp_path / "small.g")
    with np.load(tmp_path / "r.npz", allow_pickle=False) as file:
        np.testing.assert_array_equal(file["time"], result.time)
        np.testing.assert_array_equal(file["/soma Vm"], result["/soma", "Vm"])
        np.testing.assert_array_equal(file["spike_times"], result.spikes("/axon"))
        assert [file["spike_names"][unit] for unit in file["spike_units"]] == ["/axon"] * len(file["spike_times"])
    with open(tmp_path / "r.csv") as file:
        assert file.readline().strip().split(",") == ["time", "/soma Vm", "/soma n"]
    table = np.loadtxt(tmp_path / "r.csv", delimiter=",", skiprows=1)
    np.testing.assert_array_equal(table[:, 1], result["/soma", "Vm"])
    again = run(tmp_path / "small.g", "--results", tmp_path / "r.npz")
    assert again.exit_code == 2
    assert "--force" in again.output


def test_a_page_is_written_that_needs_nothing(tmp_path):
    (tmp_path / "small.g").write_text("// Small cell: it fires\n" + SMALL)
    done = run(tmp_path / "small.g", "--save-page", tmp_path / "p.html")
    assert done.exit_code == 0, done.output
    page = (tmp_path / "p.html").read_text(encoding="utf-8")
    assert "<title>Small cell</title>" in page
    assert "connect-src" not in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert run(tmp_path / "small.g", "--save-page", tmp_path / "p.txt").exit_code == 2


def test_scripts_are_listed_and_found_by_name():
    listed = run("--list")
    assert listed.exit_code == 0
    assert all(name in listed.stdout for name in shipped_scripts())
    done = run("hodgkin_huxley")
    assert done.exit_code == 0, done.output
    wrong = run("hodgkin_huxly")
    assert wrong.exit_code == 2
    assert "did you mean hodgkin_huxley?" in " ".join(wrong.output.replace("│", " ").split())


def test_a_mistake_is_shown_with_its_line_and_has_exit_code_1(tmp_path):
    (tmp_path / "wrong.g").write_text("create group /net\n  create grup /net/a\n")
    done = run(tmp_path / "wrong.g")
    assert done.exit_code == 1
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert lines[0] == "    create grup /net/a"
    assert lines[1].index("^") == lines[0].index("grup")
    assert lines[2] == "error: wrong.g, line 2, column 10: unknown class of elements 'grup' (did you mean group?)"
    (tmp_path / "blow.g").write_text(
        "method euler\nsetclock 0 0.5\ncreate passive_compartment /s -rm 100\nstep -time 50\n"
    )
    done = run(tmp_path / "blow.g")
    assert done.exit_code == 1
    assert "/s" in done.stderr.splitlines()[-1]
    assert "reduce dt" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.output


def test_control_characters_of_a_script_do_not_reach_the_terminal(tmp_path):
    (tmp_path / "red.g").write_text('echo "\x1b[31mred"\ncreate \x1b[31mgroup /a\n')
    done = run(tmp_path / "red.g")
    assert "\x1b" not in done.output
    (tmp_path / "red.g").write_text('echo "\x1b[31mred"\n')
    assert run(tmp_path / "red.g").stdout == "\\x1b[31mred\n"


def test_a_script_may_come_through_a_pipe():
    done = run(input="echo {1 + 1}\nfrobnicate\n")
    assert done.exit_code == 1
    assert "error: <stdin>, line 2, column 1: unknown command 'frobnicate'" in done.stderr
    done = run(input="echo {1 + 1}\n")
    assert (done.exit_code, done.stdout) == (0, "2\n")


def take(*lines):
    waiting = iter(lines)
    prompts = []

    def read(prompt):
        prompts.append(prompt)
        line = next(waiting, None)
        if line is None:
            raise EOFError
        if isinstance(line, BaseException):
            raise line
        return line

    return take_commands(Simulation(), read), prompts


def test_the_prompt_goes_on_after_mistakes_and_interrupts(capsys):
    sim, prompts = take(
        "create group /net", "creat group /x", "for i = 1 to 2", "create group /net/c[{i}]", KeyboardInterrupt(),
        "for i = 1 to 2", "create group /net/c[{i}]", "end", "echo {count(/net/*)}", "",
    )  # fmt: skip
    out, err = capsys.readouterr()
    assert [one.name for one in sim.find("/net/*")] == ["c[1]", "c[2]"]
    assert "2" in out
    assert "did you mean create" in err
    assert "interrupted" in err
    assert "Traceback" not in err
    assert [prompt.strip() for prompt in prompts].count("...") == 4
    sim, _ = take("create group /a", "quit", "create group /b")
    assert [one.name for one in sim.find("/*")] == ["a"]


def test_words_at_the_prompt_are_completed():
    interpreter = Interpreter(Simulation())
    interpreter.run_text("create group /net\ncreate passive_compartment /net/alpha\nfunction fire\nend\nnumber = 3")
    for line, expected in {
        "cre": ["create"],
        "create passive": ["passive_compartment"],
        "create passive_compartment /net/b -len": ["-length"],
        "connect /a to /b -d": ["-delay"],
        "set /n": ["/net"],
        "set /net/a": ["/net/alpha"],
        "set /net/alpha len": ["length"],
        "link /net ": ["to"],
        "call f": ["fire"],
        "help sho": ["show"],
        "echo {num": ["{number"],
        "echo {sq": ["{sqrt("],
        "frobnicate -x": [],
        "create nothing /a -x": [],
        "set /net/[ x": [],
    }.items():
        assert completions(interpreter, line) == expected, line


def test_the_history_is_kept_where_others_keep_theirs(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert history_file() == tmp_path / "pluri" / "neurons_history"


@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
def test_ctrl_c_ends_a_loop_and_keeps_what_was_recorded(tmp_path):
    (tmp_path / "long.g").write_text(SMALL + "echo now\nstep -time 100000000\n")
    arguments = [str(tmp_path / "long.g"), "--results", str(tmp_path / "r.npz")]
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "pluri", "neurons", *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    for line in process.stdout:
        if line.strip() == "now":
            break
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "interrupted: this is what was recorded so far" in errors
    with np.load(tmp_path / "r.npz", allow_pickle=False) as file:
        assert file["time"][-1] >= 30
