"""An optimizer as plain data: dicts, lists, strings and numbers, for files that can be read without the library."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np

from pluri.decisions.bayesian_optimization.history import (
    evaluation_data,
    from_number,
    space_data,
    space_from_data,
)
from pluri.validation import replacing

FORMAT = "pluri.BayesianOptimizer"
VERSION = 1
SETTINGS = (
    "acquisition", "n_initial_points", "kernel", "noise_variance", "hyper_inference", "n_draws", "n_warmup", "xi",
    "kappa", "pending", "maximize", "n_constraints",
)  # fmt: skip


class PlainData:
    """What can be written down as plain data, and goes on from there."""

    def to_dict(self) -> dict[str, Any]:
        """Settings, evaluations, points under way and random numbers as plain data, which JSON can hold."""
        return to_data(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The optimizer that `to_dict` described; it goes on where that one was."""
        return from_data(cls, data)

    def save(self, path: str | Path) -> None:
        """Write everything to a JSON file."""
        write_data(self.to_dict(), path)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what `save` wrote."""
        return cls.from_dict(read_data(path))


def to_data(optimizer: Any) -> dict[str, Any]:
    """Everything that an optimizer is made of, its models excepted: they are learned again."""
    history = optimizer._history
    return {
        "format": FORMAT,
        "version": VERSION,
        "space": space_data(optimizer.space),
        "settings": {name: _plain(getattr(optimizer, name)) for name in SETTINGS},
        "evaluations": [evaluation_data(one) for one in history.evaluations],
        "pending": [{"params": optimizer.space.params(row), "kind": kind} for row, kind in history.pending],
        "design": optimizer._chooser.design.tolist(),
        "n_designed": optimizer._chooser.n_designed,
        "random": _plain(optimizer._chooser.rng.bit_generator.state),
    }


def from_data(kind: Any, data: Mapping[str, Any]) -> Any:
    """The optimizer that the data describe."""
    if not isinstance(data, Mapping) or data.get("format") != FORMAT or data.get("version") != VERSION:
        raise ValueError(
            f"data must be what to_dict of a BayesianOptimizer gives (version {VERSION}), got {_short(data)}"
        )
    try:
        settings = {name: data["settings"][name] for name in SETTINGS}
        space = space_from_data(data["space"])
        optimizer = kind(dict(zip(space.names, space.dimensions)), **settings)
        for one in data["evaluations"]:
            limits = tuple(from_number(value) for value in one["constraints"])
            if len(limits) != optimizer.n_constraints:
                raise ValueError(f"an evaluation must have {optimizer.n_constraints} constraints, got {len(limits)}")
            row = space.row(one["params"])
            optimizer._history.pending.append((row, str(one["kind"])))  # which `add` takes off again, with its kind
            optimizer._history.add(one["params"], row, from_number(one["value"]), limits, from_number(one["seconds"]))
        optimizer._history.pending = [(space.row(one["params"]), str(one["kind"])) for one in data["pending"]]
        design = np.array(data["design"], dtype=np.float64).reshape(-1, space.n_dimensions)
        if not np.isfinite(design).all():
            raise ValueError("design must be finite")
        optimizer._chooser.design = space.snap(design)
        optimizer._chooser.n_designed = int(data["n_designed"])
        optimizer._chooser.rng = _generator(data["random"])
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"data is not what to_dict of a BayesianOptimizer gives: {error!r}") from error
    return optimizer


def write_data(data: dict[str, Any], path: str | Path) -> None:
    """Write a JSON file whole or not at all."""
    text = json.dumps(data, indent=1, allow_nan=False)
    with replacing(path) as file:
        file.write(text.encode("utf-8"))


def read_data(path: str | Path) -> Any:
    """Read a JSON file."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is no JSON file: {error}") from error


def _generator(state: Any) -> np.random.Generator:
    name = state["bit_generator"]
    if name not in ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"):
        raise ValueError(f"random must be the state of a bit generator of NumPy, got {name!r}")
    bits = getattr(np.random, name)()
    bits.state = state
    return np.random.Generator(bits)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, np.ndarray):
        return value.tolist()
    return value.item() if isinstance(value, np.generic) else value


def _short(data: Any) -> str:
    text = repr(data)
    return text if len(text) < 80 else text[:77] + "..."
