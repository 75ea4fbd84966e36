"""Which bodies of a robot can meet.

Found once by sampling random configurations inside the joints' limits, with loops closed. Where a pair met in
none of them, those in which it came nearest are varied, and again the nearest of these; not for robots with
loops or with ENOUGH pairs. Left out are

    neighbours      a body and the nearest one with a shape that carries it; bodies that a loop joint connects
    touching        bodies whose hulls touch in the neutral configuration: they are made so
    never met       bodies whose shapes overlap in no sample

Where only the shapes overlap in the neutral configuration, because they are thicker than what they stand
for, the pair stays and gets the overlap as *slack*: it acts where the bodies come nearer than that.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from robokit.arguments import whole_number
from robokit.dynamics import forward_kinematics
from robokit.model.robot import Robot, check_robot
from robokit.sim.closing import those_that_close
from robokit.sim.collide.body_shapes import LinkBox, LinkShape, body_shapes, link_balls, shapes_of
from robokit.sim.collide.gaps import Gaps, body_poses
from robokit.sim.collide.hull_distance import hull_distance
from robokit.sim.collide.pair_list import CollisionPairs

SAMPLES = 1024
SEED = 0

SHRINK = 0.7
"""Size of the variations of a round over that of the one before."""

ROUNDS = 6
"""Rounds of the search for pairs that met in no sample."""

ENOUGH = 300
"""Pairs from which on none are searched for, and all shapes are capsules; two boxes count twice.

A step would become too long to compile.
"""

KEPT, VARIED = 4, 8
"""Configurations of a pair that a round keeps, and variations of each."""

SPREAD = 0.5
"""Size of a variation in the first round, of the way to a random configuration; smaller in each round."""

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
        8
    """
    check_robot(robot)
    n = whole_number("samples", samples, 1)
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
    gaps = Gaps(robot, shapes, q)
    bodies = sorted(gaps.of)
    near = neighbours(robot, set(bodies))
    kept: list[tuple[int, int]] = []
    left: dict[str, list[tuple[int, int]]] = {NEIGHBOURS: [], TOUCHING: [], NEVER: []}
    slack: dict[tuple[int, int], float] = {}
    for pair in combinations(bodies, 2):
        if pair in near:
            left[NEIGHBOURS].append(pair)
            continue
        met = gaps.met(*pair)
        if met[0] and root[pair[0]] == root[pair[1]]:
            slack[pair] = CLEAR - gaps.nearest(*pair, row=0)
            if touching(robot, *pair, q[0]):
                left[TOUCHING].append(pair)
                continue
        (kept if met.any() else left[NEVER]).append(pair)
    found = searched(robot, shapes, left[NEVER], q, gaps, rng) if len(kept) < ENOUGH else set()
    kept = sorted({*kept, *found})
    left[NEVER] = [pair for pair in left[NEVER] if pair not in found]
    return CollisionPairs(
        robot.name,
        tuple(robot.tree.name),
        tuple(kept),
        shapes,
        {reason: tuple(pairs) for reason, pairs in left.items()},
        slack,
        samples,
        {link.name: link.body for link in robot.links},
    )


def searched(
    robot: Robot,
    shapes: Sequence[LinkShape],
    pairs: Sequence[tuple[int, int]],
    q: np.ndarray,
    gaps: Gaps,
    rng: np.random.Generator,
) -> set[tuple[int, int]]:
    """Those of the pairs that meet in a configuration near those in which they come nearest.

    Half of the joints between the two bodies are moved from a known configuration towards a random one; all
    pairs at once. Robots with loops are not searched.

    Args:
        robot: the robot.
        shapes: of its links.
        pairs: that met in no sample.
        q: the samples, (B, nq).
        gaps: distances in them.
        rng: random numbers.
    """
    found: set[tuple[int, int]] = set()
    if robot.tree.loops:
        return found
    left = {pair: q[np.argsort(gaps.apart(*pair))[:KEPT]] for pair in pairs}
    moving = {pair: joints_between(robot, *pair) for pair in pairs}
    share = SPREAD
    for _ in range(ROUNDS):
        if not left:
            break
        rows = KEPT * VARIED
        known = np.concatenate([np.repeat(some, VARIED, axis=0) for some in left.values()])
        other = q[rng.integers(1, len(q), size=len(known))] if len(q) > 1 else known
        those = np.repeat([moving[pair] for pair in left], rows, axis=0)
        tried = np.concatenate([known[::VARIED], between(robot, known, other, share, those, rng)])
        now = Gaps(robot, shapes, tried)
        old = len(known) // VARIED
        for k, pair in enumerate(list(left)):
            mine = np.r_[KEPT * k : KEPT * (k + 1), old + rows * k : old + rows * (k + 1)]
            distance = now.least(*pair, mine)
            if distance.min() < 0.0:
                found.add(pair)
                del left[pair]
            else:
                left[pair] = tried[mine[np.argsort(distance)[:KEPT]]]
        share *= SHRINK
    return found


def joints_between(robot: Robot, i: int, j: int) -> np.ndarray:
    """Which coordinates move one of two bodies against the other, (nq,) booleans."""
    tree, found = robot.tree, np.zeros(robot.nq, bool)
    if tree.coupling is not None:  # a joint on the way may follow one beside it
        return ~found
    ways: list[set[int]] = [set(), set()]
    for way, body in zip(ways, (i, j), strict=True):
        while body:
            way.add(body)
            body = tree.parent[body]
    for body in ways[0] ^ ways[1]:
        found[tree.q_slice[body]] = True
    return found


def between(
    robot: Robot,
    known: np.ndarray,
    other: np.ndarray,
    share: float,
    those: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """Configurations with half of those coordinates moved by up to this share towards others, (B, nq)."""
    part = np.where(rng.random(known.shape) < 0.5, share * rng.random(known.shape), 0.0)
    for at in robot.tree.q_slice:
        if at.stop - at.start > 1:  # quaternions, and what belongs to them: all of it or nothing
            part[:, at] = rng.random((len(known), 1)) < share
    return known + np.where(those, part, 0.0) * (other - known)


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
    of a robot around the place of one of them.
    """
    free = sorted({i for i in root if i})
    if len(free) + any(c.body and not root[c.body] for c in shapes) < 2 or not shapes:
        return
    first = body_poses(robot, q[:1])[0]
    middles = np.array([first[c.body] @ [*c.ends.mean(axis=0), 1.0] for c in shapes])
    bases = np.array([first[root[c.body], :, 3] for c in shapes])
    reach = float(np.linalg.norm(middles - bases, axis=1).max())
    reach += max(c.radius + float(np.linalg.norm(c.ends - c.ends.mean(axis=0), axis=1).max()) for c in shapes)
    for i in free:
        X, at = robot.tree.XT[i], robot.tree.q_slice[i].start + 4
        R, p = np.array(X.E.rows, dtype=float), np.array(list(X.r), dtype=float)
        where = bases[rng.integers(len(bases), size=len(q) - 1)]
        where = where + rng.uniform(-reach, reach, size=where.shape)
        q[1:, at : at + 3] = (where - p) @ R.T


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

    Bodies that a loop joint connects are neighbours too.
    """
    found, parent = set(), robot.tree.parent
    for i in bodies:
        above = parent[i] if i else -1
        while above > 0 and above not in bodies:
            above = parent[above]
        if above >= 0:
            found.add((above, i))
    return found | {(min(ends), max(ends)) for ends in robot.tree.loops}
