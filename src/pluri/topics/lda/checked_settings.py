"""Settings and documents of latent Dirichlet allocation, checked before anything is learned."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pluri.priors import Gamma, as_diversity
from pluri.topics.documents import check_documents, forget_words, refuse_no_words, words_of_columns
from pluri.topics.lda.guided import guided_word_prior
from pluri.validation import Made, Only, check_parameters, check_value, is_source

if TYPE_CHECKING:
    from pluri.topics.lda.estimator import LatentDirichletAllocation as Model

Array = NDArray[np.float64]
#: Counts below this in the mean document, if they are no whole numbers, are weights such as tf-idf.
FEW_WORDS = 10


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
