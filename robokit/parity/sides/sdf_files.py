"""An SDF and the models that it includes, without what Drake refuses and a comparison does not need.

Drake stops at every element and attribute that its parser does not know, and models made for Gazebo are full
of them: sensors, plugins, extensions. So Drake reads a copy with bodies, joints, frames and collision shapes.
"""

from __future__ import annotations

import copy
import math
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from robokit.errors import RobokitError
from robokit.parity.state import one_line
from robokit.urdf.read.mesh_files import Resolver
from robokit.urdf.read.source import MAX_BYTES

KEPT: dict[str, tuple[str, ...]] = {
    "sdf": ("model", "world"),
    "world": ("name", "model", "include", "joint", "frame", "gravity"),
    "model": ("link", "joint", "frame", "model", "include", "pose", "static"),
    "include": ("uri", "name", "pose", "static", "placement_frame"),
    "frame": ("pose",),
    "link": ("pose", "inertial", "collision", "gravity"),
    "inertial": ("pose", "mass", "inertia", "density"),
    "inertia": ("ixx", "ixy", "ixz", "iyy", "iyz", "izz"),
    "collision": ("pose", "geometry", "density"),
    "geometry": ("box", "sphere", "cylinder", "capsule", "ellipsoid", "mesh", "plane"),
    "box": ("size",),
    "sphere": ("radius",),
    "cylinder": ("radius", "length"),
    "capsule": ("radius", "length"),
    "ellipsoid": ("radii",),
    "mesh": ("uri", "scale", "submesh"),
    "plane": ("normal", "size"),
    "submesh": ("name", "center"),
    "joint": ("parent", "child", "pose", "axis", "axis2", "screw_thread_pitch", "thread_pitch"),
    "axis": ("xyz", "limit", "dynamics", "use_parent_model_frame"),
    "limit": ("lower", "upper", "effort", "velocity", "stiffness", "dissipation"),
    "dynamics": ("damping", "friction", "spring_reference", "spring_stiffness"),
}
"""Element -> the elements in it that say where bodies are, what they weigh, how they move and collide."""

KEPT["axis2"] = KEPT["axis"]

ATTRIBUTES = {
    "sdf": ("version",),
    "world": ("name",),
    "model": ("name", "canonical_link", "placement_frame"),
    "include": ("merge", "placement_frame"),
    "frame": ("name", "attached_to"),
    "link": ("name",),
    "inertial": ("auto",),
    "collision": ("name",),
    "joint": ("name", "type"),
    "pose": ("relative_to", "rotation_format", "degrees", "frame"),
    "xyz": ("expressed_in",),
}
"""Element -> its attributes; the others have none."""

NUMBERS = (
    *("mass", "pose", "xyz", "ixx", "ixy", "ixz", "iyy", "iyz", "izz", "density"),
    *("size", "radius", "length", "radii", "scale", "normal", "screw_thread_pitch", "thread_pitch"),
    *("lower", "upper", "effort", "velocity", "damping", "friction", "spring_reference", "spring_stiffness"),
    *("multiplier", "offset", "reference"),
)
"""Elements that hold numbers."""

UNSAID = ("visual", "self_collide", "enable_wind", "allow_auto_disable", "surface", "physics", "mimic")
"""What every model has and no comparison needs, or what is read from the file itself: no note is due."""

DYNAMIC = (
    "fluid_added_mass",
    "velocity_decay",
    "gearbox",
    "mesh",
    "heightmap",
    "polyline",
    "cone",
    "kinematic",
)
"""What changes motions and is not compared: drag, added mass, coupled joints, shapes of few programs."""

OLD = {"use_parent_model_frame": (1, 7), "pose frame": (1, 7)}
"""Element, or element and attribute -> the first version of SDF that does not have it."""

NEWEST = (9,)
"""Version of a file that says none: newer than all."""

MESHES = (".obj", ".vtk", ".gltf")
"""Endings of the mesh files that Drake reads."""

MOST = 1000
"""Files that a model may include, directly and through others."""


class SdfFiles:
    """An SDF and what it includes.

    Args:
        path: the file.
        package_dirs: folders searched first for ``model://`` and ``package://``.

    Attributes:
        notes: what was set aside.
        meshes_left_out: whether a collision mesh was.

    Raises:
        RobokitError: no XML, a model that includes itself, or one that is not there.
    """

    def __init__(self, path: Path, package_dirs: Sequence[str | os.PathLike[str]] = ()) -> None:
        self.path, self._package_dirs = path, package_dirs
        self._trees: dict[Path, Any] = {}
        self._included: dict[Any, Path] = {}
        self._left: Counter[str] = Counter()
        self.meshes_left_out = False
        self.notes: list[str] = []
        self._read(path, ())

    def _read(self, path: Path, stack: tuple[Path, ...]) -> None:
        real = path.resolve()
        if real in stack:
            names = " > ".join("/".join(each.parts[-2:]) for each in (*stack[stack.index(real) :], real))
            raise RobokitError(f"{path} includes itself ({names}); remove the <include>")
        if real in self._trees:
            return
        if len(self._trees) == MOST:
            raise RobokitError(f"{self.path} includes more than {MOST} files; remove some <include>s")
        root = _parsed(path)
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

    def write(self, folder: Path, meshes: bool = True) -> Path:
        """Write copies of all files into a folder; the path of the first.

        Args:
            folder: an empty one.
            meshes: whether collision meshes are kept.
        """
        from lxml import etree

        self._left.clear()
        names = {real: folder / f"{k}.sdf" for k, real in enumerate(self._trees)}
        for real, root in self._trees.items():
            including = [self._included.get(element) for element in root.iter("include")]
            own = copy.deepcopy(root)
            for element, found in zip(list(own.iter("include")), including, strict=True):
                if found is None:
                    element.getparent().remove(element)
                else:
                    element.find("uri").text = names[found.resolve()].as_uri()
            self._strip(own, _version(own))
            self._place_meshes(own, Resolver(real.parent, self._package_dirs), meshes)
            names[real].write_bytes(etree.tostring(own))
        for how, wanted in ("set aside, as they have no rigid-body dynamics", False), ("not compared", True):
            some = sorted((tag, n) for tag, n in self._left.items() if n and (tag in DYNAMIC) == wanted)
            if some:
                self.notes.append(f"{how}: {', '.join(f'<{tag}> ({n})' for tag, n in some)}")
        return names[self.path.resolve()]

    def _strip(self, element: Any, version: tuple[int, ...]) -> None:
        kept = KEPT.get(element.tag)
        known = ATTRIBUTES.get(element.tag, ())
        for name in list(element.attrib):
            if name not in known or OLD.get(f"{element.tag} {name}", (*NEWEST, 1)) <= version:
                del element.attrib[name]
        for child in list(element):
            tag = str(child.tag)
            if "drake" in re.split("[:}]", tag)[0] or "drake" in tag.rpartition("}")[0]:
                continue  # Drake's own extensions say how joints move
            if kept is None or tag not in kept or OLD.get(tag, (*NEWEST, 1)) <= version:
                self._set_aside(element, child)
            elif tag == "joint" and child.get("type") == "gearbox":
                self._set_aside(element, child, "gearbox")
            elif tag == "geometry" and not any(each.tag in KEPT["geometry"] for each in child):
                for each in child:
                    self._left[str(each.tag)] += each.tag != "empty"
                element.getparent().remove(element)
                return
            else:
                self._strip(child, version)

    def _set_aside(self, element: Any, child: Any, name: str = "") -> None:
        tag = name or re.sub(r"^\{.*\}", "", str(child.tag))
        if tag not in UNSAID and not (tag in DYNAMIC and _idle(child)):
            self._left[tag] += 1
        element.remove(child)

    def _place_meshes(self, root: Any, finder: Resolver, meshes: bool) -> None:
        for mesh in list(root.iter("mesh")):
            uri = mesh.find("uri")
            path = finder((uri.text or "").strip()).path if uri is not None else None
            if meshes and path is not None and Path(path).suffix.lower() in MESHES:
                uri.text = Path(path).absolute().as_uri()
                continue
            collision = mesh.getparent().getparent()
            if collision is not None and collision.getparent() is not None:
                collision.getparent().remove(collision)
                self.meshes_left_out = True
                if meshes:
                    self._left["mesh"] += 1


def _parsed(path: Path) -> Any:
    """The outermost element of a file; SDF knows no namespaces, so their prefixes need not be declared."""
    from lxml import etree

    options = {"remove_pis": True, "resolve_entities": False, "no_network": True, "recover": True}
    parser = etree.XMLParser(huge_tree=True, **options)
    if not path.is_file() or path.stat().st_size > MAX_BYTES:
        raise RobokitError(f"{path} is no file of at most {MAX_BYTES} bytes")
    try:
        root = etree.fromstring(_uncommented(path.read_bytes()), parser)
        said = [e for e in parser.error_log if e.domain_name != "NAMESPACE"]
        problem = f"{said[0].message}, line {said[0].line}" if said else "it is empty" if root is None else ""
    except (etree.XMLSyntaxError, ValueError, OSError) as error:
        problem = one_line(error)
    if problem:
        raise RobokitError(f"{path}: no XML that can be read: {problem}")
    return root


def _uncommented(text: bytes) -> bytes:
    """Without comments, in which Gazebo's parser, unlike XML, allows "--"; every line keeps its number."""
    return re.sub(rb"<!--.*?-->", lambda found: b"\n" * found.group().count(b"\n"), text, flags=re.DOTALL)


def _idle(element: Any) -> bool:
    """Whether all that an element says is zero, false or nothing."""
    return all((each.text or "").strip() in ("", "0", "0.0", "false") for each in element.iter())


def _uri(include: Any) -> str:
    return (include.findtext("uri") or "").strip()


def _check_numbers(path: Path, element: Any) -> None:
    """An error for what is no number where the comparison needs one: NaN and words."""
    if element.getparent() is None or element.getparent().tag not in (*KEPT, "mimic"):
        return
    for word in (element.text or "").split():
        try:
            value = float(word)
        except ValueError:
            value = math.nan
        if math.isnan(value):
            raise RobokitError(
                f"{path}: <{element.tag}> (line {element.sourceline}): expected a number, got {word!r}"
            )


def _version(element: Any) -> tuple[int, ...]:
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
            if found.is_file() and (best is None or _version(sdf) > best[0]):
                best = _version(sdf), found
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
        if joint.get("type") not in ("universal", "revolute2") or joint.find("axis") is None or not held:
            joint.remove(second)
            continue
        at, between = f"{name}_at", f"{name}_between"
        frame = etree.SubElement(model, "frame", name=at, attached_to=held)
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
        other = etree.SubElement(model, "joint", name=f"{name}_2", type="revolute")
        etree.SubElement(other, "parent").text = between
        etree.SubElement(other, "child").text = held
        etree.SubElement(other, "pose", relative_to=at)
        second.tag = "axis"
        other.append(second)
        joint.set("type", "revolute")
        child.text = between
