"""Code stays readable in size: few parameters, short functions and files, folders that one can look over.

The constants say how many exceptions there are. A file may be longer if what it holds is always read together
(`tests/test_walks.py` counts the files that a fit goes through), but never longer than one can hold in mind.
"""

import ast
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

import pluri

ROOT = Path(pluri.__file__).parent

#: Parameters of a function, without self; what belongs together is a record.
MOST_PARAMETERS = 12
#: Modules of a folder.
MOST_MODULES = 25
#: Lines of a file, and how many files may have more.
LONG_FILE, MOST_LONG_FILES = 300, 40
#: Lines of a function without its docstring, and how many functions may have more.
LONG_FUNCTION, MOST_LONG_FUNCTIONS = 60, 5

#: Public functions whose many settings, all with defaults, serve best as plain keywords.
DRIVERS = {
    "inference/mcmc/driver.py:sample": "one keyword for each word of the vocabulary: draws, chains, where, who watches",
    "optimize/sdp/solver.py:solve_sdp": "how to search, when to end, who watches: all rarely changed",
}
#: Methods whose arguments scikit-learn prescribes, and constructors.
SCIKIT_LEARN = {"__init__", "fit", "partial_fit", "fit_predict", "fit_transform"}


@cache
def large_functions():
    """Functions of the library with many parameters or lines: where each is, and its node.

    The others are let go at once: the syntax trees of all files are millions of objects, which the garbage collector
    would go through again and again.
    """
    found = []
    for path in sorted(ROOT.rglob("*.py")):
        place = path.relative_to(ROOT).as_posix()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            if n_parameters(node) > MOST_PARAMETERS or n_lines(node) > LONG_FUNCTION:
                found.append((f"{place}:{node.name}", node))
    return found


def commands():
    """Commands of the shell, whose options are parameters."""
    from pluri.cli.application import application

    found = list(application.registered_commands)
    for group in application.registered_groups:
        found += group.typer_instance.registered_commands
    callbacks = [command.callback for command in found]
    return {f"{c.__module__.removeprefix('pluri.').replace('.', '/')}.py:{c.__name__}" for c in callbacks}


def n_parameters(node):
    arguments = node.args
    names = [one.arg for one in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]]
    return len(names) - (names[:1] in (["self"], ["cls"]))


def n_lines(node):
    """Lines from ``def`` to the end, without the docstring."""
    first = node.body[0]
    documented = ast.get_docstring(node, clean=False) is not None
    return node.end_lineno - node.lineno + 1 - (first.end_lineno - first.lineno + 1 if documented else 0)


def only_stores(node):
    """Whether each line is ``self.name = name``, or hands every name to the constructor of the base as it is.

    A constructor with many settings is long, but easy to read.
    """

    def stores(line):
        if isinstance(line, ast.Expr) and ast.unparse(line.value).startswith("super().__init__("):
            return all(word.arg == ast.unparse(word.value) for word in line.value.keywords)
        return isinstance(line, ast.Assign) and ast.unparse(line.targets[0]).replace("self.", "") == ast.unparse(
            line.value
        )

    return all(map(stores, node.body))


def long_files():
    return sorted(p for p in ROOT.rglob("*.py") if p.read_text(encoding="utf-8").count("\n") > LONG_FILE)


def test_no_function_has_too_many_parameters():
    allowed = commands() | DRIVERS.keys()
    found = {
        place: n_parameters(node)
        for place, node in large_functions()
        if n_parameters(node) > MOST_PARAMETERS and node.name not in SCIKIT_LEARN and place not in allowed
    }
    assert not found, f"what belongs together should be a record: {found}"


@pytest.mark.parametrize("driver", DRIVERS)
def test_the_drivers_that_may_have_many_settings_have_them_as_keywords_with_defaults(driver):
    large = dict(large_functions())
    assert driver in large, "it needs no exception any more"
    node = large[driver]
    assert n_parameters(node) > MOST_PARAMETERS, "it needs no exception any more"
    assert None not in node.args.kw_defaults
    assert len(node.args.args) <= 3


def test_no_folder_has_too_many_modules():
    found = Counter(path.parent.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py"))
    assert {folder: n for folder, n in found.items() if n > MOST_MODULES} == {}


def test_few_files_are_long():
    found = [path.relative_to(ROOT).as_posix() for path in long_files()]
    assert len(found) <= MOST_LONG_FILES, found


def test_few_functions_are_long():
    found = {
        place: n_lines(node)
        for place, node in large_functions()
        if n_lines(node) > LONG_FUNCTION and not only_stores(node)
    }
    assert len(found) <= MOST_LONG_FUNCTIONS, found


def test_the_rulers_measure_what_they_say():
    source = '''
def f(self, a, /, b, *, c=1):
    """Two
    lines."""
    return a
'''
    node = ast.parse(source).body[0]
    assert (n_parameters(node), n_lines(node)) == (3, 2)
