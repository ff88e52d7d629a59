"""Variational Bayes for latent Dirichlet allocation: with all documents at a time, or with minibatches."""

from typing import TYPE_CHECKING

from pluri.lazy_names import lazy_names

if TYPE_CHECKING:
    from pluri.topics.lda.variational.batch import fit_batch
    from pluri.topics.lda.variational.document_step import DocumentStep, document_bounds, infer, local_factors
    from pluri.topics.lda.variational.factors import Topics
    from pluri.topics.lda.variational.online import fit_online, partial_step

__all__ = [
    "DocumentStep",
    "Topics",
    "document_bounds",
    "fit_batch",
    "fit_online",
    "infer",
    "local_factors",
    "partial_step",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "batch": ["fit_batch"],
        "document_step": ["DocumentStep", "document_bounds", "infer", "local_factors"],
        "factors": ["Topics"],
        "online": ["fit_online", "partial_step"],
    },
)
