"""Proving a sampler right, or finding out why it is not: tests with stated false-alarm rates.

``check_sampler(problem)`` runs all that apply and prints one table. The tests by themselves: `geweke_test`,
`simulation_based_calibration`, `invariance_test`, `goodness_of_fit`, `check_gradients`, and exact posteriors of small
problems by `enumerate_posterior`.
"""

from pluri.testing.agreement import compare_samples
from pluri.testing.calibration import CalibrationResult, simulation_based_calibration
from pluri.testing.combinatorics import (
    binary_matrices,
    canonical_labels,
    feature_allocations,
    left_ordered,
    set_partitions,
)
from pluri.testing.comparison import Comparison, Outcome, SamplerError
from pluri.testing.enumeration import DiscretePosterior, enumerate_posterior
from pluri.testing.false_alarms import Decision, Stage, decide, holm
from pluri.testing.geweke import GewekeResult, LongChains, Ranks, geweke_test
from pluri.testing.goodness import FitResult, goodness_of_fit
from pluri.testing.gradients import GradientCheck, GradientError, check_gradients
from pluri.testing.invariance import InvarianceResult, invariance_test
from pluri.testing.problem import SamplerProblem
from pluri.testing.replications import kernel_transition
from pluri.testing.sampler_checks import CheckLine
from pluri.testing.sampler_report import SamplerReport, check_sampler
from pluri.testing.uniformity import envelope, rank_chi_square, rank_envelope

__all__ = [
    "CalibrationResult",
    "CheckLine",
    "Comparison",
    "Decision",
    "DiscretePosterior",
    "FitResult",
    "GewekeResult",
    "GradientCheck",
    "GradientError",
    "InvarianceResult",
    "LongChains",
    "Outcome",
    "Ranks",
    "SamplerError",
    "SamplerProblem",
    "SamplerReport",
    "Stage",
    "binary_matrices",
    "canonical_labels",
    "check_gradients",
    "check_sampler",
    "compare_samples",
    "decide",
    "enumerate_posterior",
    "envelope",
    "feature_allocations",
    "geweke_test",
    "goodness_of_fit",
    "holm",
    "invariance_test",
    "kernel_transition",
    "left_ordered",
    "rank_chi_square",
    "rank_envelope",
    "set_partitions",
    "simulation_based_calibration",
]
