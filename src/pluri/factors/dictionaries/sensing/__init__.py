"""Compressive sensing: signals from fewer linear measurements than they have values."""

from typing import TYPE_CHECKING

from pluri.lazy_names import lazy_names

if TYPE_CHECKING:
    from pluri.factors.dictionaries.sensing.baselines import (
        BasisPursuit,
        FastBCS,
        LarsLasso,
        MatchingPursuit,
        StOMP,
        VariationalBCS,
        sparse_codes,
    )
    from pluri.factors.dictionaries.sensing.coherence import averaged_coherence, gram_coherence, mutual_coherence
    from pluri.factors.dictionaries.sensing.patch_compressor import PatchCompressor
    from pluri.factors.dictionaries.sensing.projections import as_projections, measure, random_projections
    from pluri.factors.dictionaries.sensing.recovery import CompressiveRecovery
    from pluri.factors.dictionaries.sensing.svd_projection import SVDProjection

__all__ = [
    "BasisPursuit",
    "CompressiveRecovery",
    "FastBCS",
    "LarsLasso",
    "MatchingPursuit",
    "PatchCompressor",
    "SVDProjection",
    "StOMP",
    "VariationalBCS",
    "as_projections",
    "averaged_coherence",
    "gram_coherence",
    "measure",
    "mutual_coherence",
    "random_projections",
    "sparse_codes",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "baselines": [
            "BasisPursuit",
            "FastBCS",
            "LarsLasso",
            "MatchingPursuit",
            "StOMP",
            "VariationalBCS",
            "sparse_codes",
        ],
        "coherence": ["averaged_coherence", "gram_coherence", "mutual_coherence"],
        "patch_compressor": ["PatchCompressor"],
        "projections": ["as_projections", "measure", "random_projections"],
        "recovery": ["CompressiveRecovery"],
        "svd_projection": ["SVDProjection"],
    },
)
