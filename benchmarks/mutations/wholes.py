"""Mistakes over shapes, links behind fixed joints, base, gravity and the order of joints."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from mutations.mutation import Mutant, Mutation, angles, differs, full, movable, shuffled, six, with_link
from robokit.model.geometry import Box, Capsule, Cylinder, Mesh, Placement, Sphere
from robokit.urdf.description import (
    InertialDescription,
    JointDescription,
    LinkDescription,
    Origin,
    RobotDescription,
    ShapeDescription,
)


def _shapes(wrong: Callable, mesh: bool = False) -> Callable[..., Iterator[Mutant]]:
    def make(robot: RobotDescription, rng: np.random.Generator) -> Iterator[Mutant]:
        for link in shuffled(robot.links, rng):
            for k, shape in enumerate(link.collisions):
                if isinstance(shape.geometry, Mesh) != mesh:
                    continue
                changed = wrong(shape)
                if changed is None:
                    continue
                shapes = [*link.collisions[:k], *changed, *link.collisions[k + 1 :]]
                yield Mutant(link.name, with_link(robot, link.name, collisions=tuple(shapes)))

    return make


def _scale(shape):
    g = shape.geometry
    if not readable(shape):
        return None
    k = 1000.0 if abs(g.scale[0]) < 0.1 else 0.001
    return [shape._replace(geometry=Mesh(g.filename, tuple(k * x for x in g.scale), g.path))]


def readable(shape: ShapeDescription) -> bool:
    """Whether MuJoCo can read the mesh of a shape."""
    path = Path(shape.geometry.filename)
    if path.suffix.lower() not in (".stl", ".obj") or not path.is_file():
        return False
    return path.suffix.lower() == ".obj" or path.read_bytes()[:5] != b"solid"


def _half(shape):
    g = shape.geometry
    sizes = {
        Box: lambda: Box(tuple(x / 2 for x in g.size)),
        Sphere: lambda: Sphere(g.radius / 2),
        Cylinder: lambda: Cylinder(g.radius / 2, g.length / 2),
        Capsule: lambda: Capsule(g.radius / 2, g.length / 2),
    }
    if not all(np.ravel(g.size if isinstance(g, Box) else g.radius) > 0):
        return None
    return [shape._replace(geometry=sizes[type(g)]())]


def _origin_lost(shape):
    if np.abs(shape.origin.xyz).max() < 1e-2 or (
        isinstance(shape.geometry, Box) and min(shape.geometry.size) <= 0
    ):
        return None
    return [shape._replace(origin=Origin(line=shape.origin.line))]


def _another_kind(shape):
    g = shape.geometry
    return (
        [shape._replace(geometry=Capsule(g.radius, g.length))]
        if isinstance(g, Cylinder) and g.radius > 0
        else None
    )


def _missing(shape):
    g = shape.geometry
    return [] if min(np.ravel(g.size if isinstance(g, Box) else g.radius)) > 0 else None


def _one_more(robot: RobotDescription, rng: np.random.Generator) -> Iterator[Mutant]:
    fixed = {joint.child for joint in robot.joints if joint.type == "fixed"}
    for link in shuffled([link for link in robot.links if link.name not in fixed | {"world"}], rng):
        extra = ShapeDescription(Sphere(0.031), Origin((0.013, 0.0, 0.0)))
        yield Mutant(link.name, with_link(robot, link.name, collisions=(*link.collisions, extra)))


def _place(origin: Origin) -> Placement:
    return Placement(origin.rotation(), np.array(origin.xyz))


def _as_origin(place: Placement, line: int = 0) -> Origin:
    return Origin(tuple(map(float, place.position)), angles(place.rotation), None, line)


def merged(robot: RobotDescription, joint: JointDescription, how: str) -> RobotDescription:
    """The robot with the link behind a fixed joint merged into its parent.

    Args:
        robot, joint: the robot, and the fixed joint.
        how: "right", "dropped" (its inertia is forgotten), "turned" (its inertia is added as if the joint had
            no origin), "steiner" (inertias are added without parallel-axis terms).
    """
    links = {link.name: link for link in robot.links}
    parent, child = links[joint.parent], links[joint.child]
    X = _place(joint.origin)

    def moved(shapes):
        return tuple(s._replace(origin=_as_origin(X @ _place(s.origin), s.origin.line)) for s in shapes)

    inertial = parent.inertial
    if child.inertial is not None and how != "dropped":
        inertial = _sum(
            parent.inertial, child.inertial, Placement() if how == "turned" else X, how == "steiner"
        )
    whole = parent._replace(
        inertial=inertial,
        collisions=(*parent.collisions, *moved(child.collisions)),
        visuals=(*parent.visuals, *moved(child.visuals)),
    )
    joints = []
    for other in robot.joints:
        if other.name == joint.name:
            continue
        if other.parent == child.name:
            other = other._replace(
                parent=parent.name, origin=_as_origin(X @ _place(other.origin), other.origin.line)
            )
        joints.append(other)
    kept = [whole if link.name == parent.name else link for link in robot.links if link.name != child.name]
    return robot._replace(links=tuple(kept), joints=tuple(joints))


def _sum(
    a: InertialDescription | None, b: InertialDescription, X: Placement, plain: bool
) -> InertialDescription:
    R = X.rotation @ b.origin.rotation()
    c2 = X.rotation @ np.array(b.origin.xyz) + X.position
    I2 = R @ full(b.inertia) @ R.T
    if a is None:
        return InertialDescription(b.mass, six(I2), Origin(tuple(map(float, c2))))
    c1, I1 = np.array(a.origin.xyz), a.matrix()
    m = a.mass + b.mass
    c = (a.mass * c1 + b.mass * c2) / m if m else c1

    def about(mass, at):
        d = at - c
        return 0.0 if plain else mass * (d @ d * np.eye(3) - np.outer(d, d))

    I = I1 + I2 + about(a.mass, c1) + about(b.mass, c2)
    return InertialDescription(m, six(I), Origin(tuple(map(float, c))), a.line)


def fixed_links(robot: RobotDescription) -> list[tuple[JointDescription, LinkDescription, LinkDescription]]:
    """Fixed joints between two links with mass."""
    links = {link.name: link for link in robot.links}
    found = []
    for joint in robot.joints:
        parent, child = links.get(joint.parent), links.get(joint.child)
        if joint.type != "fixed" or not (parent and child and parent.inertial and child.inertial):
            continue
        if parent.inertial.mass > 0 and child.inertial.mass > 1e-4 * parent.inertial.mass:
            found.append((joint, parent, child))
    return found


def _merge(how: str) -> Callable[..., Iterator[Mutant]]:
    def make(robot: RobotDescription, rng: np.random.Generator) -> Iterator[Mutant]:
        for joint, _, child in shuffled(fixed_links(robot), rng):
            right, wrong = merged(robot, joint, "right"), merged(robot, joint, how)
            a, b = (next(k for k in r.links if k.name == joint.parent).inertial for r in (right, wrong))
            if differs(a, b):
                yield Mutant(child.name, wrong)

    return make


def _world(kind: str) -> Callable[..., Iterator[Mutant]]:
    def make(robot: RobotDescription, rng: np.random.Generator) -> Iterator[Mutant]:
        carried = {joint.child for joint in robot.joints}
        root = next((link.name for link in robot.links if link.name not in carried), None)
        if root is None or any(link.name == "world" for link in robot.links):
            return
        joint = JointDescription("world_joint", kind, "world", root)
        yield Mutant(
            "", robot._replace(links=(LinkDescription("world"), *robot.links), joints=(joint, *robot.joints))
        )

    return make


def _without_world(robot: RobotDescription, rng: np.random.Generator) -> Iterator[Mutant]:
    first = [j for j in robot.joints if j.parent == "world"]
    if len(first) == 1 and first[0].type == "fixed" and not any(j.child == "world" for j in robot.joints):
        links = tuple(link for link in robot.links if link.name != "world")
        yield Mutant("", robot._replace(links=links, joints=tuple(j for j in robot.joints if j != first[0])))


def _gravity(text: str) -> Callable[..., Iterator[Mutant]]:
    def make(robot: RobotDescription, rng: np.random.Generator) -> Iterator[Mutant]:
        yield Mutant("", robot, extension=f'<mujoco><option gravity="{text}"/></mujoco>')

    return make


def _gravity_off(robot: RobotDescription, rng: np.random.Generator) -> Iterator[Mutant]:
    for link in shuffled([k for k in robot.links if k.inertial and k.inertial.mass > 0], rng):
        text = f'<gazebo reference="{link.name}"><gravity>false</gravity></gazebo>'
        yield Mutant(link.name, robot, extension=text)


def _order(robot: RobotDescription, rng: np.random.Generator) -> Iterator[Mutant]:
    names = [joint.name for joint in robot.joints if joint.moves]
    if len(movable(robot)) < 2:
        return
    for joints in (sorted(robot.joints, key=lambda joint: joint.name), list(reversed(robot.joints))):
        others = [joint.name for joint in joints if joint.moves]
        if others != names and others != _depth_first(robot):
            yield Mutant("", robot._replace(joints=tuple(joints)))


def _depth_first(robot: RobotDescription) -> list[str]:
    carried = {joint.child for joint in robot.joints}
    todo = [link.name for link in robot.links if link.name not in carried]
    found = []
    while todo:
        link = todo.pop()
        joints = [joint for joint in robot.joints if joint.parent == link]
        todo += [joint.child for joint in reversed(joints)]
        found += [joint.name for joint in robot.joints if joint.child == link and joint.moves]
    return found


WHOLES = [
    Mutation("mesh-scale", _shapes(_scale, True)),
    Mutation("shape-size", _shapes(_half)),
    Mutation("shape-pose", _shapes(_origin_lost)),
    Mutation("shape-kind", _shapes(_another_kind)),
    Mutation("shape-missing", _shapes(_missing)),
    Mutation("shape-added", _one_more),
    Mutation("fixed-link-dropped", _merge("dropped"), kind="inertia"),
    Mutation("fixed-link-merged-wrongly", _merge("turned"), kind="inertia"),
    Mutation("fixed-link-merged-wrongly", _merge("steiner"), kind="inertia"),
    Mutation("base-welded", _world("fixed"), mjcf=False),
    Mutation("base-freed", _world("floating"), mjcf=False),
    Mutation("base-freed", _without_world, mjcf=False),
    Mutation("gravity", _gravity("0 0 0"), mjcf=False),
    Mutation("gravity", _gravity("0 -9.81 0"), mjcf=False),
    Mutation("gravity-off", _gravity_off, mjcf=False),
    Mutation("joint-order", _order, mjcf=False),
]
