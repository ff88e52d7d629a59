"""Files that a project gave up are not suggested; rare and bursty files are."""

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import binom

from pluri.cochange import CommitHistory, FileRecommender
from pluri.cochange.models.completion import silent_files


def history_with_a_log(n=300, stop=200):
    """Commits of pairs of files; the log is in all of them until it is given up."""
    commits = []
    for t in range(n):
        pair = ["a.c", "a.h"] if t % 2 else ["b.c", "b.h"]
        commits.append({"time": t, "files": pair + (["ChangeLog"] if t < stop else [])})
    return CommitHistory.from_records(commits, support_on="all")


@pytest.mark.parametrize("model", ["neighbors", "cooccurrence", "pairwise", "bayesian", "popular"])
@pytest.mark.filterwarnings("ignore:the chains have not settled")  # of the bayesian model
def test_a_log_that_was_given_up_is_not_suggested(model):
    settings = {"n_components": 5, "n_chains": 2} if model == "bayesian" else None
    # Not calibrated: on the last commits, which have no log, a score for it proves to be worth nothing anyway.
    options = {"model_params": settings, "threshold": 0.05, "random_state": 0, "calibrate": False}
    heard = FileRecommender(model, **options).fit(history_with_a_log()).recommend(["a.c"])
    assert "ChangeLog" not in [item.path for item in heard]
    assert "a.h" in [item.path for item in heard]
    naive = FileRecommender(model, drop_silent=None, **options).fit(history_with_a_log()).recommend(["a.c"])
    assert "ChangeLog" in [item.path for item in naive]


def test_silence_is_the_chance_of_so_many_misses_in_a_row():
    rng = np.random.default_rng(0)
    X = (rng.random((500, 60)) < rng.uniform(0.001, 0.2, 60)).astype(float)
    for j in range(0, 60, 2):
        X[500 - 5 * j :, j] = 0
    found = silent_files(sparse.csr_array(X), 1e-3)
    for j in range(60):
        rows = np.flatnonzero(X[:, j])
        chance = binom.pmf(0, 499 - rows[-1], len(rows) / 500) if rows.size else 1.0
        assert found[j] == (chance < 1e-3)


def test_a_rare_file_is_not_called_silent_and_a_history_of_silent_files_keeps_them():
    X = np.zeros((1000, 2))
    X[:10, 0] = 1  # a burst long ago, ten commits in all
    X[:500, 1] = 1
    assert silent_files(sparse.csr_array(X), 1e-6).tolist() == [False, True]


@pytest.mark.parametrize("level", [0.0, 1.0, -1, "often"])
def test_a_level_that_is_no_probability_is_refused(level):
    with pytest.raises(ValueError, match="drop_silent"):
        FileRecommender("popular", drop_silent=level).fit(history_with_a_log())
