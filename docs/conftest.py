"""The code in the documents is run by pytest, each page in an empty folder of its own."""

from pathlib import Path

import matplotlib
import pytest

# Gallery scripts are run by the documentation itself; the rest is generated or configuration.
collect_ignore_glob = ["conf.py", "make_*_figure.py", "_build/*", "api/generated/*", "gallery/*", "examples/*"]


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    from matplotlib import pyplot

    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(Path(__file__).parent / "snippets")
    monkeypatch.setenv("COLUMNS", "80")
    matplotlib.use("agg")
    yield
    pyplot.close("all")
