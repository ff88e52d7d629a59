"""What a concept graph is told, checked; and how many nodes it may have."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pluri.priors.hyperpriors import Beta, Gamma
from pluri.topics.concept_graph.given_graph import GivenGraph, read_labels
from pluri.topics.concept_graph.sampling.first_positions import FIRST_BLANKS
from pluri.topics.concept_graph.sampling.hyper_parameters import BOUNDS
from pluri.validation import Allowed, Made, Number, Only, Whole, check_parameters

if TYPE_CHECKING:
    from pluri.topics.concept_graph.estimator import ConceptGraph

#: Nodes of each level where nothing is said of their number: as many as can be read.
USUAL_NODES = 12
#: Bounds of the parameters that may be learned.
IN_BOUNDS = Number(least=BOUNDS[0], most=BOUNDS[1])
LEARNED = IN_BOUNDS | Only("learn") | Made(Gamma, "a prior (Gamma)")
#: What the parameters of :class:`~pluri.topics.ConceptGraph` may be.
ALLOWED: Mapping[str, Allowed] = {
    "n_levels": Whole(1, 100),
    "n_joint": Whole(0),
    "max_nodes_per_level": Whole(1) | Only("auto", "given", None),
    "stick_alpha": IN_BOUNDS,
    "stick_beta": LEARNED,
    "topic_word_prior": LEARNED,
    "tau_prior": Made(Beta, "a prior (Beta)") | Only(None),
    "level_prior": Only("geometric", "dirichlet"),
    "feasible": Only("next_level", "deeper"),
    "path_sampler": Only("dp", "enumerate"),
    "init": Only("topics", "root"),
}


def check_settings(model: ConceptGraph) -> None:
    """Refuse settings that cannot be used; see :class:`~pluri.topics.ConceptGraph`."""
    check_parameters(model)
    if model.max_nodes_per_level == "given" and model.graph is None:
        raise ValueError("max_nodes_per_level='given' needs a graph, whose nodes are given; got graph=None")


def most_nodes(max_nodes_per_level: Any, given: GivenGraph, n_levels: int) -> int | NDArray[np.int64] | None:
    """Nodes of each level below the root: a number, one for each level, or None for no limit."""
    number = np.bincount(given.depth, minlength=n_levels + 1)[2:]
    if isinstance(max_nodes_per_level, str):
        if max_nodes_per_level == "given":
            return number
        fullest = int(number.max(initial=0))
        return max(USUAL_NODES, fullest + FIRST_BLANKS if fullest else 0)
    return None if max_nodes_per_level is None else int(max_nodes_per_level)


def labels_or_warning(model: ConceptGraph, y: Any, given: GivenGraph, n_documents: int) -> NDArray[np.int64]:
    """Node of each document, -1 for any; a warning if there are labels without a graph whose nodes they could name."""
    if y is not None and model.graph is not None:
        return read_labels(y, given, n_documents)
    if y is not None and any(isinstance(value, str) for value in np.ravel(np.asarray(y, dtype=object))):
        warnings.warn(
            f"{type(model).__name__}: y is not used without a graph whose nodes it names; give graph=",
            UserWarning,
            stacklevel=4,
        )
    return np.full(n_documents, -1, dtype=np.int64)
