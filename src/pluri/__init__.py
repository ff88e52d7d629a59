"""Latent-variable models for data with holes, weights and unknown numbers of parts, behind scikit-learn's interface.

Subpackages are imported when they are first used. Models: ``pluri.sequences`` (hidden Markov models),
``pluri.mixtures``, ``pluri.topics``, ``pluri.factors``, ``pluri.embedding``, ``pluri.dynamics``, ``pluri.processes``,
``pluri.networks``, ``pluri.neurons`` (a simulator); what to do next: ``pluri.decisions``. An application:
``pluri.cochange``; pages about fitted models: ``pluri.report``. Foundations: ``pluri.components``, ``pluri.priors``,
``pluri.inference``, ``pluri.engine``, ``pluri.metrics``, ``pluri.datasets``, ``pluri.plotting``, ``pluri.io``, and
``pluri.testing``, which proves samplers.
``pluri.on_interrupt`` says what Ctrl-C does.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "1.0.0rc1"

if TYPE_CHECKING:
    from pluri import (
        cochange,
        components,
        datasets,
        decisions,
        dynamics,
        embedding,
        engine,
        factors,
        inference,
        io,
        metrics,
        mixtures,
        networks,
        neurons,
        optimize,
        plotting,
        priors,
        processes,
        progress,
        report,
        sequences,
        testing,
        topics,
        validation,
    )
    from pluri.io import load, save
    from pluri.validation.interrupt_choice import on_interrupt

__all__ = [
    "__version__",
    "cochange",
    "components",
    "datasets",
    "decisions",
    "dynamics",
    "embedding",
    "engine",
    "factors",
    "inference",
    "io",
    "load",
    "metrics",
    "mixtures",
    "networks",
    "neurons",
    "on_interrupt",
    "optimize",
    "plotting",
    "priors",
    "processes",
    "progress",
    "report",
    "save",
    "sequences",
    "testing",
    "topics",
    "validation",
]


def __getattr__(name: str) -> Any:
    # numba and scikit-learn take a second to import: whoever asks only for the version should not wait for them.
    if name in ("load", "save"):
        return getattr(import_module("pluri.io"), name)
    if name == "on_interrupt":
        return import_module("pluri.validation.interrupt_choice").on_interrupt
    if name in __all__:
        return import_module(f"pluri.{name}")
    raise AttributeError(f"module 'pluri' has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
