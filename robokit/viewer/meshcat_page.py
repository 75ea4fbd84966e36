"""Where meshcat's own web page is: in the installed package."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from robokit.errors import MissingDependency


def meshcat_page() -> Path:
    """The folder with meshcat's ``index.html`` and ``main.min.js``, found without importing meshcat.

    Raises:
        MissingDependency: meshcat is not installed or does not hold the files.
    """
    spec = importlib.util.find_spec("meshcat")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        page = Path(folder) / "viewer" / "dist"
        if (page / "main.min.js").is_file():
            return page
    raise MissingDependency("the viewer needs the meshcat package (0.3.2 or later): pip install meshcat")
