"""The runner of the benchmarks: what it finds, what becomes of failures, and its table."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def runner():
    spec = importlib.util.spec_from_file_location("benchmarks_run", FOLDER / "run.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look up their module there
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


SCRIPTS = {
    "good": "print('fine')",
    "wrong": "import sys\nprint('before')\nsys.exit('numbers differ, no ratio')",
    "crash": "1 / 0",
    "no_data": "raise FileNotFoundError('data_home (/nowhere) must hold a.gz or b.gz, which is not there; give it')",
    "no_file": "import os\nopen(os.path.join(os.environ['PLURI_DATA'], 'c.npz'))",
    "no_file_of_ours": "open('no/such/file')",
    "no_variable": "import os\nos.environ.pop('PLURI_DATA', None)\nos.environ['PLURI_DATA']",
    "no_library": "import a_library_that_is_not_there",
    "no_module_of_ours": "import pluri.not_there",
    "quick": "import sys\nassert sys.argv[1:] == ['--quick']  # \"--quick\"",
}


@pytest.fixture
def folder(tmp_path):
    for place in ("peers", "reproduce"):
        (tmp_path / place).mkdir()
    for name, body in SCRIPTS.items():
        usage = f'"""Something.\n\n    python benchmarks/peers/{name}.py\n"""\n'
        (tmp_path / "peers" / f"{name}.py").write_text(usage + body + "\n")
    (tmp_path / "reproduce" / "published.py").write_text('"""Numbers that benchmarks share."""\nraise ValueError\n')
    return tmp_path


def test_every_script_that_runs_by_itself_is_found_and_no_other(runner):
    found = {benchmark.name for benchmark in runner.find()}
    files = {
        path.relative_to(FOLDER).with_suffix("").as_posix()
        for path in FOLDER.rglob("*.py")
        if '__name__ == "__main__"' in path.read_text(encoding="utf-8")
    }
    # One file is both a part of another benchmark and a program.
    assert found == files - {"peers/manifold_peer", "run"}
    assert set(runner.LONG) <= found


def test_a_file_that_tells_no_usage_is_a_part_of_others(runner, folder):
    assert [benchmark.name for benchmark in runner.find(folder)] == [f"peers/{name}" for name in sorted(SCRIPTS)]


def test_each_outcome_has_its_state_and_reason_and_none_ends_the_others(runner, folder, capfd, monkeypatch):
    monkeypatch.setenv("PLURI_DATA", str(folder / "data"))
    outcomes = {outcome.name.removeprefix("peers/"): outcome for outcome in runner.run_all(runner.find(folder), True)}
    states = {name: outcome.state for name, outcome in outcomes.items()}
    assert states == {
        "good": runner.DONE, "quick": runner.DONE, "wrong": runner.FAILED, "crash": runner.FAILED,
        "no_data": runner.SKIPPED, "no_variable": runner.SKIPPED, "no_library": runner.SKIPPED,
        "no_module_of_ours": runner.FAILED, "no_file": runner.SKIPPED, "no_file_of_ours": runner.FAILED,
    }  # fmt: skip
    assert outcomes["no_data"].reason == "a.gz or b.gz is not in the data"
    assert outcomes["no_file"].reason == "c.npz is not in the data"
    assert outcomes["no_variable"].reason == "PLURI_DATA is not set"
    assert outcomes["no_library"].reason == "a_library_that_is_not_there is not installed"
    assert outcomes["wrong"].reason == "numbers differ, no ratio"
    assert outcomes["crash"].reason.startswith("ZeroDivisionError")
    assert "fine" in capfd.readouterr().out


def test_ctrl_c_ends_the_rest_and_the_table_tells(runner, folder, capsys):
    def interrupted(benchmark, quick):
        return runner.Outcome(benchmark.name, runner.INTERRUPTED, 1.0)

    outcomes = runner.run_all(runner.find(folder), False, interrupted)
    assert len(outcomes) == 1
    assert "1 interrupted" in runner.summary(outcomes)


def test_the_table_has_a_line_for_each_and_counts_them(runner):
    outcomes = [
        runner.Outcome("peers/a", runner.DONE, 61.0),
        runner.Outcome("peers/long_name", runner.SKIPPED, 1.0, "x is not installed"),
        runner.Outcome("reproduce/b", runner.DONE, 58.0),
    ]
    lines = runner.summary(outcomes).splitlines()
    assert lines[-1] == "2 done, 1 skipped; 2 minutes"
    assert lines[1].split() == ["peers/long_name", "skipped", "1", "s", "x", "is", "not", "installed"]
    assert len({line.index(" s") for line in lines[:3] if line.endswith(" s")}) == 1
    assert "nothing to do" in runner.summary([])


def test_words_choose_by_name_and_an_unknown_word_is_an_error(runner, folder):
    found = runner.find(folder)
    assert [item.name for item in runner.choose(found, ["good", "wrong"])] == ["peers/good", "peers/wrong"]
    assert runner.choose(found, []) == found
    with pytest.raises(SystemExit, match=r"must be part of a name .*got 'nothing'"):
        runner.choose(found, ["nothing"])


def test_the_long_ones_run_in_their_short_form_by_default(runner):
    named = {item.name: item for item in runner.find()}
    for name in runner.LONG:
        assert runner.arguments_of(named[name], quick=False) == ["--quick"]
    assert runner.arguments_of(named["peers/hmm"], quick=True) == []
    assert runner.arguments_of(named["reproduce/lda_newsgroups"], quick=True) == ["--quick"]
    assert runner.arguments_of(named["reproduce/lda_newsgroups"], quick=False) == []
