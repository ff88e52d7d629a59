"""What the samplers for ratings and for classes share."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.topics.documents import Tokens
from pluri.topics.lda.sampling.topic_assignments import checked_priors
from pluri.topics.supervised.chain_state import Position, SupervisedState, topic_shares
from pluri.topics.supervised.response_records import Seated, TopicPriors, TopicRoom

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class _SupervisedChain:
    """Base of kernels.

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

    def __post_init__(self) -> None:
        checked_priors(self.doc_topic_prior, self.topic_word_prior, self.n_topics, self.tokens.n_words)

    @property
    def n_topics(self) -> int:
        """Number of topics."""
        return len(self.doc_topic_prior)

    def adaptation(self, n_warmup: int) -> None:
        """Nothing is tuned."""
        return None

    @abstractmethod
    def log_response(self, shares: Array, position: Position) -> float:
        """Log density of what was said, and of the coefficients."""

    @abstractmethod
    def _sweep(self, rng: np.random.Generator, state: SupervisedState) -> None:
        """Draw topics of the tokens."""

    @abstractmethod
    def _respond(self, rng: np.random.Generator, state: SupervisedState) -> dict[str, NDArray[Any]]:
        """New coefficients given the topics."""

    @abstractmethod
    def sample_coefficients(self, rng: np.random.Generator) -> dict[str, NDArray[Any]]:
        """Draw coefficients from their prior."""

    @abstractmethod
    def sample_response(self, rng: np.random.Generator, shares: Array, position: Position) -> NDArray[Any]:
        """Draw what is said of documents with these shares."""

    @abstractmethod
    def _start_coefficients(self) -> dict[str, NDArray[Any]]:
        """Coefficients to begin with."""

    def start(self, rng: np.random.Generator) -> Position:
        """Tokens with random topics, which have no effect yet."""
        topics = rng.integers(self.n_topics, size=self.tokens.n_tokens).astype(np.int32)
        return {"topics": topics, **self._start_coefficients()}

    def init(self, rng: np.random.Generator, position: Position) -> SupervisedState:
        """State at a position."""
        return SupervisedState(
            self.tokens, position, np.asarray(self.doc_topic_prior, dtype=float), self.topic_word_prior,
            self.log_response,
        )  # fmt: skip

    def step(self, rng: np.random.Generator, state: SupervisedState) -> tuple[SupervisedState, dict[str, float]]:
        """One sweep over all tokens, in place, then the coefficients."""
        state.swept()
        self._sweep(rng, state)
        state.coefficients = self._respond(rng, state)
        return state, {}

    def sweep(self, rng: np.random.Generator, position: Position, data: Any) -> Position:
        """Position after a step, given other documents of the same lengths: (tokens, response)."""
        kernel = replace(self, tokens=data[0], response=data[1])
        return kernel.step(rng, kernel.init(rng, position))[0].position

    def log_joint(self, position: Position, data: Any = None) -> float:
        """Log p(words, topics, response, coefficients), from scratch."""
        kernel = self if data is None else replace(self, tokens=data[0], response=data[1])
        return kernel.init(np.random.default_rng(0), position).log_density

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
        tokens = replace(self.tokens, words=words)
        return tokens, self.sample_response(rng, topic_shares(tokens, topics, self.n_topics), position)

    def record(self, position: Position) -> dict[str, Any]:
        """What to keep of a draw: counts of words in topics, not every token."""
        n_words = self.tokens.n_words
        places = position["topics"].astype(np.int64) * n_words + self.tokens.words
        counts = np.bincount(places, minlength=self.n_topics * n_words).astype(np.int32)
        kept = {name: value for name, value in position.items() if name != "topics"}
        return {"word_counts": counts.reshape(self.n_topics, n_words), **kept}

    def _given(
        self, rng: np.random.Generator, state: SupervisedState
    ) -> tuple[Seated, TopicPriors, NDArray[np.uint64], TopicRoom]:
        """What every compiled sweep takes: counts, priors, random numbers to begin with, and room."""
        words = state.words
        seated = Seated(words.topics, words.word_topic, words.topic_totals, state.in_document)
        priors = TopicPriors(words._alpha, np.float32(self.topic_word_prior), np.float32(words._prior_totals[0]))
        seeds = rng.integers(0, 2**64, size=2, dtype=np.uint64) | np.uint64(1)
        return seated, priors, seeds, TopicRoom.of(words.word_topic.shape[1])

    def _log_coefficients(self, coefficients: Array) -> float:
        size, variance = coefficients.size, self.coef_prior_var
        return -0.5 * float((coefficients**2).sum()) / variance - 0.5 * size * math.log(2 * math.pi * variance)
