r"""Variational Bayes for the HDP topic model: all documents at a time, or minibatches.

Topics ``beta_k ~ Dirichlet(eta)`` and sticks ``v_k ~ Beta(1, gamma)`` of the corpus, cut off at K topics; in document d
sticks ``pi_di ~ Beta(1, alpha)``, cut off at T, of which each points to a topic ``c_di ~ sigma(v)``; tokens
``z_dn ~ sigma(pi_d)`` with word ``w_dn ~ beta_{c_{d, z_dn}}``. All factors of q are independent: lambda_k (Dirichlet),
(a_k, b_k) (beta), zeta_di, (g_di1, g_di2), phi_dn.

Sticks of the corpus are in `pluri.topics.hdp.corpus_sticks`, the ascent over all documents in
`pluri.topics.hdp.batch_ascent`.

References
----------
.. [1] Wang, C., Paisley, J. and Blei, D. (2011). Online variational inference for the hierarchical Dirichlet process.
   AISTATS.
.. [2] Hoffman, M., Blei, D., Wang, C. and Paisley, J. (2013). Stochastic variational inference. JMLR 14.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import digamma, gammaln

from pluri.priors.hyperpriors import Gamma
from pluri.processes.concentration import CONCENTRATION_PRIOR
from pluri.topics.hdp.corpus_sticks import Concentration, CorpusSticks, fit_sticks

Array = NDArray[np.float64]
Natural = Mapping[str, Array]

#: A document's factors are updated at most so often in a step, and until no stick gains or loses more tokens than this.
LOCAL_ITERATIONS, LOCAL_TOLERANCE = 100, 1e-2


@dataclass(frozen=True)
class HDPVariational:
    """The model as the loops of `pluri.inference.variational` take it.

    Natural parameters: ``topic_word`` (n_topics, n_words), ``usage`` (n_topics,), ``doc_shape`` and ``doc_rate``, the
    gamma distribution of alpha (not used if alpha is fixed).

    Parameters
    ----------
    n_words, max_topics, max_doc_topics : int
    alpha, gamma : float or Gamma
        Concentrations of documents and corpus: fixed, or learned under a prior.
    eta : float
    init : {"chain", "documents", "random"}
    n_jobs : int, optional
        Parts of the documents at a time, in threads.
    """

    n_words: int
    max_topics: int
    max_doc_topics: int
    alpha: float | Gamma = 1.0
    gamma: float | Gamma = 1.0
    eta: float = 0.01
    init: str = "documents"
    n_jobs: int | None = None

    def global_prior(self) -> Natural:
        """Natural parameters before any document."""
        alpha = self.alpha if isinstance(self.alpha, Gamma) else CONCENTRATION_PRIOR  # which nothing uses
        return {
            "topic_word": np.full((self.max_topics, self.n_words), self.eta),
            "usage": np.zeros(self.max_topics),
            "doc_shape": np.asarray(alpha.shape),
            "doc_rate": np.asarray(alpha.rate),
        }

    def initialize(self, source: Any, rng: np.random.Generator) -> Natural:
        """Parameters to start from."""
        batches = [item.load().X for item in source.batches()]
        return self.start(sparse.vstack(batches, format="csr") if len(batches) > 1 else batches[0], rng)

    def start(self, X: Any, rng: np.random.Generator) -> Natural:
        """Topics of a short chain; from documents drawn at random, mixed with all words; or from gamma draws."""
        prior = self.global_prior()
        if self.init == "chain":
            from pluri.topics.hdp.chain_start import topics_of_chain

            found = topics_of_chain(rng, X, self.max_topics)
            if found is not None:
                return {**prior, "topic_word": self.eta + found}
        full = np.flatnonzero(np.diff(X.indptr))
        total = float(X.sum())
        if self.init == "random" or not len(full):
            noise = rng.standard_gamma(1.0, size=prior["topic_word"].shape)
            topic_word = noise * max(total, 1.0) / noise.size
        else:
            chosen = rng.choice(full, size=self.max_topics, replace=len(full) < self.max_topics)
            rows = X[chosen].toarray().astype(np.float64)
            rows /= rows.sum(axis=1, keepdims=True)
            common = np.asarray(X.sum(axis=0)).ravel() / total
            # Exponential noise keeps topics apart that begin with the same document.
            noisy = rows * rng.standard_gamma(10.0, size=rows.shape) / 10.0
            topic_word = (0.9 * noisy + 0.1 * common) * total / self.max_topics
        return {**prior, "topic_word": self.eta + topic_word}

    def sticks(self, params: Natural, start: float | None = None) -> CorpusSticks:
        """Sticks of the corpus at these parameters."""
        return fit_sticks(params["usage"], self.gamma, start)

    def doc_concentration(self, params: Natural) -> Concentration:
        """Distribution of alpha at these parameters."""
        if not isinstance(self.alpha, Gamma):
            return Concentration.fixed(self.alpha)
        return Concentration.gamma(float(params["doc_shape"]), float(params["doc_rate"]), self.alpha)

    def local_step(self, batch: Any, params: Natural) -> tuple[Natural, float]:
        """Local factors of a batch, each document from a new start."""
        return self.documents(batch.X, params, self.sticks(params))

    def documents(
        self, X: Any, params: Natural, sticks: CorpusSticks, kept: tuple[Array, Array] | None = None, *,
        warm: bool = False, fresh: bool = True,
    ) -> tuple[Natural, float]:  # fmt: skip
        """Statistics and bound of documents; `kept` holds their factors, which are changed."""
        from pluri.topics.hdp._variational_kernels import Documents, Given, LocalRoom, LocalSums, local_pass

        alpha = self.doc_concentration(params)
        if kept is None:
            kept = np.zeros((0, self.max_doc_topics, self.max_topics)), np.zeros((0, self.max_doc_topics, 2))
        given = Given(log_topics(params["topic_word"]), sticks.log_weight, alpha.mean, alpha.log_mean)
        documents = Documents(X.indptr, X.indices, X.data.astype(np.float64, copy=False))

        def part(begin: int, end: int) -> LocalSums:
            sums = LocalSums(np.zeros((self.n_words, self.max_topics)), np.zeros(self.max_topics), np.zeros(3))
            limits = LOCAL_ITERATIONS, LOCAL_TOLERANCE
            longest = int(np.diff(X.indptr[begin : end + 1]).max(initial=1))
            room = LocalRoom.of(longest, self.max_doc_topics, self.max_topics)
            local_pass(begin, end, documents, given, *limits, *kept, warm, fresh, room, sums)
            return sums

        topic_word, usage, totals = in_parts(part, X.indptr, self.n_jobs)
        shape = np.asarray(totals[1] * (self.max_doc_topics - 1))
        stats = {"topic_word": topic_word.T, "usage": usage, "doc_shape": shape, "doc_rate": np.asarray(totals[2])}
        return stats, float(totals[0])

    def global_elbo(self, params: Natural, sticks: CorpusSticks | None = None) -> float:
        """Minus the divergence of topics, sticks and concentrations from their priors."""
        sticks = self.sticks(params) if sticks is None else sticks
        return topic_bound(params["topic_word"], self.eta) + sticks.bound + self.doc_concentration(params).bound


def in_parts(part: Callable[[int, int], Any], indptr: NDArray[Any], n_jobs: int | None) -> tuple[Array, ...]:
    """Sums of ``part(begin, end)`` over ranges of documents with about equally many entries, in threads."""
    n_parts = min(effective_n_jobs(n_jobs), len(indptr) - 1)
    if n_parts == 1:
        return tuple(part(0, len(indptr) - 1))
    cuts = np.searchsorted(indptr, np.linspace(0, indptr[-1], n_parts + 1)[1:-1])
    edges = [0, *np.minimum(cuts, len(indptr) - 1), len(indptr) - 1]
    with ThreadPoolExecutor(n_parts) as pool:
        sums = list(pool.map(part, edges[:-1], edges[1:]))
    return tuple(sum(values[1:], start=values[0]) for values in zip(*sums))


def log_topics(topic_word: Array) -> Array:
    """E[log beta_kw], words by topics."""
    return np.ascontiguousarray((digamma(topic_word) - digamma(topic_word.sum(axis=1))[:, None]).T)


def topic_bound(topic_word: Array, eta: float) -> float:
    """Minus the divergence of Dirichlet distributions from the prior."""
    n_topics, n_words = topic_word.shape
    total = topic_word.sum(axis=1)
    log_topic = digamma(topic_word) - digamma(total)[:, None]
    own = (gammaln(topic_word) + (eta - topic_word) * log_topic).sum() - gammaln(total).sum()
    return float(own + n_topics * (gammaln(n_words * eta) - n_words * gammaln(eta)))
