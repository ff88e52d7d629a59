r"""Gibbs sampling of topics that must explain words and what was said of each document.

Topics and shares are integrated out; with zbar_d the shares of topics among the tokens of document d,

    p(z_di = k | rest)  proportional to  (n_dk + alpha_k) (n_kv + eta) / (n_k + V eta) p(y_d | zbar_d with z_di = k).

*Ratings*: y_d ~ N(w' zbar_d, 1 / tau), w_k ~ N(0, s^2), tau ~ Gamma(a, b). Given the topics of the tokens, w and tau
have conjugate conditionals, and all is drawn [1]_.

*Classes*: p(y_d = c) proportional to exp(w_c' zbar_d), w_ck ~ N(0, s^2). The coefficients are either drawn, by
elliptical slices [2]_, or put at their mode given the topics, which makes the whole a stochastic EM algorithm.

A document without a rating (NaN) or a class (-1) takes part with its words.

References
----------
.. [1] Blei, D. M. and McAuliffe, J. D. (2007). Supervised topic models. NIPS 20.
.. [2] Murray, I., Adams, R. P. and MacKay, D. J. C. (2010). Elliptical slice sampling. AISTATS.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, log_softmax, logsumexp

from pluri.topics.documents import Tokens

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
Position = Mapping[str, NDArray[Any]]
#: Elliptical slices for each sweep over the tokens: they are cheap beside it.
SLICES = 5
#: Steps towards the mode of the coefficients after each sweep: they go on from where they are.
M_STEPS = 5


@dataclass(frozen=True, eq=False)
class TopicState:
    """Where a chain is, and the log density there."""

    position: Position
    log_density: float
    n_sweeps: int = 0


@dataclass(frozen=True, eq=False)
class Counts:
    """Tokens of each topic: in documents, of words, in all."""

    in_document: NDArray[np.int32]
    of_word: NDArray[np.int32]
    totals: Integers

    @classmethod
    def of(cls, tokens: Tokens, topics: NDArray[np.int32], n_topics: int) -> Counts:
        """Count."""
        tables = []
        for rows, n_rows in ((tokens.documents, tokens.n_documents), (tokens.words, tokens.n_words)):
            places = rows.astype(np.int64) * n_topics + topics
            table = np.bincount(places, minlength=n_rows * n_topics).reshape(n_rows, n_topics)
            tables.append(table.astype(np.int32))
        in_document, of_word = tables
        return cls(in_document, of_word, of_word.sum(axis=0, dtype=np.int64))

    def shares(self) -> Array:
        """The zbar of each document; zero where it has no words."""
        lengths = self.in_document.sum(axis=1, keepdims=True)
        shares: Array = self.in_document / np.maximum(lengths, 1)
        return shares

    def log_joint(self, doc_prior: Array, word_prior: float) -> float:
        """Log p(words, topics of the tokens)."""
        n_words = len(self.of_word)
        lengths = self.in_document.sum(axis=1)
        value = (gammaln(self.in_document + doc_prior) - gammaln(doc_prior)).sum()
        value += (gammaln(doc_prior.sum()) - gammaln(lengths + doc_prior.sum())).sum()
        value += gammaln(self.of_word + word_prior).sum() - self.of_word.size * gammaln(word_prior)
        value += (gammaln(n_words * word_prior) - gammaln(self.totals + n_words * word_prior)).sum()
        return float(value)


@dataclass(frozen=True, eq=False)
class _SupervisedGibbs:
    """What the samplers for ratings and for classes share.

    Parameters
    ----------
    tokens : Tokens
    response : array of shape (n_documents,)
    doc_topic_prior : array of shape (n_topics,)
    topic_word_prior : float
    coef_prior_var : float
    """

    tokens: Tokens
    response: NDArray[Any]
    doc_topic_prior: Array
    topic_word_prior: float = 0.1
    coef_prior_var: float = 100.0

    @property
    def n_topics(self) -> int:
        """Number of topics."""
        return len(self.doc_topic_prior)

    def adaptation(self, n_warmup: int) -> None:
        """Nothing is tuned."""
        return None

    @abstractmethod
    def log_response(self, shares: Array, position: Position, response: NDArray[Any]) -> float:
        """Log density of what was said, and of the coefficients."""

    @abstractmethod
    def _sweep(
        self, rng: np.random.Generator, position: Position, tokens: Tokens, response: NDArray[Any]
    ) -> tuple[Position, Counts]:
        """New topics of the tokens, and new coefficients given them."""

    @abstractmethod
    def sample_coefficients(self, rng: np.random.Generator) -> dict[str, NDArray[Any]]:
        """Draw coefficients from their prior."""

    @abstractmethod
    def sample_response(self, rng: np.random.Generator, shares: Array, position: Position) -> NDArray[Any]:
        """Draw what is said of documents with these shares."""

    def start(self, rng: np.random.Generator) -> Position:
        """Tokens with random topics, and coefficients for them."""
        topics = rng.integers(self.n_topics, size=self.tokens.n_tokens).astype(np.int32)
        return {"topics": topics, **self.sample_coefficients(rng)}

    def init(self, rng: np.random.Generator, position: Position) -> TopicState:
        """State at a position."""
        return TopicState(position, self.log_joint(position))

    def step(self, rng: np.random.Generator, state: TopicState) -> tuple[TopicState, dict[str, float]]:
        """One sweep over all tokens, then the coefficients."""
        position, counts = self._sweep(rng, state.position, self.tokens, self.response)
        value = self._log_joint(counts, position, self.response)
        return TopicState(position, value, state.n_sweeps + 1), {}

    def sweep(self, rng: np.random.Generator, position: Position, data: Any) -> Position:
        """The same, given other documents of the same lengths: (tokens, response)."""
        return self._sweep(rng, position, *data)[0]

    def log_joint(self, position: Position, data: Any = None) -> float:
        """Log p(words, topics, response, coefficients), from scratch."""
        tokens, response = (self.tokens, self.response) if data is None else data
        return self._log_joint(Counts.of(tokens, position["topics"], self.n_topics), position, response)

    def sample_prior(self, rng: np.random.Generator) -> Position:
        """Draw topics of the tokens, document by document, and coefficients."""
        shares = rng.dirichlet(self.doc_topic_prior, size=self.tokens.n_documents)
        topics = [rng.choice(self.n_topics, p=shares[row]) for row in self.tokens.documents]
        return {"topics": np.array(topics, dtype=np.int32), **self.sample_coefficients(rng)}

    def sample_data(self, rng: np.random.Generator, position: Position) -> tuple[Tokens, NDArray[Any]]:
        """Draw words and response given the topics of the tokens."""
        topics = position["topics"]
        laws = rng.dirichlet(np.full(self.tokens.n_words, self.topic_word_prior), size=self.n_topics)
        words = np.array([rng.choice(self.tokens.n_words, p=laws[topic]) for topic in topics], dtype=np.int32)
        tokens = Tokens(words, self.tokens.documents, self.tokens.offsets, self.tokens.n_words)
        shares = Counts.of(tokens, topics, self.n_topics).shares()
        return tokens, self.sample_response(rng, shares, position)

    def record(self, position: Position) -> dict[str, Any]:
        """What to keep of a draw: counts of words in topics, not every token."""
        of_word = np.zeros((self.n_topics, self.tokens.n_words), dtype=np.int32)
        np.add.at(of_word, (position["topics"], self.tokens.words), 1)
        return {"word_counts": of_word} | {name: value for name, value in position.items() if name != "topics"}

    def _log_joint(self, counts: Counts, position: Position, response: NDArray[Any]) -> float:
        value = counts.log_joint(self.doc_topic_prior, self.topic_word_prior)
        return value + self.log_response(counts.shares(), position, response)

    def _spread(self) -> float:
        return math.sqrt(self.coef_prior_var)

    def _log_coefficients(self, coefficients: Array) -> float:
        size, variance = coefficients.size, self.coef_prior_var
        return -0.5 * float((coefficients**2).sum()) / variance - 0.5 * size * math.log(2 * math.pi * variance)


@dataclass(frozen=True, eq=False)
class RatingsGibbs(_SupervisedGibbs):
    """Topics of tokens, coefficients and noise given words and ratings: a kernel for `pluri.inference.mcmc.sample`.

    Positions are dicts: ``topics`` (n_tokens,), ``coefficients`` (n_topics,), ``precision`` (a number).

    Parameters
    ----------
    tokens : Tokens
    response : float array of shape (n_documents,)
        Ratings; NaN where there is none.
    doc_topic_prior : array of shape (n_topics,)
    topic_word_prior, coef_prior_var : float
    noise_prior : (float, float), default=(0.1, 0.1)
        Shape and rate of the gamma law of the precision.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from pluri.inference import mcmc
    >>> from pluri.topics.documents import tokens_of
    >>> from pluri.topics.supervised.gibbs import RatingsGibbs
    >>> X = sparse.csr_matrix(np.repeat([[9, 1, 0], [0, 1, 9]], 20, axis=0))
    >>> kernel = RatingsGibbs(tokens_of(X), np.repeat([-1.0, 1.0], 20), np.ones(2))
    >>> trace = mcmc.sample(kernel, kernel.start, record=kernel.record, n_draws=50, n_warmup=50, n_chains=1,
    ...                     random_state=0, warn=False)
    >>> np.sort(trace["coefficients"][0].mean(axis=0)).round(0)
    array([-1.,  1.])
    """

    noise_prior: tuple[float, float] = (0.1, 0.1)

    def sample_coefficients(self, rng: np.random.Generator) -> dict[str, NDArray[Any]]:
        """Draw coefficients and precision from their prior."""
        shape, rate = self.noise_prior
        precision = max(rng.gamma(shape) / rate, 1e-300)
        return {"coefficients": rng.normal(scale=self._spread(), size=self.n_topics), "precision": np.array(precision)}

    def start(self, rng: np.random.Generator) -> Position:
        """Tokens with random topics, no effect of topics, and the noise of the ratings."""
        rated = self.response[np.isfinite(self.response)]
        variance = float(rated.var()) if rated.size > 1 and rated.var() > 0 else 1.0
        topics = rng.integers(self.n_topics, size=self.tokens.n_tokens).astype(np.int32)
        return {"topics": topics, "coefficients": np.zeros(self.n_topics), "precision": np.array(1.0 / variance)}

    def sample_response(self, rng: np.random.Generator, shares: Array, position: Position) -> NDArray[Any]:
        """Draw ratings; those that are missing stay so."""
        mean = shares @ position["coefficients"]
        drawn = rng.normal(mean, 1.0 / math.sqrt(float(position["precision"])))
        return np.where(np.isfinite(self.response), drawn, np.nan)

    def log_response(self, shares: Array, position: Position, response: NDArray[Any]) -> float:
        """Log density of ratings, coefficients and precision."""
        rated = np.isfinite(response)
        precision, (shape, rate) = float(position["precision"]), self.noise_prior
        residual = response[rated] - shares[rated] @ position["coefficients"]
        value = 0.5 * rated.sum() * math.log(precision / (2 * math.pi)) - 0.5 * precision * float(residual @ residual)
        value += shape * math.log(rate) - math.lgamma(shape) + (shape - 1) * math.log(precision) - rate * precision
        return value + self._log_coefficients(position["coefficients"])

    def _sweep(
        self, rng: np.random.Generator, position: Position, tokens: Tokens, response: NDArray[Any]
    ) -> tuple[Position, Counts]:
        from pluri.topics.supervised._gibbs_kernels import sweep_ratings

        topics = position["topics"].copy()
        counts = Counts.of(tokens, topics, self.n_topics)
        rated = np.isfinite(response)
        precision = float(position["precision"])
        sweep_ratings(
            tokens.words, tokens.offsets, topics, counts.in_document, counts.of_word, counts.totals,
            self.doc_topic_prior, float(self.topic_word_prior), np.where(rated, response, 0.0), rated,
            position["coefficients"], precision, rng.random(tokens.n_tokens), *np.empty((2, self.n_topics)),
        )  # fmt: skip
        shares, said = counts.shares()[rated], response[rated]
        inverse = shares.T @ shares * precision + np.eye(self.n_topics) / self.coef_prior_var
        root = np.linalg.cholesky(inverse)
        mean = np.linalg.solve(inverse, shares.T @ said * precision)
        coefficients = mean + np.linalg.solve(root.T, rng.standard_normal(self.n_topics))
        residual = said - shares @ coefficients
        shape, rate = self.noise_prior
        precision = rng.gamma(shape + 0.5 * rated.sum()) / (rate + 0.5 * float(residual @ residual))
        new = {"topics": topics, "coefficients": coefficients, "precision": np.array(max(precision, 1e-300))}
        return new, counts


@dataclass(frozen=True, eq=False)
class ClassesGibbs(_SupervisedGibbs):
    """Topics of tokens and coefficients given words and classes: a kernel for `pluri.inference.mcmc.sample`.

    Positions are dicts: ``topics`` (n_tokens,) and ``coefficients`` (n_classes, n_topics).

    Parameters
    ----------
    tokens : Tokens
    response : int array of shape (n_documents,)
        Classes 0, 1, ...; -1 where there is none.
    doc_topic_prior : array of shape (n_topics,)
    topic_word_prior, coef_prior_var : float
    n_classes : int
    learning : {"maximize", "draw", "fixed"}, default="maximize"
        What is done about the coefficients after each sweep.
    """

    n_classes: int = 2
    learning: Literal["maximize", "draw", "fixed"] = "maximize"

    def sample_coefficients(self, rng: np.random.Generator) -> dict[str, NDArray[Any]]:
        """Draw coefficients from their prior."""
        return {"coefficients": rng.normal(scale=self._spread(), size=(self.n_classes, self.n_topics))}

    def start(self, rng: np.random.Generator) -> Position:
        """Tokens with random topics, no effect of topics."""
        topics = rng.integers(self.n_topics, size=self.tokens.n_tokens).astype(np.int32)
        return {"topics": topics, "coefficients": np.zeros((self.n_classes, self.n_topics))}

    def sample_response(self, rng: np.random.Generator, shares: Array, position: Position) -> NDArray[Any]:
        """Draw classes; those that are missing stay so."""
        scores = shares @ position["coefficients"].T + rng.gumbel(size=(len(shares), self.n_classes))
        return np.where(self.response >= 0, scores.argmax(axis=1), -1)

    def log_response(self, shares: Array, position: Position, response: NDArray[Any]) -> float:
        """Log density of classes and coefficients."""
        known = response >= 0
        return self._log_classes(position["coefficients"], shares[known], response[known]) + self._log_coefficients(
            position["coefficients"]
        )

    def _log_classes(self, coefficients: Array, shares: Array, label: NDArray[Any]) -> float:
        scores = log_softmax(shares @ coefficients.T, axis=1)
        return float(scores[np.arange(len(label)), label].sum())

    def _sweep(
        self, rng: np.random.Generator, position: Position, tokens: Tokens, response: NDArray[Any]
    ) -> tuple[Position, Counts]:
        from pluri.topics.supervised._gibbs_kernels import sweep_classes

        topics, coefficients = position["topics"].copy(), position["coefficients"]
        counts = Counts.of(tokens, topics, self.n_topics)
        sweep_classes(
            tokens.words, tokens.offsets, topics, counts.in_document, counts.of_word, counts.totals,
            self.doc_topic_prior, float(self.topic_word_prior), response.astype(np.int64), coefficients,
            rng.random(tokens.n_tokens), np.empty(self.n_topics), np.empty((self.n_topics, self.n_classes)),
            np.empty(self.n_classes), np.empty(self.n_topics),
        )  # fmt: skip
        known = response >= 0
        shares, label = counts.shares()[known], response[known]
        if self.learning == "draw":
            coefficients = self._draw(rng, coefficients, shares, label)
        elif self.learning == "maximize":
            coefficients = maximal_coefficients(coefficients, shares, label, self.coef_prior_var, max_iter=M_STEPS)
        return {"topics": topics, "coefficients": coefficients}, counts

    def _draw(self, rng: np.random.Generator, coefficients: Array, shares: Array, label: NDArray[Any]) -> Array:
        current = coefficients
        for _ in range(SLICES):
            threshold = self._log_classes(current, shares, label) + math.log(rng.uniform())
            other = rng.normal(scale=self._spread(), size=current.shape)
            angle = rng.uniform(0, 2 * math.pi)
            low, high = angle - 2 * math.pi, angle
            while True:
                proposal = math.cos(angle) * current + math.sin(angle) * other
                if self._log_classes(proposal, shares, label) > threshold:
                    current = proposal
                    break
                low, high = (angle, high) if angle < 0 else (low, angle)
                angle = rng.uniform(low, high)
        return current


def maximal_coefficients(
    start: Array, shares: Array, label: NDArray[Any], prior_var: float, *, max_iter: int = 30
) -> Array:
    """Mode of the coefficients of classes given the shares of topics, from a start.

    Parameters
    ----------
    start : array of shape (n_classes, n_topics)
    shares : array of shape (n_documents, n_topics)
    label : int array of shape (n_documents,)
    prior_var : float
    max_iter : int, default=30

    Returns
    -------
    array of shape (n_classes, n_topics)
    """
    from scipy.optimize import minimize

    rows = np.arange(len(label))

    def loss(flat: Array) -> tuple[float, Array]:
        coefficients = flat.reshape(start.shape)
        scores = shares @ coefficients.T
        totals = logsumexp(scores, axis=1, keepdims=True)
        value = float((totals[:, 0] - scores[rows, label]).sum()) + 0.5 * float(flat @ flat) / prior_var
        gap = np.exp(scores - totals)
        gap[rows, label] -= 1.0
        return value, (gap.T @ shares).ravel() + flat / prior_var

    found = minimize(loss, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": max_iter})
    best: Array = found.x.reshape(start.shape)
    return best
