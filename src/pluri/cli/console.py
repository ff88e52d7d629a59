"""Speaking to the user: results on stdout, everything else on stderr, and exit codes.

0: done. 1: the data or the fit failed. 2: the command was not understood. 130: interrupted.
"""

from __future__ import annotations

import json
import math
import re
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import typer

from pluri.cli.registry import UsageError

FAILED, USAGE, INTERRUPTED = 1, 2, 130
#: What steers a terminal instead of being shown (escape sequences begin with one of these), what turns the direction of
#: a line, ends of lines other than "\n", and halves of surrogate pairs, which cannot be written.
UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: object, *, lines: bool = False) -> str:
    r"""Text as a terminal may get it: control characters are spelt out, so that no file can steer the terminal.

    Parameters
    ----------
    text : object
        Turned into a string.
    lines : bool, default=False
        Whether it may have several lines; otherwise ends of lines and tabs are spelt out too.

    Examples
    --------
    >>> from pluri.cli.console import printable
    >>> print(printable("red: \x1b[31m"))
    red: \x1b[31m
    """
    safe = UNSAFE.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), str(text))
    return safe if lines else safe.replace("\n", "\\n").replace("\t", "\\t")


def show(text: object = "") -> None:
    """Some lines on stdout."""
    print(printable(text, lines=True))


def note(message: str) -> None:
    """One line on stderr."""
    print(printable(message, lines=True), file=sys.stderr, flush=True)


def print_json(value: Any) -> None:
    """A value as JSON on stdout; what JSON cannot say (NaN, infinities) is null."""
    print(json_text(value))


def json_text(value: Any) -> str:
    """A value as JSON, in which every character that could steer a terminal is escaped."""
    text = json.dumps(plain(value), indent=2, ensure_ascii=False)
    return UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


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
        except (BrokenPipeError, typer.Exit, typer.Abort):  # the last two are RuntimeErrors
            raise
        except KeyboardInterrupt:
            note("interrupted")
            raise typer.Exit(INTERRUPTED) from None
        except (ValueError, TypeError, OSError, ImportError, ArithmeticError, MemoryError, RuntimeError) as error:
            note(f"error: {_sentence(error)}")
            raise typer.Exit(FAILED) from error


def _sentence(error: BaseException) -> str:
    text = " ".join(str(error).split())
    # scikit-learn goes on with advice for programs, six lines of it.
    text = re.sub(
        r"(does not accept missing values) encoded as NaN natively\..*", r"\1: pluri impute fills empty cells", text
    )
    return printable(text) or type(error).__name__
