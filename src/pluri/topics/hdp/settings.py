"""Settings of an HDP topic model that are not allowed, each told in one sentence that names it."""

from __future__ import annotations

from typing import Any

from pluri.inference.variational import RobbinsMonro
from pluri.processes.concentration import check_gamma_prior
from pluri.topics.hdp.starts import INITS
from pluri.validation import check_count, check_positive

INFERENCES = ("gibbs", "vb", "svi")
#: What may be given or learned.
LEARNED = ("topic_concentration", "doc_concentration", "topic_word_prior")
#: Where concentrations begin if they are learned, and the prior count of words.
FIRST = {"topic_concentration": 1.0, "doc_concentration": 1.0, "topic_word_prior": 0.1}


def check_settings(model: Any) -> None:
    """Raise a ValueError for the first setting of an :class:`HDPTopicModel` that is not allowed."""
    for name, allowed in (("inference", INFERENCES), ("init", INITS)):
        if getattr(model, name) not in allowed:
            raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {getattr(model, name)!r}")
    if model.init == "sequential" and model.inference != "gibbs":
        raise ValueError("init must be 'auto', 'documents' or 'random' unless inference is 'gibbs', got 'sequential'")
    for name in ("max_topics", "max_doc_topics", "n_draws", "thin", "n_chains", "batch_size", "n_init"):
        check_count(getattr(model, name), name)
    check_count(model.n_warmup, "n_warmup", 0)
    for name in ("total_samples", "max_iter"):
        if getattr(model, name) is not None:
            check_count(getattr(model, name), name)
    for name in LEARNED:
        value = getattr(model, name)
        if value != "learn":
            if isinstance(value, str):
                raise ValueError(f"{name} must be a positive number or 'learn', got {value!r}")
            check_positive(value, name)
    if model.inference == "svi" and model.topic_word_prior == "learn":
        raise ValueError("topic_word_prior must be a positive number if inference is 'svi', got 'learn'")
    check_gamma_prior(model.concentration_prior, "concentration_prior")
    RobbinsMonro(model.learning_decay, model.learning_offset)


def is_learned(model: Any, name: str) -> bool:
    """Whether a setting is to be learned."""
    return bool(getattr(model, name) == "learn")


def given(model: Any, name: str) -> float:
    """A setting, or where it begins if it is learned."""
    return FIRST[name] if is_learned(model, name) else float(getattr(model, name))
