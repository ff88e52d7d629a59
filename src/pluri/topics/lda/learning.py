"""The ways of learning latent Dirichlet allocation, as its estimator calls them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from pluri.engine import resolve_engine
from pluri.inference import AscentWarning, mcmc
from pluri.priors import Diversity, as_diversity
from pluri.topics.documents import tokens_of
from pluri.topics.lda.document_source import size_of_source
from pluri.topics.lda.settling import RISING, last_gain
from pluri.topics.lda.starts import given_topics, n_tokens_of, topic_start
from pluri.topics.lda.topic_priors import TopicPriors
from pluri.topics.lda.variational.document_step import DocumentStep
from pluri.topics.topic_model import verdict_of_topics, warn_if_interrupted
from pluri.validation import as_generator, is_source

if TYPE_CHECKING:
    from pluri.inference.variational import RobbinsMonro
    from pluri.topics.lda.estimator import LatentDirichletAllocation as Model

Array = NDArray[np.float64]
#: The bound has settled when a pass raises it by this share of it.
SETTLED = 1e-7
#: Tokens that a topic has at least, so that it is a distribution.
NO_TOKENS = 1e-8


@dataclass(frozen=True, eq=False)
class Learned:
    """What learning gives.

    Attributes
    ----------
    components : (n_topics, n_words) expected counts plus prior
    doc_topic_prior : (n_topics,)
    topic_word_prior : number or array
    n_iter, n_batch_iter : passes or sweeps; online steps, or minibatches gone through, plus one
    n_documents : documents seen, or the sum of their weights
    n_total : documents that the counts stand for, if not those
    elbo : the bound in each pass, if there is one
    trace : draws, if it was sampled
    best : the chain of highest log density, which the topics are of
    verdict : whether the chains agree
    smoothed : whether the prior is part of `components`
    interrupted : whether Ctrl-C cut it short
    still_rising : what to tell if learning ended too early
    """

    components: Array
    doc_topic_prior: Array
    topic_word_prior: Any
    n_iter: int
    n_batch_iter: int = 1
    n_documents: float = 0.0
    n_total: float | None = None
    elbo: list[float] | None = None
    trace: mcmc.Trace | None = None
    best: int = 0
    verdict: mcmc.Verdict | None = None
    smoothed: bool = True
    interrupted: bool = False
    still_rising: str = ""

    def topic_weight(self) -> Array:
        """Share of each topic in the tokens; that of the prior if there are none."""
        prior = np.broadcast_to(self.topic_word_prior if self.smoothed else 0.0, self.components.shape)
        tokens: Array = np.maximum((self.components - prior).sum(axis=1), 0.0)
        return tokens / tokens.sum() if tokens.sum() > 0 else self.doc_topic_prior / self.doc_topic_prior.sum()

    def store(self, model: Model) -> None:
        """Set the fitted attributes of a model, and warn of what went wrong."""
        model.components_ = self.components
        model.topic_word_ = self.components / self.components.sum(axis=1, keepdims=True)
        alpha, eta = self.doc_topic_prior, self.topic_word_prior
        equal = (alpha == alpha[0]).all() and np.ndim(model.doc_topic_prior) == 0
        model.doc_topic_prior_ = float(alpha[0]) if equal else alpha
        model.topic_word_prior_ = float(eta) if np.ndim(eta) == 0 else np.asarray(eta)
        model.topic_weight_ = self.topic_weight()
        model.n_iter_, model.n_batch_iter_ = self.n_iter, self.n_batch_iter
        model.n_documents_seen_ = self.n_documents
        model.total_samples_ = self.n_documents if self.n_total is None else self.n_total
        found: dict[str, Any] = {"elbo_": self.elbo, "bound_": None, "_pending": None}
        # What is learned later than an edit cannot be taken back with it.
        found |= dict.fromkeys(("trace_", "log_joint_", "converged_", "edits_", "_undo_steps"))
        if self.trace is not None and self.verdict is not None:
            # Where a chain stopped is the topics of all tokens, as large as the documents.
            found["trace_"] = replace(self.trace, ends=())
            found["log_joint_"] = np.asarray(self.trace.stats["log_density"][self.best])
            found["converged_"] = self.verdict.settled
        for name, value in found.items():
            if value is not None:
                setattr(model, name, value)
            else:
                model.__dict__.pop(name, None)
        warn_if_interrupted(self.interrupted, "LatentDirichletAllocation", self.n_iter)
        if self.still_rising and not self.interrupted:
            warnings.warn(f"{type(model).__name__}: {self.still_rising}", ConvergenceWarning, stacklevel=3)
        if self.verdict is not None and not self.interrupted:
            self.verdict.warn(stacklevel=4)


def document_step(model: Model) -> DocumentStep:
    """How far the iterations of a document go."""
    return DocumentStep(model.max_doc_update_iter, model.mean_change_tol)


def learn_batch(model: Model, data: Any, alpha: Array, eta: Any, weight: Array | None) -> Learned:
    """Variational Bayes with all documents at a time."""
    from pluri.topics.lda.variational.batch import fit_batch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AscentWarning)
        fit = fit_batch(
            data, TopicPriors.checked(model.n_components, model.n_features_in_, alpha, eta), step=document_step(model),
            start=topic_start(model, eta, data), learn_doc_topic_prior=model._learns_alpha,
            diversity=_diversity(model, data), sample_weight=weight, n_init=model.n_init, max_iter=model.max_iter,
            tol=SETTLED, random_state=model.random_state, engine=resolve_engine(model.engine, model.n_jobs),
            verbose=model.verbose, on_iteration=_watch(model, data),
        )  # fmt: skip
    n_documents, n_batches = _size(model, data, weight)
    return Learned(
        fit.components, fit.doc_topic_prior, eta, fit.n_iter, fit.n_iter * n_batches + 1, n_documents, elbo=fit.trace,
        interrupted=fit.interrupted, still_rising=_rises(fit.reason, fit.trace, fit.n_iter),
    )  # fmt: skip


def learn_online(model: Model, data: Any, alpha: Array, eta: Any, weight: Array | None) -> Learned:
    """Variational Bayes with minibatches."""
    from pluri.topics.lda.variational.online import fit_online

    fit = fit_online(
        data, TopicPriors.checked(model.n_components, model.n_features_in_, alpha, eta), step=document_step(model),
        start=topic_start(model, eta, data), learn_doc_topic_prior=model._learns_alpha, sample_weight=weight,
        batch_size=model.batch_size, schedule=schedule(model), max_iter=model.max_iter,
        tol=1e-4 if model.evaluate_every > 0 else None, random_state=model.random_state, n_jobs=model.n_jobs,
        engine=resolve_engine(model.engine, model.n_jobs), verbose=model.verbose, on_iteration=model.callback,
    )  # fmt: skip
    return Learned(
        fit.components, fit.doc_topic_prior, eta, fit.n_passes, fit.n_steps + 1, fit.n_documents,
        elbo=list(fit.trace), interrupted=fit.interrupted, still_rising=_rises(fit.reason, fit.trace, fit.n_passes),
    )  # fmt: skip


def learn_maximum(model: Model, data: Any, alpha: Array, eta: Any, weight: Array | None) -> Learned:
    """The most probable topics and shares, in log odds: pseudo-counts are alpha and eta."""
    from pluri.topics.lda.maximum.em import fit_maximum

    fit = fit_maximum(
        data, model.n_components, doc_topic_prior=1.0 + alpha, topic_word_prior=1.0 + np.asarray(eta),
        diversity=_diversity(model, data), start=topic_start(model, eta, data), sample_weight=weight,
        n_init=model.n_init, max_iter=model.max_iter, tol=SETTLED, random_state=as_generator(model.random_state),
        engine=resolve_engine(model.engine, model.n_jobs), verbose=model.verbose, on_iteration=_watch(model, data),
    )  # fmt: skip
    tokens = np.maximum(_tokens_by_topic(fit, data, weight, alpha), NO_TOKENS)
    n_documents, n_batches = _size(model, data, weight)
    return Learned(
        fit.topic_word * tokens[:, None], alpha, eta, fit.n_iter, fit.n_iter * n_batches + 1, n_documents,
        elbo=fit.trace, smoothed=False, interrupted=fit.interrupted,
        still_rising=_rises(fit.reason, fit.trace, fit.n_iter),
    )  # fmt: skip


def _tokens_by_topic(fit: Any, data: Any, weight: Array | None, alpha: Array) -> Array:
    from pluri.topics.lda.maximum.em import fold_in

    if fit.doc_topic is not None:
        lengths = np.asarray(data.sum(axis=1)).ravel() * (1.0 if weight is None else weight)
        return np.asarray(lengths @ fit.doc_topic)
    total = np.zeros(len(alpha))
    for batch in data.batches():
        counts = sparse.csr_matrix(batch.load().X, dtype=np.float64)
        total += np.asarray(counts.sum(axis=1)).ravel() @ fold_in(fit.topic_word, counts, doc_topic_prior=1.0 + alpha)
    return total


def learn_by_sampling(model: Model, data: Any, alpha: Array, eta: Any, weight: Array | None) -> Learned:
    """Collapsed Gibbs sampling; topics, their sizes and learned priors are means over the draws of the best chain."""
    from pluri.topics.lda.sampling.gibbs import CollapsedGibbs
    from pluri.topics.lda.sampling.priors_learning import PriorLearning

    learned = model._learned("doc_topic_prior"), model._learned("topic_word_prior")
    kernel = CollapsedGibbs(
        tokens_of(data), model.n_components, alpha, eta, n_threads=n_threads(model),
        first_topics=None if isinstance(model.init, str) else given_topics(model),
        learning=None if learned == (None, None) else PriorLearning("optimize", *learned), average_every=model.thin,
        averaging=model.n_warmup == 0,
    )  # fmt: skip
    trace = mcmc.sample(
        kernel, kernel.start, n_draws=model.n_draws, n_warmup=model.n_warmup, n_chains=model.n_chains, thin=model.thin,
        record=kernel.record, random_state=as_generator(model.random_state), verbose=model.verbose, warn=False,
        callback=model.callback, draw_if_interrupted=True,
    )  # fmt: skip
    best = int(trace.stats["log_density"].mean(axis=1).argmax())
    state = trace.ends[best].state
    means = state.now() if state.means is None else state.means
    prior = np.broadcast_to(means["topic_word_prior"], means["topic_word"].shape)
    components = means["topic_word"] * (means["totals"] + prior.sum(axis=1))[:, None]
    n_documents, n_batches = _size(model, data, weight)
    return Learned(
        components, means["doc_topic_prior"], means["topic_word_prior"], state.n_sweeps,
        state.n_sweeps * n_batches + 1, n_documents, trace=trace, best=best, verdict=verdict_of_topics(trace),
        interrupted=trace.interrupted,
    )  # fmt: skip


def _rises(reason: str, trace: Any, n_passes: int) -> str:
    """What to tell of a bound that the last pass allowed has raised by much."""
    if reason != "max_iter" or last_gain(trace) <= RISING:
        return ""
    return f"the bound still rises, by {last_gain(trace):.2%} in the last of {n_passes} passes; raise max_iter"


#: How each way of learning is done.
LEARNERS: dict[str, Callable[[Any, Any, Array, Any, Array | None], Learned]] = {
    "vb": learn_batch, "svi": learn_online, "em": learn_maximum, "gibbs": learn_by_sampling,
}  # fmt: skip


def _diversity(model: Model, data: Any) -> Diversity | None:
    """The diversity prior; a number is its weight as a share of the tokens of a topic, in the mean."""
    prior = as_diversity(model.diversity)
    if prior is None or isinstance(model.diversity, Diversity):
        return prior
    return Diversity(prior.strength * n_tokens_of(data) / model.n_components)


def schedule(model: Model) -> RobbinsMonro:
    """Step sizes of online learning."""
    from pluri.inference.variational import RobbinsMonro

    return RobbinsMonro(model.learning_decay, model.learning_offset)


def _size(model: Model, data: Any, weight: Array | None) -> tuple[float, int]:
    """Documents, or the sum of their weights, and minibatches of a pass."""
    if not is_source(data):
        n_documents = data.shape[0]
        return float(n_documents if weight is None else weight.sum()), max(1, -(-n_documents // model.batch_size))
    _, total, n_batches = size_of_source(data)
    return total, max(n_batches, 1)


def n_threads(model: Model) -> int:
    """Threads of a sweep."""
    from joblib import effective_n_jobs

    return int(effective_n_jobs(model.n_jobs))


def _watch(model: Model, data: Any) -> Callable[[Any], bool] | None:
    """Look at the perplexity now and then, and end when it has settled."""
    if model.callback is None and model.evaluate_every <= 0:
        return None
    n_tokens = n_tokens_of(data) if model.evaluate_every > 0 else 1.0
    last = [np.inf]

    def watch(state: Any) -> bool:
        stop = model.callback is not None and bool(model.callback(state))
        if model.evaluate_every > 0 and (state.iteration + 1) % model.evaluate_every == 0:
            perplexity = float(np.exp(-state.objective / n_tokens))
            stop = stop or abs(last[0] - perplexity) < model.perp_tol
            last[0] = perplexity
        return stop

    return watch
