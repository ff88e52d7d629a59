"""``pluri cochange`` from end to end, on a repository with known commits."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from pluri.cli.application import application

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="no git on the PATH")

GROUPS = [("src/a.c", "src/a.h", "docs/a.md"), ("src/b.c", "src/b.h"), ("with space.txt", "new\nline.txt", "ü.c")]
ENVIRONMENT = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_AUTHOR_DATE": "1300000000 +0000",
    "GIT_COMMITTER_NAME": "C",
    "GIT_COMMITTER_EMAIL": "c@example.org",
    "GIT_COMMITTER_DATE": "1300000000 +0000",
}


def git(folder, *arguments, stdin=None):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, env=kept | ENVIRONMENT, input=stdin, capture_output=True, check=True).stdout.decode()


def quoted(path):
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def make_repository(folder, commits):
    """Commits in one go: lists of files, one hour after another."""
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch=main")
    lines = []
    for number, files in enumerate(commits):
        when = 1_200_000_000 + 3600 * number
        lines += ["commit refs/heads/main", f"author A <a@example.org> {when} +0000"]
        lines += [f"committer C <c@example.org> {when} +0000", "data 1", "x"]
        for file in files:
            text = f"{file!r} {number}"
            lines += [f"M 100644 inline {quoted(file)}", f"data {len(text.encode())}", text]
    git(folder, "fast-import", "--quiet", stdin="\n".join(lines).encode() + b"\n")
    git(folder, "reset", "--quiet", "--hard", "main")


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    rng = np.random.default_rng(0)
    commits = [
        [file for file in GROUPS[rng.integers(3)] if rng.random() < 0.9] + (["log"] if rng.random() < 0.3 else [])
        for _ in range(90)
    ]
    folder = tmp_path_factory.mktemp("cochange") / "repository"
    make_repository(folder, [files or ["log"] for files in commits])
    assert run("train", folder, "--model", "cooccurrence").stderr.count("saved in") == 1
    return folder


@pytest.fixture
def repository(original, tmp_path, monkeypatch):
    shutil.copytree(original, tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    return tmp_path / "copy"


def run(*arguments, code=0):
    result = CliRunner().invoke(application, ["cochange", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result


def test_training_keeps_the_model_where_nobody_commits_it(repository):
    assert (repository / ".git" / "pluri-cochange.skops").is_file()
    assert git(repository, "status", "--porcelain") == ""
    report = json.loads(run("train", "--json", "--model", "pairwise").stdout)
    assert report["n_commits"] == 90
    assert report["n_files"] == 9
    assert report["validation"]["n_queries"] > 5
    assert Path(report["output"]) == (repository / ".git" / "pluri-cochange.skops").resolve()
    assert set(report) == {
        *("model", "n_commits", "n_files", "first_time", "last_time", "threshold", "validation", "seconds", "output")
    }


def test_training_elsewhere_never_replaces_a_file_by_accident(repository, tmp_path):
    target = tmp_path / "model.skops"
    options = ["train", repository, "--model", "popular", "--threshold", "0.2", "-o", target]
    run(*options)
    assert "which exists" in " ".join(run(*options, code=2).stderr.split())
    run(*options, "--force")
    report = json.loads(run("suggest", "src/a.c", "--model-file", target, "--json").stdout)
    assert report["threshold"] == 0.2


def test_suggestions_are_those_of_python(repository):
    from pluri.cochange import CommitHistory, FileRecommender

    history = CommitHistory.from_git(repository, min_support=5, support_on="all")
    model = FileRecommender("cooccurrence", random_state=0).fit(history)
    expected = model.recommend(["src/a.c"], 3, threshold=0.0)
    report = json.loads(run("suggest", "src/a.c", "--top", 3, "--json").stdout)
    assert report["files"] == ["src/a.c"]
    assert report["unknown"] == []
    assert report["threshold"] == model.threshold_
    assert report["suggestions"] == [
        {
            "path": item.path,
            "probability": item.probability,
            "likely": item.probability > model.threshold_,
            "n_commits": item.n_commits,
            "commits": list(item.commits),
        }
        for item in expected
    ]
    shown = run("suggest", "src/a.c", "--top", 3).stdout.splitlines()
    assert [line.split()[2 if "*" in line else 1] for line in shown] == [item.path for item in expected]
    assert expected[0].commits[0][:8] in shown[0]


def test_paths_may_be_given_from_here_or_from_the_top(repository, monkeypatch):
    expected = json.loads(run("suggest", "src/b.c", "--json").stdout)
    assert expected["suggestions"][0]["path"] == "src/b.h"
    for folder, path in (("src", "b.c"), ("src", "src/b.c"), ("docs", "../src/b.c"), (".", "./src/../src/b.c")):
        monkeypatch.chdir(repository / folder)
        assert json.loads(run("suggest", path, "--json").stdout) == expected
    monkeypatch.chdir(repository.parent)
    for path in (repository / "src" / "b.c", "src/b.c"):
        assert json.loads(run("suggest", path, "--repo", repository, "--json").stdout) == expected
    (repository.parent / "outside.c").write_text("")
    assert "FILE must lie in the repository" in " ".join(
        run("suggest", "outside.c", "--repo", repository, code=2).stderr.replace("│", " ").split()
    )


def test_odd_names_are_printed_on_one_line_and_kept_in_json(repository):
    report = json.loads(run("suggest", "with space.txt", "--json").stdout)
    assert {"new\nline.txt", "ü.c"} <= {item["path"] for item in report["suggestions"]}
    shown = run("suggest", "with space.txt").stdout
    assert '"new\\nline.txt"' in shown
    assert "ü.c" in shown
    assert run("suggest", "new\nline.txt").stdout


def test_unknown_paths_are_answered_with_the_nearest(repository):
    failed = run("suggest", "src/aa.c", code=1)
    assert "got 'src/aa.c'; nearest known: 'src/a.c'" in failed.stderr
    assert failed.stdout == ""
    partly = run("suggest", "src/aa.c", "src/b.c", "--json")
    assert json.loads(partly.stdout)["unknown"] == ["src/aa.c"]
    assert "warning: src/aa.c is not known" in partly.stderr


def test_a_check_names_what_is_missing_and_can_fail(repository):
    (repository / "src" / "b.c").write_text("new\n")
    report = json.loads(run("check", "--json").stdout)
    assert report["checked"] == "the work tree"
    assert [item["path"] for item in report["missing"]] == ["src/b.h"]
    assert run("check", "--staged", "--fail").stdout == ""
    git(repository, "add", "src/b.c")
    assert json.loads(run("check", "--json").stdout)["checked"] == "what is staged"
    failed = run("check", "--fail", code=1)
    assert "src/b.h" in failed.stdout
    assert "usually changed together with the 1 files of what is staged" in failed.stderr
    assert run("check", "--fail", "--threshold", "0.999").stdout == ""
    (repository / "src" / "b.h").write_text("new\n")
    assert run("check", "--working-tree", "--fail").stdout == ""
    (repository / "unheard of").write_text("new\n")
    git(repository, "add", "--all")
    whole = json.loads(run("check", "--fail", "--json").stdout)
    assert whole["unknown"] == ["unheard of"]
    assert whole["missing"] == []


def test_a_commit_can_be_checked(repository):
    (repository / "src" / "b.c").write_text("new\n")
    git(repository, "commit", "--quiet", "--all", "--message", "half")
    report = json.loads(run("check", "HEAD", "--json").stdout)
    assert report["files"] == ["src/b.c"]
    assert [item["path"] for item in report["missing"]] == ["src/b.h"]
    assert "revision must name a commit, got 'nothing'" in run("check", "nothing", code=1).stderr
    assert "must not be given together" in " ".join(
        run("check", "HEAD", "--staged", code=2).stderr.replace("│", " ").split()
    )


@pytest.mark.skipif(os.name != "posix", reason="a hook is a shell script")
def test_the_check_works_as_a_hook(repository):
    hook = repository / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\nexec '{sys.executable}' -m pluri cochange check --staged --fail --if-trained\n")
    hook.chmod(0o755)
    (repository / "src" / "b.c").write_text("new\n")
    with pytest.raises(subprocess.CalledProcessError) as failed:
        git(repository / "src", "commit", "--quiet", "--all", "--message", "half")
    assert "src/b.h" in (failed.value.stdout + failed.value.stderr).decode()
    (repository / "src" / "b.h").write_text("new\n")
    git(repository / "src", "commit", "--quiet", "--all", "--message", "whole")


def test_the_hook_for_pre_commit_names_a_command_that_exists():
    text = (Path(__file__).parents[2] / ".pre-commit-hooks.yaml").read_text()
    entry = next(line.split(":", 1)[1].split() for line in text.splitlines() if "entry:" in line)
    assert entry[:3] == ["pluri", "cochange", "check"]
    shown = run("check", "--help").stdout
    assert all(option in shown for option in entry[3:])


def test_models_are_compared_on_later_commits(repository):
    options = ["evaluate", "--model", "popular,cooccurrence,itemsets", "--n-start", "1,2", "--min-support", 3]
    records = json.loads(run(*options, "--json").stdout)
    assert [(record["model"], record["n_start"]) for record in records] == [
        (name, shown) for name in ("popular", "cooccurrence", "itemsets") for shown in (1, 2)
    ]
    figures = {(record["model"], record["n_start"]): record["f"] for record in records}
    assert figures["cooccurrence", 1] > figures["popular", 1] + 0.2
    table = run(*options, "--tune").stdout.splitlines()
    assert len(table) == 7
    assert table[0].split() == ["model", "shown", "f", "CPR", "precision", "recall", "empty", "asked"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["train", "--model", "magic"], 2, "--model must be one of"),
        (["train", "--threshold", "high"], 2, "--threshold must be a number or auto"),
        (["train", "--set", "n_components"], 2, "--set must have the form name=value"),
        (["train", "--model", "popular", "--set", "k=3"], 1, "model_params must be parameters of Popularity"),
        (["evaluate", "--n-start", "0"], 2, "--n-start must be whole numbers"),
        (["train", "--min-support", "80"], 1, "REPO must have at least 20 commits with files that change at least 80"),
        (["train", "--since", "2030-01-01"], 1, "REPO must have at least 20 commits"),
        (["train", "absent"], 1, "which is no folder"),
        (["suggest"], 2, "FILE..."),
        (["suggest", "src/a.c", "--model-file", "absent.skops"], 1, "there must be a model to ask"),
    ],
)
def test_mistakes_are_answered_in_a_sentence(repository, arguments, code, message):
    shown = " ".join(run(*arguments, code=code).stderr.replace("│", " ").split())
    assert message in shown
    assert "Traceback" not in shown


def test_a_folder_without_a_repository_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    monkeypatch.chdir(tmp_path)
    for arguments in (["train"], ["suggest", "a"], ["check"], ["evaluate"]):
        failed = run(*arguments, code=1)
        assert "path must lie in a git repository, got '.'" in failed.stderr
    git(tmp_path, "init", "--quiet")
    assert "must be a repository with commits" in run("train", code=1).stderr
    assert "there must be a model to ask" in run("check", code=1).stderr
    assert "no model has been trained" in run("check", "--if-trained", "--fail").stderr
    monkeypatch.setenv("PATH", "")
    assert "git must be installed" in run("train", code=1).stderr


def test_help_of_the_group_needs_no_heavy_imports():
    program = "import sys, pluri.cli.cochange; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert not {"numpy", "scipy", "sklearn", "numba", "skops"} & set(loaded)
