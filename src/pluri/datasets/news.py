"""Collections of news for streams of documents: posts to twenty newsgroups, and dated stories of the Reuters wire.

Neither may be shipped. Both are read from a table of JSON lines in the data folder, one document in each line.

References
----------
.. [1] Lang, K. (1995). NewsWeeder: learning to filter netnews. ICML.
.. [2] Lewis, D. D. (1997). Reuters-21578 text categorization collection, distribution 1.0.
"""

from __future__ import annotations

import gzip
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.datasets.home import find_file
from pluri.validation import Only, check_value

NEWSGROUPS_FILE = "newsgroups20_bydate.jsonl.gz"
REUTERS_FILE = "reuters21578_modapte.jsonl.gz"
NEWSGROUPS_ADVICE = (
    "It is made from 20news-bydate (qwone.com/~jason/20Newsgroups): a line of JSON for each post with the fields "
    "id, split, label, subject and text."
)
REUTERS_ADVICE = (
    "It is made from reuters21578 (kdd.ics.uci.edu): a line of JSON for each story with a topic, with the fields "
    "id, split, date (as 26-FEB-1987 15:01:01.79), topics, title and text."
)
MONTHS = "JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC"
MOMENT = re.compile(r"\s*(?P<day>\d{1,2})-(?P<month>[A-Za-z]{3})-(?P<year>\d{4}) +(?P<clock>\d\d:\d\d:\d\d(\.\d+)?)")


@dataclass(frozen=True, eq=False, repr=False)
class Documents:
    """Texts with the place where each was published.

    Attributes
    ----------
    texts, titles : tuple of str
        Body and headline of each document.
    labels : ndarray of shape (n_documents,)
        Newsgroup, or first topic, of each document.
    topics : tuple of tuple of str
        All topics of each document.
    is_test : ndarray of shape (n_documents,), dtype bool
        Whether the document belongs to the test part of the collection's usual split.
    dates : ndarray of shape (n_documents,), dtype datetime64[ms], or None
        When each was published; None where the collection does not say.
    """

    texts: tuple[str, ...]
    titles: tuple[str, ...]
    labels: NDArray[np.str_]
    topics: tuple[tuple[str, ...], ...]
    is_test: NDArray[np.bool_]
    dates: NDArray[np.datetime64] | None = None

    def __len__(self) -> int:
        """Number of documents."""
        return len(self.texts)

    def __repr__(self) -> str:
        """How many, in how many groups, from when to when."""
        period = ""
        if self.dates is not None and len(self):
            days = self.dates.astype("datetime64[D]")
            period = f", {days.min()} to {days.max()}"
        return f"Documents({len(self)} texts, {np.unique(self.labels).size} labels{period})"


def load_newsgroups(data_home: str | os.PathLike[str] | None = None, *, subset: str = "all") -> Documents:
    """Load the posts to twenty newsgroups, in the order of the file: group after group, training part first.

    Parameters
    ----------
    data_home : str or path, optional
        Folder of ``newsgroups20_bydate.jsonl.gz``; see :func:`pluri.datasets.data_home`.
    subset : {"all", "train", "test"}, default="all"
        Which part of the split by date.

    Returns
    -------
    Documents
        Without dates: the file has none.

    Examples
    --------
    >>> from pluri.datasets import load_newsgroups
    >>> load_newsgroups()  # doctest: +SKIP
    Documents(18846 texts, 20 labels)
    """
    path = find_file((NEWSGROUPS_FILE,), data_home, NEWSGROUPS_ADVICE)
    rows = _rows(path, ("split", "label", "subject", "text"), subset)
    return Documents(
        texts=tuple(row["text"] for row in rows),
        titles=tuple(row["subject"] for row in rows),
        labels=np.array([row["label"] for row in rows]),
        topics=tuple((row["label"],) for row in rows),
        is_test=np.array([row["split"] == "test" for row in rows]),
    )


def load_reuters(data_home: str | os.PathLike[str] | None = None, *, subset: str = "all") -> Documents:
    """Load the stories of the Reuters wire that have a topic (ModApte split), in the order of their dates.

    Parameters
    ----------
    data_home : str or path, optional
        Folder of ``reuters21578_modapte.jsonl.gz``; see :func:`pluri.datasets.data_home`.
    subset : {"all", "train", "test"}, default="all"
        Which part of the split.

    Returns
    -------
    Documents
        ``labels`` are the first topics.

    Examples
    --------
    >>> from pluri.datasets import load_reuters
    >>> load_reuters()  # doctest: +SKIP
    Documents(10794 texts, 81 labels, 1987-02-26 to 1987-10-20)
    """
    path = find_file((REUTERS_FILE,), data_home, REUTERS_ADVICE)
    rows = _rows(path, ("split", "date", "topics", "title", "text"), subset)
    if not all(row["topics"] for row in rows):
        raise ValueError(f"{path.name} must name at least one topic for each story, got one without")
    dates = np.array([_moment(row["date"], path.name) for row in rows], dtype="datetime64[ms]")
    order = np.argsort(dates, kind="stable")
    rows = [rows[place] for place in order]
    return Documents(
        texts=tuple(row["text"] for row in rows),
        titles=tuple(row["title"] or "" for row in rows),
        labels=np.array([row["topics"][0] for row in rows]),
        topics=tuple(tuple(row["topics"]) for row in rows),
        is_test=np.array([row["split"] == "test" for row in rows]),
        dates=dates[order],
    )


def _rows(path: Path, fields: tuple[str, ...], subset: str) -> list[dict[str, Any]]:
    """Documents of one part, each with all the fields."""
    check_value(subset, "subset", Only("all", "train", "test"))
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        rows = [json.loads(line) for line in stream if line.strip()]
    for number, row in enumerate(rows, start=1):
        missing = [field for field in fields if field not in row]
        if missing:
            raise ValueError(
                f"{path.name} must have the fields {fields} in each line, got none of {missing} in {number}"
            )
    chosen = [row for row in rows if subset in ("all", row["split"])]
    if not chosen:
        raise ValueError(f"{path.name} must hold documents of the subset {subset!r}, got none")
    return chosen


def _moment(text: str, name: str) -> str:
    """``26-FEB-1987 15:01:01.79`` as ISO 8601; month names do not depend on the locale.

    A few dates of the original end in control characters, so what follows is not looked at.
    """
    found = MOMENT.match(text)
    months = MONTHS.split()
    if found is None or found["month"].upper() not in months:
        raise ValueError(f"{name} must date its stories as 26-FEB-1987 15:01:01.79, got {text!r}")
    day, month, year, clock = found.group("day", "month", "year", "clock")
    return f"{year}-{months.index(month.upper()) + 1:02d}-{int(day):02d}T{clock}"
