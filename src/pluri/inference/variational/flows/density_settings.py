"""From the settings of a density, which can be stored, to the flow that they describe."""

from __future__ import annotations

from typing import Any

import numpy as np

from pluri.inference.variational.flows.density import DensityModel, NumpyDensity
from pluri.inference.variational.flows.flow import build_flow
from pluri.inference.variational.flows.jax_density import JaxDensity


def density_of(settings: dict[str, Any]) -> DensityModel:
    """The flow of these settings; the same key makes the same flow."""
    shape = {name: settings[name] for name in ("dim", "n_layers", "n_bins", "bound")}
    hidden = tuple(int(size) for size in settings["hidden"])
    if settings["backend"] == "jax":
        return JaxDensity(kind=settings["flow"], hidden=hidden, key=settings["key"], **shape)
    rng = np.random.default_rng(settings["key"])
    flow = build_flow(settings["flow"], rng=rng, hidden=hidden, **shape)
    return NumpyDensity(flow, start=0.1)
