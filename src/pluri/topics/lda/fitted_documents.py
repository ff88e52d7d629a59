"""What latent Dirichlet allocation says of documents once its topics are known, whichever way they were learned."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from pluri.topics import checked_state
from pluri.topics.documents import check_documents
from pluri.topics.expected_shares import expected_shares
from pluri.topics.flat_topics import FlatTopicModel, held_out_flat
from pluri.topics.lda.checked_settings import checked_weights, warn_of_weights
from pluri.topics.lda.learning import document_step
from pluri.topics.lda.variational.document_step import DocumentStep, document_bounds, infer
from pluri.topics.lda.variational.factors import Topics
from pluri.validation.interruption import holding

if TYPE_CHECKING:
    from pluri.topics.held_out import HeldOut

Array = NDArray[np.float64]
#: A topic of this many tokens is as good as known exactly.
EXACT = 1e12
#: Documents whose bounds are computed together.
DOCUMENTS_AT_ONCE = 20_000
#: Counts up to which `bound_` may wait until it is asked for: so many are kept in memory meanwhile.
MOST_KEPT = 1_000_000


@dataclass(frozen=True, eq=False)
class PendingBound:
    """What `bound_` is computed from once it is asked for: documents, their weights, and the model as it was fitted."""

    counts: Any
    weight: Array | None
    topics: Array
    alpha: Array
    step: DocumentStep
    n_jobs: int | None

    def value(self) -> float:
        """The perplexity of the documents."""
        lengths = np.asarray(self.counts.sum(axis=1)).ravel()
        weight = np.ones(len(lengths)) if self.weight is None else self.weight
        n_tokens = float(weight @ lengths)
        if not n_tokens:
            return float("nan")
        bounds = bounds_of(self.topics, self.counts, self.alpha, self.step, self.n_jobs)
        return float(np.exp(-(weight @ bounds) / n_tokens))


def bounds_of(topics: Array, counts: Any, alpha: Array, step: DocumentStep, n_jobs: int | None) -> Array:
    """Bound of the log probability of each document, given Dirichlet parameters of the topics."""
    known = Topics.from_components(topics)
    # Some documents at a time: their shares of the topics are held in memory meanwhile.
    parts = [
        document_bounds(known, counts[first : first + DOCUMENTS_AT_ONCE], alpha, step=step, n_jobs=n_jobs)
        for first in range(0, counts.shape[0], DOCUMENTS_AT_ONCE)
    ]
    return np.concatenate(parts)


class LDAOfDocuments(FlatTopicModel):
    """Base of :class:`LatentDirichletAllocation`: shares, bounds and perplexities of documents."""

    inference: Any
    learning_method: str
    n_jobs: int | None
    mean_change_tol: float
    max_doc_update_iter: int
    _pending: PendingBound

    def _check_learned(self, n_topics: int, n_words: int) -> None:
        super()._check_learned(n_topics, n_words)
        prior = np.asarray(getattr(self, "topic_word_prior_", 0.0))
        shapes: dict[int, tuple[int, ...]] = {0: (), 1: (n_words,), 2: (n_topics, n_words)}
        checked_state.numbers("topic_word_prior_", prior, shapes.get(prior.ndim, ()), least=0)
        for name in ("n_documents_seen_", "total_samples_"):
            checked_state.number(name, getattr(self, name, 0.0), least=0)
        for name in ("n_iter_", "n_batch_iter_"):
            checked_state.whole_number(name, getattr(self, name, 1))

    def _how(self) -> str:
        if self.inference is not None:
            return self.inference
        return "svi" if self.learning_method == "online" else "vb"

    @property
    def _whole_counts(self) -> bool:  # type: ignore[override]
        return self._how() == "gibbs"

    def transform(self, X: Any, *, normalize: bool = True) -> Array:
        """Share of each topic in each document.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)
        normalize : bool, default=True
            False gives alpha plus the expected counts of topics instead.

        Returns
        -------
        array of shape (n_documents, n_components)
        """
        check_is_fitted(self, "components_")
        counts = check_documents(self, X, whole=False, reset=False, whom="transform", empty="ignore")
        gamma = self._expected_counts(counts)
        if normalize:
            gamma /= gamma.sum(axis=1, keepdims=True)
        return gamma

    def fit_transform(self, X: Any, y: Any = None, *, normalize: bool = True, **fit_params: Any) -> Array:
        """Learn the topics, and give the share of each in each document.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)
        y : ignored
        normalize : bool, default=True
        **fit_params
            Passed on to :meth:`fit`.
        """
        return self.fit(X, y, **fit_params).transform(X, normalize=normalize)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Bound of the log probability of documents given the topics.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)
        y : ignored
        sample_weight : array-like of shape (n_documents,), optional
            A document of weight 2 counts as two.
        """
        check_is_fitted(self, "components_")
        counts = check_documents(self, X, whole=False, reset=False, whom="score", empty="ignore")
        weight = checked_weights(sample_weight, counts)
        bounds = self._bounds(counts)
        return float(bounds.sum() if weight is None else weight @ bounds)

    def perplexity(  # type: ignore[override]
        self, X: Any, sub_sampling: bool = False, sample_weight: Any = None
    ) -> float:
        """``exp`` of minus the score per word; see :meth:`held_out` for better ways to compare models.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)
        sub_sampling : bool, default=False
            Changes nothing, as the topics' own part of the bound is left out.
        sample_weight : array-like of shape (n_documents,), optional
            As in :meth:`score`.
        """
        check_is_fitted(self, "components_")
        if not isinstance(sub_sampling, bool | np.bool_):
            raise ValueError(f"sub_sampling must be True or False, got {sub_sampling!r}; held_out has other methods")
        counts = check_documents(self, X, whole=False, reset=False, whom="perplexity", empty="ignore")
        warn_of_weights(counts, "perplexity", stacklevel=3)
        return self._perplexity(counts, checked_weights(sample_weight, counts))

    def _perplexity(self, counts: Any, weight: Array | None = None) -> float:
        return self._pending_bound(counts, weight).value()

    def _pending_bound(self, counts: Any, weight: Array | None) -> PendingBound:
        alpha = np.maximum(self._prior_vector(), 1e-8)
        return PendingBound(counts, weight, self._q_of_topics(), alpha, document_step(self), self.n_jobs)

    @cached_property
    def bound_(self) -> float:
        """Perplexity of the documents of `fit`; see the attributes of the class."""
        if "_pending" not in vars(self):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute 'bound_'")
        value = self._pending.value()
        del self._pending
        return value

    def _keep_bound(self, counts: Any, weight: Array | None) -> None:
        # Sampling and EM do without the compiled loop of variational Bayes, which takes seconds to compile.
        if self._how() in ("gibbs", "em") and counts.nnz <= MOST_KEPT:
            self._pending = self._pending_bound(counts, weight)
            return
        # The topics are learned: they are not lost for want of their perplexity.
        with holding(f"{type(self).__name__}: interrupted while bound_ was computed; the topics are kept without it"):
            self.bound_ = self._perplexity(counts, weight)

    def _settle_state(self) -> None:
        """Compute what was put off: documents are not part of a model that is put in a file."""
        _ = getattr(self, "bound_", None)

    def __getstate__(self) -> dict[str, Any]:
        """All attributes; what was put off is computed first."""
        self._settle_state()
        state: dict[str, Any] = super().__getstate__()
        return state

    @property
    def exp_dirichlet_component_(self) -> Array:
        """exp(E[log beta]) of the posterior of the topics."""
        from scipy.special import digamma

        check_is_fitted(self, "components_")
        totals = digamma(self.components_.sum(axis=1, keepdims=True))
        logs: Array = np.exp(digamma(self.components_) - totals)
        return logs

    def _q_of_topics(self) -> Array:
        """Dirichlet parameters that documents are compared with: topics of EM and of sampling are taken as they are."""
        return self.topic_word_ * EXACT + 1e-8 if self._how() in ("em", "gibbs") else self.components_

    def _expected_counts(self, counts: Any) -> Array:
        alpha, how = self._prior_vector(), self._how()
        if how in ("vb", "svi"):
            return infer(self.components_, counts, alpha, step=document_step(self), n_jobs=self.n_jobs)
        lengths = np.asarray(counts.sum(axis=1)).reshape(-1, 1)
        if how == "gibbs":
            gamma = expected_shares(
                self.topic_word_, alpha, counts, max_iter=self.max_doc_update_iter, tol=self.mean_change_tol,
                n_jobs=self.n_jobs,
            )  # fmt: skip
            gamma *= lengths + alpha.sum()
            return gamma
        from pluri.topics.lda.maximum.em import fold_in

        shares = fold_in(self.topic_word_, counts, doc_topic_prior=1.0 + alpha, n_jobs=self.n_jobs)
        return shares * np.maximum(lengths + alpha.sum(), 1e-300)

    def _bounds(self, counts: Any) -> Array:
        pending = self._pending_bound(counts, None)
        return bounds_of(pending.topics, counts, pending.alpha, pending.step, self.n_jobs)

    def _held_out(self, X: Any, method: str, rng: np.random.Generator, **options: Any) -> HeldOut:
        return held_out_flat(self.topic_word_, np.maximum(self._prior_vector(), 1e-8), X, method, rng, **options)

    def _facts(self) -> dict[str, str]:
        facts = super()._facts() | {"inference": self._how()}
        if hasattr(self, "bound_"):
            facts["training perplexity"] = f"{self.bound_:.1f}"
        return facts
