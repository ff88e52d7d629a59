"""Metropolis-Hastings: propose a move, and accept it just often enough that the target stays invariant.

A move from x to x' ~ q(. | x) is accepted with probability ``min(1, f(x') q(x | x') / (f(x) q(x' | x)))``; otherwise x
is repeated, and the repeat counts as a draw. A symmetric proposal needs no q. The ratio must be that of the proposal
that made the draw: a random walk corrected by the ratio of an independence proposal samples ``f / q`` instead of f,
and nothing in its output looks wrong. So :class:`MetropolisHastings` tests its proposal before it begins.

References
----------
.. [1] Hastings, W. K. (1970). Monte Carlo sampling methods using Markov chains and their applications. Biometrika 57.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pluri.inference.mcmc.kernel import Info

Array = NDArray[np.float64]
LogDensity = Callable[[Any], float]
#: Standard errors by which a proposal may disagree with its density before it is called wrong.
MISMATCH = 7.0


class PointState(NamedTuple):
    """Where a chain is, with the log density there."""

    position: Any
    log_density: float


def one_number(value: Any, name: str = "log_density") -> float:
    """What a density returned, as a float."""
    if isinstance(value, float):
        return value
    if value is None:
        raise ValueError(f"{name} must return one number, got None")
    try:
        values = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        hint = ": a pair of value and gradient is for NUTS, HMC and Langevin" if isinstance(value, tuple) else ""
        raise ValueError(f"{name} must return one number, got {type(value).__name__}{hint}") from None
    if values.size != 1:
        raise ValueError(f"{name} must return one number, got shape {values.shape}")
    return float(values.item())


def initial_point(log_density: LogDensity, position: Any, name: str = "log_density") -> PointState:
    """State at a position where the target must be finite; arrays are kept as they are, of any type."""
    if isinstance(position, Mapping):
        position = {key: np.asarray(value) for key, value in position.items()}
        values = list(position.values())
    else:
        position = np.asarray(position)
        values = [position]
    if not any(value.size for value in values):
        raise ValueError("the initial position is empty")
    if not all(np.isfinite(value).all() for value in values if value.dtype.kind == "f"):
        raise ValueError("the initial position must be finite")
    value = one_number(log_density(position), name)
    if not math.isfinite(value):
        raise ValueError(f"{name} must be finite at the initial position, got {value}")
    return PointState(position, value)


def as_vector(position: Any) -> Array:
    """A position of a kernel that moves vectors of real numbers."""
    if isinstance(position, Mapping):
        raise ValueError(
            "the position must be a vector, got a dict: begin at Space.unconstrain(values), with record=Space.constrain"
        )
    vector = np.array(position, dtype=np.float64)
    if vector.ndim != 1 or vector.size == 0:
        raise ValueError(f"the position must be a vector with at least one entry, got shape {vector.shape}")
    return vector


def acceptance_of(log_density: float, change: float) -> float:
    """``min(1, exp(change))``; 0 where the log density is -inf or NaN, and an error where it is +inf."""
    if log_density == math.inf:
        raise ValueError("the log density is +inf at a proposal: it must be finite or -inf")
    if change >= 0:
        return 1.0
    return math.exp(change) if change == change else 0.0


def step_info(acceptance: float, accepted: bool, log_density: float, n_evaluations: int = 1) -> dict[str, float]:
    """What a step with one proposal tells: `undefined` counts NaN, `outside` counts -inf (outside the support)."""
    return {
        "acceptance": acceptance,
        "accepted": accepted,
        "n_evaluations": n_evaluations,
        "undefined": float(log_density != log_density),
        "outside": float(log_density == -math.inf),
    }


@dataclass(frozen=True)
class MetropolisHastings:
    """Metropolis-Hastings with a proposal of your own; positions may be arrays of any type, or dicts of them.

    Parameters
    ----------
    log_density : callable
        Position to the log density of the target, up to a constant.
    propose : callable
        ``propose(rng, position)`` draws a new position and leaves the old one as it is.
    log_proposal : callable, optional
        ``log_proposal(new, old)``: log density of the proposal, which must be the one that `propose` draws from, up
        to a constant that does not depend on `old`. Without it the proposal is taken to be symmetric.
    check_proposal : bool, default=True
        Test at the start that `propose` leaves its argument as it is, and that it and `log_proposal` belong together.

    Examples
    --------
    A multiplicative step on the positive numbers is not symmetric:

    >>> import numpy as np
    >>> from pluri.inference import mcmc
    >>> from pluri.inference.mcmc.accept_reject.metropolis_hastings import MetropolisHastings
    >>> kernel = MetropolisHastings(
    ...     log_density=lambda x: -float(x[0]) if x[0] > 0 else -np.inf,
    ...     propose=lambda rng, x: x * np.exp(1.5 * rng.standard_normal(1)),
    ...     log_proposal=lambda new, old: float(-np.log(new[0]) - np.log(new[0] / old[0]) ** 2 / (2 * 1.5**2)),
    ... )
    >>> trace = mcmc.sample(kernel, np.ones(1), n_draws=4000, n_warmup=0, random_state=0)
    >>> bool(abs(trace["x"].mean() - 1) < 0.1)
    True
    """

    log_density: LogDensity
    propose: Callable[[np.random.Generator, Any], Any]
    log_proposal: Callable[[Any, Any], float] | None = None
    check_proposal: bool = True

    def init(self, rng: np.random.Generator, position: Any) -> PointState:
        """State at a position."""
        state = initial_point(self.log_density, position)
        if self.check_proposal:
            refuse_change_in_place(self.propose, state.position)
        if self.check_proposal and self.log_proposal is not None:
            error = proposal_mismatch(self.propose, self.log_proposal, state.position)
            if error > MISMATCH:
                raise ValueError(
                    "log_proposal is not the log density of what propose draws (they disagree by "
                    f"{error:.1f} standard errors): the chain would sample another distribution"
                )
        return state

    def step(self, rng: np.random.Generator, state: PointState) -> tuple[PointState, Info]:
        """One proposal, accepted or not."""
        position = self.propose(rng, state.position)
        log_density = one_number(self.log_density(position))
        change = log_density - state.log_density
        if self.log_proposal is not None and log_density > -math.inf:
            change += log_ratio(self.log_proposal, position, state.position)
        acceptance = acceptance_of(log_density, change)
        accepted = rng.random() < acceptance
        info = step_info(acceptance, accepted, log_density)
        return (PointState(position, log_density) if accepted else state), info

    def adaptation(self, n_warmup: int) -> None:
        """Nothing to learn."""
        return


def refuse_change_in_place(propose: Callable[[np.random.Generator, Any], Any], position: Any, n_tries: int = 5) -> None:
    """Refuse a proposal that writes into the position: a move that is refused could then not be taken back."""
    rng = np.random.default_rng(0)
    for _ in range(n_tries):
        given = deepcopy(position)
        propose(rng, given)
        if _contents(given) != _contents(position):
            raise ValueError("propose changed the position that it was given: it must return a new one")


def _contents(position: Any) -> list[bytes]:
    return [value.tobytes() for value in (position.values() if isinstance(position, Mapping) else [position])]


def log_ratio(log_proposal: Callable[[Any, Any], float], new: Any, old: Any) -> float:
    """``log q(old | new) - log q(new | old)``."""
    there, back = one_number(log_proposal(new, old), "log_proposal"), one_number(log_proposal(old, new), "log_proposal")
    if not (math.isfinite(there) and back < math.inf):
        raise ValueError(
            f"log_proposal must be finite at what propose draws, and not NaN or +inf anywhere; got {there} there and "
            f"{back} for the way back"
        )
    return back - there


def proposal_mismatch(
    propose: Callable[[np.random.Generator, Any], Any],
    log_proposal: Callable[[Any, Any], float],
    position: Any,
    n_draws: int = 600,
) -> float:
    """How badly a proposal disagrees with its supposed density, in standard errors.

    For two positions a, b and any h, ``E[h q_b / (q_a + q_b)]`` over draws of ``q_a`` equals ``E[h q_a / (q_a + q_b)]``
    over draws of ``q_b``; all terms are bounded, so that the comparison has no heavy tails. It sees a density that
    belongs to another proposal, and normalising constants that were left out although they depend on the position.
    """
    rng = np.random.default_rng(0)
    others = [propose(rng, position) for _ in range(5)]
    spread = [float(np.abs(_flat(other) - _flat(position)).max()) if _alike(other, position) else -1.0
              for other in others]  # fmt: skip
    other = others[int(np.argmax(spread))]
    from_here, from_there = ([propose(rng, start) for _ in range(n_draws)] for start in (position, other))
    if not all(_alike(draw, position) for draw in (other, *from_here, *from_there)):
        return 0.0  # positions change their shape: nothing to compare them by
    shares = []
    for draws, own, foreign in ((from_here, position, other), (from_there, other, position)):
        from_own, from_foreign = (
            np.array([one_number(log_proposal(draw, start), "log_proposal") for draw in draws])
            for start in (own, foreign)
        )
        with np.errstate(over="ignore", invalid="ignore"):
            shares.append(1.0 / (1.0 + np.exp(from_own - from_foreign)))
    features = [np.array([_flat(draw) for draw in draws]) for draws in (from_here, from_there)]
    middle = np.median(np.concatenate(features), axis=0)
    sides = [
        share[:, None] * np.column_stack([np.ones(n_draws), values > middle, values < middle])
        for share, values in zip(shares, features)
    ]
    difference = np.abs(sides[0].mean(axis=0) - sides[1].mean(axis=0))
    # The bounded terms have a variance of at most 1/4; a floor keeps rounding from looking significant.
    error = np.sqrt((sides[0].var(axis=0) + sides[1].var(axis=0)) / n_draws) + 1.0 / n_draws
    return float((difference / error).max())


def _flat(position: Any) -> Array:
    values = list(position.values()) if isinstance(position, Mapping) else [position]
    return np.concatenate([np.ravel(np.asarray(value, dtype=np.float64)) for value in values])


def _alike(one: Any, other: Any) -> bool:
    if isinstance(one, Mapping) != isinstance(other, Mapping):
        return False
    if isinstance(one, Mapping):
        return one.keys() == other.keys() and all(np.shape(one[name]) == np.shape(other[name]) for name in one)
    return np.shape(one) == np.shape(other)
