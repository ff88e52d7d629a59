"""The miner on repositories whose commits are known."""

from __future__ import annotations

import os
import sys

import numpy as np
import pytest

from pluri.cochange import CommitHistory, GitError
from pluri.cochange.repository.changes import changed_files, committed_files, staged_files
from pluri.cochange.repository.git import ask, find_repository
from pluri.cochange.repository.git_log import is_date, read_commits

ODD = ("with space.txt", "ünïcode.c", "tab\there", "-dash", "new\nline", 'quote".h', "\x1esep\x1f")


def mined(scratch, **options):
    return CommitHistory.from_git(scratch.folder, **{"min_support": 1, "support_on": "all", **options})


def rows(history):
    return [set(history.files_[row].tolist()) for row in history.X_.toarray().astype(bool)]


def test_the_matrix_is_that_of_the_commits(scratch):
    ids = [scratch.commit("a.c", "a.h"), scratch.commit("b.c"), scratch.commit("a.c", "b.c")]
    history = mined(scratch)
    assert history.files_.tolist() == ["a.c", "a.h", "b.c"]
    assert history.X_.toarray().tolist() == [[1, 1, 0], [0, 0, 1], [1, 0, 1]]
    assert history.ids_.tolist() == ids
    assert history.times_.tolist() == [1_000_003_600, 1_000_007_200, 1_000_010_800]
    assert set(history.authors_.tolist()) == {"a@example.org"}
    assert history.alive_.all()
    assert repr(history) == "CommitHistory(3 commits, 3 files, 2001-09-09 to 2001-09-09)"


def test_names_may_hold_anything_but_nul(scratch):
    scratch.commit(*ODD)
    scratch.commit("other", ODD[4])
    assert rows(mined(scratch)) == [set(ODD), {"other", ODD[4]}]


@pytest.mark.parametrize("name", ["since", "until"])
def test_a_text_that_is_no_date_is_refused_instead_of_meaning_now(scratch, name):
    scratch.commit("a", "b")
    with pytest.raises(GitError, match=f"{name} must be a date that git understands, got 'nonsense'"):
        mined(scratch, **{name: "nonsense"})
    for text in ("2 years ago", "2001-09-08", "yesterday", "now", "1000000000"):
        assert is_date(scratch.folder, text)
    assert len(mined(scratch, since="2001-09-08")) == len(mined(scratch, until="2 days ago")) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="file names are bytes")
def test_names_that_are_no_text_survive(scratch):
    name = os.fsdecode(b"latin\xe9.c")
    scratch.commit(name, "plain")
    assert rows(mined(scratch)) == [{name, "plain"}]


def test_merges_are_ignored_unless_only_the_main_line_is_read(scratch):
    scratch.commit("base")
    scratch.git("checkout", "--quiet", "-b", "side")
    scratch.commit("s1")
    scratch.commit("s2")
    scratch.git("checkout", "--quiet", "main")
    scratch.commit("m1")
    scratch.time += 60
    scratch.git("merge", "--quiet", "--no-ff", "--message", "merge", "side")
    assert sorted(map(sorted, rows(mined(scratch)))) == [["base"], ["m1"], ["s1"], ["s2"]]
    assert rows(mined(scratch, first_parent=True)) == [{"base"}, {"m1"}, {"s1", "s2"}]


def test_large_and_empty_commits_and_rare_files_are_dropped(scratch):
    for _ in range(3):
        scratch.commit("a", "b")
    scratch.commit()
    scratch.commit(*(f"file{number}" for number in range(101)), "a")
    scratch.commit("a", "rare")
    history = mined(scratch, min_support=2)
    assert history.files_.tolist() == ["a", "b"]
    assert len(history) == 4
    assert len(mined(scratch, max_files=200)) == 5


def test_a_renamed_file_keeps_its_history(scratch):
    scratch.commit("old.c", "x")
    scratch.commit("old.c")
    scratch.rename("old.c", "folder/new.c")
    scratch.commit("folder/new.c", "x")
    history = mined(scratch)
    assert history.files_.tolist() == ["folder/new.c", "x"]
    assert history.X_.toarray().tolist() == [[1, 1], [1, 0], [1, 0], [1, 1]]
    apart = mined(scratch, follow_renames=False)
    assert apart.files_.tolist() == ["folder/new.c", "old.c", "x"]
    assert apart.alive_.tolist() == [True, False, True]


def test_a_new_file_under_an_old_name_is_another_file(scratch):
    scratch.commit("a", "mark1")
    scratch.rename("a", "b")
    scratch.commit("a", "mark2")
    history = mined(scratch)
    assert rows(history) == [{"b", "mark1"}, {"b"}, {"a", "mark2"}]


def test_a_branch_may_go_on_with_the_old_name(scratch):
    scratch.commit("old")
    scratch.git("checkout", "--quiet", "-b", "side")
    scratch.git("checkout", "--quiet", "main")
    scratch.rename("old", "new")
    scratch.git("checkout", "--quiet", "side")
    scratch.commit("old", "other")
    scratch.git("checkout", "--quiet", "main")
    scratch.time += 60
    scratch.git("merge", "--quiet", "--message", "merge", "side")
    assert rows(mined(scratch)) == [{"new"}, {"new"}, {"new", "other"}]


def test_deleted_files_are_marked_and_come_back(scratch):
    scratch.commit("a", "b", "c")
    scratch.git("rm", "--quiet", "a", "b")
    scratch.commit("c")
    scratch.commit("b")
    history = mined(scratch)
    assert dict(zip(history.files_.tolist(), history.alive_.tolist())) == {"a": False, "b": True, "c": True}
    assert rows(history) == [{"a", "b", "c"}, {"a", "b", "c"}, {"b"}]


def test_paths_and_period_can_be_chosen(scratch):
    scratch.commit("src/a.c", "docs/a.md", "src/gen/x.c")
    scratch.commit("src/b.c", "docs/b.md")
    chosen = mined(scratch, include=["src/", "b.*"], exclude="gen")
    assert chosen.files_.tolist() == ["docs/b.md", "src/a.c", "src/b.c"]
    assert rows(mined(scratch, since=scratch.time - 10)) == [{"src/b.c", "docs/b.md"}]
    assert rows(mined(scratch, until=scratch.time - 10)) == [{"src/a.c", "docs/a.md", "src/gen/x.c"}]
    assert rows(mined(scratch, revision="HEAD~1")) == [{"src/a.c", "docs/a.md", "src/gen/x.c"}]


def test_what_is_no_history_is_refused_in_a_sentence(scratch, tmp_path, monkeypatch):
    with pytest.raises(GitError, match="must be a repository with commits"):
        mined(scratch)
    (tmp_path / "plain").mkdir()
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    with pytest.raises(GitError, match="must lie in a git repository"):
        CommitHistory.from_git(tmp_path / "plain")
    with pytest.raises(GitError, match="which is no folder"):
        CommitHistory.from_git(tmp_path / "absent")
    scratch.commit("a")
    with pytest.raises(GitError, match="bad revision"):
        mined(scratch, revision="nowhere")
    with pytest.raises(GitError, match="bad revision"):
        mined(scratch, revision="--output=stolen")
    assert not (scratch.folder / "stolen").exists()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(GitError, match="git must be installed"):
        mined(scratch)


def test_a_shallow_clone_is_noticed(scratch, tmp_path):
    for number in range(5):
        scratch.commit(f"f{number}")
    scratch.git("clone", "--quiet", "--depth", "2", f"file://{scratch.folder}", str(tmp_path / "shallow"))
    with pytest.warns(UserWarning, match="is shallow, so only 2 commits"):
        history = CommitHistory.from_git(tmp_path / "shallow", min_support=1, support_on="all")
    assert len(history) == 2


def test_a_bare_repository_and_a_linked_work_tree_will_do(scratch, tmp_path):
    scratch.commit("a", "b")
    scratch.git("clone", "--quiet", "--bare", str(scratch.folder), str(tmp_path / "bare"))
    bare = find_repository(tmp_path / "bare")
    assert bare.top is None
    assert len(CommitHistory.from_git(tmp_path / "bare", min_support=1, support_on="all")) == 1
    scratch.git("worktree", "add", "--quiet", str(tmp_path / "linked"))
    linked = find_repository(tmp_path / "linked")
    assert linked.folder == find_repository(scratch.folder).folder == (scratch.folder / ".git").resolve()
    assert linked.top == (tmp_path / "linked").resolve()


def test_nothing_that_the_repository_names_is_run(scratch, tmp_path):
    scratch.commit("a", "b.dat")
    trap = tmp_path / "trap"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch '{trap}'\ncat\n")
    program.chmod(0o755)
    hooks = scratch.folder / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for hook in ("post-index-change", "fsmonitor-watchman", "pre-commit"):
        (hooks / hook).write_text(f"#!/bin/sh\ntouch '{trap}'\n")
        (hooks / hook).chmod(0o755)
    for name in (
        *("core.fsmonitor", "core.pager", "diff.external", "gpg.program", "core.sshCommand", "diff.trap.textconv"),
        *("filter.trap.clean", "filter.trap.process", "diff.trap.command"),
    ):
        scratch.git("config", name, str(program))
    scratch.git("config", "log.showSignature", "true")
    (scratch.folder / ".git" / "info").mkdir(exist_ok=True)
    (scratch.folder / ".git" / "info" / "attributes").write_text("*.dat filter=trap diff=trap\n* diff=trap\n")
    (scratch.folder / "b.dat").write_text("changed\n")
    os.utime(scratch.folder / "a", (1, 1))
    repository = find_repository(scratch.folder)
    assert len(mined(scratch)) == 1
    assert changed_files(repository) == ["b.dat"]
    assert staged_files(repository) == []
    assert committed_files(repository, "HEAD") == ["a", "b.dat"]
    assert not trap.exists()


def test_changes_are_listed_by_both_names(scratch, monkeypatch):
    scratch.commit("a", "b", "c", *ODD)
    repository = find_repository(scratch.folder)
    scratch.git("mv", "a", "a2")
    scratch.write("b", "brand new", ODD[4])
    scratch.git("add", ODD[4])
    assert sorted(staged_files(repository)) == sorted(["a", "a2", ODD[4]])
    assert sorted(changed_files(repository)) == sorted(["a", "a2", "b", "brand new", ODD[4]])
    scratch.git("add", "--all")
    scratch.git("commit", "--quiet", "--message", "all")
    assert sorted(committed_files(repository, "HEAD")) == sorted(["a", "a2", "b", "brand new", ODD[4]])
    with pytest.raises(GitError, match="revision must name a commit"):
        committed_files(repository, "nothing")
    with pytest.raises(GitError, match="revision must name a commit"):
        committed_files(repository, "--all")
    assert staged_files(repository) == []
    # A partial commit stages into an index of its own, and tells hooks where it is.
    other = scratch.folder / ".git" / "other-index"
    ask(scratch.folder, "read-tree", "HEAD", index=str(other))
    ask(scratch.folder, "update-index", "--force-remove", "c", index=str(other))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other))
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    assert staged_files(repository) == ["c"]


def test_a_reader_that_leaves_early_stops_git(scratch):
    for _ in range(3):
        scratch.commit("a")
    stream = read_commits(scratch.folder)
    first = next(stream)
    assert [change.path for change in first.changes] == ["a"]
    stream.close()


def test_commits_are_sorted_by_time_even_if_clocks_were_wrong(scratch):
    scratch.commit("late", pause=10_000)
    scratch.commit("early", pause=-5_000)
    history = mined(scratch)
    assert rows(history) == [{"early"}, {"late"}]
    assert (np.diff(history.times_) > 0).all()
