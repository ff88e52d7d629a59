"""The measurement of first calls: whom it measures, its budget and its exit code; no time is measured here."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "first_call.py"


@pytest.fixture
def script(monkeypatch, tmp_path):
    """The script, for which a reference of 1 s and every fit as many seconds as `total` says."""
    spec = importlib.util.spec_from_file_location("benchmarks_first_call", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.total, module.reference = 2.0, 1.0

    def measure(fit, *, repeat, warm):
        compiled = [{"function": "pluri.f", "types": "int64", "seconds": 0.7, "own_seconds": 0.5, "depth": 0}]
        cold = {"import": 1.0, "fit": module.total - 1.0, "ask": 0.0, "second": 0.0, "compiled": compiled, "n_again": 0}
        return {"cold": cold, "warm": cold | {"compiled": []} if warm else None, "total": module.total}

    monkeypatch.setattr(module, "measure", measure)
    monkeypatch.setattr(module, "reference_seconds", lambda: module.reference)
    monkeypatch.setattr(module, "BUDGET", tmp_path / "budget.toml")
    return module


def test_a_total_above_its_budget_is_a_failure_and_noise_is_not(script, capsys):
    chosen = ["--only", "DPP", "KDPP"]
    assert script.main([*chosen, "--update"]) == 0
    assert script.read_budget() == {"reference": 1.0, "seconds": {"DPP": 2.0, "KDPP": 2.0}}
    script.total = 2.8  # 30 percent and 0.3 s above are 2.9 s
    assert script.main(chosen) == 0
    script.total = 3.0
    assert script.main(chosen) == 1
    assert "OVER ITS BUDGET (2.90 s)" in capsys.readouterr().out
    script.reference = 1.5  # a slower machine
    assert script.main(chosen) == 0


def test_an_update_keeps_what_was_not_measured_in_seconds_of_this_machine(script):
    script.main(["--only", "DPP", "KDPP", "--update"])
    script.reference, script.total = 2.0, 5.0
    script.main(["--only", "DPP", "--update"])
    assert script.read_budget() == {"reference": 2.0, "seconds": {"DPP": 5.0, "KDPP": 4.0}}


def test_a_name_chooses_itself_and_a_word_all_that_hold_it(script, capsys):
    from pluri.cli.compiling.tiny_fits import tiny_fits

    fits = tiny_fits()

    def names(*words, quick=False):
        return {fit.title for fit in script.choose(fits, words, quick)}

    assert names("DPP") == {"DPP"}
    assert {"PoissonHMM", "GaussianHMM"} < names("hmm")
    assert names(quick=True) == set(script.COMMON)
    assert names() == {fit.title for fit in fits}
    with pytest.raises(SystemExit, match="--only must be part of a name"):
        names("nothing")


def test_functions_are_listed_by_their_own_time(script, capsys):
    assert script.main(["--only", "DPP", "KDPP", "--functions", "--cold"]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.endswith("  f")]
    assert line.split() == ["1.00", "0.70", "2", "2", "f"]


def test_what_fails_is_named_and_is_a_failure(script, monkeypatch, capsys):
    def fail(fit, **options):
        raise RuntimeError("ValueError: no")

    monkeypatch.setattr(script, "measure", fail)
    assert script.main(["--only", "DPP"]) == 1
    assert "FAILED: ValueError: no" in capsys.readouterr().out


def test_the_budget_is_of_things_that_there_are():
    from pluri.cli.compiling.tiny_fits import tiny_fits

    spec = importlib.util.spec_from_file_location("benchmarks_first_call", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert set(module.read_budget()["seconds"]) <= {fit.title for fit in tiny_fits(every_setting=True)}
