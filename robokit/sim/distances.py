"""Pairs of bodies that may touch; signed distances of links from each other and from the ground; contacts."""

from __future__ import annotations

import itertools
import math
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from robokit.arguments import argument, check_values, real_number, whole_number
from robokit.collision.scene import (
    NO_RUNS,
    kept_apart,
    neighbours,
    robot_shapes,
    roots,
    touches_as_its_inertia,
    touching_count,
    touching_pairs,
    touching_runs,
    world_shapes,
)
from robokit.collision.shapes import BOX_FACES, runs_of, shape_arrays
from robokit.contact.distances import distance_kernel
from robokit.contact.robot_data import robot_data
from robokit.dataclass_tools import Recent, Spare, frozen
from robokit.engine.backend.llvm import processors
from robokit.engine.batch_calls import BLOCK_SECONDS, PAYS_SECONDS, in_threads
from robokit.engine.loops.fields import sizes_told
from robokit.errors import ModelError, ShapeError, UnknownName, WrongType, shown, warn
from robokit.model.robot import Robot, check_robot, quaternion_offsets
from robokit.sim.ground import Ground, ground_of, world_of
from robokit.sim.kernel_rows import KernelRows, on_arrays
from robokit.stages import stage

# ==== pairs of bodies =============================================================================
# Which pairs of bodies of a robot touch each other: listed, edited, and what acts between them.


NEIGHBOURS, TOUCHING, EXCLUDED = "neighbours", "touching in the neutral pose", "excluded by the file"


@frozen
class CollisionPairs:
    """Pairs of bodies that can collide, of :func:`collision_pairs`. Immutable: ``add``, ``remove`` and
    ``with_law`` return a new object.

    Attributes:
        robot: name of the robot.
        names: of bodies 0..N.
        bodies: ((i, j), ...) with i < j, ascending: the pairs.
        shaped: bodies with a shape.
        left_out: {reason: pairs}.
        body_of: {link name: number of its body}.
        error: largest distance between a mesh's convex hull and the simplified hull that replaces it [m].
        friction: Coulomb coefficient between bodies.
        restitution: coefficient of restitution between bodies, 0 to 1.
    """

    robot: str
    names: tuple[str, ...]
    bodies: tuple[tuple[int, int], ...]
    shaped: tuple[int, ...]
    left_out: Mapping[str, tuple[tuple[int, int], ...]]
    body_of: Mapping[str, int]
    error: float = 0.0
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
        return (
            f"<CollisionPairs of {self.robot!r}: {len(self)} pairs of {len(self.shaped)} bodies; "
            f"left out: {out}>"
        )

    def __str__(self) -> str:
        """The list: one line a body, with those that it can touch."""
        lines = [repr(self)]
        if self.error > 0.0:
            lines.append(
                f"  meshes reach up to {1e3 * self.error:.1f} mm out of the hulls that stand for them"
            )
        for i in sorted({i for i, _ in self.bodies}):
            lines.append(f"  {self.names[i]}: {', '.join(self.names[k] for j, k in self.bodies if j == i)}")
        return "\n".join(lines)

    def add(self, first: str, second: str) -> CollisionPairs:
        """The pairs with one more, given by the names of two links.

        If their shapes overlap in the neutral configuration, they push each other apart there.

        Raises:
            ModelError: links of one body, or of a body without shapes.
        """
        pair = self._pair(first, second)
        for link in (first, second):
            if self.body_of[link] not in self.shaped:
                raise ModelError(f"link {link!r} has no shape that could touch another")
        return replace(self, bodies=tuple(sorted({*self.bodies, pair})))

    def remove(self, first: str, second: str | None = None) -> CollisionPairs:
        """The pairs without that of two links or, if one link is given, without all its pairs.

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
        """The same pairs with another friction or restitution; None keeps it."""
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


def collision_pairs(robot: Robot, samples: int | None = None) -> CollisionPairs:
    """The pairs of bodies that can collide: all pairs except these.

    neighbours    a body and the nearest one with a shape that carries it; bodies that a loop joint connects
    touching      bodies of one robot that overlap in the neutral configuration
    excluded      pairs excluded by the robot's file (robot.scene.apart), such as <exclude> in MJCF

    What only meets in the neutral configuration, as the balls of a cradle, can collide.

    ``print(collision_pairs(robot))`` lists them; ``.add(link, link)`` and ``.remove(link, link)`` return
    edited lists.

    Args:
        robot: the robot.
        samples: has no effect any more.

    Raises:
        WrongType: robot is not a Robot.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("quadruped"))
        >>> len(rk.collision_pairs(robot))
        28
    """
    check_robot(robot)
    if samples is not None:
        warn(
            "collision_pairs: samples does nothing: all pairs of bodies are checked; leave it out",
        )
    return robot.derived.get("collision pairs", lambda: _collision_pairs(robot))


def body_names(robot: Robot) -> tuple[str, ...]:
    """Names of bodies 0..N; the first is that of the links that are fixed to the world and can be touched."""
    fixed = dict.fromkeys(c.link for c in robot_shapes(robot) if not c.body)
    return (", ".join(fixed) or robot.body_name(0), *robot.tree.name[1:])


def _collision_pairs(robot: Robot) -> CollisionPairs:
    with stage(f"finding the pairs of bodies of {robot.name} that can touch"):
        found = tuple((i, j) for i, j in touching_pairs(robot).tolist())
        placed = robot_shapes(robot)
    shaped = tuple(sorted({c.body for c in placed}))
    near = neighbours(robot, set(shaped), roots(robot)) & set(combinations(shaped, 2))
    excluded = (kept_apart(robot) & set(combinations(shaped, 2))) - near
    others = set(combinations(shaped, 2)) - near - excluded - set(found)
    return CollisionPairs(
        robot.name,
        body_names(robot),
        found,
        shaped,
        {
            NEIGHBOURS: tuple(sorted(near)),
            TOUCHING: tuple(sorted(others)),
            **({EXCLUDED: tuple(sorted(excluded))} if excluded else {}),
        },
        {link.name: link.body for link in robot.links},
        max((c.core.hull.error for c in placed if c.core.hull is not None), default=0.0),
    )


@frozen
class BodyContacts:
    """Which bodies of a robot touch each other in a run, and how."""

    runs: np.ndarray  # pairs (i, j) of them: i, and j from first to end - 1, (n, 3)
    count: int  # how many these are
    friction: float = 0.5  # Coulomb coefficient
    restitution: float = 0.0  # speed after an impact over that before


NO_CONTACTS = BodyContacts(NO_RUNS, 0)


def body_contacts(robot: Robot, given: Any, ground: bool) -> BodyContacts:
    """What ``self_collision`` makes: True, False or pairs of bodies; None is True where there is a ground.

    Raises ShapeError for anything else, and for pairs of another robot.
    """
    if isinstance(given, CollisionPairs):
        if given.names != body_names(robot):
            raise ShapeError(f"self_collision: these are pairs of {given.robot!r}, not of {robot.name!r}")
        return BodyContacts(runs_of(given.bodies), len(given), given.friction, given.restitution)
    if given is not None and not isinstance(given, bool):
        raise ShapeError(
            f"self_collision: expected True, False, None or rk.collision_pairs(robot), got {shown(given)}"
        )
    if not (ground if given is None else given):
        return NO_CONTACTS
    return BodyContacts(touching_runs(robot), touching_count(robot))


# ==== signed distances ============================================================================
# Signed distances of links from each other and from the ground, and which of them are in contact.


Pairs = tuple[tuple[str, str], ...]

GROUND, SOLID = "ground", "solid {}"
"""Names of the plane and the height field together, and of solids by their number in ``Ground(shapes=)``."""

KEPT = 16  # of a robot: prepared questions, those that were asked last
AT_ONCE = 1 << 22  # numbers of distances that collisions of many configurations are picked from at a time

OUTPUTS = ("distance", "normal", "points", "gradient")


@dataclass(frozen=True, eq=False, repr=False)
class Distances:
    """Distances of P pairs of links. If ``a`` and ``b`` were single names, arrays have no axis P.

    Attributes:
        pairs: names (a, b) of each pair.
        distance: (P,), or (B, P) for a batch [m]; if they overlap, minus the penetration depth. Infinite if
            it is not below ``max_distance``; points are then NaN, and normals 0.
        point_a: (..., 3) the point of a nearest to b, or deepest in b, in world coordinates [m].
        point_b: (..., 3) the same for b.
        normal: (..., 3) unit vector from a to b in world axes; moving b along it increases the distance.
        gradient: (..., nv) derivative of the distance, d' = gradient . v; None without ``gradient=True``.
    """

    pairs: Pairs
    distance: np.ndarray
    point_a: np.ndarray
    point_b: np.ndarray
    normal: np.ndarray
    gradient: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.pairs)

    @property
    def nearest(self) -> Any:
        """Names (a, b) of the nearest pair; for a batch a list of them.

        Raises:
            ShapeError: there is no pair.
        """
        if not self.pairs:
            raise ShapeError("nearest: there is no pair")
        if len(self.pairs) == 1 and self.distance.ndim == 0:
            return self.pairs[0]
        at = self.distance.reshape(-1, len(self.pairs)).argmin(axis=1)
        return self.pairs[int(at[0])] if self.distance.ndim < 2 else [self.pairs[k] for k in at.tolist()]

    def __repr__(self) -> str:
        count, d = len(self.pairs), self.distance.reshape(-1, max(len(self.pairs), 1))
        what = f"{self.pairs[0][0]!r}, {self.pairs[0][1]!r}" if count == 1 else f"{count} pairs"
        batch = f", {len(d)} configurations" if len(d) > 1 else ""
        if not d.size or not count:
            return f"<Distances of {what}{batch}>"
        if len(d) > 1 or count == 1:
            least = "" if len(d) == 1 else "from "
            return f"<Distances of {what}{batch}: {least}{_metres(float(d.min()))}>"
        order = np.argsort(d[0], kind="stable")[:MOST_SHOWN].tolist()
        lines = [f"  {_metres(float(d[0, k]))}  {self.pairs[k][0]}, {self.pairs[k][1]}" for k in order]
        return "\n".join([f"<Distances of {what}; the nearest:", *lines]) + ">"


@frozen
class Collision:
    """Two links in contact.

    Attributes:
        a, b: names of the links.
        depth: penetration depth [m]; negative for links whose distance is below the margin.
        point_a: (3,) the point of a that is deepest in b, in world coordinates [m].
        point_b: (3,) the same for b.
        normal: (3,) unit vector from a to b; moving b along it separates them.
        row: row of the batch, 0 for one configuration.
    """

    a: str
    b: str
    depth: float
    point_a: np.ndarray
    point_b: np.ndarray
    normal: np.ndarray
    row: int = 0


@dataclass(frozen=True, eq=False, repr=False)
class Collisions(Sequence[Collision]):
    """Pairs of links in contact, K in all, ordered by row of the batch and by depth, deepest first.

    A sequence of :class:`Collision`, also available as arrays; true if there is any.

    Attributes:
        pairs: names (a, b) of each.
        depth: (K,) penetration depths [m].
        point_a, point_b: (K, 3) the deepest points of a and b, in world coordinates [m].
        normal: (K, 3) unit vectors from a to b.
        row: (K,) rows of the batch, 0 for one configuration.
        any: (B,) whether each row has a contact; a bool for one configuration.
    """

    pairs: Pairs
    depth: np.ndarray
    point_a: np.ndarray
    point_b: np.ndarray
    normal: np.ndarray
    row: np.ndarray
    any: Any

    def __len__(self) -> int:
        return len(self.pairs)

    def __getitem__(self, k: Any) -> Any:
        if isinstance(k, slice):
            return [self[i] for i in range(*k.indices(len(self)))]
        a, b = self.pairs[k]
        points = self.point_a[k], self.point_b[k]
        return Collision(a, b, float(self.depth[k]), *points, self.normal[k], int(self.row[k]))

    def __repr__(self) -> str:
        batch = f" in {np.count_nonzero(self.any)} of {len(self.any)} rows" if np.ndim(self.any) else ""
        if not self.pairs:
            return "<Collisions: none" + (f" in {len(self.any)} rows>" if batch else ">")
        lines = [
            f"  {_metres(float(self.depth[k]))}  {a}, {b}" + (f"  row {self.row[k]}" if batch else "")
            for k, (a, b) in enumerate(self.pairs[:MOST_SHOWN])
        ]
        more = [f"  and {len(self) - MOST_SHOWN} more"] if len(self) > MOST_SHOWN else []
        return "\n".join([f"<Collisions: {len(self)}{batch}; depth and names:", *lines, *more]) + ">"


MOST_SHOWN = 10  # pairs that a repr lists


def _metres(d: float) -> str:
    return f"{d:10.6f} m" if math.isfinite(d) else f"{d:>10} m"


def distance(
    robot: Robot,
    q: Any,
    a: str | Sequence[str] | None = None,
    b: str | Sequence[str] | None = None,
    *,
    ground: Ground | bool | None = None,
    pairs: CollisionPairs | str | None = None,
    max_distance: float = math.inf,
    gradient: bool = False,
    threads: int | None = None,
) -> Distances:
    """Signed distances of links from each other and from the ground, with nearest points and normals.

    The shapes are the collision shapes of the links: spheres, boxes, capsules and cylinders are exact, meshes
    are replaced by their exact convex hulls. As in :func:`simulate`, visual shapes are used if no link of the
    robot has a collision shape. The distance of two links is the smallest distance between any of their
    shapes. If shapes overlap, it is minus their penetration depth.

    Args:
        robot: the robot, or several in one world (:func:`together`).
        q: (nq,) or (B, nq). Loops are not closed.
        a: name of a link, or names of several. With ``ground``, "ground" is its plane and height field,
            "solid 0" the first of its shapes.
        b: likewise. All links of ``a`` are measured against all of ``b``, including pairs that never collide.
            None: all links that can collide with those of ``a``; without both, all pairs that can collide.
        ground: the ground; True for a plane at z = 0.
        pairs: pairs of bodies that can collide, an edited list of :func:`collision_pairs`; "all" for all
            pairs except links of one body. None: those of :func:`collision_pairs`, without neighbours and
            without links that overlap in the neutral configuration.
        max_distance: larger distances are reported as infinite, which saves most of the time [m].
        gradient: whether to compute gradients, n^T (J_b - J_a). They are exact where the distance is smooth,
            and otherwise one-sided.
        threads: largest number of threads for a batch; None for the number that is worthwhile.

    Raises:
        UnknownName: no such link; says the nearest names.
        ModelError: a link without collision shapes, or a robot without shapes.
        ShapeError, InvalidValue: q of another shape, not finite, or with quaternions that are not unit.

    Source: E. Gilbert, D. Johnson, S. Keerthi, 1988 (GJK); G. van den Bergen, 2001 (depth, EPA).

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("humanoid"))
        >>> d = rk.distance(robot, robot.neutral(), "left_hand", "right_hand", gradient=True)
        >>> d.gradient.shape == (robot.nv,)
        True
        >>> all_pairs = rk.distance(robot, robot.neutral())
        >>> len(all_pairs) == all_pairs.distance.size
        True
    """
    endless = isinstance(max_distance, float) and max_distance == math.inf
    most = math.inf if endless else real_number("max_distance", max_distance)
    if not isinstance(gradient, bool | np.bool_):
        raise WrongType("gradient", gradient, "True or False")
    asked = query(robot, a, b, ground, pairs, bool(gradient))
    threads = None if threads is None else whole_number("threads", threads, 1)
    found = asked.at(_configurations(robot, q), most, threads)
    if not gradient:
        found.pop("gradient")
    if isinstance(a, str) and isinstance(b, str):
        alone = found["distance"].ndim - 1
        found = {name: x[(slice(None),) * alone + (0,)] for name, x in found.items()}
    points = found["points"]
    arrays = found["distance"], points[..., 0, :], points[..., 1, :], found["normal"]
    return Distances(asked.pairs, *arrays, found.get("gradient"))


def collisions(
    robot: Robot,
    q: Any,
    a: str | Sequence[str] | None = None,
    b: str | Sequence[str] | None = None,
    *,
    ground: Ground | bool | None = None,
    pairs: CollisionPairs | str | None = None,
    margin: float = 0.0,
    threads: int | None = None,
) -> Collisions:
    """Pairs of links that overlap, or whose distance is below a margin.

    Args:
        robot, q, a, b, ground, pairs, threads: as in :func:`distance`.
        margin: pairs with a smaller distance are listed [m]; with a negative margin, only deeper overlaps.

    Raises:
        as :func:`distance`.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("humanoid"), base="floating")
        >>> found = rk.collisions(robot, robot.neutral(), ground=True)  # its base is at the ground's height
        >>> bool(found), found[0].a
        (True, 'ground')
    """
    asked = query(robot, a, b, ground, pairs, False)
    rows, least = _configurations(robot, q), real_number("margin", margin)
    threads = None if threads is None else whole_number("threads", threads, 1)
    if rows.ndim == 1:
        kept = [_below(asked.at(rows, least, threads), least)]
    else:
        few = max(1, AT_ONCE // max(1, len(asked.pairs)))
        starts = range(0, max(1, len(rows)), few)
        kept = [_below(asked.at(rows[k : k + few], least, threads), least, k) for k in starts]
    row, k, d, points, normal = kept[0] if len(kept) == 1 else map(np.concatenate, zip(*kept, strict=True))
    found = tuple(asked.pairs[i] for i in k.tolist())
    some: Any = bool(found)
    if rows.ndim == 2:
        some = np.zeros(len(rows), bool)
        some[row] = True
    return Collisions(found, -d, points[:, 0], points[:, 1], normal, row, some)


def _below(found: Mapping[str, np.ndarray], least: float, first: int = 0) -> tuple[np.ndarray, ...]:
    """Rows from the first, numbers of pairs, distances, points and normals of what is nearer."""
    distance = found["distance"]
    at: tuple[np.ndarray, ...]
    if distance.ndim == 1:
        (k,) = (distance < least).nonzero()
        k = k[distance[k].argsort(kind="stable")] if len(k) > 1 else k
        row, at = np.zeros(len(k), int), (k,)
    else:
        row, k = (distance < least).nonzero()
        order = np.lexsort((distance[row, k], row))
        row, k = row[order], k[order]
        at = (row, k)
    return row + first, k, distance[at], found["points"][at], found["normal"][at]


def _configurations(robot: Robot, q: Any) -> np.ndarray:
    """Checked, (nq,) or (B, nq), contiguous."""
    if type(q) is np.ndarray and q.dtype == np.float64 and q.shape == (robot.nq,) and q.flags.c_contiguous:
        found = q  # as argument gives it, in a tenth of the time
    else:
        found = np.ascontiguousarray(argument("q", q, robot.nq))
    offsets = quaternion_offsets(robot)
    if offsets or not math.isfinite(found.sum()):
        check_values(["q"], [found], [(0, k) for k in offsets])
    return found


# ---- what is asked ----------------------------------------------------------------------------------------


def query(robot: Robot, a: Any, b: Any, ground: Any, pairs: Any, gradient: bool) -> Query:
    """The prepared query of distances, cached with the robot."""
    check_robot(robot)
    surface = ground_of(ground)
    if surface is not None and np.ndim(surface.normal) == 2:
        raise ShapeError("ground: its normal is one per row of rk.rollout; give one here")
    if not (pairs is None or pairs == "all" or isinstance(pairs, CollisionPairs)):
        raise ShapeError(f'pairs: expected rk.collision_pairs(robot), "all" or None, got {shown(pairs)}')
    names = _names("a", a), _names("b", b)
    known: Recent[Query] = robot.derived.get("distance queries", lambda: Recent(KEPT))
    # The question keeps what its key has the addresses of.
    at = "True" if ground is True else id(surface), pairs if isinstance(pairs, str) else id(pairs)
    return known.get((*names, *at, gradient), lambda: Query(robot, *names, surface, pairs, gradient))


def _names(what: str, given: Any) -> tuple[str, ...] | None:
    if given is None:
        return None
    names = (given,) if isinstance(given, str) else given
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise WrongType(what, given, "the name of a link, a list of names, or None")
    return tuple(names)


class _Scene:
    """Shapes of a robot and its world by the names of what has them."""

    def __init__(self, robot: Robot, ground: Ground | None) -> None:
        world = world_shapes(world_of(ground), None) if ground else []
        with stage(f"making exact hulls of {robot.name}'s shapes"):
            own = [] if touches_as_its_inertia(robot) else list(robot_shapes(robot, None))
        self.robot, self.placed = robot, [*world, *own]
        solids = len(ground.shapes) if ground else 0
        level = len(world) - solids
        names = [GROUND] * level + [SOLID.format(k) for k in range(solids)] + [c.link for c in own]
        self.shapes: dict[str, list[int]] = {}
        self.in_world = set(names[: len(world)]) - {c.link for c in own}
        for k, name in enumerate(names):
            if k >= len(world) or name in self.in_world:  # a link of that name comes first
                self.shapes.setdefault(name, []).append(k)
        self.body = {name: self.placed[numbers[0]].body for name, numbers in self.shapes.items()}

    def check(self, name: str) -> None:
        """Refuse a name that has no shapes."""
        if name in self.shapes:
            return
        robot = self.robot
        link = next((each for each in robot.links if each.name == name), None)
        if link is None:
            known = [*(each.name for each in robot.links), *self.in_world]
            of_world = name == GROUND or name.startswith(SOLID.format(""))
            hint = "; ground= gives one" if of_world and not self.in_world else ""
            raise UnknownName("link", name, known, f"in robot {robot.name!r}{hint}")
        visual = f" (it has {len(link.visuals)} to be seen alone)" if link.visuals else ""
        fixed = next((c.link for c in self.placed if c.link and c.body == link.body), None)
        some = next((c.link for c in self.placed if c.link), None)
        if fixed:
            others = f"; {fixed!r}, which is fixed to it, has some"
        else:
            others = f"; {some!r} has some" if some else f", nor has any other link of robot {robot.name!r}"
        raise ModelError(f"link {name!r} has no collision shape{visual}{others}")

    def chosen(self, a: Any, b: Any, pairs: Any) -> list[tuple[str, str]]:
        """Names of the pairs that are asked for."""
        for name in itertools.chain(a or (), b or ()):
            self.check(name)
        if not any(c.body or c.link for c in self.placed):
            raise ModelError(f"robot {self.robot.name!r}: no link has a shape, so there are no distances")
        if a is None or b is None:
            asked = set(a or b or ())
            found = self.possible(pairs)
            if asked:
                found = [
                    p if (p[0] in asked) == (a is not None) else p[::-1] for p in found if asked & set(p)
                ]
            return found
        asked_for = dict[tuple[str, str], None]()
        for x, y in itertools.product(a, b):
            if x != y and (y, x) not in asked_for:
                asked_for[x, y] = None
        if not asked_for:
            raise ShapeError(f"a, b: expected two links, got {shown(a)} and {shown(b)}")
        return list(asked_for)

    def possible(self, pairs: Any) -> list[tuple[str, str]]:
        """Names of the pairs that can collide: those with the world first, then by bodies."""
        robot, moving = self.robot, [name for name in self.shapes if name not in self.in_world]
        found = [(x, y) for x in self.shapes if x in self.in_world for y in moving if self.body[y]]
        if isinstance(pairs, CollisionPairs) and pairs.names != body_names(robot):
            raise ShapeError(f"pairs: these are pairs of {pairs.robot!r}, not of {robot.name!r}")
        of: dict[int, list[str]] = {}
        for name in moving:
            of.setdefault(self.body[name], []).append(name)
        if pairs == "all":
            bodies: Any = itertools.combinations(sorted(of), 2)
        else:
            bodies = pairs.bodies if pairs is not None else touching_pairs(robot).tolist()
        for i, j in bodies:
            found += itertools.product(of.get(i, ()), of.get(j, ()))
        return found


class Query:
    """Pairs of links of a robot as arrays, their names in ``pairs``, and machine code that measures them."""

    def __init__(
        self, robot: Robot, a: Any, b: Any, ground: Ground | None, pairs: Any, gradient: bool
    ) -> None:
        scene = _Scene(robot, ground)
        self.pairs: Pairs = tuple(scene.chosen(a, b, pairs))
        self._keeps, self.kernel = (ground, pairs), distance_kernel()
        groups, swapped, shapes = list[tuple[int, int]](), list[int](), list[tuple[int, int]]()
        for x, y in self.pairs:
            # The shapes of the world come first: a plane or height field is the first of its pairs.
            swap = scene.shapes[x][0] > scene.shapes[y][0]
            first, last = (y, x) if swap else (x, y)
            own = list(itertools.product(scene.shapes[first], scene.shapes[last]))
            groups.append((len(shapes), len(own)))
            swapped.append(int(swap))
            shapes += own
        given = shape_arrays(scene.placed) | robot_data(robot)
        given |= {"shape_beside": np.zeros((len(scene.placed), 3), np.int32), "beside": np.zeros(1, np.int32)}
        given |= {"pair_shapes": np.array(shapes, np.int32).reshape(-1, 2)}
        hulls = [c.core.hull for c in scene.placed]
        boxes = [int(hull is not None and hull.polygons == BOX_FACES) for hull in hulls]
        given |= {"shape_box": np.array(boxes, np.int32)}
        given |= {"group_pairs": np.array(groups, np.int32).reshape(-1, 2)}
        given |= {"group_swapped": np.array(swapped, np.int32), "farthest": np.zeros(1)}
        self.sizes = {"nq": robot.nq, "nv": robot.nv, "n_gradients": len(self.pairs) if gradient else 0}
        self.given = {
            a.name: np.ascontiguousarray(given[a.name]) for a in self.kernel.taken if a.name in given
        }
        self.sizes |= sizes_told(self.kernel.arrays, self.given)
        self.seconds = 0.0
        self._spare: Spare[Any] = Spare(4)

    def at(self, q: np.ndarray, most: float, threads: int | None) -> dict[str, np.ndarray]:
        """Outputs of the kernel, by name, at one configuration or many."""

        def single() -> tuple[Mapping[str, np.ndarray], Any]:
            """Arrays of one configuration, and the function that computes distances in them."""
            arrays = {a.name: self.given.get(a.name, a.zeros(self.sizes)) for a in self.kernel.taken}
            arrays["farthest"] = np.zeros(1)
            return arrays, on_arrays(self.kernel, self.sizes, list(arrays.values()))

        if q.ndim == 1:
            arrays, call = self._spare.take("single", single)
            arrays["q"][:], arrays["farthest"][0] = q, most
            call()
            found = {name: arrays[name].copy() for name in OUTPUTS}
            self._spare.give("single", (arrays, call))
            return found
        found = {
            a.name: np.empty((len(q), *a.at(self.sizes)), a.zeros(self.sizes).dtype)
            for a in self.kernel.taken
            if a.role == "out"
        }
        arrays = {
            a.name: found[a.name] if a.name in found else self.given.get(a.name, q) for a in self.kernel.taken
        }
        arrays["farthest"] = np.array([most])
        if len(q):
            self._rows(arrays, len(q), threads)
        return found

    def _rows(self, arrays: Mapping[str, np.ndarray], rows: int, threads: int | None) -> None:
        own = {a.name for a in self.kernel.taken if a.role == "out"} | {"q"}
        every, done = KernelRows(self.kernel, self.sizes, arrays, own), np.zeros(rows, np.int64)
        if not every.compiled:
            every.run(0, rows, {}, 1, done)
            return
        self._spare.give("rows", every.memory)
        stop = threading.Event()

        def go(part: range) -> None:
            memory = self._spare.take("rows", lambda: self.kernel.environment(self.sizes, "float64"))
            at, size = part.start, max(1, int(BLOCK_SECONDS / max(self.seconds, 1e-7)))
            while at < part.stop and not stop.is_set():
                end = min(at + size, part.stop)
                every.run(at, end, {}, 1, done[at:end], memory)
                at = end
            self._spare.give("rows", memory)

        started, first = time.perf_counter(), min(rows, 8)
        go(range(first))
        self.seconds = (time.perf_counter() - started) / first
        self.kernel.ran(rows * self.seconds, 1, "float64")
        left = rows - first
        count = max(1, min(threads or processors(), processors(), int(left * self.seconds / PAYS_SECONDS)))
        size = max(1, -(-left // count))
        in_threads(go, [range(k, min(k + size, rows)) for k in range(first, rows, size)], stop)
