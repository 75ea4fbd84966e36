"""The list of pairs of bodies that are kept apart: printed, edited, and what acts between them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from robokit.arguments import real_number
from robokit.errors import ModelError, ShapeError, UnknownName, shown
from robokit.sim.collide.body_shapes import LinkBox, LinkShape

EXACT = 5e-5
"""Smaller errors of shapes are not printed [m]."""


@dataclass(frozen=True)
class CollisionPairs:
    """Pairs of bodies that are kept apart. Immutable: ``add`` and ``remove`` give a new object.

    Attributes:
        robot: name of the robot.
        names: of bodies 0..N.
        bodies: ((i, j), ...) with i < j, ascending: the pairs.
        shapes: boxes and capsules of all links, in whose place bodies are tested.
        left_out: {reason: pairs}.
        slack: {(k, m): overlap of shapes k and m that is not felt [m]}.
        samples: random configurations that were looked at.
        body_of: {link name: number of its body}.
        friction: Coulomb coefficient between bodies.
        restitution: speed after an impact over that before, 0 to 1.
    """

    robot: str
    names: tuple[str, ...]
    bodies: tuple[tuple[int, int], ...]
    shapes: tuple[LinkShape, ...]
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

    @property
    def errors(self) -> tuple[float, float]:
        """How far any hull reaches out of the shapes that stand for it, and these out of it, at most [m]."""
        return self._errors()

    def _errors(self, body: int | None = None) -> tuple[float, float]:
        own = [shape for shape in self.shapes if body is None or shape.body == body]
        missed = max((shape.missed for shape in own), default=0.0)
        return missed, max((shape.added for shape in own), default=0.0)

    def __repr__(self) -> str:
        out = ", ".join(f"{len(pairs)} {reason}" for reason, pairs in self.left_out.items())
        bodies = len({shape.body for shape in self.shapes})
        boxes = sum(isinstance(shape, LinkBox) for shape in self.shapes)
        parts = [f"{boxes} boxes"] * (boxes > 0) + [f"{len(self.shapes) - boxes} capsules"] * (
            boxes < len(self.shapes)
        )
        return (
            f"<CollisionPairs of {self.robot!r}: {len(self)} pairs of {bodies} bodies with "
            f"{' and '.join(parts)}; left out: {out} in {self.samples} samples>"
        )

    def __str__(self) -> str:
        """The list: how well shapes stand for hulls, and one line a body, with those that it can meet."""
        missed, added = self.errors
        lines = [repr(self)]
        lines.append(
            f"  hulls reach up to {1e3 * missed:.1f} mm out of the shapes that stand for them, these up to "
            f"{1e3 * added:.1f} mm out of hulls"
        )
        for i in sorted({i for i, _ in self.bodies}):
            missed, added = self._errors(i)
            kinds = f" ({1e3 * missed:.1f}, {1e3 * added:.1f} mm)" if max(missed, added) > EXACT else ""
            met = ", ".join(self.names[k] for j, k in self.bodies if j == i)
            lines.append(f"  {self.names[i]}{kinds}: {met}")
        return "\n".join(lines)

    def add(self, first: str, second: str) -> CollisionPairs:
        """The pairs and one more, by the names of two links.

        Where their shapes overlap in the neutral configuration too, they push each other apart there.

        Raises:
            ModelError: links of one body, or of a body without shapes.
        """
        pair = self._pair(first, second)
        for link, body in ((first, self.body_of[first]), (second, self.body_of[second])):
            if not any(c.body == body for c in self.shapes):
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
