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
from typing import Any, Literal, Self

from sklearn.utils.metaestimators import available_if

from pluri.inference.variational import RobbinsMonro, natural_step
from pluri.priors.hyperpriors import Gamma
from pluri.topics.documents import forget_words
from pluri.topics.hdp.fits import HDPFits
from pluri.topics.hdp.variational_report import variational_attributes, variational_model
from pluri.validation import RandomState, as_generator, restored_on_failure


def _in_parts(model: HDPTopicModel) -> bool:
    if model.inference != "svi":
        raise AttributeError(f"partial_fit needs inference='svi', got {model.inference!r}")
    return True


class HDPTopicModel(HDPFits):
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
    topic_concentration : float, Gamma or "learn", default="learn"
        gamma, of the corpus: the larger, the more topics. A number is fixed, a :class:`pluri.priors.Gamma` is the prior
        under which it is learned; "learn" is short for ``Gamma(1.0, 1.0)``, here and in what follows.
    doc_concentration : float, Gamma or "learn", default="learn"
        alpha, of the documents: the larger, the more topics has each of them.
    topic_word_prior : float, Gamma or "learn", default=0.01
        eta, prior count of every word in every topic: the smaller, the more topics. It is not learned by "svi".
    n_warmup, n_draws, thin : int, default=200, 100, 1
        Sweeps of each chain before the draws, draws, and sweeps from one to the next.
    n_chains : int, default=2
        One from few topics and one from many, by default; see `init`.
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
    init : {"auto", "documents", "random", "sequential"}, default="auto"
        Topics begin with the words of `max_topics` documents drawn at random, or at random; chains also with tokens
        that are given topics one after another ("sequential"). "auto": chains begin from few topics ("sequential") and
        from many ("documents") in turn, so that they disagree if they have not come far enough; "vb" begins with the
        topics of a short chain, "svi" with documents.
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
        Numbers between which 95 % of the draws of all chains lie; "gibbs" only.
    r_hat_ : dict
        R-hat of ``n_topics``, ``n_large_topics`` and ``log_density``; "gibbs" only. Above 1.1 the chains disagree, of
        which the fit warns unless it is by less than one topic, or a thousandth of the log density: then the intervals
        only hold what the chains have seen so far.
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
        Whether the chains agree, or the bound has settled.
    n_iter_ : int
    n_features_in_ : int

    Notes
    -----
    In a large corpus the number of topics moves slowly, and a chain that has not arrived tells an interval that is too
    narrow. So chains begin from few topics and from many, intervals are those of all chains, and `r_hat_` tells whether
    these agree. On 20 Newsgroups they do not within 150 sweeps (``benchmarks/reproduce/hdp_newsgroups.py``, eta 0.05):
    855 to 1025 topics from "sequential", 382 to 573 from "documents", nearly all of them small, and both numbers still
    move. The log joint density is higher from "sequential", but words of new posts are predicted no better (-6.971 and
    -6.947 per word): the density alone does not choose, as it is higher where tokens have less choice. In such a corpus
    held-out words say more than `n_topics_`.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.topics.hdp import HDPTopicModel
    >>> rng = np.random.default_rng(0)
    >>> laws = np.kron(np.eye(3), np.full(4, 0.25))
    >>> X = np.array([rng.multinomial(50, rng.dirichlet([0.3] * 3) @ laws) for _ in range(100)])
    >>> model = HDPTopicModel(topic_word_prior=0.1, n_draws=300, random_state=0).fit(X)
    >>> model.n_large_topics_
    3
    >>> low, high = model.n_topics_interval_
    >>> low <= model.n_topics_ <= high
    True
    >>> model.transform(X).shape[0]
    100
    >>> model.number_in_words()[:47]
    '3 topics of 1 % or more of the words each (in 9'
    >>> model.to_lda().n_components
    3
    """

    def __init__(
        self,
        inference: str = "gibbs",
        *,
        max_topics: int = 50,
        max_doc_topics: int = 10,
        topic_concentration: float | Gamma | Literal["learn"] = "learn",
        doc_concentration: float | Gamma | Literal["learn"] = "learn",
        topic_word_prior: float | Gamma | Literal["learn"] = 0.01,
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
        init: str = "auto",
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
        self.check_settings()
        with restored_on_failure(self):
            counts = self._check_corpus(X, "fit", reset=True)
            self._forget()
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
        self.check_settings()
        with restored_on_failure(self):
            going = self._goes_on()
            counts = self._check_corpus(X, "partial_fit", reset=not going)
            if not going:
                self._forget()
                self.n_documents_seen_, self.n_iter_ = 0, 0
                self.elbo_ = list[float]()
            if hasattr(self, "topic_names_"):
                forget_words(self, self.n_features_in_)
                warnings.warn("topics are numbered anew by their sizes: their names are forgotten", stacklevel=2)
            self.n_documents_seen_ += counts.shape[0]
            n_total = float(self.total_samples or self.n_documents_seen_)
            model = variational_model(self, self.n_features_in_)
            params = self.variational_ if going else model.start(counts, as_generator(self.random_state))
            rho = RobbinsMonro(self.learning_decay, self.learning_offset)(self.n_iter_ + 1)
            from pluri.engine import Batch

            params, elbo = natural_step(model, params, Batch(counts), rho=rho, n_total=n_total)
            self.n_iter_ += 1
            self.elbo_ = [*self.elbo_, elbo]
            self._store(variational_attributes(model, params))
        return self

    def _goes_on(self) -> bool:
        """Whether there are topics to go on from; refuses those that a step cannot go on from."""
        if self._undo_steps_of_topics():
            raise ValueError(
                "partial_fit must not follow edits of the topics, of which a step knows nothing, got "
                f"{len(self._undo_steps_of_topics())}: take them back by undo(), or go on with to_lda()"
            )
        if not hasattr(self, "variational_"):
            if hasattr(self, "topic_word_"):
                raise ValueError(
                    "partial_fit must begin, or go on from inference 'vb' or 'svi', got a model whose topics were "
                    "sampled (inference='gibbs'): use a clone of it"
                )
            return False
        if len(self.variational_["topic_word"]) != self.max_topics:
            raise ValueError(
                f"max_topics must be {len(self.variational_['topic_word'])}, as it was, to go on learning, got "
                f"{self.max_topics}; fit begins anew"
            )
        return True
