"""The topics of a hierarchical Dirichlet process that are large enough to read, and how many there are, in words.

A posterior of the number of topics counts topics of three tokens. What people ask is how many subjects there are:
topics from a share of the tokens on. Small ones are put to those most like them, or their tokens to whoever explains
them.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from sklearn.utils.validation import check_is_fitted

from pluri.topics.agglomeration.mergers import mergers_of
from pluri.validation import Number, Only, check_value

#: Share from which on `n_large_topics_` counts.
LARGE = 0.01
#: R-hat above which chains disagree on a number of topics.
DISAGREE = 1.1


def as_lda(model: Any, least_share: float, small: Literal["merge", "drop"]) -> Any:
    """What :meth:`HDPTopicModel.to_lda` gives."""
    import copy

    from pluri.topics.lda.estimator import LatentDirichletAllocation

    check_is_fitted(model, "topic_word_")
    check_value(least_share, "least_share", Number(0, 1))
    check_value(small, "small", Only("merge", "drop"))
    left = copy.copy(model)
    large = left.topic_weight_ >= least_share
    if not large.any():
        raise ValueError(
            f"least_share must be at most the share of the largest topic ({left.topic_weight_.max():.3g}), got "
            f"{least_share:g}"
        )
    if small == "merge" and not large.all():
        mergers = mergers_of(left, least_share=least_share)
        left._regroup(mergers.groups(mergers.n_topics - mergers.n_small), {"edit": "merge"})
    elif not large.all():
        for topic in np.flatnonzero(~large)[::-1]:  # the last first: the others keep their numbers
            left.drop(int(topic))
    order = np.argsort(-left.topic_weight_, kind="stable")
    flat = LatentDirichletAllocation(
        len(order), inference="gibbs", doc_topic_prior="learn", random_state=model.random_state
    )
    flat.components_, flat.topic_word_ = left.components_[order], left.topic_word_[order]
    flat.topic_weight_, flat.doc_topic_prior_ = left.topic_weight_[order], left._prior_vector()[order]
    flat.topic_word_prior_ = float(left._word_prior())
    flat.n_iter_, flat.n_batch_iter_ = int(model.n_iter_), 1
    flat.n_documents_seen_ = flat.total_samples_ = float(getattr(model, "n_documents_seen_", 0))
    for name in ("n_features_in_", "feature_names_in_", "vocabulary_"):
        if hasattr(model, name):
            setattr(flat, name, getattr(model, name))
    for name in ("examples_", "topic_names_"):
        if hasattr(left, name):
            setattr(flat, name, [getattr(left, name)[topic] for topic in order])
    return flat


def number_in_words(model: Any) -> str:
    """What :meth:`HDPTopicModel.number_in_words` says."""
    check_is_fitted(model, "topic_word_")
    weight = model.topic_weight_
    held = float(weight[weight >= LARGE].sum())
    if not hasattr(model, "n_topics_interval_"):
        n_small = model.n_topics_ - model.n_large_topics_
        said = f"{_topics(model.n_large_topics_)} of 1 % or more of the words each, {held:.0%} of them together"
        return f"{said}; {n_small} smaller ones. How sure that is only inference='gibbs' tells."
    low, high = model.n_large_topics_interval_
    between = _topics(low) if low == high else f"between {low} and {high} topics"
    said = f"{between} of 1 % or more of the words each (in 95 % of the draws), {held:.0%} of them together"
    draws = model.trace_.flat("n_topics") - model.trace_.flat("n_large_topics")
    few, many = (int(bound) for bound in np.quantile(draws, (0.025, 0.975), method="inverted_cdf"))
    if many:
        said += f"; {few if few == many else f'{few} to {many}'} smaller ones, which come and go"
    said = said[0].upper() + said[1:] + "."
    r_hat = float(model.r_hat_.get("n_large_topics", 1.0))
    if r_hat > DISAGREE and low != high:
        said += f" The chains do not agree yet (R-hat {r_hat:.2f}): the true interval may be wider; sample longer."
    return said


def _topics(number: int) -> str:
    return "one topic" if number == 1 else f"{number} topics"
