"""``robokit.convert``: a robot of one format written in another, its mesh files with it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from robokit.arguments import one_of
from robokit.dataclass_tools import frozen
from robokit.errors import ModelError, RobokitError, WriteError, warn, warnings_into
from robokit.files import output_path, refuse_input, writing
from robokit.formats.description import is_kept
from robokit.model.geometry import RGBA, Capsule, Mesh, Shape
from robokit.model.robot import Robot, children, outward

__all__ = ["Conversion", "convert"]

PathLike = str | os.PathLike[str]

FORMATS = {".urdf": "urdf", ".xml": "mjcf", ".mjcf": "mjcf", ".sdf": "sdf", ".world": "sdf", ".model": "sdf"}
"""Ending of a file that is written -> its format."""

TARGETS = ("urdf", "mjcf", "sdf")

MESHES = ("keep", "absolute", "relative", "copy", "none")  # ways to refer to mesh files in the new file

STANDARD_GRAVITY = (0.0, 0.0, -9.81)


@frozen
class Conversion:
    """What was written.

    Attributes:
        robot: as it was read.
        path: the file.
        format: "urdf", "mjcf" or "sdf".
        said: sentences that say what was left out or changed.
        copied: mesh and texture files that were copied or written beside the file.
        verdict: the referee's verdict, with ``judge=True``; otherwise None.
    """

    robot: Robot
    path: Path
    format: str
    said: tuple[str, ...] = ()
    copied: tuple[Path, ...] = ()
    verdict: Any = None


def convert(
    source: Robot | PathLike,
    path: PathLike,
    to: str | None = None,
    base: str | None = None,
    meshes: str = "keep",
    visuals: bool = True,
    judge: bool = False,
    **reading: Any,
) -> Conversion:
    """Write a robot in another format: URDF, MJCF or SDF.

    If the format cannot express something that does not affect the motion, there is a warning. If the robot
    would move differently, nothing is written and an error says why.

    Args:
        source: a robot, or what :func:`robokit.load` takes: a URDF, xacro, MJCF, SDF or USD file, or a name.
        path: the file to write; an existing one is replaced.
        to: "urdf", "mjcf" or "sdf"; by default according to the extension of ``path``.
        base: "fixed" or "floating"; by default the base of the source, and fixed for a URDF.
        meshes: how to refer to mesh files: "keep" their names if they are valid in the new file, otherwise
            absolute paths (in a URDF ``package://`` stays); "absolute"; "relative" to the new file; "copy"
            the files into the folder NAME_meshes beside it; "none" to leave out meshes. Meshes that MuJoCo
            cannot read (COLLADA, glTF, text STL, more than 200,000 faces) are written as STL into that
            folder.
        visuals: write visual shapes.
        judge: whether the referee compares the written file with the robot.
        reading: further arguments of :func:`robokit.load`.

    Returns:
        the conversion: ``.path``, ``.robot``, ``.said``, ``.copied``, ``.verdict``.

    Raises:
        ModelError: the format cannot express the robot; the message lists all reasons.
        RobokitError: the source cannot be read, or is the file itself; or the extension of ``path`` does not
            determine a format.
        WriteError: the file cannot be written.

    Warns:
        UserWarning: one for each kind of thing that is left out or has another form.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     done = rk.convert("arm", f"{folder}/arm.sdf")
        ...     again = rk.load(done.path)
        >>> np.array_equal(again.neutral(), done.robot.neutral())
        True
    """
    ending = {"urdf": ".urdf", "sdf": ".sdf", "mjcf": ".xml"}.get(str(to), "")
    there = isinstance(path, str | os.PathLike) and os.path.exists(path)  # such as /dev/stdout
    file = output_path("path", path, "" if there else ending)
    target = format_to_write(file, to)
    one_of("treatment of meshes", meshes, MESHES)
    robot = source if isinstance(source, Robot) else _load(source, base, reading)
    if isinstance(source, Robot) and base is not None and base != robot.base:
        raise RobokitError(f"base={base!r} is for a file; this robot has a {robot.base} base")
    refuse_input(file, robot)
    told: list[str] = []
    with warnings_into(told):
        if target == "mjcf":
            held = ("spherical", "revolute", "continuous", "fixed", "floating", "distance")
            lost = [loop for loop in robot.loop_joints if loop.kind not in held]
            if lost:
                shown = ", ".join(f"{loop.name!r} ({loop.kind})" for loop in lost[:5])
                raise ModelError(
                    f"robot {robot.name!r} cannot be written as MJCF: it has no constraint for the loop "
                    f"joints {shown}, and without them the robot would move differently"
                )
        files = _Files(file, target, meshes)
        written = files.robot(robot)
        with files.removed_on_error():
            _write(written, file, target, visuals)
    said = tuple(dict.fromkeys([*told, *_beside(robot, target), *files.said]))
    for each in said:
        warn(each, UserWarning)
    verdict = judged(robot, file) if judge else None
    return Conversion(robot, file, target, said, tuple(files.made), verdict)


def _load(source: PathLike, base: str | None, reading: dict[str, Any]) -> Robot:
    from robokit.formats.load import load

    return load(source, base=base, **{"mimic": "independent", **reading})


def format_to_write(file: Path, to: str | None) -> str:
    """The format of a file that is going to be written; RobokitError without one, UnknownName for no such
    format.
    """
    if to is not None:
        return one_of("format to write", to, TARGETS)
    if file.suffix.lower() not in FORMATS:
        raise RobokitError(
            f"{file}: its ending says no format that robokit writes; end it in .urdf, .xml (MJCF) or .sdf, "
            "or give to='urdf', 'mjcf' or 'sdf' (--to)"
        )
    return FORMATS[file.suffix.lower()]


# ---- What a format cannot say --------------------------------------------------------------------


def _beside(robot: Robot, target: str) -> Iterator[str]:
    """What none of the writers writes of a robot, a sentence for each."""
    name = f"{target.upper()} of robot {robot.name!r}"
    if target == "urdf" and tuple(robot.gravity) != STANDARD_GRAVITY:
        g = ", ".join(f"{x:g}" for x in robot.gravity)
        yield f"{name}: gravity ({g}) is left out; URDF has no gravity"
    if target == "urdf" and robot.base == "floating" and outward(robot, children(robot))[0] == "world":
        yield f"{name}: programs take a root link called 'world' for the fixed world; this one is free"
    every = [shape for link in robot.links for shape in (*link.visuals, *link.collisions)]
    if target == "urdf" and any(isinstance(shape.geometry, Capsule) for shape in every):
        yield f"{name}: capsules, which URDF has from 1.1 on, and readers of 1.0 leave out"
    if target == "urdf" and robot.loop_joints:
        shown = ", ".join(repr(loop.name) for loop in robot.loop_joints[:5])
        yield f"{name}: loop joints are <loop_joint>s, which robokit reads and other programs do not: {shown}"
    scene = robot.scene
    if scene is not None:
        parts = {
            "actuators": len(scene.actuators),
            "springs": len(scene.springs),
            "keyframes": len(scene.configurations.keys() - {"initial"}),
            "pairs that never touch": len(scene.apart),
            "ground": int(scene.ground is not None),
        }
        there = ", ".join(f"{what} ({n})" for what, n in parts.items() if n)
        if there:
            yield f"{name}: left out, as only the robot is written: {there}"
    if target == "mjcf":
        shapes = (shape for link in robot.links for shape in link.visuals)
        covered = sum(shape.texture is not None or shape.texture_filename is not None for shape in shapes)
        if covered:
            yield f"{name}: left out: textures of visual shapes ({covered})"
        fast = sum(bool(np.isfinite(joint.velocity)) for joint in robot.body_joints)
        if fast:
            yield f"{name}: left out, as MJCF has none: velocity limits ({fast})"


def _write(robot: Robot, file: Path, target: str, visuals: bool) -> None:
    from robokit.mjcf import to_mjcf
    from robokit.sdf import to_sdf
    from robokit.urdf.write import dump

    if target == "mjcf":
        to_mjcf(robot, file, visuals=visuals, links=True)
    elif target == "sdf":
        to_sdf(robot, file, visuals=visuals)
    else:
        bare = tuple(replace(link, visuals=()) for link in robot.links)
        dump(robot if visuals else replace(robot, links=bare), file)


# ---- Mesh and texture files ----------------------------------------------------------------------


class _Files:
    """The mesh and texture files of a robot as the new file names them.

    ``made`` are files that were copied or written, ``said`` what became of files.
    """

    def __init__(self, file: Path, target: str, how: str) -> None:
        self.file, self.target, self.how = file.absolute(), target, how
        self.folder = self.file.parent / f"{self.file.stem}_meshes"
        self.made: list[Path] = []
        self.said: list[str] = []
        self._there: dict[Path, Path] = {}
        self._pieces: dict[tuple[Path, str], list[tuple[Path, RGBA | None]]] = {}
        self._taken: set[str] = set()
        self._new_folder = not self.folder.exists()

    def robot(self, robot: Robot) -> Robot:
        """The robot with the names of files that are written."""
        missing: list[str] = []
        links = []
        for link in robot.links:
            shapes = [
                tuple(new for shape in those for new in self._shapes(shape, what, missing))
                for what, those in (("visual", link.visuals), ("collision", link.collisions))
            ]
            links.append(replace(link, visuals=shapes[0], collisions=shapes[1]))
        if missing:
            shown = ", ".join(map(repr, list(dict.fromkeys(missing))[:5]))
            n = len(set(missing))
            self.said.append(f"{n} mesh file{'s' * (n > 1)} not found: {shown}; pass package_dirs")
        if self._pieces:
            n = len({path for path, _ in self._pieces})
            files = f"{n} mesh file{'s' * (n > 1)}"
            self.said.append(f"{files} that MuJoCo does not read, now as STL in {self.folder}")
        return replace(robot, links=tuple(links))

    def _shapes(self, shape: Shape, what: str, missing: list[str]) -> list[Shape]:
        """The shapes that stand for a shape: none, itself, or pieces of its mesh."""
        from robokit.mjcf import unreadable_mesh

        texture = shape.texture
        if texture is not None and self.how != "keep" and self.target != "mjcf":
            shape = replace(shape, texture_filename=self._name(Path(texture)))
        mesh = shape.geometry
        if not isinstance(mesh, Mesh):
            return [shape]
        if self.how == "none":
            return []
        if mesh.path is None:
            missing.append(mesh.filename)
            return [shape]
        if self.target == "mjcf" and unreadable_mesh(mesh.path):
            return self._as_stl(shape, mesh, what)
        if self.how == "keep" and not is_kept(mesh.path):
            return [shape]
        named, path = self._name(mesh.path), self._there.get(mesh.path.resolve(), mesh.path)
        return [replace(shape, geometry=replace(mesh, filename=named, path=path))]

    def _name(self, path: Path) -> str:
        """The name of a file in the new file; it is copied where that is asked for."""
        path = path.resolve()
        # A mesh that robokit has made of a stage or model lies in its cache, which may be emptied.
        how = "copy" if is_kept(path) else self.how
        if how == "absolute":
            return str(path)
        if how == "relative":
            return Path(os.path.relpath(path, self.file.parent)).as_posix()
        if path not in self._there:
            self._there[path] = self._copied(path)
        return self._there[path].relative_to(self.file.parent).as_posix()

    def _copied(self, path: Path) -> Path:
        """The copy of a file, with the files that it names."""
        from robokit.meshes.untrusted import files_named

        new = self._new(path.stem, path.suffix)
        beside: dict[str, Path] = {}
        if path.suffix.lower() in (".obj", ".gltf", ".dae"):
            try:
                beside = files_named(path)
            except (OSError, ValueError):
                beside = {}
        for name, source in {"": path, **beside}.items():
            target = Path(os.path.normpath(new.parent / name)) if name else new
            if target.is_relative_to(self.folder):  # a file may name others outside of it
                self._make(target, source.read_bytes())
        return new

    def _new(self, stem: str, suffix: str) -> Path:
        free, k = stem, 1
        while f"{free}{suffix}".lower() in self._taken:
            k += 1
            free = f"{stem}_{k}"
        self._taken.add(f"{free}{suffix}".lower())
        return self.folder / f"{free}{suffix}"

    def _make(self, target: Path, content: bytes) -> None:
        with writing(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        self.made.append(target)

    def _as_stl(self, shape: Shape, mesh: Mesh, what: str) -> list[Shape]:
        """A shape for each colour of a mesh that MuJoCo does not read, each with a binary STL.

        Of a collision mesh MuJoCo takes the convex hull: it stays one.
        """
        assert mesh.path is not None
        key = mesh.path.resolve(), what
        if key not in self._pieces:
            self._pieces[key] = self._stl_pieces(*key)
        out = []
        for file, rgba in self._pieces[key]:
            named = file.relative_to(self.file.parent).as_posix()
            colour = shape.rgba if shape.rgba is not None or what != "visual" else rgba
            out.append(replace(shape, geometry=replace(mesh, filename=named, path=file), rgba=colour))
        return out or [shape]

    def _stl_pieces(self, path: Path, what: str) -> list[tuple[Path, RGBA | None]]:
        from robokit.formats.description import stl_bytes
        from robokit.meshes.read_mesh import read_mesh
        from robokit.mjcf import STL_FACES

        by_colour: dict[RGBA | None, list[np.ndarray]] = {}
        try:
            for surface in read_mesh(path):
                rgba = surface.rgba if what == "visual" else None
                by_colour.setdefault(rgba, []).append(surface.vertices[surface.faces])
        except (OSError, ValueError) as problem:
            self.said.append(f"{path} cannot be read, and is no STL beside the file: {problem}")
            return []
        out: list[tuple[Path, RGBA | None]] = []
        for rgba, parts in by_colour.items():
            corners = np.concatenate(parts)
            for start in range(0, len(corners), STL_FACES):
                file = self._new(path.stem, ".stl")
                content = stl_bytes(corners[start : start + STL_FACES])
                self._make(file, content)
                out.append((file, rgba))
        return out

    @contextmanager
    def removed_on_error(self) -> Iterator[None]:
        """Takes the files away again if the robot cannot be written."""
        try:
            yield
        except (ModelError, WriteError):
            for file in self.made:
                file.unlink(missing_ok=True)
            if self._new_folder:
                shutil.rmtree(self.folder, ignore_errors=True)
            raise


# ---- The referee's verdict -----------------------------------------------------------------------


def judged(robot: Robot, file: PathLike, package_dirs: Sequence[PathLike] = ()) -> Any:
    """The referee's verdict over a file, beside a robot that counts as right.

    Raises MissingDependency without what reads it (MuJoCo, Drake), RobokitError if that cannot.
    """
    from robokit.formats.load import read_description
    from robokit.formats.urdf import describe_urdf
    from robokit.parity.referee import compare_descriptions
    from robokit.urdf.write import Losses, describe

    side = describe_urdf(describe(robot, Losses()))
    other = read_description(file, package_dirs=package_dirs)
    if other.gravity is not None:  # a format may have no place for it
        side.gravity = robot.gravity
    # A root called "world" is the world, and what hangs on it may float.
    if other.base == "floating" and any(
        joint.kind == "floating" and side.is_base(joint) for joint in side.joints
    ):
        side.base = "floating"
    said = side.base is not None and robot.base == "fixed"
    verdict = compare_descriptions(side, other, None if said else robot.base)
    verdict.a_format = "as robokit read it"
    return verdict
