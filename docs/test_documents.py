"""Commands in the documents are run, and the API pages hold every public name."""

import re
import shlex
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import pluri

DOCS = Path(__file__).parent
PACKAGES = [name for name in pluri.__all__ if name not in ("__version__", "load", "on_interrupt", "save")]
#: Packages within packages; each has a page of its own.
PACKAGES += [f"inference.{name}" for name in ("mcmc", "ais", "smc", "comparison", "variational")]
PACKAGES += [
    "neurons.language",
    "neurons.models",
    "priors.kernels",
    "processes.dpp",
    "processes.dpp.learning",
    "optimize.manifolds",
    "optimize.sdp",
    "topics.held_out",
]


def commands(page: str) -> list[str]:
    """Lines that begin with ``$ pluri`` in a page."""
    return re.findall(r"^\s+\$ pluri (.+)$", (DOCS / page).read_text(), flags=re.MULTILINE)


def run_code(source: str) -> None:
    """Run what stands behind prompts: the files that commands read are made by the page itself."""
    lines = [line for line in source.splitlines() if line.startswith((">>>", "... "))]
    exec("\n".join(line[4:] for line in lines), {"np": np})


def run_commands(page: str) -> int:
    """Run the commands of a page, and count them."""
    found = commands(page)
    for command in found:
        subprocess.run([sys.executable, "-m", "pluri", *shlex.split(command)], check=True, capture_output=True)
    return len(found)


@pytest.mark.slow
def test_the_commands_of_the_guide_run():
    source = (DOCS / "guide" / "files.rst").read_text()
    run_code(source[source.index(">>> rng") : source.index(".. code-block:: console")])
    assert run_commands("guide/files.rst") == 11
    assert Path("states.csv").read_text().startswith("state,p_0,p_1,p_2")


@pytest.mark.slow
def test_the_commands_about_topics_run():
    source = (DOCS / "guide" / "topic_pages.rst").read_text()
    run_code(source[source.index(">>> import json") : source.index(".. code-block:: console")])
    assert run_commands("guide/topic_pages.rst") == 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "first", "n_commands"), [("topic_time", ">>> import numpy", 3), ("topic_text", ">>> import numpy", 3)]
)
def test_the_commands_about_time_and_text_run(page, first, n_commands):
    source = (DOCS / "guide" / f"{page}.rst").read_text()
    run_code(source[source.index(first) : source.rindex(".. code-block:: console")])
    assert run_commands(f"guide/{page}.rst") == n_commands


def test_the_commands_about_motion_run():
    source = (DOCS / "guide" / "motion_pages.rst").read_text()
    run_code(source[source.index(">>> import numpy") : source.index(".. code-block:: console")])
    assert run_commands("guide/motion_pages.rst") == 2


def test_the_commands_about_maps_run():
    source = (DOCS / "guide" / "embedding_pages.rst").read_text()
    run_code(source[source.index(">>> import numpy") : source.index(".. code-block:: console")])
    assert run_commands("guide/embedding_pages.rst") == 2


def test_the_commands_about_neurons_run():
    assert run_commands("guide/neuron_scripts.rst") == 3
    with np.load("two.npz", allow_pickle=False) as file:
        assert len(file["spike_times"]) == 8
    assert "<title>Two neurons</title>" in Path("two.html").read_text(encoding="utf-8")


def test_a_saved_trace_is_diagnosed_from_the_shell():
    source = (DOCS / "guide" / "chains.rst").read_text()
    run_code(source[source.index(">>> import numpy") : source.index(">>> longer")] + '>>> trace.save("schools.npz")')
    assert run_commands("guide/chains.rst") == 1
    assert Path("schools.png").stat().st_size > 0


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("git") is None, reason="no git on the PATH")
def test_the_commands_of_cochange_run_in_a_repository():
    def git(*arguments):
        person = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
        subprocess.run(["git", *person, *arguments], check=True, capture_output=True)

    git("init", "--quiet")
    groups = [("parser.c", "parser.h", "test_parser.c"), ("net.c", "net.h")]
    for number in range(40):
        for name in groups[number % 2][: 2 + number % 3]:
            Path(name).write_text(str(number))
            git("add", name)
        git("commit", "--quiet", "--message", f"change {number}")
    Path("parser.c").write_text("staged")
    git("add", "parser.c")
    assert run_commands("guide/cochange.rst") == 4
    assert Path(".git", "pluri-cochange.skops").stat().st_size > 0


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_in_the_api_reference(package):
    page = (DOCS / "api" / f"{package}.rst").read_text()
    listed = set(re.findall(r"^(?:   |\.\. py:data:: )(\w+)$", page, flags=re.MULTILINE))
    within = {name.rpartition(".")[2] for name in PACKAGES if name.startswith(f"{package}.")}
    # A function of `pluri` itself stands on the page of its subject.
    assert listed - {"on_interrupt"} == set(import_module(f"pluri.{package}").__all__) - within


README = (DOCS.parent / "README.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)


@pytest.mark.parametrize("program", PROGRAMS, ids=[f"program {n}" for n in range(1, len(PROGRAMS) + 1)])
def test_a_program_of_the_readme_prints_what_stands_beside_it(program, capsys):
    exec(program, {})
    said = re.findall(r"^print\(.*\)  # (.*)$", program, flags=re.MULTILINE)
    printed = capsys.readouterr().out.splitlines()
    assert len(said) == len(printed) > 0
    for beside, line in zip(said, printed):
        assert beside.startswith(line)


def test_the_version_is_told_alike_everywhere():
    told = {
        "README.md": rf"Version {re.escape(pluri.__version__)}, a release candidate",
        "CITATION.cff": rf"^version: {re.escape(pluri.__version__)}$",
        "CHANGELOG.md": rf"\A# Changelog\n(?:(?!^## ).*\n)*## {re.escape(pluri.__version__)} ",
        "pyproject.toml": "Development Status :: 4 - Beta",
    }
    for name, pattern in told.items():
        assert re.search(pattern, (DOCS.parent / name).read_text(encoding="utf-8"), re.MULTILINE), name


def test_links_and_pictures_of_the_readme_lead_somewhere():
    targets = re.findall(r"\]\(([^)#]+)\)", README)
    assert len(targets) > 20
    assert [target for target in targets if not (DOCS.parent / target).exists()] == []


def test_names_in_the_table_of_the_readme_are_public():
    rows = re.findall(r"^\|.*\|.*\|(.*)\|$", README, flags=re.MULTILINE)
    names = {name for row in rows for name in re.findall(r"`([A-Za-z_]+)`", row)}
    known = {name for package in PACKAGES for name in import_module(f"pluri.{package}").__all__}
    assert len(names) > 25
    assert names - known == set()


@pytest.mark.parametrize("page", ["index", "guide/engines"])
def test_the_chart_of_the_home_page_leads_where_the_table_of_the_readme_leads(page, monkeypatch):
    monkeypatch.syspath_prepend(DOCS)
    chart = import_module("model_chart").chart(page)
    section = README.split("## Choose by your data")[1].split("\n## ")[0]
    wanted = set(re.findall(r"\]\(docs/(.+?)\.rst\)", section))
    links = re.findall(r'href="(.+?)\.html"', chart)
    found = {(DOCS / page).parent.joinpath(link).resolve().relative_to(DOCS).as_posix() for link in links}
    assert found == wanted
    names = re.findall(r"`([^`]+)`", "".join(re.findall(r"\[(.+?)\]\(docs/", section)))
    assert sorted(re.findall(r"<code>(.+?)</code>", chart)) == sorted(names)


def test_every_family_has_a_notebook_to_walk_through():
    row = r"^     - :doc:`/gallery/(plot_\w+)`\n     - :download:`\1 </gallery/\1.ipynb>`$"
    page = (DOCS / "guide" / "walk_through.rst").read_text()
    named = re.findall(row, page, re.MULTILINE)
    assert len(named) == page.count("   * - ") - 1 == 12
    guide = [path.read_text() for path in (DOCS / "guide").glob("*.rst")]
    for name in named:
        assert (DOCS / "examples" / f"{name}.py").exists()
        line = f"*With figures, and as a notebook:* :doc:`/gallery/{name}`."
        assert sum(line in text for text in guide) == 1
    used = " ".join((DOCS / "examples" / f"{name}.py").read_text() for name in named)
    families = "sequences mixtures topics factors embedding dynamics processes networks neurons decisions"
    assert [family for family in families.split() if f"from pluri.{family}" not in used] == []
