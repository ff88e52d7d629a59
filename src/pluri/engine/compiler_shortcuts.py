# mypy: allow-untyped-calls, allow-untyped-defs
"""Questions that Numba's compiler asks itself thousands of times, answered once.

Much of the time of a first call is Numba's own Python, and a good part of that goes into asking again: which of many
templates fits ``float64 + float64``, whether two sets of options are equal (forty properties, one by one), whether any
module has registered something since the last function, which variables a statement names, which are alive after each
of its passes. While a function of ours is compiled, these are answered from what is known, or when somebody wants the
answer; the answers are the same, and so is the code. Events that nobody listens to are not made, and what need not be
in memory is not written there (`pluri.engine.compiler_values`). Afterwards Numba is as it was. Versions of Numba with
which this was not tried are left alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from pluri.engine.collection_pause import CollectionPause
from pluri.engine.compile_cache import DEPENDS
from pluri.engine.compiler_values import Shortcut, assigned_once, taken_apart

#: Versions of Numba with which the code was found to be the same, with and without.
TRIED = frozenset({(0, 68)})


class CompilerShortcuts:
    """Its methods are called around each compilation; the shortcuts are taken while the outermost one is of ours."""

    def __init__(self) -> None:
        self._depth = 0
        self._replaced: list[tuple[Any, str, Any]] = []

    def begin(self, data: dict[str, Any]) -> None:
        """A function is going to be compiled, maybe for another one that is."""
        self._depth += 1
        if self._depth == 1 and hasattr(data["dispatcher"], DEPENDS):
            self.take()

    def end(self, data: dict[str, Any]) -> None:
        """It was compiled, or could not be."""
        self._depth -= 1
        if self._depth == 0:
            self.leave()

    def take(self) -> None:
        """Take the shortcuts from now on."""
        for kind, name, quicker in _shortcuts():
            self._replaced.append((kind, name, vars(kind)[name]))
            setattr(kind, name, quicker)

    def leave(self) -> None:
        """Leave Numba as it was."""
        while self._replaced:
            setattr(*self._replaced.pop())


@contextmanager
def hurried() -> Iterator[None]:
    """The compiler hurries inside the block as it does for functions of ours: for a function that somebody gave us."""
    pause, shortcuts = CollectionPause(), CompilerShortcuts()
    pause.begin({})
    shortcuts.take()
    try:
        yield
    finally:
        shortcuts.leave()
        pause.end({})


@cache
def _shortcuts() -> tuple[Shortcut, ...]:
    """Classes and modules of Numba, names of their functions, and what stands in for these."""
    import numba

    if numba.version_info.short not in TRIED:
        return ()
    found: list[Shortcut] = []
    for shortcut in (_options_by_what_is_set, _resolved_before, _nothing_new, _variables_by_kind, _alive_when_asked,
                     _told_to_listeners, assigned_once, taken_apart):  # fmt: skip
        found.extend(shortcut())
    return tuple(found)


def _options_by_what_is_set() -> Iterator[Shortcut]:
    """Sets of options are equal if the same ones are set to the same values; else all are compared, as ever."""
    from numba.core.targetconfig import TargetConfig

    slowly_equal, slow_number = TargetConfig.__eq__, TargetConfig.__hash__

    def equal(self: Any, other: Any) -> Any:
        if self is other or (type(self) is type(other) and self._values == other._values):
            return True
        return slowly_equal(self, other)

    @cache
    def number_of(kind: Any) -> int:
        return slow_number(kind())  # Numba's own depends on the names of the options alone

    def number(self: Any) -> int:
        kind: Any = type(self)
        return number_of(kind)

    yield TargetConfig, "__eq__", equal
    yield TargetConfig, "__hash__", number


def _resolved_before() -> Iterator[Shortcut]:
    """What ``float64 + float64`` is called and gives does not change as long as no template is added."""
    from numba.core.types.functions import BaseFunction

    slowly = BaseFunction.get_call_type
    known: dict[Any, Any] = {}

    def get_call_type(self: Any, context: Any, args: Any, kws: Any) -> Any:
        if kws:
            return slowly(self, context, args, kws)
        question = (context, self.typing_key, self.templates, args)
        signature = known.get(question)
        if signature is not None:
            self._impl_keys[signature.args] = self.typing_key
            return signature
        signature = slowly(self, context, args, kws)
        # An overload is compiled for the options of its caller, and has another key each time.
        if signature is not None and self._impl_keys[signature.args] is self.typing_key:
            known[question] = signature
        return signature

    yield BaseFunction, "get_call_type", get_call_type


def _nothing_new() -> Iterator[Shortcut]:
    """Contexts look for new declarations only when a module was imported, or something was declared, since they did."""
    from numba.core.base import BaseContext as TargetContext
    from numba.core.typing.context import BaseContext as TypingContext

    def declared(*contexts: Any) -> list[int]:
        """How many modules there are, and how long each list of each registry is."""
        loaders = [pair for context in contexts for pair in context._registries.items()]
        lengths = (len(getattr(registry, name)) for registry, loader in loaders for name in loader.registry_items)
        return [len(sys.modules), *lengths]

    def quicker(slowly: Callable[[Any], None]) -> Callable[[Any], None]:
        seen: dict[int, tuple[Any, list[int]]] = {}  # with what has the number, which is then given to nothing else

        def refresh(self: Any) -> None:
            place = self._registries  # copies of a context have it in common
            contexts = (self, self.typing_context) if isinstance(self, TargetContext) else (self,)
            before = declared(*contexts)
            if id(place) in seen and seen[id(place)][1] == before:
                return
            slowly(self)
            if declared(*contexts) == before:  # else some were maybe declared after their turn
                seen[id(place)] = place, before

        return refresh

    yield TargetContext, "refresh", quicker(TargetContext.refresh)
    yield TypingContext, "refresh", quicker(TypingContext.refresh)


def _variables_by_kind() -> Iterator[Shortcut]:
    """Most parts of a statement are names, places and numbers, which hold no variables: told by their class."""
    from numba.core.ir import Inst, Var

    slowly = Inst._rec_list_vars
    holders = (Var, Inst, list, tuple, dict)
    empty: dict[type, bool] = {}

    def list_variables(self: Any, value: Any) -> Any:
        kind = type(value)
        if kind is Var:
            return [value]
        if kind is dict:
            found = []
            for part in value.values():
                sort = type(part)
                if sort is Var:
                    found.append(part)
                elif sort not in empty:
                    found.extend(list_variables(self, part))
            return found
        if kind in empty:
            return []
        if not issubclass(kind, holders):
            empty[kind] = True
            return []
        return slowly(self, value)

    yield Inst, "_rec_list_vars", list_variables


def _alive_when_asked() -> Iterator[Shortcut]:
    """Which variables are alive where is asked after each pass, and wanted once: when the ends of lives are marked."""
    from numba.core.postproc import PostProcessor, VariableLifetime
    from numba.core.transforms import canonicalize_cfg

    slowly = PostProcessor.run

    def run(self: Any, emit_dels: bool = False, extend_lifetimes: bool = False) -> None:
        code = self.func_ir
        if emit_dels or code.is_generator:
            slowly(self, emit_dels, extend_lifetimes)
            return
        code.blocks = canonicalize_cfg(code.blocks)
        code.variable_lifetime = VariableLifetime(code.blocks)
        code.generator_info = None

    yield PostProcessor, "run", run


def _told_to_listeners() -> Iterator[Shortcut]:
    """Each call of LLVM and each lock is an event, of which there are ten thousands.

    Numba's own clocks for the time in locks, two for each function that is under way, do not listen meanwhile.
    """
    from numba.core import event

    numbas: Any = event
    listeners, clock = numbas._registered, numbas.TimingListener
    slow_start, slow_end = numbas.start_event, numbas.end_event
    locks = frozenset({"numba:llvm_lock", "numba:compiler_lock"})

    def nobody_hears(kind: str) -> bool:
        return kind in locks and all(type(listener) is clock for listener in listeners[kind])

    def start_event(kind: str, data: Any = None) -> None:
        if not nobody_hears(kind):
            slow_start(kind, data)

    def end_event(kind: str, data: Any = None, exc_details: Any = None) -> None:
        if not nobody_hears(kind):
            slow_end(kind, data, exc_details)

    yield event, "start_event", start_event
    yield event, "end_event", end_event
