"""Topics whose number is learned: the scikit-learn estimator around the HDP sampler and the variational fits.

Every document has its own shares of an unlimited number of topics that all documents draw on:
``beta ~ GEM(gamma)``, ``theta_d ~ DP(alpha, beta)``, ``phi_k ~ Dirichlet(eta)``.

References
----------
.. [1] Teh, Y. W., Jordan, M., Beal, M. and Blei, D. (2006). Hierarchical Dirichlet processes. JASA 101.
.. [2] Wang, C., Paisley, J. and Blei, D. (2011). Online variational inference for the hierarchical Dirichlet process.
   AISTATS.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from pluri.inference.variational import RobbinsMonro, natural_step, stochastic_variational_inference
from pluri.processes.concentration import check_count, check_gamma_prior, check_positive
from pluri.topics.documents import check_documents, refuse_no_words, tokens_of
from pluri.topics.flat_topics import FlatTopicModel
from pluri.topics.hdp.gibbs import LARGE, TopicGibbs
from pluri.topics.hdp.gibbs_fit import fit_chains
from pluri.topics.hdp.starts import INITS
from pluri.topics.hdp.variational import HDPVariational, Natural
from pluri.topics.hdp.variational_fit import fit_batch
from pluri.topics.interrupts import n_sweeps
from pluri.topics.topic_model import warn_if_interrupted
from pluri.validation import RandomState, as_generator, restored_on_failure

Array = NDArray[np.float64]

INFERENCES = ("gibbs", "vb", "svi")
#: Share of the tokens from which on a variational topic counts.
COUNTED = 1e-3
#: Where concentrations begin if they are learned, and the prior count of words.
FIRST_CONCENTRATION, FIRST_WORD_PRIOR = 1.0, 0.1
#: Sweeps, and passes over minibatches, if `max_iter` is None.
MAX_SWEEPS, MAX_PASSES = 100, 10
#: A pass over minibatches moves the bound by noise: it has settled within so many times `tol`.
NOISE = 100.0
#: Documents of fewer minibatches than this are too few for "svi".
FEW_BATCHES = 10


def _in_parts(model: HDPTopicModel) -> bool:
    if model.inference != "svi":
        raise AttributeError(f"partial_fit needs inference='svi', got {model.inference!r}")
    return True


class HDPTopicModel(FlatTopicModel):
    """Topic model that finds the number of its topics: a hierarchical Dirichlet process.

    Parameters
    ----------
    inference : {"gibbs", "vb", "svi"}, default="gibbs"
        Gibbs sampling, which has a posterior of the number of topics; variational Bayes over all documents at a time;
        or over minibatches, for corpora that come in parts (:meth:`partial_fit`).
    max_topics : int, default=50
        Truncation of the variational ways. It is no limit to chains, which begin with so many topics unless `init` is
        "sequential".
    max_doc_topics : int, default=10
        Largest number of sticks of a document in the variational ways.
    topic_concentration : float or "learn", default="learn"
        gamma, of the corpus: the larger, the more topics.
    doc_concentration : float or "learn", default="learn"
        alpha, of the documents: the larger, the more topics has each of them.
    topic_word_prior : float or "learn", default=0.01
        eta, prior count of every word in every topic: the smaller, the more topics. "learn" is not for "svi".
    concentration_prior : (float, float), default=(1.0, 1.0)
        Shape and rate of the gamma priors of what is learned.
    n_warmup, n_draws, thin : int, default=200, 100, 1
        Sweeps of each chain before the draws, draws, and sweeps from one to the next.
    n_chains : int, default=2
    n_jobs : int, optional
        Chains, or parts of the corpus, at a time, in threads.
    learning_decay, learning_offset : float, default=0.9, 64.0
        Step t of "svi" has size ``(t + learning_offset) ** -learning_decay``.
    batch_size : int, default=256
        Documents of a minibatch.
    total_samples : int, optional
        Number of documents that :meth:`partial_fit` is going to see; by default those seen so far.
    max_iter : int, optional
        Sweeps of "vb" (100 by default), or passes of "svi" (10).
    tol : float, default=1e-5
        "vb" ends when a sweep changes the bound by less than this share of it; "svi" when a pass changes it by less
        than 100 times that.
    init : {"documents", "random", "sequential"}, default="documents"
        Topics begin with the words of `max_topics` documents drawn at random, or at random; chains also with tokens
        that are given topics one after another ("sequential"). This leaves fewer duplicates where topics are few, and
        misses topics for long in a corpus with many.
    n_init : int, default=1
        Starts of "vb", of which the one with the highest bound is kept.
    random_state : int, Generator, RandomState or None
    verbose : int, default=0
        1 shows progress.
    callback : callable, optional
        Called with the trace so far between rounds of sweeps, or with the state of the iteration after each variational
        sweep or pass; returning True ends the fit.

    Attributes
    ----------
    n_topics_ : int
        Of "gibbs", the posterior mode of the number of topics that have tokens; otherwise the number of topics with at
        least 0.1 % of the tokens.
    n_large_topics_ : int
        Number of topics with at least 1 % of the tokens (of "gibbs", its posterior mode): topics of a few tokens, which
        come and go with every sweep, are left out.
    n_topics_posterior_, n_large_topics_posterior_ : dict
        How many draws have each number of topics; "gibbs" only.
    n_topics_interval_, n_large_topics_interval_ : (int, int)
        Numbers between which 95 % of the draws lie; "gibbs" only. In large corpora chains move slowly from one number
        to another: compare several of them, and starts.
    components_ : array of shape (n_kept, n_features_in_)
        Expected counts of words plus their prior, the largest topic first: all topics of the draw of highest log joint
        density, or the variational topics that count.
    topic_word_ : array of shape (n_kept, n_features_in_)
        The same as distributions.
    topic_weight_ : array of shape (n_kept,)
        Share of the tokens.
    doc_topic_prior_ : array of shape (n_kept,)
        alpha times the weight of each topic in the corpus: the prior of a document's shares.
    topic_concentration_, doc_concentration_, topic_word_prior_ : float
        gamma, alpha and eta; posterior means where they are learned.
    trace_ : Trace
        Draws of ``n_topics``, ``n_large_topics``, ``alpha``, ``gamma`` and ``eta``; "gibbs" only.
    log_joint_ : array of shape (n_chains, n_draws)
        Of words, topics and sticks; "gibbs" only.
    elbo_ : list of float
        Lower bound by sweep, or by pass; variational only.
    bound_ : float
        The last of them, or the highest log joint density.
    variational_ : dict
        Parameters of all `max_topics` topics, for :meth:`partial_fit`; variational only.
    converged_ : bool
    n_iter_ : int
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.topics.hdp import HDPTopicModel
    >>> rng = np.random.default_rng(0)
    >>> laws = np.kron(np.eye(3), np.full(4, 0.25))
    >>> X = np.array([rng.multinomial(50, rng.dirichlet([0.3] * 3) @ laws) for _ in range(100)])
    >>> model = HDPTopicModel(init="sequential", topic_word_prior=0.1, random_state=0).fit(X)
    >>> model.n_large_topics_
    3
    >>> low, high = model.n_topics_interval_
    >>> low <= model.n_topics_ <= high
    True
    >>> model.transform(X).shape[0]
    100
    """

    _parameter_names = ("topic_concentration", "doc_concentration", "topic_word_prior")

    def __init__(
        self,
        inference: str = "gibbs",
        *,
        max_topics: int = 50,
        max_doc_topics: int = 10,
        topic_concentration: float | str = "learn",
        doc_concentration: float | str = "learn",
        topic_word_prior: float | str = 0.01,
        concentration_prior: tuple[float, float] = (1.0, 1.0),
        n_warmup: int = 200,
        n_draws: int = 100,
        thin: int = 1,
        n_chains: int = 2,
        n_jobs: int | None = None,
        learning_decay: float = 0.9,
        learning_offset: float = 64.0,
        batch_size: int = 256,
        total_samples: int | None = None,
        max_iter: int | None = None,
        tol: float = 1e-5,
        init: str = "documents",
        n_init: int = 1,
        random_state: RandomState = None,
        verbose: int = 0,
        callback: Callable[[Any], bool | None] | None = None,
    ) -> None:
        self.inference = inference
        self.max_topics = max_topics
        self.max_doc_topics = max_doc_topics
        self.topic_concentration = topic_concentration
        self.doc_concentration = doc_concentration
        self.topic_word_prior = topic_word_prior
        self.concentration_prior = concentration_prior
        self.n_warmup = n_warmup
        self.n_draws = n_draws
        self.thin = thin
        self.n_chains = n_chains
        self.n_jobs = n_jobs
        self.learning_decay = learning_decay
        self.learning_offset = learning_offset
        self.batch_size = batch_size
        self.total_samples = total_samples
        self.max_iter = max_iter
        self.tol = tol
        self.init = init
        self.n_init = n_init
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the topics and how many there are.

        After Ctrl-C the model is that of the sweeps so far, with a warning.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)
            Counts of words; "vb" and "svi" take any weights that are not negative.
        y : ignored

        Returns
        -------
        self : object
        """
        self._check_settings()
        with restored_on_failure(self):
            counts = self._check_corpus(X, "fit", reset=True)
            _forget(self)
            rng = as_generator(self.random_state)
            {"gibbs": self._fit_gibbs, "vb": self._fit_batch, "svi": self._fit_minibatches}[self.inference](counts, rng)
        return self

    @available_if(_in_parts)
    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Make one step of ``inference="svi"`` on some documents, which may be the only look at them.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)
        y : ignored

        Returns
        -------
        self : object
        """
        self._check_settings()
        with restored_on_failure(self):
            going = hasattr(self, "variational_")
            counts = self._check_corpus(X, "partial_fit", reset=not going)
            if not going:
                _forget(self)
                self.n_documents_seen_, self.n_iter_ = 0, 0
                self.elbo_ = list[float]()
            self.n_documents_seen_ += counts.shape[0]
            n_total = float(self.total_samples or self.n_documents_seen_)
            model = self._variational_model()
            params = self.variational_ if going else model.start(counts, as_generator(self.random_state))
            rho = RobbinsMonro(self.learning_decay, self.learning_offset)(self.n_iter_ + 1)
            from pluri.engine import Batch

            params, elbo = natural_step(model, params, Batch(counts), rho=rho, n_total=n_total)
            self.n_iter_ += 1
            self.elbo_ = [*self.elbo_, elbo]
            self._store_variational(model, params)
        return self

    # Checks -----------------------------------------------------------------------------------------------------

    def _check_settings(self) -> None:
        for name, allowed in (("inference", INFERENCES), ("init", INITS)):
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {getattr(self, name)!r}")
        if self.init == "sequential" and self.inference != "gibbs":
            raise ValueError("init must be 'documents' or 'random' unless inference is 'gibbs', got 'sequential'")
        for name in ("max_topics", "max_doc_topics", "n_draws", "thin", "n_chains", "batch_size", "n_init"):
            check_count(getattr(self, name), name)
        check_count(self.n_warmup, "n_warmup", 0)
        for name in ("total_samples", "max_iter"):
            if getattr(self, name) is not None:
                check_count(getattr(self, name), name)
        for name in self._parameter_names:
            if getattr(self, name) != "learn":
                if isinstance(getattr(self, name), str):
                    raise ValueError(f"{name} must be a positive number or 'learn', got {getattr(self, name)!r}")
                check_positive(getattr(self, name), name)
        if self.inference == "svi" and self.topic_word_prior == "learn":
            raise ValueError("topic_word_prior must be a positive number if inference is 'svi', got 'learn'")
        check_gamma_prior(self.concentration_prior, "concentration_prior")
        RobbinsMonro(self.learning_decay, self.learning_offset)

    def _check_corpus(self, X: Any, whom: str, *, reset: bool) -> Any:
        counts = check_documents(self, X, whole=self.inference == "gibbs", reset=reset, whom=whom)
        refuse_no_words(counts, f"{type(self).__name__}.{whom}")
        return counts

    def _given(self, name: str, first: float) -> float:
        value = getattr(self, name)
        return first if value == "learn" else float(value)

    # Sampling ---------------------------------------------------------------------------------------------------

    def _fit_gibbs(self, counts: Any, rng: np.random.Generator) -> None:
        kernel = TopicGibbs(
            tokens_of(counts),
            self._given("doc_concentration", FIRST_CONCENTRATION),
            self._given("topic_concentration", FIRST_CONCENTRATION),
            self._given("topic_word_prior", FIRST_WORD_PRIOR),
            self.doc_concentration == "learn",
            self.topic_concentration == "learn",
            self.topic_word_prior == "learn",
            check_gamma_prior(self.concentration_prior, "concentration_prior"),
        )
        fitted = fit_chains(
            kernel, self.init, int(self.max_topics), n_draws=int(self.n_draws),
            n_warmup=int(self.n_warmup), n_chains=int(self.n_chains), thin=int(self.thin), random_state=rng,
            n_jobs=self.n_jobs, verbose=int(self.verbose), callback=self.callback,
        )  # fmt: skip
        self.trace_, self.log_joint_ = fitted.trace.detached(), np.asarray(fitted.trace.stats["log_density"])
        self.n_iter_ = n_sweeps(fitted.trace)
        self.n_topics_, self.n_topics_posterior_, self.n_topics_interval_ = fitted.numbers("n_topics")
        self.n_large_topics_, self.n_large_topics_posterior_, self.n_large_topics_interval_ = fitted.numbers(
            "n_large_topics"
        )
        self.topic_concentration_, self.doc_concentration_ = fitted.mean("gamma"), fitted.mean("alpha")
        self.topic_word_prior_ = fitted.mean("eta")
        self._store_topics(fitted.components, fitted.weight, fitted.prior)
        self.bound_, self.converged_ = fitted.log_joint, not fitted.rising
        warn_if_interrupted(fitted.trace.interrupted, type(self).__name__, self.n_iter_)
        if fitted.rising:
            warnings.warn(
                f"the log joint density still rises after {self.n_iter_} sweeps; raise n_warmup",
                ConvergenceWarning,
                stacklevel=3,
            )

    # Variational ------------------------------------------------------------------------------------------------

    def _variational_model(self) -> HDPVariational:
        return HDPVariational(
            self.n_features_in_,
            int(self.max_topics),
            int(self.max_doc_topics),
            None if self.doc_concentration == "learn" else float(self.doc_concentration),
            None if self.topic_concentration == "learn" else float(self.topic_concentration),
            self._given("topic_word_prior", FIRST_WORD_PRIOR),
            check_gamma_prior(self.concentration_prior, "concentration_prior"),
            self.init,
            self.n_jobs,
        )

    def _fit_batch(self, counts: Any, rng: np.random.Generator) -> None:
        max_iter = MAX_SWEEPS if self.max_iter is None else int(self.max_iter)
        model = self._variational_model()
        fitted = fit_batch(
            model, counts, rng, learn_eta=self.topic_word_prior == "learn", max_iter=max_iter, tol=float(self.tol),
            n_init=int(self.n_init), verbose=int(self.verbose), callback=self.callback,
        )  # fmt: skip
        self.elbo_, self.n_iter_, self.converged_ = fitted.elbo, fitted.n_iter, fitted.converged
        self._store_variational(fitted.model, fitted.params)
        self._warn_of(fitted.interrupted, f"{max_iter} sweeps", fitted.last_stick)

    def _fit_minibatches(self, counts: Any, rng: np.random.Generator) -> None:
        max_iter = MAX_PASSES if self.max_iter is None else int(self.max_iter)
        model = self._variational_model()
        result = stochastic_variational_inference(
            model, counts, rng=rng, batch_size=int(self.batch_size), max_iter=max_iter, tol=NOISE * float(self.tol),
            schedule=RobbinsMonro(self.learning_decay, self.learning_offset), start=model.start(counts, rng),
            verbose=int(self.verbose), on_iteration=self.callback,
        )  # fmt: skip
        self.elbo_, self.n_iter_, self.converged_ = (
            list(result.trace) or [result.elbo],
            result.n_steps,
            result.converged,
        )
        self.n_documents_seen_ = counts.shape[0]
        self._store_variational(model, result.params)
        self._warn_of(result.interrupted or result.reason == "stopped", f"{max_iter} passes", 0.0)

    def _store_variational(self, model: HDPVariational, params: Natural) -> None:
        eta = model.eta
        sizes = np.maximum(params["topic_word"] - eta, 0.0).sum(axis=1)
        shares = sizes / sizes.sum()
        order = np.argsort(-sizes, kind="stable")
        order = order[: max(1, int((shares >= COUNTED).sum()))]
        sticks, alpha = model.sticks(params), model.doc_concentration(params)
        self.variational_ = {name: np.asarray(value) for name, value in params.items()}
        self.n_topics_, self.n_large_topics_ = len(order), int((shares >= LARGE).sum())
        self.topic_word_prior_ = float(eta)
        self.doc_concentration_, self.topic_concentration_ = float(alpha.mean), float(sticks.concentration.mean)
        self._store_topics(
            params["topic_word"][order], shares[order] / shares[order].sum(), alpha.mean * sticks.weight[order]
        )
        self.bound_ = float(self.elbo_[-1])

    def _warn_of(self, interrupted: bool, what: str, last_stick: float) -> None:
        if self.n_topics_ == self.max_topics > 1:
            hint = "raise max_topics"
            if self.inference == "svi" and self.n_documents_seen_ < FEW_BATCHES * self.batch_size:
                # Topics that one step filled need many more to be emptied again.
                hint = (
                    f"'svi' needs many documents, of which there are {self.n_documents_seen_}: use inference='gibbs' "
                    "or 'vb'"
                )
            warnings.warn(f"all {self.max_topics} topics are in use; {hint}", ConvergenceWarning, stacklevel=4)
        if last_stick > 1.0 / self.max_doc_topics and self.max_doc_topics > 1:
            warnings.warn(
                f"the last stick of documents has {last_stick:.0%} of the tokens; raise max_doc_topics",
                ConvergenceWarning,
                stacklevel=4,
            )
        if not self.converged_ and not interrupted:
            warnings.warn(
                f"the bound still moves after {what}; raise max_iter or tol", ConvergenceWarning, stacklevel=4
            )

    def _store_topics(self, components: Array, weight: Array, prior: Array) -> None:
        self.components_ = np.ascontiguousarray(components)
        self.topic_word_ = self.components_ / self.components_.sum(axis=1, keepdims=True)
        self.topic_weight_, self.doc_topic_prior_ = weight, prior

    def _facts(self) -> dict[str, str]:
        facts = {"topics": str(self.n_topics_), "topics of 1 % or more": str(self.n_large_topics_)}
        if hasattr(self, "n_topics_interval_"):
            facts["95 % interval"] = "{} to {}".format(*self.n_topics_interval_)
        return {**facts, "words": str(self.topic_word_.shape[1])}

    def summary(self, n_topics: int = 20, n_words: int = 8) -> str:
        """The number of topics and the largest of them with their words, on one page of plain text."""
        check_is_fitted(self, "topic_word_")
        numbers = f"{self.n_topics_} topics, {self.n_large_topics_} with 1 % or more"
        lines = [f"{type(self).__name__} ({self.inference}): {numbers}"]
        if hasattr(self, "n_topics_interval_"):
            lines.append(
                "95 % of the draws have {} to {} topics, {} to {} with 1 % or more".format(
                    *self.n_topics_interval_, *self.n_large_topics_interval_
                )
            )
        lines.append(
            f"gamma {self.topic_concentration_:.3g}, alpha {self.doc_concentration_:.3g}, "
            f"eta {self.topic_word_prior_:.3g}"
        )
        for row in self.topic_table(n_words)[:n_topics]:
            lines.append(f"{row['topic']:>4d}  {row['share']:6.1%}  {row['words']}")
        return "\n".join(lines)


def _forget(model: HDPTopicModel) -> None:
    """Leave nothing of an earlier fit by another way."""
    kept = ("n_features_in_", "feature_names_in_", "vocabulary_")
    for name in [name for name in vars(model) if name.endswith("_") and not name.startswith("_") and name not in kept]:
        delattr(model, name)
