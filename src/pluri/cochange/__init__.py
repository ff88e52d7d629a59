"""Which files change together: commit histories, models of them, and suggestions.

>>> from pluri.cochange import CommitHistory, FileRecommender
>>> history = CommitHistory.from_git(".", support_on="all")  # doctest: +SKIP
>>> FileRecommender().fit(history).recommend(["src/main.c"])  # doctest: +SKIP

On the command line: ``pluri cochange``.
"""

from typing import TYPE_CHECKING

from pluri.lazy_names import lazy_names

if TYPE_CHECKING:
    from pluri.cochange.evaluation import Evaluation, evaluate
    from pluri.cochange.history import CommitHistory
    from pluri.cochange.models.baselines import CoOccurrence, FrequentItemsets, Popularity, Rule, association_rules
    from pluri.cochange.models.mining import apriori, fpgrowth, fpmax
    from pluri.cochange.models.neighbors import CommitNeighbors
    from pluri.cochange.published import cooccurrence_tuned, fim_fixed
    from pluri.cochange.recommender import FileRecommender
    from pluri.cochange.repository.git import GitError
    from pluri.cochange.suggester import Suggestion
    from pluri.cochange.transactions import group_changes
    from pluri.cochange.tuning import Tuning, tune

__all__ = [
    "CoOccurrence",
    "CommitHistory",
    "CommitNeighbors",
    "Evaluation",
    "FileRecommender",
    "FrequentItemsets",
    "GitError",
    "Popularity",
    "Rule",
    "Suggestion",
    "Tuning",
    "apriori",
    "association_rules",
    "cooccurrence_tuned",
    "evaluate",
    "fim_fixed",
    "fpgrowth",
    "fpmax",
    "group_changes",
    "tune",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "models.baselines": ["CoOccurrence", "FrequentItemsets", "Popularity", "Rule", "association_rules"],
        "evaluation": ["Evaluation", "evaluate"],
        "repository.git": ["GitError"],
        "history": ["CommitHistory"],
        "models.neighbors": ["CommitNeighbors"],
        "models.mining": ["apriori", "fpgrowth", "fpmax"],
        "published": ["cooccurrence_tuned", "fim_fixed"],
        "recommender": ["FileRecommender"],
        "suggester": ["Suggestion"],
        "transactions": ["group_changes"],
        "tuning": ["Tuning", "tune"],
    },
)
