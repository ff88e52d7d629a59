"""Variational inference: the best q in a family, by coordinate ascent, noisy gradients, flows or projection."""

from pluri.inference.variational.black_box import ScoreGradient, fit_black_box
from pluri.inference.variational.black_box_ascent import AscentSettings
from pluri.inference.variational.black_box_result import ApproximationWarning, BlackBoxResult
from pluri.inference.variational.conjugate import ConjugateModel, ConjugateProblem, conjugate_coordinate_ascent
from pluri.inference.variational.coordinate_ascent import (
    BlockModel,
    CoordinateAscentResult,
    VariationalModel,
    coordinate_ascent,
)
from pluri.inference.variational.factor_graph import ExactPosterior, FactorGraph, enumerate_exactly
from pluri.inference.variational.families import FullRankGaussian, MeanFieldGaussian
from pluri.inference.variational.flows import Flow, FlowDesign, FlowResult, ModeCollapseWarning, build_flow, fit_flow
from pluri.inference.variational.identities import discrete_divergence, discrete_elbo
from pluri.inference.variational.mean_field import MeanFieldInference
from pluri.inference.variational.minibatches import Minibatches
from pluri.inference.variational.mixture_density import MixtureDensity
from pluri.inference.variational.projection import GaussianProjection, kl_project
from pluri.inference.variational.stochastic import (
    RobbinsMonro,
    StochasticResult,
    natural_step,
    stochastic_variational_inference,
)

__all__ = [
    "ApproximationWarning",
    "AscentSettings",
    "BlackBoxResult",
    "BlockModel",
    "ConjugateModel",
    "ConjugateProblem",
    "CoordinateAscentResult",
    "ExactPosterior",
    "FactorGraph",
    "Flow",
    "FlowDesign",
    "FlowResult",
    "FullRankGaussian",
    "GaussianProjection",
    "MeanFieldGaussian",
    "MeanFieldInference",
    "Minibatches",
    "MixtureDensity",
    "ModeCollapseWarning",
    "RobbinsMonro",
    "ScoreGradient",
    "StochasticResult",
    "VariationalModel",
    "build_flow",
    "conjugate_coordinate_ascent",
    "coordinate_ascent",
    "discrete_divergence",
    "discrete_elbo",
    "enumerate_exactly",
    "fit_black_box",
    "fit_flow",
    "kl_project",
    "natural_step",
    "stochastic_variational_inference",
]
