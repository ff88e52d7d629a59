"""What HMC and NUTS share: a target with a metric and a step size, and the warm-up that learns both."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar

import numpy as np

from pluri.inference.mcmc.adaptation import DualAveraging, RunningVariance, window_ends
from pluri.inference.mcmc.compiled_targets.chains import Block
from pluri.inference.mcmc.hamiltonian.leapfrog import (
    Array,
    GradientState,
    Landscape,
    ValueAndGrad,
    first_step_size,
    initial_state,
    landscape,
    strides_of,
)
from pluri.inference.mcmc.kernel import Info
from pluri.validation import Number, Only, check_value

Metric = Literal["diag", "dense", "unit"]


class OneRow:
    """A function of rows, for a single position."""

    def __init__(self, function: Callable[[Array], tuple[Any, Array]]):
        self._function = function

    def __call__(self, position: Array) -> tuple[float, Array]:
        result = self._function(position[np.newaxis])
        if not (isinstance(result, tuple) and len(result) == 2):
            raise ValueError(f"value_and_grad must return (log densities, gradients), got {type(result).__name__}")
        values, gradients = np.asarray(result[0]), np.asarray(result[1])
        if values.shape != (1,) or gradients.shape != (1, len(position)):
            raise ValueError(
                f"a vectorized value_and_grad must give shapes (n,) and (n, {len(position)}) for n rows, "
                f"got {values.shape} and {gradients.shape} for one"
            )
        return float(values[0]), gradients[0]


@dataclass(frozen=True)
class HamiltonianKernel:
    """What HMC and NUTS share: a target, a metric and a step size.

    Parameters
    ----------
    value_and_grad : callable
        Position (dim,) to the log density and its gradient (dim,).
    step_size : float or None, default=None
        Length of a leapfrog step. The warm-up begins with it (with 1 if it is None) and adapts it; without a warm-up
        it stays as it is.
    inverse_mass : array-like of shape (dim,) or (dim, dim), optional
        Variances (or covariance) of the target as far as they are known; ones at first.
    metric : {"diag", "dense", "unit"}, default="diag"
        What the warm-up learns of the inverse mass; "unit" learns nothing.
    target_accept : float, default=0.8
        Mean acceptance that the warm-up aims at.
    check_gradient : bool, default=True
        Compare the gradient with finite differences at the start.
    vectorized : bool, default=False
        Whether `value_and_grad` takes a row for each chain, (n, dim), and gives (n,) and (n, dim).
    compiled : bool, default=False
        Whether `value_and_grad` is a function that Numba compiles, ``value_and_grad(x, gradient, data) -> float``.
    data : tuple, array or number, optional
        What the compiled function gets.
    """

    value_and_grad: Any
    step_size: float | None = None
    inverse_mass: Any = None
    metric: Metric = "diag"
    target_accept: float = 0.8
    check_gradient: bool = True
    vectorized: bool = False
    compiled: bool = field(default=False, kw_only=True)
    data: Any = field(default=None, kw_only=True)

    one_row: ValueAndGrad = field(init=False, repr=False, compare=False)

    #: Settings that the warm-up learns: what a saved trace keeps of a kernel.
    tuned = ("step_size", "inverse_mass")

    def __post_init__(self) -> None:
        check_value(self.metric, "metric", Only("diag", "dense", "unit"))
        check_value(self.target_accept, "target_accept", Number(above=0, below=1))
        if self.step_size is not None and not (self.step_size > 0 and math.isfinite(self.step_size)):
            raise ValueError(f"step_size must be positive, got {self.step_size!r}")
        if self.inverse_mass is not None:
            inverse_mass = np.asarray(self.inverse_mass, dtype=np.float64)
            diagonal = np.diagonal(inverse_mass) if inverse_mass.ndim == 2 else inverse_mass
            if inverse_mass.ndim not in (1, 2) or not (np.isfinite(inverse_mass).all() and (diagonal > 0).all()):
                raise ValueError("inverse_mass must be a vector of variances or a covariance matrix, positive")
            object.__setattr__(self, "inverse_mass", inverse_mass)
        if self.compiled and self.vectorized:
            raise ValueError("a density is either compiled or vectorized, and takes one position if it is compiled")
        if self.data is not None and not self.compiled:
            raise ValueError("data is for compiled=True; a plain value_and_grad finds its data by itself")
        if self.compiled and not hasattr(self.value_and_grad, "target"):
            from pluri.inference.mcmc.compiled_targets.compiled_density import CompiledDensity

            object.__setattr__(self, "value_and_grad", CompiledDensity(self.value_and_grad, self.data))
        # What every step needs is worked out once; it follows from the fields, so the record stays what it was.
        object.__setattr__(self, "one_row", OneRow(self.value_and_grad) if self.vectorized else self.value_and_grad)
        if self.inverse_mass is not None:
            object.__setattr__(self, "_terrain", landscape(self.one_row, self.inverse_mass))

    def init(self, rng: np.random.Generator, position: Any) -> GradientState:
        """State at a position."""
        state = initial_state(self.one_row, position, check_gradient=self.check_gradient)
        if self.inverse_mass is not None and len(self.inverse_mass) != len(state.position):
            raise ValueError(
                f"inverse_mass must be for {len(state.position)} coordinates, got shape {self.inverse_mass.shape}"
            )
        return state

    def terrain(self, dim: int) -> Landscape:
        """The target with its metric; ones where none is known."""
        if self.inverse_mass is None:
            return landscape(self.one_row, np.ones(dim))
        prepared: Landscape = self._terrain  # type: ignore[attr-defined]
        return prepared

    @property
    def used_step_size(self) -> float:
        """The step size, or 1 where none is known."""
        return self.step_size if self.step_size is not None else 1.0

    @property
    def healthy_acceptance(self) -> tuple[float, float]:
        """Mean acceptance outside of which the step size is wrong: less than half of what the warm-up aims at."""
        return 0.5 * self.target_accept, 1.0

    def strides(self, dim: int) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        """What a drift and half a kick multiply by, forwards and backwards."""
        found: tuple[tuple[Array, Array], tuple[Array, Array]] | None = self.__dict__.get("_strides")
        if found is None:
            drift, kick = strides_of(self.terrain(dim), self.used_step_size)
            found = (drift, kick), (-drift, -kick)
            if self.inverse_mass is not None:  # the dimension is that of the metric
                object.__setattr__(self, "_strides", found)
        return found

    @property
    def advance_together(self) -> Any:
        """How several steps of chains of this kernel are made in one go; None if they are made one by one."""
        if not self.compiled:
            return None
        from pluri.inference.mcmc.compiled_targets.chains import advance_compiled

        return advance_compiled

    def block(self, rng: np.random.Generator, state: GradientState, n_steps: int, adaptation: Any = None) -> Block:
        """Some steps of a compiled density, which an adaptation learns from."""
        from pluri.inference.mcmc.hamiltonian.compiled_blocks import make_block

        return make_block(self, rng, state, n_steps, adaptation)

    def adaptation(self, n_warmup: int) -> HamiltonianAdaptation:
        """Step size by dual averaging; the inverse mass from the draws, in windows."""
        return HamiltonianAdaptation(n_warmup, self.metric, self.target_accept)


H = TypeVar("H", bound=HamiltonianKernel)


class HamiltonianAdaptation:
    """Warm-up of HMC and NUTS."""

    def __init__(self, n_warmup: int, metric: Metric, target_accept: float):
        self._ends = window_ends(n_warmup) if metric != "unit" else ()
        self._metric = metric
        self._averaging = DualAveraging(target=target_accept)
        self._done = 0

    def start(self, rng: np.random.Generator, kernel: H, state: GradientState) -> H:
        """Find a step size to begin with."""
        inverse_mass = kernel.inverse_mass if kernel.inverse_mass is not None else np.ones(len(state.position))
        if self._metric == "dense" and inverse_mass.ndim == 1:
            inverse_mass = np.diag(inverse_mass)
        kernel = replace(kernel, inverse_mass=inverse_mass)
        terrain = kernel.terrain(len(state.position))
        step_size = first_step_size(rng, terrain, state, kernel.step_size or 1.0)
        self._averaging.restart(step_size)
        self._seen = RunningVariance(len(state.position), dense=self._metric == "dense")
        return replace(kernel, step_size=step_size)

    def update(self, rng: np.random.Generator, kernel: H, state: GradientState, info: Info) -> H:
        """Adapt the step size; at the end of a window, the inverse mass as well."""
        self._done += 1
        step_size = self._averaging.update(info["acceptance"])
        if not self._ends or self._done <= self._ends[0] or self._done > self._ends[-1]:
            return _with_step(kernel, step_size)
        self._seen.add(state.position)
        if self._done not in self._ends:
            return _with_step(kernel, step_size)
        inverse_mass = self._seen.regularised()
        if kernel.inverse_mass.ndim > inverse_mass.ndim:  # chains that move together need metrics of one shape
            inverse_mass = np.diag(inverse_mass)
        kernel = replace(kernel, inverse_mass=inverse_mass, step_size=step_size)
        self._seen = RunningVariance(len(state.position), dense=self._metric == "dense")
        step_size = first_step_size(rng, kernel.terrain(len(state.position)), state, step_size)
        self._averaging.restart(step_size)
        return _with_step(kernel, step_size)

    @property
    def watching(self) -> bool:
        """Whether the position of the next step is one that the inverse mass is learned from."""
        return bool(self._ends) and self._ends[0] <= self._done < self._ends[-1]

    @property
    def quiet_steps(self) -> int:
        """Steps before the next one at which a window ends, during which only numbers change."""
        ahead = [end - 1 - self._done for end in self._ends if end > self._done]
        return ahead[0] if ahead else sys.maxsize

    def numbers(self) -> list[float]:
        """What it knows of the step size, for compiled code."""
        return self._averaging.numbers()

    def take(self, kernel: H, block: Any, n_steps: int) -> H:
        """Know what compiled code has learned in some steps; gives the kernel with the step size then."""
        if self.watching:
            self._seen.add_rows(block.positions)
        self._done += n_steps
        self._averaging.take(block.memory.tolist())
        return _with_step(kernel, self._averaging.step_size)

    def finish(self, kernel: H) -> H:
        """Keep the averaged step size."""
        return _with_step(kernel, self._averaging.averaged)


def _with_step(kernel: H, step_size: float) -> H:
    """The kernel with another step size and the same prepared metric: cheap, as it happens at every step."""
    other: H = object.__new__(type(kernel))
    other.__dict__.update(kernel.__dict__)
    other.__dict__.pop("_strides", None)
    object.__setattr__(other, "step_size", step_size)
    return other
