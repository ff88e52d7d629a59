# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled steps of a sweep, called one at a time: by the enumeration of paths, and by tests.

The functions themselves have no wrapper for Python: with records of so many arrays that takes longer to compile than
the function.
"""

from pluri.engine.compiled import compiled
from pluri.topics.concept_graph import _level_kernels as levels
from pluri.topics.concept_graph.sampling import _graph_kernels as graphs
from pluri.topics.concept_graph.sampling import _path_kernels as paths

_take_out, _put_in, _log_swap = graphs.take_out, graphs.put_in, graphs.log_swap
_word_terms, _backward, _draw_path = paths.word_terms, paths.backward, paths.draw_path
_log_length_factor, _draw_tau = paths.log_length_factor, levels.draw_tau
single = compiled(allocates=False)


@single
def take_out(graph, numbers, corpus, d, path):
    """Change `graph`, `corpus` and `path`."""
    _take_out(graph, numbers, corpus, d, path)


@single
def put_in(rng, graph, numbers, corpus, d, path, length):
    """Change `graph`, `corpus` and `path`."""
    _put_in(rng, graph, numbers, corpus, d, path, length)


@single
def log_swap(graph, sticks, x, i, j):
    """Log ratio of probabilities after and before a swap."""
    return _log_swap(graph, sticks, x, i, j)


@single
def word_terms(graph, eta, words, level, first, last, high, step, log_term, product, seen, sizes):
    """Fill `log_term`; the highest level."""
    return _word_terms(graph, eta, words, level, first, last, high, step, log_term, product, seen, sizes)


@single
def backward(graph, numbers, label, top, log_term, back, weight, highest):
    """Fill `back`."""
    _backward(graph, numbers, label, top, log_term, back, weight, highest)


@single
def draw_path(rng, graph, numbers, n_words, tau, top, back, logits, states, path):
    """Fill `path`; its length."""
    return _draw_path(rng, graph, numbers, n_words, tau, top, back, logits, states, path)


@single
def log_length_factor(numbers, length, n_words, tau):
    """What the length of a path does to the probability of given levels."""
    return _log_length_factor(numbers, length, n_words, tau)


@single
def draw_tau(rng, tau, a, b, sum_levels, n_words, length):
    """One step of slice sampling."""
    return _draw_tau(rng, tau, a, b, sum_levels, n_words, length)
