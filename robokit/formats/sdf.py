"""SDF, of any version, as robokit reads it: models, worlds, includes, nested models, frames, joints, looks.

A pose in SDF is relative to a frame of its model, which may be a link, a joint, a <frame>, or a model in it:
a :class:`_Model` has these names, and places each in its own frame. What a robot cannot have (plugins,
sensors, springs, ...) is named in ``Description.said``.

Source: the specification of SDFormat 1.11, with the rules of its versions before 1.7 for axes and poses.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np

from robokit.errors import RobokitError
from robokit.formats.description import (
    WORLD,
    DescribedBody,
    DescribedGround,
    DescribedJoint,
    DescribedLoop,
    DescribedScene,
    DescribedShape,
    Description,
    Law,
    cone_mesh,
    ellipsoid_mesh,
    frame_along,
    inertia_about,
    joints_outwards,
    parents_first,
    solid_of,
)
from robokit.formats.other_programs import one_line
from robokit.model.builder import PERPENDICULAR
from robokit.model.geometry import RGBA, Placement
from robokit.spatial.rotation import rotation_to_quat_wxyz
from robokit.urdf.description import UNLIMITED, InertialDescription, Origin
from robokit.urdf.mesh_files import Resolver
from robokit.urdf.source import MAX_BYTES

# ==== sdf files ===================================================================================
# The files of an SDF: itself and what it includes, leniently parsed, their numbers checked.
#
# Joints with two axes are two joints in them.

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

SINGLE = {*NUMBERS, "inertial", "inertia", "geometry", "axis", "limit", "dynamics", "parent", "child"}
"""Elements of which the first counts."""

MOST_NESTED = 100  # models in models
NEWEST = (9,)  # version of a file that says none: newer than all
MOST_INCLUDED_FILES = 1000  # files that a model may include, directly and through others


class SdfFiles:
    """An SDF and what it includes; ``notes`` say what was set aside.

    ``package_dirs`` are folders searched first for ``model://`` and ``package://``, ``text`` is what is in
    the file, where that was expanded first. Raises RobokitError for no XML, a model that includes itself, or
    one that is not there.
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
        """The file of an <include> and its <model>, None for no file; RobokitError for one without a
        model.
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
            own = [Path(folder)] if Path(folder).name == rest.strip("/") else []
            for place in (found, *own):
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
        # Gazebo's parser, unlike XML, allows "--" in comments, and a comment before the XML declaration.
        given = path.read_bytes() if text is None else text
        plain = re.sub(rb"<!--.*?-->", _blank_lines, given, flags=re.DOTALL)
        root = etree.fromstring(re.sub(rb"^\s+<\?xml.*?\?>", _blank_lines, plain, flags=re.DOTALL), parser)
        said = [e for e in parser.error_log if e.domain_name != "NAMESPACE"]
        problem = f"{said[0].message}, line {said[0].line}" if said else "it is empty" if root is None else ""
    except (etree.XMLSyntaxError, ValueError, OSError) as error:
        problem = one_line(error)
    if problem:
        raise RobokitError(f"{path}: no XML that can be read: {problem}")
    return root


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


# ==== sdf =========================================================================================

NAME = "{https://robokit}name"  # a robot's name that SDF does not take; "" for a joint that only SDF needs
MODEL = "__model__"  # SDF's name for the frame of a model itself

KINDS = {
    "revolute": "revolute",
    "continuous": "continuous",
    "prismatic": "prismatic",
    "ball": "spherical",
    "screw": "helical",
    "fixed": "fixed",
}
"""SDF's types of joints; universal and revolute2 are two revolute joints, a gearbox couples two others."""

COLOURS: dict[str, RGBA] = {
    "Black": (0.0, 0.0, 0.0, 1.0),
    "DarkGrey": (0.175, 0.175, 0.175, 1.0),
    "Grey": (0.7, 0.7, 0.7, 1.0),
    "White": (1.0, 1.0, 1.0, 1.0),
    "Red": (1.0, 0.0, 0.0, 1.0),
    "Green": (0.0, 1.0, 0.0, 1.0),
    "Blue": (0.0, 0.0, 1.0, 1.0),
    "Yellow": (1.0, 1.0, 0.0, 1.0),
    "Orange": (1.0, 0.5088, 0.0468, 1.0),
    "Purple": (1.0, 0.0, 1.0, 1.0),
    "Turquoise": (0.0, 1.0, 1.0, 1.0),
}
"""Colours that scripts of Gazebo name, as Gazebo/NAME."""

WATER = 1000.0  # density of what says none [kg/m^3]

HANDLED = {
    "world": {"name", "model", "include", "joint", "frame", "gravity", "light", "scene", "gui", "physics"},
    "model": {"link", "joint", "frame", "model", "include", "pose", "static"},
    "link": {"pose", "inertial", "collision", "visual", "gravity"},
    "inertial": {"pose", "mass", "inertia", "density"},
    "axis": {"xyz", "limit", "dynamics", "mimic", "use_parent_model_frame"},
    "collision": {"pose", "geometry", "density", "laser_retro", "max_contacts"},
    "visual": {
        "pose",
        "geometry",
        "material",
        "transparency",
        "cast_shadows",
        "visibility_flags",
        "laser_retro",
    },
    "joint": {"parent", "child", "pose", "axis", "axis2", "screw_thread_pitch", "thread_pitch"},
}
"""Element -> the elements in it that are read, or that concern pictures only; the others are told."""

HANDLED["joint"] |= {"gearbox_ratio", "gearbox_reference_body"}
HANDLED["joint"] |= {"drake:rotor_inertia", "drake:gear_ratio", "drake:mimic"}

SURFACE = ("surface", "friction", "ode", "mu", "mu2")
"""What is read of a surface, and a second friction like the first."""

MESHED = ("ellipsoid", "cone")  # shapes that become meshes

MOVES_OTHERWISE = {"kinematic", "velocity_decay", "fluid_added_mass", "enable_wind", "wind"}
MOVES_OTHERWISE |= {"drake:joint", "drake:linear_bushing_rpy", "drake:linear_spring_damper"}
MOVES_OTHERWISE |= {"drake:ball_constraint"}
"""What changes motions: a warning, where the others are a note."""


def read_sdf(
    path: str | os.PathLike[str],
    package_dirs: Sequence[str | os.PathLike[str]] = (),
    model: str | None = None,
    text: bytes | None = None,
) -> Description:
    """Read a model of an SDF: the named one, where the file has several that are not static.

    Arguments are as for :class:`SdfFiles`. Raises RobokitError for no SDF, a name that is not there, or
    several models and none chosen.
    """
    try:
        files = SdfFiles(Path(path), package_dirs, text)
        root = _Model(files.root, "", "", None, files, Path(path).resolve())
        return _Reader(files, root, _chosen(files, root, model)).description()
    except RobokitError as problem:
        if Path(path).name in str(problem):
            raise
        raise RobokitError(f"{os.fspath(path)}: {problem}") from None


def _chosen(files: SdfFiles, root: _Model, name: str | None) -> _Model:
    """The model that is the robot."""
    path = os.fspath(files.path)
    models = [each for scope in (root, *root.worlds) for each in scope.models]
    if not models:
        missing = "; ".join(dict.fromkeys(files.notes))
        raise RobokitError(f"{path}: no <model> in it" + (f"; {missing}" if missing else ""))
    listed = ", ".join(repr(each.name) for each in models)
    if name is not None:
        named = [each for each in models if each.name == name]
        if len(named) > 1:
            raise RobokitError(
                f"{path} has {len(named)} models {name!r}; names have to be unique: rename one"
            )
        if not named:
            raise RobokitError(f"{path} has no model {name!r}; it has {listed}")
        return named[0]
    moving = [each for each in models if not each.static] or models
    if len(moving) > 1:
        raise RobokitError(f"{path} has {len(moving)} models: {listed}; choose one: root={moving[0].name!r}")
    return moving[0]


class _Model:
    """A model, or the world, with the names in it.

    Attributes:
        element: <model>, <world> or <sdf>.
        name: what it is called there.
        prefix: of the names of its links and joints in the robot, such as "camera::".
        outer: the model around it, None for the file.
        static: whether nothing in it moves.
        models: the models in it.
        worlds: the worlds in it, of the file.
        finder: where its mesh files are.
        version: of the SDF it stands in.
    """

    def __init__(
        self,
        element: Any,
        name: str,
        prefix: str,
        outer: _Model | None,
        files: SdfFiles,
        file: Path,
        include: Any = None,
    ) -> None:
        self.element, self.name, self.prefix, self.outer = element, name, prefix, outer
        self.depth: int = 0 if outer is None else outer.depth + 1
        self.file, self.version = file, version_of(element.getroottree().getroot())
        self.finder = files.finder(file)
        self._include = include
        self._frames = {
            each.get("name", ""): each for each in element if each.tag in ("link", "joint", "frame")
        }
        named: dict[str, Any] = {}
        for each in element.iterchildren("link", "joint", "frame", "model"):
            called = each.get("name", "")
            first = named.setdefault(called, each)
            if called and first is not each:
                raise RobokitError(
                    f"{file}: two links, joints, frames or models are called {called!r} (lines "
                    f"{first.sourceline} and {each.sourceline}); rename one"
                )
        said = [part.findtext("static") for part in (include, element) if part is not None]
        own = next((text.strip().lower() for text in said if text), "false")
        self.static: bool = own in ("1", "true") or (outer is not None and outer.static)
        self.models: list[_Model] = []
        self.worlds: list[_Model] = []
        self.merged: list[_Model] = []
        self._placing = False
        self._in_world: Placement | None = None
        self._known: dict[str, Placement] = {"": Placement(), MODEL: Placement()}
        for child in element:
            self._add(child, files)

    def _add(self, child: Any, files: SdfFiles) -> None:
        if self.depth > MOST_NESTED:
            raise RobokitError(f"{files.path}: models are nested more than {MOST_NESTED} deep")
        if child.tag == "world":
            self.worlds.append(_Model(child, child.get("name", ""), "", self, files, self.file))
        elif child.tag == "model":
            name = child.get("name", "")
            self.models.append(_Model(child, name, self._inner(name), self, files, self.file))
        elif child.tag == "include":
            found = files.included(child)
            if found is None:
                return
            file, inner = found
            name = (child.findtext("name") or inner.get("name", "")).strip()
            merge = child.get("merge", "").lower() in ("1", "true")
            prefix = self.prefix if merge else self._inner(name)
            there = _Model(inner, name, prefix, self, files, file, child)
            (self.merged if merge else self.models).append(there)

    def _inner(self, name: str) -> str:
        """The prefix of the names in a model of this one: none in the robot itself."""
        return f"{self.prefix}{name}::" if self.element.tag == "model" else ""

    @property
    def above(self) -> Any:
        """The element that places it: the <include>, where that has a pose, else its own."""
        include = self._include
        return self.element if include is None or include.find("pose") is None else include

    def where(self) -> Placement:
        """Pose of the model's frame in the model around it."""
        if self.outer is None or self.element.tag == "world":
            return Placement()
        if self._placing:
            raise RobokitError(f"{self.file}: model {self.name!r} is placed relative to itself")
        self._placing = True
        pose = self.above.find("pose")
        at = self.outer.place(_relative_to(pose, self.version) or MODEL) @ placement(pose)
        include = self._include
        held = self.element.get("placement_frame", "")
        if include is not None and include.find("pose") is not None:
            held = (include.findtext("placement_frame") or include.get("placement_frame") or held).strip()
        at = at @ self.place(held).inverse() if held else at
        self._placing = False
        return at

    def in_world(self) -> Placement:
        """Pose of the model's frame in the world."""
        if self._in_world is None:
            self._in_world = self.where() if self.outer is None else self.outer.in_world() @ self.where()
        return self._in_world

    def place(self, name: str) -> Placement:
        """Pose of a frame in the model's own; RobokitError for none, or frames placed by each other."""
        steps: dict[str, Placement] = {}
        while name not in self._known:
            element = self._frames.get(name)
            if name in steps:
                raise RobokitError(f"{self.file}: the frame {name!r} is placed relative to itself")
            if element is None:
                self._known[name] = self._elsewhere(name)
                break
            pose = element.find("pose")
            steps[name] = placement(pose)
            default = MODEL
            if element.tag == "joint":
                default = (element.findtext("child") or "").strip()
            elif element.tag == "frame":
                default = element.get("attached_to", "")
            name = _relative_to(pose, self.version) or default
        at = self._known[name]
        for each, step in reversed(steps.items()):
            at = self._known[each] = at @ step
        return at

    def _elsewhere(self, name: str) -> Placement:
        """Pose of the world, or of a frame of a model in this one."""
        if name == WORLD:
            return self.in_world().inverse()
        scope, rest = self._inside(name)
        return scope.where() @ scope.place(rest)

    def _inside(self, name: str) -> tuple[_Model, str]:
        """The model in this one that has a name, and the name there."""
        head, _, rest = name.partition("::")
        for each in self.models:
            if each.name == head:
                return each, rest
        for each in self.merged:
            if each.has(name):
                return each, name
        known = ", ".join(repr(each) for each in [*self._frames, *(m.name for m in self.models)][:20])
        raise RobokitError(f"{self.file}: model {self.name!r} has no frame {name!r}; it has {known}")

    def has(self, name: str) -> bool:
        """Whether the model has a frame of that name."""
        head = name.partition("::")[0]
        return (
            head in self._frames
            or any(m.name == head for m in self.models)
            or any(m.has(name) for m in self.merged)
        )

    def body(self, name: str) -> str:
        """The link, by its name in the robot, that a frame is fixed to; RobokitError where there is none."""
        seen: set[str] = set()
        while name != WORLD:
            if name in seen:
                raise RobokitError(f"{self.file}: the frame {name!r} is attached to itself")
            seen.add(name)
            if name in ("", MODEL):
                return self.canonical()
            element = self._frames.get(name)
            if element is None:
                scope, rest = self._inside(name)
                return scope.body(rest)
            if element.tag == "link":
                return self.prefix + own_name(element)
            if element.tag == "joint":
                name = (element.findtext("child") or "").strip()
            else:
                name = element.get("attached_to", "")
        return WORLD

    def canonical(self) -> str:
        """The link that the model's frame is fixed to."""
        named = self.element.get("canonical_link", "")
        if named:
            return self.body(named)
        for element in self._frames.values():
            if element.tag == "link":
                return self.prefix + own_name(element)
        for inner in (*self.models, *self.merged):
            return inner.canonical()
        if self.element.tag == "world":
            return WORLD
        raise RobokitError(f"{self.file}: model {self.name!r} has no link")

    def all(self) -> Iterator[_Model]:
        """The model and those in it."""
        yield self
        for inner in (*self.merged, *self.models):
            yield from inner.all()


def _relative_to(pose: Any, version: tuple[int, ...]) -> str:
    if pose is None:
        return ""
    return str(pose.get("relative_to") or (pose.get("frame", "") if version < (1, 7) else "")).strip()


class _Reader:
    """One model as a description."""

    def __init__(self, files: SdfFiles, root: _Model, robot: _Model) -> None:
        self.files, self.root, self.robot = files, root, robot
        self.file = os.fspath(files.path)
        self._said: dict[tuple[str, str, str], list[str]] = {}
        self.crosses: dict[str, str] = {}  # second parts of joints with two axes, and what these are

    def description(self) -> Description:
        """The model: bodies, joints outwards from the world, loops."""
        bodies = {WORLD: DescribedBody(WORLD, Placement(), static=True)}
        for model in self.robot.all():
            at = model.in_world()
            self._tell(model.element, model.name)
            for link in model.element.iterfind("link"):
                if link.get("name") == WORLD:
                    self._say("rewritten", "links", WORLD, "it is the world itself, and never moves")
                    continue
                body = self._body(model, link, at)
                if body.name in bodies:
                    raise RobokitError(f"{self.file}: two links are called {body.name!r}; rename one")
                bodies[body.name] = body
            for frame in model.element.iterfind("frame"):
                name = frame.get("name", "")
                held = bodies.get(model.body(name))
                if held is not None and held.name != WORLD and not frame.get("split"):
                    held.frames[model.prefix + own_name(frame)] = held.pose.inverse() @ at @ model.place(name)
        if len(bodies) == 1:
            raise RobokitError(f"{self.file}: model {self.robot.name!r} has no link that can move")
        joints, loops = self._tree(bodies)
        side = Description("SDF", self.file, self.robot.name, bodies, joints)
        side.bodies = parents_first(bodies, joints)
        side.loops = loops
        loose = [j for j in joints if j.parent == WORLD and j.kind == "floating"]
        side.base = "floating" if loose else "fixed"
        for world in self.root.worlds:
            numbers = _numbers(world.element.find("gravity"), 3)
            if world is self.robot.outer and numbers:
                side.gravity = np.array(numbers)
        side.notes += dict.fromkeys(self.files.notes)
        side.scene = self._scene()
        where = {joint.name: free_coordinates(bodies[joint.child].pose) for joint in loose}
        if any(each != (1.0, *(0.0,) * 6) for each in where.values()):
            side.scene.configurations["initial"] = where
        others = [m for scope in (self.root, *self.root.worlds) for m in scope.models if m is not self.robot]
        for other in others:
            if other.static and other.outer is self.robot.outer:
                self._say("rewritten", "models", other.name, "static: they are in robot.scene.ground")
            else:
                self._say("ignored", "models", other.name, "other models of the file, no part of the robot")
        for note in dict.fromkeys(self.files.notes):
            self._say("ignored", "<include>s", note, "it is beside the robot")
        for (code, what, text), names in self._said.items():
            side.say(code, what, names, text)
        return side

    # ---- what a robot cannot have ----------------------------------------------------------------

    def _say(self, code: str, what: str, name: str, text: str) -> None:
        self._said.setdefault((code, what, text), []).append(name)

    def _tell(self, element: Any, name: str) -> None:
        """Remember the elements in an element that nothing reads."""
        for child in element:
            space, _, tag = str(child.tag).rpartition("}")
            prefix = "drake" if "drake" in space else child.prefix
            tag = f"{prefix}:{tag}" if space and prefix else str(child.tag)
            if tag == "surface" and all(each.tag in SURFACE for each in child.iter()):
                continue
            if tag not in HANDLED[element.tag] and (child.attrib or not idle(child)):
                own = child.get("name")
                acts = tag in MOVES_OTHERWISE
                self._say(
                    "left-out" if acts else "ignored",
                    f"<{tag}>s",
                    f"{name}/{own}" if own else name,
                    "it affects the motion and is not supported" if acts else "it is not supported",
                )

    def _tell_repeated(self, element: Any, name: str) -> None:
        """Remember what an element, or one in it, has twice and may have once."""
        for holder in element.iter(*HOLDERS, "geometry"):
            seen: set[str] = set()
            for child in holder:
                shape = holder.tag == "geometry" and child.tag != "empty"
                kind = "a shape" if shape else str(child.tag)
                if kind in seen:
                    self._say(
                        "left-out", f"repeated <{child.tag}>s of <{holder.tag}>", name, "the first counts"
                    )
                elif shape or kind in SINGLE:
                    seen.add(kind)

    def _scene(self) -> DescribedScene:
        """What stands around the robot: the static models of its world, and the world's time step."""
        scene, world = DescribedScene(), self.robot.outer
        if world is None or world.element.tag != "world":
            return scene
        scene.dt = number(world.element, "physics/max_step_size", 0.0) or None
        for other in (inner for each in world.models for inner in each.all()):
            if not other.static or other in list(self.robot.all()):
                continue
            for link in other.element.iterfind("link"):
                at = other.in_world() @ other.place(link.get("name", ""))
                for element in link.iterfind("collision"):
                    self._add_ground(scene, other, element, at @ placement(element.find("pose")))
        return scene

    def _add_ground(self, scene: DescribedScene, model: _Model, element: Any, pose: Placement) -> None:
        plane = element.find("geometry/plane")
        if plane is not None:
            normal = np.array(_numbers(plane.find("normal"), 3) or [0.0, 0.0, 1.0])
            turn = frame_along(np.zeros(3), normal)
            scene.grounds.append(DescribedGround("plane", pose @ turn, _friction(element), name=model.name))
            return
        for shape, _ in self._shape(model, element, Placement(), model.name):
            scene.grounds.append(DescribedGround("solid", pose, _friction(element), shape))

    # ---- links -----------------------------------------------------------------------------------

    def _body(self, model: _Model, link: Any, at: Placement) -> DescribedBody:
        name = link.get("name", "")
        body_name = model.prefix + own_name(link)
        where = f"link {body_name!r}"
        self._tell(link, body_name)
        self._tell_repeated(link, body_name)
        here = model.place(name)
        body = DescribedBody(body_name, at @ here)

        def pose_in_link(element: Any) -> Placement:
            pose = element.find("pose")
            other = _relative_to(pose, model.version)
            return (here.inverse() @ model.place(other) if other else Placement()) @ placement(pose)

        for tag in ("visual", "collision"):
            shapes = []
            for element in link.iterfind(tag):
                self._tell(element, body_name)
                shapes += self._shape(model, element, pose_in_link(element), body_name)
            setattr(body, f"{tag}s", tuple(shape for shape, _ in shapes))
            if tag == "collision":
                solids = shapes
        inertial = link.find("inertial")
        if inertial is not None:
            self._tell(inertial, body_name)
        if inertial is not None and inertial.get("auto", "").lower() in ("1", "true"):
            density = number(inertial, "density", WATER)
            body.mass, body.com, body.inertia = self._of_solids(where, link, density, solids)
        else:
            said = inertial_of(inertial)
            frame = pose_in_link(inertial) if inertial is not None else Placement()
            body.mass, body.com, body.inertia = said.mass, frame.position, said.matrix()
            if not np.array_equal(frame.rotation, np.eye(3)):
                body.inertia = frame.rotation @ body.inertia @ frame.rotation.T
        if (link.findtext("gravity") or "1").strip().lower() in ("0", "false"):
            body.gravity = 0.0
        return body

    def _shape(
        self, model: _Model, element: Any, pose: Placement, link: str
    ) -> list[tuple[DescribedShape, float | None]]:
        """The shape of a <visual> or <collision> with its density; [] for one that a robot cannot have."""
        geometry = element.find("geometry")
        kinds = [] if geometry is None else [child for child in geometry if child.tag != "empty"]
        if not kinds:
            return []
        kind, size = kinds[0], _size(kinds[0])
        tag, file, path, points, faces = str(kind.tag), "", None, None, None
        if tag == "ellipsoid" and len(set(size)) == 1:
            tag, size = "sphere", size[:1]
        if tag == "mesh":
            file = (kind.findtext("uri") or "").strip()
            path = model.finder(file).path
            submesh = kind.findtext("submesh/name")
            if submesh:
                self._say("rewritten", "<submesh>es", f"{link}/{submesh.strip()}", "the whole mesh is taken")
        elif tag in MESHED:
            points, faces = ellipsoid_mesh(size) if tag == "ellipsoid" else cone_mesh(*size)
            text = f"a mesh of {len(faces)} triangles inside it"
            self._say("rewritten", f"{element.tag}s with <{tag}>", f"{link}/{element.get('name', '')}", text)
            tag, size = "mesh", (1.0, 1.0, 1.0)
        elif tag not in ("box", "sphere", "cylinder", "capsule"):
            acts = element.tag == "collision"
            self._say(
                "left-out" if acts else "ignored",
                f"{element.tag}s with <{tag}>",
                f"{link}/{element.get('name', '')}",
                "a robot's shapes are boxes, spheres, cylinders, capsules and meshes",
            )
            return []
        rgba, texture = _looks(element)
        shape = DescribedShape(
            tag,
            size,
            pose,
            file,
            int(element.sourceline or 0),
            path,
            rgba,
            texture,
            model.finder(texture).path if texture else None,
            element.get("name", ""),
            points,
            faces,
            _friction(element),
        )
        density = _numbers(element.find("density"), 1)
        return [(shape, density[0] if density else None)]

    def _of_solids(
        self, where: str, link: Any, density: float, shapes: list[tuple[DescribedShape, float | None]]
    ) -> tuple[float, np.ndarray, np.ndarray]:
        """Mass, centre and inertia of a link that asks for those of its collision shapes."""
        parts = []
        for shape, own in shapes:
            found = solid_of(shape)
            if found is None:
                self._say("left-out", "meshes", shape.file, "they have no volume that gives an inertia")
                continue
            volume, center, about = found
            rho = density if own is None else own
            R = shape.pose.rotation
            parts.append((rho * volume, R @ center + shape.pose.position, rho * R @ about @ R.T))
        mass = sum(m for m, _, _ in parts)
        if not mass > 0.0:
            raise RobokitError(
                f"{self.file}: {where} (line {link.sourceline}): its inertia is to be that of its collision "
                "shapes, and they have no volume; give <mass> and <inertia>"
            )
        com = sum((m * c for m, c, _ in parts), np.zeros(3)) / mass
        return mass, com, inertia_about(com, parts)

    # ---- joints ----------------------------------------------------------------------------------

    def _tree(self, bodies: dict[str, DescribedBody]) -> tuple[list[DescribedJoint], list[DescribedLoop]]:
        """The joints from the world outwards, and those that close loops."""
        found, gearboxes = [], []
        world = self.robot.outer
        scopes = [*self.robot.all(), *([world] if world is not None else [])]
        for model in scopes:
            for element in model.element.iterfind("joint"):
                if element.get("type") == "gearbox":
                    gearboxes.append((model, element))
                    continue
                joint = self._joint(model, element, bodies)
                if joint is not None:
                    found.append(joint)
        if self.robot.static:
            for joint in found:
                if joint.moves:
                    self._say("rewritten", "joints", joint.name, "they are held: the model is static")
            return [DescribedJoint("", "fixed", WORLD, name) for name in bodies if name != WORLD], []
        self._mesh_gears(gearboxes, found)
        closing = closing_joints([(joint.parent, joint.child) for joint in found])
        tree = [joint for k, joint in enumerate(found) if k not in closing]
        loops = [self._cross(found[k], tree, bodies) or self._loop(found[k], bodies) for k in closing]
        text = "two revolute joints, NAME and NAME_2, with a link without mass between them, NAME_between"
        for name, kind in self.crosses.items():
            self._say("rewritten", f"{kind} joints", name.removesuffix("_2"), text)
        tree += free_joints(bodies, tree)
        outwards = joints_outwards(tree)
        for before, after in zip(tree, outwards, strict=True):
            if before is not after and before.kind == "spherical":
                self._say(
                    "rewritten",
                    "ball joints",
                    before.name,
                    "they lead from child to parent: their coordinates are those of the inverse rotation",
                )
        return outwards, loops

    def _joint(self, model: _Model, element: Any, bodies: dict[str, DescribedBody]) -> DescribedJoint | None:
        name, kind = element.get("name", ""), KINDS.get(element.get("type", ""))
        own = model.prefix + own_name(element)
        where = f"joint {own!r}"
        ends = [(element.findtext(tag) or "").strip() for tag in ("parent", "child")]
        if model.element.tag == "world" and not all(self._known(model, end) for end in ends):
            return None  # joints of other models
        if not all(ends):
            raise RobokitError(
                f"{self.file}: {where} (line {element.sourceline}): needs <parent> and <child>"
            )
        if kind is None:
            raise RobokitError(
                f"{self.file}: {where} (line {element.sourceline}): its type is "
                f"{element.get('type')!r}; SDF has {', '.join((*KINDS, 'universal', 'revolute2', 'gearbox'))}"
            )
        self._tell(element, where)
        self._tell_repeated(element, where)
        parent, child = (model.body(end) for end in ends)
        at = model.in_world() @ model.place(name)
        if parent == child:
            raise RobokitError(f"{self.file}: {where} connects {parent!r} with itself")
        joint = DescribedJoint(
            own, kind, parent, child, anchor=at.position, effort=math.inf, velocity=math.inf
        )
        joint.damping = joint.friction = joint.stiffness = joint.armature = 0.0
        if element.get("split"):
            self.crosses[own] = element.get("split")
        axis = element.find("axis")
        if axis is not None:
            self._tell(axis, where)
            self._read_axis(model, joint, axis, at, name)
        if kind in ("revolute", "prismatic", "continuous", "helical") and axis is None:
            raise RobokitError(f"{self.file}: {where} (line {element.sourceline}): needs an <axis>")
        # Inertia of the rotor as the joint feels it, an extension of Drake's.
        said = {
            re.sub(r"^.*[:}]", "", str(child.tag)): child for child in element if "drake" in str(child.tag)
        }
        inertia, ratio = (_numbers(said.get(name), 1) for name in ("rotor_inertia", "gear_ratio"))
        joint.armature = inertia[0] * (ratio[0] if ratio else 1.0) ** 2 if inertia else 0.0
        if not joint.laws:
            own_laws = (each for each in element if re.search(r"drake.*[:}]mimic$", str(each.tag)))
            joint.laws = tuple(self._law_of_drake(model, each) for each in own_laws)
        if kind == "helical":
            joint.pitch = _thread(element) / (2.0 * math.pi)
        if kind not in ("revolute", "prismatic", "helical"):
            limited = joint.lower != -math.inf or joint.upper != math.inf
            if limited and kind == "spherical":
                self._say("left-out", "limits of ball joints", own, "a spherical joint has none")
            joint.lower, joint.upper = -math.inf, math.inf
        return joint

    def _known(self, model: _Model, name: str) -> bool:
        """Whether a name of the world's is in the robot."""
        return (
            name == WORLD
            or name.partition("::")[0] == self.robot.name
            or (model.has(name) and model.body(name) == WORLD)
        )

    def _read_axis(self, model: _Model, joint: DescribedJoint, axis: Any, at: Placement, name: str) -> None:
        """Direction, limits, passive forces and mimic laws of an <axis>."""
        where = f"joint {joint.name!r}"
        xyz = axis.find("xyz")
        direction = np.array(_numbers(xyz, 3) or [0.0, 0.0, 1.0])
        frame = "" if xyz is None else xyz.get("expressed_in", "")
        of_model = (axis.findtext("use_parent_model_frame") or "").strip().lower()
        if model.version < (1, 7) and (of_model in ("1", "true") or model.version < (1, 5)):
            frame = MODEL
        turn = (model.in_world() @ model.place(frame)) if frame else at
        length = float(np.linalg.norm(direction))
        if joint.kind in ("revolute", "prismatic", "continuous", "helical"):
            if not length > 0.0:
                raise RobokitError(f"{self.file}: {where} (line {axis.sourceline}): <xyz> is no direction")
            joint.axis = turn.rotation @ (direction / length)
        lower, upper = (
            number(axis, f"limit/{end}", x) for end, x in (("lower", -math.inf), ("upper", math.inf))
        )
        joint.lower = -math.inf if lower <= -UNLIMITED else lower
        joint.upper = math.inf if upper >= UNLIMITED else upper
        effort, velocity = (number(axis, f"limit/{end}", -1.0) for end in ("effort", "velocity"))
        joint.effort = math.inf if effort < 0.0 or effort >= UNLIMITED else effort
        joint.velocity = math.inf if velocity < 0.0 or velocity >= UNLIMITED else velocity
        joint.damping = number(axis, "dynamics/damping", 0.0)
        joint.friction = number(axis, "dynamics/friction", 0.0)
        joint.stiffness = number(axis, "dynamics/spring_stiffness", 0.0)
        joint.rest = number(axis, "dynamics/spring_reference", 0.0)
        joint.laws = tuple(self._law(model, mimic) for mimic in axis.iterfind("mimic"))

    def _law(self, model: _Model, mimic: Any) -> Law:
        leader = mimic.get("joint", "").strip()
        named = model.element.find(f"joint[@name='{leader}']") if "'" not in leader else None
        leader = leader if named is None else own_name(named)
        if mimic.get("axis", "axis") == "axis2":
            leader += "_2"
        k = number(mimic, "multiplier", 1.0)
        return Law(
            model.prefix + leader, k, number(mimic, "offset", 0.0) - k * number(mimic, "reference", 0.0)
        )

    def _law_of_drake(self, model: _Model, mimic: Any) -> Law:
        """Drake's own mimic law, of joints that are not in other models."""
        named = {each.get("name"): each for each in model.element.iterfind("joint")}
        leader = named.get(mimic.get("joint"))
        try:
            k, offset = float(mimic.get("multiplier", "1")), float(mimic.get("offset", "0"))
        except ValueError:
            raise RobokitError(f"<drake:mimic> (line {mimic.sourceline}): expected numbers") from None
        name = mimic.get("joint", "") if leader is None else own_name(leader)
        return Law(model.prefix + name, k, offset)

    def _cross(
        self, second: DescribedJoint, tree: list[DescribedJoint], bodies: dict[str, DescribedBody]
    ) -> DescribedLoop | None:
        """The loop joint of a universal joint whose second part closes a loop; None of any other joint.

        Its first part and the link between the two go.
        """
        first = next((j for j in tree if j.child == second.parent), None)
        if first is None or self.crosses.get(second.name) != "universal":
            return None
        if abs(first.axis @ second.axis) > PERPENDICULAR:
            return None
        tree.remove(first)
        del bodies[first.child], self.crosses[second.name]
        self._say_lost(first)
        loop = self._loop(replace(second, name=first.name, parent=first.parent), bodies)
        at = bodies[first.parent].pose.inverse() @ frame_along(first.anchor, first.axis)
        return replace(loop, kind="universal", predecessor_frame=at)

    def _say_lost(self, joint: DescribedJoint) -> None:
        there = {
            "limits": math.isfinite(joint.lower or math.inf) or math.isfinite(joint.upper or math.inf),
            "effort": math.isfinite(joint.effort or math.inf),
            "damping": joint.damping,
            "spring": joint.stiffness,
            "friction": joint.friction,
            "mimic": joint.laws,
        }
        lost = ", ".join(what for what, is_there in there.items() if is_there)
        if lost:
            self._say("left-out", f"{lost} of joints that close loops", joint.name, "these have none")

    def _loop(self, joint: DescribedJoint, bodies: dict[str, DescribedBody]) -> DescribedLoop:
        self._say("rewritten", "joints", joint.name, "they close loops, and are loop joints of the robot")
        self._say_lost(joint)
        frame = Placement(position=joint.anchor)
        if joint.axis.any():
            frame = frame_along(joint.anchor, joint.axis)
        ends = [bodies[name].pose.inverse() @ frame for name in (joint.parent, joint.child)]
        kind = "revolute" if joint.kind == "continuous" else joint.kind
        return DescribedLoop(joint.name, kind, joint.parent, joint.child, ends[0], ends[1])

    def _mesh_gears(self, gearboxes: list[tuple[_Model, Any]], joints: list[DescribedJoint]) -> None:
        """A gearbox holds angle 2 = -ratio angle 1, each from its reference body: a mimic law."""
        for model, element in gearboxes:
            own = model.prefix + element.get("name", "")
            names = [
                (element.findtext(tag) or "").strip() for tag in ("gearbox_reference_body", "parent", "child")
            ]
            axes = [element.find("axis"), element.find("axis2")]
            if not all(names) or None in axes:
                self._say("left-out", "gearboxes", own, "they name no reference body, or lack an axis")
                continue
            reference, *ends = (model.body(name) for name in names)
            at = model.in_world() @ model.place(element.get("name", ""))
            pair = []
            for end, axis in zip(ends, axes, strict=True):
                said = DescribedJoint("", "revolute", "", "")
                self._read_axis(model, said, axis, at, "")
                hinge = next(
                    (j for j in joints if {j.parent, j.child} == {reference, end} and j.axis.any()), None
                )
                if hinge is not None:
                    sign = 1.0 if hinge.child == end else -1.0
                    pair.append((hinge, math.copysign(sign, sign * float(hinge.axis @ said.axis))))
            if len(pair) != 2:
                self._say("left-out", "gearboxes", own, "a body of theirs has no hinge on the reference body")
                continue
            (first, s1), (second, s2) = pair
            ratio = number(element, "gearbox_ratio", 1.0)
            second.laws = (*(second.laws or ()), Law(first.name, -ratio * s1 * s2, 0.0))
            self._say("rewritten", "gearboxes", own, f"joint {second.name!r} mimics joint {first.name!r}")


# ---- Trees in graphs of joints -------------------------------------------------------------------


def closing_joints(ends: Sequence[tuple[str, str]]) -> list[int]:
    """Which of joints close loops, by the names of their parents and children.

    A second joint to one child is taken last, so that as few joints as can be lead from child to parent.
    """
    group: dict[str, set[str]] = {}
    closing = []
    first = list({child: k for k, (_, child) in reversed(list(enumerate(ends)))}.values())
    for k in (*sorted(first), *sorted(set(range(len(ends))) - set(first))):
        one, other = (group.setdefault(name, {name}) for name in ends[k])
        if one is other:
            closing.append(k)
            continue
        one |= other
        for name in other:
            group[name] = one
    return sorted(closing)


def free_joints(bodies: dict[str, DescribedBody], tree: list[DescribedJoint]) -> list[DescribedJoint]:
    """A floating joint from the world for each tree that hangs on nothing."""
    near: dict[str, list[str]] = {name: [] for name in bodies}
    for joint in tree:
        near[joint.parent].append(joint.child)
        near[joint.child].append(joint.parent)
    children = {joint.child for joint in tree}
    reached: set[str] = set()

    def reach(name: str) -> list[str]:
        todo, those = [name], []
        while todo:
            each = todo.pop()
            if each not in reached:
                reached.add(each)
                those.append(each)
                todo += near[each]
        return those

    reach(WORLD)
    found = []
    for name in bodies:
        those = set(reach(name))
        if those:
            root = next((n for n in bodies if n in those and n not in children), name)
            name = f"{root}_free"
            found.append(DescribedJoint(name, "floating", WORLD, root, lower=None, upper=None, laws=None))
    return found


# ---- Numbers, poses, shapes and looks of elements ------------------------------------------------


def inertial_of(inertial: Any) -> InertialDescription:
    """Mass and inertia as written; SDF's defaults are 1 kg and 1 kg m^2."""
    entries = (("ixx", 1.0), ("ixy", 0.0), ("ixz", 0.0), ("iyy", 1.0), ("iyz", 0.0), ("izz", 1.0))
    if inertial is None:
        return InertialDescription(1.0, (1.0, 0.0, 0.0, 1.0, 0.0, 1.0))
    xx, xy, xz, yy, yz, zz = (number(inertial, f"inertia/{name}", absent) for name, absent in entries)
    return InertialDescription(number(inertial, "mass", 1.0), (xx, xy, xz, yy, yz, zz))


def free_coordinates(pose: Placement) -> tuple[float, ...]:
    """Quaternion wxyz and position of a free body."""
    upright = np.array_equal(pose.rotation, np.eye(3))
    quat = (1.0, 0.0, 0.0, 0.0) if upright else tuple(rotation_to_quat_wxyz(pose.rotation.tolist()))
    return (*quat, *map(float, pose.position))


def own_name(element: Any) -> str:
    """The name of a link or joint in the robot, without the models that it is in."""
    return str(element.get(NAME, element.get("name", "")))


def origin_of(pose: Any) -> Origin:
    """A <pose>: position, then roll, pitch and yaw or a quaternion xyzw."""
    x, y, z, *turn = _numbers(pose, 6, 7) or [0.0] * 6
    if len(turn) == 4:
        return Origin(
            (x, y, z), quat_xyzw=(turn[0], turn[1], turn[2], turn[3]) if any(turn) else (0, 0, 0, 1)
        )
    unit = math.pi / 180.0 if pose is not None and pose.get("degrees", "0") in ("1", "true") else 1.0
    return Origin((x, y, z), (unit * turn[0], unit * turn[1], unit * turn[2]))


def placement(pose: Any) -> Placement:
    """A <pose>, or where there is none, no displacement."""
    return Placement() if pose is None else origin_of(pose).placement()


def _numbers(element: Any, *counts: int) -> list[float]:
    """The numbers in an element, [] where there is none or nothing in it, as many as one of ``counts``, if
    given.

    Raises RobokitError for a word, or another count.
    """
    words = [] if element is None else (element.text or "").split()
    try:
        found = [float(x) for x in words]
    except ValueError:
        found = []
    if words and (not found or (counts and len(found) not in counts)):
        wanted = f"{' or '.join(map(str, counts))} numbers" if counts and counts != (1,) else "a number"
        raise RobokitError(
            f"<{element.tag}> (line {element.sourceline}): expected {wanted}, got {' '.join(words)!r}"
        )
    return found


def number(element: Any, path: str, absent: float) -> float:
    """The number of an element below an element."""
    found = _numbers(element.find(path), 1)
    return found[0] if found else absent


def _thread(joint: Any) -> float:
    """Advance of a screw per turn [m]; older files give the thread in radians per metre, left handed."""
    if joint.findtext("screw_thread_pitch"):
        return number(joint, "screw_thread_pitch", 0.0)
    return -2.0 * math.pi / (number(joint, "thread_pitch", 1.0) or 1.0)


def _size(kind: Any) -> tuple[float, ...]:
    if kind.tag == "box":
        return tuple(_numbers(kind.find("size"), 3) or [1.0] * 3)
    if kind.tag == "sphere":
        return (number(kind, "radius", 1.0),)
    if kind.tag in ("cylinder", "capsule", "cone"):
        absent = (0.5, 1.0) if kind.tag == "capsule" else (1.0, 1.0)
        return number(kind, "radius", absent[0]), number(kind, "length", absent[1])
    if kind.tag == "ellipsoid":
        return tuple(_numbers(kind.find("radii"), 3) or [1.0] * 3)
    if kind.tag == "mesh":
        return tuple(_numbers(kind.find("scale"), 3) or [1.0] * 3)
    return ()


def _friction(collision: Any) -> float | None:
    """The first coefficient of friction of a <collision>, None where it says none."""
    found = _numbers(collision.find("surface/friction/ode/mu"), 1)
    return found[0] if found else None


def _looks(element: Any) -> tuple[RGBA | None, str]:
    """Colour and texture of a <visual>."""
    material = element.find("material")
    if material is None:
        return None, ""
    numbers = _numbers(material.find("diffuse"), 3, 4) or _numbers(material.find("ambient"), 3, 4)
    script = (material.findtext("script/name") or "").strip().removeprefix("Gazebo/")
    rgba: RGBA | None = COLOURS.get(script)
    if numbers:
        r, g, b, a = (*numbers, 1.0)[:4]
        rgba = (r, g, b, a)
    see_through = number(element, "transparency", 0.0)
    if rgba is not None and see_through:
        rgba = (*rgba[:3], rgba[3] * (1.0 - see_through))
    texture = material.findtext("pbr/metal/albedo_map") or material.findtext("pbr/specular/albedo_map") or ""
    return rgba, texture.strip()
