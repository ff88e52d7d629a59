"""Commands in the documents are run, and the API pages hold every public name."""

import re
import shlex
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import pluri

DOCS = Path(__file__).parent
PACKAGES = [name for name in pluri.__all__ if name not in ("__version__", "load", "save")]


def commands(page: str) -> list[str]:
    """Lines that begin with ``$ pluri`` in a page."""
    return re.findall(r"^\s+\$ pluri (.+)$", (DOCS / page).read_text(), flags=re.MULTILINE)


@pytest.mark.slow
def test_the_commands_of_the_guide_run():
    # The data file is made by the page's own code, which its doctest runs too.
    source = (DOCS / "guide" / "files.rst").read_text()
    lines = source[source.index(">>> rng") : source.index(".. code-block:: console")].splitlines()
    exec("\n".join(line[4:] for line in lines if line.startswith((">>>", "..."))), {"np": np})
    found = commands("guide/files.rst")
    assert len(found) == 7
    for command in found:
        subprocess.run([sys.executable, "-m", "pluri", *shlex.split(command)], check=True, capture_output=True)
    assert Path("states.csv").read_text().startswith("state,p_0,p_1,p_2")


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_in_the_api_reference(package):
    page = (DOCS / "api" / f"{package}.rst").read_text()
    listed = set(re.findall(r"^(?:   |\.\. py:data:: )(\w+)$", page, flags=re.MULTILINE))
    assert listed == set(import_module(f"pluri.{package}").__all__)
