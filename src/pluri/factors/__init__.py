"""Data as sums of parts."""

from pluri.factors.factor_analysis import BayesianFactorAnalysis
from pluri.factors.ibp_gibbs import IndianBuffetGibbs
from pluri.factors.ibp_linear_gaussian import IBPLinearGaussian

__all__ = [
    "BayesianFactorAnalysis",
    "IBPLinearGaussian",
    "IndianBuffetGibbs",
]
