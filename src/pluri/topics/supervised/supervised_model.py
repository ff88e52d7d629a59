"""What supervised topic models for ratings and for classes share."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from pluri.inference import mcmc
from pluri.inference.variational import coordinate_ascent
from pluri.topics import checked_state
from pluri.topics.documents import Tokens, check_documents, tokens_of
from pluri.topics.expected_shares import expected_shares
from pluri.topics.flat_topics import FlatTopicModel
from pluri.topics.supervised.chain_state import topic_shares
from pluri.topics.supervised.distinct_words import DistinctWords, distinct_words_of
from pluri.topics.topic_model import n_sweeps, verdict_of_topics, warn_if_interrupted
from pluri.validation import (
    Allowed,
    Number,
    Only,
    RandomState,
    Whole,
    as_generator,
    check_parameters,
    restored_on_failure,
)

Array = NDArray[np.float64]
#: Sweeps over a new document before its topics are taken for a draw.
FOLD_IN_SWEEPS = 20
#: Draws of the topics of a new document, in all.
PREDICTIVE_DRAWS = 50


class SupervisedTopicModel(mcmc.Sampled, FlatTopicModel):
    """Base: topics that explain words and what was said of each document."""

    n_components: int
    doc_topic_prior: Any
    topic_word_prior: float
    coef_prior_var: float
    inference: str
    n_warmup: int
    n_draws: int
    thin: int
    n_chains: int
    max_iter: int
    tol: float
    n_init: int
    random_state: Any
    n_jobs: int | None
    verbose: int
    #: What stands for no response: that of a document without words says nothing of topics.
    _unsaid: float
    coef_: Array
    coef_draws_: Array
    noise_draws_: Array

    _parameters: ClassVar[dict[str, Allowed]] = {
        "n_components": Whole(1), "topic_word_prior": Number(above=0), "coef_prior_var": Number(above=0),
        "inference": Only("gibbs", "vb"),
    }  # fmt: skip

    @abstractmethod
    def _sampler(self, tokens: Tokens, response: NDArray[Any], prior: Array) -> Any:
        """Kernel of the Gibbs sampler."""

    @abstractmethod
    def _factors(self, response: NDArray[Any], prior: Array) -> Any:
        """Model of variational EM."""

    @abstractmethod
    def _checked_response(self, y: Any) -> NDArray[Any]:
        """What was said, as the samplers take it."""

    @abstractmethod
    def _keep(self, draws: dict[str, Any]) -> None:
        """Store coefficients of draws of the best chain."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn topics from documents and what was said of them.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)
            Whole counts of words.
        y : array-like of shape (n_documents,)
            Ratings, NaN where one is not known; or a class for each document.

        Returns
        -------
        self
        """
        self.check_settings()
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        with restored_on_failure(self):
            counts = check_documents(self, X)
            check_consistent_length(counts, y)
            response = self._checked_response(y)
            prior = np.array(np.broadcast_to(np.asarray(self.doc_topic_prior, dtype=float), (self.n_components,)))
            filled = np.asarray(counts.sum(axis=1)).ravel() > 0
            response = np.where(filled, response, self._unsaid)
            self.doc_topic_prior_ = prior
            self.topic_word_prior_ = float(self.topic_word_prior)
            if self.inference == "gibbs":
                self._fit_gibbs(tokens_of(counts), response, prior)
            else:
                self._fit_variational(distinct_words_of(counts), response, prior)
        return self

    def check_settings(self) -> None:
        """Raise what `fit` would raise of the settings alone, before there are documents."""
        check_parameters(self)
        prior = np.asarray(self.doc_topic_prior, dtype=float)
        if prior.shape not in ((), (self.n_components,)) or not (prior > 0).all() or not np.isfinite(prior).all():
            raise ValueError(
                f"doc_topic_prior must be a positive number, or one for each of {self.n_components} topics, "
                f"got {self.doc_topic_prior!r}"
            )

    def _fit_gibbs(self, tokens: Tokens, response: NDArray[Any], prior: Array) -> None:
        kernel = self._sampler(tokens, response, prior)
        trace = mcmc.sample(
            kernel, kernel.start, n_draws=self.n_draws, n_warmup=self.n_warmup, n_chains=self.n_chains,
            thin=self.thin, record=kernel.record, random_state=as_generator(self.random_state), n_jobs=self.n_jobs,
            verbose=self.verbose, warn=False, draw_if_interrupted=True,
        )  # fmt: skip
        draws = {name: np.asarray(trace[name]) for name in trace}
        word_counts = draws.pop("word_counts")
        log_joint = np.asarray(trace.stats["log_density"])
        best = int(log_joint.mean(axis=1).argmax())
        self.log_joint_ = log_joint[best]
        self.word_count_draws_ = word_counts.reshape(-1, *word_counts.shape[2:])
        self._set_topics(self.topic_word_prior + word_counts[best].mean(axis=0))
        self._keep(draws | {"best": best})
        self.n_iter_ = n_sweeps(trace)
        # Counts of words are kept as `word_count_draws_`, and not once more.
        self.trace_ = replace(trace.detached(), draws=draws)
        verdict = verdict_of_topics(trace)
        self.converged_ = verdict.settled
        warn_if_interrupted(trace.interrupted, type(self).__name__, self.n_iter_)
        if not trace.interrupted:
            verdict.warn(stacklevel=4)

    def _fit_variational(self, words: DistinctWords, response: NDArray[Any], prior: Array) -> None:
        model = self._factors(response, prior)
        result = coordinate_ascent(
            model, (words, response), rng=as_generator(self.random_state), max_iter=self.max_iter, tol=self.tol,
            n_init=self.n_init, verbose=self.verbose,
        )  # fmt: skip
        if not result.converged and not result.interrupted:
            warnings.warn(
                f"{type(self).__name__}: the bound still rose after {self.max_iter} iterations; raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=3,
            )
        q = result.params
        self.__dict__.pop("trace_", None)
        self.elbo_ = result.trace
        self.n_iter_ = result.n_iter
        self.converged_ = result.converged
        self.word_count_draws_ = (q.topics - self.topic_word_prior)[None]
        self._set_topics(q.topics)
        self._keep({"coefficients": q.coefficients[None, None], "precision": np.array([[q.precision]]), "best": 0})

    def _check_learned(self, n_topics: int, n_words: int) -> None:
        super()._check_learned(n_topics, n_words)
        # Counts of a variational fit are differences, and may be below zero by rounding.
        draws = checked_state.numbers(
            "word_count_draws_", self.word_count_draws_, (None, n_topics, n_words), above=-0.5 * self.topic_word_prior
        )
        classes = getattr(self, "classes_", None)
        shape: tuple[int, ...] = (n_topics,) if classes is None else (len(classes), n_topics)
        checked_state.numbers("coef_draws_", self.coef_draws_, (len(draws), *shape))
        checked_state.numbers("coef_", self.coef_, shape)
        if classes is None:
            checked_state.numbers("noise_draws_", self.noise_draws_, (len(draws),), least=0)
        if not len(draws):
            raise ValueError("word_count_draws_ must have at least one draw, got none")

    def _set_topics(self, components: Array) -> None:
        self.components_ = components
        self.topic_word_ = components / components.sum(axis=1, keepdims=True)
        weight = (components - self.topic_word_prior).sum(axis=1)
        self.topic_weight_ = weight / weight.sum()

    def _draws_of_topics(self) -> Iterator[Array]:
        for counts in self.word_count_draws_:
            table = counts + self.topic_word_prior
            yield table / table.sum(axis=1, keepdims=True)

    def _documents(self, X: Any) -> Any:
        check_is_fitted(self, "topic_word_")
        return check_documents(self, X, reset=False, whom="predict", empty="ignore")

    def _expected_zbar(self, counts: Any) -> Iterator[Array]:
        """Expected shares of topics among the tokens of documents, for each draw of the topics."""
        prior = self._prior_vector()
        lengths = np.asarray(counts.sum(axis=1)).reshape(-1, 1)
        for topics in self._draws_of_topics():
            shares = expected_shares(topics, prior, counts)
            zbar = (shares * (lengths + prior.sum()) - prior) / np.maximum(lengths, 1)
            yield np.where(lengths > 0, np.maximum(zbar, 0.0), shares)

    @property
    def _n_repeats(self) -> int:
        """How often the topics of new documents are drawn for each draw of the topics' words."""
        return max(1, -(-PREDICTIVE_DRAWS // len(self.word_count_draws_)))

    def _drawn_zbar(self, counts: Any, random_state: RandomState) -> Iterator[Array]:
        """Shares of topics among the tokens, drawn: some times for each draw of the topics."""
        from pluri.topics.lda.sampling.fold_in import sampled_topics

        rng = as_generator(self.random_state if random_state is None else random_state)
        tokens, prior = tokens_of(counts), self._prior_vector()
        lengths = np.diff(tokens.offsets)[:, None]
        for topics in self._draws_of_topics():
            for _ in range(self._n_repeats):
                labels = sampled_topics(topics, prior, tokens, rng, FOLD_IN_SWEEPS, 1, 1)[1]
                shares = topic_shares(tokens, labels, len(prior))
                yield np.where(lengths > 0, shares, rng.dirichlet(prior, size=tokens.n_documents))
