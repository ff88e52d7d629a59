"""Trees of topics whose nodes may have several parents, with general words at the top and special ones deep down."""

from typing import TYPE_CHECKING

from pluri.lazy_names import lazy_names

if TYPE_CHECKING:
    from pluri.topics.tree.estimator import TreeTopicModel
    from pluri.topics.tree.gibbs import TreeGibbs
    from pluri.topics.tree.settings import TreeSettings
    from pluri.topics.tree.structure import SharedChild
    from pluri.topics.tree.tree import Tree

__all__ = ["SharedChild", "Tree", "TreeGibbs", "TreeSettings", "TreeTopicModel"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "estimator": ["TreeTopicModel"],
        "gibbs": ["TreeGibbs"],
        "settings": ["TreeSettings"],
        "structure": ["SharedChild"],
        "tree": ["Tree"],
    },
)
