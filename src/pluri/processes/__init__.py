"""Random functions, distributions, partitions, binary matrices and fields: sample them, condition them, fit them.

Gaussian processes and Bayesian linear regression (the same thing seen from its weights), Dirichlet and hierarchical
Dirichlet processes, the beta process and the Indian buffet, Ising and Potts fields, and densities made by normalizing
flows.
"""

from typing import TYPE_CHECKING

from pluri.lazy_names import lazy_names

if TYPE_CHECKING:
    from pluri.processes.bayesian_linear import BayesianLinearRegression
    from pluri.processes.beta_process import AtomProbabilities, BetaProcess, LogProbabilities
    from pluri.processes.chinese_restaurant import ChineseRestaurantProcess, PolyaUrn
    from pluri.processes.concentration import (
        draw_concentration,
        draw_group_concentration,
        draw_table_counts,
        log_stirling,
    )
    from pluri.processes.conjugate import BetaBernoulli, Conjugate, DirichletMultinomial, GammaPoisson
    from pluri.processes.conjugate_gaussian import NormalGamma, NormalInverseWishart
    from pluri.processes.conjugate_regression import MatrixNormalInverseWishart
    from pluri.processes.dependent_dirichlet import DependentDirichletProcess, MeasurePath
    from pluri.processes.direct_assignment import DirectAssignmentGibbs
    from pluri.processes.dirichlet import Dirichlet, draw_log_dirichlet
    from pluri.processes.dirichlet_process import DirichletProcess, DiscreteMeasure
    from pluri.processes.flow_density import FlowDensity
    from pluri.processes.franchise_gibbs import FranchiseGibbs
    from pluri.processes.gaussian_process_classification import GaussianProcessClassifier
    from pluri.processes.gaussian_process_regression import GaussianProcessRegressor
    from pluri.processes.hierarchical_dirichlet import ChineseRestaurantFranchise, HierarchicalDirichletProcess, Seating
    from pluri.processes.indian_buffet import IndianBuffetProcess, left_ordered_form
    from pluri.processes.ising import IsingDenoiser
    from pluri.processes.ising.gibbs import LabelGibbs
    from pluri.processes.stick_breaking import StickBreaking, sticks_to_weights, weights_to_sticks

__all__ = [
    "AtomProbabilities",
    "BayesianLinearRegression",
    "BetaBernoulli",
    "BetaProcess",
    "ChineseRestaurantFranchise",
    "ChineseRestaurantProcess",
    "Conjugate",
    "DependentDirichletProcess",
    "DirectAssignmentGibbs",
    "Dirichlet",
    "DirichletMultinomial",
    "DirichletProcess",
    "DiscreteMeasure",
    "FlowDensity",
    "FranchiseGibbs",
    "GammaPoisson",
    "GaussianProcessClassifier",
    "GaussianProcessRegressor",
    "HierarchicalDirichletProcess",
    "IndianBuffetProcess",
    "IsingDenoiser",
    "LabelGibbs",
    "LogProbabilities",
    "MatrixNormalInverseWishart",
    "MeasurePath",
    "NormalGamma",
    "NormalInverseWishart",
    "PolyaUrn",
    "Seating",
    "StickBreaking",
    "draw_concentration",
    "draw_group_concentration",
    "draw_log_dirichlet",
    "draw_table_counts",
    "left_ordered_form",
    "log_stirling",
    "sticks_to_weights",
    "weights_to_sticks",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "bayesian_linear": ["BayesianLinearRegression"],
        "beta_process": ["AtomProbabilities", "BetaProcess", "LogProbabilities"],
        "chinese_restaurant": ["ChineseRestaurantProcess", "PolyaUrn"],
        "concentration": ["draw_concentration", "draw_group_concentration", "draw_table_counts", "log_stirling"],
        "conjugate": ["BetaBernoulli", "Conjugate", "DirichletMultinomial", "GammaPoisson"],
        "conjugate_gaussian": ["NormalGamma", "NormalInverseWishart"],
        "conjugate_regression": ["MatrixNormalInverseWishart"],
        "dependent_dirichlet": ["DependentDirichletProcess", "MeasurePath"],
        "direct_assignment": ["DirectAssignmentGibbs"],
        "dirichlet": ["Dirichlet", "draw_log_dirichlet"],
        "dirichlet_process": ["DirichletProcess", "DiscreteMeasure"],
        "flow_density": ["FlowDensity"],
        "franchise_gibbs": ["FranchiseGibbs"],
        "gaussian_process_classification": ["GaussianProcessClassifier"],
        "gaussian_process_regression": ["GaussianProcessRegressor"],
        "hierarchical_dirichlet": ["ChineseRestaurantFranchise", "HierarchicalDirichletProcess", "Seating"],
        "indian_buffet": ["IndianBuffetProcess", "left_ordered_form"],
        "ising": ["IsingDenoiser"],
        "ising.gibbs": ["LabelGibbs"],
        "stick_breaking": ["StickBreaking", "sticks_to_weights", "weights_to_sticks"],
    },
)
