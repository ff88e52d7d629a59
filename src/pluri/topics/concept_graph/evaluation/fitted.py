"""A concept graph as one draw left it: topics, steps and paths, and what they say of documents.

Topics and steps have their posterior means given the draw, ``phi_tv = (eta + N_tv) / (V eta + N_t)`` and the predictive
probabilities of `pluri.topics.concept_graph.edge_prior`. Where nodes that no path uses are left out, the probabilities
of the others add up to one. What is asked of a document is then a sum over all paths and an integral over the
distribution of levels (`pluri.topics.concept_graph.evaluation.levels`): exact but for the quadrature.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from pluri.priors.hyperpriors import Beta
from pluri.topics.concept_graph.evaluation.levels import LevelGrid

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
#: Paths that are looked at; the least probable are left out beyond.
MOST_PATHS = 5000


class PathPosterior(NamedTuple):
    """What a fitted graph says of some documents.

    Attributes
    ----------
    log_likelihood : (n_documents,)
    path_share : (n_documents, n_paths)
        Posterior probability of each path.
    node_share : (n_documents, n_nodes)
        Expected share of the words that comes from each node.
    """

    log_likelihood: Array
    path_share: Array
    node_share: Array


class KnownPaths(NamedTuple):
    """Nodes of each path (n_paths, n_levels), their number, and the log probability of the path."""

    paths: Integers
    lengths: Integers
    log_prior: Array


@dataclass(frozen=True, eq=False)
class FittedGraph:
    """Topics, paths and levels of a fitted graph.

    Attributes
    ----------
    topic_word : (n_nodes, n_words)
    paths, lengths, log_prior : (n_paths, n_levels), (n_paths,), (n_paths,)
        Nodes of each path from the root, -1 after its end; their number; log probability.
    grid : LevelGrid
    level_prior, tau_prior : as in :class:`ConceptGraph`
    """

    topic_word: Array
    paths: Integers
    lengths: Integers
    log_prior: Array
    grid: LevelGrid
    level_prior: str
    tau_prior: Beta

    @classmethod
    def of(
        cls, topic_word: Array, step: Array, end: Array, n_levels: int, level_prior: str, tau_prior: Beta
    ) -> FittedGraph:
        """From probabilities of the steps between nodes, (n_nodes, n_nodes), and of the ends, (n_nodes,)."""
        whole = step.sum(axis=1) + end
        step, end = step / whole[:, None], end / whole
        found: list[tuple[tuple[int, ...], float]] = []
        waiting: list[tuple[tuple[int, ...], float]] = [((0,), 1.0)]
        least = 0.0
        while waiting:
            path, probability = waiting.pop()
            found.append((path, probability * end[path[-1]]))
            if len(found) > 4 * MOST_PATHS:
                found = sorted(found, key=lambda item: -item[1])[:MOST_PATHS]
                least = found[-1][1]
            for y in np.flatnonzero(step[path[-1]]):
                if probability * step[path[-1], y] > least:
                    waiting.append(((*path, int(y)), float(probability * step[path[-1], y])))
        found = sorted((item for item in found if item[1] > 0), key=lambda item: -item[1])[:MOST_PATHS]
        paths = np.full((len(found), n_levels), -1, dtype=np.int64)
        for row, (path, _) in zip(paths, found):
            row[: len(path)] = path
        prior = np.array([probability for _, probability in found])
        return cls(
            topic_word, paths, (paths >= 0).sum(axis=1), np.log(prior / prior.sum()),
            LevelGrid.of(n_levels, level_prior, tau_prior), level_prior, tau_prior,
        )  # fmt: skip

    def only(self, chosen: NDArray[np.bool_]) -> FittedGraph:
        """The same with some of the paths, whose probabilities add up to one."""
        log_prior = self.log_prior[chosen]
        return replace(
            self, paths=self.paths[chosen], lengths=self.lengths[chosen],
            log_prior=log_prior - np.logaddexp.reduce(log_prior),
        )  # fmt: skip

    def posterior(self, X: Any, *, shares: bool = True, next_word: bool = False) -> PathPosterior:
        """Likelihood of documents, given as CSR counts; and, if wanted, the posterior of paths and nodes.

        Shares of nodes are those of the words of a document, or those that its next word would have.
        """
        from pluri.topics.concept_graph.evaluation._evaluation_kernels import documents_posterior

        n, n_shares = X.shape[0], X.shape[0] if shares else 0
        found = PathPosterior(
            np.zeros(n), np.zeros((n_shares, len(self.paths))), np.zeros((n_shares, len(self.topic_word)))
        )
        documents_posterior(
            X.indptr.astype(np.int64), X.indices.astype(np.int64), X.data, np.ascontiguousarray(self.topic_word.T),
            KnownPaths(self.paths, self.lengths, self.log_prior), self.grid, found, shares, next_word,
        )  # fmt: skip
        if shares:
            np.divide(found.node_share, found.node_share.sum(axis=1, keepdims=True), out=found.node_share)
        return found

    def draw_shares(self, rng: np.random.Generator, n_draws: int, *, spread: bool = False) -> tuple[Integers, Array]:
        """Paths of made-up documents, and the shares of the nodes in each: (n_draws,) and (n_draws, n_nodes).

        If `spread`, documents are not independent but evenly spread over paths and quantiles of tau: their means vary
        much less from draw to draw.
        """
        prior = np.exp(self.log_prior)
        a, b = self.tau_prior.a, self.tau_prior.b
        if spread:
            chosen = np.searchsorted(prior.cumsum(), (np.arange(n_draws) + rng.random()) / n_draws)
            chosen = np.minimum(chosen, len(prior) - 1).astype(np.int64)
        else:
            chosen = rng.choice(len(prior), size=n_draws, p=prior)
        if self.level_prior == "dirichlet":
            # Shares of the first nodes of a Dirichlet distribution, made to add up to one, are Dirichlet too.
            levels = rng.standard_gamma(
                np.where(np.arange(self.paths.shape[1]) == 0, a, b), (n_draws, len(self.paths[0]))
            )
        else:
            tau = self._spread_tau(rng, chosen) if spread else rng.beta(a, b, size=n_draws)
            levels = (1.0 - tau)[:, None] ** np.arange(self.paths.shape[1])
        length, shares = self.lengths[chosen], np.zeros((n_draws, len(self.topic_word)))
        levels = np.where(np.arange(levels.shape[1]) < length[:, None], np.maximum(levels, 1e-300), 0.0)
        levels /= levels.sum(axis=1, keepdims=True)
        for l in range(levels.shape[1]):
            rows = np.flatnonzero(length > l)
            shares[rows, self.paths[chosen[rows], length[rows] - 1 - l]] = levels[rows, l]
        return chosen, shares

    def _spread_tau(self, rng: np.random.Generator, chosen: Integers) -> Array:
        """Values of tau that lie, for each path, one in each of as many equally probable parts as it has documents."""
        rank = np.arange(len(chosen)) - np.searchsorted(chosen, chosen)
        number = np.bincount(chosen)[chosen]
        return np.asarray(betaincinv(self.tau_prior.a, self.tau_prior.b, (rank + rng.random(len(chosen))) / number))
