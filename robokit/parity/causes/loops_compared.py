"""Joints and constraints that close loops: missing, added, or elsewhere."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from robokit.model.geometry import Placement
from robokit.parity.causes.finding import Finding
from robokit.parity.causes.inertial_causes import ROUGH, number
from robokit.parity.causes.pairing import Pairing
from robokit.parity.causes.tree_compared import counterpart, known
from robokit.parity.sides.side import SideLoop

POSITIONS = (0.0, 0.7, -0.4)
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

    def _one(self, a: SideLoop, b: SideLoop, ends: Ends) -> tuple[str, str] | None:
        if set(self._ends_of_b(b)) != set(ends):
            where = f"{b.predecessor!r} and {b.successor!r} for {a.predecessor!r} and {a.successor!r}"
            return "loop-differs", f"B closes the loop between other bodies: {where}"
        if a.kind != b.kind:
            return "loop-differs", f"B's loop joint is {b.kind}, A's {a.kind}"
        off = self._off(a, b)
        if off <= 10.0 * self.tolerance:
            return None
        if off <= ROUGH:
            return "rounded", "B's loop joint is A's rounded"
        return "loop-differs", f"B has the loop joint elsewhere, {number(off * self.size)} m or rad away"

    def _ends_of_a(self, loop: SideLoop) -> Ends:
        group = self.pairing.a.group
        return (
            counterpart(self.pairing, group[loop.predecessor]),
            counterpart(self.pairing, group[loop.successor]),
        )

    def _ends_of_b(self, loop: SideLoop) -> Ends:
        group = self.pairing.b.group
        return known(self.pairing, group[loop.predecessor]), known(self.pairing, group[loop.successor])

    def _holds(self, loop: SideLoop) -> bool:
        """Whether a loop of B connects two bodies that can move against each other."""
        group = self.pairing.b.group
        return group[loop.predecessor] != group[loop.successor]

    def _off(self, a: SideLoop, b: SideLoop) -> float:
        """How far B's loop is from being held where A's is, as a part of the size of the robot."""
        if a.kind != b.kind:
            return math.inf
        pose = self.pairing.a.side.bodies
        first = pose[a.predecessor].pose @ a.predecessor_frame
        second = pose[a.successor].pose @ a.successor_frame
        theirs = [(b.predecessor, b.predecessor_frame), (b.successor, b.successor_frame)]
        if self._ends_of_b(b) != self._ends_of_a(a):
            theirs.reverse()
        there = self.pairing.b.side.bodies
        ends = (a.predecessor, theirs[0]), (a.successor, theirs[1])
        third, fourth = (self.maps[link] @ there[body].pose @ frame for link, (body, frame) in ends)
        largest = 0.0
        for x in POSITIONS:
            moved = first @ _moved(a.kind, x) @ second.inverse()  # the successor, held by A's loop
            apart = third.inverse() @ moved @ fourth
            largest = max(largest, _violation(a.kind, apart, self.size))
        return largest


def _moved(kind: str, x: float) -> Placement:
    """The successor's frame in the predecessor's at some position that the joint allows."""
    z, c, s = np.array([0.0, 0.0, x]), math.cos(x), math.sin(x)
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
    return Placement()


def _violation(kind: str, apart: Placement, size: float) -> float:
    """By how much a relative pose violates the joint; lengths as parts of the size."""
    turn, far = apart.rotation - np.eye(3), apart.position / size
    if kind in ("revolute", "cylindrical", "planar"):
        turn = turn[:, 2]
    elif kind == "spherical":
        turn = np.zeros(3)
    if kind in ("prismatic", "cylindrical"):
        far = far[:2]
    elif kind == "planar":
        far = far[2:]
    return max(float(np.abs(turn).max()), float(np.abs(far).max()))
