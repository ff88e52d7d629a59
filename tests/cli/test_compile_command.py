"""``pluri compile``: what it runs, what it keeps, and what it says when nothing can be kept."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import pluri
from pluri.cli.application import application
from pluri.cli.compiling import command, work
from pluri.cli.compiling.tiny_fits import PACKAGES, TinyFit, tiny_fits

SOURCE = Path(pluri.__file__).parent.parent


def run(*words, code):
    result = CliRunner().invoke(application, ["compile", *words], catch_exceptions=False)
    assert result.exit_code == code, result.output
    return " ".join(re.sub(r"[─│╭╮╰╯]", " ", result.stderr).split()), result.stdout


@pytest.fixture
def nothing_runs(monkeypatch):
    """Every small fit is over at once, with an outcome that the test says."""
    made = {}

    def run_all(fits, n_jobs, report):
        made["fits"], made["n_jobs"] = fits, n_jobs
        outcomes = [made.get("outcome", work.Outcome)(fit.title) for fit in fits]
        for outcome in outcomes:
            report(outcome)
        return outcomes

    monkeypatch.setattr(work, "run_all", run_all)
    monkeypatch.setattr(command, "_writable_folder", lambda: "/somewhere")
    return made


def test_all_families_are_compiled_and_the_last_line_counts_functions(nothing_runs):
    nothing_runs["outcome"] = lambda title: work.Outcome(title, frozenset({("pluri.f", "int64"), ("pluri.g", title)}))
    errors, output = run("--jobs", "3", code=0)
    assert nothing_runs["n_jobs"] == 3
    assert {fit.package.split(".")[1] for fit in nothing_runs["fits"]} == set(PACKAGES)
    titles = {fit.title for fit in nothing_runs["fits"]}
    assert {"GaussianHMM", "LatentDirichletAllocation(inference='gibbs')", "particle_filter", "DPP"} <= titles
    combinations = 1 + len(titles)
    assert re.fullmatch(
        rf"2 functions compiled for {combinations} combinations of types in \d+ s, kept in /somewhere\n", output
    )
    assert f"{len(titles)}/{len(titles)}" in errors


def test_one_family_is_compiled_alone(nothing_runs):
    run("factors", "-q", code=0)
    assert {fit.package.split(".")[1] for fit in nothing_runs["fits"]} == {"factors"}


def test_a_family_that_there_is_not_is_refused(nothing_runs):
    errors, _ = run("hmm", code=2)
    assert "FAMILY must be one of sequences, mixtures" in errors
    assert "got 'hmm'" in errors


def test_a_fit_that_fails_is_named_and_is_a_failure(nothing_runs):
    nothing_runs["outcome"] = lambda title: work.Outcome(title, failure="ValueError: no" if title == "DPP" else "")
    errors, _ = run("-q", code=1)
    assert "DPP could not be run: ValueError: no" in errors
    assert "1 of" in errors


def test_code_that_could_not_be_kept_is_a_failure(nothing_runs):
    nothing_runs["outcome"] = lambda title: work.Outcome(title, unkept="compiled code cannot be kept in /full")
    errors, _ = run("-q", code=1)
    assert "error: compiled code cannot be kept in /full" in errors


def test_an_impossible_folder_is_one_sentence_and_a_failure():
    done = subprocess.run(
        [sys.executable, "-m", "pluri", "compile", "factors", "--jobs", "1"], capture_output=True, text=True,
        env=os.environ | {"NUMBA_CACHE_DIR": "/dev/null/nowhere", "PYTHONPATH": str(SOURCE)},
    )  # fmt: skip
    assert done.returncode == 1
    (told,) = [line for line in done.stderr.splitlines() if line.startswith("error:")]
    assert told == "error: NUMBA_CACHE_DIR must be a folder that can be written, got /dev/null/nowhere"
    assert done.stdout == ""


def test_without_any_folder_there_is_nothing_to_do(monkeypatch):
    monkeypatch.setattr("pluri.engine.compiled.cache_folder", lambda: None)
    errors, _ = run(code=1)
    assert "compiled code can be kept nowhere" in errors


def test_processes_fill_the_cache_that_the_next_ones_read(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(SOURCE))
    fits = [TinyFit("LogisticPCA", "pluri.factors", "binary"), TinyFit("IsingDenoiser", "pluri.processes", "image")]
    seen = []
    first = work.run_all(fits, 2, seen.append)
    assert [outcome.title for outcome in first] == [outcome.title for outcome in seen]
    assert {outcome.title for outcome in first} == {"LogisticPCA", "IsingDenoiser"}
    assert not any(outcome.failure or outcome.unkept for outcome in first)
    assert any(outcome.compiled for outcome in first)
    assert len(list(tmp_path.rglob("*.nbi"))) > 0
    assert all(not outcome.compiled for outcome in work.run_all(fits, 1, seen.append))


def test_processes_begin_with_different_packages():
    groups = list(work._groups(tiny_fits(every_setting=True)))
    assert sum(len(group) for group in groups) == len(tiny_fits(every_setting=True))
    assert all(len({fit.name for fit in group}) == 1 for group in groups)
    assert len({group[0].package for group in groups[:5]}) == 5
