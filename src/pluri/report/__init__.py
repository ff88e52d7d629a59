"""Fitted models and simulations as pages: one HTML file that needs nothing else, and drawings of graphs of topics.

>>> from pluri.report import topic_report
>>> page = topic_report(model, "topics.html", title="What the letters are about")  # doctest: +SKIP

On the command line: ``pluri topics``, ``pluri embed``, ``pluri motion``, ``pluri neurons``, ``pluri denoise``,
``pluri inpaint`` and ``pluri report``.
"""

from typing import TYPE_CHECKING

from pluri.lazy_names import lazy_names

if TYPE_CHECKING:
    from pluri.report.document_index import DocumentIndex
    from pluri.report.dot import topic_dot
    from pluri.report.embedding_page import embedding_report
    from pluri.report.model_page import model_report
    from pluri.report.motion_page import motion_report
    from pluri.report.neurons.page import neuron_report
    from pluri.report.outline import tree_text
    from pluri.report.picture_page import picture_report
    from pluri.report.svg import topic_svg
    from pluri.report.topic_page import topic_report

__all__ = [
    "DocumentIndex",
    "embedding_report",
    "model_report",
    "motion_report",
    "neuron_report",
    "picture_report",
    "topic_dot",
    "topic_report",
    "topic_svg",
    "tree_text",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "document_index": ["DocumentIndex"],
        "dot": ["topic_dot"],
        "embedding_page": ["embedding_report"],
        "model_page": ["model_report"],
        "motion_page": ["motion_report"],
        "neurons.page": ["neuron_report"],
        "picture_page": ["picture_report"],
        "svg": ["topic_svg"],
        "topic_page": ["topic_report"],
        "outline": ["tree_text"],
    },
)
