"""Documents as a front page: slots that each show the newest document of a feed, a few of them replaced at a time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.validation import Only, RandomState, as_generator, check_value


@dataclass(frozen=True, eq=False, repr=False)
class DocumentStream:
    """What the slots show at each step.

    Attributes
    ----------
    documents : ndarray of shape (n_steps, n_slots), dtype int64
        Number of the document in each slot.
    changed : ndarray of shape (n_steps - 1, n_replaced), dtype int64
        Slots replaced on the way to step 1, 2, ..., in increasing order.
    slot_feeds : ndarray of shape (n_slots,)
        The feed that fills each slot.
    """

    documents: NDArray[np.int64]
    changed: NDArray[np.int64]
    slot_feeds: NDArray[np.str_]

    @property
    def shown(self) -> NDArray[np.int64]:
        """Numbers of all documents that are shown at some step, sorted."""
        return np.unique(self.documents)

    def __repr__(self) -> str:
        """Steps, slots and replacements."""
        (n_steps, n_slots), n_replaced = self.documents.shape, self.changed.shape[1]
        return f"DocumentStream({n_steps} steps, {n_slots} slots, {n_replaced} replaced a step)"


def document_stream(
    feeds: ArrayLike,
    n_slots: int = 33,
    n_replaced: int = 5,
    n_steps: int | None = None,
    *,
    arrival: str = "in order",
    random_state: RandomState = None,
) -> DocumentStream:
    """Turn a collection of documents into slots of which ``n_replaced`` get a new document at each step.

    With fewer feeds than slots, feeds are given to the slots in turn, in the order in which they first occur (so 33
    slots over 20 feeds give two slots to the first 13); with more, the most frequent ones get a slot each. Slots start
    with the first documents of their feeds. No document is shown twice.

    Parameters
    ----------
    feeds : array-like of shape (n_documents,)
        Source of each document (a newsgroup, a topic), in the order in which the documents came.
    n_slots, n_replaced : int, default=33 and 5
        Slots, and how many of them change at each step.
    n_steps : int, optional
        Length of the stream, the first step counted; as long as the documents last by default.
    arrival : {"in order", "drawn"}, default="in order"
        "in order": documents come as they are listed, each into the slot of its feed that has been unchanged for
        longest, and a step is over when ``n_replaced`` different slots have changed; what was replaced again before
        that was never shown. "drawn": the slots are drawn at random and each takes the next document of its feed, for
        collections without dates.
    random_state : int, Generator, RandomState or None
        Which slots change, if drawn.

    Returns
    -------
    DocumentStream

    Examples
    --------
    >>> from pluri.datasets import document_stream
    >>> stream = document_stream(["a", "b", "b", "a", "a", "b"], n_slots=2, n_replaced=1)
    >>> stream.documents.tolist()
    [[0, 1], [0, 2], [3, 2], [4, 2], [4, 5]]
    """
    names = np.asarray(feeds, dtype=np.str_)
    if names.ndim != 1 or names.size == 0:
        raise ValueError(f"feeds must have one axis and an entry, got shape {names.shape}")
    if not 1 <= n_replaced <= n_slots:
        raise ValueError(f"n_replaced must be from 1 to the number of slots ({n_slots}), got {n_replaced}")
    if n_steps is not None and n_steps < 1:
        raise ValueError(f"n_steps must be at least 1, got {n_steps}")
    check_value(arrival, "arrival", Only("in order", "drawn"))
    slot_feeds = _slots(names, n_slots)
    pages = [_first_page(names, slot_feeds)]
    changes: list[list[int]] = []
    if arrival == "drawn":
        _draw(names, slot_feeds, n_replaced, n_steps, pages, changes, as_generator(random_state))
    else:
        _arrive(names, slot_feeds, n_replaced, n_steps, pages, changes)
    if n_steps is not None and len(pages) < n_steps:
        raise ValueError(f"feeds must last for n_steps ({n_steps}) steps, got documents for {len(pages)}")
    return DocumentStream(
        documents=np.array(pages, dtype=np.int64),
        changed=np.array(changes, dtype=np.int64).reshape(-1, n_replaced),
        slot_feeds=slot_feeds,
    )


def _slots(names: NDArray[np.str_], n_slots: int) -> NDArray[np.str_]:
    """The feed of each slot."""
    found, first, counts = np.unique(names, return_index=True, return_counts=True)
    if found.size > n_slots:
        # The most frequent; among equals the one that came first.
        chosen = np.lexsort((first, -counts))[:n_slots]
        found, first = found[chosen], first[chosen]
    in_order = found[np.argsort(first)]
    return in_order[np.arange(n_slots) % in_order.size]


def _first_page(names: NDArray[np.str_], slot_feeds: NDArray[np.str_]) -> list[int]:
    queues = {feed: iter(np.flatnonzero(names == feed).tolist()) for feed in np.unique(slot_feeds)}
    page = [next(queues[feed], -1) for feed in slot_feeds]
    if -1 in page:
        lacking = slot_feeds[page.index(-1)]
        raise ValueError(f"feeds must have a document for each slot, got too few of {str(lacking)!r}")
    return page


def _arrive(
    names: NDArray[np.str_],
    slot_feeds: NDArray[np.str_],
    n_replaced: int,
    n_steps: int | None,
    pages: list[list[int]],
    changes: list[list[int]],
) -> None:
    """Let the documents come in order; append a page whenever enough slots have changed."""
    turns = {feed: np.flatnonzero(slot_feeds == feed).tolist() for feed in np.unique(slot_feeds)}
    page, started, changed = list(pages[0]), set(pages[0]), set()
    for document, feed in enumerate(names):
        if feed not in turns or document in started:
            continue
        if n_steps is not None and len(pages) >= n_steps:
            return
        slot = turns[feed].pop(0)
        turns[feed].append(slot)
        page[slot] = document
        changed.add(slot)
        if len(changed) == n_replaced:
            pages.append(list(page))
            changes.append(sorted(changed))
            changed = set()


def _draw(
    names: NDArray[np.str_],
    slot_feeds: NDArray[np.str_],
    n_replaced: int,
    n_steps: int | None,
    pages: list[list[int]],
    changes: list[list[int]],
    rng: np.random.Generator,
) -> None:
    """Draw slots and give each the next document of its feed, until a feed cannot serve the slots drawn."""
    page, started = list(pages[0]), set(pages[0])
    queues = {
        feed: iter([place for place in np.flatnonzero(names == feed).tolist() if place not in started])
        for feed in np.unique(slot_feeds)
    }
    while n_steps is None or len(pages) < n_steps:
        slots = np.sort(rng.choice(slot_feeds.size, size=n_replaced, replace=False)).tolist()
        for slot in slots:
            page[slot] = next(queues[slot_feeds[slot]], -1)
        if -1 in page:
            return
        pages.append(list(page))
        changes.append(slots)
