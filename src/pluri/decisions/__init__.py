"""What to measure, try, label or choose next: decisions that spend the uncertainty of a model.

Where to evaluate an expensive function (`BayesianOptimizer`, `BayesSearchCV`); which rows to label (`ActiveLearner`,
`QueryByCommittee`, `compare_strategies`); which items to choose, with a bound on what any other choice is worth
(`GreedySelector`, `BudgetSelector`, `SensorPlacement`, `SetCover`); which variable of a fitted model to observe
(`NextObservation`); and decisions where classes are rare or mistakes cost unequally (`CostSensitiveClassifier`).
"""

from typing import TYPE_CHECKING

from pluri.lazy_names import lazy_names

if TYPE_CHECKING:
    from pluri.decisions.active.batches import diverse_rows
    from pluri.decisions.active.committee import Committee, QueryByCommittee
    from pluri.decisions.active.comparison import StrategyComparison, compare_strategies
    from pluri.decisions.active.expected_error import expected_error_scores
    from pluri.decisions.active.fisher import fisher_scores
    from pluri.decisions.active.learner import ActiveLearner
    from pluri.decisions.active.stream import StreamQuery
    from pluri.decisions.active.synthesis import synthesize
    from pluri.decisions.active.uncertainty import committee_scores, uncertainty_scores
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
    from pluri.decisions.ensembles.diversity import DiversityReport, diversity_of_predictions, ensemble_diversity
    from pluri.decisions.imbalance.cost_sensitive import CostSensitiveClassifier
    from pluri.decisions.imbalance.prior_shift import correct_prior_shift
    from pluri.decisions.imbalance.tomek_links import IteratedTomekLinks, tomek_links
    from pluri.decisions.planning.next_observation import NextObservation, ObservationPlan, ObservationScores
    from pluri.decisions.selection.constraints import Cardinality, Constraint, Knapsack, PartitionMatroid, Together
    from pluri.decisions.selection.coverage import Coverage, FeatureCoverage
    from pluri.decisions.selection.covers.estimators import MaxKCover, SetCover
    from pluri.decisions.selection.gaussian_blocks import GaussianBlockInformation
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
    from pluri.decisions.selection.streaming.selector import StreamSelector
    from pluri.decisions.selection.submodularity import SubmodularityReport, check_submodular
    from pluri.decisions.selection.variance_reduction import VarianceReduction

__all__ = [
    "ActiveLearner",
    "BayesSearchCV",
    "BayesianOptimizer",
    "BudgetSelector",
    "Cardinality",
    "Categorical",
    "Committee",
    "ConicSum",
    "Constraint",
    "CostSensitiveClassifier",
    "Coverage",
    "Distributed",
    "DiversityReport",
    "Evaluation",
    "FacilityLocation",
    "FeatureCoverage",
    "FunctionOfSets",
    "GaussianBlockInformation",
    "GaussianEntropy",
    "GaussianMutualInformation",
    "GraphCut",
    "GreedySelector",
    "InformationGain",
    "Integer",
    "IteratedTomekLinks",
    "Knapsack",
    "LogDeterminant",
    "MaxKCover",
    "NextObservation",
    "ObservationPlan",
    "ObservationScores",
    "PartitionMatroid",
    "QueryByCommittee",
    "Real",
    "Selection",
    "SelectionState",
    "SensorPlacement",
    "SetCover",
    "SetFunction",
    "StrategyComparison",
    "StreamQuery",
    "StreamSelector",
    "SubmodularityReport",
    "SubmodularityWarning",
    "Surrogate",
    "Together",
    "VarianceReduction",
    "check_submodular",
    "committee_scores",
    "compare_strategies",
    "correct_prior_shift",
    "diverse_rows",
    "diversity_of_predictions",
    "ensemble_diversity",
    "expected_error_scores",
    "expected_improvement",
    "fisher_scores",
    "lower_confidence_bound",
    "probability_of_improvement",
    "synthesize",
    "tomek_links",
    "uncertainty_scores",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "active.batches": ["diverse_rows"],
        "active.committee": ["Committee", "QueryByCommittee"],
        "active.comparison": ["StrategyComparison", "compare_strategies"],
        "active.expected_error": ["expected_error_scores"],
        "active.fisher": ["fisher_scores"],
        "active.learner": ["ActiveLearner"],
        "active.stream": ["StreamQuery"],
        "active.synthesis": ["synthesize"],
        "active.uncertainty": ["committee_scores", "uncertainty_scores"],
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
        "selection.gaussian_blocks": ["GaussianBlockInformation"],
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
        "selection.streaming.selector": ["StreamSelector"],
        "selection.submodularity": ["SubmodularityReport", "check_submodular"],
        "selection.variance_reduction": ["VarianceReduction"],
    },
)
