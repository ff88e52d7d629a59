"""Electronic mail among 156 employees of Enron, November 1998 to June 2002, and networks of who wrote to whom.

The messages are read from two tables in the data folder and not shipped. Names of people are not in them.

References
----------
.. [1] Perry, P. O. & Wolfe, P. J. (2013). Point process modelling for directed interaction networks. Journal of the
   Royal Statistical Society B 75, 821-849.
"""

from __future__ import annotations

import csv
import gzip
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.datasets.home import find_file

MESSAGES_FILE = "enron_messages.tsv.gz"
PEOPLE_FILE = "enron_employees.tsv.gz"
ADVICE = (
    "Both tables are tab-separated: messages with the columns mid, unix_time, sender_id and receiver_ids (numbers "
    "between commas), employees with the columns id, department, title, gender and seniority. They are made from the "
    "data of Perry & Wolfe (github.com/patperry/interaction-proc)."
)


@dataclass(frozen=True, eq=False, repr=False)
class Correspondence:
    """Who wrote to whom and when: a row for each receiver of each message, in the order of time.

    Attributes
    ----------
    times : ndarray of shape (n_rows,), dtype datetime64[s]
        When the message was sent (universal time).
    senders, receivers : ndarray of shape (n_rows,), dtype int64
        Numbers of two people, from 0.
    messages : ndarray of shape (n_rows,), dtype int64
        Number of the message: receivers of the same one share it.
    titles, departments, genders, seniorities : ndarray of shape (n_people,)
        What is known of each person.
    """

    times: NDArray[np.datetime64]
    senders: NDArray[np.int64]
    receivers: NDArray[np.int64]
    messages: NDArray[np.int64]
    titles: NDArray[np.str_]
    departments: NDArray[np.str_]
    genders: NDArray[np.str_]
    seniorities: NDArray[np.str_]

    @property
    def n_people(self) -> int:
        """Number of people."""
        return int(self.titles.size)

    def __repr__(self) -> str:
        """People, messages and the period."""
        days = self.times.astype("datetime64[D]")
        n_messages = np.unique(self.messages).size
        return f"Correspondence({self.n_people} people, {n_messages} messages, {days[0]} to {days[-1]})"


@dataclass(frozen=True, eq=False, repr=False)
class Snapshots:
    """A network for each day.

    Attributes
    ----------
    days : ndarray of shape (n_days,), dtype datetime64[D]
    adjacency : ndarray of shape (n_days, n_people, n_people), dtype bool
        Symmetric, without loops: whether two people exchanged a message in the days up to and including this one.
    """

    days: NDArray[np.datetime64]
    adjacency: NDArray[np.bool_]

    def __len__(self) -> int:
        """Number of days."""
        return int(self.days.size)

    def __repr__(self) -> str:
        """Days and people."""
        return f"Snapshots({len(self)} days from {self.days[0]} to {self.days[-1]}, {self.adjacency.shape[1]} people)"


def load_enron(data_home: str | os.PathLike[str] | None = None) -> Correspondence:
    """Load the messages and what is known of the people.

    Parameters
    ----------
    data_home : str or path, optional
        Folder of ``enron_messages.tsv.gz`` and ``enron_employees.tsv.gz``; see :func:`pluri.datasets.data_home`.

    Returns
    -------
    Correspondence

    Examples
    --------
    >>> from pluri.datasets import communication_snapshots, load_enron
    >>> mail = load_enron()  # doctest: +SKIP
    >>> mail  # doctest: +SKIP
    Correspondence(156 people, 21635 messages, 1998-11-13 to 2002-06-21)
    >>> communication_snapshots(mail, 30, start="2001-08-01", stop="2001-12-01")  # doctest: +SKIP
    Snapshots(123 days from 2001-08-01 to 2001-12-01, 156 people)
    """
    people_path = find_file((PEOPLE_FILE,), data_home, ADVICE)
    people = _table(people_path, ("id", "department", "title", "gender", "seniority"))
    place = {row["id"]: number for number, row in enumerate(people)}
    path = find_file((MESSAGES_FILE,), data_home, ADVICE)
    rows = []
    for row in _table(path, ("mid", "unix_time", "sender_id", "receiver_ids")):
        for receiver in row["receiver_ids"].split(","):
            strange = [person for person in (row["sender_id"], receiver) if person not in place]
            if strange:
                raise ValueError(f"{path.name} must name people of {people_path.name}, got {strange[0]!r}")
            rows.append((int(row["unix_time"]), place[row["sender_id"]], place[receiver], int(row["mid"])))
    table = np.array(rows, dtype=np.int64)
    table = table[np.argsort(table[:, 0], kind="stable")]
    return Correspondence(
        times=table[:, 0].astype("datetime64[s]"),
        senders=table[:, 1].copy(),
        receivers=table[:, 2].copy(),
        messages=table[:, 3].copy(),
        titles=np.array([row["title"] for row in people]),
        departments=np.array([row["department"] for row in people]),
        genders=np.array([row["gender"] for row in people]),
        seniorities=np.array([row["seniority"] for row in people]),
    )


def communication_snapshots(
    messages: Any,
    window_days: int = 30,
    *,
    start: str | np.datetime64 | None = None,
    stop: str | np.datetime64 | None = None,
) -> Snapshots:
    """A network for each day, with an edge between people who wrote to each other in the days before.

    Parameters
    ----------
    messages : Correspondence or object
        With ``times``, ``senders``, ``receivers`` and ``n_people``.
    window_days : int, default=30
        Days that count, the day itself among them.
    start, stop : str or datetime64, optional
        First and last day, both included; by default the first day that has the whole window behind it, and the last
        day of the messages.

    Returns
    -------
    Snapshots

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.datasets import Correspondence, communication_snapshots
    >>> nothing = np.array(["", "", ""])
    >>> mail = Correspondence(
    ...     np.array(["2001-01-01T09", "2001-01-03T12"], dtype="datetime64[s]"), np.array([0, 2]), np.array([1, 0]),
    ...     np.array([1, 2]), nothing, nothing, nothing, nothing,
    ... )
    >>> communication_snapshots(mail, 2).adjacency.sum(axis=(1, 2)) // 2
    array([1, 1])
    """
    if window_days < 1:
        raise ValueError(f"window_days must be at least 1, got {window_days}")
    sent = np.asarray(messages.times).astype("datetime64[D]")
    if sent.size == 0:
        raise ValueError("messages must hold at least one, got none")
    if (sent[1:] < sent[:-1]).any():
        raise ValueError("messages must be in the order of time, got one after a later one")
    window = np.timedelta64(window_days, "D")
    one = np.timedelta64(1, "D")
    first = sent[0] + window - one if start is None else np.datetime64(start).astype("datetime64[D]")
    last = sent[-1] if stop is None else np.datetime64(stop).astype("datetime64[D]")
    if first > last:
        raise ValueError(f"start must not be after stop, got {first} and {last}")
    days = np.arange(first, last + one)
    adjacency = np.zeros((days.size, messages.n_people, messages.n_people), dtype=np.bool_)
    begins = np.searchsorted(sent, days - window, side="right")
    ends = np.searchsorted(sent, days, side="right")
    for network, begin, end in zip(adjacency, begins, ends):
        network[messages.senders[begin:end], messages.receivers[begin:end]] = True
        network |= network.T.copy()
        np.fill_diagonal(network, False)
    return Snapshots(days, adjacency)


def _table(path: Path, columns: tuple[str, ...]) -> list[dict[str, str]]:
    with gzip.open(path, "rt", encoding="utf-8", newline="") as stream:
        rows = csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE)
        if not set(columns) <= set(rows.fieldnames or ()):
            raise ValueError(f"{path.name} must have the columns {columns}, got {rows.fieldnames}")
        read = list(rows)
    if not read:
        raise ValueError(f"{path.name} must hold at least one row, got none")
    return read
