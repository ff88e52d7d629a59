"""Data as sums of parts."""

from typing import TYPE_CHECKING

from pluri.lazy_names import lazy_names

if TYPE_CHECKING:
    from pluri.factors.binary_rbm import BinaryRBM
    from pluri.factors.dictionaries import BetaProcessDictionary, DictionaryGibbs
    from pluri.factors.dictionaries.images import (
        ImageDenoiser,
        ImageInpainter,
        PatchExtractor,
        denoise_image,
        inpaint_image,
    )
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
        as_projections,
        averaged_coherence,
        gram_coherence,
        measure,
        mutual_coherence,
        random_projections,
        sparse_codes,
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
    "ImageDenoiser",
    "ImageInpainter",
    "IndianBuffetGibbs",
    "LarsLasso",
    "LogisticPCA",
    "MatchingPursuit",
    "PatchCompressor",
    "PatchExtractor",
    "SVDProjection",
    "StOMP",
    "VariationalBCS",
    "as_projections",
    "averaged_coherence",
    "denoise_image",
    "gram_coherence",
    "inpaint_image",
    "measure",
    "mutual_coherence",
    "random_projections",
    "sparse_codes",
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
            "as_projections",
            "averaged_coherence",
            "gram_coherence",
            "measure",
            "mutual_coherence",
            "random_projections",
            "sparse_codes",
        ],
        "dictionaries.images": ["ImageDenoiser", "ImageInpainter", "PatchExtractor", "denoise_image", "inpaint_image"],
        "exponential_family": ["ExponentialFamilyPCA"],
        "factor_analysis": ["BayesianFactorAnalysis"],
        "ibp_gibbs": ["IndianBuffetGibbs"],
        "ibp_linear_gaussian": ["IBPLinearGaussian"],
        "logistic_pca": ["LogisticPCA"],
    },
)
