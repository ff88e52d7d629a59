"""Data as sums of parts."""

from typing import TYPE_CHECKING

from pluri.lazy_names import lazy_names

if TYPE_CHECKING:
    from pluri.factors.binary_rbm import BinaryRBM
    from pluri.factors.dictionaries import BetaProcessDictionary, DictionaryGibbs
    from pluri.factors.dictionaries.sensing import (
        BasisPursuit,
        CompressiveRecovery,
        FastBCS,
        LarsLasso,
        MatchingPursuit,
        PatchCompressor,
        StOMP,
        SVDProjection,
        VariationalBCS,
    )
    from pluri.factors.exponential_family import ExponentialFamilyPCA
    from pluri.factors.factor_analysis import BayesianFactorAnalysis
    from pluri.factors.ibp_gibbs import IndianBuffetGibbs
    from pluri.factors.ibp_linear_gaussian import IBPLinearGaussian
    from pluri.factors.logistic_pca import LogisticPCA

__all__ = [
    "BasisPursuit",
    "BayesianFactorAnalysis",
    "BetaProcessDictionary",
    "BinaryRBM",
    "CompressiveRecovery",
    "DictionaryGibbs",
    "ExponentialFamilyPCA",
    "FastBCS",
    "IBPLinearGaussian",
    "IndianBuffetGibbs",
    "LarsLasso",
    "LogisticPCA",
    "MatchingPursuit",
    "PatchCompressor",
    "SVDProjection",
    "StOMP",
    "VariationalBCS",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "binary_rbm": ["BinaryRBM"],
        "dictionaries": ["BetaProcessDictionary", "DictionaryGibbs"],
        "dictionaries.sensing": [
            "BasisPursuit",
            "CompressiveRecovery",
            "FastBCS",
            "LarsLasso",
            "MatchingPursuit",
            "PatchCompressor",
            "SVDProjection",
            "StOMP",
            "VariationalBCS",
        ],
        "exponential_family": ["ExponentialFamilyPCA"],
        "factor_analysis": ["BayesianFactorAnalysis"],
        "ibp_gibbs": ["IndianBuffetGibbs"],
        "ibp_linear_gaussian": ["IBPLinearGaussian"],
        "logistic_pca": ["LogisticPCA"],
    },
)
