"""Topics in trees and graphs: hierarchical LDA by a nested Chinese restaurant process, and hierarchical Pachinko."""

from pluri.topics.hierarchical.nested_crp import HierarchicalLDA
from pluri.topics.hierarchical.pachinko import HierarchicalPachinko

__all__ = ["HierarchicalLDA", "HierarchicalPachinko"]
