"""What is kept of the draws of a chain so that forecasts can average over them: states with their statistics.

Of each draw of the states of all steps, the rows of transition probabilities are Dirichlet given the common weights,
and the parameters of the states follow from their statistics. Neither needs the data again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pluri.sequences.infinite.observations import Array, Integers, ObservationModel, Observations
from pluri.sequences.infinite.state_posterior import StatePosterior
from pluri.sequences.infinite.transitions import Hyperparameters

#: Draws that are kept, and numbers that all of them together may hold unless that would leave too few draws.
MOST_DRAWS, MOST_NUMBERS, FEWEST_DRAWS = 100, 1_000_000, 10
#: Steps of a sampler of what a draw does not say: values that are missing in parts of rows.
STEPS = 10


def keep_draws(
    rng: np.random.Generator, kernel: StatePosterior, observations: Observations, labels: Integers, hyper: Array
) -> list[dict[str, Any]]:
    """Some of the draws of a chain, evenly spaced.

    Parameters
    ----------
    rng : numpy.random.Generator
    kernel : StatePosterior
        The sampler that drew them.
    observations : Observations
        With likely values in place of what is missing in parts of rows.
    labels : array of shape (n_draws, n_steps)
        States of all steps, numbered as they appear.
    hyper : array of shape (n_draws, 3)
        `concentration`, `weight_concentration` and `stickiness`.

    Returns
    -------
    draws : list of dicts
        ``rows`` (K + 1, K), parameters of the Dirichlet distributions of the rows on the K states of the draw, that of
        first steps last; ``sums``, statistics of the states by likelihood; and ``durations`` (K, n) where states have
        durations.
    """
    most = _n_kept(observations, int(labels.max()) + 1)
    kept = np.unique(np.linspace(0, len(labels) - 1, min(len(labels), most)).astype(np.int64))
    draws = []
    for draw in kept:
        own = labels[draw].astype(np.int64)
        sums = draw_sums(rng, observations, own, int(own.max()) + 1)
        draws.append({**kernel.draw_of_rows(rng, own, Hyperparameters(*hyper[draw].tolist())), "sums": sums})
    return draws


def _n_kept(observations: Observations, n_states: int) -> int:
    size = n_states * (n_states + 1 + sum(part.likelihood.n_statistics for part in observations.parts))
    return int(np.clip(MOST_NUMBERS // size, FEWEST_DRAWS, MOST_DRAWS))


def draw_sums(rng: np.random.Generator, observations: Observations, labels: Integers, n_states: int) -> list[Array]:
    """Statistics of each state, by likelihood; what is missing in a part of a row is drawn."""
    sums = observations.sums(labels, n_states)
    for _ in range(STEPS):
        filled = observations.draw_filled(rng, observations.draw(rng, sums), labels)
        if filled is None:
            break
        observations = observations.with_filled(filled)
        sums = observations.sums(labels, n_states)
    return sums


def check_draws(draws: Any, model: ObservationModel) -> None:
    """Refuse draws, read from a file, that do not fit together or into the model."""
    if not isinstance(draws, list) or not draws:
        raise ValueError("posterior_draws_ must be a list of draws")
    for draw in draws:
        rows = np.asarray(draw["rows"])
        k = rows.shape[-1]
        shapes = [(k, each.n_statistics) for each in model.likelihoods]
        if rows.shape != (k + 1, k) or [np.shape(sums) for sums in draw["sums"]] != shapes:
            raise ValueError(f"posterior_draws_ must have rows of the shape (K + 1, K) and sums of the shapes {shapes}")
        lasting = np.asarray(draw.get("durations", np.ones((k, 1))))
        if lasting.ndim != 2 or len(lasting) != k:
            raise ValueError(f"posterior_draws_ must have durations of {k} states")
        for values, least in ((rows, 0.0), (lasting, 0.0), *((sums, -np.inf) for sums in draw["sums"])):
            if not np.isfinite(values).all() or not (np.asarray(values) >= least).all():
                raise ValueError("posterior_draws_ must hold finite numbers, those of rows and durations not negative")
