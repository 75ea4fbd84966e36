"""The referee: reads two descriptions of one robot, and says what differs, and why."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from robokit.arguments import one_of
from robokit.conventions import GRAVITY
from robokit.errors import RobokitError, listed
from robokit.formats.description import (
    WORLD,
    DescribedJoint,
    DescribedLoop,
    Description,
    parents_first,
    turned_round,
    with_composite_joints,
)
from robokit.formats.read import read_description
from robokit.model.geometry import Placement
from robokit.parity.bodies import Bodies, Shapes
from robokit.parity.dynamics import compared_dynamics, dynamics_finding
from robokit.parity.inertials import ROUNDING_TOLERANCE, number
from robokit.parity.joints import joint_findings, mimic_findings
from robokit.parity.matching import (
    Aligner,
    Pairing,
    Tree,
    is_base_fixed,
    is_static,
    pair_descriptions,
    plain_name,
    rigid_groups,
    root_group,
)
from robokit.parity.verdict import Finding, Verdict
from robokit.urdf.mesh_files import Resolver, folders

# ==== structure ===================================================================================
# The tree, its loops and the robot as a whole: what joints hang on, base, gravity, the order of joints.


def counterpart(pairing: Pairing, g: int) -> int | None:
    """The group of B that a group of A is part of: its own, or that of the nearest body that it hangs on."""
    while g >= 0 and g not in pairing.groups:
        g = pairing.a.parent[g]
    return pairing.groups.get(g)


def nearest_paired_group(pairing: Pairing, h: int) -> int | None:
    """The paired group of B that one of its groups is part of: its own, or that of the nearest body above."""
    found = set(pairing.groups.values())
    while h >= 0 and h not in found:
        h = pairing.b.parent[h]
    return h if h >= 0 else None


def tree_findings(pairing: Pairing) -> Iterator[Finding]:
    """One finding for each joint that hangs on another body, and each link that is fixed to another one.

    Bodies that only one side has, such as those at a joint that the other has welded, count as part of the
    nearest body that they hang on.
    """
    a, b = pairing.a, pairing.b
    for g, joint in enumerate(a.carrier):
        h = pairing.groups.get(g)
        if joint is None or h is None or a.parent[g] < 0 or b.parent[h] < 0:
            continue
        ours, theirs = counterpart(pairing, a.parent[g]), nearest_paired_group(pairing, b.parent[h])
        if ours is not None and theirs is not None and ours != theirs:
            text = f"B hangs it on {_group_name(b, theirs)}; A on {joint.parent!r}"
            line = joint.written.line if joint.written else 0
            yield Finding("joint-parent", "joint", joint.name, line, text)
    for name, (body, _) in pairing.direct.items():
        link = a.side.bodies[name]
        if link.static or b.side.bodies[body].static != is_static(b, b.group[body]):
            continue
        ours, theirs = counterpart(pairing, a.group[name]), nearest_paired_group(pairing, b.group[body])
        if ours is not None and theirs is not None and ours != theirs:
            into = a.into.get(name)
            on = f"{into.parent!r}" if into is not None and not into.moves else _group_name(a, a.group[name])
            text = f"B has it on {_group_name(b, theirs)}; A on {on}"
            line = into.written.line if into is not None and into.written else link.line
            yield Finding("link-on-another-body", "link", name, line, text)


def _group_name(tree: Tree, g: int) -> str:
    """A rigid body by its first link, with the joint that carries it."""
    carrier = tree.carrier[g]
    by = f" (behind {carrier.name!r})" if carrier is not None and carrier.name else ""
    return f"{tree.members[g][0]!r}{by}"


def with_the_same_root(a: Description, b: Description) -> tuple[Description, Finding | None]:
    """B from A's root outwards, and the finding where B's root is another body.

    Where nothing holds the root, the same bodies and joints can be written from another one outwards: so one
    exchanged root is one difference, and not one for each joint on the way.
    """
    ours, theirs = rigid_groups(a), rigid_groups(b)
    g, h = root_group(ours), root_group(theirs)
    root = next((name for name in ours.members[g] if name in b.bodies), None)
    if is_static(ours, g) or root is None or any(theirs.group.get(name) == h for name in ours.members[g]):
        return b, None
    path = _to_the_root(theirs, root)
    old, through = path[-1].parent, next(joint for joint in path if joint.moves)
    text = f"B's root is {old!r}; A's is {root!r}, which hangs in B on {through.name!r}"
    found = Finding("root-differs", "robot", a.name or "robot", 0, text)
    if is_static(theirs, h):
        return b, found
    turned = {id(joint): turned_round(joint) for joint in path}
    joints = [turned.get(id(joint), joint) for joint in b.joints]
    joints = [replace(j, child=root) if j.kind == "floating" and j.child == old else j for j in joints]
    floats = WORLD in b.bodies and b.bodies[WORLD].static
    bodies = parents_first(b.bodies, joints, WORLD if floats else root)
    return replace(b, joints=joints, bodies=bodies), found


def _to_the_root(tree: Tree, name: str) -> list[DescribedJoint]:
    path = []
    while name in tree.into and not (
        tree.into[name].kind == "floating" and tree.side.is_base(tree.into[name])
    ):
        path.append(tree.into[name])
        name = path[-1].parent
    return path


# Joints and constraints that close loops: missing, added, or elsewhere
# ---------------------------------------------------------------------

LOOP_POSITIONS = (0.0, 0.7, -0.4)
"""Positions of a loop's joint at which A's loop is held against B's [rad | m]: three tell any two apart."""

Ends = tuple[int | None, int | None]
"""Groups of B that a loop connects."""


class Loops:
    """The comparison of all loops of two sides.

    Args:
        pairing: what belongs together.
        maps: link of A -> map from B's world to A's.
        tolerance: largest relative difference that counts as none.
        size: of the robot [m].
    """

    def __init__(self, pairing: Pairing, maps: dict[str, Placement], tolerance: float, size: float) -> None:
        self.pairing, self.maps, self.tolerance, self.size = pairing, maps, tolerance, size

    def findings(self) -> Iterator[Finding]:
        """One finding for each loop that differs."""
        a, b = self.pairing.a.side, self.pairing.b.side
        left = [loop for loop in b.loops if self._holds(loop)]
        for loop in a.loops:
            ends = self._ends_of_a(loop)
            alike = [other for other in left if set(self._ends_of_b(other)) == set(ends)]
            other = min(alike, key=lambda other: self._off(loop, other), default=None)
            other = other or next((each for each in left if each.name == loop.name and loop.name), None)
            if other is None:
                text = f"B has no loop joint between {loop.predecessor!r} and {loop.successor!r}"
                yield Finding("loop-missing", "joint", loop.name, loop.line, text)
                continue
            left.remove(other)
            found = self._one(loop, other, ends)
            if found is not None:
                yield Finding(found[0], "joint", loop.name, loop.line, found[1])
        for loop in left:
            text = f"only B has it: it closes a loop between {loop.predecessor!r} and {loop.successor!r}"
            yield Finding("loop-added", "joint", loop.name or "loop", 0, text)

    def _one(self, a: DescribedLoop, b: DescribedLoop, ends: Ends) -> tuple[str, str] | None:
        if set(self._ends_of_b(b)) != set(ends):
            where = f"{b.predecessor!r} and {b.successor!r} for {a.predecessor!r} and {a.successor!r}"
            return "loop-differs", f"B closes the loop between other bodies: {where}"
        if a.kind != b.kind:
            return "loop-differs", f"B's loop joint is {b.kind}, A's {a.kind}"
        off = self._off(a, b)
        if off <= 10.0 * self.tolerance:
            return None
        if off <= ROUNDING_TOLERANCE:
            return "rounded", "B's loop joint is A's rounded"
        return "loop-differs", f"B has the loop joint elsewhere, {number(off * self.size)} m or rad away"

    def _ends_of_a(self, loop: DescribedLoop) -> Ends:
        group = self.pairing.a.group  # the world is in none where the root link is free in it
        first, second = (group.get(name, -1) for name in (loop.predecessor, loop.successor))
        return counterpart(self.pairing, first), counterpart(self.pairing, second)

    def _ends_of_b(self, loop: DescribedLoop) -> Ends:
        group = self.pairing.b.group
        return nearest_paired_group(self.pairing, group[loop.predecessor]), nearest_paired_group(
            self.pairing, group[loop.successor]
        )

    def _holds(self, loop: DescribedLoop) -> bool:
        """Whether a loop of B connects two bodies that can move against each other."""
        group = self.pairing.b.group
        return group[loop.predecessor] != group[loop.successor]

    def _off(self, a: DescribedLoop, b: DescribedLoop) -> float:
        """How far B's loop is from being held where A's is, as a part of the size of the robot."""
        if a.kind != b.kind:
            return math.inf
        pose = self.pairing.a.side.bodies
        if a.predecessor not in pose or a.successor not in pose:
            return 0.0
        first = pose[a.predecessor].pose @ a.predecessor_frame
        second = pose[a.successor].pose @ a.successor_frame
        theirs = [(b.predecessor, b.predecessor_frame), (b.successor, b.successor_frame)]
        if self._ends_of_b(b) != self._ends_of_a(a):
            theirs.reverse()
        there = self.pairing.b.side.bodies
        ends = (a.predecessor, theirs[0]), (a.successor, theirs[1])
        third, fourth = (self.maps[link] @ there[body].pose @ frame for link, (body, frame) in ends)
        largest = 0.0
        for x in LOOP_POSITIONS:
            moved = first @ _allowed_pose(a, x) @ second.inverse()  # the successor, held by A's loop
            apart = third.inverse() @ moved @ fourth
            largest = max(largest, _violation(b, apart, self.size))
        return largest


def _allowed_pose(loop: DescribedLoop, x: float) -> Placement:
    """The successor's frame in the predecessor's at some position that the joint allows."""
    kind, z, c, s = loop.kind, np.array([0.0, 0.0, x]), math.cos(x), math.sin(x)
    about_z = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    if kind == "revolute":
        return Placement(about_z)
    if kind == "prismatic":
        return Placement(position=z)
    if kind == "cylindrical":
        return Placement(about_z, z)
    if kind == "planar":
        return Placement(about_z, np.array([x, -x, 0.0]))
    if kind == "spherical":
        return Placement(about_z @ np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]]))
    if kind == "distance":
        return Placement(about_z, loop.length * np.array([s, 0.0, c]))
    if kind == "universal":  # about z, then about x of what that has turned, which is z of the other
        across = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]])
        return Placement(about_z @ across @ about_z)
    return Placement()


def _violation(loop: DescribedLoop, apart: Placement, size: float) -> float:
    """By how much a relative pose violates the joint; lengths as parts of the size."""
    kind = loop.kind
    if kind == "distance":
        return abs(float(np.linalg.norm(apart.position)) - loop.length) / size
    turn, far = apart.rotation - np.eye(3), apart.position / size
    if kind in ("revolute", "cylindrical", "planar"):
        turn = turn[:, 2]
    elif kind == "spherical":
        turn = np.zeros(3)
    elif kind == "universal":
        turn = apart.rotation[2:, 2]
    if kind in ("prismatic", "cylindrical"):
        far = far[:2]
    elif kind == "planar":
        far = far[2:]
    return max(float(np.abs(turn).max()), float(np.abs(far).max()))


# What concerns the whole robot: base, gravity, the order of the joints, one factor on every mass
# -----------------------------------------------------------------------------------------------

DEFAULT_GRAVITY_TOLERANCE = 2e-3
"""Relative difference of a gravity from 9.81 m/s^2 that is only another default, where A says none."""

Text = tuple[str, str]


def whole_findings(
    pairing: Pairing, maps: dict[str, Placement], base: str | None, tolerance: float, notes: list[str]
) -> Iterator[Finding]:
    """Findings of the robot as a whole.

    Args:
        pairing: the two sides.
        maps: link of A -> map from B's world to A's.
        base: what A's base is to be, if the caller says so.
        tolerance: largest relative difference that counts as none.
        notes: gets what is not compared.
    """
    a, b = pairing.a.side, pairing.b.side
    found = [*_base(a, b, base, notes), *_gravity(a, b, tolerance, notes), *_order(pairing, notes)]
    found += _tilt(pairing, maps, base, tolerance)
    for cause, text in found:
        yield Finding(cause, "robot", a.name or "robot", 0, text)
    alone = [name for name, body in a.bodies.items() if not body.gravity and a.format != b.format]
    if alone:
        notes.append(f"A's <gazebo> elements switch gravity off for {len(alone)} links; this is not compared")
    for name, body in a.bodies.items():
        home = pairing.home.get(name)
        if (
            name not in alone
            and home is not None
            and body.mass > 0.0
            and b.bodies[home].gravity != body.gravity
            and not b.bodies[home].static
        ):
            theirs = b.bodies[home].gravity
            text = f"B lets {number(theirs)} of gravity act on it, A {number(body.gravity)}"
            if {theirs, body.gravity} == {0.0, 1.0}:
                text = f"gravity acts on it in {'A, not in B' if body.gravity else 'B, not in A'}"
            yield Finding("gravity-off", "link", name, body.written.line if body.written else 0, text)


def _base(a: Description, b: Description, base: str | None, notes: list[str]) -> Iterator[Text]:
    ours = base or a.base
    both_urdf = a.format == b.format == "URDF"
    if both_urdf and base is None and a.base != b.base:
        if b.base == "fixed":
            yield "base-welded", "B welds the base to a link 'world'; A leaves it to the program"
        elif a.base == "fixed":
            what = "a floating joint" if b.base == "floating" else "nothing: its link 'world' is gone"
            yield "base-freed", f"A welds the base to its link 'world'; B holds it by {what}"
        elif b.base == "floating":
            yield "base-freed", "B holds the base by a floating joint; A leaves it to the program"
        else:
            yield "base-welded", "A's base has a floating joint; B's has none"
    elif ours is not None and b.base is not None and ours != b.base:
        if b.base == "fixed":
            yield "base-welded", "B's base is welded to the world; A's is free"
        else:
            yield "base-freed", "B's base is free; A's is welded to the world"
    elif ours is None and b.base is not None:
        notes.append(f"B's base is {b.base}; A does not say (--base fixed or --base floating compares it)")


def _gravity(a: Description, b: Description, tolerance: float, notes: list[str]) -> Iterator[Text]:
    if b.gravity is None and a.gravity is None:
        return
    if b.gravity is None and a.format != b.format:
        return
    ours = np.array(GRAVITY) if a.gravity is None else a.gravity
    theirs = np.array(GRAVITY) if b.gravity is None else b.gravity
    g = float(np.linalg.norm(ours))
    off = float(np.abs(theirs - ours).max())
    if off <= (DEFAULT_GRAVITY_TOLERANCE if a.gravity is None else tolerance) * max(g, 1.0):
        if off > max(tolerance, 1e-6) * g:
            notes.append(f"B's gravity is {_vector(theirs)} m/s^2; A says none, and robokit's is 9.81")
        return
    said = f"{_vector(theirs)} for {_vector(ours)} m/s^2"
    if not theirs.any():
        yield "gravity", f"B has no gravity: {said}"
    elif float(np.abs(theirs + ours).max()) <= 1e-3 * g:
        yield "gravity", f"B's gravity points up: {said}"
    elif abs(float(np.linalg.norm(theirs)) - g) <= DEFAULT_GRAVITY_TOLERANCE * g:
        yield "gravity", f"B's gravity points elsewhere: {said}"
    else:
        yield "gravity", f"B's gravity has another strength: {said}"


def _tilt(pairing: Pairing, maps: dict[str, Placement], base: str | None, tolerance: float) -> Iterator[Text]:
    """Whether a fixed base is turned against gravity."""
    a = pairing.a
    root = a.members[root_group(a)][0]
    if not is_base_fixed(pairing, base):
        return
    down = pairing.b.side.gravity if pairing.b.side.gravity is not None else np.array(GRAVITY)
    off = float(np.linalg.norm(maps[root].rotation @ down - down)) / max(float(np.linalg.norm(down)), 1e-300)
    if off > max(10.0 * tolerance, ROUNDING_TOLERANCE):
        angle = math.degrees(2.0 * math.asin(min(1.0, off / 2.0)))
        yield "base-tilted", f"B's base is fixed {number(angle)} deg from where A's is against gravity"


def _vector(v: np.ndarray) -> str:
    return " ".join(number(float(x) + 0.0) for x in v)


def _order(pairing: Pairing, notes: list[str]) -> Iterator[Text]:
    a, b = pairing.a.side, pairing.b.side
    ours = {id(theirs): name for name, theirs in pairing.joints.items()}
    theirs = [ours[id(joint)] for joint in b.movable if id(joint) in ours]
    kept = set(theirs)
    movable = [joint for joint in a.movable if joint.name in kept]
    written = [joint.name for joint in movable]
    deep, broad = _deep(a, kept), _broad(a, movable)
    if theirs == written:
        return
    if theirs == deep:  # as tree walks give them, and as writers write them
        if a.format == b.format:
            notes.append("B writes the joints depth first, A in another order; programs number them alike")
        return
    known = {"breadth first": broad, "alphabetical": sorted(written), "reversed": written[::-1]}
    how = next((name for name, order in known.items() if order == theirs), "")
    k, (mine, other) = next(
        (k, pair) for k, pair in enumerate(zip(written, theirs, strict=True)) if pair[0] != pair[1]
    )
    said = f" ({how})" if how else ""
    text = f"B's joints come in another order{said}: number {k + 1} is {other!r}, in A {mine!r}"
    if "through" in b.format:
        notes.append(f"{text}; match by name")
    else:
        yield "joint-order", text


def _deep(side: Description, kept: set[str]) -> list[str]:
    into = side.into()
    names = (into[name].name for name in side.bodies if name in into)
    return [name for name in names if name in kept]


def _broad(side: Description, movable: list[DescribedJoint]) -> list[str]:
    into = side.into()
    depth: dict[str, int] = {}
    for name in side.bodies:
        joint = into.get(name)
        depth[name] = 0 if joint is None else depth[joint.parent] + 1
    return [joint.name for joint in sorted(movable, key=lambda joint: depth[joint.child])]


def shared_factor(findings: list[Finding], massive: int) -> list[Finding]:
    """The findings with one of the robot in the place of a factor that every mass has."""
    scaled = [f for f in findings if f.cause == "mass-scaled"]
    if massive < 2 or len(scaled) < 0.8 * massive:
        return findings
    count = Counter(f.text.partition(":")[0] for f in scaled)
    text, most = count.most_common(1)[0]
    if most < 0.8 * massive:
        return findings
    rest = [f for f in findings if f not in scaled or f.text.partition(":")[0] != text]
    what = text.removeprefix("B's ")
    whole = Finding("total-mass", "robot", "robot", 0, f"all {most} links: B's {what}")
    return [whole, *rest]


# ==== referee =====================================================================================


DEFAULT_TOLERANCE = 1e-6
"""Largest relative difference that counts as none, unless the caller says otherwise."""

PathLike = str | os.PathLike[str]


def referee(
    a: PathLike,
    b: PathLike,
    base: str | None = None,
    tolerance: float = DEFAULT_TOLERANCE,
    through: str = "robokit",
    package_dirs: Sequence[PathLike] = (),
    xacro_args: Mapping[str, str] | None = None,
    loops: str = "declared",
) -> Verdict:
    """Compare two descriptions of one robot, and find the cause of each difference.

    Bodies are matched by name, and by their place in the tree, geometry and mass where names differ; joints
    by the bodies that they carry, axis and anchor. Everything is compared in one world with all joints at
    zero. Links that fixed joints hold together may be merged in either description. Beside the causes, mass
    matrix, velocity forces and gravity at random states are compared: where they differ by more than rounding
    makes, the robots are not the same even if no cause is found.

    Args:
        a: a URDF or xacro, the reference. Findings name its elements and lines.
        b: another description: URDF, xacro, MJCF (read by MuJoCo), SDF (read by Drake) or USD (read by
            usd-core).
        base: required base, "fixed" or "floating"; by default that of A, if it has one.
        tolerance: largest relative difference that counts as none.
        through: the program that reads b if it is a URDF: "robokit", "mujoco", "drake" or "pinocchio".
        package_dirs: folders searched first for ``package://`` files.
        xacro_args: values of the arguments of .xacro files.
        loops: of the URDFs that robokit reads, as for :func:`robokit.load_urdf`.

    Returns:
        the verdict: ``.same``, ``.findings``, ``.notes``, ``.dynamics``.

    Raises:
        UrdfError: a file that is no tree of links and joints.
        RobokitError: a file that cannot be read.
        MissingDependency: MuJoCo, Drake, Pinocchio or usd-core is needed and not installed.
    """
    if base is not None:
        one_of("base", base, ("fixed", "floating"))
    if not 0.0 < tolerance < 0.1:
        raise RobokitError(f"tolerance is {tolerance!r}; it is a relative difference above 0 and below 0.1")
    first = read_description(a, "robokit", package_dirs, xacro_args, loops)
    if first.format != "URDF":
        raise RobokitError(
            f"{os.fspath(a)} is {first.format}; the first file is the URDF or xacro that the other is "
            "compared with"
        )
    second = read_description(b, through, package_dirs, xacro_args, loops)
    return compare_descriptions(first, second, base, tolerance, package_dirs)


def compare_descriptions(
    a: Description,
    b: Description,
    base: str | None = None,
    tolerance: float = DEFAULT_TOLERANCE,
    package_dirs: Sequence[PathLike] = (),
) -> Verdict:
    """The verdict over two descriptions that have been read; arguments as for :func:`referee`."""
    b, other_root = with_the_same_root(a, with_composite_joints(b, a))
    pairing = pair_descriptions(a, b)
    aligner = Aligner(pairing, tolerance)
    alignment = aligner.align()
    resolver = Resolver(Path(a.file).absolute().parent, folders(package_dirs))

    def find(name: str) -> Path | None:
        return resolver(name).path

    bodies = Bodies(pairing, alignment, tolerance, find)
    shapes = Shapes(pairing, alignment.maps, tolerance, find)
    verdict = Verdict(a.file, b.file, a.format, b.format, tolerance=tolerance)
    verdict.bodies = sum(not a.bodies[name].static for name in pairing.home)
    verdict.joints = len(pairing.joints)
    found = [*alignment.findings, *bodies.findings()]
    for name in bodies.extra():
        text = f"only B has it: {b.bodies[name].mass:.4g} kg"
        found.append(Finding("link-added", "link", name, 0, text))
    found += joint_findings(pairing, alignment, tolerance, aligner.size)
    found += mimic_findings(pairing, tolerance)
    found += tree_findings(pairing)
    found += Loops(pairing, alignment.maps, tolerance, aligner.size).findings()
    found += shapes.findings()
    found.sort(key=lambda f: (f.line == 0, f.line))
    found = shared_factor(found, bodies.massive)
    whole = [other_root] if other_root is not None else []
    whole += whole_findings(pairing, alignment.maps, base, tolerance, verdict.notes)
    rounded = [f for f in found if f.cause == "rounded"]
    verdict.findings = [*whole, *(f for f in found if f.cause != "rounded")]
    verdict.notes += [*b.notes, *bodies.notes, *shapes.notes]
    verdict.dynamics = compared_dynamics(pairing, alignment, base, tolerance, aligner.size)
    verdict.findings += dynamics_finding(verdict.dynamics, verdict.findings, a.name or "robot")
    if rounded:
        names = list(dict.fromkeys(f.name for f in rounded))
        verdict.notes.append(f"B's numbers are rounded: {listed(names, 3)}")
    named = sum(plain_name(name) == plain_name(theirs.name) for name, theirs in pairing.joints.items())
    alike, names_of_a = len(pairing.direct) + named, len(a.bodies) + len(a.movable)
    if alike < names_of_a / 4 and len(verdict.findings) > len(a.bodies):
        verdict.notes.insert(0, "hardly a name is the same, and most differs: B may be another robot")
    if pairing.unnamed:
        pairs = [f"{x} is {y}" for x, y in pairing.unnamed.items() if a.bodies[x].mass or b.bodies[y].mass]
        if pairs:
            verdict.notes.append(f"matched by geometry: {listed(pairs, 3)}")
    if alignment.reframed:
        verdict.notes.append(
            f"B places {len(alignment.reframed)} link frames elsewhere; the bodies are where A's are"
        )
    return verdict
