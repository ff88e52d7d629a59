r"""How much a label, a document or a word would tell: information scores of a Bernoulli naive Bayes classifier.

The posterior of the parameters is known: pi ~ Dirichlet(alpha + N_c), theta_jc ~ Beta(b1 + N_jc, b0 + N_c - N_jc). With
p_c = P(y = c | x), h the entropy of a coin, and theta the estimates, a document x without a label is worth::

    entropy       - sum_c p_c log p_c
    bald          H(mean_s P_s) - mean_s H(P_s), P_s under draws of the posterior: I(y; parameters | x)
    word_mi       sum_j [h(sum_c p_c theta_jc) - sum_c p_c h(theta_jc)]: what a fresh draw of each word would tell of y
    eig           sum_c p_c KL(posterior with (x, c) || posterior): what the labelled document teaches the parameters
    published_mi  sum_c p_c sum_j theta_jc log(theta_jc / mean_j)

The last one was published as a mutual information. It is linear in p, so that documents that are *certain* to be of
one class have the highest score, and it may exceed the log of the number of classes, which no information about y can.
It is there to be compared with, and warns.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, digamma, entr, gammaln, xlogy
from sklearn.utils.validation import check_is_fitted

from pluri.mixtures.naive_bayes.feature_families import BernoulliFeatures, BernoulliStatistics, product
from pluri.validation import Number, Only, RandomState, as_generator, check_count, check_value

Array = NDArray[np.float64]

#: Scores by name.
SCORES = Only("entropy", "bald", "word_mi", "eig", "published_mi")


class NaiveBayesInformation:
    """Methods of a fitted classifier all of whose columns are Bernoulli."""

    classes_: NDArray[Any]
    class_count_: Array
    class_prior_: Array
    theta_: Array
    _layout: list[tuple[Any, NDArray[np.int64]]]
    _statistics: list[Any]

    def sample_posterior(self, n_samples: int = 1, random_state: RandomState = None) -> tuple[Array, Array]:
        """Draw parameters from their posterior.

        Parameters
        ----------
        n_samples : int, default=1
        random_state : int, Generator, RandomState or None

        Returns
        -------
        class_probabilities : array of shape (n_samples, n_classes)
        probabilities : array of shape (n_samples, n_classes, n_features)
            Of a one.

        Examples
        --------
        >>> from pluri.mixtures import NaiveBayes
        >>> model = NaiveBayes().fit([[1, 0], [0, 1], [1, 1]], [0, 1, 1])
        >>> pi, theta = model.sample_posterior(5, random_state=0)
        >>> pi.shape, theta.shape
        ((5, 2), (5, 2, 2))
        """
        check_count(n_samples, "n_samples")
        alpha, ones, zeros = self._posterior_counts()
        rng = as_generator(random_state)
        return rng.dirichlet(alpha, size=n_samples), rng.beta(ones, zeros, size=(n_samples, *ones.shape))

    def feature_information(self) -> Array:
        """I(x_j; y) of each feature in nats at the estimates, both of its values included: (n_features,).

        Examples
        --------
        >>> from pluri.mixtures import NaiveBayes
        >>> X = [[1, 0, 1], [1, 0, 0], [0, 0, 1], [0, 0, 0]]
        >>> NaiveBayes(inference="ml").fit(X, [1, 1, 0, 0]).feature_information().round(4)
        array([0.6931, 0.    , 0.    ])
        """
        self._posterior_counts()
        return _coin(self.class_prior_ @ self.theta_) - self.class_prior_ @ _coin(self.theta_)

    def planning_scores(
        self,
        X: Any,
        kind: str = "bald",
        *,
        n_samples: int = 100,
        temperature: float = 1.0,
        random_state: RandomState = None,
    ) -> Array:
        """How much is to be gained by the label of each row: (n_samples,), in nats.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_rows, n_features)
        kind : {"bald", "entropy", "word_mi", "eig", "published_mi"}, default="bald"
            Information of the label about the parameters; entropy of the label; information of fresh words about the
            label; expected information of the labelled row about the parameters (which may exceed the entropy of the
            label); or a published score that rewards certainty, with a warning.
        n_samples : int, default=100
            Draws of the parameters for "bald".
        temperature : float, default=1.0
            Probabilities of the classes are taken to the power 1 / temperature: naive Bayes is too sure of itself where
            words come together.
        random_state : int, Generator, RandomState or None
            For "bald".

        Examples
        --------
        >>> from pluri.mixtures import NaiveBayes
        >>> model = NaiveBayes(inference="bayes").fit([[1, 1], [1, 0], [0, 1], [0, 0]], [1, 1, 0, 0])
        >>> model.planning_scores([[1, 1], [0, 1]], "entropy").round(3)
        array([0.637, 0.637])
        """
        check_value(kind, "kind", SCORES)
        check_value(temperature, "temperature", Number(above=0))
        check_count(n_samples, "n_samples")
        self._posterior_counts()
        if kind == "bald":
            return self._bald(X, n_samples, temperature, as_generator(random_state))
        share = self._tempered(self.predict_log_proba(X), temperature)  # type: ignore[attr-defined]
        if kind == "entropy":
            return np.asarray(entr(share).sum(axis=1))
        if kind == "word_mi":
            # A sum over words of concave functions of p, at most a block of rows at a time.
            parts = [_coin(share[i : i + 512] @ self.theta_).sum(axis=1) for i in range(0, len(share), 512)]
            return np.concatenate(parts) - share @ _coin(self.theta_).sum(axis=1)
        if kind == "eig":
            return self._expected_gain(X, share)
        warnings.warn(
            "'published_mi' is no mutual information: it is linear in the probabilities of the classes, so that it is "
            "highest for rows that are certain; 'bald', 'word_mi' and 'eig' are what it was meant to be",
            UserWarning,
            stacklevel=2,
        )
        mean = self.class_prior_ @ self.theta_
        return np.asarray(share @ xlogy(self.theta_, self.theta_ / np.where(mean > 0, mean, 1.0)).sum(axis=1))

    def _posterior_counts(self) -> tuple[Array, Array, Array]:
        """Parameters of the Dirichlet posterior (C,) and of the Beta posteriors, (C, d) and (C, d)."""
        check_is_fitted(self)
        if len(self._layout) != 1 or not isinstance(self._layout[0][0], BernoulliFeatures):
            raise ValueError("family must be 'bernoulli' for all columns for scores of information, got others")
        statistics: BernoulliStatistics = self._statistics[0]
        prior = self._layout[0][0].prior
        alpha = self._class_prior(len(self.classes_)) + self.class_count_  # type: ignore[attr-defined]
        return alpha, prior.a + statistics.ones, prior.b + (statistics.total[:, None] - statistics.ones)

    def _rows(self, X: Any) -> Any:
        return self._layout[0][0].prepare(self._checked(X))  # type: ignore[attr-defined]

    def _tempered(self, log_share: Array, temperature: float) -> Array:
        scaled = log_share / temperature
        share = np.exp(scaled - scaled.max(axis=1, keepdims=True))
        return np.asarray(share / share.sum(axis=1, keepdims=True))

    def _bald(self, X: Any, n_samples: int, temperature: float, rng: np.random.Generator) -> Array:
        rows = self._rows(X)
        kind = self._layout[0][0]
        mean = np.zeros((rows.shape[0], len(self.classes_)))
        inner = np.zeros(rows.shape[0])
        for pi, theta in zip(*self.sample_posterior(n_samples, rng)):
            share = self._tempered(np.log(pi) + kind.log_likelihood(theta, rows), temperature)
            mean += share / n_samples
            inner += entr(share).sum(axis=1) / n_samples
        return np.maximum(entr(mean).sum(axis=1) - inner, 0.0)

    def _expected_gain(self, X: Any, share: Array) -> Array:
        alpha, ones, zeros = self._posterior_counts()
        total = alpha.sum()
        # KL(Dir(alpha + e_c) || Dir(alpha)): log-normalisers, and E log pi_c under the former.
        classes = (gammaln(total + 1.0) - gammaln(total)) - (gammaln(alpha + 1.0) - gammaln(alpha))
        classes = classes + digamma(alpha + 1.0) - digamma(total + 1.0)
        with_one, with_zero = _beta_step(ones, zeros), _beta_step(zeros, ones)
        rows = self._rows(X)
        words = product(rows, (with_one - with_zero).T) + with_zero.sum(axis=1)
        return np.asarray((share * (classes + words)).sum(axis=1))


def _coin(probability: Array) -> Array:
    """Entropy of a coin."""
    return np.asarray(entr(probability) + entr(1.0 - probability))


def _beta_step(a: Array, b: Array) -> Array:
    """KL(Beta(a + 1, b) || Beta(a, b))."""
    return np.asarray(betaln(a, b) - betaln(a + 1.0, b) + digamma(a + 1.0) - digamma(a + b + 1.0))
