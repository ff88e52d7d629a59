"""Data as sums of parts."""

from pluri.factors.binary_rbm import BinaryRBM
from pluri.factors.factor_analysis import BayesianFactorAnalysis
from pluri.factors.ibp_gibbs import IndianBuffetGibbs
from pluri.factors.ibp_linear_gaussian import IBPLinearGaussian
from pluri.factors.logistic_pca import LogisticPCA

__all__ = [
    "BayesianFactorAnalysis",
    "BinaryRBM",
    "IBPLinearGaussian",
    "IndianBuffetGibbs",
    "LogisticPCA",
]
