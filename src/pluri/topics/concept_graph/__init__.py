"""Concept graphs: topics as nodes, documents as paths, stick-breaking priors on the steps between them."""

from pluri.topics.concept_graph.edge_prior import edge_predictive, log_swap_ratio
from pluri.topics.concept_graph.estimator import ConceptGraph
from pluri.topics.concept_graph.evaluation.levels import level_distribution
from pluri.topics.concept_graph.given_graph import GivenGraph, read_graph
from pluri.topics.concept_graph.recovery import GraphRecovery, graph_recovery
from pluri.topics.concept_graph.sampling.gibbs import ConceptGraphGibbs

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
