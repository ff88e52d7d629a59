"""Where chains of the HDP sampler begin."""

from __future__ import annotations

import numpy as np

from pluri.topics.hdp.gibbs import Position, TopicGibbs

INITS = ("auto", "documents", "random", "sequential")
#: The starts of chains one after another if they are to be mixed: from few topics, and from many.
ALTERNATE = ("sequential", "documents")


def chain_inits(init: str, n_chains: int) -> list[str]:
    """Kind of start of each chain."""
    return [ALTERNATE[chain % len(ALTERNATE)] if init == "auto" else init for chain in range(n_chains)]


def draw_start(rng: np.random.Generator, kernel: TopicGibbs, init: str, n_topics: int) -> Position:
    """Draw a position.

    Parameters
    ----------
    rng : numpy.random.Generator
    kernel : TopicGibbs
    init : {"documents", "random", "sequential"}
        "documents": some documents have a topic each, and the other tokens are seated one after another. "random":
        every token has one of `n_topics` topics. "sequential": all tokens are seated one after another.
    n_topics : int
        Topics to begin with, or fewer if there are fewer documents or tokens.
    """
    tokens = kernel.tokens
    if init == "sequential":
        return kernel.start()
    if init == "random":
        labels = rng.integers(n_topics, size=tokens.n_tokens)
        return kernel.start(np.unique(labels, return_inverse=True)[1])
    full = np.flatnonzero(np.diff(tokens.offsets))
    chosen = rng.choice(full, size=min(n_topics, max(1, len(full) // 2)), replace=False)
    number = np.full(tokens.n_documents, -1)
    number[chosen] = np.arange(len(chosen))
    return kernel.start(number[tokens.documents])
