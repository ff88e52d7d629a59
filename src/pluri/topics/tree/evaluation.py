r"""Documents under trees that are known: their proportions, and how probable new ones are.

The word distribution of a document, ``p(w) = sum_s pi_ds (P^(s-1) ... P^(top) theta_d)' phi_s(w)``, sums to one over
the vocabulary. Half of a document's tokens given the other half ("completion"), or each given those before it
("left_to_right"), are scored by it.

"conditional_scale" is what was published [1]_: the words of a document are scored by their topics *given their scales*,

    prod_i (1/J) sum_j sum_s 1(c_i^(j) = s) sum_t reach_ds^(j)(t) phi_st^(j)(w_i),

with scales and proportions learned from the very words that are scored. It is not a probability: where each word has
one scale, the scores of all words sum to the number of scales, not to one, which makes them better by about the entropy
of pi_d, up to log 3 = 1.10 nats per word for three scales. Compare models by the other two.

References
----------
.. [1] Chen, H., Dunson, D. B. and Carin, L. (2011). Topic modeling with nonparametric Markov tree. ICML.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.topics.documents import Tokens, tokens_of
from pluri.topics.held_out import HeldOut, empirical_likelihood, mean_over_draws
from pluri.topics.held_out.halves import halves
from pluri.topics.tree.sticks import draw_shares, draw_sticks
from pluri.topics.tree.tree import Tree
from pluri.validation import check_count

Array = NDArray[np.float64]
METHODS = ("completion", "left_to_right", "empirical", "conditional_scale")
#: Sweeps over a document before its proportions are averaged, and while they are.
N_WARMUP, N_DRAWS = 30, 50


def document_columns(
    tree: Tree, X: Any, start: int, *, n_warmup: int = N_WARMUP, n_draws: int = N_DRAWS, per_token: bool = False
) -> tuple[Array, Array]:
    """Expected weights of the columns of the tree's table in each document, and scores of tokens given their scales.

    Parameters
    ----------
    tree : Tree
    X : csr_matrix of whole counts
    start : int
        Where the random numbers start, of every document alike.
    n_warmup, n_draws : int
        Sweeps over the tokens of a document before and while the weights are averaged.
    per_token : bool, default=False
        Whether scores of tokens are wanted.

    Returns
    -------
    columns : array of shape (n_documents, n_columns), rows sum to one
    scores : array of shape (n_tokens,), or (0,)
    """
    from pluri.topics.tree._document_kernels import sample_documents

    tokens, table = tokens_of(X), tree.table()
    columns, scores = np.zeros((X.shape[0], table.shape[1])), np.zeros(tokens.n_tokens if per_token else 0)
    sample_documents(
        np.array([start], dtype=np.uint64), tokens.words, tokens.offsets, _known(tree), table, n_warmup, n_draws,
        columns, scores,
    )  # fmt: skip
    return columns, scores


def completion(
    trees: Sequence[Tree], X: Any, rng: np.random.Generator, *, observed: Any = None, share: float = 0.5,
    n_warmup: int = N_WARMUP, n_draws: int = N_DRAWS,
) -> HeldOut:  # fmt: skip
    """Score part of the tokens of each document given the others, probabilities averaged over trees.

    If `observed` is given, it holds the words to learn from and `X` those to score; otherwise they are drawn.
    """
    observed, scored = halves(X, rng, observed=observed, share=share)
    documents = np.repeat(np.arange(scored.shape[0]), np.diff(scored.indptr))
    chances = np.zeros(scored.nnz)
    for tree in trees:
        columns, _ = document_columns(tree, observed, _start(rng), n_warmup=n_warmup, n_draws=n_draws)
        chances += _at_entries(columns, tree.table(), documents, scored.indices) / len(trees)
    total = np.bincount(documents, weights=scored.data * np.log(chances), minlength=scored.shape[0])
    return HeldOut(total.astype(np.float64), _lengths(scored), "completion")


def left_to_right(trees: Sequence[Tree], X: Any, rng: np.random.Generator, *, n_particles: int = 20) -> HeldOut:
    """Score each token given those before it, in random order, by weighted particles; averaged over trees."""
    from pluri.topics.tree._document_kernels import score_in_turn

    check_count(n_particles, "n_particles")
    tokens = _shuffled(tokens_of(X), rng)
    scores = []
    for tree in trees:
        total = np.zeros(X.shape[0])
        score_in_turn(
            np.array([_start(rng)], dtype=np.uint64), tokens.words, tokens.offsets, _known(tree), tree.table(),
            n_particles, total,
        )  # fmt: skip
        scores.append(HeldOut(total, np.diff(tokens.offsets), "left_to_right"))
    return mean_over_draws(scores)


def draw_word_distributions(tree: Tree, rng: np.random.Generator, n_documents: int) -> Array:
    """Word distributions of made-up documents: (n_documents, n_words)."""
    nothing = np.zeros((n_documents, tree.depth), dtype=np.int64)
    usage = draw_sticks(rng, nothing, tree.usage_concentration).pieces
    theta = draw_shares(rng, np.tile(tree.doc_concentration * tree.base, (n_documents, 1)))
    parts = [usage[:, [s]] if s < tree.top else usage[:, [s]] * theta for s in range(tree.depth)]
    words = np.hstack(parts) @ tree.table().T
    return np.asarray(words / words.sum(axis=1, keepdims=True))


def empirical(trees: Sequence[Tree], X: Any, rng: np.random.Generator, *, n_samples: int = 2000) -> HeldOut:
    """Average the probability of each document over made-up ones, `n_samples` of all trees together."""
    check_count(n_samples, "n_samples")
    shares = rng.multinomial(n_samples, np.full(len(trees), 1.0 / len(trees)))
    made = [draw_word_distributions(tree, rng, int(n)) for tree, n in zip(trees, shares)]
    return empirical_likelihood(np.concatenate(made), X)


def conditional_scale(
    trees: Sequence[Tree], X: Any, rng: np.random.Generator, *, n_warmup: int = N_WARMUP, n_draws: int = N_DRAWS
) -> HeldOut:
    """Score all tokens given their scales, as was published; see the module for why this is not a probability."""
    tokens = tokens_of(X)
    chances = np.zeros(tokens.n_tokens)
    for tree in trees:
        _, scores = document_columns(tree, X, _start(rng), n_warmup=n_warmup, n_draws=n_draws, per_token=True)
        chances += scores / len(trees)
    total = np.bincount(tokens.documents, weights=np.log(chances), minlength=X.shape[0])
    return HeldOut(total.astype(np.float64), np.diff(tokens.offsets), "conditional_scale")


def _known(tree: Tree) -> Any:
    from pluri.topics.tree._document_kernels import Known

    return Known(tree.depth, tree.top, len(tree.base), tree.doc_concentration, tree.usage_concentration, tree.base)


def _at_entries(columns: Array, table: Array, documents: NDArray[Any], words: NDArray[Any]) -> Array:
    """Products of rows of two arrays at pairs of indices, in blocks."""
    step = max(1, 2**22 // table.shape[1])
    parts = [
        np.einsum("ij,ij->i", columns[documents[first : first + step]], table[words[first : first + step]])
        for first in range(0, len(words), step)
    ]
    return np.concatenate(parts) if parts else np.zeros(0)


def _shuffled(tokens: Tokens, rng: np.random.Generator) -> Tokens:
    order = np.argsort(tokens.documents + rng.random(tokens.n_tokens), kind="stable")
    return Tokens(tokens.words[order], tokens.documents, tokens.offsets, tokens.n_words)


def _start(rng: np.random.Generator) -> int:
    return int(rng.integers(2**63))


def _lengths(X: Any) -> NDArray[np.int64]:
    return np.asarray(X.sum(axis=1)).ravel().round().astype(np.int64)
