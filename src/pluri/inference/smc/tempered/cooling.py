"""Settings of tempered sequential Monte Carlo: how particles go from one temperature to the next."""

from __future__ import annotations

from dataclasses import dataclass

from pluri.inference.ais.log_densities import SHARE
from pluri.inference.smc.resampling import check_method
from pluri.validation import check_count, check_value

#: States of a waste-free chain if `n_steps` is "adaptive": as near to this as the number of particles allows.
CHAIN_LENGTH = 10


@dataclass(frozen=True)
class Cooling:
    """How particles go from one temperature to the next.

    Parameters
    ----------
    ess_target : float, default=0.5
        Share of the particles that stays effective at each step of the temperature; more makes shorter steps.
    n_steps : int or "adaptive", default="adaptive"
        Steps of every particle at each temperature; "adaptive" goes on until the particles have forgotten where they
        were. With `waste_free` a number is the length of the chains, their beginnings included, and "adaptive" keeps
        ten states of each, as many steps apart as it takes, without the beginning.
    correlation : float, default=0.1
        How much "adaptive" lets the particles remember: correlation of the log likelihood and of the coordinates with
        those before the moves.
    max_steps : int, default=50
        Most steps of "adaptive" at one temperature, or between two states of a waste-free chain.
    resampling : {"systematic", "stratified", "residual", "multinomial"}, default="systematic"
    waste_free : bool, default=False
        Resample only as many particles as there are chains, and keep several states of each.
    max_temperatures : int, default=1000

    Examples
    --------
    >>> from pluri.inference.smc import Cooling
    >>> Cooling(n_steps=10, waste_free=True).ess_target
    0.5
    """

    ess_target: float = 0.5
    n_steps: int | str = "adaptive"
    correlation: float = 0.1
    max_steps: int = 50
    resampling: str = "systematic"
    waste_free: bool = False
    max_temperatures: int = 1000

    def __post_init__(self) -> None:
        check_value(self.ess_target, "ess_target", SHARE)
        check_value(self.correlation, "correlation", SHARE)
        if isinstance(self.n_steps, str):
            if self.n_steps != "adaptive":
                raise ValueError(f"n_steps must be a number of steps or 'adaptive', got {self.n_steps!r}")
        else:
            check_count(self.n_steps, "n_steps", 2 if self.waste_free else 1)
        check_count(self.max_steps, "max_steps")
        check_count(self.max_temperatures, "max_temperatures")
        check_method(self.resampling, "resampling")

    def chain_length(self, n_particles: int) -> int:
        """States that are kept of each chain: 1, or more with `waste_free`; it divides the number of particles."""
        if not self.waste_free:
            return 1
        if isinstance(self.n_steps, str):
            length = max(size for size in range(1, CHAIN_LENGTH + 1) if n_particles % size == 0)
            if length == 1 or length == n_particles:
                raise ValueError(f"waste_free needs n_particles with a divisor from 2 to 10, got {n_particles}")
            return length
        if n_particles % self.n_steps:
            raise ValueError(f"waste_free needs n_steps that divides n_particles ({n_particles}), got {self.n_steps}")
        return self.n_steps
