"""All that can touch in a world, as arrays: shapes of a robot and of its ground, and pairs of them.

Shapes are those of the world first, then those of the bodies in their order; pairs ascend by their bodies, so
that contacts of two bodies are neighbours. Pairs act without a limit to their number: one that is far costs
some nanoseconds.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from robokit.collision.detect import contacts_at
from robokit.collision.fields import POLYTOPE
from robokit.collision.flush import FLUSH
from robokit.collision.shapes import (
    Arrays,
    Core,
    PlacedCore,
    core_of,
    field_core,
    pair_arrays,
    plane_core,
    runs_of,
    shape_arrays,
)
from robokit.dataclass_tools import frozen
from robokit.errors import warn
from robokit.model.geometry import Box, Placement, Shape
from robokit.model.inertial_parameters import box_edges
from robokit.model.parts import Link
from robokit.model.robot import Robot
from robokit.stages import stage

ERROR = 1e-3  # how far a mesh may reach out of its hull with fewer corners [m]
NO_RUNS = np.zeros((0, 3), np.int32)  # bodies that pass through each other


@frozen(eq=False)
class World:
    """The fixed shapes that bodies can touch: plane, height field and solids."""

    plane: Placement | None = None  # placement of a plane, whose z axis is its normal, or None
    # of the plane's surface: spin and velocity at the world's origin [rad/s; m/s]
    velocity: tuple[float, ...] = (0.0,) * 6
    # (geometry, placement) of convex solids: as of robokit.model, or points
    solids: Sequence[tuple[Any, Placement]] = ()
    heights: np.ndarray | None = None  # of a height field, (nx, ny) [m], or None
    cell: tuple[float, float] = (1.0, 1.0)  # distances between its heights along x and y [m]
    # of its first height in the world; z is added to all [m]
    corner: tuple[float, float, float] = (0.0, 0.0, 0.0)
    friction: Sequence[float | None] = ()  # of the solids: those with equal ones are of one material


@frozen(eq=False)
class Scene:
    """Shapes and pairs of them.

    Attributes:
        arrays: SHAPES and PAIRS of fields.py, by name.
        links: of each shape the name of its link, "" of the world's.
        solid: of each shape the number of its solid of the world, -1 of others.
        errors: how far each shape's mesh reaches out of it [m].
    """

    arrays: Arrays
    links: tuple[str, ...]
    solid: np.ndarray
    errors: np.ndarray


def scene(
    robot: Robot,
    world: World | None = None,
    bodies: np.ndarray | None = NO_RUNS,
    error: float = ERROR,
) -> Scene:
    """The scene of a robot, or several in one world.

    Args:
        robot: the robot.
        world: what it stands on; None for nothing.
        bodies: runs of bodies that may touch, (n, 3), or None for those of :func:`touching_runs`.
        error: how far a mesh may reach out of its hull [m].
    """
    own, world = robot_shapes(robot, error), world or World()
    still = world_shapes(world)
    level = len(still) - len(world.solids)
    placed = [*still, *own]
    arrays = shape_arrays(placed)
    materials = [("", mu) for mu in world.friction or [None] * len(world.solids)]
    arrays |= _beside(arrays, [("", None)] * level + materials + [(c.link, None) for c in own])
    count = len(still)
    runs = touching_runs(robot, error) if bodies is None else bodies
    arrays |= pair_arrays(arrays["shape_body"], count, runs)
    solid = np.full(len(placed), -1, dtype=np.int32)
    solid[level:count] = np.arange(count - level)
    errors = np.array([c.core.hull.error if c.core.hull else 0.0 for c in placed])
    return Scene(arrays, tuple(c.link for c in placed), solid, errors)


def world_shapes(world: World, error: float | None = 0.0) -> list[PlacedCore]:
    """The plane, the height field and the solids, in this order; error as of a robot's."""
    still = [PlacedCore(plane_core(), 0, world.plane, velocity=world.velocity)] if world.plane else []
    if world.heights is not None:
        field_of = field_core(world.heights, world.cell)
        still.append(PlacedCore(field_of, 0, Placement(position=np.array(world.corner))))
    return still + [PlacedCore(core_of(geometry, error), 0, place) for geometry, place in world.solids]


# ---- a robot ----------------------------------------------------------------------------------------------


def robot_shapes(robot: Robot, error: float | None = ERROR) -> tuple[PlacedCore, ...]:
    """Shapes of a robot's links, by body, computed once.

    Those are the collision shapes; the visual ones where no link has one; boxes of even density with the
    links' inertias where no link has a shape. Where no shape of a link can be read, its simple visual shapes
    stand for it, or that box. ``error``: how far a mesh may reach out of its hull [m]; None for hulls with
    all their corners. Warns UserWarning: meshes that cannot be read, once for the robot.
    """
    found: tuple[PlacedCore, ...] = robot.derived.get(
        ("shapes that touch", error), lambda: tuple(_robot_shapes(robot, error))
    )
    return found


def touches_as_its_inertia(robot: Robot) -> bool:
    """Whether no link has a shape, so that all touch as boxes with their inertias."""
    return not any(link.collisions or link.visuals for link in robot.links)


def _robot_shapes(robot: Robot, error: float | None) -> list[PlacedCore]:
    found, unread = _placed_cores(robot, robot.links, error)
    if unread:
        first, error_ = unread[0]
        others = len({link.name for link, _ in unread}) - 1
        more = f" (and meshes of {others} more link{'s' * (others != 1)})" if others else ""
        warn(
            f"link {first.name!r}: {error_}{more}; such a link touches with its other shapes or its "
            "inertia's box",
            UserWarning,
        )
    return found


def _placed_cores(
    robot: Robot, links: Sequence[Link], error: float | None
) -> tuple[list[PlacedCore], list[tuple[Link, Exception]]]:
    """The shapes of some links, by body, and what could not be read."""
    collide, nothing = any(link.collisions for link in robot.links), touches_as_its_inertia(robot)
    found: list[PlacedCore] = []
    unread: list[tuple[Link, Exception]] = []
    for link in links:
        with stage(f"making hulls of {robot.name}'s shapes"):
            shapes, failed = _cores(link.collisions if collide else link.visuals, error)
        unread += [(link, each) for each in failed]
        if failed and not shapes and collide:
            shapes, _ = _cores(link.visuals, error)
        if not shapes and (nothing or failed):
            shapes = _inertia_box(link)
        found += [PlacedCore(c, link.body, link.placement @ place, link.name) for c, place in shapes]
    return sorted(found, key=lambda c: c.body), unread


def _cores(
    shapes: Sequence[Shape], error: float | None
) -> tuple[list[tuple[Core, Placement]], list[Exception]]:
    found, failed = [], []
    for shape in shapes:
        try:
            found.append((core_of(shape.geometry, error), shape.placement))
        except Exception as problem:  # readers of mesh formats raise whatever they like; the caller warns
            failed.append(problem)
    return found, failed


def _inertia_box(link: Link) -> list[tuple[Core, Placement]]:
    """The box of even density with a link's mass and inertia, of its first sample; none without mass."""
    mass, inertia = float(np.ravel(link.mass)[0]), np.reshape(link.inertia, (-1, 3, 3))[0]
    if not (link.body and mass > 0.0):
        return []
    moments, axes = np.linalg.eigh(inertia)
    edges = np.maximum(box_edges(mass, moments), 0.0)
    if np.linalg.det(axes) < 0.0:
        axes = -axes
    com = np.reshape(link.com, (-1, 3))[0]
    return [(core_of(Box(tuple(edges.tolist())), 0.0), Placement(axes, com))]


def touching_runs(robot: Robot, error: float = ERROR) -> np.ndarray:
    """Pairs of bodies that may touch, as runs (i, first, end), (n, 3); computed once and read-only.

    Body i may touch those with shapes from first to end - 1. Left out are a body and the nearest one with a
    shape that carries it, bodies that a loop joint connects, those that the robot's file keeps apart, and
    bodies of one robot that overlap in the neutral configuration: they are made so. That is judged by hulls
    with all their corners. ``robot``: the robot, or several in one world; ``error``: how far a mesh may reach
    out of its hull [m].
    """
    found: np.ndarray = robot.derived.get(("touching runs", error), lambda: _touching_runs(robot, error))
    return found


def touching_pairs(robot: Robot) -> np.ndarray:
    """The same pairs one by one, (n, 2), ascending."""
    bodies, (i, *ends) = bodies_with_shapes(robot), touching_runs(robot).T
    first, end = np.searchsorted(bodies, ends)
    counts = end - first
    at = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts - first, counts)
    return np.stack([np.repeat(i, counts), bodies[at]], axis=1)


def touching_count(robot: Robot) -> int:
    """Number of pairs of bodies in runs that may touch."""
    first, end = np.searchsorted(bodies_with_shapes(robot), touching_runs(robot)[:, 1:].T)
    return int((end - first).sum())


def bodies_in(robot: Robot, runs: np.ndarray) -> np.ndarray:
    """Bodies with shapes that are in runs (n, 3), ascending."""
    bodies, inside = bodies_with_shapes(robot), np.zeros(robot.nbodies + 2, int)
    for places, change in ((runs[:, 0], 1), (runs[:, 0] + 1, -1), (runs[:, 1], 1), (runs[:, 2], -1)):
        np.add.at(inside, places, change)
    return bodies[np.cumsum(inside)[bodies] > 0]


def bodies_with_shapes(robot: Robot) -> np.ndarray:
    """Numbers of the bodies that have shapes, ascending."""
    return np.unique(np.array([c.body for c in robot_shapes(robot)], np.int32))


def _touching_runs(robot: Robot, error: float) -> np.ndarray:
    placed = robot_shapes(robot, error)
    bodies, root = sorted({c.body for c in placed}), roots(robot)
    gone, of_one = neighbours(robot, set(bodies), root), dict[int, list[int]]()
    for i in bodies:
        of_one.setdefault(root[i], []).append(i)
    gaps = {r: [(i + 1, j) for i, j in pairwise(each) if i + 1 < j] for r, each in of_one.items()}
    judged = [run for r, each in of_one.items() for run in _runs_without(each, gone, gaps[r])]
    touch, may_touch = _meeting(robot, placed, np.array(sorted(judged), np.int32).reshape(-1, 3))
    if may_touch:
        left = {body for pair in may_touch for body in pair}
        exact, _ = _placed_cores(robot, [link for link in robot.links if link.body in left], None)
        touch |= _meeting(robot, exact, runs_of([*may_touch]))[0]
    found = _runs_without(bodies, gone | kept_apart(robot) | touch)
    runs = np.array(found, np.int32).reshape(-1, 3)
    first, end = np.searchsorted(bodies, runs[:, 1:].T)
    runs = runs[first < end]
    runs.flags.writeable = False
    return runs


def _runs_without(
    bodies: Sequence[int], gone: Collection[tuple[int, int]], gaps: Sequence[tuple[int, int]] = ()
) -> list[tuple[int, int, int]]:
    """Runs of all pairs of ascending bodies but those that are gone, and those with bodies in gaps (a, b)."""
    apart: dict[int, list[int]] = {}
    for i, j in gone:
        apart.setdefault(i, []).append(j)
    found = []
    for i in bodies:
        first = i + 1
        for a, b in sorted([*gaps, *((j, j + 1) for j in apart.get(i, ()))]):
            if first < a:
                found.append((i, first, a))
            first = max(first, b)
        if first <= bodies[-1]:
            found.append((i, first, bodies[-1] + 1))
    return found


def _meeting(
    robot: Robot, shapes: Sequence[PlacedCore], bodies: np.ndarray
) -> tuple[set[tuple[int, int]], set[tuple[int, int]]]:
    """Pairs of bodies that overlap in the neutral configuration, and others of which that is left open.

    Thinned hulls lie in those that they stand for, and these reach out of them by their error at most.
    ``bodies``: runs of those that are judged, (n, 3).
    """
    own = set(bodies_in(robot, bodies).tolist())
    placed = [c for c in shapes if c.body in own]
    arrays = shape_arrays(placed)
    arrays |= {"shape_beside": np.zeros((len(placed), 3), np.int32), "beside": np.zeros(1, np.int32)}
    arrays |= pair_arrays(arrays["shape_body"], 0, bodies)
    larger = np.array([c.core.hull.error if c.core.hull else 0.0 for c in placed])
    arrays |= {name: arrays[name] + larger for name in ("shape_radius", "shape_bound")}
    contacts = contacts_at(arrays, *neutral_poses(robot))
    least = larger + 1e-9 * arrays["shape_bound"]  # what only meets, to rounding, does not overlap
    touching = contacts["contact_gap"] <= -least[contacts["contact_shapes"]].sum(axis=1)
    touch, may_touch = (
        {(int(i), int(j)) for i, j in contacts["contact_bodies"][which]} for which in (touching, ~touching)
    )
    return touch, may_touch - touch


def kept_apart(robot: Robot) -> set[tuple[int, int]]:
    """Pairs of bodies of which the robot's file says that they never touch."""
    body_of = {link.name: link.body for link in robot.links}
    named = () if robot.scene is None else robot.scene.apart
    found = {(body_of[a], body_of[b]) for a, b in named if a in body_of and b in body_of}
    return {(min(pair), max(pair)) for pair in found}


def neutral_poses(robot: Robot) -> tuple[np.ndarray, np.ndarray]:
    """Rotations and origins of bodies 0..N in the neutral configuration."""
    tree = robot.tree
    X = tree.transforms(robot.split_q(robot.neutral().tolist()))
    R, p = [np.eye(3)], [np.zeros(3)]
    for i in tree.outward():
        above, here = tree.parent[i], X[i]
        R.append(R[above] @ np.array(here.E.rows, dtype=float).T)
        p.append(p[above] + R[above] @ np.array(list(here.r), dtype=float))
    return np.array(R), np.array(p)


def roots(robot: Robot) -> list[int]:
    """For each body the first floating body on the path to it; 0 where there is none."""
    tree, found = robot.tree, [0]
    for i in tree.outward():
        joint = tree.joint[i]
        free = tree.parent[i] == 0 and joint is not None and joint.kind.name == "floating"
        found.append(i if free else found[tree.parent[i]])
    return found


def neighbours(robot: Robot, bodies: set[int], root: list[int]) -> set[tuple[int, int]]:
    """(parent, child) of all bodies with shapes, those without skipped; and bodies that a loop connects."""
    found, parent = set(), robot.tree.parent
    for i in bodies:
        if not i or root[i] == i:
            continue
        above = parent[i]
        while above > 0 and above not in bodies and root[above] != above:
            above = parent[above]
        found.add((above, i))
    return found | {(min(ends), max(ends)) for ends in robot.tree.loops}


# ---- the world --------------------------------------------------------------------------------------------


def _beside(arrays: Arrays, material: Sequence[Any]) -> Arrays:
    """Of each fixed polytope those that come as near as touching, by the boxes around them.

    Those of its material come first.
    """
    n = len(arrays["shape_body"])
    fixed = np.flatnonzero((arrays["shape_body"] == 0) & (arrays["shape_kind"] == POLYTOPE))
    lists: list[list[int]] = [[] for _ in range(n)]
    if len(fixed) > 1:
        boxes = np.array([_box(arrays, k) for k in fixed.tolist()])
        slack = max(FLUSH) * arrays["shape_bound"][arrays["shape_body"] > 0].max(initial=0.0)
        low, high = boxes[:, 0] - slack, boxes[:, 1] + slack
        for m, k in enumerate(fixed.tolist()):
            meets = ((low <= high[m]) & (high >= low[m])).all(axis=1)
            meets[m] = False
            lists[k] = sorted(fixed[meets].tolist(), key=lambda s: material[s] != material[k])
    counts = np.array([len(each) for each in lists], dtype=np.int32)
    alike = [[material[s] for s in each].count(material[k]) for k, each in enumerate(lists)]
    return {
        "shape_beside": np.stack([np.cumsum(counts) - counts, counts, alike], axis=1).astype(np.int32),
        "beside": np.array([k for each in lists for k in each] or [0], dtype=np.int32),
    }


def _box(arrays: Arrays, k: int) -> np.ndarray:
    """Lower and upper corner of a box around a polytope in its body's axes, (2, 3) [m]."""
    place, (first, count) = arrays["shape_placement"][k], arrays["shape_corners"][k]
    corners = arrays["corners"][first : first + count] @ place[:9].reshape(3, 3).T + place[9:]
    return np.array([corners.min(axis=0), corners.max(axis=0)])
