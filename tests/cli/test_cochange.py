"""``pluri cochange`` from end to end, on a repository with known commits."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from pluri.cli.application import application
from pluri.cochange import FileRecommender
from pluri.cochange.saved import open_suggester
from pluri.io import save
from pluri.sequences import GaussianHMM

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
    # The second group always changes as a whole: its absence is an alarm that has never been a false one.
    commits = [
        [file for file in GROUPS[group] if group == 1 or rng.random() < 0.9] + (["log"] if rng.random() < 0.3 else [])
        for group in rng.integers(3, size=90)
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
        *("model", "n_commits", "n_files", "first_time", "last_time", "threshold", "validation", "seconds", "output"),
        *("calibrated", "hook", "hook_threshold"),
    }


def test_training_elsewhere_never_replaces_a_file_by_accident(repository, tmp_path):
    target = tmp_path / "model.skops"
    options = ["train", repository, "--model", "popular", "--threshold", "0.2", "-o", target]
    run(*options)
    run(*options)  # a model can be trained again
    report = json.loads(run("train", repository, "--model", "pairwise", "--json").stdout)
    save(GaussianHMM(2), tmp_path / "other.skops")
    (tmp_path / "thesis.txt").write_text("precious")
    shutil.copy(tmp_path / "thesis.txt", report["output"])
    for taken in (["-o", tmp_path / "other.skops"], ["-o", tmp_path / "thesis.txt"], []):
        again = ["train", repository, "--model", "pairwise", *taken]
        assert "which exists" in " ".join(run(*again, code=2).stderr.replace("│", " ").split())
    assert (tmp_path / "thesis.txt").read_text() == Path(report["output"]).read_text() == "precious"
    run("train", repository, "--model", "pairwise", "--force")
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
    level = max(model.threshold_, 0.5)  # few questions have chosen it
    assert report["threshold"] == level
    assert report["suggestions"] == [
        {
            "path": item.path,
            "probability": item.probability,
            "likely": item.probability > level,
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
    assert "may be missing from what is staged (1 known file changed):" in failed.stderr
    commits = [set(text.split("\n")) for text in git(repository, "log", "--format=%x00", "--name-only").split("\0")]
    of_file, together = (sum(files <= commit for commit in commits) for files in ({"src/b.c"}, {"src/b.c", "src/b.h"}))
    assert f"src/b.h  changed together in {together} of {of_file} commits" in failed.stdout
    assert run("check", "--fail", "--threshold", "1").stdout == ""
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
    names = ("popular", "cooccurrence", "itemsets")
    options = ["evaluate", "--model", ",".join(names), "--n-start", "1,2", "--min-support", 3]
    records = json.loads(run(*options, "--json").stdout)
    assert [(record["model"], record["n_start"]) for record in records] == [
        (name, shown) for name in names for shown in (1, 2)
    ]
    figures = {(record["model"], record["n_start"]): record["f"] for record in records}
    assert figures["cooccurrence", 1] > figures["popular", 1] + 0.2
    table = run(*options, "--tune").stdout.splitlines()
    assert table[0].split() == ["model", "shown", "f", "CPR", "precision", "recall", "R@10", "empty", "asked"]
    assert [line.split()[0] for line in table[1:7]] == [name for name in names for _ in range(2)]
    place = table.index("")
    assert place == 7
    assert table[place + 1].split() == ["check", "above", "false", "alarms", "caught", "commits"]
    for line, record in zip(table[place + 2 : place + 5], records[::2]):
        assert line.split()[0] == record["model"]
        assert 0 <= record["false_alarms"] <= 1
        assert record["n_complete"] == 30
    assert "cooccurrence: stated probabilities, and how often they came true" in table


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["train", "--model", "magic"], 2, "--model must be one of"),
        (["train", "--since", "nonsense"], 2, "--since must be a date that git understands"),
        (["evaluate", "--until", "no date"], 2, "--until must be a date that git understands"),
        (["check", "--threshold", "1.5"], 2, "--threshold must lie between 0 and 1, got 1.5"),
        (["check", "--threshold", "nan"], 2, "--threshold must lie between 0 and 1, got nan"),
        (["suggest", "src/a.c", "--threshold", "-0.1"], 2, "--threshold must lie between 0 and 1, got -0.1"),
        (["train", "--threshold", "high"], 2, "--threshold must be a number or auto"),
        (["train", "--false-alarms", "2"], 2, "--false-alarms must lie between 0 and 1, got 2"),
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
    assert "there must be a model to ask" in run("check", code=3).stderr
    assert "nothing checked: there must be a model to ask" in run("check", "--if-trained", "--fail").stderr
    monkeypatch.setenv("PATH", "")
    assert "git must be installed" in run("train", code=1).stderr


def test_help_of_the_group_needs_no_heavy_imports():
    program = "import sys, pluri.cli.cochange.learning; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert not {"numpy", "scipy", "sklearn", "numba", "skops"} & set(loaded)


def outcome(folder, *arguments):
    """Files that a check misses."""
    result = run("check", "--repo", folder, "--json", *arguments)
    return [item["path"] for item in json.loads(result.stdout)["missing"]]


@pytest.fixture
def pairs(tmp_path):
    """A trained repository in which two files always change together."""
    folder = tmp_path / "pairs"
    make_repository(folder, [("a.c", "a.h")] * 40)
    run("train", folder, "--model", "pairwise")
    return folder


def stage(folder, *files):
    for file in files:
        (folder / file).write_text("changed\n")
    git(folder, "add", "--all")


def damages():
    """Ways in which a model file goes wrong: from cut short to arrays that do not belong together."""

    def cut(place):
        place.write_bytes(place.read_bytes()[:2000])

    def empty(place):
        place.write_bytes(b"")

    def other(place):
        place.unlink()
        save(GaussianHMM(2), place)

    def shifted(place):
        model = FileRecommender.load(place)
        model.model_.row_items_ = model.model_.row_items_ + 2**40
        with pytest.MonkeyPatch.context() as careless:  # saving would notice
            careless.setattr("pluri.io.archive.check_soundness", lambda model: None)
            model.save(place)

    def unfitted(place):
        place.unlink()
        FileRecommender().save(place)

    def gone(place):
        place.unlink()

    return [cut, empty, other, shifted, unfitted, gone]


@pytest.mark.parametrize("damage", damages(), ids=lambda damage: damage.__name__)
def test_a_model_that_cannot_be_read_does_not_block_a_commit(pairs, damage):
    damage(pairs / ".git" / "pluri-cochange.skops")
    stage(pairs, "a.c")
    told = run("check", "--repo", pairs, "--staged", "--fail", "--if-trained")
    assert told.stdout == ""
    assert told.stderr.startswith("nothing checked: ")
    assert told.stderr.count("\n") == 1
    by_hand = run("check", "--repo", pairs, "--staged", "--fail", code=3)
    assert by_hand.stderr.startswith("error: ")
    assert run("suggest", "--repo", pairs, "a.c", code=1).stderr.startswith("error: ")


@pytest.mark.parametrize("model", ["neighbors", "pairwise", "cooccurrence", "counter", "itemsets", "popular"])
def test_a_quickly_opened_model_answers_as_the_recommender_does(original, tmp_path, model):
    place = tmp_path / "model.skops"
    run("train", original, "--model", model, "-o", place)
    slow, quick = FileRecommender.load(place), open_suggester(place)
    assert (quick.threshold, quick.hook_threshold) == (slow.threshold_, slow.hook_threshold_)
    for files in (["src/a.c"], ["src/a.c", "src/b.h", "log"]):
        expected = slow.recommend(files, None, threshold=0.0)
        found = quick.recommend(files, None, threshold=0.0)
        assert [item.path for item in found] == [item.path for item in expected]
        assert [item.commits for item in found] == [item.commits for item in expected]
        np.testing.assert_allclose([i.probability for i in found], [i.probability for i in expected], rtol=1e-12)


def test_a_check_imports_neither_scikit_learn_nor_scipy(pairs):
    run("train", pairs)
    stage(pairs, "a.c")
    program = """
        import sys
        from pluri.cli import main
        sys.argv = ["pluri", "cochange", "check", "--repo", sys.argv[1], "--staged"]
        try:
            main()
        except SystemExit as end:
            assert not end.code
        found = {"sklearn", "scipy", "skops", "numba", "pandas"} & set(sys.modules)
        assert not found, found
    """
    command = [sys.executable, "-c", textwrap.dedent(program), str(pairs)]
    told = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert told.returncode == 0, told.stderr
    assert "a.h" in told.stdout


def test_a_rarely_broken_habit_is_no_alarm(tmp_path):
    """a.h changes with nine of ten changes of a.c: to name it each time it does not would be an alarm in 5 %."""
    habit = [("a.c", "a.h")] * 9 + [("a.c",)] + [("b.c", "b.h")] * 10
    make_repository(tmp_path / "habits", habit * 60)
    report = json.loads(run("train", tmp_path / "habits", "--json").stdout)
    assert report["hook"] == {"n_commits": 240, "false_alarms": 0.0, "enough": True}
    stage(tmp_path / "habits", "a.c")
    assert outcome(tmp_path / "habits", "--staged") == []
    git(tmp_path / "habits", "reset", "--quiet", "--hard")
    stage(tmp_path / "habits", "b.c")
    assert outcome(tmp_path / "habits", "--staged") == ["b.h"]
    run("train", tmp_path / "habits", "--false-alarms", "0.2")
    git(tmp_path / "habits", "reset", "--quiet", "--hard")
    stage(tmp_path / "habits", "a.c")
    assert outcome(tmp_path / "habits", "--staged") == ["a.h"]


@pytest.fixture
def seldom(tmp_path):
    """A repository in which a.h changes with every third change of a.c, and b.c often but never with them."""
    folder = tmp_path / "seldom"
    together, alone, apart = ("a.c", "a.h"), ("a.c",), ("b.c",)
    make_repository(folder, [together, apart, alone, apart, apart, alone] * 12 + [("rare.c", "a.c")] * 2)
    return folder


def test_a_check_names_only_what_changes_more_often_than_not(seldom):
    run("train", seldom, "--model", "pairwise", "--threshold", "0.1")
    stage(seldom, "a.c")
    assert outcome(seldom, "--staged") == []
    assert run("check", "--repo", seldom, "--staged", "--fail").stdout == ""
    assert outcome(seldom, "--staged", "--threshold", "0.1") == ["a.h"]
    failed = run("check", "--repo", seldom, "--staged", "--fail", "--threshold", "0.1", code=1)
    assert "changed together in 12 of 38 commits" in failed.stdout


def test_a_file_that_never_changed_with_the_others_is_not_missing(seldom):
    run("train", seldom, "--model", "popular", "--threshold", "0.1")
    ranked = json.loads(run("suggest", "a.c", "--repo", seldom, "--json").stdout)["suggestions"]
    assert {item["path"]: item["n_commits"] for item in ranked} == {"b.c": 0, "a.h": 12}
    stage(seldom, "a.c")
    assert outcome(seldom, "--staged", "--threshold", "0") == ["a.h"]


def test_a_threshold_chosen_by_few_questions_is_not_believed(seldom):
    told = run("train", seldom, "--model", "pairwise", "--json")
    report = json.loads(told.stdout)
    assert 0 < report["validation"]["n_queries"] < 30
    assert f"only {report['validation']['n_queries']} questions could be asked" in told.stderr
    assert report["threshold"] == 0.5
    assert "questions could be asked" not in run("train", seldom, "--model", "pairwise", "--threshold", "0.1").stderr


def test_many_questions_are_believed(tmp_path):
    make_repository(tmp_path / "long", [("a.c", "a.h"), ("a.c", "log"), ("a.c", "b.c")] * 60)
    told = run("train", tmp_path / "long", "--model", "pairwise", "--json")
    report = json.loads(told.stdout)
    assert report["validation"]["n_queries"] >= 30
    assert report["threshold"] < 0.5
    assert "warning" not in told.stderr


def test_a_file_that_changed_too_seldom_is_told_from_one_that_is_not_there(seldom, monkeypatch):
    run("train", seldom, "--model", "pairwise", "--threshold", "0.1")
    monkeypatch.chdir(seldom)
    partly = run("suggest", "rare.c", "absent.c", "a.c")
    assert "rare.c is not known to the model (changed too seldom" in partly.stderr
    assert "fewer than 5 times (train --min-support)" in partly.stderr
    assert "absent.c is not known to the model (no such file" in partly.stderr
    assert "fewer than 5 times (train --min-support)" in run("suggest", "rare.c", code=1).stderr
    stage(seldom, "rare.c")
    told = run("check", "--staged").stderr
    assert "0 known files changed, and 1 not known to the model: new, or changed too seldom" in told


@pytest.mark.parametrize("options", [["--model", "magic"], ["--since", "nonsense"], ["--set", "n"]])
def test_wrong_arguments_are_told_before_anything_heavy_is_imported(seldom, options):
    program = """
        import sys
        from pluri.cli import main
        sys.argv = ["pluri", "cochange", "train", *sys.argv[1:]]
        try:
            main()
        except SystemExit as end:
            assert end.code == 2
        assert not {"numpy", "scipy", "sklearn", "skops"} & set(sys.modules)
    """
    command = [sys.executable, "-c", textwrap.dedent(program), str(seldom), *options]
    told = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert told.returncode == 0, told.stderr
    assert " must " in told.stderr


def test_files_that_have_gone_since_the_training_are_not_missing(pairs):
    stage(pairs, "a.c")
    assert outcome(pairs, "--staged") == ["a.h"]
    git(pairs, "rm", "--quiet", "--force", "a.h")
    git(pairs, "commit", "--quiet", "--message", "a.h is gone")
    stage(pairs, "a.c")
    (pairs / "a.c").write_text("again\n")
    assert outcome(pairs, "--working-tree") == []
    git(pairs, "add", "--all")
    assert outcome(pairs, "--staged") == []
    git(pairs, "commit", "--quiet", "--message", "a.c alone")
    assert outcome(pairs, "HEAD") == []


def test_the_first_commit_of_a_branch_can_be_checked(pairs):
    git(pairs, "checkout", "--quiet", "--orphan", "pages")
    assert outcome(pairs, "--staged") == []
    git(pairs, "rm", "--quiet", "--cached", "a.h")
    assert outcome(pairs, "--staged") == []  # there is no such file on this branch


def test_nothing_is_staged_in_a_repository_without_a_work_tree(pairs, tmp_path):
    bare = tmp_path / "bare.git"
    git(tmp_path, "clone", "--quiet", "--bare", str(pairs), str(bare))
    result = run("check", "--repo", bare, "--model-file", pairs / ".git" / "pluri-cochange.skops", code=1)
    assert "must have a work tree" in result.output
    assert outcome(bare, "HEAD", "--model-file", str(pairs / ".git" / "pluri-cochange.skops")) == []


def test_a_submodule_counts_as_changed_if_it_points_to_another_commit(tmp_path):
    inner, outer = tmp_path / "inner", tmp_path / "outer"
    make_repository(inner, [("x",)])
    make_repository(outer, [("a.c",)])
    commits = [git(inner, "rev-parse", "HEAD").strip(), *("0123456789abcdef"[1 + i % 15] * 40 for i in range(30))]
    for number, commit in enumerate(commits):
        git(outer, "update-index", "--add", "--cacheinfo", f"160000,{commit},inner")
        (outer / "a.c").write_text(f"{number}\n")
        git(outer, "add", "a.c")
        git(outer, "commit", "--quiet", "--message", "both")
    run("train", outer, "--model", "pairwise")
    (outer / "a.c").write_text("half\n")
    git(outer, "add", "a.c")
    assert outcome(outer, "--staged") == ["inner"]
    git(outer, "update-index", "--cacheinfo", f"160000,{'8' * 40},inner")
    assert outcome(outer, "--staged") == []
    assert outcome(outer, "HEAD") == []


def test_a_question_does_not_import_all_of_scikit_learn(pairs):
    program = """
        import sys
        from pluri.cli import main
        sys.argv = ["pluri", "cochange", "suggest", "--repo", sys.argv[1], "a.c"]
        try:
            main()
        except SystemExit as end:
            assert not end.code
        found = {"numba", "pluri.mixtures.gaussian.estimator", "sklearn.gaussian_process"} & set(sys.modules)
        assert not found, found
        from sklearn.utils import all_estimators
        assert len(all_estimators()) > 100
    """
    command = [sys.executable, "-c", textwrap.dedent(program), str(pairs)]
    told = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert told.returncode == 0, told.stderr
    assert "a.h" in told.stdout
