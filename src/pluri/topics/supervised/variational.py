r"""Variational EM for supervised topic models.

q(theta_d) = Dir(gamma_d), q(beta_k) = Dir(lambda_k) and, for each token, q(z_dn) = phi_dn, the same for all tokens of
one word in a document, so that it is kept once; coefficients and noise are put at their mode.

*Ratings*: E[log N(y; w' zbar, 1 / tau)] needs, with s = sum_n phi_n,

    w' E[zbar zbar'] w = [(w' s)^2 - sum_n (w' phi_n)^2 + sum_n phi_n' w^2] / N^2.

An update is exact given the other words, so words are visited in turn [1]_. For a word that occurs m times it is

    phi_k proportional to exp{E log theta_k + E log beta_kw + tau q_k (g - q_k / 2 - (m - 1) q' phi)},  q = w / N,

with g the rating less what the other words explain: one equation in one unknown, q' phi.

*Classes*: the normaliser is bounded by

    E[log sum_c exp(w_c' zbar)]  <=  log sum_c prod_n sum_k phi_nk exp(w_ck / N),

which as a function of the phi of one token is the logarithm of a linear form h' phi, and lies below its tangent: phi_k
is proportional to exp{E log theta_k + E log beta_kw + w_yk / N - h_k / (h' phi_old)} [2]_. For a word that occurs
several times the same is a step of mirror ascent, which is shortened until it is sure to rise.

Every update raises the bound.

References
----------
.. [1] Blei, D. M. and McAuliffe, J. D. (2007). Supervised topic models. NIPS 20.
.. [2] Wang, C., Blei, D. and Fei-Fei, L. (2009). Simultaneous image classification and annotation. CVPR.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, psi

from pluri.priors.hyperpriors import Gamma
from pluri.topics.supervised.distinct_words import DistinctWords
from pluri.topics.supervised.response_records import Ratings

Array = NDArray[np.float64]
#: Prior of the precision of ratings of variance one.
NOISE_PRIOR = Gamma(0.1, 0.1)
#: Passes over the words before the topics are updated.
PASSES = 3
#: Steps towards the best coefficients of classes in each iteration.
M_STEPS = 3


@dataclass(frozen=True, eq=False)
class SupervisedFactors:
    """The variational distribution.

    Attributes
    ----------
    phi : array of shape (n_pairs, n_topics), one row for each word of each document
    gamma : array of shape (n_documents, n_topics)
    topics : array of shape (n_topics, n_words), the lambda of the module
    coefficients : array of shape (n_topics,) or (n_classes, n_topics)
    precision : of the ratings
    """

    phi: Array
    gamma: Array
    topics: Array
    coefficients: Array
    precision: float = 1.0


def dirichlet_logs(parameters: Array) -> Array:
    """E[log x] of Dirichlet distributions, one in each row."""
    logs: Array = psi(parameters) - psi(parameters.sum(axis=1, keepdims=True))
    return logs


def dirichlet_bound(prior: Array | float, parameters: Array) -> float:
    """E[log p - log q] of Dirichlet distributions, one in each row."""
    prior = np.broadcast_to(prior, parameters.shape)
    value = ((prior - parameters) * dirichlet_logs(parameters)).sum()
    value += (gammaln(parameters) - gammaln(prior)).sum()
    value += (gammaln(prior.sum(axis=1)) - gammaln(parameters.sum(axis=1))).sum()
    return float(value)


@dataclass(frozen=True, eq=False)
class _SupervisedVariational:
    """A model for `pluri.inference.variational.coordinate_ascent`; data is (words, response)."""

    n_topics: int
    doc_topic_prior: Array
    topic_word_prior: float
    coef_prior_var: float

    def initialize(self, data: Any, rng: np.random.Generator) -> SupervisedFactors:
        """Each word near some topic at random, and coefficients of zero."""
        words, response = data
        phi = rng.dirichlet(np.ones(self.n_topics), size=words.words.size)
        topics = rng.gamma(100.0, 0.01, size=(self.n_topics, words.n_words))
        # Topics begin with the words of some documents: from nearly equal ones, few documents move anything.
        for k, row in enumerate(rng.permutation(words.n_documents)[: self.n_topics]):
            mine = slice(words.offsets[row], words.offsets[row + 1])
            topics[k, words.words[mine]] += words.counts[mine]
        q = SupervisedFactors(phi, self._gamma(words, phi), topics, self._no_effect(response))
        return self._respond(q, words, response)

    def update(self, q: SupervisedFactors, data: Any) -> SupervisedFactors:
        """Words and shares, some times; then topics, then coefficients."""
        from pluri.topics.supervised._variational_kernels import word_sums

        words, response = data
        phi = q.phi.copy()
        log_topic = np.ascontiguousarray(dirichlet_logs(q.topics).T)
        q = replace(q, phi=phi)
        for _ in range(PASSES):
            self._pass(q, words, response, dirichlet_logs(q.gamma), log_topic)
            q = replace(q, gamma=self._gamma(words, phi))
        sums = np.zeros((words.n_words, self.n_topics))
        word_sums(words, phi, sums)
        return self._respond(replace(q, topics=self.topic_word_prior + sums.T), words, response)

    def elbo(self, q: SupervisedFactors, data: Any) -> float:
        """The bound, with the priors of coefficients and noise."""
        from pluri.topics.supervised._variational_kernels import token_bound

        words, response = data
        log_topic = np.ascontiguousarray(dirichlet_logs(q.topics).T)
        value = float(token_bound(words, q.phi, dirichlet_logs(q.gamma), log_topic))
        value += dirichlet_bound(self.doc_topic_prior, q.gamma) + dirichlet_bound(self.topic_word_prior, q.topics)
        value -= 0.5 * float((q.coefficients**2).sum()) / self.coef_prior_var
        value -= 0.5 * q.coefficients.size * math.log(2 * math.pi * self.coef_prior_var)
        return value + self._response_bound(q, words, response)

    def shares(self, words: DistinctWords, phi: Array) -> Array:
        """The phibar of each document."""
        shares: Array = words.by_document(phi) / np.maximum(words.lengths, 1)[:, None]
        return shares

    def _gamma(self, words: DistinctWords, phi: Array) -> Array:
        gamma: Array = self.doc_topic_prior + words.by_document(phi)
        return gamma

    @abstractmethod
    def _no_effect(self, response: NDArray[Any]) -> Array:
        """Coefficients to begin with."""

    @abstractmethod
    def _pass(
        self, q: SupervisedFactors, words: DistinctWords, response: Any, log_theta: Array, log_topic: Array
    ) -> None:
        """Update phi in place."""

    @abstractmethod
    def _respond(self, q: SupervisedFactors, words: DistinctWords, response: Any) -> SupervisedFactors:
        """Coefficients, and noise, at their best given phi."""

    @abstractmethod
    def _response_bound(self, q: SupervisedFactors, words: DistinctWords, response: Any) -> float:
        """The part of the bound that has to do with what was said."""


@dataclass(frozen=True, eq=False)
class RatingsVariational(_SupervisedVariational):
    """Variational EM for ratings; NaN where there is none."""

    noise_prior: Gamma = NOISE_PRIOR

    def _no_effect(self, response: NDArray[Any]) -> Array:
        return np.zeros(self.n_topics)

    def _pass(
        self, q: SupervisedFactors, words: DistinctWords, response: Any, log_theta: Array, log_topic: Array
    ) -> None:
        from pluri.topics.supervised._variational_kernels import pass_ratings

        ratings, room = Ratings.of(response, q.coefficients, q.precision), tuple(np.empty((3, self.n_topics)))
        pass_ratings(words, q.phi, log_theta, log_topic, ratings, words.by_document(q.phi), room)

    def _moments(self, q: SupervisedFactors, words: DistinctWords, response: Any) -> tuple[Array, Array, Array]:
        """Shares and ratings of rated documents, and the sum of E[zbar zbar'] over them."""
        rated = np.isfinite(response)
        lengths, documents = np.maximum(words.lengths, 1)[:, None], words.documents
        all_shares = self.shares(words, q.phi)
        shares = all_shares[rated]
        scale = np.where(rated[documents], np.sqrt(words.counts) / lengths[documents, 0], 0.0)
        scaled = q.phi * scale[:, None]
        moment = shares.T @ shares - scaled.T @ scaled + np.diag((all_shares / lengths)[rated].sum(axis=0))
        return shares, response[rated], moment

    def _respond(self, q: SupervisedFactors, words: DistinctWords, response: Any) -> SupervisedFactors:
        shares, said, moment = self._moments(q, words, response)
        shape, rate = self.noise_prior.shape, self.noise_prior.rate
        precision = q.precision
        coefficients: Array = q.coefficients
        for _ in range(2):  # each given the other
            inverse = moment * precision + np.eye(self.n_topics) / self.coef_prior_var
            coefficients = np.asarray(np.linalg.solve(inverse, shares.T @ said * precision), dtype=np.float64)
            squares = self._squares(coefficients, shares, said, moment)
            precision = (shape + 0.5 * len(said)) / (rate + 0.5 * squares)
        return replace(q, coefficients=coefficients, precision=float(precision))

    @staticmethod
    def _squares(coefficients: Array, shares: Array, said: Array, moment: Array) -> float:
        value = said @ said - 2 * said @ (shares @ coefficients) + coefficients @ moment @ coefficients
        return max(float(value), 0.0)

    def _response_bound(self, q: SupervisedFactors, words: DistinctWords, response: Any) -> float:
        shares, said, moment = self._moments(q, words, response)
        shape, rate, precision = self.noise_prior.shape, self.noise_prior.rate, q.precision
        value = 0.5 * len(said) * math.log(precision / (2 * math.pi))
        value -= 0.5 * precision * self._squares(q.coefficients, shares, said, moment)
        # The prior of log precision: its mode exists however few documents there are.
        return value + shape * math.log(rate * precision) - math.lgamma(shape) - rate * precision


@dataclass(frozen=True, eq=False)
class ClassesVariational(_SupervisedVariational):
    """Variational EM for classes 0, 1, ...; -1 where there is none."""

    n_classes: int = 2

    def _no_effect(self, response: NDArray[Any]) -> Array:
        return np.zeros((self.n_classes, self.n_topics))

    def _room(self) -> Any:
        from pluri.topics.supervised._variational_kernels import ClassFactorRoom

        topics, classes = self.n_topics, self.n_classes
        by_class = *np.empty((3, classes)), np.empty(classes)
        return ClassFactorRoom(np.empty(topics), np.empty((classes, topics)), *by_class, *np.empty((2, topics)))

    def _pass(
        self, q: SupervisedFactors, words: DistinctWords, response: Any, log_theta: Array, log_topic: Array
    ) -> None:
        from pluri.topics.supervised._variational_kernels import pass_classes

        label = response.astype(np.int64)
        pass_classes(words, q.phi, log_theta, log_topic, label, q.coefficients, self._room())

    def _class_value(
        self, coefficients: Array, phi: Array, shares: Array, words: DistinctWords, label: Any
    ) -> tuple[float, Array]:
        """Log likelihood bound of the classes, and its gradient."""
        from pluri.topics.supervised._variational_kernels import class_normalizers

        gradient = np.zeros_like(coefficients)
        value = class_normalizers(words, phi, label, coefficients, self._room(), gradient)
        known = (label >= 0) & (words.lengths > 0)
        hits = np.zeros_like(coefficients)
        np.add.at(hits, label[known], shares[known])
        return float((hits * coefficients).sum() - value), hits - gradient

    def _respond(self, q: SupervisedFactors, words: DistinctWords, response: Any) -> SupervisedFactors:
        from scipy.optimize import minimize

        shares, label = self.shares(words, q.phi), response.astype(np.int64)

        def loss(flat: Array) -> tuple[float, Array]:
            coefficients = flat.reshape(q.coefficients.shape)
            value, gradient = self._class_value(coefficients, q.phi, shares, words, label)
            penalty = 0.5 * float(flat @ flat) / self.coef_prior_var
            return -value + penalty, flat / self.coef_prior_var - gradient.ravel()

        found = minimize(loss, q.coefficients.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": M_STEPS})
        return replace(q, coefficients=found.x.reshape(q.coefficients.shape))

    def _response_bound(self, q: SupervisedFactors, words: DistinctWords, response: Any) -> float:
        shares = self.shares(words, q.phi)
        return self._class_value(q.coefficients, q.phi, shares, words, response.astype(np.int64))[0]
