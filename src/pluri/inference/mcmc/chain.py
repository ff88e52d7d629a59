"""One chain: a kernel, a state, a random stream, and how many steps it has made; and how to go back to where it was.

Steps use up random numbers, and adaptations change as they learn. A snapshot keeps copies of both: what an adaptation
knows (its memory) is read from its attributes as plain numbers, texts and arrays, so that it can be written as JSON and
put back into another adaptation of the same kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np

from pluri.inference.mcmc.kernel import Adaptation, Info
from pluri.inference.run import IterationState

#: A proposal far out may overflow on its way to being refused.
FAR_OUT: Any = {"over": "ignore", "invalid": "ignore", "divide": "ignore"}
#: Switches of kernels that test a target once: not again each time that a chain passes from one kernel to another.
CHECKS = ("check_gradient", "check_proposal")
PLAIN = (type(None), bool, int, float, str)


@dataclass(frozen=True)
class Chain:
    """A chain between two steps.

    `adaptation` is None once the warm-up is over; `since_draw` is what the steps since the last draw told.
    """

    kernel: Any
    adaptation: Adaptation | None
    state: Any
    rng: np.random.Generator
    done: int
    since_draw: tuple[Info, ...] = ()

    def iteration_state(self, index: int, n_chains: int, n_steps: int, seconds: float) -> Any:
        """What progress displays want to know."""
        value = float(self.state.log_density)
        return sweep_state(
            chain=index, n_chains=n_chains, sweep=self.done, n_sweeps=n_steps, log_joint=value, log_likelihood=value,
            gain=float("nan"), seconds=seconds,
        )  # fmt: skip


@dataclass(frozen=True)
class Segment:
    """Some steps of a chain: where it is now, and the draws made on the way (arrays by name, draw first)."""

    chain: Chain
    draws: Mapping[str, Any]
    stats: Mapping[str, Any]
    interrupted: bool = False

    @property
    def n_draws(self) -> int:
        """Draws made."""
        return next((len(values) for values in self.draws.values()), 0)

    def followed_by(self, other: Segment) -> Segment:
        """Both segments as one."""
        if not other.draws or not self.draws:
            return Segment(other.chain, self.draws or other.draws, self.stats or other.stats)
        return Segment(
            other.chain,
            {name: np.concatenate([values, other.draws[name]]) for name, values in self.draws.items()},
            {name: np.concatenate([values, other.stats[name]]) for name, values in self.stats.items()},
        )


@dataclass(frozen=True)
class Remembered:
    """In place of an adaptation that lives in another process: what it knows."""

    memory: Any


@dataclass(frozen=True)
class Snapshot:
    """A chain between two steps, with copies of all that later steps change."""

    chain: Chain
    random_state: Mapping[str, Any]
    memory: Any

    def restored(self) -> Chain:
        """The chain as it was; its generator and its adaptation are changed back."""
        self.chain.rng.bit_generator.state = self.random_state
        if self.memory is not None and not isinstance(self.chain.adaptation, Remembered):
            put_back(self.chain.adaptation, self.memory)
        return self.chain


def snapshot_of(chain: Chain) -> Snapshot:
    """Copies of the state of the generator and of the memory of the adaptation."""
    return Snapshot(chain, chain.rng.bit_generator.state, memory_of(chain.adaptation))


def start_chain(kernel: Any, position: Any, rng: np.random.Generator, n_warmup: int) -> Chain:
    """Chain at its first position, ready to warm up."""
    with np.errstate(**FAR_OUT):
        state = kernel.init(rng, position)
        adaptation = kernel.adaptation(n_warmup) if n_warmup > 0 else None
        if adaptation is not None:
            kernel = adaptation.start(rng, kernel, state)
    return Chain(kernel, adaptation, state, rng, 0)


class Logbook:
    """A chain under way: what each step does to it, and the draws kept."""

    def __init__(
        self, chain: Chain, n_warmup: int, thin: int, record: Callable[[Any], Mapping[str, Any]] | None = None
    ):
        self.kernel, self.state, self.rng, self.done = chain.kernel, chain.state, chain.rng, chain.done
        self._adaptation = chain.adaptation
        self._between = list(chain.since_draw)
        self._n_warmup, self._thin, self._record = n_warmup, thin, record
        self._n_before = self._n_draws()
        self._positions: list[Any] = []
        self._infos: list[Info] = []
        self._values: list[float] = []
        self._start = snapshot_of(chain)
        self._random_state = self._start.random_state
        self._adapting = False
        self._parts: list[tuple[dict[str, Any], dict[str, Any]]] = []

    @property
    def adaptation(self) -> Adaptation | None:
        """What learns the settings, in the warm-up."""
        return self._adaptation

    @property
    def warmup_left(self) -> int:
        """Steps of the warm-up that are still to be made."""
        return max(self._n_warmup - self.done, 0)

    @property
    def warming(self) -> bool:
        """Whether the next step is one of the warm-up."""
        return self.warmup_left > 0

    def undo(self) -> None:
        """Go back to the last whole step, as if no random number had been drawn since."""
        if not self._adapting:
            self.rng.bit_generator.state = self._random_state
            return
        # The adaptation has half learned from a step: what it knew is found by making the same steps again.
        n_steps, chain = self.done - self._start.chain.done, self._start.restored()
        self.kernel, self.state, self.done, self._adaptation = chain.kernel, chain.state, chain.done, chain.adaptation
        self._adapting = False
        for _ in range(n_steps):
            self.took(*self.kernel.step(self.rng, self.state))

    def _n_draws(self) -> int:
        return max(self.done - self._n_warmup, 0) // self._thin

    def took(self, state: Any, info: Info) -> None:
        """A step was made: adapt during warm-up, keep every `thin`-th state after it."""
        done, n_warmup = self.done, self._n_warmup
        kernel, adaptation, between = self.kernel, self._adaptation, self._between
        if done >= n_warmup:
            between.append(info)
            if (done + 1 - n_warmup) % self._thin == 0:
                self._positions.append(recorded(state.position, self._record))
                self._infos.append(info if self._thin == 1 else _mean_info(between))
                self._values.append(state.log_density)
                between = []
        elif adaptation is not None:
            self._adapting = True
            kernel = adaptation.update(self.rng, kernel, state, info)
            if done + 1 == n_warmup:
                kernel, adaptation = adaptation.finish(kernel), None
        after = self.rng.bit_generator.state
        # Last, with no call in between: Ctrl-C may come anywhere above, and the step then counts as not made.
        self.kernel, self._adaptation, self._between, self._adapting = kernel, adaptation, between, False
        self.state, self.done, self._random_state = state, done + 1, after

    def learned(self, state: Any, n_steps: int, take: Callable[[Any], Any]) -> None:
        """Several steps of the warm-up were made; `take` tells the adaptation of them and gives the kernel."""
        self._adapting = True
        kernel, after = take(self.kernel), self.rng.bit_generator.state
        self.kernel, self.state, self.done = kernel, state, self.done + n_steps
        self._random_state, self._adapting = after, False

    def took_draws(self, block: Any) -> None:
        """Several steps after the warm-up were made, the path of which is in arrays: keep every `thin`-th."""
        thin, n_before = self._thin, len(self._between)
        told = block.told
        if n_before:
            told = {name: np.concatenate([[info[name] for info in self._between], part]) for name, part in told.items()}
        n_kept, n_left = divmod(n_before + len(block.values), thin)
        between: list[Info] = [{name: part[n_kept * thin + i] for name, part in told.items()} for i in range(n_left)]
        if thin > 1:
            told = {name: part[: n_kept * thin].reshape(n_kept, thin).mean(axis=1) for name, part in told.items()}
        rows = block.positions[thin - 1 - n_before :: thin]
        draws = {"x": rows} if self._record is None else stacked([self._record(row) for row in rows])
        after = self.rng.bit_generator.state
        if n_kept:
            self._parts.append((draws, {**told, "log_density": block.values[thin - 1 - n_before :: thin]}))
        self.state, self.done, self._random_state = block.state, self.done + len(block.values), after
        self._between = between

    def segment(self, interrupted: bool = False) -> Segment:
        """What was done."""
        n_draws = self._n_draws() - self._n_before
        n_between = max(self.done - self._n_warmup, 0) % self._thin
        chain = Chain(self.kernel, self._adaptation, self.state, self.rng, self.done, tuple(self._between[:n_between]))
        stats = _stack_infos(self._infos[:n_draws], self._values[:n_draws])
        draws = stacked(self._positions[:n_draws])
        if self._parts and n_draws:
            draws, stats = (
                {name: np.concatenate([part[which][name] for part in self._parts])[:n_draws] for name in first}
                for which, first in enumerate(self._parts[0])
            )
        return Segment(chain, draws, stats, interrupted)


def advance(
    chains: Sequence[Chain],
    n_steps: int,
    n_warmup: int,
    thin: int,
    record: Callable[[Any], Mapping[str, Any]] | None = None,
) -> list[Segment]:
    """Make some steps of each chain; Ctrl-C ends them early and keeps those made."""
    books = [Logbook(chain, n_warmup, thin, record) for chain in chains]
    together = getattr(chains[0].kernel, "advance_together", None)
    interrupted = False
    with np.errstate(**FAR_OUT):
        try:
            if together is not None:
                together(books, n_steps)
            else:
                for book in books:
                    for _ in range(n_steps):
                        book.took(*book.kernel.step(book.rng, book.state))
        except KeyboardInterrupt:
            interrupted = True
            for book in books:
                book.undo()
    return [book.segment(interrupted) for book in books]


def _mean_info(infos: list[Info]) -> Info:
    means = {name: float(np.mean([info[name] for info in infos])) for name in infos[0]}
    for name, value in means.items():
        if value != value:  # a block that was not moved at some of the steps tells nothing there
            told = [info[name] for info in infos if info[name] == info[name]]
            means[name] = float(np.mean(told)) if told else value
    return means


def recorded(position: Any, record: Callable[[Any], Mapping[str, Any]] | None) -> Any:
    """What is kept of a position."""
    return position if record is None else record(position)


def stacked(positions: list[Any]) -> dict[str, Any]:
    """Positions as arrays by name, position first."""
    if not positions:
        return {}
    if isinstance(positions[0], Mapping):
        return {str(name): np.array([position[name] for position in positions]) for name in positions[0]}
    return {"x": np.array(positions)}


def _stack_infos(infos: list[Info], values: list[float]) -> dict[str, Any]:
    if not infos:
        return {}
    stats = {name: np.array([info[name] for info in infos]) for name in infos[0]}
    return stats | {"log_density": np.array(values)}


def settings_of(kernel: Any) -> dict[str, Any]:
    """What a kernel has learned, by name."""
    return {name: getattr(kernel, name) for name in getattr(kernel, "tuned", ())}


def with_settings(kernel: Any, settings: Mapping[str, Any], checks: bool = True) -> Any:
    """The kernel with settings that another of its kind has learned, and with or without the checks of a start."""
    changes = dict(settings)
    if not checks and is_dataclass(kernel):
        present = {each.name for each in fields(kernel)}
        changes |= {name: False for name in CHECKS if name in present and getattr(kernel, name)}
    return replace(kernel, **changes) if changes else kernel


def without_checks(kernel: Any) -> Any:
    """The kernel without the tests that it makes of its target at a start."""
    return with_settings(kernel, {}, checks=False)


def resumed_warmup(chain: Chain, memory: Any, n_warmup: int) -> Chain:
    """A chain, whose kernel has the settings learned so far, with an adaptation of `n_warmup` steps that remembers."""
    adaptation = chain.kernel.adaptation(n_warmup)
    if adaptation is None:
        return chain
    # Some attributes come about only at the start, whose random numbers and settings are not wanted.
    adaptation.start(np.random.default_rng(0), chain.kernel, chain.state)
    put_back(adaptation, memory)
    kernel = adaptation.again(chain.kernel) if hasattr(adaptation, "again") else chain.kernel
    return replace(chain, kernel=kernel, adaptation=adaptation)


def memory_of(value: Any) -> Any:
    """A value, or what an object knows, as numbers, texts, lists and dicts; functions are left out (None)."""
    if isinstance(value, Remembered):
        return value.memory
    if isinstance(value, PLAIN):
        return value
    if isinstance(value, np.ndarray | np.generic):
        return {"array": value.tolist(), "dtype": value.dtype.str}
    if isinstance(value, list | tuple):
        return [memory_of(part) for part in value]
    if isinstance(value, Mapping):
        return {"by name": {str(name): memory_of(part) for name, part in value.items()}}
    if hasattr(value, "tuned"):  # a kernel: its functions are not for keeping
        return {"settings": memory_of(settings_of(value))}
    if hasattr(value, "__dict__") and not callable(value) and not hasattr(value, "step"):
        return {"attributes": {name: memory_of(part) for name, part in vars(value).items()}}
    return None


def put_back(owner: Any, memory: Any) -> Any:
    """Give an object its memory back, changing it; gives the object, or the value that was remembered."""
    if isinstance(memory, Mapping):
        if "array" in memory:
            return np.array(memory["array"], dtype=memory["dtype"])[()]
        if "by name" in memory:
            old = owner if isinstance(owner, Mapping) else {}
            return {name: put_back(old.get(name), part) for name, part in memory["by name"].items()}
        if "settings" in memory:
            return with_settings(owner, put_back({}, memory["settings"]), checks=False)
        for name, part in memory["attributes"].items():
            before = getattr(owner, name, None)
            if part is not None or isinstance(before, PLAIN):
                object.__setattr__(owner, name, put_back(before, part))  # a record may be frozen
        return owner
    if isinstance(memory, list):
        old_parts = list(owner) if isinstance(owner, list | tuple) else []
        old_parts += [None] * (len(memory) - len(old_parts))
        parts = [put_back(old, part) for old, part in zip(old_parts, memory)]
        return tuple(parts) if isinstance(owner, tuple) else parts
    return memory


def sweep_state(
    *, chain: int, n_chains: int, sweep: int, n_sweeps: int, log_joint: float, log_likelihood: float, gain: float,
    seconds: float,
) -> IterationState[None]:  # fmt: skip
    """A step of one of several chains as an iteration: what watches a fit sees it so; `sweep` counts from 1."""
    return IterationState(
        params=None,
        restart=chain,
        n_init=n_chains,
        iteration=sweep,
        max_iter=n_sweeps,
        objective=log_joint,
        log_likelihood=log_likelihood,
        gain=gain,
        seconds=seconds,
        accepted=True,
        reason="max_iter" if sweep == n_sweeps else None,
    )
