"""How compiled loops are compiled, in one place.

Every loop is cached on disk (the second program that uses it does not wait) and lets other threads run. Wrappers
that only C callers need are left out: they are a fifth of the time to compile a small loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

#: Products may be fused and sums reordered, but NaN and infinity keep their meaning: they mark missing values and
#: impossible events.
REORDER = frozenset({"contract", "reassoc", "nsz"})


def compiled(*, reorder: bool = False, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Decorate a pure function on arrays: compile it, without the interpreter's lock, when it is first called.

    Parameters
    ----------
    reorder : bool, default=False
        Whether the compiler may reorder floating-point sums, which it needs to do several at a time.
    **options
        Passed on to `numba.njit`.
    """
    import numba

    options = {"cache": True, "nogil": True, "no_cfunc_wrapper": True, "error_model": "numpy"} | options
    if reorder:
        options["fastmath"] = set(REORDER)
    decorator: Callable[[Callable[..., Any]], Any] = numba.njit(**options)  # type: ignore[call-overload]
    return decorator
