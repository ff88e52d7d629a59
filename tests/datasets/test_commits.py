"""The artificial history against what it was drawn from, and the loader on a small file of the same layout."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest
from scipy.stats import chisquare

from pluri.datasets.commits import load_transactions, make_commits


def test_commits_follow_the_probabilities_they_were_drawn_from():
    history = make_commits(6000, n_groups=10, random_state=0)
    assert (history.X.sum(axis=1) > 0).all()
    assert (np.diff(history.times) > 0).all()
    assert history.n_before == 4000
    # False alarms of one in a thousand. Empty commits are drawn again, which hardly changes the shares.
    assert chisquare(np.bincount(history.groups, minlength=10), 6000 * history.weights).pvalue > 1e-3
    for rows, table in zip(np.split(np.arange(6000), [4000]), history.probabilities):
        expected = table[history.groups[rows]]
        difference = (history.X[rows] - expected).sum(axis=0)
        assert (np.abs(difference) < 5 * np.sqrt((expected * (1 - expected)).sum(axis=0)) + 1).all()


def test_some_groups_have_other_files_later():
    history = make_commits(random_state=1)
    before, after = history.probabilities
    assert set(np.unique(before)) == {0.002, 0.8}
    assert ((before == 0.8).sum(axis=1) >= 3).all()
    assert ((before == 0.8).sum(axis=1) <= 8).all()
    assert (before != after).any(axis=1).sum() == 8
    still = make_commits(random_state=1, drift=0.0).probabilities
    np.testing.assert_array_equal(still[0], still[1])


def test_the_same_seed_draws_the_same_history():
    first, second = (make_commits(50, random_state=3) for _ in range(2))
    np.testing.assert_array_equal(first.X, second.X)
    record = first.records()[7]
    assert record == {"time": int(first.times[7]), "files": first.files[first.X[7]].tolist()}
    assert repr(first) == "Commits(50 commits, 200 files, 40 groups)"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_commits": 0}, "n_commits must be at least 1"),
        ({"n_files": 5}, "n_files must be at least 8"),
        ({"drift": 1.5}, "drift must lie between 0 and 1"),
        ({"inside": 0.0, "outside": 0.0}, "inside must be positive"),
    ],
)
def test_bad_sizes_are_refused_in_a_sentence(options, message):
    with pytest.raises(ValueError, match=message):
        make_commits(**options)


def test_transactions_come_in_the_order_of_time(tmp_path, monkeypatch):
    rows = [{"time": 20, "files": ["b"]}, {"time": 10, "files": ["a", "ü"]}]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "scikit_learn_transactions.jsonl.gz").write_bytes(gzip.compress(text.encode()))
    monkeypatch.setenv("PLURI_DATA", str(tmp_path))
    assert load_transactions("scikit-learn") == rows[::-1]
    with pytest.raises(FileNotFoundError, match="must hold gimp_transactions"):
        load_transactions("gimp", tmp_path)
    with pytest.raises(ValueError, match="name must be one of 'gimp', 'scikit-learn', got 'linux'"):
        load_transactions("linux")
    (tmp_path / "scikit_learn_transactions.jsonl.gz").write_bytes(gzip.compress(b'{"time": 3}\n'))
    with pytest.raises(ValueError, match=r"line 1 of scikit_learn_transactions\.jsonl\.gz must have time and files"):
        load_transactions("scikit-learn")
