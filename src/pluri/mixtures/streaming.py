"""Stepwise EM: learn from batches that come one after another and are then gone.

The running statistics are averages for each unit of weight, ``s <- (1 - r) s + r s(batch)`` with
``r = (n / m + 2)^(-0.6)``, n being the weight seen so far and m that of the batch: of equal batches, the t-th has the
share ``(t + 2)^(-0.6)``, and a small one has a small share. Every batch is followed by an M-step on ``n s`` (so that
priors count for what they are worth). A stream that goes on from a fit on n rows begins with the statistics that the
fitted distributions expect of so many rows.

References
----------
.. [1] Cappe and Moulines (2009). On-line expectation-maximization algorithm for latent data models. JRSS B 71, 593-613.
.. [2] Liang and Klein (2009). Online EM for unsupervised models. NAACL.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from pluri.engine import Source, map_reduce
from pluri.mixtures.learning import MixtureParameters, MixtureProblem, MixtureStatistics

#: The share of a new batch is (how many of its size were seen + DELAY) ** -DECAY; a decay in (1/2, 1] converges.
DELAY = 2.0
DECAY = 0.6


@dataclass(frozen=True)
class StreamedStatistics:
    """What is left of the batches so far: averages for each unit of weight, how many batches, and their weight."""

    average: Any = None
    n_steps: int = 0
    n_seen: float = 0.0

    @classmethod
    def after_fit(
        cls, problem: MixtureProblem[Any], params: MixtureParameters[Any], log_likelihood: float
    ) -> StreamedStatistics:
        """What the parameters remember of `params.occupancy` rows; nothing if the family cannot tell."""
        expected = getattr(problem.family, "expected", None)
        n_seen = float(params.occupancy.sum())
        if expected is None or not 0.0 < n_seen < np.inf:
            return cls()
        shares = params.occupancy / n_seen
        average = MixtureStatistics(log_likelihood, shares, expected(params.components, shares))
        return cls(average, 0, n_seen)

    @property
    def log_likelihood(self) -> float:
        """Running average of the log density of a row."""
        return float("nan") if self.average is None else float(self.average.log_likelihood)

    def update(
        self, problem: MixtureProblem[Any], params: MixtureParameters[Any], source: Source, *, n_jobs: int | None = None
    ) -> tuple[StreamedStatistics, MixtureParameters[Any]]:
        """Statistics and parameters after one more batch."""
        stats: MixtureStatistics = map_reduce(partial(problem.expect, params), source, n_jobs=n_jobs)
        mass = float(stats.occupancy.sum())
        share = (min(self.n_seen / mass, 1e15) + DELAY) ** -DECAY
        fresh = _scaled(stats, 1.0 / mass)
        average = fresh if self.average is None else _scaled(self.average, 1.0 - share) + _scaled(fresh, share)
        n_seen = self.n_seen + mass
        moved = problem.maximize(_scaled(average, n_seen), params)
        rebase = getattr(problem.family, "rebase", None)
        if rebase is not None:
            components = rebase(average.components, params.components, moved.components)
            average = replace(average, components=components)
        return StreamedStatistics(average, self.n_steps + 1, n_seen), moved


def _scaled(statistics: Any, factor: float) -> Any:
    """Additive statistics times a number, field by field."""
    if is_dataclass(statistics) and not isinstance(statistics, type):
        values = {f.name: _scaled(getattr(statistics, f.name), factor) for f in fields(statistics)}
        return replace(statistics, **values)
    if isinstance(statistics, tuple):
        return tuple(_scaled(value, factor) for value in statistics)
    return statistics if statistics is None else np.multiply(statistics, factor)
