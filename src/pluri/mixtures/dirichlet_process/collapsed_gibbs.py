"""Collapsed Gibbs sampling of a Dirichlet process mixture, with moves that split and merge clusters.

Row i, taken out of its cluster, goes to cluster k with probability in proportion to ``n_k p(x_i | x_k)`` and to a new
one in proportion to ``alpha p(x_i)``. Steps of one row at a time hardly ever split a cluster that should be two; so
each sweep also proposes to split or merge the clusters of two random rows (Jain and Neal), the others being put on the
two sides one after another (Dahl) and then by a few restricted Gibbs scans, the last of which is the proposal.

References
----------
Neal (2000), Markov chain sampling methods for Dirichlet process mixture models, JCGS 9 (algorithm 3).
Jain and Neal (2004), A split-merge Markov chain Monte Carlo procedure for the Dirichlet process mixture model, JCGS 13.
Dahl (2005), Sequentially-allocated merge-split sampler for conjugate and nonconjugate Dirichlet process mixture models.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pluri.mixtures.dirichlet_process.partition_posterior import PartitionPosterior, Position
from pluri.mixtures.dirichlet_process.seating import Prepared, Seating
from pluri.validation import check_count


@dataclass(frozen=True, eq=False)
class CollapsedGibbs(PartitionPosterior):
    """Gibbs sampler on the cluster of each row, parameters integrated out.

    Parameters
    ----------
    likelihood, data, concentration
        See `PartitionPosterior`.
    n_proposals : int, default=5
        Proposals to split or merge in each sweep.
    n_scans : int, default=2
        Restricted Gibbs scans of each; 0 leaves the sequential allocation as the proposal, which is cheaper and
        accepted less often.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference import mcmc
    >>> from pluri.mixtures.dirichlet_process import CollapsedGibbs
    >>> from pluri.processes import NormalGamma
    >>> X = np.array([[0.0], [0.2], [9.0], [0.1], [9.2], [9.1]])
    >>> kernel = CollapsedGibbs(NormalGamma(1, rate=0.1, strength=0.01), X)
    >>> trace = mcmc.sample(kernel, kernel.sample_start, record=kernel.record, n_draws=200, n_warmup=20,
    ...                     n_chains=1, random_state=0, warn=False)
    >>> int(np.median(trace["n_clusters"]))
    2
    """

    n_proposals: int = 5
    n_scans: int = 2

    def __post_init__(self) -> None:
        check_count(self.n_proposals, "n_proposals", 0)
        check_count(self.n_scans, "n_scans", 0)
        super().__post_init__()

    def _sweep(
        self, rng: np.random.Generator, position: Position, prepared: Prepared
    ) -> tuple[Position, dict[str, float]]:
        alpha = float(position["alpha"])
        seating = Seating(prepared, np.asarray(position["labels"]))
        seating.sweep(rng, alpha)
        accepted = sum(seating.split_or_merge(rng, alpha, self.n_scans) for _ in range(self.n_proposals))
        labels = seating.labels
        alpha = self._draw_alpha(rng, alpha, labels)
        info = {"split_merge": accepted / max(self.n_proposals, 1)}
        return {"labels": labels, "alpha": np.asarray(alpha)}, info
