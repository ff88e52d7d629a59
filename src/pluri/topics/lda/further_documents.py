"""Going on with latent Dirichlet allocation when there are further documents."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pluri.inference import mcmc
from pluri.topics.documents import check_documents, tokens_of
from pluri.topics.lda.documents import check_settings, checked_priors, checked_weights, repeated, words_known
from pluri.topics.lda.learning import Learned, document_step, n_threads, schedule
from pluri.topics.lda.starts import topic_start
from pluri.topics.lda.topic_priors import TopicPriors
from pluri.topics.topic_model import n_sweeps
from pluri.validation import as_generator

if TYPE_CHECKING:
    from pluri.topics.lda.estimator import LatentDirichletAllocation as Model

Array = NDArray[np.float64]
#: Documents that a stream is taken to have if nobody says how many: scikit-learn's number.
STREAM = 1e6


def go_on(model: Model, X: Any, sample_weight: Any) -> Learned:
    """What further documents teach a model, or the first ones of a stream."""
    how = check_settings(model)
    first = not hasattr(model, "components_")
    if not first and len(model.components_) != model.n_components:
        raise ValueError(
            f"n_components must be {len(model.components_)}, as it was, to go on learning, got "
            f"{model.n_components}; fit begins anew"
        )
    sampled = how == "gibbs"
    empty: Any = "warn" if sampled else "ignore"
    counts = check_documents(model, X, whole=sampled, reset=first, whom="partial_fit", empty=empty)
    words_known(model, counts.shape[1])
    weight = checked_weights(sample_weight, counts)
    if weight is not None and sampled:
        counts, weight = repeated(counts, weight), None
    # Seed words and priors of single topics are those of the beginning: topics may have been merged or dropped since.
    begun: Any = (
        checked_priors(model, counts.shape[1], how) if first else (model._prior_vector(), model.topic_word_prior_)
    )
    alpha, eta = begun
    return go_on_sampling(model, counts, alpha, eta) if sampled else go_on_online(model, counts, alpha, eta, weight)


def go_on_online(model: Model, counts: Any, alpha: Array, eta: Any, weight: Array | None) -> Learned:
    """A step of online variational Bayes for each minibatch of further documents.

    After a fit a minibatch stands for all documents up to it. If it stood for more, the words of a few new documents
    would count as those of a multitude that nobody has seen, and bury what was learned before. In a stream from its
    beginning all minibatches stand for equally many, a large number: then the random start is forgotten soonest.
    """
    from pluri.topics.lda.variational.online import first_params, partial_step

    priors = TopicPriors.checked(model.n_components, counts.shape[1], alpha, eta)
    step, done = getattr(model, "n_batch_iter_", 1), getattr(model, "n_iter_", 0)
    begun: Any = getattr(model, "components_", None)
    seen, total = _numbers_of_documents(model)
    for begin in range(0, counts.shape[0], model.batch_size):
        rows = slice(begin, begin + model.batch_size)
        batch, own = counts[rows], None if weight is None else weight[rows]
        if own is not None and not own.any():
            continue
        from_fit = total == seen
        seen += batch.shape[0] if own is None else float(own.sum())
        total = seen if from_fit else max(seen, total)
        if model.total_samples is not None:
            total = float(model.total_samples)
        # The sum of E[log theta] over the documents is not kept: alpha stands for it.
        online: Any = first_params(
            replace(priors, doc_topic=alpha), start=topic_start(model, eta, counts) if begun is None else begun,
            data=counts, n_total=total, learn_doc_topic_prior=model._learns_alpha, random_state=model.random_state,
        )  # fmt: skip
        online, alpha, _ = partial_step(
            online, batch, replace(priors, doc_topic=alpha), t=step, n_total=total, step=document_step(model),
            schedule=schedule(model), learn_doc_topic_prior=model._learns_alpha, sample_weight=own,
            n_jobs=model.n_jobs,
        )  # fmt: skip
        begun = np.ascontiguousarray(online["word_topic"].T)
        step += 1
    return Learned(begun, alpha, eta, done, step, seen, total)


def _numbers_of_documents(model: Model) -> tuple[float, float]:
    """Documents seen so far, and those that the counts of the model stand for."""
    if not hasattr(model, "components_"):
        return 0.0, STREAM
    if not hasattr(model, "total_samples_") and model.total_samples is None:  # a file of an earlier version
        raise ValueError("total_samples must be given to go on with a model that does not know n_documents_seen_")
    return float(getattr(model, "n_documents_seen_", 0.0)), float(getattr(model, "total_samples_", 0.0))


def go_on_sampling(model: Model, counts: Any, alpha: Array, eta: Any) -> Learned:
    """Topics of further tokens given all counts so far, which become part of the prior."""
    from pluri.topics.lda.sampling.gibbs import CollapsedGibbs

    prior = getattr(model, "components_", None)
    if prior is None:
        prior = np.array(np.broadcast_to(eta, (model.n_components, counts.shape[1])))
    step = getattr(model, "n_batch_iter_", 1)
    # Another stream for each batch.
    rng = np.random.default_rng([int(as_generator(model.random_state).integers(2**63)), step])
    kernel = CollapsedGibbs(tokens_of(counts), model.n_components, alpha, prior, n_threads=n_threads(model))
    trace = mcmc.sample(
        kernel, kernel.start, n_draws=1, n_warmup=model.max_iter - 1, n_chains=1, record=kernel.record,
        random_state=rng, warn=False, draw_if_interrupted=True,
    )  # fmt: skip
    counted = trace.ends[0].state.topic_counts()
    seen = float(getattr(model, "n_documents_seen_", 0.0)) + counts.shape[0]
    return Learned(prior + counted, alpha, eta, n_sweeps(trace), step + 1, seen, interrupted=trace.interrupted)
