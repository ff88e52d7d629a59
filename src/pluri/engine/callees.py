# mypy: allow-untyped-calls
"""What a compiled function is for the compiled functions that call it.

Numba makes machine code of every function, also of those that only other compiled functions call, although their code
is copied into each caller, optimised and turned into machine code there once more: four times at a depth of four.
What compiled functions call is therefore kept as the compiler's intermediate code alone; the callers do the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any


def callee(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """A function without machine code of its own, for compiled functions only: Python gets a `TypeError`."""
    import numba

    compiler = _callee_compiler()
    if compiler is None:
        return numba.njit(**options)(function)
    own = {"cache": False, "no_cpython_wrapper": True, "pipeline_class": compiler}
    loop = numba.njit(**options | own)(function)
    if not hasattr(loop, "get_call_template"):  # NUMBA_DISABLE_JIT: functions stay as they are
        return loop

    def add_overload(result: Any) -> None:
        # Callers find the code by its entry point; there is none, so that anything serves of which there is only one.
        result = result._replace(entry_point=object())
        loop.targetctx.insert_user_function(result.entry_point, result.fndesc, [result.library])
        loop.overloads[tuple(result.signature.args)] = result

    def refuse(*args: Any, **kwargs: Any) -> None:
        raise TypeError(f"{function.__name__} has no machine code of its own: only compiled functions can call it")

    loop.add_overload = add_overload
    loop._compile_for_args = refuse
    loop.get_call_template = _without_literals(loop.get_call_template)
    return loop


def lend(loop: Any, function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """Have compiled functions that call `loop` take a version without machine code; gives `loop`."""
    if not hasattr(loop, "get_call_template") or _callee_compiler() is None:
        return loop

    @cache
    def lent() -> Any:
        inside = callee(function, options)
        inside._compiling_counter = loop._compiling_counter  # by which Numba knows that a function calls itself
        return inside

    loop.get_call_template = lambda args, kws: lent().get_call_template(args, kws)
    loop.get_overload = lambda signature: lent().get_overload(signature)
    return loop


def _without_literals(resolve: Callable[..., Any]) -> Callable[..., Any]:
    """A constant argument is a type of its own to Numba, for which all would be compiled anew."""
    from numba.core import types

    def resolve_for_values(args: Any, kws: Any) -> Any:
        plain = (types.IntegerLiteral, types.BooleanLiteral)
        as_value = lambda kind: types.unliteral(kind) if isinstance(kind, plain) else kind  # noqa: E731
        return resolve(tuple(map(as_value, args)), {name: as_value(kind) for name, kind in dict(kws).items()})

    return resolve_for_values


@cache
def _callee_compiler() -> type | None:
    """A compiler that stops at the intermediate code; None if this version of Numba is made in another way."""
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import Compiler

    needed = ("_optimize_final_module", "_finalize_final_module", "_finalize_dynamic_globals")
    if not all(hasattr(JITCodeLibrary, name) for name in needed):
        return None

    class IntermediateCode(JITCodeLibrary):
        """The code of a function after the passes over single functions; the rest is done in the callers."""

        def _optimize_final_module(self) -> None:
            pass

        def _finalize_final_module(self) -> None:
            self._finalize_dynamic_globals()
            self._finalized = True

    class CalleeCompiler(Compiler):
        def define_pipelines(self) -> Any:
            state = self.state
            state.library = IntermediateCode(state.targetctx.codegen(), state.func_id.func_qualname)
            state.flags.no_compile = True
            return super().define_pipelines()

    return CalleeCompiler
