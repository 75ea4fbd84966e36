"""Sphinx configuration: furo, autodoc, formulas as MathML; nothing is fetched from a network."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE / "_ext")]

from robokit import __version__  # noqa: E402  (the folder above must be on the path first)

project = "robokit"
author = "the robokit authors"
project_copyright = author
version = release = __version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "mathml",
    "generated",
    "from_the_package",
    "machine_code",
    "made",
    "measured",
    "fidelity_tables",
    "gpu_tables",
    "versions_table",
]
exclude_patterns = ["_build"]
default_role = "code"
highlight_language = "python"
pygments_style = "tango"

html_theme = "furo"
html_title = f"robokit {release}"
html_static_path = ["_static"]
html_css_files = ["robokit.css"]
html_copy_source = False
html_show_sourcelink = False
html_math_renderer = "mathml"

autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_default_options = {"members": True}
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False
