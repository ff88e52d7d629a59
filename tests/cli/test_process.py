"""The command as a process of its own: how it starts, and how it stops."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

import pluri
from pluri.cli.commands import COMMANDS, asked_for
from pluri.io import load

PLURI = [sys.executable, "-m", "pluri"]


def run(*arguments, **options):
    return subprocess.run([*PLURI, *map(str, arguments)], capture_output=True, text=True, **options)


HEAVY = {"numpy", "scipy", "sklearn", "numba", "pandas", "matplotlib", "pyarrow", "dask", "skops"}


def loaded_by(*arguments, **options):
    """Top-level modules that a command has imported when it ends, and what it prints."""
    program = (
        "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr)); "
        f"sys.argv = ['pluri', *{list(map(str, arguments))!r}]; from pluri.cli import main; main()"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, **options)
    return set(result.stderr.splitlines()[-1].split()), result


def test_help_needs_no_heavy_imports():
    modules, result = loaded_by("--help")
    assert result.returncode == 0
    assert all(name in result.stdout for name in COMMANDS)
    assert not HEAVY & modules
    # Nor any command: only their first lines are shown.
    assert not {f"pluri.cli.{command.module}" for command in COMMANDS.values()} & modules


def test_help_of_a_command_needs_no_heavy_imports():
    for arguments in (["fit", "--help"], ["cochange", "check", "--help"], ["topics", "-h"]):
        modules, result = loaded_by(*arguments)
        assert result.returncode == 0
        assert not HEAVY & modules


def test_a_check_before_a_commit_needs_no_more_than_numpy(tmp_path):
    git = ["git", "-c", "user.name=n", "-c", "user.email=n@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run([*git, "init", "-q"], cwd=tmp_path, check=True)
    for number in range(40):
        for name in ("a.txt", "b.txt", "c.txt", "d.txt")[: 2 if number % 3 else 4]:
            (tmp_path / name).write_text(f"{name} {number}")
        subprocess.run([*git, "add", "-A"], cwd=tmp_path, check=True)
        subprocess.run([*git, "commit", "-qm", f"change {number}"], cwd=tmp_path, check=True)
    trained = run("cochange", "train", cwd=tmp_path)
    assert trained.returncode == 0, trained.stderr
    (tmp_path / "a.txt").write_text("alone")
    subprocess.run([*git, "add", "-A"], cwd=tmp_path, check=True)
    modules, result = loaded_by("cochange", "check", "--staged", "--fail", cwd=tmp_path)
    assert (result.returncode, "b.txt" in result.stdout) == (1, True)
    assert not (HEAVY - {"numpy"}) & modules


def test_the_list_of_commands_says_what_the_commands_say():
    import inspect

    from pluri.cli.application import application

    found = {command.name: inspect.getdoc(command.callback) for command in application.registered_commands}
    for group in application.registered_groups:
        instance = group.typer_instance
        callback = instance.registered_callback
        found[instance.info.name] = instance.info.help if callback is None else inspect.getdoc(callback.callback)
    assert found.keys() == COMMANDS.keys()
    for name, text in found.items():
        assert " ".join(text.split("\n\n")[0].split()) == COMMANDS[name].help
    assert asked_for(["--version"]) is None
    assert asked_for(["-h", "fit", "x"]) == "fit"


def test_the_version_is_that_of_the_package():
    result = run("--version")
    assert (result.returncode, result.stdout, result.stderr) == (0, f"pluri {pluri.__version__}\n", "")


def test_mistakes_have_their_exit_codes(tmp_path):
    assert run("fit").returncode == 2
    failed = run("inspect", tmp_path / "absent")
    assert failed.returncode == 1
    assert failed.stdout == ""
    assert failed.stderr.startswith("error: path must name an existing model file")
    assert "Traceback" not in failed.stderr


@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
def test_ctrl_c_saves_the_best_so_far(tmp_path):
    np.save(tmp_path / "X.npy", np.random.default_rng(0).normal(size=(20_000, 2)))
    arguments = ["fit", "GaussianHMM", tmp_path / "X.npy", "--set", "n_components=6", "--set", "n_iter=1000000",
                 "--set", "tol=-inf", "--set", "verbose=2", "--json", "-o", tmp_path / "model.skops"]  # fmt: skip
    process = subprocess.Popen(
        [*PLURI, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    for line in process.stderr:
        if "iteration" in line and " 3/" in line:
            break
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    report = json.loads(output)
    assert report["interrupted"] is True
    assert report["converged"] is False
    assert "interrupted: this is the best so far" in errors
    model = load(tmp_path / "model.skops")
    assert model.n_iter_ >= 3
    assert model.verbose == 2
    assert np.isfinite(model.score(np.load(tmp_path / "X.npy")))
