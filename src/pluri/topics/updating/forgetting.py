"""Forgetting: what was learned counts for less, so that further documents count for more."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

Model = TypeVar("Model")


def forget(model: Model, share: float) -> Model:
    """Let the documents that a model has seen count for less, before `partial_fit` goes on with others.

    Counts of words in topics, and the number of documents that they stand for, are multiplied by ``1 - share``. In
    online learning ("vb" and "svi") the weight of the next minibatch grows by ``1 / (1 - share)``. Who forgets a
    fiftieth every week has half of what is older than 35 weeks.

    Parameters
    ----------
    model : LatentDirichletAllocation, or HDPTopicModel with inference "svi"
        Fitted; changed in place.
    share : float
        From 0 (nothing) to below 1.

    Returns
    -------
    model

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.topics import LatentDirichletAllocation, forget
    >>> X = np.repeat([[4, 4, 0, 0], [0, 0, 4, 4]], 20, axis=0)
    >>> model = LatentDirichletAllocation(2, inference="gibbs", topic_word_prior=0.1, random_state=0).fit(X)
    >>> model = forget(model, 0.5).partial_fit(X[:10])
    >>> round(float((model.components_ - 0.1).sum()))  # half of 320 tokens, and 80 new ones
    240
    """
    if not 0 <= share < 1:
        raise ValueError(f"share must be at least 0 and below 1, got {share!r}")
    check_is_fitted(model, "components_")
    kept = 1.0 - float(share)
    if hasattr(model, "variational_") and hasattr(model, "max_topics"):
        _of_process(model, kept)
    elif hasattr(model, "total_samples_") and hasattr(model, "n_batch_iter_"):
        _of_allocation(model, kept)
    else:
        raise TypeError(
            "model must be a LatentDirichletAllocation, or an HDPTopicModel that was fitted with inference 'svi' or "
            f"'vb', to forget, got {type(model).__name__}"
        )
    return model


def _of_allocation(model: Any, kept: float) -> None:
    in_stream = model._how() != "gibbs" and model.total_samples_ != model.n_documents_seen_
    if not in_stream:  # in a stream the counts stand for a number of documents that is said beforehand
        prior = np.broadcast_to(np.asarray(model.topic_word_prior_, dtype=float), model.components_.shape)
        components = prior + kept * np.maximum(model.components_ - prior, 0.0)
        # Topics of "em" have no prior in their counts, and may have none at all.
        components = np.maximum(components, np.finfo(float).tiny)
        model.components_ = components
        model.topic_word_ = components / components.sum(axis=1, keepdims=True)
        model.total_samples_ = kept * model.total_samples_
    model.n_documents_seen_ = kept * model.n_documents_seen_
    # A step size of (offset + t)^-decay grows by 1 / kept.
    decay = model.learning_decay
    if decay > 0:
        earlier = (model.learning_offset + model.n_batch_iter_) * kept ** (1 / decay) - model.learning_offset
        model.n_batch_iter_ = max(1, round(earlier))


def _of_process(model: Any, kept: float) -> None:
    from pluri.topics.hdp.variational_report import variational_attributes, variational_model

    variational = variational_model(model, model.n_features_in_)
    prior = variational.global_prior()
    params = {name: prior[name] + kept * (value - prior[name]) for name, value in model.variational_.items()}
    model.n_documents_seen_ = round(kept * model.n_documents_seen_)
    decay = model.learning_decay
    earlier = (model.learning_offset + model.n_iter_) * kept ** (1 / decay) - model.learning_offset
    model.n_iter_ = max(0, round(earlier))
    model._store(variational_attributes(variational, params))
