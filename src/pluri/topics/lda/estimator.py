"""Latent Dirichlet allocation with scikit-learn's interface, learned in any of four ways."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if

from pluri.inference import mcmc
from pluri.topics.lda.documents import (
    LDAOfDocuments,
    check_settings,
    checked_documents,
    checked_priors,
    checked_weights,
    repeated,
    words_known,
)
from pluri.topics.lda.further_documents import go_on
from pluri.topics.lda.guided import SeedWords
from pluri.topics.lda.learning import LEARNERS
from pluri.validation import Allowed, Made, Number, Only, RandomState, Whole, is_source, restored_on_failure

Array = NDArray[np.float64]
Inference = Literal["vb", "svi", "gibbs", "em"]


class LatentDirichletAllocation(mcmc.Sampled, LDAOfDocuments):
    r"""Latent Dirichlet allocation: documents are mixtures of topics, topics are distributions over words.

    Shares theta_d ~ Dirichlet(alpha), topics beta_k ~ Dirichlet(eta); each token has a topic z ~ theta_d and is a word
    drawn from beta_z. The signature is scikit-learn's, and so are the results of the same algorithm; `inference`
    chooses among more of them.

    Parameters
    ----------
    n_components : int, default=10
        Number of topics.
    doc_topic_prior : float, array of shape (n_components,), Gamma or "learn", optional
        alpha; by default ``1 / n_components``. "learn" finds the likeliest, one number for each topic, except with
        "em"; with "gibbs" a :class:`pluri.priors.Gamma` is the prior of each under which that is done.
    topic_word_prior : float, array of shape (n_words,) or (n_components, n_words), Gamma or "learn", optional
        eta; by default ``1 / n_components``. With "gibbs" it can be learned as alpha is, as one number.
    learning_method : {"batch", "online"}, default="batch"
        Variational Bayes with all documents at a time, or with minibatches; if `inference` is None.
    learning_decay, learning_offset : float, default=0.7 and 10.0
        kappa and tau of the step size (tau + t)^-kappa of online learning.
    max_iter : int, default=10
        Passes over the documents of "vb", "svi" and "em"; sweeps over those of :meth:`partial_fit` with "gibbs".
    batch_size : int, default=128
        Documents of a minibatch.
    evaluate_every : int, default=-1
        Passes from one look at the perplexity to the next, which can end the fit; 0 or less: none. With "svi" the bound
        is then looked at after each pass, and the fit ends when it changes by less than a ten-thousandth.
    total_samples : int or float, optional
        Number of documents that the batches of :meth:`partial_fit` are taken from, with "vb" and "svi". By default,
        after :meth:`fit`, those seen so far; in a stream that begins with :meth:`partial_fit`, 1e6. (scikit-learn has
        1e6 in both cases, by which each minibatch after a fit outweighs the whole corpus, and what was learned from it
        is forgotten.)
    perp_tol : float, default=0.1
        The fit ends when the perplexity changes less; needs `evaluate_every`.
    mean_change_tol, max_doc_update_iter : default=1e-3 and 100
        The iterations of a document end when its expected counts move less than this in the mean over topics, or after
        so many.
    n_jobs : int, optional
        Threads. Results of "gibbs" depend on their number (one is exact, see Notes), but not on their timing.
    verbose : int, default=0
        1 shows progress.
    random_state : int, Generator, RandomState or None
    inference : {"vb", "svi", "gibbs", "em"}, optional
        "vb": batch variational Bayes. "svi": online variational Bayes. "gibbs": collapsed Gibbs sampling. "em": the
        most probable topics and shares. By default as `learning_method` says.
    n_warmup, n_draws, thin, n_chains : int, default=200, 10, 10 and 1
        For "gibbs": sweeps before the first draw, draws over which topics are averaged, sweeps between them, and
        chains, of which the one of highest log joint density is kept.
    n_init : int, default=1
        Starts of "vb" and "em", of which the best is kept.
    init : {"random", "documents"} or array of shape (n_components, n_words), default="random"
        Topics to start from: nearly alike, the words of one document for each, or given ones, as of another model.
    seed_words : list of lists or dict of lists of words (or columns), optional
        Words that topics 0, 1, ... are known to have; see Notes.
    seed_strength : float, default=100.0
        How often a seed word counts as seen in its topic beforehand.
    vocabulary : array-like of str, dict from words to columns, or fitted vectorizer, optional
        Words of the columns, for `seed_words` and for tables; names of a data frame are known without it.
    diversity : float or `pluri.priors.Diversity`, optional
        Determinantal prior that keeps topics apart; for "vb" and "em". A number is its weight as a share of the tokens
        of a topic, in the mean: 0.02 to 0.05 is mild, 0.1 strong. A `Diversity` has a weight of its own.
    engine : {"serial", "threads", "dask"}, `distributed.Client` or None, default=None
        Where "vb" and "em" run.
    callback : callable, optional
        Called after each pass of "vb", "svi" and "em", and with "gibbs" now and then once there are draws; True ends
        the fit.

    Attributes
    ----------
    components_ : array of shape (n_components, n_words)
        Parameters of the Dirichlet posterior of each topic: expected counts of words plus eta.
    topic_word_ : array of shape (n_components, n_words)
        Expected distributions over words.
    topic_weight_ : array of shape (n_components,)
        Share of each topic in the tokens.
    doc_topic_prior_, topic_word_prior_ : float or array
        As given or learned.
    bound_ : float
        Perplexity of the documents of :meth:`fit`, by the bound of their log probability given the topics; not there
        after a source, or :meth:`partial_fit`. With "gibbs" and "em" it waits, with up to a million counts, until asked
        for.
    elbo_ : list of float
        Bound (or with "em" the log posterior) in each pass.
    trace_ : Trace
        With "gibbs": draws of ``doc_topic_prior``, and of ``topic_word_prior`` if that is a number; they move only if
        they are learned. It does not have the topics of the tokens.
    log_joint_ : array
        With "gibbs": log p(words, topics of tokens) at each draw of the chain that was kept.
    converged_ : bool
        With "gibbs": whether the chains agree on that; the halves of one, if there is one.
    n_iter_, n_batch_iter_ : int
        Passes (or sweeps), and steps of online learning so far plus one; a pass over all documents counts as many steps
        as it has minibatches (in scikit-learn as one).
    n_documents_seen_, total_samples_ : float
        Documents so far, by their weights, and those that `components_` stands for; see `total_samples`.
    exp_dirichlet_component_ : array of shape (n_components, n_words)
        exp(E[log beta]), as in scikit-learn.

    Notes
    -----
    *Which one?* "gibbs" is as good as exact, and as fast as any for documents in memory; "svi" is for documents that do
    not fit into it; "vb" is what scikit-learn has; "em" with `diversity` gives the most distinct
    topics.

    *Gibbs on several threads* works on disjoint documents and words at a time, and only the totals of the topics are a
    little late; the result is not distinguishable from that of one thread but not the same.

    *Score* and *perplexity* are those of the bound of each document given the topics. (scikit-learn adds the
    divergence of the topics from their prior, which grows with the size of the vocabulary and makes the perplexity of
    new documents look worse, the more so the fewer they are.) Use :meth:`held_out` to compare models.

    *Seed words* enter through the prior: eta is raised by `seed_strength` for them. Topics that are not named are free.

    *EM* maximises over log odds: alpha and eta mean the same as for the other algorithms, and zero is allowed (pLSA).

    References
    ----------
    .. [1] Blei, D. M., Ng, A. Y. and Jordan, M. I. (2003). Latent Dirichlet allocation. JMLR 3, 993-1022.
    .. [2] Griffiths, T. L. and Steyvers, M. (2004). Finding scientific topics. PNAS 101, 5228-5235.
    .. [3] Hoffman, M. D., Blei, D. M. and Bach, F. (2010). Online learning for latent Dirichlet allocation. NIPS 23.
    .. [4] Asuncion, A., Welling, M., Smyth, P. and Teh, Y. W. (2009). On smoothing and inference for topic models. UAI.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.topics import LatentDirichletAllocation
    >>> X = np.repeat([[4, 4, 0, 0], [0, 0, 4, 4]], 20, axis=0)
    >>> words = ["ice", "goal", "vote", "law"]
    >>> model = LatentDirichletAllocation(2, inference="gibbs", vocabulary=words, random_state=0)
    >>> sorted(sorted(words) for words in model.fit(X).top_words(2))
    [['goal', 'ice'], ['law', 'vote']]
    >>> model.transform([[9, 7, 0, 0]]).max() > 0.9
    np.True_
    """

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        "n_components": Whole(1), "batch_size": Whole(1), "max_doc_update_iter": Whole(0),
        "mean_change_tol": Number(least=0), "perp_tol": Number(least=0), "learning_decay": Number(0, 1),
        "learning_offset": Number(least=0), "total_samples": Number(above=0) | Only(None), "evaluate_every": Whole(),
        "inference": Only("vb", "svi", "gibbs", "em", None), "learning_method": Only("batch", "online"),
        "init": Only("random", "documents") | Made(np.ndarray, "an array"),
    }  # fmt: skip

    def __init__(
        self,
        n_components: int = 10,
        *,
        doc_topic_prior: Any = None,
        topic_word_prior: Any = None,
        learning_method: str = "batch",
        learning_decay: float = 0.7,
        learning_offset: float = 10.0,
        max_iter: int = 10,
        batch_size: int = 128,
        evaluate_every: int = -1,
        total_samples: float | None = None,
        perp_tol: float = 0.1,
        mean_change_tol: float = 1e-3,
        max_doc_update_iter: int = 100,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: RandomState = None,
        inference: Inference | None = None,
        n_warmup: int = 200,
        n_draws: int = 10,
        thin: int = 10,
        n_chains: int = 1,
        n_init: int = 1,
        init: Literal["random", "documents"] | Array = "random",
        seed_words: SeedWords | None = None,
        seed_strength: float = 100.0,
        vocabulary: Any = None,
        diversity: Any = None,
        engine: Any = None,
        callback: Callable[[Any], bool | None] | None = None,
    ) -> None:
        self.n_components = n_components
        self.doc_topic_prior = doc_topic_prior
        self.topic_word_prior = topic_word_prior
        self.learning_method = learning_method
        self.learning_decay = learning_decay
        self.learning_offset = learning_offset
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.evaluate_every = evaluate_every
        self.total_samples = total_samples
        self.perp_tol = perp_tol
        self.mean_change_tol = mean_change_tol
        self.max_doc_update_iter = max_doc_update_iter
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state
        self.inference = inference
        self.n_warmup = n_warmup
        self.n_draws = n_draws
        self.thin = thin
        self.n_chains = n_chains
        self.n_init = n_init
        self.init = init
        self.seed_words = seed_words
        self.seed_strength = seed_strength
        self.vocabulary = vocabulary
        self.diversity = diversity
        self.engine = engine
        self.callback = callback

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the topics.

        Parameters
        ----------
        X : array-like, sparse matrix of shape (n_documents, n_words), or Source
            Counts of words. A source (`pluri.topics.CountFiles`, `pluri.engine.SparseSource`) may be larger than
            memory; "gibbs" needs documents in memory.
        y : ignored
        sample_weight : array-like of shape (n_documents,), optional
            A document of weight 2 counts as two; with "gibbs" they must be whole numbers.

        Returns
        -------
        self
        """
        how = check_settings(self)
        with restored_on_failure(self):
            data, n_words = checked_documents(self, X, how)
            words_known(self, n_words)
            weight = checked_weights(sample_weight, data)
            if weight is not None and how == "gibbs":
                data, weight = repeated(data, weight), None
            alpha, eta = checked_priors(self, n_words, how)
            LEARNERS[how](self, data, alpha, eta, weight).store(self)
            if not is_source(data):
                self._keep_bound(data, weight)
        return self

    def check_settings(self) -> None:
        """Raise what `fit` would raise of the settings alone, before there are documents."""
        check_settings(self)

    @available_if(lambda self: self._how() != "em")
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Go on learning from further documents.

        With "vb" and "svi" this is a step of online variational Bayes for each minibatch. With "gibbs" the topics of
        the new tokens are drawn given all counts so far, whose topics stay as they are.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)
        y : ignored
        sample_weight : array-like of shape (n_documents,), optional
            As in :meth:`fit`.

        Returns
        -------
        self
        """
        with restored_on_failure(self):
            go_on(self, X, sample_weight).store(self)
        return self
