"""Which bodies of a robot can meet.

Found once by sampling random configurations inside the joints' limits, with loops closed. Where a pair met in
none of them, those in which it came nearest are varied, and again the nearest of these; not for robots with
loops or with ENOUGH pairs. Left out are

    neighbours      a body and the nearest one with a shape that carries it; bodies that a loop joint connects
    touching        bodies whose hulls touch in the neutral configuration: they are made so
    never met       bodies whose capsules overlap in no sample

Where only the capsules overlap in the neutral configuration, because they are thicker than what they stand
for, the pair stays and gets the overlap as *slack*: it acts where the bodies come nearer than that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from robokit.arguments import real_number, whole_number
from robokit.dynamics import forward_kinematics
from robokit.errors import ModelError, ShapeError, UnknownName, shown
from robokit.model.robot import Robot, check_robot
from robokit.sim.closing import those_that_close
from robokit.sim.collide.body_capsules import LinkCapsule, body_capsules, link_balls, shapes_of
from robokit.sim.collide.capsule_distance import nearest_points
from robokit.sim.collide.hull_distance import hull_distance
from robokit.spatial import Vector3

SAMPLES = 1024
SEED = 0

SHRINK = 0.7
"""Size of the variations of a round over that of the one before."""

ROUNDS = 6
"""Rounds of the search for pairs that met in no sample."""

ENOUGH = 300
"""Pairs from which on none are searched for: a step would become too long to compile."""

KEPT, VARIED = 4, 8
"""Configurations of a pair that a round keeps, and variations of each."""

SPREAD = 0.5
"""Size of a variation in the first round, of the way to a random configuration; smaller in each round."""

NEIGHBOURS, TOUCHING, NEVER = "neighbours", "touching in the neutral pose", "never met"

CLEAR = 1e-3
"""Distance that a pair with slack has in the neutral configuration [m]."""


@dataclass(frozen=True)
class CollisionPairs:
    """Pairs of bodies that are kept apart. Immutable: ``add`` and ``remove`` give a new object.

    Attributes:
        robot: name of the robot.
        names: of bodies 0..N.
        bodies: ((i, j), ...) with i < j, ascending: the pairs.
        capsules: of all links, in whose place bodies are tested.
        left_out: {reason: pairs}.
        slack: {pair: overlap of its capsules that is not felt [m]}.
        samples: random configurations that were looked at.
        body_of: {link name: number of its body}.
        friction: Coulomb coefficient between bodies.
        restitution: speed after an impact over that before, 0 to 1.
    """

    robot: str
    names: tuple[str, ...]
    bodies: tuple[tuple[int, int], ...]
    capsules: tuple[LinkCapsule, ...]
    left_out: dict[str, tuple[tuple[int, int], ...]]
    slack: dict[tuple[int, int], float]
    samples: int
    body_of: dict[str, int]
    friction: float = 0.5
    restitution: float = 0.0

    def __post_init__(self) -> None:
        real_number("CollisionPairs(friction=...)", self.friction, least=0.0)
        if real_number("CollisionPairs(restitution=...)", self.restitution, least=0.0) > 1.0:
            raise ShapeError(f"CollisionPairs(restitution=...): expected 0 to 1, got {self.restitution}")

    def __len__(self) -> int:
        return len(self.bodies)

    def __iter__(self) -> Any:
        return iter(self.pairs)

    def __contains__(self, pair: Any) -> bool:
        return self._pair(*pair) in self.bodies

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """The pairs by the names of their bodies: the links that the joints move."""
        return tuple((self.names[i], self.names[j]) for i, j in self.bodies)

    def __repr__(self) -> str:
        out = ", ".join(f"{len(pairs)} {reason}" for reason, pairs in self.left_out.items())
        shapes = len({c.body for c in self.capsules})
        return (
            f"<CollisionPairs of {self.robot!r}: {len(self)} pairs of {shapes} bodies with "
            f"{len(self.capsules)} capsules; left out: {out} in {self.samples} samples>"
        )

    def __str__(self) -> str:
        """The list: one line a body, with those that it can meet."""
        lines = [repr(self)]
        for i in sorted({i for i, _ in self.bodies}):
            lines.append(f"  {self.names[i]}: " + ", ".join(self.names[k] for j, k in self.bodies if j == i))
        return "\n".join(lines)

    def add(self, first: str, second: str) -> CollisionPairs:
        """The pairs and one more, by the names of two links.

        Raises:
            ModelError: links of one body, or of a body without shapes.
        """
        pair = self._pair(first, second)
        for link, body in ((first, self.body_of[first]), (second, self.body_of[second])):
            if not any(c.body == body for c in self.capsules):
                raise ModelError(f"link {link!r} has no shape that could touch another")
        return replace(self, bodies=tuple(sorted({*self.bodies, pair})))

    def remove(self, first: str, second: str | None = None) -> CollisionPairs:
        """The pairs without that of two links; without all pairs of a link where no second one is given.

        Raises:
            ModelError: there is no such pair.
        """
        if second is None:
            i = self._body(first)
            return replace(self, bodies=tuple(pair for pair in self.bodies if i not in pair))
        pair = self._pair(first, second)
        if pair not in self.bodies:
            raise ModelError(f"{first!r} and {second!r} are no pair of {self!r}")
        return replace(self, bodies=tuple(p for p in self.bodies if p != pair))

    def with_law(self, friction: float | None = None, restitution: float | None = None) -> CollisionPairs:
        """The same pairs with another friction or restitution; None leaves it."""
        return replace(
            self,
            friction=self.friction if friction is None else friction,
            restitution=self.restitution if restitution is None else restitution,
        )

    def _body(self, link: Any) -> int:
        if link not in self.body_of:
            raise UnknownName("link", link, self.body_of, f"in robot {self.robot!r}")
        return self.body_of[link]

    def _pair(self, first: Any, second: Any) -> tuple[int, int]:
        i, j = sorted((self._body(first), self._body(second)))
        if i == j:
            raise ModelError(
                f"links {shown(first)} and {shown(second)} belong to one body; it cannot meet itself"
            )
        return i, j


def collision_pairs(robot: Robot, samples: int = SAMPLES) -> CollisionPairs:
    """The pairs of bodies that can meet, computed once.

    ``print(collision_pairs(robot))`` lists them; ``.add(link, link)`` and ``.remove(link, link)`` give other
    lists.

    Args:
        robot: the robot.
        samples: random configurations, the same at every call.

    Raises:
        WrongType: robot is no Robot.
    """
    check_robot(robot)
    n = whole_number("samples", samples, 1)
    return robot.derived.get(("collision pairs", n), lambda: _collision_pairs(robot, n))


def _collision_pairs(robot: Robot, samples: int) -> CollisionPairs:
    capsules = body_capsules(robot)
    rng = np.random.default_rng(SEED)
    q = np.array([robot.neutral(), *(robot.random_configuration(rng) for _ in range(samples))])
    q = those_that_close(robot, q)
    root = roots(robot)
    bring_together(robot, capsules, root, q, rng)
    gaps = Gaps(robot, capsules, q)
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
    found = searched(robot, capsules, left[NEVER], q, gaps, rng) if len(kept) < ENOUGH else set()
    kept = sorted({*kept, *found})
    left[NEVER] = [pair for pair in left[NEVER] if pair not in found]
    return CollisionPairs(
        robot.name,
        tuple(robot.tree.name),
        tuple(kept),
        capsules,
        {reason: tuple(pairs) for reason, pairs in left.items()},
        slack,
        samples,
        {link.name: link.body for link in robot.links},
    )


def searched(
    robot: Robot,
    capsules: Sequence[LinkCapsule],
    pairs: Sequence[tuple[int, int]],
    q: np.ndarray,
    gaps: Gaps,
    rng: np.random.Generator,
) -> set[tuple[int, int]]:
    """Those of the pairs that meet in a configuration near those in which they come nearest.

    Half of the joints are moved from a known configuration towards a random one; all pairs at once. Robots
    with loops are not searched.

    Args:
        robot: the robot.
        capsules: of its links.
        pairs: that met in no sample.
        q: the samples, (B, nq).
        gaps: distances in them.
        rng: random numbers.
    """
    found: set[tuple[int, int]] = set()
    if robot.tree.loops:
        return found
    left = {pair: q[np.argsort(gaps.apart(*pair))[:KEPT]] for pair in pairs}
    share = SPREAD
    for _ in range(ROUNDS):
        if not left:
            break
        rows = KEPT * VARIED
        known = np.concatenate([np.repeat(some, VARIED, axis=0) for some in left.values()])
        other = q[rng.integers(1, len(q), size=len(known))] if len(q) > 1 else known
        tried = np.concatenate([known[::VARIED], between(robot, known, other, share, rng)])
        now = Gaps(robot, capsules, tried)
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


def between(
    robot: Robot, known: np.ndarray, other: np.ndarray, share: float, rng: np.random.Generator
) -> np.ndarray:
    """Configurations with some joints moved by up to this share towards others, (B, nq)."""
    part = np.where(rng.random(known.shape) < 0.5, share * rng.random(known.shape), 0.0)
    for at in robot.tree.q_slice:
        if at.stop - at.start > 1:  # quaternions, and what belongs to them: all of it or nothing
            part[:, at] = rng.random((len(known), 1)) < share
    return known + part * (other - known)


def roots(robot: Robot) -> list[int]:
    """For each body the first free body on the way to it; 0 where there is none."""
    tree, found = robot.tree, [0]
    for i in tree.outward():
        joint = tree.joint[i]
        free = tree.parent[i] == 0 and joint is not None and joint.kind.name == "floating"
        found.append(i if free else found[tree.parent[i]])
    return found


def bring_together(
    robot: Robot, capsules: Sequence[LinkCapsule], root: list[int], q: np.ndarray, rng: np.random.Generator
) -> None:
    """Moves robots that float in one world near each other, in all configurations but the first.

    Where robots float, every body can meet every other that it reaches: their bases are spread over the size
    of a robot around the place of one of them.
    """
    free = sorted({i for i in root if i})
    if len(free) + any(c.body and not root[c.body] for c in capsules) < 2 or not capsules:
        return
    first = body_poses(robot, q[:1])[0]
    middles = np.array([first[c.body] @ [*(0.5 * np.add(c.start, c.end)), 1.0] for c in capsules])
    bases = np.array([first[root[c.body], :, 3] for c in capsules])
    reach = float(np.linalg.norm(middles - bases, axis=1).max()) + max(c.radius for c in capsules)
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


class Gaps:
    """Distances of capsules in many configurations at once."""

    def __init__(self, robot: Robot, capsules: Sequence[LinkCapsule], q: np.ndarray) -> None:
        self.of: dict[int, list[int]] = {}
        self.capsules = capsules
        poses = body_poses(robot, q)
        at, along, middle = [], [], []
        for k, c in enumerate(capsules):
            self.of.setdefault(c.body, []).append(k)
            a, b = np.array(c.start), np.array(c.end)
            R, p = poses[:, c.body, :, :3], poses[:, c.body, :, 3]
            at.append((R @ a + p).T)
            along.append((R @ (b - a)).T)
            middle.append((R @ (0.5 * (a + b)) + p).T)
        self.at, self.along, self.middle = at, along, middle
        self.reach = [c.radius + 0.5 * float(np.linalg.norm(np.subtract(c.end, c.start))) for c in capsules]

    def met(self, i: int, j: int) -> np.ndarray:
        """In which configurations bodies i and j overlap, (B,) booleans."""
        found = np.zeros(self.at[0].shape[1], bool) if self.at else np.zeros(0, bool)
        for k in self.of[i]:
            for m in self.of[j]:
                reach = self.reach[k] + self.reach[m]
                apart = self.middle[k] - self.middle[m]
                some = np.flatnonzero(((apart * apart).sum(axis=0) < reach * reach) & ~found)
                if len(some):
                    found[some[self.gap(k, m, some) < 0.0]] = True
        return found

    def apart(self, i: int, j: int) -> np.ndarray:
        """Distance of bodies i and j by the balls around their capsules, in all configurations, (B,) [m]."""
        found = np.full(self.at[0].shape[1], np.inf)
        for k in self.of[i]:
            for m in self.of[j]:
                d = self.middle[k] - self.middle[m]
                np.minimum(found, np.sqrt((d * d).sum(axis=0)) - self.reach[k] - self.reach[m], out=found)
        return found

    def least(self, i: int, j: int, rows: np.ndarray) -> np.ndarray:
        """Distance of bodies i and j in the given configurations, negative where they overlap [m]."""
        return np.min([self.gap(k, m, rows) for k in self.of[i] for m in self.of[j]], axis=0)

    def nearest(self, i: int, j: int, row: int) -> float:
        """Distance of bodies i and j in one configuration, negative where they overlap [m]."""
        rows = np.array([row])
        return min(float(self.gap(k, m, rows)[0]) for k in self.of[i] for m in self.of[j])

    def gap(self, k: int, m: int, rows: np.ndarray) -> np.ndarray:
        """Distance of capsules k and m in the given configurations, negative where they overlap [m]."""
        ends: list[Any] = []
        for c in (k, m):
            sphere = self.capsules[c].is_sphere
            ends += [Vector3(*self.at[c][:, rows]), None if sphere else Vector3(*self.along[c][:, rows])]
        x, y = nearest_points(*ends)
        d = x - y
        return np.sqrt(d.dot(d)) - (self.capsules[k].radius + self.capsules[m].radius)


def body_poses(robot: Robot, q: np.ndarray) -> np.ndarray:
    """[R p] of bodies 0..N in world axes, (B, N + 1, 3, 4)."""
    links = forward_kinematics(robot, q).matrices
    found = np.zeros((len(q), robot.nbodies + 1, 3, 4))
    found[:, 0, :, :3] = np.eye(3)
    for i in range(1, robot.nbodies + 1):
        found[:, i] = links[:, robot.link_index[robot.tree.name[i]]]
    return found
