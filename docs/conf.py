"""How the documentation is built: ``make docs``."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive

import pluri

sys.path.insert(0, str(Path(__file__).parent))
from model_chart import README, chart

project = "pluri"
author = "The pluri developers"
copyright = "2026, the pluri developers"
version = release = pluri.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "sphinx-mathjax-offline",  # formulas can be read without a network
    "myst_parser",
]
root_doc = "index"
exclude_patterns = [
    "_build",
    "examples",
    "gallery/*.py",
    "gallery/*.ipynb",
    "gallery/backreferences",
    "**/GALLERY_HEADER.rst",
]
templates_path = ["_templates"]
# `GaussianHMM` in a docstring is a link where the name is documented, and plain code elsewhere.
default_role = "py:obj"
add_module_names = False
toc_object_entries_show_parents = "hide"

autodoc_typehints = "none"
autodoc_member_order = "groupwise"
autosummary_generate = True
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
myst_heading_anchors = 3

# What is copied can be pasted: without prompts, and without what was printed.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True

sphinx_gallery_conf = {
    "backreferences_dir": "gallery/backreferences",
    "doc_module": ("pluri",),
    "examples_dirs": "examples",
    "gallery_dirs": "gallery",
    "download_all_examples": True,
    "write_computation_times": False,
    "show_signature": False,
    "min_reported_time": 0,
    "within_subsection_order": "FileNameSortKey",
    "image_srcset": ["2x"],
    # What a last line draws is seen; that it was a display at some address helps nobody.
    "ignore_repr_types": r"matplotlib\.|pluri\.plotting\.",
}

html_theme = "pydata_sphinx_theme"
html_title = f"pluri {version}"
html_static_path = ["_static"]
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"
html_css_files = ["pluri.css"]
html_show_sourcelink = False
html_sidebars = {
    "index": [],
    "install": [],
    "guide/cookbook": [],
    "ideas": [],
    "from_hmmlearn": [],
    "from_scikit_learn": [],
    "from_tomotopy": [],
    "changelog": [],
    "contributing": [],
}
html_theme_options = {
    "logo": {"text": "pluri"},
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 5,
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
    "navbar_end": ["theme-switcher"],
    "pygments_light_style": "tango",
    "pygments_dark_style": "github-dark",
}


def skip_inherited_requests(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """Leave out scikit-learn's generated methods ``set_fit_request`` and so on."""
    return True if re.fullmatch(r"set_\w+_request|set_callbacks|get_metadata_routing", name) else None


def quote_attributes(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Keep reStructuredText from reading ``default="transmat_"`` or ``shape (n_features_in_,)`` as links."""
    lines[:] = [re.sub(r'default="(\w+)_"', r'default="\1\\_"', line) for line in lines]
    lines[:] = [re.sub(r"(shape \([^)]*\w)_([,)])", r"\1\\_\2", line) for line in lines]
    is_code = re.compile(r"\s*(>>>|\.\.\.) ")
    lines[:] = [line if is_code.match(line) else _quote_in_parentheses(line) for line in lines]


def _quote_in_parentheses(line: str) -> str:
    """Quote ``(n_samples, n_clusters_)`` and ``(n_samples, n_clusters_ + 1)``, but not within a literal."""
    parts = line.split("``")
    parts[::2] = [re.sub(r"(\((?:\w+, )*\w+)_([,)]| \+)", r"\1\\_\2", part) for part in parts[::2]]
    return "``".join(parts)


def join_ranges(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Write ``0 .. n`` with an ellipsis: a summary would end at the two dots, in the middle of a literal."""
    lines[:] = [re.sub(r"(\w) \.\. (\w)", "\\1 \N{HORIZONTAL ELLIPSIS} \\2", line) for line in lines]


def drop_foreign_labels(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Methods inherited from scikit-learn point to labels of its own documentation: keep the words."""
    owner = getattr(obj, "fget", obj)  # of a property, the function that gets it
    if str(getattr(owner, "__module__", "")).startswith("sklearn."):
        lines[:] = [re.sub(r":term:`([^`<]+?)(?:\s*<[^`]*>)?`", r"``\1``", line) for line in lines]
        lines[:] = [re.sub(r":ref:`([^`<]+?)\s*<[^`]*>`", r"\1", line) for line in lines]
        lines[:] = [re.sub(r":ref:`sphx_glr[^`]*`", "scikit-learn's gallery", line) for line in lines]


class ModelChart(Directive):
    """``.. model-chart::``: which model when, with links relative to the page at hand."""

    def run(self) -> list[nodes.Node]:
        """The chart; the page is made anew when the README changes."""
        environment: Any = self.state.document.settings.env
        environment.note_dependency(str(README))
        return [nodes.raw("", chart(environment.docname), format="html")]


def setup(app: Any) -> None:
    app.add_directive("model-chart", ModelChart)
    app.connect("autodoc-skip-member", skip_inherited_requests)
    app.connect("autodoc-process-docstring", quote_attributes, priority=100)
    app.connect("autodoc-process-docstring", join_ranges, priority=100)
    app.connect("autodoc-process-docstring", drop_foreign_labels, priority=100)
