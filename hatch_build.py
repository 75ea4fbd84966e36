"""What the build adds to the wheel: the files of meshcat's web page.

robokit's pages hold meshcat's viewer, a JavaScript file that the Python package meshcat ships. That package
brings a web server and IPython with it, 48 MB, which only the live view needs. So the build, which has
meshcat among its requirements, copies the page's files as they are, with their licences.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path, PurePath
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PAGE = ("index.html", "main.min.js", "main.min.js.LICENSE.txt", "main.min.js.THIRD_PARTY_LICENSES.json")
PLACE = "robokit/viewer/assets/vendor/meshcat"


class MeshcatPage(BuildHookInterface):  # type: ignore[misc]
    """Copies meshcat's page into wheels, and for editable installations beside the sources."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the files; the pages of a wheel that was built without meshcat need that package."""
        try:
            package = distribution("meshcat")
        except PackageNotFoundError:
            self.app.display_warning("no meshcat: pages will need the extra 'live'")
            return
        found = [Path(str(file.locate())) for file in package.files or [] if _is_wanted(file)]
        if version == "editable":
            folder = Path(self.root) / PLACE
            folder.mkdir(parents=True, exist_ok=True)
            for file in found:
                (folder / file.name).write_bytes(file.read_bytes())
        else:
            build_data["force_include"].update({str(file): f"{PLACE}/{file.name}" for file in found})


def _is_wanted(file: PurePath) -> bool:
    return file.name.startswith("LICENSE") or (file.parent.name == "dist" and file.name in PAGE)
