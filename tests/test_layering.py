"""Imports point downwards: what each subpackage may import, and what `import pluri` must not load."""

import ast
import subprocess
import sys
import textwrap
from importlib import import_module
from pathlib import Path

import pytest

import pluri

ROOT = Path(pluri.__file__).parent

#: What every family may use.
FOUNDATIONS = {"validation", "engine", "inference", "metrics", "optimize", "priors", "progress", "components"}
FAMILIES = {"processes", "sequences", "mixtures", "factors", "topics", "embedding", "dynamics", "networks", "neurons"}
#: Subpackage, and the subpackages that it may import. A new edge is a decision: write it here or do without it.
ALLOWED = {
    "validation": set(),
    "engine": {"validation"},
    "progress": {"validation"},
    "optimize": {"validation", "engine", "progress"},
    "metrics": {"validation", "optimize"},
    "datasets": {"validation"},
    "priors": {"validation", "optimize", "engine"},
    "inference": {"validation", "engine", "progress", "optimize"},
    "plotting": {"validation", "metrics", "inference"},
    "io": {"validation", "inference"},
    "testing": {"validation", "inference"},
    # What hidden Markov models and mixtures share: the laws of observations given the state or component.
    "components": {"validation", "engine", "priors", "metrics", "optimize"},
    # The one family that the others may build on: a process is a prior that can be sampled and conditioned.
    "processes": FOUNDATIONS,
    "sequences": FOUNDATIONS | {"processes"},
    "factors": FOUNDATIONS | {"processes"},
    # A mixture of factor models is made of factor models.
    "mixtures": FOUNDATIONS | {"processes", "factors"},
    "topics": FOUNDATIONS | {"processes"},
    # A reversible embedding is made of factor models, one for each cluster.
    "embedding": FOUNDATIONS | {"processes", "factors"},
    "dynamics": FOUNDATIONS | {"processes"},
    "networks": FOUNDATIONS,
    # A simulator, whose results are data for the other families.
    "neurons": FOUNDATIONS,
    # The one family above the others: decisions spend the uncertainty of their models.
    "decisions": FOUNDATIONS | FAMILIES,
    # An application on top of the families.
    "cochange": FOUNDATIONS | FAMILIES | {"io"},
    "report": FOUNDATIONS | FAMILIES | {"decisions", "io", "datasets", "plotting"},
    "cli": FOUNDATIONS | FAMILIES | {"decisions", "io", "datasets", "plotting", "report", "cochange"},
}
SUBPACKAGES = sorted(path.name for path in ROOT.iterdir() if (path / "__init__.py").exists())


def imported_modules(file):
    """Absolute names of everything that a file imports, anywhere in it."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = file.relative_to(ROOT.parent).parent.parts
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            name = ".".join(part for part in (base, node.module or "") if part)
            yield name
            yield from (f"{name}.{alias.name}" for alias in node.names)


def imported_subpackages(file):
    names = {name.split(".")[1] for name in imported_modules(file) if name.startswith("pluri.")}
    return names & set(SUBPACKAGES)


def test_the_reader_of_imports_sees_every_form(tmp_path, monkeypatch):
    folder = tmp_path / "pluri" / "metrics"
    folder.mkdir(parents=True)
    file = folder / "example.py"
    file.write_text(
        "import pluri.cli\nfrom pluri import sequences\nfrom ..io import save\ndef f():\n from . import x\n"
    )
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path / "pluri")
    assert {"pluri.cli", "pluri.sequences", "pluri.io", "pluri.metrics.x"} <= set(imported_modules(file))


@pytest.mark.parametrize("subpackage", SUBPACKAGES)
def test_a_subpackage_imports_only_what_lies_below_it(subpackage):
    assert subpackage in ALLOWED, f"{subpackage} is new: say in ALLOWED what it may import"
    for file in sorted((ROOT / subpackage).rglob("*.py")):
        extra = imported_subpackages(file) - ALLOWED[subpackage] - {subpackage}
        assert not extra, f"{file.relative_to(ROOT)} imports {sorted(extra)}"


def test_the_table_itself_points_downwards():
    order = list(ALLOWED)
    for name, below in ALLOWED.items():
        assert all(order.index(other) < order.index(name) for other in below), name
        if name not in FAMILIES | {"decisions", "cochange", "report", "cli"}:
            assert not below & (FAMILIES | {"decisions", "report", "cli"}), f"{name} is a foundation"
        if name in FAMILIES:
            above = {"decisions", "report", "cli"}
            assert not below & ((FAMILIES - {name, "processes", "factors"}) | above), f"{name} is a family"


def run(program):
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=120
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.split()


HEAVY = ("numba", "llvmlite", "sklearn", "scipy", "pandas", "matplotlib", "dask", "distributed", "pyarrow", "rich")


def test_importing_pluri_loads_nothing_heavy():
    loaded = run(f"import sys, pluri; print(*(name for name in {HEAVY} if name in sys.modules))")
    assert loaded == []


def test_importing_the_models_loads_no_plotting_and_no_cluster_and_compiles_nothing():
    # scikit-learn loads pandas, pyarrow and rich by itself where they are installed.
    program = """
        import pluri.engine.compiled, pluri.sequences, sys
        names = ("matplotlib", "dask", "distributed", "typer", "skops", "hmmlearn")
        print(*(name for name in names if name in sys.modules))
        from numba.core.dispatcher import Dispatcher
        kernels = [
            (module, name)
            for module, content in list(sys.modules.items())
            if module.startswith("pluri.")
            for name, value in vars(content).items()
            if isinstance(value, Dispatcher) and value.signatures
        ]
        print(*kernels)
    """
    assert run(program) == []


LAZY = [
    "cochange",
    "decisions",
    "dynamics",
    "embedding",
    "factors",
    "mixtures",
    "networks",
    "neurons",
    "processes",
    "report",
    "sequences",
]


def test_packages_that_import_later_import_nothing_at_once():
    program = f"""
        import importlib, sys
        for name in {LAZY!r}:
            importlib.import_module("pluri." + name)
            assert not [one for one in sys.modules if one.startswith("pluri." + name + ".")], name
    """
    run(program)


@pytest.mark.parametrize("name", LAZY)
def test_names_that_are_imported_later_are_all_there(name):
    package = import_module(f"pluri.{name}")
    assert set(package.__all__) <= set(dir(package))
    for each in package.__all__:
        assert getattr(package, each).__name__ == each
        assert each in vars(package)
    with pytest.raises(AttributeError, match=f"module 'pluri.{name}' has no attribute 'nothing'"):
        package.nothing  # noqa: B018
    tree = ast.parse((ROOT / name / "__init__.py").read_text(encoding="utf-8"))
    checked = {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert checked - {"TYPE_CHECKING", "lazy_names"} == set(package.__all__)  # what type checkers see
