"""Commits and the files they change: an artificial history whose truth is known, and two real ones.

In the artificial history each commit belongs to one of several groups of files, chosen with Zipf weights, and changes
most files of its group and hardly any other. Late in time some groups consist of other files than before, as
components of a program are rewritten. The real histories are read from the data folder and not shipped.

References
----------
.. [1] Hu, D., van der Maaten, L., Cho, Y., Saul, L. & Lerner, S. (2010). Latent variable models for predicting file
   dependencies in large-scale software development. NIPS 23.
"""

from __future__ import annotations

import gzip
import json
import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.datasets.home import find_file
from pluri.validation import Only, RandomState, as_generator, check_value

HISTORIES = {
    "gimp": "gimp_transactions_2007-11_2010-05.jsonl.gz",
    "scikit-learn": "scikit_learn_transactions.jsonl.gz",
}
ADVICE = (
    "It holds a line of JSON for each commit that is no merge, with the fields time (seconds since 1970) and files (a "
    "list of paths), as git log --no-merges --name-only --no-renames --reverse lists them."
)
SMALLEST, LARGEST = 3, 8  # files of a group
DRIFT_AT = 2 / 3  # of the time
HOUR = 3600
START = 1_167_609_600  # 2007-01-01


@dataclass(frozen=True, eq=False, repr=False)
class Commits:
    """An artificial history, and what it was drawn from.

    Attributes
    ----------
    X : ndarray of shape (n_commits, n_files), dtype bool
        Whether a commit changes a file; every commit changes at least one.
    times : ndarray of shape (n_commits,), dtype int64
        Seconds since 1970, rising.
    files : ndarray of shape (n_files,)
        Names.
    groups : ndarray of shape (n_commits,)
        Group that each commit belongs to.
    weights : ndarray of shape (n_groups,)
        Probability of each group.
    probabilities : ndarray of shape (2, n_groups, n_files)
        Probability that a commit of a group changes a file: before the drift, and after it.
    n_before : int
        Number of commits before the drift.
    """

    X: NDArray[np.bool_]
    times: NDArray[np.int64]
    files: NDArray[np.str_]
    groups: NDArray[np.int64]
    weights: NDArray[np.float64]
    probabilities: NDArray[np.float64]
    n_before: int

    def __repr__(self) -> str:
        """Sizes."""
        return f"Commits({len(self.X)} commits, {len(self.files)} files, {len(self.weights)} groups)"

    def records(self) -> list[dict[str, Any]]:
        """``time`` and ``files`` of each commit."""
        return [
            {"time": int(time), "files": [str(name) for name in self.files[row]]}
            for time, row in zip(self.times, self.X)
        ]


def make_commits(
    n_commits: int = 3000,
    n_files: int = 200,
    n_groups: int = 40,
    *,
    inside: float = 0.8,
    outside: float = 0.002,
    drift: float = 0.2,
    random_state: RandomState = None,
) -> Commits:
    """Draw a history of commits from groups of files.

    Parameters
    ----------
    n_commits, n_files, n_groups : int
        Groups have 3 to 8 files each, and may overlap.
    inside, outside : float, default=0.8 and 0.002
        Probability that a commit changes a file of its own group, and any other.
    drift : float, default=0.2
        Share of the groups that consist of other files in the last third of the time.
    random_state : int, Generator or None, default=None

    Returns
    -------
    Commits

    Examples
    --------
    >>> from pluri.datasets.commits import make_commits
    >>> history = make_commits(random_state=0)
    >>> history
    Commits(3000 commits, 200 files, 40 groups)
    >>> sorted(history.records()[0])
    ['files', 'time']
    """
    for name, value, least in (("n_commits", n_commits, 1), ("n_groups", n_groups, 1), ("n_files", n_files, LARGEST)):
        if value < least:
            raise ValueError(f"{name} must be at least {least}, got {value!r}")
    for name, share in (("inside", inside), ("outside", outside), ("drift", drift)):
        if not 0 <= share <= 1:
            raise ValueError(f"{name} must lie between 0 and 1, got {share!r}")
    if inside == 0 and outside == 0:
        raise ValueError("inside must be positive where outside is zero, got 0: no commit would change anything")
    rng = as_generator(random_state)
    weights = 1 / np.arange(1, n_groups + 1)
    weights /= weights.sum()
    before = np.array([_group(rng, n_files, inside, outside) for _ in range(n_groups)])
    after = before.copy()
    for group in rng.choice(n_groups, size=round(drift * n_groups), replace=False):
        after[group] = _group(rng, n_files, inside, outside)
    n_before = int(DRIFT_AT * n_commits + 0.5)
    parts = [_draw(rng, count, weights, table) for count, table in ((n_before, before), (n_commits - n_before, after))]
    return Commits(
        X=np.concatenate([part[0] for part in parts]),
        times=START + np.cumsum(1 + rng.integers(2 * HOUR, size=n_commits)),
        files=np.array([f"module{number % 17:02d}/file{number:03d}.c" for number in range(n_files)]),
        groups=np.concatenate([part[1] for part in parts]),
        weights=weights,
        probabilities=np.array([before, after]),
        n_before=n_before,
    )


def load_transactions(name: str = "gimp", data_home: str | os.PathLike[str] | None = None) -> list[dict[str, Any]]:
    """Load the commits of a project, in the order of time.

    Parameters
    ----------
    name : {"gimp", "scikit-learn"}, default="gimp"
        The image editor from November 2007 to May 2010, or the library from January 2010 on.
    data_home : str or path, optional
        Folder of the file; see :func:`pluri.datasets.data_home`.

    Returns
    -------
    list of dict
        ``time`` in seconds since 1970 and ``files``, a list of paths.

    Examples
    --------
    >>> from pluri.datasets.commits import load_transactions
    >>> commits = load_transactions("gimp")  # doctest: +SKIP
    >>> len(commits), commits[1]  # doctest: +SKIP
    (5690, {'time': 1193943758, 'files': ['ChangeLog', 'app/widgets/gimpcellrendererdashes.c']})
    """
    check_value(name, "name", Only(*HISTORIES))
    path = find_file((HISTORIES[name],), data_home, ADVICE)
    commits = []
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        for number, line in enumerate(stream, 1):
            record = json.loads(line)
            if not {"time", "files"} <= set(record):
                raise ValueError(f"line {number} of {path.name} must have time and files, got {sorted(record)}")
            commits.append({"time": int(record["time"]), "files": list(record["files"])})
    return sorted(commits, key=lambda commit: commit["time"])


def _group(rng: np.random.Generator, n_files: int, inside: float, outside: float) -> NDArray[np.float64]:
    probabilities = np.full(n_files, outside)
    probabilities[rng.choice(n_files, size=rng.integers(SMALLEST, LARGEST + 1), replace=False)] = inside
    return probabilities


def _draw(
    rng: np.random.Generator, n_commits: int, weights: NDArray[np.float64], table: NDArray[np.float64]
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Commits and their groups; those that would change nothing are drawn again, with their group."""
    groups = rng.choice(len(weights), size=n_commits, p=weights)
    X = rng.random((n_commits, table.shape[1])) < table[groups]
    while (empty := np.flatnonzero(~X.any(axis=1))).size:
        groups[empty] = rng.choice(len(weights), size=empty.size, p=weights)
        X[empty] = rng.random((empty.size, table.shape[1])) < table[groups[empty]]
    return X, groups
