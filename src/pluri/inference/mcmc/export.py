"""A trace in a file."""

from __future__ import annotations

import json
import tokenize
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pluri.inference.mcmc.trace import ChainEnd, Trace
from pluri.validation import replacing

FORMAT = "pluri-trace"
VERSION = 1
#: What reading a file that is something else, or damaged, ends in.
DAMAGE = (
    ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RuntimeError, OSError, MemoryError,
    zipfile.BadZipFile, zlib.error, EOFError, SyntaxError, tokenize.TokenError,
)  # fmt: skip


def save_trace(trace: Trace, path: str | Path) -> None:
    """Write a trace as NPZ: arrays, and one JSON text for the rest. The file appears whole or not at all."""
    arrays: dict[str, Any] = {f"draws/{name}": values for name, values in trace.draws.items()}
    arrays |= {f"stats/{name}": values for name, values in trace.stats.items()}
    ends = []
    for index, end in enumerate(trace.ends):
        named = end.position if isinstance(end.position, Mapping) else {"": end.position}
        arrays |= {f"position/{index}/{name}": np.asarray(value) for name, value in named.items()}
        # None is what the kernel has by itself: nothing was learned.
        learned = {name: value for name, value in end.settings.items() if value is not None}
        arrays |= {f"settings/{index}/{name}": np.asarray(value) for name, value in learned.items()}
        since_draw = [{name: float(value) for name, value in info.items()} for info in end.since_draw]
        ends.append({"random_state": end.random_state, "memory": end.memory, "since_draw": since_draw})
    for name, values in arrays.items():
        if np.asarray(values).dtype.hasobject:
            raise TypeError(f"{name} holds Python objects, which a trace file cannot keep")
    about = {
        "format": FORMAT,
        "version": VERSION,
        "n_warmup": trace.n_warmup,
        "thin": trace.thin,
        "interrupted": trace.interrupted,
        "seconds": trace.seconds,
        "warmup_left": trace.warmup_left,
        "origin": trace.origin,
        "ends": ends,
    }
    arrays["about.json"] = np.array(json.dumps(about))
    with replacing(path) as file:
        np.savez_compressed(file, **arrays)


def load_trace(path: str | Path) -> Trace:
    """Read a trace file; nothing in it is ever run."""
    with open(path, "rb") as stream:
        try:
            with np.load(stream, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            about = json.loads(str(arrays.pop("about.json")))
            if about["format"] != FORMAT:
                raise ValueError
        except DAMAGE as error:
            raise ValueError(f"{path} is not a trace that pluri saved") from error
    if about["version"] > VERSION:
        raise ValueError(f"{path} was saved by a newer pluri (trace version {about['version']}, known {VERSION})")

    def under(prefix: str) -> dict[str, Any]:
        return {name[len(prefix) :]: value for name, value in arrays.items() if name.startswith(prefix)}

    ends = []
    for index, end in enumerate(about["ends"]):
        named = under(f"position/{index}/")
        settings = {
            name: value.item() if value.ndim == 0 else value for name, value in under(f"settings/{index}/").items()
        }
        memory, since_draw = end.get("memory"), tuple(end.get("since_draw", ()))
        ends.append(ChainEnd(named.get("", named), end["random_state"], settings, memory=memory, since_draw=since_draw))
    return Trace(
        under("draws/"),
        under("stats/"),
        tuple(ends),
        about["n_warmup"],
        about["thin"],
        about["interrupted"],
        float(about["seconds"]),
        int(about.get("warmup_left", 0)),
        str(about.get("origin", "")),
    )
