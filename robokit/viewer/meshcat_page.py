"""Where meshcat's own web page is: in the package meshcat, or copied into robokit's wheel."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from robokit.errors import MissingDependency

COPY = Path(__file__).parent / "assets" / "vendor" / "meshcat"
"""Where the build of the wheel puts the files; see ``hatch_build.py``."""


def meshcat_page() -> Path:
    """The folder with meshcat's ``index.html`` and ``main.min.js``, found without importing meshcat.

    The installed package comes first: its server and its page belong together.

    Raises:
        MissingDependency: neither has them.
    """
    spec = importlib.util.find_spec("meshcat")
    packages = (
        [Path(folder) / "viewer" / "dist" for folder in (spec.submodule_search_locations or [])]
        if spec
        else []
    )
    for page in (*packages, COPY):
        if (page / "main.min.js").is_file():
            return page
    raise MissingDependency("robokit's pages need the files of meshcat's viewer: pip install 'robokit[live]'")
