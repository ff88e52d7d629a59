"""Collapsed Gibbs sampling of latent Dirichlet allocation, and of the topics of new documents."""

from typing import TYPE_CHECKING

from pluri.lazy_names import lazy_names

if TYPE_CHECKING:
    from pluri.topics.lda.sampling.gibbs import CollapsedGibbs
    from pluri.topics.lda.sampling.priors_learning import PriorLearning
    from pluri.topics.lda.sampling.topic_assignments import GibbsState

__all__ = ["CollapsedGibbs", "GibbsState", "PriorLearning"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "gibbs": ["CollapsedGibbs"],
        "priors_learning": ["PriorLearning"],
        "topic_assignments": ["GibbsState"],
    },
)
