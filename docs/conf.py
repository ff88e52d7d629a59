"""How the documentation is built: ``make docs``."""

from __future__ import annotations

import warnings

import pluri

project = "pluri"
author = "The pluri developers"
copyright = "2026, the pluri developers"
version = release = pluri.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "myst_parser",
]
root_doc = "index"
exclude_patterns = ["_build", "examples", "gallery/*.py", "gallery/*.ipynb", "**/GALLERY_HEADER.rst"]
templates_path = ["_templates"]
# `GaussianHMM` in a docstring is a link where the name is documented, and plain code elsewhere.
default_role = "py:obj"
add_module_names = False

autodoc_typehints = "none"
autodoc_member_order = "groupwise"
autosummary_generate = True
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
myst_heading_anchors = 3

# A gallery script is a tutorial: a warning in it would be a mistake.
warnings.filterwarnings("error", category=UserWarning, module="__main__")
sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "gallery",
    "download_all_examples": False,
    "write_computation_times": False,
    "show_signature": False,
    "min_reported_time": 0,
    "image_srcset": ["2x"],
}

html_theme = "pydata_sphinx_theme"
html_title = f"pluri {version}"
html_static_path = ["_static"]
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"
html_css_files = ["pluri.css"]
html_show_sourcelink = False
html_sidebars = {"index": [], "install": [], "ideas": [], "from_hmmlearn": [], "changelog": [], "contributing": []}
html_theme_options = {
    "logo": {"text": "pluri"},
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 7,
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
    "navbar_end": ["theme-switcher"],
    "pygments_light_style": "tango",
    "pygments_dark_style": "github-dark",
}
