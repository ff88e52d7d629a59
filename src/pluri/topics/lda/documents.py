"""Documents and settings of latent Dirichlet allocation, checked before anything is learned, and what the model says of
documents once its topics are known, whichever way they were learned.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from pluri.priors import Gamma, as_diversity
from pluri.topics import checked_state
from pluri.topics.documents import check_documents, forget_words, refuse_no_words, words_of_columns
from pluri.topics.editing.editable import EditableTopics
from pluri.topics.expected_shares import expected_shares
from pluri.topics.flat_topics import held_out_flat
from pluri.topics.lda.guided import guided_word_prior
from pluri.topics.lda.variational.document_step import DocumentStep, document_bounds, infer
from pluri.topics.lda.variational.factors import Topics
from pluri.validation import Made, Only, check_parameters, check_value, is_source
from pluri.validation.interruption import holding

if TYPE_CHECKING:
    from pluri.topics.held_out import HeldOut
    from pluri.topics.lda.estimator import LatentDirichletAllocation as Model

Array = NDArray[np.float64]
#: Counts below this in the mean document, if they are no whole numbers, are weights such as tf-idf.
FEW_WORDS = 10
#: A topic of this many tokens is as good as known exactly.
EXACT = 1e12
#: Documents whose bounds are computed together.
DOCUMENTS_AT_ONCE = 20_000
#: Counts up to which `bound_` may wait until it is asked for: so many are kept in memory meanwhile.
MOST_KEPT = 1_000_000


def check_settings(model: Model) -> str:
    """Refuse settings that make no sense; the way of learning."""
    check_parameters(model)
    how = model._how()
    for name in ("doc_topic_prior", "topic_word_prior"):
        _check_prior(model, name, how)
    if as_diversity(model.diversity) is not None and how not in ("vb", "em"):
        raise ValueError(f"diversity needs inference 'vb' or 'em', got {how!r}")
    return how


def _check_prior(model: Model, name: str, how: str) -> None:
    """Refuse what a prior cannot be, with this way of learning."""
    given = getattr(model, name)
    learned = isinstance(given, Gamma | str)
    if not learned:
        prior = np.asarray(1.0 if given is None else given, dtype=np.float64)
        if not np.isfinite(prior).all() or not (prior >= 0).all():
            raise ValueError(f"{name} must be a positive number, an array of them or 'learn', got {given!r}")
        return
    check_value(given, name, Only("learn") | Made(Gamma, "a prior (Gamma)"))
    if name == "topic_word_prior" and model.seed_words is not None:
        raise ValueError(f"topic_word_prior must be a number or an array if there are seed_words, got {given!r}")
    ways = ["gibbs"] if isinstance(given, Gamma) or name == "topic_word_prior" else ["vb", "svi", "gibbs"]
    if how not in ways:
        raise ValueError(f"{name}={given!r} needs inference {' or '.join(map(repr, ways))}, got {how!r}")
    if isinstance(given, Gamma) and given.shape < 1:
        raise ValueError(f"{name} must be a Gamma prior of shape 1 or more, which has a mode, got {given!r}")


def checked_documents(model: Model, X: Any, how: str) -> tuple[Any, int]:
    """Counts, or a source of them, and the number of words."""
    if not is_source(X):
        counts = check_documents(model, X, whole=how == "gibbs", empty="warn" if how == "gibbs" else "ignore")
        if how == "em":
            refuse_no_words(counts, f"{type(model).__name__}.fit")
        warn_of_weights(counts, "fit", stacklevel=4)
        return counts, int(counts.shape[1])
    if how == "gibbs":
        raise ValueError("inference='gibbs' needs documents in memory, got a source; use 'svi'")
    n_words = getattr(X, "n_features", None)
    if n_words is None:
        n_words = next(iter(X.batches())).load().X.shape[1]
    model.__dict__.pop("feature_names_in_", None)
    forget_words(model, int(n_words))
    model.n_features_in_ = int(n_words)
    return X, int(n_words)


def warn_of_weights(counts: Any, whom: str, stacklevel: int) -> None:
    """Say so if documents look like weights of words instead of counts."""
    share = float((counts.data != np.floor(counts.data)).mean()) if counts.nnz else 0.0
    few = counts.sum() < FEW_WORDS * counts.shape[0] and counts.shape[1] > FEW_WORDS * FEW_WORDS
    if (share > 0 and few) or (share > 0.5 and _of_unit_length(counts)):
        what = "few words to a document" if few else "rows of length one"
        warnings.warn(
            f"LatentDirichletAllocation.{whom}: X has fractions and {what}, as weights by tf-idf have; the model "
            "is one of counts, and perplexities of weights mean nothing",
            UserWarning,
            stacklevel=stacklevel,
        )


def checked_weights(sample_weight: Any, data: Any) -> Array | None:
    """Weights of the documents, if there are any."""
    if sample_weight is None:
        return None
    if is_source(data):
        raise ValueError("sample_weight needs documents in memory; a source has weights of its own")
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (data.shape[0],) or not (weight >= 0).all() or not np.isfinite(weight).all():
        raise ValueError(
            f"sample_weight must be {data.shape[0]} numbers that are not negative, got shape {weight.shape}"
        )
    if not weight.any():
        raise ValueError("sample_weight must contain at least one number that is not zero")
    return weight


def words_known(model: Model, n_words: int) -> None:
    """Keep the words of the columns, if they were given."""
    if model.vocabulary is not None:
        model.vocabulary_ = words_of_columns(model.vocabulary, n_words, "vocabulary")


def checked_priors(model: Model, n_words: int, how: str) -> tuple[Array, Any]:
    """Alpha (n_components,) and eta: a number, or an array; where learning begins if they are learned."""
    least = 0.0 if how == "em" else 1e-8
    given = {
        name: None if model._learned(name) else getattr(model, name) for name in ("doc_topic_prior", "topic_word_prior")
    }
    values = {}
    for name, shapes in (
        ("doc_topic_prior", ((), (model.n_components,))),
        ("topic_word_prior", ((), (n_words,), (model.n_components, n_words))),
    ):
        value = np.asarray(1.0 / model.n_components if given[name] is None else given[name], dtype=np.float64)
        if value.shape not in shapes:
            raise ValueError(
                f"{name} must be a positive number or an array of shape {' or '.join(map(str, shapes[1:]))}, "
                f"got {given[name]!r}"
            )
        values[name] = np.maximum(value, least)
    eta: Any = values["topic_word_prior"]
    if model.seed_words is not None:
        words = getattr(model, "vocabulary_", getattr(model, "feature_names_in_", None))
        eta = guided_word_prior(eta, model.seed_words, model.seed_strength, model.n_components, n_words, words)
    alpha = np.array(np.broadcast_to(values["doc_topic_prior"], (model.n_components,)))
    return alpha, float(eta) if np.ndim(eta) == 0 else eta


def _of_unit_length(X: Any) -> bool:
    """Whether all rows that are not empty were scaled to a sum, or a sum of squares, of one."""
    there = np.diff(X.indptr) > 0
    sums = (np.asarray(table.sum(axis=1)).ravel()[there] for table in (X, X.multiply(X)))
    return any(np.allclose(row, 1.0, rtol=0, atol=1e-5) for row in sums)


def repeated(X: Any, weight: Array) -> Any:
    """Documents as often as their weight says."""
    if (weight != np.floor(weight)).any():
        raise ValueError("sample_weight must be whole numbers with inference='gibbs'; use 'vb' for others")
    return X[np.repeat(np.arange(X.shape[0]), weight.astype(np.int64))]


@dataclass(frozen=True, eq=False)
class PendingBound:
    """Bounds of documents, computed once they are asked for from the model as it was fitted."""

    counts: Any
    weight: Array | None
    topics: Array
    doc_topic_prior: Any
    max_iter: int
    tol: float
    n_jobs: int | None

    def bounds(self) -> Array:
        """Bound of the log probability of each document, given Dirichlet parameters of the topics."""
        known, step = Topics.from_components(self.topics), DocumentStep(self.max_iter, self.tol)
        prior = np.asarray(self.doc_topic_prior, dtype=np.float64)
        alpha = np.maximum(np.broadcast_to(prior, (len(self.topics),)), 1e-8)
        # Some documents at a time: their shares of the topics are held in memory meanwhile.
        parts = [
            document_bounds(known, self.counts[first : first + DOCUMENTS_AT_ONCE], alpha, step=step, n_jobs=self.n_jobs)
            for first in range(0, self.counts.shape[0], DOCUMENTS_AT_ONCE)
        ]
        return np.concatenate(parts)

    def perplexity(self) -> float:
        """The perplexity of the documents."""
        lengths = np.asarray(self.counts.sum(axis=1)).ravel()
        weight = np.ones(len(lengths)) if self.weight is None else self.weight
        n_tokens = float(weight @ lengths)
        return float(np.exp(-(weight @ self.bounds()) / n_tokens)) if n_tokens else float("nan")


class LDAOfDocuments(EditableTopics):
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

    def _word_prior(self) -> Array:
        # Topics of EM are distributions times tokens, without the prior.
        return np.zeros(()) if self._how() == "em" else super()._word_prior()

    def _how(self) -> str:
        if self.inference is not None:
            return self.inference
        return "svi" if self.learning_method == "online" else "vb"

    @property
    def _whole_counts(self) -> bool:  # type: ignore[override]
        return self._how() == "gibbs"

    def _learned(self, name: Literal["doc_topic_prior", "topic_word_prior"]) -> Gamma | Literal["learn"] | None:
        """What a prior is learned under; None if it is fixed."""
        given: Any = getattr(self, name)
        return given if isinstance(given, Gamma) else "learn" if isinstance(given, str) else None

    @property
    def _learns_alpha(self) -> bool:
        return self._learned("doc_topic_prior") is not None

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
        bounds = self._pending_bound(counts, None).bounds()
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
        return self._pending_bound(counts, checked_weights(sample_weight, counts)).perplexity()

    def _pending_bound(self, counts: Any, weight: Array | None) -> PendingBound:
        # Topics of EM and of sampling are taken as they are.
        topics = self.topic_word_ * EXACT + 1e-8 if self._how() in ("em", "gibbs") else self.components_
        return PendingBound(
            counts, weight, topics, self.doc_topic_prior_, self.max_doc_update_iter, self.mean_change_tol, self.n_jobs
        )

    @cached_property
    def bound_(self) -> float:
        """Perplexity of the documents of `fit`; see the attributes of the class."""
        if "_pending" not in vars(self):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute 'bound_'")
        value = self._pending.perplexity()
        del self._pending
        return value

    def _keep_bound(self, counts: Any, weight: Array | None) -> None:
        # Sampling and EM do without the compiled loop of variational Bayes, which takes seconds to compile.
        if self._how() in ("gibbs", "em") and counts.nnz <= MOST_KEPT:
            self._pending = self._pending_bound(counts, weight)
            return
        # The topics are learned: they are not lost for want of their perplexity.
        with holding(f"{type(self).__name__}: interrupted while bound_ was computed; the topics are kept without it"):
            self.bound_ = self._pending_bound(counts, weight).perplexity()

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

    def _expected_counts(self, counts: Any) -> Array:
        alpha, how = self._prior_vector(), self._how()
        if how in ("vb", "svi"):
            step = DocumentStep(self.max_doc_update_iter, self.mean_change_tol)
            return infer(self.components_, counts, alpha, step=step, n_jobs=self.n_jobs)
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

    def _held_out(self, X: Any, method: str, rng: np.random.Generator, **options: Any) -> HeldOut:
        return held_out_flat(self.topic_word_, np.maximum(self._prior_vector(), 1e-8), X, method, rng, **options)

    def _facts(self) -> dict[str, str]:
        facts = super()._facts() | {"inference": self._how()}
        if hasattr(self, "bound_") and len(self._undo_steps_of_topics()) == 0:
            facts["training perplexity"] = f"{self.bound_:.1f}"
        return facts
