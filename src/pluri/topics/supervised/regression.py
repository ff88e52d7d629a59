"""Topics that explain the words of documents and their ratings."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import column_or_1d

from pluri.priors.hyperpriors import Gamma
from pluri.topics.documents import Tokens
from pluri.topics.supervised.gibbs import RatingsGibbs
from pluri.topics.supervised.predictive import mixture_entropy, normal_entropy
from pluri.topics.supervised.supervised_model import SupervisedTopicModel
from pluri.topics.supervised.variational import NOISE_PRIOR, RatingsVariational
from pluri.validation import Allowed, Made, Only, RandomState

Array = NDArray[np.float64]


class SupervisedLDA(RegressorMixin, SupervisedTopicModel):
    r"""Topic model of documents with ratings.

    As latent Dirichlet allocation, and a rating y_d ~ N(w' zbar_d, sigma^2), where zbar_d are the shares of the topics
    among the words of the document. Topics that predict the ratings are preferred to topics that do not.

    Parameters
    ----------
    n_components : int, default=8
        Number of topics.
    doc_topic_prior : float or array of shape (n_components,), default=1.0
        Parameters of the Dirichlet distribution of the shares of topics.
    topic_word_prior : float, default=0.1
        Parameter of the symmetric Dirichlet distribution of each topic.
    coef_prior_var : float, default=100.0
        Prior variance of the coefficients, for ratings of variance one.
    noise_prior : Gamma, optional
        Of the precision 1 / sigma^2, for ratings of variance one; ``Gamma(0.1, 0.1)`` by default.
    inference : {"gibbs", "vb"}, default="gibbs"
        Draw everything, or maximise a bound, with coefficients and noise at their mode.
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
    components_ : array of shape (n_components, n_features_in_)
        Expected counts of words in topics, plus the prior.
    topic_word_, topic_weight_ : arrays
        Distributions over words, and shares of all tokens.
    coef_ : array of shape (n_components,)
        Rating of a document that has one topic only, for each topic.
    noise_ : float
        Variance of a rating given the topics.
    coef_draws_, noise_draws_, word_count_draws_ : arrays
        One for each draw.
    trace_ : Trace
        Draws of ``coefficients`` and ``precision``, for ratings of variance one; "gibbs" only.
    log_joint_, elbo_ : arrays
        Log joint density at the draws of the best chain; bound after each iteration.
    converged_ : bool
        Whether the chains agree on the log joint density, or the bound has settled.

    Notes
    -----
    Ratings are scaled to mean zero and variance one first, and everything is given back on their own scale: the shares
    sum to one, so that a constant is part of the coefficients. A rating of NaN is unknown: such a document takes part
    with its words. Empty documents are predicted by the prior mean of their shares.

    References
    ----------
    .. [1] Blei, D. M. and McAuliffe, J. D. (2007). Supervised topic models. NIPS 20.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.topics import SupervisedLDA
    >>> X = np.repeat([[9, 1, 0], [0, 1, 9]], 20, axis=0)
    >>> y = np.repeat([1.0, 5.0], 20)
    >>> model = SupervisedLDA(2, n_warmup=50, random_state=0).fit(X, y)
    >>> model.predict([[20, 1, 0], [1, 1, 30]]).round(0)
    array([1., 5.])
    """

    _parameters: ClassVar[dict[str, Allowed]] = {
        **SupervisedTopicModel._parameters,
        "noise_prior": Made(Gamma, "a prior (Gamma)") | Only(None),
    }
    _unsaid = np.nan
    _remark_title = "rating"

    def _remark(self, topic: int) -> str:
        return f"{self.coef_[topic]:.3g}"

    def __init__(
        self,
        n_components: int = 8,
        *,
        doc_topic_prior: Any = 1.0,
        topic_word_prior: float = 0.1,
        coef_prior_var: float = 100.0,
        noise_prior: Gamma | None = None,
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
        self.noise_prior = noise_prior
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

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predict ratings.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)
        return_std : bool, default=False
            Whether to give the standard deviation of a rating too: noise, and what is not known of the parameters and
            of the topics of the document.

        Returns
        -------
        array of shape (n_documents,), or two of them
        """
        shares = self._expected_zbar(self._documents(X))
        mean = np.mean([zbar @ w for zbar, w in zip(shares, self.coef_draws_)], axis=0)
        if not return_std:
            return mean
        means, variances = self._predictive(X, None)
        return mean, np.sqrt(variances.mean() + means.var(axis=0))

    def predict_entropy(self, X: Any, *, random_state: RandomState = None) -> Array:
        """Entropy, in nats, of the rating of each document: how little is known of it.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)
        random_state : int, Generator or None
            Of the topics of the documents, which are drawn; by default that of the model.
        """
        return mixture_entropy(*self._predictive(X, random_state))

    def mutual_information(self, X: Any, *, random_state: RandomState = None) -> Array:
        """What the rating of each document would teach, in nats: its entropy without that of the noise.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_words)
        random_state : int, Generator or None
        """
        means, variances = self._predictive(X, random_state)
        information: Array = mixture_entropy(means, variances) - normal_entropy(variances).mean()
        return information

    def _predictive(self, X: Any, random_state: RandomState) -> tuple[Array, Array]:
        """Means (n_draws, n_documents) and variances (n_draws,) of ratings."""
        drawn, repeats = self._drawn_zbar(self._documents(X), random_state), self._n_repeats
        coefficients, noise = np.repeat(self.coef_draws_, repeats, axis=0), np.repeat(self.noise_draws_, repeats)
        return np.array([zbar @ w for zbar, w in zip(drawn, coefficients)]), noise

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # on real numbers that are rounded: they are no counts of words
        return tags

    def _checked_response(self, y: Any) -> NDArray[Any]:
        response = column_or_1d(y, warn=True)
        try:
            response = np.asarray(response, dtype=np.float64)
        except (TypeError, ValueError) as wrong:
            raise ValueError(
                f"y must be ratings, which are numbers, got {response[:3].tolist()}; for classes use "
                "SupervisedLDAClassifier"
            ) from wrong
        if np.isinf(response).any():
            raise ValueError("Input y contains infinity; an unknown rating is NaN")
        known = response[~np.isnan(response)]
        if known.size == 0:
            raise ValueError("y must have at least one rating that is known, got NaN only")
        self._center = float(known.mean())
        self._scale = float(known.std()) or 1.0
        scaled: NDArray[Any] = (response - self._center) / self._scale
        return scaled

    def _sampler(self, tokens: Tokens, response: NDArray[Any], prior: Array) -> RatingsGibbs:
        return RatingsGibbs(
            tokens,
            response,
            prior,
            float(self.topic_word_prior),
            float(self.coef_prior_var),
            self.noise_prior or NOISE_PRIOR,
        )

    def _factors(self, response: NDArray[Any], prior: Array) -> RatingsVariational:
        return RatingsVariational(
            self.n_components,
            prior,
            float(self.topic_word_prior),
            float(self.coef_prior_var),
            self.noise_prior or NOISE_PRIOR,
        )

    def _keep(self, draws: dict[str, Any]) -> None:
        coefficients = draws["coefficients"] * self._scale + self._center
        noise = self._scale**2 / draws["precision"]
        self.coef_draws_ = coefficients.reshape(-1, self.n_components)
        self.noise_draws_ = noise.reshape(-1)
        self.coef_ = coefficients[draws["best"]].mean(axis=0)
        self.noise_ = float(noise[draws["best"]].mean())
