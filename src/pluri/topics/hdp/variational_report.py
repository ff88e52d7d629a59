"""What a variational fit of an HDP topic model leaves in the estimator, and what it warns of."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from pluri.topics.hdp.gibbs import LARGE
from pluri.topics.hdp.settings import HDPSettings
from pluri.topics.hdp.variational import HDPVariational, Natural

#: Share of the tokens from which on a variational topic counts.
COUNTED = 1e-3
#: Documents of fewer minibatches than this are too few for "svi".
FEW_BATCHES = 10


def variational_model(model: HDPSettings, n_words: int) -> HDPVariational:
    """The variational model with the settings of an :class:`HDPTopicModel`."""
    gamma, alpha, eta = model.hyperparameters()
    return HDPVariational(
        n_words,
        int(model.max_topics),
        int(model.max_doc_topics),
        alpha.prior if alpha.learned else alpha.value,
        gamma.prior if gamma.learned else gamma.value,
        eta.value,
        {"vb": "chain", "svi": "documents"}[model.inference] if model.init == "auto" else model.init,
        model.n_jobs,
    )


def variational_attributes(model: HDPVariational, params: Natural) -> dict[str, Any]:
    """Fitted attributes of the estimator: topics that count, the largest first."""
    eta = model.eta
    sizes = np.maximum(params["topic_word"] - eta, 0.0).sum(axis=1)
    shares = sizes / sizes.sum()
    order = np.argsort(-sizes, kind="stable")
    order = order[: max(1, int((shares >= COUNTED).sum()))]
    sticks, alpha = model.sticks(params), model.doc_concentration(params)
    return {
        "variational_": {name: np.asarray(value) for name, value in params.items()},
        "n_topics_": len(order),
        "n_large_topics_": int((shares >= LARGE).sum()),
        "topic_word_prior_": float(eta),
        "doc_concentration_": float(alpha.mean),
        "topic_concentration_": float(sticks.concentration.mean),
        "components_": np.ascontiguousarray(params["topic_word"][order]),
        "topic_weight_": shares[order] / shares[order].sum(),
        "doc_topic_prior_": alpha.mean * sticks.weight[order],
    }


def warn_of_truncation(model: HDPSettings, last_stick: float) -> None:
    """Tell if the topics of an :class:`HDPTopicModel`, or the sticks of documents, are all in use."""
    if model.n_topics_ == model.max_topics > 1:
        hint = "raise max_topics"
        if model.inference == "svi" and model.n_documents_seen_ < FEW_BATCHES * model.batch_size:
            # Topics that one step filled need many more to be emptied again.
            seen = model.n_documents_seen_
            hint = f"'svi' needs many documents, of which there are {seen}: use inference='gibbs' or 'vb'"
        warnings.warn(f"all {model.max_topics} topics are in use; {hint}", ConvergenceWarning, stacklevel=5)
    if last_stick > 1.0 / model.max_doc_topics and model.max_doc_topics > 1:
        warnings.warn(
            f"the last stick of documents has {last_stick:.0%} of the tokens; raise max_doc_topics",
            ConvergenceWarning,
            stacklevel=5,
        )
