"""How probable unseen documents are under a topic model: what topic models are compared by.

For flat topics with Dirichlet proportions: :func:`completion` scores halves of documents, :func:`left_to_right` whole
ones; :func:`importance_sampling` and :func:`annealed_importance` are other estimates of the same, and
:func:`exact_likelihood` the answer where there are few topics. :func:`empirical_likelihood` is for any model.
"""

from pluri.topics.held_out.annealed import annealed_importance
from pluri.topics.held_out.completion import completion, proportions
from pluri.topics.held_out.empirical import empirical_likelihood
from pluri.topics.held_out.exact import exact_likelihood
from pluri.topics.held_out.importance import importance_sampling
from pluri.topics.held_out.left_to_right import left_to_right
from pluri.topics.held_out.record import HeldOut, mean_over_draws
from pluri.topics.held_out.splitting import split_documents

__all__ = [
    "HeldOut",
    "annealed_importance",
    "completion",
    "empirical_likelihood",
    "exact_likelihood",
    "importance_sampling",
    "left_to_right",
    "mean_over_draws",
    "proportions",
    "split_documents",
]
