import io
import re
import subprocess
import sys

import numpy as np
import pytest
from rich.console import Console

from pluri.inference import expectation_maximization
from pluri.inference.run import IterationState
from pluri.progress import open_progress


def iterations(n_iter, n_init=1, max_iter=30):
    for restart in range(n_init):
        for iteration in range(1, n_iter + 1):
            yield IterationState(
                params=None,
                restart=restart,
                n_init=n_init,
                iteration=iteration,
                max_iter=max_iter,
                objective=-100.0 + iteration,
                log_likelihood=-100.0 + iteration,
                gain=1.0 if iteration > 1 else np.nan,
                seconds=0.1,
                accepted=True,
                reason="converged" if iteration == n_iter else None,
            )


def show(verbose, console=None, **options):
    with open_progress(verbose, console) as report:
        for state in iterations(**options):
            report(state)


def test_default_is_silent(capfd):
    show(verbose=0, n_iter=25)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(("verbose", "expected"), [(1, [1, 10, 20, 23]), (2, list(range(1, 24)))])
def test_pipe_gets_lines_on_stderr(capsys, verbose, expected):
    show(verbose, n_iter=23, n_init=2)
    captured = capsys.readouterr()
    assert captured.out == ""
    lines = captured.err.splitlines()
    assert [int(re.search(r"iteration +(\d+)/30", line).group(1)) for line in lines] == 2 * expected
    assert lines[0].startswith("run 1/2  iteration  1/30  objective -99.0000  gain -")
    assert lines[-1].startswith("run 2/2  iteration 23/30  objective -77.0000  gain +1.00e+00")
    assert lines[-1].endswith("converged")


@pytest.mark.parametrize("verbose", [1, 2])
def test_terminal_gets_a_bar_per_run(verbose):
    console = Console(file=io.StringIO(), force_terminal=True, width=120, color_system=None)
    show(verbose, console, n_iter=23, n_init=2)
    text = console.file.getvalue()
    final = [line for line in text.splitlines() if "23/23" in line][-2:]
    assert [re.search(r"run (\d)/2", line).group(1) for line in final] == ["1", "2"]
    assert all("objective -77.0000" in line and "gain +1.00e+00" in line for line in final)
    assert text.count("iteration ") == (46 if verbose == 2 else 0)


def test_loop_reports_its_iterations(toys, capsys):
    result = expectation_maximization(
        toys.Mixture(), toys.source(toys.two_groups()), rng=np.random.default_rng(0), max_iter=4, tol=-np.inf, verbose=2
    )
    shown = [float(line.split("objective ")[1].split()[0]) for line in capsys.readouterr().err.splitlines()]
    np.testing.assert_allclose(shown, result.history.objective, atol=1e-4)


def test_importing_the_loop_stays_light():
    heavy = ["rich", "sklearn", "scipy", "dask", "pandas"]
    code = f"import sys, pluri.inference; print([name for name in {heavy} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
