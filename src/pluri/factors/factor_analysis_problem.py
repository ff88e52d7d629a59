"""Factor analysis as EM sees it: one component of `FactorAnalyzerFamily`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pluri.engine import Batch, Source, Statistics
from pluri.engine.first_rows import weighted_initial_rows
from pluri.factors.factor_analyzer_family import FactorAnalyzerFamily, FactorStatistics
from pluri.factors.low_rank_gaussian import LowRankGaussians, Patterns, log_density

Array = NDArray[np.float64]


@dataclass(frozen=True)
class SingleStatistics(Statistics):
    """Log-likelihood of the rows, and the moments of the family."""

    log_likelihood: float
    moments: FactorStatistics


@dataclass(frozen=True)
class FactorAnalysisProblem:
    """One factor analyser for `pluri.inference.expectation_maximization`."""

    family: FactorAnalyzerFamily

    def initialize(self, source: Source, rng: np.random.Generator) -> LowRankGaussians:
        """Probabilistic PCA of (a sample of) the rows."""
        rows, weight = weighted_initial_rows(source, self.family.prepare)
        return self.family.start(rows, weight, 1, rng)[1]

    def expect(self, params: LowRankGaussians, batch: Batch) -> SingleStatistics:
        """Log-likelihood and moments of a batch of rows."""
        X = self.family.prepare(batch.X)
        weight = np.ones(len(X)) if batch.weight is None else batch.weight
        score = log_density(params, Patterns.of(X))[:, 0]
        return SingleStatistics(float(weight @ score), self.family.accumulate(params, X, weight[:, None]))

    def maximize(self, stats: SingleStatistics, params: LowRankGaussians) -> LowRankGaussians:
        """The M-step of the family."""
        return self.family.maximize(stats.moments, params)

    def log_prior(self, params: LowRankGaussians) -> float:
        """Flat."""
        return 0.0

    def pack(self, params: LowRankGaussians) -> Array:
        """Parameters as a vector."""
        return self.family.pack(params)

    def unpack(self, vector: Array, like: LowRankGaussians) -> LowRankGaussians:
        """The inverse of `pack`."""
        return self.family.unpack(vector, like)
