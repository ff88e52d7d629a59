"""What to measure, try, label or choose next: decisions that spend the uncertainty of a model."""

from typing import TYPE_CHECKING

from pluri.lazy_names import lazy_names

if TYPE_CHECKING:
    from pluri.decisions.bayesian_optimization.acquisition import (
        expected_improvement,
        lower_confidence_bound,
        probability_of_improvement,
    )
    from pluri.decisions.bayesian_optimization.dimensions import Categorical, Integer, Real
    from pluri.decisions.bayesian_optimization.distributed import Distributed
    from pluri.decisions.bayesian_optimization.history import Evaluation
    from pluri.decisions.bayesian_optimization.optimizer import BayesianOptimizer
    from pluri.decisions.bayesian_optimization.search_cv import BayesSearchCV
    from pluri.decisions.bayesian_optimization.surrogate import Surrogate

__all__ = [
    "BayesSearchCV",
    "BayesianOptimizer",
    "Categorical",
    "Distributed",
    "Evaluation",
    "Integer",
    "Real",
    "Surrogate",
    "expected_improvement",
    "lower_confidence_bound",
    "probability_of_improvement",
    from pluri.decisions.ensembles.diversity import DiversityReport, diversity_of_predictions, ensemble_diversity
    from pluri.decisions.imbalance.cost_sensitive import CostSensitiveClassifier
    from pluri.decisions.imbalance.prior_shift import correct_prior_shift
    from pluri.decisions.imbalance.tomek_links import IteratedTomekLinks, tomek_links
    from pluri.decisions.planning.next_observation import NextObservation, ObservationPlan, ObservationScores
    from pluri.decisions.selection.constraints import Cardinality, Constraint, Knapsack, PartitionMatroid, Together
    from pluri.decisions.selection.coverage import Coverage, FeatureCoverage
    from pluri.decisions.selection.covers.estimators import MaxKCover, SetCover
    from pluri.decisions.selection.gaussian_functions import (
        GaussianEntropy,
        GaussianMutualInformation,
        InformationGain,
        LogDeterminant,
    )
    from pluri.decisions.selection.greedy import Selection, SubmodularityWarning
    from pluri.decisions.selection.selectors import BudgetSelector, GreedySelector
    from pluri.decisions.selection.sensors import SensorPlacement
    from pluri.decisions.selection.set_function import ConicSum, FunctionOfSets, SelectionState, SetFunction
    from pluri.decisions.selection.similarity_functions import FacilityLocation, GraphCut
    from pluri.decisions.selection.submodularity import SubmodularityReport, check_submodular
    from pluri.decisions.selection.variance_reduction import VarianceReduction

__all__ = [
    "BudgetSelector",
    "Cardinality",
    "ConicSum",
    "Constraint",
    "CostSensitiveClassifier",
    "Coverage",
    "DiversityReport",
    "FacilityLocation",
    "FeatureCoverage",
    "FunctionOfSets",
    "GaussianEntropy",
    "GaussianMutualInformation",
    "GraphCut",
    "GreedySelector",
    "InformationGain",
    "IteratedTomekLinks",
    "Knapsack",
    "LogDeterminant",
    "MaxKCover",
    "NextObservation",
    "ObservationPlan",
    "ObservationScores",
    "PartitionMatroid",
    "Selection",
    "SelectionState",
    "SensorPlacement",
    "SetCover",
    "SetFunction",
    "SubmodularityReport",
    "SubmodularityWarning",
    "Together",
    "VarianceReduction",
    "check_submodular",
    "correct_prior_shift",
    "diversity_of_predictions",
    "ensemble_diversity",
    "tomek_links",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "bayesian_optimization.acquisition": [
            "expected_improvement",
            "lower_confidence_bound",
            "probability_of_improvement",
        ],
        "bayesian_optimization.dimensions": ["Categorical", "Integer", "Real"],
        "bayesian_optimization.distributed": ["Distributed"],
        "bayesian_optimization.history": ["Evaluation"],
        "bayesian_optimization.optimizer": ["BayesianOptimizer"],
        "bayesian_optimization.search_cv": ["BayesSearchCV"],
        "bayesian_optimization.surrogate": ["Surrogate"],
        "ensembles.diversity": ["DiversityReport", "diversity_of_predictions", "ensemble_diversity"],
        "imbalance.cost_sensitive": ["CostSensitiveClassifier"],
        "imbalance.prior_shift": ["correct_prior_shift"],
        "imbalance.tomek_links": ["IteratedTomekLinks", "tomek_links"],
        "planning.next_observation": ["NextObservation", "ObservationPlan", "ObservationScores"],
        "selection.constraints": ["Cardinality", "Constraint", "Knapsack", "PartitionMatroid", "Together"],
        "selection.coverage": ["Coverage", "FeatureCoverage"],
        "selection.covers.estimators": ["MaxKCover", "SetCover"],
        "selection.gaussian_functions": [
            "GaussianEntropy",
            "GaussianMutualInformation",
            "InformationGain",
            "LogDeterminant",
        ],
        "selection.greedy": ["Selection", "SubmodularityWarning"],
        "selection.selectors": ["BudgetSelector", "GreedySelector"],
        "selection.sensors": ["SensorPlacement"],
        "selection.set_function": ["ConicSum", "FunctionOfSets", "SelectionState", "SetFunction"],
        "selection.similarity_functions": ["FacilityLocation", "GraphCut"],
        "selection.submodularity": ["SubmodularityReport", "check_submodular"],
        "selection.variance_reduction": ["VarianceReduction"],
    },
)
