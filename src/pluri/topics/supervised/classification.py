"""Topics that explain the words of documents and their classes."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from pluri.topics.documents import Tokens
from pluri.topics.supervised.gibbs import ClassesGibbs
from pluri.topics.supervised.predictive import class_entropy
from pluri.topics.supervised.supervised_model import SupervisedTopicModel
from pluri.topics.supervised.variational import ClassesVariational
from pluri.validation import Allowed, Only, RandomState

Array = NDArray[np.float64]


class SupervisedLDAClassifier(ClassifierMixin, SupervisedTopicModel):
    r"""Topic model of documents with classes.

    As latent Dirichlet allocation, and a class c with probability proportional to exp(w_c' zbar_d), where zbar_d are
    the shares of the topics among the words of the document.

    Parameters
    ----------
    n_components : int, default=8
        Number of topics.
    doc_topic_prior : float or array of shape (n_components,), default=1.0
        Parameters of the Dirichlet distribution of the shares of topics.
    topic_word_prior : float, default=0.1
        Parameter of the symmetric Dirichlet distribution of each topic.
    coef_prior_var : float, default=100.0
        Prior variance of the coefficients.
    coefficients : {"maximize", "draw"}, default="maximize"
        For "gibbs": put the coefficients at their mode after each sweep (stochastic EM), or draw them too.
    inference : {"gibbs", "vb"}, default="gibbs"
        Draw the topics of the words, or maximise a bound.
    n_warmup, n_draws, thin, n_chains : int, default=300, 20, 5 and 1
        For "gibbs": sweeps before the first draw, draws that are kept of each chain, sweeps between them, chains.
    max_iter, tol, n_init : default=200, 1e-6 and 3
        For "vb": iterations, relative change of the bound at which they end, and starts.
    random_state : int, Generator or None
    n_jobs : int, optional
        Chains run at a time.
    verbose : int, default=0

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    components_ : array of shape (n_components, n_features_in_)
        Expected counts of words in topics, plus the prior.
    topic_word_, topic_weight_ : arrays
        Distributions over words, and shares of all tokens.
    coef_ : array of shape (n_classes, n_components)
        Mean over the draws.
    coef_draws_, word_count_draws_ : arrays
        One for each draw.
    trace_ : Trace
        Draws of ``coefficients``; "gibbs" only.
    log_joint_, elbo_ : arrays
        Log joint density at the draws of the best chain; bound after each iteration.
    converged_ : bool
        Whether the chains agree on the log joint density, or the bound has settled.

    References
    ----------
    .. [1] Wang, C., Blei, D. and Fei-Fei, L. (2009). Simultaneous image classification and annotation. CVPR.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.topics import SupervisedLDAClassifier
    >>> X = np.repeat([[9, 1, 0], [0, 1, 9]], 20, axis=0)
    >>> model = SupervisedLDAClassifier(2, n_warmup=50, random_state=0).fit(X, ["sport"] * 20 + ["art"] * 20)
    >>> model.predict([[20, 1, 0], [1, 1, 30]])
    array(['sport', 'art'], dtype='<U5')
    """

    _parameters: ClassVar[dict[str, Allowed]] = {
        **SupervisedTopicModel._parameters,
        "coefficients": Only("maximize", "draw"),
    }
    _unsaid = -1
    _remark_title = "class"

    def _remark(self, topic: int) -> str:
        """Class that the topic supports most."""
        return str(self.classes_[self.coef_[:, topic].argmax()])

    def __init__(
        self,
        n_components: int = 8,
        *,
        doc_topic_prior: Any = 1.0,
        topic_word_prior: float = 0.1,
        coef_prior_var: float = 100.0,
        coefficients: str = "maximize",
        inference: str = "gibbs",
        n_warmup: int = 300,
        n_draws: int = 20,
        thin: int = 5,
        n_chains: int = 1,
        max_iter: int = 200,
        tol: float = 1e-6,
        n_init: int = 3,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.doc_topic_prior = doc_topic_prior
        self.topic_word_prior = topic_word_prior
        self.coef_prior_var = coef_prior_var
        self.coefficients = coefficients
        self.inference = inference
        self.n_warmup = n_warmup
        self.n_draws = n_draws
        self.thin = thin
        self.n_chains = n_chains
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def predict_proba(self, X: Any) -> Array:
        """Probability of each class.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)

        Returns
        -------
        array of shape (n_documents, n_classes)
        """
        shares = self._expected_zbar(self._documents(X))
        probabilities: Array = np.mean(
            [softmax(zbar @ w.T, axis=1) for zbar, w in zip(shares, self.coef_draws_)], axis=0
        )
        return probabilities

    def predict(self, X: Any) -> NDArray[Any]:
        """Most probable class of each document.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)
        """
        best = self.predict_proba(X).argmax(axis=1)
        named: NDArray[Any] = self.classes_[best]
        return named

    def predict_entropy(self, X: Any, *, random_state: RandomState = None) -> Array:
        """Entropy, in nats, of the class of each document: how little is known of it.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)
        random_state : int, Generator or None
            Of the topics of the documents, which are drawn; by default that of the model.
        """
        return class_entropy(self._predictive(X, random_state).mean(axis=0))

    def mutual_information(self, X: Any, *, random_state: RandomState = None) -> Array:
        """What the class of each document would teach of topics and coefficients, in nats.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)
        random_state : int, Generator or None
        """
        drawn = self._predictive(X, random_state)
        information: Array = class_entropy(drawn.mean(axis=0)) - class_entropy(drawn).mean(axis=0)
        return information

    def _predictive(self, X: Any, random_state: RandomState) -> Array:
        """Class probabilities (n_draws, n_documents, n_classes)."""
        drawn = self._drawn_zbar(self._documents(X), random_state)
        coefficients = np.repeat(self.coef_draws_, self._n_repeats, axis=0)
        return np.array([softmax(zbar @ w.T, axis=1) for zbar, w in zip(drawn, coefficients)])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # on real numbers that are rounded: they are no counts of words
        return tags

    def _checked_response(self, y: Any) -> NDArray[Any]:
        response = column_or_1d(y, warn=True)
        unknown = [row for row, label in enumerate(response.tolist()) if label is None or label != label]
        if unknown:
            raise ValueError(
                f"y must have a class for each document, got {response[unknown[0]]!r} in row {unknown[0]}: Input y "
                "contains NaN or None; leave such documents out"
            )
        check_classification_targets(response)
        self.classes_, label = np.unique(response, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y must have at least two classes, got only one class: {self.classes_[0]!r}")
        codes: NDArray[Any] = label.astype(np.int64)
        return codes

    def _sampler(self, tokens: Tokens, response: NDArray[Any], prior: Array) -> ClassesGibbs:
        return ClassesGibbs(
            tokens, response, prior, float(self.topic_word_prior), float(self.coef_prior_var), len(self.classes_),
            self.coefficients,  # type: ignore[arg-type]
        )  # fmt: skip

    def _factors(self, response: NDArray[Any], prior: Array) -> ClassesVariational:
        return ClassesVariational(
            self.n_components, prior, float(self.topic_word_prior), float(self.coef_prior_var), len(self.classes_)
        )

    def _keep(self, draws: dict[str, Any]) -> None:
        coefficients = draws["coefficients"]
        self.coef_draws_ = coefficients.reshape(-1, *coefficients.shape[2:])
        self.coef_ = coefficients[draws["best"]].mean(axis=0)
