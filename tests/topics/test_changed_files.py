"""Fitted topic models whose arrays were changed: refused by a sentence, before compiled loops follow them."""

from __future__ import annotations

import copy
import functools

import numpy as np
import pytest
from scipy import sparse

from pluri.topics import (
    ConceptGraph,
    HDPTopicModel,
    HierarchicalLDA,
    HierarchicalPachinko,
    LatentDirichletAllocation,
    SupervisedLDA,
    SupervisedLDAClassifier,
    TreeTopicModel,
)

pytestmark = pytest.mark.filterwarnings("ignore")
RNG = np.random.default_rng(0)
X = np.vstack([RNG.poisson(4.0 * np.kron([1.0, 0.1], np.ones(6)), (15, 12)), RNG.poisson(1.0, (15, 12))])
GRAPH = {"all": ["left", "right"], "left": ["low"], "right": [], "low": []}
SHORT = {"n_warmup": 4, "n_draws": 4, "random_state": 0}

MODELS = {
    **{f"lda {how}": LatentDirichletAllocation(3, inference=how, thin=1, **SHORT) for how in ("vb", "gibbs", "em")},
    "hdp gibbs": HDPTopicModel(max_topics=5, **SHORT),
    **{f"hdp {how}": HDPTopicModel(how, max_topics=5, max_iter=2, random_state=0) for how in ("vb", "svi")},
    **{f"supervised {how}": SupervisedLDA(2, inference=how, max_iter=3, **SHORT) for how in ("vb", "gibbs")},
    "classes": SupervisedLDAClassifier(2, **SHORT),
    "hlda": HierarchicalLDA(3, **SHORT),
    "pachinko": HierarchicalPachinko(2, 3, **SHORT),
    "concept graph": ConceptGraph(3, max_nodes_per_level=4, **SHORT),
    "deeper graph": ConceptGraph(3, max_nodes_per_level=4, feasible="deeper", **SHORT),
    "given graph": ConceptGraph(3, max_nodes_per_level=5, graph=GRAPH, **SHORT),
    "tree": TreeTopicModel(3, (2, 3, 4), thin=1, **SHORT),
    "tree of all words": TreeTopicModel(2, (1, 4), scale_dependent=False, thin=1, **SHORT),
}
#: A large number is no index, and no probability; but a count, a size or a coefficient it may be.
HARMLESS = {
    **dict.fromkeys(
        ["components_", "topic_weight_", "doc_topic_prior_", "n_documents_", "topic_word_prior_", "sub_prior_",
         "super_prior_", "way_counts_", "word_count_draws_", "noise_draws_", "topic_word", "usage", "end_probability_",
         "count", "end", "name", "node_name", "stick_beta", "0", "1", "base", "_step", "step"],
        ("huge",),
    ),
    **dict.fromkeys(["coef_", "coef_draws_"], ("negative", "huge")),
}  # fmt: skip
#: Arrays (and numbers) of each that others, or compiled loops, go by.
PLACES = {
    "lda": ["topic_word_", "components_", "topic_weight_", "doc_topic_prior_"],
    "hdp": ["topic_word_", "components_", "topic_weight_", "doc_topic_prior_"],
    "supervised": ["topic_word_", "word_count_draws_", "coef_draws_", "noise_draws_", "doc_topic_prior_"],
    "classes": ["topic_word_", "word_count_draws_", "coef_draws_", "coef_", "doc_topic_prior_"],
    "hlda": ["topic_word_", "components_", "parent_", "node_depth_", "n_documents_", "paths_", "topic_word_prior_"],
    "pachinko": ["topic_word_", "components_", "sub_prior_", "super_prior_", "way_counts_"],
    "graph": [
        "topic_word_", "node_depth_", "_step", "end_probability_", "edges_", "paths_", "_words_seen", "_offsets",
        "_document_labels", "draws_.0.word", "draws_.0.offset", "draws_.0.count", "draws_.0.step", "draws_.0.end",
        "draws_.0.name", "_best_draw.word", "position_.order", "position_.path", "position_.level",
        "position_.node_depth", "position_.node_name", "position_.n_nodes", "position_.tau", "position_.stick_beta",
    ],
    "tree": [
        "topic_word_", "word_scale_", "transitions_.0", "tree_.counts.0", "tree_.base", "trees_.0.counts.1",
        "trees_.0.transitions.0", "trees_.0.passed.0", "trees_.0.base",
    ],
}  # fmt: skip


def places_of(name):
    kinds = {"graph": "graph", "tree": "tree", "hlda": "hlda"} | {key: key for key in PLACES}
    kind = next(kind for word in name.split()[::-1] + name.split() if (kind := kinds.get(word)))
    found = PLACES[kind]
    return [*found, "variational_.topic_word", "variational_.usage"] if name in ("hdp vb", "hdp svi") else found


@functools.cache
def fitted(name):
    y = {"supervised": X.sum(axis=1) * 1.0, "classes": X[:, 0] > X[:, 0].mean()}.get(name.split()[0])
    return MODELS[name].fit(X, y)


def parent_of(model, place):
    *steps, last = place.split(".")
    for step in steps:
        model = get(model, step)
    return model, last


def get(holder, step):
    if isinstance(holder, dict):
        return holder[step]
    return holder[int(step)] if isinstance(holder, list | tuple) else getattr(holder, step)


def put(model, place, value):
    holder, last = parent_of(model, place)
    if isinstance(holder, dict):
        holder[last] = value
    elif isinstance(holder, list):
        holder[int(last)] = value
    else:
        object.__setattr__(holder, last, value)


def edited(array, change):
    array = np.array(array)
    if change == "shorter":
        return array[:-1] if array.ndim else np.array([1.0, 2.0])
    if change == "narrower":
        return array[..., :-1] if array.ndim > 1 else array[:0] if array.ndim else np.zeros(0)
    if change == "text":
        return "text"
    if change == "nan" and array.dtype.kind != "f":
        array = array.astype(float)
    number = {"huge": 2**40 if array.dtype.itemsize == 8 else 2**30, "negative": -5, "nan": np.nan}[change]
    if array.dtype.itemsize == 1:
        array = array.astype(np.int64)
    array[(-1,) * array.ndim] = number
    return array


@pytest.mark.parametrize("name", MODELS)
def test_what_a_fit_has_learned_passes(name):
    fitted(name)._check_fitted_state()
    MODELS[name].__class__()._check_fitted_state()


@pytest.mark.parametrize("change", ["shorter", "narrower", "nan", "negative", "huge", "text"])
@pytest.mark.parametrize("name", MODELS)
def test_arrays_that_were_changed_are_refused(name, change):
    passed = []
    for place in places_of(name):
        model, last = copy.deepcopy(fitted(name)), place.split(".")[-1]
        if not np.size(get(*parent_of(model, place))):
            continue  # a graph whose documents all stay at the root has no edges
        if change in HARMLESS.get(last, ()) or (name, last, change) == ("hlda", "paths_", "shorter"):
            continue
        put(model, place, edited(get(*parent_of(model, place)), change))
        if not is_refused(model):
            passed.append(place)
    assert not passed


def is_refused(model):
    try:
        model._check_fitted_state()
    except ValueError as error:
        return "\n" not in str(error)
    return False


def test_paths_that_go_round_are_refused():
    model = copy.deepcopy(fitted("concept graph"))
    model._step = model._step + 0.1
    with pytest.raises(ValueError, match="_step must lead from the root to an end"):
        model._check_fitted_state()


def test_parents_that_go_round_are_refused():
    model = copy.deepcopy(fitted("hlda"))
    model.parent_ = model.parent_[::-1].copy()
    with pytest.raises(ValueError, match="parent_ must be -1 at the root"):
        model._check_fitted_state()


def test_orders_that_forget_a_node_are_refused():
    model = copy.deepcopy(fitted("concept graph"))
    row = model.position_["order"][0]
    row[:] = np.where(row == -1, row[row != -1][0], row)
    with pytest.raises(ValueError, match="order must have all that may follow a node once"):
        model._check_fitted_state()


def test_columns_that_a_sparse_matrix_does_not_have_are_refused():
    bad = sparse.csr_matrix((np.ones(2), np.array([0, 3]), np.array([0, 2])), shape=(1, 12))
    bad.indices[1] = 2**30
    for name in ("lda vb", "hlda", "concept graph"):
        with pytest.raises(ValueError, match="X must have columns 0 to 11, got"):
            fitted(name).transform(bad)
