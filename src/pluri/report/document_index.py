"""Documents that a page can list and search, of any number of documents within a bound of size.

All are listed while they fit. When they do not, beginnings of texts are cut shorter; when that is not enough, every
second document is left out, at random, again and again. The page says what it lists.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Bytes that all documents of a page take, about.
BUDGET = 5_000_000
#: Characters of the beginning of a text: at first, and at least.
MOST_EXCERPT, LEAST_EXCERPT, MOST_TITLE = 400, 50, 100
#: Bytes of a document besides its text: shares of topics, a date, commas.
BESIDES = 40
#: Topics of a document that are listed.
N_TOPICS = 3
#: Days since then.
EPOCH = np.datetime64("1970-01-01", "D")


class DocumentIndex:
    """Collects documents for :func:`topic_report`, batch by batch.

    Parameters
    ----------
    budget : int, default=5_000_000
        Bytes that they may take on the page, about.
    random_state : int, default=0
        Of the documents that are left out if there are too many.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.report import DocumentIndex
    >>> index = DocumentIndex().add(["Ice", "Moon"], ["Ice and a puck", "The moon"], np.array([[0.9, 0.1], [0.2, 0.8]]))
    >>> index.n_listed, index.n_documents
    (2, 2)
    """

    def __init__(self, budget: int = BUDGET, random_state: int = 0) -> None:
        self.budget = int(budget)
        self.n_documents = 0
        self._rng = np.random.default_rng(random_state)
        self._excerpt, self._threshold, self._bytes = MOST_EXCERPT, 1.0, 0
        self._rows: list[tuple[float, int, str, str, list[int], list[int], int | None]] = []

    @property
    def n_listed(self) -> int:
        """Documents that the page lists."""
        return len(self._rows)

    def add(
        self, titles: Sequence[str], texts: Sequence[str] | None, shares: NDArray[Any],
        days: NDArray[np.datetime64] | None = None,
    ) -> DocumentIndex:  # fmt: skip
        """Take titles, texts (if they may be shown), shares of topics and days of some documents."""
        shares = np.asarray(shares, dtype=np.float64)
        if len(titles) != len(shares) or (texts is not None and len(texts) != len(shares)):
            raise ValueError(f"titles and texts must have one for each of {len(shares)} documents, got {len(titles)}")
        # Not columns of frames, which would be asked by an index of their own.
        titles, texts = list(titles), None if texts is None else list(texts)
        days = None if days is None else np.asarray(days, dtype="datetime64[D]")
        few = min(N_TOPICS, shares.shape[1])
        best = np.argsort(-shares, axis=1, kind="stable")[:, :few]
        percent = np.rint(100 * np.take_along_axis(shares, best, axis=1)).astype(int)
        luck = self._rng.random(len(shares))
        for row in range(len(shares)):
            self.n_documents += 1
            if luck[row] > self._threshold:
                continue
            title = _cut(" ".join(str(titles[row])[: 4 * MOST_TITLE].split()), MOST_TITLE)
            excerpt = "" if texts is None else _beginning(str(texts[row]), title, self._excerpt)
            day = None if days is None or np.isnat(days[row]) else int((days[row] - EPOCH).astype(int))
            kept = [place for place in range(few) if percent[row, place] > 0]
            topics, parts = best[row, kept].tolist(), percent[row, kept].tolist()
            self._rows.append((luck[row], self.n_documents - 1, title, excerpt, topics, parts, day))
            self._bytes += _size(title, excerpt)
            while self._bytes > self.budget and len(self._rows) > 1:
                self._shrink()
        return self

    def _shrink(self) -> None:
        if self._excerpt > LEAST_EXCERPT:
            self._excerpt = max(self._excerpt // 2, LEAST_EXCERPT)
            self._rows = [(*row[:3], _cut(row[3], self._excerpt), *row[4:]) for row in self._rows]
        else:
            self._threshold /= 2
            self._rows = [row for row in self._rows if row[0] <= self._threshold] or self._rows[:1]
        self._bytes = sum(_size(row[2], row[3]) for row in self._rows)

    def to_dict(self) -> dict[str, Any]:
        """Lists for the program of the page."""
        topics, shares = [row[4] for row in self._rows], [row[5] for row in self._rows]
        dated = any(row[6] is not None for row in self._rows)
        return {
            "total": self.n_documents,
            "excerpt": self._excerpt,
            "places": [row[1] for row in self._rows] if self.n_listed < self.n_documents else None,
            "titles": [row[2] for row in self._rows],
            "excerpts": [row[3] for row in self._rows],
            "topics": topics,
            "shares": shares,
            "days": [row[6] for row in self._rows] if dated else None,
        }


def _size(title: str, excerpt: str) -> int:
    return len(title.encode("utf-8", "replace")) + len(excerpt.encode("utf-8", "replace")) + BESIDES


def _beginning(text: str, title: str, room: int) -> str:
    """How a text goes on after its title, if the title is how it begins."""
    words = " ".join(text[: 4 * (room + MOST_TITLE)].split())
    known = title.rstrip("…").rstrip()
    if known and words.startswith(known):
        words = words[len(known) :].lstrip()
    return _cut(words, room)


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else text[: room - 1].rstrip() + "…"
