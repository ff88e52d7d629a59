"""What a fitted Dirichlet process mixture says: of new rows, of the number of clusters, of pairs of rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from pluri.inference import mcmc
from pluri.metrics.partition_losses import co_clustering_matrix
from pluri.mixtures.dirichlet_process.predictive import Predictive
from pluri.processes.conjugate_clusters.records import Array, Integers, checked_data
from pluri.validation import RandomState, as_generator, check_count, weighted_mean

#: Above this number of rows a matrix of all pairs is not made.
MOST_PAIRS = 20_000


class MixtureAnswers(mcmc.Sampled):
    """The queries of `DirichletProcessMixture`."""

    family: Any
    inference: str
    random_state: RandomState
    likelihood_: Any
    predictive_: Predictive
    cluster_centers_: Array
    weights_: Array
    n_clusters_: int
    n_features_in_: int
    n_tokens_: int
    n_iter_: int
    converged_: bool
    concentration_: float
    lower_bound_: float

    @abstractmethod
    def _check_rows(self, X: Any, *, fitting: bool) -> Any:
        """Rows that the likelihood accepts."""

    def _checked(self, X: Any) -> tuple[Any, Predictive]:
        check_is_fitted(self, "predictive_")
        return checked_data(self.likelihood_, self._check_rows(X, fitting=False)), self.predictive_

    def predict_proba(self, X: Any) -> Array:
        """Probability of each cluster of the point estimate for each row, given that it is of one of them.

        An average over draws: a cluster of a draw counts for the clusters of the point estimate in proportion to the
        members that it shares with them.

        Returns
        -------
        array of shape (n_samples, n_clusters_)
        """
        data, predictive = self._checked(X)
        return predictive.probabilities(data)

    def predict(self, X: Any) -> Integers:
        """Likeliest cluster of each row."""
        return np.asarray(self.predict_proba(X).argmax(axis=1))

    def novelty(self, X: Any) -> Array:
        """Probability that each row is of a cluster of which no row was seen; zero for a truncated approximation."""
        data, predictive = self._checked(X)
        return predictive.new_probability(data)

    def score_samples(self, X: Any) -> Array:
        """Log of the posterior predictive density of each row, averaged over draws."""
        data, predictive = self._checked(X)
        return predictive.log_density(data)

    def score(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> float:
        """Mean of :meth:`score_samples`, weighted if `sample_weight` is given."""
        return weighted_mean(self.score_samples(X), sample_weight)

    def sample(self, n_samples: int = 1) -> tuple[Array, Integers]:
        """Draw rows from the posterior predictive distribution.

        Returns
        -------
        X : array of shape (n_samples, n_features_in_)
            Rows of "multinomial" have the mean number of tokens of the data.
        labels : array of shape (n_samples,)
            Cluster of the point estimate that each belongs to most; -1 for a new one.
        """
        check_is_fitted(self, "predictive_")
        rng = as_generator(self.random_state)
        return self.predictive_.draw(rng, check_count(n_samples, "n_samples"), self.n_tokens_)

    def _draws(self) -> mcmc.Trace:
        check_is_fitted(self, "predictive_")
        if not hasattr(self, "trace_"):
            raise AttributeError("a variational fit has no draws; use inference='gibbs' or 'slice'")
        return self.trace_

    def n_components_posterior(self, min_share: float = 0.0) -> Array:
        """Posterior probabilities of the number of clusters: entry k is that of k clusters.

        Parameters
        ----------
        min_share : float, default=0.0
            Count only clusters that hold at least this share of the rows: small ones come and go. 0.01 is a good value.
        """
        labels = self._draws().flat("labels")
        if not 0 <= min_share < 1:
            raise ValueError(f"min_share must be at least 0 and below 1, got {min_share!r}")
        least = max(1.0, min_share * labels.shape[1])
        numbers = np.array([(np.bincount(draw) >= least).sum() for draw in labels])
        return np.bincount(numbers) / len(numbers)

    @property
    def similarity_matrix_(self) -> NDArray[np.float32]:
        """Share of the draws in which each pair of rows is in one cluster, computed when it is asked for."""
        labels = self._draws().flat("labels")
        if labels.shape[1] > MOST_PAIRS:
            raise ValueError(f"similarity_matrix_ is for at most {MOST_PAIRS} rows, got {labels.shape[1]}")
        return co_clustering_matrix(labels)

    @property
    def n_clusters_trace_(self) -> NDArray[Any]:
        """Number of clusters by chain and draw."""
        return self._draws()["n_clusters"]

    @property
    def concentration_trace_(self) -> NDArray[Any]:
        """Concentration by chain and draw."""
        return self._draws()["alpha"]

    @property
    def log_joint_trace_(self) -> NDArray[Any]:
        """Log density of data and partition by chain and draw."""
        return self._draws().stats["log_density"]

    def top_features(
        self, n_features: int = 10, feature_names: Sequence[str] | None = None
    ) -> list[list[str]] | list[list[int]]:
        """Columns with the largest centers of each cluster, such as the most frequent words.

        Parameters
        ----------
        n_features : int, default=10
        feature_names : sequence of str, optional
            Names of the columns; their numbers by default.
        """
        check_is_fitted(self, "predictive_")
        check_count(n_features, "n_features")
        if feature_names is not None and len(feature_names) != self.n_features_in_:
            raise ValueError(f"feature_names must have {self.n_features_in_} names, got {len(feature_names)}")
        order = np.argsort(-self.cluster_centers_, axis=1, kind="stable")[:, :n_features]
        if feature_names is None:
            return [[int(column) for column in row] for row in order]
        return [[str(feature_names[column]) for column in row] for row in order]

    def summary(self) -> str:
        """The fitted model on one page of plain text."""
        check_is_fitted(self, "predictive_")
        name = self.family if isinstance(self.family, str) else type(self.family).__name__
        lines = [
            f"{type(self).__name__}: {self.n_clusters_} clusters of {name} rows, {self.n_features_in_} columns",
            f"{self.inference}: {'converged' if self.converged_ else 'not converged'} after {self.n_iter_} sweeps; "
            f"concentration {self.concentration_:.3g}",
        ]
        if hasattr(self, "trace_"):
            numbers = self.n_components_posterior()
            likely = np.argsort(-numbers, kind="stable")[:4]
            lines.append("number of clusters: " + ", ".join(f"{k} ({numbers[k]:.2f})" for k in likely if numbers[k]))
        else:
            lines.append(f"bound {self.lower_bound_:.3f}")
        lines += ["", "cluster  share"]
        return "\n".join(lines + [f"{k:<7d}  {share:.4f}" for k, share in enumerate(self.weights_)])
