"""Where a chain is, in a form that can be gone back to: after Ctrl-C in the middle of a step, and from a file.

Steps use up random numbers, and adaptations change as they learn. A snapshot keeps copies of both: what an adaptation
knows (its memory) is read from its attributes as plain numbers, texts and arrays, so that it can be written as JSON and
put back into another adaptation of the same kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pluri.inference.mcmc.composition import settings_of, with_settings

if TYPE_CHECKING:
    from pluri.inference.mcmc.chain import Chain

PLAIN = (type(None), bool, int, float, str)


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
