"""Chains of a JAX log density: BlackJAX moves them, all at once and compiled; the draws come back as a `Trace`.

For targets that are written in JAX, or that are so large that compiling them pays. Gradients come from JAX; step size
and mass matrix are learned in the windows of BlackJAX's warm-up. For a NumPy density use `NUTS`, which needs no
compilation.

References
----------
.. [1] Cabezas, A., Corenflos, A., Lao, J. and Louf, R. (2024). BlackJAX: composable Bayesian inference in JAX.
       arXiv:2402.10797.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping
from functools import partial
from time import perf_counter
from typing import Any, Literal

import numpy as np

from pluri.engine.extras import import_extra
from pluri.inference.mcmc.driver import initial_positions
from pluri.inference.mcmc.health import warn_of_problems
from pluri.inference.mcmc.trace import Trace
from pluri.inference.mcmc.transforms.traced import traced_variables
from pluri.validation import Number, Only, RandomState, Whole, as_generator, check_count, check_value
from pluri.validation.interruption import holding, interruptible, kept

#: Draws of one compiled round: Ctrl-C is heard between rounds.
ROUND = 250


@interruptible
def sample_blackjax(
    log_density: Callable[[Any], Any],
    initial: Any,
    *,
    n_draws: int = 1000,
    n_warmup: int = 1000,
    n_chains: int = 4,
    metric: Literal["diag", "dense"] = "diag",
    target_accept: float = 0.8,
    max_tree_depth: int = 10,
    n_leapfrog: int | None = None,
    x64: bool = True,
    random_state: RandomState = None,
    warn: bool = True,
) -> Trace:
    """Sample a log density that is written in JAX.

    Parameters
    ----------
    log_density : callable
        Position to the log density, a JAX function that can be compiled and differentiated. For constrained variables:
        :meth:`Space.jax_density`.
    initial : array of shape (dim,) or (n_chains, dim), dict of arrays, list of positions, or callable
        Where chains begin, as in :func:`sample`; dicts may hold dicts. Draws get the names of the dict, joined by
        dots, or ``"x"`` if the position is an array. For a density of :meth:`Space.jax_density`: dicts of the
        variables, which are what the draws then are.
    n_draws, n_warmup : int, default=1000
    n_chains : int, default=4
    metric : {"diag", "dense"}, default="diag"
        What the warm-up learns of the mass matrix.
    target_accept : float, default=0.8
    max_tree_depth : int, default=10
        Doublings of a trajectory at most.
    n_leapfrog : int, optional
        If it is given, trajectories have this many steps (Hamiltonian Monte Carlo) instead of turning back by
        themselves (NUTS).
    x64 : bool, default=True
        Compute in double precision during this call, whatever JAX is set to.
    random_state : int, Generator or None
    warn : bool, default=True
        Give a ConvergenceWarning for each problem that :meth:`Trace.diagnose` finds.

    Returns
    -------
    Trace

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference.mcmc.blackjax_adapter import sample_blackjax
    >>> trace = sample_blackjax(
    ...     lambda p: -0.5 * (p["x"] ** 2).sum() - 0.5 * (p["y"] - 3) ** 2,
    ...     {"x": np.zeros(2), "y": 0.0}, n_draws=300, n_warmup=200, random_state=0,
    ... )  # doctest: +SKIP
    >>> trace  # doctest: +SKIP
    <Trace of 4 chains x 300 draws: x (2,), y ()>
    """
    for name, value in (("n_draws", n_draws), ("n_warmup", n_warmup), ("n_chains", n_chains)):
        check_count(value, name)
    check_value(metric, "metric", Only("diag", "dense"))
    check_value(target_accept, "target_accept", Number(above=0, below=1))
    check_value(n_leapfrog, "n_leapfrog", Whole(1) | Only(None))
    blackjax, jax = (import_extra(name, "sample_blackjax", extra="jax") for name in ("blackjax", "jax"))
    started = perf_counter()
    rng = as_generator(random_state)
    space = getattr(log_density, "space", None)
    positions = _free(space, initial_positions(initial, n_chains, rng.spawn(n_chains)))
    trajectory = {"max_num_doublings": max_tree_depth} if n_leapfrog is None else {"num_integration_steps": n_leapfrog}
    method = blackjax.nuts if n_leapfrog is None else blackjax.hmc
    with _precision(jax, x64):
        start = _stacked(jax, positions, x64)
        _check_start(np.asarray(jax.vmap(log_density)(start)), n_chains)
        warm_up = blackjax.window_adaptation(
            method,
            log_density,
            is_mass_matrix_diagonal=metric == "diag",
            target_acceptance_rate=target_accept,
            adaptation_info_fn=lambda *_: None,  # keep nothing of the warm-up
            **trajectory,
        )
        key, warm_key = jax.random.split(jax.random.PRNGKey(int(rng.integers(2**32))))
        states, learned = _warmed(jax, warm_up, jax.random.split(warm_key, n_chains), start, n_warmup)
        n_rounds = math.ceil(n_draws / ROUND)
        make = partial(method, log_density, **trajectory)
        run = jax.jit(jax.vmap(_one_round(jax, make, math.ceil(n_draws / n_rounds))))
        rounds: list[Any] = []
        with holding(having=rounds) as block:
            for _ in range(n_rounds):
                key, round_key = jax.random.split(key)
                states, new = run(jax.random.split(round_key, n_chains), states, learned)
                rounds.append(jax.tree.map(np.asarray, new))
        draws, stats = (_joined(jax, [part[which] for part in rounds], n_draws) for which in (0, 1))
        if space is not None:
            draws = _constrained(jax, space, draws["x"])
    seconds = perf_counter() - started
    trace = Trace(draws, stats, (), n_warmup, 1, block.interrupted, seconds, origin="sample_blackjax")
    if block.interrupted:
        kept(f"interrupted after {trace.n_draws} draws of each chain; they are kept")
    elif warn:
        warn_of_problems(trace)
    return trace


def _free(space: Any, positions: list[Any]) -> list[Any]:
    """Positions as free vectors, if they are variables of a space."""
    if space is None:
        return positions
    return [space.unconstrain(place) if isinstance(place, Mapping) else place for place in positions]


def _check_start(values: Any, n_chains: int) -> None:
    """Refuse log densities at the initial positions that cannot be sampled from."""
    if values.shape != (n_chains,):
        raise ValueError(f"log_density must return one number, got shape {values.shape[1:]}")
    if not np.isfinite(values).all():
        raise ValueError(f"log_density must be finite at the initial positions, got {values.tolist()}")


def _warmed(jax: Any, warm_up: Any, keys: Any, start: Any, n_warmup: int) -> Any:
    """States of the chains after the warm-up, and what each has learned."""

    def warmed(key: Any, position: Any) -> Any:
        (state, parameters), _ = warm_up.run(key, position, n_warmup)
        # Numbers only: the other parameters are the same for all chains.
        return state, {name: parameters[name] for name in ("step_size", "inverse_mass_matrix")}

    return jax.jit(jax.vmap(warmed))(keys, start)


def _one_round(jax: Any, make: Callable[..., Any], length: int) -> Callable[[Any, Any, Any], Any]:
    """Some steps of one chain, as a function that JAX compiles."""

    def one_round(key: Any, state: Any, learned: Any) -> Any:
        kernel = make(**learned)

        def move(state: Any, key: Any) -> Any:
            state, info = kernel.step(key, state)
            return state, (state.position, _told(info, state, learned["step_size"]))

        return jax.lax.scan(move, state, jax.random.split(key, length))

    return one_round


def _constrained(jax: Any, space: Any, free: Any) -> dict[str, Any]:
    """Variables of free vectors (n_chains, n_draws, size), by name."""
    variables = jax.jit(jax.vmap(jax.vmap(lambda vector: traced_variables(space, vector)[0])))(free)
    return {name: np.asarray(variables[name]) for name in space}


def _precision(jax: Any, x64: bool) -> Any:
    if not x64:
        return contextlib.nullcontext()
    # Called jax.experimental.enable_x64 before it moved.
    return jax.enable_x64(True) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64()


def _stacked(jax: Any, positions: list[Any], x64: bool) -> Any:
    """One tree with a leading axis for the chains."""
    kind = np.float64 if x64 else np.float32
    try:
        return jax.tree.map(lambda *parts: jax.numpy.asarray(np.stack(parts).astype(kind)), *positions)
    except ValueError as error:
        raise ValueError("the initial positions of the chains must have the same names and shapes") from error


def _told(info: Any, state: Any, step_size: Any) -> dict[str, Any]:
    """What a step tells, under the names of the other kernels."""
    told = {
        "acceptance": info.acceptance_rate,
        "n_evaluations": info.num_integration_steps,
        "divergent": info.is_divergent,
        "energy": info.energy,
        "step_size": step_size,
        "log_density": state.logdensity,
    }
    if hasattr(info, "num_trajectory_expansions"):
        told["tree_depth"] = info.num_trajectory_expansions
    return told


def _joined(jax: Any, rounds: list[Any], n_draws: int) -> dict[str, Any]:
    """Arrays (n_chains, n_draws, ...) by name; a position that is no dict is called ``x``."""
    named: dict[str, list[Any]] = {}
    for part in rounds:
        for path, values in jax.tree_util.tree_flatten_with_path(part)[0]:
            name = ".".join(str(getattr(step, "key", getattr(step, "idx", step))) for step in path) or "x"
            named.setdefault(name, []).append(values)
    return {name: np.concatenate(values, axis=1)[:, :n_draws] for name, values in named.items()}
