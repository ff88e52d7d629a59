"""Models by name: every public estimator of the model families, and how its parameters are given as text."""

from __future__ import annotations

import ast
import difflib
import inspect
from collections.abc import Sequence
from typing import Any

#: Packages whose public names are searched for models.
FAMILIES = ("pluri.sequences",)
WORDS = {"inf": float("inf"), "-inf": float("-inf"), "nan": float("nan"), "true": True, "false": False, "none": None}


class UsageError(ValueError):
    """What was typed cannot be meant: exit code 2."""


def models() -> dict[str, type]:
    """Estimator classes by name: those of the families that have a constructor of their own (bases have none).

    Examples
    --------
    >>> from pluri.cli.registry import models
    >>> models()["GaussianHMM"].__name__
    'GaussianHMM'
    """
    from importlib import import_module

    from sklearn.base import BaseEstimator

    found = {}
    for family in FAMILIES:
        package = import_module(family)
        for name in package.__all__:
            kind = getattr(package, name)
            if inspect.isclass(kind) and issubclass(kind, BaseEstimator) and "__init__" in vars(kind):
                found[name] = kind
    return dict(sorted(found.items()))


def find_model(name: str) -> type:
    """The model of a name, whatever the case of its letters."""
    known = models()
    matches = [kind for own, kind in known.items() if own.lower() == name.lower()]
    if matches:
        return matches[0]
    near = difflib.get_close_matches(name, known, n=1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    raise UsageError(f"MODEL must be one of {', '.join(known)}, got {name!r}{hint}")


def summary_line(kind: type) -> str:
    """First sentence of the documentation of a class."""
    paragraph = (inspect.getdoc(kind) or "").split("\n\n")[0]
    return " ".join(paragraph.split())


def parse_value(text: str) -> Any:
    """A Python literal (number, list, True, None, ...), or the text itself; nothing is evaluated.

    Examples
    --------
    >>> from pluri.cli.registry import parse_value
    >>> parse_value("5"), parse_value("[1, 2.5]"), parse_value("full"), parse_value("-inf")
    (5, [1, 2.5], 'full', -inf)
    >>> parse_value("__import__('os')")
    "__import__('os')"
    """
    if text.strip().lower() in WORDS:
        return WORDS[text.strip().lower()]
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return text


def build_model(name: str, settings: Sequence[str]) -> Any:
    """A model with parameters given as ``name=value``; a value that names a model is that model.

    Examples
    --------
    >>> from pluri.cli.registry import build_model
    >>> build_model("gaussianhmm", ["n_components=3", "covariance_type=full"])
    GaussianHMM(covariance_type='full', n_components=3)
    """
    model = find_model(name)()
    known_models = models()
    pairs = []
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"--set must have the form name=value, got {setting!r}")
        value = parse_value(text)
        default = model.get_params(deep=False).get(key.strip(), "")
        if isinstance(value, str) and value in known_models and not isinstance(default, str):
            value = known_models[value]()
        pairs.append((key.strip(), value))
    # The parameters of a part (hmm__n_iter) can be set only after the part itself (hmm).
    for key, value in sorted(pairs, key=lambda pair: pair[0].count("__")):
        valid = model.get_params()
        if key not in valid:
            near = difflib.get_close_matches(key, valid, n=1)
            hint = f" (did you mean {near[0]}?)" if near else ""
            raise UsageError(
                f"--set must name a parameter of {type(model).__name__}, got {key!r}{hint}: "
                f"valid are {', '.join(sorted(valid))}"
            )
        model.set_params(**{key: value})
    return model
