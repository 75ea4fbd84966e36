"""A robot as a recipe stores it: its URDF text, and the numbers that Python and NumPy computed from it.

Sines of angles, hulls of meshes and standing configurations may differ in their last bits from one machine to
another. The placements of joints and links, inertias, shapes and starts are therefore stored as they were
computed where the recipe was made, and replace those of the robot that is built from the text.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import math
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from robokit.arguments import real_number
from robokit.collision.scene import robot_shapes
from robokit.collision.shapes import Core, PlacedCore, Polytope
from robokit.dataclass_tools import frozen
from robokit.errors import ModelError, RobokitError, ShapeError, shown
from robokit.meshes.untrusted import companion, files_named, read_file, wanted_path
from robokit.model.geometry import Mesh, Placement, Shape
from robokit.model.inertial_parameters import COUNT, inertias
from robokit.model.joints import JointModel
from robokit.model.robot import Robot, with_shapes
from robokit.serialize import array_from_json, array_to_json, from_json, layout, to_json
from robokit.sim.actuators import PD, Actuator, Keyframes, Torque, Velocity
from robokit.sim.distances import CollisionPairs, body_contacts, collision_pairs
from robokit.sim.ground import Ground
from robokit.sim.trajectory import joint_numbers, record
from robokit.spatial import Transform, Vector3
from robokit.spatial.vectors import Matrix3
from robokit.sweeps.parameters import link_share
from robokit.urdf.load import robot_of_text
from robokit.urdf.mesh_files import Resolver

WORDS = ("name", "base", "gravity", "mimic", "joint_names", "joint_kinds", "source", "urdf")
"""What is stored of a robot besides numbers, as robokit.sim.trajectory names it."""

NUMBERS = {"joints": 16, "links": 12, "parameters": COUNT, "starts_q": 0, "starts_v": 0}
"""The arrays that are stored of a robot, and how wide they are; 0 where it depends on the robot."""


@frozen(eq=False)
class RobotRecord:
    """A robot of a recipe."""

    about: dict[str, Any]  # words, for JSON
    # arrays by name: joints (N, 16), links (L, 12), parameters (N + 1, 10), starts_q (S, nq), starts_v (S,
    # nv)
    numbers: dict[str, np.ndarray]
    shapes: tuple[PlacedCore, ...] | None  # what of it can touch; None where nothing can
    # inertial parameters (10,) that a link adds to those of its body, for links that have a parameter of
    # their own
    shares: dict[str, np.ndarray]
    meshes: dict[str, str]  # SHA-256 of each mesh file, by the file's name in the text
    pairs: CollisionPairs | None = None  # bodies that are kept apart, or None
    actuators: tuple[Actuator, ...] = ()  # what drives its joints
    # hashes of the pictures and of the files that its meshes name
    looks: Looks = field(default_factory=lambda: Looks({}, {}))

    @classmethod
    def of(
        cls,
        robot: Robot,
        q: np.ndarray,
        v: np.ndarray,
        ground: Ground | None,
        links: Sequence[str] = (),
        apart: CollisionPairs | bool | None = None,
        actuators: Sequence[Actuator] = (),
    ) -> RobotRecord:
        """The record of a robot; ModelError where a URDF cannot say it.

        Args:
            q, v: the states to start from, (S, nq) and (S, nv).
            ground: what it falls on, or None.
            links: those with a mass of their own among the parameters.
            apart: whether its bodies are kept apart from each other, as self_collision in rk.simulate.
            actuators: what drives its joints, checked.
        """
        about, numbers = record(robot)
        if about["urdf"] is None:
            from robokit.urdf import dump

            dump(robot, own_types=True)  # raises an error that says what a URDF cannot express
            raise ModelError(f"robot {robot.name!r}: URDF cannot describe it, so a sweep cannot store it")
        if robot.samples is not None:
            raise ModelError(
                f"robot {robot.name!r} has {robot.samples} samples of inertias; a sweep draws its own: give "
                "the robot without them, and parameters such as mass=rk.Uniform(0.8, 1.2)"
            )
        found = {
            "joints": numbers["robot_joints"],
            "links": _link_numbers(robot),
            "parameters": np.array(robot.inertial_parameters),
            "starts_q": np.array(q, dtype=float),
            "starts_v": np.array(v, dtype=float),
        }
        error = (ground or Ground()).shape_error
        pairs = None
        if body_contacts(robot, apart, ground is not None).count:
            pairs = apart if isinstance(apart, CollisionPairs) else collision_pairs(robot)
        shapes = None if ground is None and pairs is None else robot_shapes(robot, error)
        shares = {link: link_share(robot, link) for link in links}
        words = {name: about[name] for name in WORDS}
        meshes: dict[str, str] = {}
        for shape in _shapes(robot):
            mesh = shape.geometry
            if isinstance(mesh, Mesh) and mesh.path is not None and mesh.filename not in meshes:
                meshes[mesh.filename] = _hash(Path(mesh.path))
        return cls(words, found, shapes, shares, _known(meshes), pairs, tuple(actuators), Looks.of(robot))

    @property
    def name(self) -> str:
        """The robot's name."""
        return str(self.about["name"])

    @property
    def starts(self) -> tuple[np.ndarray, np.ndarray]:
        """q and v of the states to start from, (S, nq) and (S, nv)."""
        return self.numbers["starts_q"], self.numbers["starts_v"]

    @cached_property
    def robot(self) -> Robot:
        """The robot, to the bit; meshes are not looked for.

        Raises ModelError if this version of robokit makes another robot of the text.
        """
        about, numbers = self.about, self.numbers
        try:
            robot = robot_of_text(about["urdf"], about["base"], about["mimic"])
        except RobokitError as error:
            raise ModelError(f"robot {self.name!r} of the recipe cannot be read: {error}") from error
        kinds = [joint.kind for joint in robot.joints]
        if list(robot.joint_names) != about["joint_names"] or kinds != about["joint_kinds"]:
            raise ModelError(
                f"robot {self.name!r}: this version of robokit finds other joints in the recipe's URDF than "
                "the one that made the recipe; take that version"
            )
        robot = _with_numbers(robot, numbers).with_gravity(about["gravity"])
        q, v = self.starts
        if q.shape != (len(q), robot.nq) or v.shape != (len(q), robot.nv) or not len(q):
            raise ModelError(
                f"robot {self.name!r}: the recipe's starts have the shapes {q.shape} and {v.shape}, expected "
                f"(S, {robot.nq}) and (S, {robot.nv})"
            )
        return robot

    def with_meshes(self) -> Robot:
        """The same robot with its meshes, for pages: copies of those that are as they were."""
        return with_mesh_copies(self.robot, Path(self.about["source"]), self.meshes, self.looks)

    def to_json(self) -> dict[str, Any]:
        """All of it, for JSON."""
        found = {
            **self.about,
            "numbers": to_json(self.numbers),
            "shapes": None if self.shapes is None else [*map(_placed_core_to_json, self.shapes)],
            "shares": to_json(self.shares),
            "meshes": self.meshes,
            "pairs": to_json(self.pairs),
        }
        if self.actuators:
            found["actuators"] = [actuator_to_json(one) for one in self.actuators]
        if self.looks.pictures or self.looks.named:
            found["looks"] = to_json(self.looks)
        return found

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> RobotRecord:
        """What :meth:`to_json` gave; raises LookupError, TypeError or ValueError for anything else."""
        about = {name: content[name] for name in WORDS}
        for word, value in about.items():
            if word == "gravity":
                good = len(value) == 3 and all(real_number("gravity", each) is not None for each in value)
            elif word in ("joint_names", "joint_kinds"):
                good = isinstance(value, list) and all(isinstance(each, str) for each in value)
            else:
                good = isinstance(value, str) or (word == "mimic" and value is None)
            if not good:
                raise TypeError(f"{word!r} of a robot is {shown(value)}")
        numbers = {name: array_from_json(content["numbers"][name]) for name in NUMBERS}
        n = len(numbers["joints"])
        for name, wide in NUMBERS.items():
            x = numbers[name]
            if x.ndim != 2 or wide not in (0, x.shape[1]) or not np.isfinite(x).all():
                raise ShapeError(f"numbers[{name!r}]: expected finite numbers in rows, got shape {x.shape}")
        if "points" in content:
            raise ModelError(
                f"robot {about['name']!r}: the recipe is of an older robokit, whose step was another: take "
                "the version that made it, or compute the sweep again"
            )
        shapes = None if content["shapes"] is None else shapes_from_json(content["shapes"], n)
        return cls(
            about,
            numbers,
            shapes,
            {link: _share(link, array_from_json(x)) for link, x in content["shares"].items()},
            from_json(dict[str, str], content["meshes"], "meshes"),
            _pairs_from_json(content.get("pairs")),
            tuple(actuator_from_json(one) for one in content.get("actuators", ())),
            from_json(Looks, content.get("looks", {"pictures": {}, "named": {}}), "looks"),
        )


def _pairs_from_json(content: Any) -> CollisionPairs | None:
    """Pairs that are kept apart, with each number that the rows follow from."""
    pairs = from_json(CollisionPairs | None, content, "pairs")
    if pairs is not None:
        _require(CollisionPairs, content)
        real_number("pairs.error", pairs.error, least=0.0)
    return pairs


def _require(kind: Any, content: Mapping[str, Any]) -> None:
    """Refuse an object without a field that has a default: another default would make other rows."""
    for each in fields(kind):
        content[each.name]


def _share(link: str, x: np.ndarray) -> np.ndarray:
    if x.shape != (COUNT,) or not np.isfinite(x).all():
        raise ShapeError(f"shares[{link!r}]: expected {COUNT} finite numbers, got shape {x.shape}")
    return x


def _link_numbers(robot: Robot) -> np.ndarray:
    """Placement of each link in its body, (L, 12): rotation by rows, position."""
    rows = [[*link.placement.rotation.ravel(), *link.placement.position] for link in robot.links]
    return np.array(rows, dtype=float)


def _with_numbers(robot: Robot, numbers: Mapping[str, np.ndarray]) -> Robot:
    """The robot with the recorded numbers where its own differ in a bit."""
    tree = robot.tree
    joints, links, parameters = (numbers[name] for name in ("joints", "links", "parameters"))
    if len(joints) != tree.n or len(links) != len(robot.links) or len(parameters) != tree.n + 1:
        raise ModelError(f"robot {robot.name!r}: the recipe's numbers are those of another robot")
    if not np.array_equal(joint_numbers(robot), joints):
        models = [tree.joint[0]]
        placements = [tree.XT[0]]
        for model, row in zip(tree.joint[1:], joints.tolist(), strict=True):
            E = Matrix3((tuple(row[0:3]), tuple(row[3:6]), tuple(row[6:9])))
            placements.append(Transform(E, Vector3(*row[9:12])))
            models.append(JointModel(model.kind, Vector3(*row[12:15]), row[15]))
        tree = replace(tree, XT=tuple(placements), joint=tuple(models))
    if not np.array_equal(robot.inertial_parameters, parameters):
        tree = replace(tree, I=inertias(parameters.ravel().tolist()))
    robot = replace(robot, tree=tree)
    if not np.array_equal(_link_numbers(robot), links):
        placed = tuple(
            replace(link, placement=Placement(row[:9].reshape(3, 3), row[9:]))
            for link, row in zip(robot.links, links, strict=True)
        )
        robot = replace(robot, links=placed)
    return robot


# ---- shapes and actuators in JSON, to the bit: hulls of meshes come from files and from SciPy ----------

CORE_FIELDS = ("kind", "bound", "radius", "size", "centre", "hull", "own")
"""What is written of a shape's core, beside the link and the body that it is on."""


def _placed_core_to_json(placed: PlacedCore) -> dict[str, Any]:
    where = {"link": placed.link, "body": placed.body, "placement": to_json(placed.placement)}
    return where | {name: to_json(getattr(placed.core, name)) for name in CORE_FIELDS}


def _placed_core_from_json(content: Mapping[str, Any]) -> PlacedCore:
    given = {name: content[name] for name in CORE_FIELDS}
    core = from_json(Core, given)
    for name in ("bound", "radius"):
        real_number(name, given[name], least=0.0)
    for name in ("size", "centre"):
        for x in given[name]:
            real_number(name, x)
    hull = core.hull
    if hull is not None:
        _require(Polytope, given["hull"])
        real_number("hull.error", hull.error, least=0.0)
        ends = [k for polygon in hull.polygons for k in polygon]
        good = all(
            x.ndim == 2 and x.shape[1] == 3 and x.dtype == float and np.isfinite(x).all()
            for x in (hull.corners, hull.normals)
        )
        if not (good and all(0 <= k < len(hull.corners) for k in ends)):
            raise ValueError("a hull of the robot is incomplete")
        if hull.sides is not None:
            core = replace(core, hull=replace(hull, sides=np.array(hull.sides, int).reshape(-1, 2)))
    body, link = from_json(int, content["body"]), from_json(str, content["link"])
    return PlacedCore(core, body, from_json(Placement, content["placement"]), link)


def _placement_to_json(placement: Placement) -> dict[str, Any]:
    return array_to_json(np.concatenate([np.ravel(placement.rotation), np.ravel(placement.position)]))


def _placement_from_json(content: Any) -> Placement:
    x = array_from_json(content)
    if x.shape != (12,) or not np.isfinite(x).all():
        raise ValueError(f"a placement of a shape has the shape {x.shape}")
    return Placement(x[:9].reshape(3, 3), x[9:])


layout(Placement, _placement_to_json, _placement_from_json)
layout(RobotRecord, RobotRecord.to_json, RobotRecord.from_json)


def shapes_from_json(content: Any, n: int) -> tuple[PlacedCore, ...]:
    """The shapes of a robot of n moving bodies."""
    placed = tuple(map(_placed_core_from_json, from_json(list[dict[str, Any]], content, "shapes")))
    if not all(0 <= c.body <= n for c in placed):
        raise ValueError("the shapes are not those of the robot")
    return placed


def keep_shapes(robot: Robot, shapes: tuple[PlacedCore, ...] | None, error: float) -> None:
    """Let a robot have these shapes, of hulls thinned to this error [m], instead of computing them."""
    if shapes is not None:
        robot.derived.get(("shapes that touch", error), lambda: shapes)


ACTUATORS: dict[str, type[Actuator]] = {cls.__name__: cls for cls in (Torque, PD, Velocity)}  # by name
NO_LIMIT = "inf"  # an infinite limit: JSON has no infinity


def actuator_to_json(actuator: Actuator) -> dict[str, Any]:
    """An actuator, to the bit: gains, limits, targets and keyframes; ShapeError for a function."""
    kind = type(actuator).__name__
    names = [field.name for field in fields(actuator)]
    return {"kind": kind} | {x: _value_to_json(f"{kind}({x}=...)", getattr(actuator, x)) for x in names}


def actuator_from_json(content: Mapping[str, Any]) -> Actuator:
    """An actuator from the JSON of :func:`actuator_to_json`."""
    values = {name: _value_from_json(x) for name, x in content.items() if name != "kind"}
    return ACTUATORS[content["kind"]](**values)


def _value_to_json(what: str, value: Any) -> Any:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, Keyframes):
        times, values = array_to_json(value.time), array_to_json(value.values)
        names = {"joints": list(value.joints), "name": list(value.name), "curve": value.curve}
        return {"keyframes": {"time": times, "values": values, **names}}
    if callable(value):
        raise ShapeError(f"{what}: a sweep takes numbers, arrays and rk.Keyframes, no functions")
    if isinstance(value, Mapping):
        return {"by_joint": {str(name): _value_to_json(what, x) for name, x in value.items()}}
    if np.ndim(value) == 0:
        return NO_LIMIT if value == math.inf else float(value)
    if isinstance(value, list | tuple) and all(isinstance(x, str) for x in value):
        return {"names": list(value)}
    return {"array": array_to_json(np.asarray(value, dtype=float))}


def _value_from_json(content: Any) -> Any:
    if content == NO_LIMIT:
        return math.inf
    if not isinstance(content, Mapping):
        return content
    if "keyframes" in content:
        return from_json(Keyframes, content["keyframes"], "keyframes")
    if "by_joint" in content:
        return {name: _value_from_json(x) for name, x in content["by_joint"].items()}
    return content["names"] if "names" in content else array_from_json(content["array"])


# ---- copies of meshes and pictures, for pages ----------------------------------------------------
# A recipe may come from anybody, and it names files. A file is used only if its content is that of the
# recipe; materials, pictures and buffers that a mesh file refers to must be in the recipe, too. Pages are
# made from copies, so that no file can be exchanged in between. A description is never read again, and no
# xacro is expanded.


@frozen
class Looks:
    """Hashes of the files that a robot looks like, besides its meshes."""

    pictures: Mapping[str, str]  # SHA-256 by the file's name in the description
    # by mesh, SHA-256 of each file that the mesh names, by its name there
    named: Mapping[str, Mapping[str, str]]

    @classmethod
    def of(cls, robot: Robot) -> Looks:
        """Those of the files that are there."""
        pictures: dict[str, str] = {}
        named: dict[str, dict[str, str]] = {}
        for shape in _shapes(robot):
            mesh = shape.geometry
            if shape.texture and shape.texture_filename:
                pictures[shape.texture_filename] = _hash(Path(shape.texture))
            if isinstance(mesh, Mesh) and mesh.path is not None and mesh.filename not in named:
                named[mesh.filename] = {}
                with contextlib.suppress(OSError, ValueError):
                    found = files_named(Path(mesh.path))
                    named[mesh.filename] = _known({name: _hash(path) for name, path in found.items()})
        return cls(_known(pictures), {name: x for name, x in sorted(named.items()) if x})


@functools.cache
def _folder() -> Path:
    """Where the copies of this process are; removed when it ends."""
    found = tempfile.mkdtemp(prefix="robokit-")
    atexit.register(_remove, found, os.getpid())
    return Path(found)


def _remove(folder: str, process: int) -> None:
    if os.getpid() == process:  # not when a forked child ends
        shutil.rmtree(folder, ignore_errors=True)


def with_mesh_copies(robot: Robot, source: Path, meshes: Mapping[str, str], looks: Looks) -> Robot:
    """The robot with copies of its files in its shapes: of those that are as they were.

    ``source`` is the file that the description was read from, ``meshes`` the SHA-256 by a mesh's name,
    ``looks`` those of the other files.
    """
    find, copies = Resolver(source.absolute().parent), dict[str, Path | None]()

    def copy(name: str, hashes: Mapping[str, str]) -> Path | None:
        if name in hashes and name not in copies:
            copies[name] = None
            with contextlib.suppress(OSError, ValueError):
                found = find(name).path
                copies[name] = (
                    None if found is None else _copy(found, hashes[name], looks.named.get(name, {}))
                )
        return copies.get(name) if name in hashes else None

    def shown(shape: Shape) -> Shape:
        mesh, name = shape.geometry, shape.texture_filename
        if isinstance(mesh, Mesh):
            shape = replace(shape, geometry=replace(mesh, path=copy(mesh.filename, meshes)))
        picture = None if name is None else copy(name, looks.pictures)
        return replace(shape, texture=None if picture is None else str(picture))

    return with_shapes(robot, shown)


def _copy(path: Path, known: str, named: Mapping[str, str]) -> Path | None:
    """The copy of a file, with those that it names beside it; None where it is not what it was."""
    content = read_file(path)
    if hashlib.sha256(content).hexdigest() != known:
        return None
    beside = {}
    for name, hash_of_it in named.items():
        with contextlib.suppress(OSError, ValueError):
            more = read_file(companion(path.parent, name))
            if hashlib.sha256(more).hexdigest() == hash_of_it:
                beside[Path(wanted_path(name)).name] = more
    key = repr(
        (path.name, known, sorted((name, hashlib.sha256(x).hexdigest()) for name, x in beside.items()))
    )
    # Three folders deep: what a mesh may name ends within them.
    place = _folder() / hashlib.sha256(key.encode()).hexdigest()[:16] / "a" / "b"
    if not (place / path.name).exists():
        place.mkdir(parents=True, exist_ok=True)
        for name, more in beside.items():
            (place / name).write_bytes(more)
        (place / path.name).write_bytes(content)
    return place / path.name


def _shapes(robot: Robot) -> Iterator[Shape]:
    for link in robot.links:
        yield from (*link.visuals, *link.collisions)


def _hash(path: Path) -> str:
    """SHA-256 of a file; "" where it cannot be read."""
    try:
        return hashlib.sha256(read_file(path)).hexdigest()
    except (OSError, ValueError):
        return ""


def _known(hashes: Mapping[str, str]) -> dict[str, str]:
    return {name: x for name, x in sorted(hashes.items()) if x}
