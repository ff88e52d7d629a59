"""The ways of learning latent Dirichlet allocation, as its estimator calls them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pluri.inference import AscentWarning, mcmc
from pluri.priors import Diversity, as_diversity
from pluri.topics.documents import tokens_of
from pluri.topics.lda.document_source import size_of_source
from pluri.topics.lda.document_step import DocumentStep
from pluri.topics.lda.settling import RISING, last_gain
from pluri.topics.lda.topic_priors import TopicPriors
from pluri.topics.topic_model import n_sweeps, verdict_of_topics
from pluri.validation import as_generator, is_source

if TYPE_CHECKING:
    from pluri.topics.lda.estimator import LatentDirichletAllocation as Model

Array = NDArray[np.float64]
#: The bound has settled when a pass raises it by this share of it.
SETTLED = 1e-7
#: Documents that a stream is taken to have if nobody says how many: scikit-learn's number.
STREAM = 1e6
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


def document_step(model: Model) -> DocumentStep:
    """How far the iterations of a document go."""
    return DocumentStep(model.max_doc_update_iter, model.mean_change_tol)


def learn_batch(model: Model, data: Any, alpha: Array, eta: Any, weight: Array | None) -> Learned:
    """Variational Bayes with all documents at a time."""
    from pluri.topics.lda.variational import fit_batch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AscentWarning)
        fit = fit_batch(
            data, TopicPriors.checked(model.n_components, model.n_features_in_, alpha, eta), step=document_step(model),
            start=_start(model, eta), learn_doc_topic_prior=model._learns_alpha, diversity=_diversity(model, data),
            sample_weight=weight, n_init=model.n_init, max_iter=model.max_iter, tol=SETTLED,
            random_state=model.random_state, engine=model.engine, n_jobs=model.n_jobs, verbose=model.verbose,
            on_iteration=_watch(model, data),
        )  # fmt: skip
    n_documents, n_batches = _size(model, data, weight)
    return Learned(
        fit.components, fit.doc_topic_prior, eta, fit.n_iter, fit.n_iter * n_batches + 1, n_documents, elbo=fit.trace,
        interrupted=fit.interrupted, still_rising=_rises(fit.reason, fit.trace, fit.n_iter),
    )  # fmt: skip


def learn_online(model: Model, data: Any, alpha: Array, eta: Any, weight: Array | None) -> Learned:
    """Variational Bayes with minibatches."""
    from pluri.topics.lda.online import fit_online

    fit = fit_online(
        data, TopicPriors.checked(model.n_components, model.n_features_in_, alpha, eta), step=document_step(model),
        start=_start(model, eta), learn_doc_topic_prior=model._learns_alpha, sample_weight=weight,
        batch_size=model.batch_size, schedule=_schedule(model), max_iter=model.max_iter,
        evaluate=model.evaluate_every > 0, random_state=model.random_state, engine=model.engine, n_jobs=model.n_jobs,
        verbose=model.verbose, on_iteration=model.callback,
    )  # fmt: skip
    return Learned(
        fit.components, fit.doc_topic_prior, eta, fit.n_passes, fit.n_steps + 1, fit.n_documents,
        elbo=list(fit.trace), interrupted=fit.interrupted, still_rising=_rises(fit.reason, fit.trace, fit.n_passes),
    )  # fmt: skip


def learn_maximum(model: Model, data: Any, alpha: Array, eta: Any, weight: Array | None) -> Learned:
    """The most probable topics and shares, in log odds: pseudo-counts are alpha and eta."""
    from pluri.topics.lda.em import fit_maximum

    fit = fit_maximum(
        data, model.n_components, doc_topic_prior=1.0 + alpha, topic_word_prior=1.0 + np.asarray(eta),
        diversity=_diversity(model, data), start=_start(model, eta), sample_weight=weight, n_init=model.n_init,
        max_iter=model.max_iter, tol=SETTLED, random_state=as_generator(model.random_state), engine=model.engine,
        n_jobs=model.n_jobs, verbose=model.verbose, on_iteration=_watch(model, data),
    )  # fmt: skip
    tokens = np.maximum(_tokens_by_topic(fit, data, weight, alpha), NO_TOKENS)
    n_documents, n_batches = _size(model, data, weight)
    return Learned(
        fit.topic_word * tokens[:, None], alpha, eta, fit.n_iter, fit.n_iter * n_batches + 1, n_documents,
        elbo=fit.trace, smoothed=False, interrupted=fit.interrupted,
        still_rising=_rises(fit.reason, fit.trace, fit.n_iter),
    )  # fmt: skip


def _tokens_by_topic(fit: Any, data: Any, weight: Array | None, alpha: Array) -> Array:
    from pluri.topics.lda.em import fold_in

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
    from pluri.topics.lda.gibbs import CollapsedGibbs
    from pluri.topics.lda.priors_learning import PriorLearning

    learning = PriorLearning(doc_topic=model._learned("doc_topic_prior"), topic_word=model._learned("topic_word_prior"))
    kernel = CollapsedGibbs(
        tokens_of(data), model.n_components, alpha, eta, n_threads=_n_threads(model),
        learning=learning, average_every=model.thin,
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


def go_on_online(model: Model, counts: Any, alpha: Array, eta: Any, weight: Array | None) -> Learned:
    """A step of online variational Bayes for each minibatch of further documents.

    After a fit a minibatch stands for all documents up to it. If it stood for more, the words of a few new documents
    would count as those of a multitude that nobody has seen, and bury what was learned before. In a stream from its
    beginning all minibatches stand for equally many, a large number: then the random start is forgotten soonest.
    """
    from pluri.topics.lda.online import first_params, partial_step

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
            replace(priors, doc_topic=alpha), start=_start(model, eta) if begun is None else begun, data=counts,
            n_total=total, learn_doc_topic_prior=model._learns_alpha, random_state=model.random_state,
        )  # fmt: skip
        online, alpha, _ = partial_step(
            online, batch, replace(priors, doc_topic=alpha), t=step, n_total=total, step=document_step(model),
            schedule=_schedule(model), learn_doc_topic_prior=model._learns_alpha, sample_weight=own,
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


def go_on_sampling(model: Model, counts: Any, alpha: Array, eta: Any, weight: Array | None) -> Learned:
    """Topics of further tokens given all counts so far, which become part of the prior."""
    from pluri.topics.lda.gibbs import CollapsedGibbs

    prior = getattr(model, "components_", None)
    if prior is None:
        prior = np.array(np.broadcast_to(eta, (model.n_components, counts.shape[1])))
    step = getattr(model, "n_batch_iter_", 1)
    # Another stream for each batch.
    rng = np.random.default_rng([int(as_generator(model.random_state).integers(2**63)), step])
    kernel = CollapsedGibbs(tokens_of(counts), model.n_components, alpha, prior, n_threads=_n_threads(model))
    trace = mcmc.sample(
        kernel, kernel.start, n_draws=1, n_warmup=model.max_iter - 1, n_chains=1, record=kernel.record,
        random_state=rng, warn=False, draw_if_interrupted=True,
    )  # fmt: skip
    counted = trace.ends[0].state.topic_counts()
    seen = float(getattr(model, "n_documents_seen_", 0.0)) + counts.shape[0]
    return Learned(prior + counted, alpha, eta, n_sweeps(trace), step + 1, seen, interrupted=trace.interrupted)


def _start(model: Model, eta: Any) -> Any:
    """Topics to start from; seed words are part of a random start."""
    if model.seed_words is None or model.init == "documents":
        return model.init
    from pluri.topics.lda.starts import SCALE, SHAPE, legacy_stream

    return legacy_stream(model.random_state).gamma(SHAPE, SCALE, eta.shape) + eta


def _diversity(model: Model, data: Any) -> Diversity | None:
    """The diversity prior; a number is its weight as a share of the tokens of a topic, in the mean."""
    prior = as_diversity(model.diversity)
    if prior is None or isinstance(model.diversity, Diversity):
        return prior
    n_tokens = sum(float(batch.load().X.sum()) for batch in data.batches()) if is_source(data) else float(data.sum())
    return Diversity(prior.strength * max(n_tokens, 1.0) / model.n_components)


def _schedule(model: Model) -> Any:
    from pluri.inference.variational import RobbinsMonro

    return RobbinsMonro(model.learning_decay, model.learning_offset)


def _size(model: Model, data: Any, weight: Array | None) -> tuple[float, int]:
    """Documents, or the sum of their weights, and minibatches of a pass."""
    if not is_source(data):
        n_documents = data.shape[0]
        return float(n_documents if weight is None else weight.sum()), max(1, -(-n_documents // model.batch_size))
    _, total, n_batches = size_of_source(data)
    return total, max(n_batches, 1)


def _n_threads(model: Model) -> int:
    from joblib import effective_n_jobs

    return int(effective_n_jobs(model.n_jobs))


def _n_tokens(data: Any) -> float:
    parts = (batch.load().X for batch in data.batches()) if is_source(data) else (data,)
    return max(sum(float(part.sum()) for part in parts), 1.0)


def _watch(model: Model, data: Any) -> Callable[[Any], bool] | None:
    """Look at the perplexity now and then, and end when it has settled."""
    if model.callback is None and model.evaluate_every <= 0:
        return None
    n_tokens = _n_tokens(data) if model.evaluate_every > 0 else 1.0
    last = [np.inf]

    def watch(state: Any) -> bool:
        stop = model.callback is not None and bool(model.callback(state))
        if model.evaluate_every > 0 and (state.iteration + 1) % model.evaluate_every == 0:
            perplexity = float(np.exp(-state.objective / n_tokens))
            stop = stop or abs(last[0] - perplexity) < model.perp_tol
            last[0] = perplexity
        return stop

    return watch
