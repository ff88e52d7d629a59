"""Concept graphs: topics as nodes, documents as paths, stick-breaking priors on the steps between them."""

from pluri.topics.concept_graph.edge_prior import edge_predictive, log_swap_ratio
from pluri.topics.concept_graph.estimator import ConceptGraph
from pluri.topics.concept_graph.gibbs import ConceptGraphGibbs
from pluri.topics.concept_graph.given_graph import GivenGraph, read_graph
from pluri.topics.concept_graph.levels import level_distribution
from pluri.topics.concept_graph.recovery import GraphRecovery, graph_recovery

__all__ = [
    "ConceptGraph",
    "ConceptGraphGibbs",
    "GivenGraph",
    "GraphRecovery",
    "edge_predictive",
    "graph_recovery",
    "level_distribution",
    "log_swap_ratio",
    "read_graph",
]
