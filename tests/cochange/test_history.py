"""Histories from records: filters, splits, grouping, patterns of paths, identities of files."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest

from pluri.cochange import CommitHistory, group_changes
from pluri.cochange.history import path_filter
from pluri.cochange.repository.git_log import Change
from pluri.cochange.transactions import FileIdentities


def records(rng, n_commits=90, n_files=20):
    return [
        {
            "time": int(time),
            "files": [f"f{file:02d}" for file in rng.choice(n_files, rng.integers(1, 6), replace=False)],
        }
        for time in rng.permutation(n_commits) * 100
    ]


def counted(commits):
    names, counts = np.unique([file for commit in commits for file in commit["files"]], return_counts=True)
    return dict(zip(names.tolist(), counts.tolist()))


def test_support_is_counted_where_it_is_said():
    commits = records(np.random.default_rng(0))
    by_time = sorted(commits, key=lambda commit: commit["time"])
    for support_on, part in (("train", by_time[:60]), ("all", by_time)):
        history = CommitHistory.from_records(commits, min_support=14, support_on=support_on)
        expected = sorted(name for name, count in counted(part).items() if count >= 14)
        assert history.files_.tolist() == expected
        kept = [commit for commit in by_time if set(commit["files"]) & set(expected)]
        assert history.times_.tolist() == [commit["time"] for commit in kept]
        for row, commit in zip(history.X_.toarray().astype(bool), kept):
            assert set(history.files_[row]) == set(commit["files"]) & set(expected)


def test_a_split_is_chronological_and_knows_nothing_of_the_test_part():
    commits = records(np.random.default_rng(1))
    by_time = sorted(commits, key=lambda commit: commit["time"])
    history = CommitHistory.from_records(commits, min_support=9)
    for fraction in (0.4, 2 / 3, 0.9):
        train, test = history.split(fraction)
        assert train.times_.max() <= test.times_.min()
        assert train.files_.tolist() == test.files_.tolist()
        cut = int(90 * fraction + 1e-9)
        assert train.files_.tolist() == sorted(name for name, n in counted(by_time[:cut]).items() if n >= 9)
        # Whatever happens later: the training part stays the same.
        changed = [*by_time[:cut], *({"time": c["time"], "files": ["zz"]} for c in by_time[cut:])]
        again, _ = CommitHistory.from_records(changed, min_support=9).split(fraction)
        assert (again.X_ != train.X_).nnz == 0
    with pytest.raises(ValueError, match="fraction must be a number above 0 and below 1"):
        history.split(1.0)


def test_another_support_needs_no_second_reading():
    commits = records(np.random.default_rng(2))
    history = CommitHistory.from_records(commits, min_support=3)
    fresh = CommitHistory.from_records(commits, min_support=15)
    assert history.with_support(15).files_.tolist() == fresh.files_.tolist()
    assert (history.with_support(15).X_ != fresh.X_).nnz == 0


def test_times_come_in_many_forms():
    moment = datetime(2020, 5, 17, 12, tzinfo=UTC)
    forms = [
        moment,
        moment.timestamp(),
        "2020-05-17T12:00:00",
        "2020-05-17T14:00:00+02:00",
        np.datetime64(1589716800, "s"),
    ]
    commits = [{"time": form, "files": ["a", "a", "b"]} for form in forms]
    history = CommitHistory.from_records(commits, min_support=1, support_on="all")
    assert set(history.times_.tolist()) == {1589716800}
    assert history.X_.toarray().tolist() == [[1.0, 1.0]] * 5


@pytest.mark.parametrize(
    ("commits", "message"),
    [
        ([{"time": 1}], "records must have time and files"),
        ([{"time": 1, "files": "a.c"}], "must have a list of paths as files"),
        ([{"time": 1, "files": [3]}], "must have a list of paths as files"),
        ([{"time": "soon", "files": ["a"]}], "time must be a number of seconds or a date"),
        ([{"time": float("nan"), "files": ["a"]}], "times must be finite"),
        ([3], "records must have time and files"),
    ],
)
def test_bad_records_are_refused_in_a_sentence(commits, message):
    with pytest.raises(ValueError, match=message):
        CommitHistory.from_records(commits)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_files": 0}, "max_files must be a whole number of at least 1"),
        ({"min_support": -1}, "min_support must be a whole number of at least 0"),
        ({"min_support": 1.5}, "min_support must be a whole number"),
        ({"support_on": "test"}, "support_on must be one of 'train', 'all'"),
        ({"include": [""]}, "include must hold patterns"),
    ],
)
def test_bad_options_are_refused_in_a_sentence(options, message):
    with pytest.raises(ValueError, match=message):
        CommitHistory.from_records([], **options)


def test_an_empty_history_is_empty():
    history = CommitHistory.from_records([])
    assert (len(history), history.X_.shape) == (0, (0, 0))
    assert repr(history) == "CommitHistory(0 commits, 0 files)"


def test_changes_of_one_author_and_message_within_the_window_are_one():
    log = [
        *((0, "me", "fix", "a"), (199, "me", "fix", "b"), (398, "me", "fix", "c"), (599, "me", "fix", "a")),
        *((100, "you", "fix", "d"), (150, "me", "other", "e"), (50, "you", "fix", "a")),
    ]
    changes = [dict(zip(("time", "author", "message", "file"), change)) for change in log]
    found = [(group["time"], group["author"], group["files"]) for group in group_changes(changes)]
    assert found == [(100, "you", ["a", "d"]), (150, "me", ["e"]), (398, "me", ["a", "b", "c"]), (599, "me", ["a"])]
    history = CommitHistory.from_changes(changes, min_support=1, support_on="all")
    assert history.X_.sum() == 7
    assert len(CommitHistory.from_changes(changes, window=300, min_support=1, support_on="all")) == 3
    with pytest.raises(ValueError, match="changes must have time, author, message and file"):
        CommitHistory.from_changes([{"time": 1}])
    with pytest.raises(ValueError, match="window must be a non-negative"):
        CommitHistory.from_changes(changes, window=-1)


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("*.c", ["a.c", "x/y/a.c"], ["a.cc", "a.c.txt"]),
        ("docs", ["docs/a", "x/docs/a", "docs"], ["docs2/a", "mydocs"]),
        ("docs/", ["docs/a", "x/docs/y/z"], ["adocs/a"]),
        ("src/*.c", ["src/a.c"], ["x/src/a.c", "src/x/a.c"]),
        ("/top", ["top", "top/a"], ["x/top"]),
        ("src/**/t.c", ["src/t.c", "src/a/b/t.c"], ["t.c", "src/at.c"]),
        ("a?c", ["abc", "x/axc"], ["ac", "a/c"]),
        ("a[1]+.c", ["a[1]+.c"], ["a1.c"]),
        ("new\n*", ["new\nline"], ["newline"]),
    ],
)
def test_patterns_are_read_as_in_gitignore(pattern, yes, no):
    wanted, unwanted = path_filter(pattern, None), path_filter(None, [pattern])
    for path in yes:
        assert wanted(path)
        assert not unwanted(path)
    for path in no:
        assert not wanted(path)
        assert unwanted(path)


def test_chains_and_swaps_of_names_in_one_commit_are_followed():
    files = FileIdentities()
    assert files.apply([Change("A", "a"), Change("A", "b"), Change("A", "c")]) == [0, 1, 2]
    assert files.apply([Change("R", "b", "a"), Change("R", "a", "b"), Change("R", "d", "c")]) == [0, 1, 2]
    assert files.names() == ["b", "a", "d"]
    assert files.apply([Change("M", "a"), Change("M", "b")]) == [1, 0]
    assert files.apply([Change("D", "a"), Change("R", "a2", "b")]) == [0, 1]
    assert files.alive() == [True, False, True]
    # A rename to a name that was taken before makes two files one.
    assert files.apply([Change("R", "a", "d")]) == [2]
    assert files.names() == ["a2", "a", "a"]
    assert files.alive() == [True, True, True]
