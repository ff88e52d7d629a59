r"""Gibbs sampling of topics that must explain words and what was said of each document.

Topics and shares are integrated out; with zbar_d the shares of topics among the tokens of document d,

    p(z_di = k | rest)  proportional to  (n_dk + alpha_k) (n_kv + eta) / (n_k + V eta) p(y_d | zbar_d with z_di = k).

*Ratings*: y_d ~ N(w' zbar_d, 1 / tau), w_k ~ N(0, s^2), tau ~ Gamma(a, b). Given the topics of the tokens, w and tau
have conjugate conditionals, and all is drawn [1]_.

*Classes*: p(y_d = c) proportional to exp(w_c' zbar_d), w_ck ~ N(0, s^2). The coefficients are either drawn, by
elliptical slices [2]_, or put at their mode given the topics, which makes the whole a stochastic EM algorithm.

A document without a rating (NaN) or a class (-1) takes part with its words.

References
----------
.. [1] Blei, D. M. and McAuliffe, J. D. (2007). Supervised topic models. NIPS 20.
.. [2] Murray, I., Adams, R. P. and MacKay, D. J. C. (2010). Elliptical slice sampling. AISTATS.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, logsumexp

from pluri.priors.hyperpriors import Gamma
from pluri.topics.supervised.chain_state import Position, SupervisedState
from pluri.topics.supervised.response_records import Classes, ClassRoom, Ratings
from pluri.topics.supervised.supervised_chain import _SupervisedChain
from pluri.topics.supervised.variational import NOISE_PRIOR

Array = NDArray[np.float64]
#: Steps towards the mode of the coefficients after each sweep: they go on from where they are.
M_STEPS = 5
#: Exponentials of more than this are left to logarithms: products of two of them must be far from the largest number.
LARGEST_PRODUCT = 20.0


#: Elliptical slices for each sweep over the tokens: they are cheap beside it.
SLICES = 5


def log_classes(coefficients: Array, shares: Array, label: NDArray[Any]) -> float:
    """Log probability of the classes of documents."""
    scores = log_softmax(shares @ coefficients.T, axis=1)
    return float(scores[np.arange(len(label)), label].sum())


def slice_coefficients(
    rng: np.random.Generator, coefficients: Array, shares: Array, label: NDArray[Any], prior_var: float
) -> Array:
    """Move the coefficients some times by elliptical slices."""
    current = coefficients
    for _ in range(SLICES):
        threshold = log_classes(current, shares, label) + math.log(rng.uniform())
        other = rng.normal(scale=math.sqrt(prior_var), size=current.shape)
        angle = rng.uniform(0, 2 * math.pi)
        low, high = angle - 2 * math.pi, angle
        while True:
            proposal = math.cos(angle) * current + math.sin(angle) * other
            if log_classes(proposal, shares, label) > threshold:
                current = proposal
                break
            low, high = (angle, high) if angle < 0 else (low, angle)
            angle = rng.uniform(low, high)
    return current


def maximal_coefficients(
    start: Array, shares: Array, label: NDArray[Any], prior_var: float, *, max_iter: int = 30
) -> Array:
    """Mode of the coefficients of classes given the shares of topics, from a start.

    Parameters
    ----------
    start : array of shape (n_classes, n_topics)
    shares : array of shape (n_documents, n_topics)
    label : int array of shape (n_documents,)
    prior_var : float
    max_iter : int, default=30

    Returns
    -------
    array of shape (n_classes, n_topics)
    """
    from scipy.optimize import minimize

    rows = np.arange(len(label))

    def loss(flat: Array) -> tuple[float, Array]:
        coefficients = flat.reshape(start.shape)
        scores = shares @ coefficients.T
        totals = logsumexp(scores, axis=1, keepdims=True)
        value = float((totals[:, 0] - scores[rows, label]).sum()) + 0.5 * float(flat @ flat) / prior_var
        gap = np.exp(scores - totals)
        gap[rows, label] -= 1.0
        return value, (gap.T @ shares).ravel() + flat / prior_var

    found = minimize(loss, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": max_iter})
    best: Array = found.x.reshape(start.shape)
    return best


@dataclass(frozen=True, eq=False)
class RatingsGibbs(_SupervisedChain):
    """Topics of tokens, coefficients and noise given words and ratings: a kernel for `pluri.inference.mcmc.sample`.

    Positions are dicts: ``topics`` (n_tokens,), ``coefficients`` (n_topics,), ``precision`` (a number).

    Parameters
    ----------
    tokens : Tokens
    response : float array of shape (n_documents,)
        Ratings; NaN where there is none.
    doc_topic_prior : array of shape (n_topics,)
    topic_word_prior, coef_prior_var : float
    noise_prior : Gamma, default=Gamma(0.1, 0.1)
        Of the precision.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from pluri.inference import mcmc
    >>> from pluri.topics.documents import tokens_of
    >>> from pluri.topics.supervised.gibbs import RatingsGibbs
    >>> X = sparse.csr_matrix(np.repeat([[9, 1, 0], [0, 1, 9]], 20, axis=0))
    >>> kernel = RatingsGibbs(tokens_of(X), np.repeat([-1.0, 1.0], 20), np.ones(2))
    >>> trace = mcmc.sample(kernel, kernel.start, record=kernel.record, n_draws=50, n_warmup=50, n_chains=1,
    ...                     random_state=0, warn=False)
    >>> np.sort(trace["coefficients"][0].mean(axis=0)).round(0)
    array([-1.,  1.])
    """

    noise_prior: Gamma = NOISE_PRIOR

    def sample_coefficients(self, rng: np.random.Generator) -> dict[str, NDArray[Any]]:
        """Draw coefficients and precision from their prior."""
        precision = max(self.noise_prior.sample(rng), 1e-300)
        return {
            "coefficients": rng.normal(scale=math.sqrt(self.coef_prior_var), size=self.n_topics),
            "precision": np.array(precision),
        }

    def _start_coefficients(self) -> dict[str, NDArray[Any]]:
        """No effect of topics, and the noise of the ratings."""
        rated = self.response[np.isfinite(self.response)]
        variance = float(rated.var()) if rated.size > 1 and rated.var() > 0 else 1.0
        return {"coefficients": np.zeros(self.n_topics), "precision": np.array(1.0 / variance)}

    def sample_response(self, rng: np.random.Generator, shares: Array, position: Position) -> NDArray[Any]:
        """Draw ratings; those that are missing stay so."""
        mean = shares @ position["coefficients"]
        drawn = rng.normal(mean, 1.0 / math.sqrt(float(position["precision"])))
        return np.where(np.isfinite(self.response), drawn, np.nan)

    def log_response(self, shares: Array, position: Position) -> float:
        """Log density of ratings, coefficients and precision."""
        rated = np.isfinite(self.response)
        precision = float(position["precision"])
        residual = self.response[rated] - shares[rated] @ position["coefficients"]
        value = 0.5 * rated.sum() * math.log(precision / (2 * math.pi)) - 0.5 * precision * float(residual @ residual)
        return value + self.noise_prior.log_density(precision) + self._log_coefficients(position["coefficients"])

    def _sweep(self, rng: np.random.Generator, state: SupervisedState) -> None:
        from pluri.topics.supervised._gibbs_kernels import sweep_ratings

        ratings = Ratings.of(self.response, state.coefficients["coefficients"], float(state.coefficients["precision"]))
        seated, priors, seeds, room = self._given(rng, state)
        pull, step = np.zeros(self.n_topics), np.zeros_like(room.share)
        sweep_ratings(self.tokens.arrays, seated, priors, ratings, seeds, room, pull, step)

    def _respond(self, rng: np.random.Generator, state: SupervisedState) -> dict[str, NDArray[Any]]:
        rated, precision = np.isfinite(self.response), float(state.coefficients["precision"])
        shares, said = state.shares()[rated], self.response[rated]
        inverse = shares.T @ shares * precision + np.eye(self.n_topics) / self.coef_prior_var
        root = np.linalg.cholesky(inverse)
        mean = np.linalg.solve(inverse, shares.T @ said * precision)
        coefficients = mean + np.linalg.solve(root.T, rng.standard_normal(self.n_topics))
        residual = said - shares @ coefficients
        shape, rate = self.noise_prior.shape, self.noise_prior.rate
        precision = rng.gamma(shape + 0.5 * rated.sum()) / (rate + 0.5 * float(residual @ residual))
        return {"coefficients": coefficients, "precision": np.array(max(precision, 1e-300))}


@dataclass(frozen=True, eq=False)
class ClassesGibbs(_SupervisedChain):
    """Topics of tokens and coefficients given words and classes: a kernel for `pluri.inference.mcmc.sample`.

    Positions are dicts: ``topics`` (n_tokens,) and ``coefficients`` (n_classes, n_topics).

    Parameters
    ----------
    tokens : Tokens
    response : int array of shape (n_documents,)
        Classes 0, 1, ...; -1 where there is none.
    doc_topic_prior : array of shape (n_topics,)
    topic_word_prior, coef_prior_var : float
    n_classes : int
    learning : {"maximize", "draw", "fixed"}, default="maximize"
        What is done about the coefficients after each sweep.
    """

    n_classes: int = 2
    learning: Literal["maximize", "draw", "fixed"] = "maximize"

    def sample_coefficients(self, rng: np.random.Generator) -> dict[str, NDArray[Any]]:
        """Draw coefficients from their prior."""
        return {"coefficients": rng.normal(scale=math.sqrt(self.coef_prior_var), size=(self.n_classes, self.n_topics))}

    def _start_coefficients(self) -> dict[str, NDArray[Any]]:
        """No effect of topics."""
        return {"coefficients": np.zeros((self.n_classes, self.n_topics))}

    def sample_response(self, rng: np.random.Generator, shares: Array, position: Position) -> NDArray[Any]:
        """Draw classes; those that are missing stay so."""
        scores = shares @ position["coefficients"].T + rng.gumbel(size=(len(shares), self.n_classes))
        return np.where(self.response >= 0, scores.argmax(axis=1), -1)

    def log_response(self, shares: Array, position: Position) -> float:
        """Log density of classes and coefficients."""
        known, coefficients = self.response >= 0, position["coefficients"]
        value = log_classes(coefficients, shares[known], self.response[known])
        return value + self._log_coefficients(coefficients)

    def _sweep(self, rng: np.random.Generator, state: SupervisedState) -> None:
        from pluri.topics.supervised._gibbs_kernels import sweep_classes

        classes = Classes(self.response.astype(np.int64), state.coefficients["coefficients"], LARGEST_PRODUCT)
        seated, priors, seeds, room = self._given(rng, state)
        class_room = ClassRoom.of(self.n_topics, self.n_classes)
        sweep_classes(self.tokens.arrays, seated, priors, classes, seeds, room, class_room)

    def _respond(self, rng: np.random.Generator, state: SupervisedState) -> dict[str, NDArray[Any]]:
        known, coefficients = self.response >= 0, state.coefficients["coefficients"]
        shares, label, variance = state.shares()[known], self.response[known], self.coef_prior_var
        if self.learning == "draw":
            coefficients = slice_coefficients(rng, coefficients, shares, label, variance)
        elif self.learning == "maximize":
            coefficients = maximal_coefficients(coefficients, shares, label, variance, max_iter=M_STEPS)
        return {"coefficients": coefficients}
