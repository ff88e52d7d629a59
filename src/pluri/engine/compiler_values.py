# mypy: allow-untyped-calls, allow-untyped-defs
"""Values that Numba's compiler would write to memory and read again, and that stay values.

A variable that is used in more than one block, and an array at each access to an element, are written to memory as a
whole: a record of a dozen arrays is a hundred numbers. LLVM finds out that none of it was needed, which takes a tenth
of the time of a first call. The code that is left at the end is the same.

A variable stays a value if it is assigned once, in a block that every use comes after, and holds nothing whose
references are counted: where ways meet Numba may let go of a variable twice, for which the memory must be zero the
second time. Loops that count no references (``allocates=False``) keep all of them. An array is taken apart where
one of its fields is read; where its address is asked for, a copy is written to memory, as nothing is ever written
through it: only new arrays are filled by their address, and these are left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

Shortcut = tuple[Any, str, Callable[..., Any]]


def assigned_once() -> Iterator[Shortcut]:
    """Variables with one assignment, before all their uses, are values and not places in memory."""
    from numba.core.lowering import Lower

    slowly = Lower._find_singly_assigned_variable

    def find(self: Any) -> None:
        found = None if self.func_ir.func_id.is_generator else _values(self.blocks)
        if found is None or self.context.enable_nrt:
            slowly(self)
            self._singly_assigned_vars.update(name for name in found or () if not is_counted(self, name))
        else:
            self._singly_assigned_vars, self._blk_local_varmap = found, {}

    def is_counted(self: Any, name: str) -> bool:
        return bool(self.context.data_model_manager[self.typeof(name)].contains_nrt_meminfo())

    yield Lower, "_find_singly_assigned_variable", find


def _values(blocks: Any) -> set[str] | None:
    """Names of variables that are assigned once, in a block that all their uses come after; None if it cannot tell."""
    from numba.core import ir
    from numba.core.analysis import compute_cfg_from_blocks

    place: dict[str, Any] = {}  # of the only assignment; None if there are several
    uses: dict[str, set[Any]] = {}
    for offset, block in sorted(blocks.items()):
        for statement in block.body:
            kind = type(statement)
            if kind is ir.Del:
                used, assigned = [statement.value], None
            elif kind is ir.Assign:
                used, assigned = _names(statement.value), statement.target.name
                if _may_jump(statement.value):
                    return None
            elif kind.__module__ == ir.__name__:
                used, assigned = [variable.name for variable in statement.list_vars()], None
            else:  # a statement of an extension, which may want addresses
                return None
            for name in used:
                place.setdefault(name, None)
                uses.setdefault(name, set()).add(offset)
            if assigned is not None:
                place[assigned] = None if assigned in place else offset
    before = compute_cfg_from_blocks(blocks).dominators()
    return {
        name
        for name, offset in place.items()
        if offset is not None and all(offset in before[use] and offset <= use for use in uses.get(name, ()))
    }


def _names(value: Any) -> list[str]:
    """Variables on the right-hand side of an assignment."""
    from numba.core import ir

    if isinstance(value, ir.Var):
        return [value.name]
    return [variable.name for variable in value.list_vars()] if isinstance(value, ir.Inst) else []


def _may_jump(value: Any) -> bool:
    """Whether it marks a block with an exception handler, to which calls jump from the middle of a block."""
    from numba.core import ir

    return isinstance(value, ir.Global) and getattr(value.value, "__name__", "") == "exception_check"


def taken_apart() -> Iterator[Shortcut]:
    """Arrays whose fields are read are not written to memory first."""
    from numba.core import types
    from numba.np import arrayobj

    slowly = arrayobj.make_array

    @cache
    def reader(array_type: Any) -> Any:
        return _reader(slowly(array_type))

    def make_array(array_type: Any) -> Any:
        # What behaves like an array may have code of its own for it.
        return reader(array_type) if type(array_type) is types.Array else slowly(array_type)

    yield arrayobj, "make_array", make_array


def _reader(kind: Any) -> Any:
    """A class like `kind`, Numba's for an array in memory, whose instances are values where they are made from one."""
    from numba.core import cgutils

    proxy: Any = cgutils._StructProxy

    class ArrayFields(kind):
        _given: Any = None

        def __init__(self, context: Any, builder: Any, value: Any = None, ref: Any = None) -> None:
            if value is None or ref is not None:
                super().__init__(context, builder, value, ref)
                return
            self._context, self._builder, self._given = context, builder, value
            self._datamodel = context.data_model_manager[self._fe_type]
            self._be_type = self._get_be_type(self._datamodel)
            if value.type != self._be_type:
                raise AssertionError(f"bad value type: expected {self._be_type}, got {value.type}")

        def _make_refs(self, ref: Any) -> Any:
            return proxy._make_refs(self, ref)

        def __getattr__(self, field: str) -> Any:
            if field in ("_value", "_outer_ref"):
                memory = cgutils.alloca_once(self._builder, self._be_type)
                self._builder.store(self._given, memory)
                return memory
            return proxy.__getattr__(self, field)

        def __getitem__(self, index: int) -> Any:
            if self._given is None:
                return super().__getitem__(index)
            return self._builder.extract_value(self._given, index)

        def __setitem__(self, index: int, value: Any) -> None:
            if self._given is None:
                super().__setitem__(index, value)
            else:
                self._given = self._builder.insert_value(self._given, value, index)

        def _getvalue(self) -> Any:
            return super()._getvalue() if self._given is None else self._given

        def _setvalue(self, value: Any) -> None:
            if self._given is None:
                super()._setvalue(value)
            else:
                self._given = value

        @property
        def shape(self) -> Any:
            return proxy.__getattr__(self, "shape") if self._given is not None else super().shape

    return ArrayFields
