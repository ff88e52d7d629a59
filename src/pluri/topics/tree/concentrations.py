"""Document level of a tree of topics: the base measure over top nodes, proportions of documents, and concentrations.

``alpha ~ Stick(lambda)``, ``theta_d ~ DP(eta, alpha)``: a hierarchical Dirichlet process whose tables are counted, with
theta integrated out, to draw alpha, lambda and eta; then ``theta_d ~ Dirichlet(eta alpha + n_d)``. For eta, with n_d
tokens in document d and m tables in all [1]_,

    q_d ~ Beta(eta + 1, n_d),  r_d ~ Bernoulli(n_d / (n_d + eta)),  eta ~ Gamma(a + m - sum r_d, b - sum log q_d).

References
----------
.. [1] Teh, Y. W., Jordan, M. I., Beal, M. J. and Blei, D. M. (2006). Hierarchical Dirichlet processes. JASA 101,
   1566-1581.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pluri.priors.hyperpriors import Gamma
from pluri.topics.tree.sticks import LEAST, MOST, draw_shares, draw_sticks

Array = NDArray[np.float64]


class DocumentLevel(NamedTuple):
    """Draw of what the documents share and of their proportions.

    Attributes
    ----------
    base : array of shape (n_nodes + 1,)
        alpha, with what is left of the stick at the end.
    theta : array of shape (n_documents, n_nodes)
    rest : array of shape (n_documents,)
        Proportion of nodes that are not there yet.
    base_concentration, doc_concentration : float
        lambda and eta.
    """

    base: Array
    theta: Array
    rest: Array
    base_concentration: float
    doc_concentration: float


def draw_document_level(
    rng: np.random.Generator,
    counts: NDArray[np.int32],
    base: Array,
    base_concentration: float,
    doc_concentration: float,
    prior: Gamma | None,
    doc_prior: Gamma | None,
    *,
    closed: bool = True,
) -> DocumentLevel:
    """Draw the document level given the tokens of each document below each top node.

    Parameters
    ----------
    rng : Generator
    counts : int array of shape (n_documents, n_nodes)
    base : array of shape (n_nodes + 1,)
        alpha before, by which tables are counted.
    base_concentration, doc_concentration : float
        lambda and eta before.
    prior, doc_prior : Gamma or None
        Their priors; None for one that stays as it is.
    closed : bool, default=True
        Whether there can be no more nodes.
    """
    from pluri.topics.tree._token_kernels import count_tables

    tables = np.zeros(counts.shape[1], dtype=np.int64)
    stream = rng.integers(2**63, size=1).astype(np.uint64)
    count_tables(stream, counts, base[:-1], doc_concentration, tables)
    if doc_prior is not None:
        doc_concentration = draw_doc_concentration(
            rng, counts.sum(axis=1), int(tables.sum()), doc_concentration, doc_prior
        )
    sticks = draw_sticks(rng, tables, base_concentration, prior, closed=closed)
    base = np.append(sticks.pieces, sticks.rest)
    shapes = doc_concentration * base + np.pad(counts, ((0, 0), (0, 1)))
    shares = draw_shares(rng, shapes)
    return DocumentLevel(base, shares[:, :-1].copy(), shares[:, -1].copy(), sticks.concentration, doc_concentration)


def draw_doc_concentration(
    rng: np.random.Generator, lengths: NDArray[np.integer], n_tables: int, before: float, prior: Gamma
) -> float:
    """Draw eta given the number of tables."""
    lengths = lengths[lengths > 0]
    log_q = np.log(rng.beta(before + 1.0, lengths)).sum()
    singles = int((rng.random(lengths.size) < lengths / (lengths + before)).sum())
    value = rng.standard_gamma(prior.shape + n_tables - singles) / (prior.rate - log_q)
    return float(np.clip(value, LEAST, MOST))
