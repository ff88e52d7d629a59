"""A fit on disk: one ``.npz`` file without pickle, replaced as a whole, from which the fit goes on bit for bit.

Records are written leaf by leaf under names such as ``state.point.means:array`` (path, then kind of leaf). Reading
needs a record of the same make as a pattern, so that nothing in the file names code to run.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterator, Mapping
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.validation import check_count, check_writable, replacing

FORMAT = "pluri em checkpoint 1"


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """Where a fit is saved while it runs.

    Parameters
    ----------
    path : path
        File to go on from if it exists, and to write.
    every : int, default=10
        Iterations between two writes.
    fingerprint : str, default=""
        Description of data and settings; a file with another one is refused.

    Examples
    --------
    >>> from pluri.inference import Checkpoint
    >>> Checkpoint("fit.npz", every=50).exists()
    False
    """

    path: str | os.PathLike[str]
    every: int = 10
    fingerprint: str = ""

    def __post_init__(self) -> None:
        check_count(self.every, "every")
        if not Path(self.path).absolute().parent.is_dir():
            raise ValueError(f"checkpoint must lie in an existing directory, got {os.fspath(self.path)!r}")
        check_writable(self.path, "checkpoint")

    def exists(self) -> bool:
        """Whether there is a file to go on from."""
        return Path(self.path).exists()


def flatten(tree: Any, path: str = "") -> dict[str, NDArray[Any]]:
    """Leaves of a record by name, each an array that NumPy can store without pickle.

    Parameters
    ----------
    tree : object
        Dataclasses, tuples, lists and dicts with string keys, nested as one likes, of arrays, NumPy scalars, float,
        int, bool, str and None.
    path : str, default=""
        Name of the tree itself.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference import flatten
    >>> sorted(flatten({"means": np.zeros(2), "floor": 1e-3}, "params"))
    ['params.floor:float', 'params.means:array']
    """
    children = _children(tree)
    if children is not None:
        leaves: dict[str, NDArray[Any]] = {}
        for name, child in children:
            leaves |= flatten(child, f"{path}.{name}" if path else name)
        return leaves
    if isinstance(tree, np.ndarray | np.generic) and not tree.dtype.hasobject:
        return {f"{path}:{'array' if isinstance(tree, np.ndarray) else 'scalar'}": np.asarray(tree)}
    if tree is None or isinstance(tree, bool | int | float | str):
        kind = next(name for name, type_ in _KINDS.items() if isinstance(tree, type_))
        return {f"{path}:{kind}": np.array(tree if kind == "float" else str(tree))}
    raise TypeError(
        f"a checkpoint holds dataclasses, tuples, lists and dicts of arrays, numbers, strings and None, got "
        f"{type(tree).__name__}{' of objects' if isinstance(tree, np.ndarray) else ''} at {path!r}"
    )


def unflatten(leaves: Mapping[str, NDArray[Any]], like: Any, path: str = "") -> Any:
    """Inverse of :func:`flatten`.

    Parameters
    ----------
    leaves : mapping of str to ndarray
        What ``flatten`` gave; names outside ``path`` are ignored.
    like : object
        A tree of the same make: its types are used, its values are not. A leaf may differ in kind (None or an array).
    path : str, default=""
        Name under which the tree was flattened.

    Examples
    --------
    >>> from pluri.inference import flatten, unflatten
    >>> unflatten(flatten({"a": (1, None)}), like={"a": (0, 0.5)})
    {'a': (1, None)}
    """
    for kind, decode in _DECODERS.items():
        if f"{path}:{kind}" in leaves:
            return decode(leaves[f"{path}:{kind}"])
    children = _children(like)
    if children is None:
        raise ValueError(f"nothing is stored for {path!r}")
    values = {name: unflatten(leaves, child, f"{path}.{name}" if path else name) for name, child in children}
    if dataclasses.is_dataclass(like):
        # Around __init__, which might compute or check what is stored already.
        record = object.__new__(type(like))
        for name, value in values.items():
            object.__setattr__(record, name, value)
        return record
    if isinstance(like, dict):
        return values
    if hasattr(like, "_fields"):
        return type(like)(*values.values())
    return type(like)(values.values())


def shapes(tree: Any) -> str:
    """Names and shapes of the arrays of a record, to tell whether two problems are of one size.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference.checkpoint import shapes
    >>> shapes({"means": np.zeros((3, 2)), "floor": 1e-3})
    'means(3, 2)'
    """
    return ", ".join(
        f"{name.removesuffix(':array')}{leaf.shape}" for name, leaf in flatten(tree).items() if name.endswith(":array")
    )


def write(path: str | os.PathLike[str], header: Mapping[str, Any], tree: Any) -> None:
    """Write a JSON-able header and a record; the file is replaced in one go or stays as it was."""
    arrays: dict[str, Any] = {"format": np.array(FORMAT), "header": np.array(json.dumps(header))}
    with replacing(path, "checkpoint") as file:
        np.savez(file, **arrays, **flatten(tree))  # type: ignore[arg-type]


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Header and leaves of a checkpoint; ``ValueError`` if the file is damaged or something else."""
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            leaves = {name: archive[name] for name in archive.files}
        if str(leaves.pop("format")) != FORMAT:
            raise ValueError("unknown format")
        header = json.loads(str(leaves.pop("header")))
    except Exception as error:
        raise ValueError(
            f"checkpoint {os.fspath(path)!r} is damaged or not a checkpoint of pluri; it was left untouched: "
            f"move it away to start afresh, or give another path"
        ) from error
    return header, leaves


def streams_to_json(streams: list[np.random.Generator]) -> list[dict[str, Any]]:
    """Seed sequences of generators that nobody has drawn from: they hold the whole state, ``spawn`` included."""
    described = []
    for stream in streams:
        seed: Any = stream.bit_generator.seed_seq
        entropy = seed.entropy
        described.append(
            {
                "bit_generator": type(stream.bit_generator).__name__,
                "entropy": int(entropy) if isinstance(entropy, Integral) else [int(word) for word in entropy],
                "spawn_key": [int(word) for word in seed.spawn_key],
                "pool_size": int(seed.pool_size),
            }
        )
    return described


def streams_from_json(described: list[dict[str, Any]]) -> list[np.random.Generator]:
    """Inverse of :func:`streams_to_json`."""
    streams = []
    for item in described:
        seed = np.random.SeedSequence(item["entropy"], spawn_key=item["spawn_key"], pool_size=item["pool_size"])
        make = {name: getattr(np.random, name) for name in ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")}
        streams.append(np.random.Generator(make[item["bit_generator"]](seed)))
    return streams


_KINDS: dict[str, type | tuple[type, ...]] = {"none": type(None), "bool": bool, "int": int, "float": float, "str": str}
_DECODERS: dict[str, Any] = {
    "array": lambda leaf: leaf,
    "scalar": lambda leaf: leaf[()],
    "none": lambda leaf: None,
    "bool": lambda leaf: str(leaf) == "True",
    "int": lambda leaf: int(str(leaf)),
    "float": float,
    "str": str,
}


def _children(tree: Any) -> Iterator[tuple[str, Any]] | None:
    """Named parts of a container, None for a leaf."""
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        return ((field.name, getattr(tree, field.name)) for field in dataclasses.fields(tree))
    if isinstance(tree, dict):
        return ((str(name), child) for name, child in tree.items())
    if isinstance(tree, tuple | list):
        return ((str(index), child) for index, child in enumerate(tree))
    return None
