"""One vocabulary: the same thing has the same name in every family, and a name has one meaning.

The table stands in CONTRIBUTING; here all public constructors, methods and functions are held against it. Names that
hmmlearn or scikit-learn gave to a class which ours replaces are listed below with that class.
"""

from __future__ import annotations

import importlib
import inspect
import itertools
import pkgutil
import re
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator

import pluri

CONTRIBUTING = Path(__file__).parents[1] / "CONTRIBUTING.md"

#: Old names that stay, since the class that ours replaces has them: (name, class) -> whose it is.
DROP_INS = {
    ("n_iter", "HiddenMarkovModel"): "hmmlearn",
    ("n_iter", "ConvergenceMonitor"): "hmmlearn",
    ("n_iter", "BinaryRBM"): "scikit-learn's BernoulliRBM",
    ("n_iter", "BayesSearchCV"): "scikit-learn's RandomizedSearchCV",
    ("algorithm", "HiddenMarkovModel"): "hmmlearn",
}
#: Parameters that are of different kinds in two classes and still mean the same, with the reason.
SAME_MEANING = {
    "kernel": "an MCMC kernel or a similarity kernel: both are established terms",
    "family": "a name, or a distribution of one's own",
    "init_params": "hmmlearn's letters of what is initialised, and scikit-learn's way of initialising a mixture",
    "mean_precision_prior": "scikit-learn's number, or the Gamma under which a factor model learns it",
    "level_prior": "how words spread over the levels of a path: by name, or by its concentrations",
    "rank": "of a matrix: its number, or whether that is inferred",
    "loading_prior": "of the loadings: by name, or the Gamma of their precisions",
    "weight_prior": "of weights: the numbers of a Dirichlet, or the Gamma of the precision of codes",
}
#: Searches, whose parameters are lists of what the models that they try may be given.
SEARCHES = {"HMMSearchCV", "TopicSearchCV"}
#: Choices that are names of something else, written as that is.
PROPER_NAMES = {"scikit-learn", "left-right"}
#: Ordinary words, which are wrong as parameters of an estimator only.
ORDINARY = {"prior", "noise", "sampler", "solver", "query", "keep", "hyper", "n_iter", "n_sweeps"}
#: What a number of draws asked of a method `sample` is not called.
OTHER_COUNTS = {"n", "n_draws", "n_steps", "n_rows", "n_documents", "n_sequences"}


def public_objects():
    """Every class and function that a public subpackage exports, by its full name."""
    found = {}
    for module in pkgutil.walk_packages(pluri.__path__, "pluri."):
        if any(part.startswith("_") for part in module.name.split(".")) or module.name.startswith("pluri.cli"):
            continue
        package = importlib.import_module(module.name)
        for name in getattr(package, "__all__", ()):
            thing = getattr(package, name)
            if inspect.isclass(thing) or inspect.isfunction(thing):
                found[f"{thing.__module__}.{thing.__qualname__}"] = thing
    return found


def public_signatures():
    """(full name, owner, parameters) of every public constructor, method and function."""
    for full, thing in sorted(public_objects().items()):
        if inspect.isfunction(thing):
            yield full, None, list(inspect.signature(thing).parameters)
            continue
        if issubclass(thing, BaseException):
            continue
        own = [name for name in vars(thing) if not name.startswith("_")]
        for name in ["__init__", *own]:
            method = inspect.getattr_static(thing, name)
            method = getattr(method, "__func__", method)
            if inspect.isfunction(method):
                yield f"{full}.{name}", thing, list(inspect.signature(method).parameters)[1:]


SIGNATURES = list(public_signatures())


def vocabulary():
    """Rows of the table in CONTRIBUTING: names, meaning, and names that are not used instead."""
    text = CONTRIBUTING.read_text(encoding="utf-8")
    section = text[text.index("## One vocabulary") :]
    rows = re.findall(r"^\| (`[^|]*) \| ([^|]*) \| ([^|]*) \|$", section, re.MULTILINE)
    return [
        (re.findall(r"`(\w+)`", names), meaning, re.findall(r"`(\w+)`", not_these))
        for names, meaning, not_these in rows
    ]


def parameter_kinds(kind):
    """What the numpydoc text of a class says its parameters are: words such as int, float, bool, choice."""
    documented = {}
    for names, text in re.findall(r"^ {0,8}(\w+(?:, \w+)*) : (.*)$", inspect.getdoc(kind) or "", re.MULTILINE):
        said = set(re.findall(r"\b(int|float|bool|str|array|callable|dict|list|sequence|prior|Gamma|Beta)", text))
        if "{" in text:
            said.add("choice")
        said = {"array" if word in ("list", "sequence") else word for word in said}
        for name in names.split(", "):
            documented.setdefault(name, said)
    constructor = inspect.signature(kind.__init__).parameters
    return {name: said for name, said in documented.items() if name in constructor and said}


def is_drop_in(name, owner):
    if owner is None:
        return False
    bases = {base.__name__ for base in owner.__mro__}
    return any(old == name and kind in bases for old, kind in DROP_INS)


def test_the_table_is_read():
    rows = vocabulary()
    assert {"n_draws", "inference", "n_init"} <= {name for names, _, _ in rows for name in names}
    old = [name for _, _, not_these in rows for name in not_these]
    assert {"burn_in", "solver", "n_restarts"} <= set(old)
    current = {name for names, _, _ in rows for name in names}
    assert not current & set(old), "a name cannot be both in use and replaced"


def test_no_public_signature_has_a_name_that_another_replaced():
    replaced = {old: " or ".join(names) for names, _, never in vocabulary() for old in never}
    wrong = [
        f"{full}: instead of {name}, {replaced[name]}"
        for full, owner, parameters in SIGNATURES
        for name in parameters
        if name in replaced
        and not is_drop_in(name, owner)
        and (name not in ORDINARY or (full.endswith(".__init__") and issubclass(owner, BaseEstimator)))
    ]
    assert not wrong, "\n".join(wrong)


def test_hyper_parameters_are_learned_by_one_device():
    wrong = [
        f"{full}: {name} (give the parameter itself a prior, or 'learn')"
        for full, _, parameters in SIGNATURES
        for name in parameters
        if re.match(r"learn_(?!rate|ing)", name)
    ]
    assert not wrong, "\n".join(wrong)


def test_what_is_drawn_on_demand_is_n_samples_and_what_is_kept_n_draws():
    wrong = []
    for full, owner, parameters in SIGNATURES:
        name = full.rsplit(".", 1)[1]
        if name == "__init__" and issubclass(owner, BaseEstimator) and "n_samples" in parameters:
            wrong.append(f"{full}: draws that are kept are n_draws")
        if name == "sample" and owner is not None:  # the function `mcmc.sample` keeps its n_draws
            wrong += [f"{full}: n_samples, not {other}" for other in sorted(OTHER_COUNTS & set(parameters))]
    assert not wrong, "\n".join(wrong)


def test_choices_are_words_joined_by_underscores():
    wrong = []
    for full, thing in sorted(public_objects().items()):
        for names, text in re.findall(r"^ {0,8}(\w+(?:, \w+)*) : \{(.*?)\}", inspect.getdoc(thing) or "", re.MULTILINE):
            words = set(re.findall(r'"(\w+-[\w-]+)"', text)) - PROPER_NAMES
            wrong += [f"{full}: {names} = {word}" for word in sorted(words)]
    assert not wrong, "\n".join(wrong)


def test_priors_are_objects_or_numbers():
    wrong = []
    for full, thing in sorted(public_objects().items()):
        if not (inspect.isclass(thing) and issubclass(thing, BaseEstimator)):
            continue
        for name, parameter in inspect.signature(thing.__init__).parameters.items():
            default = parameter.default
            if "prior" in name and isinstance(default, tuple) and len(default) == 2:
                wrong.append(f"{full}: {name}={default}, for instance Gamma(shape, rate)")
    assert not wrong, "\n".join(wrong)


def test_a_name_is_of_one_kind_in_all_constructors():
    said: dict[str, dict[str, set[str]]] = {}
    for full, thing in sorted(public_objects().items()):
        if inspect.isclass(thing) and issubclass(thing, BaseEstimator) and thing.__name__ not in SEARCHES:
            for name, kinds in parameter_kinds(thing).items():
                said.setdefault(name, {})[full] = kinds
    wrong = [
        f"{name}: {sorted(by_class[first])} in {first}, {sorted(by_class[second])} in {second}"
        for name, by_class in said.items()
        if name not in SAME_MEANING
        for first, second in itertools.combinations(by_class, 2)
        if not by_class[first] & by_class[second]
    ]
    assert not wrong, "\n".join(wrong)


SAMPLERS = [
    thing
    for _, thing in sorted(public_objects().items())
    if inspect.isclass(thing)
    and issubclass(thing, BaseEstimator)
    and "n_draws" in inspect.signature(thing.__init__).parameters
]


@pytest.mark.parametrize("kind", SAMPLERS, ids=lambda kind: kind.__name__)
def test_whatever_is_sampled_has_a_trace_that_arviz_reads(kind):
    parameters = inspect.signature(kind.__init__).parameters
    assert {"n_warmup", "n_chains"} <= set(parameters)
    assert callable(getattr(kind, "to_arviz", None))
    assert re.search(r"^trace_\b", inspect.getdoc(kind) or "", re.MULTILINE), "trace_ is not documented"
