"""Which bodies of a robot can meet.

Found once by sampling random configurations inside the joints' limits, with loops closed. Where a pair met in
none of them, its distance is descended from those in which it came nearest; not for robots with loops, with
ENOUGH pairs, or with more than MANY that are to be searched for. What was found is kept on disk. Left out are

    neighbours      a body and the nearest one with a shape that carries it; bodies that a loop joint connects
    touching        bodies whose hulls touch in the neutral configuration: they are made so
    never met       bodies whose shapes overlap in no sample

Where only the shapes overlap in the neutral configuration, because they are thicker than what they stand
for, the pair stays, and these shapes get their overlap as *slack*: they act where they come nearer than that.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product

import numpy as np

from robokit import disk_cache
from robokit.arguments import whole_number
from robokit.dynamics import forward_kinematics
from robokit.model.robot import Robot, check_robot
from robokit.sim.closing import those_that_close
from robokit.sim.collide.body_shapes import LinkBox, LinkShape, body_shapes, link_balls, shapes_of
from robokit.sim.collide.gaps import Gaps, body_poses
from robokit.sim.collide.hull_distance import hull_distance
from robokit.sim.collide.pair_list import CollisionPairs
from robokit.stages import stage

SAMPLES = 1024
SEED = 0

KEPT, ROUNDS = 3, 10
"""Configurations of a pair that are searched from, and steps of each, where it met in no sample."""

SLIGHT = 1e-4
"""Change of a coordinate that tells the slope of a distance [rad | m]."""

STEPS = (0.0, 0.02, 0.08, 0.25, 0.7)
"""Largest change of a coordinate in a step; that which brings the pair nearest is taken [rad | m]."""

ENOUGH = 300
"""Pairs from which on none are searched for, and all shapes are capsules; two boxes count twice.

A step would become too long to compile.
"""

MANY = 1000
"""Pairs that met in no sample of which more are not searched for: it would take minutes."""

NEIGHBOURS, TOUCHING, NEVER = "neighbours", "touching in the neutral pose", "never met"

CLEAR = 1e-3
"""Distance that a pair with slack has in the neutral configuration [m]."""


def collision_pairs(robot: Robot, samples: int = SAMPLES) -> CollisionPairs:
    """The pairs of bodies that can meet, computed once.

    ``print(collision_pairs(robot))`` lists them; ``.add(link, link)`` and ``.remove(link, link)`` give other
    lists.

    Args:
        robot: the robot.
        samples: random configurations, the same at every call.

    Raises:
        WrongType: robot is no Robot.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("quadruped"))
        >>> pairs = rk.collision_pairs(robot, samples=64)
        >>> len(pairs.bodies)
        21
    """
    check_robot(robot)
    n = whole_number("samples", samples, 1)
    with stage(f"finding the pairs of bodies of {robot.name} that can meet"):
        return robot.derived.get(("collision pairs", n), lambda: _collision_pairs(robot, n))


def _collision_pairs(robot: Robot, samples: int) -> CollisionPairs:
    found = _pairs_of(robot, body_shapes(robot), samples)
    boxes = {shape.body for shape in found.shapes if isinstance(shape, LinkBox)}
    if boxes and len(found) + sum(i in boxes and j in boxes for i, j in found.bodies) >= ENOUGH:
        return _pairs_of(robot, body_shapes(robot, boxes=False), samples)
    return found


def _pairs_of(robot: Robot, shapes: tuple[LinkShape, ...], samples: int) -> CollisionPairs:
    rng = np.random.default_rng(SEED)
    q = np.array([robot.neutral(), *(robot.random_configuration(rng) for _ in range(samples))])
    q = those_that_close(robot, q)
    root = roots(robot)
    bring_together(robot, shapes, root, q, rng)
    # Hulls of other links have other shapes; limits of joints are in the samples.
    key = ("pairs of bodies", robot.fingerprint, robot.tree.loops, shapes, q.tobytes())
    rows, loose, least = disk_cache.arrays(
        f"{robot.name}: bodies that can meet", key, lambda: _judged(robot, shapes, root, q)
    )
    pairs = [(int(i), int(j)) for i, j, _ in rows]
    of = [[pair for pair, row in zip(pairs, rows, strict=True) if row[2] == k] for k in range(4)]
    return CollisionPairs(
        robot.name,
        tuple(robot.tree.name),
        tuple(of[0]),
        shapes,
        {reason: tuple(of[k]) for k, reason in enumerate((NEIGHBOURS, TOUCHING, NEVER), 1)},
        {(int(k), int(m)): slack for (k, m), slack in zip(loose, least.tolist(), strict=True)},
        samples,
        {link.name: link.body for link in robot.links},
    )


def _judged(
    robot: Robot, shapes: Sequence[LinkShape], root: list[int], q: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All pairs of bodies with shapes and what becomes of each; pairs of shapes with slack, and this.

    (P, 3): the two bodies, then 0 where it is kept, or why it is left out: 1 for neighbours, 2 for those that
    touch, 3 for those that never met. (S, 2): shapes of the first and of the second body. (S,) [m].
    """
    gaps = Gaps(robot, shapes, q)
    bodies = sorted(gaps.of)
    near = neighbours(robot, set(bodies))
    verdict: dict[tuple[int, int], int] = {}
    slack: dict[tuple[int, int], float] = {}
    for pair in combinations(bodies, 2):
        if pair in near:
            verdict[pair] = 1
            continue
        met = gaps.met(*pair)
        verdict[pair] = 0 if met.any() else 3
        if met[0] and root[pair[0]] == root[pair[1]]:
            if touching(robot, *pair, q[0]):
                # No slack: where such a pair is added, the bodies themselves are to touch.
                verdict[pair] = 2
                continue
            first = np.array([0])
            for k, m in product(gaps.of[pair[0]], gaps.of[pair[1]]):
                overlap = CLEAR - float(gaps.gap(k, m, first)[0])
                slack |= {(k, m): overlap} if overlap > 0.0 else {}
    never = [pair for pair, why in verdict.items() if why == 3]
    if sum(why == 0 for why in verdict.values()) < ENOUGH and len(never) <= MANY:
        verdict |= dict.fromkeys(searched(robot, shapes, never, q, gaps), 0)
    rows = np.array([[*pair, why] for pair, why in verdict.items()], dtype=np.int64).reshape(-1, 3)
    loose = np.array(list(slack), dtype=np.int64).reshape(-1, 2)
    return rows, loose, np.array(list(slack.values()), dtype=float)


def searched(
    robot: Robot,
    shapes: Sequence[LinkShape],
    pairs: Sequence[tuple[int, int]],
    q: np.ndarray,
    gaps: Gaps,
) -> set[tuple[int, int]]:
    """Those of the pairs that meet where a descent of their distance ends.

    It begins where the balls around them are nearest in the samples, and moves the joints between the two
    bodies that have one coordinate, inside the range of the samples; all pairs at once. Robots with loops are
    not searched.

    Args:
        robot: the robot.
        shapes: of its links.
        pairs: that met in no sample.
        q: the samples, (B, nq).
        gaps: distances in them.
    """
    found: set[tuple[int, int]] = set()
    if robot.tree.loops:
        return found
    low, high = q.min(axis=0), q.max(axis=0)
    at = {pair: q[np.argsort(gaps.apart(*pair))[:KEPT]] for pair in pairs}
    those = {pair: np.flatnonzero(joints_between(robot, *pair)) for pair in pairs}

    def least(tried: dict[tuple[int, int], np.ndarray]) -> dict[tuple[int, int], np.ndarray]:
        now, first = Gaps(robot, shapes, np.concatenate(list(tried.values()))), 0
        distances = {}
        for pair, rows in tried.items():
            distances[pair] = now.least(*pair, np.arange(first, first + len(rows)))
            first += len(rows)
        return distances

    for _ in range(ROUNDS):
        if not at:
            break
        moved = {}
        for pair, rows in at.items():
            moved[pair] = np.repeat(rows, 1 + len(those[pair]), axis=0)
            for k, joint in enumerate(those[pair]):
                moved[pair][1 + k :: 1 + len(those[pair]), joint] += SLIGHT
        tried = {}
        for pair, distance in least(moved).items():
            change = distance.reshape(len(at[pair]), -1)
            if change[:, 0].min() < 0.0:
                found.add(pair)
                continue
            slope = (change[:, 1:] - change[:, :1]) / SLIGHT
            way = np.zeros_like(at[pair])
            way[:, those[pair]] = -slope / np.maximum(np.abs(slope).max(axis=1, initial=0.0), 1e-9)[:, None]
            rows = at[pair][:, None] + way[:, None] * np.array(STEPS)[:, None]
            tried[pair] = np.clip(rows, low, high).reshape(-1, q.shape[1])
        at = {}
        for pair, distance in least(tried).items() if tried else ():
            best = (
                distance.reshape(-1, len(STEPS)).argmin(axis=1)
                + len(STEPS) * np.arange(KEPT)[: len(distance)]
            )
            at[pair] = tried[pair][best]
    return found


def joints_between(robot: Robot, i: int, j: int) -> np.ndarray:
    """Which coordinates move one of two bodies against the other, of joints with one, (nq,) booleans."""
    tree, found = robot.tree, np.zeros(robot.nq, bool)
    ways: list[set[int]] = [set(), set()]
    for way, body in zip(ways, (i, j), strict=True):
        while body:
            way.add(body)
            body = tree.parent[body]
    for joint in robot.joints:  # where joints follow others, one on the way may follow one beside it
        if tree.coupling is not None or joint.body in ways[0] ^ ways[1]:
            found[joint.q_slice] = joint.q_slice.stop - joint.q_slice.start == 1
    return found


def roots(robot: Robot) -> list[int]:
    """For each body the first free body on the way to it; 0 where there is none."""
    tree, found = robot.tree, [0]
    for i in tree.outward():
        joint = tree.joint[i]
        free = tree.parent[i] == 0 and joint is not None and joint.kind.name == "floating"
        found.append(i if free else found[tree.parent[i]])
    return found


def bring_together(
    robot: Robot, shapes: Sequence[LinkShape], root: list[int], q: np.ndarray, rng: np.random.Generator
) -> None:
    """Moves robots that float in one world near each other, in all configurations but the first.

    Where robots float, every body can meet every other that it reaches: their bases are spread over the size
    of a robot around the place of one of them, or around a place on what is fixed to the world.
    """
    free = sorted({i for i in root if i})
    if len(free) + any(not root[c.body] for c in shapes) < 2:
        return
    first = body_poses(robot, q[:1])[0]
    moving = [c for c in shapes if c.body]
    middles = np.array([first[c.body] @ [*c.ends.mean(axis=0), 1.0] for c in moving]).reshape(-1, 3)
    bases = np.array([first[carrier(robot, c.body), :, 3] for c in moving]).reshape(-1, 3)
    reach = float(np.linalg.norm(middles - bases, axis=1).max(initial=0.0))
    sizes = [float(np.linalg.norm(c.ends - c.ends.mean(axis=0), axis=1).max()) + c.radius for c in moving]
    reach += max(sizes, default=0.0)
    n = len(q) - 1
    places = np.array([*(np.repeat(base[None], n, axis=0) for base in bases), *_places(shapes, n, rng)])
    start = {joint.body: joint.q_slice.start for joint in robot.joints}
    for i in free:
        X, at = robot.tree.XT[i], start[i] + 4
        R, p = np.array(X.E.rows, dtype=float), np.array(list(X.r), dtype=float)
        where = places[rng.integers(len(places), size=n), np.arange(n)]
        where = where + rng.uniform(-reach, reach, size=where.shape)
        q[1:, at : at + 3] = (where - p) @ R.T


def _places(shapes: Sequence[LinkShape], n: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Random places in each shape that is fixed to the world, (n, 3) [m]."""
    found = []
    for c in shapes:
        if not c.body and isinstance(c, LinkBox):
            found.append(np.array(c.center) + (rng.uniform(-1, 1, (n, 3)) * c.half) @ np.array(c.axes))
        elif not c.body:
            t = rng.uniform(size=(n, 1))
            found.append(c.ends[0] * t + c.ends[1] * (1.0 - t))
    return found


def carrier(robot: Robot, i: int) -> int:
    """The body on the way from the world to body i that the world carries; 0 for the world itself."""
    while i and robot.tree.parent[i]:
        i = robot.tree.parent[i]
    return i


def touching(robot: Robot, i: int, j: int, q: np.ndarray) -> bool:
    """Whether the hulls of any two links of bodies i and j touch in the configuration q."""
    poses = forward_kinematics(robot, q)
    hulls: list[list[tuple[np.ndarray, np.ndarray]]] = [[], []]
    for link in robot.links:
        for side, body in zip(hulls, (i, j), strict=True):
            balls = link_balls(link, shapes_of(robot, link)) if link.body == body else None
            if balls is not None:
                R, p = poses[link.name]
                side.append((balls[0] @ R.T + p, balls[1]))
    return any(hull_distance(*a, *b) <= 0.0 for a in hulls[0] for b in hulls[1])


def neighbours(robot: Robot, bodies: set[int]) -> set[tuple[int, int]]:
    """(parent, child) of all bodies with shapes, where bodies without shapes between them are skipped.

    Bodies that a loop joint connects are neighbours too. No robot that floats is a neighbour of the world,
    where the base of another may be fixed.
    """
    found, parent = set(), robot.tree.parent
    free = set(roots(robot))
    for i in bodies:
        above = -1 if i in free else parent[i]
        while above > 0 and above not in bodies:
            above = -1 if above in free else parent[above]
        if above >= 0:
            found.add((above, i))
    return found | {(min(ends), max(ends)) for ends in robot.tree.loops}
