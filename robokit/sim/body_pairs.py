"""Which pairs of bodies of a robot touch each other: listed, edited, and what acts between them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from robokit.arguments import real_number
from robokit.collision.scene import kept_apart, neighbours, robot_shapes, roots, touching_pairs
from robokit.errors import ModelError, ShapeError, SimulationWarning, UnknownName, shown
from robokit.model.robot import Robot, check_robot
from robokit.stages import stage

NEIGHBOURS, TOUCHING, EXCLUDED = "neighbours", "touching in the neutral pose", "excluded by the file"


@dataclass(frozen=True)
class CollisionPairs:
    """Pairs of bodies that can collide. Immutable: ``add`` and ``remove`` return a new object.

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
    touching      bodies of one robot that touch in the neutral configuration
    excluded      pairs excluded by the robot's file (robot.scene.apart), such as <exclude> in MJCF

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
        warnings.warn(
            "collision_pairs: samples does nothing: all pairs of bodies are kept apart; leave it out",
            SimulationWarning,
            stacklevel=2,
        )
    return robot.derived.get("collision pairs", lambda: _collision_pairs(robot))


def body_names(robot: Robot) -> tuple[str, ...]:
    """Names of bodies 0..N; the first is that of the links that are fixed to the world and can be touched."""
    fixed = dict.fromkeys(c.link for c in robot_shapes(robot).placed if not c.body)
    return (", ".join(fixed) or robot.body_name(0), *robot.tree.name[1:])


def _collision_pairs(robot: Robot) -> CollisionPairs:
    with stage(f"finding the pairs of bodies of {robot.name} that can touch"):
        found, placed = touching_pairs(robot), robot_shapes(robot).placed
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


@dataclass(frozen=True)
class BodyContacts:
    """Which bodies of a robot touch each other in a run, and how."""

    bodies: tuple[tuple[int, int], ...] = ()  # pairs of them
    friction: float = 0.5  # Coulomb coefficient
    restitution: float = 0.0  # speed after an impact over that before


NO_CONTACTS = BodyContacts()
"""Bodies that pass through each other."""


def body_contacts(robot: Robot, given: Any, ground: bool) -> BodyContacts:
    """What a run makes of its argument ``self_collision``.

    Args:
        given: True, False, pairs of bodies; None for True where there is a ground.
        ground: whether there is one.

    Raises:
        ShapeError: none of these, or pairs of another robot.
    """
    if isinstance(given, CollisionPairs):
        if given.names != body_names(robot):
            raise ShapeError(f"self_collision: these are pairs of {given.robot!r}, not of {robot.name!r}")
        return BodyContacts(given.bodies, given.friction, given.restitution)
    if given is not None and not isinstance(given, bool):
        raise ShapeError(
            f"self_collision: expected True, False, None or rk.collision_pairs(robot), got {shown(given)}"
        )
    return BodyContacts(touching_pairs(robot)) if (ground if given is None else given) else NO_CONTACTS
