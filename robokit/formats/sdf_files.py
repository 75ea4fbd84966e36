"""The files of an SDF: itself and what it includes, leniently parsed, their numbers checked.

Joints with two axes are two joints in them.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from robokit.errors import RobokitError
from robokit.formats.other_programs import one_line
from robokit.urdf.mesh_files import Resolver
from robokit.urdf.source import MAX_BYTES

NUMBERS = (
    *("mass", "pose", "xyz", "ixx", "ixy", "ixz", "iyy", "iyz", "izz", "density"),
    *("size", "radius", "length", "radii", "scale", "normal", "screw_thread_pitch", "thread_pitch"),
    *("lower", "upper", "effort", "velocity", "damping", "friction", "spring_reference", "spring_stiffness"),
    *("multiplier", "offset", "reference"),
)
"""Elements that hold numbers."""

HOLDERS = (
    *("model", "world", "include", "frame", "link", "inertial", "inertia", "collision", "visual", "box"),
    *("sphere", "cylinder", "capsule", "ellipsoid", "mesh", "plane", "joint", "axis", "axis2", "limit"),
    *("dynamics", "mimic", "material"),
)
"""Elements whose numbers are read."""

MOST_NESTED = 100
"""Models in models."""

NEWEST = (9,)
"""Version of a file that says none: newer than all."""

MOST_INCLUDED_FILES = 1000
"""Files that a model may include, directly and through others."""


class SdfFiles:
    """An SDF and what it includes.

    Args:
        path: the file.
        package_dirs: folders searched first for ``model://`` and ``package://``.
        text: what is in the file, where that was expanded first.

    Attributes:
        notes: what was set aside.

    Raises:
        RobokitError: no XML, a model that includes itself, or one that is not there.
    """

    def __init__(
        self, path: Path, package_dirs: Sequence[str | os.PathLike[str]] = (), text: bytes | None = None
    ) -> None:
        self.path, self._package_dirs, self._text = path, package_dirs, text
        self._trees: dict[Path, Any] = {}
        self._included: dict[Any, Path] = {}
        self._finders: dict[Path, Resolver] = {}
        self.notes: list[str] = []
        self._read(path, ())

    @property
    def root(self) -> Any:
        """The outermost element of the file itself."""
        return self._trees[self.path.resolve()]

    def finder(self, file: Path) -> Resolver:
        """Where the files are that a file names."""
        if file not in self._finders:
            self._finders[file] = Resolver(file.absolute().parent, (*self._package_dirs, *_model_folders()))
        return self._finders[file]

    def included(self, include: Any) -> tuple[Path, Any] | None:
        """The file of an <include> and its <model>; None where it is not there.

        Raises:
            RobokitError: the file has no model.
        """
        if include not in self._included:
            return None
        file = self._included[include].resolve()
        root = self._trees[file]
        model = root if root.tag == "model" else next(root.iter("model"), None)
        if model is None:
            raise RobokitError(f"{file}: no <model> in it, which an <include> of {self.path} needs")
        return file, model

    def _read(self, path: Path, stack: tuple[Path, ...]) -> None:
        real = path.resolve()
        if real in stack:
            names = " > ".join("/".join(each.parts[-2:]) for each in (*stack[stack.index(real) :], real))
            raise RobokitError(f"{path} includes itself ({names}); remove the <include>")
        if real in self._trees:
            return
        if len(self._trees) == MOST_INCLUDED_FILES:
            raise RobokitError(
                f"{self.path} includes more than {MOST_INCLUDED_FILES} files; remove some <include>s"
            )
        root = _parse(path, None if stack else self._text)
        self._trees[real] = root
        for element in root.iter(*NUMBERS):
            _check_numbers(path, element)
        _split_joints(root)
        finder = Resolver(path.absolute().parent, self._package_dirs)
        for element in list(root.iter("include")):
            found = self._model(element, finder)
            if found is not None:
                self._included[element] = found
                self._read(found, (*stack, real))
            elif element.getparent().tag == "world":  # beside the robot: sun, ground
                self.notes.append(f"<include> of {_uri(element)!r} in the world is left out: no such model")
            else:
                raise RobokitError(
                    f"{path}: <include> (line {element.sourceline}): no model {_uri(element)!r} in the "
                    "folders above the file, and nothing is fetched from a network; pass package_dirs "
                    "(--package-dir) with the folder that holds it"
                )

    def _model(self, include: Any, finder: Resolver) -> Path | None:
        """The file that an <include> means: a file, or what the model.config of a folder names."""
        uri = _uri(include)
        scheme, mark, rest = uri.partition("://")
        rest = unquote(rest) if mark else uri
        if mark and scheme not in ("model", "package", "file"):
            return None  # nothing is fetched from a network
        if mark and scheme != "file":
            folders = [*finder.roots, *_model_folders(), str(finder.folder)]
        else:
            folders = [str(finder.folder), *finder.roots]
        for folder in folders:
            found = Path(folder, rest.lstrip("/") if mark and scheme != "file" else rest)
            # A model's own folder may be the one that is named.
            own = Path(folder) if Path(folder).name == rest.strip("/") else None
            for place in (found, *([own] if own is not None else [])):
                if place.is_file():
                    return place
                named = _named_in(place) if place.is_dir() else None
                if named is not None:
                    return named
        return None

    def elements(self, *tags: str) -> Iterator[tuple[str, Any]]:
        """Elements of these names of all files, each with the scope of its model, such as "drone::camera"."""
        yield from self._scoped(self._trees[self.path.resolve()], "", "", tags, 0)

    def _scoped(
        self, element: Any, scope: str, name: str, tags: Sequence[str], depth: int
    ) -> Iterator[tuple[str, Any]]:
        if depth > 100:
            return
        for child in element:
            if child.tag in tags:
                yield scope, child
            if child.tag == "model":
                own = name or child.get("name", "")
                yield from self._scoped(child, f"{scope}::{own}" if scope else own, "", tags, depth + 1)
            elif child.tag == "include" and child in self._included:
                root = self._trees[self._included[child].resolve()]
                if child.get("merge", "").lower() in ("1", "true"):
                    for model in root.iter("model"):
                        yield from self._scoped(model, scope, "", tags, depth + 1)
                        break
                else:
                    given = (child.findtext("name") or "").strip()
                    yield from self._scoped(root, scope, given, tags, depth + 1)
            elif child.tag == "world":
                yield from self._scoped(child, scope, "", tags, depth + 1)


def _parse(path: Path, text: bytes | None = None) -> Any:
    """The outermost element of a file; SDF knows no namespaces, so their prefixes need not be declared."""
    from lxml import etree

    options = {"remove_pis": True, "resolve_entities": False, "no_network": True, "recover": True}
    parser = etree.XMLParser(huge_tree=True, **options)
    if not path.is_file() or path.stat().st_size > MAX_BYTES:
        raise RobokitError(f"{path} is no file of at most {MAX_BYTES} bytes")
    try:
        root = etree.fromstring(_without_comments(path.read_bytes() if text is None else text), parser)
        said = [e for e in parser.error_log if e.domain_name != "NAMESPACE"]
        problem = f"{said[0].message}, line {said[0].line}" if said else "it is empty" if root is None else ""
    except (etree.XMLSyntaxError, ValueError, OSError) as error:
        problem = one_line(error)
    if problem:
        raise RobokitError(f"{path}: no XML that can be read: {problem}")
    return root


def _without_comments(text: bytes) -> bytes:
    """Without comments, in which Gazebo's parser, unlike XML, allows "--"; every line keeps its number.

    Nor does that parser mind a comment before the XML declaration.
    """
    plain = re.sub(rb"<!--.*?-->", _blank_lines, text, flags=re.DOTALL)
    return (
        plain
        if plain.startswith(b"<?xml")
        else re.sub(rb"^\s*<\?xml.*?\?>", _blank_lines, plain, flags=re.DOTALL)
    )


def _blank_lines(found: re.Match[bytes]) -> bytes:
    return b"\n" * found.group().count(b"\n")


def idle(element: Any) -> bool:
    """Whether all that an element says is zero, false or nothing."""
    return all((each.text or "").strip() in ("", "0", "0.0", "false") for each in element.iter())


def _uri(include: Any) -> str:
    return (include.findtext("uri") or "").strip()


def _check_numbers(path: Path, element: Any) -> None:
    """An error for what is no number where the comparison needs one: NaN and words."""
    if element.getparent() is None or element.getparent().tag not in HOLDERS:
        return
    for word in (element.text or "").split():
        try:
            value = float(word)
        except ValueError:
            value = math.nan
        if math.isnan(value) or (math.isinf(value) and element.getparent().tag != "limit"):
            raise RobokitError(
                f"{path}: <{element.tag}> (line {element.sourceline}): expected a number, got {word!r}"
            )


def version_of(element: Any) -> tuple[int, ...]:
    """The version of SDF that an element says, (1, 11) for 1.11; the newest if it says none."""
    return tuple(int(part) for part in re.findall(r"\d+", element.get("version", ""))) or NEWEST


def _model_folders() -> Iterator[str]:
    """Folders of models that environment variables of Gazebo and sdformat name."""
    for variable in ("GZ_SIM_RESOURCE_PATH", "IGN_GAZEBO_RESOURCE_PATH", "GAZEBO_MODEL_PATH", "SDF_PATH"):
        yield from (folder for folder in os.environ.get(variable, "").split(os.pathsep) if folder)


def _named_in(folder: Path) -> Path | None:
    """The SDF of a model's folder: the newest that its model.config names, else model.sdf."""
    from lxml import etree

    best: tuple[tuple[int, ...], Path] | None = None
    for config in ("model.config", "manifest.xml"):
        file = folder / config
        if not file.is_file() or file.stat().st_size > MAX_BYTES:
            continue
        try:
            root = etree.parse(str(file), etree.XMLParser(resolve_entities=False, no_network=True)).getroot()
        except etree.XMLSyntaxError:
            continue
        for sdf in root.iter("sdf"):
            found = folder / (sdf.text or "").strip()
            if found.is_file() and (best is None or version_of(sdf) > best[0]):
                best = version_of(sdf), found
    plain = folder / "model.sdf"
    return best[1] if best is not None else plain if plain.is_file() else None


def _split_joints(root: Any) -> None:
    """Joints with two axes as two revolute joints, as a URDF has them, with a body without mass between."""
    from lxml import etree

    for joint in list(root.iter("joint")):
        second = joint.find("axis2")
        if second is None:
            continue
        model, name, child = joint.getparent(), joint.get("name", ""), joint.find("child")
        held = "" if child is None else (child.text or "").strip()
        if joint.get("type") == "gearbox":
            continue
        if joint.get("type") not in ("universal", "revolute2") or joint.find("axis") is None or not held:
            joint.remove(second)
            continue
        at, between = f"{name}_at", f"{name}_between"
        frame = etree.SubElement(model, "frame", name=at, attached_to=held, split=joint.get("type"))
        pose = joint.find("pose")
        if pose is None:
            pose = etree.Element("pose")
        if not pose.get("relative_to"):
            pose.set("relative_to", held)
        frame.append(pose)
        link = etree.SubElement(model, "link", name=between)
        etree.SubElement(link, "pose", relative_to=at)
        inertial = etree.SubElement(link, "inertial")
        etree.SubElement(inertial, "mass").text = "0"
        inertia = etree.SubElement(inertial, "inertia")
        for entry in ("ixx", "iyy", "izz"):
            etree.SubElement(inertia, entry).text = "0"
        other = etree.SubElement(model, "joint", name=f"{name}_2", type="revolute", split=joint.get("type"))
        etree.SubElement(other, "parent").text = between
        etree.SubElement(other, "child").text = held
        etree.SubElement(other, "pose", relative_to=at)
        second.tag = "axis"
        other.append(second)
        joint.set("type", "revolute")
        child.text = between
