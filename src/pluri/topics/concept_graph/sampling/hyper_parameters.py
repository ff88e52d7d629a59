"""Learning of `stick_beta` and `topic_word_prior` of a concept graph: log-normal walks under gamma priors.

Given the counts of a graph both densities cost little, so that each sweep makes several walks; their steps are learned
in the warm-up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pluri.priors.hyperpriors import Beta, Gamma
from pluri.topics.concept_graph.sampling.state import GraphState, count_histogram

if TYPE_CHECKING:
    from pluri.topics.concept_graph.sampling.gibbs import ConceptGraphGibbs

#: What is learned, unless something else is said, and where it starts.
VAGUE, FIRST_BETA, FIRST_WORD_PRIOR = Gamma(1.0, 1.0), 1.0, 0.01
#: Prior of tau unless something else is said.
UNIFORM = Beta(1.0, 1.0)
#: Random walks of each hyper-parameter in a sweep, and the acceptance that warm-up steers them to.
WALKS, GOAL = 3, 0.3
#: Hyper-parameters stay inside these bounds.
BOUNDS = (1e-8, 1e6)


def walk_beta(rng: np.random.Generator, kernel: ConceptGraphGibbs, state: GraphState) -> float:
    """Walk `stick_beta` of a state, if it is learned; the share of the walks that were accepted."""
    prior = kernel.learned_beta.prior
    if prior is None:
        return 0.0
    from pluri.topics.concept_graph.sampling._density_kernels import log_steps

    graph = state.graph

    def value_of(beta: float) -> float:
        return float(log_steps(graph.depth, graph.visits, graph.edge, graph.order, graph.n_atoms, *kernel.sticks(beta)))

    state.stick_beta, accepted = walk(rng, state.stick_beta, kernel.beta_step, value_of, prior)
    return accepted


def walk_words(rng: np.random.Generator, kernel: ConceptGraphGibbs, state: GraphState) -> float:
    """Walk `topic_word_prior` of a state, if it is learned; the share of the walks that were accepted."""
    prior = kernel.learned_words.prior
    if prior is None:
        return 0.0
    from pluri.topics.concept_graph.sampling._density_kernels import log_words

    graph = state.graph
    histogram = count_histogram(graph.word_count)

    def value_of(eta: float) -> float:
        return float(log_words(graph.depth, graph.total, kernel.n_words, eta, histogram))

    state.topic_word_prior, accepted = walk(rng, state.topic_word_prior, kernel.word_step, value_of, prior)
    return accepted


def walk(
    rng: np.random.Generator, old: float, step: float, log_likelihood: Callable[[float], float], prior: Gamma
) -> tuple[float, float]:
    """Log-normal random walks of a positive number: where they end, and the share that was accepted."""
    accepted = 0
    height = log_likelihood(old) + prior.log_density(old) + math.log(old)
    for _ in range(WALKS):
        new = old * math.exp(step * rng.standard_normal())
        if BOUNDS[0] < new < BOUNDS[1]:
            value = log_likelihood(new) + prior.log_density(new) + math.log(new)
            if math.log(1.0 - rng.random()) < value - height:
                old, height, accepted = new, value, accepted + 1
    return old, accepted / WALKS


class StepAdaptation:
    """Steers the random walks to the wanted acceptance: the step grows or shrinks, less and less."""

    def __init__(self) -> None:
        self.n_updates = 0

    def start(self, rng: np.random.Generator, kernel: ConceptGraphGibbs, state: Any) -> ConceptGraphGibbs:
        """Draws do not count yet."""
        return replace(kernel, collecting=False)

    def update(
        self, rng: np.random.Generator, kernel: ConceptGraphGibbs, state: Any, info: Mapping[str, float]
    ) -> ConceptGraphGibbs:
        """Other steps after a sweep, and more nodes where few are left."""
        self.n_updates += 1
        if kernel.max_nodes is None:
            kernel.add_blanks(rng, state)
        rate = 3.0 / (self.n_updates + 5.0) ** 0.6
        return replace(
            kernel,
            beta_step=kernel.beta_step * math.exp(rate * (info["stick_beta"] - GOAL)),
            word_step=kernel.word_step * math.exp(rate * (info["topic_word_prior"] - GOAL)),
        )

    def finish(self, kernel: ConceptGraphGibbs) -> ConceptGraphGibbs:
        """From here on draws count."""
        return replace(kernel, collecting=True)
