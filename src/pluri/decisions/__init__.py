"""What to measure, try, label or choose next: decisions that spend the uncertainty of a model."""

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

__all__ = [
    "ActiveLearner",
    "Committee",
    "QueryByCommittee",
    "StrategyComparison",
    "StreamQuery",
    "committee_scores",
    "compare_strategies",
    "diverse_rows",
    "expected_error_scores",
    "fisher_scores",
    "synthesize",
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
    },
)
