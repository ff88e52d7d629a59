"""Whole samplers of hierarchies of topics are calibrated: see `test_calibration_of_samplers`.

Pachinko allocation has given priors here: those that its warm-up learns are their likeliest values. A test fails
if two independent runs do, each at 1e-3: its false-alarm rate is 1e-6.
"""

from dataclasses import replace
from functools import partial
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest

from pluri.priors import Beta, Gamma
from pluri.topics.concept_graph.sampling.gibbs import ConceptGraphGibbs
from pluri.topics.concept_graph.sampling.starts import arranged_start
from pluri.topics.hierarchical.document_tree import compact
from pluri.topics.hierarchical.level_sticks import LevelSticks
from pluri.topics.hierarchical.nested_crp_gibbs import NestedCRPGibbs
from pluri.topics.hierarchical.pachinko_gibbs import PachinkoGibbs
from pluri.topics.tree.gibbs import TreeGibbs
from pluri.topics.tree.settings import TreeSettings


def neighbour(file):
    """A test file of this folder, for what it has."""
    spec = spec_from_file_location(file, Path(__file__).parent / f"{file}.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


shared = neighbour("test_calibration_of_samplers")
Whole, in_order, pairs = shared.Whole, shared.in_order, shared.pairs
calibration, confirmed_calibration = shared.calibration, shared.confirmed_calibration
BLANK, DOCUMENTS, OFFSETS, LENGTHS, N_WORDS = (
    getattr(shared, name) for name in ("BLANK", "DOCUMENTS", "OFFSETS", "LENGTHS", "N_WORDS")
)


def nested_crp(sticks, **learned):
    base = NestedCRPGibbs(BLANK, sticks, np.array([0.8, 0.5, 0.3]), 0.8, **learned)

    def draw(rng):
        position = base.sample_prior(rng)
        tokens, position = in_order(base.sample_data(rng, position), position, "levels")
        return position, replace(base, tokens=tokens)

    def numbers(position, kernel):
        levels = position["levels"]
        n_nodes = compact(position["paths"])[1]
        topics = position["paths"][DOCUMENTS, levels] * 3 + levels  # each level numbers its own nodes
        found = pairs(topics, kernel.tokens.words) | {
            "nodes": n_nodes[1:], "mean level": levels.mean(), "log joint": kernel.log_joint(position),
        }  # fmt: skip
        return found | (
            {"log concentration": np.log(position["concentration"]), "log prior": np.log(position["word_prior"])}
            if learned else {}
        )  # fmt: skip

    return Whole(draw, numbers, n_simulations=120, n_draws=5, thin=6)


def pachinko():
    base = PachinkoGibbs(BLANK, np.full(3, 0.7), np.full((2, 3), 0.5), 0.4)

    def draw(rng):
        position = base.sample_prior(rng)
        tokens, position = in_order(base.sample_data(rng, position), position, "supers", "subs")
        return position, replace(base, tokens=tokens)

    def numbers(position, kernel):
        supers, subs = position["supers"], position["subs"]
        return pairs(np.where(subs > 0, 2 + subs, supers), kernel.tokens.words) | {
            "at the root": (supers == 0).sum(), "below": (subs > 0).sum(),
            "of a super-topic": (supers[:, None] == supers).sum(), "log joint": kernel.log_joint(position),
        }  # fmt: skip

    return Whole(draw, numbers, lambda kernel: kernel.start(), 150)


def concept_graph(**settings):
    forward = neighbour("test_concept_graph_sampler")
    base = ConceptGraphGibbs(BLANK.words, OFFSETS, N_WORDS, stick_alpha=1.5, **settings)

    def draw(rng):
        position = forward.draw_forward(rng, base)
        tokens, position = in_order(forward.draw_words(rng, base, position), position, "level")
        return position, replace(base, words=tokens.words)

    def numbers(position, kernel):
        path, level = position["path"], position["level"]
        length = (path >= 0).sum(axis=1)
        nodes = path[DOCUMENTS, length[DOCUMENTS] - 1 - level]
        found = pairs(nodes, kernel.words) | {
            "nodes": len(position["node_depth"]), "steps": length.sum(), "mean level": level.mean(),
            "log joint": kernel.init(np.random.default_rng(0), position).log_density,
        }  # fmt: skip
        if kernel.level_prior == "geometric":
            found["tau"] = position["tau"].mean()
        return found | {
            f"log {name}": np.log(position[name])
            for name in ("stick_beta", "topic_word_prior")
            if getattr(base, name) == "learn"
        }

    return Whole(draw, numbers, lambda kernel: partial(arranged_start, kernel=kernel), 70, 4, 30, 20)


def tree(max_nodes, inference="truncated", **settings):
    forward = neighbour("test_tree_topics_sampler")
    settings = TreeSettings(max_nodes, concentration=Gamma(2.0, 3.0), topic_word_prior=0.5, **settings)

    def draw(rng):
        position = forward.draw_prior(rng, settings, inference != "truncated", LENGTHS, N_WORDS)
        names = ("scale", "node", "paths") if inference != "truncated" else ("scale", "node")
        tokens, position = in_order(forward.draw_words(rng, position, settings, N_WORDS), position, *names)
        return position, TreeGibbs(tokens, settings, inference=inference)

    def numbers(position, kernel):
        scale, node = position["scale"], position["node"]
        base, eta, rho, psi = np.log(position["concentrations"])
        found = pairs(1000 * scale + node, kernel.tokens.words) | {
            "depth": position["depth"][0], "mean scale": scale.mean(), "log eta": eta, "log rho": rho,
            "log base": base, "usage of the first": position["usage"][:, 0].mean(),
            "log joint": kernel.init(np.random.default_rng(0), position).log_density,
        }  # fmt: skip
        return found | ({"words at the top": position["sizes"][0], "log psi": psi} if settings.scale_dependent else {})

    # Chains begin with ten nodes at each scale of a tree that grows: after 20 sweeps there are still too many.
    return Whole(draw, numbers, n_simulations=80 if inference == "truncated" else 60, n_draws=3, n_warmup=60, thin=20)


SAMPLERS = {
    "nested CRP": partial(
        nested_crp, LevelSticks.dirichlet(np.array([0.7, 1.0, 1.6])), concentration_prior=Gamma(2.0, 3.0),
        prior_of_word_prior=Gamma(1.0, 1.5),
    ),
    "nested CRP, gem": partial(nested_crp, LevelSticks.gem(0.4, 3.0, 3)),
    "Pachinko": pachinko,
    "concept graph": partial(concept_graph, n_levels=3, max_nodes=2, tau_prior=Beta(2.0, 2.0)),
    "concept graph, dirichlet": partial(
        concept_graph, n_levels=3, max_nodes=2, level_prior="dirichlet", tau_prior=Beta(1.0, 0.5)
    ),
    # With three scales and four words, of which none may be without one, words change scale too seldom to be tested.
    "tree": partial(tree, (1, 3)),
    "tree, words at all scales": partial(tree, (2, 3), root=False, scale_dependent=False),
    "tree, retrospective": partial(tree, None, "retrospective", root=False, scale_dependent=False),
    "tree, retrospective, word scales": partial(tree, (1, 2, 3), "retrospective"),
    "tree, slices": partial(tree, None, "slice", scale_dependent=False),
}  # fmt: skip


@pytest.mark.parametrize("name", SAMPLERS)
def test_truth_ranks_uniformly_among_the_draws(name):
    confirmed_calibration(SAMPLERS[name]()).raise_if_failed()


def test_a_sampler_that_opens_branches_too_often_is_noticed():
    whole = SAMPLERS["nested CRP, gem"]()
    assert not calibration(replace(whole, fault=lambda kernel: replace(kernel, concentration=4.0))).passed


def test_paths_without_the_factor_of_their_length_are_noticed():
    """As the sampler was published."""
    whole = replace(SAMPLERS["concept graph"](), n_simulations=60)
    assert not calibration(replace(whole, fault=lambda kernel: replace(kernel, length_factor=False))).passed
