"""A trace for ArviZ, with pointwise log-likelihoods and predictions where they are to be had."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pluri.engine.extras import import_extra
from pluri.inference.mcmc.trace import Trace

#: A further group: a variable of the trace by name; arrays (n_chains, n_draws, ...); or a function of one draw.
Group = str | Mapping[str, Any] | Callable[[Mapping[str, Any]], Any]
#: What the variable of a group is called that has no name of its own.
UNNAMED = "y"


def to_arviz(
    trace: Trace,
    log_likelihood: Group | None = None,
    posterior_predictive: Group | None = None,
    observed_data: Mapping[str, Any] | None = None,
) -> Any:
    """``InferenceData`` (ArviZ up to 0.23) or ``DataTree`` (ArviZ from 1.0 on); see :meth:`Trace.to_arviz`."""
    groups: dict[str, Any] = {"posterior": dict(trace.draws), "sample_stats": _arviz_stats(trace)}
    for name, given in (("log_likelihood", log_likelihood), ("posterior_predictive", posterior_predictive)):
        if isinstance(given, str):
            trace[given]  # an error that lists what there is
            groups["posterior"].pop(given, None)
        if given is not None:
            groups[name] = _group(trace, given, name)
    if observed_data is not None:
        groups["observed_data"] = {name: np.asarray(values) for name, values in observed_data.items()}
    arviz = _arviz()
    # Up to 0.23 each group is an argument of its own; from 1.0 on all of them are one. The name InferenceData tells
    # nothing: 1.3 has it again, as another name for DataTree.
    one_by_one = "posterior" in inspect.signature(arviz.from_dict).parameters
    return arviz.from_dict(**groups) if one_by_one else arviz.from_dict(groups)


def _arviz() -> Any:
    """ArviZ, without the advertisement that versions before 1.0 show at the first import of a day."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return import_extra("arviz", "to_arviz", extra="arviz")


def _group(trace: Trace, given: Any, name: str) -> dict[str, Any]:
    """Arrays (n_chains, n_draws, ...) by name."""
    if isinstance(given, str):
        return {given: trace[given]}
    if not callable(given):
        found = {str(key): np.asarray(values) for key, values in _named(given).items()}
    else:
        rows = [_named(given(_draw(trace, c, d))) for c in range(trace.n_chains) for d in range(trace.n_draws)]
        shape = (trace.n_chains, trace.n_draws)
        stacks = {key: np.array([np.asarray(row[key]) for row in rows]) for key in (rows[0] if rows else {})}
        found = {key: values.reshape(*shape, *values.shape[1:]) for key, values in stacks.items()}
    for key, values in found.items():
        if values.shape[:2] != (trace.n_chains, trace.n_draws):
            raise ValueError(
                f"{name} must have shape ({trace.n_chains}, {trace.n_draws}, ...) for chains and draws, got "
                f"{values.shape} for {key!r}"
            )
    return found


def _named(values: Any) -> Mapping[str, Any]:
    return values if isinstance(values, Mapping) else {UNNAMED: values}


def _draw(trace: Trace, chain: int, draw: int) -> dict[str, Any]:
    """One draw of all variables."""
    return {name: values[chain, draw] for name, values in trace.draws.items()}


def _arviz_stats(trace: Trace) -> dict[str, Any]:
    """Statistics under the names that ArviZ's plots look for."""
    names = {"divergent": "diverging", "acceptance": "acceptance_rate", "log_density": "lp", "n_evaluations": "n_steps"}
    stats = {names.get(name, name): np.asarray(values) for name, values in trace.stats.items()}
    if "diverging" in stats:
        stats["diverging"] = stats["diverging"] > 0
    return stats
