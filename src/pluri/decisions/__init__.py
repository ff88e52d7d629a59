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
    },
)
