r"""Latent Dirichlet allocation by online variational Bayes: a noisy step of the topics after each minibatch.

With the documents of a minibatch B at rest given the current topics,

.. math:: \lambda \leftarrow (1 - \rho_t) \lambda + \rho_t \Big( \eta + \frac{D}{|B|} \sum_{d \in B} n_{dw}
   \phi_{dwk} \Big), \qquad \rho_t = (t + \tau)^{-\kappa}, \; t = 1, 2, \dots

`pluri.inference.variational` runs the steps. If alpha is learned, the sum over all documents of E[log theta] is
followed in the same way, as one more natural parameter, and alpha is the maximum of the bound given that sum.

References
----------
.. [1] Hoffman, M. D., Blei, D. M. and Bach, F. (2010). Online learning for latent Dirichlet allocation. NIPS 23.
.. [2] Hoffman, M. D., Blei, D. M., Wang, C. and Paisley, J. (2013). Stochastic variational inference. JMLR 14.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.engine import Batch, Source, SparseSource
from pluri.inference.run import History
from pluri.inference.variational import Minibatches, RobbinsMonro, natural_step, stochastic_variational_inference
from pluri.topics.lda.document_source import Documents, size_of_source
from pluri.topics.lda.starts import Draws, TopicStart, first_topics, legacy_stream, random_topics
from pluri.topics.lda.topic_priors import TopicPriors
from pluri.topics.lda.variational.document_step import DocumentStep
from pluri.topics.lda.variational.online_model import Natural, OnlineModel
from pluri.validation import RandomState, as_generator

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class OnlineFit:
    """What online learning gives.

    Attributes
    ----------
    components : (n_topics, n_words) lambda
    doc_topic_prior : (n_topics,) alpha
    bound : float
        Over all documents, if it was evaluated; else the last minibatch's estimate.
    trace : list of float
        The bound after each pass, if it was evaluated.
    n_steps, n_passes : int
    n_documents : float
        Documents that the counts stand for, by their weights if they have any.
    reason : {"converged", "max_iter", "stopped", "interrupted"}
    history : History
        One row per step, with the minibatch's estimate of the bound.
    params : dict of arrays
        Natural parameters, to go on from.
    """

    components: Array
    doc_topic_prior: Array
    bound: float
    trace: list[float]
    n_steps: int
    n_passes: int
    n_documents: float
    reason: str
    history: History = field(repr=False)
    params: Natural = field(repr=False)

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C cut the fit short."""
        return self.reason == "interrupted"


def fit_online(
    data: Any,
    priors: TopicPriors,
    *,
    step: DocumentStep | None = None,
    start: TopicStart | Array = "random",
    document_start: str = "ones",
    learn_doc_topic_prior: bool = False,
    sample_weight: Array | None = None,
    batch_size: int = 512,
    shuffle: bool = True,
    tol: float | None = None,
    random_state: RandomState = None,
    n_jobs: int | None = None,
    **options: Any,
) -> OnlineFit:
    """Learn topics from minibatches.

    Parameters
    ----------
    data : csr matrix of shape (n_documents, n_words), or Source
        Counts. A source may be larger than memory; its batches are the minibatches.
    priors, step, learn_doc_topic_prior, sample_weight
        As for :func:`pluri.topics.lda.variational.batch.fit_batch`.
    start : {"random", "documents"} or array of shape (n_topics, n_words), default="random"
    document_start : {"ones", "random"}, default="ones"
        "random" starts documents as scikit-learn does; with ``shuffle=False`` and ``DocumentStep(epsilon=
        SCIKIT_LEARN_EPSILON)`` the result is scikit-learn's.
    batch_size : int, default=512
        Documents of a minibatch, for documents in memory.
    shuffle : bool, default=True
        Whether documents come in a new random order in each pass.
    tol : float, optional
        Compute the bound over all documents after each pass, which takes about as long as the pass, and end when it
        rises by at most this share of itself; negative: never. Not computed by default.
    random_state : int, Generator, RandomState or None
    n_jobs : int, optional
        Threads that share a minibatch.
    **options
        Passed on to :func:`pluri.inference.variational.stochastic_variational_inference`: `max_iter` passes (10 at most
        by default), `schedule` of the steps, `engine`, `on_iteration`, ...

    Returns
    -------
    OnlineFit

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from pluri.topics.lda.topic_priors import TopicPriors
    >>> from pluri.topics.lda.variational.online import fit_online
    >>> X = sparse.csr_matrix(np.repeat([[4, 4, 0, 0], [0, 0, 4, 4]], 50, axis=0).astype(float))
    >>> fit = fit_online(X, TopicPriors.checked(2, 4, 0.1, 0.1), batch_size=10, random_state=0)
    >>> shares = fit.components / fit.components.sum(axis=1, keepdims=True)
    >>> np.sort(shares, axis=0).round(1)
    array([[0. , 0. , 0. , 0. ],
           [0.5, 0.5, 0.5, 0.5]])
    """
    in_memory = not isinstance(data, Source)
    if tol is not None and document_start == "random":
        raise ValueError(f"tol must be None if document_start is 'random', got {tol!r}")
    if document_start not in ("ones", "random"):
        raise ValueError(f"document_start must be 'ones' or 'random' for online learning, got {document_start!r}")
    draws = legacy_stream(random_state)
    n_rows, n_documents = _numbers(data, sample_weight)
    model = OnlineModel(
        priors,
        DocumentStep() if step is None else step,
        start if isinstance(start, str) else "random",
        n_documents if learn_doc_topic_prior else None,
        draws if document_start == "random" else None,
        n_jobs,
    )
    first: Natural | None = None
    if not isinstance(start, str):
        first = model.begin(np.ascontiguousarray(np.asarray(start, dtype=np.float64).T))
    elif start == "random":
        first = model.begin(random_topics(draws, priors.doc_topic.size, priors.n_words))
    # Scikit-learn's draws must not be disturbed: a generator is made only if it is needed.
    rng = as_generator(random_state) if shuffle or first is None else np.random.default_rng(0)
    if first is None:
        first = model.initialize(Documents(data) if in_memory else data, rng)
    if in_memory and sample_weight is not None:
        if shuffle:
            order = rng.permutation(data.shape[0])
            data, sample_weight = data[order], np.asarray(sample_weight)[order]
        data = SparseSource(data, sample_weight=sample_weight, batch_size=batch_size)
    result = stochastic_variational_inference(
        model, Minibatches(data, batch_size, shuffle, n_rows), rng=rng, start=first, tol=tol, **options
    )
    components = np.ascontiguousarray(result.params["word_topic"].T)
    return OnlineFit(
        components, model.doc_topic_prior(result.params), result.elbo, result.trace, result.n_steps, result.n_passes,
        n_documents, result.reason, result.history, result.params,
    )  # fmt: skip


def _numbers(data: Any, sample_weight: Array | None) -> tuple[float, float]:
    """Number of documents, and the sum of their weights."""
    if not isinstance(data, Source):
        n_rows = float(data.shape[0])
        return n_rows, n_rows if sample_weight is None else float(np.sum(sample_weight))
    n_rows, total, _ = size_of_source(data)
    return float(n_rows), total


def partial_step(
    params: Natural,
    X: Any,
    priors: TopicPriors,
    *,
    t: int,
    n_total: float,
    step: DocumentStep | None = None,
    schedule: RobbinsMonro | None = None,
    learn_doc_topic_prior: bool = False,
    sample_weight: Array | None = None,
    draws: Draws | None = None,
    n_jobs: int | None = None,
) -> tuple[Natural, Array, float]:
    """One online step with the documents of X.

    Parameters
    ----------
    params : dict of arrays
        ``word_topic``, lambda word after word, and ``log_theta`` if alpha is learned; see `first_params`.
    X : csr matrix of shape (n_documents, n_words)
    priors : TopicPriors
    t : int
        Number of the step, from 1.
    n_total : float
        Number of documents that those of X stand for, with their weights.
    step, schedule, learn_doc_topic_prior, sample_weight, n_jobs
        As for `fit_online`.
    draws : RandomState or Generator, optional
        Start documents from draws near one, as scikit-learn does.

    Returns
    -------
    params : dict of arrays
    doc_topic_prior : array of shape (n_topics,)
    bound : float
        Estimate, before the step.
    """
    schedule = RobbinsMonro() if schedule is None else schedule
    model = OnlineModel(
        priors, DocumentStep() if step is None else step, "random", n_total if learn_doc_topic_prior else None, draws,
        n_jobs,
    )  # fmt: skip
    batch = Batch(X, weight=sample_weight)
    # A step scales by the number of rows: as if each had the mean of the weights.
    n_rows = n_total if sample_weight is None else n_total * batch.n_samples / float(np.sum(sample_weight))
    moved, bound = natural_step(model, params, batch, rho=schedule(t), n_total=n_rows)
    return moved, model.doc_topic_prior(moved), bound


def first_params(
    priors: TopicPriors,
    *,
    start: TopicStart | Array = "random",
    data: Any = None,
    n_total: float | None = None,
    learn_doc_topic_prior: bool = False,
    random_state: RandomState = None,
) -> Natural:
    """Parameters before the first `partial_step`; `data`, documents, is needed for ``start="documents"``."""
    model = OnlineModel(priors, n_total=n_total if learn_doc_topic_prior else None)
    if not isinstance(start, str):
        return model.begin(np.ascontiguousarray(np.asarray(start, dtype=np.float64).T))
    if start == "random":
        return model.begin(random_topics(legacy_stream(random_state), priors.doc_topic.size, priors.n_words))
    source = data if isinstance(data, Source) else Documents(data)
    return model.begin(first_topics(start, priors, source, as_generator(random_state)))
