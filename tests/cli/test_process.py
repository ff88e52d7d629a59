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
from pluri.io import load

PLURI = [sys.executable, "-m", "pluri"]


def run(*arguments, **options):
    return subprocess.run([*PLURI, *map(str, arguments)], capture_output=True, text=True, **options)


def test_help_needs_no_heavy_imports():
    result = run("--help")
    assert result.returncode == 0
    assert all(name in result.stdout for name in ("demo", "models", "fit", "predict", "score", "sample", "inspect"))
    program = "import sys, pluri.cli.application; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    for heavy in ("numpy", "scipy", "sklearn", "numba", "matplotlib", "pyarrow", "dask", "skops"):
        assert heavy not in loaded


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
