r"""Variational Bayes for the HDP topic model: all documents at a time, or minibatches.

Topics ``beta_k ~ Dirichlet(eta)`` and sticks ``v_k ~ Beta(1, gamma)`` of the corpus, cut off at K topics; in document d
sticks ``pi_di ~ Beta(1, alpha)``, cut off at T, of which each points to a topic ``c_di ~ sigma(v)``; tokens
``z_dn ~ sigma(pi_d)`` with word ``w_dn ~ beta_{c_{d, z_dn}}``. All factors of q are independent: lambda_k (Dirichlet),
(a_k, b_k) (beta), zeta_di, (g_di1, g_di2), phi_dn.

The expected number of sticks that point to each topic, the *usage* s_k, says all about the sticks of the corpus:
``a_k = 1 + s_k`` and ``b_k = gamma + sum_{l after k} s_l``. Which topic comes after which is free, and chosen so that
the bound is highest: by decreasing usage, with the last place, whose stick has no beta law, given to the topic that
suits it best. Concentrations may be learned: gamma priors make q(alpha) and q(gamma) gamma laws.

References
----------
.. [1] Wang, C., Paisley, J. and Blei, D. (2011). Online variational inference for the hierarchical Dirichlet process.
   AISTATS.
.. [2] Hoffman, M., Blei, D., Wang, C. and Paisley, J. (2013). Stochastic variational inference. JMLR 14.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import digamma, gammaln

from pluri.processes.concentration import GammaPrior

Array = NDArray[np.float64]
Natural = Mapping[str, Array]

#: Rounds in which the sticks and the law of their concentration are fitted to each other.
N_ROUNDS = 50
#: A document's factors are updated at most so often in a step, and until no stick gains or loses more tokens than this.
LOCAL_ITERATIONS, LOCAL_TOLERANCE = 100, 1e-2
#: Sweeps after which every document also tries a new start.
FRESH_EVERY = 5


@dataclass(frozen=True)
class Concentration:
    """A concentration that is fixed, or has a gamma law.

    Attributes
    ----------
    mean, log_mean : E[alpha], E[log alpha]
    bound : minus the divergence of its law from the prior
    """

    mean: float
    log_mean: float
    bound: float

    @classmethod
    def fixed(cls, value: float) -> Concentration:
        """A known number."""
        return cls(value, math.log(value), 0.0)

    @classmethod
    def gamma(cls, shape: float, rate: float, prior: GammaPrior) -> Concentration:
        """A gamma law with this shape and rate."""
        a, b = prior
        log_mean = float(digamma(shape)) - math.log(rate)
        divergence = (
            (shape - a) * float(digamma(shape)) - float(gammaln(shape)) + float(gammaln(a))
            + a * (math.log(rate) - math.log(b)) + shape * (b - rate) / rate
        )  # fmt: skip
        return cls(shape / rate, log_mean, -divergence)


@dataclass(frozen=True, eq=False)
class CorpusSticks:
    """Sticks of the corpus at their optimum given the usage of the topics.

    Attributes
    ----------
    order : (n_topics,): topics in the order of their sticks
    log_weight : (n_topics,): E[log sigma_k(v)] of each topic
    weight : (n_topics,): E[sigma_k(v)]
    concentration : Concentration: gamma
    bound : minus the divergence of the sticks, and of gamma, from their priors
    """

    order: NDArray[np.int64]
    log_weight: Array
    weight: Array
    concentration: Concentration
    bound: float


def stick_order(usage: Array, gamma: float) -> NDArray[np.int64]:
    """Order of the topics in which the sticks have the highest bound.

    Of two topics in a row, but for the last two, the more used one should come first: the evidence has a factor
    ``1 / (gamma + what follows the second + the usage of the second)``.
    """
    order = np.argsort(-usage, kind="stable")
    sorted_usage = usage[order]
    n = len(order)
    if n < 2:
        return order
    tail = sorted_usage.sum() - np.cumsum(sorted_usage)
    place = np.arange(n)
    # Row j: the evidence of all sticks if the j-th topic is moved to the end.
    after = tail[None, :] + np.where(place[None, :] > place[:, None], sorted_usage[:, None], 0.0)
    terms = gammaln(1 + sorted_usage) + gammaln(gamma + after) - gammaln(1 + gamma + sorted_usage + after)
    evidence = terms.sum(axis=1) - terms.diagonal()
    last = int(n - 1 - np.argmax(evidence[::-1]))
    return np.append(np.delete(order, last), order[last])


def fit_sticks(usage: Array, gamma: float | None, prior: GammaPrior, start: float | None = None) -> CorpusSticks:
    """Sticks given the usage of the topics, and the law of gamma if that is None.

    Parameters
    ----------
    usage : array of shape (n_topics,)
    gamma : float or None
    prior : (float, float)
        Shape and rate of the prior of gamma.
    start : float, optional
        Mean of gamma to begin with.
    """
    n = len(usage)
    mean = (prior[0] / prior[1] if start is None else start) if gamma is None else gamma
    concentration = Concentration.fixed(mean)
    for _ in range(N_ROUNDS):
        order = stick_order(usage, mean)
        a, b, log_in, log_out = _beta_laws(usage[order], mean)
        if gamma is not None:
            break
        concentration = Concentration.gamma(prior[0] + n - 1, prior[1] - float(log_out.sum()), prior)
        moved, mean = abs(concentration.mean - mean), concentration.mean
        if moved < 1e-10 * mean:
            break
    passed = np.concatenate([[0.0], np.cumsum(log_out)])
    log_weight, weight = np.empty(n), np.empty(n)
    log_weight[order] = passed + np.append(log_in, 0.0)
    left = np.concatenate([[1.0], np.cumprod(b / (a + b))])
    weight[order] = left * np.append(a / (a + b), 1.0)
    entropy = gammaln(a) + gammaln(b) - gammaln(a + b) - (a - 1) * log_in - (b - 1) * log_out
    bound = float((concentration.log_mean + (concentration.mean - 1) * log_out + entropy).sum())
    return CorpusSticks(order, log_weight, weight, concentration, bound + concentration.bound)


def _beta_laws(usage: Array, gamma: float) -> tuple[Array, Array, Array, Array]:
    """Parameters of the beta laws of all sticks but the last, E[log v] and E[log(1 - v)]."""
    tail = usage.sum() - np.cumsum(usage)
    a, b = 1.0 + usage[:-1], gamma + np.maximum(tail[:-1], 0.0)
    both = digamma(a + b)
    return a, b, digamma(a) - both, digamma(b) - both


@dataclass(frozen=True)
class HDPVariational:
    """The model as the loops of `pluri.inference.variational` take it.

    Natural parameters: ``topic_word`` (n_topics, n_words), ``usage`` (n_topics,), ``doc_shape`` and ``doc_rate``, the
    gamma law of alpha (not used if alpha is fixed).

    Parameters
    ----------
    n_words, max_topics, max_doc_topics : int
    alpha, gamma : float or None
        Concentrations of documents and corpus; None if they are learned.
    eta : float
    prior : (float, float)
        Shape and rate of the gamma priors of what is learned.
    init : {"documents", "random"}
    n_jobs : int, optional
        Parts of the documents at a time, in threads.
    """

    n_words: int
    max_topics: int
    max_doc_topics: int
    alpha: float | None = 1.0
    gamma: float | None = 1.0
    eta: float = 0.01
    prior: GammaPrior = (1.0, 1.0)
    init: str = "documents"
    n_jobs: int | None = None

    def global_prior(self) -> Natural:
        """Natural parameters before any document."""
        return {
            "topic_word": np.full((self.max_topics, self.n_words), self.eta),
            "usage": np.zeros(self.max_topics),
            "doc_shape": np.asarray(self.prior[0]),
            "doc_rate": np.asarray(self.prior[1]),
        }

    def initialize(self, source: Any, rng: np.random.Generator) -> Natural:
        """Parameters to start from."""
        batches = [item.load().X for item in source.batches()]
        return self.start(sparse.vstack(batches, format="csr") if len(batches) > 1 else batches[0], rng)

    def start(self, X: Any, rng: np.random.Generator) -> Natural:
        """Topics from documents drawn at random, each with half of the corpus's own law, or from gamma draws."""
        prior = self.global_prior()
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
        return fit_sticks(params["usage"], self.gamma, self.prior, start)

    def doc_concentration(self, params: Natural) -> Concentration:
        """Law of alpha at these parameters."""
        if self.alpha is not None:
            return Concentration.fixed(self.alpha)
        return Concentration.gamma(float(params["doc_shape"]), float(params["doc_rate"]), self.prior)

    def local_step(self, batch: Any, params: Natural) -> tuple[Natural, float]:
        """Local factors of a batch, each document from a new start."""
        return self.documents(batch.X, params, self.sticks(params))

    def documents(
        self, X: Any, params: Natural, sticks: CorpusSticks, kept: tuple[Array, Array] | None = None, *,
        warm: bool = False, fresh: bool = True,
    ) -> tuple[Natural, float]:  # fmt: skip
        """Statistics and bound of documents; `kept` holds their factors, which are changed."""
        from pluri.topics.hdp._variational_kernels import local_pass

        alpha, log_topic = self.doc_concentration(params), log_topics(params["topic_word"])
        if kept is None:
            kept = np.zeros((0, self.max_doc_topics, self.max_topics)), np.zeros((0, self.max_doc_topics, 2))
        counts = X.data.astype(np.float64, copy=False)

        def part(begin: int, end: int) -> tuple[Array, Array, Array]:
            sums = np.zeros((self.n_words, self.max_topics)), np.zeros(self.max_topics), np.zeros(3)
            local_pass(
                begin, end, X.indptr, X.indices, counts, log_topic, sticks.log_weight, alpha.mean, alpha.log_mean,
                LOCAL_ITERATIONS, LOCAL_TOLERANCE, *kept, warm, fresh, *sums,
            )  # fmt: skip
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
    """Minus the divergence of Dirichlet laws from the prior."""
    n_topics, n_words = topic_word.shape
    total = topic_word.sum(axis=1)
    log_topic = digamma(topic_word) - digamma(total)[:, None]
    own = (gammaln(topic_word) + (eta - topic_word) * log_topic).sum() - gammaln(total).sum()
    return float(own + n_topics * (gammaln(n_words * eta) - n_words * gammaln(eta)))


@dataclass(frozen=True, eq=False)
class Beliefs:
    """All factors of q, and what the bound needs of the local ones.

    Attributes
    ----------
    params : natural parameters of the global factors
    eta : prior count of words
    sticks : CorpusSticks
    stats : statistics of the local factors
    local : their part of the bound, less what depends on global factors
    factors : zeta and the document sticks, of all documents
    n_sweeps : sweeps made
    """

    params: Natural
    eta: float
    sticks: CorpusSticks
    stats: Natural
    local: float
    factors: tuple[Array, Array]
    n_sweeps: int = 0


@dataclass(frozen=True)
class BatchAscent:
    """Coordinate ascent over all documents for `pluri.inference.variational.coordinate_ascent`.

    Documents go on from their own factors, so that the bound never falls; every few sweeps each of them also tries a
    new start, which is taken if it is better.
    """

    model: HDPVariational
    learn_eta: bool = False

    def initialize(self, data: Any, rng: np.random.Generator) -> Beliefs:
        """First local step from the start of the model."""
        return self.begin(self.model.start(data, rng), data)

    def begin(self, params: Natural, data: Any) -> Beliefs:
        """Beliefs at given global factors."""
        model = self.model
        shape = (data.shape[0], model.max_doc_topics)
        factors = np.zeros((*shape, model.max_topics)), np.ones((*shape, 2))
        sticks = model.sticks(params)
        return self._local(Beliefs(params, model.eta, sticks, {}, 0.0, factors), data, warm=False, fresh=True)

    def update(self, beliefs: Beliefs, data: Any) -> Beliefs:
        """Global factors given the local ones, then local ones given these."""
        model = replace(self.model, eta=beliefs.eta)
        prior = model.global_prior()
        params = {name: prior[name] + beliefs.stats[name] for name in prior}
        eta = beliefs.eta
        if self.learn_eta:
            eta = learn_eta(params["topic_word"], model.prior, eta)
        sticks = model.sticks(params, beliefs.sticks.concentration.mean)
        moved = replace(beliefs, params=params, eta=eta, sticks=sticks, n_sweeps=beliefs.n_sweeps + 1)
        fresh = moved.n_sweeps % FRESH_EVERY == 0
        factors = (beliefs.factors[0].copy(), beliefs.factors[1].copy())
        return self._local(replace(moved, factors=factors), data, warm=True, fresh=fresh)

    def _local(self, beliefs: Beliefs, data: Any, *, warm: bool, fresh: bool) -> Beliefs:
        params, sticks = beliefs.params, beliefs.sticks
        stats, bound = self.model.documents(data, params, sticks, beliefs.factors, warm=warm, fresh=fresh)
        local = bound - self._shared(stats, params, sticks)
        return replace(beliefs, stats=stats, local=local)

    def _shared(self, stats: Natural, params: Natural, sticks: CorpusSticks) -> float:
        """What of the local bound depends on global factors."""
        alpha = self.model.doc_concentration(params)
        return float(
            np.vdot(stats["topic_word"], log_topics(params["topic_word"]).T)
            + stats["usage"] @ sticks.log_weight
            + stats["doc_shape"] * alpha.log_mean
            - stats["doc_rate"] * (alpha.mean - 1.0)
        )

    def elbo(self, beliefs: Beliefs, data: Any) -> float:
        """The bound."""
        model = replace(self.model, eta=beliefs.eta)
        own = model.global_elbo(beliefs.params, beliefs.sticks)
        if self.learn_eta:
            from pluri.topics.hdp.gibbs import log_gamma_density

            own += log_gamma_density(beliefs.eta, model.prior)
        return own + beliefs.local + self._shared(beliefs.stats, beliefs.params, beliefs.sticks)


def learn_eta(topic_word: Array, prior: GammaPrior, eta: float) -> float:
    """Prior count of words with the highest bound, looked for on the scale of its logarithm."""
    n_topics, n_words = topic_word.shape
    evidence = float(log_topics(topic_word).sum())

    def value(x: float) -> float:
        e = math.exp(x)
        own = n_topics * float(gammaln(n_words * e) - n_words * gammaln(e)) + e * evidence
        return own + (prior[0] - 1.0) * x - prior[1] * e

    from scipy.optimize import minimize_scalar

    x = math.log(eta)
    found = minimize_scalar(lambda y: -value(y), bounds=(x - 2.0, x + 2.0), method="bounded", options={"xatol": 1e-6})
    return math.exp(float(found.x)) if value(float(found.x)) > value(x) else eta
