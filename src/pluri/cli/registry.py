"""Models by name: every public estimator of the model families, and how its parameters are given as text."""

from __future__ import annotations

import ast
import difflib
import inspect
from collections.abc import Sequence
from typing import Any, NamedTuple

from pluri.cli.families import FAMILIES

WORDS = {"inf": float("inf"), "-inf": float("-inf"), "nan": float("nan"), "true": True, "false": False, "none": None}


class _Required:
    """Stands where a default would."""

    def __repr__(self) -> str:
        return "required"


REQUIRED: Any = _Required()


class UsageError(ValueError):
    """What was typed cannot be meant: exit code 2."""


def models() -> dict[str, type]:
    """Estimator classes of all families by name.

    Examples
    --------
    >>> from pluri.cli.registry import models
    >>> models()["GaussianHMM"].__name__
    'GaussianHMM'
    """
    return dict(sorted(item for family in FAMILIES for item in family.models()))


def find_model(name: str) -> type:
    """The model of a name, whatever the case of its letters."""
    for family in FAMILIES:
        for own in family.public_names():
            kind = family.find(own) if own.lower() == name.lower() else None
            if kind is not None:
                return kind
    known = models()
    near = difflib.get_close_matches(name, known, n=1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    raise UsageError(f"MODEL must be the name of a model, got {name!r}{hint}: pluri models lists all {len(known)}")


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


def parameters(kind: type) -> dict[str, Any]:
    """Parameters of a model and their defaults; `REQUIRED` for those without."""
    given = inspect.signature(kind).parameters.items()
    return {name: REQUIRED if item.default is item.empty else item.default for name, item in given}


class Explained(NamedTuple):
    """An entry of the documentation of a class: parameters, what they may be, what they mean."""

    names: list[str]
    allowed: str
    meaning: str


def explained(kind: type) -> list[Explained]:
    """What the documentation of a class says of its parameters, in order.

    Examples
    --------
    >>> from pluri.cli.registry import explained, find_model
    >>> explained(find_model("PoissonHMM"))[0]
    Explained(names=['n_components'], allowed='int, default=1', meaning='Number of states.')
    """
    entries: list[Explained] = []
    lines = (inspect.getdoc(kind) or "").partition("Parameters\n----------\n")[2].splitlines()
    for line, below in zip(lines, [*lines[1:], ""]):
        if below and not below.strip("-"):  # the next section begins
            break
        if line[:1].strip():
            names, _, allowed = line.partition(" : ")
            entries.append(Explained([name.strip() for name in names.split(",")], allowed, ""))
        elif line.strip() and entries:
            entries[-1] = entries[-1]._replace(meaning=f"{entries[-1].meaning} {line.strip()}".lstrip())
    return entries


def build_model(name: str, settings: Sequence[str]) -> Any:
    """A model with parameters given as ``name=value``; a value that names a model is that model.

    Examples
    --------
    >>> from pluri.cli.registry import build_model
    >>> build_model("gaussianhmm", ["n_components=3", "covariance_type=full"])
    GaussianHMM(covariance_type='full', n_components=3)
    """
    return configured(find_model(name), settings)


def configured(kind: type, settings: Sequence[str]) -> Any:
    """An estimator of this class with parameters given as ``name=value``."""
    own = parameters(kind)
    values: dict[str, Any] = {}
    for setting in settings:
        key, equals, text = (part.strip() for part in setting.partition("="))
        if not equals or not key:
            raise UsageError(f"--set must have the form name=value, got {setting!r}")
        values[key] = parse_value(text)
        if isinstance(values[key], str) and not isinstance(own.get(key, ""), str):
            values[key] = _as_model(values[key])
    missing = [key for key, default in own.items() if default is REQUIRED and key not in values]
    if missing:
        raise UsageError(f"--set must give {missing[0]} to {kind.__name__}, as in --set {missing[0]}=GaussianHMM")
    model = kind(**{key: value for key, value in values.items() if key in own})
    # The parameters of a part (hmm__n_iter) can be set only after the part itself (hmm).
    for key in sorted(values.keys() - own.keys(), key=lambda key: (key.count("__"), key)):
        valid = model.get_params()
        if key not in valid:
            near = difflib.get_close_matches(key, valid, n=1)
            hint = f" (did you mean {near[0]}?)" if near else ""
            raise UsageError(
                f"--set must name a parameter of {kind.__name__}, got {key!r}{hint}: "
                f"valid are {', '.join(sorted(valid))}"
            )
        model.set_params(**{key: values[key]})
    return model


def _as_model(name: str) -> Any:
    """The model of that name, or the name itself if there is none."""
    kind = models().get(name)
    return name if kind is None or REQUIRED in parameters(kind).values() else kind()


def fitted_part(model: Any) -> Any:
    """The hidden Markov model inside a search or a classifier; others are themselves."""
    best = getattr(model, "best_estimator_", model)
    return getattr(best, "hmm_", best)
