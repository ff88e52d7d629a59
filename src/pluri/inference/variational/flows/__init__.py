"""Normalizing flows in NumPy: invertible layers with exact gradients, their composition, and fits of densities."""

from pluri.inference.variational.flows.coupling import AffineCoupling
from pluri.inference.variational.flows.elementwise import ElementwiseAffine, Permutation
from pluri.inference.variational.flows.fit import fit_flow
from pluri.inference.variational.flows.flow import FLOWS, Flow, FlowDesign, build_flow
from pluri.inference.variational.flows.importance import Evidence, evidence
from pluri.inference.variational.flows.layer import Layer
from pluri.inference.variational.flows.modes import ModeCollapseWarning
from pluri.inference.variational.flows.planar import Planar
from pluri.inference.variational.flows.radial import Radial
from pluri.inference.variational.flows.result import FlowResult
from pluri.inference.variational.flows.spline_coupling import SplineCoupling

__all__ = [
    "FLOWS",
    "AffineCoupling",
    "ElementwiseAffine",
    "Evidence",
    "Flow",
    "FlowDesign",
    "FlowResult",
    "Layer",
    "ModeCollapseWarning",
    "Permutation",
    "Planar",
    "Radial",
    "SplineCoupling",
    "build_flow",
    "evidence",
    "fit_flow",
]
