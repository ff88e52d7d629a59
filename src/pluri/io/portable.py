"""What of a model goes into a file, and how it looks there.

Everything that describes the model is stored: parameters, fitted attributes, history, vocabulary, priors, the state of
a random generator. Not stored is what belongs to the process or the machine that fitted it:

- ``engine``: a name ("threads") is kept, an object such as a ``distributed.Client`` becomes None;
- ``checkpoint`` and a pipeline's ``memory``: become None, so a file can never choose where a later fit reads or writes;
- ``monitor_`` of a class of your own, scikit-learn's callbacks and its metadata requests: left out.

Anything else that cannot be stored is refused when saving, by the name of the attribute.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from types import FunctionType
from typing import Any, get_type_hints

import numpy as np
from numpy.typing import NDArray

from pluri.io.trusted import CONTAINERS, NUMPY_SCALARS, RECORDS, Allowed, type_name
from pluri.io.trusted_sklearn import ADDRESSES, CHECKS, restore_imputer

State = dict[str, Any]

#: Attributes that are not part of the model.
LEFT_OUT = ("_skl_callbacks", "_skl_callbacks_to_teardown", "_callback_fit_ctx", "_metadata_request", *ADDRESSES)
#: Attributes that may hold an object of the user's own class, which steered the fit and is not needed afterwards.
MONITORS = ("monitor_", "_monitor")
#: Parameters that name places on one machine.
PLACES = ("checkpoint", "memory")
#: Deep enough for any model in a search in a pipeline, shallow enough to stop at a cycle.
MAX_DEPTH = 50


def pack(value: Any, names: Allowed, place: str = "model", depth: int = 0) -> Any:
    """A copy of a model, or of a part of it, that holds only what a file may hold.

    Examples
    --------
    >>> from pluri.io.portable import pack
    >>> from pluri.io.trusted import Allowed
    >>> pack({"a": (1, None)}, Allowed())
    {'a': (1, None)}
    >>> pack({"a": {1, 2}}, Allowed(), place="table_")
    Traceback (most recent call last):
    ...
    ValueError: model must hold only types that can be loaded again, got builtins.set in table_['a']
    """
    if depth > MAX_DEPTH:
        raise ValueError(f"model must not contain itself, got more than {MAX_DEPTH} levels in {place}")
    kind = type(value)

    def inner(item: Any, key: Any) -> Any:
        return pack(item, names, f"{place}[{key!r}]", depth + 1)

    if _is_scalar(value) or isinstance(value, np.random.Generator | np.random.RandomState):
        return value
    if isinstance(value, np.ma.MaskedArray):
        return np.ma.MaskedArray(inner(value.data, "data"), np.ma.getmaskarray(value))
    if isinstance(value, np.ndarray):
        return _pack_array(value, inner)
    if kind in (list, tuple):
        return kind(inner(item, index) for index, item in enumerate(value))
    if isinstance(value, tuple) and type_name(kind) in RECORDS:
        return kind(*(inner(item, index) for index, item in enumerate(value)))
    if kind is dict and all(type(key) in (str, int) or isinstance(key, np.str_ | np.integer) for key in value):
        return {key: inner(item, key) for key, item in value.items()}
    if isinstance(value, np.dtype):
        return pack(value.type, names, place, depth)
    if isinstance(value, type) and type_name(value) in CONTAINERS["TypeNode"]:
        return value
    if isinstance(value, FunctionType):
        if type_name(value) in names.functions:
            return value
        raise ValueError(
            f"model must hold no function that is not named in trusted, got {type_name(value)}, a builtins.function in "
            f"{place}"
        )
    if type_name(kind) in names.objects and hasattr(value, "__dict__"):
        return _pack_object(value, names, place, depth)
    raise ValueError(f"model must hold only types that can be loaded again, got {type_name(kind)} in {place}")


def _is_scalar(value: Any) -> bool:
    kind = type(value)
    return value is None or kind in (bool, int, float, str) or type_name(kind) in NUMPY_SCALARS


def _pack_array(array: NDArray[Any], inner: Callable[[Any, Any], Any]) -> NDArray[Any]:
    """A plain array in memory; objects in it are packed one by one."""
    plain = array.view(np.ndarray)
    if plain.dtype.kind == "T":
        return plain.astype(object)
    if plain.dtype != object:
        return plain
    packed = np.empty(plain.shape, dtype=object)
    for index, item in np.ndenumerate(plain):
        packed[index] = inner(item, index[0] if len(index) == 1 else index)
    return packed


def _pack_object(value: Any, names: Allowed, place: str, depth: int) -> Any:
    # A model may put off what is seldom asked for, and keeps what it needs for that: not for a file.
    getattr(value, "_settle_state", _nothing_to_settle)()
    state = {key: item for key, item in vars(value).items() if key not in LEFT_OUT}
    CHECKS.get(type_name(type(value)), _nothing_to_check)(state)
    for key in MONITORS:
        if key in state and type_name(type(state[key])) not in names.objects:
            del state[key]
    _forget_machine(state)
    if type_name(type(value)) in CODECS:
        state = CODECS[type_name(type(value))][0](state)
    copied = object.__new__(type(value))
    prefix = "" if place == "model" else f"{place}."
    copied.__dict__.update({key: pack(item, names, f"{prefix}{key}", depth + 1) for key, item in state.items()})
    return copied


def _nothing_to_settle() -> None:
    """What most objects have to do before they are saved."""


def restore(value: Any) -> Any:
    """Undo `pack` in place, on what skops has built."""
    if isinstance(value, list | tuple):
        for item in value:
            restore(item)
    elif isinstance(value, dict):
        for item in value.values():
            restore(item)
    elif isinstance(value, np.ndarray):
        for item in np.ma.getdata(value).ravel() if value.dtype == object else ():
            restore(item)
    elif isinstance(getattr(value, "__dict__", None), dict) and not isinstance(value, type | FunctionType):
        state = vars(value)
        _forget_machine(state)
        CHECKS.get(type_name(type(value)), _nothing_to_check)(state)
        if type_name(type(value)) in CODECS:
            state.update(CODECS[type_name(type(value))][1](state))
        for item in state.values():
            restore(item)
    return value


def _nothing_to_check(state: State) -> None:
    pass


def _forget_machine(state: State) -> None:
    for key in PLACES:
        if key in state:
            state[key] = None
    if "engine" in state and not isinstance(state["engine"], str):
        state["engine"] = None


def _pack_history(state: State) -> State:
    # One array instead of a node of the schema for each number.
    rows = state["rows"]
    return {"rows": np.array(rows, dtype=np.float64).reshape(len(rows), -1 if rows else 0)}


def _restore_history(state: State) -> State:
    if isinstance(state["rows"], list):
        return state
    from pluri.inference.run import HistoryRow

    kinds = get_type_hints(HistoryRow).values()
    return {"rows": [tuple(kind(number) for kind, number in zip(kinds, row)) for row in state["rows"]]}


def _pack_monitor(state: State) -> State:
    return state | {"history": [float(objective) for objective in state["history"]]}


def _restore_monitor(state: State) -> State:
    return {"history": deque(state["history"])}


#: Objects that look different in a file: how their state is written, and how it is read back.
CODECS: dict[str, tuple[Callable[[State], State], Callable[[State], State]]] = {
    "pluri.inference.run.History": (_pack_history, _restore_history),
    "pluri.sequences.fitting.ConvergenceMonitor": (_pack_monitor, _restore_monitor),
    "sklearn.impute._base.SimpleImputer": (dict, restore_imputer),
}
