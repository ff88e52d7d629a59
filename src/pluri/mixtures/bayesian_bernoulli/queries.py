"""Everything one can ask a Bernoulli mixture whose clusters were sampled."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from pluri.factors.binary_completion import BLOCK, BinaryRows, check_binary
from pluri.mixtures.bayesian_bernoulli.predictive import ClusterTables
from pluri.validation import as_generator, check_count

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Above this number of rows a matrix of all pairs is not made.
MOST_PAIRS = 20_000


class ClusterQueries:
    """Methods of a fitted mixture, answered by the tables of its samples of the labels."""

    binarize: float | None
    combine: str
    random_state: Any
    n_features_in_: int
    n_clusters_: int
    n_iter_: int
    best_chain_: int
    converged_: bool
    lower_bound_: float
    r_hat_: float
    labels_: Integers
    sample_labels_: Integers
    probabilities_: Array
    tables_: ClusterTables

    def _best(self) -> slice:
        """Rows of the tables of the best sample; the last one is the empty cluster."""
        return self.tables_.of_sample(self.best_chain_)

    def _blocks(self, X: Any) -> list[tuple[slice, BinaryRows]]:
        check_is_fitted(self)
        rows = check_binary(self, X, binarize=self.binarize, reset=False)
        step = max(1, BLOCK // self.tables_.n_rows)
        return [(slice(first, first + step), rows[first : first + step]) for first in range(0, rows.shape[0], step)]

    def _complete(self, ones: Any, zeros: Any) -> Array:
        tables = self.tables_
        answer = np.empty(ones.shape)
        step = max(1, BLOCK // tables.n_rows)
        for first in range(0, len(answer), step):
            part = slice(first, first + step)
            weights = tables.posterior(tables.log_joint(ones[part], zeros[part]), self.combine)
            answer[part] = tables.expected(weights)
        return answer

    def score_samples(self, X: Any) -> Array:
        """Log of the posterior predictive probability of each row, averaged over the samples.

        Missing entries of X are summed out.
        """
        total = [self.tables_.log_joint_complete(rows) for _, rows in self._blocks(X)]
        return np.concatenate([np.logaddexp.reduce(part, axis=1) for part in total]) - np.log(len(self.sample_labels_))

    def score(self, X: Any, y: Any = None) -> float:
        """Mean of :meth:`score_samples`."""
        return float(self.score_samples(X).mean())

    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the clusters of the best sample.

        Only of that one: cluster numbers of different samples do not correspond, so that averages over samples would
        mean nothing. See :meth:`similarity_matrix` for what can be averaged.

        Returns
        -------
        array of shape (n_samples, n_clusters_ + 1)
            The last column is a cluster that has no members yet.
        """
        parts = []
        for _, rows in self._blocks(X):
            joint = self.tables_.log_joint_complete(rows)[:, self._best()]
            parts.append(np.exp(joint - np.logaddexp.reduce(joint, axis=1, keepdims=True)))
        return np.concatenate(parts)

    def predict(self, X: Any) -> Integers:
        """Likeliest cluster of the best sample; `n_clusters_` for a row that is like none of them."""
        return self.predict_proba(X).argmax(axis=1)

    def similarity_matrix(self, rows: ArrayLike | None = None) -> NDArray[np.float32]:
        """Share of the samples in which two rows of the training data are in the same cluster.

        Parameters
        ----------
        rows : sequence of int, optional
            Numbers of the rows; all by default, of which there must not be more than 20,000.

        Returns
        -------
        array of shape (n_rows, n_rows), float32
        """
        from pluri.metrics.partition_losses import co_clustering_matrix

        check_is_fitted(self)
        labels = self.sample_labels_
        if rows is not None:
            chosen = np.asarray(rows)
            usable = chosen.ndim == 1 and chosen.size > 0 and chosen.dtype.kind in "iu"
            if not usable or chosen.min() < 0 or chosen.max() >= labels.shape[1]:
                raise ValueError(f"rows must be numbers of rows from 0 to {labels.shape[1] - 1}, got {rows!r}")
            labels = labels[:, chosen]
        if labels.shape[1] > MOST_PAIRS:
            raise ValueError(f"rows must be given, at most {MOST_PAIRS}, got {labels.shape[1]}: all pairs need room")
        return co_clustering_matrix(labels)

    def sample(self, n_samples: int = 1) -> tuple[Integers, Integers]:
        """Draw rows from the posterior predictive distribution, each from a sample chosen at random.

        Returns
        -------
        X : array of shape (n_samples, n_features) of zeros and ones
        labels : array of shape (n_samples,)
            Row of `tables_`: which cluster of which sample.
        """
        check_is_fitted(self)
        check_count(n_samples, "n_samples")
        rng = as_generator(self.random_state)
        weights = np.exp(self.tables_.log_weight)
        labels = rng.choice(len(weights), size=int(n_samples), p=weights / weights.sum())
        X = np.empty((int(n_samples), self.n_features_in_), dtype=np.int64)
        for cluster in np.unique(labels):
            members = np.flatnonzero(labels == cluster)
            theta = self.tables_.probabilities(slice(int(cluster), int(cluster) + 1))
            X[members] = rng.random((len(members), X.shape[1])) < theta
        return X, labels

    def summary(self, n_clusters: int = 10, n_columns: int = 5) -> str:
        """The largest clusters and their likeliest columns, on one page of plain text."""
        check_is_fitted(self)
        state = "settled" if self.converged_ else "not settled"
        names = getattr(self, "feature_names_in_", np.arange(self.n_features_in_))
        lines = [
            f"{type(self).__name__}: {len(self.sample_labels_)} chains of {self.n_iter_} sweeps, "
            f"{self.n_clusters_} clusters in the best",
            f"log p(labels, X) {self.lower_bound_:.2f}, {state}; split R-hat {self.r_hat_:.2f}",
            "",
            "cluster  rows    likeliest columns",
        ]
        sizes = np.bincount(self.labels_)
        for j in range(min(n_clusters, self.n_clusters_)):
            order = np.argsort(-self.probabilities_[j], kind="stable")[:n_columns]
            columns = ", ".join(f"{names[i]} {self.probabilities_[j, i]:.2f}" for i in order)
            lines.append(f"{j:<7d}  {sizes[j]:<6d}  {columns}")
        return "\n".join(lines)
