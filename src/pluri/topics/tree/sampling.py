"""From the parameters of the estimator to a trace: settings that make sense, all sweeps, and the draws among them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from pluri.inference import mcmc
from pluri.topics.topic_model import warn_if_interrupted
from pluri.topics.tree.gibbs import TreeGibbs
from pluri.topics.tree.settings import MOST_SCALES, TreeSettings
from pluri.validation import as_generator, check_count

if TYPE_CHECKING:
    from pluri.topics.tree.estimator import TreeTopicModel

Callback = Callable[[mcmc.Trace], bool | None]


def settings_of(model: TreeTopicModel, n_words: int) -> TreeSettings:
    """Size and priors of the tree of an estimator, or one sentence on what is wrong with its parameters."""
    for name, allowed in (
        ("inference", ("truncated", "retrospective", "slice")), ("width", ("retrospective", "adaptive"))
    ):  # fmt: skip
        if getattr(model, name) not in allowed:
            raise ValueError(f"{name} must be one of {', '.join(allowed)}, got {getattr(model, name)!r}")
    for name, least in (("n_warmup", 0), ("n_draws", 1), ("thin", 1), ("n_chains", 1), ("n_trees", 1)):
        check_count(getattr(model, name), name, least)
    if model.inference == "truncated" and (model.max_depth is None or model.max_nodes is None):
        which = "max_depth" if model.max_depth is None else "max_nodes"
        raise ValueError(f"{which} must be given with inference='truncated', got None")
    depth = MOST_SCALES if model.max_depth is None else check_count(model.max_depth, "max_depth")
    if model.scale_dependent:
        if model.max_depth is None:
            raise ValueError("max_depth must be given with scale_dependent=True, got None")
        if n_words <= int(model.root):
            raise ValueError(f"X must have at least 2 words, one below the root, got n_features = {n_words}")
        depth = min(depth, n_words)
    nodes = (model.max_nodes,) if isinstance(model.max_nodes, int | np.integer) else model.max_nodes
    return TreeSettings(
        None if nodes is None else tuple(nodes), depth, bool(model.scale_dependent), bool(model.root),
        model.topic_word_prior, model.concentration_prior, model.doc_concentration,
    )  # fmt: skip


def sample_trees(model: TreeTopicModel, kernel: TreeGibbs) -> mcmc.Trace:
    """All sweeps, warm-up included: Ctrl-C leaves a tree whenever it comes."""
    watch = None
    if model.callback is not None:
        watch = partial(_watched, model.callback, model.n_warmup, model.thin)
    trace = mcmc.sample(
        kernel, kernel.start, n_draws=model.n_warmup + model.n_draws * model.thin, n_warmup=0,
        n_chains=model.n_chains, record=kernel.record, random_state=as_generator(model.random_state),
        n_jobs=model.n_jobs, verbose=model.verbose, callback=watch, warn=False,
    )  # fmt: skip
    warn_if_interrupted(trace.interrupted, type(model).__name__, trace.n_draws)
    return trace


def draws_of(trace: mcmc.Trace, n_warmup: int, thin: int) -> mcmc.Trace:
    """Draws of a trace of all sweeps; the last sweep if Ctrl-C came before the first draw."""
    n_warmup = min(n_warmup, trace.n_draws)
    chosen = slice(n_warmup + thin - 1, None, thin) if trace.n_draws >= n_warmup + thin else slice(-1, None)
    return replace(
        trace,
        draws={name: values[:, chosen] for name, values in trace.draws.items()},
        stats={name: values[:, chosen] for name, values in trace.stats.items()},
        n_warmup=n_warmup,
        thin=thin,
    )


def _watched(callback: Callback, n_warmup: int, thin: int, trace: mcmc.Trace) -> bool | None:
    """Show a callback the draws so far, once there are some."""
    return callback(draws_of(trace, n_warmup, thin)) if trace.n_draws >= n_warmup + thin else None
