"""Where mesh and texture files are: package://, model://, file://, absolute and relative names.

``package://name/rest`` is looked for in ``package_dirs``, then ROS_PACKAGE_PATH, then AMENT_PREFIX_PATH
(with share/), then the parent folders of the URDF file. In each folder ``name/rest`` is tried, and
``rest`` where the folder itself is called ``name``. No ``..`` leads out of a package or, for relative
names, out of the URDF's own package. Nothing is fetched from a network.
"""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

from robokit.arguments import path_argument
from robokit.errors import WrongType
from robokit.urdf.xacro_child import package_folders

_MOST_SCANNED = 200  # entries of a folder that are looked at, at most
MOST_ENTRIES = 10_000  # of a folder that are compared with a name that was not found
_LEVELS = 2  # folders above the file that a relative name may climb where no package.xml says more


class Resolution(NamedTuple):
    """Where a name leads."""

    file: str | None = None  # the file's path, or None
    tried: tuple[str, ...] = ()  # where the name may lead, in order, if it leads nowhere
    package: str | None = None  # package that was found nowhere, or None
    reason: str = ""  # why nothing was tried, or ""

    @property
    def path(self) -> Path | None:
        """The file as a path, or None."""
        return None if self.file is None else Path(self.file)


@dataclass
class Resolver:
    """Finds the files that a URDF names; packages are looked for in the folders ``roots``, in this order."""

    folder: Path | None = None  # folder of the URDF file, or None for a text
    package_dirs: Sequence[str | os.PathLike[str]] = ()  # folders to search first
    # environment variables; the process' own by default
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)

    def __post_init__(self) -> None:
        self._known: dict[str, Resolution] = {}
        self.roots = list(self._search_roots())
        self._packages: dict[str, list[str]] = {}
        # Folders of a package that are there, and those that nobody has looked for.
        self._looked: dict[str, tuple[list[str], Iterator[str]]] = {}
        # "package/folder" of a name -> where that is: most files of a robot lie in one folder.
        self._known_folders: dict[str, list[str]] = {}
        self._listed: dict[str, frozenset[str]] = {}
        self._entries: dict[str, list[str]] = {}

    def __call__(self, filename: str) -> Resolution:
        """Where the file is; every name is looked up once."""
        found = self._known.get(filename)
        if found is None:
            found = self._known[filename] = self._find(filename)
        return found

    def _search_roots(self) -> Iterator[str]:
        for folder in self.package_dirs:
            yield os.path.abspath(os.path.expanduser(folder))
        for folder in self.environ.get("ROS_PACKAGE_PATH", "").split(os.pathsep):
            if folder:
                yield os.path.abspath(folder)
        for folder in self.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep):
            if folder:
                yield os.path.join(os.path.abspath(folder), "share")
        if self.folder is not None:
            here, below = os.path.abspath(self.folder), ""
            while here != below:
                yield here
                here, below = os.path.dirname(here), here

    def _find(self, filename: str) -> Resolution:
        scheme, mark, rest = filename.partition("://")
        if not mark:
            return self._relative(filename.removeprefix("file:"))
        if scheme in ("package", "model"):
            return self._package(rest.lstrip("/"))
        if scheme == "file":
            return self._relative(unquote(rest))
        return Resolution(reason=f"{scheme}:// is not supported and nothing is fetched from a network")

    def _package(self, name_and_rest: str) -> Resolution:
        above, _, last = name_and_rest.rpartition("/")
        plain = "\\" not in name_and_rest and last not in ("", ".", "..")
        if plain:
            for folder in self._known_folders.get(above, ()):
                path = folder + last
                if last in self._files(folder) or os.path.isfile(path):
                    return Resolution(path, (path,))
        name, _, rest = name_and_rest.replace("\\", "/").partition("/")
        inside = os.path.normpath(rest or ".")
        if name in ("", ".", "..") or _leaves(inside):
            return Resolution(reason="the path leaves its package by '..'")
        found = None
        for folder in self._present(name):
            if os.path.isfile(folder + inside):
                found = folder + inside
                break
        known, _ = self._looked[name]
        if plain and above:
            there = os.path.dirname(inside)
            self._known_folders[above] = [os.path.join(folder, there, "") for folder in known]
        if found is not None:
            return Resolution(found, (found,))
        tried = tuple(os.path.join(folder, inside) for folder in self.package_folders(name))
        return Resolution(None, tried, package=None if known else name)

    def _present(self, name: str) -> Iterator[str]:
        """The folders of a package that are there, in the order of search; each is looked for once.

        They end in a separator. Those behind the first are looked for where it does not hold the file.
        """
        if name not in self._looked:
            self._looked[name] = [], iter(self.package_folders(name))
        known, others = self._looked[name]
        yield from known
        for folder in others:
            if os.path.isdir(folder):
                known.append(os.path.join(folder, ""))  # an empty name leaves a separator behind
                yield known[-1]

    def _files(self, folder: str) -> frozenset[str]:
        """Names of the first files of a folder: to list a folder is quicker than to look for each file."""
        found = self._listed.get(folder)
        if found is None:
            try:
                with os.scandir(folder) as entries:
                    some = itertools.islice(entries, _MOST_SCANNED)
                    found = frozenset(entry.name for entry in some if entry.is_file())
            except OSError:
                found = frozenset()
            self._listed[folder] = found
        return found

    def entries(self, folder: str) -> list[str]:
        """Names of what is in a folder, for hints: the first MOST_ENTRIES; none where there is no folder."""
        found = self._entries.get(folder)
        if found is None:
            try:
                with os.scandir(folder) as entries:
                    found = sorted(entry.name for entry in itertools.islice(entries, MOST_ENTRIES))
            except OSError:
                found = []
            self._entries[folder] = found
        return found

    def package_folders(self, name: str) -> list[str]:
        """Where a package of this name may be, in the order of search."""
        if name not in self._packages:
            self._packages[name] = package_folders(self.roots, name)
        return self._packages[name]

    def _relative(self, filename: str) -> Resolution:
        name = filename.replace("\\", "/") if "/" not in filename else filename
        if os.path.isabs(name):
            path = os.path.normpath(name)
            return Resolution(path if os.path.isfile(path) else None, (path,))
        bases = ([str(self.folder)] if self.folder is not None else []) + [str(d) for d in self.package_dirs]
        if not bases:
            return Resolution(reason="a relative name starts from the file's folder, and a text has none")
        tried, left = [], False
        for base in bases:
            path = os.path.normpath(os.path.join(os.path.abspath(base), name))
            if not any(os.path.commonpath((root, path)) == root for root in self._allowed_roots):
                left = True
                continue
            tried.append(path)
            if os.path.isfile(path):
                return Resolution(path, tuple(tried))
        reason = "the path leaves the URDF's package by '..'" if left and not tried else ""
        return Resolution(None, tuple(tried), reason=reason)

    @functools.cached_property
    def _allowed_roots(self) -> list[str]:
        """Folders that a relative name may end in."""
        if self.folder is None:
            return [os.path.abspath(d) for d in self.package_dirs]
        here = Path(os.path.abspath(self.folder))
        above = [here, *here.parents]
        package = next((p for p in above if (p / "package.xml").is_file()), None)
        level = above[min(_LEVELS, max(len(above) - 2, 0))]
        return [str(level), *([str(package)] if package else []), *map(os.path.abspath, self.package_dirs)]


class NoFiles(Resolver):
    """Finds none: the meshes and textures of a text that comes from anywhere are not even looked for."""

    def __call__(self, filename: str) -> Resolution:
        """No file, whatever the name."""
        return Resolution(reason="no file is looked for")


def _leaves(relative: str) -> bool:
    if relative[0] not in "./" and ":" not in relative:  # quickly: nearly every name
        return False
    return relative == ".." or relative.startswith("../") or os.path.isabs(relative)


def folders(package_dirs: Any) -> list[str | os.PathLike[str]]:
    """``package_dirs`` as a list; one folder instead of a list is an easy slip. WrongType for anything
    else.
    """
    if isinstance(package_dirs, (str, os.PathLike)):
        return [package_dirs]
    accepted = "folders, a list of strings or of pathlib.Path"
    if isinstance(package_dirs, bytes) or not isinstance(package_dirs, Iterable):
        raise WrongType("package_dirs", package_dirs, accepted)
    return [path_argument("package_dirs", folder, accepted) for folder in package_dirs]
