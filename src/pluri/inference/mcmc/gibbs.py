"""Gibbs sampling over named blocks: each is drawn from its distribution given the others, or moved by a kernel for it.

A sweep of draws from full conditionals leaves the joint distribution invariant, and so does one in which some blocks
only make a step of a kernel whose target is their conditional. A block that can be integrated out should be: averages
over ``E[f | rest]`` never have a larger variance than averages over f.

References
----------
.. [1] Geman, S. and Geman, D. (1984). Stochastic relaxation, Gibbs distributions, and the Bayesian restoration of
       images. IEEE PAMI 6, 721-741.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from pluri.inference.mcmc.accept_reject.metropolis_hastings import one_number
from pluri.inference.mcmc.block_adaptation import GibbsAdaptation
from pluri.inference.mcmc.chain import with_settings
from pluri.inference.mcmc.composition import acceptances, joined_info, settings_from, settings_text
from pluri.inference.mcmc.kernel import Info
from pluri.inference.mcmc.step_health import ANY_ACCEPTANCE
from pluri.validation import Only, check_value

Values = dict[str, Any]
#: ``draw(rng, position)``: the new value of a block, or a dict of the new values of several variables.
Draw = Callable[[np.random.Generator, Mapping[str, Any]], Any]


#: What the kernels did before the first sweep, in which it is seen whether functions leave their arguments alone.
UNTRIED: Mapping[str, Inner] = {}


class Inner(NamedTuple):
    """What the kernel of a block did in a sweep: what its warm-up wants to see."""

    kernel: Any
    state: Any
    info: Info


class GibbsState(NamedTuple):
    """Values of all variables by name; the log density (NaN if it is not known); the kernels' last steps by block."""

    position: Values
    log_density: float
    inner: Mapping[str, Inner]


@dataclass(frozen=True)
class Conditional:
    """A block that a kernel moves, given the other blocks.

    Parameters
    ----------
    kernel : callable
        ``kernel(rest) -> Kernel`` for the distribution of the block given `rest`, a dict of all other variables. The
        kernel moves a vector: the values of the block one after another, or its coordinates in `space`.
    space : Space, optional
        For constrained variables: the kernel moves their unconstrained coordinates.
    n_steps : int, default=1
        Steps of the kernel in each sweep.

    Examples
    --------
    See :class:`Gibbs`.
    """

    kernel: Callable[[Mapping[str, Any]], Any]
    space: Any = None
    n_steps: int = 1

    def __post_init__(self) -> None:
        if not callable(self.kernel):
            raise ValueError(f"kernel must be a function of the other variables, got {type(self.kernel).__name__}")
        if self.n_steps < 1:
            raise ValueError(f"n_steps must be at least 1, got {self.n_steps!r}")

    def pack(self, position: Mapping[str, Any], names: Sequence[str]) -> Any:
        """Values of the block as one vector."""
        if self.space is not None:
            return self.space.unconstrain({name: position[name] for name in names})
        return np.concatenate([np.ravel(position[name]) for name in names])

    def unpack(self, vector: Any, position: Mapping[str, Any], names: Sequence[str]) -> Values:
        """The vector back in the shapes of the block."""
        if self.space is not None:
            values: Values = self.space.constrain(vector)
            return values
        if len(names) == 1:
            return {names[0]: np.reshape(vector, np.shape(position[names[0]]))}
        ends = np.cumsum([np.size(position[name]) for name in names])[:-1]
        return {name: np.reshape(part, np.shape(position[name])) for name, part in zip(names, np.split(vector, ends))}


@dataclass(frozen=True)
class Gibbs:
    """Gibbs sampling: the position is a dict of arrays, and each block is renewed given the rest.

    Parameters
    ----------
    blocks : dict
        By name of the variable, or tuple of names for variables that move together: a function
        ``draw(rng, position)`` that gives the new value (or a dict of new values, of these or other variables), or a
        :class:`Conditional`. Functions must not change the arrays that they are given.
    log_density : callable, optional
        Position to the log density of all of it; kept with the draws, and what finds the block that broke something.
    scan : {"fixed", "random"}, default="fixed"
        All blocks in order, or as many blocks drawn at random, which is reversible.
    learned : str
        What the warm-up learned of the kernels, as text; a trace that is resumed fills it in.

    Examples
    --------
    A normal sample with unknown mean and variance; the mean from its conditional, the variance by slice sampling of
    its logarithm:

    >>> import numpy as np
    >>> from pluri.inference import mcmc
    >>> from pluri.inference.mcmc.gibbs import Conditional, Gibbs
    >>> from pluri.inference.mcmc.slice_sampling import Slice
    >>> x = np.random.default_rng(0).normal(3, 2, size=200)
    >>> def mean(rng, position):
    ...     return rng.normal(x.mean(), np.exp(0.5 * position["log_variance"]) / np.sqrt(len(x)))
    >>> def log_variance(rest):
    ...     residual = ((x - rest["mean"]) ** 2).sum()
    ...     return Slice(lambda v: float(-0.5 * len(x) * v[0] - 0.5 * residual * np.exp(-v[0])))
    >>> kernel = Gibbs({"mean": mean, "log_variance": Conditional(log_variance)})
    >>> trace = mcmc.sample(kernel, {"mean": 0.0, "log_variance": 0.0}, n_draws=500, n_warmup=100, random_state=0)
    >>> bool(abs(trace["mean"].mean() - x.mean()) < 0.05)
    True
    """

    blocks: Mapping[Any, Draw | Conditional]
    log_density: Callable[[Mapping[str, Any]], float] | None = None
    scan: Literal["fixed", "random"] = "fixed"
    learned: str = ""

    #: One text with what the kernels of all blocks have learned.
    tuned = ("learned",)

    def __post_init__(self) -> None:
        if not self.blocks:
            raise ValueError("blocks must hold at least one block, got none")
        check_value(self.scan, "scan", Only("fixed", "random"))
        table = []
        for key, block in self.blocks.items():
            names = (key,) if isinstance(key, str) else tuple(key)
            if not (isinstance(block, Conditional) or callable(block)):
                raise ValueError(f"block {', '.join(names)!r} must be a function or a Conditional, got {block!r}")
            table.append((", ".join(names), names, block))
        object.__setattr__(self, "_table", tuple(table))
        object.__setattr__(self, "_settings", settings_from(self.learned))
        object.__setattr__(self, "_watched", False)

    def init(self, rng: np.random.Generator, position: Any) -> GibbsState:
        """State at a position: every block must be there, and every kernel must accept its part."""
        if not isinstance(position, Mapping):
            raise ValueError(f"the position must be a dict of arrays, got {type(position).__name__}")
        values = {str(name): np.asarray(value) for name, value in position.items()}
        for _, names, block in self._table:  # type: ignore[attr-defined]
            missing = [name for name in names if name not in values]
            if missing:
                raise ValueError(f"the position must hold {missing[0]!r}; it holds {', '.join(map(repr, values))}")
            if isinstance(block, Conditional):
                self._enter(rng, values, names, block, first=True)
        return GibbsState(values, self._value_of([("at the initial position", values)]), UNTRIED)

    def step(self, rng: np.random.Generator, state: GibbsState) -> tuple[GibbsState, Info]:
        """One sweep."""
        table = self._table  # type: ignore[attr-defined]
        order = range(len(table)) if self.scan == "fixed" else rng.integers(len(table), size=len(table))
        position = state.position
        path: list[tuple[str, Values]] = []
        infos: dict[str, list[Info]] = {label: [] for label, _, _ in self.moved_blocks()}
        inner: dict[str, Inner] = {}
        for index in order:
            label, names, block = table[index]
            if isinstance(block, Conditional):
                kernel, block_state = self._enter(rng, position, names, block)
                for _ in range(block.n_steps):
                    block_state, told = kernel.step(rng, block_state)
                    infos[label].append(told)
                values = block.unpack(block_state.position, position, names)
                if self._watched:  # type: ignore[attr-defined]
                    inner[label] = Inner(kernel, block_state, told)
            else:
                before = {name: value.tobytes() for name, value in position.items()} if state.inner is UNTRIED else {}
                drawn = block(rng, position)
                changed = [name for name, content in before.items() if position[name].tobytes() != content]
                if changed:
                    raise ValueError(
                        f"block {label!r} changed the array {changed[0]!r} that it was given: it must return a new one"
                    )
                values = dict(drawn) if isinstance(drawn, Mapping) else {names[0]: drawn}
                if not isinstance(drawn, Mapping) and len(names) > 1:
                    raise ValueError(f"block {label!r} holds several variables: it must return a dict of them")
            position = _renewed(position, values, label)
            path.append((f"after block {label!r} was renewed", position))
        value = self._value_of(path)
        told_by_all = [told for block_infos in infos.values() for told in block_infos]
        return GibbsState(position, value, inner), joined_info(told_by_all) | acceptances(infos)

    def block_names(self) -> dict[str, tuple[str, ...]]:
        """Names of the variables of each block, by the label of the block."""
        return {label: names for label, names, _ in self._table}  # type: ignore[attr-defined]

    def healthy_acceptances(self, position: Values) -> dict[str, tuple[float, float]]:
        """By block that a kernel moves, the mean acceptance that is neither too low nor too high."""
        found = {}
        for label, names, block in self.moved_blocks():
            kernel = block.kernel({name: value for name, value in position.items() if name not in names})
            found[label] = getattr(kernel, "healthy_acceptance", ANY_ACCEPTANCE)
        return found

    def adaptation(self, n_warmup: int) -> GibbsAdaptation | None:
        """Each kernel learns its own settings, which stay with its block from sweep to sweep."""
        return GibbsAdaptation(n_warmup) if self.moved_blocks() else None

    def moved_blocks(self) -> list[tuple[str, tuple[str, ...], Conditional]]:
        """Label, variables and definition of each block that a kernel moves."""
        table = self._table  # type: ignore[attr-defined]
        return [(label, names, block) for label, names, block in table if isinstance(block, Conditional)]

    def settings_so_far(self) -> dict[str, Any]:
        """What the kernels have learned, also while they learn."""
        return {"learned": settings_text(self._settings)}  # type: ignore[attr-defined]

    def _enter(
        self, rng: np.random.Generator, position: Values, names: Sequence[str], block: Conditional, first: bool = False
    ) -> tuple[Any, Any]:
        """The kernel of a block for what the others are now, with what it has learned, and its state."""
        label = ", ".join(names)
        rest = {name: value for name, value in position.items() if name not in names}
        kernel = block.kernel(rest)
        kernel = with_settings(kernel, self._settings.get(label, {}), checks=first)  # type: ignore[attr-defined]
        try:
            state = kernel.init(rng, block.pack(position, names))
        except ValueError as error:
            raise ValueError(f"block {label!r}: {error}") from error
        return kernel, state

    def _value_of(self, path: Sequence[tuple[str, Values]]) -> float:
        """Log density at the end of a sweep; if it is not finite, the first block after which it was not is named."""
        if self.log_density is None:
            return math.nan
        value = one_number(self.log_density(path[-1][1]))
        if not math.isfinite(value):
            for label, position in path:
                value = one_number(self.log_density(position))
                if not math.isfinite(value):
                    raise ValueError(f"log_density must be finite, got {value} {label}")
        return value


def _renewed(position: Values, values: Mapping[str, Any], label: str) -> Values:
    """The position with some values replaced; the old one stays as it is."""
    fresh = dict(position)
    for name, value in values.items():
        if name not in position:
            raise ValueError(f"block {label!r} gave a value for {name!r}, which is no variable of the position")
        if value is None:
            raise ValueError(f"block {label!r} gave None for {name!r}: its function must return the new value")
        array = np.asarray(value)
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ValueError(f"block {label!r} gave values of {name!r} that are not finite")
        fresh[name] = array
    return fresh
