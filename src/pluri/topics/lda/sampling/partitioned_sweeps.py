"""Sweeps over the tokens of a corpus by several threads that never touch the same count of a word or a document.

Documents are cut into P parts and the columns of the vocabulary into P ranges, with about as many tokens each. A sweep
has P steps; in step s, thread t redraws the tokens of documents of part t whose words are in range t + s (modulo P), so
that counts of documents and of words are exact for every draw. Only the K totals of the topics are shared: each
thread begins a step with the same copy, knows its own changes, and all changes are added up after the step. That is
the one approximation (a total of thousands of tokens lacks what the other threads moved in the meantime). Results
depend on the number of parts, not on the scheduling of threads; one part is exact [1]_.

References
----------
.. [1] Yan, F., Xu, N. and Qi, Y. (2009). Parallel inference for latent Dirichlet allocation on graphics processing
   units. NIPS 22.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from pluri.inference.mcmc.workers import through_one_interrupt
from pluri.topics.documents import Tokens
from pluri.topics.lda.sampling.topic_assignments import Part

Integers = NDArray[np.int64]
#: ``run(part, seeds, totals) -> number of tokens that moved``; changes `totals` in place.
RunPart = Callable[[Part, NDArray[np.uint64], NDArray[np.int32]], int]


@dataclass(frozen=True, eq=False)
class Partition:
    """A corpus cut into parts.

    Attributes
    ----------
    documents : int64 array of shape (n_parts + 1,)
        Part p is documents[p], ..., documents[p + 1] - 1.
    bounds : int64 array of shape (n_parts + 1, n_documents)
        Tokens of document d whose words are in range r: bounds[r, d], ..., bounds[r + 1, d] - 1.
    """

    documents: Integers
    bounds: Integers

    @property
    def n_parts(self) -> int:
        """Number of parts."""
        return len(self.documents) - 1

    def part(self, part: int, words: int) -> Part:
        """Tokens of a part of the documents whose words are in a range."""
        return Part(self.bounds[words], self.bounds[words + 1], self.documents[part], self.documents[part + 1])


def partition(tokens: Tokens, n_parts: int) -> Partition:
    """Cut documents, and columns of the vocabulary, into parts with about as many tokens each.

    Parameters
    ----------
    tokens : Tokens
        Within each document in the order of the columns.
    n_parts : int

    Returns
    -------
    Partition
    """
    offsets, n_tokens = tokens.offsets, tokens.n_tokens
    goals = n_tokens * np.arange(1, n_parts) / n_parts
    inner = np.searchsorted(offsets, goals).clip(0, tokens.n_documents)
    documents = np.concatenate([[0], inner, [tokens.n_documents]]).astype(np.int64)
    bounds = np.empty((n_parts + 1, tokens.n_documents), dtype=np.int64)
    bounds[0], bounds[n_parts] = offsets[:-1], offsets[1:]
    if n_parts > 1:
        cuts = np.searchsorted(np.cumsum(np.bincount(tokens.words, minlength=tokens.n_words)), goals)
        for part, cut in enumerate(cuts, start=1):
            below = np.concatenate([[0], np.cumsum(tokens.words <= cut)])
            bounds[part] = offsets[:-1] + below[offsets[1:]] - below[offsets[:-1]]
    return Partition(documents, bounds)


def run_sweep(
    run: RunPart, cut: Partition, seeds: NDArray[np.uint64], totals: NDArray[np.int32], n_threads: int
) -> int:
    """Go through all parts once and bring the totals of the topics, which are changed, up to date; how many moved.

    The number of parts changes results, that of threads does not; `seeds` are (n_parts, n_parts, 2). Ctrl-C ends a
    sweep after the step under way, with all counts consistent.
    """
    moved, n_parts = 0, cut.n_parts
    with ThreadPoolExecutor(n_threads) as pool:
        for step in range(n_parts):
            own = [totals.copy() for _ in range(n_parts)]
            blocks = [(part, (part + step) % n_parts) for part in range(n_parts)]
            work = [(cut.part(*block), seeds[block], mine) for block, mine in zip(blocks, own)]
            futures = [_done(run, *one) if n_threads == 1 else pool.submit(run, *one) for one in work]
            interrupted = through_one_interrupt(partial(_all_done, futures))
            totals += np.sum([mine - totals for mine in own], axis=0, dtype=np.int32)
            moved += sum(future.result() for future in futures)
            if interrupted:
                raise KeyboardInterrupt
    return moved


def _all_done(futures: list[Future[int]]) -> bool:
    return not wait(futures).not_done


def _done(run: RunPart, part: Part, seeds: NDArray[np.uint64], totals: NDArray[np.int32]) -> Future[int]:
    """The same here and now, for parts that are done sooner than a thread starts."""
    future: Future[int] = Future()
    future.set_result(run(part, seeds, totals))
    return future
