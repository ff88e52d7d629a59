"""Topics to start a variational ascent from: those of a short chain of latent Dirichlet allocation.

From documents drawn at random coordinate ascent ends at a poor optimum: topics that begin with the words of one of them
stay blends. A chain gets out of these, at the price of a few sweeps of the ascent.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Array = NDArray[np.float64]

#: Sweeps of the chain, and tokens above which it sees only a part of them.
N_SWEEPS, MOST_TOKENS = 120, 2_000_000


def topics_of_chain(rng: np.random.Generator, X: Any, n_topics: int) -> Array | None:
    """Counts of words in the topics of a short chain, (n_topics, n_words); None if there is no whole token.

    Parameters
    ----------
    rng : numpy.random.Generator
    X : csr matrix of counts, or of weights, which are rounded up or down at random
    n_topics : int
    """
    from pluri.topics.lda import LatentDirichletAllocation

    part = min(1.0, MOST_TOKENS / max(float(X.sum()), 1.0))
    whole = sparse.csr_matrix(X, dtype=np.float64, copy=True)
    if part < 1.0 or (whole.data != np.floor(whole.data)).any():
        whole.data = np.floor(whole.data * part + rng.random(len(whole.data)))
    whole.eliminate_zeros()
    # Documents without a token would be warned of once more.
    whole = whole[np.diff(whole.indptr) > 0]
    if not whole.nnz:
        return None
    chain = LatentDirichletAllocation(
        n_topics,
        inference="gibbs",
        doc_topic_prior="learn",
        topic_word_prior="learn",
        n_warmup=N_SWEEPS,
        n_draws=1,
        random_state=rng,
    ).fit(whole)
    return np.maximum(chain.components_ - chain.components_.min(axis=1, keepdims=True), 0.0) / part
