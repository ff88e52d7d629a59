"""Optional packages: imported when they are needed, and a sentence with the command when they are missing."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any


def import_extra(module: str, purpose: str, extra: str) -> ModuleType:
    """Import an optional module, or say what to install.

    Examples
    --------
    >>> from pluri.engine.extras import import_extra
    >>> import_extra("snake_oil", "Curing everything", extra="all")
    Traceback (most recent call last):
    ...
    ImportError: Curing everything needs snake_oil, which is not installed: pip install "pluri[all]"
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ImportError(f'{purpose} needs {package}, which is not installed: pip install "pluri[{extra}]"') from error


def import_pandas() -> Any:
    """Import pandas, which only data frames need, or say how to get it."""
    try:
        return importlib.import_module("pandas")
    except ImportError as missing:
        raise ImportError("a data frame needs pandas: pip install pandas") from missing
