"""Coordinate ascent over all documents of the variational HDP topic model, whose bound never falls."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import gammaln

from pluri.priors.hyperpriors import Gamma
from pluri.topics.hdp.corpus_sticks import CorpusSticks
from pluri.topics.hdp.variational import HDPVariational, Natural, log_topics

Array = NDArray[np.float64]

#: Sweeps after which every document also tries a new start.
FRESH_EVERY = 5


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
    new start, which is taken if it is better. With `eta_prior`, eta is put where the bound is highest under it.
    """

    model: HDPVariational
    eta_prior: Gamma | None = None

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
        if self.eta_prior is not None:
            eta = best_eta(params["topic_word"], self.eta_prior, eta)
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
        if self.eta_prior is not None:
            own += self.eta_prior.log_density(beliefs.eta)
        return own + beliefs.local + self._shared(beliefs.stats, beliefs.params, beliefs.sticks)


def best_eta(topic_word: Array, prior: Gamma, eta: float) -> float:
    """Prior count of words with the highest bound, looked for on the scale of its logarithm."""
    n_topics, n_words = topic_word.shape
    evidence = float(log_topics(topic_word).sum())

    def value(x: float) -> float:
        e = math.exp(x)
        own = n_topics * float(gammaln(n_words * e) - n_words * gammaln(e)) + e * evidence
        return own + (prior.shape - 1.0) * x - prior.rate * e

    x = math.log(eta)
    found = minimize_scalar(lambda y: -value(y), bounds=(x - 2.0, x + 2.0), method="bounded", options={"xatol": 1e-6})
    return math.exp(float(found.x)) if value(float(found.x)) > value(x) else eta
