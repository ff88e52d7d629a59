"""Coordinates for rows: embeddings that are models of the data."""

from typing import TYPE_CHECKING

from pluri.lazy_names import lazy_names

if TYPE_CHECKING:
    from pluri.embedding.regression import (
        AlignedFactorAnalyzers,
        AlignedGibbs,
        SpectralRegression,
        SpectralRegressionGibbs,
        nsr_dimension,
    )

__all__ = ["AlignedFactorAnalyzers", "AlignedGibbs", "SpectralRegression", "SpectralRegressionGibbs", "nsr_dimension"]

__getattr__, __dir__ = lazy_names(__name__, {"regression": __all__})
