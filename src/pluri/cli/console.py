"""Speaking to the user: results on stdout, everything else on stderr, and exit codes.

0: done. 1: the data or the fit failed. 2: the command was not understood. 130: interrupted.
"""

from __future__ import annotations

import json
import math
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import typer

from pluri.cli.registry import UsageError

FAILED, USAGE, INTERRUPTED = 1, 2, 130


def note(message: str) -> None:
    """One line on stderr."""
    print(message, file=sys.stderr, flush=True)


def print_json(value: Any) -> None:
    """A value as JSON on stdout; what JSON cannot say (NaN, infinities) is null."""
    print(json.dumps(plain(value), indent=2, ensure_ascii=False))


def plain(value: Any) -> Any:
    """Numbers, text, lists and dicts only; other objects as their ``repr``.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.cli.console import plain
    >>> plain({"a": np.array([1.0, np.nan]), "b": np.int64(3), "c": slice(2)})
    {'a': [1.0, None], 'b': 3, 'c': 'slice(None, 2, None)'}
    """
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else repr(value)


@contextmanager
def reporting() -> Iterator[None]:
    """Turn failures into one sentence and an exit code, and warnings into lines on stderr."""
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.showwarning = lambda message, *rest: note(f"warning: {message}")
        try:
            yield
        except UsageError as error:
            raise typer.BadParameter(_sentence(error)) from error
        except BrokenPipeError:
            raise
        except KeyboardInterrupt:
            note("interrupted")
            raise typer.Exit(INTERRUPTED) from None
        except (ValueError, TypeError, OSError, ImportError, ArithmeticError, MemoryError) as error:
            note(f"error: {_sentence(error)}")
            raise typer.Exit(FAILED) from error


def _sentence(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return text or type(error).__name__
